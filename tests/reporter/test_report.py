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
from convergebench.reporter.charts.drawing import rounded
from convergebench.reporter.numbers import DRAWN
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.reporter.pages import Element, assert_links_resolve, read_page
from tests.reporter.test_charts import unpacked
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


def headline(page: Element) -> dict[str, dict[str, str]]:
    """The headline table: by editor and by column (with its group) what is printed."""
    (table,) = page.all("table", "board")
    groups, heads = table.all("thead")[0].all("tr")
    spans = [(th.text, int(th.attributes["colspan"])) for th in groups.all("th")]
    over = ["", "", "", *(name for name, span in spans for _ in range(span))]
    names = [f"{g} {th.text}".strip() for g, th in zip(over, heads.all("th"), strict=True)]
    rows = {}
    for row in table.all("tbody"):
        for line in row.all("tr"):
            if "data-editor" in line.attributes:
                told = [c.text for c in line.children if isinstance(c, Element)]
                rows[line.attributes["data-editor"]] = dict(zip(names, told, strict=True))
    return rows


def test_the_leaderboard_shows_every_number_of_every_standing(made_report: Report) -> None:
    rows = headline(index(made_report))
    found = made_report.findings
    known = {(f.kind, f.metric, f.editor): f for f in found.findings}
    seen = set()
    for s in found.standings:
        row = rows[s.editor]
        assert row["Rank"] == s.place
        assert ("control" in row["Editor"]) == s.control
        assert s.why_unranked in row["Editor"]
        if s.score is not None:
            assert (
                row["Score [95 %]"] == f"{printed(s.score)} [{printed(s.low)}, {printed(s.high)}]"
            )
        else:
            assert row["Score [95 %]"] == "–"
        for name in ("psnr", "ssim"):
            told = row[f"Half-life, homecomings {name}"]
            life = known.get(("half-life", name, s.editor))
            assert told.split(" [")[0] == s.half_life.get(name, "–")
            if life and life.estimate is not None and life.low is not None:
                assert f"[{life.low:.2f}, " in told
            auc = known["auc", name, s.editor]
            assert row[f"AUC {name}"] == printed(auc.estimate)
        assert row["Chains n"] == f"{s.complete}"
        assert row["Chains missing"] == f"{s.chains - s.complete}"
        assert row["Chains failed"] == f"{s.failed}"
        assert row["Chains refused"] == f"{known['auc', 'psnr', s.editor].refused}"
        censored = known["half-life", "psnr", s.editor].censored
        assert row["Chains censored"] == f"{censored}"
        mean = known["restricted-mean", "psnr", s.editor].estimate
        assert row["Restricted mean psnr"] == ("–" if mean is None else f"{mean:.2f}")
        failed = {outcome: n for outcome, n in s.outcomes.items() if outcome != "edited"}
        counts = re.findall(r"(\d+) ([a-z-]+)[,;]", row["Editor"] + ",")
        assert {outcome: int(n) for n, outcome in counts if outcome in failed} == failed
        assert (f"{s.failed} chains ended early" in row["Editor"]) == bool(s.failed)
        seen |= set(failed)
    assert seen >= {"refused", "malformed", "failed"}


def test_the_headline_never_stands_alone(made_report: Report) -> None:
    for row in headline(index(made_report)).values():
        for name in ("headline", "quality", "semantic"):
            assert row[f"Half-life, homecomings {name}"] == "incomplete"
    told = index(made_report).one("leaderboard").text
    assert "Incomplete: quality needs lpips, semantic needs clip." in told
    assert "convergebench score tiny-run --metrics lpips,clip" in told


def test_controls_and_the_unranked_stand_apart(made_report: Report) -> None:
    (table,) = index(made_report).all("table", "board")
    parts = {part.all("tr")[0].text: part.text for part in table.all("tbody")[1:]}
    first = table.all("tbody")[0].text
    for s in made_report.findings.standings:
        if s.control:
            assert s.editor in parts["Controls"]
        elif s.best_rank is None:
            assert s.editor in parts["Not ranked"]
            assert s.why_unranked in parts["Not ranked"]
        else:
            assert s.editor in first
    assert "ref:noise" in first
    assert "ref:identity" not in first


def test_the_numbers_tables_show_every_finding_that_is_no_point_of_a_chart(
    made_report: Report,
) -> None:
    folder = made_report.path.parent
    pages = [index(made_report), *map(read_page, sorted(folder.glob("numbers-*.html")))]
    shown: list[tuple[str, ...]] = []
    for table in (t for page in pages for t in page.all("table")):
        kind = table.attributes.get("data-kind")
        if not kind:
            continue
        heads = [head.text for head in table.all("thead")[0].all("th")]
        for line in cells(table.all("tbody")[0].all("tr")):
            row = dict(zip(heads, line, strict=True))
            row["Editor"] = row["Editor"].removesuffix(" control")
            columns = ("Metric", "Editor", "Other", "Group", "Estimate", "95 % from", "to", "n",
                       "Missing", "Failed", "Refused", "Censored", "Note")  # fmt: skip
            shown.append((kind, *(row.get(name, "") for name in columns)))
    wanted: list[tuple[str, ...]] = [
        (
            f.kind, f.metric, f.editor, f.other, f.group, printed(f.estimate), printed(f.low),
            printed(f.high), f"{f.n}", f"{f.missing}", f"{f.failed}", f"{f.refused}",
            f"{f.censored}", f.note,
        )
        for f in made_report.findings.findings
        if f.kind not in DRAWN
    ]  # fmt: skip
    assert len(wanted) > 50
    assert sorted(shown) == sorted(wanted)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """The data of a chart, as the page's script reads them."""
    text = (folder / "data" / "charts" / f"{name}.js").read_text("utf-8")
    head = f"convergebench.take({json.dumps(name)},"
    assert text.startswith(head)
    return unpacked(json.loads(text[len(head) : -len(");\n")]))


def test_charts_hold_every_curve_finding(made_report: Report) -> None:
    told = json.loads(index(made_report).one("chart-data").raw)["charts"]
    shown = []
    for name in told:
        kind, _, metric = name.partition("-")
        if kind in ("convergence", "value"):
            rows = rows_of(made_report.path.parent, name)
            shown += [{"kind": kind, "metric": metric, **row} for row in rows if "chains" in row]
    wanted = [
        {
            "kind": f.kind,
            "metric": f.metric,
            "editor": f.editor,
            "n": f.round,
            "value": rounded(f.estimate),
            "chains": f.n,
            **({"low": rounded(f.low), "high": rounded(f.high)} if f.low is not None else {}),
            "missing": f.missing,
            "failed": f.failed,
            "refused": f.refused,
            **({"infinite": f.infinite} if f.infinite else {}),
        }
        for f in made_report.findings.findings
        if f.kind in ("convergence", "value") and f.estimate is not None
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
    assert "n counts complete chains: those that came home" in told
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
