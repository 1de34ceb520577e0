"""Every metric of a score table against what people say of the same frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from convergebench.comparisons import ANSWERS, PUBLISHED
from convergebench.metric import MetricSpec
from convergebench.opinions.correlations import (
    LEAST,
    Coefficient,
    Correlation,
    Point,
    correlate,
    correlate_methods,
)
from convergebench.opinions.means import Mean
from convergebench.registry import metric_spec
from convergebench.wording import shown

_PLACES: Final = (("home", "all"), ("home", "registered"), ("none", "all"))
_NOTHING: Final = Coefficient(None)


@dataclass(frozen=True)
class Series:
    """One metric's scores of rated stimuli."""

    name: str
    version: str
    spec: MetricSpec | None
    values: Mapping[tuple[str, int], float]
    note: str


def correlations(scores: pl.DataFrame, stimuli: Sequence[Mean]) -> tuple[Correlation, ...]:
    """All metrics, those that agree most with people over stimuli first; then over methods."""
    rated = {(one.of, one.step): one for one in stimuli if one.mean is not None}
    if not rated:
        return ()
    by_stimulus, by_method = [], []
    for series in series_of(scores, set(rated)):
        by_stimulus.append(_over_stimuli(series, rated))
        over = _over_methods(series, rated)
        if over is not None:
            by_method.append(over)

    def order(one: Correlation) -> float:
        return -(one.srcc.value if one.srcc.value is not None else -2.0)

    return (*sorted(by_stimulus, key=order), *sorted(by_method, key=order))


def series_of(scores: pl.DataFrame, rated: set[tuple[str, int]]) -> list[Series]:
    """The scores of rated frames, metric by metric; answers of people and judges left out."""
    scores = scores.filter(
        ~pl.any_horizontal(pl.col("metric").str.starts_with(prefix) for prefix in ANSWERS),
        pl.col("value").is_not_null() & pl.col("value").is_not_nan(),
        pl.col("chain").is_in([chain for chain, _ in rated]),
    )
    found = []
    for against, where in _PLACES:
        part = scores.filter((pl.col("against") == against) & (pl.col("where") == where))
        for name in sorted(part["metric"].unique()):
            spec = _spec(name)
            if spec is not None and spec.alignment:
                continue  # where a frame lies, not how good it is
            rows = part.filter(pl.col("metric") == name)
            version, note = _version(rows, spec)
            rows = rows.filter(pl.col("version") == version)
            values = {
                (chain, step): value
                for chain, step, value in rows.select("chain", "step", "value").iter_rows()
                if (chain, step) in rated
            }
            if values:
                title = f"{name} registered" if where == "registered" else name
                found.append(Series(title, version, spec, values, note))
    return found


def _spec(name: str) -> MetricSpec | None:
    try:
        return metric_spec(name)
    except Exception:  # foreign code, or a metric that only others have
        return None


def _version(rows: pl.DataFrame, spec: MetricSpec | None) -> tuple[str, str]:
    """The version to look at, and a word where there are several."""
    counts = dict(rows.group_by("version").len().sort("len", "version").iter_rows())
    own = [v for v in counts if spec is not None and v.partition("+")[0] == spec.version]
    measured = [v for v in counts if not v.startswith(PUBLISHED)]
    chosen = (own or measured or list(counts))[-1]
    note = f"of {len(counts)} versions, {chosen}" if len(counts) > 1 else ""
    return chosen, note


def _over_stimuli(series: Series, rated: Mapping[tuple[str, int], Mean]) -> Correlation:
    keys = [key for key in rated if key in series.values]
    finite = [key for key in keys if np.isfinite(series.values[key])]
    points = [_point(series, rated[key], key) for key in finite]
    notes = [series.note] if series.note else []
    x = np.array([point.value for point in points])
    y = np.array([point.opinion for point in points])
    up = series.spec.higher_is_better if series.spec else None
    if up is None:
        notes.append("its direction is not known here, so nothing was turned")
    images = [point.image for point in points]
    turned = -x if up is False else x
    found, rmse, mapping = correlate(turned, y, images)
    if len(points) < 4:
        notes.append("fewer than four stimuli")
    elif np.ptp(x) == 0 or np.ptp(y) == 0:
        notes.append("metric or opinions do not vary")
    return Correlation(
        series.name, series.version, series.spec.kind if series.spec else "", "stimulus", up,
        found["plcc"], found["fitted"], found["srcc"], found["krcc"], rmse, mapping,
        n=len(points), sources=len(set(images)), infinite=len(keys) - len(finite),
        missing=len(rated) - len(keys), note="; ".join(notes), points=tuple(points),
    )  # fmt: skip


def _point(series: Series, mean: Mean, key: tuple[str, int]) -> Point:
    assert mean.mean is not None
    return Point(
        mean.of, mean.image, mean.method, series.values[key], mean.mean, mean.low, mean.high
    )


def _over_methods(series: Series, rated: Mapping[tuple[str, int], Mean]) -> Correlation | None:
    """The same over methods, of their means over the pictures that all of them have."""
    cells: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for key, mean in rated.items():
        value = series.values.get(key)
        if mean.method and mean.mean is not None and value is not None and np.isfinite(value):
            cells.setdefault((mean.method, mean.image), []).append((value, mean.mean))
    methods = list(dict.fromkeys(method for method, _ in cells))
    images = [
        image
        for image in dict.fromkeys(image for _, image in cells)
        if all((method, image) in cells for method in methods)
    ]
    if len(methods) < 3 or not images:
        return None
    notes = [series.note] if series.note else []
    if len(methods) < LEAST:
        notes.append("fewer than four methods")
    rated_ones = dict.fromkeys(mean.method for mean in rated.values() if mean.method)
    without = [method for method in rated_ones if method not in methods]
    if without:
        notes.append(f"without {shown(without)}, which has no finite score")
    table = np.array([[np.mean(cells[m, i], axis=0) for i in images] for m in methods])
    up = series.spec.higher_is_better if series.spec else None
    x = -table[..., 0] if up is False else table[..., 0]
    found = correlate_methods(x, table[..., 1])
    means = table.mean(axis=1)
    return Correlation(
        series.name, series.version, series.spec.kind if series.spec else "", "method", up,
        found["plcc"], _NOTHING, found["srcc"], found["krcc"], None, None,
        n=len(methods), sources=len(images),
        note="; ".join(notes),
        points=tuple(
            Point(method, "", method, float(value), float(opinion))
            for method, (value, opinion) in zip(methods, means, strict=True)
        ),
    )  # fmt: skip
