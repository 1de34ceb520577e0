"""Qwen over DashScope: what is sent, what answers mean, and pictures that are paid for once."""

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
    SettingsError,
)
from convergebench.frame import Frame
from convergebench.registry import open_editor
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.walk import calls
from tests.editors.providers.speak_qwen import PATH, QwenSpeaker
from tests.support.runs import write_suite
from tests.support.speaker import Speaker

KEY = "sk-marker-83ba0c"
PLUS = "qwen-image-edit-plus"
BASE = {"n": 1, "negative_prompt": " ", "watermark": False}


@pytest.fixture
def fates() -> list[str]:
    return []


@pytest.fixture
def speaker(fates: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[QwenSpeaker]:
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.0)
    speaker = QwenSpeaker(lambda n: fates[n] if n < len(fates) else "ok")
    with speaker:
        for name, value in speaker.environment(KEY).items():
            monkeypatch.setenv(name, value)
        yield speaker


def request(**changes: Any) -> EditRequest:
    fields: dict[str, Any] = {
        "inputs": (Frame(Speaker.picture(48, 32, seed=5)),),
        "prompt": "Make the sky pink.",
        "edit": Edit(prompt="Make the sky pink."),
        "step": 1,
        "seed": 7,
        "deadline": 20.0,
        "home_size": (1024, 1024),
    }
    return EditRequest(**{**fields, **changes})


def edited(model: str = PLUS, **changes: Any) -> EditReply:
    return open_editor(f"qwen:{model}").edit(request(**changes))


def fault(model: str = PLUS, **changes: Any) -> EditorError:
    with pytest.raises(EditorError) as raised:
        edited(model, **changes)
    assert KEY not in "".join(traceback.format_exception(raised.value)) + repr(raised.value.told)
    return raised.value


LATER = {**BASE, "prompt_extend": False, "size": "1024*1024", "seed": 7}
PINNED: dict[str, dict[str, Any]] = {
    "qwen-image-edit": {**BASE, "seed": 7},
    PLUS: LATER,
    "qwen-image-edit-max": LATER,
    "qwen-image-2.0": LATER,
    "qwen-image-2.0-pro": LATER,
    "qwen-image-3.0": {**LATER, "prompt_extend_mode": "direct"},
    "qwen-image-3.0-pro": {**LATER, "prompt_extend_mode": "direct"},
}


def test_the_pinned_fields_are_known_for_every_model() -> None:
    assert set(PINNED) == set(shelf("qwen").by_id())


@pytest.mark.parametrize("model", PINNED)
def test_every_field_of_the_request_is_as_pinned(speaker: QwenSpeaker, model: str) -> None:
    reply = edited(model)
    got = speaker.server.log[0]
    coded = base64.b64encode(request().inputs[0].data).decode()
    content = [{"image": f"data:image/png;base64,{coded}"}, {"text": "Make the sky pink."}]
    assert got.json == {
        "model": model,
        "input": {"messages": [{"role": "user", "content": content}]},
        "parameters": PINNED[model],
    }
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert (got.method, got.path) == ("POST", PATH)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert "x-dashscope-async" not in headers
    assert reply.parameters == PINNED[model]
    assert reply.size == ("1024x1024" if "size" in PINNED[model] else None)
    assert reply.format == "png"
    assert reply.data == speaker.pictures["/result/1.png"]
    assert reply.request_id == "req-1"
    assert reply.usage == {"width": 1024, "height": 1024, "image_count": 1}
    assert (reply.cost, reply.basis) == (None, "")  # no dollars are told: the price rule counts
    assert not reply.task
    assert KEY not in repr(reply)


