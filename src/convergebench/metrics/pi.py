"""The perceptual index of the PIRM challenge: NRQM and NIQE together.

    PI = ((10 − NRQM) + NIQE) / 2

Blau, Mechrez, Timofte, Michaeli, Zelnik-Manor: The 2018 PIRM challenge on perceptual image
super-resolution. ECCV Workshops 2018.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from convergebench import weights
from convergebench.metric import LiftedMetric, MetricSpec, Needs, NoScore, Picture, StepView
from convergebench.metrics import niqe, nrqm

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHAVE: Final = 4
"""Pixels left out along each border."""


def challenge(picture: Picture) -> Picture:
    """What the challenge looks at, as a picture of greys, computed once.

    MATLAB's `rgb2ycbcr`: luma from 16 to 235, rounded to 8 bits; then 4 pixels cut off each side.
    """
    return picture.shared("pirm", _challenge)


def _challenge(picture: Picture) -> Picture:
    inner = picture.pixels[SHAVE:-SHAVE, SHAVE:-SHAVE].astype(np.float64)
    levels = cv2.transform(inner, np.array([[65.481, 128.553, 24.966]]) / 255) + 16
    luma: NDArray[np.uint8] = np.floor(levels + 0.5).astype(np.uint8)
    return Picture(np.repeat(luma[..., None], 3, axis=2))


def measured(view: StepView, model: nrqm.Model, pristine: niqe.Pristine) -> float | NoScore:
    """PI of a view."""
    picture = challenge(view.frame)
    distance = niqe.distance(niqe.block_features(picture), pristine)
    if isinstance(distance, NoScore):
        return distance
    return (10 - model.score(nrqm.features(picture)) + distance) / 2


SPEC: Final = MetricSpec(
    name="pi",
    version="1-pirm",
    kind="no-reference",
    higher_is_better=False,
    typical=(0, 15),
    title="Perceptual index (PIRM 2018)",
    paper="https://doi.org/10.1007/978-3-030-11021-5_21",
    min_side=niqe.SIDE + 2 * SHAVE,
    cost="heavy",
    needs=Needs(weights=("nrqm", "niqe")),
)


def pi(model: nrqm.Model | None = None, pristine: niqe.Pristine | None = None) -> LiftedMetric:
    """The perceptual index: half the sum of 10 − NRQM and NIQE, as the PIRM challenge computed it.

    From about 2 for a good photograph up. Not made of the scores `nrqm` and `niqe`, which look at
    the whole picture's `rgb2gray`: the challenge takes `rgb2ycbcr`'s luma, which spans 16 to 235,
    and leaves out 4 pixels along each border. NRQM and NIQE of that are computed once per picture.
    The official values of pyiqa's test set have not been compared: NRQM's parameters cannot be had
    on the machine this was written on.

    Ours because pyiqa may not be used commercially and is some thirty times slower.
    """
    if model is not None and pristine is not None:
        return LiftedMetric(SPEC, lambda view: measured(view, model, pristine))
    forests, natural = weights.find("nrqm"), weights.find("niqe")
    load = cache(lambda: (nrqm.read_model(forests), niqe.read_pristine(natural)))
    return LiftedMetric(SPEC, lambda view: measured(view, *load()))


pi.spec = SPEC  # type: ignore[attr-defined]
