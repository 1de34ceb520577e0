"""The Ray engine: workers are actors, placed by Ray on the machines of a cluster.

Ray does what it does well: it starts processes on other machines, counts CPUs, GPUs and memory,
and says when a process or a machine is gone. What a death means stays ours (`engines.crew`): Ray
restarts and repeats nothing.

Answers are fetched one by one, because Ray Client has no streaming actor methods; the next one is
asked for before this one is looked at, so nobody waits. No secret passes through Ray: workers get
a few plain settings, and find their credentials as their machine has them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final

from convergebench.engines import Hand, Trade, WorkerDied
from convergebench.engines.address import sought
from convergebench.engines.host import ANSWER, END, REFUSED, Host, Message
from convergebench.engines.joining import join, leave, lines_of, link_to, looked_for, prepare
from convergebench.engines.link import Link, lost
from convergebench.engines.local import LocalEngine
from convergebench.errors import EngineError, scrub
from convergebench.resources import Resources

PATIENCE: Final = 60.0
"""Seconds that the last machine with what a worker takes may be gone before the work ends."""
ENDING: Final = 20.0
"""Seconds that the cluster has to take note that a worker is to go."""
LOOK: Final = 2.0
"""Seconds after which who waits for an answer looks whether there is still a cluster."""
SLICE: Final = 0.2
"""Seconds after which who waits for room looks whether it is still wanted."""
SETTINGS: Final = re.compile(
    r"CONVERGEBENCH_(WEIGHTS|DATA|DEVICE|MODELS|CACHE\w*)|HF_HUB_OFFLINE"
    r"|AWS_(ENDPOINT_URL\w*|REGION|DEFAULT_REGION)|FSSPEC_S3_ENDPOINT_URL"
    r"|AZURE_STORAGE_ACCOUNT_NAME|GOOGLE_CLOUD_PROJECT"
)
"""Settings of the driver that workers take over, unless their machine has its own. No secrets."""


class Actor:
    """What runs on a machine of the cluster."""

    def __init__(self, told: str) -> None:
        self._host = Host(told)
        self._messages: Iterator[Message] = iter(())

    def where(self) -> str:
        """The machine's name; an answer says that the actor is there."""
        return socket.gethostname()

    def begin(self, task: bytes) -> Message:
        """Begin a task: its first message."""
        self._messages = self._host.messages(task)
        return next(self._messages)

    def more(self) -> Message:
        """The next message."""
        return next(self._messages, (END, b""))


