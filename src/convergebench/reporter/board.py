"""What index.html shows of findings and records: leaderboard, failures, floors, provenance."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Finding, Findings, Standing
from convergebench.analysis.findings import HEADLINE
from convergebench.analysis.leaderboard import INERT
from convergebench.analysis.notes import TABLE_KEY
from convergebench.chain import Chain
from convergebench.comparisons import PUBLISHED
from convergebench.errors import ConvergeBenchError
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.reporter.charts import KINDS as CURVES
from convergebench.reporter.charts import metric_names
from convergebench.reporter.palette import Ink
from convergebench.reporter.strips import variants_of
from convergebench.store import RunStore


def number(value: float | int | None, digits: int = 3) -> str:
    """A number as printed: three decimals, a true minus sign; a dash for none."""
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return text.replace("-", "−")


KINDS: Final = {
    "score": "Score: mean AUC of the ranking metrics on the common chains",
    "auc": "AUC of an editor's own complete chains",
    "half-life": "Half-life: Kaplan-Meier median, in homecomings",
    "restricted-mean": "Restricted mean: area under the survival curve, in homecomings",
    "literal-half-life": "Half-life by the literal rule, m(n) below the threshold times m(0)",
    "literal-restricted-mean": "Restricted mean by the literal rule",
    "inert": "Inert check: share of forward edits no larger than the transport control's",
}
"""What the kinds of findings are called; a kind that is not here goes by its own name."""


MEANINGS: Final = {INERT: "forward edits change the picture no more than re-saving it as JPEG does"}
"""Reasons for not being ranked that need a word more."""

CENSORED: Final = ("half-life", "literal-half-life")
"""Kinds whose `missing` counts chains that never fell, so that their own half-life is unknown."""


MADE: Final = ("edited", "reported")
"""Outcomes of steps that lack nothing: their frame is here, or was never to be."""


@dataclass(frozen=True)
class Line:
    """One editor's line in the leaderboard."""

    standing: Standing
    ink: Ink
    failed: tuple[tuple[str, int], ...]
    why: str

    @property
    def meaning(self) -> str:
        """What the reason means, where its word does not say it."""
        return MEANINGS.get(self.why, "")


@dataclass(frozen=True)
class Group:
    """Lines that belong together: the ranked, and the others."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Numbers:
    """All findings of one kind."""

    kind: str
    title: str
    findings: tuple[Finding, ...]

    @property
    def missing(self) -> str:
        """What the column of `missing` is called."""
        return "Censored" if self.kind in CENSORED else "Missing"


@dataclass(frozen=True)
class Failure:
    """One step that gave no frame to go on with."""

    source: str
    chain: str
    ink: Ink
    cycle: str
    variant: str
    step: int
    outcome: str
    detail: str
    attempts: int


@dataclass(frozen=True)
class EditorFacts:
    """Which version of an editor ran, and which models the provider said answered."""

    ink: Ink
    versions: tuple[str, ...]
    models: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class MetricFacts:
    """A metric's card, as far as it can be opened here."""

    name: str
    label: str
    title: str
    direction: str


@dataclass(frozen=True)
class Session:
    """A process began or ended work on the run."""

    at: str
    event: str
    stopped: str
    versions: Mapping[str, str]


def groups(findings: Findings, inks: Mapping[str, Ink]) -> list[Group]:
    """The leaderboard in parts; the first are the ranked, even if there are none."""
    parts: dict[str, list[Line]] = {"": [], "Not ranked": []}
    for s in findings.standings:
        failed = tuple(sorted((o, n) for o, n in s.outcomes.items() if o not in MADE))
        part = "" if s.best_rank is not None else "Not ranked"
        parts[part].append(Line(s, inks[s.editor], failed, s.why_unranked))
    return [Group(title, tuple(rows)) for title, rows in parts.items() if rows or not title]


def page_notes(findings: Findings) -> list[str]:
    """The notes, with the page's columns explained in place of the printed table's."""
    reasons = {s.why_unranked for s in findings.standings}
    gaps = any("missing" in s.outcomes for s in findings.standings)
    return [
        *(f"{why.capitalize()}: {what}." for why, what in MEANINGS.items() if why in reasons),
        *(note for note in findings.notes if note != TABLE_KEY),
        "Complete chains: those that came home as often as they should, all of it scored, of all "
        "that can be measured. Failed steps: those that gave no frame."
        + (" Missing: those whose frame was made and is not here." if gaps else ""),
    ]


def life_names(findings: Findings) -> list[str]:
    """Whose half-lives the leaderboard shows: headline and dimensions, then metrics."""
    known = {name for s in findings.standings for name in s.half_life}
    metrics = metric_names(findings)
    wider = sorted(known - set(metrics), key=lambda name: (name != HEADLINE, name))
    return wider + [name for name in metrics if name in known]


def numbers(findings: Findings) -> list[Numbers]:
    """Every finding that is no point of a curve, by kind."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings.findings:
        kind = finding.id.partition("/")[0]
        if kind not in CURVES:
            kinds.setdefault(kind, []).append(finding)
    return [Numbers(kind, KINDS.get(kind, kind), tuple(found)) for kind, found in kinds.items()]


def failures(chains: Sequence[Chain], inks: Mapping[str, Ink]) -> list[Failure]:
    """Every step that has no frame here in the end, and was not reported by its scores."""
    variants = variants_of(chains)
    return [
        Failure(
            source=chain.key.source,
            chain=chain.key.id,
            ink=inks[chain.key.editor],
            cycle=chain.key.cycle,
            variant=variants[chain.key.id],
            step=step.step,
            outcome=step.outcome,
            detail=step.detail,
            attempts=step.attempts,
        )
        for chain in sorted(chains, key=lambda c: (c.key.editor, c.key.id))
        for step in chain.final
        if step.outcome not in MADE
    ]


def metric_facts(findings: Findings) -> list[MetricFacts]:
    """The metrics' cards; only names where a metric cannot be opened here."""
    found = []
    for label, name in zip(findings.metrics, metric_names(findings), strict=True):
        spec: MetricSpec | None = None
        with contextlib.suppress(ConvergeBenchError):
            spec = metric_spec(name)
        better = "higher is better" if spec and spec.higher_is_better else "lower is better"
        told = better if spec and not spec.alignment else ""  # which way a frame moved is neither
        title = (spec and spec.title) or name
        if label.startswith(f"{name}@{PUBLISHED}"):
            title = f"{name} as they measured it"  # our title would say how, which nobody knows
        found.append(MetricFacts(name, label, title, told))
    return found


def editor_facts(chains: Sequence[Chain], inks: Mapping[str, Ink]) -> list[EditorFacts]:
    """Versions, returned models and caveats of every editor, as recorded."""
    found = []
    for name, ink in inks.items():
        mine = [chain for chain in chains if chain.key.editor == name]
        calls = [step.call for chain in mine for step in chain.steps]
        found.append(
            EditorFacts(
                ink=ink,
                versions=tuple(dict.fromkeys(c.editor_version for c in mine)),
                models=tuple(dict.fromkeys(call.model for call in calls if call.model)),
                caveats=tuple(dict.fromkeys(word for call in calls for word in call.caveats)),
            )
        )
    return found


def sessions(store: RunStore) -> list[Session]:
    """The lines of `sessions.jsonl`; a line cut off in writing is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in (store.path / "sessions.jsonl").read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                found.append(
                    Session(
                        at=told["at"],
                        event=f"{told['event']} {told.get('command', '')}".strip(),
                        stopped=told.get("stopped", ""),
                        versions=told.get("versions", {}),
                    )
                )
    return found
