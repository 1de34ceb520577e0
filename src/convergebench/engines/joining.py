"""Joining a Ray cluster, or starting Ray here: what is tried, and what is told where it fails."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from convergebench.errors import EngineError, scrub

KNOCK: Final = 10.0
"""Seconds that the head of a cluster has to take a connection."""
DIED: Final = re.compile(r"Starting Ray client server failed|psutil\.(ZombieProcess|NoSuchProcess)")
"""What a head says when the process it started for a client died before it was there."""


def join(ray: Any, address: str) -> None:
    """Connect Ray to the cluster at that address, or start it here (`local`).

    Raises:
        EngineError: Nobody is there, or does not let us in.
    """
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        quiet["include_dashboard"] = False
    try:
        _knock(_found(address))
    except (OSError, ValueError) as error:
        raise EngineError(
            f"there is no Ray cluster at {address} ({lines_of(error)}). Start one with `ray start "
            "--head`, or leave the address out to start Ray on this machine."
        ) from error
    try:
        with _own_signals():
            _init(ray, address, quiet)
    except Exception as error:  # ConnectionError, RuntimeError, ValueError, of grpc …
        if address == "local":
            raise EngineError(f"Ray cannot be started here ({lines_of(error)}).") from error
        remedy = (
            "Try again; and start its head with GRPC_ENABLE_FORK_SUPPORT=false in the environment, "
            "without which Ray's servers for clients now and then die at their start."
            if DIED.search(str(error))
            else "If it asks for a token, set RAY_AUTH_MODE=token here, too, and give the token as "
            f"RAY_AUTH_TOKEN or in ~/.ray/auth_token. It must have Ray {ray.__version__} and "
            f"Python {platform.python_version()}, as here."
        )
        raise EngineError(
            f"the Ray cluster at {address} cannot be used ({lines_of(error)}). {remedy}"
        ) from error


def _found(address: str) -> str:
    """Where `auto` leads, as Ray finds it: that may be a cluster that is long gone."""
    told = os.environ.get("RAY_ADDRESS", "")
    if address != "auto" or told:
        return told if address == "auto" else address
    try:
        from ray._private.services import canonicalize_bootstrap_address_or_die as found
    except ImportError:  # Ray keeps it to itself, and may move it
        return address
    return str(found(address))


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until Ray is there; given twice, they do not.

    Ray starts processes by forking, where Python ignores what a signal's handler raises and leaves
    locks held. And it would have SIGTERM end the process by its own way, unsaved.
    """
    if threading.current_thread() is not threading.main_thread():  # Ray does not touch them, either
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard: list[int] = []

    def give_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            give_back()
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        give_back()
        if heard:
            signal.raise_signal(heard[0])


def _knock(address: str) -> None:
    """Raise OSError where nobody listens, and what knows no way out: Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK).close()


def _init(ray: Any, address: str, quiet: Mapping[str, Any]) -> None:
    """Connect. A client's server that dies while a busy head starts it is started again."""
    for left in (2, 1, 0):
        try:
            ray.init(address, **quiet)
            return
        except Exception as error:
            ray.shutdown()  # or a later connection is taken for the one that failed
            if not left or not DIED.search(str(error)):
                raise


def lines_of(error: Exception) -> str:
    """The first line of what an error says, and the last where the first only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = " ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else ""
    cause = error.__cause__
    if isinstance(cause, Exception) and type(cause).__name__ == "AuthenticationError":
        told = lines_of(cause)
    return scrub(told or type(error).__name__)[:500].rstrip(".")
