"""Finding failures: stored chains in, rows out. Only what is missing is computed.

Rows lie in `failures/rows.parquet` of the run directory, written by rename now and then, so that a
kill loses seconds.
"""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from convergebench.chain import Chain
from convergebench.errors import AccountBlocked, SettingsError, StoreDamaged
from convergebench.failures.catalogue import chosen
from convergebench.failures.detector import Detector
from convergebench.failures.looking import STEPS_AT_ONCE, Album, Looker, Piece, Row, Seen
from convergebench.failures.looking import situation_of as _situation_of
from convergebench.failures.result import ROW_COLUMNS, Failures
from convergebench.failures.worker import look_at
from convergebench.store import ANSWERS, RunStore

if TYPE_CHECKING:
    import polars as pl

    from convergebench.judging import Judge

FOLDER: Final = "failures"
ROWS: Final = "failures/rows.parquet"
KEY: Final = ("chain", "step", "detector")
SAVE_EVERY: Final = 20.0
"""Seconds between two saves of finished rows."""


@dataclass(frozen=True)
class FindProgress:
    """Where finding stands."""

    rows: int
    done: int


def find(
    run: str | os.PathLike[str],
    *,
    detectors: Sequence[str] | None = None,
    steps: Iterable[int] | None = None,
    judge: Judge | str | None = None,
    observe: Callable[[FindProgress], None] | None = None,
    workers: int | None = None,
    retry_null: bool = False,
) -> Failures:
    """Look at every frame with every detector that applies, as far as that was not done before.

    Args:
        run: The run directory.
        detectors: Names of detectors; all by default.
        steps: Which steps to look at; all by default.
        judge: Answers the questions of detectors that ask some: a judge or its name. Without one
            they apply to nothing; what was answered before still counts.
        observe: Called with a FindProgress after every piece of work.
        workers: Processes; one per core by default.
        retry_null: Measure again what could not be measured before.

    Raises:
        UnknownName: No detector of that name.
        SettingsError: No chain is that long.
        StoreError: No run directory, or another process is at it.
    """
    store = RunStore.open(run)
    wanted = chosen(detectors)
    asked = None if steps is None else frozenset(steps)
    opened = _opened(judge, store)
    with store.writing(FOLDER):
        kept = stored_rows(store.path)
        work = _Work(store, wanted, asked, opened, kept, retry_null)
        saver = _Saver(store, kept)
        result = Failures(store.place, kept, wanted)
        try:
            for seen in work.done(workers or os.cpu_count() or 1, result.problems):
                saver.add(seen.rows)
                result.new += len(seen.rows)
                result.decoded += seen.decoded
                if observe:
                    observe(FindProgress(work.rows, result.new))
        finally:
            saver.save()
            if opened:
                store.stored(ANSWERS)
    result.rows = _shown(saver.rows, wanted, asked, work.chains)
    result.known = result.rows.height - result.new
    here = set(result.rows["detector"].unique().to_list())
    result.left_out = {name: why for name, why in work.left_out.items() if name not in here}
    return result


def stored(run: str | os.PathLike[str]) -> Failures | None:
    """What was found in a run before, without looking again; None where nobody has looked."""
    store = RunStore.open(run)
    rows = stored_rows(store.path)
    if rows.is_empty():
        return None
    wanted = chosen(None)
    found = Failures(store.place, _shown(rows, wanted, None, store.chains()), wanted)
    found.known = found.rows.height
    return found


def stored_rows(path: Path) -> pl.DataFrame:
    """The rows of a run so far. Raises StoreDamaged."""
    import polars as pl

    schema = {name: getattr(pl, kind)() for name, kind in ROW_COLUMNS.items()}
    file = path / ROWS
    if not file.exists():
        return pl.DataFrame(schema=schema)
    try:
        return pl.read_parquet(file).select(list(ROW_COLUMNS)).cast(schema)  # type: ignore[arg-type]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StoreDamaged(
            f"{file} cannot be read ({type(error).__name__}). Remove it: everything in it can be "
            "computed again."
        ) from error


def _opened(judge: Judge | str | None, store: RunStore) -> Judge | None:
    if not isinstance(judge, str):
        return judge
    from convergebench.judging import open_judge

    return open_judge(judge, folder=store.path / "judgements")


