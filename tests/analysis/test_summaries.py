from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from convergebench.analysis.summaries import (
    SUMMARY_COLUMNS,
    chain_summaries,
    dimension_curves,
    headline_summaries,
)
from convergebench.errors import SettingsError
from tests.analysis.handmade import curve_table


def one(*curve: Any, **told: Any) -> dict[str, Any]:
    """The summary of one chain beside another that is 3 rounds long."""
    table = curve_table([{"editor": "a", "c": curve}, {"editor": "full", "c": (1, 1, 1)}])
    found = chain_summaries(table, **told)
    return found.filter(pl.col("editor") == "a").to_dicts()[0]


def facts(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


FACTS = ("rounds", "gaps", "followed", "fell", "complete")


def test_a_complete_chain() -> None:
    row = one(0.9, 0.7, 0.4)
    assert row["auc"] == pytest.approx(2 / 3)
    assert row["half_life"] == pytest.approx(2 + 2 / 3)
    assert facts(row, *FACTS) == (3, 0, 3, True, True)


def test_a_chain_that_ended_early_has_no_auc_and_is_censored() -> None:
    row = one(0.9, 0.7)
    assert facts(row, "auc", "half_life") == (None, 2.0)
    assert facts(row, *FACTS) == (2, 0, 2, False, False)


def test_a_chain_that_fell_before_it_ended_has_a_half_life() -> None:
    row = one(0.2)
    assert facts(row, "auc", "half_life", "fell") == (None, 0.625, True)


def test_a_null_in_the_middle_is_a_gap_not_a_shorter_chain() -> None:
    row = one(0.9, None, 0.1)
    assert facts(row, "auc", "half_life") == (None, 1.0), "censored where it was lost from sight"
    assert facts(row, *FACTS) == (3, 1, 1, False, False)


def test_a_null_at_the_end() -> None:
    assert facts(one(0.9, 0.8, None), "auc", "half_life", *FACTS) == (
        (None, 2.0, 3, 1, 2, False, False)
    )


def test_a_row_that_is_not_there_is_a_gap_too() -> None:
    # Scored at some steps only: C(3) must not be taken for C(2).
    row = one(0.9, "-", 0.1)
    assert facts(row, "auc", "half_life", *FACTS) == (None, 1.0, 3, 1, 1, False, False)
    row = one("-", "-", 0.1)
    assert facts(row, "auc", "half_life", *FACTS) == (None, 0.0, 3, 2, 0, False, False)


def test_nothing_but_nulls() -> None:
    row = one(None, None, None)
    assert facts(row, "auc", "half_life", *FACTS) == (None, 0.0, 3, 3, 0, False, False)


def test_metrics_are_summed_up_apart() -> None:
    table = curve_table(
        [
            {"editor": "a", "metric": "psnr", "c": (0.8, 0.6), "chain": "x"},
            {"editor": "a", "metric": "ssim", "c": (0.4, None), "chain": "x"},
        ]
    )
    found = chain_summaries(table).select("metric", "auc", "complete", "fell").rows()
    assert found == [("psnr", pytest.approx(0.7), True, False), ("ssim", None, False, True)]


def test_the_longest_chain_is_that_of_the_same_cycle_and_settings() -> None:
    table = curve_table(
        [
            {"editor": "a", "c": (1, 1)},
            {"editor": "a", "c": (1,), "cycle": "ball@1"},
            {"editor": "a", "c": (1,), "settings": "temperature 1.0"},
            {"editor": "b", "c": (1,)},
        ]
    )
    found = chain_summaries(table).select("editor", "cycle", "settings", "complete")
    assert sorted(found.rows()) == [
        ("a", "ball@1", "", True),
        ("a", "copy@1", "", True),
        ("a", "copy@1", "temperature 1.0", True),
        ("b", "copy@1", "", False),
    ]


def test_a_plan_decides_how_many_rounds_are_complete() -> None:
    table = curve_table(
        [
            {"editor": "a", "c": (0.9, 0.7, 0.2), "chain": "long"},
            {"editor": "b", "c": (0.9, 0.7), "chain": "exact"},
            {"editor": "c", "c": (0.9,), "chain": "short"},
            {"editor": "d", "c": (0.9,), "chain": "unplanned"},
        ]
    )
    rounds = {"long": 2, "exact": 2, "short": 2, "unplanned": 0}
    found = chain_summaries(table, rounds=rounds).select("chain", "auc", "half_life", "complete")
    # Equal footing: of the longer chain only the planned rounds count.
    assert sorted(found.rows()) == [
        ("exact", pytest.approx(0.8), 2.0, True),
        ("long", pytest.approx(0.8), 2.0, True),
        ("short", None, 1.0, False),
    ]


def test_the_threshold_is_a_setting() -> None:
    assert one(0.9, 0.7, 0.4, threshold=0.8)["half_life"] == pytest.approx(1.5)
    with pytest.raises(SettingsError, match="threshold lies"):
        one(0.9, threshold=1.5)


def test_an_empty_table_has_all_columns() -> None:
    found = chain_summaries(curve_table([]))
    assert found.is_empty()
    assert dict(found.schema) == SUMMARY_COLUMNS


def dimensions(**curves: Any) -> pl.DataFrame:
    rows = [{"editor": "a", "metric": m, "c": c, "chain": "x"} for m, c in curves.items()]
    return dimension_curves(curve_table(rows))


def test_quality_is_the_median_of_three() -> None:
    found = dimensions(psnr=(0.9, 0.3), ssim=(0.5, 0.6), lpips=(0.7, 0.1))
    assert found.select("metric", "n", "c").rows() == [("quality", 1, 0.7), ("quality", 2, 0.3)]


def test_a_dimension_is_never_computed_from_fewer_metrics() -> None:
    assert dimensions(psnr=(0.9,), ssim=(0.5,)).is_empty()
    found = dimensions(psnr=(0.9, 0.9), ssim=(0.5, None), lpips=(0.7, 0.7))
    assert found["c"].to_list() == [0.7, None]
    found = dimensions(psnr=(0.9, 0.9), ssim=(0.5, "-"), lpips=(0.7, 0.7))
    assert found["c"].to_list() == [0.7, None]


def test_semantic_is_clip() -> None:
    found = dimensions(clip=(0.8, 0.4))
    assert found.select("metric", "c").rows() == [("semantic", 0.8), ("semantic", 0.4)]


def headline(quality: Any, semantic: Any) -> dict[str, Any]:
    rows = [
        {"editor": "a", "metric": "quality", "c": quality, "chain": "x"},
        {"editor": "a", "metric": "semantic", "c": semantic, "chain": "x"},
        {"editor": "a", "metric": "psnr", "c": (0.0, 0.0, 0.0), "chain": "x"},
    ]
    found = headline_summaries(chain_summaries(curve_table(rows)))
    assert found["metric"].to_list() == ["headline"]
    return found.to_dicts()[0]


@pytest.mark.parametrize(
    ("quality", "semantic", "life", "fell"),
    [
        ((0.9, 0.4, 0.1), (0.9, 0.9, 0.1), 1.8, True),
        ((0.9, 0.9, 0.1), (0.9, 0.4, 0.1), 1.8, True),
        ((0.9, 0.9, 0.9), (0.9, 0.9, 0.1), 2.5, True),
        ((0.9, 0.9, 0.9), (0.9, 0.9, 0.9), 3.0, False),
        # Nobody saw the second dimension after round 1: not known to have held until 1.8.
        ((0.9, 0.4, 0.1), (0.9, None, 0.1), 1.0, False),
        ((0.9, 0.4, 0.1), (0.2, None, 0.1), 0.625, True),
        # Quality falls from exactly one half at round 2, where semantic was last seen.
        ((0.9, 0.5, 0.4), (0.9, 0.9, None), 2.0, True),
    ],
)
def test_the_headline_is_the_first_dimension_to_fall(
    quality: Any, semantic: Any, life: float, fell: bool
) -> None:
    row = headline(quality, semantic)
    assert (row["half_life"], row["fell"]) == (pytest.approx(life), fell)
    assert row["auc"] is None


def test_no_headline_without_both_dimensions() -> None:
    rows = [{"editor": "a", "metric": "quality", "c": (0.4,), "chain": "x"}]
    assert headline_summaries(chain_summaries(curve_table(rows))).is_empty()
