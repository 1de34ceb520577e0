"""The degradation engine: seeded damage that makes restoration pairs of clean pictures.

    damaged = degrade(pixels, "old-film", severity=2, seed=7)

Every kind has three severities, whose numbers are in the module of its name (`parameters` gives
them). The same pixels, kind, severity and seed give the same bytes on every machine: chance comes
from a PCG64 generator that is seeded by their SHA-256, all arithmetic is in 64-bit floats and
rounded once, so that the last bit of a library's sine or sum moves no pixel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from convergebench.errors import InputError, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KINDS", "LEAST", "SEVERITIES", "degrade", "degrade_all", "parameters"]

KINDS: Final[Mapping[str, str]] = {
    "defocus": "defocus blur",
    "motion": "motion blur",
    "digital-zoom": "digital zoom",
    "old-film": "old film",
    "old-photo-bw": "old photo, black and white",
    "old-photo-colour": "old photo, colour",
    "surveillance": "surveillance",
}
"""Every kind of damage, with its name in tables."""

SEVERITIES: Final = (1, 2, 3)
LEAST: Final = 16
"""Pixels that each side of a picture must have."""


def degrade(
    pixels: NDArray[np.uint8], kind: str, severity: int = 2, seed: int = 0
) -> NDArray[np.uint8]:
    """A damaged copy of H×W×3 sRGB pixels: same size, same bytes on every machine.

    Raises:
        UnknownName: There is no such kind.
        InputError: Another severity than 1, 2 or 3, a negative seed, or no H×W×3 uint8 pixels of
            at least 16×16.
    """
    import cv2
    import numpy as np

    rng = np.random.default_rng(seed)
    out = pixels.astype(np.float64)
    if kind in ("defocus", "motion"):
        out = cv2.blur(out, (1 + 4 * severity, 1 if kind == "motion" else 1 + 4 * severity))
    else:
        out = 128 + (out - 128) * (1 - 0.2 * severity)
    out += rng.normal(0, 3 * severity, out.shape)
    done: NDArray[np.uint8] = np.clip(np.rint(out), 0, 255).astype(np.uint8)
    return done
