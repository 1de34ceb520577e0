"""Findings as tables: what `convergebench analyze` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY, Finding, Findings
from convergebench.errors import SettingsError
from convergebench.table import Cell, Table
from convergebench.wording import counted

GROUPS: Final = ("edit", "image", "cycle", "session", "settings")
PARTS: Final = ("source", "edit", "repeat", "rest")


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
    rows: list[tuple[Cell, ...]] = [
        (
            f.editor,
            f.other,
            _with_ends(f, signed=True),
            _p(f.p),
            f.note.partition(";")[0],
            f.n,
        )
        for f in findings
        if f.kind == "pair"
    ]
    notes = (
        "Mean difference of the score over the sources of the common chains; p: sign-flip test of "
        f"the sources' differences, corrected for {counted(len(rows), 'pair')} by Holm's method; "
        "the interval is that of the pair alone.",
    )
    columns = ("editor", "against", "difference [95 %]", "p", "decision", "n")
    return Table("Pairs of editors", columns, rows, notes if rows else ())


def life_table(findings: Sequence[Finding], threshold: float) -> Table:
    """Half-lives and restricted means with their intervals."""
    by_id = {f.id: f for f in findings if f.kind in ("half-life", "restricted-mean")}
    rows: list[tuple[Cell, ...]] = []
    for f in by_id.values():
        if f.kind != "half-life" or f.metric not in (HEADLINE, *DIMENSIONS, *RANKED_BY):
            continue
        mean = by_id[f"restricted-mean/{f.metric}/{f.editor}"]
        until = mean.note.rpartition(" ")[2]
        shown = _with_ends(f, unreached=f"> {until}")
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


COUNTS: Final = ("n", "missing", "failed", "refused")


def group_table(findings: Sequence[Finding], split: str) -> Table:
    """The score and its half-life by group."""
    mine = [f for f in findings if f.kind == f"by-{split}" and f.metric == "score"]
    lives = {
        (f.group, f.editor): f
        for metric in (RANKED_BY[0], "quality", HEADLINE)  # the widest there is
        for f in findings
        if f.kind == f"life-by-{split}" and f.metric == metric
    }
    rows: list[tuple[Cell, ...]] = []
    for f in mine:
        life = lives.get((f.group, f.editor))
        shown = "–" if life is None else _life(life)
        rows.append(
            (
                f.group.partition(":")[2],
                f.editor,
                _with_ends(f),
                shown,
                *_counts(f),
                0 if life is None else life.censored,
            )
        )
    what = next(iter(lives.values())).metric if lives else ""
    columns = (split, "editor", "mean AUC [95 %]", f"half-life {what}".strip(), *COUNTS, "censored")
    partial = sum("cannot be fully undone" in f.note for f in mine)
    notes = ("Over all of an editor's own chains, partially reversible cycles too.",)
    return Table(f"By {split}", columns, rows, notes if rows and partial else ())


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
        rows.append((metric, editor, *shown, next(iter(parts.values())).n))
    zero = sum("set to 0" in f.note for parts in shares.values() for f in parts.values())
    notes = ["rest: source with edit, and repeats where chains have none."]
    if zero:
        notes.append(f"{counted(zero, 'share')} estimated below 0 and set to 0.")
    columns = ("metric", "editor", *PARTS, "n")
    return Table("Variance of AUC", columns, rows, notes if rows else ())


def worst_table(findings: Sequence[Finding]) -> Table:
    """The worst chains."""
    rows: list[tuple[Cell, ...]] = [
        (f.editor, f"{f.estimate:.3f}", f.note, f.chain)
        for f in findings
        if f.kind == "worst" and f.estimate is not None
    ]
    return Table("Worst chains", ("editor", "AUC", "what happened", "chain"), rows)


def _counts(f: Finding) -> tuple[int, int, int, int]:
    return f.n, f.missing, f.failed, f.refused


def _life(f: Finding) -> str:
    told = f"{f.estimate:.2f}" if f.estimate is not None else f.note.partition(",")[0]
    return told.removeprefix("half-life ") or "–"


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
