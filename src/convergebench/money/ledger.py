"""The ledger of a run: what every paid call was to cost, and what it did cost.

`ledger.jsonl` is only ever appended to, and every line is on the disk before the run goes on: one
when a call is about to be made, one when the provider has begun a task for it, one when it is
settled. A step's record is written before its call is settled, and names it; so whatever two writes
a kill comes between, `mend` knows what to do.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from convergebench.chain import PAUSES, Call, Chain, Step
from convergebench.cycle import Record
from convergebench.errors import StoreDamaged, StoreError, explain
from convergebench.lines import torn_off
from convergebench.store import LEDGER, RunStore
from convergebench.wording import counted

KILLED: Final = "in flight when the run was killed; may have been billed"
UNRECORDED: Final = "settled in the ledger, but its record is lost"
CENT: Final = 1e-6
"""Sums of dollars that differ by less are equal."""

Basis = Literal["reported", "usage", "rule", "assumed", "none"]
"""Where a settled amount comes from; `none` where nothing was billed."""

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Reserved(Record):
    """A paid call is about to be made.

    Attributes:
        call: Its name: the end of the chain's name, the step, and which call of that step.
        provider: Whose account it is on, where the editor tells.
        dollars: The most it may cost, which the budget sets aside.
        expected: What is assumed that it cost, should nobody ever know.
        task: A task of an earlier call that is only collected.
    """

    event: Literal["reserved"] = "reserved"
    call: str
    at: str
    chain: str
    step: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1)]
    editor: str
    provider: str = ""
    dollars: Dollars
    expected: Dollars
    seed: int | None = None
    task: dict[str, Any] = Field(default_factory=dict)


class Begun(Record):
    """The provider has begun a task for a call; what is needed to ask for it."""

    event: Literal["task"] = "task"
    call: str
    at: str
    task: dict[str, Any]


class Settled(Record):
    """What a call cost in the end."""

    event: Literal["settled"] = "settled"
    call: str
    at: str
    dollars: Dollars
    basis: Basis
    outcome: str
    request_id: str | None = None


Line = Reserved | Begun | Settled
_LINES: Final[TypeAdapter[Line]] = TypeAdapter(Annotated[Line, Field(discriminator="event")])


@dataclass(frozen=True)
class Entry:
    """All lines of one call."""

    reserved: Reserved
    task: Mapping[str, Any] = field(default_factory=dict)
    settled: Settled | None = None


def read_ledger(run: Path) -> dict[str, Entry]:
    """The calls of a run's ledger by name, in order; empty where there is none.

    A last line that is not whole is left out. Raises StoreDamaged.
    """
    path = run / LEDGER
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    torn = torn_off(data)
    found: dict[str, Entry] = {}
    for number, text in enumerate(data[: len(data) - len(torn)].splitlines(), 1):
        try:
            line = _LINES.validate_json(text)
        except ValidationError as error:
            raise StoreDamaged(f"{path}, line {number}: {explain(error)}") from error
        entry = found.get(line.call)
        twice = entry and (entry.settled if isinstance(line, Settled) else True)
        if twice and not isinstance(line, Begun):
            raise StoreDamaged(f"{path}, line {number}: call {line.call} is {line.event} twice")
        if isinstance(line, Reserved):
            found[line.call] = Entry(line, line.task)
        elif entry is None:
            raise StoreDamaged(f"{path}, line {number}: call {line.call} was never reserved")
        elif isinstance(line, Begun):
            found[line.call] = replace(entry, task=line.task)
        else:
            found[line.call] = replace(entry, settled=line)
    return found


class Ledger:
    """The ledger of a run that is being written; for several threads at once."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._storing = threading.Lock()
        self.entries = read_ledger(store.path)
        self._counts: dict[tuple[str, int], int] = {}
        self._later: ThreadPoolExecutor | None = None
        self._closed = False
        for entry in self.entries.values():
            self._count(entry.reserved)

    def name(self, chain: str, step: int) -> str:
        """A new name for a call of that step."""
        with self._lock:
            count = self._counts[chain, step] = self._counts.get((chain, step), 0) + 1
        return f"{chain.rpartition('--')[2]}.{step}.{count}"

    def write(self, line: Line) -> None:
        """Append a line: it is on the disk when this returns, and on object storage."""
        self._keep(line)
        try:
            self._push()
        except StoreError:
            # Kept here and not stored: the call is not made, and must not count as doubtful.
            if isinstance(line, Reserved):
                self._keep(
                    Settled(call=line.call, at=now(), dollars=0.0, basis="none", outcome="failed")
                )
                with contextlib.suppress(StoreError):
                    self._push()
            raise

    def note(self, *lines: Line) -> None:
        """Append lines of a call that is under way: they are on the disk when this returns.

        Nobody waits until object storage has them: that may take minutes, and the call's time runs.
        Where it cannot take them, the writing of the call's record fails as well, and tells.
        """
        with self._lock:
            if self._closed:
                return
            for line in lines:
                self._keep(line)
            if self._store.is_remote:
                self._later = self._later or ThreadPoolExecutor(1, "ledger")
                self._later.submit(self._push)

    def close(self) -> None:
        """Wait for what is being stored: nothing may be written once the run is let go."""
        with self._lock:
            self._closed = True
        if self._later:
            self._later.shutdown()

    def _keep(self, line: Line) -> None:
        with self._lock:  # one at a time, but not for as long as it takes to store them
            if isinstance(line, Reserved):
                self._count(line)
            self._store.append_ledger(line.model_dump_json().encode(), store=False)

    def _push(self) -> None:
        with self._storing:
            self._store.stored(LEDGER)

    def _count(self, line: Reserved) -> None:
        # By the names, not the number of lines: free calls that were turned away have none.
        number = line.call.rpartition(".")[2]
        place = (line.chain, line.step)
        self._counts[place] = max(
            int(number) if number.isdecimal() else 0, self._counts.get(place, 0)
        )


