"""Log-Gabor filters: bands of scale and orientation, as a factor per frequency.

With ρ the frequency in cycles per sample and θ its direction, the filter of wavelength λ and
direction φ passes

    exp(−ln(ρ·λ)² / (2·ln(σ)²)) · exp(−Δ(θ, φ)² / (2·τ²)),

where Δ is the angle between two directions, σ the bandwidth, and τ the angular spread. It passes
one of two opposite directions, so that a response is complex: its real part is that of an even
filter, its imaginary part that of an odd one.

Field: Relations between the statistics of natural images and the response properties of cortical
cells. Journal of the Optical Society of America A 4(12), 1987.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@lru_cache(maxsize=4)
def bank(
    height: int,
    width: int,
    wavelengths: tuple[float, ...],
    directions: int,
    bandwidth: float,
    spread: float,
) -> NDArray[np.float32]:
    """Filters for spectra as `numpy.fft.fft2` gives them.

    Args:
        height: Rows of the picture.
        width: Its columns.
        wavelengths: Samples per cycle at the centre of each band.
        directions: How many, evenly spaced over half a turn.
        bandwidth: σ; 1 would be infinitely narrow.
        spread: τ in radians.

    Returns:
        Wavelengths × directions × height × width, kept for the next call.
    """
    down, across = _frequencies(height)[:, None], _frequencies(width)
    rho, theta = np.hypot(down, across), np.arctan2(-down, across)
    rho[0, 0] = 1
    filters = np.empty((len(wavelengths), directions, height, width), np.float32)
    for n in range(directions):
        apart = (theta - n * math.pi / directions + math.pi) % (2 * math.pi) - math.pi
        angular = np.exp(-(apart**2) / (2 * spread**2))
        for m, wavelength in enumerate(wavelengths):
            radial = np.exp(-(np.log(rho * wavelength) ** 2) / (2 * math.log(bandwidth) ** 2))
            filters[m, n] = radial * angular
    filters[:, :, 0, 0] = 0
    filters.setflags(write=False)
    return filters


def _frequencies(count: int) -> NDArray[np.float64]:
    """Cycles per sample in the order of the transform, from −½ (to ½ for an odd count)."""
    # not numpy.fft.fftfreq: the authors of ILNIQE stretch an odd count to reach both ends
    steps = np.fft.ifftshift(np.arange(count) - count // 2)
    frequencies: NDArray[np.float64] = steps / max(1, count - count % 2)
    return frequencies
