from __future__ import annotations

from typing import Any

import pytest

from convergebench.chain import ChainKey, Settings
from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest, Turn
from convergebench.engines.letters import (
    error_bytes,
    read_reply,
    read_request,
    reply_bytes,
    request_bytes,
)
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


def ignored(_task: Any) -> None:
    pass


def request(session: str) -> EditRequest:
    settings = Settings.model_validate({"session": session})
    frames = [Frame(b"first\nframe"), Frame(b"second")]
    return EditRequest(
        inputs=(frames[1], frames[0]),
        prompt="Add a ball.\nRed.",
        edit=Edit(prompt="Add a ball.", region=(0.1, 0.2, 0.5, 0.75)),
        step=2,
        seed=17,
        settings=settings,
        region=(0.1, 0.2, 0.5, 0.75),
        history=[
            Turn(0, "", lambda: frames[0]),
            Turn(1, "Add.", lambda: frames[1], {"id": "x"}),
        ],
        deadline=12.5,
        chain="a--b",
        attempt=3,
        key=ChainKey(suite="s@1", source="a", cycle="b@1", editor="e", settings=settings),
        home_size=(64, 32),
        task={"id": 7},
    )


@pytest.mark.parametrize("session", ["chat", "stateless"])
def test_a_request_arrives_as_it_was_sent(session: str) -> None:
    sent = request(session)
    got = read_request(request_bytes(sent), ignored)
    assert [frame.data for frame in got.inputs] == [frame.data for frame in sent.inputs]
    for name in ("prompt", "edit", "step", "seed", "settings", "region", "deadline", "chain"):
        assert getattr(got, name) == getattr(sent, name)
    assert (got.attempt, got.key, got.home_size, got.task) == (3, sent.key, (64, 32), {"id": 7})
    assert [(t.step, t.prompt, dict(t.session)) for t in got.history] == [
        (0, "", {}),
        (1, "Add.", {"id": "x"}),
    ]
    if session == "chat":
        assert [turn.load().data for turn in got.history] == [b"first\nframe", b"second"]
    else:
        with pytest.raises(EditorFailed, match="only in a chat session"):
            got.history[0].load()


def test_a_reply_arrives_as_it_was_sent() -> None:
    sent = EditReply(
        b"\x89PNG\n\x00",
        model="m",
        parameters={"a": (1, 2.5)},
        cost=0.25,
        basis="usage",
        caveats=("one", "two"),
        session={"id": 1},
    )
    tasks: list[Any] = []
    got = read_reply(reply_bytes(sent, [{"id": 9}]), tasks.append)
    assert got.data == sent.data
    assert got.parameters == {"a": [1, 2.5]}
    assert (got.model, got.cost, got.basis, got.caveats) == ("m", 0.25, "usage", ("one", "two"))
    assert tasks == [{"id": 9}]


@pytest.mark.parametrize("kind", [EditorRefused, EditorNoImage, EditorFailed, AccountBlocked])
def test_errors_arrive_as_what_they_were(kind: type[EditorError]) -> None:
    told = EditReply(b"", request_id="r", cost=1.0)
    with pytest.raises(kind, match=r"^no$") as caught:
        read_reply(error_bytes(kind("no", told=told)), ignored)
    assert type(caught.value) is kind
    assert caught.value.told == told


def test_their_fields_as_well() -> None:
    busy = EditorUnavailable("busy", retry_after=3.5, limited=True)
    with pytest.raises(EditorUnavailable, match="busy") as caught:
        read_reply(error_bytes(busy), ignored)
    assert (caught.value.retry_after, caught.value.limited) == (3.5, True)
    with pytest.raises(EditorLost, match="cut") as lost:
        read_reply(error_bytes(EditorLost("cut", timed_out=True)), ignored)
    assert lost.value.timed_out


def test_subclasses_count_as_the_runner_counts_them() -> None:
    class Busy(EditorUnavailable):
        pass

    class Shy(EditorRefused):
        pass

    with pytest.raises(EditorUnavailable):
        read_reply(error_bytes(Busy("later")), ignored)
    with pytest.raises(EditorError) as caught:
        read_reply(error_bytes(Shy("no")), ignored)
    assert type(caught.value) is EditorError  # `failed`, as for an unknown class here


def test_bugs_keep_their_name_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sesame-open")
    with pytest.raises(Exception, match=r"^bad <SOME_API_KEY>$") as caught:
        read_reply(error_bytes(ValueError("bad sesame-open")), ignored)
    assert type(caught.value).__name__ == "ValueError"
