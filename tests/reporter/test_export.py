"""The report in other formats: the same numbers, escaped, whole, and the same bytes every time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.analysis import Finding, Findings
from convergebench.errors import StoreError, UnknownName
from convergebench.reporter import Report, report
from convergebench.reporter.export import LIST, figures, formats_named, write_exports
from convergebench.reporter.export.comma import sheet_csv
from convergebench.reporter.export.material import plain_material
from convergebench.reporter.export.sheets import Column, Estimate, Sheet, printed
from convergebench.reporter.export.tables import tables_of
from convergebench.table import defused
from tests.reporter.conftest import HOSTILE
from tests.reporter.rich import rich_findings
from tests.reporter.test_folder import files
from tests.test_cli import cb, complaint

BAD = "=1+2 \\ {x} $ & # ^ _ ~ % < > \" ' ` [x] | ≥ – × αΩ é Ł 中 😀 -- @me www.x.y"
EDITORS = [("hub:one@2", False), (BAD, False), ("-plain", False), ("ref:identity", True)]
ALL = ("csv", "latex", "md", "pdf")


def rich(**more: object) -> Findings:
    chains = [("chain-1", "-plain"), ("chain-2", BAD)]
    return rich_findings(EDITORS, chains=chains, rounds=4, run="run_1 & co", **more)  # type: ignore[arg-type]


def rows_of(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    assert b"\r\n" in data
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))


def own(text: str) -> str:
    """A text as it was before it was defused."""
    return text[1:] if text[:1] == "'" and defused(text[1:]) == text else text


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Findings of every kind and hostile editors, as CSV."""
    folder = tmp_path_factory.mktemp("exported")
    write_exports(folder, plain_material(rich()), ["csv"])
    return folder


# -- tables ---------------------------------------------------------------------------------------


def test_every_finding_comes_back_from_its_csv_with_every_digit(exported: Path) -> None:
    findings = rich().findings
    rows = rows_of(exported / "tables" / "findings.csv")
    assert len(rows) == len(findings)
    for row, finding in zip(rows, findings, strict=True):
        assert row.pop("kind") == finding.kind
        assert set(row) == set(Finding.model_fields)
        told = {
            name: own(text) if isinstance(getattr(finding, name), str) else json.loads(text)
            for name, text in row.items()
            if text
        }
        assert Finding.model_validate({"estimate": None, **told}) == finding


def test_the_leaderboard_has_every_number_of_its_editors(exported: Path) -> None:
    findings = rich()
    known = {(f.kind, f.metric, f.editor): f for f in findings.findings if not f.group}
    rows = rows_of(exported / "tables" / "leaderboard.csv")
    assert [own(row["editor"]) for row in rows] == [s.editor for s in findings.standings]
    for row, s in zip(rows, findings.standings, strict=True):
        assert row["rank"] == s.place
        assert [float(row[f"score{end}"]) for end in ("", "_low", "_high")] == [
            s.score,
            s.low,
            s.high,
        ]
        for name in ("headline", "quality", "semantic"):
            life = known["half-life", name, s.editor]
            value = row[f"half_life_{name}"]
            assert (float(value) if value else None) == life.estimate
            assert row[f"half_life_{name}_printed"] == s.half_life[name]
            mean = known["restricted-mean", name, s.editor]
            assert float(row[f"restricted_mean_{name}_low"]) == mean.low
        assert float(row["auc_semantic"]) == known["auc", "semantic", s.editor].estimate
        assert float(row["contraction_psnr"]) == known["contraction", "psnr", s.editor].estimate
        counts = [int(row[c]) for c in ("n", "missing", "failed", "refused", "censored")]
        assert counts == [s.complete, s.chains - s.complete, s.failed, 1, 7]


def test_pairs_say_who_is_above_whom(exported: Path) -> None:
    pairs = [f for f in rich().findings if f.kind == "pair"]
    rows = rows_of(exported / "tables" / "pairs.csv")
    for row, pair in zip(rows, pairs, strict=True):
        assert (own(row["editor"]), own(row["other"])) == (pair.editor, pair.other)
        assert float(row["difference"]) == pair.estimate
        assert float(row["p_corrected"]) == pair.p
        assert row["decision"] == ("tied with" if "tied" in pair.note else "above")


