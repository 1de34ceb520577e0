"""The chat client against a real server: what it sends, what it makes of every kind of answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from email.utils import formatdate
from typing import Any

import pytest

from convergebench import chatapi
from convergebench.chatapi import ChatApi, ChatFailed, base_url
from convergebench.errors import SettingsError
from tests.support.chat_server import MODEL, Sent, chat_server, error, said

HELLO: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff of milliseconds; the times a server asks for are kept."""
    monkeypatch.setattr(chatapi, "FIRST_WAIT", 0.005)


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def test_a_reply_has_the_words_the_model_and_the_tokens() -> None:
    with chat_server(lambda asked: said("hi", finish="stop", model="fake-judge-0613")) as server:
        reply = ChatApi(server.url).ask(HELLO)
    assert (reply.text, reply.finish, reply.refusal) == ("hi", "stop", "")
    assert reply.model == "fake-judge-0613"
    assert reply.usage["total_tokens"] == 18
    assert server.calls[0].body == HELLO
    assert "authorization" not in {name.lower() for name in server.calls[0].headers}


def test_the_key_goes_into_the_header_and_nowhere_else() -> None:
    with chat_server(lambda asked: said("hi")) as server:
        server.key = KEY
        api = ChatApi(f"{server.url}/", f"{KEY}\n")
        assert api.ask(HELLO).text == "hi"
        assert api.models() == [MODEL]
    assert server.calls[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(api)


@pytest.mark.parametrize("name", ["MY_JUDGE", "MY_JUDGE_KEY"])
def test_a_server_that_repeats_the_key_does_not_get_it_into_messages(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, KEY)
    with chat_server() as server:
        server.key = "another"
        for call in (lambda: ChatApi(server.url, KEY).ask(HELLO), ChatApi(server.url, KEY).models):
            with pytest.raises(ChatFailed, match="HTTP 401: Incorrect API key") as caught:
                call()
            assert KEY not in str(caught.value)
            assert caught.value.general


def test_a_long_complaint_is_scrubbed_before_it_is_cut() -> None:
    with chat_server(lambda asked: error(400, "x" * 270 + KEY + "y" * 5000)) as server:
        with pytest.raises(ChatFailed, match="HTTP 400: x") as caught:
            ChatApi(server.url, KEY).ask(HELLO)
        assert KEY[:12] not in str(caught.value)
        assert len(str(caught.value)) < 350


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_what_is_temporary_is_tried_again(status: int) -> None:
    with chat_server(lambda asked: said("hi")) as server:
        server.script.extend([error(status, "busy")] * 3)
        assert ChatApi(server.url).ask(HELLO).text == "hi"
        assert len(server.calls) == 4


def test_patience_ends_after_four_attempts() -> None:
    with chat_server(lambda asked: error(503, "loading the model")) as server:
        with pytest.raises(ChatFailed, match=r"HTTP 503: loading the model \(4 att") as caught:
            ChatApi(server.url).ask(HELLO)
        assert len(server.calls) == 4
        assert caught.value.temporary


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_bad_request_is_made_once_and_says_nothing_about_others(status: int) -> None:
    with chat_server(lambda asked: error(status, "too large")) as server:
        api = ChatApi(server.url)
        for _ in range(5):
            with pytest.raises(ChatFailed, match=f"^HTTP {status}: too large$") as caught:
                api.ask(HELLO)
            assert not caught.value.temporary
            assert not caught.value.general
        assert len(server.calls) == 5


@pytest.mark.parametrize(
    "asked_for",
    [
        {"Retry-After": "0.2"},
        {"retry-after-ms": "200", "Retry-After": "7"},
        {"Retry-After": "http date"},
    ],
    ids=["seconds", "milliseconds", "date"],
)
def test_retry_after_is_honoured(asked_for: dict[str, str]) -> None:
    headers = dict(asked_for)
    if headers["Retry-After"] == "http date":
        headers["Retry-After"] = formatdate(time.time() + 2, usegmt=True)
    with chat_server(lambda asked: said("hi")) as server:
        server.script.append(Sent(b'{"error": "slow down"}', 429, headers))
        begun = time.monotonic()
        assert ChatApi(server.url).ask(HELLO).text == "hi"
        assert 0.2 <= time.monotonic() - begun < 30


def test_a_retry_after_beyond_the_deadline_is_not_waited_for() -> None:
    with chat_server(lambda asked: error(429, "quota", retry_after="3600")) as server:
        begun = time.monotonic()
        with pytest.raises(ChatFailed, match="HTTP 429: quota; wait 3600 s, it says") as caught:
            ChatApi(server.url).ask(HELLO)
        assert time.monotonic() - begun < 30
        assert caught.value.retry_after == 3600
        assert len(server.calls) == 1


def test_a_spent_quota_is_no_reason_to_wait() -> None:
    with chat_server(lambda asked: error(429, "pay", code="insufficient_quota")) as server:
        with pytest.raises(ChatFailed, match="HTTP 429: pay") as caught:
            ChatApi(server.url).ask(HELLO)
        assert len(server.calls) == 1
        assert caught.value.general


def test_a_slow_server_is_given_up_and_tried_again() -> None:
    with chat_server(lambda asked: said("hi")) as server:
        server.script.append(said("too late", wait=1.0))
        assert ChatApi(server.url, timeout=0.2).ask(HELLO).text == "hi"
        assert len(server.calls) == 2


def test_a_trickle_is_no_answer() -> None:
    slow = Sent(said("hi").data, trickle=0.02)
    with chat_server(lambda asked: slow) as server:
        begun = time.monotonic()
        with pytest.raises(ChatFailed, match=r"no answer from http.* within 0\.2 s"):
            ChatApi(server.url, timeout=0.2, attempts=1).ask(HELLO)
        assert time.monotonic() - begun < 2


def test_the_deadline_bounds_all_attempts_together() -> None:
    with chat_server(lambda asked: said("hi", wait=0.5)) as server:
        begun = time.monotonic()
        with pytest.raises(ChatFailed, match="no answer"):
            ChatApi(server.url, timeout=0.2, attempts=50, deadline=0.7).ask(HELLO)
        assert time.monotonic() - begun < 3


def test_a_broken_connection_is_tried_again() -> None:
    with chat_server(lambda asked: said("hi")) as server:
        server.script.append(Sent(b"", hang_up=True))
        assert ChatApi(server.url).ask(HELLO).text == "hi"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no JSON: nothing"),
        (b"<html>Bad gateway</html>", "no JSON: <html>"),
        (b"[1, 2]", "no JSON object"),
        (b"{}", "without choices"),
        (b'{"choices": []}', "without choices"),
        (b'{"choices": [null]}', "without choices"),
        (b'{"choices": [{"finish_reason": "stop"}]}', "without choices"),
        (b'{"error": {"message": "overloaded", "code": 502}}', "overloaded"),
        (b"\xff\xfe\x00", "no JSON"),
    ],
)
def test_rubbish_is_a_failure_that_shows_it(data: bytes, words: str) -> None:
    with chat_server(lambda asked: Sent(data)) as server:
        with pytest.raises(ChatFailed, match=words):
            ChatApi(server.url).ask(HELLO)
        assert len(server.calls) == 1  # it may have been billed


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": "model is loading"}', "model is loading"),  # Ollama
        ('{"detail": "Unprocessable"}', "Unprocessable"),  # FastAPI
        ('{"object": "error", "message": "too long", "code": 400}', "too long"),  # older vLLM
        ('{"error": {"code": 7}}', "{'code': 7}"),
        ('"just words"', "just words"),
        ("", "nothing"),
    ],
)
def test_errors_of_other_servers_are_understood(body: str, words: str) -> None:
    told = Sent(body.encode(), 400)
    words = f"HTTP 400: .*{words}"
    with chat_server(lambda asked: told) as server, pytest.raises(ChatFailed, match=words):
        ChatApi(server.url).ask(HELLO)


