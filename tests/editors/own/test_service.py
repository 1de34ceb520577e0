"""`http://…` and `https://…`: a server of one's own."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.chain import Settings
from convergebench.editor import EditReply, Turn
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
from convergebench.registry import PluginName, open_editor
from convergebench.store import RunStore
from convergebench.testing import check_editor
from tests.editors.own.asking import (
    MARKER,
    PROMPT,
    command,
    fault,
    frame,
    reply,
    request,
    run_words,
)
from tests.support.loopback import Loopback, Received, Reply, serving
from tests.support.runs import write_suite

ROOT = Path(__file__).resolve().parents[3]
PICTURE = frame(5)
IMAGE = base64.b64encode(PICTURE.data).decode()
Serve = Callable[..., Loopback]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that gives one answer, or what a function says."""
    with contextlib.ExitStack() as stack:

        def start(answer: Any, **more: Any) -> Loopback:
            made = answer if callable(answer) else lambda _request: Reply(answer, **more)
            return stack.enter_context(serving(made))

        yield start


def test_the_request_is_the_documented_one_field_by_field(serve: Serve) -> None:
    server = serve({"image": IMAGE})
    source = frame()
    made = reply(
        f"{server.url}/edit,strength=0.4,mode=soft",
        inputs=(source,),
        region=(0.25, 0.25, 0.75, 0.5),
        attempt=2,
    )
    (got,) = server.log
    assert (got.method, got.path) == ("POST", "/edit")
    assert got.json == {
        "image": base64.b64encode(source.data).decode(),
        "format": "png",
        "prompt": PROMPT,
        "seed": 7,
        "width": 32,
        "height": 24,
        "region": [0.25, 0.25, 0.75, 0.5],
        "settings": {
            "temperature": None,
            "resolution": "native",
            "session": "stateless",
            "phrasing": 0,
        },
        "options": {"strength": 0.4, "mode": "soft"},
        "step": 1,
        "chain": "s0--copy--mine",
        "attempt": 2,
    }
    assert "authorization" not in {name.lower() for name in got.headers}
    assert made.data == PICTURE.data
    assert made.size == "32x24"
    assert made.parameters["options"] == {"strength": 0.4, "mode": "soft"}
    assert made.parameters["seed"] == 7


def test_settings_several_inputs_and_conversations_are_sent(serve: Serve) -> None:
    server = serve({"image": f"data:image/png;base64,{IMAGE}", "session": {"id": "c2"}})
    first, second = frame(1), frame(2)
    history = (Turn(0, "", lambda: first), Turn(1, "Copy.", lambda: second, {"id": "c1"}))
    settings = Settings(temperature=0.5, resolution="1K", session="chat")
    made = reply(
        f"{server.url}/", inputs=(first, second), history=history, settings=settings, seed=None,
        step=2,
    )  # fmt: skip
    got = server.log[0].json
    assert got["inputs"] == [base64.b64encode(f.data).decode() for f in (first, second)]
    assert got["image"] == got["inputs"][1]
    assert got["session"] == {"id": "c1"}
    assert got["seed"] is None
    assert got["settings"]["temperature"] == 0.5
    assert (got["width"], got["height"]) == (1184, 888)  # a megapixel of 4:3, by eights
    assert made.session == {"id": "c2"}
    assert made.data == PICTURE.data


def test_what_the_server_tells_is_kept(serve: Serve) -> None:
    told = {
        "model": "mine-3",
        "request_id": "r-17",
        "cost": 0.02,
        "usage": {"steps": 20},
        "reasoning": "sky, pink",
        "effective_prompt": "A pink sky.",
        "something_else": 1,
    }
    made = reply(f"{serve({'image': IMAGE, **told}).url}/edit")
    for name in ("model", "request_id", "cost", "usage", "reasoning", "effective_prompt"):
        assert getattr(made, name) == told[name]
    assert made.basis == "reported"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"cost": "2 $"}, "cost '2 $', expected dollars, 0 or more"),
        ({"cost": -1}, "cost -1, expected dollars, 0 or more"),
        ({"cost": True}, "cost True, expected dollars, 0 or more"),
        ({"usage": 3}, "usage 3, expected an object"),
        ({"model": 3}, "model 3, expected a text"),
    ],
)
def test_a_field_that_cannot_be_read_loses_no_picture(
    serve: Serve, field: dict[str, Any], words: str
) -> None:
    made = reply(f"{serve({'image': IMAGE, **field}).url}/edit")
    assert made.data == PICTURE.data
    assert (made.cost, made.model, made.usage) == (None, None, {})
    (caveat,) = made.caveats
    assert caveat.endswith(words)


