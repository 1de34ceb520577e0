"""Writing the page: `failures.html`, its numbers as `failures.json`, and the pictures it shows."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Final

from convergebench.disk import plain_errors
from convergebench.failures import Failures
from convergebench.reporter import palette
from convergebench.reporter.failures.cases import Gallery, frames_of, picture_of
from convergebench.reporter.failures.rates import LEVELS, Part, parts_of
from convergebench.reporter.folder import as_json, claim, templates, write_changed
from convergebench.reporter.pictures import bring_pictures
from convergebench.store import RunStore
from convergebench.wording import counted

PAGE: Final = "failures.html"
STATIC: Final = ("report.css", "failures.css", "failures.js")
OURS: Final = ("static/report.css", "rows.parquet")
"""Files that mark a folder as a report, or as the place of a run's failures."""
AT_ONCE: Final = 6
"""Cases of a detector that are shown; the others are folded."""


def write_failures(
    found: Failures, folder: Path, observe: Callable[[int, int], None] | None = None
) -> Path:
    """Write the page of what was found into a folder: the run's report, or one of its own.

    Args:
        found: What the detectors saw.
        folder: Where to write; made where it is not there.
        observe: Called with (done, total) as pictures are brought in.

    Returns:
        The page.

    Raises:
        StoreError: The folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    with plain_errors(folder):
        claim(folder, OURS)
        store = RunStore.open(found.path)
        chains = {chain.key.id: chain for chain in store.chains()}
        known = found.rows.select("editor", "control").unique().sort("editor")
        inks = palette.inks([(editor, bool(control)) for editor, control in known.iter_rows()])
        parts = parts_of(found, inks)
        report = _report(folder, store.path)
        gallery = Gallery(found, store, chains, inks, folder, report)
        cases = {part.detector.name: gallery.cases(part.detector) for part in parts}
        every = [case for each in cases.values() for case in each]
        pictures = bring_pictures(frames_of(every, store), folder, observe)
        shipped = resources.files("convergebench.reporter") / "static"
        for name in STATIC:
            write_changed(folder / "static" / name, (shipped / name).read_bytes())
        # The path of the run is of no use to readers elsewhere.
        told = found.to_dict() | {"path": store.name}
        write_changed(folder / "failures.json", as_json(told))
        page = (
            templates()
            .get_template("failures.html")
            .render(
                run=store.name,
                suite=store.suite.full_label,
                created=store.info.created,
                report=report,
                inks=inks,
                bands=found.bands,
                levels=_by_level(parts),
                cases=cases,
                picture=lambda shot: picture_of(shot, pictures),
                at_once=AT_ONCE,
                notes=found.table.notes,
                summary=_summary(found, parts),
                command="python -m benchmarks.failures",
            )
        )
        write_changed(folder / PAGE, page.encode())
    return folder / PAGE


def _report(folder: Path, run: Path) -> str | None:
    """Where the run's report is, as seen from the page; None where there is none to link to."""
    beside = folder.resolve().parent == run.resolve()
    for place in ("", "../report/") if beside else ("",):
        if (folder / place / "index.html").is_file():
            return place
    return None


def _by_level(parts: list[Part]) -> list[tuple[str, list[Part]]]:
    """The detectors that have something to tell, under the levels of the taxonomy."""
    found = [
        (title, [part for part in parts if part.detector.level == level])
        for level, title in LEVELS.items()
    ]
    return [(title, mine) for title, mine in found if mine]


def _summary(found: Failures, parts: list[Part]) -> list[str]:
    """What was looked at, and what failed most often, of models and by defects only."""
    looked = found.rows.select("chain", "step").unique().height
    chains = found.rows["chain"].n_unique()
    used = [part for part in parts if part.lines]
    told = [
        f"{counted(looked, 'frame')} of {counted(chains, 'chain')}, seen by "
        f"{counted(len(used), 'detector')}."
    ]
    often = []
    for part in used:
        lines = [line for line in part.lines if not line.ink.control]
        frames = sum(line.whole.frames for line in lines)
        failed = sum(line.whole.failed for line in lines)
        if frames and failed and part.detector.defect:
            often.append((failed / frames, part.detector.title))
    often.sort(key=lambda each: -each[0])
    if often:
        most = [f"{title} ({100 * rate:.0f} % of frames)" for rate, title in often[:3]]
        told.append(f"Most frequent with the editors tested: {'; '.join(most)}.")
    elif used:
        told.append("No failure was seen with the editors tested.")
    return told
