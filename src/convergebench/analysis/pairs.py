"""Pairs of editors: is one better than the other, on the same chains of the same sources?

The test flips signs: if two editors were alike, each source's difference could as well have had the
other sign. It asks about the mean, which is what editors are ranked by, takes the sources'
differences as they are, and is exact for any number of sources; Wilcoxon's test asks about ranks of
differences, and can contradict the means it is printed beside.

All pairs of ranked editors, controls among them, are one family: p values are corrected by Holm's
method, so that the chance of a single false "above" in a whole leaderboard is at most 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.analysis.findings import Finding
from convergebench.analysis.resampling import BLOCK, LEVEL, SEED, Ends, mean_intervals
from convergebench.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NOISE: Final = 1e-9
"""A difference below this is arithmetic, not evidence: sums in another order differ by as much."""

ALPHA: Final = 1 - LEVEL
EXACT: Final = 12
"""Up to so many sources all flips of signs are counted; with more they are drawn."""

FLIPS: Final = 10_000
"""How many are drawn, at least."""

PER_PAIR: Final = 100
"""And at least so many per pair: the least p value, times the number of pairs, stays below 1 %."""

FEW_SOURCES: Final = 6
"""With fewer, no test of signs can be 95 % sure: five of five by chance is 1 in 16."""


@dataclass(frozen=True)
class Pair:
    """Two editors compared, the better one first.

    Attributes:
        one: The editor with the higher mean.
        other: The other.
        difference: Mean difference over sources, 0 or more.
        median: Median difference over sources.
        low: Lower end of the mean difference's interval, for this pair alone.
        high: Upper end.
        sources: How many sources.
        differing: On how many of them the two differ at all.
        alone: The p value of this pair alone.
        p: The same, corrected for all pairs.
        exact: Whether all flips were counted.
    """

    one: str
    other: str
    difference: float
    median: float
    low: float | None
    high: float | None
    sources: int
    differing: int
    alone: float
    p: float
    exact: bool

    @property
    def winner(self) -> str:
        """Who is above; nobody where they are tied."""
        return self.one if self.p < ALPHA and self.difference > NOISE else ""

    @property
    def loser(self) -> str:
        """Who is below; nobody where they are tied."""
        return self.other if self.winner else ""

    @property
    def verdict(self) -> str:
        """In words."""
        return f"{self.one} above {self.other}" if self.winner else "tied"


def needed_sources(editors: int) -> int:
    """From how many sources on so many editors can be told apart at all, all pairs corrected."""
    pairs = max(editors * (editors - 1) // 2, 1)
    return max(FEW_SOURCES, math.floor(math.log2(2 * pairs / ALPHA)) + 1)


def compare_pairs(values: Mapping[str, Array]) -> list[Pair]:
    """Every pair of editors, given each one's value per source, the same sources in one order.

    Raises:
        ValueError: The editors' values are not over the same number of sources.
    """
    if len({len(mine) for mine in values.values()}) > 1:
        raise ValueError("editors are compared over the same sources, got unequal numbers of them")
    order = sorted(values, key=lambda name: (-float(np.mean(values[name])), name))
    couples = list(combinations(order, 2))
    if not couples:
        return []
    apart = np.array([values[one] - values[other] for one, other in couples]).T
    apart[np.abs(apart) <= NOISE] = 0.0
    raw = sign_flips(apart)
    corrected = holm(raw)
    ends = mean_intervals(list(apart.T), (-1.0, 1.0))  # of two shares
    return [
        _pair(couple, apart[:, i], ends[i], float(raw[i]), float(corrected[i]))
        for i, couple in enumerate(couples)
    ]


def _pair(names: tuple[str, str], apart: Array, ends: Ends, raw: float, p: float) -> Pair:
    return Pair(
        *names,
        difference=float(apart.mean()),
        median=float(np.median(apart)),
        low=ends[0],
        high=ends[1],
        sources=len(apart),
        differing=int(np.count_nonzero(apart)),
        alone=raw,
        p=p,
        exact=len(apart) <= EXACT,
    )


def sign_flips(apart: Array, flips: int | None = None) -> Array:
    """Two-sided p values of the sign-flip test that a mean difference is 0.

    The share of flips whose sum is as far from 0 as the one observed: of all of them with few
    sources; else of those drawn (seeded), the observed one counting as one of them, without which
    the test would err too often.

    Args:
        apart: Differences; a row per source, a column per pair.
        flips: How many to draw, where they are; enough for all pairs to be corrected otherwise.
    """
    sources, pairs = apart.shape
    # Sums of the same numbers in another order differ in the last digits: these count as equal.
    least = np.abs(apart.sum(axis=0)) * (1 - 1e-9) - NOISE
    hits = np.zeros(pairs)
    if sources <= EXACT:
        bits = np.arange(2 ** max(sources - 1, 0))[:, None] >> np.arange(sources)
        # The last source keeps its sign: flipping all signs gives the same distance from 0.
        hits += np.count_nonzero(np.abs((1.0 - 2.0 * (bits & 1)) @ apart) >= least, axis=0)
        return hits / len(bits)
    rng = np.random.default_rng(SEED)
    flips = max(FLIPS, PER_PAIR * pairs) if flips is None else flips
    step = max(1, BLOCK // max(sources, pairs))
    for first in range(0, flips, step):
        drawn = rng.integers(0, 2, size=(min(step, flips - first), sources), dtype=np.int8)
        hits += np.count_nonzero(np.abs((1.0 - 2.0 * drawn) @ apart) >= least, axis=0)
    found: Array = (hits + 1) / (flips + 1)
    return found


def holm(p: Sequence[float] | Array) -> Array:
    """Holm's correction: p values such that all below 5 % hold together 95 % of the time."""
    raw = np.asarray(p, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    steps = raw[order] * np.arange(len(raw), 0, -1)
    found = np.empty_like(raw)
    found[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return found


def pair_findings(pairs: Sequence[Pair], chains: int) -> list[Finding]:
    """Every comparison of two ranked editors, on the chains that all ranked editors completed."""
    return [
        Finding(
            id=f"pair/{pair.one}/{pair.other}",
            estimate=pair.difference,
            low=pair.low,
            high=pair.high,
            n=chains,
            note=f"{pair.verdict}; {_test(pair)}, {counted(len(pairs), 'pair')} corrected by Holm; "
            f"over {counted(pair.sources, 'source')}, differing on {pair.differing}; median "
            f"{pair.median:.4f}; alone p {pair.alone:.4g}",
            editor=pair.one,
            other=pair.other,
            p=pair.p,
        )
        for pair in pairs
    ]


def _test(pair: Pair) -> str:
    return "sign flips, all counted" if pair.exact else "sign flips, drawn"
