"""Every number and every step of a run is on its pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convergebench.analysis import Findings
from convergebench.analysis.notes import TABLE_KEY
from convergebench.chain import Chain
from convergebench.reporter import Report, report
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.reporter.pages import Element, assert_links_resolve, read_page
from tests.support.runs import picture, write_suite


def printed(value: float | None) -> str:
    """As pages print: three decimals, a true minus, a dash for none."""
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def sort_key(point: dict[str, Any]) -> str:
    return json.dumps(point, sort_keys=True)


def index(made: Report) -> Element:
    return read_page(made.path)


def cells(rows: Sequence[Element]) -> list[list[str]]:
    return [[c.text for c in row.children if isinstance(c, Element)] for row in rows]


def chains_of(run: Path) -> list[Chain]:
    return RunStore.open(run).chains()


# -- numbers --------------------------------------------------------------------------------------


def test_the_leaderboard_shows_every_number_of_every_standing(made_report: Report) -> None:
    (table,) = index(made_report).all("table", "board")
    rows = {row[1].split(" ")[0]: row for row in cells(table.all("tr")) if len(row) > 4}
    names = [head.text for head in table.all("thead")[0].all("tr")[1].all("th")]
    seen = set()
    for s in made_report.findings.standings:
        row = rows[s.editor]
        assert row[0] == s.place
        assert ("control" in row[1]) == s.control
        assert row[1].endswith(s.why_unranked)
        if s.score is not None:
            assert row[2] == f"{printed(s.score)} [{printed(s.low)}, {printed(s.high)}]"
        else:
            assert row[2] == "–"
        assert row[3:-2] == [s.half_life.get(name, "–") for name in names]
        assert set(s.half_life) <= set(names)
        assert row[-2].split(" ")[0] == f"{s.complete}/{s.chains}"
        failed = {outcome: n for outcome, n in s.outcomes.items() if outcome != "edited"}
        told = re.findall(r"(\d+) ([a-z-]+)", row[-1].partition(f"{s.failed} chains ended")[0])
        assert {outcome: int(n) for n, outcome in told} == failed
        assert (f"{s.failed} chains ended early" in row[-1]) == bool(s.failed)
        seen |= set(failed)
    assert seen >= {"refused", "malformed", "failed"}


def test_the_unranked_stand_apart(made_report: Report) -> None:
    (table,) = index(made_report).all("table", "board")
    parts = [part.text for part in table.all("tbody")]
    standings = made_report.findings.standings
    ranked = [s.editor for s in standings if s.best_rank is not None]
    assert ranked[0] == "ref:identity"
    assert ranked[-1] == "ref:random"
    assert all(name in parts[0] for name in ranked)
    for s in standings:
        if s.best_rank is None:
            assert s.editor in parts[1]
            assert s.why_unranked in parts[1]


def test_the_numbers_tables_show_every_finding_that_is_not_on_a_curve(made_report: Report) -> None:
    tables = {t.attributes.get("data-kind"): t for t in index(made_report).all("table")}
    rows = {kind: cells(t.all("tbody")[0].all("tr")) for kind, t in tables.items() if kind}
    shown: list[tuple[str, ...]] = [
        (kind, row[0], row[1].removesuffix(" control"), *row[2:])
        for kind, found in rows.items()
        for row in found
    ]
    wanted: list[tuple[str, ...]] = [
        (
            kind, f.metric, f.editor, printed(f.estimate), printed(f.low), printed(f.high),
            f"{f.n}", f"{f.missing}", f"{f.failed}", f.note,
        )
        for f in made_report.findings.findings
        if (kind := f.id.partition("/")[0]) not in ("convergence", "value")
    ]  # fmt: skip
    assert len(wanted) > 50
    assert sorted(shown) == sorted(wanted)


def test_charts_hold_every_curve_finding_in_full(made_report: Report) -> None:
    data = json.loads(index(made_report).one("chart-data").raw)
    shown = []
    for name, chart in data.items():
        kind, _, metric = name.partition("-")
        for rows in chart["spec"]["datasets"].values():
            shown += [{**row, "kind": kind, "metric": metric} for row in rows if "chains" in row]
    wanted = [
        {
            "kind": kind,
            "metric": f.metric,
            "editor": f.editor,
            "n": f.round,
            "value": f.estimate,
            "chains": f.n,
            **({"low": f.low, "high": f.high} if f.low is not None else {}),
            "missing": f.missing,
            "failed": f.failed,
            "infinite": f.infinite,
        }
        for f in made_report.findings.findings
        if (kind := f.id.partition("/")[0]) in ("convergence", "value") and f.estimate is not None
    ]
    assert len(wanted) > 50
    assert any("low" in point for point in wanted)
    assert sorted(map(sort_key, shown)) == sorted(map(sort_key, wanted))


def test_floors_notes_and_versions_are_shown(made_report: Report) -> None:
    page = index(made_report)
    findings = made_report.findings
    for name, floor in findings.floors.items():
        assert [name, printed(floor)] in cells(page.one("numbers").all("tr"))
    told = page.one("leaderboard").text
    for note in findings.notes:
        assert (note in told) == (note != TABLE_KEY), note
    assert "Complete chains: those that came home" in told
    for label in findings.metrics:
        assert label in page.one("provenance").text
    assert re.search(r"start run .*numpy \d", page.one("provenance").text)
    assert findings.suite in page.text
    assert findings.run in page.all("h1")[0].text


def test_findings_json_beside_the_page_is_the_whole(made_report: Report) -> None:
    beside = made_report.path.parent / "findings.json"
    assert Findings.model_validate_json(beside.read_bytes()) == made_report.findings


def test_every_failure_is_listed(made_report: Report, made_run: Path) -> None:
    rows = cells(index(made_report).one("failures").all("tr"))[1:]
    wanted = sorted(
        (f"{c.key.source}, {c.key.cycle}", f"{s.step}", s.outcome, " ".join(s.detail.split()))
        for c in chains_of(made_run)
        for s in c.steps
        if s.outcome != "edited"
    )
    assert {outcome for _, _, outcome, _ in wanted} >= {"refused", "malformed", "failed"}
    assert sorted((row[1], row[2], row[3], row[4]) for row in rows) == wanted


def test_inert_is_explained(made_report: Report) -> None:
    inert = [s for s in made_report.findings.standings if s.why_unranked == "inert"]
    told = index(made_report).one("leaderboard")
    meaning = "forward edits change the picture no more than re-saving it as JPEG does"
    assert inert
    assert f"Inert: {meaning}." in told.text
    titles = [why.attributes.get("title") for why in told.all("span", "why")]
    assert titles.count(meaning) == len(inert)


def test_half_lives_count_the_censored(made_report: Report) -> None:
    for table in index(made_report).all("table"):
        if kind := table.attributes.get("data-kind"):
            heads = [head.text for head in table.all("thead")[0].all("th")]
            assert ("Censored" in heads) == kind.endswith("half-life")
            assert ("Missing" in heads) != kind.endswith("half-life")


def test_frames_identical_to_home_are_told_under_the_chart(made_report: Report) -> None:
    mine = [
        f
        for f in made_report.findings.findings
        if f.id.startswith("value/psnr/") and f.editor == "ref:identity"
    ]
    infinite = sum(f.infinite for f in mine)
    total = infinite + sum(f.n for f in mine)
    assert infinite
    told = [p.text for p in index(made_report).all("p", "under")]
    assert any(
        "left out of the mean: " in text and f"ref:identity {infinite} of {total}" in text
        for text in told
    )


# -- filmstrips -----------------------------------------------------------------------------------


def test_filmstrips_show_every_step_in_its_column(made_report: Report, made_run: Path) -> None:
    folder = made_report.path.parent
    suite = RunStore.open(made_run).suite
    for chain in chains_of(made_run):
        page = read_page(folder / f"source-{chain.key.source}.html")
        row = page.one(chain.key.id)
        shown = [cell for cell in row.all("td") if "rest" not in cell.attributes.get("class", "")]
        assert chain.key.editor in row.all("th")[0].text
        assert len(shown) == 1 + max((s.step for s in chain.steps), default=0)
        cycle = suite.cycle_of(chain.key.cycle)
        for step in chain.steps:
            cell = shown[step.step]
            home = step.outcome == "edited" and cycle.home(step.step) is not None
            assert (cell.attributes.get("class") == "home") == home
            if step.outcome == "edited":
                assert step.frame is not None
                assert cell.all("a")[0].attributes["title"].startswith(step.prompt)
                assert step.frame.sha256 in cell.all("img")[0].attributes["src"]
            else:
                assert step.outcome in cell.text
                assert not cell.all("img")


def test_a_returned_size_is_told_where_it_differs(made_report: Report, made_run: Path) -> None:
    folder = made_report.path.parent
    seen = set()
    for chain in chains_of(made_run):
        row = read_page(folder / f"source-{chain.key.source}.html").one(chain.key.id)
        told = {size.text for size in row.all("span", "size")}
        differs = {
            f"{f.width}×{f.height}"
            for f in chain.frames
            if (f.width, f.height) != (chain.frames[0].width, chain.frames[0].height)
        }
        assert told == differs
        seen |= told
    assert seen


def test_a_turned_frame_is_not_told_to_have_another_size(tmp_path: Path) -> None:
    cycles = """
