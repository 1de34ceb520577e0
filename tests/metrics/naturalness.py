"""BRISQUE, NIQE and PIQE written down as their papers have them: float64, SciPy, loops.

Shares no code with the metrics. Coefficients that are only rounding noise are set to zero, as the
metrics do.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, special

from convergebench.drawing import scene
from convergebench.frame import Frame
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView

Pixels = NDArray[np.uint8]
Doubles = NDArray[np.float64]

SHAPES: Final = np.linspace(0.2, 10, 9801)
RATIOS: Final = special.gamma(2 / SHAPES) ** 2 / (
    special.gamma(1 / SHAPES) * special.gamma(3 / SHAPES)
)


def measured(metric: LiftedMetric, pixels: Pixels) -> float:
    """One score, which must be a number."""
    (value,) = metric.score([StepView(Picture(pixels))])
    if isinstance(value, NoScore):
        raise AssertionError(f"expected a number, got no score: {value.reason}")
    return value


def drawn(height: int, width: int, noise: float = 4) -> Pixels:
    """A drawn scene with grain, so that no part of it is flat; always the same one."""
    picture = scene("still-life", max(16, width), max(16, height))[:height, :width]
    grain = np.random.Generator(np.random.PCG64(height * width)).normal(0, noise, picture.shape)
    return np.clip(np.rint(picture + grain), 0, 255).astype(np.uint8)


def official(shared: Path) -> tuple[dict[str, list[float]], list[Pixels]]:
    """The official scores of pyiqa's test set by metric, and its distorted pictures."""
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    values = {m: [float(v) for v in table[m]] for m in ("brisque", "niqe", "piqe")}
    return values, [
        Frame((folder / "dist_dir" / name).read_bytes()).pixels for name in table["Method"]
    ]


def luma(pixels: Pixels) -> Doubles:
    """MATLAB's rgb2gray: the first row of the inverse of its YIQ matrix, rounded half up."""
    yiq = np.linalg.inv([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.106, 1.703]])
    found: Doubles = np.floor(pixels.astype(np.float64) @ yiq[0] + 0.5)
    return found


def keys(x: float) -> float:
    """Keys' cubic."""
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x <= 2 else 0.0


def resized(plane: Doubles, height: int, width: int, scales: tuple[float, float]) -> Doubles:
    """MATLAB's imresize, output sample by output sample, one axis after the other."""

    def along(values: Doubles, count: int, scale: float) -> Doubles:
        length, result = len(values), []
        for i in range(count):
            centre = (i + 0.5) / scale - 0.5
            squeeze = min(1.0, scale)
            reach = math.ceil(2 / squeeze) + 1
            near = range(math.floor(centre) - reach, math.floor(centre) + reach + 2)
            weights = [keys(squeeze * (centre - j)) for j in near]
            inside = []
            for j in near:
                while not 0 <= j < length:
                    j = -1 - j if j < 0 else 2 * length - 1 - j
                inside.append(j)
            total = sum(w * values[j] for w, j in zip(weights, inside, strict=True))
            result.append(total / sum(weights))
        return np.array(result)

    return along(along(plane, height, scales[0]).T, width, scales[1]).T


