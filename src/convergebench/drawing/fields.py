"""Scalar fields over the picture plane: waves, noise and interpolation, equal on every machine.

Only operations that IEEE 754 defines to the last bit are used (+ - * / sqrt floor, comparisons,
integer arithmetic). Library sines and exponentials differ by an ulp between builds and vector
units, and sums differ with their order, so neither appears here.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Field: TypeAlias = NDArray[np.float64]
Value: TypeAlias = "Field | float"

_MASK64 = (1 << 64) - 1
_LATTICE_SIDE = 256
# sin(pi/2 u) on [-1, 1] as an odd polynomial; the last coefficient makes it exactly 1 at u = 1.
_SINE = (1.5707963, -0.6459641, 0.0796926, -0.0045248)


def wave(turns: Field) -> Field:
    """Sine of an angle given in full turns, from a triangle wave and a polynomial."""
    t = turns + 0.25
    u = 1.0 - 4.0 * np.abs(t - np.floor(t) - 0.5)
    s = u * u
    return u * (_SINE[0] + s * (_SINE[1] + s * (_SINE[2] + s * _SINE[3])))


def wave_at(turns: float) -> float:
    """`wave` of one number."""
    t = turns + 0.25
    u = 1.0 - 4.0 * abs(t - math.floor(t) - 0.5)
    s = u * u
    return u * (_SINE[0] + s * (_SINE[1] + s * (_SINE[2] + s * _SINE[3])))


def direction(turns: float) -> tuple[float, float]:
    """Unit vector (cosine, sine) of an angle in full turns."""
    return wave_at(turns + 0.25), wave_at(turns)


def bearing(x: Field, y: Field) -> Field:
    """Angle of (x, y) in turns, in [-0.5, 0.5]; a polynomial arctangent good to 2e-5 turns."""
    ax, ay = np.abs(x), np.abs(y)
    ratio = np.minimum(ax, ay) / np.maximum(np.maximum(ax, ay), 1e-12)
    s = ratio * ratio
    angle = ratio * (0.1590298 + s * (-0.0511164 + s * (0.0232784 + s * -0.0062047)))
    angle = np.where(ay > ax, 0.25 - angle, angle)
    angle = np.where(x < 0.0, 0.5 - angle, angle)
    return np.where(y < 0.0, -angle, angle)


def length(x: Field, y: Field) -> Field:
    """Euclidean length of (x, y)."""
    return np.sqrt(x * x + y * y)


def unit(t: Field) -> Field:
    """Clip to [0, 1]."""
    return np.minimum(np.maximum(t, 0.0), 1.0)


def ramp(t: Field, start: float, stop: float) -> Field:
    """0 at `start`, 1 at `stop` (which may be the smaller), linear between."""
    return unit((t - start) * (1.0 / (stop - start)))


def smooth(t: Field, start: float = 0.0, stop: float = 1.0) -> Field:
    """`ramp` with both ends eased."""
    s = ramp(t, start, stop)
    return s * s * (3.0 - 2.0 * s)


def bump(t: Field, centre: float, radius: float) -> Field:
    """A bell: 1 at `centre`, 0 from `radius` away."""
    s = (t - centre) * (1.0 / radius)
    s = np.maximum(1.0 - s * s, 0.0)
    return s * s


def sharpen(t: Field, doublings: int) -> Field:
    """`t` squared `doublings` times: a power without a power function."""
    for _ in range(doublings):
        t = t * t
    return t


def stripes(t: Field, duty: float, width: Value) -> Field:
    """Coverage of the pulses [n, n + duty) seen through a box `width` wide.

    The exact integral, so that a grid too fine for the pixels turns into its mean, not into moiré.
    """
    low, high = t - 0.5 * width, t + 0.5 * width
    low_whole, high_whole = np.floor(low), np.floor(high)
    covered = (high_whole - low_whole) * duty
    covered += np.minimum(high - high_whole, duty) - np.minimum(low - low_whole, duty)
    return covered / width


def scramble(value: int) -> int:
    """SplitMix64 finaliser of one integer: 64 well-mixed bits."""
    z = (value + 0x9E3779B97F4A7C15) & _MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    return z ^ (z >> 31)


class Dice:
    """A stream of reproducible random numbers, seeded by integers."""

    def __init__(self, *seeds: int) -> None:
        state = 0
        for seed in seeds:
            state = scramble(state ^ (seed & _MASK64))
        self._state = state

    def roll(self, low: float = 0.0, high: float = 1.0) -> float:
        """The next number of the stream, uniform in [low, high)."""
        self._state = scramble(self._state)
        return low + (high - low) * ((self._state >> 11) * (1.0 / 9007199254740992.0))

    def pick(self, count: int) -> int:
        """The next number of the stream as an index below `count`."""
        return min(int(self.roll() * count), count - 1)


def _lattice() -> Field:
    """Random values in [0, 1) on a square lattice that repeats; flattened row by row."""
    z = np.arange(_LATTICE_SIDE * _LATTICE_SIDE, dtype=np.uint64)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)


_LATTICE = _lattice()


def speckle(x: Field, y: Field, seed: int) -> Field:
    """One random value in [0, 1) per unit cell of the plane."""
    shift = scramble(seed)
    column = (np.floor(x).astype(np.int64) + (shift & 255)) & 255
    row = (np.floor(y).astype(np.int64) + ((shift >> 8) & 255)) & 255
    picked: Field = _LATTICE[(row << 8) | column]
    return picked


def noise(x: Field, y: Field, seed: int) -> Field:
    """Value noise in [0, 1): random values on the unit lattice, smoothly joined."""
    shift = scramble(seed)
    cell_x, cell_y = np.floor(x), np.floor(y)
    fx, fy = x - cell_x, y - cell_y
    left = (cell_x.astype(np.int64) + (shift & 255)) & 255
    row = cell_y.astype(np.int64) + ((shift >> 8) & 255)
    fx = fx * fx * (3.0 - 2.0 * fx)
    fy = fy * fy * (3.0 - 2.0 * fy)
    if x.shape[0] == 1 and y.shape[1] == 1:
        first, last = int(row.min()), int(row.max())
        if last - first < row.size:
            # The axes are apart and many pixel rows share a lattice row: join along x only once.
            lattice_rows = np.arange(first, last + 2, dtype=np.int64)[:, np.newaxis]
            joined = _joined(lattice_rows, left, fx)
            index = row[:, 0] - first
            upper: Field = joined[index]
            upper += (joined[index + 1] - upper) * fy
            return upper
    upper = _joined(row, left, fx)
    upper += (_joined(row + 1, left, fx) - upper) * fy
    return upper


def _joined(row: NDArray[np.int64], left: NDArray[np.int64], share: Field) -> Field:
    """Lattice values of some rows, joined between column `left` and the next by `share`."""
    row = (row & 255) << 8
    values: Field = _LATTICE[row | left]
    values += (_LATTICE[row | ((left + 1) & 255)] - values) * share
    return values


def fbm(x: Field, y: Field, seed: int, octaves: int, px: float = 0.0) -> Field:
    """Noise of `octaves` scales, each twice as fine and half as strong; in [0, 1), mean 1/2.

    `px` is the pixel's size in noise cells. Octaves finer than about two pixels fade to their mean,
    so that small renderings do not sparkle.
    """
    total: Field = noise(x, y, seed) * 0.5
    norm, gain, scale = 0.5, 0.25, 2.0
    for octave in range(1, octaves):
        share = min(max(1.6 - 1.6 * px * scale, 0.0), 1.0)
        if share > 0.0:
            layer = noise(x * scale, y * scale, seed + 7919 * octave)
            total += (layer * share + 0.5 * (1.0 - share)) * gain
        else:
            total += 0.5 * gain
        norm += gain
        gain *= 0.5
        scale *= 2.0
    return total * (1.0 / norm)


def grit(x: Field, y: Field, seed: int, octaves: int, px: float) -> Field:
    """Noise as rough close by as from afar: `octaves` scales, each in [-1/2, 1/2), added up.

    `px` is the pixel's size in noise cells. As in `fbm`, scales too fine for the pixels fade to
    their mean, here 0; a larger picture shows more of them.
    """
    total: Field = x * 0.0 + y * 0.0
    scale = 1.0
    for octave in range(octaves):
        share = min(max(1.6 - 1.6 * px * scale, 0.0), 1.0)
        if share <= 0.0:
            break
        total += (noise(x * scale, y * scale, seed + 6007 * octave) - 0.5) * share
        scale *= 2.0
    return total