@pytest.mark.parametrize("split", ["edit", "image", "cycle"])
def test_groups_have_their_mean_their_half_life_and_their_counts(
    exported: Path, split: str
) -> None:
    found = rich().findings
    known = {(f.kind, f.group, f.metric, f.editor): f for f in found}
    rows = rows_of(exported / "tables" / f"by-{split}.csv")
    assert len(rows) == len(
        {(f.group, f.metric, f.editor) for f in found if f.kind == f"by-{split}"}
    )
    for row in rows:
        parts = (f"{split}:{own(row['group'])}", row["metric"], own(row["editor"]))
        mean, life = known[f"by-{split}", *parts], known[f"life-by-{split}", *parts]
        assert (float(row["auc"]), float(row["auc_high"])) == (mean.estimate, mean.high)
        assert float(row["half_life"]) == life.estimate
        assert (int(row["n"]), int(row["censored"])) == (mean.n, life.censored)


def test_other_tables_hold_their_findings(exported: Path) -> None:
    found = rich().findings
    tables = exported / "tables"
    drift = {(own(r["editor"]), r["component"]): r for r in rows_of(tables / "drift.csv")}
    for f in found:
        if f.kind == "drift-share":
            assert float(drift[f.editor, f.group]["share"]) == f.estimate
        if f.kind == "drift" and f.round == 4:
            row = drift[f.editor, f.group]
            assert (float(row["size"]), row["round"]) == (f.estimate, "4")
    variance = {own(r["editor"]): r for r in rows_of(tables / "variance.csv")}
    worst = rows_of(tables / "worst.csv")
    for f in found:
        if f.kind == "variance":
            assert float(variance[f.editor][f.group]) == f.estimate
    assert [(r["chain"], own(r["editor"])) for r in worst] == [
        (f.chain, f.editor) for f in found if f.kind == "worst"
    ]
    floors = {r["metric"]: float(r["floor"]) for r in rows_of(tables / "floors.csv")}
    assert floors == rich().floors
    decay = {own(r["editor"]): r for r in rows_of(tables / "decay.csv")}
    for f in found:
        if f.kind == "shape":
            assert float(decay[f.editor][f"shape_{f.metric}_{f.group}"]) == f.estimate


def test_no_table_shows_the_headline_half_life_alone() -> None:
    for sheet in tables_of(plain_material(rich())):
        for shown in (sheet, sheet.print):
            titles = {c.title for c in shown.columns if c.group == "half-life"}
            assert "headline" not in titles or {"quality", "semantic"} <= titles
            if "half_life" in [c.key for c in shown.columns]:
                place = [c.key for c in shown.columns].index("metric")
                metrics = {row[place] for row in shown.rows}
                assert "headline" not in metrics or "quality" in metrics


def test_every_table_of_estimates_says_how_many_chains() -> None:
    for sheet in tables_of(plain_material(rich())):
        if any(c.kind == "estimate" for c in sheet.columns):
            assert {"n", "missing", "failed", "refused"} <= {c.key for c in sheet.columns}
            shown = sheet.print
            assert "n" in {c.key for c in shown.columns} or "n 40" in " ".join(shown.caption)


def test_a_dimension_without_its_metrics_is_incomplete_and_has_no_number() -> None:
    findings = rich(metrics=("psnr", "ssim"))
    board = tables_of(plain_material(findings))[0]
    place = [c.key for c in board.columns].index("half_life_headline")
    cells = [row[place] for row in board.rows]
    assert cells == [Estimate(None, digits=2, said="incomplete")] * len(EDITORS)


KINDS = sorted({f.kind for f in rich().findings})


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_is_absent_is_missed_by_no_table(kind: str) -> None:
    material = plain_material(rich(drop=[kind]))
    names = [sheet.name for sheet in tables_of(material)]
    assert names[0] == "leaderboard"
    for sheet in tables_of(material):
        sheet_csv(sheet)
        assert all(len(row) == len(sheet.columns) for row in sheet.rows)
        assert all(len(row) == len(sheet.print.columns) for row in sheet.print.rows)


# -- CSV ------------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False))
def test_texts_are_no_formulas_and_numbers_are_numbers(text: str, number: float) -> None:
    columns = (Column("a", "a"), Column("b", "b", "number"), Column("c", "c", "estimate"))
    sheet = Sheet("s", "s", columns, ((text, number, Estimate(-number, number)),))
    read = csv.reader(io.StringIO(sheet_csv(sheet).decode(), newline=""), strict=True)
    assert next(read) == ["a", "b", "c", "c_low", "c_high"]
    cell, *numbers, high = next(read)
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    assert cell[:1] not in ("\t", "\r", "\n")
    assert cell in (text, f"'{text}")
    assert [float(n) for n in numbers] == [number, -number, number]
    assert high == ""


