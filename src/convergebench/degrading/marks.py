"""Marks on film and paper: scratches, hairs, dust, cracks, drawn as coverage in [0, 1].

Shapes are drawn several times finer than the pixels and averaged, so that a hair keeps its place
and weight in a small picture.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.degrading.light import NOMINAL, Plane, unit

FRACTION = 4
"""Binary digits of a pixel in the coordinates that OpenCV draws at."""


class Sheet:
    """A fine canvas on which marks are drawn in nominal pixels; `cover` gives their coverage."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        short = min(shape[0], shape[1])
        self.shape = shape[:2]
        self._fine = int(np.clip(np.ceil(2 * NOMINAL / short), 1, 6))
        self.height = shape[0] / unit(shape)
        self.width = shape[1] / unit(shape)
        self._scale = unit(shape) * self._fine
        self._cover = np.zeros((shape[0] * self._fine, shape[1] * self._fine), np.uint8)

    def line(self, path: Plane, width: float, strength: float = 1.0) -> None:
        """A polyline through (x, y) in nominal pixels; thinner than can be drawn is fainter."""
        thick = width * self._scale
        shade = round(255 * min(1.0, strength * min(1.0, thick)))
        points = self._points(path)
        cv2.polylines(
            self._cover, [points], False, shade, max(1, round(thick)), cv2.LINE_AA, FRACTION
        )

    def blob(self, outline: Plane, strength: float = 1.0) -> None:
        """A filled outline through (x, y) in nominal pixels."""
        shade = round(255 * strength)
        cv2.fillPoly(self._cover, [self._points(outline)], shade, cv2.LINE_AA, FRACTION)

    def _points(self, path: Plane) -> NDArray[np.int32]:
        near = np.clip(path * self._scale, -30000.0, 1e6)
        return np.asarray(np.rint(near * 2**FRACTION), np.int32)

    def cover(self) -> Plane:
        """The coverage of every pixel by what was drawn."""
        height, width = self.shape
        small = cv2.resize(
            self._cover.astype(np.float64), (width, height), interpolation=cv2.INTER_AREA
        )
        return np.asarray(small, np.float64) / 255.0


def wanderer(
    rng: np.random.Generator,
    start: tuple[float, float],
    turn: float,
    length: float,
    curl: float,
    steps: int = 48,
) -> Plane:
    """A curve of that length that starts at (x, y) in direction `turn` and bends at random.

    `curl` is how many radians it may bend over its length.
    """
    bend = np.cumsum(rng.standard_normal(steps)) / np.sqrt(steps)
    heading = turn + curl * bend / np.sqrt(steps) * np.sqrt(np.arange(steps))
    step = length / steps
    x = start[0] + np.concatenate([[0.0], np.cumsum(np.cos(heading))]) * step
    y = start[1] + np.concatenate([[0.0], np.cumsum(np.sin(heading))]) * step
    return np.stack([x, y], axis=1)


def speck(rng: np.random.Generator, at: tuple[float, float], size: float) -> Plane:
    """The outline of an irregular grain of dust about (x, y)."""
    corners = 14
    angle = np.sort(rng.uniform(0.0, 2.0 * np.pi, corners))
    reach = size * (0.35 + 0.65 * rng.random(corners))
    squeeze = rng.uniform(0.4, 1.0)
    lean = rng.uniform(0.0, np.pi)
    x, y = reach * np.cos(angle), squeeze * reach * np.sin(angle)
    return np.stack(
        [at[0] + x * np.cos(lean) - y * np.sin(lean), at[1] + x * np.sin(lean) + y * np.cos(lean)],
        axis=1,
    )


def heavy(rng: np.random.Generator, typical: float, most: float) -> float:
    """A size of which small ones are common and large ones rare."""
    return float(min(most, typical * np.exp(0.7 * rng.standard_normal())))


def scattered(rng: np.random.Generator, sheet: Sheet, typical: float, count: int) -> None:
    """So many specks per nominal square, strewn over a sheet; some come in clusters."""
    number = round(count * sheet.height * sheet.width / NOMINAL**2)
    x, y = rng.uniform(0, sheet.width), rng.uniform(0, sheet.height)
    for _ in range(min(number, 4000)):
        if rng.random() < 0.7:
            x, y = rng.uniform(0, sheet.width), rng.uniform(0, sheet.height)
        else:
            x, y = x + rng.normal(0, 25), y + rng.normal(0, 25)
        size = heavy(rng, typical, 8 * typical)
        sheet.blob(speck(rng, (x, y), size), float(rng.uniform(0.45, 1.0)))


def hairs(rng: np.random.Generator, sheet: Sheet, count: int, width: float) -> None:
    """So many hairs and fibres, curled, over a sheet."""
    for _ in range(count):
        start = (rng.uniform(0, sheet.width), rng.uniform(0, sheet.height))
        length = heavy(rng, 70.0, 320.0)
        path = wanderer(rng, start, rng.uniform(0, 2 * np.pi), length, rng.uniform(1.0, 5.0))
        sheet.line(path, width * rng.uniform(0.7, 1.4), float(rng.uniform(0.5, 1.0)))
