"""Building the report's folder.

    index.html                    leaderboard, curves, failures, provenance
    source-NAME.html              filmstrips of every chain of a source, and their viewer
    data/source-NAME.js           what the viewer tells of every step
    data/rows-NAME.js             the rows of a page that has too many for its start
    trial.html, failures.html, self-evaluation.html    of replications (`companions`)
    restoration.html              of repairs, with restoration.json and restoration/ (tables)
    findings.json, report.json    every number shown; whose report this is
    charts/*.svg                  the curves as drawings
    frames/ab/…  thumbs/ab/…      full frames (hard links where possible) and thumbnails
    static/                       style, script, and Vega in one file

The folder can be moved, zipped and opened from a file: it holds no address. It is written by
rename, index.html last, and a second build rewrites only what has changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from convergebench.analysis import Findings
from convergebench.analysis.roundtrip import analyze_gathered
from convergebench.chain import Chain, FrameRef
from convergebench.disk import plain_errors, replace_file
from convergebench.errors import StoreError
from convergebench.gathering import Gathered, gather
from convergebench.remote.address import Address, address_of
from convergebench.reporter import palette
from convergebench.reporter.companions import (
    Beside,
    Companion,
    standing_companions,
    write_companions,
)
from convergebench.reporter.export import export, formats_named
from convergebench.reporter.folder import as_json, templates, write_changed, write_static
from convergebench.reporter.overview import write_overview
from convergebench.reporter.pictures import Picture, bring_pictures
from convergebench.reporter.publishing import publish
from convergebench.reporter.strips import fold, strips_of
from convergebench.reporter.viewer import (
    data_file,
    rows_file,
    rows_script,
    scores_of,
    viewer_script,
)
from convergebench.store import RunStore
from convergebench.table import Table

FORMAT: Final = 1
MARKER: Final = "report.json"
LONGEST_NAME: Final = 120
"""Of the runs' names together, in the name of a folder."""


@dataclass(frozen=True)
class Report:
    """A report that was built.

    Attributes:
        path: Its first page; without pages its folder.
        findings: What was found.
        files: What to open: the first page, and every file of the other formats.
        beside: The pages beside the first one, and the studies on them.
        published: Where it was uploaded to, if it was.
    """

    path: Path
    findings: Findings
    files: tuple[Path, ...] = ()
    beside: Beside = field(default_factory=Beside)
    published: Address | None = None

    @property
    def table(self) -> Table:
        """The leaderboard, or the methods where pictures were only restored; and where it is."""
        restored = self.beside.restoration if self.beside.leads else None
        board = (restored or self.findings).table
        notes = [*board.notes, f"Report: {self.path}"]
        folder = self.path if self.path.is_dir() else self.path.parent
        # A folder of tables or figures is told once, not file by file.
        parts = dict.fromkeys(path.relative_to(folder).parts[0] for path in self.files)
        more = [name for name in parts if folder / name != self.path]
        if more:
            notes.append(f"Beside it, in {folder}: {', '.join(more)}")
        if self.published:
            notes.append(f"Uploaded to: {self.published}/")
        return Table(board.title, board.columns, board.rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "files": [str(path) for path in self.files],
            "published": str(self.published) if self.published else None,
            "findings": self.findings.model_dump(mode="json"),
        }


