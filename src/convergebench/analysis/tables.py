"""Findings as tables: what `convergebench analyze` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.analysis.findings import (
    DIMENSIONS,
    HEADLINE,
    INCOMPLETE,
    RANKED_BY,
    Finding,
    Findings,
    shown_dimensions,
)
from convergebench.errors import SettingsError
from convergebench.table import Cell, Table
from convergebench.wording import counted

GROUPS: Final = ("edit", "image", "cycle", "session", "settings")
PARTS: Final = ("source", "edit", "repeat", "rest")
COUNTS: Final = ("n", "missing", "failed", "refused")
SCORE: Final = "score"


@dataclass(frozen=True)
class Analysis:
    """All findings, and the tables that say the most of them."""

    findings: Findings

    @property
    def table(self) -> Table:
        """The leaderboard."""
        return self.findings.table

    @property
    def tables(self) -> list[Table]:
        """The leaderboard, the comparisons, half-lives, groups, variance and the worst chains."""
        found = self.findings.findings
        more = (
            pair_table(found),
            life_table(found, self.findings.threshold),
            *(group_table(found, split) for split in GROUPS),
            variance_table(found),
            worst_table(found),
        )
        return [self.table, *(table for table in more if table.rows)]

    def to_dict(self) -> dict[str, Any]:
        """Every finding."""
        return self.findings.model_dump(mode="json")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)


def pair_table(findings: Sequence[Finding]) -> Table:
    """Every two ranked editors compared."""
    scores = {f.editor: f for f in findings if f.kind == SCORE}
    rows: list[tuple[Cell, ...]] = [
        (
            f.editor,
            f.other,
            _with_ends(f, signed=True),
            _p(f.p),
            f.note.partition(";")[0],
            f.n,
            *_of_both(scores, f),
        )
        for f in findings
        if f.kind == "pair"
    ]
    notes = (
        "Mean difference of the score over the sources of the common chains; p: sign-flip test of "
        f"the sources' differences, corrected for {counted(len(rows), 'pair')} by Holm's method; "
        "the interval is that of the pair alone. n: common chains of each; missing, failed, "
        "refused: the other chains of both, and how many of both the editor ended early.",
    )
    columns = ("editor", "against", "difference [95 %]", "p", "decision", *COUNTS)
    return Table("Pairs of editors", columns, rows, notes if rows else ())


def life_table(findings: Sequence[Finding], threshold: float) -> Table:
    """Half-lives and restricted means with their intervals."""
    by_id = {f.id: f for f in findings if f.kind in ("half-life", "restricted-mean")}
    rows: list[tuple[Cell, ...]] = []
    for f in by_id.values():
        if f.kind != "half-life" or f.metric not in (HEADLINE, *DIMENSIONS, *RANKED_BY):
            continue
        mean = by_id[f"restricted-mean/{f.metric}/{f.editor}"]
        shown = _with_ends(f, unreached=_unreached(f.note))
        rows.append((f.metric, f.editor, shown, _with_ends(mean), *_counts(f), f.censored))
    columns = (
        "metric",
        "editor",
        "half-life [95 %]",
        "restricted mean [95 %]",
        *COUNTS,
        "censored",
    )
    notes = (f"In rounds; a chain falls when it is below {threshold:g}.",)
    return Table("Half-lives", columns, rows, notes if rows else ())


def group_table(findings: Sequence[Finding], split: str) -> Table:
    """The score and half-lives by group; never the headline without quality and semantic."""
    means = {
        (f.metric, f.group, f.editor): f for f in findings if f.kind == f"by-{split}" and f.metric
    }
    lives = {(f.metric, f.group, f.editor): f for f in findings if f.kind == f"life-by-{split}"}
    there = {metric for metric, _, _ in means}
    order = (SCORE, HEADLINE, *DIMENSIONS, *RANKED_BY, *sorted(there))
    first = next((name for name in order if name in there), SCORE)
    aucs = [name for name in shown_dimensions(there) if name not in (HEADLINE, first)]
    fell = {metric for (metric, _, _), f in lives.items() if f.n}
    followed = shown_dimensions(fell) or [name for name in RANKED_BY if name in fell]
    rows: list[tuple[Cell, ...]] = []
    mine = [f for (metric, _, _), f in means.items() if metric == first]
    for f in mine:
        own = {name: lives.get((name, f.group, f.editor)) for name in followed}
        any_life = any(life and life.n for life in own.values())
        widest = next((life for life in own.values() if life and life.n), None)
        rows.append(
            (
                f.group.partition(":")[2],
                f.editor,
                _with_ends(f),
                *(_auc(means.get((name, f.group, f.editor)), f) for name in aucs),
                *(_life(name, life, f, any_life) for name, life in own.items()),
                *_counts(f),
                widest.censored if widest else None,
            )
        )
    what = "" if first == SCORE else f" {first}"
    columns = (
        split,
        "editor",
        f"mean AUC{what} [95 %]",
        *(f"AUC {name}" for name in aucs),
        *(f"half-life {name}" for name in followed),
        *COUNTS,
        "censored",
    )
    notes = []
    if any("cannot be fully undone" in f.note for f in mine):
        notes.append("Over all of an editor's own chains, partially reversible cycles too.")
    if any("(n " in str(cell) for row in rows for cell in row[3:]):
        notes.append(
            "n, missing, failed, refused: of the mean AUC, which only complete chains have; "
            "(n …) where another number is over more or fewer chains."
        )
    return Table(f"By {split}", columns, rows, notes)


def variance_table(findings: Sequence[Finding]) -> Table:
    """Where the variance of AUC comes from."""
    shares: dict[tuple[str, str], dict[str, Finding]] = {}
    for f in findings:
        if f.kind == "variance":
            shares.setdefault((f.metric, f.editor), {})[f.group] = f
    rows: list[tuple[Cell, ...]] = []
    for (metric, editor), parts in shares.items():
        cells = [parts[p].estimate if p in parts else None for p in PARTS]
        shown = ["–" if share is None else f"{100 * share:.0f} %" for share in cells]
        rows.append((metric, editor, *shown, *_counts(next(iter(parts.values())))))
    zero = sum("set to 0" in f.note for parts in shares.values() for f in parts.values())
    notes = ["rest: source with edit, and repeats where chains have none."]
    if zero:
        notes.append(f"{counted(zero, 'share')} estimated below 0 and set to 0.")
    columns = ("metric", "editor", *PARTS, *COUNTS)
    return Table("Variance of AUC", columns, rows, notes if rows else ())


def worst_table(findings: Sequence[Finding]) -> Table:
    """The worst chains, and how many could not be among them."""
    worst = [f for f in findings if f.kind == "worst" and f.estimate is not None]
    rows: list[tuple[Cell, ...]] = [(f.editor, f"{f.estimate:.3f}", f.note, f.chain) for f in worst]
    columns = ("editor", "AUC", "what happened", "chain")
    metrics = {f.metric for f in worst}
    metrics = set(RANKED_BY) if metrics == {SCORE} else metrics
    editors = {f.editor for f in worst}
    without = {
        f.editor: f
        for f in sorted(findings, key=lambda f: f.missing)  # of two metrics, who lacks more
        if f.kind == "auc" and f.metric in metrics and f.editor in editors
    }.values()
    lacking, failed, refused = (
        sum(getattr(f, name) for f in without) for name in ("missing", "failed", "refused")
    )
    notes = (
        f"Complete chains only: {counted(lacking, 'chain')} of these editors more "
        f"{'has' if lacking == 1 else 'have'} no AUC ({failed} failed, {refused} of them refused).",
    )
    return Table("Worst chains", columns, rows, notes if rows else ())


def _counts(f: Finding) -> tuple[int, int, int, int]:
    return f.n, f.missing, f.failed, f.refused


def _of_both(scores: Mapping[str, Finding], pair: Finding) -> tuple[Cell, Cell, Cell]:
    """Missing, failed and refused of the two editors of a pair together."""
    both = [scores[name] for name in (pair.editor, pair.other) if name in scores]
    if len(both) < 2:
        return None, None, None
    _, missing, failed, refused = (sum(each) for each in zip(*map(_counts, both), strict=True))
    return missing, failed, refused


def _auc(f: Finding | None, beside: Finding) -> str:
    if f is None:
        return INCOMPLETE
    if f.estimate is None:
        return INCOMPLETE if beside.n else "–"
    return f"{f.estimate:.3f}{_own_n(f, beside)}"


def _life(name: str, f: Finding | None, beside: Finding, others: bool) -> str:
    """A half-life as printed; `others` says whether the row has any."""
    if f is None or not f.n:
        return INCOMPLETE if others and name in (HEADLINE, *DIMENSIONS) else "–"
    told = f"{f.estimate:.2f}" if f.estimate is not None else _unreached(f.note)
    return told + _own_n(f, beside)


def _unreached(note: str) -> str:
    """`> N`, as a note says it of a half-life that was not reached."""
    words = (part.strip() for part in note.split(","))
    said = next((part for part in words if part.startswith("half-life ")), "")
    return said.removeprefix("half-life ") or "–"


def _own_n(f: Finding, beside: Finding) -> str:
    return "" if f.n == beside.n else f" (n {f.n})"


def _with_ends(f: Finding, *, signed: bool = False, unreached: str = "") -> str:
    sign = "+" if signed else ""
    told = (unreached if f.n else "–") or "–"
    if f.estimate is not None:
        told = f"{f.estimate:{sign}.3f}"
    if f.low is None or (f.high is None and not unreached) or f.estimate is None:
        return told
    high = "…" if f.high is None else f"{f.high:{sign}.3f}"
    return f"{told} [{f.low:{sign}.3f}, {high}]"


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def write_findings(found: Findings, path: Path) -> None:
    """Write findings into a file: JSON, or a table with a row for each, by its ending.

    Raises:
        SettingsError: The ending is another, or the file cannot be written.
    """
    if path.suffix not in (".json", ".csv"):
        raise SettingsError(f"findings are written as .json or .csv, got {path.name}")
    try:
        if path.suffix == ".csv":
            found.frame.write_csv(path)
        else:
            path.write_text(found.model_dump_json() + "\n")
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror or error}. Give another --out."
        ) from error
