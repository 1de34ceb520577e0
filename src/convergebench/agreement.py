"""Comparing scores that others published with ours, row by row.

Published scores are rows of the same table as ours, with version `published:ORIGIN`. Ours are the
rows of the metric's installed version. Several origins of the same frames are compared with each
other, too. Nothing is measured here.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from convergebench.agreement_rows import (
    ALONE,
    GROUP,
    KEY,
    NOT_SCORED,
    WHOSE,
    beside,
    installed_metrics,
    judged,
    our_rows,
)
from convergebench.comparisons import FLOOR_PREFIX, PUBLISHED
from convergebench.errors import SettingsError
from convergebench.metric import MetricSpec
from convergebench.remote.address import Place
from convergebench.store import RunStore
from convergebench.table import Cell, Table
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl

OURS: Final = "ours"
TOLERANCE: Final = 1e-6
SHOWN: Final = 10
DIGITS: Final = 10
"""Significant digits of values in tables; records and files have all of them."""


@dataclass(frozen=True)
class Agreement:
    """How the scores of one origin and metric agree with ours, or with another origin's.

    Attributes:
        origin: Who published them.
        other: `ours`, or the other origin.
        metric, against, where: As in score rows.
        published, common: Rows of the origin, and those with a value on both sides.
        equal: Those that differ by no more than the tolerance; infinite on both sides is equal.
        largest: Largest absolute difference; infinite when one side alone is.
        mean, signed: Means of the finite |Δ| and Δ, Δ being theirs minus the other's.
        rank: Spearman's rank correlation, where there are three rows and both sides vary.
        lonely: Rows without a value on the other side, by reason.
    """

    origin: str
    other: str
    metric: str
    against: str
    where: str
    published: int
    common: int
    equal: int
    largest: float | None = None
    mean: float | None = None
    signed: float | None = None
    rank: float | None = None
    lonely: Mapping[str, int] = field(default_factory=dict)

    @property
    def differing(self) -> int:
        """Rows that differ by more than the tolerance."""
        return self.common - self.equal

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; an infinite difference is the text `inf`."""
        told = {name: getattr(self, name) for name in (*GROUP, "published", "common", "equal")}
        told["differing"] = self.differing
        told |= {name: _plain(getattr(self, name)) for name in ("largest", "mean", "signed")}
        return told | {"rank": self.rank, "without": dict(self.lonely)}


@dataclass
class ScoreAgreement:
    """Where published scores differ from ours, and by how much.

    Attributes:
        path: The run.
        tolerance: Differences up to it count as none.
        groups: One line per origin and metric.
        rows: Every published row beside ours, as a polars table.
        worst: The rows that differ most, those of each metric in turn.
        notes: What the user must know.
    """

    path: Place
    tolerance: float
    groups: list[Agreement]
    rows: pl.DataFrame
    worst: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def differing(self) -> int:
        """Rows that differ by more than the tolerance."""
        return sum(group.differing for group in self.groups)

    @property
    def table(self) -> Table:
        """One line per origin and metric."""
        if not self.groups:
            return Table(f"{self.path} has no published scores.", (), (), self.notes)
        common = sum(group.common for group in self.groups)
        verb = "differs" if self.differing == 1 else "differ"
        title = (
            f"{self.path}: of {counted(common, 'score')} in common, {self.differing:,} {verb} by "
            f"more than {self.tolerance:g}"
        )
        names = ("published by", "with", "metric", "in common", "equal", "largest |Δ|", "mean |Δ|",
                 "mean Δ", "rank corr.", "alone")  # fmt: skip
        rows: list[Sequence[Cell]] = [
            (g.origin, g.other, _title(g), g.common, g.equal, g.largest, g.mean, g.signed,
             None if g.rank is None else f"{g.rank:.4f}", sum(g.lonely.values()))
            for g in self.groups
        ]  # fmt: skip
        return Table(title, names, rows, self.notes)

    @property
    def worst_table(self) -> Table:
        """The rows that differ most; settings where there are any."""
        whose = [name for name in WHOSE if name != "settings"]
        whose += ["settings"] * any(row["settings"] for row in self.worst)
        rows = [
            (*_whose(row, whose), row["step"], row["metric"], row["origin"],
             f"{row['theirs']:.{DIGITS}g}", row["other"], f"{row['ours']:.{DIGITS}g}",
             row["difference"])
            for row in self.worst
        ]  # fmt: skip
        names = (*whose, "step", "metric", "published by", "theirs", "with", "ours", "Δ")
        return Table("The largest differences of each metric:", names, rows)

    def __str__(self) -> str:
        if not self.groups:
            return "\n".join([self.table.title, *self.notes])
        return "\n\n".join(str(t) for t in (self.table, self.worst_table) if t.rows)

    def _repr_html_(self) -> str:
        return "".join(t._repr_html_() for t in (self.table, self.worst_table) if t.rows)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; infinite values are the texts `inf` and `-inf`."""
        return {
            "path": str(self.path),
            "tolerance": self.tolerance,
            "differing": self.differing,
            "groups": [group.to_dict() for group in self.groups],
            "worst": [{name: _plain(value) for name, value in row.items()} for row in self.worst],
            "notes": self.notes,
        }

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write every row. Raises SettingsError where that cannot be."""
        try:
            self.rows.write_csv(Path(path))
        except OSError as error:
            raise SettingsError(f"cannot write {path} ({error.strerror or error})") from error


