"""OpenRouter: our client against a loopback server."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergebench import wire
from convergebench.chain import Settings
from convergebench.editor import Asked, Turn
from convergebench.editors.providers.catalogue import shelf
from convergebench.editors.providers.openrouter import BETWEEN, open_editor
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
from tests.editors.providers.ask_once import KEY, frame, request, starting
from tests.editors.providers.speak_openrouter import COST, OpenRouterSpeaker
from tests.support.loopback import Reply

FLUX = "black-forest-labs/flux.2-pro"
BANANA = "google/gemini-nano-banana-2.1"
CHAT = Settings(session="chat")
MODELS = [model.id for model in shelf("openrouter")]
Start = Callable[..., OpenRouterSpeaker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starting(OpenRouterSpeaker, monkeypatch) as begin:
        yield begin


def failing(speaker: OpenRouterSpeaker, editor: str = FLUX, **changes: Any) -> EditorError:
    with pytest.raises(EditorError) as caught:
        open_editor(editor).edit(request(**changes))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.told)
    assert KEY not in shown
    assert len(speaker.begun) <= 1, "nothing is sent twice"
    return caught.value


def url(one: Frame, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(one.data).decode()}"


def part(one: Frame, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url(one, mime)}}


def test_every_field_of_an_edit_is_pinned_and_nothing_else_is_sent(start: Start) -> None:
    speaker = start()
    source = frame()
    reply = open_editor(FLUX).edit(request(source))
    (received,) = speaker.server.log
    assert (received.method, received.path) == ("POST", "/api/v1/images")
    headers = {name.lower(): value for name, value in received.headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}"
    body = received.json
    assert body == {
        "model": FLUX,
        "prompt": "Add a red ball. Größe: 5 %",
        "input_references": [part(source)],
        "size": "1024x1024",
        "seed": 7,
        "output_format": "png",
        "n": 1,
        "provider": {
            "only": ["black-forest-labs"],
            "allow_fallbacks": False,
            "options": {"black-forest-labs": {"prompt_upsampling": False}},
        },
    }
    del body["prompt"], body["input_references"]
    assert reply.parameters == body
    assert (reply.size, reply.format) == ("1024x1024", "png")


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_one_vendor_and_no_fallback(start: Start, model: str) -> None:
    speaker = start()
    editor = open_editor(model)
    reply = editor.edit(request())
    body = speaker.server.log[0].json
    entry = shelf("openrouter").by_id()[model]
    assert body["model"] == model
    assert body["provider"]["allow_fallbacks"] is False
    assert len(body["provider"]["only"]) == 1
    assert body["output_format"] == "png"
    assert ("seed" in body) == entry.seeds
    assert ("size" in body) != ("aspect_ratio" in body and "resolution" in body)
    assert "temperature" not in body
    assert reply.caveats == editor.spec.caveats


ROUTES: dict[str, tuple[str, dict[str, bool]]] = {
    "google/gemini-nano-banana-2.1": ("google-ai-studio", {}),
    "google/gemini-3-pro-image": ("google-ai-studio", {}),
    "openai/gpt-image-2": ("openai", {}),
    FLUX: ("black-forest-labs", {"prompt_upsampling": False}),
    "black-forest-labs/flux.2-max": ("black-forest-labs", {"prompt_upsampling": False}),
    "bytedance-seed/seedream-4.5": ("seed", {"watermark": False}),
    "qwen/qwen-image-3.0": ("alibaba", {"prompt_extend": False, "watermark": False}),
}


@pytest.mark.parametrize("model", MODELS)
def test_hidden_rewriting_and_stamps_are_asked_off(start: Start, model: str) -> None:
    speaker = start()
    open_editor(model).edit(request())
    vendor, off = ROUTES[model]
    route = {
        "only": [vendor],
        "allow_fallbacks": False,
        **({"options": {vendor: off}} if off else {}),
    }
    assert speaker.server.log[0].json["provider"] == route


def test_words_are_sent_where_a_model_takes_no_numbers(start: Start) -> None:
    speaker = start()
    settings = Settings(resolution="2K")
    reply = open_editor(BANANA).edit(request(home_size=(1500, 1000), settings=settings))
    body = speaker.server.log[0].json
    assert (body["aspect_ratio"], body["resolution"]) == ("3:2", "2K")
    assert "size" not in body
    assert reply.size == "3:2 2K"


def test_quality_is_pinned_and_can_be_changed(start: Start) -> None:
    speaker = start()
    open_editor("openai/gpt-image-2").edit(request())
    open_editor("openai/gpt-image-2", quality="high").edit(request(seed=None))
    first, second = (received.json for received in speaker.server.log)
    assert (first["quality"], first["background"]) == ("medium", "opaque")
    assert second["quality"] == "high"
    assert "seed" not in first, "OpenAI takes none"


def test_no_seed_is_sent_when_the_settings_ask_for_none(start: Start) -> None:
    speaker = start()
    open_editor(FLUX).edit(request(seed=None))
    assert "seed" not in speaker.server.log[0].json


def test_pictures_go_as_they_are_in_order(start: Start) -> None:
    speaker = start()
    inputs = (frame(), frame(kind="JPEG"), frame(kind="WEBP"))
    open_editor(FLUX).edit(request(*inputs))
    mimes = ("image/png", "image/jpeg", "image/webp")
    expected = [part(one, mime) for one, mime in zip(inputs, mimes, strict=True)]
    assert speaker.server.log[0].json["input_references"] == expected


def test_the_reply_holds_all_that_was_told(start: Start) -> None:
    speaker = start()
    reply = open_editor(FLUX).edit(request())
    assert reply.data == speaker.frame("ok")
    assert reply.request_id == "gen-1"
    assert (reply.cost, reply.basis) == (COST, "reported")
    assert reply.usage["total_tokens"] == 30


def test_without_a_cost_the_price_rule_counts(start: Start) -> None:
    speaker = start()
    for usage in ({}, None, {"cost": None}, {"cost": "0.04"}, {"cost": True}):
        speaker.change = {"usage": usage}
        reply = open_editor(FLUX).edit(request())
        assert (reply.cost, reply.basis) == (None, "")
    speaker.change = {"usage": {"cost": 0}}
    assert open_editor(FLUX).edit(request()).cost == 0


@pytest.mark.parametrize(
    ("fate", "kind", "says"),
    [
        ("limited", EditorUnavailable, "HTTP 429"),
        ("limited-inside", EditorUnavailable, "HTTP 429"),
        ("broken", EditorUnavailable, "HTTP 500"),
        ("overloaded", EditorUnavailable, "No provider meets"),
        ("upstream", EditorUnavailable, r"Provider returned error \(Google\)"),
        ("upstream-inside", EditorUnavailable, "HTTP 502"),
        ("nameless-inside", EditorUnavailable, "something broke"),
        ("upstream-billed", EditorLost, "HTTP 502"),
        ("timed-out", EditorUnavailable, "HTTP 408"),
        ("day", AccountBlocked, "per-day"),
        ("credit", AccountBlocked, "Insufficient credits"),
        ("credit-inside", AccountBlocked, "Insufficient credits"),
        ("key", AccountBlocked, "No auth credentials"),
        ("forbidden", AccountBlocked, "Key limit exceeded"),
        ("bad", EditorFailed, "size is not supported"),
        ("parameter", EditorFailed, "safety_tolerance"),
        ("gone", EditorFailed, "No endpoints"),
        ("refused-flagged", EditorRefused, r"\(OpenAI; flagged: violence\)"),
        ("refused-reasons", EditorRefused, "flagged: hate"),
        ("refused-inside", EditorRefused, "flagged: violence"),
        ("refused-vendor", EditorRefused, "PROHIBITED_CONTENT"),
    ],
)
@pytest.mark.parametrize("session", ["stateless", "chat"])
def test_every_fault_is_told_apart(
    start: Start, fate: str, kind: type[EditorError], says: str, session: Any
) -> None:
    speaker = start(fate)
    error = failing(speaker, BANANA, settings=Settings(session=session))
    with pytest.raises(kind, match=says):
        raise error
    assert type(error) is kind
    assert error.told is not None
    assert error.told.parameters["model"] == BANANA
    assert error.told.cost == (0.01 if fate == "upstream-billed" else None)


@pytest.mark.parametrize(("fate", "delay"), [("limited", None), ("limited-delay", 0.05)])
def test_a_limit_says_how_long_to_wait_where_it_does(
    start: Start, fate: str, delay: float | None
) -> None:
    error = failing(start(fate))
    assert isinstance(error, EditorUnavailable)
    assert (error.limited, error.retry_after) == (True, delay)


def test_a_key_that_the_server_repeats_is_not_repeated_by_us(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = start()
    raw = {"error": {"code": 401, "message": f"bad {KEY}", "metadata": {"raw": f"key {KEY}"}}}
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(raw, 401))
    error = failing(speaker)
    assert str(error).count("<OPENROUTER_API_KEY>") == 2


def test_broken_answers_are_lost(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = failing(start("cut"))
    assert isinstance(cut, EditorLost)
    assert not cut.timed_out
    slow = failing(start("slow"), deadline=0.2)
    assert isinstance(slow, EditorLost)
    assert slow.timed_out
    monkeypatch.setattr(wire, "MAX_BODY", 1 << 20)
    assert "more than 1 MiB" in str(failing(start("oversize")))
    speaker = start()
    monkeypatch.setattr(speaker, "answer", lambda _request: Reply(b"<html>"))
    page = failing(speaker)
    assert isinstance(page, EditorLost)
    assert "no JSON: <html>" in str(page)


@pytest.mark.parametrize("data", [[], [{}], [{"b64_json": "***"}], [None], None, {"a": 1}])
def test_what_is_no_picture_is_no_image_with_its_cost(start: Start, data: Any) -> None:
    speaker = start()
    speaker.change = {"data": data}
    error = failing(speaker)
    assert isinstance(error, EditorNoImage)
    assert error.told is not None
    assert (error.told.cost, error.told.basis) == (COST, "reported")


def test_half_a_picture_and_a_wrong_label_are_handed_on(start: Start) -> None:
    speaker = start("truncated", "mislabelled")
    assert open_editor(FLUX).edit(request()).data == speaker.frame("truncated")
    reply = open_editor(FLUX).edit(request())
    assert reply.data[:2] == b"\xff\xd8"
    assert "declared as png, but the bytes are jpeg" in reply.caveats
    assert "asked for png, but the bytes are jpeg" in reply.caveats


def test_without_a_key_nothing_is_sent(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = start()
    monkeypatch.delenv("OPENROUTER_API_KEY")
    with pytest.raises(AccountBlocked, match="set OPENROUTER_API_KEY"):
        open_editor(FLUX).edit(request())
    assert not speaker.server.log


def test_an_address_instead_of_a_picture_was_paid_for_and_is_read(start: Start) -> None:
    speaker = start()
    answer, made = speaker.answer, frame(seed=5).data
    message = {"role": "assistant", "images": [{"image_url": {"url": f"{speaker.server.url}/x"}}]}
    speaker.change = {"choices": [{"finish_reason": "stop", "message": message}]}
    speaker.answer = lambda request: Reply(made) if request.path == "/x" else answer(request)  # type: ignore[method-assign]
    reply = open_editor(BANANA).edit(request(settings=CHAT))
    assert reply.data == made
    assert reply.cost == COST
    assert "authorization" not in {name.lower() for name in speaker.server.log[-1].headers}


def test_prices_are_known_before_a_call() -> None:
    for model in MODELS:
        spec = open_editor(model).spec
        for resolution in ("native", *spec.abilities.resolutions):
            settings = Settings.model_validate({"resolution": resolution})
            price = spec.price_of(Asked(settings, 1, 1024, 1024, "x" * 80))
            assert price is not None
            assert 0 < price.low <= price.expected < price.high, model


def test_a_first_turn_is_pinned_field_by_field(start: Start) -> None:
    speaker = start()
    source = frame()
    history = (Turn(0, "", lambda: source),)
    reply = open_editor(BANANA).edit(request(source, settings=CHAT, history=history))
    (received,) = speaker.server.log
    assert received.path == "/api/v1/chat/completions"
    text = {"type": "text", "text": "Add a red ball. Größe: 5 %"}
    assert received.json == {
        "model": BANANA,
        "messages": [{"role": "user", "content": [part(source), text]}],
        "modalities": ["image", "text"],
        "image_config": {"aspect_ratio": "1:1", "image_size": "1K"},
        "provider": {"only": ["google-ai-studio"], "allow_fallbacks": False},
        "seed": 7,
        "stream": False,
    }
    assert reply.data == speaker.frame("ok")
    assert reply.reasoning == "The ball goes to the left."
    assert (reply.size, reply.format) == ("1:1 1K", None)
    assert (reply.model, reply.request_id) == (BANANA, "gen-chat")
    assert reply.usage["provider"] == "Google AI Studio"
    assert (reply.cost, reply.basis) == (COST, "reported")


def test_the_conversation_is_sent_again_from_the_store(start: Start) -> None:
    speaker = start()
    frames = [frame(16, 16, seed=n) for n in range(3)]
    turns = tuple(Turn(n, f"edit {n}", lambda n=n: frames[n]) for n in range(3))  # type: ignore[misc]
    open_editor(BANANA).edit(
        request(frames[-1], step=3, settings=CHAT, history=turns, prompt="edit 3")
    )
    messages = speaker.server.log[0].json["messages"]
    answer = {"role": "assistant", "content": BETWEEN}
    said = [
        {"role": "user", "content": [part(one), {"type": "text", "text": f"edit {n}"}]}
        for n, one in enumerate(frames, 1)
    ]
    assert messages == [said[0], answer, said[1], answer, said[2]]


def test_a_long_conversation_is_sent_in_part_and_says_so(start: Start) -> None:
    speaker = start()
    frames = [frame(16, 16, seed=n) for n in range(21)]
    turns = tuple(Turn(n, f"edit {n}", lambda n=n: frames[n]) for n in range(21))  # type: ignore[misc]
    reply = open_editor(BANANA).edit(
        request(frames[-1], step=21, settings=CHAT, history=turns, prompt="edit 21")
    )
    users = [m for m in speaker.server.log[0].json["messages"] if m["role"] == "user"]
    texts = [message["content"][-1]["text"] for message in users]
    assert texts == ["edit 1", *(f"edit {n}" for n in range(15, 22))]
    assert "only 7 of 20 earlier turns were sent again" in reply.caveats


@pytest.mark.parametrize(
    ("choice", "kind", "says"),
    [
        ({"finish_reason": "content_filter", "message": {}}, EditorRefused, "content_filter"),
        (
            {"finish_reason": "stop", "native_finish_reason": "IMAGE_SAFETY", "message": {}},
            EditorRefused,
            "stop / IMAGE_SAFETY",
        ),
        ({"message": {"refusal": "I will not."}}, EditorRefused, "I will not"),
        (
            {"finish_reason": "stop", "message": {"content": "Which ball?"}},
            EditorNoImage,
            "Which ball",
        ),
        ({"error": {"code": 429, "message": "slow down"}}, EditorLost, "slow down"),
    ],
)
def test_every_way_to_have_no_picture_is_told_apart(
    start: Start, choice: Any, kind: type[EditorError], says: str
) -> None:
    speaker = start()
    speaker.change = {"choices": [choice]}
    error = failing(speaker, BANANA, settings=CHAT)
    with pytest.raises(kind, match=says):
        raise error
    assert error.told is not None
    assert error.told.cost == COST
