"""The worst cases as pictures: home beside what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convergebench.analysis import Finding, Findings
from convergebench.analysis.groups import SCORE
from convergebench.chain import Chain, FrameRef
from convergebench.reporter.palette import Ink
from convergebench.reporter.pictures import Picture
from convergebench.reporter.printing import listed, number
from convergebench.suite import Suite


@dataclass(frozen=True)
class Worst:
    """One chain that was lost, and where to look at it."""

    ink: Ink
    source: str
    image: str
    cycle: str
    metric: str
    estimate: str
    fast: str
    home: Picture | None
    frame: Picture | None
    step: int
    link: str


def worst_of(
    findings: Findings,
    chains: Sequence[Chain],
    suite: Suite,
    pictures: Mapping[str, Picture],
    inks: Mapping[str, Ink],
) -> list[Worst]:
    """The worst chains among some findings, as far as they are recorded here."""
    known = {chain.key.id: chain for chain in chains}
    categories = {source.name: source.category for source in suite.source}
    found = []
    for f in findings.findings:
        chain = known.get(f.chain)
        if f.kind != "worst" or chain is None or f.editor not in inks:
            continue
        step = _last_home(chain, suite)
        source = chain.key.source
        found.append(
            Worst(
                ink=inks[f.editor],
                source=source,
                image=categories.get(source, ""),
                cycle=chain.key.cycle.rpartition("@")[0] or chain.key.cycle,
                metric=f.metric,
                estimate=number(f.estimate),
                fast=_fall(f, findings),
                home=_picture(chain.source, pictures),
                frame=_picture(chain.held.get(step), pictures),
                step=step,
                link=f"source-{source}.html#{f.chain}/{step}/difference",
            )
        )
    return found


def _fall(worst: Finding, findings: Findings) -> str:
    """When the chain fell, and by what: of a mean of metrics the first of them to fall counts."""
    told = worst.note.rpartition(": ")[2]
    if not told or told.startswith("by "):
        return told
    if worst.metric != SCORE:
        return f"by {worst.metric} {told}"
    return f"by the first of {listed(list(findings.ranked_by))} to fall {told}"


def _picture(ref: FrameRef | None, pictures: Mapping[str, Picture]) -> Picture | None:
    return pictures.get(ref.sha256) if ref else None


def _last_home(chain: Chain, suite: Suite) -> int:
    """The last frame that should look like the source; else the last of all."""
    cycle = suite.cycle_of(chain.key.cycle)
    steps = [step for step in (chain.held or dict.fromkeys(chain.reached)) if step]
    homes = [(step, cycle.home(step)) for step in steps]
    plain = [s for s, h in homes if h and not (h.flip or h.quarters or h.grey)]
    return max(plain or [s for s, h in homes if h] or steps or [0])
