"""What a section says when its numbers are not there: what is missing, and what would give it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Findings
from convergebench.analysis.findings import DIMENSIONS
from convergebench.gathering import Gathered
from convergebench.reporter import charts


@dataclass(frozen=True)
class Absence:
    """A sentence on what is missing, and the command that would give it."""

    why: str
    command: str = ""


SCORE: Final = "convergebench score {run} --metrics round-trip"
MANY: Final = 10
MORE_ROUNDS: Final = f"convergebench run {{run}} --rounds {MANY}"

WANTED: Final = {
    "pair": ("No comparison of pairs: it needs two ranked editors and two sources.", ""),
    "survival": ("No survival curve: it needs chains that came home and have a floor.", SCORE),
    "by-cycle": ("No score by edit: nothing of it is in these findings.", SCORE),
    "contraction": (
        "No contraction factor: it needs chains that came home three times or more.",
        MORE_ROUNDS,
    ),
    "shape": ("No shapes: they need chains of several homecomings.", MORE_ROUNDS),
    "auc": ("No AUC by two metrics: the scatter needs both.", SCORE),
    "drift": ("No decomposition of the drift: what it is made of is not scored.", SCORE),
    "region": (
        "Nothing on inside and outside: no edit of the suite names its region, or the frames are "
        "not scored by it.",
        SCORE,
    ),
    "worst": ("No worst cases: no chain is complete.", ""),
    "variance": ("No split of the variance: it needs several sources and edits.", ""),
}

DRIFT_NEEDS: Final = frozenset({"psnr", "colour-offset", "detail-loss", "noise"})
DRIFT_SCORED: Final = (
    "No decomposition of the drift: no homecoming has all that it is made of scored."
)
REGION_UNNAMED: Final = (
    "Nothing on inside and outside: no cycle here names the region of its edits."
)
REGION_UNSCORED: Final = "Nothing on inside and outside: the frames are not scored by psnr."
REGION_EMPTY: Final = "Nothing on inside and outside: no homecoming has a value there."


def absences(findings: Findings, gathered: Gathered | None = None) -> dict[str, Absence]:
    """By kind that has no number here what to say in its place.

    Args:
        findings: What was found.
        gathered: What it was found of: tells which commands can help, and why numbers are absent.
    """
    have = {f.kind for f in findings.findings if f.estimate is not None}
    if not charts.is_taken_apart(findings):
        have.discard("drift")
    wanted = {**WANTED, "drift": _drift(findings), "region": _region(findings, gathered)}
    return {
        kind: Absence(why, _named(command, findings, gathered))
        for kind, (why, command) in wanted.items()
        if kind not in have
    }


def _scored(findings: Findings) -> set[str]:
    return {label.rpartition("@")[0] for label in findings.metrics}


def _drift(findings: Findings) -> tuple[str, str]:
    return (DRIFT_SCORED, "") if _scored(findings) >= DRIFT_NEEDS else WANTED["drift"]


def _region(findings: Findings, gathered: Gathered | None) -> tuple[str, str]:
    """Whether there is a region at all, or only no score of it."""
    is_scored = "psnr" in _scored(findings)
    if gathered is None:
        why, command = WANTED["region"]
        return why, "" if is_scored else command
    walked = {chain.key.cycle for chain in gathered.chains}
    cycles = [gathered.suite.cycle_of(label) for label in sorted(walked)]
    if not any(all(edit.region is not None for edit in cycle.edit) for cycle in cycles):
        return REGION_UNNAMED, ""
    return (REGION_EMPTY, "") if is_scored else (REGION_UNSCORED, SCORE)


def incomplete(findings: Findings, gathered: Gathered | None = None) -> Absence | None:
    """What the dimensions lack; None when both are whole."""
    scored = _scored(findings)
    lacking = {name: [m for m in needs if m not in scored] for name, needs in DIMENSIONS.items()}
    told = [f"{name} needs {' and '.join(some)}" for name, some in lacking.items() if some]
    if not told:
        return None
    metrics = ",".join(m for some in lacking.values() for m in some)
    why = f"Incomplete: {', '.join(told)}. The headline needs both dimensions."
    return Absence(
        why, _named(f"convergebench score {{run}} --metrics {metrics}", findings, gathered)
    )


def _named(command: str, findings: Findings, gathered: Gathered | None) -> str:
    """The command for this run, or RUN for several; empty where it could not help."""
    helps = HELPS.get(command, _pictures_here)
    if not command or (gathered is not None and not helps(gathered)):
        return ""
    return command.format(run="RUN" if findings.runs else shlex.quote(findings.run))


def _pictures_here(gathered: Gathered) -> bool:
    """Whether anything can be scored: an import may be scores alone."""
    return any(chain.held for chain in gathered.chains)


def _can_go_on(gathered: Gathered) -> bool:
    """Whether a run has editors of its own, and has not been told to go as far as that."""
    specs = [run.spec for run in gathered.runs if not run.imported]
    return any(spec is not None and (spec.rounds or 0) < MANY for spec in specs)


HELPS: Final[dict[str, Callable[[Gathered], bool]]] = {MORE_ROUNDS: _can_go_on}
"""When a command that is suggested can be followed; the others need pictures."""
