"""How the frame lies on home, as numbers: shift, zoom, crop, and how sure that is.

`convergebench.registration` finds it once per pair; each metric here reports one part. Where no
registration is found there is no score, with the reason. Their direction says that no change is
best; a shift to the left is no better than one to the right, so compare sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from convergebench.metric import KnownAnswer, LiftedMetric, MetricSpec, NoScore, StepView, lift
from convergebench.registration import VERSION, Registration, of

_PAPER: Final = "https://doi.org/10.1023/B:VISI.0000011205.11775.fd"
_CARD: Final = "by construction: the test card's frame is not moved"


def _part(
    name: str,
    title: str,
    description: str,
    value: Callable[[Registration], float],
    *,
    identical: float = 0,
    typical: tuple[float, float] = (0, 0.5),
    known: KnownAnswer | None = None,
    higher_is_better: bool = False,
) -> Callable[[], LiftedMetric]:
    spec = MetricSpec(
        name=f"registration-{name}",
        version=VERSION,
        kind="full-reference",
        higher_is_better=higher_is_better,
        identical=identical,
        typical=typical,
        title=title,
        paper=_PAPER,
        cost="medium",
        known=known or KnownAnswer(identical, 0, _CARD),
        alignment=True,
    )

    def measure(view: StepView) -> float | NoScore:
        found = of(view)
        return found if isinstance(found, NoScore) else value(found)

    measure.__doc__ = description
    measure.__name__ = spec.name.replace("-", "_")
    return lift(spec)(measure)


dx = _part(
    "dx",
    "Registration: shift to the right, in home's pixels",
    """How far the content at home's centre has moved right, in home's pixels.

    Negative to the left; 0 where nothing has moved. Found with `registration-scale` as the shift
    and zoom that make the frame most like home.
    """,
    lambda found: found.dx,
    typical=(-100, 100),
)
dy = _part(
    "dy",
    "Registration: shift down, in home's pixels",
    """How far the content at home's centre has moved down, in home's pixels; negative is up.""",
    lambda found: found.dy,
    typical=(-100, 100),
)
scale = _part(
    "scale",
    "Registration: zoom",
    """By what the frame is zoomed in: 1 unchanged, 1.1 a tenth larger, below 1 zoomed out.

    A frame returned at another size counts as unchanged if it shows the same. Values outside 0.5
    to 2 are not believed and give no score.
    """,
    lambda found: found.scale,
    identical=1,
    typical=(0.5, 2),
)
crop = _part(
    "crop",
    "Registration: share of home's area that is lost",
    """The share of home's area that the frame does not show, from 0 to 0.6.""",
    lambda found: found.cropped,
)
crop_left = _part(
    "crop-left",
    "Registration: share of home's width lost at the left",
    """The share of home's width that the frame does not show at the left.""",
    lambda found: found.crop[0],
)
crop_top = _part(
    "crop-top",
    "Registration: share of home's height lost at the top",
    """The share of home's height that the frame does not show at the top.""",
    lambda found: found.crop[1],
)
crop_right = _part(
    "crop-right",
    "Registration: share of home's width lost at the right",
    """The share of home's width that the frame does not show at the right.""",
    lambda found: found.crop[2],
)
crop_bottom = _part(
    "crop-bottom",
    "Registration: share of home's height lost at the bottom",
    """The share of home's height that the frame does not show at the bottom.""",
    lambda found: found.crop[3],
)
confidence = _part(
    "confidence",
    "Registration: confidence",
    """Correlation of home and frame over their common area, once registered: 1 is identical.

    Of the lumas normalised locally, (I − mean) / (deviation + 8) over windows of 13×13 pixels, at
    a size of about 100,000 pixels. Unrelated pictures reach 0.1; below 0.4 no registration is
    believed, and none of its parts has a score.
    """,
    lambda found: found.confidence,
    identical=1,
    typical=(0.4, 1),
    # SciPy's Gaussian is cut off later than OpenCV's, and its luma is not rounded to 8 bits
    known=KnownAnswer(0.994452, 1e-3, "SciPy 1.17, the formula of its card"),
    higher_is_better=True,
)
