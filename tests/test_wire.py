"""Paid calls over real sockets: which faults may have cost money."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convergebench import wire
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
    SettingsError,
)
from convergebench.wire import (
    Secret,
    Wire,
    addresses,
    check_base,
    client,
    complaint,
    network_fault,
    retry_after,
)
from tests.support.loopback import Reply, certificate, serving

KEY = "sk-marker-7f3a9c"
Caller = Callable[[str, float], object]


def through_wire(base: str, timeout: float) -> object:
    secret = Secret(KEY, "TEST_KEY")
    told = Wire(base, what="Them", headers={"authorization": f"Bearer {KEY}"}, key=secret)
    return told.post("/v1/edit", {"picture": "x" * 64}, timeout=timeout)


def through_openai(base: str, timeout: float) -> object:
    from openai import OpenAI

    with client(base, timeout=timeout) as http:
        sdk = OpenAI(api_key=KEY, base_url=base + "/v1", max_retries=0, http_client=http)
        try:
            return sdk.images.edit(model="m", image=("a.png", b"x", "image/png"), prompt="p")
        except Exception as error:
            raise network_fault(error, "Them") from None


def through_genai(base: str, timeout: float) -> object:
    from google import genai
    from google.genai import types

    with client(base, timeout=timeout) as http:
        options = types.HttpOptions(base_url=base, timeout=int(timeout * 1000), httpx_client=http)
        sdk = genai.Client(api_key=KEY, http_options=options)
        try:
            return sdk.models.generate_content(model="m", contents="p")
        except Exception as error:
            raise network_fault(error, "Them") from None


CALLERS = [through_wire, through_openai, through_genai]


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.__name__)
def caller(request: pytest.FixtureRequest) -> Caller:
    found: Caller = request.param
    return found


def fault_of(caller: Caller, base: str, timeout: float = 5.0) -> EditorError:
    """What a call raises; its text and traceback hold no key."""
    with pytest.raises(EditorError) as raised:
        caller(base, timeout)
    shown = "".join(traceback.format_exception(raised.value))
    assert KEY not in shown
    return raised.value


def test_a_refused_connection_was_not_billed(caller: Caller) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = fault_of(caller, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert isinstance(error, EditorUnavailable)
    assert "cannot reach Them" in str(error)


def test_an_unknown_host_was_not_billed(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = fault_of(caller, "https://nowhere.invalid")
    assert isinstance(error, EditorUnavailable)
    assert "Name or service not known" in str(error)


def test_a_connection_that_is_never_accepted_was_not_billed(caller: Caller) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        full = [socket.socket() for _ in range(4)]
        for sock in full:
            sock.setblocking(False)
            sock.connect_ex(deaf.getsockname())
        error = fault_of(caller, f"http://127.0.0.1:{deaf.getsockname()[1]}", 0.3)
        for sock in full:
            sock.close()
    assert isinstance(error, EditorUnavailable)


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"a": 1}, cut=0),
        Reply({"a": "b" * 500}, cut=100),
        Reply({"a": 1}, length=4000),
    ],
    ids=["reset before a byte", "reset in the body", "closed early"],
)
def test_what_is_cut_after_it_was_sent_may_have_been_billed(caller: Caller, reply: Reply) -> None:
    with serving(lambda _: reply) as server:
        error = fault_of(caller, server.url)
        assert len(server.log) == 1  # nobody repeats a paid call
    assert isinstance(error, EditorLost)
    assert not error.timed_out


def test_a_late_answer_may_have_been_billed(caller: Caller) -> None:
    with serving(lambda _: Reply({}, delay=1.0)) as server:
        error = fault_of(caller, server.url, 0.2)
        assert len(server.log) == 1
    assert isinstance(error, EditorLost)
    assert error.timed_out


def test_a_trickle_ends_when_the_time_is_up(caller: Caller) -> None:
    with serving(lambda _: Reply({"a": "b" * 1000}, pace=0.05)) as server:
        begun = time.monotonic()
        error = fault_of(caller, server.url, 0.4)
    assert isinstance(error, EditorLost)
    assert error.timed_out
    assert time.monotonic() - begun < 40, "all of it takes 50 s"


def raw_server(serve: Callable[[socket.socket], None]) -> tuple[str, socket.socket]:
    """A server of one connection, byte by byte."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)

    def once() -> None:
        peer, _ = listener.accept()
        with peer:
            serve(peer)

    threading.Thread(target=once, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", listener


def test_headers_that_trickle_end_when_the_time_is_up() -> None:
    def slow(peer: socket.socket) -> None:
        peer.recv(1 << 16)
        try:
            for letter in b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1000:
                peer.sendall(bytes([letter]))
                time.sleep(0.05)
        except OSError:
            return

    url, listener = raw_server(slow)
    begun = time.monotonic()
    error = fault_of(through_wire, url, 0.4)
    listener.close()
    assert isinstance(error, EditorLost)
    assert error.timed_out
    assert time.monotonic() - begun < 40, "all of it takes 50 s"


def test_a_request_that_was_not_taken_whole_was_not_billed() -> None:
    def rude(peer: socket.socket) -> None:
        peer.recv(1000)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    url, listener = raw_server(rude)
    with pytest.raises(EditorUnavailable, match="did not take the whole request"):
        Wire(url, what="Them").post("/", {"a": "b" * (32 << 20)}, timeout=5)
    listener.close()


def test_an_oversize_answer_is_not_read(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_BODY", 1000)
    for reply in (Reply({"a": "b" * 5000}), Reply({"a": 1}, length=10**12)):
        with serving(lambda _, reply=reply: reply) as server:  # type: ignore[misc]
            error = fault_of(caller, server.url)
        assert isinstance(error, EditorLost)
        assert "an answer of more than 1 MiB" in str(error)


def test_a_server_that_cannot_prove_who_it_is_gets_nothing_and_blocks(
    caller: Caller, tmp_path: Path
) -> None:
    with serving(lambda _: Reply({}), certificate(tmp_path, "localhost")) as server:
        error = fault_of(caller, server.url)
        assert not server.log
    assert isinstance(error, AccountBlocked)  # not retried, and no word about the edit
    assert "cannot prove who it is" in str(error)


def test_a_proxy_is_for_far_addresses_and_its_refusal_was_not_billed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[bytes] = []

    def proxy(peer: socket.socket) -> None:
        heard.append(peer.recv(1 << 16))
        peer.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")

    url, listener = raw_server(proxy)
    monkeypatch.setenv("HTTPS_PROXY", url)
    monkeypatch.setenv("HTTP_PROXY", url)
    error = fault_of(through_wire, "https://api.example")
    listener.close()
    assert isinstance(error, EditorUnavailable)
    assert heard[0].startswith(b"CONNECT api.example:443")
    with serving(lambda _: Reply({"a": 1})) as server:
        through_wire(server.url, 5)
    assert len(heard) == 1
    monkeypatch.setenv("NO_PROXY", "api.example")
    assert addresses.proxy_for("https://api.example/v1") is None


def test_a_proxy_that_hangs_up_after_its_tunnel_was_asked_for_was_not_billed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def proxy(peer: socket.socket) -> None:
        peer.recv(1 << 16)

    url, listener = raw_server(proxy)
    monkeypatch.setenv("HTTPS_PROXY", url)
    assert isinstance(fault_of(through_wire, "https://api.example"), EditorUnavailable)
    listener.close()


def test_keys_go_over_https_only() -> None:
    near = Wire("http://127.0.0.1:1", what="Them", key=Secret(KEY))
    far = Wire("https://api.example", what="Them", key=Secret(KEY))
    with pytest.raises(EditorLost, match="not https; keys do not go there"):
        near.post("http://10.0.0.1/poll", {}, timeout=1)
    with pytest.raises(EditorUnavailable, match="not https; keys do not go there"):
        far.get("http://127.0.0.1:1/poll", timeout=1)


def test_polls_are_free_so_a_broken_one_is_tried_again() -> None:
    cut = Reply({"a": "b" * 90}, cut=10)
    with serving(lambda _: cut) as server, pytest.raises(EditorUnavailable, match="hung up"):
        Wire(server.url, what="Them").get("/poll", timeout=5)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, EditorFailed),
        (401, AccountBlocked),
        (402, AccountBlocked),
        (403, AccountBlocked),
        (404, EditorFailed),
        (408, EditorUnavailable),
        (422, EditorFailed),
        (429, EditorUnavailable),
        (500, EditorUnavailable),
        (503, EditorUnavailable),
        (504, EditorLost),  # it was at work, perhaps for money
        (524, EditorLost),
        (302, EditorFailed),
    ],
)
def test_a_status_says_what_to_do(status: int, kind: type[EditorError]) -> None:
    body = {"error": {"code": "bad", "message": f"you sent {KEY}"}}
    headers = {"retry-after": "7", "location": "https://elsewhere.example/"}
    with serving(lambda _: Reply(body, status, headers)) as server:
        them = Wire(server.url, what="Them", key=Secret(KEY, "TEST_KEY"))
        error = them.fault(them.post("/", {}, timeout=5))
        assert len(server.log) == 1  # redirects of API calls are not followed
    assert type(error) is kind
    assert str(error) == f"Them: HTTP {status}: bad: you sent <TEST_KEY>"
    if isinstance(error, EditorUnavailable):
        assert (error.retry_after, error.limited) == (7.0, status == 429)


