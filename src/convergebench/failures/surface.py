"""Detectors of surfaces: noise that comes, texture that goes, and a picture that stands still."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.geometry import Symmetry, symmetry_of
from convergebench.failures.shape import aligned
from convergebench.failures.situation import COMPARED, Situation, sized
from convergebench.metric import NoScore

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOISY: Final = 1 << 22
"""Pixels at which noise is looked at, at most."""
BLOCK: Final = 16
"""Side of the blocks in which a picture is looked at."""
FLATTEST: Final = 0.25
"""Share of the blocks that noise is measured in: those with the least structure."""
CONTRAST: Final = 1.35
"""What more contrast or sharpening may multiply home's own fine detail with, and make no noise."""
SMOOTHED: Final = 1.2
"""Pixels over which the luma is smoothed before blocks are ranked."""
OPEN: Final = (12.0, 243.0)
"""Mean levels of blocks in which noise is not clipped."""
_MEDIAN_OF_NORMAL: Final = 0.6744897501960817
_FINE: Final = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32) / 6
"""Immerkær's mask, scaled so that white noise keeps its deviation."""
TEXTURED: Final = 4.0
"""Levels of detail from which a block of home is textured."""
ENOUGH: Final = 12
"""Textured blocks that are needed."""
_WIDE, _NARROW = 3.0, 0.8


