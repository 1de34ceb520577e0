"""A constructed trial of any size, for the tests of its page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from convergebench.trial.result import (
    Agreement,
    Card,
    Content,
    Delay,
    Estimate,
    Sensitivity,
    Trial,
)

HOSTILE = """</script><img src=x onerror="document.title='owned'"> & {{ 7 * 7 }} 'a' ../../b"""
CUBES = (
    "rice", "bark", "library", "holi", "peacock", "terraces", "potstickers", "coral", "fabric",
    "market", "mosaic", "meadow", "kitchen",
)  # fmt: skip
METRICS = ("drift-nr", "niqe", "brisque", "piqe", "ilniqe", "clipiqa", "musiq", "rali")
ARMS = ("taef2", "ref:static", "ref:wrinkles", "ref:dots", "jpeg, quality=60", "blur")


def names(known: Sequence[str], count: int) -> list[str]:
    """So many names, the known ones first."""
    return [*known, *(f"{known[0]}-{i}" for i in range(len(known), count))][:count]


def made_trial(
    metrics: int = 8,
    arms: int = 6,
    sources: int = 13,
    last: int = 20,
    repeats: int = 2,
    *,
    steps: tuple[int, ...] = (5, 10, 20),
    hostile: bool = False,
    missing: bool = True,
) -> Trial:
    """A trial with constructed scores: the first metric always falls, the others ever less.

    The last source of the second arm has no scores after step 8 where `missing` is asked for, and
    the last metric none at all on the last arm.
    """
    rng = np.random.default_rng(7)
    m_names, a_names, s_names = names(METRICS, metrics), names(ARMS, arms), names(CUBES, sources)
    if hostile:
        m_names[1], a_names[0], s_names[0] = f"m{HOSTILE}", f"a{HOSTILE}", f"s{HOSTILE}"
    at = np.arange(1, last + 1)
    # metric × arm × source × repeat × step
    shape = (metrics, arms, sources, repeats, last)
    lean = (
        rng.normal(-1, 0.9, (metrics, arms, sources))
        * np.linspace(1.2, 0.3, metrics)[:, None, None]
    )
    lean[0] = -np.abs(lean[0]) - 0.5
    start = (
        70 + rng.normal(0, 1, (metrics, 1, sources)) * np.linspace(3, 12, metrics)[:, None, None]
    )
    scores = start[..., None, None] + lean[..., None, None] * 12 * np.log(at)
    scores = scores + np.cumsum(rng.normal(0, 0.35, shape), axis=-1)
    scores[0] = start[0][..., None, None] + lean[0][..., None, None] * 12 * np.log(at)
    if missing:
        scores[:, 1 % arms, -1, :, 7:] = np.nan
        scores[-1, -1] = np.nan
    single = _rows(scores, m_names, a_names, s_names, "replicate")
    adding = np.cumsum(rng.normal(-0.5, 1.5, (metrics, arms, 1, repeats, last)), axis=-1) + 60
    adding[1:, ..., 9::10] += 18
    single = pl.concat([single, _rows(adding, m_names, a_names, ["table"], "accumulate")])
    single = single.with_columns(value=pl.col("score") / 100)
    trajectories = (
        single.group_by("metric", "arm", "source", "kind", "step", maintain_order=True)
        .agg(
            mean=pl.col("score").mean(),
            low=pl.col("score").min(),
            high=pl.col("score").max(),
            repeats=pl.len(),
            value=pl.col("value").mean(),
        )
        .select(
            "metric", "arm", "source", "kind", "step", "mean", "low", "high", "repeats", "value"
        )
    )
    individual, gaps = _gaps(single, steps, m_names, a_names, s_names)
    success = (
        gaps.group_by("metric", "arm", "source", maintain_order=True)
        .agg(
            failures=(pl.col("gap") >= 0).sum().cast(pl.Int64),
            known=pl.col("gap").is_not_null().sum().cast(pl.Int64),
        )
        .with_columns(
            verdict=pl.when(pl.col("failures") > 0)
            .then(pl.lit("failure"))
            .when(pl.col("known") < len(steps))
            .then(pl.lit("incomplete"))
            .otherwise(pl.lit("success")),
            premise=pl.when(pl.col("source") == s_names[-1])
            .then(pl.lit("doubtful"))
            .otherwise(pl.lit("sound")),
        )
    )
    premise = pl.DataFrame(
        [
            {"arm": a, "source": s, "metric": "psnr", "step": k, "change": -math.log(k) - i}
            for a in a_names
            for i, s in enumerate(s_names)
            for k in steps
        ],
        schema={"arm": pl.String, "source": pl.String, "metric": pl.String, "step": pl.Int64,
                "change": pl.Float64},
    )  # fmt: skip
    return Trial(
        title="small-run",
        steps=steps,
        arms=tuple(a_names),
        controls=("jpeg, quality=95",),
        sources=tuple(s_names),
        cards=tuple(_card(m, gaps, success, i, last) for i, m in enumerate(m_names)),
        gaps=gaps,
        individual=individual,
        success=success,
        trajectories=trajectories,
        single=single,
        premise=premise,
        notes=("Scores of two repeats were averaged.",),
        per_arm=_per_arm(success),
    )


def _rows(
    scores: Any, metrics: list[str], arms: list[str], sources: list[str], kind: str
) -> pl.DataFrame:
    m, a, s, r, k = (x.ravel() for x in np.indices(scores.shape))
    frame = pl.DataFrame(
        {
            "metric": pl.Series(metrics).gather(m),
            "arm": pl.Series(arms).gather(a),
            "source": pl.Series(sources).gather(s),
            "kind": pl.repeat(kind, len(m), eager=True),
            "repeat": r.astype(np.int64),
            "step": (k + 1).astype(np.int64),
            "score": scores.ravel(),
        }
    )
    return frame.filter(pl.col("score").is_not_nan())


def _gaps(
    single: pl.DataFrame, steps: tuple[int, ...], metrics: list[str], arms: list[str],
    sources: list[str],
) -> tuple[pl.DataFrame, pl.DataFrame]:  # fmt: skip
    chains = single.filter(pl.col("kind") == "replicate")
    by = ["metric", "arm", "source", "repeat"]
    first = chains.filter(pl.col("step") == 1).select(*by, first="score")
    later = chains.filter(pl.col("step").is_in(list(steps))).join(
        first, on=by, maintain_order="left"
    )
    individual = later.select(*by, "step", gap=pl.col("score") - pl.col("first"))
    grid = (
        pl.DataFrame({"metric": metrics})
        .join(pl.DataFrame({"arm": arms}), how="cross")
        .join(pl.DataFrame({"source": sources}), how="cross")
        .join(pl.DataFrame({"step": list(steps)}), how="cross")
    )
    found = individual.group_by("metric", "arm", "source", "step").agg(
        gap=pl.col("gap").mean(),
        repeats=pl.len().cast(pl.Int64),
        low=pl.col("gap").min(),
        high=pl.col("gap").max(),
    )
    gaps = grid.join(
        found, on=["metric", "arm", "source", "step"], how="left", maintain_order="left"
    )
    gaps = gaps.with_columns(pl.col("repeats").fill_null(0), failed=pl.col("gap") >= 0)
    return individual, gaps.select(
        "metric", "arm", "source", "step", "gap", "repeats", "low", "high", "failed"
    )


def _per_arm(success: pl.DataFrame) -> pl.DataFrame:
    tallies = success.group_by("metric", "arm", maintain_order=True).agg(
        cells=pl.len().cast(pl.Int64),
        failed=(pl.col("verdict") == "failure").sum().cast(pl.Int64),
        incomplete=(pl.col("verdict") == "incomplete").sum().cast(pl.Int64),
    )
    known = {
        "tau": -0.5, "tau_low": -0.6, "tau_high": -0.4, "later_better": 0.25, "later_low": 0.2,
        "later_high": 0.3, "delay": None, "noticed": 1, "chains": 8,
    }  # fmt: skip
    kinds = {"noticed": pl.Int64, "chains": pl.Int64}
    more = [pl.lit(v, dtype=kinds.get(k, pl.Float64)).alias(k) for k, v in known.items()]
    return tallies.with_columns(pl.lit(False).alias("control"), *more)


def _card(metric: str, gaps: pl.DataFrame, success: pl.DataFrame, index: int, last: int) -> Card:
    mine, cells = (
        gaps.filter(pl.col("metric") == metric),
        success.filter(pl.col("metric") == metric),
    )
    failed = cells.filter(pl.col("verdict") == "failure")
    incomplete = cells.filter(pl.col("verdict") == "incomplete").height
    by_step = mine.group_by("step").agg(n=pl.col("failed").sum()).sort("step")
    by_arm = failed.group_by("arm").len().sort("arm")
    tau = -0.95 + 0.15 * index
    return Card(
        metric=metric,
        version="1",
        title=f"Constructed metric {index}",
        origin="a CSV of scores" if index % 3 == 2 else "built in",
        higher_is_better=index % 2 == 0,
        low=0,
        high=100,
        verdict="fails" if failed.height else "incomplete" if incomplete else "fully succeeds",
        cells=cells.height,
        failed=failed.height,
        incomplete=incomplete,
        failures_by_step=dict(by_step.iter_rows()),
        failures_by_arm=dict(by_arm.iter_rows()),
        tau=Estimate(value=tau, low=tau - 0.04, high=tau + 0.05, n=13),
        later_better=Estimate(value=0.02 + 0.06 * index, low=0.01, high=0.08 + 0.06 * index, n=13),
        delay=Delay(median=float(index + 2) if index < 6 else None, noticed=20 - index, chains=26,
                    longest=last),
        sensitivity=Sensitivity(pairs=190, failing=12 * index, worst=(1, 5),
                                worst_share=0.1 * index),
        content=Content(spread=3.0 + 1.4 * index, drop=24.0 - 4 * index, spikes=index,
                        additions=40),
        agreement=(
            Agreement(other="lpips", kind="full-reference",
                      spearman=Estimate(value=0.9 - 0.15 * index, low=0.8 - 0.17 * index,
                                        high=0.95 - 0.12 * index, n=13)),
            Agreement(other="human/quality", kind="ratings",
                      spearman=Estimate(value=0.85 - 0.1 * index, n=4)),
        ),
        nulls=index,
        outside=3 * index,
        doubtful=failed.filter(premise="doubtful").height,
        caveats=("Trained on photographs of 512 pixels.",) if index % 2 else (),
        sentence=f"Of {cells.height} cells, {failed.height} fail.",
    )  # fmt: skip
