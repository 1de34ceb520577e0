"""Detectors of colour: grey that is not grey, and a cast over the whole picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.situation import Situation
from convergebench.metric import NoScore

if TYPE_CHECKING:
    from numpy.typing import NDArray

COARSE: Final = 1 << 11
"""Pixels at which colour is looked at: there, noise is averaged out."""
PERCENTILE: Final = 95.0
GAINS: Final = (0.5, 2.0)
"""By how much home's light is adjusted at most."""
LUMA: Final = np.array([0.299, 0.587, 0.114])
HUES: Final = {
    0: "pink", 40: "red", 70: "orange", 100: "yellow", 140: "green", 195: "cyan", 285: "blue",
    328: "magenta",
}  # fmt: skip
"""Names of directions in the a*b* plane, by their angle."""


def coarse(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """A coarse view in [0, 1]."""
    height, width = pixels.shape[:2]
    factor = math.sqrt(COARSE / (width * height))
    values: NDArray[Any] = pixels
    if factor < 1:
        size = max(1, round(width * factor)), max(1, round(height * factor))
        values = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return np.asarray(values, np.float32) / np.float32(255)


def lab(unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """CIELAB (D65) of a view in [0, 1]."""
    return np.asarray(cv2.cvtColor(np.clip(unit, 0, 1), cv2.COLOR_RGB2LAB), np.float32)


def _coarse_frame(situation: Situation) -> NDArray[np.float32]:
    return situation.memo.recall("coarse", lambda: coarse(situation.frame))


def _greys(situation: Situation) -> str:
    kind, operation = situation.home_kind, situation.edit.operation
    asked = (kind is not None and kind.grey) or (operation is not None and operation.kind == "grey")
    return "" if asked else "the step asks for no grey"


def monochrome(situation: Situation) -> Sighting | NoScore:
    """The 95th percentile of chroma in a coarse view."""
    values = lab(_coarse_frame(situation))
    chroma = np.hypot(values[..., 1], values[..., 2])
    value = float(np.percentile(chroma, PERCENTILE))
    mean = float(chroma.mean())
    detail = f"chroma {mean:.1f} on average, {value:.1f} in the most coloured 5 %"
    return Sighting(value, detail, more={"mean": mean})


def _has_pixels(situation: Situation) -> str:
    kind = situation.home_kind
    if kind is None or kind.content_only:
        return "no home is known for this frame"
    return "" if situation.chain.source else "the source is not here"


def colour_cast(situation: Situation) -> Sighting | NoScore:
    """How far the mean of a* and b* has moved from home's, home brought to the frame's light."""
    kind = situation.home_kind
    whole = situation.home_picture(kind) if kind else None
    if whole is None:
        return NoScore("home is not here")
    home: NDArray[np.float32] = situation.shared(("coarse", kind), lambda: coarse(whole.pixels))
    frame = _coarse_frame(situation)
    # Less light makes all colours paler, which is no cast.
    gain = min(GAINS[1], max(GAINS[0], _light(frame) / max(1e-6, _light(home))))
    a, b = _mean(lab(frame)) - _mean(lab(home * np.float32(gain)))
    value = math.hypot(a, b)
    angle = math.degrees(math.atan2(b, a))
    name = HUES[min(HUES, key=lambda hue: abs((angle - hue + 180) % 360 - 180))]
    detail = f"{value:.1f} towards {name}" if value >= 0.05 else "none"
    return Sighting(value, detail, more={"a": float(a), "b": float(b)})


def _light(unit: NDArray[np.float32]) -> float:
    return float(unit.reshape(-1, 3).mean(axis=0, dtype=np.float64) @ LUMA)


def _mean(values: NDArray[np.float32]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = values[..., 1:].reshape(-1, 2).mean(axis=0, dtype=np.float64)
    return found


DETECTORS: Final = (
    Detector(
        name="monochrome-failure",
        version="1",
        level="image",
        title="Not grey although grey was asked for",
        definition="Residual chroma of a frame that should be grey: the 95th percentile of CIELAB "
        "chroma in a view of at most 2,048 pixels, where noise is averaged out.",
        unit="ΔE (chroma)",
        threshold=6.0,
        higher_fails=True,
        applies=_greys,
        measure=monochrome,
    ),
    Detector(
        name="colour-cast",
        version="1",
        level="image",
        title="Colour cast",
        definition="How far the mean of a* and b* (CIELAB, in a view of at most 2,048 pixels) has "
        "moved from home's, once home is multiplied to the frame's mean luma; the detail names the "
        "direction.",
        unit="ΔE (a*b*)",
        threshold=3.2,
        higher_fails=True,
        applies=_has_pixels,
        measure=colour_cast,
    ),
)
