"""A case with a known answer for a failure detector, and what makes cases harder than they are.

No source is in both groups: detectors were made and thresholds chosen while looking at `CHOOSING`,
and error rates are those of `MEASURING`, drawn later and looked at once, when nothing was changed
any more.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from convergebench import drawing
from convergebench.failures.situation import Situation
from convergebench.frame import resize

Pixels = NDArray[np.uint8]

CHOOSING = (
    "character", "dunes", "expressions", "fabric", "fog", "foliage",
    "grid", "particles", "portrait", "still-life", "table", "text",
)  # fmt: skip
MEASURING = ("bark", "library", "peacock", "potstickers", "terraces")
SHARED = Path(os.environ.get("CONVERGEBENCH_SHARED", Path(__file__).parents[2] / "shared"))
NUISANCES = ("none", "noise", "jpeg", "blur", "colour")


class Case(NamedTuple):
    """One constructed situation.

    Attributes:
        detector: Name of the detector it is for.
        failed: What the detector should say.
        source: Name of the picture it is made from, which puts it into one half or the other.
        what: How it was made, in words.
        make: Makes it; only called when it is its turn, so that memory stays small.
    """

    detector: str
    failed: bool
    source: str
    what: str
    make: Callable[[], Situation]


@lru_cache(maxsize=8)
def picture(name: str, width: int = 256, height: int = 256) -> Pixels:
    """A drawn scene, or a photograph of the data folder (`photo:…`), at this size."""
    if not name.startswith("photo:"):
        pixels = drawing.scene(name, width, height)
        pixels.setflags(write=False)  # it is kept, and must stay what it is
        return pixels
    with Image.open(SHARED / name.removeprefix("photo:")) as image:
        pixels = np.asarray(image.convert("RGB"))
    side = min(pixels.shape[0] / height, pixels.shape[1] / width)
    tall, wide = round(height * side), round(width * side)
    top, left = (pixels.shape[0] - tall) // 2, (pixels.shape[1] - wide) // 2
    return resize(pixels[top : top + tall, left : left + wide], width, height)


def photographs(most: int = 8) -> tuple[str, ...]:
    """Photographs of the data folder, as names for `picture`; none where it is absent."""
    found = sorted((SHARED / "data").rglob("*"))
    kept = [p for p in found if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp")]
    photos = [p for p in kept if "photo" in str(p).lower() or "kodak" in str(p).lower()]
    return tuple(f"photo:{p.relative_to(SHARED)}" for p in photos[:most])


def dice(*words: object) -> np.random.Generator:
    """Random numbers that depend on these words only."""
    return np.random.default_rng(list(" ".join(map(str, words)).encode()))


def nuisance(pixels: Pixels, kind: str, seed: str) -> Pixels:
    """A picture with a harmless change that must not decide anything.

    `noise` of 2 levels, `jpeg` at quality 85, a `blur` of 0.4 pixels, or a shift of `colour` of up
    to 2 levels in each channel.
    """
    random = dice("nuisance", kind, seed)
    if kind == "noise":
        return noisy(pixels, 2.0, seed)
    if kind == "jpeg":
        return jpeg(pixels, 85)
    if kind == "blur":
        return blurred(pixels, 0.4)
    if kind == "colour":
        return levels(pixels.astype(float) + random.uniform(-2, 2, 3))
    return pixels


def levels(values: NDArray[np.floating]) -> Pixels:
    """Numbers as 8-bit levels."""
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


def noisy(pixels: Pixels, sigma: float, seed: str) -> Pixels:
    """With Gaussian noise, of each channel on its own."""
    random = dice("noise", sigma, seed)
    return levels(pixels + random.normal(0, sigma, pixels.shape)) if sigma else pixels


def jpeg(pixels: Pixels, quality: int) -> Pixels:
    """As JPEG stores it."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality, subsampling=0)
    return np.asarray(Image.open(out).convert("RGB"))


def blurred(pixels: Pixels, sigma: float) -> Pixels:
    """Smoothed."""
    import cv2

    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma), np.uint8)
