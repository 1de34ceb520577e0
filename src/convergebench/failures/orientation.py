"""Detectors of mirroring and rotation failures: which symmetry of the source a frame shows."""

from __future__ import annotations

from typing import Final

from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.geometry import (
    SYMMETRIES,
    Shown,
    Symmetry,
    Views,
    compare,
    expected_symmetry,
    symmetry_of,
)
from convergebench.failures.situation import Situation
from convergebench.metric import NoScore

FITS: Final = 0.12
"""Correlation below which none of the eight symmetries fits."""
MARGIN: Final = 0.1
"""Margin over the expected symmetry from which another one is shown."""


def _asked(situation: Situation, kind: str) -> bool:
    """Whether the step flips or turns; the way back of a round trip does, too."""
    operation = situation.edit.operation
    return operation is not None and operation.kind == kind


def _mirrors(situation: Situation) -> str:
    return "" if _asked(situation, "flip") else "the step asks for no mirroring"


def _turns(situation: Situation) -> str:
    return "" if _asked(situation, "turn") else "the step asks for no turn"


def _shown(situation: Situation) -> Shown | NoScore:
    def make() -> Shown | NoScore:
        source = situation.origin
        if source is None:
            return NoScore("the source is not here")
        views = situation.shared("views", lambda: Views(source))
        return compare(situation.frame, source, views)

    return situation.memo.recall("shown", make)


def orientation(situation: Situation) -> Sighting | NoScore:
    """How much better another symmetry of the source fits than the expected one."""
    shown = _shown(situation)
    if isinstance(shown, NoScore):
        return shown
    expected = expected_symmetry(situation.cycle, situation.step)
    best, score = shown.best, shown.scores[shown.best]
    if score < FITS:
        return NoScore(f"cannot tell: no view of the source fits (correlation {score:.2f})")
    twins = shown.alike(expected)
    if best == expected or best in twins:
        if twins:
            return NoScore(f"cannot tell: the source looks the same {expected} and {twins[0]}")
        value = max(shown.margin(each, expected) for each in SYMMETRIES if each != expected)
        return Sighting(value, f"shows the source {best}, as expected", more=_more(shown))
    value = shown.margin(best, expected)
    detail = f"shows the source {best}, expected {expected}{_step(situation)}"
    return Sighting(value, detail, more=_more(shown))


def _more(shown: Shown) -> dict[str, float]:
    return {"correlation": shown.scores[shown.best], "confidence": shown.confidence}


def _step(situation: Situation) -> str:
    """What the step itself did to the frame before, where that can be told."""
    before = situation.previous
    if before is None:
        return ""
    shown = compare(situation.frame, before)
    asked, done = symmetry_of(situation.edit.operation), shown.best
    if shown.scores[done] < FITS or shown.confidence < MARGIN:
        return ""
    if done == asked:
        return "; this step did as told, an earlier one did not"
    return "; this step changed nothing" if done == Symmetry() else f"; this step: {done}"


_DEFINITION: Final = (
    "Which of the eight symmetries of the source the frame shows, by the correlation of coarse "
    "views (24, 48 and 96 pixels), against the one it should show after all {what} so far. The "
    "value is by how much the best other symmetry fits better than the expected one, as a share "
    "of how far apart the two would be for a perfect copy: 1 for a perfect copy of the wrong "
    "view, below 0 where the expected one fits best. Null where nothing fits or the source looks "
    "the same in both views."
)

DETECTORS: Final = tuple(
    Detector(
        name=name,
        version="1",
        level="image",
        title=title,
        definition=_DEFINITION.format(what=what),
        unit="margin",
        threshold=MARGIN,
        higher_fails=True,
        applies=applies,
        measure=orientation,
    )
    for name, title, what, applies in (
        ("mirror-failure", "Not mirrored as asked", "mirrorings", _mirrors),
        ("rotation-failure", "Not turned as asked", "turns", _turns),
    )
)
