"""A real HTTP server on this machine that speaks the chat protocol of OpenAI, vLLM and Ollama.

It checks what it is sent as a server does (method, path, key, JSON, content parts, a PNG that
decodes) and answers what the test's script says: words of a judge, an error, rubbish, or nothing.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convergebench.errors import MalformedImage
from convergebench.frame import decode

MODEL = "fake-judge"


@dataclass(frozen=True)
class Asked:
    """One call as the server saw it."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    text: str
    pixels: NDArray[np.uint8] | None

    @property
    def seed(self) -> int:
        return int(self.body.get("seed", 0))


@dataclass(frozen=True)
class Sent:
    """One answer as it goes over the wire; `wait` seconds late, or cut off half-way."""

    data: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    trickle: float = 0.0
    hang_up: bool = False


def said(
    text: str | None,
    *,
    finish: str = "stop",
    refusal: str | None = None,
    model: str = MODEL,
    wait: float = 0.0,
) -> Sent:
    """A chat completion."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    told = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    return Sent(json.dumps(told).encode(), wait=wait)


def error(
    status: int, message: str = "no", *, code: str | None = None, retry_after: str | None = None
) -> Sent:
    """An error as OpenAI and vLLM word it."""
    told = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Sent(json.dumps(told).encode(), status, headers)


def noise(pixels: NDArray[np.uint8]) -> float:
    """Mean difference of neighbours: 0 for a constant picture."""
    levels = pixels.astype(np.float64)
    steps = [np.abs(np.diff(levels, axis=axis)) for axis in (0, 1)]
    return float(np.mean([step.mean() if step.size else 0.0 for step in steps]))


def judge(asked: Asked) -> Sent:
    """Scores a picture by its noise, and differs a little from seed to seed."""
    assert asked.pixels is not None
    score = 5 - noise(asked.pixels) / 16 + 0.01 * (asked.seed % 7)
    return said(f"<think>9 artefacts, 3.3 of 5?</think>\n<answer>{score:.4f}</answer>")


class ChatServer(ThreadingHTTPServer):
    """The server. `script` answers come first, one per call; then `answer` does."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, answer: Callable[[Asked], Sent]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.script: deque[Sent] = deque()
        self.calls: list[Asked] = []
        self.key = ""
        self.served = [MODEL]
        self.busiest = 0
        self.busy = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is what some tests are about."""


@contextlib.contextmanager
def chat_server(answer: Callable[[Asked], Sent] = judge) -> Iterator[ChatServer]:
    """A server for the duration of a test."""
    server = ChatServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if refused := self._unknown("/v1/models"):
            return self._send(refused)
        rows = [{"id": name, "object": "model"} for name in self.server.served]
        return self._send(Sent(json.dumps({"object": "list", "data": rows}).encode()))

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        try:
            refused = self._unknown("/v1/chat/completions")
            self._send(refused or self._complete(data))
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def _unknown(self, path: str) -> Sent | None:
        if self.path != path:
            return error(404, "Not Found")
        given = self.headers.get("Authorization", "")
        if self.server.key and given != f"Bearer {self.server.key}":
            return error(401, f"Incorrect API key provided: {given}", code="invalid_api_key")
        return None

    def _complete(self, data: bytes) -> Sent:
        try:
            asked = _checked(json.loads(data), dict(self.headers))
        except (ValueError, KeyError, TypeError, MalformedImage) as problem:
            return error(400, f"bad request: {problem!r}")
        if asked.body["model"] not in self.server.served:
            return error(404, f"The model `{asked.body['model']}` does not exist.")
        with self.server.lock:
            self.server.calls.append(asked)
            scripted = self.server.script.popleft() if self.server.script else None
        return scripted or self.server.answer(asked)

    def _send(self, sent: Sent) -> None:
        time.sleep(sent.wait)
        if sent.hang_up:
            self.close_connection = True
            return
        with contextlib.suppress(ConnectionError):
            self.send_response(sent.status)
            for name, value in sent.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent.data)))
            self.end_headers()
            for at in range(len(sent.data) if sent.trickle else 0):
                self.wfile.write(sent.data[at : at + 1])
                self.wfile.flush()
                time.sleep(sent.trickle)
            self.wfile.write(b"" if sent.trickle else sent.data)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


def _checked(body: dict[str, Any], headers: Mapping[str, str]) -> Asked:
    """What is asked, refused as by a strict server where it is not what the protocol says."""
    (message,) = body["messages"]
    if message["role"] != "user" or not isinstance(body["model"], str):
        raise ValueError("messages")
    if isinstance(message["content"], str):
        return Asked(body, headers, message["content"], None)
    texts, pictures = [], []
    for part in message["content"]:
        if part["type"] == "text":
            texts.append(part["text"])
        elif part["type"] == "image_url":
            head, _, packed = part["image_url"]["url"].partition(",")
            if head != "data:image/png;base64":
                raise ValueError(head)
            pictures.append(decode(base64.b64decode(packed, validate=True))[0])
        else:
            raise ValueError(part["type"])
    return Asked(body, headers, "".join(texts), pictures[0] if pictures else None)