def report(
    *directories: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    rounds: int | None = None,
    observe: Callable[[int, int], None] | None = None,
    partial: bool = False,
    formats: Sequence[str] = ("html",),
) -> Report:
    """Analyse a scored run, or several together, and write the report.

    Args:
        directories: The run directories.
        out: The report's folder; by default `report` in the run directory, or for several runs,
            and for a run on object storage, a folder here that is named after them. An address:
            it is made in that folder and uploaded.
        rounds: Look only at the first so many homecomings.
        observe: Called with (done, total) as pictures are brought in.
        partial: Whether to show the pictures of a run that has no scores yet.
        formats: Any of html, csv, latex, md and pdf.

    Raises:
        UnknownName: There is no such format.
        ConvergeBenchError: A run has no scores yet, or no chains.
        StoreMismatch: The runs cannot be compared.
        StoreError: `out` holds something else, or cannot be written.
    """
    wanted = formats_named(formats)
    gathered = gather(directories, rounds=rounds)
    # Pages that go elsewhere are not kept from a run that cannot be written to.
    findings = analyze_gathered(gathered, insist=out is None, partial=partial)
    published = address_of(out) if out is not None else None
    here = out is not None and published is None
    folder = Path(out) if here and out else usual_place([run.store for run in gathered.runs])
    with plain_errors(folder):
        _claim(folder, gathered)
        beside = Beside()
        if "html" in wanted:
            pictures = bring_pictures(_frames(gathered), folder, observe)
            write_static(folder)
            beside = standing_companions(folder) if partial else write_companions(folder, gathered)
            _write_pages(folder, gathered, findings, pictures, beside.pages)
        files = export(folder, gathered, findings, wanted)
    if published:
        publish(folder, published, MARKER)
    if "html" not in wanted:
        return Report(folder, findings, files, published=published)
    pages = (folder / "index.html", *files)
    return Report(folder / "index.html", findings, pages, beside, published)


def usual_place(stores: Sequence[RunStore]) -> Path:
    """Where a report goes: into its run; for several, or an address, into a folder here."""
    if len(stores) == 1 and not stores[0].is_remote:
        return stores[0].path / "report"
    names = [re.sub(r"[^\w.-]+", "-", store.name).strip("-") for store in stores]
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
    mark = as_json(me)
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


def _frames(gathered: Gathered) -> list[tuple[FrameRef, RunStore]]:
    """Every frame a page shows or links, and the run that has it."""
    found = []
    for chain in gathered.chains:
        store = gathered.stores[chain.key.id]
        steps = [step.frame for step in chain.steps]
        refs = [ref for ref in (chain.source, chain.truth, *steps) if ref]
        found += [(ref, store) for ref in refs]
    return found


def _write_pages(
    folder: Path,
    gathered: Gathered,
    findings: Findings,
    pictures: Mapping[str, Picture],
    companions: tuple[Companion, ...],
) -> None:
    suite, chains = gathered.suite, gathered.chains
    inks = palette.inks([(s.editor, s.control) for s in findings.standings])
    pages = templates()
    used = {chain.key.source for chain in chains}
    sources = [source for source in suite.source if source.name in used]
    # The chain a source is shown by: the first that has its picture.
    first = {chain.key.source: chain for chain in reversed(chains)}
    first |= {chain.key.source: chain for chain in reversed(chains) if chain.source}
    common: dict[str, Any] = {
        "findings": findings,
        "runs": [run.store for run in gathered.runs],
        "inks": inks,
        "sources": sources,
        "first": first,
        "pictures": pictures,
        "companions": companions,
    }
    order = [standing.editor for standing in findings.standings]
    scores = scores_of(gathered.scores, findings.floors)
    of_source: dict[str, list[Chain]] = {}
    for chain in chains:
        of_source.setdefault(chain.key.source, []).append(chain)
    template = pages.get_template("source.html")
    for index, source in enumerate(sources):
        mine = of_source[source.name]
        strips = fold(strips_of(mine, suite, pictures, inks, order))
        by_id = {chain.key.id: chain for chain in mine}
        script = viewer_script(source.name, strips, by_id, pictures, scores)
        rows = rows_script(strips, pages)
        page = template.render(
            **common,
            source=source,
            before=sources[index - 1] if index else None,
            after=sources[index + 1] if index + 1 < len(sources) else None,
            strips=strips,
            data=data_file(source.name),
            rows=rows_file(source.name) if rows else "",
        )
        if rows:
            write_changed(folder / rows_file(source.name), rows)
        write_changed(folder / data_file(source.name), script)
        write_changed(folder / f"source-{source.name}.html", page.encode())
    # Not by `json`, which takes seconds for the megabytes of a large run.
    told = to_json(findings.model_dump(mode="json"), indent=1)
    write_changed(folder / "findings.json", told)
    write_overview(folder, gathered, findings, inks, common)
