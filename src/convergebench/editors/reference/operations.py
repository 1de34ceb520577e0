"""Performing an edit's machine-readable operation, exactly, on pixels.

Flips, turns and greys are those of `convergebench.cycle`, so an editor that does nothing else hits
home to the last bit. An object is pasted from, and its silhouette cut by, the same drawn sprite.
Of many objects each step's has a place of its own in the region, so that they can be counted.
Colour casts and darkness are curves over the 256 levels, undone by the curve's best inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

import cv2
import numpy as np

from convergebench import drawing
from convergebench.cycle import Box, flip, grey, pixel_box, turn
from convergebench.editor import EditRequest, Turn
from convergebench.editors.reference.media import gaussian, levels
from convergebench.errors import EditorFailed
from convergebench.frame import Frame, resize

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRANSLUCENT: Final = 128
"""Sprite pixels up to this alpha let enough through to tell what is underneath."""

_INPAINT_RADIUS: Final = 3

_WARMTH: Final = (0.6, 0.1, -0.6)
"""How far red, green and blue are bent up by a warm cast; beyond ±1 a curve would turn back."""

_NIGHT: Final = (0.30, 0.35, 0.45)
"""The share of red, green and blue light that is left in the dark."""

_BLUR: Final = 1 / 128
"""The blur's Gaussian, in shares of the picture's shorter side: 4 pixels at 512."""

_SOFTENING: Final = 8
"""Rounds of approximation; each at least halves what is missing, which is at most 255 levels."""


PLACES: Final = 100
"""Objects that have a place in a region: as many as the longest chains of the Banana100 study."""

_SCATTER: Final = 37
"""Steps between the places of two objects that follow each other; prime to their number."""

_GOLDEN: Final = 0.381966
"""Of the circle of hues, how far two kinds of object that follow each other are apart."""

_SHARES: Final = (0.84, 0.60, 0.76, 0.68)
"""How much of its place each kind of object fills; there is room between any two."""


def perform(request: EditRequest) -> NDArray[np.uint8]:
    """The last input with the edit's operation done; the input's own pixels when there is none."""
    frame = request.inputs[-1]
    pixels = frame.pixels
    operation = request.edit.operation
    if operation is None:
        return pixels
    match operation.kind:
        case "flip":
            return flip(pixels, operation.axis or "horizontal")
        case "turn":
            return turn(pixels, operation.quarters or 1)
        case "grey":
            return grey(pixels)
        case "colour":
            return recolour(frame, request.history)
        case "add":
            return add(pixels, operation.object or "", _region(request))
        case "remove":
            return remove(pixels, operation.object or "", _region(request))
        case "place":
            return place(request)
        case "warm" | "cool" | "dim" | "brighten":
            return toned(pixels, operation.kind)
        case "blur" | "sharpen" | "soften":
            return focused(pixels, operation.kind)


def recolour(frame: Frame, history: Sequence[Turn]) -> NDArray[np.uint8]:
    """Give a grey frame the colours of the newest earlier frame that has any.

    The luma difference between the two is added to every channel, clipped. A frame that is exactly
    the grey of that earlier frame therefore gets its colours back exactly. Without any coloured
    frame in the history the pixels are returned as they are.
    """
    pixels = frame.pixels
    for moment in reversed(history):
        earlier = moment.load()
        if earlier.digest == frame.digest or is_grey(earlier.pixels):
            continue
        coloured = resize(earlier.pixels, pixels.shape[1], pixels.shape[0])
        difference = grey(pixels).astype(np.int16) - grey(coloured)
        return np.clip(coloured + difference, 0, 255).astype(np.uint8)
    return pixels


def is_grey(pixels: NDArray[np.uint8]) -> bool:
    """Whether the three channels are equal everywhere."""
    red, green, blue = np.moveaxis(pixels, -1, 0)
    return np.array_equal(red, green) and np.array_equal(green, blue)


def toned(
    pixels: NDArray[np.uint8], kind: Literal["warm", "cool", "dim", "brighten"]
) -> NDArray[np.uint8]:
    """Every sample through its channel's curve.

    `warm` gives an orange cast: v + k·v·(255 − v) / 255 with k = 0.6, 0.1, −0.6 for red, green and
    blue. `dim` leaves 30, 35 and 45 % of them. `cool` and `brighten` are the inverses: the middle
    of the levels that are brought nearest. What several levels became one of cannot be told apart
    again (1 level is lost by the cast, up to 2 by the dark), but nothing more is lost later: an
    exact editor settles after one round.
    """
    curves = _curves("warm" if kind in ("warm", "cool") else "dim", kind in ("cool", "brighten"))
    return cv2.LUT(pixels, curves).astype(np.uint8, copy=False)


@cache
def _curves(kind: Literal["warm", "dim"], backward: bool) -> NDArray[np.uint8]:
    """The three channels' curves as a 1×256×3 table."""
    level = np.arange(256.0)
    if kind == "warm":
        forward = [levels(level + k * level * (255 - level) / 255) for k in _WARMTH]
    else:
        forward = [levels(level * k) for k in _NIGHT]
    table = np.stack([_inverse(curve) if backward else curve for curve in forward], axis=-1)
    table.setflags(write=False)
    return table[None]


