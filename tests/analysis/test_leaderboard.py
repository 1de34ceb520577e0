from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from convergebench.analysis import analyze
from convergebench.analysis.findings import Findings, Standing
from convergebench.analysis.leaderboard import Ranking, controls_among, ranking_of
from convergebench.analysis.summaries import chain_summaries
from convergebench.runspec import CONTROLS
from tests.analysis.handmade import MORE_CYCLES, HandMade, curve_table
from tests.analysis.test_study import TINT
from tests.support.runs import CYCLES

METRICS = ("psnr", "ssim")


def summaries(
    told: Mapping[str, Mapping[str, Sequence[Any]]], metrics: Sequence[str] = METRICS
) -> pl.DataFrame:
    """Summaries from {editor: {source: curve}}, the same by every metric."""
    rows = [
        {"editor": editor, "source": source, "metric": metric, "c": curve}
        for editor, curves in told.items()
        for source, curve in curves.items()
        for metric in metrics
    ]
    return chain_summaries(curve_table(rows))


def ranking(
    table: pl.DataFrame,
    *,
    editors: Sequence[str] | None = None,
    inert: Sequence[str] = (),
    controls: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
) -> Ranking:
    names = sorted(set(table["editor"])) if editors is None else editors
    verdict = {name: name in inert for name in names}
    return ranking_of(names, table, verdict, metrics, frozenset(controls))


def means(found: Ranking) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in found.scores.items()}


def test_the_score_is_the_mean_over_metrics_and_sources() -> None:
    table = pl.concat(
        [
            summaries({"a": {"s0": (0.8, 0.6), "s1": (0.4, 0.2)}}, ["psnr"]),
            summaries({"a": {"s0": (1.0, 0.8), "s1": (0.6, 0.4)}}, ["ssim"]),
        ]
    )
    found = ranking(table)
    assert found.scores["a"].tolist() == pytest.approx([0.8, 0.4])
    assert found.places["a"].mean == pytest.approx(0.6)
    assert (len(found.common), found.sources) == (2, 2)


def test_the_common_set_shrinks_to_what_all_ranked_editors_completed() -> None:
    found = ranking(
        summaries(
            {
                "a": {"s0": (1.0, 0.8), "s1": (0.6, 0.4), "s2": (0.2, 0.0)},
                "b": {"s0": (0.5, 0.5), "s1": (0.5, 0.5), "s2": (0.5,)},
                "c": {"s0": (0.1, 0.3), "s1": (0.9, 0.9), "s2": (0.5, 0.5)},
            }
        )
    )
    assert sorted(found.common["source"]) == ["s0", "s1"]
    assert means(found) == pytest.approx({"a": 0.7, "b": 0.5, "c": 0.55})
    assert found.reasons == {}


def test_who_has_no_complete_chain_is_unranked_and_costs_the_others_nothing() -> None:
    found = ranking(
        summaries({"a": {"s0": (1.0, 0.8), "s1": (0.6, 0.4)}, "b": {"s0": (0.5,)}}),
        editors=["a", "b", "never-begun"],
    )
    assert list(found.places) == ["a"]
    assert len(found.common) == 2
    assert found.reasons == {"b": "no complete chain", "never-begun": "no complete chain"}


def test_who_is_inert_is_unranked_and_costs_the_others_nothing() -> None:
    told = {"a": {"s0": (0.8,), "s1": (0.6,)}, "lazy": {"s0": (1.0,)}}
    found = ranking(summaries(told), inert=["lazy"])
    assert list(found.places) == ["a"]
    assert found.reasons == {"lazy": "inert"}
    assert len(found.common) == 2
    assert "lazy" not in found.scores


def test_no_chain_that_all_completed() -> None:
    found = ranking(summaries({"a": {"s0": (0.8,)}, "b": {"s1": (0.6,)}}))
    assert found.places == {}
    assert set(found.reasons.values()) == {"no chain that all editors completed"}
    assert (len(found.common), found.sources) == (0, 0)


def test_a_chain_counts_only_when_complete_by_every_ranking_metric() -> None:
    mine: dict[str, Any] = {"s0": (0.8,), "s1": (0.6,)}
    whole, broken = {"s0": (0.5,), "s1": (0.5,)}, {"s0": (0.5,), "s1": (None,)}
    table = pl.concat(
        [
            summaries({"a": mine, "b": whole}, ["psnr"]),
            summaries({"a": mine, "b": broken}, ["ssim"]),
        ]
    )
    found = ranking(table)
    assert found.common["source"].to_list() == ["s0"]
    assert means(found) == pytest.approx({"a": 0.8, "b": 0.5})


