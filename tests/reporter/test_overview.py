"""The first page of findings of every kind, and of findings that lack some."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from convergebench.analysis import Finding, Findings
from convergebench.gathering import gather
from convergebench.reporter import charts, palette
from convergebench.reporter.absences import WANTED
from convergebench.reporter.leaders import leaders, life_names
from convergebench.reporter.overview import write_overview
from convergebench.reporter.pairs import matrix
from convergebench.reporter.printing import interval
from convergebench.reporter.summary import summary
from tests.reporter.pages import Element, read_page
from tests.reporter.rich import rich_findings
from tests.reporter.test_report import headline

HOSTILE = "<script>alert(1)</script>"
Page = Callable[..., Element]


def editors_of(run: Path) -> list[tuple[str, bool]]:
    chains = gather([run]).chains
    names = sorted({chain.key.editor for chain in chains})
    controls = {"ref:identity", "ref:random"}
    return [(name, name in controls or "transport" in name) for name in names]


def write_page(run: Path, folder: Path, findings: Findings) -> Path:
    """The first page of made-up findings, beside a real run's records."""
    gathered = gather([run])
    inks = palette.inks([(s.editor, s.control) for s in findings.standings])
    used = {chain.key.source: chain for chain in gathered.chains}
    common = {
        "findings": findings,
        "runs": [one.store for one in gathered.runs],
        "inks": inks,
        "sources": [s for s in gathered.suite.source if s.name in used],
        "first": used,
        "pictures": {},
    }
    write_overview(folder, gathered, findings, inks, common)
    return folder / "index.html"


def rich_of(run: Path, extra: Sequence[tuple[str, bool]] = (), **how: Any) -> Findings:
    editors = [*editors_of(run), *extra]
    chains = [(c.key.id, c.key.editor) for c in gather([run]).chains if c.steps][:14]
    return rich_findings(editors, chains=chains, run="tiny-run", rounds=4, **how)


@pytest.fixture(scope="module")
def whole(made_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Findings, Path]:
    """Findings of every kind, one editor's name being hostile; and their page."""
    findings = rich_of(made_run, [(HOSTILE, False)])
    return findings, write_page(made_run, tmp_path_factory.mktemp("rich"), findings)


