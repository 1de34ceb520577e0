"""Judging: all tables and cards of a trial from its material. Pure: no file, no run."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from convergebench.analysis.resampling import SHARE
from convergebench.errors import SettingsError
from convergebench.trial.cards import CardTables, card_of, trustworthiness
from convergebench.trial.gaps import individual_gaps, mean_gaps, success_of
from convergebench.trial.material import Material, normalised
from convergebench.trial.peers import premise_of, soundness
from convergebench.trial.result import Card, Trial
from convergebench.trial.trends import SIGNED, delay_of, over_sources, trends
from convergebench.wording import counted, shown


def judge(material: Material, steps: Sequence[int] = (5, 10, 20)) -> Trial:
    """The trial of the metrics in some material.

    Args:
        material: Scores and what belongs to them.
        steps: The later steps that are compared with step 1; those beyond all chains are left out.

    Raises:
        SettingsError: No step is left, or one is below 2.
    """
    wanted, on_steps = _steps(steps, material.longest)
    scores, scales = normalised(material)
    replications = scores.filter(pl.col("kind") == "replicate")
    additions = scores.filter(pl.col("kind") == "accumulate")
    metrics = [tried.name for tried in material.tried]
    cells = material.cells
    individual = individual_gaps(replications, wanted)
    gaps = mean_gaps(individual, cells, metrics, wanted)
    premise = premise_of(material.references, cells, wanted)
    sound = soundness(premise, cells)
    success = success_of(gaps).join(sound, on=["arm", "source"], how="left", maintain_order="left")
    trend = trends(replications)
    on_trial = pl.col("arm").is_in(material.arms)
    not_control = ~pl.col("arm").is_in(material.controls)

    cards: list[Card] = []
    for tried in material.tried:
        mine = pl.col("metric") == tried.name
        tables = CardTables(
            gaps=gaps.filter(mine & on_trial),
            success=success.filter(mine & on_trial),
            replications=replications.filter(mine & on_trial),
            additions=additions.filter(mine & not_control),
            trends=trend.filter(mine & on_trial),
            references=material.references.filter(on_trial),
            ratings=material.ratings.filter(on_trial),
        )
        cards.append(card_of(tried, scales[tried.name], tables, wanted, material.longest))
    cards.sort(key=trustworthiness)
    order = [card.metric for card in cards]
    return Trial(
        title=material.title,
        steps=wanted,
        arms=material.arms,
        controls=material.controls,
        sources=material.sources,
        cards=tuple(cards),
        gaps=_in_order(gaps.filter(on_trial), order),
        individual=_in_order(individual.filter(on_trial), order),
        success=_in_order(success.filter(on_trial), order),
        trajectories=_in_order(_trajectories(scores), order),
        single=_in_order(scores, order),
        premise=premise.filter(on_trial).drop("first"),
        notes=(*material.notes, *on_steps, *_on_premise(premise.filter(on_trial), sound, material)),
        per_arm=_per_arm(material, order, success, trend),
    )


def _steps(steps: Sequence[int], longest: int) -> tuple[tuple[int, ...], list[str]]:
    """The steps that chains have, and a note on the others."""
    asked = tuple(sorted(set(steps)))
    if not asked or asked[0] < 2:
        raise SettingsError(
            f"later frames are compared with frame 1, so --steps are numbers from 2 on; got "
            f"{', '.join(map(str, steps)) or 'none'}"
        )
    there = tuple(step for step in asked if step <= longest)
    if there == asked:
        return asked, []
    gone = ", ".join(str(step) for step in asked if step > longest)
    exist = f"steps 1 to {longest} exist" if longest > 1 else "only step 1 exists"
    if not there:
        raise SettingsError(
            f"no chain has step {gone}: {exist}. "
            + (f"Give others, as --steps {longest}." if longest > 1 else "Run longer chains.")
        )
    kept = ", ".join(map(str, there))
    return there, [f"No chain has step {gone} ({exist}): verdicts rest on step {kept}."]


def _in_order(table: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The table with the metrics in the order of their cards, otherwise as it was."""
    places = pl.DataFrame({"metric": list(metrics)}, schema={"metric": pl.String()})
    return places.join(table, on="metric", maintain_order="left_right")


def _trajectories(scores: pl.DataFrame) -> pl.DataFrame:
    """By cell and step the mean over repeats, the least and the greatest of them."""
    known = scores.filter(pl.col("score").is_not_null())
    keys = ("metric", "arm", "source", "kind", "step")
    return (
        known.sort(*keys, "score")
        .group_by(*keys, maintain_order=True)
        .agg(
            mean=pl.col("score").mean(),
            low=pl.col("score").min(),
            high=pl.col("score").max(),
            repeats=pl.len().cast(pl.Int32),
            value=pl.col("value").mean(),
        )
    )


def _per_arm(
    material: Material, metrics: Sequence[str], success: pl.DataFrame, trend: pl.DataFrame
) -> pl.DataFrame:
    rows = []
    for metric in metrics:
        for arm in (*material.arms, *material.controls):
            here = (pl.col("metric") == metric) & (pl.col("arm") == arm)
            cells, chains = success.filter(here), trend.filter(here)
            verdicts = cells["verdict"].to_list()
            tau = over_sources(chains, "tau", SIGNED)
            later = over_sources(chains, "later_better", SHARE)
            delay = delay_of(chains)
            rows.append(
                {
                    "metric": metric,
                    "arm": arm,
                    "control": arm in material.controls,
                    "cells": len(verdicts),
                    "failed": verdicts.count("failure"),
                    "incomplete": verdicts.count("incomplete"),
                    "tau": tau and tau.value,
                    "tau_low": tau and tau.low,
                    "tau_high": tau and tau.high,
                    "later_better": later and later.value,
                    "later_low": later and later.low,
                    "later_high": later and later.high,
                    "delay": delay and delay.median,
                    "noticed": delay.noticed if delay else 0,
                    "chains": delay.chains if delay else 0,
                }
            )
    counts = ("cells", "failed", "incomplete", "noticed", "chains")
    schema: dict[str, pl.DataType] = {"metric": pl.String(), "arm": pl.String()}
    schema |= {"control": pl.Boolean(), **{name: pl.Int32() for name in counts[:3]}}
    names = ("tau", "tau_low", "tau_high", "later_better", "later_low", "later_high", "delay")
    schema |= {name: pl.Float64() for name in names}
    schema |= {name: pl.Int32() for name in counts[3:]}
    return pl.DataFrame(rows, schema=schema)


def _on_premise(premise: pl.DataFrame, sound: pl.DataFrame, material: Material) -> list[str]:
    """What full-reference metrics say of the premise that later frames are worse."""
    if premise.is_empty():
        return [
            "No full-reference metric is scored, so nothing here checks that the frames really got "
            "worse: convergebench score RUN --metrics psnr,ssim."
        ]
    metrics = ", ".join(premise["metric"].unique(maintain_order=True))
    notes = []
    for arm in material.arms:
        mine = sound.filter(pl.col("arm") == arm)
        calm = mine.filter(pl.col("premise") == "doubtful")["source"].to_list()
        if calm:
            where = (
                "any initial image"
                if len(calm) == len(mine)
                else (f"{counted(len(calm), 'initial image')} of {len(mine)} ({shown(calm)})")
            )
            notes.append(
                f"{arm}: by {metrics}, its frames lost nothing since frame 1 on {where}. A "
                "no-reference metric that sees no loss there is not at fault."
            )
    return notes