@dataclass
class Mended:
    """What a run finds when it takes up an earlier one.

    Attributes:
        chains: The chains, with the records that were missing.
        open: Calls by chain whose task was begun and not collected.
        held: Dollars reserved for them.
        notes: What was done, for the user.
    """

    chains: list[Chain]
    open: dict[str, Entry] = field(default_factory=dict)
    held: float = 0.0
    notes: list[str] = field(default_factory=list)


def mend(store: RunStore, ledger: Ledger, chains: Iterable[Chain]) -> Mended:
    """Bring ledger and records together after a kill.

    - Recorded, but not settled: it is settled as the record says.
    - Neither, with a task: it stays open, and the task is asked for.
    - Neither, without a task: it may have been billed. A `failed` record with the expected price is
      appended and the call settled with the same; the step is made again.
    - Settled with a price, but not recorded (its frame was lost in a power cut): recorded so.
    """
    known = {chain.key.id: chain for chain in chains}
    result = Mended(list(known.values()))
    recorded = {s.call.ledger: (c, s) for c in known.values() for s in c.steps if s.call.ledger}
    doubtful = 0
    for call, entry in ledger.entries.items():
        told, chain = entry.reserved, known.get(entry.reserved.chain)
        if chain is None:
            # A free call has no chain before it is answered; its task may still be had.
            if entry.settled is None and entry.task and told.step == 1:
                result.open[told.chain] = entry
            elif entry.settled is None and not told.dollars:
                ledger.write(
                    Settled(call=call, at=now(), dollars=0.0, basis="none", outcome="failed")
                )
            continue
        if entry.settled and (call in recorded or not entry.settled.dollars):
            continue
        if call in recorded:
            _settle(ledger, told.call, recorded[call][1])
        elif entry.settled is None and entry.task and told.step == chain.length + 1:
            result.open[told.chain] = entry
            result.held += told.dollars
        else:
            step = _unanswered(store, chain, entry)
            store.append(told.chain, step)
            known[told.chain] = chain.with_step(step)
            if entry.settled is None:
                _settle(ledger, told.call, step)
            doubtful += 1
    for call, (chain, step) in recorded.items():
        if call not in ledger.entries and step.call.cost:
            _enter(ledger, chain, step)
    if doubtful:
        result.notes.append(
            f"{counted(doubtful, 'call', 'was', 'were')} in flight when the run was killed and may "
            "have been billed: counted at the expected price, and made again"
        )
    if result.open:
        result.notes.append(
            f"{counted(len(result.open), 'task')} begun before the run was killed: asked for, not "
            "begun again"
        )
    result.chains = list(known.values())
    return result


