"""Every provider through every fate it can meet: the same answer from all of them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest, Turn
from convergebench.errors import (
    EditorError,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import Frame
from convergebench.registry import open_editor
from tests.editors.providers.speakers import NAMES, speaker_of
from tests.support.loopback import Reply
from tests.support.speaker import Speaker

MARKER = "MARKER-7f3a9c-not-to-be-seen"


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> type[Speaker]:
    return speaker_of(request.param)


@pytest.fixture
def fates() -> list[str]:
    """What happens to the calls, in order; then all is well."""
    return []


@pytest.fixture
def speaker(
    kind: type[Speaker], fates: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Speaker]:
    with kind(lambda number: fates[number] if number < len(fates) else "ok") as speaker:
        for name, value in speaker.environment(MARKER).items():
            monkeypatch.setenv(name, value)
        yield speaker


def request(deadline: float = 20.0) -> EditRequest:
    source = Frame(Speaker.picture(64, 64, seed=99))
    prompt = "Make the sky pink."
    return EditRequest(
        inputs=(source,),
        prompt=prompt,
        edit=Edit(prompt=prompt),
        step=1,
        seed=7,
        history=(Turn(0, "", lambda: source),),
        deadline=deadline,
        chain="battery",
        home_size=(64, 64),
    )


def outcome(speaker: Speaker) -> EditReply | EditorError:
    """What an edit comes to; whatever is raised holds no key."""
    try:
        return open_editor(speaker.editor).edit(request())
    except EditorError as error:
        raised = error
    told = "".join(traceback.format_exception(raised))
    assert MARKER not in told + repr(raised.told)
    return raised


def test_a_success_is_the_bytes_as_sent_with_all_that_was_told(speaker: Speaker) -> None:
    found = outcome(speaker)
    assert isinstance(found, EditReply), found
    assert Frame(found.data).facts.format == "png"
    assert found.size, "an explicit size is asked for"
    assert found.parameters
    assert MARKER not in repr(found)
    assert speaker.billed == 1


def test_every_request_carries_the_key_in_a_header_and_nowhere_else(speaker: Speaker) -> None:
    outcome(speaker)
    first = speaker.server.log[0]
    assert any(MARKER in value for value in first.headers.values())
    assert MARKER not in first.path
    assert MARKER.encode() not in first.body


@pytest.mark.parametrize("fate", ["limited", "limited-delay", "broken", "overloaded"])
def test_what_was_not_billed_may_be_tried_again(
    speaker: Speaker, fates: list[str], fate: str
) -> None:
    fates.append(fate)
    found = outcome(speaker)
    assert isinstance(found, EditorUnavailable), found
    assert found.limited == fate.startswith("limited")
    if fate == "limited":
        assert found.retry_after is None
    if fate == "limited-delay":
        assert found.retry_after is not None
        assert found.retry_after > 0
    assert speaker.billed == 0
    assert len(speaker.begun) == 1, "no SDK tries again on its own"


def test_an_answer_cut_off_is_lost_and_not_repeated(speaker: Speaker, fates: list[str]) -> None:
    fates.append("cut")
    found = outcome(speaker)
    assert isinstance(found, EditorLost), found
    assert not found.timed_out
    assert len(speaker.begun) == 1
    assert speaker.billed == 1
    assert found.told is not None, "what was sent is told all the same"
    assert found.told.parameters
    assert found.told.size


@pytest.mark.parametrize("status", [504, 524])
def test_a_gateway_that_waited_in_vain_may_have_cost_money(
    speaker: Speaker, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Reply({"error": {"code": status, "message": "upstream timed out"}}, status=status)
    monkeypatch.setattr(speaker, "answer", lambda _request: late)
    found = outcome(speaker)
    assert isinstance(found, EditorLost), found
    assert str(status) in str(found)
    assert len(speaker.server.log) == 1
    assert found.told is not None
    assert found.told.parameters


def test_an_answer_without_a_picture_is_no_image(speaker: Speaker, fates: list[str]) -> None:
    fates.append("no-image")
    assert isinstance(outcome(speaker), EditorNoImage)


def test_half_a_picture_is_handed_on_as_received(speaker: Speaker, fates: list[str]) -> None:
    fates.append("truncated")
    found = outcome(speaker)
    assert isinstance(found, EditReply), found
    assert found.data == speaker.frame("truncated")


def test_a_jpeg_said_to_be_a_png_is_kept_as_it_is(speaker: Speaker, fates: list[str]) -> None:
    fates.append("mislabelled")
    found = outcome(speaker)
    assert isinstance(found, EditReply), found
    assert Frame(found.data).facts.format == "jpeg"
    assert any("jpeg" in caveat.lower() for caveat in found.caveats), found.caveats


def test_every_documented_refusal_is_a_refusal(
    kind: type[Speaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind.refusals
    for refusal in kind.refusals:
        with kind(lambda _number, fate=refusal: fate) as speaker:  # type: ignore[misc]
            for name, value in speaker.environment(MARKER).items():
                monkeypatch.setenv(name, value)
            found = outcome(speaker)
        assert isinstance(found, EditorRefused), (refusal, found)
        assert str(found)


def test_without_a_key_it_can_be_planned_and_says_what_it_lacks(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(speaker.key_variable)
    spec = open_editor(speaker.editor).spec
    assert speaker.key_variable in spec.lacks
    assert not speaker.server.log
