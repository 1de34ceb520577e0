"""Old photographs: a faded print on paper, black and white or colour.

Black and white: silver fades and browns, paper yellows. Colour: the three dyes of a chromogenic
print fade at different rates, cyan first, so that it turns red or orange; the loss is a loss of
density, as Wilhelm and Brower (1993) measured it. Both: creases, cracks, stains, foxing, dust, worn
edges, and the texture of the paper (halftone dots where it was printed in ink).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from convergebench.degrading import paper
from convergebench.degrading.chance import field, grain
from convergebench.degrading.film import SPECTRUM
from convergebench.degrading.light import (
    LUMA,
    Pixels,
    Plane,
    bounded,
    encoded,
    linear,
    mixed,
    softened,
    to_bytes,
    unit,
)
from convergebench.degrading.marks import Sheet, hairs, scattered

PAPER: Final = np.array([0.93, 0.90, 0.83])
"""What bare paper looks like where the emulsion is gone, sRGB."""


@dataclass(frozen=True)
class Wear:
    """Damage that black-and-white and colour prints share.

    Attributes:
        soft: Blur of the old lens, standard deviation in nominal pixels.
        grain: Standard deviation of the grain in mid-grey.
        texture: Strength of the paper's texture.
        creases: Folds across the print.
        flaked: How much emulsion has come off along them, 0 to 1.
        cracks: Fine cracks and scuffs.
        stains: Water stains.
        foxing: Brown spots.
        dust: Specks per nominal square of 1024×1024.
        edges: Depth of the worn edges, nominal pixels.
    """

    soft: float
    grain: float
    texture: float
    creases: int
    flaked: float
    cracks: int
    stains: int
    foxing: int
    dust: int
    edges: float


@dataclass(frozen=True)
class OldPhotoBw:
    """Parameters of an old black-and-white photograph.

    Attributes:
        white: Lightness of what was white.
        black: Lightness of what was black.
        yellow: How yellow the paper and how brown the silver is, 0 to 1.
        halftone: Strength of the dots of a print in ink; 0 is a photographic print.
        wear: The damage to the paper.
    """

    white: float
    black: float
    yellow: float
    halftone: float
    wear: Wear


@dataclass(frozen=True)
class OldPhotoColour:
    """Parameters of an old colour photograph.

    Attributes:
        cyan: Share of the cyan dye's density that is left.
        magenta: The same of magenta.
        yellow: The same of yellow.
        stain: Density of the yellow stain that dark storage leaves in the whites.
        black: Light that the faded print reflects where it was black, as a share.
        wear: The damage to the paper.
    """

    cyan: float
    magenta: float
    yellow: float
    stain: float
    black: float
    wear: Wear


_WEAR: Final = (
    Wear(
        soft=0.8, grain=0.018, texture=0.012, creases=1, flaked=0.12, cracks=5, stains=0,
        foxing=6, dust=40, edges=3.0,
    ),
    Wear(
        soft=1.4, grain=0.028, texture=0.018, creases=2, flaked=0.45, cracks=18, stains=2,
        foxing=24, dust=110, edges=7.0,
    ),
    Wear(
        soft=2.2, grain=0.04, texture=0.026, creases=5, flaked=0.9, cracks=55, stains=4,
        foxing=60, dust=220, edges=13.0,
    ),
)  # fmt: skip

OLD_PHOTO_BW: Final = (
    OldPhotoBw(white=0.95, black=0.08, yellow=0.35, halftone=0.0, wear=_WEAR[0]),
    OldPhotoBw(white=0.92, black=0.17, yellow=0.65, halftone=0.25, wear=_WEAR[1]),
    OldPhotoBw(white=0.89, black=0.27, yellow=1.0, halftone=0.45, wear=_WEAR[2]),
)
OLD_PHOTO_COLOUR: Final = (
    OldPhotoColour(cyan=0.8, magenta=0.93, yellow=0.86, stain=0.04, black=0.02, wear=_WEAR[0]),
    OldPhotoColour(cyan=0.6, magenta=0.86, yellow=0.72, stain=0.08, black=0.035, wear=_WEAR[1]),
    OldPhotoColour(cyan=0.48, magenta=0.74, yellow=0.60, stain=0.13, black=0.05, wear=_WEAR[2]),
)


def old_photo_bw(pixels: Pixels, p: OldPhotoBw, rng: np.random.Generator) -> Pixels:
    """A faded black-and-white print."""
    shape = pixels.shape
    (noise,) = rng.spawn(1)
    light = softened(linear(pixels), p.wear.soft * unit(shape))
    tone = encoded(light @ SPECTRUM)
    tone = 0.5 * tone + 0.5 * tone * tone * (3.0 - 2.0 * tone)
    tone = tone + _grain(tone, p.wear, noise)
    if p.halftone:
        dots = paper.halftone(bounded(tone), 6.5)
        tone = tone + p.halftone * (dots - tone)
    gone = paper.uneven(rng, shape)
    black = p.black * (0.7 + 0.8 * gone)
    tone = black + (p.white - black) * tone
    return to_bytes(_worn(_browned(tone, p.yellow), p.wear, rng, matt=False))


def old_photo_colour(pixels: Pixels, p: OldPhotoColour, rng: np.random.Generator) -> Pixels:
    """A colour print whose dyes have faded."""
    shape = pixels.shape
    (noise,) = rng.spawn(1)
    light = softened(linear(pixels), p.wear.soft * unit(shape))
    density = -np.log10(np.clip(light, 0.004, 1.0))
    left = np.array([p.cyan, p.magenta, p.yellow])
    gone = paper.uneven(rng, shape)[..., None]
    left = left - 0.45 * (1.0 - left) * (gone - 0.35)
    density = density * left + p.stain * np.array([0.05, 0.3, 1.0]) * (0.6 + 0.8 * gone)
    light = p.black * np.array([1.0, 0.72, 0.62]) + (1.0 - p.black) * 10.0**-density
    value = encoded(light)
    value = value + _grain(bounded(value @ LUMA), p.wear, noise)[..., None]
    blotch = 0.02 * (1.0 - p.cyan) * field(rng, shape, 3.0)[..., None]
    value = value + blotch * np.array([1.0, -0.6, 0.4])
    return to_bytes(_worn(value, p.wear, rng, matt=True))


def _grain(tone: Plane, wear: Wear, rng: np.random.Generator) -> Plane:
    """Grain, strongest in the middle tones."""
    strength = wear.grain * (0.4 + 2.4 * tone * (1.0 - tone))
    return np.asarray(strength * grain(rng, tone.shape, 2.0), np.float64)


def _browned(tone: Plane, yellow: float) -> Plane:
    """Silver browned and paper yellowed: a curve for each channel, through dark brown to cream."""
    level = bounded(tone)[..., None]
    bump = level * (1.0 - level)
    brown = level * np.array([0.98, 0.92, 0.76]) + bump * np.array([0.22, 0.06, -0.06])
    brown = brown + (1.0 - level) * np.array([0.05, 0.02, 0.0])
    return np.asarray(level + yellow * (brown - level), np.float64)


def _worn(value: Plane, wear: Wear, rng: np.random.Generator, *, matt: bool) -> Plane:
    """The print with all that happened to its paper."""
    shape = value.shape
    one = unit(shape)
    (noise,) = rng.spawn(1)
    texture = paper.silk(shape, 7.0) if matt else paper.fibres(noise, shape)
    value = value + (wear.texture * texture)[..., None]
    inside, tide = paper.stained(rng, shape, wear.stains)
    stain = np.array([0.30, 0.42, 0.62])
    value = value * (1.0 - 0.36 * inside[..., None] * stain - 0.5 * tide[..., None] * stain)
    foxing = paper.foxed(rng, shape, wear.foxing)[..., None]
    value = value * (1.0 - foxing * np.array([0.28, 0.48, 0.72]))
    folds = paper.folded(rng, shape, wear.creases, wear.flaked)
    value = value + folds.shade[..., None]
    for sheet_tone, share in ((0.9, 0.6), (0.12, 0.4)):
        sheet = Sheet(shape)
        scattered(rng, sheet, 1.7, round(wear.dust * share))
        hairs(rng, sheet, round(wear.dust * share / 90), 1.5)
        value = mixed(value, sheet_tone * PAPER, 0.8 * softened(sheet.cover(), 0.5 * one))
    ground = PAPER * (1.0 + 0.012 * grain(noise, shape, 3.0)[..., None])
    cracks = paper.crazed(rng, shape, wear.cracks)
    value = mixed(value, ground, 0.75 * cracks)
    value = mixed(value, ground, folds.bare)
    return mixed(value, ground, 0.95 * paper.worn(rng, shape, wear.edges))
