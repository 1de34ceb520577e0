from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from convergebench.analysis.convergence import (
    best,
    convergence,
    floors,
    half_life,
    literal,
    oriented,
)
from convergebench.errors import SettingsError
from convergebench.metric import MetricSpec
from tests.analysis.handmade import CLIP, LPIPS, NIQE, PSNR, SPECS, SSIM, decibels, score_rows


def orient(spec: MetricSpec, *values: float | None) -> list[float | None]:
    table = pl.DataFrame({"value": values}, schema={"value": pl.Float64()})
    return table.select(oriented(spec, pl.col("value"))).to_series().to_list()


def test_psnr_is_minus_the_rmse() -> None:
    # 20 dB is a tenth of the peak, 40 dB a hundredth, 0 dB the peak itself.
    assert orient(PSNR, 0.0, 20.0, 40.0, math.inf, None) == [
        pytest.approx(-255),
        pytest.approx(-25.5),
        pytest.approx(-2.55),
        0.0,
        None,
    ]


def test_variants_of_psnr_are_read_like_it() -> None:
    registered = replace(PSNR, name="psnr-registered")
    assert orient(registered, 20.0) == [pytest.approx(-25.5)]
    assert best(registered) == 0


def test_larger_is_better_after_orientation() -> None:
    assert orient(SSIM, 0.3, -0.1, None) == [0.3, -0.1, None]
    assert orient(LPIPS, 0.3, 0.0) == [-0.3, 0.0]


def test_the_best_value() -> None:
    assert [best(spec) for spec in (PSNR, SSIM, LPIPS, CLIP, NIQE)] == [0.0, 1.0, 0.0, 1.0, None]
    assert best(replace(SSIM, name="snr", identical=math.inf)) is None, "no finite best, no scale"


def floor_rows(metric: str, *values: float | None, version: str = "1") -> pl.DataFrame:
    return score_rows(
        [
            (f"floor--s{i}", 0, metric, version, f"s{i + 1}", "all", value)
            for i, value in enumerate(values)
        ]
    )


def test_floors_are_means_of_oriented_values() -> None:
    scores = pl.concat(
        [
            floor_rows("psnr", decibels(40), decibels(80), None),
            floor_rows("ssim", 0.1, 0.3, 0.5),
            floor_rows("lpips", 0.6, 0.8),
            score_rows([("a-chain", 1, "ssim", "1", "home", "all", 0.99)]),
        ]
    )
    found = floors(scores, SPECS)
    assert found == {
        # The mean RMSE, not the RMSE of the mean PSNR (which would be 56.6).
        "psnr": pytest.approx(-60),
        "ssim": pytest.approx(0.3),
        "lpips": pytest.approx(-0.7),
    }


def test_floors_know_only_current_versions_and_finite_values() -> None:
    old = floor_rows("ssim", 0.1, 0.3, version="0")
    assert floors(old, SPECS) == {}
    assert floors(pl.concat([old, floor_rows("ssim", 0.7)]), SPECS) == {"ssim": 0.7}
    assert floors(floor_rows("ssim", None, None), SPECS) == {}
    assert floors(floor_rows("lpips", math.inf, 0.5), SPECS) == {}
    assert floors(score_rows([]), SPECS) == {}


def test_two_identical_sources_have_a_psnr_floor_all_the_same() -> None:
    assert floors(floor_rows("psnr", math.inf, decibels(50)), SPECS) == {"psnr": pytest.approx(-25)}


def homes(metric: str, *values: float | None) -> pl.DataFrame:
    rows = [{"metric": metric, "n": n, "value": value} for n, value in enumerate(values, 1)]
    return pl.DataFrame(
        rows, schema={"metric": pl.String(), "n": pl.Int32(), "value": pl.Float64()}
    )


