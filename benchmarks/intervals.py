"""Do the 95 % intervals hold the truth 95 % of the time, and do the tests err 5 % of it?

    python -m benchmarks.intervals [--quick] [--json]

Draws studies from populations whose truth is known, asks the functions that `analyze` uses, and
counts. Every figure is over 2,000 studies (300 with --quick), so that a coverage of 95 % has a
standard error of 0.5 points. Everything is seeded.

Scenarios: *normal* AUCs; *skewed* and *very skewed* ones (beta distributed, most near 1);
*ties* (an AUC is one of four values); *clustered* (one to five chains per source that resemble each
other); *censored* half-lives (followed for 4 rounds, some less); the same *clustered*, two chains
per source; and *whole rounds*, half-lives by the literal rule, which are all ties.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from convergebench.analysis.pairs import ALPHA, FLIPS, holm, sign_flips
from convergebench.analysis.resampling import ratio_intervals, resampling_weights
from convergebench.analysis.survival import bounds, survival
from convergebench.table import Table

Array = NDArray[np.float64]

SOURCES: Final = (20, 30, 50, 100)
FEW: Final = (2, 3, 4, 5)
STUDIES: Final = 2000
ROUNDS: Final = 4
POINTS: Final = (0.5, 1.0, 2.0, 3.0)
EDITORS: Final = 6
SEED: Final = 7

BETA: Final = {"skewed": (8.0, 2.0), "very skewed": (4.0, 0.5)}
FOUR: Final = ((0.0, 0.25, 0.5, 1.0), (0.2, 0.3, 0.3, 0.2))


# -- means ----------------------------------------------------------------------------------------


def means(name: str, sources: int, studies: int) -> dict[str, float]:
    """How often the interval of a mean over sources holds the truth."""
    rng = np.random.default_rng([SEED, sources])
    shape = (sources, studies)
    counts = np.ones(shape)
    if name == "normal":
        values, truth = rng.normal(0.6, 0.12, shape), 0.6
    elif name in BETA:
        a, b = BETA[name]
        values, truth = rng.beta(a, b, shape), a / (a + b)
    elif name == "ties":
        values = rng.choice(FOUR[0], p=FOUR[1], size=shape)
        truth = float(np.dot(*FOUR))
    else:  # clustered: means over a source's chains; and over all chains, as drift shares are
        own = rng.integers(1, 6, shape)
        values = rng.normal(0.6, 0.1, shape) + rng.normal(0, 0.1, shape) / np.sqrt(own)
        truth = 0.6
        over_chains = ratio_intervals(values * own, own.astype(np.float64))
    found = {"mean": _held(ratio_intervals(values, counts), truth)}
    if name == "clustered":
        found["ratio over chains"] = _held(over_chains, truth)
    else:
        found["mean, plain percentiles"] = _held(_plain(values), truth)
    return found


def few(name: str, sources: int, studies: int) -> dict[str, float]:
    """The same with so few sources that Student's t is used, of values from 0 to 1."""
    rng = np.random.default_rng([SEED, sources])
    shape = (sources, studies)
    if name == "normal":
        values, truth = rng.normal(0.7, 0.1, shape), 0.7
    elif name in BETA:
        a, b = BETA[name]
        values, truth = rng.beta(a, b, shape), a / (a + b)
    else:
        values, truth = rng.uniform(0, 1, shape), 0.5
    ends = ratio_intervals(values, np.ones(shape), (0.0, 1.0))
    return {
        "mean": _held(ends, truth),
        "mean, plain percentiles": _held(_plain(values), truth),
    }


def _plain(values: Array) -> Array:
    """What analysis does not use: the middle 95 % of the resampled means."""
    drawn = resampling_weights(len(values)) / len(values)
    ends: Array = np.percentile(values.T @ drawn, [2.5, 97.5], axis=1).T
    return ends


def _held(ends: Array, truth: float) -> float:
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


# -- half-lives -----------------------------------------------------------------------------------


def _lives(rng: np.random.Generator, sources: int, each: int, whole: bool) -> Array:
    """When chains fall: sooner for all of a hard source."""
    ease = np.exp(rng.normal(0, 0.5, (sources, 1)))
    found: Array = 3 * ease * rng.weibull(2.0, (sources, each))
    return np.ceil(found) if whole else found


@cache
def _truths(whole: bool) -> tuple[float, float, tuple[float, ...]]:
    """Half-life, restricted mean and shares of a population of two million."""
    all_of = _lives(np.random.default_rng(1), 2_000_000, 1, whole).ravel()
    median = float(np.quantile(all_of, 0.5, method="inverted_cdf"))
    area = float(np.minimum(all_of, ROUNDS).mean())
    return median, area, tuple(float(np.mean(all_of > at)) for at in POINTS)


def half_lives(name: str, sources: int, studies: int) -> dict[str, float]:
    """How often the intervals of a survival curve hold the truth."""
    rng = np.random.default_rng([SEED, sources, len(name)])
    each, whole = (2 if "clustered" in name else 1), name == "whole rounds"
    median, area, shares = _truths(whole)
    names = [f"{i:03d}" for i in range(sources) for _ in range(each)]
    held = {"half-life": 0.0, "restricted mean": 0.0, "band": 0.0}
    for _ in range(studies):
        times = _lives(rng, sources, each, whole).ravel()
        end = np.full(len(times), float(ROUNDS))
        if not whole:  # some were refused, or failed, before the last round
            end = np.minimum(end, rng.uniform(0, 4 * ROUNDS, len(times)))
        fell, seen = (times <= end).tolist(), np.minimum(times, end).tolist()
        curve = survival(seen, fell, ROUNDS)
        if curve is None:
            raise RuntimeError("a study has chains")
        found = bounds(seen, fell, names, ROUNDS)
        held["half-life"] += _within(found.median, median)
        held["restricted mean"] += _within(found.restricted_mean, area)
        steps = [0.0, *curve.times]
        # Before the first step nobody has fallen; the band begins with it.
        known = [i - 1 for i in np.searchsorted(steps, POINTS, side="right").tolist()]
        told = [(i, share) for i, share in zip(known, shares, strict=True) if i > 0]
        right = [_within(found.band[i - 1], share) for i, share in told]
        held["band"] += sum(right) / len(right) if right else 1.0
    return {name: count / studies for name, count in held.items()}


