"""`ref:restorer`: a repairer whose wording matters, so that the restoration study runs offline.

It cleans and sharpens a damaged picture, and, as the restoration paper saw generative editors do,
it invents: texture where the picture has some, a little more colour, and now and then a thing that
was never there. How much follows from the prompt alone:

* *care*: words that ask for fidelity (`CAREFUL`) make it invent a third as much and sharpen less;
* *thoroughness*: each word beyond 20, up to 50, makes it clean a little more.

It is a caricature with a known manner, not a model of any product: what a study of it finds about
prompts is what is written here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.editor import EditRequest
from convergebench.editors.reference.media import gaussian, levels, luma
from convergebench.editors.reference.operations import add
from convergebench.editors.reference.seeding import chance, generator
from convergebench.frame import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

CAREFUL: Final = re.compile(
    r"\b(?:preserv|fidelity to|visual fidelity|maintaining|unchanged|without altering|avoiding)",
    re.IGNORECASE,
)
"""What is read as a wish for fidelity. "Color fidelity" is none: it is a wish for colour."""

ODD: Final = ("red-ball", "cat", "plant", "umbrella", "vase")
"""Things that it may put where nothing was."""


@dataclass(frozen=True)
class Manner:
    """How a prompt makes it work: all from 0 to 1."""

    careful: bool
    thorough: float

    @property
    def inventive(self) -> float:
        """How much it adds of its own."""
        return 0.33 if self.careful else 1.0


def manner(prompt: str) -> Manner:
    """What a prompt asks for, as far as it is understood."""
    words = len(prompt.split())
    return Manner(bool(CAREFUL.search(prompt)), min(1.0, max(0.0, (words - 20) / 30)))


def restore(request: EditRequest, options: Mapping[str, Any]) -> bytes:
    """A repaired picture."""
    how = manner(request.prompt)
    pixels = request.inputs[-1].pixels
    unit = max(1.0, min(pixels.shape[:2]) / 512)
    cleaned = _cleaned(pixels, 12 + 10 * how.thorough, unit)
    draw = generator(request)
    # A model is never quite the same twice: its boldness varies from call to call.
    bold = np.float32((0.9 + 0.2 * draw.random()) * options["amount"])
    sharpened = _sharpened(cleaned, bold * np.float32(0.55 if how.careful else 0.9), unit)
    invented = _texture(sharpened, draw, bold * np.float32(9 * how.inventive), unit)
    vivid = _vivid(invented, 1 + 0.1 * how.inventive * float(bold))
    share = options["odd"] * (0.25 if how.careful else 1.0)
    if chance(request, "odd") < share:
        vivid = _with_something(vivid, draw)
    return encode(vivid)


def _cleaned(pixels: NDArray[np.uint8], contrast: float, unit: float) -> NDArray[np.float32]:
    """Without the finest grain: texture weaker than `contrast` levels fades, colours more so."""
    side = 2 * round(2 * unit) + 1
    ycc = cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb)
    tone = cv2.bilateralFilter(ycc[..., 0], side, contrast, 1.5 * unit)
    colour = [cv2.GaussianBlur(ycc[..., c], (0, 0), 1.5 * unit) for c in (1, 2)]
    joined = cv2.merge([tone, *colour])
    clean: NDArray[np.float32] = cv2.cvtColor(joined, cv2.COLOR_YCrCb2RGB).astype(np.float32)
    return clean


def _sharpened(
    samples: NDArray[np.float32], amount: np.float32, unit: float
) -> NDArray[np.float32]:
    fine = samples - gaussian(samples, 2.0 * unit)
    crisp: NDArray[np.float32] = samples + amount * np.clip(fine, -30, 30)
    return crisp


def _texture(
    samples: NDArray[np.float32], draw: np.random.Generator, amount: np.float32, unit: float
) -> NDArray[np.float32]:
    """Fine relief of its own, strong where the picture has structure, none in flat areas."""
    tone = luma(levels(samples))
    busy = gaussian(np.abs(tone - gaussian(tone, 3.0 * unit)), 4.0 * unit)
    strength = busy / (busy + np.float32(6))
    grain = draw.standard_normal(tone.shape, dtype=np.float32)
    band = gaussian(grain, 0.8 * unit) - gaussian(grain, 1.8 * unit)
    band /= max(float(band.std()), 1e-6)
    relief: NDArray[np.float32] = samples + (amount * strength * band)[..., None]
    return relief


def _vivid(samples: NDArray[np.float32], gain: float) -> NDArray[np.uint8]:
    grey = luma(levels(samples))[..., None]
    return levels(grey + np.float32(gain) * (samples - grey))


def _with_something(pixels: NDArray[np.uint8], draw: np.random.Generator) -> NDArray[np.uint8]:
    """The picture with a drawn thing in it that nobody asked for."""
    left, top = draw.uniform(0.05, 0.7, 2)
    return add(pixels, ODD[int(draw.integers(len(ODD)))], (left, top, left + 0.25, top + 0.25))
