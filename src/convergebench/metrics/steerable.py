"""A steerable pyramid, built in the frequency domain.

A high-pass residue, levels of K oriented bands an octave apart, and a low-pass residue. With ρ the
frequency (1 at Nyquist), θ its direction and q = log₂ρ, the high-pass and low-pass factors are

    H(q) = cos(π/2·q) and L(q) = √(1 − H²) for −1 ≤ q ≤ 0, 0 and 1 below, 1 and 0 above,

level n = 1, 2, … passes L(q)·…·L(q + n − 1)·H(q + n), and its band k the part
(−i)^(K−1)·√c·cos(θ − kπ/K)^(K−1) of that, c such that the squares of all bands add up to 1. Each
level is sampled half as densely as the one before, so nothing is lost: the squared factors of all
parts add up to 1 everywhere.

Follows `buildSFpyr` of the authors' matlabPyrTools, whose factors come from tables (5e-6 apart);
written by hand because no maintained library has it without torch.

Simoncelli, Freeman: The steerable pyramid: a flexible architecture for multi-scale derivative
computation. ICIP 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Field = NDArray[np.float32]
    Spectrum = NDArray[np.complex128]


@dataclass(frozen=True)
class Pyramid:
    """What a picture was taken apart into.

    Attributes:
        high: The finest details, of the picture's size.
        levels: Oriented bands, fine to coarse.
        low: What is left, at the coarsest sampling.
    """

    high: Field
    levels: list[list[Field]]
    low: Field


def steerable(plane: NDArray[Any], levels: int, bands: int) -> Pyramid:
    """The pyramid of a plane, which is taken to repeat beyond its borders."""
    from scipy import fft

    workers = max(1, cv2.getNumThreads())
    height, width = plane.shape

    def back(spectrum: Spectrum, shape: tuple[int, int]) -> Field:
        result: Field = fft.irfft2(spectrum, s=shape, workers=workers).astype(np.float32)
        return result

    spectrum: Spectrum = fft.rfft2(plane.astype(np.float64), workers=workers)
    down, across = _signed(height)[:, None] / (height / 2), np.arange(width // 2 + 1) / (width / 2)
    octave = _octave(down, across)
    high = back(spectrum * _high(octave), (height, width))
    spectrum = spectrum * _low(octave)
    oriented = []
    shape = height, width
    for n in range(1, levels + 1):
        oriented.append(
            [
                back(part, shape)
                for part in _oriented(spectrum * _high(octave + n), down, across, bands)
            ]
        )
        shape = (shape[0] + 1) // 2, (shape[1] + 1) // 2
        rows = _signed(shape[0])
        spectrum = spectrum[rows, : shape[1] // 2 + 1]
        down, across = down[rows], across[: shape[1] // 2 + 1]
        octave = _octave(down, across)
        spectrum = spectrum * _low(octave + n)
    return Pyramid(high, oriented, back(spectrum, shape))


def _oriented(spectrum: Spectrum, down: Doubles, across: Doubles, bands: int) -> list[Spectrum]:
    """A spectrum's part in each direction."""
    order = bands - 1
    norm = 2**order * math.factorial(order) / math.sqrt(bands * math.factorial(2 * order))
    rho = np.hypot(down, across)
    rho[0, 0] = 1
    spectrum = spectrum * ((-1j) ** order * norm) / _power(rho, order)
    angles = [math.pi * k / bands for k in range(bands)]
    return [spectrum * _power(math.cos(a) * across + math.sin(a) * down, order) for a in angles]


def _power(base: Doubles, exponent: int) -> Doubles:
    """A whole power by multiplication, which is ten times as fast as `**`."""
    result = np.ones_like(base)
    for _ in range(exponent):
        result *= base
    return result


def _signed(count: int) -> NDArray[np.int64]:
    """Whole cycles per picture in the order of the transform: 0, 1, …, then the negative ones.

    As indices they pick the low frequencies out of a longer transform.
    """
    cycles: NDArray[np.int64] = np.fft.ifftshift(np.arange(count) - count // 2)
    return cycles


def _octave(down: Doubles, across: Doubles) -> Doubles:
    """log₂ρ; far below all others for the mean."""
    rho = np.hypot(down, across)
    rho[0, 0] = 2.0**-60
    result: Doubles = np.log2(rho)
    return result


def _high(octave: Doubles) -> Doubles:
    return np.cos(np.clip(octave, -1, 0) * (math.pi / 2))


def _low(octave: Doubles) -> Doubles:
    return -np.sin(np.clip(octave, -1, 0) * (math.pi / 2))
