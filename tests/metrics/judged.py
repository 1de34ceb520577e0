"""The metrics served by a model, and pictures for them to judge."""

from __future__ import annotations

import numpy as np

from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import served
from convergebench.metrics.served import Factory

SCALE = (1.0, 5.0)
FACTORIES: dict[str, Factory] = {
    "visualquality-r1": served.visualquality_r1,
    "visualquality-r1-spread": served.visualquality_r1_spread,
    "visualquality-r1-unparsed": served.visualquality_r1_unparsed,
    "vlm": served.vlm,
    "vlm-spread": served.vlm_spread,
    "vlm-unparsed": served.vlm_unparsed,
}


def picture(level: float = 8.0, side: int = 32) -> Picture:
    rng = np.random.default_rng(int(level * 10))
    pixels = np.clip(128 + rng.normal(0, level, (side, side, 3)), 0, 255).astype(np.uint8)
    return Picture(pixels)


def one(metric: served.ServedMetric, frame: Picture) -> float | NoScore:
    (value,) = metric.score([StepView(frame)])
    return value