def lost_calls(chain: Chain) -> list[Step]:
    """The records of the next step whose answers were lost and that are made again."""
    found: list[Step] = []
    for record in reversed(chain.steps):
        if record.step != chain.length + 1 or not (record.again or record.outcome in PAUSES):
            break
        if record.again:
            found.append(record)
    return found


def _settle(ledger: Ledger, call: str, step: Step) -> None:
    ledger.write(
        Settled(
            call=call,
            at=now(),
            dollars=step.call.cost or 0.0,
            basis=step.call.basis or "none",
            outcome=step.outcome,
            request_id=step.call.request_id,
        )
    )


def _enter(ledger: Ledger, chain: Chain, step: Step) -> None:
    """Both lines of a call that only turned out to cost something when its answer came."""
    ledger.write(
        Reserved(
            call=step.call.ledger,
            at=now(),
            chain=chain.key.id,
            step=step.step,
            attempt=max(1, step.attempts),
            editor=chain.key.editor,
            dollars=0.0,
            expected=0.0,
            seed=step.seed,
        )
    )
    _settle(ledger, step.call.ledger, step)


def _unanswered(store: RunStore, chain: Chain, entry: Entry) -> Step:
    told, settled = entry.reserved, entry.settled
    cycle, step = store.suite.cycle_of(chain.key.cycle), chain.length + 1
    prompt = cycle.edit_at(step).wording(chain.key.settings.phrasing, cycle.round_of(step))
    return Step(
        step=step,
        outcome="failed",
        prompt=prompt,
        inputs=tuple(chain.frames[i].sha256 for i in cycle.inputs_at(step)),
        seed=told.seed,
        detail=UNRECORDED if settled else KILLED,
        attempts=max(1, told.attempt - sum(record.attempts for record in lost_calls(chain))),
        call=Call(
            cost=settled.dollars if settled else told.expected,
            basis="assumed",
            ledger=told.call,
        ),
        started=told.at,
        again=True,
    )


def differences(entries: Mapping[str, Entry], chains: Iterable[Chain]) -> list[str]:
    """Where the ledger and the chains' records disagree; calls in flight apart."""
    steps = {
        step.call.ledger: (chain.key.id, step)
        for chain in chains
        for step in chain.steps
        if step.call.ledger
    }
    found = []
    for call, entry in entries.items():
        settled = entry.settled
        if settled is None or (call not in steps and not settled.dollars):
            continue
        if call not in steps:
            found.append(
                f"{LEDGER}: call {call} cost ${settled.dollars:.4f}, but no record of "
                f"{entry.reserved.chain} names it"
            )
            continue
        cost = steps[call][1].call.cost or 0.0
        if abs(cost - settled.dollars) > CENT:
            found.append(
                f"{LEDGER}: call {call} cost ${settled.dollars:.4f}, but ${cost:.4f} by the record "
                f"of {steps[call][0]}, a difference of ${abs(cost - settled.dollars):.4f}"
            )
    for call, (chain_id, step) in steps.items():
        if call not in entries and step.call.cost:
            found.append(
                f"{LEDGER}: does not know call {call}, which cost ${step.call.cost:.4f} by the "
                f"record of {chain_id}"
            )
    return found


def now() -> str:
    """The time, for records."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
