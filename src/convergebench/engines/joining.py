"""Joining a Ray cluster, or starting Ray here: what is tried, and what is told where it fails."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import platform
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from convergebench.engines.address import Address
from convergebench.engines.link import KNOCK, Link, knock
from convergebench.errors import EngineError, scrub

RECONNECTS: Final = "RAY_gcs_rpc_server_reconnect_timeout_s"
HOURS: Final = 24 * 3600
"""Seconds that Ray may wait for a head that is gone: longer than we do."""
LEAVING: Final = 20.0
"""Seconds that Ray has to take leave of a cluster."""
DIED: Final = re.compile(r"Starting Ray client server failed|psutil\.(ZombieProcess|NoSuchProcess)")
"""What a head says when the process it started for a client died before it was there."""


def join(ray: Any, where: Address) -> Link:
    """Connect Ray to the cluster at that address, or start it here; gives the way to its head.

    Raises:
        EngineError: Nobody is there, or does not let us in.
    """
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    started = where.text == "local"
    if started:
        quiet["include_dashboard"] = False
    _knock(where)
    _prints(ray, False)
    try:
        with _own_signals(), _own_streams():
            _ask_for_leave(where)
            _init(ray, where.text, quiet)
        return link_to(ray, where.host_and_port if "://" in where.text else None)
    except BaseException as error:  # ConnectionError, RuntimeError, ValueError, of grpc …
        leave(ray, started=started)
        if not isinstance(error, Exception):
            raise
        if started:
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
            f"the Ray cluster at {where.text} cannot be used ({lines_of(error)}). {remedy}"
        ) from error


def link_to(ray: Any, client: tuple[str, int] | None) -> Link:
    """The way to the head of the cluster that Ray is connected to; of a client, to its server."""
    if client is not None or ray.util.client.ray.is_connected():
        return Link(client)
    return Link(Address(ray.get_runtime_context().gcs_address).host_and_port)


def prepare(where: Address) -> None:
    """Settings that Ray reads when it is loaded; what the user has set stays."""
    # Ray would tell its makers that it is used; nobody here has agreed to that.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if where.text != "local":  # the processes of a Ray that starts here would take them over
        # A minute after its head has gone Ray would end this process. We notice before, and must
        # not be ended while we save.
        os.environ.setdefault(RECONNECTS, str(HOURS))
    elif os.environ.get(RECONNECTS) == str(HOURS):  # of an earlier connection of this process
        del os.environ[RECONNECTS]


def leave(ray: Any, *, started: bool) -> None:
    """Disconnect, also where the head is gone, which takes Ray some seconds; end what is ours."""
    if started:
        ray.shutdown()
    else:
        leaving = threading.Thread(target=ray.shutdown, name="leaving", daemon=True)
        leaving.start()
        leaving.join(LEAVING)
        if leaving.is_alive():  # Python's own end would wait for it in vain
            atexit.unregister(ray.shutdown)
            return
    _prints(ray, True)


def _prints(ray: Any, whether: bool) -> None:
    """Whether Ray prints on the terminal what its parts tell.

    Those are the last words of a node that died, and the state of all that was in it, dozens of
    lines. What matters is in our sentences.
    """
    # A client is not quiet by being told so, and its channel of logs sets a level of its own.
    logging.getLogger("ray").setLevel(logging.NOTSET if whether else logging.ERROR)
    logging.getLogger("ray.util.client.logsclient").disabled = not whether
    with contextlib.suppress(AttributeError):  # Ray keeps it to itself, and may move it
        ray._private.worker._worker_logs_enabled = whether


def looked_for(where: Address) -> Address:
    """Where that leads, once somebody there takes a connection; `local` leads nowhere.

    Raises:
        EngineError: Nobody does.
    """
    found = _found(where)
    _knock(found)
    return found


def _found(where: Address) -> Address:
    """Where `auto` leads, as Ray finds it: that may be a cluster that is long gone."""
    if where.text != "auto":
        return where
    prepare(where)
    try:
        from ray._private.services import canonicalize_bootstrap_address_or_die as found
    except ImportError:  # Ray keeps it to itself, and may move it
        return where
    try:
        return Address(str(found("auto")))
    except ConnectionError as error:
        raise EngineError(
            "there is no Ray cluster at auto: none was found that was started on this machine. "
            "Start one with `ray start --head`, or give HOST:PORT of one elsewhere; without an "
            "address, Ray is started on this machine."
        ) from error


def _knock(where: Address) -> None:
    """Raise EngineError where nobody listens: Ray would try for minutes, and hear no Ctrl-C."""
    if where.host_and_port is None:
        return
    try:
        knock(where.host_and_port)
    except (OSError, ValueError) as error:
        said, instead = ("", "leave the address out")
        if where.by_variable:
            said, instead = ", which RAY_ADDRESS names", "unset RAY_ADDRESS and give no address"
        raise EngineError(
            f"there is no Ray cluster at {where.text}{said} ({lines_of(error)}). Start one with "
            f"`ray start --head`, or {instead} to start Ray on this machine."
        ) from error


def _ask_for_leave(where: Address) -> None:
    """Raise ConnectionError where our token is not the cluster's.

    Ray would try twenty times, and print a line of its own about each.
    """
    if where.host_and_port is None or "://" in where.text:
        return
    try:
        from ray._private.grpc_utils import grpc, init_grpc_channel
        from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

        with init_grpc_channel(where.text) as channel:
            asked = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel).GetClusterId
            try:
                asked(gcs_service_pb2.GetClusterIdRequest(), timeout=KNOCK)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                    raise ConnectionError(error.details()) from None
    except (ImportError, AttributeError, TypeError):  # Ray keeps it to itself, and may change it
        return


@contextlib.contextmanager
def _own_streams() -> Iterator[None]:
    """Whatever stdout and stderr are stays what it is.

    Ray has them wrapped by a library for colours, which resets those at the exit: where they lead
    into a display that is drawn over itself, that is garbage after its end.
    """
    colours = sys.modules.get("colorama.initialise")
    ours = colours is None or not colours.atexit_done
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        colours = sys.modules.get("colorama.initialise")
        if ours and colours is not None:
            sys.stdout, sys.stderr = before
            atexit.unregister(colours.reset_all)


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