def test_half_letters_are_replaced(serve: Serve) -> None:
    body = b'{"image": "%s", "model": "a\\ud800b", "reasoning": "\\ud83d\\ude00"}' % IMAGE.encode()
    made = reply(f"{serve(body).url}/edit")
    assert (made.model, made.reasoning) == ("a?b", "\N{GRINNING FACE}")


@pytest.mark.parametrize("status", [200, 400, 422])
def test_a_refusal_is_a_refusal_whatever_the_status(serve: Serve, status: int) -> None:
    body = {"refused": "no skies today", "request_id": "r-1", "cost": 0.01}
    error = fault(f"{serve(body, status=status).url}/edit")
    assert isinstance(error, EditorRefused)
    assert str(error) == "no skies today"
    assert error.told is not None
    assert (error.told.request_id, error.told.cost) == ("r-1", 0.01)


@pytest.mark.parametrize(
    ("body", "more", "kind", "words"),
    [
        ({"error": "out of memory"}, {}, EditorFailed, "out of memory"),
        ({"error": "bad size"}, {"status": 400}, EditorFailed, "HTTP 400: bad size"),
        ({}, {}, EditorNoImage, "answered without an image"),
        ({"image": None}, {}, EditorNoImage, "answered without an image"),
        ([1], {}, EditorNoImage, "without a JSON object"),
        (b"<html>hello</html>", {}, EditorNoImage, "<html>hello</html>"),
        ({"image": "äöü"}, {}, EditorFailed, "not base64"),
        ({"image": 5}, {}, EditorFailed, "answered image 5, expected base64"),
        ({"detail": "busy"}, {"status": 503}, EditorUnavailable, "HTTP 503: busy"),
        (b"", {"status": 500}, EditorUnavailable, "HTTP 500"),
        ({"error": "whose key?"}, {"status": 401}, AccountBlocked, "HTTP 401"),
        (b"", {"status": 307, "headers": {"location": "/b"}}, EditorFailed, "HTTP 307"),
        ({"image": IMAGE}, {"cut": 0}, EditorLost, "hung up"),
        ({"image": IMAGE}, {"cut": 40}, EditorLost, "hung up"),
    ],
)
def test_every_other_answer_is_told_apart(
    serve: Serve, body: Any, more: dict[str, Any], kind: type[EditorError], words: str
) -> None:
    server = serve(body, **more)
    with pytest.raises(kind, match=words):
        raise fault(f"{server.url}/edit")
    assert len(server.log) == 1, "nothing is sent twice"


def test_too_many_calls_are_told_with_the_wait(serve: Serve) -> None:
    plain = fault(f"{serve(b'', status=429).url}/edit")
    asked = fault(f"{serve(b'', status=429, headers={'retry-after': '3'}).url}/edit")
    for error, wait in ((plain, None), (asked, 3.0)):
        assert isinstance(error, EditorUnavailable)
        assert error.limited
        assert error.retry_after == wait


def test_a_slow_server_is_given_up_before_the_runner_does(serve: Serve) -> None:
    server = serve({"image": IMAGE}, delay=8.0)
    editor = open_editor(f"{server.url}/edit")
    begun = time.monotonic()
    with pytest.raises(EditorLost) as caught:
        editor.edit(request(deadline=6.0))
    assert caught.value.timed_out
    assert time.monotonic() - begun < 6.0


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = fault(f"http://127.0.0.1:{taken.getsockname()[1]}/edit")
    assert isinstance(error, EditorUnavailable)


def test_the_key_goes_into_a_header_and_nowhere_else(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MODEL_SECRET", MARKER)
    server = serve({"image": IMAGE})
    name = f"{server.url}/edit,key_env=MY_MODEL_SECRET"
    made = reply(name)
    (got,) = server.log
    assert got.headers["authorization" if "authorization" in got.headers else "Authorization"] == (
        f"Bearer {MARKER}"
    )
    assert MARKER.encode() not in got.body
    assert MARKER not in repr(made) + repr(open_editor(name).spec)
    loud = serve({"error": f"bad key {MARKER}"}, status=400)
    assert "<MY_MODEL_SECRET>" in str(fault(f"{loud.url}/edit,key_env=MY_MODEL_SECRET"))
    refuses = serve({"refused": f"not with {MARKER}"})
    assert "<MY_MODEL_SECRET>" in str(fault(f"{refuses.url}/edit,key_env=MY_MODEL_SECRET"))


def test_without_its_key_it_can_be_planned_but_not_called(serve: Serve) -> None:
    server = serve({"image": IMAGE})
    name = f"{server.url}/edit,key_env=NOBODY_SET_THIS"
    assert open_editor(name).spec.lacks == f"{server.url}/edit needs a key: set NOBODY_SET_THIS."
    assert isinstance(fault(name), AccountBlocked)
    assert not server.log


def test_mistakes_in_the_name_are_one_sentence() -> None:
    said = {
        "http": "is no address. Write it as in http://127.0.0.1:8000/edit",
        "http:edit": "is no address",
        "http:ftp://host/edit": "is no address",
        "http://127.0.0.1:99999/edit": "is no address",
        "http://me:secret@127.0.0.1/edit": "may not hold a name or password",
        "http://127.0.0.1/edit?size=2": r"may hold no \? or #.*goes after a comma",
        "http://127.0.0.1/edit,b": "in an address it is written %2C",
        "http://example.org/edit,key_env=MY_KEY": "keys go over https only",
        "http://127.0.0.1/edit,price=-1": "price must be dollars per call",
    }
    for name, words in said.items():
        with pytest.raises(SettingsError, match=words) as caught:
            open_editor(name)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)


