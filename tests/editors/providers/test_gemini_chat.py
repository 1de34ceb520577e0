"""Conversations with a Gemini model, rebuilt from what was stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from convergebench.chain import Settings
from convergebench.editor import EditReply, Turn
from convergebench.errors import (
    EditorFailed,
)
from convergebench.frame import Frame
from convergebench.registry import open_editor
from convergebench.runner import run
from tests.editors.providers.ask_gemini import (
    NEW,
    SOURCE,
    Scripted,
    asked,
    decoded,
    edited,
    raised,
    scripted,
    sent,
)
from tests.editors.providers.speak_gemini import (
    SIGNATURE,
    picture_part,
)
from tests.support.loopback import Reply
from tests.support.runs import write_suite
from tests.support.speaker import Speaker


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with scripted(monkeypatch) as speaker:
        yield speaker


def conversation(
    editor: str, prompts: list[str], *, resume_before: int = 0, extra: int = 0
) -> list[EditReply]:
    """A chain in one conversation; from `resume_before` on with a new editor, as after a restart.

    `extra` is the step that is given the source besides the last frame.
    """
    model = open_editor(editor)
    frames, history = [SOURCE], [Turn(0, "", lambda: SOURCE)]
    replies: list[EditReply] = []
    for step, prompt in enumerate(prompts, 1):
        if step == resume_before:
            model = open_editor(editor)
            stored = json.loads(json.dumps([r.session for r in replies]))
            bytes_ = [frame.data for frame in frames]
            history = [
                Turn(at, turn.prompt, partial(Frame, bytes_[at]), stored[at - 1] if at else {})
                for at, turn in enumerate(history)
            ]
        inputs = (SOURCE, frames[-1]) if step == extra else (frames[-1],)
        request = asked(
            prompt,
            inputs=inputs,
            step=step,
            history=tuple(history),
            settings=Settings(session="chat"),
        )
        reply = model.edit(request)
        frame = Frame(reply.data)
        replies.append(reply)
        frames.append(frame)
        history.append(Turn(step, prompt, partial(_same, frame), reply.session))
    return replies


def _same(frame: Frame) -> Frame:
    return frame


PROMPTS = ["Add a hat.", "Remove the hat.", "Add a hat.", "Remove the hat."]


def test_a_conversation_shows_every_picture_once(server: Scripted) -> None:
    replies = conversation(NEW, PROMPTS[:3])
    turns = sent(server)["contents"]
    assert [turn["role"] for turn in turns] == ["user", "model", "user", "model", "user"]
    picture, words = turns[0]["parts"]
    assert decoded(picture) == SOURCE.data
    assert words == {"text": "Add a hat."}
    assert turns[2]["parts"] == [{"text": "Remove the hat."}]
    assert turns[4]["parts"] == [{"text": "Add a hat."}]
    for reply, turn in zip(replies, (turns[1], turns[3]), strict=False):
        said, drawn = turn["parts"]
        assert said["text"] == "Here it is."
        assert decoded(drawn) == reply.data
        assert "thought" not in said


def test_signatures_come_back_as_they_were_and_drafts_do_not(server: Scripted) -> None:
    replies = conversation(NEW, PROMPTS[:2])
    said, drawn = sent(server)["contents"][1]["parts"]
    kept = replies[0].session["parts"]
    assert kept[0] == {"text": "Here it is.", "signature": SIGNATURE}
    for part, stored in ((said, kept[0]), (drawn, kept[1])):
        padded = stored["signature"] + "=" * (-len(stored["signature"]) % 4)
        assert base64.urlsafe_b64decode(part["thoughtSignature"]) == base64.b64decode(padded)
    assert any("not sent again" in caveat for caveat in replies[1].caveats)


def test_a_signed_thought_goes_along_and_an_unsigned_one_does_not(server: Scripted) -> None:
    server.script = lambda model: Reply(
        server.drawn(
            model,
            b"",
            {"text": "Unsigned.", "thought": True},
            {"text": "Signed.", "thought": True, "thoughtSignature": SIGNATURE},
            picture_part(Speaker.picture(8, 8)),
            {"text": "", "thoughtSignature": SIGNATURE},
        )
    )
    conversation(NEW, PROMPTS[:2])
    thought, drawn, empty = sent(server)["contents"][1]["parts"]
    assert (thought["text"], thought["thought"]) == ("Signed.", True)
    assert set(drawn) == {"inlineData"}
    assert empty["text"] == ""
    assert "thoughtSignature" in empty


@pytest.mark.parametrize("resume_before", [2, 3, 4])
@pytest.mark.parametrize("extra", [0, 3])
def test_after_a_restart_the_very_same_bytes_are_sent(
    server: Scripted, resume_before: int, extra: int
) -> None:
    answers = [Speaker.picture(8, 8, seed=n) for n in range(4)]
    server.script = lambda model: Reply(
        server.drawn(model, answers[(len(server.server.log) - 1) % 4])
    )
    conversation(NEW, PROMPTS, extra=extra)
    conversation(NEW, PROMPTS, extra=extra, resume_before=resume_before)
    bodies = [got.body for got in server.server.log]
    assert bodies[:4] == bodies[4:]


def test_a_step_with_two_pictures_shows_both_and_is_told_the_same_way_later(
    server: Scripted,
) -> None:
    replies = conversation(NEW, PROMPTS[:3], extra=2)
    turns = sent(server)["contents"]
    first, second, words = turns[2]["parts"]
    assert [decoded(first), decoded(second)] == [SOURCE.data, replies[0].data]
    assert words == {"text": "Remove the hat."}
    assert sent(server, 1)["contents"][2] == turns[2]


def test_a_history_without_what_was_kept_is_still_a_conversation(server: Scripted) -> None:
    drawn = Frame(Speaker.picture(16, 16, seed=4))
    history = (Turn(0, "", lambda: SOURCE), Turn(1, "Add a hat.", lambda: drawn))
    edited(
        NEW,
        prompt="Remove the hat.",
        inputs=(drawn,),
        step=2,
        history=history,
        settings=Settings(session="chat"),
    )
    first, model, last = sent(server)["contents"]
    assert decoded(first["parts"][0]) == SOURCE.data
    assert [decoded(part) for part in model["parts"]] == [drawn.data]
    assert last["parts"] == [{"text": "Remove the hat."}]


def test_a_picture_that_is_nowhere_in_the_chain_is_not_made_up(server: Scripted) -> None:
    history = (
        Turn(0, "", lambda: SOURCE),
        Turn(1, "Add a hat.", lambda: SOURCE, {"shown": ["ab" * 32], "parts": []}),
    )
    error = raised(NEW, step=2, history=history, settings=Settings(session="chat"))
    assert isinstance(error, EditorFailed)
    assert "step 1 was shown a picture" in str(error)
    assert not server.server.log


def test_separate_calls_send_no_history(server: Scripted) -> None:
    history = (Turn(0, "", lambda: SOURCE), Turn(1, "Add a hat.", lambda: SOURCE))
    edited(step=2, history=history)
    assert len(sent(server)["contents"]) == 1


def test_of_several_pictures_only_the_one_that_counted_is_sent_again(server: Scripted) -> None:
    first, last = (Speaker.picture(8, 8, seed=n) for n in (1, 2))
    parts = (picture_part(first), {"text": "Or rather:"}, picture_part(last))
    server.script = lambda model: Reply(server.drawn(model, b"", *parts))
    conversation(NEW, PROMPTS[:2])
    words, drawn = sent(server)["contents"][1]["parts"]
    assert words == {"text": "Or rather:"}
    assert decoded(drawn) == last


def test_a_signature_that_cannot_be_read_is_a_caveat(server: Scripted) -> None:
    part = picture_part(Speaker.picture(8, 8), thoughtSignature="§§")
    server.script = lambda model: Reply(server.drawn(model, b"", part))
    (reply, _) = conversation(NEW, PROMPTS[:2])
    assert any("signature" in caveat for caveat in reply.caveats)
    assert "thoughtSignature" not in sent(server)["contents"][1]["parts"][0]


def test_a_turn_that_kept_no_parts_still_shows_its_picture(server: Scripted) -> None:
    drawn = Frame(Speaker.picture(16, 16, seed=4))
    kept = {"shown": [SOURCE.digest], "parts": []}
    history = (Turn(0, "", lambda: SOURCE), Turn(1, "Add a hat.", lambda: drawn, kept))
    edited(NEW, inputs=(drawn,), step=2, history=history, settings=Settings(session="chat"))
    assert decoded(sent(server)["contents"][1]["parts"][0]) == drawn.data


def test_the_runner_goes_on_with_a_stored_conversation(server: Scripted, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", size=64)
    answers = [Speaker.picture(8, 8, seed=n) for n in range(4)]
    server.script = lambda model: Reply(
        server.drawn(model, answers[len(sent(server)["contents"]) // 2])
    )
    plan = {
        "suite": str(suite),
        "editors": [NEW],
        "sources": ["s0"],
        "cycles": ["copy"],
        "controls": False,
        "budget": 10,
        "settings": {"session": ["chat"]},
    }
    assert run(tmp_path / "whole", {**plan, "steps": 4}).complete
    assert run(tmp_path / "parts", {**plan, "steps": 2}).complete
    assert run(tmp_path / "parts", {**plan, "steps": 4}).complete
    bodies = [got.body for got in server.server.log]
    assert len(bodies) == 8
    assert bodies[:4] == bodies[4:]
    assert len(sent(server)["contents"]) == 7
