"""Half-life of an editor: the Kaplan-Meier estimate over chains, censored ones included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HALF: Final = 0.5 + 1e-12
"""One half, with room for rounding: shares multiplied may come to 0.5000000000000001."""


@dataclass(frozen=True)
class Survival:
    """The survival curve of an editor's chains.

    Attributes:
        times: Where the curve steps down.
        share: The share of chains still above the threshold from that time on.
        median: The half-life, or None when the curve never comes down to one half.
        restricted_mean: Area under the curve up to `horizon`.
        horizon: How far the curve is known: the longest time observed, or N when all have fallen.
        chains: How many chains.
        censored: How many never fell while they were followed.
    """

    times: tuple[float, ...]
    share: tuple[float, ...]
    median: float | None
    restricted_mean: float
    horizon: float
    chains: int
    censored: int

    @property
    def label(self) -> str:
        """The half-life as printed: `> N` when it was not reached."""
        return f"> {self.horizon:g}" if self.median is None else f"{self.median:.2f}"


def survival(times: Sequence[float], fell: Sequence[bool], rounds: float = 0.0) -> Survival | None:
    """Kaplan-Meier over chains; None without chains.

    Args:
        times: When each chain fell, or how long it was followed.
        fell: Whether it fell; False is censored.
        rounds: N, the horizon once no chain is left above the threshold. Before that the curve
            is known only as far as chains were followed.
    """
    if not times:
        return None
    from scipy.stats import CensoredData, ecdf

    sample = CensoredData.right_censored(list(times), [not f for f in fell])
    curve = ecdf(sample).sf
    points = [
        (float(q), float(p)) for q, p in zip(curve.quantiles, curve.probabilities, strict=True)
    ]
    steps = [(q, p) for i, (q, p) in enumerate(points) if p < (points[i - 1][1] if i else 1.0)]
    horizon = float(max(times))
    if steps and steps[-1][1] == 0:
        horizon = max(horizon, rounds)
    area, at, share = 0.0, 0.0, 1.0
    for time, after in steps:
        area += share * (time - at)
        at, share = time, after
    area += share * (horizon - at)
    return Survival(
        times=tuple(q for q, _ in steps),
        share=tuple(p for _, p in steps),
        median=next((q for q, p in steps if p <= HALF), None),
        restricted_mean=area,
        horizon=horizon,
        chains=len(times),
        censored=sum(not f for f in fell),
    )
