"""The scene `ink`: a portrait of a woman in pen and ink, all in hatched lines."""

from __future__ import annotations

from functools import cache

from convergebench.drawing.canvas import Canvas, Colour, paint_rows, rgb, scaled
from convergebench.drawing.fields import Dice, direction, fbm, grit, noise, unit
from convergebench.drawing.lettering import write
from convergebench.drawing.people import Person, paint_head
from convergebench.drawing.shapes import box, ellipse, outline
from convergebench.drawing.strands import Coat, Strand, coat, paint_coat
from convergebench.drawing.wardrobe import paint_bust

_INK: Colour = (0.09, 0.10, 0.17)
_SITTER = Person(
    skin=rgb(0xF0D2BC), hair=rgb(0x3A2A20), style="curly", top=rgb(0x5A6070), pattern="jacket",
    iris=rgb(0x33261C), glasses=True, smile=0.45, turn=-0.35, broad=0.97, soft=0.85, seed=23,
)  # fmt: skip
_GRID = 300
_OVAL = ellipse(0.5, 0.47, 0.405, 0.430)


def ink(canvas: Canvas) -> None:
    """Five directions of strokes, closer where it is darker, within an oval on laid paper."""
    x, y = canvas.grid
    laid = 0.5 + 0.5 * noise(x * 4.0, y * 240.0, 3) + 0.25 * noise(x * 200.0, y * 9.0, 4)
    stain = fbm(x * 2.0, y * 2.0, 5, 4)
    canvas.blend(scaled(rgb(0xF3EAD6), 0.90 + 0.05 * laid + 0.08 * stain), 1.0)
    paint_coat(canvas, _strokes())
    for width, margin in ((0.0042, 0.012), (0.0018, 0.020)):
        x0, y0, x1, y1 = _OVAL.bounds
        frame = ellipse(0.5, 0.47, 0.5 * (x1 - x0) + margin, 0.5 * (y1 - y0) + margin)
        canvas.fill(outline(frame, width), _INK, 0.9)
    canvas.fill(outline(box(0.028, 0.012, 0.972, 0.988), 0.0028), _INK, 0.85)
    write(canvas, "Miss Ada Winter", (0.336, 0.962), 0.0040, 0.8, _INK)
    grain = grit(x * 300.0, y * 300.0, 7, 2, canvas.px * 300.0)
    canvas.blend(rgb(0xF0E6D0), 0.22 * unit(1.3 * grain - 0.1))


def _sitting(canvas: Canvas) -> None:
    """The sitter in colour, as the pen sees her."""
    x, y = canvas.grid
    wall = 0.74 - 0.34 * (x - 0.2) + 0.0 * y
    canvas.blend((wall, wall, wall), 1.0)
    head = canvas.placed(0.5, 0.420, 0.205)
    paint_bust(head, _SITTER, 6.0)
    paint_head(head, _SITTER)


@cache
def _shades() -> list[list[float]]:
    """How dark the sitter is, from 0 to 1, on a grid over the square."""
    seen = paint_rows(_sitting, (_GRID, _GRID), (0, _GRID), (0.0, 0.0, 1.0, 1.0), 3)
    red, green, blue = (seen[..., channel].astype(float) for channel in range(3))
    level = (red * 0.30 + green * 0.59 + blue * 0.11) * (1.0 / 255.0)
    dark: list[list[float]] = (1.0 - level).tolist()
    return dark


def _darkness(x: float, y: float) -> float:
    """How dark a place is."""
    column, row = int(x * _GRID), int(y * _GRID)
    if 0 <= column < _GRID and 0 <= row < _GRID:
        return _shades()[row][column]
    return 0.0


@cache
def _strokes() -> Coat:
    """Hatching where the sitter is dark, stopped where the shade ends."""
    made: list[Strand] = []
    passes = (
        (0.125, 0.13, 0.0054, 0.020), (0.375, 0.34, 0.0054, 0.017), (0.250, 0.52, 0.0050, 0.013),
        (0.010, 0.66, 0.0050, 0.012), (0.190, 0.78, 0.0050, 0.010),
    )  # fmt: skip
    for number, (turns, threshold, pitch, reach) in enumerate(passes):
        c, s = direction(turns)
        for row in range(int(1.0 / pitch)):
            for column in range(int(1.0 / pitch)):
                if _darkness((column + 0.5) * pitch, (row + 0.5) * pitch) < threshold - 0.08:
                    continue
                dice = Dice(row, column, number, 3307)
                x, y = (column + dice.roll()) * pitch, (row + dice.roll()) * pitch
                u, v = (x - 0.5) / 0.405, (y - 0.47) / 0.430
                if u * u + v * v > 1.0:
                    continue
                excess = _darkness(x, y) - threshold
                if excess <= 0.0 or dice.roll() > 0.25 + 2.4 * excess:
                    continue
                length = reach * dice.roll(0.6, 1.2)
                # A stroke does not leave the shade it belongs to.
                if _darkness(x + c * 0.5 * length, y - s * 0.5 * length) < threshold - 0.06:
                    length *= 0.35
                if _darkness(x - c * 0.5 * length, y + s * 0.5 * length) < threshold - 0.06:
                    length *= 0.35
                made.append(
                    Strand(x - 0.5 * c * length, y + 0.5 * s * length, c * length, -s * length,
                           0.0016 + 0.0010 * min(excess * 2.0, 1.0), _INK, dice.roll(-0.05, 0.05),
                           0.88)
                )  # fmt: skip
    return coat(made)