def test_controls_are_ranked_unless_inert() -> None:
    def all_of(*cs: float) -> dict[str, tuple[float]]:
        return {f"s{i}": (cs[i % len(cs)],) for i in range(8)}

    told = {
        "a": all_of(0.8, 0.6),
        "identity": {**all_of(1.0), "s8": (1.0,)},
        "pipe": all_of(0.9),
        "lazy": all_of(0.9),
        "random": all_of(0.1, 0.0),
    }
    found = ranking(
        summaries(told), controls=["identity", "pipe", "random"], inert=["pipe", "lazy"]
    )
    assert {n: (r.best_rank, r.worst_rank) for n, r in found.places.items()} == {
        "identity": (1, 1),
        "a": (2, 2),
        "random": (3, 3),
    }
    assert found.reasons == {"pipe": "inert", "lazy": "inert"}
    # An inert control keeps its score, so that the pipe's loss shows.
    assert means(found) == pytest.approx({"a": 0.7, "identity": 1.0, "pipe": 0.9, "random": 0.05})


def test_nothing_to_rank_by() -> None:
    found = ranking(summaries({}), editors=["a", "identity"], controls=["identity"], metrics=())
    assert found.places == {}
    assert set(found.reasons.values()) == {"nothing to rank by"}
    assert found.scores == {}


def test_repeats_and_settings_are_averaged_within_a_source() -> None:
    rows: list[dict[str, Any]] = [
        {"editor": "a", "source": "s0", "c": (0.9,)},
        {"editor": "a", "source": "s0", "c": (0.5,), "repeat": 1},
        {"editor": "a", "source": "s0", "c": (0.1,), "settings": "temperature 1.0"},
        {"editor": "a", "source": "s1", "c": (0.3,)},
    ]
    found = ranking(chain_summaries(curve_table(rows)), metrics=("psnr",))
    # Sources count once each, however many chains they have.
    assert found.scores["a"].tolist() == pytest.approx([0.5, 0.3])
    assert np.mean(found.scores["a"]) == pytest.approx(0.4)


def test_controls_are_known_by_name_and_by_what_they_say() -> None:
    names = [*CONTROLS, "ref:inert", "ref:blur", "lab:unknown", "", "=/☃, :", "ref:no-such-model"]
    assert controls_among(names) == {*CONTROLS, "ref:inert"}


def standing(editor: str, **told: Any) -> Standing:
    facts: dict[str, Any] = {
        "control": False,
        "best_rank": None,
        "worst_rank": None,
        "score": None,
        "low": None,
        "high": None,
        "auc": {},
        "half_life": {},
        "chains": 3,
        "complete": 2,
        "outcomes": {"edited": 9, "refused": 1, "over-budget": 2},
    }
    return Standing(editor=editor, **(facts | told))


def board(*standings: Standing) -> Findings:
    return Findings(
        run="r",
        suite="tiny@1",
        metrics=(),
        common=0,
        floors={},
        standings=standings,
        findings=(),
        notes=("A note.",),
    )


def test_the_table_says_n_missing_and_failed() -> None:
    found = board(
        standing("a", best_rank=1, worst_rank=2, score=0.5, low=0.25, high=0.75,
                 half_life={"psnr": "2.50", "ssim": "> 5"}),
        standing("b", best_rank=1, worst_rank=1, score=0.5),
        standing("[c]", control=True, why_unranked="control"),
    )  # fmt: skip
    first, second, third = found.table.records()
    assert first == {
        "rank": "1–2",
        "editor": "a",
        "mean AUC [95 %]": "0.500 [0.250, 0.750]",
        "half-life psnr": "2.50",
        "half-life ssim": "> 5",
        "n": 2,
        "missing": 1,
        "failed": 3,
        "refused": 1,
        "censored": None,
        "unranked because": "",
    }
    assert (second["rank"], second["mean AUC [95 %]"]) == ("1", "0.500"), "one source: no interval"
    assert (third["rank"], third["editor"]) == ("–", "[c] (control)")
    assert third["unranked because"] == "control"
    assert "A note." in str(found)
    assert "<table>" in found._repr_html_()


def test_the_reason_column_is_there_only_when_needed() -> None:
    found = board(standing("a", best_rank=1, worst_rank=1, score=0.5))
    assert "unranked because" not in found.table.columns


def test_the_headline_never_stands_alone() -> None:
    lives = {"headline": "1.00", "quality": "2.00", "semantic": "1.00"}
    columns = list(board(standing("a", half_life=lives)).table.columns)
    assert columns[3:6] == ["half-life headline", "half-life quality", "half-life semantic"]


def test_an_empty_leaderboard_can_be_shown() -> None:
    assert str(board()).startswith("Leaderboard of r (suite tiny@1)")


def test_failed_counts_the_chains_that_n_and_missing_count(tmp_path: Path) -> None:
    made = HandMade(tmp_path, cycles=CYCLES + MORE_CYCLES + TINT)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.9, 0.8))
        made.chain(source, "tint", "a", 1, "refused")  # cannot be fully undone
        made.chain(source, "more", "a", 2, "failed")  # has no home
        made.chain(source, "more", "b", 3)
    made.floors()
    line = next(s for s in analyze(made.done()).standings if s.editor == "a")
    assert (line.chains, line.complete, line.failed, line.lost) == (2, 2, 0, 0)
    assert line.outcomes == {"edited": 4}
    assert line.unmeasurable == 2