@pytest.mark.parametrize(
    ("model", "resolution", "home", "size"),
    [
        (PLUS, "1K", (600, 400), "1248*832"),
        (PLUS, "native", (1600, 1200), "1600*1200"),
        (PLUS, "native", (4000, 1000), "2048*1024"),
        (PLUS, "native", (64, 64), "736*736"),
        ("qwen-image-2.0", "2K", (600, 400), "2496*1664"),
        ("qwen-image-3.0-pro", "native", (64, 64), "512*512"),
    ],
)
def test_the_size_follows_the_source_and_stays_within_the_models_limits(
    speaker: QwenSpeaker, model: str, resolution: str, home: tuple[int, int], size: str
) -> None:
    settings = Settings.model_validate({"resolution": resolution})
    reply = edited(model, settings=settings, home_size=home)
    sent = speaker.server.log[0].json["parameters"]["size"]
    width, height = (int(side) for side in sent.split("*"))
    rule = shelf("qwen").by_id()[model].size
    assert rule.low <= width * height <= rule.high
    if "edit" in model:
        assert 512 <= min(width, height) <= max(width, height) <= 2048
    assert sent == size
    assert reply.size == f"{width}x{height}"


def test_without_a_seed_none_is_sent(speaker: QwenSpeaker) -> None:
    edited(seed=None)
    assert "seed" not in speaker.server.log[0].json["parameters"]


def test_settings_it_cannot_follow_are_known() -> None:
    abilities = open_editor(f"qwen:{PLUS}").spec.abilities
    assert abilities.seeds
    assert not abilities.temperature
    assert abilities.resolutions == ("1K",)
    assert abilities.sessions == ("stateless",)


def test_several_pictures_and_a_jpeg_go_as_they_are(speaker: QwenSpeaker) -> None:
    jpeg = Frame(Speaker.picture(32, 32, "JPEG"))
    edited(inputs=(jpeg, request().inputs[0]))
    content = speaker.server.log[0].json["input"]["messages"][0]["content"]
    assert [next(iter(part)) for part in content] == ["image", "image", "text"]
    assert content[0]["image"] == f"data:image/jpeg;base64,{base64.b64encode(jpeg.data).decode()}"


@pytest.mark.parametrize("fate", QwenSpeaker.refusals)
def test_refusals_carry_the_reason(speaker: QwenSpeaker, fates: list[str], fate: str) -> None:
    fates.append(fate)
    error = fault()
    assert isinstance(error, EditorRefused)
    assert "inappropriate content" in str(error) or "infringement" in str(error)
    assert error.told is not None
    assert error.told.request_id == "req-fault"
    assert error.told.parameters == LATER
    assert speaker.billed == 0


