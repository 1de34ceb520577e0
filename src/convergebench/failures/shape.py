"""Detectors of a frame's shape: its aspect ratio, its size, and how much of home it lost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from convergebench import registration
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.situation import TIERS, Situation, sized
from convergebench.metric import NoScore, Picture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REGISTERED: Final = 1 << 18
"""Pixels at which a frame is laid on home at most."""
NAMED: Final = 0.15
"""How far the side of an equal square may be from the resolution's that was asked for by name."""
TOLD: Final = 0.002
"""Shares of a side that are not worth telling."""
SIDES: Final = ("left", "top", "right", "bottom")


def _knows_sizes(situation: Situation) -> str:
    return "" if situation.home_size else "the source's size is not known"


def aspect_change(situation: Situation) -> Sighting | NoScore:
    """|ln(frame's aspect ratio / home's)| in %, less what rounding to whole pixels explains."""
    home = situation.home_size
    if home is None:
        return NoScore("the source's size is not known")
    width, height = situation.frame_size
    change = math.log((width / height) / (home[0] / home[1]))
    rounding = 0.5 / width + 0.5 / height
    value = 100 * max(0.0, abs(change) - rounding)
    said = "wider" if change > 0 else "taller"
    detail = f"{width}×{height}, expected the shape of {home[0]}×{home[1]}"
    if value > 0:
        detail += f": {100 * abs(change):.1f} % {said}"
    return Sighting(value, detail, more={"width": width, "height": height})


def size_mismatch(situation: Situation) -> Sighting | NoScore:
    """The larger relative difference of a side from what was asked for, in %."""
    width, height = situation.frame_size
    asked, tier = situation.asked_size, situation.asked_tier
    if asked is not None:
        value = max(abs(width / asked[0] - 1), abs(height / asked[1] - 1))
        return Sighting(100 * value, f"{width}×{height}, asked for {asked[0]}×{asked[1]}")
    if tier in TIERS:
        # A tier leaves the shape to the editor; only its area is promised.
        side = math.sqrt(width * height)
        value = max(0.0, abs(side / TIERS[tier] - 1) - NAMED)
        return Sighting(100 * value, f"{width}×{height}, asked for {tier}")
    return NoScore("nothing is known of the size that was asked for")


def _has_home(situation: Situation) -> str:
    if situation.compared_with is None:
        return "no home is known for this frame"
    return "" if situation.chain.source else "the source is not here"


def laid(situation: Situation) -> registration.Registration | NoScore:
    """How the frame lies on home, from views of at most `REGISTERED` pixels; once for all.

    Its warp is that of these views.
    """

    def make() -> registration.Registration | NoScore:
        kind = situation.compared_with
        whole = situation.home_picture(kind) if kind else None
        if kind is None or whole is None:
            return NoScore("home is not here")
        home = situation.shared(("laid", kind), lambda: Picture(reduced(whole.pixels, REGISTERED)))
        return registration.register(home, Picture(reduced(situation.frame, REGISTERED)))

    return situation.memo.recall("laid", make)


def reduced(pixels: NDArray[np.uint8], limit: int) -> NDArray[np.uint8]:
    """A picture with at most so many pixels."""
    height, width = pixels.shape[:2]
    factor = math.sqrt(limit / (width * height))
    if factor >= 1:
        return pixels
    return sized(pixels, (max(1, round(width * factor)), max(1, round(height * factor))))


def crop(situation: Situation) -> Sighting | NoScore:
    """The share of home's area that the frame does not show, in %."""
    found = laid(situation)
    if isinstance(found, NoScore):
        return NoScore(f"not laid on home: {found.reason}")
    lost = dict(zip(SIDES, found.crop, strict=True))
    told = [f"{100 * part:.1f} % of the {side}" for side, part in lost.items() if part > TOLD]
    detail = ", ".join(told) or "nothing"
    more = {side: 100 * part for side, part in lost.items()} | {"confidence": found.confidence}
    return Sighting(100 * found.cropped, f"lost: {detail}", more=more)


def aligned(situation: Situation, limit: int) -> tuple[Picture, Picture] | NoScore:
    """Home and frame over the area both show, at most so many pixels of home."""
    found = laid(situation)
    if isinstance(found, NoScore):
        return NoScore(f"not laid on home: {found.reason}")
    kind = situation.compared_with
    whole = situation.home_picture(kind) if kind else None
    if kind is None or whole is None:
        return NoScore("home is not here")
    # At the smaller of the two sizes: what only one of them can show is no loss.
    pixels = min(whole.pixels.size, situation.frame.size) // 3
    area = min(limit, pixels)
    home = situation.shared(("aligned", kind, area), lambda: Picture(reduced(whole.pixels, area)))
    frame = Picture(reduced(situation.frame, area))
    views = (reduced(whole.pixels, REGISTERED), reduced(situation.frame, REGISTERED))
    back = [
        (view.shape[1] / picture.size[0], view.shape[0] / picture.size[1])
        for view, picture in zip(views, (home, frame), strict=True)
    ]
    warp = found.warp.after(*back[0]).then(1 / back[1][0], 1 / back[1][1])
    return replace(found, warp=warp).common(home, frame)


DETECTORS: Final = (
    Detector(
        name="aspect-change",
        version="1",
        level="image",
        title="Aspect ratio changed",
        definition="The frame's aspect ratio differs from home's (where none is known, from the "
        "source's) by more than rounding both sides to whole pixels explains: |ln ratio|, in "
        "percent. From the recorded sizes; no picture is decoded.",
        unit="%",
        threshold=0.5,
        higher_fails=True,
        applies=_knows_sizes,
        measure=aspect_change,
    ),
    Detector(
        name="crop",
        version="1",
        level="image",
        title="Cropped",
        definition="The share of home's area that the frame does not show, found by laying the "
        "frame on home (shift and zoom); the detail says how much of which side. Both are reduced "
        "to at most 512×512 pixels of area for it. Where objects are only added, home is the "
        "source.",
        unit="% of area",
        threshold=0.7,
        higher_fails=True,
        applies=_has_home,
        measure=crop,
    ),
    Detector(
        name="size-mismatch",
        version="1",
        level="image",
        title="Not the size that was asked for",
        definition="The larger relative difference of width or height from the size that the call "
        "asked for, or from home's where it named none. A resolution asked for by name (1K, 2K, "
        "4K) promises an area: the side of the square of equal area may be 15 % off. From the "
        "recorded sizes; no picture is decoded.",
        unit="%",
        threshold=0.0,
        higher_fails=True,
        applies=_knows_sizes,
        measure=size_mismatch,
    ),
)
