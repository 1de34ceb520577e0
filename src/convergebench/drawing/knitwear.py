"""The scene `knit`: a patterned woollen pullover close by, stitch by stitch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import Field, Value, bump, fbm, grit, length, smooth, wave

_COLUMNS = 62.0
_ROWS = 50.0
_YARNS = (rgb(0xE9DFCB), rgb(0x24405C), rgb(0xA8342E), rgb(0xC9963F), rgb(0x3E6A55))
# Rows of the pattern, repeated across: each letter is a yarn, from the top of a band down.
_PATTERN = (
    "aaaaaaaaaaaa", "aaaaaaaaaaaa", "bababababbab", "abbbabbbabbb", "aabaaabaaaba", "aaaaaaaaaaaa",
    "cccccccccccc", "caaccaaccaac", "aacaaaacaaac", "aaccaaccaacc", "aacaaaacaaac", "caaccaaccaac",
    "cccccccccccc", "aaaaaaaaaaaa", "aaadaaaaadaa", "aadddaaaddda", "addaddaddadd",
    "ddaaaddddaaa", "addaddaddadd", "aadddaaaddda", "aaadaaaaadaa", "aaaaaaaaaaaa", "eeeeeeeeeeee",
    "eaeaeaeaeaea", "aeaeaeaeaeae", "eeeeeeeeeeee", "aaaaaaaaaaaa", "bbbbbbbbbbbb", "babbabbabbab",
    "bbbbbbbbbbbb",
)  # fmt: skip


# The pattern as numbers of yarns, and the yarns' colours channel by channel.
_YARN_OF = np.array([["abcde".index(letter) for letter in row] for row in _PATTERN], np.int64)
_SHADES = [np.array([colour[channel] for colour in _YARNS]) for channel in range(3)]


def knit(canvas: Canvas) -> None:
    """Rows of knitted stitches in five colours, over soft folds."""
    x, y = canvas.grid
    sag = 0.018 * wave(x * 1.1 + 0.15 * y) + 0.012 * wave(x * 2.3 - 0.4 * y + 0.3)
    pull = 0.014 * wave(y * 1.3 + 0.2 * x) + 0.006 * (fbm(x * 4.0, y * 4.0, 3, 2) - 0.5)
    u, v = (x + pull) * _COLUMNS, (y + sag) * _ROWS
    column = np.floor(u)
    across = u - column - 0.5
    # The two legs of a stitch slope towards its foot, so that rows look like a chain of hearts.
    lifted = v + 0.85 * np.abs(across)
    row = np.floor(lifted)
    along = lifted - row - 0.5
    fine = min(max(1.7 - 5.0 * _COLUMNS * canvas.px, 0.0), 1.0)
    leg = np.abs(np.abs(across) - 0.25) * 4.0
    tube = np.sqrt(np.maximum(1.0 - leg * leg, 0.0)) * (0.55 + 0.45 * bump(along, 0.0, 0.75))
    twist = wave((across * np.where(across > 0.0, 1.0, -1.0) * 1.6 + along * 1.1) * 2.6)
    fuzz = grit(x * 330.0, y * 330.0, 7, 2, canvas.px * 330.0)
    fold = 0.50 + 0.34 * wave(x * 0.8 - y * 0.35 + 0.10) + 0.20 * wave(x * 1.7 + y * 0.5 + 0.6)
    side = np.where(across < 0.0, 0.06, -0.06)
    light = 0.60 + 0.42 * (fold - 0.5)
    light = light + fine * (0.42 * (tube - 0.62) + 0.09 * twist * tube + side) + 0.16 * fuzz
    tint = _wool(u, v, canvas.px)
    canvas.blend(scaled(tint, 0.14 + 1.15 * light), 1.0)
    gap = fine * smooth(leg, 0.78, 1.02)
    canvas.blend(rgb(0x150E10), gap * 0.55)
    halo = gradient(fuzz, (0.0, rgb(0xFFFFFF)), (1.0, rgb(0xFFFFFF)))
    canvas.blend(washed(halo, (1.0, 0.98, 0.94), 0.5), 0.10 * smooth(fuzz, 0.28, 0.60))
    corner = length(x - 0.45, y - 0.45)
    canvas.planes[:] *= 1.0 - 0.30 * smooth(corner, 0.45, 1.05)


def _wool(u: Field, v: Field, px: float) -> list[Value]:
    """The colours of the stitches, each pixel looked at in several places: edges are fine."""
    side = 2 if px * _COLUMNS < 0.2 else 4
    tint: list[Value] = [0.0, 0.0, 0.0]
    for i in range(side):
        for j in range(side):
            p = u + ((i + 0.5) / side - 0.5) * px * _COLUMNS
            q = v + ((j + 0.5) / side - 0.5) * px * _ROWS
            column = np.floor(p)
            yarn = _pick(column, np.floor(q + 0.85 * np.abs(p - column - 0.5)))
            for plane, shades in enumerate(_SHADES):
                tint[plane] = tint[plane] + shades[yarn] * (1.0 / (side * side))
    return tint


def _pick(column: Field, row: Field) -> NDArray[np.int64]:
    """The yarn of every stitch."""
    rows, columns = _YARN_OF.shape
    i = (row - rows * np.floor(row * (1.0 / rows) + 1e-9)).astype(np.int64) % rows
    j = (column - columns * np.floor(column * (1.0 / columns) + 1e-9)).astype(np.int64) % columns
    picked: NDArray[np.int64] = _YARN_OF[i, j]
    return picked
