"""NRQM's parameters in the authors' format, with random numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

COUNTS = (18, 45, 75)


def trees(
    rng: np.random.Generator, features: int, count: int, nodes: int, spread: float = 1.0
) -> dict[str, NDArray[Any]]:
    """A forest as randomForest-matlab has it: nodes × trees, counted from 1, 0 at leaves."""
    names = ("lDau", "rDau", "mbest")
    found: dict[str, NDArray[Any]] = {n: np.zeros((nodes, count), np.int32) for n in names}
    found["upper"] = rng.normal(0, spread, (nodes, count))
    found["avnode"] = rng.uniform(0, 10, (nodes, count))
    for tree in range(count):
        used = 1
        for node in range(nodes):
            if node < used and used + 2 <= nodes and rng.random() < 0.7:
                found["lDau"][node, tree], found["rDau"][node, tree] = used + 1, used + 2
                found["mbest"][node, tree] = rng.integers(1, features + 1)
                used += 2
    return found


def walked(parts: dict[str, NDArray[Any]], case: NDArray[np.float64], tree: int) -> float:
    """A tree's answer, by recursion."""

    def answer(node: int) -> float:
        if parts["lDau"][node, tree] == 0:
            return float(parts["avnode"][node, tree])
        below = case[parts["mbest"][node, tree] - 1] <= parts["upper"][node, tree]
        return answer(parts["lDau" if below else "rDau"][node, tree] - 1)

    return answer(0)


def save_model(path: Path, forests: list[dict[str, NDArray[Any]]], linear: list[float]) -> Path:
    """NRQM_model.mat: fields in the order in which regRF_train writes them."""
    from scipy.io import savemat

    cells = np.empty((1, len(forests)), object)
    for n, parts in enumerate(forests):
        status = np.where(parts["lDau"] == 0, -1, -3).astype(np.int32)
        nodes, count = parts["lDau"].shape
        cells[0, n] = {
            "lDau": parts["lDau"],
            "rDau": parts["rDau"],
            "nodestatus": status,
            "nrnodes": np.array([[nodes]], np.int32),
            "upper": parts["upper"],
            "avnode": parts["avnode"],
            "mbest": parts["mbest"],
            "ndtree": np.full((count, 1), nodes, np.int32),
            "ntree": np.array([[count]], np.int32),
            "coef": parts.get("coef", np.zeros((1, 2))),
        }
    savemat(path, {"model": {"rf": cells, "linear": np.array(linear)[:, None]}})
    return path
