"""Editors whose edits are made by hands of an engine: one per GPU, or as the cluster has room.

Only editors that declare `resources` and are free go there: a call whose worker died is made again,
and nothing is paid for twice. Calls of services are made by the driver, which has their keys and
waits for them.

A call is made in a *turn*: the caller first gets a hand, however long that takes, and only then its
deadline begins. A hand that is still at work when its turn ends (the deadline passed) is ended; an
edit whose worker dies gets another turn, and after the third death it is a failed step.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from convergebench.editor import Editor, EditorSpec, EditReply, EditRequest
from convergebench.engines import DEATHS, Engine, Hand, Trade, WorkerDied, open_engine
from convergebench.engines.letters import (
    error_bytes,
    read_reply,
    read_request,
    reply_bytes,
    request_bytes,
)
from convergebench.errors import AccountBlocked, ConvergeBenchError, EditorFailed, EngineError
from convergebench.registry import open_editor

IDLE: Final = 3.0
"""Seconds after which a hand that nobody asks makes room for an editor that waits."""
SLICE: Final = 0.2
"""Seconds after which who waits for a hand looks whether the run was stopped."""


@contextlib.contextmanager
def placed(
    editors: Mapping[str, Editor], name: str, address: str | None, chains: Mapping[str, int]
) -> Iterator[dict[str, Editor]]:
    """The editors, the free ones that declare resources with hands of that engine.

    Args:
        editors: By name.
        name: The engine's name; `local` leaves all of them in this process.
        address: The engine's address.
        chains: How many chains each has to walk.
    """
    engine = open_engine(name, address)
    away: list[AwayEditor] = []
    try:
        found = dict(editors)
        for editor, one in editors.items():
            taken = one.spec.resources if one.spec.price == 0 else None
            if name != "local" and taken is not None and chains.get(editor):
                trade = Trade(
                    "convergebench.engines.editing:EditingWorker",
                    {"name": editor, "version": one.spec.version},
                    taken,
                )
                found[editor] = AwayEditor(one.spec, engine, trade, chains[editor], away)
        yield found
    finally:
        for each in away:
            each.close()
        engine.close()


class AwayEditor:
    """An editor whose edits are made elsewhere; `spec.concurrency` is how many at once.

    Args:
        spec: The editor's own.
        engine: Who hires.
        trade: What its hands do.
        chains: How many chains it walks: more hands than that would idle.
        company: All such editors of the run, which share the machines; this one is added.
    """

    def __init__(
        self,
        spec: EditorSpec,
        engine: Engine,
        trade: Trade,
        chains: int,
        company: list[AwayEditor],
    ) -> None:
        self._most = engine.hands(trade, chains)
        self.spec: Final = replace(spec, concurrency=self._most)
        self.on_cores: Final = trade.resources.gpus > 0 and not engine.gpus
        self._engine = engine
        self._trade = trade
        self._company = company
        self._changed = threading.Condition()
        self._free: list[tuple[Hand, float]] = []
        self._hired: set[Hand] = set()
        self._hiring: set[threading.Thread] = set()
        self._stillborn = 0
        self._error: Exception | None = None
        self._closed = False
        company.append(self)

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit, in a turn of its own."""
        with self.turn(threading.Event()) as seat:
            if seat is None:
                raise EditorFailed("there was no worker for it")
            return seat.edit(request)

    @contextlib.contextmanager
    def turn(self, stop: threading.Event, number: int = 1) -> Iterator[Seat | None]:
        """Wait for a hand and hold it for one call; None when the run is stopped before.

        Args:
            stop: Set when the run is to stop.
            number: Which try of the same edit it is, after workers died.
        """
        hand = self._take(stop)
        seat = Seat(self.spec, hand, number) if hand is not None else None
        try:
            yield seat
        finally:
            if seat is not None:
                self._give_back(seat)

    def rest(self, since: float) -> None:
        """End the hands that nobody has asked since then."""
        with self._changed:
            idle = [hand for hand, at in self._free if at < since]
            self._free = [(hand, at) for hand, at in self._free if at >= since]
            self._hired -= set(idle)
        for hand in idle:
            hand.end()

    def close(self) -> None:
        """End all hands."""
        with self._changed:
            self._closed = True
            hiring = list(self._hiring)
        for thread in hiring:
            thread.join()
        for hand in self._hired:
            hand.end()
        self._free, self._hired = [], set()

    def _take(self, stop: threading.Event) -> Hand | None:
        """The first hand that is free; one more is hired meanwhile if there can be more."""
        while not stop.is_set():
            with self._changed:
                if self._error is not None:
                    raise self._error
                if self._free:
                    return self._free.pop()[0]
                if len(self._hired) + len(self._hiring) < self._most:
                    thread = threading.Thread(target=self._hire, daemon=True)
                    self._hiring.add(thread)
                    thread.start()
                self._changed.wait(SLICE)
            for other in self._company:
                if other is not self:
                    other.rest(time.monotonic() - IDLE)
        return None

    def _hire(self) -> None:
        """Hire a hand, however long it takes; it is not given up when another one comes free."""
        hand: Hand | None = None
        error: Exception | None = None
        try:
            number = len(self._hired) % self._most
            hand = self._engine.hire(self._trade, number, self._most, lambda: self._closed)
        except WorkerDied as died:
            with self._changed:
                self._stillborn += 1
                rounds = self._stillborn / len(self._hiring)
            if rounds >= DEATHS:  # of all who are hired at once, and none lived
                error = EngineError(f"no worker can be started: {died}")
            else:
                time.sleep(2.0**rounds)  # a machine short of memory may have some soon
        except Exception as raised:  # who waits for a hand raises it
            error = raised
        with self._changed:
            self._hiring.discard(threading.current_thread())
            self._error = self._error or error
            if hand is not None:
                self._stillborn = 0
                self._hired.add(hand)
                self._free.append((hand, time.monotonic()))
            self._changed.notify_all()

    def _give_back(self, seat: Seat) -> None:
        gone = [seat.hand] if seat.busy or seat.died else []
        with self._changed:
            if seat.died:
                # Who idled may have died of the same, with the machine; and would be taken for
                # the next deaths of the same edit.
                gone += [hand for hand, _ in self._free]
                self._free = []
            self._hired -= set(gone)
            if not gone:
                self._free.append((seat.hand, time.monotonic()))
            self._changed.notify_all()
        for hand in gone:
            hand.end()


