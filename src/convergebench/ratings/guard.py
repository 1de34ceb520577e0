"""What stands before the app: headers, hosts, origins, bodies, and limits on guessing.

Plain ASGI, so that nothing reads a request before it was looked at. A body is read in pieces and
given up on as soon as it is too long; what was not announced or takes too long is refused as well.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY: Final = 64 * 1024
BODY_TIME: Final = 15.0
"""Seconds in which a body must have come."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "x-robots-tag": "noindex, nofollow",
}
"""On every response."""


class Guard:
    """The outermost layer: our headers on every response, and no traceback to anybody.

    Args:
        app: What is guarded.
        origin: Where the server is reached, if it was told; then no other name is answered but
            this machine's own.
    """

    def __init__(self, app: ASGIApp, *, origin: str | None) -> None:
        self._app = app
        self._host = origin.partition("://")[2] if origin else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.encode(), v.encode())
                        for k, v in HEADERS.items()
                        if k.encode() not in there
                    ),
                ]
            await send(message)

        try:
            if self._strange(scope):
                answer = refusal(421, "this server is not reached under that name.")
                await answer(scope, receive, guarded)
            else:
                await self._app(scope, receive, guarded)
        except ClientDisconnect:
            return
        except Exception as error:
            # The address holds a token, so it is not told; neither is what a library may quote.
            print(f"error: {type(error).__name__} ({_where(error)})", file=sys.stderr, flush=True)
            if not begun:
                answer = refusal(500, "something went wrong here; try again in a moment.")
                await answer(scope, receive, guarded)

    def _strange(self, scope: Scope) -> bool:
        if scope["path"] == "/healthz":
            return False
        told = [
            value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"
        ]
        if len(told) != 1:
            return True
        return self._host is not None and told[0] != self._host and not own_name(told[0])


def _where(error: Exception) -> str:
    """The last line of ours that an error came through."""
    trace = traceback.extract_tb(error.__traceback__)
    ours = [at for at in trace if Path(at.filename).parent == Path(__file__).parent]
    at = (ours or trace)[-1]
    return f"{Path(at.filename).name}, line {at.lineno}"


def refusal(status: int, sentence: str, **headers: str) -> JSONResponse:
    """A refusal as the pages read it."""
    return JSONResponse({"error": sentence}, status, {"cache-control": "no-store", **headers})


def refuse(status: int, sentence: str, **headers: str) -> NoReturn:
    """Stop here with a refusal."""
    raise HTTPException(status, sentence, headers or None)


async def json_body(request: Request, origin: str | None) -> dict[str, Any]:
    """The JSON object that was posted from our own page. Refuses everything else."""
    _check_origin(request, origin)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        refuse(415, "expected Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        refuse(415, "expected a body that is not compressed.")
    data = await _body(request)
    try:
        told = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        refuse(400, "the body is not valid JSON.")
    if not isinstance(told, dict):
        refuse(400, "expected a JSON object.")
    return told


def _check_origin(request: Request, origin: str | None) -> None:
    """Refuse what another site has posted; a browser names the site and no script can change it."""
    told = request.headers.get("origin", "").lower()
    host = request.headers.get("host", "").lower()
    allowed = {f"http://{host}", f"https://{host}"} if origin is None else {origin}
    if own_name(host):
        allowed |= {f"http://{host}"}  # the organiser, beside the proxy
    site = request.headers.get("sec-fetch-site", "same-origin").lower()
    if not host or told not in allowed or site != "same-origin":
        refuse(403, "posts are only taken from this server's own pages.")


def own_name(host: str) -> bool:
    """Whether a Host header names this machine itself, with any port."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name in ("localhost", "127.0.0.1", "[::1]")


async def _body(request: Request) -> bytes:
    told = request.headers.get("content-length")
    if told is not None and not (told.isascii() and told.isdecimal() and len(told) < 20):
        refuse(400, "the length of the body is no number.")
    if told is not None and int(told) > MOST_BODY:
        _too_large()
    found = bytearray()

    async def read() -> None:
        async for piece in request.stream():
            found.extend(piece)
            if len(found) > MOST_BODY:
                _too_large()

    try:
        await asyncio.wait_for(read(), BODY_TIME)
    except TimeoutError:
        refuse(408, "the body did not come in time.", connection="close")
    return bytes(found)


def _too_large() -> NoReturn:
    # Closing tells the client to stop sending, and the server not to read on.
    refuse(413, f"the body is larger than {MOST_BODY // 1024} KiB.", connection="close")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class Limiter:
    """Counts wrong tries per client address; forgets the longest unseen when there are too many.

    Args:
        tries: How many are free.
        seconds: The time in which they come back.
        most: How many addresses are remembered.
        clock: What time it is.
    """

    def __init__(
        self,
        tries: int = 20,
        seconds: float = 60.0,
        most: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tries = tries
        self._rate = tries / seconds
        self._most = most
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 if it may now."""
        with self._lock:
            beyond = self._used(_network(address)) - (self._tries - 1)
        return max(1, math.ceil(beyond / self._rate)) if beyond > 0 else 0

    def wrong(self, address: str) -> None:
        """Note a wrong try."""
        network = _network(address)
        with self._lock:
            used = min(self._used(network) + 1, self._tries)
            self._seen[network] = (used, self._clock())
            self._seen.move_to_end(network)
            while len(self._seen) > self._most:
                self._seen.popitem(last=False)

    def __len__(self) -> int:
        return len(self._seen)

    def _used(self, network: str) -> float:
        used, at = self._seen.get(network, (0.0, self._clock()))
        return max(0.0, used - (self._clock() - at) * self._rate)


def _network(address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 that one IPv6 customer has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def client_of(request: Request, trust_proxy: bool) -> str:
    """The client's address: the connection's, or what our own proxy appended last."""
    if trust_proxy:
        told = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        if told:
            return told
    return request.client.host if request.client else ""