class RayEngine:
    """Hires actors of a Ray cluster. It is knocked at now, and connected to when first needed.

    Args:
        address: `auto`, `HOST:PORT` or `ray://HOST:PORT`; None starts Ray on this machine, unless
            RAY_ADDRESS says where it runs.
        workers: How many of a trade at most.
        memory: GiB that the workers of large networks may use together on one machine.

    Raises:
        EngineError: Ray is not installed, or nobody is at the address.
    """

    name = "ray"
    together = True

    def __init__(
        self, address: str | None, workers: int | None = None, memory: float | None = None
    ) -> None:
        if find_spec("ray") is None:
            raise EngineError(
                "the engine ray needs Ray, which is not installed. "
                "Run pip install 'convergebench[ray]', on every machine of the cluster."
            )
        where = sought(address)
        self._where = where if _is_connected() else looked_for(where)
        self._workers = workers
        self._memory = int(memory * 2**30) if memory else None
        self._here = LocalEngine(workers, memory)
        self._ray: Any = None
        self._link = Link(None)
        self._ours = self._started = False
        self.gpus = False

    def hands(self, trade: Trade, tasks: int) -> int:
        """As many as the cluster has room for."""
        if trade.here:
            return self._here.hands(trade, tasks)
        nodes, taken = self._nodes(), self._taken(trade)
        room = sum(_slots(node, taken) for node in nodes)
        if not room:
            raise EngineError(
                f"no machine of the Ray cluster has what a worker takes: {_told(taken)}. "
                f"There {'is' if len(nodes) == 1 else 'are'} {_machines(nodes)}. "
                "Add a machine that has it."
            )
        return min(room, tasks, self._workers or room)

    def hire(self, trade: Trade, number: int, of: int, unless: Callable[[], bool]) -> Hand | None:
        """Have an actor placed; waits while others have the room."""
        if trade.here:
            return self._here.hire(trade, number, of, unless)
        taken = self._taken(trade)
        told = {
            "factory": trade.factory,
            "hello": dict(trade.hello),
            "threads": max(1, int(taken.cpus)),
            "memory": self._limit(trade),
            "paths": [path for path in sys.path if path],
            "defaults": settings(os.environ),
        }

        def place() -> Any:
            remote = self._ray.remote(Actor).options(
                num_cpus=taken.cpus,
                num_gpus=taken.gpus,
                memory=taken.memory or None,
                max_restarts=0,
                max_task_retries=0,
            )
            return remote.remote(json.dumps(told))

        with _reaching():
            hand = RayHand(self._ray, self._link, self._link.ask(place))
        fitting = time.monotonic()
        try:
            while not hand.is_there(SLICE):
                if unless():
                    hand.end()
                    return None
                if time.monotonic() - fitting > PATIENCE / 10:
                    fitting = self._still_fitting(taken, fitting)
        except BaseException:
            hand.end()
            raise
        return hand

    def close(self) -> None:
        """Disconnect, and end a Ray that was started here."""
        self._link.close()
        if self._ours:
            self._ours = False
            leave(self._ray, started=self._started)

    # -- the cluster --------------------------------------------------------------------------

    def _nodes(self) -> list[Mapping[str, float]]:
        """What each machine has."""
        if self._ray is None:
            self._connect()
            # Settled once: work must not move between GPUs and CPUs, whose last bits differ,
            # because machines come and go.
            self.gpus = any(node.get("GPU") for node in self._nodes())
        with _reaching():
            nodes = self._link.ask(self._ray.nodes)
        return [node["Resources"] for node in nodes if node["Alive"]]

    def _connect(self) -> None:
        prepare(self._where)
        import ray

        self._ray = ray
        if ray.is_initialized():  # in a notebook; then it is not ours to end
            self._link = link_to(ray, None)
            return
        self._link = join(ray, self._where)
        self._ours, self._started = True, self._where.text == "local"

    def _taken(self, trade: Trade) -> Resources:
        """What a worker takes here: the CPU where the cluster has no GPU.

        Ray counts its own memory, not what we were told to use of it. So where we were told, each
        takes so much of the largest machine that on none there are more than that holds.
        """
        nodes, taken = self._nodes(), trade.resources
        memory = taken.memory
        if memory and self._memory:
            largest = max((int(node.get("memory", 0)) for node in nodes), default=0)
            memory = max(memory, largest // max(1, self._memory // memory))
        return Resources(taken.cpus, taken.gpus if self.gpus else 0, memory)

    def _limit(self, trade: Trade) -> int:
        """Bytes that the system grants a worker: its share of the machine with the least to give.

        What it takes is what it needs as a rule; a very large picture may need more.
        """
        needed = trade.resources.memory
        if not needed:
            return 0
        if self._memory:
            return self._memory // max(1, self._memory // needed)
        taken = self._taken(trade)
        fitting = [(node, _slots(node, taken)) for node in self._nodes()]
        shares = [int(node["memory"]) // slots for node, slots in fitting if slots]
        return min(shares, default=needed)

    def _still_fitting(self, taken: Resources, since: float) -> float:
        """When there was last a machine with what is taken. Raises EngineError after a while."""
        if any(_slots(node, taken) for node in self._nodes()):
            return time.monotonic()
        if time.monotonic() - since > PATIENCE:
            raise EngineError(
                f"the machines that had what a worker takes ({_told(taken)}) have left the Ray "
                "cluster. What was done is saved; run the same command again when they are back."
            )
        return since


class RayHand:
    """An actor that works."""

    def __init__(self, ray: Any, link: Link, actor: Any) -> None:
        self._ray = ray
        self._link = link
        self._actor = actor
        self._ended = False
        self._where = actor.where.remote()

    def is_there(self, seconds: float) -> bool:
        """Whether it is placed and ready, after waiting so long at most. Raises WorkerDied."""
        self._link.check()
        with _reaching():
            done, _ = self._ray.wait([self._where], timeout=seconds)
        if done:
            self._got(self._where)
        return bool(done)

    def ask(self, task: bytes) -> Iterator[bytes]:
        """Its answers as they come."""
        with _reaching():
            call = self._actor.begin.remote(task)
        while True:
            kind, body = self._got(call)
            if kind == END:
                return
            if kind == REFUSED:
                raise EngineError(body.decode())
            if kind != ANSWER:
                raise WorkerDied(body.decode())
            with _reaching():
                call = self._actor.more.remote()
            yield body

    def end(self) -> None:
        """Kill it: it writes nothing, and so leaves nothing behind."""
        if not self._ended:
            self._ended = True
            with contextlib.suppress(Exception):  # it is gone, or the cluster is
                self._link.ask(lambda: self._ray.kill(self._actor), ENDING, vital=False)

    def _got(self, call: Any) -> Any:
        """What a call answers. Waits in slices: it may never answer where the cluster is lost."""
        while True:
            self._link.check()
            try:
                with _reaching(self._ray.exceptions.RayError):
                    return self._ray.get(call, timeout=LOOK)
            except self._ray.exceptions.GetTimeoutError:
                if self._ended:
                    raise WorkerDied("it was ended") from None
            except self._ray.exceptions.RayError as error:
                raise WorkerDied(_cause(error)) from None


def _is_connected() -> bool:
    """Whether this process has a cluster already, as a notebook may."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


@contextlib.contextmanager
def _reaching(*other: type[Exception]) -> Iterator[None]:
    """What Ray raises here, but for the others, means that the cluster cannot be reached."""
    passed: tuple[type[Exception], ...] = (EngineError, *other)
    try:
        yield
    except passed:
        raise
    except Exception as error:
        raise lost(lines_of(error)) from error


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The plain settings among environment variables; not an address with a password in it."""
    return {
        name: value
        for name, value in environment.items()
        if SETTINGS.fullmatch(name) and "@" not in value
    }


def _slots(node: Mapping[str, float], taken: Resources) -> int:
    """How many workers a machine has room for."""
    wants = {"CPU": taken.cpus, "GPU": taken.gpus, "memory": taken.memory}
    return min((int(node.get(n, 0) / amount) for n, amount in wants.items() if amount), default=1)


def _told(taken: Resources) -> str:
    parts = [f"{taken.cpus:g} CPU"]
    parts += [f"{taken.gpus:g} GPU"] if taken.gpus else []
    parts += [f"{taken.memory / 2**30:.1f} GiB of memory"] if taken.memory else []
    return ", ".join(parts)


def _machines(nodes: list[Mapping[str, float]]) -> str:
    shown = [
        _told(Resources(n.get("CPU", 0), n.get("GPU", 0), int(n.get("memory", 0)))) for n in nodes
    ]
    return " and ".join(f"one with {text}" for text in shown[:4]) or "none"


def _cause(error: Exception) -> str:
    """Why Ray says that an actor died, in a few words."""
    text, kind = str(error), type(error).__name__
    if "OutOfMemory" in kind or ("memory" in text and "OOM" in text):
        return "out of memory: Ray's memory monitor killed it"
    if "rpc_code" in text:
        return "its machine cannot be reached"
    if "node" in text.lower() and (
        "NodeDied" in kind or "node was terminated" in text or "node failure" in text.lower()
    ):
        return "its machine is gone"
    told = re.search(r"Worker exit detail: ([^.\n]+)", text) or re.search(r"(\w+Error: .+)", text)
    return scrub(told.group(1) if told else text.strip().partition("\n")[0])[:300]
