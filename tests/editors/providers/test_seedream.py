"""Seedream over Ark: what is sent, and what every answer means."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convergebench import wire
from convergebench.chain import Settings
from convergebench.cycle import Edit
from convergebench.editor import Asked, EditReply, EditRequest
from convergebench.editors.providers.catalogue import shelf
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import Frame
from convergebench.registry import open_editor
from tests.editors.providers.speak_seedream import SeedreamSpeaker
from tests.support.speaker import Speaker

KEY = "ark-marker-5d1e77"
LITE, PRO, FLASH = "seedream-5-0-260128", "seedream-5-0-pro-260628", "seedream-5-0-flash-260915"
V40, V45, EDIT = "seedream-4-0-250828", "seedream-4-5-251128", "seededit-3-0-i2i-250628"
OFF = "sequential_image_generation"


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def speaker(fates: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[SeedreamSpeaker]:
    speaker = SeedreamSpeaker(lambda n: fates[n] if n < len(fates) else "ok")
    with speaker:
        for name, value in speaker.environment(KEY).items():
            monkeypatch.setenv(name, value)
        yield speaker


def request(kind: str = "PNG", **changes: Any) -> EditRequest:
    fields: dict[str, Any] = {
        "inputs": (Frame(Speaker.picture(48, 32, kind, seed=5)),),
        "prompt": "Make the sky pink.",
        "edit": Edit(prompt="Make the sky pink."),
        "step": 1,
        "seed": 7,
        "deadline": 20.0,
        "home_size": (1024, 1024),
    }
    return EditRequest(**{**fields, **changes})


def asked(speaker: SeedreamSpeaker, model: str, **changes: Any) -> tuple[dict[str, Any], EditReply]:
    """The body that the server got, and the reply."""
    reply = open_editor(f"seedream:{model}").edit(request(**changes))
    body = speaker.server.log[-1].json
    assert isinstance(body, dict)
    return body, reply


def fault(model: str = FLASH, **changes: Any) -> EditorError:
    with pytest.raises(EditorError) as raised:
        open_editor(f"seedream:{model}").edit(request(**changes))
    assert KEY not in "".join(traceback.format_exception(raised.value))
    return raised.value


PINNED: dict[str, dict[str, Any]] = {
    V40: {"size": "1024x1024", OFF: "disabled"},
    V45: {"size": "1920x1920", OFF: "disabled"},
    LITE: {"size": "1920x1920", OFF: "disabled", "output_format": "png"},
    PRO: {"size": "1024x1024", "output_format": "png"},
    FLASH: {"size": "1024x1024", "output_format": "png"},
    EDIT: {"size": "adaptive", "guidance_scale": 5.5, "seed": 7},
}


def test_the_pinned_fields_are_known_for_every_model() -> None:
    assert set(PINNED) == set(shelf("seedream").by_id())


@pytest.mark.parametrize("model", PINNED)
def test_every_field_of_the_request_is_as_pinned(speaker: SeedreamSpeaker, model: str) -> None:
    call = request()
    body, reply = asked(speaker, model, deadline=240.0)
    coded = base64.b64encode(call.inputs[0].data).decode()
    parameters = {"response_format": "b64_json", "watermark": False, **PINNED[model]}
    assert body == {
        "model": model,
        "prompt": "Make the sky pink.",
        "image": f"data:image/png;base64,{coded}",
        **parameters,
    }
    got = speaker.server.log[0]
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert (got.method, got.path) == ("POST", "/api/v3/images/generations")
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert reply.parameters == parameters
    assert reply.size == PINNED[model]["size"]
    assert reply.format == PINNED[model].get("output_format")
    assert reply.data == speaker.sent
    assert (reply.model, reply.request_id) == (model, "req-1")
    assert reply.usage == {"generated_images": 1, "output_tokens": 4096, "total_tokens": 4096}
    assert (reply.cost, reply.basis) == (None, "")  # Ark tells no dollars: the price rule counts
    assert KEY not in repr(reply)


def test_a_slow_model_is_not_asked_where_its_answer_would_not_be_waited_for(
    speaker: SeedreamSpeaker,
) -> None:
    error = fault(PRO, deadline=120.0)
    assert isinstance(error, AccountBlocked)
    assert "given up after 120 s. Nothing was sent: give --deadline 240" in str(error)
    assert not speaker.server.log


@pytest.mark.parametrize(
    ("model", "resolution", "size"),
    [
        (V40, "1K", "1248x832"),
        (V40, "4K", "5008x3328"),
        (V45, "2K", "2512x1680"),
        (V45, "native", "2352x1568"),
        (PRO, "2K", "2496x1664"),
        (FLASH, "1K", "1248x832"),
    ],
)
def test_the_size_follows_the_source_and_stays_within_the_models_limits(
    speaker: SeedreamSpeaker, model: str, resolution: str, size: str
) -> None:
    settings = Settings.model_validate({"resolution": resolution})
    body, reply = asked(speaker, model, settings=settings, home_size=(600, 400), deadline=240.0)
    rule = shelf("seedream").by_id()[model].size
    width, height = (int(side) for side in body["size"].split("x"))
    assert rule.low <= width * height <= rule.high
    assert abs(width / height - 1.5) < 0.02
    assert body["size"] == reply.size == size


def test_1k_is_offered_only_where_it_is_made() -> None:
    found = {model.id: model.resolutions for model in shelf("seedream")}
    assert [name for name, made in found.items() if "1K" in made] == [V40, PRO, FLASH]
    assert found[V45] == ("2K", "4K")
    assert open_editor(f"seedream:{V45}").spec.abilities.resolutions == ("2K", "4K")


def test_seeds_go_to_seededit_only(speaker: SeedreamSpeaker) -> None:
    assert "takes no seed" in open_editor(f"seedream:{FLASH}").spec.caveats
    assert "seed" not in asked(speaker, FLASH)[0]
    assert asked(speaker, EDIT)[0]["seed"] == 7
    assert "seed" not in asked(speaker, EDIT, seed=None)[0]


def test_several_pictures_go_as_a_list_and_a_jpeg_as_it_is(speaker: SeedreamSpeaker) -> None:
    jpeg = Frame(Speaker.picture(32, 32, "JPEG"))
    body, _ = asked(speaker, FLASH, inputs=(jpeg, jpeg))
    expected = f"data:image/jpeg;base64,{base64.b64encode(jpeg.data).decode()}"
    assert body["image"] == [expected, expected]


@pytest.mark.parametrize("fate", SeedreamSpeaker.refusals)
def test_refusals_carry_arks_reason(speaker: SeedreamSpeaker, fates: list[str], fate: str) -> None:
    fates.append(fate)
    error = fault()
    assert isinstance(error, EditorRefused)
    assert "Detected" in str(error)
    assert "sensitive information" in str(error)
    assert error.told is not None
    assert error.told.parameters["watermark"] is False
    assert speaker.billed == 0


@pytest.mark.parametrize(
    ("fate", "kind"),
    [
        ("overdue", AccountBlocked),
        ("free-spent", AccountBlocked),
        ("model-spent", AccountBlocked),
        ("capped", AccountBlocked),
        ("key", AccountBlocked),
        ("not-open", AccountBlocked),
        ("limited", EditorUnavailable),
        ("limited-delay", EditorUnavailable),
        ("limited-overload", EditorUnavailable),
        ("broken", EditorUnavailable),
        ("overloaded", EditorUnavailable),
        ("closed", EditorUnavailable),
        ("gone", EditorFailed),
        ("bad", EditorFailed),
        ("no-image", EditorNoImage),
        ("cut", EditorLost),
        ("garbage", EditorLost),
    ],
)
def test_what_a_fault_means(
    speaker: SeedreamSpeaker, fates: list[str], fate: str, kind: type[EditorError]
) -> None:
    fates.append(fate)
    error = fault()
    assert type(error) is kind
    if isinstance(error, EditorUnavailable):
        assert error.limited == fate.startswith("limited")
        assert error.retry_after == (0.05 if fate == "limited-delay" else None)
    assert error.told is not None
    assert error.told.size == "1024x1024"
    assert len(speaker.begun) == 1


def test_an_address_instead_of_a_picture_is_read(
    speaker: SeedreamSpeaker, fates: list[str]
) -> None:
    fates.append("address")
    assert asked_reply(speaker).data == speaker.sent
    assert "authorization" not in {name.lower() for name in speaker.server.log[-1].headers}


def asked_reply(speaker: SeedreamSpeaker) -> EditReply:
    reply = open_editor(f"seedream:{FLASH}").edit(request())
    assert speaker.billed == 1
    return reply


def test_a_jpeg_said_to_be_a_png_is_kept_with_a_caveat(
    speaker: SeedreamSpeaker, fates: list[str]
) -> None:
    fates.append("mislabelled")
    reply = asked_reply(speaker)
    assert reply.data == speaker.sent
    assert "declared as png, but the bytes are jpeg" in reply.caveats


def test_an_oversize_answer_is_not_read(
    speaker: SeedreamSpeaker, fates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 1 << 20)
    fates.append("oversize")
    error = fault()
    assert isinstance(error, EditorLost)
    assert "more than 1 MiB" in str(error)


def test_a_late_answer_is_lost_before_the_deadline(
    speaker: SeedreamSpeaker, fates: list[str]
) -> None:
    fates.append("slow")
    error = fault(deadline=0.3)
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_without_a_key_nothing_is_sent(
    speaker: SeedreamSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARK_API_KEY")
    error = fault()
    assert isinstance(error, AccountBlocked)
    assert "set ARK_API_KEY" in str(error)
    assert not speaker.server.log


@pytest.mark.parametrize(
    ("model", "resolution", "low", "high"),
    [
        (V40, "native", 0.03, 0.03),
        (V45, "4K", 0.04, 0.04),
        (LITE, "2K", 0.035, 0.035),
        (PRO, "native", 0.045, 0.1),
        (PRO, "2K", 0.09, 0.1),
        (FLASH, "1K", 0.0137, 0.035),
        (EDIT, "native", 0.03, 0.03),
    ],
)
def test_prices(model: str, resolution: str, low: float, high: float) -> None:
    settings = Settings.model_validate({"resolution": resolution})
    price = open_editor(f"seedream:{model}").spec.price_of(Asked(settings, 1, 1024, 1024))
    assert price is not None
    assert (price.low, price.high) == (low, high)


def test_ids_of_another_region_are_added_as_the_page_says(
    speaker: SeedreamSpeaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "editors" / "seedream.md").read_text("utf-8")
    (tmp_path / "models.toml").write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(tmp_path / "models.toml"))
    body, _ = asked(speaker, "doubao-seedream-4-5-251128")
    assert body["model"] == "doubao-seedream-4-5-251128"
    assert {name: body[name] for name in PINNED[V45]} == PINNED[V45]
