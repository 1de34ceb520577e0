"""How often the measured flag of over-generation is raised, where it should be and where not.

python -m benchmarks.over_generation [SIDE]

Every drawn scene is damaged in all seven ways, in the middle severity. Left as it is, filtered by
what removes detail or hardly adds any, or restored perfectly, it must not be flagged; with invented
texture in a part of it, or sharpened until it rings, it should be. The flag divides by the input's
own ratio; the first column is without that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from convergebench import degrading, drawing
from convergebench.editors.classic import filters
from convergebench.frame import resize
from convergebench.metric import Picture, StepView
from convergebench.metrics.detail import detail_ratio
from convergebench.restoration.cases import FLAGGED

Pixels = Any
Output = Callable[[Pixels, Pixels, np.random.Generator], Pixels]
"""From truth, input and chance to what an editor might return."""


def ratio(truth: Pixels, output: Pixels) -> float:
    """The detail ratio of one output."""
    (found,) = detail_ratio().score([StepView(Picture(output), Picture(truth))])
    return float(found)  # type: ignore[arg-type]


def invented(share: float, amplitude: float) -> Output:
    """The truth with a band of texture over so much of it."""

    def output(truth: Pixels, _given: Pixels, rng: np.random.Generator) -> Pixels:
        side = len(truth)
        size = round(side * share**0.5)
        top, left = rng.integers(0, side - size + 1, 2)
        grain = resize(rng.integers(0, 256, (size // 2, size // 2, 3)).astype(np.uint8), size, size)
        found = truth.astype(np.float64)
        found[top : top + size, left : left + size] += (grain / 127.5 - 1) * amplitude
        return np.clip(np.rint(found), 0, 255).astype(np.uint8)

    return output


CALM: dict[str, Output] = {
    "the input itself": lambda _t, given, _r: given,
    "the truth itself": lambda truth, _g, _r: truth,
    "non-local means": lambda _t, given, _r: filters.non_local_means(given, 6.0),
    "median": lambda _t, given, _r: filters.median(given, 1),
    "bilateral": lambda _t, given, _r: filters.bilateral(given, 30.0, 2),
    "unsharp, amount 0.5": lambda _t, given, _r: filters.unsharp(given, 0.5, 1.5),
    "truth, unsharp, amount 0.5": lambda truth, _g, _r: filters.unsharp(truth, 0.5, 1.5),
    "truth, noise of 3 levels": lambda truth, _g, rng: np.clip(
        np.rint(truth + rng.normal(0, 3, truth.shape)), 0, 255
    ).astype(np.uint8),
}
WILD: dict[str, Output] = {
    "texture over 5 %, 40 levels": invented(0.05, 40),
    "texture over 10 %, 40 levels": invented(0.10, 40),
    "texture over 25 %, 40 levels": invented(0.25, 40),
    "texture over 25 %, 20 levels": invented(0.25, 20),
    "truth, unsharp, amount 3": lambda truth, _g, _r: filters.unsharp(truth, 3.0, 1.5),
}


def main() -> None:
    """Print the share of outputs that are flagged."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    cases = [(scene, kind, 2) for scene in drawing.SCENES for kind in degrading.KINDS]
    raw: dict[str, int] = {}
    flagged: dict[str, int] = {}
    for number, (scene, kind, severity) in enumerate(cases):
        truth = drawing.scene(scene, side, side)
        given = degrading.degrade(truth, kind, severity, seed=number)
        own = max(1.0, ratio(truth, given))
        for name, make in {**CALM, **WILD}.items():
            found = ratio(truth, make(truth, given, np.random.default_rng(number)))
            raw[name] = raw.get(name, 0) + (found >= FLAGGED)
            flagged[name] = flagged.get(name, 0) + (found / own >= FLAGGED)
    print(f"{len(cases)} inputs of {side} px; flagged from a ratio of {FLAGGED:g}")
    for title, outputs in (("should not be", CALM), ("should be", WILD)):
        print(f"\n{title:32} alone  over the input's own")
        for name in outputs:
            print(f"{name:32} {raw[name] / len(cases):5.1%}  {flagged[name] / len(cases):5.1%}")


if __name__ == "__main__":
    main()