[[cycle]]
name = "turn"
kind = "rotate"
[[cycle.edit]]
prompt = "Turn the picture clockwise by a quarter."
operation = { kind = "turn", quarters = 1 }
"""
    suite = write_suite(
        tmp_path / "suite", cycles=cycles, pictures=[picture(0, 48, 32), picture(1, 48, 32)]
    )
    settings = {"suite": str(suite), "editors": ["ref:identity", "ref:inert"], "rounds": 2}
    run(tmp_path / "run", {**settings, "controls": False})
    score(tmp_path / "run", workers=1)
    page = read_page(report(tmp_path / "run").path.parent / "source-s0.html")
    turned, inert = page.all("tbody")[0].all("tr")
    assert turned.all("th")[0].text == "ref:identity control"
    assert not turned.all("span", "size")
    assert [size.text for size in inert.all("span", "size")] == ["48×32"]
    assert "turned clockwise by 90°" in turned.all("a")[1].attributes["title"]


def test_frames_that_cannot_be_shown_get_a_placeholder(own_run: Path) -> None:
    store = RunStore.open(own_run)
    chain = next(
        c for c in store.chains() if c.length >= 2 and c.key.editor.startswith("ref:noise")
    )
    store.frame_path(chain.frames[1]).unlink()
    store.frame_path(chain.frames[2]).write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    folder = report(own_run).path.parent
    row = read_page(folder / f"source-{chain.key.source}.html").one(chain.key.id)
    gone, broken = row.all("td")[1:3]
    assert gone.text.startswith("file missing")
    assert not gone.all("a")
    assert broken.text.startswith("unreadable")
    assert_links_resolve(folder)