def test_an_estimate_is_printed_with_its_interval_and_its_open_end() -> None:
    column = Column("c", "c", "estimate")
    assert printed(Estimate(-0.5, -1.0, 0.25), column) == "−0.500 [−1.000, 0.250]"
    assert printed(Estimate(None, 9.0, None, 2, "> 10"), column) == "> 10 [9.00, …]"
    assert printed(Estimate(None), column) == "–"


# -- the folder -----------------------------------------------------------------------------------


def test_formats_are_given_with_commas_or_one_by_one() -> None:
    assert formats_named(["pdf, csv", "html", "CSV"]) == ("html", "csv", "pdf")
    assert formats_named([]) == ("html",)
    with pytest.raises(UnknownName, match=r"no report format called 'docx'.*csv"):
        formats_named(["csv,docx"])


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_a_report_without_pages_has_the_other_formats_twice_the_same(
    made_run: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    made = report(made_run, out=one, formats=ALL)
    figures._drawn.cache_clear()
    report(made_run, out=two, formats=["latex,md", "csv,pdf"])
    found = digests(one)
    assert found == digests(two)
    assert not list(one.glob("*.html"))
    assert not (one / "frames").exists()
    assert {str(path.relative_to(one)) for path in made.files} == set(found) - {LIST, "report.json"}
    for name in ("tables/findings.csv", "latex/standalone.tex", "report.md", "report.pdf"):
        assert name in found
    assert list((one / "latex" / "figures").glob("*.pdf"))
    before = files(one)
    report(made_run, out=one, formats=ALL)
    assert files(one) == before


def test_pages_and_other_formats_share_one_folder(own_run: Path) -> None:
    made = report(own_run, formats=("html", "csv", "md"))
    folder = made.path.parent
    assert made.path.name == "index.html"
    assert made.path in made.files
    before = files(folder)
    report(own_run)
    report(own_run, formats=("md",))
    after = files(folder)
    assert {n: f for n, f in after.items() if n not in (LIST, "report.md")} == {
        n: f for n, f in before.items() if n not in (LIST, "report.md")
    }


def test_a_folder_of_others_is_left_alone(made_run: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="exists and is not a report"):
        report(made_run, out=tmp_path, formats=("csv",))
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_no_longer_made_goes_unless_someone_changed_it(tmp_path: Path) -> None:
    write_exports(tmp_path, plain_material(rich()), ["csv"])
    tables = tmp_path / "tables"
    (tables / "worst.csv").write_text("my own remarks")
    (tables / "mine.csv").write_text("mine")
    fewer = plain_material(rich(drop=["variance", "worst"]))
    write_exports(tmp_path, fewer, ["csv"])
    left = {p.name for p in tables.iterdir()}
    assert "variance.csv" not in left
    assert {"worst.csv", "mine.csv", "leaderboard.csv"} <= left


def test_records_are_told_with_versions_models_and_failures(made_run: Path, tmp_path: Path) -> None:
    report(made_run, out=tmp_path / "r", formats=("csv", "md"))
    tables = tmp_path / "r" / "tables"
    told = rows_of(tables / "provenance.csv")
    assert {"suite", "run", "metric", "editor", "library"} <= {row["what"] for row in told}
    assert all(row["version"] for row in told if row["what"] in ("metric", "editor", "library"))
    outcomes = {row["outcome"] for row in rows_of(tables / "failures.csv")}
    assert "refused" in outcomes
    assert not re.search(r"<script|<img", (tmp_path / "r" / "report.md").read_text())
    assert HOSTILE not in (tmp_path / "r" / "report.md").read_text()


def test_the_command_lists_what_it_wrote(made_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    done = cb("report", made_run, "--out", out, "--format", "csv", "--format", "md", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["path"] == str(out)
    assert {str(out / "tables" / "leaderboard.csv"), str(out / "report.md")} <= set(told["files"])
    assert all(Path(path).is_file() for path in told["files"])


def test_the_pages_alone_list_the_first_of_them(made_report: Report) -> None:
    assert made_report.to_dict()["files"] == [str(made_report.path)]


def test_an_unknown_format_is_one_sentence(made_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    said = complaint(cb("report", made_run, "--out", out, "--format", "csv,word"))
    assert "no report format called 'word'. Known: csv, html, latex, md, pdf." in said
    assert not out.exists()
