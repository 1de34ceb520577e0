"""The Gemini editor, with Google's real SDK, against a server that speaks the documented API."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.providers.catalogue import shelf
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    SettingsError,
)
from convergebench.frame import Frame
from convergebench.registry import open_editor
from tests.editors.providers.ask_gemini import (
    KEY,
    LITE,
    NEW,
    OLD,
    PRO,
    SOURCE,
    Scripted,
    asked,
    decoded,
    edited,
    raised,
    scripted,
    sent,
)
from tests.support.speaker import Speaker


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with scripted(monkeypatch) as speaker:
        yield speaker


def test_the_request_is_what_was_pinned_and_nothing_else(server: Scripted) -> None:
    edited(NEW)
    (got,) = server.server.log
    assert (got.method, got.path) == ("POST", "/v1/models/gemini-nano-banana-2.1:generateContent")
    body = sent(server)
    assert set(body) == {"contents", "generationConfig"}, "no tools, system text or safety settings"
    assert body["generationConfig"] == {
        "responseModalities": ["TEXT", "IMAGE"],
        "imageConfig": {"aspectRatio": "3:2", "imageSize": "1K"},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "MEDIUM"},
        "maxOutputTokens": 1120 + 8192,
        "seed": 7,
    }
    (turn,) = body["contents"]
    assert turn["role"] == "user"
    picture, words = turn["parts"]
    assert set(picture) == {"inlineData"}
    assert decoded(picture) == SOURCE.data
    assert picture["inlineData"]["mimeType"] == "image/png"
    assert words == {"text": "Make the sky pink."}
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert headers["x-goog-api-key"] == KEY
    assert headers["x-server-timeout"] == "19"


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        (LITE, {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        (f"{LITE},thinking=high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (f"{NEW},thinking=minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        (PRO, {"includeThoughts": True}),
        (OLD, None),
    ],
)
def test_the_thinking_level_is_pinned_where_there_is_one(
    server: Scripted, editor: str, expected: dict[str, Any] | None
) -> None:
    reply = edited(editor)
    assert sent(server)["generationConfig"].get("thinkingConfig") == expected
    assert ("thinking_config" in reply.parameters) == (expected is not None)


def test_a_thinking_level_that_the_model_lacks_is_refused_before_any_call() -> None:
    with pytest.raises(SettingsError, match="must be minimal or high, got 'medium'"):
        open_editor(f"{LITE},thinking=medium")
    with pytest.raises(SettingsError, match="no option 'thinking'"):
        open_editor(f"{PRO},thinking=high")


@pytest.mark.parametrize("resolution", ["1K", "2K", "4K"])
def test_the_resolution_is_asked_for_by_name(server: Scripted, resolution: str) -> None:
    reply = edited(PRO, settings=Settings(resolution=resolution), home_size=(900, 1600))
    shape = {"aspectRatio": "9:16", "imageSize": resolution}
    assert sent(server)["generationConfig"]["imageConfig"] == shape
    times = {"1K": 1, "2K": 2, "4K": 4}[resolution]
    assert reply.size == f"{768 * times}x{1376 * times}"


def test_interleaved_resolutions_follow_the_step(server: Scripted) -> None:
    editor = open_editor(PRO)
    for step in (1, 2, 3, 4):
        editor.edit(asked(step=step, settings=Settings(resolution="interleaved")))
    shapes = [sent(server, at)["generationConfig"]["imageConfig"] for at in range(4)]
    assert [shape["imageSize"] for shape in shapes] == ["1K", "2K", "4K", "1K"]


def test_the_first_nano_banana_is_asked_for_a_ratio_only(server: Scripted) -> None:
    reply = edited(OLD)
    assert sent(server)["generationConfig"]["imageConfig"] == {"aspectRatio": "3:2"}
    assert any("only a ratio" in caveat for caveat in reply.caveats)


def test_no_seed_is_sent_where_none_is_asked_for(server: Scripted) -> None:
    edited(seed=None)
    assert "seed" not in sent(server)["generationConfig"]


def test_a_temperature_goes_only_to_models_that_take_one(server: Scripted) -> None:
    edited(PRO, settings=Settings(temperature=0.4))
    assert sent(server)["generationConfig"]["temperature"] == 0.4
    edited(PRO)
    assert "temperature" not in sent(server)["generationConfig"]
    edited(NEW, settings=Settings(temperature=0.4))
    assert "temperature" not in sent(server)["generationConfig"]
    assert not open_editor(NEW).spec.abilities.temperature


def test_several_pictures_go_in_the_order_of_the_inputs(server: Scripted) -> None:
    other = Frame(Speaker.picture(32, 32, "JPEG", seed=5))
    edited(inputs=(other, SOURCE))
    first, second, words = sent(server)["contents"][0]["parts"]
    assert (decoded(first), first["inlineData"]["mimeType"]) == (other.data, "image/jpeg")
    assert (decoded(second), second["inlineData"]["mimeType"]) == (SOURCE.data, "image/png")
    assert "text" in words


def test_a_picture_that_is_too_large_is_not_sent_nor_made_smaller(server: Scripted) -> None:
    padded = Frame(SOURCE.data + bytes(7 << 20))
    error = raised(inputs=(padded,))
    assert isinstance(error, EditorFailed)
    assert "takes pictures of up to 7 MiB, got 7.0 MiB" in str(error)
    assert not server.server.log


def test_the_environment_cannot_lead_the_sdk_elsewhere(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "somebody")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "somewhere")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "beta")
    monkeypatch.setenv("GOOGLE_GENAI_CLIENT_MODE", "replay")
    edited()
    assert server.server.log[0].path.startswith("/v1/models/")


def test_of_two_keys_googles_order_decides_and_nothing_is_said_about_it(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "the-other-key-of-google")
    with caplog.at_level(logging.INFO):
        edited()
    headers = {name.lower(): value for name, value in server.server.log[0].headers.items()}
    assert headers["x-goog-api-key"] == "the-other-key-of-google"
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert KEY not in caplog.text
    assert "the-other-key" not in caplog.text


def test_without_a_key_no_call_is_made(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    error = raised()
    assert isinstance(error, AccountBlocked)
    assert "set GOOGLE_API_KEY or GEMINI_API_KEY" in str(error)
    assert not server.server.log


def test_a_wrong_pin_of_a_users_catalogue_is_one_clear_sentence(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "models.toml"
    own.write_text(
        '[[model]]\nprovider = "gemini"\nid = "gemini-3-pro-image"\npins = { top_p = "much" }\n'
    )
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(own))
    error = raised(PRO)
    assert isinstance(error, EditorFailed)
    assert str(error).startswith("the SDK does not take this request: top_p")
    assert not server.server.log


@pytest.mark.parametrize(
    ("model", "resolution", "expected"),
    [
        ("gemini-nano-banana-2.1", "1K", 0.0336),
        ("gemini-nano-banana-2.1", "2K", 0.0504),
        ("gemini-nano-banana-2.1", "4K", 0.113),
        ("gemini-3-pro-image", "1K", 0.1344),
        ("gemini-3-pro-image", "2K", 0.1344),
        ("gemini-3-pro-image", "4K", 0.24),
        ("gemini-3.1-flash-lite-image", "1K", 0.0336),
        ("gemini-2.5-flash-image", "1K", 0.0387),
    ],
)
def test_the_price_of_a_picture_is_googles_plus_text_and_thoughts(
    model: str, resolution: str, expected: float
) -> None:
    rule = shelf("gemini").by_id()[model].price
    drawn = rule.expect[resolution]["image_out"]
    middle = drawn[1] if isinstance(drawn, tuple) else drawn
    assert rule.of_tokens({"image_out": middle}) == pytest.approx(expected, abs=0.0005)
    settings = Settings.model_validate({"resolution": resolution})
    price = open_editor(f"gemini:{model}").spec.price_of(Asked(settings, 1, 96, 64, "Add a hat."))
    assert price is not None
    assert expected * 0.68 < price.low <= price.expected <= price.high < expected * 3


def test_a_conversation_costs_more_with_every_step() -> None:
    spec = open_editor(NEW).spec
    prices = [spec.price_of(Asked(Settings(session="chat"), n, 96, 64)) for n in (1, 2, 10)]
    first, second, tenth = (price.expected for price in prices if price is not None)
    assert second - first == pytest.approx(1120 * 1.5 / 1e6)
    assert tenth - first == pytest.approx(9 * 1120 * 1.5 / 1e6)


@pytest.mark.parametrize(
    ("stale", "successor"),
    [
        ("gemini-3-pro-image-preview", "gemini-3-pro-image"),
        ("gemini-3.1-flash-image-preview", "gemini-nano-banana-2.1"),
        ("gemini-2.5-flash-image-preview", "gemini-2.5-flash-image"),
        ("gemini-2.0-flash-preview-image-generation", "gemini-2.5-flash-image"),
    ],
)
def test_a_name_of_a_paper_says_what_to_use_instead(stale: str, successor: str) -> None:
    with pytest.raises(SettingsError, match=rf"was shut down on .* Use gemini:{successor}\."):
        open_editor(f"gemini:{stale}")


def test_every_successor_is_in_the_catalogue_and_every_fact_has_a_source() -> None:
    models = shelf("gemini").by_id()
    for model in models.values():
        assert not model.successor or model.successor in models
        assert model.source
        assert model.resolutions == () or set(model.resolutions) <= set(model.price.expect)


def test_the_user_may_say_that_a_model_still_answers(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "models.toml"
    own.write_text(
        '[[model]]\nprovider = "gemini"\nid = "gemini-3.1-flash-image"\nshutdown = 2099-01-01\n'
    )
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(own))
    reply = open_editor("gemini:gemini-3.1-flash-image").edit(replace(asked(), seed=3))
    assert reply.model == "gemini-3.1-flash-image"
    thinking = sent(server)["generationConfig"]["thinkingConfig"]
    assert thinking == {"includeThoughts": True, "thinkingLevel": "MINIMAL"}
