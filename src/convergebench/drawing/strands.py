"""Thousands of thin tapering strokes: hair, whiskers, hatching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convergebench.drawing.canvas import Canvas, Colour
from convergebench.drawing.fields import Field, unit


@dataclass(frozen=True, slots=True)
class Strand:
    """One stroke from its root to its tip.

    Attributes:
        x: Across, at the root.
        y: Down, at the root.
        dx: From root to tip, across.
        dy: From root to tip, down.
        width: Thickness at the widest.
        tint: Colour.
        bend: How far its middle is off the straight line, as a share of its length.
        opacity: Coverage inside.
        even: The same thickness all along, as a pen draws, not tapering as hair does.
    """

    x: float
    y: float
    dx: float
    dy: float
    width: float
    tint: Colour
    bend: float = 0.0
    opacity: float = 1.0
    even: bool = False


@dataclass(frozen=True, slots=True)
class Coat:
    """Strokes in the order they are painted.

    Attributes:
        strands: The strokes.
        boxes: The box each of them lies in.
        fine: The largest pixel with which every stroke is painted. With larger ones some are left
            out, since each would cost as much as in a large picture and show nothing.
    """

    strands: tuple[Strand, ...]
    boxes: Field
    fine: float


def coat(strands: Sequence[Strand], fine: float = 1.0 / 240.0) -> Coat:
    """Strokes made ready to be painted band by band."""
    boxes = np.empty((len(strands), 4))
    for index, strand in enumerate(strands):
        reach = strand.width + abs(strand.bend) * (abs(strand.dx) + abs(strand.dy))
        boxes[index] = (
            min(strand.x, strand.x + strand.dx) - reach,
            min(strand.y, strand.y + strand.dy) - reach,
            max(strand.x, strand.x + strand.dx) + reach,
            max(strand.y, strand.y + strand.dy) + reach,
        )
    return Coat(tuple(strands), boxes, fine)


def _seen(canvas: Canvas, boxes: Field) -> NDArray[np.bool_]:
    """Which boxes touch these pixels."""
    x0, y0, x1, y1 = canvas.extent
    margin = 2.0 * canvas.px
    touched: NDArray[np.bool_] = (
        (boxes[:, 0] < x1 + margin)
        & (boxes[:, 2] > x0 - margin)
        & (boxes[:, 1] < y1 + margin)
        & (boxes[:, 3] > y0 - margin)
    )
    return touched


def paint_coat(canvas: Canvas, strokes: Coat) -> None:
    """Paint strokes over each other, the last on top."""
    stride = 1 if canvas.px < strokes.fine else 3 if canvas.px < 4.0 * strokes.fine else 9
    for index in _seen(canvas, strokes.boxes).nonzero()[0].tolist():
        if index % stride:
            continue
        strand = strokes.strands[index]
        x0, y0, x1, y1 = strokes.boxes[index].tolist()
        part = canvas.crop((x0, y0, x1, y1))
        if part is not None:
            _stroke(part, strand, float(stride))


def _stroke(part: Canvas, strand: Strand, gain: float) -> None:
    """One stroke; `gain` widens it for those left out."""
    dx, dy = strand.dx, strand.dy
    square = dx * dx + dy * dy
    reach = float(np.sqrt(square))
    p, q = part.x - strand.x, part.y - strand.y
    along = p * (dx / square) + q * (dy / square)
    across = q * (dx / reach) - p * (dy / reach)
    inner = unit(along)
    if strand.bend != 0.0:
        across += inner * (1.0 - inner) * (4.0 * strand.bend * reach)
    # A line thinner than a pixel is drawn a pixel wide and fainter, not lost between two.
    width = strand.width * gain
    half = 0.5 * max(width, part.px)
    body: Field | float = half
    if not strand.even:
        body = np.minimum(inner * 5.0, 1.0 - inner * inner) * half
    gap = np.maximum(np.abs(across) - body, (np.abs(along - 0.5) - 0.5) * reach)
    cover = unit(0.5 - gap * (1.0 / part.px))
    cover *= strand.opacity * min(1.0, width / part.px)
    part.blend(strand.tint, cover)
