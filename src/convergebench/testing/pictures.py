"""Pictures that plug-ins are tried on."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from convergebench.frame import Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray


def colourful(width: int, height: int) -> NDArray[np.uint8]:
    """Gradients, a disc, stripes and some texture, in colour; no sample near black or white."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    across, down = x / max(1, width - 1), y / max(1, height - 1)
    disc = np.hypot(across - 0.6, down - 0.4) < 0.25
    stripes = np.sin(x * 0.9) * (down > 0.7)
    texture = 8 * np.sin(x * 1.7 + y * 0.6) * np.cos(y * 1.1 - x * 0.3)
    red = 70 + 90 * across + 50 * disc + texture
    green = 80 + 80 * down - 25 * disc + 20 * stripes + texture
    blue = 170 - 60 * across + 25 * stripes + texture
    return _levels(np.stack([red, green, blue], axis=-1))


def noisy(picture: NDArray[np.uint8], level: float) -> NDArray[np.uint8]:
    """The picture under noise of `level` 8-bit levels, always the same noise."""
    grain = np.random.Generator(np.random.PCG64(7)).standard_normal(picture.shape)
    return _levels(picture + level * grain)


def with_hole(image: Image.Image) -> Image.Image:
    """The image with its reddest part transparent."""
    result = image.convert("RGBA")
    result.putalpha(image.getchannel("R").point(lambda level: 0 if level > 200 else 255))
    return result


def saved(image: Image.Image) -> Frame:
    """A frame whose bytes are this image as PNG, in the mode it has."""
    out = io.BytesIO()
    image.save(out, "PNG")
    return Frame(out.getvalue())


def _levels(samples: NDArray[np.float64]) -> NDArray[np.uint8]:
    rounded: NDArray[np.uint8] = np.clip(np.rint(samples), 0, 255).astype(np.uint8)
    return rounded
