"""Building the report's folder.

    index.html                    leaderboard, curves, failures, provenance
    source-NAME.html              filmstrips of every chain of a source
    findings.json, report.json    every number shown; whose report this is
    charts/*.svg                  the curves as drawings
    frames/ab/…  thumbs/ab/…      full frames (hard links where possible) and thumbnails
    static/                       style, script, and Vega in one file

The folder can be moved, zipped and opened from a file: it holds no address. It is written by
rename, index.html last, and a second build rewrites only what has changed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from convergebench.analysis import Findings
from convergebench.analysis.roundtrip import analyze_gathered
from convergebench.chain import FrameRef
from convergebench.disk import plain_errors
from convergebench.errors import StoreError
from convergebench.gathering import Gathered, gather
from convergebench.reporter import board, charts, palette
from convergebench.reporter.pictures import Picture, bring_pictures, replace_file
from convergebench.reporter.strips import strips_of
from convergebench.store import versions
from convergebench.table import Table

FORMAT: Final = 1
MARKER: Final = "report.json"
LONGEST_NAME: Final = 120
"""Of the runs' names together, in the name of a folder."""


@dataclass(frozen=True)
class Report:
    """A report that was built."""

    path: Path
    findings: Findings

    @property
    def table(self) -> Table:
        """The leaderboard, and where the report is."""
        board = self.findings.table
        return Table(board.title, board.columns, board.rows, (*board.notes, f"Report: {self.path}"))

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"path": str(self.path), "findings": self.findings.model_dump(mode="json")}


def report(
    *directories: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    rounds: int | None = None,
    observe: Callable[[int, int], None] | None = None,
) -> Report:
    """Analyse a scored run, or several together, and write the report.

    Args:
        directories: The run directories.
        out: The report's folder; by default `report` in the run directory, or for several runs a
            folder here that is named after them.
        rounds: Look only at the first so many homecomings.
        observe: Called with (done, total) as pictures are brought in.

    Raises:
        ConvergeBenchError: A run has no scores yet, or no chains.
        StoreMismatch: The runs cannot be compared.
        StoreError: `out` holds something else, or cannot be written.
    """
    gathered = gather(directories, rounds=rounds)
    # Pages that go elsewhere are not kept from a run that cannot be written to.
    findings = analyze_gathered(gathered, insist=out is None)
    folder = Path(out) if out is not None else _usual_place(gathered)
    with plain_errors(folder):
        _claim(folder, gathered)
        pictures = bring_pictures(_frames(gathered), folder, observe)
        _write_static(folder)
        _write_pages(folder, gathered, findings, pictures)
    return Report(folder / "index.html", findings)


def _usual_place(gathered: Gathered) -> Path:
    if not gathered.several:
        return gathered.runs[0].store.path / "report"
    names = [re.sub(r"[^\w.-]+", "-", run.name).strip("-") for run in gathered.runs]
    joined = "+".join(names)
    if len(joined) > LONGEST_NAME:
        joined = f"{names[0][:LONGEST_NAME]}+{len(names) - 1}-more"
    return Path(f"{joined}-report")


def _claim(folder: Path, gathered: Gathered) -> None:
    """Make the folder, and mark it as these runs' report. Raises StoreError if it is not."""
    infos = [run.store.info for run in gathered.runs]
    # The suite of an imported run grows with it: the run stays the same.
    runs = sorted(
        (
            {"created": info.created, "fingerprint": "" if info.imported else info.fingerprint}
            for info in infos
        ),
        key=str,
    )
    me = {"format": FORMAT, **({"runs": runs} if gathered.several else runs[0])}
    mark = _text(me)
    try:
        if (folder / MARKER).read_bytes() == mark:
            return
        raise StoreError(f"{folder} holds the report of another run. Choose another folder.")
    except (FileNotFoundError, NotADirectoryError):
        pass
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(
            f"{folder} exists and is not a report. Choose another folder, or empty it."
        )
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / MARKER, mark)