def compare_scores(
    directory: str | os.PathLike[str],
    *,
    tolerance: float = TOLERANCE,
    show: int = SHOWN,
    read_as: Mapping[str, str] | None = None,
) -> ScoreAgreement:
    """Say where published scores differ from ours, and by how much.

    Args:
        directory: The run directory.
        tolerance: Differences up to it count as none.
        show: How many of the rows that differ most to list.
        read_as: Their metric to the one of ours that it is compared with, where that is not the
            one of the same name: `{"ssim": "ssim-uniform"}`.
    """
    import polars as pl

    if not 0 <= tolerance < math.inf:
        raise SettingsError(f"a tolerance is a number from 0, got {tolerance}")
    store = RunStore.open(Path(directory))
    scores = store.scores()
    # A floor that somebody gave is a mean over pairs of sources, not the score of a frame.
    of_frames = scores.filter(~pl.col("chain").str.starts_with(FLOOR_PREFIX))
    published = of_frames.filter(pl.col("version").str.starts_with(PUBLISHED)).with_columns(
        origin=pl.col("version").str.strip_prefix(PUBLISHED)
    )
    origins = sorted(published["origin"].unique())
    installed = installed_metrics(sorted(published["metric"].unique()), read_as or {})
    ours = our_rows(scores, installed)
    parts = [beside(published.filter(pl.col("origin") == o), ours, OURS) for o in origins]
    for one, two in combinations(origins, 2):
        other = published.filter(pl.col("origin") == two)
        pair = beside(published.filter(pl.col("origin") == one), other, two)
        parts.append(pair.filter(pl.col("other_there")))
    found = ScoreAgreement(store.place, tolerance, [], judged(parts, store, installed, tolerance))
    for key, rows in found.rows.group_by(GROUP, maintain_order=True):
        found.groups.append(_agreement([str(word) for word in key], rows))
    found.worst = _worst(found.rows, show)
    found.notes = _notes(found, installed)
    if found.groups and not ours.height:
        found.notes.insert(0, "Nothing of ours is scored for these metrics.")
    else:
        found.notes += _same_as(published, scores, found, tolerance)
    return found


def _agreement(key: Sequence[str], rows: pl.DataFrame) -> Agreement:
    import polars as pl

    both = rows.filter(pl.col("state").is_in(["equal", "differs"]))
    alone = rows.filter(~pl.col("state").is_in(["equal", "differs"]))
    finite = both.filter(pl.col("difference").is_finite())["difference"]
    equal = both.filter(pl.col("state") == "equal").height
    lonely = dict(sorted(Counter(alone["state"].to_list()).items()))
    far: list[Any] = [both["difference"].abs().max(), finite.abs().mean(), finite.mean()]
    largest, mean, signed = (None if value is None else float(value) for value in far)
    origin, other, metric, against, where = key
    return Agreement(origin, other, metric, against, where, rows.height, both.height, equal,
                     largest, mean, signed, _rank(both), lonely)  # fmt: skip


