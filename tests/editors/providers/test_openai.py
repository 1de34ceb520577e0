"""OpenAI's Images API: the real SDK against a loopback server."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.providers.catalogue import shelf
from convergebench.editors.providers.family import Opened
from convergebench.editors.providers.openai import (
    OpenAIEditor,
    listed_shutdowns,
    open_editor,
)
from convergebench.editors.providers.openai_client import tokens
from convergebench.errors import (
    AccountBlocked,
    SettingsError,
)
from convergebench.frame import Frame
from tests.editors.providers.ask_once import KEY, frame, request, starting
from tests.editors.providers.speak_openai import PRICE, USAGE, OpenAISpeaker, Part, multipart
from tests.support.loopback import Reply

SNAPSHOT = "gpt-image-2.5-sunburst-2026-09-08"
CURRENT = [model.id for model in shelf("openai") if not model.shutdown]
Start = Callable[..., OpenAISpeaker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starting(OpenAISpeaker, monkeypatch) as begin:
        yield begin


def sent(speaker: OpenAISpeaker) -> dict[str, Part]:
    """The fields of the only request, by name."""
    (received,) = speaker.server.log
    parts = multipart(received)
    names = [part.name for part in parts]
    assert len(names) == len(set(names)), names
    return {part.name: part for part in parts}


def plain(parts: dict[str, Part]) -> dict[str, str]:
    return {name: part.text for name, part in parts.items() if part.filename is None}


def test_every_field_of_an_edit_is_pinned_and_nothing_else_is_sent(start: Start) -> None:
    speaker = start()
    source = frame()
    reply = open_editor(SNAPSHOT).edit(request(source))
    parts = sent(speaker)
    assert plain(parts) == {
        "prompt": "Add a red ball. Größe: 5 %",
        "model": SNAPSHOT,
        "size": "1024x1024",
        "quality": "medium",
        "output_format": "png",
        "background": "opaque",
        "n": "1",
    }
    assert set(parts) - set(plain(parts)) == {"image"}
    image = parts["image"]
    assert (image.filename, image.kind) == ("input-1.png", "image/png")
    assert image.data == source.data, "the bytes go as they are"
    (received,) = speaker.server.log
    assert (received.method, received.path) == ("POST", "/v1/images/edits")
    headers = {name.lower(): value for name, value in received.headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}"
    assert reply.parameters == {
        "model": SNAPSHOT,
        "background": "opaque",
        "size": "1024x1024",
        "quality": "medium",
        "output_format": "png",
        "n": 1,
    }


def test_a_jpeg_goes_as_a_jpeg(start: Start) -> None:
    speaker = start()
    source = frame(kind="JPEG")
    open_editor("gpt-image-2").edit(request(source))
    image = sent(speaker)["image"]
    assert (image.filename, image.kind, image.data) == ("input-1.jpg", "image/jpeg", source.data)


def test_a_format_it_does_not_take_goes_as_png_with_a_caveat(start: Start) -> None:
    speaker = start()
    reply = open_editor("gpt-image-2").edit(request(frame(kind="BMP")))
    image = sent(speaker)["image"]
    assert image.kind == "image/png"
    assert np.array_equal(Frame(image.data).pixels, frame(kind="BMP").pixels)
    assert "bmp is not taken; the pixels were sent as PNG" in reply.caveats


def test_several_inputs_go_as_a_list_in_order(start: Start) -> None:
    speaker = start()
    inputs = (frame(seed=1), frame(kind="WEBP", seed=2), frame(seed=3))
    open_editor("gpt-image-2").edit(request(*inputs))
    (received,) = speaker.server.log
    images = [part for part in multipart(received) if part.filename]
    assert [part.name for part in images] == ["image[]"] * 3
    assert [part.data for part in images] == [one.data for one in inputs]
    assert [part.kind for part in images] == ["image/png", "image/webp", "image/png"]


def test_the_reply_holds_all_that_was_told(start: Start) -> None:
    speaker = start()
    editor = open_editor("gpt-image-2")
    reply = editor.edit(request())
    assert reply.data == speaker.frame("ok")
    assert reply.request_id == "req_1"
    assert reply.model is None
    assert (reply.size, reply.format) == ("1024x1024", "png")
    assert {k: v for k, v in reply.usage.items() if k != "returned"} == USAGE
    assert reply.usage["returned"] == {
        "size": "1024x1024",
        "quality": "medium",
        "output_format": "png",
        "background": "opaque",
    }
    assert reply.cost == pytest.approx(PRICE)
    assert reply.basis == "usage"
    assert reply.caveats == editor.spec.caveats
    assert any("SynthID" in caveat for caveat in reply.caveats)
    assert "takes no seed" in reply.caveats


@pytest.mark.parametrize("model", CURRENT)
def test_each_current_model_is_asked_for_by_its_own_id(start: Start, model: str) -> None:
    speaker = start()
    open_editor(model).edit(request())
    fields = plain(sent(speaker))
    assert fields["model"] == model
    planned = {"complexity": "medium"} if "2.6" in model else {}
    assert {name: fields.get(name) for name in planned} == planned
    extra = {"prompt", "model", "size", "quality", "output_format", "background", "n", *planned}
    assert set(fields) == extra


@pytest.mark.parametrize(
    ("home", "resolution", "asked"),
    [
        ((768, 512), "native", "1008x672"),  # raised to the least area
        ((1024, 1024), "native", "1024x1024"),
        ((1536, 864), "native", "1536x864"),
        ((500, 500), "1K", "1024x1024"),
        ((500, 500), "2K", "2048x2048"),
        ((1920, 1080), "4K", "3840x2160"),
        ((2160, 3840), "4K", "2160x3840"),
        ((3000, 1000), "4K", "3792x1264"),  # no side is longer than 3840
        ((9000, 1000), "1K", "1776x592"),  # no steeper than 3:1
    ],
)
def test_the_size_is_always_explicit(
    start: Start, home: tuple[int, int], resolution: Any, asked: str
) -> None:
    speaker = start()
    settings = Settings(resolution=resolution)
    reply = open_editor("gpt-image-2").edit(request(home_size=home, settings=settings))
    assert plain(sent(speaker))["size"] == asked
    assert reply.size == asked


@given(
    width=st.integers(16, 12000),
    height=st.integers(16, 12000),
    resolution=st.sampled_from(["native", "1K", "2K", "4K"]),
)
def test_no_size_breaks_the_documented_limits(width: int, height: int, resolution: str) -> None:
    model = shelf("openai").by_id()["gpt-image-2"]
    size = model.size.choose(width, height, resolution)
    assert size is not None
    across, down = (size.width, size.height)
    assert across % 16 == down % 16 == 0
    assert max(across, down) <= 3840
    assert across * down <= 3840 * 2160
    assert across * down >= 655_360
    assert max(across, down) / min(across, down) <= 3.0


def test_options_change_what_is_pinned(start: Start) -> None:
    speaker = start()
    reply = open_editor("gpt-image-2.6-flare", quality="max", complexity="high").edit(request())
    fields = plain(sent(speaker))
    assert (fields["quality"], fields["complexity"]) == ("max", "high")
    assert reply.parameters["complexity"] == "high"
    assert "complexity" not in shelf("openai").by_id()["gpt-image-2"].options
    with pytest.raises(SettingsError, match="must be low or medium or high, got 'auto'"):
        open_editor("gpt-image-2", quality="auto")


def test_a_region_is_sent_only_when_asked_for(start: Start) -> None:
    speaker = start()
    box = (0.25, 0.5, 0.75, 1.0)
    open_editor("gpt-image-2").edit(request(region=box))
    assert "mask" not in sent(speaker)
    speaker = start()
    source = frame(80, 40)
    reply = open_editor("gpt-image-2", mask="region").edit(request(source, region=box))
    mask = sent(speaker)["mask"]
    assert (mask.filename, mask.kind) == ("mask.png", "image/png")
    with Image.open(io.BytesIO(mask.data)) as image:
        assert (image.mode, image.size) == ("RGBA", (80, 40))
        alpha = np.asarray(image)[..., 3]
    expected = np.full((40, 80), 255)
    expected[20:40, 20:60] = 0
    assert np.array_equal(alpha, expected)
    assert reply.parameters["mask"] == "region"
    speaker = start()
    open_editor("gpt-image-2", mask="region").edit(request())
    assert "mask" not in sent(speaker), "this edit has no region"


def test_half_a_picture_and_a_wrong_label_are_handed_on(start: Start) -> None:
    speaker = start("truncated", "mislabelled")
    editor = open_editor("gpt-image-2")
    assert editor.edit(request()).data == speaker.frame("truncated")
    reply = editor.edit(request())
    assert reply.data[:2] == b"\xff\xd8"
    assert "declared as png, but the bytes are jpeg" in reply.caveats


def test_an_answer_with_other_values_than_asked_for_says_so(start: Start) -> None:
    speaker = start()
    speaker.change = {"size": "1536x1024", "quality": "high"}
    reply = open_editor("gpt-image-2").edit(request())
    assert reply.size == "1024x1024"
    assert reply.usage["returned"]["size"] == "1536x1024"
    assert "asked for size 1024x1024, OpenAI says 1536x1024" in reply.caveats
    assert "asked for quality medium, OpenAI says high" in reply.caveats


def test_without_usage_the_price_rule_counts(start: Start) -> None:
    speaker = start()
    speaker.change = {"usage": None}
    reply = open_editor("gpt-image-2").edit(request())
    assert (reply.cost, reply.basis) == (None, "")


def test_tokens_that_are_not_told_apart_count_as_the_dearer_kind() -> None:
    assert tokens(None) is None
    assert tokens({"output_tokens": "many"}) is None
    assert tokens({"input_tokens": 10, "output_tokens": 20}) == {
        "text_in": 0,
        "image_in": 10,
        "text_out": 0,
        "image_out": 20,
    }


def test_prices_are_known_before_a_call() -> None:
    asked = Asked(Settings(), 1, 1024, 1024, "x" * 80)
    for model in CURRENT:
        for quality in shelf("openai").by_id()[model].options["quality"].choices:
            price = open_editor(model, quality=quality).spec.price_of(asked)
            assert price is not None
            assert 0 < price.low < price.expected < price.high, (model, quality)
    medium = open_editor("gpt-image-2").spec.price_of(asked)
    assert medium is not None
    assert medium.expected == pytest.approx((20 * 5 + 1500 * 8 + 1760 * 30) / 1e6)
    assert medium.low <= PRICE <= medium.high


def test_models_that_were_shut_down_say_what_to_use() -> None:
    for model in ("gpt-image-1", "dall-e-2", "dall-e-3"):
        with pytest.raises(SettingsError, match=r"was shut down on .* Use openai:gpt-image-2\.5"):
            open_editor(model)
    ending = shelf("openai").by_id()
    for model in ("gpt-image-1.5", "gpt-image-1-mini", "chatgpt-image-latest"):
        assert ending[model].shutdown == date(2026, 12, 1)
        assert ending[model].successor in CURRENT
    fidelity = [model.id for model in ending.values() if "input_fidelity" in model.options]
    assert fidelity == ["gpt-image-1.5"]


def test_without_a_key_nothing_is_sent(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = start()
    monkeypatch.delenv("OPENAI_API_KEY")
    editor = open_editor("gpt-image-2")
    assert editor.spec.account == "openai/no-key"
    with pytest.raises(AccountBlocked, match="set OPENAI_API_KEY"):
        editor.edit(request())
    assert not speaker.server.log


def test_the_organisation_is_left_to_the_sdk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    speaker = start()
    open_editor("gpt-image-2").edit(request())
    headers = {name.lower(): value for name, value in speaker.server.log[0].headers.items()}
    assert headers["openai-organization"] == "org-1"
    assert headers["openai-project"] == "proj-1"


def opened() -> Opened:
    editor = open_editor("gpt-image-2")
    assert isinstance(editor, OpenAIEditor)
    return editor.opened


def test_the_list_of_models_tells_when_they_end(start: Start) -> None:
    speaker = start()
    about = {"object": "model", "created": 1, "owned_by": "openai"}
    speaker.models = [
        {"id": "gpt-image-1.5", "shutdown_date": "2026-12-01", **about},
        {"id": "gpt-image-2", "shutdown_date": None, **about},
        {"id": "gpt-6-luna", **about},
        {"id": "odd", "shutdown_date": "soon", **about},
        {"id": "precise", "shutdown_date": "2027-01-02T00:00:00Z", **about},
    ]
    assert listed_shutdowns(opened()) == {
        "gpt-image-1.5": date(2026, 12, 1),
        "precise": date(2027, 1, 2),
    }
    (received,) = speaker.server.log
    assert (received.method, received.path) == ("GET", "/v1/models")
    assert speaker.billed == 0


def test_a_list_that_does_not_come_is_one_clear_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = start()
    answer = {"error": {"code": "invalid_api_key", "message": f"bad key {KEY}"}}
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(answer, 401))
    with pytest.raises(AccountBlocked, match="bad key <OPENAI_API_KEY>"):
        listed_shutdowns(opened())
