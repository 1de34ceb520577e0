"""All findings as tables, by kind: the page's last word on every number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Finding, Findings

KINDS: Final = {
    "score": "Score: mean AUC of the ranking metrics on the common chains",
    "pair": "Pairs: mean paired difference of the score on common chains, with Holm-corrected p",
    "auc": "AUC of an editor's own complete chains",
    "half-life": "Half-life: Kaplan-Meier median, in homecomings",
    "restricted-mean": "Restricted mean: area under the survival curve, in homecomings",
    "literal-half-life": "Half-life by the literal rule, m(n) below the threshold times m(0)",
    "literal-restricted-mean": "Restricted mean by the literal rule",
    "inert": "Inert check: share of forward edits no larger than the transport control's",
    "contraction": "Contraction factor λ between homecomings",
    "shape": "Shape of the curves: share of chains",
    "drift-share": "Drift: each component's share at the last homecoming",
    "forward": "Forward edit: size of its change inside and outside the region",
    "by-edit": "AUC by edit category, all chains",
    "by-image": "AUC by image category, all chains",
    "by-cycle": "AUC by cycle, all chains",
    "by-session": "AUC by session, all chains",
    "by-settings": "AUC by settings, all chains",
    "life-by-edit": "Half-life by edit category, all chains",
    "life-by-image": "Half-life by image category, all chains",
    "life-by-cycle": "Half-life by cycle, all chains",
    "life-by-session": "Half-life by session, all chains",
    "life-by-settings": "Half-life by settings, all chains",
    "variance": "Variance of AUC: share of source, edit and repeat",
    "worst": "Worst cases",
}
"""What the kinds of findings are called; a kind that is not here goes by its own name."""

DRAWN: Final = frozenset(
    (
        "convergence",
        "value",
        "survival",
        "group-convergence",
        "distance",
        "drift",
        "registration",
        "region",
    )
)
"""Kinds with a finding per round or step: points of charts, and in findings.json."""

SHORT: Final = 300
"""Longer tables have a page of their own, so that the first opens at once."""


@dataclass(frozen=True)
class Numbers:
    """All findings of one kind."""

    kind: str
    title: str
    findings: tuple[Finding, ...]

    @property
    def page(self) -> str:
        """The name of the page it has for itself; empty where it is short."""
        if len(self.findings) <= SHORT:
            return ""
        return f"numbers-{re.sub(r'[^a-z0-9-]+', '-', self.kind.lower())}.html"

    @property
    def columns(self) -> tuple[str, ...]:
        """Which of the columns that only some kinds have this one has."""
        optional = ("metric", "group", "other", "chain", "at", "p")
        return tuple(c for c in optional if any(_told(f, c) for f in self.findings))


def _told(finding: Finding, name: str) -> bool:
    return getattr(finding, name) not in (None, "")


def numbers(findings: Findings) -> list[Numbers]:
    """Every finding that is no point of a chart, by kind: the known ones in their order."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings.findings:
        if finding.kind not in DRAWN:
            kinds.setdefault(finding.kind, []).append(finding)
    order = list(KINDS)
    ordered = sorted(kinds, key=lambda k: order.index(k) if k in KINDS else len(order))
    return [Numbers(kind, KINDS.get(kind, kind), tuple(kinds[kind])) for kind in ordered]
