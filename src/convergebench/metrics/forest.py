"""Regression forests as the R package randomForest stores them, evaluated for one case at a time.

All trees are walked down together, a level per step: a forest of 2000 takes a millisecond. Written
by hand because scikit-learn cannot be given trees, and a loop over nodes takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Forest:
    """Trees in columns, nodes in rows; the root is node 0.

    Attributes:
        left: Node to go to where the feature is not above the threshold; −1 at leaves.
        right: Node to go to where it is.
        feature: Which feature a node looks at.
        threshold: What it is compared with.
        value: A leaf's answer.
        correction: Offset and slope applied to the mean of all answers.
    """

    left: Indices
    right: Indices
    feature: Indices
    threshold: Doubles
    value: Doubles
    correction: tuple[float, float] = (0.0, 1.0)

    @staticmethod
    def of(parts: Mapping[str, NDArray[Any]], features: int) -> Forest:
        """From the fields of a randomForest-matlab model, which count from 1.

        Args:
            parts: lDau, rDau, mbest, upper and avnode, nodes × trees each; coef where the mean is
                to be corrected.
            features: How many features a case has.

        Raises:
            ValueError: Something is missing, or a walk could leave a tree or never end.
        """
        names = ("lDau", "rDau", "mbest", "upper", "avnode")
        missing = [name for name in names if name not in parts]
        if missing:
            raise ValueError(f"a forest lacks {', '.join(missing)}")
        if len({parts[name].shape for name in names}) != 1 or parts["lDau"].ndim != 2:
            raise ValueError("the parts of a forest differ in shape")
        left, right, feature = (parts[name].astype(np.int64) - 1 for name in names[:3])
        inner = left >= 0
        nodes = np.arange(len(left))[:, None]
        # daughters always come after their mother, so that every walk ends
        sound = (left > nodes) & (right > nodes) & (left < len(left)) & (right < len(left))
        sound &= (feature >= 0) & (feature < features)
        if not sound[inner].all():
            raise ValueError("a forest's nodes do not form trees over its features")
        threshold, value = (parts[name].astype(np.float64) for name in names[3:])
        coef = parts.get("coef", np.zeros(0)).ravel().astype(np.float64)
        correction = (float(coef[0]), float(coef[1])) if len(coef) > 1 and coef.any() else (0, 1)
        return Forest(left, right, feature, threshold, value, correction)

    def predict(self, case: Doubles) -> float:
        """The mean answer of all trees."""
        trees = np.arange(self.left.shape[1])
        node = np.zeros(len(trees), np.int64)
        walking = trees
        while len(walking):
            at = node[walking], walking
            below = case[self.feature[at]] <= self.threshold[at]
            following = np.where(below, self.left[at], self.right[at])
            inner = self.left[at] >= 0
            walking = walking[inner]
            node[walking] = following[inner]
        offset, slope = self.correction
        return offset + slope * float(self.value[node, trees].mean())
