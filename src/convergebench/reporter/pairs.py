"""Who is above whom: every pair of editors, decided by its test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Finding, Findings
from convergebench.reporter.palette import Ink
from convergebench.reporter.printing import interval, number

TIED: Final = "tied"
"""How the note of a pair begins when its editors do not differ."""


@dataclass(frozen=True)
class Verdict:
    """How the editor of a row stands to that of a column."""

    sign: str
    word: str
    detail: str


@dataclass(frozen=True)
class Matrix:
    """Every pair of editors, in the leaderboard's order."""

    inks: tuple[Ink, ...]
    verdicts: Mapping[tuple[str, str], Verdict]
    tied: int
    decided: int


def is_tied(pair: Finding) -> bool:
    """Whether a comparison found no difference, or had nothing to compare."""
    return pair.estimate is None or pair.note.partition(";")[0] == TIED


def pairs_of(findings: Findings) -> list[Finding]:
    """The comparisons among some findings."""
    return [f for f in findings.findings if f.kind == "pair"]


def matrix(findings: Findings, inks: Mapping[str, Ink]) -> Matrix | None:
    """The comparisons as a matrix; None without any."""
    pairs = pairs_of(findings)
    if not pairs:
        return None
    met = {name for f in pairs for name in (f.editor, f.other)}
    verdicts: dict[tuple[str, str], Verdict] = {}
    for f in pairs:
        up = (f.estimate or 0) > 0
        verdicts[f.editor, f.other] = _verdict(f, up, 1)
        verdicts[f.other, f.editor] = _verdict(f, not up, -1)
    tied = sum(is_tied(f) for f in pairs)
    order = [inks[s.editor] for s in findings.standings if s.editor in met]
    return Matrix(tuple(order), verdicts, tied, len(pairs) - tied)


def _verdict(pair: Finding, above: bool, turn: int) -> Verdict:
    if is_tied(pair):
        sign, word = "=", "tied with"
    else:
        sign, word = ("▲", "above") if above else ("▼", "below")
    if pair.estimate is None:
        return Verdict(sign, word, pair.note)
    span = interval(pair if turn > 0 else _turned(pair))
    told = [
        f"difference {number(turn * pair.estimate)} {span}".strip(),
        f"p {number(pair.p, 4)}" if pair.p is not None else "",
        f"{pair.n} common chains" if pair.n else "",
    ]
    return Verdict(sign, word, ", ".join(word for word in told if word))


def _turned(pair: Finding) -> Finding:
    low = -pair.high if pair.high is not None else None
    high = -pair.low if pair.low is not None else None
    return pair.model_copy(update={"low": low, "high": high})
