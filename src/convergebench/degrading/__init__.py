"""The degradation engine: seeded damage that makes restoration pairs of clean pictures.

    damaged = degrade(pixels, "old-film", severity=2, seed=7)

Every kind has three severities, whose numbers are in the module of its name (`parameters` gives
them). The same pixels, kind, severity and seed give the same bytes on every machine: chance comes
from a PCG64 generator that is seeded by their SHA-256, all arithmetic is in 64-bit floats and
rounded once, so that the last bit of a library's sine or sum moves no pixel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from convergebench.errors import InputError, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KINDS", "LEAST", "SEVERITIES", "degrade", "degrade_all", "parameters"]

VERSION: Final = 1
"""Raised when the same kind, severity and seed damage a picture otherwise than before."""

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
    import numpy as np

    from convergebench.degrading import blur, film, photo, surveillance, zoom
    from convergebench.degrading.chance import generator

    _check(pixels, kind, severity, seed)
    rng = generator("convergebench", kind, severity, seed)
    given = np.ascontiguousarray(pixels)
    level = severity - 1
    match kind:
        case "defocus":
            return blur.defocus(given, blur.DEFOCUS[level], rng)
        case "motion":
            return blur.motion(given, blur.MOTION[level], rng)
        case "digital-zoom":
            return zoom.digital_zoom(given, zoom.DIGITAL_ZOOM[level], rng)
        case "old-film":
            return film.old_film(given, film.OLD_FILM[level], rng)
        case "old-photo-bw":
            return photo.old_photo_bw(given, photo.OLD_PHOTO_BW[level], rng)
        case "old-photo-colour":
            return photo.old_photo_colour(given, photo.OLD_PHOTO_COLOUR[level], rng)
        case _:
            return surveillance.surveillance(given, surveillance.SURVEILLANCE[level], rng)


def degrade_all(
    pixels: NDArray[np.uint8], damages: Iterable[tuple[str, int, int]]
) -> NDArray[np.uint8]:
    """Several kinds, one after the other: each damage is (kind, severity, seed)."""
    for kind, severity, seed in damages:
        pixels = degrade(pixels, kind, severity, seed)
    return pixels


def parameters(kind: str) -> tuple[Any, Any, Any]:
    """The parameters of a kind at severities 1, 2 and 3: frozen dataclasses of numbers.

    Raises:
        UnknownName: There is no such kind.
    """
    from convergebench.degrading import blur, film, photo, surveillance, zoom

    tables = {
        "defocus": blur.DEFOCUS,
        "motion": blur.MOTION,
        "digital-zoom": zoom.DIGITAL_ZOOM,
        "old-film": film.OLD_FILM,
        "old-photo-bw": photo.OLD_PHOTO_BW,
        "old-photo-colour": photo.OLD_PHOTO_COLOUR,
        "surveillance": surveillance.SURVEILLANCE,
    }
    if kind not in tables:
        raise UnknownName("degradation", kind, tables)
    return tables[kind]


def _check(pixels: NDArray[np.uint8], kind: str, severity: int, seed: int) -> None:
    """Raises what `degrade` says."""
    if kind not in KINDS:
        raise UnknownName("degradation", kind, KINDS)
    if severity not in SEVERITIES:
        raise InputError(f"severity {severity!r} of {kind}: give 1, 2 or 3")
    if seed < 0:
        raise InputError(f"seed {seed!r} of {kind}: give a whole number of at least 0")
    if pixels.dtype != "uint8" or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise InputError(
            f"cannot degrade {pixels.dtype} values of shape {pixels.shape}: give H×W×3 uint8 pixels"
        )
    if min(pixels.shape[:2]) < LEAST:
        height, width = pixels.shape[:2]
        raise InputError(
            f"cannot degrade {width}×{height} pixels: give a picture of at least {LEAST}×{LEAST}"
        )
