"""The headline table: one line per editor, headline and dimensions always side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Finding, Findings, Standing
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, LITERAL
from convergebench.analysis.leaderboard import INERT
from convergebench.reporter.charts import contraction_word, metric_names, shape_metric
from convergebench.reporter.palette import Ink
from convergebench.reporter.printing import interval, number
from convergebench.wording import counted

MEANINGS: Final = {INERT: "forward edits change the picture no more than re-saving it as JPEG does"}
"""Reasons for not being ranked that need a word more."""

MADE: Final = ("edited", "reported")
"""Outcomes of steps that lack nothing: their frame is here, or was never to be."""

INCOMPLETE: Final = "incomplete"
BEYOND: Final = 1e9
"""Sorts what was not reached behind all that was."""

Known = Mapping[tuple[str, str, str], Finding]
"""Findings by kind, metric and editor."""


@dataclass(frozen=True)
class Column:
    """One column, and the group of columns it stands in."""

    name: str
    group: str
    about: str = ""


@dataclass(frozen=True)
class Cell:
    """One value: as printed, what is printed under it, and what it is sorted by."""

    text: str
    under: str = ""
    by: float | None = None
    quiet: bool = False
    about: str = ""


@dataclass(frozen=True)
class Line:
    """One editor's line."""

    standing: Standing
    ink: Ink
    failed: tuple[tuple[str, int], ...]
    why: str
    cells: tuple[Cell, ...]

    @property
    def meaning(self) -> str:
        """What the reason means, where its word does not say it."""
        return MEANINGS.get(self.why, "")


