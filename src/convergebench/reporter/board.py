"""What index.html shows of findings and records beside the numbers: notes, failures, provenance."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from convergebench.analysis import Findings
from convergebench.analysis.notes import TABLE_KEY
from convergebench.chain import Chain
from convergebench.comparisons import PUBLISHED
from convergebench.errors import ConvergeBenchError
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.reporter.charts import VERDICT, metric_names
from convergebench.reporter.leaders import MADE, MEANINGS
from convergebench.reporter.palette import Ink
from convergebench.reporter.printing import number as number
from convergebench.reporter.strips import variants_of
from convergebench.store import RunStore

STEPS: Final = (
    "λ is the factor by which the steps between homecomings shrink or grow, the median over "
    f"chains with its 95 % interval. {VERDICT}"
)


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


def page_notes(findings: Findings) -> list[str]:
    """The notes, with the page's columns explained in place of the printed table's."""
    reasons = {s.why_unranked for s in findings.standings}
    gaps = any("missing" in s.outcomes for s in findings.standings)
    moved = any(f.kind == "contraction" and f.estimate is not None for f in findings.findings)
    return [
        *(f"{why.capitalize()}: {what}." for why, what in MEANINGS.items() if why in reasons),
        *(note for note in findings.notes if note != TABLE_KEY),
        "AUC is the area under the convergence curve: the mean of C(1) … C(N).",
        *([STEPS] if moved else []),
        "n counts complete chains: those that came home as often as they should, all of it scored, "
        "of all that can be measured; missing are the others, and of these failed and refused "
        "ended too early. Censored chains never fell while they were followed."
        + (" Missing: those whose frame was made and is not here." if gaps else ""),
    ]


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