def test_a_wrong_model_is_told_the_right_ones() -> None:
    with chat_server() as server:
        with pytest.raises(ChatFailed, match=r"does not exist.*; it serves fake-judge") as caught:
            ChatApi(server.url).ask({**HELLO, "model": "fake-juge"})
        assert caught.value.general


def test_redirects_are_not_followed_with_a_key() -> None:
    gone = Sent(b"", 307, {"Location": "http://127.0.0.1:9/v1"})
    with chat_server(lambda asked: gone) as server, pytest.raises(ChatFailed, match="HTTP 307"):
        ChatApi(server.url, KEY).ask(HELLO)


@pytest.mark.parametrize(
    ("content", "words"), [(None, ""), ([{"type": "text", "text": "4"}, {"x": 1}], "4"), (3, "")]
)
def test_content_of_other_kinds(content: Any, words: str) -> None:
    told = {"choices": [{"message": {"content": content}, "finish_reason": None}], "usage": None}
    with chat_server(lambda asked: Sent(json.dumps(told).encode())) as server:
        reply = ChatApi(server.url).ask(HELLO)
    assert (reply.text, reply.finish, reply.model, reply.usage) == (words, "", "", {})


def test_a_refusal_is_a_reply() -> None:
    with chat_server(lambda asked: said(None, refusal="I cannot judge people.")) as server:
        assert ChatApi(server.url).ask(HELLO).refusal == "I cannot judge people."