class Seat:
    """An editor for one call, which has its hand.

    Attributes:
        busy: Whether the hand is at work.
        died: What it died of, or empty.
    """

    def __init__(self, spec: EditorSpec, hand: Hand, number: int) -> None:
        self.spec: Final = spec
        self.hand: Final = hand
        self.busy = False
        self.died = ""
        self._number = number

    def edit(self, request: EditRequest) -> EditReply:
        """Have the hand make the edit."""
        letter = request_bytes(request)
        self.busy = True
        try:
            (answer,) = self.hand.ask(letter)
        except WorkerDied as error:
            self.died = str(error)
            times = "once" if self._number == 1 else f"{self._number} times"
            raise EditorFailed(f"its worker died {times} ({error})") from None
        except EngineError as error:  # it cannot be opened there: not a word about this edit
            raise AccountBlocked(str(error)) from None
        self.busy = False
        return read_reply(answer, request.on_task)


class EditingWorker:
    """Makes edits where it is.

    Args:
        name: The editor's name, options included.
        version: Its version on the driver, which is what is recorded.

    Raises:
        EngineError: This machine has another version of it, or none.
    """

    def __init__(self, name: str, version: str) -> None:
        try:
            self._editor = open_editor(name)
        except ConvergeBenchError as error:
            raise EngineError(
                f"a worker on {socket.gethostname()} cannot open {name}: {error} Every machine "
                "needs the same code."
            ) from error
        if self._editor.spec.version != version:
            raise EngineError(
                f"a worker on {socket.gethostname()} has version {self._editor.spec.version} of "
                f"{name}, and {version} is to be recorded. Every machine needs the same code."
            )

    def work(self, task: bytes) -> Iterator[bytes]:
        """One edit; whatever the editor raises is an answer."""
        tasks: list[Mapping[str, Any]] = []
        try:
            reply = self._editor.edit(read_request(task, tasks.append))
            answer = reply_bytes(reply, tasks)
        except Exception as error:
            answer = error_bytes(error)
        yield answer
