"""The leaderboard's static site: several runs and submissions of one suite version.

    index.html                    the merged leaderboard, who submitted what, how to submit
    report/                       the full report of all of it
    submissions/NAME/…            every submission, as it was checked
    leaderboard.csv, findings.json, submission.schema.json

Every number is computed from the submissions' score rows; what a submission claims is only
compared with that.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.analysis import Findings
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY
from convergebench.disk import plain_errors
from convergebench.errors import InputError, SettingsError, StoreError, StoreMismatch
from convergebench.leaderboard.packing import Checked, check, legal_name, pack
from convergebench.leaderboard.submission import NAME, schema
from convergebench.remote.address import require_directory
from convergebench.reporter import Report, report
from convergebench.reporter.folder import as_json, templates, write_changed
from convergebench.reporter.palette import inks
from convergebench.store import RunStore
from convergebench.table import Table
from convergebench.wording import shown

MARKER: Final = "leaderboard.json"


@dataclass(frozen=True)
class Site:
    """A leaderboard that was built."""

    path: Path
    findings: Findings
    submissions: tuple[Checked, ...]

    @property
    def table(self) -> Table:
        """The leaderboard, and where it is."""
        board = self.findings.table
        return Table(board.title, board.columns, board.rows, (*board.notes, f"Site: {self.path}"))

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "submissions": [one.to_dict() for one in self.submissions],
            "findings": self.findings.model_dump(mode="json"),
        }


def build(
    entries: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    title: str = "",
    by: str = "",
    observe: Callable[[int, int], None] | None = None,
) -> Site:
    """Merge runs and submissions of one suite version into a static site.

    Args:
        entries: Run directories and submissions.
        out: The site's folder; one that `build` made before is made again.
        title: Of the site.
        by: Who submits the runs that are given as run directories.
        observe: Called with (done, total) as the report's pictures are brought in.

    Raises:
        InputError: A submission does not follow the schema, or is not sound.
        StoreMismatch: The entries are of different suites or suite versions.
        StoreError: `out` holds something else.
    """
    if not entries:
        raise SettingsError("give at least one run directory or submission")
    folder = Path(out)
    paths = [require_directory(entry, "leaderboard") for entry in entries]
    submitted = {path: check(path) for path in paths if (path / NAME).is_file()}
    _refuse_unsound(list(submitted.values()))
    _refuse_twins([_name(path, submitted.get(path)) for path in paths])
    stores = [RunStore.open(path) for path in paths]
    _refuse_other_suites(stores)
    if any(path not in submitted for path in paths) and not by:
        raise SettingsError(
            f"{next(p for p in paths if p not in submitted)} is a run, not a submission: say who "
            "submits it with --by NAME"
        )
    with plain_errors(folder):
        _claim(folder)
        places = folder / "submissions"
        checked = [
            _placed(submitted[path], places) if path in submitted else pack(path, places, by=by)
            for path in paths
        ]
        _refuse_unsound(checked)
        made = _report(paths, folder / "report", observe)
        _write(folder, made.findings, checked, title or f"Leaderboard of {stores[0].info.suite}")
    return Site(folder / "index.html", made.findings, tuple(checked))


def _report(
    paths: Sequence[Path], folder: Path, observe: Callable[[int, int], None] | None
) -> Report:
    if folder.exists():
        try:
            return report(*paths, out=folder, observe=observe)
        except StoreError:  # of other entries than now: it can be made again
            shutil.rmtree(folder)
    return report(*paths, out=folder, observe=observe)


def _placed(given: Checked, places: Path) -> Checked:
    """A submission as it is kept in the site."""
    place = places / given.submission.name
    if place.resolve() != given.path.resolve():
        shutil.rmtree(place, ignore_errors=True)
        for name in (NAME, *(fact.path for fact in given.submission.files)):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(given.path / name, place / name)
    return Checked(place, given.submission, (), given.findings)


def _refuse_unsound(submissions: Sequence[Checked]) -> None:
    for one in submissions:
        if not one.sound:
            raise InputError(f"{one.path} is not sound: {shown(one.problems, between='; ')}")


def _name(path: Path, submitted: Checked | None) -> str:
    return submitted.submission.name if submitted else legal_name(path.resolve().name)


def _refuse_twins(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"two submissions are called {twice[0]!r}: rename one with `convergebench leaderboard "
            "pack --name`"
        )


def _refuse_other_suites(stores: Sequence[RunStore]) -> None:
    first = stores[0]
    for other in stores[1:]:
        if other.info.suite != first.info.suite:
            raise StoreMismatch(
                f"{first.path} is of suite {first.info.suite}, {other.path} of "
                f"{other.info.suite}: a leaderboard is of one suite version. Build one for each."
            )
        if other.suite.whole_hash() != first.suite.whole_hash():
            raise StoreMismatch(
                f"{first.path} and {other.path} both say {first.info.suite}, but the suites' "
                f"content differs ({first.suite.whole_hash()[:12]}… and "
                f"{other.suite.whole_hash()[:12]}…): one was changed without a new version. Build "
                "a leaderboard for each."
            )


def _claim(folder: Path) -> None:
    if (folder / MARKER).is_file():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(
            f"{folder} exists and is not a leaderboard. Choose another folder, or empty it."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_changed(folder / MARKER, as_json({"format": 1}))


def _write(folder: Path, findings: Findings, checked: Sequence[Checked], title: str) -> None:
    told = findings.model_dump(mode="json")
    write_changed(folder / "findings.json", as_json(told))
    write_changed(folder / "submission.schema.json", as_json(schema()))
    write_changed(folder / "leaderboard.csv", _csv(findings).encode())
    style = Path(folder / "report" / "static" / "report.css").read_bytes()
    write_changed(folder / "static" / "report.css", style)
    colours = inks([(s.editor, s.control) for s in findings.standings])
    makers = {
        s.editor: [
            one.submission
            for one in checked
            if any(claim.editor == s.editor for claim in one.submission.editors)
            or one.path.name in s.runs
        ]
        for s in findings.standings
    }
    page = (
        templates()
        .get_template("leaderboard.html")
        .render(
            title=title,
            findings=findings,
            inks=colours,
            submissions=[one.submission for one in checked],
            makers=makers,
            lives=_lives(findings),
        )
    )
    write_changed(folder / "index.html", page.encode())


def _lives(findings: Findings) -> list[str]:
    """Whose half-lives are shown: the headline never alone, and metrics where it is incomplete."""
    known = {name for s in findings.standings for name in s.half_life}
    wider = [HEADLINE, *DIMENSIONS]
    return wider if HEADLINE in known else [*wider, *(m for m in RANKED_BY if m in known)]


def _csv(findings: Findings) -> str:
    """The leaderboard as CSV, every number in full."""
    names = sorted({name for s in findings.standings for name in s.half_life})
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ["best_rank", "worst_rank", "editor", "control", "score", "low", "high"]
        + [f"half_life_{name}" for name in names]
        + ["chains", "complete", "failed", "why_unranked"]
    )
    for s in findings.standings:
        rows.writerow(
            [s.best_rank, s.worst_rank, _plain(s.editor), s.control, s.score, s.low, s.high]
            + [s.half_life.get(name, "") for name in names]
            + [s.chains, s.complete, s.failed, s.why_unranked]
        )
    return text.getvalue()


def _plain(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text


def dump_schema() -> str:
    """The schema as printed."""
    return json.dumps(schema(), indent=1)