def _inverse(curve: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """For every level, the middle of those that a rising curve brings nearest to it."""
    gap = np.abs(curve[None].astype(np.int16) - np.arange(256)[:, None])
    nearest = gap == gap.min(axis=1, keepdims=True)
    first, last = nearest.argmax(axis=1), 255 - nearest[:, ::-1].argmax(axis=1)
    middle: NDArray[np.uint8] = ((first + last) // 2).astype(np.uint8)
    return middle


def focused(
    pixels: NDArray[np.uint8], kind: Literal["blur", "sharpen", "soften"]
) -> NDArray[np.uint8]:
    """Blur by a Gaussian G of 1/128 of the shorter side, sharpen to 2·p − G·p, or soften.

    To soften undoes to sharpen: the picture q is found for which 2·q − G·q is the given one, so
    that only clipping and rounding are left of the two. Nothing undoes to blur: where that leaves
    the share H of a frequency, sharpening then makes it H·(2 − H), and less with every round.
    """
    sigma = min(pixels.shape[:2]) * _BLUR
    given = pixels.astype(np.float32)
    if kind == "blur":
        return levels(gaussian(given, sigma))
    if kind == "sharpen":
        return levels(2 * given - gaussian(given, sigma))
    found = given
    for _ in range(_SOFTENING):
        found = (given + gaussian(found, sigma)) * np.float32(0.5)
    return levels(found)


def add(pixels: NDArray[np.uint8], name: str, box: Box) -> NDArray[np.uint8]:
    """Composite an object's sprite into a box: (s·α + p·(255 − α)) / 255, rounded to nearest."""
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = pixel_box(box, width, height)
    return _composed(pixels, drawing.sprite(name, x1 - x0, y1 - y0), (x0, y0))


def _composed(
    pixels: NDArray[np.uint8], sprite: NDArray[np.uint8], corner: tuple[int, int]
) -> NDArray[np.uint8]:
    """A picture with a sprite whose upper left corner is at (x, y)."""
    (x0, y0), (high, wide) = corner, sprite.shape[:2]
    drawn = sprite.astype(np.uint32)
    alpha = drawn[..., 3:]
    result = pixels.copy()
    under = pixels[y0 : y0 + high, x0 : x0 + wide].astype(np.uint32)
    mixed = (drawn[..., :3] * alpha + under * (255 - alpha) + 127) // 255
    result[y0 : y0 + high, x0 : x0 + wide] = mixed.astype(np.uint8)
    return result


def place(request: EditRequest) -> NDArray[np.uint8]:
    """One object more: that of step k at the k-th place, where nothing else is ever put.

    An edit with `items` asks for another kind of object at every step. There is a sprite of one
    only, so the others are that one in another hue and size.
    """
    if request.step > PLACES:
        raise EditorFailed(
            f"there are places for {PLACES} objects, and step {request.step} is to add another"
        )
    pixels = request.inputs[-1].pixels
    operation = request.edit.operation
    name = operation.object if operation else None
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = place_box(_region(request), request.step, width, height)
    across, down = x1 - x0, y1 - y0
    kind = (request.step - 1) % max(1, len(request.edit.items))
    share = _SHARES[kind % len(_SHARES)]
    small = max(1, round(across * share)), max(1, round(down * share))
    sprite = drawing.sprite(name or "", *small)
    if kind:
        sprite = _other_hue(sprite, kind * _GOLDEN % 1)
    corner = x0 + (across - small[0]) // 2, y0 + (down - small[1]) // 2
    return _composed(pixels, sprite, corner)


def place_box(region: Box, step: int, width: int, height: int) -> tuple[int, int, int, int]:
    """The pixels (x0, y0, x1, y1) that the object of a step (1 to `PLACES`) is put into.

    The region is divided into rows of cells that are about square, one for each object; those of
    steps that follow each other lie far apart. No two share a pixel.
    """
    x0, y0, x1, y1 = pixel_box(region, width, height)
    columns = min(PLACES, math.ceil(math.sqrt(PLACES * (x1 - x0) / (y1 - y0))))
    rows = math.ceil(PLACES / columns)
    row, column = divmod((step - 1) * _SCATTER % PLACES, columns)
    left, right = (x0 + (x1 - x0) * c // columns for c in (column, column + 1))
    top, bottom = (y0 + (y1 - y0) * r // rows for r in (row, row + 1))
    return left, top, max(left + 1, right), max(top + 1, bottom)


def _other_hue(sprite: NDArray[np.uint8], turn: float) -> NDArray[np.uint8]:
    """A sprite whose hues are turned by a share of their circle."""
    wheel = cv2.cvtColor(np.ascontiguousarray(sprite[..., :3]), cv2.COLOR_RGB2HSV)
    wheel[..., 0] = (wheel[..., 0].astype(np.int16) + round(turn * 180)) % 180
    return np.dstack([cv2.cvtColor(wheel, cv2.COLOR_HSV2RGB), sprite[..., 3]])


def remove(pixels: NDArray[np.uint8], name: str, box: Box) -> NDArray[np.uint8]:
    """Take an object's sprite out of a box; nothing outside the box changes.

    Where the sprite is translucent (shadows, lenses) the blend is undone: what was underneath comes
    back within one level, and blending it again gives the very same pixels, so an exact editor
    settles after one round. Where it is opaque, a few pixels around included, the hole is filled
    from its border inwards.
    """
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = pixel_box(box, width, height)
    sprite = drawing.sprite(name, x1 - x0, y1 - y0)
    reach = max(1, round(min(width, height) / 256))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    core = cv2.dilate((sprite[..., 3] > TRANSLUCENT).astype(np.uint8), disc)
    result = pixels.copy()
    result[y0:y1, x0:x1] = _unblended(pixels[y0:y1, x0:x1], sprite)
    if not core.any():
        return result
    blur = max(1.0, min(x1 - x0, y1 - y0) / 10)
    margin = round(4 * blur) + 2 * _INPAINT_RADIUS
    left, top = max(0, x0 - margin), max(0, y0 - margin)
    right, bottom = min(width, x1 + margin), min(height, y1 + margin)
    hole = np.zeros((bottom - top, right - left), np.uint8)
    hole[y0 - top : y1 - top, x0 - left : x1 - left] = core
    around = np.ascontiguousarray(result[top:bottom, left:right])
    filled = _filled(around, hole, blur)
    result[top:bottom, left:right] = np.where(hole[..., None] > 0, filled, around)
    return result


def _unblended(pixels: NDArray[np.uint8], sprite: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What was under the translucent pixels: (255·p − s·α) / (255 − α), rounded, clipped."""
    wide = sprite.astype(np.int32)
    alpha = np.where(wide[..., 3:] > TRANSLUCENT, 0, wide[..., 3:])
    clear = 255 - alpha
    under = (2 * (255 * pixels.astype(np.int32) - wide[..., :3] * alpha) + clear) // (2 * clear)
    return levels(under)


def _filled(around: NDArray[np.uint8], hole: NDArray[np.uint8], blur: float) -> NDArray[np.uint8]:
    """The picture with its hole inpainted, and the seams where the fronts meet blurred."""
    # By Navier-Stokes: OpenCV's other method, Telea's, drifts by several levels even on a picture
    # of one colour (measured with 5.0), which would be charged to every round trip.
    filled = cv2.inpaint(around, hole, _INPAINT_RADIUS, cv2.INPAINT_NS).astype(np.float32)
    depth = cv2.distanceTransform(hole, cv2.DIST_L2, 5)[..., None]
    share = np.clip(depth / np.float32(2 * blur), 0, 1)
    return levels(filled + share * (gaussian(filled, blur) - filled))


def _region(request: EditRequest) -> Box:
    if request.region is None:
        raise EditorFailed("this edit adds or removes an object but came without a region")
    return request.region
