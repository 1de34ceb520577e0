"""Engines: where work is done. The seam is small: a trade, a hand that works at it, who hires.

A *trade* says what a worker does and what it takes. A *hand* is one worker: it is asked a task, as
bytes, and answers with some bytes as they come, or dies. An *engine* hires hands: processes of this
machine (`local`), or actors on the machines of a Ray cluster (`ray`). The crew (`engines.crew`)
hands out tasks and replaces hands that died, whatever the engine.

Workers read; only the driver writes. What goes to a worker and comes back is JSON and images, never
a pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from convergebench.engines.address import sought
from convergebench.errors import SettingsError, UnknownName
from convergebench.resources import ONE_CORE, Resources

NAMES: Final = ("local", "ray")
DEATHS: Final = 3
"""How many workers a piece of work may kill before it is given up."""
MOST_MEMORY: Final = 2.0**30
"""GiB that no machine has, and that the system can still be told as a limit."""


class WorkerDied(Exception):
    """A worker died over its task, or before it had one; the text says of what."""


@dataclass(frozen=True)
class Trade:
    """What a worker does, and what it takes.

    Attributes:
        factory: `package.module:function`, called once where the work is done. It gives an object
            whose `work(bytes)` answers an iterator of bytes.
        hello: Keyword arguments of the factory; plain JSON.
        resources: What each worker takes. It works with as many threads as it takes CPUs, whatever
            the machine: their number moves the last bits of what networks compute.
        here: Whether it must be done on the driver's machine, because it needs a secret that is
            only there.
    """

    factory: str
    hello: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = ONE_CORE
    here: bool = False


class Hand(Protocol):
    """One worker. One thread asks it; any thread may end it, which ends the asking."""

    def ask(self, task: bytes) -> Iterator[bytes]:
        """Its answers as they come. Raises WorkerDied, or EngineError if it cannot work at all."""
        ...

    def end(self) -> None:
        """End it now, whatever it is doing."""
        ...


class Engine(Protocol):
    """Hires hands."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    @property
    def together(self) -> bool:
        """Whether several trades are worked at once; else one after the other."""
        ...

    @property
    def gpus(self) -> bool:
        """Whether who wishes for a GPU gets one; known once somebody asked for hands."""
        ...

    def hands(self, trade: Trade, tasks: int) -> int:
        """How many workers of a trade there can be at most, for so many tasks.

        Raises EngineError when nothing here, or in the whole cluster, has what it takes.
        """
        ...

    def hire(self, trade: Trade, number: int, of: int, unless: Callable[[], bool]) -> Hand | None:
        """Worker `number` of `of`, as soon as there is room for it; None once `unless()`.

        Raises WorkerDied when it died on the way, EngineError when there can be none.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def open_engine(
    name: str = "local",
    address: str | None = None,
    *,
    workers: int | None = None,
    memory: float | None = None,
) -> Engine:
    """The engine of that name.

    Args:
        name: `local` or `ray`.
        address: Of a Ray cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`. Without one, Ray is
            started on this machine and ended with the engine.
        workers: How many workers at most.
        memory: GiB that the workers of large networks may use together on one machine; four fifths
            of it by default.

    Raises:
        UnknownName: No such engine.
        SettingsError: An address without Ray, or what is none; memory that no machine has.
        EngineError: Ray is not installed, or the cluster cannot be reached.
    """
    require_engine(name, address)
    if memory is not None and not 0 < memory < MOST_MEMORY:  # not a number is neither
        raise SettingsError(
            f"memory for workers is a number of GiB above 0, got {memory:g}. Leave it out for four "
            "fifths of the machine."
        )
    if name == "ray":
        from convergebench.engines.ray import RayEngine

        return RayEngine(address, workers=workers, memory=memory)
    from convergebench.engines.local import LocalEngine

    return LocalEngine(workers=workers, memory=memory)


def require_engine(name: str, address: str | None) -> None:
    """Raise UnknownName or SettingsError where there is no such engine, or no such address."""
    if name not in NAMES:
        raise UnknownName("engine", name, NAMES)
    if address is not None and name != "ray":
        raise SettingsError("an address is that of a Ray cluster: give --engine ray, too.")
    if name == "ray":
        sought(address)
