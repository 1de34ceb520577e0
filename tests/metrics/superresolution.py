"""NRQM's features written down as its authors' program has them: float64, SciPy, loops.

Shares no code with the metric.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage, special

from tests.metrics.naturalness import resized

Doubles = NDArray[np.float64]

SHAPES: Final = np.linspace(0.03, 10, 9971)
RATIOS: Final = np.exp(
    special.gammaln(1 / SHAPES) + special.gammaln(3 / SHAPES) - 2 * special.gammaln(2 / SHAPES)
)


def fitted_shape(x: Doubles) -> float:
    ratio = x.var(ddof=1) / (np.abs(x - x.mean()).mean() ** 2 + 1e-7)
    return float(SHAPES[np.abs(RATIOS - ratio).argmin()])


def block_features(plane: Doubles) -> Doubles:
    """Block by block."""
    height, width = plane.shape
    padded = np.pad(plane, ((2, 2 + -height % 3), (2, 2 + -width % 3)))
    found: list[tuple[float, float, float]] = []

    def variation(x: Doubles, constant: float) -> float:
        return float(np.abs(x).std(ddof=1) / (np.abs(x).mean() + constant))

    for i in range(0, height, 3):
        for j in range(0, width, 3):
            block = fft.dctn(padded[i : i + 7, j : j + 7], norm="ortho")
            x = block.ravel()[1:]
            upper = [block[0, 1:], block[1, 2:], block[2, 4:], block[3, 5:]]
            diagonal = [block[1, 1:2], block[2, 2:4], block[3, 2:5], block[4, 3:], block[5, 4:]]
            lower = [block[1:, 0], block[2:, 1], block[4:, 2], block[5:, 3]]
            oriented = [
                variation(np.concatenate(part), 1e-8)
                for part in (upper, [*diagonal, block[6, 4:]], lower)
            ]
            found.append((fitted_shape(x), variation(x, 1e-7), float(np.var(oriented, ddof=1))))
    shapes, variations, directions = np.sort(np.array(found), axis=0).T
    count = len(found)
    tenth, last = math.ceil(0.1 * count), int(0.9 * count) - 1
    return np.array(
        [
            shapes[:tenth].mean(),
            shapes.mean(),
            variations[last:].mean(),
            variations.mean(),
            directions[last:].mean(),
            directions.mean(),
        ]
    )


def pyramid_bands(plane: Doubles) -> tuple[Doubles, list[list[Doubles]]]:
    """Two levels of six bands, with whole spectra and tables as in matlabPyrTools."""
    table = np.pi * np.arange(-257, 2) / 512
    rise = np.cos(table) ** 2
    rise[0], rise[-1] = rise[1], rise[-2]
    octaves = -0.5 + 2 / np.pi * (table + np.pi / 4)

    def passes(octave: Doubles, shift: int, low: bool) -> Doubles:
        high = np.sqrt(rise)
        values = np.sqrt(1 - high**2) if low else high
        return np.asarray(np.interp(octave, octaves - shift, values), np.float64)

    size = np.array(plane.shape)
    y, x = ((np.arange(n) - n // 2) / (n / 2) for n in size)
    across, down = np.meshgrid(x, y)
    radius, angle = np.hypot(across, down), np.arctan2(down, across)
    centre = size // 2
    radius[tuple(centre)] = radius[centre[0], centre[1] - 1]
    octave = np.log2(radius)
    spectrum = np.fft.fftshift(np.fft.fft2(plane))

    def back(part: NDArray[np.complex128]) -> Doubles:
        return np.asarray(np.fft.ifft2(np.fft.ifftshift(part)).real, np.float64)

    high = back(spectrum * passes(octave, 0, low=False))
    spectrum = spectrum * passes(octave, 0, low=True)
    constant = math.sqrt(2**10 * math.factorial(5) ** 2 / (6 * math.factorial(10)))
    levels = []
    for level in (1, 2):
        levels.append(
            [
                back(
                    (-1j) ** 5
                    * spectrum
                    * passes(octave, level, low=False)
                    * constant
                    * np.cos(angle - np.pi * b / 6) ** 5
                )
                for b in range(6)
            ]
        )
        smaller = (size + 1) // 2
        first = size // 2 - smaller // 2
        part = tuple(slice(f, f + n) for f, n in zip(first, smaller, strict=True))
        octave, angle, size = octave[part], angle[part], smaller
        spectrum = spectrum[part] * passes(octave, level, low=True)
    return high, levels


def agreement(one: Doubles, other: Doubles) -> float:
    x = np.arange(-5, 6)
    window = np.exp(-(x**2 + x[:, None] ** 2) / (2 * 1.5**2))
    window /= window.sum()

    def mean(plane: Doubles) -> Doubles:
        return np.asarray(ndimage.correlate(plane, window)[5:-5, 5:-5], np.float64)

    covariance = mean(one * other) - mean(one) * mean(other)
    variances = mean(one**2) - mean(one) ** 2 + mean(other**2) - mean(other) ** 2
    return float(((2 * covariance + 7.65**2) / (variances + 7.65**2)).mean())


def mixture_features(plane: Doubles) -> Doubles:
    high, levels = pyramid_bands(plane)
    height, width = plane.shape
    divided: list[Doubles] = []
    for depth, bands in enumerate(levels):
        for n, band in enumerate(bands):
            rows, columns = (length - 2 for length in band.shape)
            y = [band[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
            count = 9
            if depth == 0 and n < 5:
                coarse = levels[1][n]
                twice = resized(coarse, 2 * len(coarse), 2 * coarse.shape[1], (2, 2))
                y.append(twice[1 : 1 + rows, 1 : 1 + columns])
                count = 10
            y += [other[1:-1, 1:-1] for m, other in enumerate(bands) if m != n]
            vectors = np.stack([v.ravel() for v in y], axis=1)
            inverse = np.linalg.pinv(vectors.T @ vectors / len(vectors))
            contrast = np.sqrt((vectors @ inverse * vectors).sum(axis=1) / count)
            centre = vectors[:, 4] - vectors[:, 4].mean()
            guard = 16 >> depth
            inner = (centre / contrast).reshape(rows, columns)[guard:-guard, guard:-guard]
            divided.append(inner - inner.mean())
    found = [fitted_shape(band.ravel()) for band in divided]
    found += [fitted_shape(np.append(divided[n], divided[n + 6])) for n in range(6)]
    for band in levels[0] + levels[1]:
        scales = height / band.shape[0], width / band.shape[1]
        found.append(agreement(resized(band, height, width, scales), high))
    found += [agreement(divided[i], divided[j]) for i in range(6) for j in range(i + 1, 6)]
    return np.array(found)


def singular_values(plane: Doubles) -> Doubles:
    height, width = plane.shape
    padded = np.pad(plane, ((0, -height % 5), (0, -width % 5)))
    columns = [
        padded[i : i + 5, j : j + 5].ravel(order="F")
        for j in range(0, width, 5)
        for i in range(0, height, 5)
    ]
    return np.asarray(np.linalg.svd(np.array(columns).T, compute_uv=False), np.float64)


def scales_of(plane: Doubles) -> list[Doubles]:
    x = np.arange(-1, 2)
    window = np.exp(-(x**2 + x[:, None] ** 2) / (2 * 0.5**2))
    window /= window.sum()
    found = [plane]
    for _ in range(2):
        found.append(ndimage.correlate(found[-1], window, mode="constant")[1::2, 1::2])
    return found