@pytest.mark.parametrize(
    ("fate", "kind"),
    [
        ("spent", AccountBlocked),
        ("free-only", AccountBlocked),
        ("arrears", AccountBlocked),
        ("key", AccountBlocked),
        ("not-bought", AccountBlocked),
        ("limited", EditorUnavailable),
        ("limited-delay", EditorUnavailable),
        ("limited-allocation", EditorUnavailable),
        ("limited-plain", EditorUnavailable),
        ("limited-200", EditorUnavailable),
        ("broken", EditorUnavailable),
        ("broken-200", EditorUnavailable),
        ("overloaded", EditorUnavailable),
        ("late", EditorUnavailable),
        ("bad", EditorFailed),
        ("unreadable", EditorFailed),
        ("gone", EditorFailed),
        ("no-image", EditorNoImage),
        ("cut", EditorLost),
    ],
)
def test_what_a_fault_means(
    speaker: QwenSpeaker, fates: list[str], fate: str, kind: type[EditorError]
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


def test_words_instead_of_a_picture_are_told(speaker: QwenSpeaker, fates: list[str]) -> None:
    fates.append("no-image")
    error = fault()
    assert "I see a grey square." in str(error)
    assert error.told is not None
    assert error.told.usage["image_count"] == 1


def test_a_download_that_is_cut_is_read_again(speaker: QwenSpeaker, fates: list[str]) -> None:
    fates.append("download-cut")
    assert edited().data == speaker.pictures["/result/1.png"]
    assert speaker.billed == 1


def test_a_picture_that_was_paid_for_is_read_later_and_not_asked_for_again(
    speaker: QwenSpeaker, fates: list[str]
) -> None:
    fates.append("download-dead")
    begun: list[Any] = []
    error = fault(on_task=begun.append)
    assert isinstance(error, EditorUnavailable)  # so that the runner asks for the same one again
    assert not error.limited
    assert "Signature" not in str(error)
    assert error.told is not None
    assert [error.told.task] == begun
    assert KEY not in repr(begun)
    reply = edited(task=begun[0], on_task=begun.append)
    assert reply.data == speaker.pictures["/result/1.png"]
    assert reply.request_id == "req-1"
    assert reply.usage["image_count"] == 1
    assert reply.parameters == LATER
    assert (speaker.billed, len(begun)) == (1, 1)


def test_a_run_reads_a_picture_that_was_paid_for_until_it_has_it(
    speaker: QwenSpeaker, fates: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    fates += ["download-dead", "ok", "download-dead"]
    table = {
        "suite": str(write_suite(tmp_path / "suite", size=64)),
        "editors": [speaker.editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 3,
        "controls": False,
        "budget": 1,
    }
    result = run(tmp_path / "run", table)
    assert result.complete, result
    assert speaker.billed == 3
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.spent == pytest.approx(3 * 0.03)


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        ("expired", "has expired"),
        ("redirect-private", "private network"),
        ("oversize", "more than 128 MiB"),
    ],
)
def test_a_picture_that_can_never_be_read_leaves_no_task(
    speaker: QwenSpeaker, fates: list[str], fate: str, words: str
) -> None:
    fates.append(fate)
    error = fault()
    assert isinstance(error, EditorLost)
    assert words in str(error)
    assert "Signature" not in str(error)
    assert error.told is not None
    assert not error.told.task
    assert error.told.request_id == "req-1"
    assert speaker.billed == 1


def test_a_jpeg_where_png_is_documented_is_kept_with_a_caveat(
    speaker: QwenSpeaker, fates: list[str]
) -> None:
    fates.append("mislabelled")
    reply = edited()
    assert reply.data == speaker.pictures["/result/1.png"]
    assert "declared as png, but the bytes are jpeg" in reply.caveats


def test_a_late_answer_is_lost_before_the_deadline(speaker: QwenSpeaker, fates: list[str]) -> None:
    fates.append("slow")
    error = fault(deadline=0.3)
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_without_a_key_nothing_is_sent(
    speaker: QwenSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DASHSCOPE_API_KEY")
    error = fault()
    assert isinstance(error, AccountBlocked)
    assert "set DASHSCOPE_API_KEY" in str(error)
    assert not speaker.server.log


def test_a_key_goes_over_https_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHSCOPE_BASE_URL", "http://dashscope.aliyuncs.com")
    with pytest.raises(SettingsError, match="DASHSCOPE_BASE_URL: keys go over https only"):
        open_editor(f"qwen:{PLUS}")


@pytest.mark.parametrize(
    ("model", "resolution", "low", "high"),
    [
        ("qwen-image-edit", "native", 0.045, 0.045),
        (PLUS, "1K", 0.03, 0.03),
        ("qwen-image-edit-max", "native", 0.075, 0.075),
        ("qwen-image-2.0", "2K", 0.035, 0.035),
        ("qwen-image-2.0-pro", "1K", 0.075, 0.075),
        ("qwen-image-3.0", "1K", 0.043, 0.043),
        ("qwen-image-3.0-pro", "native", 0.057, 0.107),
        ("qwen-image-3.0-pro", "2K", 0.107, 0.107),
    ],
)
def test_prices(model: str, resolution: str, low: float, high: float) -> None:
    settings = Settings.model_validate({"resolution": resolution})
    price = open_editor(f"qwen:{model}").spec.price_of(Asked(settings, 1, 1024, 1024))
    assert price is not None
    assert (price.low, price.high) == (low, high)
