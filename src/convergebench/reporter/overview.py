"""The report's first page: summary, leaderboard, charts, worst cases, numbers, provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from convergebench.analysis import Findings
from convergebench.gathering import Gathered
from convergebench.machine import versions
from convergebench.reporter import board, charts
from convergebench.reporter.absences import Absence, absences, incomplete
from convergebench.reporter.charts import Drawing
from convergebench.reporter.costs import controls_of, costs_of
from convergebench.reporter.folder import templates, write_changed
from convergebench.reporter.gallery import worst_of
from convergebench.reporter.imports import imports_of
from convergebench.reporter.leaders import leaders
from convergebench.reporter.numbers import numbers
from convergebench.reporter.pairs import matrix
from convergebench.reporter.palette import Ink
from convergebench.reporter.summary import summary


@dataclass(frozen=True)
class Panel:
    """What is drawn of one metric."""

    metric: str
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Drawings:
    """Every chart of the page, by section."""

    panels: tuple[Panel, ...]
    edits: tuple[Drawing, ...]
    decay: tuple[Drawing, ...]
    drift: tuple[Drawing, ...]
    walks: tuple[Drawing, ...]
    regions: tuple[Drawing, ...]

    @property
    def all(self) -> list[Drawing]:
        """In the page's order."""
        curves = [drawing for panel in self.panels for drawing in panel.drawings]
        return [*curves, *self.edits, *self.decay, *self.drift, *self.walks, *self.regions]

    @property
    def filters(self) -> dict[str, list[str]]:
        """The groups of chains that curves can be had of: edits, then images."""
        names = {str(row["group"]) for drawing in self.all for row in drawing.groups}
        parts = {"edit:": "Edit category", "image:": "Image category"}
        found = {t: sorted(n for n in names if n.startswith(p)) for p, t in parts.items()}
        return {title: some for title, some in found.items() if some}


def drawings_of(
    findings: Findings,
    inks: Mapping[str, Ink],
    categories: Mapping[str, str] | None = None,
    about: Mapping[str, str] | None = None,
) -> Drawings:
    """Every chart that the findings allow.

    Args:
        findings: What was found.
        inks: How each editor is drawn.
        categories: Category of each cycle, by its label.
        about: What each metric is, for captions.
    """
    survival = charts.survival_drawings(findings, inks)
    panels: dict[str, list[Drawing]] = {}
    for curves in charts.curves_of(findings):
        mine = panels.setdefault(curves.metric, [])
        mine.append(charts.curve_drawing(curves, inks, (about or {}).get(curves.metric, "")))
    for metric, drawing in survival.items():
        panels.setdefault(metric, []).insert(1, drawing)
    order = charts.wider_names(findings)
    named = sorted(panels, key=lambda m: (order.index(m) if m in order else len(order), m))
    heat = charts.heatmap_drawing(findings, inks, categories or {})
    variance = charts.variance_drawing(findings, inks)
    scatter = charts.scatter_drawing(findings, inks)
    shapes = charts.shape_drawing(findings, inks)
    drift = charts.drift_drawings(findings, inks)
    return Drawings(
        panels=tuple(Panel(metric, tuple(panels[metric])) for metric in named),
        edits=_some(heat, variance, *charts.group_drawings(findings, inks)),
        decay=_some(scatter, shapes, *charts.contraction_drawings(findings, inks)),
        drift=tuple(d for d in drift if d.id == "drift-shares"),
        walks=tuple(d for d in drift if d.id != "drift-shares"),
        regions=tuple(charts.region_drawings(findings, inks)),
    )


def _some(*drawings: Drawing | None) -> tuple[Drawing, ...]:
    return tuple(drawing for drawing in drawings if drawing is not None)


def write_overview(
    folder: Path,
    gathered: Gathered,
    findings: Findings,
    inks: Mapping[str, Ink],
    common: Mapping[str, Any],
) -> None:
    """Write the first page, its data and its drawings.

    Args:
        folder: The report's folder.
        gathered: The runs.
        findings: What the analysis found of them.
        inks: The editors' colours.
        common: What every page's template is given.
    """
    chains, suite = gathered.chains, gathered.suite
    metrics = board.metric_facts(findings)
    about = {
        m.name: ", ".join(w for w in (f"{m.label}: {m.title}", m.direction) if w) for m in metrics
    }
    categories = {f"{c.name}@{c.version}": c.category for c in suite.cycle}
    drawn = drawings_of(findings, inks, categories, about)
    for drawing in drawn.all:
        write_still(folder / "charts" / f"{drawing.id}.svg", drawing)
        _write_data(folder, drawing)
    pages = templates()
    tables = numbers(findings)
    for table in tables:
        if table.page:
            page = pages.get_template("numbers.html").render(**common, table=table)
            write_changed(folder / table.page, page.encode())
    page = pages.get_template("index.html").render(
        **{"companions": (), **common},
        summary=summary(findings),
        leaders=leaders(findings, inks),
        incomplete=incomplete(findings, gathered),
        matrix=matrix(findings, inks),
        notes=board.page_notes(findings),
        absences=_absences(findings, gathered),
        metrics=metrics,
        numbers=tables,
        drawn=drawn,
        live=live(drawn.all),
        worst=worst_of(findings, chains, suite, common["pictures"], inks),
        costs=costs_of(chains, inks),
        controls=controls_of(inks, gathered.editors),
        inert=[f for f in findings.findings if f.kind == "inert"],
        failures=board.failures(chains, inks),
        editors=board.editor_facts(chains, inks),
        imports=imports_of(gathered),
        sessions={run.name: board.sessions(run.store) for run in gathered.runs},
        versions=versions(),
    )
    write_changed(folder / "index.html", page.encode())


def _absences(findings: Findings, gathered: Gathered) -> dict[str, Absence]:
    """What is missing, with the findings' own reason where no editor has a shape."""
    found = absences(findings, gathered)
    why = charts.why_shapeless(findings)
    if why:
        bare = absences(findings.model_copy(update={"findings": ()}), gathered)
        found["shape"] = Absence(why, bare["shape"].command)
    return found


def live(drawings: Iterable[Drawing]) -> dict[str, Any]:
    """What the page's script needs beside the data: specifications, colours, themes."""
    return {
        "themes": {"light": charts.theme((), dark=False), "dark": charts.theme((), dark=True)},
        "charts": {
            d.id: {
                "spec": d.specification(page=True),
                "light": d.light,
                "dark": d.dark,
                **({"groups": True} if d.groups else {}),
            }
            for d in drawings
        },
    }


def _write_data(folder: Path, drawing: Drawing) -> None:
    """The data as scripts: a page opened from a file may load these, and nothing else."""
    for name, rows in ((drawing.id, drawing.rows), (f"{drawing.id}.groups", drawing.groups)):
        if rows:
            told = json.dumps(charts.columns(rows), separators=(",", ":"), ensure_ascii=False)
            text = f"convergebench.take({json.dumps(name)},{told});\n"
            write_changed(folder / "data" / "charts" / f"{name}.js", text.encode())


def write_still(path: Path, drawing: Drawing) -> None:
    """The drawing as SVG, unless it is there: making one takes a good part of a second."""
    specification = drawing.specification(page=False)
    told = json.dumps([specification, version("vl-convert-python")], sort_keys=True)
    mark = f"<!-- {hashlib.sha256(told.encode()).hexdigest()[:32]} -->\n".encode()
    try:
        if path.read_bytes().endswith(mark):
            return
    except FileNotFoundError:
        pass
    write_changed(path, charts.still(specification).encode() + b"\n" + mark)