def _within(ends: tuple[float | None, float | None], truth: float) -> bool:
    low, high = ends
    return (low is None or low <= truth) and (high is None or truth <= high)


# -- tests ----------------------------------------------------------------------------------------


def tests(name: str, sources: int, studies: int) -> dict[str, float]:
    """Error rates of six editors that are alike, and power where one is better than the rest."""
    rng = np.random.default_rng([SEED, sources, 3])
    easy = rng.normal(0, 0.15, (sources, 1, studies))  # what sources have in common cancels
    shape = (sources, EDITORS, studies)
    if name == "skewed":
        own = 0.06 * (1 - rng.exponential(1.0, shape))
    else:
        own = rng.normal(0, 0.06, shape)
    found = {}
    for better in (0.0, 0.02, 0.04):
        values = 0.6 + easy + own
        values[:, 0] += better
        couples = [(i, j) for i in range(EDITORS) for j in range(i + 1, EDITORS)]
        apart = np.stack([values[:, i] - values[:, j] for i, j in couples], axis=1)
        p = sign_flips(apart.reshape(sources, -1), FLIPS).reshape(len(couples), studies)
        corrected = np.stack([holm(one) for one in p.T], axis=1)
        if better == 0:
            found["error, one pair"] = float(np.mean(p < ALPHA))
            found["error, any of 15"] = float(np.mean((corrected < ALPHA).any(axis=0)))
        else:
            mine = [k for k, couple in enumerate(couples) if couple[0] == 0]
            found[f"power at {better}"] = float(np.mean(corrected[mine] < ALPHA))
    return found


# -- all ------------------------------------------------------------------------------------------

Work = Callable[[str, int, int], dict[str, float]]
COVERAGE: Final[tuple[tuple[Work, str], ...]] = (
    (means, "normal"),
    (means, "skewed"),
    (means, "very skewed"),
    (means, "ties"),
    (means, "clustered"),
    (half_lives, "censored"),
    (half_lives, "censored, clustered"),
    (half_lives, "whole rounds"),
)
TESTS: Final = ("normal", "skewed")


def with_few(studies: int) -> dict[Any, float]:
    """Coverage by (scenario, what, sources) with two to five sources."""
    return {
        (name, what, n): rate
        for name in ("normal", *BETA, "uniform")
        for n in FEW
        for what, rate in few(name, n, studies).items()
    }


def simulate(studies: int, workers: int) -> tuple[dict[Any, float], dict[Any, float]]:
    """Coverage by (scenario, what, sources), and rates of the tests."""
    jobs = [(work, name, n) for work, name in COVERAGE for n in reversed(SOURCES)]
    jobs += [(tests, name, n) for name in TESTS for n in SOURCES]
    with ProcessPoolExecutor(workers) as pool:
        # The longest first, so that no worker waits for another at the end.
        order = sorted(jobs, key=lambda job: (job[0] is not half_lives, -job[2]))
        running = {job: pool.submit(job[0], job[1], job[2], studies) for job in order}
        done = {job: future.result() for job, future in running.items()}
    coverage = {
        (name, what, n): rate
        for work, name, n in jobs
        if work is not tests
        for what, rate in done[work, name, n].items()
    }
    rates = {
        (name, what, n): rate
        for work, name, n in jobs
        if work is tests
        for what, rate in done[work, name, n].items()
    }
    return coverage, rates


def table(title: str, found: dict[Any, float], note: str) -> Table:
    """A row per scenario and number, a column per number of sources."""
    lines = list(dict.fromkeys((name, what) for name, what, _ in found))
    sources = list(dict.fromkeys(n for *_, n in sorted(found, key=lambda key: key[2])))
    rows = [
        (name, what, *(f"{100 * found[name, what, n]:.1f}" for n in sources))
        for name, what in lines
    ]
    return Table(title, ("scenario", "of", *(f"n = {n}" for n in sources)), rows, (note,))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 studies instead of 2,000")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    told = parser.parse_args()
    studies = 300 if told.quick else STUDIES
    begun = time.monotonic()
    coverage, rates = simulate(studies, told.workers)
    scarce = with_few(studies)
    error = 100 * math.sqrt(0.95 * 0.05 / studies)
    note = f"{studies:,} studies each: standard error {error:.1f} points at 95 %."
    if told.json:
        keyed = {
            kind: {"/".join(map(str, key)): rate for key, rate in found.items()}
            for kind, found in (("coverage", coverage), ("few", scarce), ("tests", rates))
        }
        print(json.dumps({"studies": studies, **keyed}, indent=1))
        return
    print(table("How often 95 % intervals hold the truth, in %", coverage, note))
    print()
    print(table("The same with few sources", scarce, note))
    print()
    print(table("How often paired tests say two editors differ, in %", rates, note))
    print(f"\n{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