# -- an endpoint that is down ---------------------------------------------------------------------


def test_a_dead_endpoint_is_soon_left_alone() -> None:
    api = ChatApi(closed_port())
    for _ in range(chatapi.ROW):
        with pytest.raises(ChatFailed, match=r"cannot reach http.*\(4 attempts\)"):
            api.ask(HELLO)
    begun = time.monotonic()
    for _ in range(1000):
        with pytest.raises(ChatFailed, match="not asked, because 3 calls in a row failed: cannot"):
            api.ask(HELLO)
    assert time.monotonic() - begun < 20


def test_it_is_tried_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chatapi, "PAUSE", 0.1)
    with chat_server(lambda asked: said("hi")) as server:
        server.script.extend([error(401, "no")] * 3)
        api = ChatApi(server.url)
        for _ in range(3):
            with pytest.raises(ChatFailed, match="HTTP 401"):
                api.ask(HELLO)
        with pytest.raises(ChatFailed, match="not asked"):
            api.ask(HELLO)
        time.sleep(0.15)
        assert api.ask(HELLO).text == "hi"
        server.script.append(error(401, "no"))
        with pytest.raises(ChatFailed, match="HTTP 401"):
            api.ask(HELLO)
        assert api.ask(HELLO).text == "hi"  # one failure is no row


def test_other_threads_give_up_while_they_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chatapi, "FIRST_WAIT", 0.2)
    api = ChatApi(closed_port())
    told: list[str] = []

    def call() -> None:
        with pytest.raises(ChatFailed) as caught:
            api.ask(HELLO)
        told.append(str(caught.value))

    threads = [threading.Thread(target=call) for _ in range(16)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun < 30
    assert len(told) == 16


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "localhost:8000/v1", "ftp://x/v1", "http://", "http://x:99999", "http://x/v1?k=1"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="is no base URL"):
        base_url(url)


def test_a_url_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(SettingsError, match="may not hold a name or password") as caught:
        base_url("https://me:hunter2@example.org/v1")
    assert "hunter2" not in str(caught.value)


def test_the_url_of_one_call_is_refused() -> None:
    with pytest.raises(SettingsError, match="URL of one call"):
        base_url("http://localhost:8000/v1/chat/completions/")


@pytest.mark.parametrize("key", ["sk test", "sk-é", "sk-a\nb"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(SettingsError, match="the key holds") as caught:
        ChatApi("http://localhost/v1", key)
    assert key not in str(caught.value)
