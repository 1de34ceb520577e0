"""Train `drift-nr` and write its parameters.

    python -m benchmarks.train_driftnr [--share 1] [--seed 7] [--workers 2] [--write] [--cache F]

Draws the training chains of `benchmarks.driftnr_data`, measures their features, and fits a small
network g (one hidden layer) by

    mean over pairs of log(1 + exp(−(g(worse) − g(better))))
      + HARMLESS · mean of (g(variant) − g(frame))² + DECAY · |weights|²,

with L-BFGS. Pairs are two steps of one chain, where the later one is really farther from the
source; and, less heavily, any picture's source against any other's step 10 or 20, so that content
does not decide. Then the scale: the median of all sources is put at `LOW` and that of the frames of
step 20 at `HIGH`. `--write` replaces the file that the package ships; without it, the fit is
compared with that file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from benchmarks.driftnr_data import BLOCKS, STEPS, chain
from numpy.typing import NDArray
from scipy.optimize import minimize

from convergebench.metrics import driftnr, driftnr_features

Array = NDArray[np.float64]

SEED: Final = 7
HIDDEN: Final = 12
NETWORKS: Final = 4
HARMLESS: Final = 0.3
ACROSS: Final = 0.05
DECAY: Final = 1e-3
ROUNDS: Final = 400
LOW: Final = 10.0
HIGH: Final = 70.0
DIGITS: Final = 4


@dataclass(frozen=True)
class Data:
    """Features of frames, and which of them are to be told apart.

    Attributes:
        rows: One row of features per frame.
        worse: Pairs of row numbers: better, worse.
        equal: Pairs of row numbers that are equally good.
        steps: The step of each row; −1 for a variant.
        manners: How each chain was damaged.
    """

    rows: Array
    worse: NDArray[np.int64]
    equal: NDArray[np.int64]
    steps: NDArray[np.int64]
    manners: tuple[str, ...]


Measured = tuple[str, Array, Array, list[int], list[float]]


def measured(which: tuple[str, int], seed: int) -> Measured:
    """One chain: its manner, features of frames and of variants, whose they are, distances."""
    cv2.setNumThreads(1)
    made = chain(seed, *which)
    frames = np.array([driftnr_features.features(f[None]) for f in made.frames])
    variants = np.array([driftnr_features.features(v[None]) for _, v in made.harmless])
    home = made.frames[0].astype(np.float64)
    far = [float(np.sqrt(np.mean((f - home) ** 2))) for f in made.frames]
    return made.manner, frames, variants, [k for k, _ in made.harmless], far


def gathered(share: float, seed: int, workers: int) -> Data:
    """All training data, or the first share of every block."""
    work = partial(measured, seed=seed)
    chains = [(block, n) for block, count in BLOCKS.items() for n in range(round(share * count))]
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            found = list(pool.map(work, chains, chunksize=8))
    else:
        found = [work(which) for which in chains]
    return joined(found)


def joined(found: Sequence[Measured]) -> Data:
    """Chains as one table with its pairs."""
    rows: list[Array] = []
    worse, equal, steps = [], [], []
    count = 0
    for _, frames, variants, whose, far in found:
        for i in range(len(STEPS)):
            for j in range(i + 1, len(STEPS)):
                if far[j] > 1.05 * far[i] + 0.3:
                    worse.append((count + i, count + j))
        equal += [(count + k, count + len(STEPS) + n) for n, k in enumerate(whose)]
        rows += [frames, variants]
        steps += [*STEPS, *(-1 for _ in whose)]
        count += len(frames) + len(variants)
    return Data(
        np.concatenate(rows),
        np.array(worse),
        np.array(equal),
        np.array(steps),
        tuple(manner for manner, *_ in found),
    )


def fitted(data: Data, seed: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """The parameters, rounded as they are written: the mean of `NETWORKS` networks is one."""
    centre, spread = data.rows.mean(axis=0), data.rows.std(axis=0) + 1e-3
    x = np.clip((data.rows - centre) / spread, -driftnr.CLIP, driftnr.CLIP)
    nets = [_network(x, data, np.random.default_rng([seed, n]), rounds) for n in range(NETWORKS)]
    inner, bias, outer, straight = (list(parts) for parts in zip(*nets, strict=True))
    whole = [np.concatenate(inner, axis=1), np.concatenate(bias)]
    whole += [np.concatenate(outer) / NETWORKS, np.mean(straight, axis=0)]
    g = _output(x, whole)[1]
    calm, spoilt = (float(np.median(g[data.steps == step])) for step in (0, STEPS[-1]))
    low, high = driftnr.unscaled(LOW), driftnr.unscaled(HIGH)
    gain = (high - low) / (spoilt - calm)
    found = {
        "centre": centre,
        "spread": spread,
        "inner": whole[0].T,
        "bias": whole[1],
        "outer": whole[2],
        "straight": whole[3],
        "gain": np.array(gain),
        "offset": np.array(low - gain * calm),
    }
    return {"features": list(driftnr_features.NAMES), **{k: _rounded(v) for k, v in found.items()}}


def _output(x: Array, parameters: Sequence[Array]) -> tuple[Array, Array]:
    inner, bias, outer, straight = parameters
    hidden = np.tanh(x @ inner + bias)
    return hidden, hidden @ outer + x @ straight


def _network(x: Array, data: Data, draw: np.random.Generator, rounds: int) -> list[Array]:
    """One network, from a random start and with random comparisons across pictures."""
    across = _across(data, draw)
    shapes = [(x.shape[1], HIDDEN), (HIDDEN,), (HIDDEN,), (x.shape[1],)]
    scales = (1 / np.sqrt(x.shape[1]), 0, 0.5, 0)
    begin = [draw.normal(0, 1, shape) * s for shape, s in zip(shapes, scales, strict=True)]
    cuts = np.cumsum([p.size for p in begin])[:-1]

    def parts(flat: Array) -> list[Array]:
        return [p.reshape(s) for p, s in zip(np.split(flat, cuts), shapes, strict=True)]

    def loss(flat: Array) -> tuple[float, Array]:
        outer = parts(flat)[2]
        hidden, g = _output(x, parts(flat))
        slope = np.zeros_like(g)
        total = 0.0
        for pairs, weight in ((data.worse, 1.0), (across, ACROSS)):
            gap = g[pairs[:, 1]] - g[pairs[:, 0]]
            total += weight * float(np.logaddexp(0, -gap).mean())
            push = weight / len(gap) / (1 + np.exp(np.clip(gap, -500, 500)))
            slope += _spread(pairs, -push, len(g))
        apart = g[data.equal[:, 1]] - g[data.equal[:, 0]]
        total += HARMLESS * float(np.mean(apart**2)) + DECAY * float(flat @ flat)
        slope += _spread(data.equal, 2 * HARMLESS * apart / len(apart), len(g))
        back = slope[:, None] * outer * (1 - hidden**2)
        gradient = [x.T @ back, back.sum(axis=0), hidden.T @ slope, x.T @ slope]
        return total, np.concatenate([p.ravel() for p in gradient]) + 2 * DECAY * flat

    start = np.concatenate([p.ravel() for p in begin])
    options = {"maxiter": rounds, "maxcor": 30}
    done = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return parts(done.x)


def _spread(pairs: NDArray[np.int64], pull: Array, count: int) -> Array:
    """Pulls on the second of each pair, and their opposites on the first, added up by row."""
    first, second = (np.bincount(pairs[:, side], pull, count) for side in (0, 1))
    return np.asarray(second - first)


def _across(data: Data, draw: np.random.Generator) -> NDArray[np.int64]:
    """Sources of some chains against late frames of others."""
    better = np.flatnonzero(data.steps == 0)
    worse = np.flatnonzero(np.isin(data.steps, STEPS[-2:]))
    count = 8 * len(better)
    return np.stack([draw.choice(better, count), draw.choice(worse, count)], axis=1)


def _rounded(values: Array) -> Any:
    return np.vectorize(lambda v: float(f"{v:.{DIGITS}g}"))(values).tolist()


def recipe() -> str:
    """SHA-256 of the code that the parameters follow from."""
    here = Path(__file__)
    beside = (here.with_name(f"driftnr_{part}.py") for part in ("data", "pictures", "damage"))
    files = (here, *beside, Path(driftnr_features.__file__))
    return hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the chains of every block")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="features are kept there (npz)")
    parser.add_argument("--write", action="store_true", help="replace the shipped parameters")
    asked = parser.parse_args(arguments)
    begun = time.perf_counter()
    data = _cached(asked.cache, partial(gathered, asked.share, asked.seed, asked.workers))
    print(f"{len(data.rows)} frames, {len(data.worse)} pairs, {time.perf_counter() - begun:.0f} s")
    found = fitted(data, asked.seed)
    told = {
        "about": "Parameters of drift-nr, written by `python -m benchmarks.train_driftnr --write`.",
        "recipe": recipe(),
        "seed": asked.seed,
        "chains": len(data.manners),
        **found,
    }
    print(f"fitted in all of {time.perf_counter() - begun:.0f} s")
    if asked.write:
        lines = ",\n".join(
            f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in told.items()
        )
        driftnr.PARAMETERS.write_text(f"{{\n{lines}\n}}\n")
    network = driftnr.Network.of(told)
    scores = np.array([network.score(row) for row in data.rows])
    gaps = scores[data.worse[:, 1]] - scores[data.worse[:, 0]]
    print(f"pairs in the wrong order: {np.mean(gaps <= 0):.2%}")
    if driftnr.PARAMETERS.exists():
        shipped = driftnr.Network.of(json.loads(driftnr.PARAMETERS.read_text()))
        others = np.array([shipped.score(row) for row in data.rows])
        print(f"largest difference from the shipped scores: {np.abs(others - scores).max():.4f}")


def _cached(file: Path | None, make: Any) -> Data:
    if file is not None and file.exists():
        with np.load(file) as kept:
            return Data(
                **{k: kept[k] for k in ("rows", "worse", "equal", "steps")},
                manners=tuple(kept["manners"].tolist()),
            )
    made: Data = make()
    if file is not None:
        np.savez(
            file,
            rows=made.rows,
            worse=made.worse,
            equal=made.equal,
            steps=made.steps,
            manners=np.array(made.manners),
        )
    return made


if __name__ == "__main__":
    main()
