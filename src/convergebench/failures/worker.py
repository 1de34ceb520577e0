"""Pieces of looking as tasks of a crew (`convergebench.engines.crew`).

A piece that kills three workers becomes null rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convergebench.engines import DEATHS, Trade, open_engine
from convergebench.engines.crew import Crew
from convergebench.errors import EngineError, StoreDamaged, StoreError
from convergebench.failures.looking import Looker, Piece, Seen


def look_at(place: str, pieces: Sequence[Piece], workers: int) -> Iterator[Seen]:
    """Have all pieces looked at, in any order; in this process when one worker is enough."""
    if workers <= 1 or len(pieces) < 2:
        looker = Looker(place)
        for piece in pieces:
            yield looker.look(piece)
        return
    trade = Trade("convergebench.failures.worker:LookingWorker", {"place": place})
    tasks = [PieceTask(place, piece) for piece in pieces]
    with Crew(open_engine(workers=workers), [(trade, tasks)]) as crew:
        yield from crew.results()


class PieceTask:
    """A piece, and how many workers it has killed."""

    def __init__(self, place: str, piece: Piece) -> None:
        self._place = place
        self._piece = piece
        self._deaths = 0

    def ask(self) -> bytes:
        """The piece as JSON."""
        return self._piece.to_json().encode()

    def heard(self, answer: bytes) -> Seen:
        """Its rows, all at once."""
        return Seen.from_json(answer)

    def died(self, why: str) -> tuple[list[PieceTask], list[Seen]]:
        """Again, or after the third death nulls."""
        self._deaths += 1
        if self._deaths < DEATHS:
            return [self], []
        problem = f"its worker died {DEATHS} times ({why})"
        return [], [Looker(self._place).given_up(self._piece, problem)]


class LookingWorker:
    """Answers a piece with what was seen, as JSON."""

    def __init__(self, place: str) -> None:
        self._looker = Looker(place)

    def work(self, task: bytes) -> Iterator[bytes]:
        """Look at a piece. Raises EngineError when the run can be read no longer."""
        try:
            seen = self._looker.look(Piece.from_json(task))
        except StoreDamaged:
            raise
        except StoreError as error:
            raise EngineError(str(error)) from error
        yield seen.to_json().encode()
