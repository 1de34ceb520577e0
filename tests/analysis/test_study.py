"""The tables of a study: the headline's curves, what ranks, and the study of some chains."""

from __future__ import annotations

import itertools
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from convergebench.analysis import Findings, analyze, study
from convergebench.analysis.leaderboard import ranking_metrics
from convergebench.analysis.summaries import dimension_curves, headline_curves
from tests.analysis.handmade import SPECS, VALUE_AT, HandMade, curve_table
from tests.support.runs import CYCLES

STUDY: Final = import_module("convergebench.analysis.study")
ALL: Final = ("psnr", "ssim", "lpips", "clip")
TINT: Final = """
[[cycle]]
name = "tint"
kind = "round-trip"
category = "colour"
reversibility = "ambiguous"
[[cycle.edit]]
prompt = "Make it blue."
[[cycle.edit]]
prompt = "Undo that."
"""


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the metrics of `handmade` the installed ones."""
    monkeypatch.setattr(STUDY, "metric_spec", SPECS.__getitem__)


def scored(made: HandMade, source: str, editor: str, c: float, metrics: tuple[str, ...]) -> None:
    """A chain of two homecomings, all at C = c; LPIPS and CLIP have floors 1 and 0."""
    chain = made.chain(source, "copy", editor, 2)
    value = {"psnr": VALUE_AT["psnr"](c), "ssim": VALUE_AT["ssim"](c), "lpips": 1 - c, "clip": c}
    for metric in metrics:
        for step in (1, 2):
            made.score(chain.key.id, step, metric, value[metric], version="1")


def floored(made: HandMade, metrics: tuple[str, ...] = ALL) -> Path:
    made.floors([m for m in metrics if m in VALUE_AT], version="1")
    for metric, floor in (("lpips", 1.0), ("clip", 0.0)):
        if metric in metrics:
            made.score("floor--s0", 0, metric, floor, against="s1", version="1")
    return made.done()


def headline(**curves: Any) -> pl.DataFrame:
    rows = [{"editor": "a", "metric": m, "c": c, "chain": "x"} for m, c in curves.items()]
    table = curve_table(rows)
    return headline_curves(pl.concat([table, dimension_curves(table)]))


def test_the_headline_is_the_lesser_dimension_at_each_homecoming() -> None:
    found = headline(psnr=(0.9, 0.3), ssim=(0.5, 0.6), lpips=(0.7, 0.5), clip=(0.6, 0.8))
    # Quality is 0.7, 0.5; semantic 0.6, 0.8.
    assert found.select("metric", "n", "c").rows() == [("headline", 1, 0.6), ("headline", 2, 0.5)]


def test_the_headline_has_no_value_where_a_dimension_has_none() -> None:
    found = headline(psnr=(0.9, None), ssim=(0.5, 0.6), lpips=(0.7, 0.5), clip=(0.6, 0.8))
    assert found["c"].to_list() == [0.6, None]
    assert headline(psnr=(0.9,), ssim=(0.5,), lpips=(0.7,)).is_empty()


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize(
    ("metrics", "ranked_by"),
    [
        (ALL, ["headline"]),
        (("psnr", "ssim", "lpips"), ["quality"]),
        (("psnr", "ssim", "clip"), ["psnr", "ssim"]),
        (("psnr",), ["psnr"]),
        (("clip",), []),
    ],
)
def test_the_widest_that_all_editors_have_ranks(
    tmp_path: Path, metrics: tuple[str, ...], ranked_by: list[str]
) -> None:
    made = HandMade(tmp_path)
    for editor in ("a", "b"):
        scored(made, "s0", editor, 0.8, metrics)
    found = study(floored(made, metrics))
    assert ranking_metrics(found) == ranked_by


@pytest.mark.usefixtures("cards")
def test_what_only_some_editors_were_scored_in_does_not_rank(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    scored(made, "s0", "a", 0.8, ALL)
    scored(made, "s0", "b", 0.8, ("psnr", "ssim", "lpips"))
    assert ranking_metrics(study(floored(made))) == ["quality"]
    scored(made, "s0", "c", 0.8, ("psnr", "ssim"))
    assert ranking_metrics(study(made.done())) == ["psnr", "ssim"]


@pytest.mark.usefixtures("cards")
def test_the_score_is_the_auc_of_the_headline(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        scored(made, source, "a", 0.8, ALL)
    found = analyze(floored(made))
    assert found.ranked_by == ("headline",)
    assert found.standings[0].score == pytest.approx(0.8)
    assert any("lesser of quality and semantic" in note for note in found.notes)
    auc = next(f for f in found.findings if f.id == "auc/headline/a")
    assert auc.estimate == pytest.approx(0.8)


def test_the_study_of_some_chains_has_only_their_rows_and_keeps_the_floor(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        for cycle in ("copy", "ball"):
            made.walk(source, cycle, "a", (0.8, 0.6))
    made.floors()
    whole = study(made.done())
    some = whole.only((pl.col("source") == "s0") & (pl.col("cycle") == "ball@1"))
    (name,) = some.chains["chain"]
    for table in ("homes", "grid", "curves", "summaries", "followed", "lives", "plain"):
        mine, theirs = getattr(some, table), getattr(whole, table)
        assert set(mine["chain"]) == {name}, table
        assert mine.equals(theirs.filter(pl.col("chain") == name)), table
    assert some.floor == whole.floor
    assert whole.only(pl.col("source") == "nobody").editors == []


@pytest.fixture(scope="module")
def tinted(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    made = HandMade(tmp_path_factory.mktemp("tint"), cycles=CYCLES + TINT)
    for source in ("s0", "s1"):
        made.walk(source, "ball", "a", (0.8, 0.6))
        made.walk(source, "tint", "a", (0.1, 0.0), every=2)
    made.floors()
    return analyze(made.done())


def test_partially_reversible_cycles_are_kept_out_of_the_headline(tinted: Findings) -> None:
    (mine,) = tinted.standings
    assert (tinted.common, mine.chains, mine.complete) == (2, 2, 2)
    assert mine.score == pytest.approx(0.7)
    by_id = {f.id: f for f in tinted.findings}
    assert by_id["auc/psnr/a"].n == 2
    assert by_id["half-life/psnr/a"].n == 2
    assert by_id["convergence/psnr/a/1"].estimate == pytest.approx(0.8)
    assert any("2 chains of 1 cycle that no editor could fully undo" in n for n in tinted.notes)


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize("lacking", ["clip", "lpips"])
def test_what_only_some_sources_were_scored_in_does_not_rank(tmp_path: Path, lacking: str) -> None:
    made = HandMade(tmp_path, sources=4)
    rest = tuple(name for name in ALL if name != lacking)
    for editor, c in (("a", 0.8), ("b", 0.6)):
        for i in range(4):
            scored(made, f"s{i}", editor, c, ALL if i == 0 else rest)
    found = analyze(floored(made))
    assert list(found.ranked_by) == (["quality"] if lacking == "clip" else ["psnr", "ssim"])
    assert (found.common, found.sources) == (4, 4)
    score = next(f for f in found.findings if f.id == "score/a")
    assert "headline does not rank: it would leave 1 of 4 sources" in score.note
    assert ("quality does not rank" in score.note) == (lacking == "lpips")
    assert list(found.ranked_by) == ranking_metrics(study(made.path))


@pytest.mark.usefixtures("cards")
def test_gaps_that_cost_no_source_leave_the_headline(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for editor in ("a", "b"):
        for source in ("s0", "s1"):
            scored(made, source, editor, 0.8, ALL)
        more = made.chain("s0", "copy", editor, 2, repeat=1)
        for metric, step in itertools.product(("psnr", "ssim"), (1, 2)):
            made.score(more.key.id, step, metric, VALUE_AT[metric](0.8), version="1")
    assert ranking_metrics(study(floored(made))) == ["headline"]
