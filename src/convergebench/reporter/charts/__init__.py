"""Charts: Vega-Lite specifications made with Altair from findings, one module per family."""

from __future__ import annotations

from convergebench.reporter.charts.curves import (
    KINDS,
    START,
    Curves,
    curve_drawing,
    curves_of,
    metric_names,
    wider_names,
)
from convergebench.reporter.charts.drawing import Drawing, columns, still, theme
from convergebench.reporter.charts.drift import drift_drawings, is_taken_apart, region_drawings
from convergebench.reporter.charts.dynamics import (
    VERDICT,
    contraction_drawings,
    contraction_word,
    scatter_drawing,
    shape_drawing,
    shape_metric,
    why_shapeless,
)
from convergebench.reporter.charts.groups import group_drawings, variance_drawing
from convergebench.reporter.charts.heatmap import heatmap_drawing
from convergebench.reporter.charts.survival import survival_drawings

__all__ = [
    "KINDS",
    "START",
    "VERDICT",
    "Curves",
    "Drawing",
    "columns",
    "contraction_drawings",
    "contraction_word",
    "curve_drawing",
    "curves_of",
    "drift_drawings",
    "group_drawings",
    "heatmap_drawing",
    "is_taken_apart",
    "metric_names",
    "region_drawings",
    "scatter_drawing",
    "shape_drawing",
    "shape_metric",
    "still",
    "survival_drawings",
    "theme",
    "variance_drawing",
    "why_shapeless",
    "wider_names",
]
