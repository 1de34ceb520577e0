"""An HTTP client that is bounded in time and size, and knows whether a request was sent whole."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from convergebench.wire.addresses import proxy_for

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS: Final = 15.0


def careful(base: str, timeout: float, most: int) -> httpx2.Client:
    """An HTTP client for an address, whose answers may have so many bytes.

    The read timeout of a request bounds it as a whole: a server that trickles is hung up on. What
    fails before the request was sent whole fails as ConnectError, ConnectTimeout or WriteError. A
    proxy of the environment is used, except for this machine.
    """
    import httpx2

    class Careful(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return _watched(super().handle_request, request, most)

    return httpx2.Client(
        transport=Careful(
            verify=_trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            limits=httpx2.Limits(max_keepalive_connections=0),
            proxy=proxy_for(base),
        ),
        timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        # A packed answer could be a thousand times as large as what was counted.
        headers={"accept-encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
    )


@lru_cache(maxsize=4)
def _trust(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """The certificates that the environment names; reading them takes longer than a short call."""
    import httpx2

    return httpx2.create_ssl_context()


class TooLarge(Exception):
    """An answer that is larger than any picture we ask for."""


def _watched(
    send: Callable[[httpx2.Request], httpx2.Response], request: httpx2.Request, most: int
) -> httpx2.Response:
    """Send a request; what fails before it was sent whole fails as a WriteError."""
    import httpx2

    watch = _Watch(request.extensions.get("timeout", {}).get("read"))
    request.extensions = {**request.extensions, "trace": watch.event}
    try:
        response = send(request)
    except BaseException as error:
        watch.stop()
        known = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.LocalProtocolError)
        if isinstance(error, httpx2.TransportError) and not isinstance(error, known):
            if not watch.sent:
                raise httpx2.WriteError(f"not sent: {error}") from error
            if watch.expired:
                raise httpx2.ReadTimeout("timed out") from error
        raise
    response.stream = _bounded(response, most, watch)
    return response


class _Watch:
    """Follows one request: whether it was sent whole, and whether its time is up."""

    def __init__(self, seconds: float | None) -> None:
        self.sent = False
        self.expired = False
        self._paid = True
        self._sockets: list[socket.socket] = []
        self._timer: threading.Timer | None = None
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def event(self, name: str, info: Mapping[str, Any]) -> None:
        """Hear what the library does."""
        if name.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.append(info["return_value"].get_extra_info("socket"))
            if self.expired:  # while it was connecting
                self._expire()
        elif name.endswith("send_request_body.started"):
            self._paid = info["request"].method != b"CONNECT"  # that one is the proxy's
        elif name.endswith("send_request_body.complete"):
            self.sent = self._paid

    def _expire(self) -> None:
        self.expired = True
        for sock in reversed(self._sockets):
            with contextlib.suppress(OSError, AttributeError):
                sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """The request is over."""
        if self._timer is not None:
            self._timer.cancel()


def _bounded(response: httpx2.Response, most: int, watch: _Watch) -> httpx2.SyncByteStream:
    import httpx2

    stream = response.stream
    announced = response.headers.get("content-length", "")
    limit = f"an answer of more than {math.ceil(most / 2**20)} MiB"

    class Stream(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            if announced.isdecimal() and int(announced) > most:
                raise TooLarge(limit)
            assert isinstance(stream, httpx2.SyncByteStream)
            count = 0
            try:
                for piece in stream:
                    count += len(piece)
                    if count > most:
                        raise TooLarge(limit)
                    yield piece
            except httpx2.TransportError:
                if not watch.expired:
                    raise
            if watch.expired:  # hanging up looks like an end where no length was announced
                raise httpx2.ReadTimeout("timed out")

        def close(self) -> None:
            watch.stop()
            if isinstance(stream, httpx2.SyncByteStream):
                stream.close()

    return Stream()