def halved(plane: Doubles) -> Doubles:
    """Half the size, rounded up."""
    height, width = plane.shape
    return resized(plane, -(-height // 2), -(-width // 2), (0.5, 0.5))


def field(plane: Doubles, mode: str) -> Doubles:
    """The MSCN field, with SciPy's name for what lies beyond the border."""
    dy, dx = np.mgrid[-3:4, -3:4]
    window = np.exp(-(dx**2 + dy**2) / (2 * (7 / 6) ** 2))
    window /= window.sum()
    mean = ndimage.correlate(plane, window, mode=mode)
    variance = ndimage.correlate(plane**2, window, mode=mode) - mean**2
    apart = np.where(np.abs(plane - mean) < 1e-9, 0, plane - mean)
    found: Doubles = apart / (np.sqrt(np.abs(variance)) + 1)
    return found


def asymmetric(x: Doubles, zeros: float = 0) -> tuple[float, float, float]:
    """Shape and deviations of an asymmetric generalised Gaussian."""
    left = math.sqrt((x[x < 0] ** 2).mean())
    right = math.sqrt((x[x > 0] ** 2).sum() / ((x > 0).sum() + zeros * (x == 0).sum()))
    skew = left / right
    ratio = np.abs(x).mean() ** 2 / (x**2).mean()
    ratio *= (skew**3 + 1) * (skew + 1) / (skew**2 + 1) ** 2
    return float(SHAPES[np.abs(RATIOS - ratio).argmin()]), left, right


def symmetric(x: Doubles) -> tuple[float, float]:
    """Shape and variance of a generalised Gaussian."""
    ratio = (x**2).mean() / np.abs(x).mean() ** 2
    return float(SHAPES[np.abs(1 / RATIOS - ratio).argmin()]), float((x**2).mean())


def brisque_features(pixels: Pixels) -> Doubles:
    """The 36 features of BRISQUE."""
    plane, found = luma(pixels), list[float]()
    for _ in range(2):
        f = field(plane, "constant")
        found += symmetric(f)
        for shift in ((0, 1), (1, 0), (1, 1), (-1, 1)):
            shape, left, right = asymmetric(f * np.roll(f, shift, (0, 1)), zeros=0.5)
            scale = math.sqrt(special.gamma(1 / shape) / special.gamma(3 / shape))
            mean = (right - left) * scale * special.gamma(2 / shape) / special.gamma(1 / shape)
            found += [shape, float(mean), left**2, right**2]
        plane = halved(plane)
    return np.array(found)


def niqe_features(pixels: Pixels) -> Doubles:
    """The 36 features of each block of NIQE."""
    plane = luma(pixels)
    rows, columns = (side // 96 for side in plane.shape)
    plane = plane[: 96 * rows, : 96 * columns]
    scales = []
    for side in (96, 48):
        f = field(plane, "nearest")
        blocks = []
        for i in range(rows):
            for j in range(columns):
                blocks.append(_described(f[side * i : side * (i + 1), side * j : side * (j + 1)]))
        scales.append(blocks)
        plane = halved(plane)
    return np.concatenate(scales, axis=1)


def _described(block: Doubles) -> list[float]:
    def fit(x: Doubles) -> tuple[float, float, float]:
        shape, left, right = asymmetric(x)
        scale = math.sqrt(special.gamma(1 / shape) / special.gamma(3 / shape))
        return shape, left * scale, right * scale

    shape, left, right = fit(block)
    found = [shape, (left + right) / 2]
    for shift in ((0, 1), (1, 0), (1, 1), (1, -1)):
        shape, left, right = fit(block * np.roll(block, shift, (0, 1)))
        mean = (right - left) * special.gamma(2 / shape) / special.gamma(1 / shape)
        found += [shape, float(mean), left, right]
    return found


def piqe_score(pixels: Pixels) -> float:
    """PIQE, block by block."""
    plane = luma(pixels)
    plane = np.floor(255 * plane / plane.max() + 0.5)
    height, width = plane.shape
    f = field(np.pad(plane, ((0, -height % 16), (0, -width % 16)), mode="symmetric"), "nearest")
    total, active = 1.0, 1

    def deviation(x: Any) -> float:
        return float(np.std(x, ddof=1))

    for i in range(0, f.shape[0], 16):
        for j in range(0, f.shape[1], 16):
            block = f[i : i + 16, j : j + 16]
            spread = deviation(block)
            if spread**2 <= 0.1:
                continue
            active += 1
            around = deviation(np.delete(np.delete(block, 7, axis=1), 8, axis=1))
            ratio = deviation(block[:, 7:9]) / around if around else 0.0
            noisy = spread > 2 * abs(spread - ratio) / max(spread, ratio)
            sides = (block[0], block[-1], block[:, 0], block[:, -1])
            impaired = any(deviation(e[k : k + 6]) < 0.1 for e in sides for k in range(11))
            total += impaired * (1 - spread**2) + noisy * spread**2
    return 100 * total / active