def test_convergence_of_each_metric() -> None:
    table = pl.concat(
        [
            homes("psnr", math.inf, decibels(25), decibels(100), decibels(150)),
            homes("ssim", 1.0, 0.6, 0.2, 0.1),
            homes("lpips", 0.0, 0.25, 0.5, 0.9),
        ]
    )
    found = convergence(table, {"psnr": -100.0, "ssim": 0.2, "lpips": -0.5}, SPECS)
    by_metric = {m: found.filter(pl.col("metric") == m)["c"].to_list() for m in SPECS}
    assert by_metric["psnr"] == pytest.approx([1, 0.75, 0, 0])
    assert by_metric["ssim"] == pytest.approx([1, 0.5, 0, 0])
    assert by_metric["lpips"] == pytest.approx([1, 0.5, 0, 0])
    assert by_metric["clip"] == []


def test_convergence_is_clipped_above_too() -> None:
    assert convergence(homes("ssim", 1.2), {"ssim": 0.0}, SPECS)["c"].to_list() == [1.0]


def test_a_null_stays_a_null() -> None:
    assert convergence(homes("ssim", None, 1.0), {"ssim": 0.0}, SPECS)["c"].to_list() == [None, 1.0]


@pytest.mark.parametrize("floor", [{}, {"ssim": 1.0}, {"ssim": 1.5}])
def test_without_a_floor_below_the_best_there_is_no_convergence(floor: dict[str, float]) -> None:
    found = convergence(homes("ssim", 0.5), floor, SPECS)
    assert found.is_empty()
    assert "c" in found.columns


def test_the_literal_rule_is_for_metrics_where_it_is_defined() -> None:
    table = pl.concat([homes(name, 0.4) for name in SPECS])
    found = literal(table, SPECS | {"double": replace(SSIM, name="double", identical=2.0)})
    assert sorted(found["metric"]) == ["clip", "ssim"]
    assert found["c"].to_list() == [0.4, 0.4]
    twice = literal(homes("double", 0.4), {"double": replace(SSIM, name="double", identical=2.0)})
    assert twice["c"].to_list() == [0.2]


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        # Between 0.7 at round 2 and 0.4 at round 3, two thirds of the way down.
        ([0.9, 0.7, 0.4, 0.1], (2 + 2 / 3, True)),
        # At the first round, from C(0) = 1: 0.5 / 0.8 of the way.
        ([0.2, 0.9], (0.625, True)),
        ([0.0], (0.5, True)),
        # One half is not below one half; falling further starts right there.
        ([0.5, 0.5], (2.0, False)),
        ([0.5, 0.4], (1.0, True)),
        ([0.9, 0.8, 0.7], (3.0, False)),
        # What comes after the first fall does not matter.
        ([0.4, 1.0, 1.0], (5 / 6, True)),
        ([], (0.0, False)),
    ],
)
def test_half_life(curve: list[float], expected: tuple[float, bool]) -> None:
    assert half_life(curve) == pytest.approx(expected)


def test_half_life_at_other_thresholds() -> None:
    assert half_life([0.9, 0.7, 0.4], 0.8) == pytest.approx((1.5, True))
    assert half_life([0.9, 0.7, 0.4], 0.3) == (3.0, False)
    assert half_life([1.0, 0.9], 1.0) == (1.0, True), "below 1 from where it was last at 1"


def test_half_life_in_whole_rounds() -> None:
    assert half_life([0.9, 0.7, 0.4], interpolate=False) == (3.0, True)
    assert half_life([0.9, 0.7], interpolate=False) == (2.0, False)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.01, math.nan])
def test_thresholds_that_make_no_sense(threshold: float) -> None:
    with pytest.raises(SettingsError, match="threshold lies above 0 and at most at 1"):
        half_life([0.4], threshold)


def test_floors_do_not_depend_on_the_order_of_rows() -> None:
    values = np.random.default_rng(1).random(101)
    rows = [(f"floor--s{i}", 0, "ssim", "1", "s0", "all", v) for i, v in enumerate(values)]
    one, other = (floors(score_rows(told), SPECS) for told in (rows, rows[::-1]))
    assert one == other
