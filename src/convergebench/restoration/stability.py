"""Stability: do repeats of one prompt differ? Friedman's test, Kendall's W, and who stands out.

Pictures are blocks, repeats are treatments. The test asks whether one *repeat* scores higher than
another over all pictures, which independent repeats never should: it says nothing of how far a
picture's repeats lie apart. That is what outliers are for.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.analysis.resampling import SEED
from convergebench.restoration.material import Material
from convergebench.restoration.result import Measure, Method, Outlier, Stability
from convergebench.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TREATMENTS: Final = 3
"""Friedman's test compares at least so many repeats."""

FEW: Final = 10
"""With fewer pictures χ² is a poor guide, and p is that of permutations within pictures."""

DRAWN: Final = 20_000
"""How many permutations are drawn."""

MANY: Final = 5
"""Pictures that a usual spread is made of, at least."""

BEYOND: Final = 6.0
"""How many robust standard deviations above the median spread a picture stands out."""

ROBUST: Final = 1.4826
"""What the median distance from the median is multiplied by: a normal's standard deviation."""


def friedman(blocks: Array) -> tuple[float, float, float] | None:
    """The statistic with correction for ties, p from χ², and Kendall's W; None where all tie.

    Args:
        blocks: A row per picture, a column per repeat.
    """
    from scipy.stats import friedmanchisquare

    if all(np.ptp(_ranks(blocks), axis=1) == 0):
        return None
    statistic, p = friedmanchisquare(*blocks.T)
    count, repeats = blocks.shape
    return float(statistic), float(p), float(statistic) / (count * (repeats - 1))


def permuted(blocks: Array) -> float:
    """The p value of Friedman's test by permuting repeats within pictures (seeded).

    Under permutation the correction for ties is constant, so the sums of ranks are enough.
    """
    ranks = _ranks(blocks)
    count, repeats = ranks.shape
    middle = count * (repeats + 1) / 2
    observed = float(np.sum((ranks.sum(axis=0) - middle) ** 2))
    orders = np.array(list(permutations(range(repeats)))) if repeats <= 5 else None
    rng = np.random.default_rng(SEED)
    sums = np.zeros((DRAWN, repeats))
    for row in ranks:
        if orders is not None:
            sums += row[orders[rng.integers(0, len(orders), DRAWN)]]
        else:
            sums += rng.permuted(np.tile(row, (DRAWN, 1)), axis=1)
    hits = np.count_nonzero(np.sum((sums - middle) ** 2, axis=1) >= observed - 1e-9)
    return (int(hits) + 1) / (DRAWN + 1)


def _ranks(blocks: Array) -> Array:
    from scipy.stats import rankdata

    found: Array = rankdata(blocks, axis=1)
    return found


def stability(material: Material) -> tuple[tuple[Stability, ...], tuple[Outlier, ...]]:
    """Every method that was repeated, measure by measure."""
    if material.means:
        return (), ()
    repeats: dict[str, set[int]] = {}
    for one in material.attempts:
        repeats.setdefault(one.method, set()).add(one.repeat)
    tests: list[Stability] = []
    outliers: list[Outlier] = []
    for method in material.methods:
        mine = sorted(repeats.get(method.id, ()))
        for measure in material.measures if len(mine) > 1 else ():
            sources, blocks, dropped = _blocks(material, method, measure, mine)
            if sources or dropped:
                tests.append(_tested(method, measure, blocks, dropped, len(mine)))
                outliers += _outliers(method, measure, sources, blocks)
    return tuple(tests), tuple(outliers)


def _blocks(
    material: Material, method: Method, measure: Measure, repeats: list[int]
) -> tuple[list[str], Array, int]:
    """The pictures with all repeats, their scores, and how many pictures lack one."""
    asked = material.asked.get(method.id, set())
    found = {
        source: material.values.get((measure.name, method.id, source), {})
        for source in material.sources(measure)
        if source in asked
    }
    whole = [source for source, told in found.items() if all(n in told for n in repeats)]
    rows = [[found[source][n] for n in repeats] for source in whole]
    partly = [told for source, told in found.items() if told and source not in whole]
    dropped = len(partly) if not whole else len(found) - len(whole)
    return whole, np.array(rows, dtype=np.float64).reshape(-1, len(repeats)), dropped


def _tested(
    method: Method, measure: Measure, blocks: Array, dropped: int, repeats: int
) -> Stability:
    count = len(blocks)
    statistic = p = w = None
    notes = [f"{counted(dropped, 'picture')} without all repeats left out"] if dropped else []
    found = friedman(blocks) if count > 1 and repeats >= TREATMENTS else None
    if repeats < TREATMENTS:
        notes.insert(0, f"{counted(repeats, 'repeat')}, the test needs {TREATMENTS}")
    elif count < 2:
        notes.insert(0, f"{counted(count, 'picture')}, the test needs 2")
    elif found is None:
        notes.insert(0, "identical in all repeats")
    else:
        statistic, p, w = found
        if count < FEW:
            p = permuted(blocks)
            notes.insert(0, f"p by permutation, {count} pictures being few")
    return Stability(
        method=method.id, measure=measure.name, statistic=statistic, p=p, w=w, repeats=repeats,
        pictures=count, note="; ".join(notes), dropped=dropped,
    )  # fmt: skip


def _outliers(method: Method, measure: Measure, sources: list[str], blocks: Array) -> list[Outlier]:
    """The pictures whose repeats lie much further apart than those of others."""
    finite = np.isfinite(blocks).all(axis=1)
    if np.count_nonzero(finite) < MANY:
        return []
    spreads = np.ptp(blocks[finite], axis=1)
    usual = float(np.median(spreads))
    around = ROBUST * float(np.median(np.abs(spreads - usual)))
    limit = usual + BEYOND * around + 1e-9 * max(1.0, abs(usual))
    names = [sources[index] for index in np.flatnonzero(finite)]
    rows = zip(names, blocks[finite].tolist(), spreads.tolist(), strict=True)
    return sorted(
        (
            Outlier(method.id, measure.name, source, tuple(values), spread, usual)
            for source, values, spread in rows
            if spread > limit and math.isfinite(spread)
        ),
        key=lambda one: -one.spread,
    )
