"""The objects that can be put into a picture, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from convergebench.drawing import beards, household, jewellery, pets, tabletop, wearables
from convergebench.drawing.canvas import Painter, paint_rows


@dataclass(frozen=True, slots=True)
class _Object:
    """What draws an object, the width of its box for a height of one, and a description."""

    painter: Painter
    aspect: float
    description: str
    stands: bool = True


_OBJECTS = {
    "apple": _Object(tabletop.apple, 1.0, "a red apple with a leaf"),
    "beard": _Object(beards.beard, 1.25, "a full brown beard", stands=False),
    "book": _Object(tabletop.book, 0.86, "a standing red hardback"),
    "cat": _Object(household.cat, 0.82, "a sitting ginger cat"),
    "chair": _Object(household.chair, 0.68, "a wooden chair"),
    "cup": _Object(tabletop.cup, 1.02, "a mug of coffee"),
    "dog": _Object(pets.dog, 0.80, "a sitting brown and white dog"),
    "earrings": _Object(
        jewellery.earrings, 0.94, "a pair of gold earrings with blue stones", stands=False
    ),
    "glasses": _Object(wearables.glasses, 2.8, "round reading glasses", stands=False),
    "hat": _Object(wearables.hat, 1.75, "a brown felt hat", stands=False),
    "moustache": _Object(beards.moustache, 2.6, "a moustache with curled tips", stands=False),
    "necklace": _Object(jewellery.necklace, 1.25, "pearls with a pendant", stands=False),
    "party-hat": _Object(wearables.party_hat, 0.75, "a paper cone with a pompom", stands=False),
    "plant": _Object(household.plant, 1.0, "a leafy plant in a clay pot"),
    "red-ball": _Object(tabletop.red_ball, 1.0, "a glossy red ball"),
    "scarf": _Object(wearables.scarf, 1.24, "a knitted scarf with stripes", stands=False),
    "sunglasses": _Object(wearables.sunglasses, 2.8, "dark sunglasses", stands=False),
    "umbrella": _Object(wearables.umbrella, 1.0, "an open umbrella"),
    "vase": _Object(tabletop.vase, 0.65, "a tall blue vase"),
    "watch": _Object(jewellery.watch, 0.60, "a wristwatch on a leather strap", stands=False),
}

OBJECTS: Mapping[str, str] = MappingProxyType(
    {name: entry.description for name, entry in _OBJECTS.items()}
)


def sprite(name: str, width: int, height: int) -> NDArray[np.uint8]:
    """An object as H×W×4 RGBA pixels with straight alpha.

    The object keeps its proportions and is as large as the box allows. In a box of another shape
    it is centred, except that what stands stays on the box's lower edge, and that the two of a pair
    keep to the box's sides.

    Args:
        name: A key of `OBJECTS`.
        width: Width of the box in pixels.
        height: Height of the box in pixels.

    Raises:
        KeyError: There is no such object.
        ValueError: A side is less than one pixel.
    """
    entry = _OBJECTS[name]
    if width < 1 or height < 1:
        raise ValueError(f"Expected a sprite of at least 1x1 pixels. Got {width}x{height}.")
    top = min(0.0, 1.0 - entry.aspect * height / width) if entry.stands else 0.0
    place = (0.0, top, entry.aspect, 1.0)
    return paint_rows(entry.painter, (width, height), (0, height), place, 4)