class _Work:
    """What is to be looked at: the rows that are wanted and not there, in pieces."""

    def __init__(
        self,
        store: RunStore,
        wanted: tuple[Detector, ...],
        asked: frozenset[int] | None,
        judge: Judge | None,
        kept: pl.DataFrame,
        retry_null: bool,
    ) -> None:
        self._store = store
        self._judge = judge
        self.chains = sorted(store.chains(), key=lambda c: (c.key.source, c.key.id))
        longest = max((max(c.held, default=0) for c in self.chains), default=0)
        if asked is not None and min(asked, default=0) > longest:
            raise SettingsError(f"no chain has step {min(asked)}; the longest has {longest}")
        self.left_out: dict[str, str] = {}
        known = _known(kept, retry_null)
        versions = {d.name: d.row_version(judge.name if judge else None) for d in wanted}
        self._plain: list[Piece] = []
        self._judged: list[Piece] = []
        reasons: dict[str, Counter[str]] = {}
        for chain in self.chains:
            album = Album(store, chain)
            todo: dict[bool, dict[int, list[str]]] = {False: {}, True: {}}
            for step in (s for s in chain.held if s > 0 and (asked is None or s in asked)):
                situation = _situation_of(store, chain, step, album, judge)
                for detector in wanted:
                    if why := detector.applies(situation):
                        reasons.setdefault(detector.name, Counter())[why] += 1
                    elif known.get((chain.key.id, step, detector.name)) != versions[detector.name]:
                        todo[detector.judged].setdefault(step, []).append(detector.name)
            self._plain += _pieces(chain, todo[False])
            self._judged += _pieces(chain, todo[True])
        self.left_out = {name: why.most_common(1)[0][0] for name, why in reasons.items()}
        self.rows = sum(
            len(names) for piece in (*self._plain, *self._judged) for names in piece.wanted.values()
        )

    def done(self, workers: int, problems: list[str]) -> Iterator[Seen]:
        """Everything, as it comes; questions to the judge at last, in this process."""
        yield from look_at(self._store.anywhere, self._plain, workers)
        looker = Looker(self._store.path, self._judge) if self._judged else None
        for piece in self._judged:
            try:
                if looker:
                    yield looker.look(piece)
            except AccountBlocked as error:
                problems.append(f"the judge was asked no further: {error}")
                return


def _known(kept: pl.DataFrame, retry_null: bool) -> dict[tuple[str, int, str], str]:
    rows = kept.filter(kept["value"].is_not_null()) if retry_null else kept
    return {
        (chain, step, detector): version
        for chain, step, detector, version in rows.select(*KEY, "version").iter_rows()
    }


def _pieces(chain: Chain, todo: dict[int, list[str]]) -> list[Piece]:
    steps = sorted(todo)
    return [
        Piece(chain.key.id, {step: tuple(todo[step]) for step in steps[at : at + STEPS_AT_ONCE]})
        for at in range(0, len(steps), STEPS_AT_ONCE)
    ]


class _Saver:
    """Gathers rows and saves them now and then, so that a kill loses seconds, not hours."""

    def __init__(self, store: RunStore, rows: pl.DataFrame) -> None:
        self.rows = rows
        self._store = store
        self._new: list[Row] = []
        self._saved = time.monotonic()

    def add(self, rows: Sequence[Row]) -> None:
        self._new += rows
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write all rows by rename; a newer row replaces the older one of its key."""
        import polars as pl

        if self._new:
            new = pl.DataFrame(self._new, schema=self.rows.schema, orient="row")
            both = pl.concat([self.rows, new])
            self.rows = both.unique(KEY, keep="last", maintain_order=True)
            out = io.BytesIO()
            self.rows.write_parquet(out)
            self._store.write_file(ROWS, out.getvalue())
        self._new = []
        self._saved = time.monotonic()


def _shown(
    rows: pl.DataFrame,
    wanted: tuple[Detector, ...],
    asked: frozenset[int] | None,
    chains: Sequence[Chain],
) -> pl.DataFrame:
    """The rows that were asked for, of versions as they are now, with controls marked."""
    import polars as pl

    from convergebench.analysis.leaderboard import controls_among

    current = pl.DataFrame(
        {"detector": [d.name for d in wanted], "_version": [d.version for d in wanted]}
    )
    found = (
        rows.join(current, on="detector", how="inner", maintain_order="left")
        .filter(pl.col("version").str.split("+").list.first() == pl.col("_version"))
        .drop("_version")
        .filter(pl.col("chain").is_in([chain.key.id for chain in chains]))
    )
    if asked is not None:
        found = found.filter(pl.col("step").is_in(sorted(asked)))
    controls = controls_among(sorted(found["editor"].unique().to_list()))
    order = {detector.name: n for n, detector in enumerate(wanted)}
    return found.with_columns(control=pl.col("editor").is_in(sorted(controls))).sort(
        "chain", "step", pl.col("detector").replace_strict(order, return_dtype=pl.Int64)
    )