def _frames(gathered: Gathered) -> list[tuple[FrameRef, Path]]:
    """Every frame a page shows or links, and where it is."""
    found = []
    for chain in gathered.chains:
        store = gathered.stores[chain.key.id]
        steps = [step.frame for step in chain.steps]
        refs = [ref for ref in (chain.source, chain.truth, *steps) if ref]
        found += [(ref, store.frame_path(ref)) for ref in refs]
    return found


def _write_static(folder: Path) -> None:
    shipped = resources.files("convergebench.reporter") / "static"
    for file in shipped.iterdir():
        _write(folder / "static" / file.name, file.read_bytes())
    # Making the bundle takes seconds; the first line tells whether the one there is the same.
    vega = folder / "static" / "vega.js"
    banner = (
        f"/* Vega, Vega-Lite, Vega-Embed by vl-convert-python {version('vl-convert-python')} */"
    )
    try:
        with vega.open("rb") as known:
            if known.readline() == f"{banner}\n".encode():
                return
    except FileNotFoundError:
        pass
    _write(vega, f"{banner}\n{_bundle()}".encode())


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that leaves `vegaEmbed` behind."""
    import vl_convert

    # In a function of its own, so that the bundle's one-letter names stay out of the page.
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"(() => {{\n{bundle}\n}})();\n"


def _write_pages(
    folder: Path,
    gathered: Gathered,
    findings: Findings,
    pictures: Mapping[str, Picture],
) -> None:
    suite, chains = gathered.suite, gathered.chains
    inks = palette.inks([(s.editor, s.control) for s in findings.standings])
    metrics = board.metric_facts(findings)
    drawn = charts.curves_of(findings)
    live = {}
    for curves in drawn:
        title = "C(n)" if curves.kind == "convergence" else curves.metric
        drawing = charts.specification(curves, inks, title, page=False)
        _write(folder / "charts" / f"{curves.id}.svg", charts.still(drawing).encode())
        shown = curves.drawn(inks)
        live[curves.id] = {
            "spec": charts.specification(curves, inks, title, page=True),
            "light": charts.theme(shown, dark=False),
            "dark": charts.theme(shown, dark=True),
        }
    pages = _environment()
    used = {chain.key.source for chain in chains}
    sources = [source for source in suite.source if source.name in used]
    # The chain a source is shown by: the first that has its picture.
    first = {chain.key.source: chain for chain in reversed(chains)}
    first |= {chain.key.source: chain for chain in reversed(chains) if chain.source}
    common = {
        "findings": findings,
        "runs": [run.store for run in gathered.runs],
        "inks": inks,
        "sources": sources,
        "first": first,
        "pictures": pictures,
    }
    for index, source in enumerate(sources):
        mine = [chain for chain in chains if chain.key.source == source.name]
        page = pages.get_template("source.html").render(
            **common,
            source=source,
            before=sources[index - 1] if index else None,
            after=sources[index + 1] if index + 1 < len(sources) else None,
            strips=strips_of(mine, suite, pictures, inks, [s.editor for s in findings.standings]),
        )
        _write(folder / f"source-{source.name}.html", page.encode())
    _write(folder / "findings.json", _text(findings.model_dump(mode="json")))
    page = pages.get_template("index.html").render(
        **common,
        groups=board.groups(findings, inks),
        notes=board.page_notes(findings),
        lives=board.life_names(findings),
        metrics=metrics,
        numbers=board.numbers(findings),
        curves=drawn,
        live=live,
        failures=board.failures(chains, inks),
        editors=board.editor_facts(chains, inks),
        sessions={run.name: board.sessions(run.store) for run in gathered.runs},
        versions=versions(),
    )
    _write(folder / "index.html", page.encode())


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("convergebench.reporter"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = board.number
    return environment


def _write(path: Path, data: bytes) -> None:
    """Write a file unless it is there with this content."""
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


def _text(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()
