from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from convergebench.analysis.compare import by_metric, by_source, common_chains, rank


def summary(editor: str, **told: object) -> dict[str, object]:
    row: dict[str, object] = {
        "metric": "mean",
        "editor": editor,
        "source": "s0",
        "cycle": "copy@1",
        "settings": "",
        "repeat": 0,
        "auc": 0.5,
        "complete": True,
    }
    row |= told
    return row | {"chain": "/".join(str(value) for value in row.values())}


def places(table: pl.DataFrame) -> list[tuple[object, ...]]:
    return sorted(table.select("source", "cycle", "settings", "repeat").unique().rows())


def test_common_chains_are_paired_by_source_cycle_settings_and_repeat() -> None:
    variants: list[dict[str, object]] = [
        {},
        {"source": "s1"},
        {"cycle": "ball@1"},
        {"settings": "temperature 1.0"},
        {"repeat": 1},
    ]
    everything = [summary("a", **v) for v in variants]
    for missing in range(len(variants)):
        theirs = [summary("b", **v) for i, v in enumerate(variants) if i != missing]
        found = common_chains(pl.DataFrame(everything + theirs), ["a", "b"])
        assert len(found) == 2 * (len(variants) - 1)
        assert places(found) == places(pl.DataFrame(theirs))


def test_incomplete_chains_and_other_editors_do_not_count() -> None:
    table = pl.DataFrame(
        [
            summary("a"),
            summary("b"),
            summary("a", source="s1"),
            summary("b", source="s1", complete=False),
            summary("c", source="s1"),
        ]
    )
    found = common_chains(table, ["a", "b"])
    assert sorted(found.select("editor", "source").rows()) == [("a", "s0"), ("b", "s0")]
    assert common_chains(table, ["a", "b", "nobody"]).is_empty()


def test_each_metric_is_paired_on_its_own() -> None:
    table = pl.DataFrame([summary("a"), summary("b"), summary("a", metric="other")])
    assert set(common_chains(table, ["a", "b"])["metric"]) == {"mean"}


def test_values_by_source_are_means_over_its_chains() -> None:
    table = pl.DataFrame(
        [
            summary("a", auc=0.2, source="s1"),
            summary("a", auc=0.4),
            summary("a", auc=0.8, repeat=1),
            summary("b", auc=1.0, source="s1"),
            summary("b", auc=0.1),
        ]
    )
    sources, values = by_source(table, "auc")
    assert sources == ["s0", "s1"]
    assert values["a"].tolist() == pytest.approx([0.6, 0.2])
    assert values["b"].tolist() == [0.1, 1.0]
    assert list(by_metric(table, "auc")) == [("mean", "a"), ("mean", "b")]


def test_no_values_of_no_chains() -> None:
    assert by_source(pl.DataFrame([summary("a")]).clear(), "auc") == ([], {})


@pytest.mark.parametrize("sources", [6, 10, 13, 40])
def test_an_editor_is_above_itself_less_a_constant(sources: int) -> None:
    values = np.random.default_rng(sources).random(sources)
    first, second = rank({"less": values - 0.001, "more": values})
    assert (first.editor, first.best_rank, first.worst_rank) == ("more", 1, 1)
    assert (second.editor, second.best_rank, second.worst_rank) == ("less", 2, 2)
    assert first.mean - second.mean == pytest.approx(0.001)


@pytest.mark.parametrize("sources", [2, 5])
def test_too_few_sources_separate_nobody(sources: int) -> None:
    values = np.random.default_rng(sources).random(sources)
    ranked = rank({"less": values - 0.5, "more": values})
    assert [(r.editor, r.best_rank, r.worst_rank) for r in ranked] == [
        ("more", 1, 2),
        ("less", 1, 2),
    ]


def test_identical_editors_tie() -> None:
    values = np.array([0.2, 0.9, 0.4])
    ranked = rank({"b": values, "a": values.copy()})
    assert [(r.editor, r.best_rank, r.worst_rank) for r in ranked] == [("a", 1, 2), ("b", 1, 2)]


def test_rounding_separates_nobody() -> None:
    values = np.array([0.2, 0.9, 0.4])
    ranked = rank({"a": values, "b": values + 1e-15})
    assert [(r.best_rank, r.worst_rank) for r in ranked] == [(1, 2), (1, 2)]


def test_a_single_source_separates_nobody_and_has_no_interval() -> None:
    ranked = rank({"a": np.array([0.9]), "b": np.array([0.1])})
    assert [(r.editor, r.mean, r.low, r.high) for r in ranked] == [
        ("a", 0.9, None, None),
        ("b", 0.1, None, None),
    ]
    assert [(r.best_rank, r.worst_rank) for r in ranked] == [(1, 2), (1, 2)]


def test_ranks_are_ranges() -> None:
    base = np.array([0.1, 0.3, 0.2, 0.4, 0.25, 0.35, 0.15, 0.45])
    swing = np.array([0.05, -0.05] * 4)
    ranked = rank({"top": base + 0.5, "left": base, "right": base + swing, "low": base - 0.1})
    assert {r.editor: (r.best_rank, r.worst_rank) for r in ranked} == {
        "top": (1, 1),
        "left": (2, 3),
        "right": (2, 3),
        "low": (4, 4),
    }


def test_one_editor_and_none() -> None:
    (only,) = rank({"a": np.array([0.5, 0.7])})
    assert (only.best_rank, only.worst_rank) == (1, 1)
    assert only.mean == pytest.approx(0.6)
    assert rank({}) == []


def test_editors_are_compared_over_the_same_sources() -> None:
    with pytest.raises(ValueError, match="over the same sources"):
        rank({"a": np.array([0.5, 0.7]), "b": np.array([0.5])})


def test_an_interval_worked_by_hand() -> None:
    # Two sources, 0 and 1: the mean of a resample is 0, 1/2 or 1, each end a quarter of the time.
    (only,) = rank({"a": np.array([0.0, 1.0])})
    assert (only.low, only.high) == (0.0, 1.0)
