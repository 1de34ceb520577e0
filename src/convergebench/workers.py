"""Units of scoring as tasks of a crew: what a worker answers, and what is done about its death.

Rows that came before a death are kept and never measured twice. The rest of the unit is tried
metric by metric; a picture that kills three workers becomes null rows with that reason, and the
others go on.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from convergebench.engines import DEATHS, Trade
from convergebench.errors import (
    EngineError,
    MetricUnavailable,
    PluginBroken,
    StoreDamaged,
    StoreError,
)
from convergebench.measure import Measurer, Row, Unit
from convergebench.resources import Resources

LEAST_STEPS: Final = 10
"""Steps of a chain that one worker measures at least."""
HOPELESS: Final = 3
"""After so many pictures in a row that killed three workers each, the rest is given up."""


@dataclass(frozen=True)
class Measured:
    """Some rows of a unit, as they come; its last piece tells what was decoded and read.

    Attributes:
        unit: The unit.
        rows: What was measured.
        problem: What keeps some of it from being measured at all.
        event: What happened and is made good.
        decoded: How many pictures were decoded.
        read: How many bytes were read for that.
    """

    unit: Unit
    rows: Sequence[Row]
    problem: str = ""
    event: str = ""
    decoded: int = 0
    read: int = 0


def measuring(place: str, resources: Resources, *, here: bool = False) -> Trade:
    """The trade of those who measure the run at that place."""
    return Trade("convergebench.workers:open_worker", {"place": place}, resources, here)


def spread(unit: Unit, steps: Sequence[int], count: int) -> list[Unit]:
    """A unit in up to so many parts of consecutive steps, where workers would idle otherwise.

    Each decodes home once more, and the frame before its first: parts are not made too small.
    """
    size = max(LEAST_STEPS, -(-len(steps) // max(1, count)))
    if unit.others or len(steps) <= size:
        return [unit]
    parts = [tuple(steps[at : at + size]) for at in range(0, len(steps), size)]
    return [replace(unit, steps=part) for part in parts]


class UnitTask:
    """A unit, and what its workers died over.

    After the first death each metric goes on alone, and carefully: a worker then tells the rows of
    each picture before it looks at the next, so that what it dies over is the first one left.
    Workers that die over different pictures do not add up.

    Args:
        place: Where the run is.
        unit: The unit.
        suspect: The picture that the last worker died over.
        deaths: How many have died over it.
        given_up: How many pictures have been given up since the last one that was measured.
    """

    def __init__(
        self,
        place: str,
        unit: Unit,
        suspect: int | str | None = None,
        deaths: int = 0,
        given_up: int = 0,
    ) -> None:
        self._place = place
        self._unit = unit
        self._suspect = suspect
        self._deaths = deaths
        self._given_up = given_up
        self._known = set(unit.known)

    def ask(self) -> bytes:
        """The unit as JSON."""
        return self._unit.to_json().encode()

    def heard(self, answer: bytes) -> Measured:
        """Rows, which need no second measurement."""
        told: dict[str, Any] = json.loads(answer)
        piece = Measured(self._unit, [tuple(row) for row in told.pop("rows")], **told)
        self._know(piece.rows)
        if piece.rows:
            self._given_up = 0
        return piece

    def died(self, why: str) -> tuple[list[UnitTask], list[Measured]]:
        """What is left of it once more; a picture that killed three workers becomes null."""
        unit = replace(self._unit, known=frozenset(self._known))
        measurer = Measurer(self._place)
        if not unit.careful:
            each = [replace(unit, metrics=(name,), careful=True) for name in unit.metrics]
            left = [(one, found) for one in each if (found := measurer.left(one))]
            sure = sum(len(found) for _, found in left) == 1
            again = [UnitTask(self._place, one, found[0], int(sure)) for one, found in left]
            return again, [_told(unit, why)] if again else []
        left_here = measurer.left(unit)
        if not left_here:  # it died after its last word
            return [], []
        suspect = left_here[0]
        deaths = self._deaths + 1 if suspect == self._suspect else 1
        if deaths < DEATHS:
            again = [UnitTask(self._place, unit, suspect, deaths, self._given_up)]
            return again, [_told(unit, why)]
        problem, lost = f"its worker died {DEATHS} times ({why})", unit.only(suspect)
        given_up = self._given_up + 1
        if given_up == HOPELESS and len(left_here) > 1:
            problem = f"its worker died {DEATHS} times over {HOPELESS} pictures in a row ({why})"
            lost = unit
        nulls = measurer.nulls(lost, problem)
        self._know(nulls)
        rest = replace(unit, known=frozenset(self._known))
        again = [UnitTask(self._place, rest, given_up=given_up)] if measurer.left(rest) else []
        return again, [Measured(unit, nulls, problem)]

    def _know(self, rows: Sequence[Row]) -> None:
        self._known |= {(row[1], f"{row[2]}@{row[3]}", row[4], row[5]) for row in rows}


def _told(unit: Unit, why: str) -> Measured:
    """That a worker died, for those who watch."""
    return Measured(unit, (), event=f"a worker died ({why}); another one goes on where it was")


class MeasuringWorker:
    """Answers units with pieces of rows, as JSON."""

    def __init__(self, place: str) -> None:
        self._measurer = Measurer(place)

    def work(self, task: bytes) -> Iterator[bytes]:
        """Measure a unit."""
        for piece in _pieces(self._measurer, Unit.from_json(task)):
            told = {"rows": piece.rows, "problem": piece.problem, "decoded": piece.decoded}
            yield json.dumps({**told, "read": piece.read}).encode()


def open_worker(place: str) -> MeasuringWorker:
    """A worker for the run at that place. Raises EngineError where it cannot be read."""
    try:
        return MeasuringWorker(place)
    except StoreError as error:
        raise unreadable(place, error) from error


def unreadable(place: str, error: Exception) -> EngineError:
    """What to say where a worker's machine has no such run, or can read it no longer."""
    remedy = (
        "Every machine needs credentials of its own for it, and a way there."
        if "://" in place
        else f"Every machine needs it at {place}: use storage that all of them share, or an "
        "address such as s3://…"
    )
    return EngineError(f"a worker on {socket.gethostname()} cannot read the run: {error} {remedy}")


def _pieces(measurer: Measurer, unit: Unit) -> Iterator[Measured]:
    """Measure a unit here; one whose records are damaged ends with its problem.

    Raises:
        EngineError: This machine cannot measure, which says nothing about the unit.
    """
    decoded, read, problem = measurer.decoded, measurer.read, ""
    try:
        for rows in measurer.measure(unit):
            yield Measured(unit, rows)
    except StoreDamaged as error:
        problem = str(error)
    except StoreError as error:
        raise unreadable(measurer.place, error) from error
    except (MetricUnavailable, PluginBroken) as error:
        raise EngineError(
            f"a worker on {socket.gethostname()} cannot measure: {error} Every machine needs the "
            "same packages and weights. What was measured is saved."
        ) from error
    yield Measured(unit, (), problem, decoded=measurer.decoded - decoded, read=measurer.read - read)
