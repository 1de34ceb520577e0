"""Convergence: how much of the way between home and a random picture a frame has kept.

    C(n) = clip((m(n) − m0) / (m* − m0), 0, 1),   C(0) = 1

m is oriented so that larger is better, m* is its value for identical images and m0, the *floor*,
its mean between each source of the suite and the others. PSNR enters as minus the RMSE: the same
information without the infinity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from convergebench.comparisons import FLOOR_PREFIX
from convergebench.errors import SettingsError
from convergebench.metric import MetricSpec


def oriented(spec: MetricSpec, value: pl.Expr) -> pl.Expr:
    """A metric's value such that larger is better; PSNR as minus the RMSE in 8-bit levels."""
    if _in_decibels(spec):
        return pl.lit(-255.0) * (pl.lit(10.0).pow(value / -20.0))
    return value if spec.higher_is_better else -value


def best(spec: MetricSpec) -> float | None:
    """The oriented value of two identical images; None where there is no finite one."""
    if _in_decibels(spec):
        return 0.0
    if spec.identical is None or not math.isfinite(spec.identical):
        return None
    return spec.identical if spec.higher_is_better else -spec.identical


def _in_decibels(spec: MetricSpec) -> bool:
    """Whether a metric is PSNR or a variant of it, named `psnr-…`."""
    return spec.name.partition("-")[0] == "psnr"


def current(scores: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """The rows of the metric versions in `specs`; rows of other versions stay in the store."""
    versions = pl.DataFrame(
        [(name, spec.version) for name, spec in specs.items()],
        schema={"metric": pl.String(), "version": pl.String()},
        orient="row",
    )
    return scores.join(versions, on=["metric", "version"], how="semi", maintain_order="left")


def floors(scores: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> dict[str, float]:
    """The oriented floor m0 of each metric that has a finite one."""
    rows = current(scores, specs).filter(
        pl.col("chain").str.starts_with(FLOOR_PREFIX) & pl.col("value").is_not_null()
    )
    return oriented_means(rows, specs)


def oriented_means(rows: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> dict[str, float]:
    """By metric the mean of its oriented values, where it is finite."""
    found: dict[str, float] = {}
    for name, spec in specs.items():
        # In a fixed order, because the last digit of a sum depends on it.
        mine = rows.filter(pl.col("metric") == name).sort("value")
        mean = mine.select(oriented(spec, pl.col("value")).mean()).item() if len(mine) else None
        if mean is not None and math.isfinite(mean):
            found[name] = float(mean)
    return found


def convergence(
    homes: pl.DataFrame, floor: Mapping[str, float], specs: Mapping[str, MetricSpec]
) -> pl.DataFrame:
    """Home scores with the column `c`. Metrics without a floor below their best are left out."""
    parts = []
    for name, spec in specs.items():
        top, bottom = best(spec), floor.get(name)
        if top is None or bottom is None or not bottom < top:
            continue
        share = (oriented(spec, pl.col("value")) - bottom) / (top - bottom)
        parts.append(homes.filter(pl.col("metric") == name).with_columns(c=share.clip(0.0, 1.0)))
    return pl.concat(parts) if parts else homes.with_columns(c=pl.lit(None, pl.Float64)).clear()


def literal(homes: pl.DataFrame, specs: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """Home scores with `c` = m(n) / m*, as the design document has it: no floor, no clipping.

    Only metrics for which it is defined take part: larger is better, and identical images have a
    finite value above 0 (SSIM and CLIP; not PSNR and LPIPS).
    """
    parts = [
        homes.filter(pl.col("metric") == name).with_columns(c=pl.col("value") / spec.identical)
        for name, spec in specs.items()
        if spec.higher_is_better and spec.identical and 0 < spec.identical < math.inf
    ]
    return pl.concat(parts) if parts else homes.with_columns(c=pl.lit(None, pl.Float64)).clear()


def checked_threshold(threshold: float) -> float:
    """The threshold, or SettingsError when it is not above 0 and at most 1."""
    if not 0 < threshold <= 1:
        raise SettingsError(f"the threshold lies above 0 and at most at 1, got {threshold:g}")
    return threshold


def half_life(
    curve: Sequence[float], threshold: float = 0.5, *, interpolate: bool = True
) -> tuple[float, bool]:
    """The first n where C falls below the threshold, and whether it did.

    Args:
        curve: C(1), C(2), …; C(0) = 1 is understood.
        threshold: One half, unless the user says otherwise.
        interpolate: Linearly between two rounds; otherwise n is a whole round.

    Returns:
        The half-life and True, or the last n and False when it is censored there.

    Raises:
        SettingsError: The threshold is not above 0 and at most 1.
    """
    checked_threshold(threshold)
    before = 1.0
    for n, value in enumerate(curve, 1):
        if value < threshold:
            part = (before - threshold) / (before - value) if interpolate else 1.0
            return n - 1 + part, True
        before = value
    return float(len(curve)), False