def _rank(both: pl.DataFrame) -> float | None:
    """Spearman's correlation; infinite values have a rank like any other."""
    from scipy.stats import rankdata, spearmanr

    if both.height < 3 or both["theirs"].n_unique() < 2 or both["ours"].n_unique() < 2:
        return None
    ranks = [rankdata(both[side].to_numpy()) for side in ("theirs", "ours")]
    return float(spearmanr(*ranks).statistic)


def _worst(rows: pl.DataFrame, show: int) -> list[dict[str, Any]]:
    """The rows that differ most: the worst of each metric, then the second of each, and so on.

    Metrics have scales of their own, so one order of all differences would show PSNR alone.
    """
    import polars as pl

    if not rows.height:
        return []
    differing = rows.filter(pl.col("state") == "differs").with_columns(
        place=pl.col("difference").abs().rank("ordinal", descending=True).over(GROUP)
    )
    return (
        differing.sort("place", maintain_order=True)
        .head(max(0, show))
        .sort(*GROUP, "place")
        .select(*GROUP[:2], *KEY, *WHOSE, "theirs", "ours", "difference")
        .to_dicts()
    )


def _notes(found: ScoreAgreement, installed: Mapping[str, MetricSpec]) -> list[str]:
    """What is compared with a metric of another name; why rows stand alone, and what to do."""
    other = {theirs: s.name for theirs, s in installed.items() if s.name != theirs}
    notes = [f"Their {theirs} is compared with our {ours}." for theirs, ours in other.items()]
    for why, text in ALONE.items():
        counts: Counter[str] = Counter()
        for group in found.groups:
            counts.update({group.metric: group.lonely[why]} if why in group.lonely else {})
        if not counts:
            continue
        told = ", ".join(f"{metric} {count:,}" for metric, count in sorted(counts.items()))
        wanted = ",".join(sorted({other.get(metric, metric) for metric in counts}))
        todo = f": convergebench score {found.path} --metrics {wanted}"
        notes.append(f"Alone ({told}): {text}{todo if why == NOT_SCORED else ''}.")
    return notes


def _same_as(
    published: pl.DataFrame, scores: pl.DataFrame, found: ScoreAgreement, tolerance: float
) -> list[str]:
    """Which other metric of ours their numbers are, where they are not those of that name."""
    import polars as pl

    key = [name for name in KEY if name != "metric"]
    own = scores.filter(~pl.col("version").str.starts_with(PUBLISHED))
    notes = []
    for group in found.groups:
        if group.other != OURS or not group.common or group.equal == group.common:
            continue
        theirs = published.filter(
            pl.col("origin") == group.origin,
            *(pl.col(name) == getattr(group, name) for name in ("metric", "against", "where")),
        )
        both = theirs.select(*key, theirs="value").join(own, on=key).drop_nulls(["theirs", "value"])
        near = (pl.col("theirs") - pl.col("value")).abs() <= tolerance
        equal = near | (pl.col("theirs") == pl.col("value"))
        fits = both.group_by("metric").agg(pl.len(), equal=equal.sum()).sort("metric")
        notes += [
            f"{group.metric} of {group.origin} equals our {metric} in "
            f"{'the 1 row' if count == 1 else f'all {count:,} rows'} in common."
            for metric, count, alike in fits.iter_rows()
            if metric != group.metric and count == alike and count >= group.common
        ]
    return notes


def _title(group: Agreement) -> str:
    extra = [word for word in (group.against, group.where) if word not in ("home", "none", "all")]
    return " ".join([group.metric, *(f"({word})" for word in extra)])


def _whose(row: Mapping[str, Any], names: Sequence[str]) -> list[Cell]:
    """Whose score it is; of a chain that the run has not, all that is known is its name."""
    if row["source"] is None:
        return [row["chain"] if name == "source" else None for name in names]
    return [row[name] for name in names]


def _plain(value: Any) -> Any:
    """Infinite numbers as texts, which JSON has."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
