"""The source images, by name, and where things can be put in them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from convergebench.drawing.aerial import aerial
from convergebench.drawing.bark import bark
from convergebench.drawing.canvas import Bounds, Painter, paint_rows
from convergebench.drawing.comic import comic
from convergebench.drawing.crowd import crowd
from convergebench.drawing.dumplings import potstickers
from convergebench.drawing.elder import elder
from convergebench.drawing.engraving import ink
from convergebench.drawing.figures import character, expressions
from convergebench.drawing.fur import fur
from convergebench.drawing.gardener import gardener
from convergebench.drawing.hands import hands
from convergebench.drawing.knitwear import knit
from convergebench.drawing.landscapes import dunes, fog
from convergebench.drawing.library import library
from convergebench.drawing.materials import fabric, grid, table
from convergebench.drawing.outing import face_small
from convergebench.drawing.page import text
from convergebench.drawing.passer_by import face_medium
from convergebench.drawing.pedestrians import street
from convergebench.drawing.pelt import leopard
from convergebench.drawing.plumage import peacock
from convergebench.drawing.portrait import portrait
from convergebench.drawing.shopfronts import sign
from convergebench.drawing.sketch import sketch
from convergebench.drawing.stadium import stadium
from convergebench.drawing.still_life import still_life
from convergebench.drawing.swarms import foliage, particles
from convergebench.drawing.terraces import terraces

MIN_SIDE = 16

_SCENES: dict[str, tuple[Painter, str]] = {
    "grid": (grid, "a glass skyscraper's regular facade in perspective"),
    "fog": (fog, "a misty forest whose trees fade into pale haze"),
    "particles": (particles, "coloured powder bursting on a dark ground, with flying grains"),
    "foliage": (foliage, "dense green leaves lying over each other"),
    "table": (table, "an empty wooden table by a wall, in soft light from a window"),
    "fabric": (fabric, "woven tartan cloth with soft folds"),
    "text": (text, "a printed page with a headline, two columns and a small chart"),
    "character": (character, "a flat-coloured cartoon character with four-colour eyes"),
    "expressions": (expressions, "nine head shots of one character with different expressions"),
    "dunes": (dunes, "sand dunes at twilight under a smooth sky"),
    "still-life": (still_life, "a bowl of fruit, a vase of flowers and a cloth"),
    "portrait": (portrait, "a painted portrait of a person, seen from the front"),
    "potstickers": (potstickers, "a plate of fried potstickers with sesame and scallion"),
    "library": (library, "a library's hall with deep shadows and shafts of light"),
    "bark": (bark, "furrowed tree bark covered in moss and lichen"),
    "peacock": (peacock, "a peacock feather with iridescent barbs around its eye"),
    "terraces": (terraces, "flooded rice terraces at sunset, full of the sky"),
    "aerial": (aerial, "a town from straight above: streets, roofs, gardens, a river and fields"),
    "fur": (fur, "a tabby cat's face close by, strand by strand"),
    "comic": (comic, "a comic page of five panels with screen dots and speech balloons"),
    "face-medium": (face_medium, "a bearded man half-length before a brick wall and a shop window"),
    "face-small": (face_small, "eight friends on a lawn by a lake, seen from some way off"),
    "crowd": (crowd, "a square full of people, row behind row"),
    "hands": (hands, "the backs of two hands in woollen sleeves on a wooden table"),
    "sketch": (sketch, "a cottage drawn by hand in pencil and chalk on brown paper"),
    "sign": (sign, "a street of three shops with lettering of every size"),
    "elder": (elder, "an old man's face close by, with white hair and beard"),
    "gardener": (gardener, "a laughing woman half-length before a hedge, with a basket of apples"),
    "street": (street, "six people who walk past shops, seen from across the road"),
    "stadium": (stadium, "a stand full of supporters in red and white"),
    "ink": (ink, "a portrait of a woman in pen and ink, all in hatched lines"),
    "knit": (knit, "a patterned woollen pullover close by, stitch by stitch"),
    "leopard": (leopard, "a leopard's spotted coat close by, strand by strand"),
}

SCENES: Mapping[str, str] = MappingProxyType(
    {name: description for name, (_, description) in _SCENES.items()}
)

_SPOTS: dict[str, Bounds] = {
    "grid": (0.06, 0.78, 0.26, 0.98),
    "fog": (0.40, 0.77, 0.60, 0.97),
    "particles": (0.06, 0.76, 0.26, 0.96),
    "foliage": (0.40, 0.40, 0.60, 0.60),
    "table": (0.62, 0.58, 0.82, 0.78),
    "fabric": (0.55, 0.55, 0.75, 0.75),
    "text": (0.66, 0.78, 0.86, 0.98),
    "character": (0.74, 0.76, 0.94, 0.96),
    "expressions": (0.40, 0.12, 0.60, 0.32),
    "dunes": (0.60, 0.74, 0.80, 0.94),
    "still-life": (0.07, 0.74, 0.27, 0.94),
    "portrait": (0.74, 0.78, 0.94, 0.98),
    "potstickers": (0.74, 0.06, 0.94, 0.26),
    "library": (0.40, 0.76, 0.60, 0.96),
    "bark": (0.56, 0.60, 0.76, 0.80),
    "peacock": (0.06, 0.06, 0.26, 0.26),
    "terraces": (0.10, 0.74, 0.30, 0.94),
    "aerial": (0.60, 0.78, 0.80, 0.98),
    "fur": (0.40, 0.76, 0.60, 0.96),
    "comic": (0.06, 0.72, 0.26, 0.92),
    "face-medium": (0.04, 0.06, 0.24, 0.26),
    "face-small": (0.40, 0.78, 0.60, 0.98),
    "crowd": (0.40, 0.60, 0.60, 0.80),
    "hands": (0.40, 0.74, 0.60, 0.94),
    "sketch": (0.08, 0.78, 0.28, 0.98),
    "sign": (0.10, 0.78, 0.30, 0.98),
    "elder": (0.02, 0.04, 0.22, 0.24),
    "gardener": (0.04, 0.60, 0.24, 0.80),
    "street": (0.60, 0.79, 0.80, 0.99),
    "stadium": (0.40, 0.40, 0.60, 0.60),
    "ink": (0.60, 0.60, 0.80, 0.80),
    "knit": (0.40, 0.40, 0.60, 0.60),
    "leopard": (0.40, 0.40, 0.60, 0.60),
}
_WEARING: dict[str, dict[str, Bounds]] = {
    "character": {
        "eyes": (0.305, 0.328, 0.665, 0.457),
        "head-top": (0.235, 0.005, 0.715, 0.279),
        "neck": (0.375, 0.520, 0.605, 0.705),
    },
    "portrait": {
        "eyes": (0.350, 0.343, 0.650, 0.450),
        "head-top": (0.250, 0.004, 0.750, 0.290),
        "neck": (0.335, 0.590, 0.665, 0.856),
    },
}

ANCHORS: Mapping[str, Mapping[str, Bounds]] = MappingProxyType(
    {
        name: MappingProxyType({"spot": spot, **_WEARING.get(name, {})})
        for name, spot in _SPOTS.items()
    }
)


def scene(name: str, width: int, height: int) -> NDArray[np.uint8]:
    """A source image as H×W×3 sRGB pixels, the same on every machine.

    The composition fills the largest centred square; a wider or taller picture shows more of the
    scene around it.

    Args:
        name: A key of `SCENES`.
        width: Width in pixels, at least 16.
        height: Height in pixels, at least 16.

    Raises:
        KeyError: There is no such scene.
        ValueError: A side is too short.
    """
    return scene_rows(name, width, height, 0, height)


def scene_rows(name: str, width: int, height: int, start: int, stop: int) -> NDArray[np.uint8]:
    """Rows `start` to `stop` (exclusive) of a scene, without drawing the others."""
    painter, _ = _SCENES[name]
    if width < MIN_SIDE or height < MIN_SIDE:
        raise ValueError(
            f"Expected a scene of at least {MIN_SIDE}x{MIN_SIDE} pixels. Got {width}x{height}."
        )
    return paint_rows(painter, (width, height), (start, stop), (0.0, 0.0, 1.0, 1.0), 3)
