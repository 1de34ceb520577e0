"""Performing an edit's machine-readable operation, exactly, on pixels.

Flips, turns and greys are those of `convergebench.cycle`, so an editor that does nothing else hits
home to the last bit. An object is pasted from, and its silhouette cut by, the same drawn sprite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from convergebench import drawing
from convergebench.cycle import Box, flip, grey, pixel_box, turn
from convergebench.editor import EditRequest, Turn
from convergebench.editors.media import gaussian, levels
from convergebench.errors import EditorFailed
from convergebench.frame import Frame, resize

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRANSLUCENT: Final = 128
"""Sprite pixels up to this alpha let enough through to tell what is underneath."""

_INPAINT_RADIUS: Final = 3


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


def add(pixels: NDArray[np.uint8], name: str, box: Box) -> NDArray[np.uint8]:
    """Composite an object's sprite into a box: (s·α + p·(255 − α)) / 255, rounded to nearest."""
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = pixel_box(box, width, height)
    sprite = drawing.sprite(name, x1 - x0, y1 - y0).astype(np.uint32)
    alpha = sprite[..., 3:]
    result = pixels.copy()
    under = pixels[y0:y1, x0:x1].astype(np.uint32)
    mixed = (sprite[..., :3] * alpha + under * (255 - alpha) + 127) // 255
    result[y0:y1, x0:x1] = mixed.astype(np.uint8)
    return result


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
