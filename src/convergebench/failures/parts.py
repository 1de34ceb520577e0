"""Sub-object level: hues and gradients that an object's parts had and have lost."""

from __future__ import annotations

from typing import Final

from convergebench.cycle import Box, Home
from convergebench.failures.aligned import Aligned, Plane, aligned, at_home, lab, small_home
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.gradients import (
    Gradients,
    blur_for,
    gradients_of,
    largest_patch,
    vanished,
)
from convergebench.failures.hues import (
    FEWEST,
    Hue,
    colourful_patches,
    compared,
    cut,
    hues_of,
    oklab,
    uncast,
)
from convergebench.failures.situation import Situation
from convergebench.metric import NoScore
from convergebench.wording import shown

NAMED: Final = ("eyes",)
"""Regions of a source whose hues are looked at."""
SMALLEST: Final = 64
"""Pixels of the short side from which parts of objects can be told."""
LIKE: Final = 0.65
"""Likeness to home from which the same place shows the same part."""
FEW_WINDOWS: Final = 40
"""Windows with a gradient that home must have."""


def _has_parts(situation: Situation) -> str:
    home = situation.home_kind
    if home is None:
        return "no home is known to compare parts with"
    if home.content_only:
        return "home is told of content only"
    ref = situation.chain.truth if home.of == "truth" else situation.chain.source
    if ref is None:
        return "home is not here"
    if min(*situation.frame_size, ref.width or 0, ref.height or 0) < SMALLEST:
        return f"less than {SMALLEST} pixels on the short side"
    return ""


def _laid(situation: Situation) -> tuple[Home, Aligned] | NoScore:
    """The frame on home, where it shows home at all: the right way round, and not too far gone."""
    kind = situation.home_kind
    laid = None if kind is None else aligned(situation, kind)
    if kind is None or laid is None:
        return NoScore("home is not here")
    if laid.likeness < LIKE:
        return NoScore("the frame does not lie on home, so parts cannot be compared")
    return kind, laid


# -- simplification ---------------------------------------------------------------------------


def _coloured(situation: Situation) -> str:
    if situation.home_kind is not None and situation.home_kind.grey:
        return "home is grey"
    return _has_parts(situation)


def _smoothing(height: int, width: int) -> float:
    return max(0.8, min(height, width) / 256)


def _parts_of(situation: Situation, kind: Home) -> list[tuple[Box, list[Hue]]]:
    """The parts of home with several hues: named ones, else those found; kept for the chain."""

    def make() -> list[tuple[Box, list[Hue]]]:
        small = small_home(situation, kind)
        if small is None:
            return []
        home = oklab(small.pixels, _smoothing(*small.pixels.shape[:2]))
        regions = situation.source.regions
        boxes = [at_home(regions[name], kind) for name in NAMED if name in regions]
        found = [(box, hues_of(cut(home, box))) for box in boxes]
        found = [(box, hues) for box, hues in found if len(hues) >= FEWEST]
        return found or [(box, hues_of(cut(home, box))) for box in colourful_patches(home)]

    parts: list[tuple[Box, list[Hue]]] = situation.shared(("hues", kind), make)
    return parts


def _simplification(situation: Situation) -> Sighting | NoScore:
    found = _laid(situation)
    if isinstance(found, NoScore):
        return found
    kind, laid = found
    parts = _parts_of(situation, kind)
    if not parts:
        return NoScore(f"no part of home has {FEWEST} distinct hues")
    blur = _smoothing(*laid.home.shape[:2])
    home = situation.shared(("hues-home", kind), lambda: oklab(laid.home, blur))
    frame: Plane = uncast(home, oklab(laid.frame, blur), laid.seen)
    worst: tuple[int, float, Box, list[Hue]] | None = None
    for box, hues in parts:
        if cut(laid.seen, box).mean() < 0.98:
            continue
        left = compared(cut(home, box), cut(frame, box), hues)
        gone = sum(hue.lost for hue in left)
        most = max(hue.gone for hue in left)
        if worst is None or (gone, most) > worst[:2]:
            worst = gone, most, box, left
    if worst is None:
        return NoScore("the coloured parts were cropped away")
    gone, most, box, left = worst
    return Sighting(
        float(gone),
        _told(gone, left),
        laid.in_frame(box),
        {"hues": float(len(left)), "patch": most},
    )


def _told(gone: int, hues: list[Hue]) -> str:
    if not gone:
        return f"all {len(hues)} hues are there"
    lost = [hue for hue in hues if hue.lost]
    kept = [hue.name for hue in hues if hue not in lost]
    rest = f"left: {shown(kept, 6)}" if kept else "none is left"
    names = shown([hue.name for hue in lost], 6)
    return f"{gone} of {len(hues)} hues lost: {names}; {rest}"


# -- gradients --------------------------------------------------------------------------------


def _gradients(situation: Situation) -> Sighting | NoScore:
    found = _laid(situation)
    if isinstance(found, NoScore):
        return found
    kind, laid = found
    height, width = laid.home.shape[:2]
    blur = blur_for(width, height)
    known: Gradients = situation.shared(
        ("gradients", kind), lambda: gradients_of(lab(laid.home, blur))
    )
    if len(known.corners) < FEW_WINDOWS:
        return NoScore("home has hardly any smooth gradient")
    visible, gone = vanished(known, lab(laid.frame, blur), laid.seen)
    seen, lost = int(visible.sum()), int(gone.sum())
    if seen < FEW_WINDOWS:
        return NoScore("the gradients were cropped away")
    box = largest_patch(known, gone, width, height)
    return Sighting(
        lost / seen,
        f"{100 * lost / seen:.0f} % of the smooth gradients are flat or banded",
        laid.in_frame(box) if box else None,
        {"windows": seen},
    )


DETECTORS: Final = (
    Detector(
        name="simplification",
        version="1",
        level="sub-object",
        title="Simplification: hues lost in a part",
        definition=(
            "In the parts of home with at least three distinct hues (the region called eyes where "
            "the suite names one, else the four most colourful patches): hues of which a patch has "
            "become grey, or taken a hue that home's part has elsewhere, counted in the part that "
            "lost most. The frame is registered on home and smoothed, and a cast or fading of the "
            "whole picture is taken out."
        ),
        unit="hues",
        threshold=0.5,
        higher_fails=True,
        applies=_coloured,
        measure=_simplification,
    ),
    Detector(
        name="gradient-vanishing",
        version="1",
        level="sub-object",
        title="Gradients gone flat",
        definition=(
            "Of the windows in which home shows a smooth colour gradient, the share in which the "
            "frame, registered on home and smoothed, has less than 35 % of the rise left (flat "
            "colour) or does not rise in half of its spots (banding)."
        ),
        unit="",
        threshold=0.2,
        higher_fails=True,
        applies=_has_parts,
        measure=_gradients,
    ),
)
"""The detectors of the sub-object level."""
