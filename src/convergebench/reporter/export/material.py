"""What is exported: the findings, and what the runs' records say beside them."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

from convergebench.analysis import Finding, Findings
from convergebench.chain import Chain, FrameRef
from convergebench.errors import MalformedImage, StoreDamaged
from convergebench.frame import decode
from convergebench.gathering import Gathered
from convergebench.machine import versions
from convergebench.reporter import board
from convergebench.reporter.absences import Absence, absences, incomplete
from convergebench.reporter.charts import Drawing
from convergebench.reporter.costs import Cost, costs_of
from convergebench.reporter.imports import Import, imports_of
from convergebench.reporter.overview import Drawings, drawings_of
from convergebench.reporter.palette import Ink, inks
from convergebench.store import RunStore
from convergebench.suite import Suite

PICTURED: Final = 6
"""So many of the worst cases have pictures in the PDF."""

SIDE: Final = 260
"""Longest side of these pictures, in pixels."""


@dataclass(frozen=True)
class Material:
    """Everything the formats are made of.

    Attributes:
        findings: What was found.
        inks: How each editor is drawn.
        drawn: The charts.
        editors: Versions, returned models and caveats of the editors.
        failures: Steps that gave no frame.
        costs: What the calls came to.
        pictures: The first of the worst cases, with home and the last homecoming as data addresses
            of PNG, None where a frame is not here.
        runs: Name of each run, when it was created, and the fingerprint of its suite.
        versions: Versions of libraries here.
        absent: What has no number here, by kind.
        lack: What the dimensions lack.
        imports: The imports that the runs were made by.
    """

    findings: Findings
    inks: Mapping[str, Ink]
    drawn: Drawings
    editors: Sequence[board.EditorFacts] = ()
    failures: Sequence[board.Failure] = ()
    costs: Sequence[Cost] = ()
    pictures: Sequence[tuple[Finding, str | None, str | None]] = ()
    runs: Sequence[tuple[str, str, str]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Absence] = field(default_factory=dict)
    lack: Absence | None = None
    imports: Sequence[Import] = ()

    @property
    def drawings(self) -> list[Drawing]:
        """Every chart, in the page's order."""
        return self.drawn.all

    @cached_property
    def specifications(self) -> dict[str, dict[str, Any]]:
        """Every chart for paper, by its id; made once, because checking one takes its time."""
        return {drawing.id: drawing.specification(page=False) for drawing in self.drawings}


def plain_material(findings: Findings) -> Material:
    """What findings alone give."""
    inked = inks([(s.editor, s.control) for s in findings.standings])
    return Material(
        findings,
        inked,
        drawings_of(findings, inked),
        absent=absences(findings),
        lack=incomplete(findings),
    )


def material_of(gathered: Gathered, findings: Findings) -> Material:
    """What findings and the runs' records give."""
    inked = inks([(s.editor, s.control) for s in findings.standings])
    chains, suite = gathered.chains, gathered.suite
    metrics = board.metric_facts(findings)
    about = {
        m.name: ", ".join(w for w in (f"{m.label}: {m.title}", m.direction) if w) for m in metrics
    }
    categories = {f"{c.name}@{c.version}": c.category for c in suite.cycle}
    named = {chain.key.id: chain for chain in chains}
    cases = [f for f in findings.findings if f.kind == "worst" and f.chain in named]
    pictures = []
    for case in cases[:PICTURED]:
        chain, store = named[case.chain], gathered.stores[case.chain]
        last = _last_home(chain, suite)
        pictures.append((case, _png(chain.source, store), _png(last, store)))
    return Material(
        findings,
        inked,
        drawings_of(findings, inked, categories, about),
        editors=board.editor_facts(chains, inked),
        failures=board.failures(chains, inked),
        costs=costs_of(chains, inked),
        pictures=pictures,
        runs=[
            (run.name, run.store.info.created, run.store.info.fingerprint) for run in gathered.runs
        ],
        versions={"convergebench": version("convergebench"), **versions()},
        absent=absences(findings, gathered),
        lack=incomplete(findings, gathered),
        imports=imports_of(gathered),
    )


def _last_home(chain: Chain, suite: Suite) -> FrameRef | None:
    """The last frame here that should look like the source, as it is; None without one."""
    cycle = suite.cycle_of(chain.key.cycle)
    homes = [(step, cycle.home(step)) for step in chain.held if step]
    plain = [step for step, home in homes if home and not (home.flip or home.quarters or home.grey)]
    return chain.held[max(plain)] if plain else None


def _png(ref: FrameRef | None, store: RunStore) -> str | None:
    """A small picture of a frame as a data address; None where it is not to be had."""
    from PIL import Image

    if ref is None:
        return None
    with contextlib.suppress(StoreDamaged, MalformedImage):
        pixels, _ = decode(store.frame(ref).data)
        image = Image.fromarray(pixels)
        image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
        out = io.BytesIO()
        image.save(out, "PNG")
        return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
    return None
