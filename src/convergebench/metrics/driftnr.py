"""drift-nr: how much damage iterated generation has done, judged from the frame alone.

Classical no-reference metrics were made for one picture and one defect. An editor that adds grain
to a clean picture at every step brings it closer to their idea of a photograph, and is rewarded for
it. `drift-nr` was made for chains: a small network over plain statistics of a frame
(`convergebench.metrics.driftnr_features`), trained to put later frames of a chain above earlier
ones, whatever the manner of decay, and to leave crops, flips, size and brightness alone.

Its parameters are in `driftnr.json`, written by `python -m benchmarks.train_driftnr --write` from
pictures and damage that code draws; docs/guides/drift-nr.md tells where it fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench.metric import KnownAnswer, MetricSpec, Picture, StepView, lift
from convergebench.metrics.driftnr_features import MIN_SIDE, NAMES, features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

PARAMETERS: Final = Path(__file__).with_name("driftnr.json")
CLIP: Final = 4.0
"""Standard deviations at which a feature is cut off."""
WHOLE: Final = 512
"""Short side to which larger pictures are reduced for the view of the whole."""
TILE: Final = 256
TILES: Final = 4
"""Of a larger picture up to 4×4 tiles are looked at as they are."""


def scaled(level: float) -> float:
    """From the network's unbounded level to 0…100, slowly near the ends."""
    return 50 + 50 * level / (1 + abs(level))


def unscaled(score: float) -> float:
    """The level of a score."""
    share = (score - 50) / 50
    return share / (1 - abs(share))


@dataclass(frozen=True)
class Network:
    """g(z) = outer · tanh(inner z + bias) + straight · z, of standardised, clipped features z."""

    centre: Doubles
    spread: Doubles
    inner: Doubles
    bias: Doubles
    outer: Doubles
    straight: Doubles
    gain: float
    offset: float

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Network:
        """From the parameters as written."""
        if tuple(told["features"]) != NAMES:
            raise ValueError("the parameters of drift-nr belong to other features")
        arrays = {
            name: np.array(told[name], np.float64)
            for name in ("centre", "spread", "inner", "bias", "outer", "straight")
        }
        return cls(**arrays, gain=float(told["gain"]), offset=float(told["offset"]))

    def level(self, row: Doubles) -> float:
        """How damaged a view with these features is, unbounded."""
        z = np.clip((row - self.centre) / self.spread, -CLIP, CLIP)
        g = self.outer @ np.tanh(self.inner @ z + self.bias) + self.straight @ z
        return float(self.gain * g + self.offset)

    def score(self, row: Doubles) -> float:
        """The same as a score."""
        return scaled(self.level(row))


@cache
def network() -> Network:
    """The network that the package ships."""
    return Network.of(json.loads(PARAMETERS.read_text(encoding="utf-8")))


def views(pixels: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Stacks of tiles: the picture, or, of one with long sides, samples of it and it reduced."""
    height, width = pixels.shape[:2]
    short = min(height, width)
    if short <= WHOLE:
        return [pixels[None]]
    size = (round(width * WHOLE / short), round(height * WHOLE / short))
    whole = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    tops, lefts = (np.linspace(0, side - TILE, TILES).astype(int) for side in (height, width))
    tiles = [pixels[top : top + TILE, left : left + TILE] for top in tops for left in lefts]
    return [np.stack(tiles), whole[None]]


@lift(
    MetricSpec(
        name="drift-nr",
        version="1-63x3",
        kind="no-reference",
        higher_is_better=False,
        typical=(0, 100),
        title="drift-nr: damage by iterated generation",
        min_side=MIN_SIDE,
        cost="medium",
        known=KnownAnswer(85.7571, 0.02, "our own slow copy, tests/metrics/driftnr_slowly.py"),
    )
)
def drift_nr(view: StepView) -> float:
    """Damage by iterated generation: noise, wrinkles, specks, lost texture, blocks, glare, casts.

    With z the frame's features, standardised and cut off at ±4,

        g = outer · tanh(inner z + bias) + straight · z,  s = gain · g + offset,
        score = 50 + 50 s / (1 + |s|),

    between 0 and 100, lower is better. Of the training pictures, half of the undamaged score below
    10, and half of those after 20 steps above 70. A frame whose short side exceeds 512 pixels is
    looked at twice, as 4×4 tiles of 256×256 and reduced to 512, and s is the mean of both; so time
    and memory are bounded.

    It is for comparing frames of one chain. Between pictures it tells content from damage no better
    than the spread given in docs/guides/drift-nr.md, and it knows nothing of what is shown: an
    editor that redraws another but flawless picture is not noticed.
    """
    return score_of(view.frame)


def score_of(picture: Picture) -> float:
    """The score of a picture whose sides are long enough."""
    levels = [network().level(features(stack)) for stack in views(picture.pixels)]
    return scaled(float(np.mean(levels)))