def printed(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def test_every_headline_number_is_a_finding(whole: tuple[Findings, Path]) -> None:
    findings, path = whole
    known = {(f.kind, f.metric, f.editor): f for f in findings.findings if not f.group}
    rows = headline(read_page(path))
    assert set(rows) == {s.editor for s in findings.standings}
    for s in findings.standings:
        row = rows[s.editor]
        for name in ("headline", "quality", "semantic"):
            life = known["half-life", name, s.editor]
            wanted = s.half_life[name] + (f" {told}" if (told := interval(life, 2)) else "")
            assert row[f"Half-life, homecomings {name}"] == wanted
        mean = known["restricted-mean", "headline", s.editor].estimate
        assert mean is not None
        assert row["Restricted mean headline"] == printed(mean, 2)
        for name in ("quality", "semantic"):
            auc = known["auc", name, s.editor].estimate
            assert auc is not None
            assert row[f"AUC {name}"] == printed(auc, 3)
        factor = known["contraction", "psnr", s.editor]
        assert factor.estimate is not None
        span = interval(factor, 2)
        assert row["Decay λ"] == f"{printed(factor.estimate, 2)} {factor.note} {span}"
        shapes = [f for f in findings.findings if f.kind == "shape" and f.editor == s.editor]
        most = max(shapes, key=lambda f: f.estimate or 0)
        assert row["Decay shape"] == f"{most.group} {100 * (most.estimate or 0):.0f} % of 40"
        assert row["Chains censored"] == "7"
        assert row["Chains refused"] == "1"


def test_the_summary_says_nothing_that_is_not_found(whole: tuple[Findings, Path]) -> None:
    findings, path = whole
    told = [p.text for p in read_page(path).one("summary").all("p")]
    assert told == [" ".join(words.split()) for words in summary(findings)]
    editors = sum(not s.control for s in findings.standings)
    controls = len(findings.standings) - editors
    assert told[0] == (
        f"{editors} editors were compared ({editors + controls} with {controls} controls, which "
        "ranks and tests count too) on 20 sources and 40 common chains each."
    )
    numbers = {printed(v, d) for f in findings.findings
               for v in (f.estimate, f.low, f.high) if v is not None for d in (2, 3)}  # fmt: skip
    numbers |= {printed(v, 3) for s in findings.standings for v in (s.score, s.low, s.high) if v}
    words = " ".join(told).replace("C > 0.5", "")
    assert all(word in numbers for word in re.findall(r"\d+\.\d+", words))


def tied(findings: Findings, *names: str) -> Findings:
    """The same with these editors tied with each other."""
    found = [
        f.model_copy(update={"note": "tied; as told"})
        if f.kind == "pair" and {f.editor, f.other} <= set(names)
        else f
        for f in findings.findings
    ]
    return findings.model_copy(update={"findings": tuple(found)})


def test_the_summary_is_careful_about_ties() -> None:
    editors = [(name, False) for name in "abcd"]
    plain = rich_findings(editors, drop=["pair"])
    plain = plain.model_copy(
        update={"standings": tuple(s.model_copy(update={"best_rank": 1, "worst_rank": 4})
                                   for s in plain.standings)}
    )  # fmt: skip
    assert "No test tells the 4 editors apart: all of them are tied." in summary(plain)
    findings = rich_findings(editors)
    assert any(words.startswith("a keeps pictures best: it scores") for words in summary(findings))
    assert "1 of 6 pairs is tied." in summary(findings)
    top = summary(tied(findings, "a", "b"))
    assert "2 editors are tied at the top: a, b." in top
    assert not any("best" in words for words in top)
    every = summary(tied(findings, *"abcd"))
    assert "No test tells the 4 editors apart: all of them are tied." in every


def test_the_summary_names_what_the_score_lacks() -> None:
    editors = [("a", False), ("b", False)]
    told = summary(rich_findings(editors, metrics=("psnr", "ssim")))
    assert "The score rests on psnr and ssim alone: quality lacks lpips and semantic lacks clip." \
        in told  # fmt: skip
    found = rich_findings(editors, metrics=("psnr", "ssim"))
    lives = [s.half_life for s in found.standings]
    for life in lives:
        wanted = rf"above half likeness \(C > 0\.5\): psnr {life['psnr']}.*, ssim {life['ssim']}"
        assert any(re.search(wanted, words) for words in told), "every metric that ranks"
    assert not any(re.search("(still|left) home", words) for words in told)
    nobody = rich_findings(editors)
    out = [s.model_copy(update={"best_rank": None, "worst_rank": None, "why_unranked": "inert"})
           for s in nobody.standings]  # fmt: skip
    told = summary(nobody.model_copy(update={"standings": tuple(out)}))
    assert told[0] == "No editor is ranked: the reasons stand in the table."
    assert any(words.startswith("a is not ranked: inert (forward edits change") for words in told)


def test_the_summary_of_one_editor_compares_it_with_the_controls_or_with_nothing() -> None:
    alone = summary(rich_findings([("a", False)]))[0]
    assert alone == (
        "1 editor was measured, with no other to compare it with, on 20 sources and 40 chains."
    )
    among = summary(rich_findings([("a", False), ("ref:random", True)]))[0]
    assert among.startswith("1 editor was compared with 1 control on 20 sources")


def test_the_summary_counts_the_chains_that_ended_early() -> None:
    findings = rich_findings([("a", False), ("b", False), ("c", True)])
    assert (
        "2 chains of the editors ended early: 2 refused. 1 of them is of a, which has the highest "
        "score: scores are of complete chains alone." in summary(findings)
    )

    def ended(*counts: int) -> list[str]:
        standings = [
            s.model_copy(update={"failed": n})
            for s, n in zip(findings.standings, counts, strict=True)
        ]
        return summary(findings.model_copy(update={"standings": tuple(standings)}))

    assert "3 chains of the editors ended early: 2 refused and 1 failed." in ended(0, 3, 7)
    assert not any("ended early" in words for words in ended(0, 0, 0))


def test_the_table_explains_its_auc_and_the_verdict_on_decay(whole: tuple[Findings, Path]) -> None:
    page = read_page(whole[1])
    notes = page.one("leaderboard").text
    assert "AUC is the area under the convergence curve: the mean of C(1) … C(N)." in notes
    rule = "only where λ is at least 2 % from 1 and its whole interval on that side of 1"
    assert rule in notes
    assert rule in page.one("decay").text


def test_a_shape_is_told_with_its_metric_and_never_of_controls_alone() -> None:
    editors = [("a", False), ("ref:identity", True)]
    findings = rich_findings(editors)
    inks = palette.inks(editors)
    table = leaders(findings, inks)
    place = [column.name for column in table.columns].index("shape")
    assert table.columns[place].about.endswith("by quality")
    assert table.groups[0].lines[0].cells[place].about == "by quality, of 40 chains"
    few = [
        f.model_copy(update={"estimate": None, "note": "12 undecided: fewer than 6 values"})
        if f.kind == "shape" and f.editor == "a"
        else f
        for f in findings.findings
    ]
    bare = findings.model_copy(update={"findings": tuple(few)})
    assert "shape" not in [column.name for column in leaders(bare, inks).columns]
    assert charts.shape_drawing(bare, inks) is None
    wanted = "No shapes; chains of a 12 undecided, fewer than 6 values."
    assert charts.why_shapeless(bare) == wanted
    assert not charts.why_shapeless(findings)


def test_pairs_are_a_matrix_that_can_be_read_aloud(whole: tuple[Findings, Path]) -> None:
    findings, path = whole
    (table,) = read_page(path).all("table", "matrix")
    heads = [th.text for th in table.all("thead")[0].all("th")][1:]
    pairs = {(f.editor, f.other): f for f in findings.findings if f.kind == "pair"}
    seen = set()
    for row in table.all("tbody")[0].all("tr"):
        me = row.all("th")[0].text.removesuffix(" control")
        for other, cell in zip(heads, row.all("td"), strict=True):
            pair = pairs.get((me, other)) or pairs.get((other, me))
            if pair is None:
                assert me == other
                assert not cell.text
                continue
            above = pair.editor == me
            sign = "=" if pair.note.startswith("tied") else "▲" if above else "▼"
            word = {"=": "tied with", "▲": "above", "▼": "below"}[sign]
            assert cell.text.startswith(f"{sign} {word}, difference ")
            assert pair.estimate is not None
            assert printed(pair.estimate if above else -pair.estimate, 3) in cell.text
            assert f"p {pair.p:.4f}" in cell.attributes["title"]
            seen.add(sign)
    assert seen == {"=", "▲", "▼"}


def test_an_editor_called_tied_is_not_taken_for_a_verdict() -> None:
    pair = Finding(id="pair/tied/b", estimate=0.2, editor="tied", other="b", p=0.01,
                   note="tied above b; sign flips")  # fmt: skip
    base = rich_findings([("tied", False), ("b", False)], drop=["pair"])
    findings = base.model_copy(update={"findings": (pair,)})
    found = matrix(findings, palette.inks([("tied", False), ("b", False)]))
    assert found is not None
    assert found.verdicts["tied", "b"].sign == "▲"
    assert (found.tied, found.decided) == (0, 1)


def test_worst_cases_lead_to_the_difference(whole: tuple[Findings, Path], made_run: Path) -> None:
    findings, path = whole
    section = read_page(path).one("worst")
    worst = [f for f in findings.findings if f.kind == "worst"]
    cases = section.all("li")
    assert len(cases) == len(worst) == 14
    assert len(section.all("ul")[0].all("li")) == 12, "the others are folded"
    chains = {c.key.id: c for c in gather([made_run]).chains}
    for case, f in zip(cases, worst, strict=True):
        chain = chains[f.chain]
        link = case.all("a")[0].attributes["href"]
        assert re.fullmatch(
            rf"source-{chain.key.source}\.html#{re.escape(f.chain)}/\d+/difference", link
        )
        assert chain.key.cycle.partition("@")[0] in case.text
        assert f"{f.estimate:.3f}; by quality below 0.5 after" in case.text


@pytest.mark.parametrize("kind", [k for k in WANTED if k not in ("region", "drift", "auc")])
def test_a_page_says_what_is_missing_and_what_would_give_it(
    made_run: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convergebench.reporter.overview.write_still", lambda *told: None)
    page = read_page(write_page(made_run, tmp_path, rich_of(made_run, drop=[kind])))
    why, command = WANTED[kind]
    told = [p.text for p in page.all("p", "absent")]
    assert len(told) == 1
    assert told[0].startswith(why)
    if command:
        assert command.format(run="tiny-run") in told[0]


def test_a_page_of_nothing_but_standings_is_a_page(
    made_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convergebench.reporter.overview.write_still", lambda *told: None)
    bare = rich_of(made_run).model_copy(update={"findings": ()})
    page = read_page(write_page(made_run, tmp_path, bare))
    assert len(page.all("p", "absent")) == len(WANTED)
    assert "There is no curve" in page.one("curves").text
    assert not page.all("figure")


def test_long_tables_have_pages_of_their_own(whole: tuple[Findings, Path]) -> None:
    findings, path = whole
    kinds = [f.kind for f in findings.findings]
    away = {p.name for p in path.parent.glob("numbers-*.html")}
    assert away == {f"numbers-{k}.html" for k in set(kinds) if kinds.count(k) > 300
                    and (k.startswith(("by-", "life-")))}  # fmt: skip
    links = {a.attributes["href"] for a in read_page(path).one("numbers").all("a")}
    assert away <= links


def test_costs_are_the_sums_of_what_the_calls_told(
    whole: tuple[Findings, Path], made_run: Path
) -> None:
    section = read_page(whole[1]).one("costs")
    (table,) = section.all("table", "costs")
    rows = {r.all("th")[0].text.removesuffix(" control"): [c.text for c in r.all("td")]
            for r in table.all("tbody")[0].all("tr")}  # fmt: skip
    chains = gather([made_run]).chains
    for name, row in rows.items():
        steps = [s for c in chains if c.key.editor == name for s in c.steps]
        assert row[0] == str(sum(s.outcome == "edited" for s in steps))
        assert row[1] == str(sum(s.attempts for s in steps))
        assert row[4] == f"{sum(s.seconds for s in steps):,.1f}".replace(",", "")
    assert set(rows) == {c.key.editor for c in chains}
    assert "answers every call with another unrelated picture" in section.text


def test_a_hostile_name_is_text_everywhere(whole: tuple[Findings, Path]) -> None:
    _, path = whole
    text = path.read_text("utf-8")
    assert HOSTILE not in text
    assert HOSTILE in read_page(path).one("leaderboard").text
    start = text.index('id="chart-data">') + len('id="chart-data">')
    specs = text[start : text.index("</script>", start)]
    assert not re.search(r"[<>&]", specs)
    assert HOSTILE in json.dumps(json.loads(specs))
    for svg in (path.parent / "charts").glob("*.svg"):
        assert "<script" not in svg.read_text("utf-8")


def test_data_are_small(made_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convergebench.reporter.overview.write_still", lambda *told: None)
    metrics = ("psnr", "ssim", "lpips", "clip", *(f"m{i}" for i in range(6)))
    editors = [*editors_of(made_run), ("x", False), ("y", False)][:10]
    findings = rich_findings(editors, metrics=metrics, rounds=100, run="tiny-run")
    path = write_page(made_run, tmp_path, findings)
    assert path.stat().st_size < 2_000_000
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "data" / "charts").iterdir()}
    assert sizes["convergence-psnr.js"] < 40_000, "1,000 points"
    assert max(sizes.values()) < 500_000, "8 groups of them"


def test_where_quality_ranks_the_half_lives_beside_it_are_of_its_parts() -> None:
    lives = {"quality": "> 5", "psnr": "> 5", "ssim": "1.2", "lpips": "3.0", "colour-offset": "> 5"}
    found = rich_findings([("ref:blur", False)])
    standing = found.standings[0].model_copy(update={"half_life": lives})
    update = {
        "standings": (standing,),
        "ranked_by": ("quality",),
        "metrics": ("psnr@1", "ssim@1", "lpips@1", "colour-offset@1"),
    }
    shown = life_names(found.model_copy(update=update))
    assert shown == ["headline", "quality", "semantic", "psnr", "ssim", "lpips"]
