"""Clients that take their time: they are let go, and nobody else waits for them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from convergebench.ratings import connection
from convergebench.ratings.app import make_app
from convergebench.ratings.connection import Connection
from tests.ratings.made import small_study

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server in a thread whose patience is short."""
    monkeypatch.setattr(connection, "HEAD_TIME", 0.4)
    app = make_app(small_study(tmp_path / "s", participants=1, images=1))
    config = uvicorn.Config(app, http=Connection, log_level="critical", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def hung_up(link: socket.socket, trickle: bytes) -> bool:
    """Whether the server closes a connection on which a head trickles in."""
    end = time.monotonic() + 30
    link.settimeout(0.1)
    while time.monotonic() < end:
        try:
            link.sendall(trickle)
            if not link.recv(65536):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


def answered(link: socket.socket) -> bytes:
    """A whole answer; head and body may come in two pieces."""
    found = b""
    while not found.endswith(b"\r\n\r\nok"):
        piece = link.recv(65536)
        assert piece, found
        found += piece
    return found


def test_a_head_that_trickles_in_is_given_up_on(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(HEALTH)
        assert hung_up(link, b"x: y\r\n")


def test_so_is_one_after_a_good_request(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(HEALTH + b"\r\n")
        assert answered(link).startswith(b"HTTP/1.1 200")
        link.sendall(HEALTH)
        assert hung_up(link, b"x: y\r\n")


def test_requests_that_keep_coming_are_served(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.settimeout(30)
        for _ in range(10):
            link.sendall(HEALTH + b"\r\n")
            assert answered(link).startswith(b"HTTP/1.1 200")
            time.sleep(0.15)
