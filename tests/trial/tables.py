"""Score tables written by hand, and the trials of them: every number can be worked out on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from convergebench.trial.judgement import judge
from convergebench.trial.material import CELLS, REFERENCES, SCORES, Material, Tried
from convergebench.trial.result import Trial

Curve = Sequence[float | None]
"""Scores of steps 1, 2, 3 …; None is a frame without a score."""

Chains = Mapping[tuple[str, str, str, int], Curve]
"""Curves by metric, arm, source and repeat."""


def score_table(chains: Chains, kind: str = "replicate") -> pl.DataFrame:
    """Score rows of chains that begin with step 1."""
    rows = [
        (metric, arm, source, kind, repeat, step, value)
        for (metric, arm, source, repeat), curve in chains.items()
        for step, value in enumerate(curve, 1)
    ]
    return pl.DataFrame(rows, schema=SCORES, orient="row")


def reference_table(chains: Chains) -> pl.DataFrame:
    """Oriented full-reference scores, or ratings, of chains that begin with step 1."""
    return score_table(chains).select(*REFERENCES)


def material(
    chains: Chains,
    tried: Sequence[Tried],
    *,
    additions: Chains | None = None,
    controls: Sequence[str] = (),
    references: Chains | None = None,
    ratings: Chains | None = None,
    cells: Sequence[tuple[str, str]] | None = None,
    longest: int | None = None,
    **more: Any,
) -> Material:
    """Material of chains; the cells are those that have a chain, unless they are given."""
    scores = score_table(chains)
    found = list(dict.fromkeys((arm, source) for _, arm, source, _ in chains))
    arms = list(dict.fromkeys(arm for arm, _ in found))
    return Material(
        title="constructed",
        arms=tuple(arm for arm in arms if arm not in controls),
        controls=tuple(controls),
        cells=pl.DataFrame(cells or found, schema=CELLS, orient="row"),
        longest=longest or max(len(curve) for curve in chains.values()),
        tried=tuple(tried),
        scores=pl.concat([scores, score_table(additions or {}, "accumulate")]),
        references=reference_table(references or {}),
        ratings=reference_table(ratings or {}),
        **more,
    )


def falling(start: float, by: float, steps: int) -> list[float]:
    """A straight line down, or up with a negative `by`."""
    return [start - by * k for k in range(steps)]


SOURCES = ("dunes", "fabric", "peacock")
ARMS = ("painter", "wrinkle")


def example() -> Trial:
    """A small trial with everything in it, for whoever draws one.

    Two arms and a control, three initial images, two repeats, 20 steps; `good` always succeeds,
    `fooled` always fails, `mixed` (lower is better) fails on peacock, `partial` lacks the second
    half of one cell, `own` came without a range; chains that add objects have spikes by `fooled`.
    """
    tried = (
        Tried("good", "1", "Always succeeds", typical=(0, 100)),
        Tried("fooled", "2", "Always fails", typical=(0, 1)),
        Tried("mixed", "1-x", "Lower is better", higher_is_better=False, typical=(0, 50)),
        Tried("partial", "1", "Lacks scores", typical=(0, 10)),
        Tried("own", "", "", "file own.csv"),
    )
    chains: dict[tuple[str, str, str, int], Curve] = {}
    references: dict[tuple[str, str, str, int], Curve] = {}
    ratings: dict[tuple[str, str, str, int], Curve] = {}
    for a, arm in enumerate((*ARMS, "ref:identity")):
        for s, source in enumerate(SOURCES):
            for repeat in (0, 1):
                key, off = (arm, source, repeat), 3 * s + repeat
                still = arm == "ref:identity"
                chains["good", *key] = falling(90 - off, 0 if still else 1.5 + a, 20)
                chains["fooled", *key] = falling(0.4 + off / 50, 0 if still else -0.02, 20)
                up = -0.3 if source == "peacock" else 0.8
                chains["mixed", *key] = falling(10 + off, 0 if still else -up, 20)
                half: list[float | None] = [*falling(8 - off / 10, 0.2, 20)]
                if arm == "wrinkle" and source == "fabric":
                    half[9:] = [None] * 11
                chains["partial", *key] = half
                wave = [7 - 0.1 * k + (0.4 if k % 3 else 0.0) for k in range(20)]
                chains["own", *key] = wave
                references["psnr", *key] = falling(-2, 0 if still else 0.5, 20)
                references["ssim", *key] = falling(-0.05, 0 if still else 0.02, 20)
                if repeat == 0 and not still:
                    ratings["ratings.csv", *key] = falling(5, 0.2, 20)
    additions = {
        ("fooled", "painter · add-apples", "dunes", 0): [
            0.5 + 0.001 * k + (0.2 if k in (4, 9) else 0.0) for k in range(12)
        ],
        ("good", "painter · add-apples", "dunes", 0): falling(80, 1, 12),
    }
    return judge(
        material(
            chains,
            tried,
            additions=additions,
            controls=("ref:identity",),
            references=references,
            ratings=ratings,
            notes=("A trial written by hand.",),
        )
    )
