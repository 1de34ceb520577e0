"""The features and the network of `drift-nr` once more, by SciPy and loops over samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

Plane = NDArray[np.float64]
ndimage: Any = scipy.ndimage  # it has no types


def slow_features(pixels: NDArray[np.uint8]) -> dict[str, float]:
    """Every feature of one picture by its name, in double precision."""
    rgb = pixels.astype(np.float64)
    luma = rgb @ [0.299, 0.587, 0.114]
    planes = [luma, rgb[..., 2] - luma, rgb[..., 0] - luma]
    found: dict[str, float] = {}
    maps = []
    for octave in range(3):
        if octave:
            planes = [_half(p) for p in planes]
        _octave(found, octave, planes)
        maps.append(_map(planes[0], (32, 16, 8)[octave]))
    for octave in (1, 2):
        correlation, slope = _follow(maps[octave], maps[octave - 1])
        found |= {f"follows{octave}": correlation, f"slope{octave}": slope}
    _whole(found, pixels, luma)
    return found


def _half(plane: Plane) -> Plane:
    rows, columns = plane.shape[0] // 2, plane.shape[1] // 2
    return np.array(
        [
            [plane[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in range(columns)]
            for i in range(rows)
        ]
    )


def _inner(plane: Plane, kernel: list[list[float]]) -> Plane:
    found: Plane = ndimage.correlate(plane, np.array(kernel))[1:-1, 1:-1]
    return found


def _tiles(plane: Plane, side: int) -> list[Plane]:
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    return [
        plane[i * side : (i + 1) * side, j * side : (j + 1) * side]
        for i in range(rows)
        for j in range(columns)
    ]


def _quantile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _octave(found: dict[str, float], octave: int, planes: list[Plane]) -> None:
    high_pass = [
        [-1 / 16, -2 / 16, -1 / 16],
        [-2 / 16, 12 / 16, -2 / 16],
        [-1 / 16, -2 / 16, -1 / 16],
    ]
    fine = [_inner(p, high_pass) for p in planes]
    rms = [math.sqrt(fmean((t**2).ravel())) for t in _tiles(fine[0], 8)]
    for percent in (10, 30, 50, 70, 90, 98):
        logs = [math.log2(v + 0.25) for v in rms]
        found[f"energy{octave}-{percent}"] = _quantile(logs, percent)
    tops = [abs(t).max() / (r + 0.25) for t, r in zip(_tiles(fine[0], 8), rms, strict=True)]
    found[f"peak{octave}"] = fmean(math.log2(t + 0.25) for t in tops)
    second, fourth = fmean((fine[0] ** 2).ravel()), fmean((fine[0] ** 4).ravel())
    found[f"kurtosis{octave}"] = math.log2((fourth + 1) / (second**2 + 1))
    x = planes[0]
    sums: dict[str, list[float]] = {"across": [], "down": [], "diagonal": []}
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1] - 1):
            a, b, c, d = x[i, j], x[i, j + 1], x[i + 1, j], x[i + 1, j + 1]
            sums["across"].append((a - b + c - d) ** 2)
            sums["down"].append((a + b - c - d) ** 2)
            sums["diagonal"].append((a - b - c + d) ** 2)
    across, down, diagonal = (fmean(v) / 4 for v in sums.values())
    ratio = (diagonal + 0.0625) / ((across + down) / 2 + 0.0625)
    found[f"diagonal{octave}"] = math.log2(ratio)
    dx = _inner(x, [[0, 0, 0], [-1, 0, 1], [0, 0, 0]])
    dy = _inner(x, [[0, -1, 0], [0, 0, 0], [0, 1, 0]])
    agreed = []
    for p, q in zip(_tiles(dx, 8), _tiles(dy, 8), strict=True):
        tensor = np.array([[(p * p).mean(), (p * q).mean()], [(p * q).mean(), (q * q).mean()]])
        small, large = np.linalg.eigvalsh(tensor)
        agreed.append(float((large - small) / (large + small + 1)))
    for percent in (25, 75):
        found[f"coherence{octave}-{percent}"] = _quantile(agreed, percent)
    found[f"extrema{octave}"] = math.log2(_extrema(x) + 1e-3)
    faint = [
        math.log2(math.sqrt((p**2).mean() + (q**2).mean()) + 0.25)
        for p, q in zip(_tiles(fine[1], 8), _tiles(fine[2], 8), strict=True)
    ]
    for percent in (10, 50, 90):
        found[f"chroma{octave}-{percent}"] = _quantile(faint, percent)
    shared = sum(((fine[0] * f).mean()) ** 2 for f in fine[1:]) / (second + 0.0625)
    found[f"tie{octave}"] = float(shared / (sum((f**2).mean() for f in fine[1:]) + 0.0625))


def _extrema(x: Plane) -> float:
    count = 0
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            around = [x[i - 1, j], x[i + 1, j], x[i, j - 1], x[i, j + 1]]
            out = x[i, j] - sum(around) / 4
            count += (x[i, j] > max(around) and out > 2) or (x[i, j] < min(around) and out < -2)
    return float(count / (x.shape[0] - 2) / (x.shape[1] - 2))


def _map(x: Plane, side: int) -> list[float]:
    rows, columns = x.shape
    square = np.zeros_like(x)
    for i in range(rows):
        for j in range(columns):
            a, b = min(i, rows - 2), min(j, columns - 2)
            square[i, j] = (x[a, b + 1] - x[a, b]) ** 2 + (x[a + 1, b] - x[a, b]) ** 2
    return [math.log2(float(t.mean()) + 0.0625) for t in _tiles(square, side)]


def _follow(coarse: list[float], fine: list[float]) -> tuple[float, float]:
    a, b = fmean(coarse), fmean(fine)
    both = sum((p - a) * (q - b) for p, q in zip(coarse, fine, strict=True))
    one, other = sum((p - a) ** 2 for p in coarse), sum((q - b) ** 2 for q in fine)
    return both / (math.sqrt(one * other) + 1), both / (one + 1)


def _grid(x: Plane) -> float:
    profile = [
        fmean(min(16.0, abs(row[j] + row[j + 2] - 2 * row[j + 1])) for row in x.tolist())
        for j in range(x.shape[1] - 2)
    ]
    whole = len(profile) // 8 * 8
    phases = [fmean(profile[phase:whole:8]) for phase in range(8)]
    return math.log2((max(phases) + 0.25) / (median(phases) + 0.25))


def _whole(found: dict[str, float], pixels: NDArray[np.uint8], luma: Plane) -> None:
    steps = [abs(luma[:, 1:] - luma[:, :-1]), abs(luma[1:] - luma[:-1])]
    found["equal"] = fmean(float((s < 0.05).mean()) for s in steps)
    found["near"] = fmean(float((s < 1.5).mean()) for s in steps)
    found["grid"] = max(_grid(luma), _grid(luma.T))
    samples = []
    for red, green, blue in pixels.reshape(-1, 3).tolist():
        y = 0.299 * red + 0.587 * green + 0.114 * blue
        samples.append((y, blue - y, red - y, math.hypot(blue - y, red - y)))
    dark = _quantile([s[0] for s in samples], 5) + 1e-4
    light = _quantile([s[0] for s in samples], 95) - 1e-4
    grey = _quantile([s[3] for s in samples], 10) + 1e-4
    for name, chosen in (
        ("dark", [s for s in samples if s[0] <= dark]),
        ("light", [s for s in samples if s[0] >= light]),
        ("grey", [s for s in samples if s[3] <= grey]),
    ):
        cast = math.hypot(fmean(s[1] for s in chosen), fmean(s[2] for s in chosen))
        found[f"cast-{name}"] = math.log2(cast + 4)
    found["saturation"] = math.log2(fmean(s[3] for s in samples) + 4)
    bins = Counter(
        (math.floor((s[1] + 256 + 1e-4) / 16), math.floor((s[2] + 256 + 1e-4) / 16))
        for s in samples
    )
    shares = [count / len(samples) for count in bins.values()]
    found["colours"] = -sum(s * math.log2(s) for s in shares)
    found["contrast"] = math.log2(float(luma.std()) + 4)
    found["black"] = math.log2(float((pixels <= 1).mean()) + 1e-3)
    found["white"] = math.log2(float((pixels >= 254).mean()) + 1e-3)


def slow_score(found: Mapping[str, float], parameters: Mapping[str, Any]) -> float:
    """The score from features, unit by unit."""
    z = [
        max(-4.0, min(4.0, (found[name] - centre) / spread))
        for name, centre, spread in zip(
            parameters["features"], parameters["centre"], parameters["spread"], strict=True
        )
    ]
    g = sum(w * v for w, v in zip(parameters["straight"], z, strict=True))
    for weights, bias, out in zip(
        parameters["inner"], parameters["bias"], parameters["outer"], strict=True
    ):
        g += out * math.tanh(bias + sum(w * v for w, v in zip(weights, z, strict=True)))
    level = parameters["gain"] * g + parameters["offset"]
    return float(50 + 50 * level / (1 + abs(level)))