def test_names_and_terms() -> None:
    plain = open_editor("http://192.168.1.5:8000/edit").spec
    assert plain.name == "http://192.168.1.5:8000/edit"
    assert (plain.price, plain.concurrency) == (None, 1)
    spelt = open_editor("http:https://my.host/edit,price=0.03,concurrency=8,seconds=4").spec
    assert spelt.name == "http:https://my.host/edit,concurrency=8,price=0.03,seconds=4"
    assert (spelt.price, spelt.concurrency, spelt.seconds) == (0.03, 8, 4.0)
    assert open_editor("https://my.host/edit,key_env=A_KEY").spec.account == "my.host/no-key"
    assert open_editor("http://[::1]:8000/edit").spec.account == "[::1]:8000/no-key"


def test_a_key_in_the_address_of_a_failing_server_shows_nowhere(serve: Serve) -> None:
    """What the server says is cut to one line, and its body is not kept."""
    error = fault(f"{serve(b'x' * 5000, status=400).url}/edit")
    assert len(str(error)) < 800


@pytest.fixture
def example() -> Iterator[str]:
    """The example server as a real process; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = ROOT / "examples" / "http_editor.py"
    process = subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/edit"
    finally:
        process.terminate()
        process.wait(10)


def test_the_example_server_keeps_the_contract_and_stays_short(example: str) -> None:
    check_editor(open_editor(f"{example},concurrency=4"))
    lines = (ROOT / "examples" / "http_editor.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines[1:]) <= 21


def test_a_chain_runs_through_the_example_server(example: str, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    done = command(tmp_path, *run_words(suite, f"{example},price=0", 5))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 5
    assert {step.call.model for step in chain.steps} == {"blur-0.5"}
    assert len({f.sha256 for f in chain.frames}) == 6


def test_a_run_goes_on_over_faults_and_makes_every_frame_once(serve: Serve, tmp_path: Path) -> None:
    seen: list[int] = []

    def answer(got: Received) -> Reply:
        asked = got.json
        seen.append(asked["step"])
        if asked["step"] in (2, 4) and seen.count(asked["step"]) == 1:
            return Reply({"error": "busy"}, status=503, headers={"retry-after": "0.05"})
        made = frame(100 + asked["step"], 32, 32)
        return Reply({"image": base64.b64encode(made.data).decode(), "cost": 0.25})

    server = serve(answer)
    suite = write_suite(tmp_path / "suite")
    words = run_words(suite, f"{server.url}/edit,key_env=MY_MODEL_KEY,price=0.25", 5)
    done = command(tmp_path, *words, "--budget", "5", env={"MY_MODEL_KEY": MARKER})
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 5
    assert chain.spent == pytest.approx(1.25)
    assert seen == [1, 2, 2, 3, 4, 4, 5]
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or MARKER.encode() not in file.read_bytes()
    assert MARKER not in done.stdout + done.stderr
    assert os.environ.get("MY_MODEL_KEY") is None


def test_half_a_picture_is_handed_on_as_received(serve: Serve) -> None:
    half = PICTURE.data[: len(PICTURE.data) // 2]
    found = reply(f"{serve({'image': base64.b64encode(half).decode()}).url}/edit")
    assert isinstance(found, EditReply)
    assert found.data == half


@given(
    host=st.from_regex(r"[a-z][a-z0-9-]{0,10}(\.[a-z]{2,5})?", fullmatch=True),
    port=st.integers(1, 65535),
    path=st.from_regex(r"(/[A-Za-z0-9._~%=+:@-]{1,8}){0,3}/?", fullmatch=True),
    strength=st.integers(-5, 5),
)
def test_an_address_survives_being_a_name(host: str, port: int, path: str, strength: int) -> None:
    name = f"http://{host}:{port}{path}"
    assert str(PluginName.parse(name)) == name
    spec = open_editor(f"{name},strength={strength}").spec
    assert spec.name == f"{name},strength={strength}"
    assert spec.account == f"{host}:{port}/no-key"