def noise_levels(pixels: NDArray[np.uint8]) -> tuple[float, float] | NoScore:
    """The deviation of noise in a picture's flattest quarter, in levels, as two scales show it.

    Blocks are ranked by the spread of their smoothed luma, so that noise does not choose them; in
    those, the median of |response| to a mask that answers neither planes nor straight edges. The
    second scale is the picture at half its size, where white noise has half the deviation, and what
    JPEG leaves of it hardly less; told as the deviation that white noise would have.
    """
    if min(pixels.shape[:2]) < 4 * BLOCK:
        return NoScore(f"{min(pixels.shape[:2])} pixels on the short side, {4 * BLOCK} needed")
    height, width = pixels.shape[:2]
    half = cv2.resize(pixels, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    fine, coarse = _noise_at(pixels), _noise_at(np.asarray(half, np.uint8))
    if isinstance(fine, NoScore):
        return fine
    if isinstance(coarse, NoScore):
        return coarse
    return fine, 2 * coarse


def _noise_at(pixels: NDArray[np.uint8]) -> float | NoScore:
    luma: NDArray[Any] = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    smooth = cv2.GaussianBlur(luma, (0, 0), SMOOTHED)
    mean, spread = _block_means(smooth), _block_means(smooth * smooth)
    structure = np.sqrt(np.maximum(spread - mean * mean, 0))
    usable = (mean > OPEN[0]) & (mean < OPEN[1])
    if usable.sum() < 4:
        return NoScore("nearly all of it is black or white")
    flat = usable & (structure <= np.quantile(structure[usable], FLATTEST))
    rows, columns = flat.shape
    mask = np.repeat(np.repeat(flat, BLOCK, 0), BLOCK, 1)
    levels = []
    for plane in cv2.split(pixels):
        fine = np.abs(cv2.filter2D(plane, cv2.CV_32F, _FINE))[: rows * BLOCK, : columns * BLOCK]
        levels.append(float(np.median(fine[mask])) / _MEDIAN_OF_NORMAL)
    return sum(levels) / 3


def _block_means(values: NDArray[Any]) -> NDArray[Any]:
    rows, columns = values.shape[0] // BLOCK, values.shape[1] // BLOCK
    cut = values[: rows * BLOCK, : columns * BLOCK]
    means: NDArray[Any] = cut.reshape(rows, BLOCK, columns, BLOCK).mean(axis=(1, 3))
    return means


def _comparable(situation: Situation) -> str:
    if situation.compared_with is None:
        return "no home is known for this frame"
    return "" if situation.chain.source else "the source is not here"


def persistent_noise(situation: Situation) -> Sighting | NoScore:
    """Noise above home's, in levels: the root of the difference of the variances."""
    pair = situation.pair(NOISY)
    if pair is None:
        return NoScore("home is not here")
    here = situation.memo.recall("noise", lambda: noise_levels(pair[0]))
    key = ("noise of home", situation.compared_with, pair[1].shape)
    home = situation.shared(key, lambda: noise_levels(pair[1]))
    if isinstance(here, NoScore):
        return here
    if isinstance(home, NoScore):
        return home
    added = [
        math.sqrt(max(0.0, frame**2 - (CONTRAST * own) ** 2))
        for frame, own in zip(here, home, strict=True)
    ]
    scale = added.index(max(added))
    detail = f"{here[scale]:.1f} levels, {home[scale]:.1f} at home"
    more = {"noise": here[scale], "home": home[scale], "halved": float(scale)}
    first = situation.first if situation.step > 1 else None
    if first is not None:
        size = pair[0].shape[1], pair[0].shape[0]
        key = ("noise of frame 1", None, pair[0].shape)
        begun = situation.shared(key, lambda: noise_levels(sized(first, size)))
        if not isinstance(begun, NoScore):
            more["first"] = begun[scale]
            change = here[scale] - begun[scale]
            word = "grown" if change > 0 else "shrunk"
            told = f"{word} by {abs(change):.1f} since" if abs(change) >= 0.05 else "as in"
            detail += f", {told} frame 1"
    return Sighting(added[scale], detail, more=more)


def texture_loss(situation: Situation) -> Sighting | NoScore:
    """How much of the detail in home's textured blocks is gone, in %."""
    pair = aligned(situation, COMPARED)
    if isinstance(pair, NoScore):
        return pair
    home, frame = (_band(picture.pixels) for picture in pair)
    if min(home.shape) < 2 * BLOCK:
        return NoScore(f"{min(home.shape)} pixels in common on the short side")
    amount = _block_means(home * home)
    textured = amount > TEXTURED**2
    if textured.sum() < ENOUGH:
        return NoScore("home has hardly any texture")
    together = _block_means(home * frame)
    # Noise has nothing to do with home's texture, so a product with it does not count noise.
    kept = np.clip(together[textured] / amount[textured], 0, 1)
    value = 100 * (1 - float(np.median(kept)))
    worst, box = _worst(1 - np.clip(together / np.maximum(amount, 1e-6), 0, 1), textured)
    detail = f"{value:.0f} % of the detail in {textured.mean():.0%} of the picture"
    return Sighting(value, detail, box, more={"worst": 100 * worst})


def _band(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Detail a few pixels wide, in the luma."""
    luma: NDArray[Any] = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    band: NDArray[np.float32] = cv2.GaussianBlur(luma, (0, 0), _NARROW) - cv2.GaussianBlur(
        luma, (0, 0), _WIDE
    )
    return band


def _worst(
    lost: NDArray[Any], textured: NDArray[np.bool_]
) -> tuple[float, tuple[float, float, float, float]]:
    """The textured part, of a quarter of the sides, that lost most, and where it is."""
    rows, columns = lost.shape
    window = max(1, columns // 4), max(1, rows // 4)
    weight = cv2.blur(textured.astype(np.float32), window, borderType=cv2.BORDER_REFLECT)
    total = cv2.blur((lost * textured).astype(np.float32), window, borderType=cv2.BORDER_REFLECT)
    mean = np.where(weight > 0.3, total / np.maximum(weight, 1e-6), -1.0)
    if float(mean.max()) < 0:
        mean = np.where(weight > 0, total / np.maximum(weight, 1e-6), -1.0)
    row, column = np.unravel_index(int(np.argmax(mean)), mean.shape)
    x0, y0 = max(0, int(column) - window[0] // 2), max(0, int(row) - window[1] // 2)
    x1, y1 = min(columns, x0 + window[0]), min(rows, y0 + window[1])
    box = (x0 / columns, y0 / rows, x1 / columns, y1 / rows)
    return float(mean.max()), box


def _has_earlier(situation: Situation) -> str:
    period = situation.cycle.period
    if situation.step < period:
        return "the first round is not over"
    earlier = situation.step - period
    return "" if earlier in situation.chain.held else f"frame {earlier} is not here"


def fixed_point(situation: Situation) -> Sighting | NoScore:
    """The mean absolute difference from the frame one round before, in levels."""
    period = situation.cycle.period
    earlier = situation.before(period)
    if earlier is None:
        return NoScore(f"frame {situation.step - period} is not here")
    moved = Symmetry()
    for step in range(situation.step - period + 1, situation.step + 1):
        moved = moved.then(symmetry_of(situation.cycle.edit_at(step).operation))
    before, frame = moved.view(earlier), situation.frame
    size = frame.shape[1], frame.shape[0]
    if before.shape != frame.shape:
        return Sighting(
            float(np.mean(cv2.absdiff(sized(before, size), frame))) + 1.0,
            f"another size than frame {situation.step - period}",
        )
    value = float(np.mean(cv2.absdiff(before, frame)))
    how = "equals" if value == 0 else f"differs by {value:.2g} levels from"
    what = "the source" if situation.step == period else f"frame {situation.step - period}"
    return Sighting(value, f"{how} {what}{'' if moved == Symmetry() else f', {moved}'}")


DETECTORS: Final = (
    Detector(
        name="persistent-noise",
        version="1",
        level="image",
        title="Noise that stays and grows",
        definition="Noise above home's, in 8-bit levels: √(frame² − (1.35 · home)²), where home's "
        "part allows for more contrast. Both are estimated in the flattest quarter of the picture, "
        "at the smaller of the two sizes (at most 4 megapixels) and at half of it; the larger "
        "answer counts, as the level of white noise. The detail says how it has grown since frame "
        "1. "
        "Where objects are only added, home is the source.",
        unit="levels",
        threshold=4.5,
        higher_fails=True,
        applies=_comparable,
        measure=persistent_noise,
    ),
    Detector(
        name="texture-loss",
        version="1",
        level="image",
        title="Texture lost",
        definition="How much of the detail (a few pixels wide) in home's textured blocks the frame "
        "does not have, once laid on home: 1 − ⟨frame, home⟩ / ⟨home, home⟩, the median over the "
        "blocks. Noise does not hide a loss; texture replaced by another one is lost. At the "
        "smaller of the two sizes and at most 1 megapixel. Where objects are only added, home is "
        "the source.",
        unit="%",
        threshold=12.0,
        higher_fails=True,
        applies=_comparable,
        measure=texture_loss,
    ),
    Detector(
        name="fixed-point",
        version="1",
        level="image",
        title="Fixed point reached",
        definition="The frame equals, or nearly, the frame one round before (flipped or turned as "
        "asked in between): the mean absolute difference in 8-bit levels. A fact, not a defect: "
        "an editor that returns what it got is at its fixed point at once.",
        unit="levels",
        threshold=0.25,
        higher_fails=False,
        applies=_has_earlier,
        measure=fixed_point,
        defect=False,
    ),
)
