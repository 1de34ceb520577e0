"""What `drift-nr` looks at: 63 statistics of a picture, each with a plain meaning.

Luma Y = 0.299 R + 0.587 G + 0.114 B and chroma B − Y, R − Y, in 8-bit levels, are looked at in
three octaves: as they are, and halved once and twice (means of 2×2). In each octave the *residual*
of a plane x is

    r = x − (1 2 1)/4 ⊗ (1 2 1)/4 * x,

what lies finer than some three pixels; inner samples only, so no border is invented. Then:

- `energy`: root mean square of r in blocks of 8×8, its quantiles over the blocks. The low ones are
  the noise of calm areas, the high ones edges; from octave to octave they say whether detail falls
  off as in pictures of things.
- `peak`, `kurtosis`: how much of r sits in single samples (scatter points, specks).
- `diagonal`: energy of diagonal against axial differences; noise is as strong in both.
- `coherence`: how far the gradients of a block agree in direction (structure tensor). Contours do,
  noise does not, wrinkles do where there was nothing before.
- `extrema`: share of samples that stand out from all four neighbours.
- `chroma`, `tie`: the energies of the chroma residual, and how far it follows that of the luma.
- `follows`, `slope`: how far the energy of a place at one octave follows that at the next coarser
  one, by correlation and by regression. Things have both; noise is everywhere.
- `equal`, `near`: share of neighbours that are (nearly) equal; `grid`: lines at a phase of eight.
- colours: cast of the darkest and the lightest parts and of the greyest, saturation, the number of
  distinct colours, contrast, clipping.

A picture is handed over as a stack of tiles (T×H×W×3), so that a huge one can be sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Planes = NDArray[np.float32]

OCTAVES: Final = 3
BLOCK: Final = 8
QUANTILES: Final = (10, 30, 50, 70, 90, 98)
CHROMA_QUANTILES: Final = (10, 50, 90)
COHERENCE_QUANTILES: Final = (25, 75)
FLOOR: Final = 0.25
"""Levels added before a logarithm: what rounding to 8 bits leaves of nothing."""
STANDS_OUT: Final = 2.0
"""Levels by which an extremum must differ from the mean of its neighbours."""
MIN_SIDE: Final = 64


def _names() -> Iterator[str]:
    for octave in range(OCTAVES):
        yield from (f"energy{octave}-{q}" for q in QUANTILES)
        yield from (f"{name}{octave}" for name in ("peak", "kurtosis", "diagonal"))
        yield from (f"coherence{octave}-{q}" for q in COHERENCE_QUANTILES)
        yield f"extrema{octave}"
        yield from (f"chroma{octave}-{q}" for q in CHROMA_QUANTILES)
        yield f"tie{octave}"
    for octave in range(1, OCTAVES):
        yield from (f"follows{octave}", f"slope{octave}")
    yield from ("equal", "near", "grid")
    yield from ("cast-dark", "cast-light", "cast-grey", "saturation", "colours", "contrast")
    yield from ("black", "white")


NAMES: Final = tuple(_names())


def features(tiles: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The features of a stack of tiles, in the order of `NAMES`.

    Args:
        tiles: T×H×W×3 sRGB pixels, sides at least `MIN_SIDE`.
    """
    planes = _planes(tiles)
    found: list[float] = []
    maps = []
    x = planes
    for octave in range(OCTAVES):
        x = _halved(x) if octave else x
        found += _octave(x)
        maps.append(_map(x[0], BLOCK << (OCTAVES - 1 - octave)))
    for finer, coarser in pairwise(maps):
        found += _following(coarser, finer)
    found += _flatness(planes[0])
    found += _colours(planes, tiles)
    return np.array(found)


def _planes(tiles: NDArray[np.uint8]) -> Planes:
    """Luma, and blue and red against it: 3×T×H×W."""
    red, green, blue = (tiles[..., c].astype(np.float32) for c in range(3))
    luma = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
    return np.stack([luma, blue - luma, red - luma])


