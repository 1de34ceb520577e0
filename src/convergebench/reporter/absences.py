"""What a section says when its numbers are not there: what is missing, and what would give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Findings
from convergebench.analysis.findings import DIMENSIONS
from convergebench.reporter import charts


@dataclass(frozen=True)
class Absence:
    """A sentence on what is missing, and the command that would give it."""

    why: str
    command: str = ""


SCORE: Final = "convergebench score {run} --metrics round-trip"
MORE_ROUNDS: Final = "convergebench run {run} --rounds 10"

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


def absences(findings: Findings) -> dict[str, Absence]:
    """By kind that has no number here what to say in its place."""
    have = {f.kind for f in findings.findings if f.estimate is not None}
    if not charts.is_taken_apart(findings):
        have.discard("drift")
    return {
        kind: Absence(why, _named(command, findings))
        for kind, (why, command) in WANTED.items()
        if kind not in have
    }


def incomplete(findings: Findings) -> Absence | None:
    """What the dimensions lack; None when both are whole."""
    scored = {label.rpartition("@")[0] for label in findings.metrics}
    lacking = {name: [m for m in needs if m not in scored] for name, needs in DIMENSIONS.items()}
    told = [f"{name} needs {' and '.join(some)}" for name, some in lacking.items() if some]
    if not told:
        return None
    metrics = ",".join(m for some in lacking.values() for m in some)
    why = f"Incomplete: {', '.join(told)}. The headline needs both dimensions."
    return Absence(why, _named(f"convergebench score {{run}} --metrics {metrics}", findings))


def _named(command: str, findings: Findings) -> str:
    """The command for this run; for several, one run after the other."""
    names: Mapping[str, str] = {"run": "RUN" if findings.runs else findings.run}
    return command.format(**names) if command else ""