def test_a_text_in_an_answer_is_scrubbed_while_whole() -> None:
    body = b" " * 3990 + KEY.encode()  # what is shown ends within the key
    with serving(lambda _: Reply(body, 500)) as server:
        told = Wire(server.url, what="T", key=Secret(KEY)).post("/", {}, timeout=5)
    assert told.body is None
    assert KEY[:4] not in told.text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"code": "c", "type": "t", "message": "m"}}, "c: t: m"),
        ({"error": "plain"}, "plain"),
        ({"detail": [{"loc": ["a"], "msg": "one"}, "two"]}, "one; two"),
        ({"message": "m"}, "m"),
        ([], ""),
        (None, ""),
    ],
)
def test_the_words_of_an_error(body: Any, words: str) -> None:
    assert complaint(body) == words


@pytest.mark.parametrize(
    "url", ["http://api.example", "ftp://a.b", "api.example", "https://a:b@c.d", "https://a.b?x=1"]
)
def test_a_base_address_that_keys_may_not_go_to(url: str) -> None:
    with pytest.raises(SettingsError, match="SOME_URL"):
        check_base(url, "SOME_URL")


def test_a_base_address_that_keys_may_go_to() -> None:
    assert check_base(" https://api.example/v1/ ", "X") == "https://api.example/v1"
    assert check_base("http://localhost:8/", "X") == "http://localhost:8"


def test_a_secret_shows_nowhere() -> None:
    secret = Secret(KEY, "TEST_KEY")
    assert KEY not in f"{secret!r} {secret} {secret.fingerprint} {secret.scrub('a' + KEY)}"
    assert secret.reveal() == KEY
    with pytest.raises(SettingsError, match="TEST_KEY holds a space"):
        Secret("a b", "TEST_KEY")