@dataclass(frozen=True)
class Group:
    """Lines that belong together: the ranked, the others, the controls."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Leaders:
    """The table."""

    columns: tuple[Column, ...]
    groups: tuple[Group, ...]

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The groups of columns, and how many columns each has."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.group:
                found[-1] = (column.group, found[-1][1] + 1)
            else:
                found.append((column.group, 1))
        return found


def leaders(findings: Findings, inks: Mapping[str, Ink]) -> Leaders:
    """The headline table; the first group are the ranked editors, even if there are none."""
    known = {(f.kind, f.metric, f.editor): f for f in findings.findings if not f.group}
    shapes, refused = _shapes(findings), refusals_of(findings)
    lives, aucs = life_names(findings), _auc_names(findings)
    means = primary_metric(findings)
    walked = _contraction_metric(findings)
    columns = [Column(_title(name), "Half-life, homecomings", _about(name)) for name in lives]
    columns += [Column(means, "Restricted mean", "area under the survival curve, in homecomings")]
    columns += [Column(name, "AUC", "mean of C(n), own complete chains") for name in aucs]
    if walked:
        columns.append(Column("λ", "Decay", f"contraction factor by {walked}"))
    if shapes:
        told = f"the most frequent shape of its curves by {shape_metric(findings)}"
        columns.append(Column("shape", "Decay", told))
    chains = {
        "n": "complete chains: home as often as they should, all of it scored",
        "missing": "chains that are not complete",
        "failed": "chains that ended too early because it refused or failed",
        "refused": "of the failed, those that it refused",
        "censored": f"chains that never fell while they were followed, by {means}",
    }
    columns += [Column(name, "Chains", about) for name, about in chains.items()]

    parts: dict[str, list[Line]] = {"": [], "Not ranked": [], "Controls": []}
    for s in findings.standings:
        cells = [_life(s, name, known) for name in lives]
        cells.append(_plain(known.get(("restricted-mean", means, s.editor)), 2))
        cells += [_plain(known.get(("auc", name, s.editor)), 3) for name in aucs]
        if walked:
            cells.append(_factor(known.get(("contraction", walked, s.editor))))
        if shapes:
            cells.append(shapes.get(s.editor, Cell("–", quiet=True)))
        life = known.get(("half-life", means, s.editor))
        counts = (s.complete, s.chains - s.complete, s.failed, refused.get(s.editor, 0))
        cells += [Cell(number(count), by=count, quiet=not count) for count in counts]
        cells.append(_count(life.censored if life else None))
        failed = tuple(sorted((o, n) for o, n in s.outcomes.items() if o not in MADE))
        part = "Controls" if s.control else "" if s.best_rank is not None else "Not ranked"
        parts[part].append(Line(s, inks[s.editor], failed, s.why_unranked, tuple(cells)))
    groups = tuple(Group(t, tuple(rows)) for t, rows in parts.items() if rows or not t)
    return Leaders(tuple(columns), groups)


def refusals_of(findings: Findings) -> dict[str, int]:
    """Per editor the chains that ended too early because it refused."""
    found: dict[str, int] = {}
    for f in findings.findings:
        if f.kind == "auc" and not f.group:
            found[f.editor] = max(found.get(f.editor, 0), f.refused)
    return found


def life_names(findings: Findings) -> list[str]:
    """Whose half-lives are shown: headline and dimensions always, metrics where these lack."""
    known = {name for s in findings.standings for name in s.half_life}
    wider = [HEADLINE, *DIMENSIONS]
    if all(name in known for name in wider):
        return wider
    metrics = metric_names(findings)
    ranking = [name for name in metrics if name in known and name in findings.ranked_by]
    parts = [name for needed in DIMENSIONS.values() for name in needed if name in known]
    single = ranking or parts or [name for name in metrics if name in known]
    plain = sorted(name for name in known if name.endswith(LITERAL))
    return [*wider, *single, *plain]


def primary_metric(findings: Findings) -> str:
    """What is told where only one can be: the headline, else what ranks, else anything."""
    known = [name for s in findings.standings for name in s.half_life]
    order = [HEADLINE, "quality", *findings.ranked_by, *metric_names(findings)]
    return next((name for name in order if name in known), known[0] if known else HEADLINE)


def _auc_names(findings: Findings) -> list[str]:
    known = {f.metric for f in findings.findings if f.kind == "auc" and f.estimate is not None}
    dimensions = [name for name in DIMENSIONS if name in known]
    ranking = [name for name in (*findings.ranked_by, *metric_names(findings)) if name in known]
    if len(dimensions) == len(DIMENSIONS):
        return dimensions
    return dimensions + [n for n in dict.fromkeys(ranking) if n not in (*dimensions, HEADLINE)][:2]


def _contraction_metric(findings: Findings) -> str:
    known = [f.metric for f in findings.findings if f.kind == "contraction"]
    return "psnr" if "psnr" in known else known[0] if known else ""


def _shapes(findings: Findings) -> dict[str, Cell]:
    """Per editor the most frequent shape of its curves, its share, and of how many chains."""
    wanted = shape_metric(findings)
    best: dict[str, Finding] = {}
    for f in findings.findings:
        if f.kind != "shape" or f.metric != wanted:
            continue
        if f.estimate and f.estimate > (_estimate(best.get(f.editor)) or 0):
            best[f.editor] = f
    return {
        name: Cell(
            f.group,
            f"{100 * (f.estimate or 0):.0f} % of {f.n}",
            f.estimate,
            about=f"by {wanted}, of {counted(f.n, 'chain')}" + (f"; {f.note}" if f.note else ""),
        )
        for name, f in best.items()
    }


def _estimate(finding: Finding | None) -> float | None:
    return finding.estimate if finding else None


def _life(standing: Standing, name: str, known: Known) -> Cell:
    """A half-life; incomplete where a dimension lacks a metric."""
    finding = known.get(("half-life", name, standing.editor))
    printed = standing.half_life.get(name)
    if printed is None:
        lacking = name == HEADLINE or name in DIMENSIONS
        return Cell(INCOMPLETE if lacking else "–", quiet=True)
    by = BEYOND if printed.startswith(">") else _estimate(finding)
    return Cell(printed, interval(finding, 2), by)


def _plain(finding: Finding | None, digits: int) -> Cell:
    if finding is None or finding.estimate is None:
        return Cell("–", quiet=True)
    span = interval(finding, digits)
    return Cell(
        number(finding.estimate, digits), by=finding.estimate, about=f"95 % {span}" if span else ""
    )


def _factor(finding: Finding | None) -> Cell:
    if finding is None or finding.estimate is None:
        return Cell("–", quiet=True)
    told = f"{number(finding.estimate, 2)} {contraction_word(finding)}".rstrip()
    return Cell(told, interval(finding, 2), finding.estimate, about=finding.note)


def _count(count: int | None) -> Cell:
    return Cell(number(count), by=count, quiet=not count)


def _title(name: str) -> str:
    return name.replace(LITERAL, " literal")


def _about(name: str) -> str:
    if name == HEADLINE:
        return "the time until the first of quality and semantic falls below the threshold"
    return f"needs {', '.join(DIMENSIONS[name])}" if name in DIMENSIONS else ""
