"""The records of imports in the report: origin and notes, however the record looks."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from convergebench.analysis import analyze
from convergebench.reporter import report
from convergebench.reporter.imports import read_imports
from convergebench.store import RunStore
from tests.analysis.several import Made
from tests.analysis.test_imported import THEIRS
from tests.reporter.pages import read_page
from tests.reporter.test_several import imported

NOTE = "metadata.model is 'flux-dev', the evaluations say <b>flux-kontext-dev</b>"


def record(path: Path, name: str, head: object) -> None:
    (path / "imports").mkdir(exist_ok=True)
    file = {"file": "a.png", "sha256": "0" * 64, "chain": "c", "step": 1}
    (path / "imports" / f"{name}.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(file)}\n")


def test_provenance_tells_origin_and_notes_of_every_import(tmp_path: Path) -> None:
    path = imported(tmp_path / "run", ["edited", "edited"])
    told = {"at": "2026-01-02T00:00:00Z", "origin": "lab-x", "source": "their/tree"}
    record(path, "b", {**told, "layout": "round-trip", "notes": [NOTE], "missing": ["s", "t"]})
    record(path, "a", {**told, "at": "2026-01-03T00:00:00Z", "origin": "lab-y", "unread": ["x"]})
    made = report(path, formats=("html", "csv", "md", "pdf"))
    rows = [row.text for row in read_page(made.path).one("provenance").all("tr")]
    (first,) = [i for i, row in enumerate(rows) if row.startswith("lab-x ")]
    assert NOTE in rows[first]
    assert "2 steps have no picture." in rows[first]
    assert rows[first + 1].startswith("lab-y ")
    assert "1 file was not read." in rows[first + 1]
    assert "<b>flux" not in made.path.read_text()
    with (path / "report" / "tables" / "provenance.csv").open(newline="") as file:
        lines = [row for row in csv.DictReader(file) if row["what"] == "import"]
    assert [row["name"] for row in lines] == ["lab-x", "lab-y"]
    assert NOTE in lines[0]["detail"]
    assert "Import of lab-x: metadata.model is" in (path / "report" / "report.md").read_text()


def test_a_run_that_was_not_imported_has_no_such_table(made_run: Path) -> None:
    assert read_imports(RunStore.open(made_run), "run") == []


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1]\n", b"\xff\xfe\n", b"null\n", b"[" * 100_000], ids=range(6)
)
def test_a_record_that_cannot_be_read_is_said_to_be_so(tmp_path: Path, text: bytes) -> None:
    path = imported(tmp_path / "run", ["edited", "edited"])
    (path / "imports").mkdir()
    (path / "imports" / "odd.jsonl").write_bytes(text)
    (told,) = read_imports(RunStore.open(path), "run")
    assert told.notes == ("The record imports/odd.jsonl cannot be read.",)


def test_a_record_of_other_types_gives_what_it_can(tmp_path: Path) -> None:
    path = imported(tmp_path / "run", ["edited", "edited"])
    record(path, "odd", {"origin": None, "at": 7, "notes": [1, "one"], "missing": "abc"})
    (told,) = read_imports(RunStore.open(path), "run")
    assert (told.origin, told.at, told.notes) == ("", "7", ("one",))


def test_a_published_metric_that_is_empty_everywhere_is_not_called_published(
    tmp_path: Path,
) -> None:
    made = Made(tmp_path / "run")
    name = made.walk("s0", "trip", "a", (0.9,)).key.id
    made.row(name, 2, "clip", 0.9, version=THEIRS)
    made.row(name, 2, "lpips", None, version=THEIRS)
    made.row(name, 2, "dreamyness", None, version=THEIRS)
    notes = "\n".join(analyze(made.done()).notes)
    assert "clip: published and not measured here" in notes
    assert "lpips: published" not in notes
    assert "dreamyness" not in notes