def _halved(x: Planes) -> Planes:
    height, width = (side // 2 * 2 for side in x.shape[-2:])
    x = x[..., :height, :width]
    rows = x[..., ::2, :] + x[..., 1::2, :]
    half: Planes = (rows[..., ::2] + rows[..., 1::2]) * np.float32(0.25)
    return half


def _residual(x: Planes) -> Planes:
    """What a binomial filter of 3×3 takes away, of inner samples."""
    rows = x[..., :-2, :] + 2 * x[..., 1:-1, :] + x[..., 2:, :]
    soft = rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]
    fine: Planes = x[..., 1:-1, 1:-1] - soft * np.float32(1 / 16)
    return fine


def _blocks(x: Planes) -> Planes:
    """Whole blocks, as … × blocks × 64 samples."""
    height, width = (side // BLOCK for side in x.shape[-2:])
    cut = x[..., : height * BLOCK, : width * BLOCK]
    cut = cut.reshape(*x.shape[:-2], height, BLOCK, width, BLOCK).swapaxes(-3, -2)
    return cut.reshape(*x.shape[:-3], -1, BLOCK * BLOCK)


def _log(value: NDArray[np.floating] | float, floor: float = FLOOR) -> NDArray[np.float64]:
    return np.log2(np.asarray(value, np.float64) + floor)


def _ratio(upper: float, lower: float) -> float:
    """Binary logarithm of a ratio of energies, 0 where both are none."""
    floor = FLOOR**2
    return float(np.log2((upper + floor) / (lower + floor)))


def _mean(x: Planes) -> float:
    return float(x.mean(dtype=np.float64))


def _octave(x: Planes) -> list[float]:
    fine = _residual(x)
    luma = fine[0]
    blocks = _blocks(luma)
    power = (blocks * blocks).mean(axis=-1, dtype=np.float64)
    found = [*np.percentile(_log(np.sqrt(power)), QUANTILES)]
    top = np.abs(blocks).max(axis=-1)
    found.append(_mean(_log(top / (np.sqrt(power) + FLOOR)).astype(np.float32)))
    square = luma * luma
    found.append(float(np.log2((_mean(square * square) + 1) / (_mean(square) ** 2 + 1))))
    found.append(_ratio(*_directions(x[0])))
    found += [*np.percentile(_coherence(x[0]), COHERENCE_QUANTILES)]
    found.append(float(_log(_extrema(x[0]), 1e-3)))
    hue = _blocks(fine[1:])
    faint = np.sqrt((hue * hue).mean(axis=-1, dtype=np.float64).sum(axis=0))
    found += [*np.percentile(_log(faint), CHROMA_QUANTILES)]
    found.append(_tie(luma, fine[1:]))
    return found


def _map(luma: Planes, block: int) -> NDArray[np.float64]:
    """Logarithms of the energy of differences in blocks, in reading order."""
    dx, dy = np.diff(luma, axis=-1)[..., :-1, :], np.diff(luma, axis=-2)[..., :, :-1]
    square = dx * dx + dy * dy
    # One row and column too short for the last block: what is missing repeats the last.
    square = np.concatenate([square, square[..., -1:, :]], axis=-2)
    square = np.concatenate([square, square[..., -1:]], axis=-1)
    height, width = (side // block for side in square.shape[-2:])
    cut = square[..., : height * block, : width * block]
    cut = cut.reshape(len(luma), height, block, width, block)
    return _log(cut.mean(axis=(2, 4), dtype=np.float64).ravel(), FLOOR**2)


def _following(coarser: NDArray[np.float64], finer: NDArray[np.float64]) -> list[float]:
    """How far fine energies follow coarse ones: correlation and slope over the blocks."""
    a, b = coarser - coarser.mean(), finer - finer.mean()
    both = float(a @ b)
    spread = float(a @ a), float(b @ b)
    return [both / (np.sqrt(spread[0] * spread[1]) + 1), both / (spread[0] + 1)]


def _directions(luma: Planes) -> tuple[float, float]:
    """Mean squares of diagonal and of axial differences over 2×2 samples."""
    a, b = luma[..., :-1, :-1], luma[..., :-1, 1:]
    c, d = luma[..., 1:, :-1], luma[..., 1:, 1:]
    across, down, diagonal = a - b + c - d, a + b - c - d, a - b - c + d
    axial = (_mean(across * across) + _mean(down * down)) / 2
    return _mean(diagonal * diagonal) / 4, axial / 4


def _coherence(luma: Planes) -> NDArray[np.float64]:
    """Of each block: 1 where all gradients lie along one line, 0 where none prevails."""
    dx = luma[..., 1:-1, 2:] - luma[..., 1:-1, :-2]
    dy = luma[..., 2:, 1:-1] - luma[..., :-2, 1:-1]
    xx, yy, xy = (_blocks(p).mean(axis=-1, dtype=np.float64) for p in (dx * dx, dy * dy, dx * dy))
    agreed: NDArray[np.float64] = np.hypot(xx - yy, 2 * xy) / (xx + yy + 1)
    return agreed


def _extrema(luma: Planes) -> float:
    """Share of samples above or below all four neighbours, by `STANDS_OUT` on average."""
    x = luma[..., 1:-1, 1:-1]
    around = luma[..., :-2, 1:-1], luma[..., 2:, 1:-1], luma[..., 1:-1, :-2], luma[..., 1:-1, 2:]
    mean = sum(around[1:], around[0]) * np.float32(0.25)
    above = np.logical_and.reduce([x > n for n in around]) & (x - mean > STANDS_OUT)
    below = np.logical_and.reduce([x < n for n in around]) & (mean - x > STANDS_OUT)
    return float((above | below).mean())


def _tie(luma: Planes, hues: Planes) -> float:
    """Share of the chroma residual's energy that a multiple of the luma's explains."""
    own = _mean(luma * luma)
    total = shared = 0.0
    for hue in hues:
        total += _mean(hue * hue)
        shared += _mean(luma * hue) ** 2 / (own + FLOOR**2)
    return shared / (total + FLOOR**2)


def _flatness(luma: Planes) -> list[float]:
    steps = [np.abs(np.diff(luma, axis=axis)) for axis in (-1, -2)]
    equal = np.mean([(step < 0.05).mean() for step in steps])
    near = np.mean([(step < 1.5).mean() for step in steps])
    return [float(equal), float(near), max(_grid(luma), _grid(luma.swapaxes(-1, -2)))]


def _grid(luma: Planes) -> float:
    """How much stronger the second differences of some column in eight are than the median's."""
    bend = np.abs(luma[..., 2:] + luma[..., :-2] - 2 * luma[..., 1:-1])
    profile = np.minimum(bend, 16).mean(axis=-2, dtype=np.float64)
    whole = profile.shape[-1] // BLOCK * BLOCK
    phases = profile[:, :whole].reshape(len(profile), -1, BLOCK).mean(axis=1)
    lines = (phases.max(axis=-1) + FLOOR) / (np.median(phases, axis=-1) + FLOOR)
    return float(np.log2(lines).mean())


def _colours(planes: Planes, tiles: NDArray[np.uint8]) -> list[float]:
    luma, blue, red = (p.ravel() for p in planes)
    size = np.hypot(blue, red)
    dark, light = np.percentile(luma, (5, 95))
    grey = np.percentile(size, 10)
    casts = [
        np.hypot(_mean(blue[chosen]), _mean(red[chosen]))
        for chosen in (luma <= dark, luma >= light, size <= grey)
    ]
    bins = np.floor((blue + 256) / 16).astype(np.int64) * 32 + np.floor((red + 256) / 16).astype(
        np.int64
    )
    counts = np.bincount(bins)
    share = counts[counts > 0] / len(bins)
    return [
        *(float(_log(cast, 4.0)) for cast in casts),
        float(_log(_mean(size), 4.0)),
        float(-(share * np.log2(share)).sum()),
        float(_log(float(luma.std(dtype=np.float64)), 4.0)),
        float(_log(float((tiles <= 1).mean()), 1e-3)),
        float(_log(float((tiles >= 254).mean()), 1e-3)),
    ]
