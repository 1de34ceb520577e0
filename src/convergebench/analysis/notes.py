"""What a reader of the leaderboard has to know, a sentence each."""

from __future__ import annotations

from collections import Counter
from typing import Final

import polars as pl

from convergebench.analysis.convergence import best
from convergebench.analysis.evidence import Evidence, command
from convergebench.analysis.findings import DIMENSIONS, HEADLINE, RANKED_BY
from convergebench.analysis.leaderboard import NO_COMMON_CHAIN
from convergebench.analysis.notes_on_chains import on_calls, on_chains
from convergebench.analysis.pairs import needed_sources
from convergebench.comparisons import FLOOR_PREFIX, PUBLISHED
from convergebench.metric import MetricSpec
from convergebench.runspec import TRANSPORT
from convergebench.wording import counted, shown

TABLE_KEY: Final = (
    "n: complete chains; missing: chains that are not; failed: steps that gave no frame; refused: "
    "of them, those that the editor refused; censored: chains that never fell, by the first "
    "half-life."
)
"""What the columns of the printed leaderboard are; the report's page has others."""


def notes_of(told: Evidence) -> list[str]:
    """Every note, the most important first."""
    return [
        *_ranking(told),
        *told.main.gathered.notes,
        *told.published,
        *_dimensions(told),
        *_metrics(told),
        *_inert(told),
        *on_chains(told),
        *on_calls(told),
        *told.main.gathered.problems,
        TABLE_KEY,
        told.main.on_lives,
    ]


def _ranking(told: Evidence) -> list[str]:
    ranking = told.ranking
    notes = []
    if ranking.places:
        notes.append(
            f"Ranked on {counted(len(ranking.common), 'chain')} (from "
            f"{counted(ranking.sources, 'source')}) that all ranked editors completed; intervals "
            "resample source images; a range of ranks means tied."
        )
        if ranking.sources == 1:
            notes.append("One source gives no interval, so no editor is above another.")
        elif len(ranking.places) > 1 and ranking.sources < needed_sources(len(ranking.places)):
            notes.append(
                f"Ranks are provisional: {ranking.sources} sources are too few to be 95 % sure of "
                f"any of {counted(len(ranking.pairs), 'comparison')}, which needs "
                f"{needed_sources(len(ranking.places))}; so all are tied."
            )
    else:
        notes.append(f"No editor is ranked: {_why_none(told)}.")
    if ranking.metrics:
        notes.append(_ranked_by(told))
    variants = sorted(set(told.main.chains["settings"].unique()))
    if len(variants) > 1:
        named = [label or "defaults" for label in variants]
        notes.append(f"All numbers are means over {len(variants)} settings: {'; '.join(named)}.")
    return notes


def _ranked_by(told: Evidence) -> str:
    """What the score is the mean AUC of, and why not of something better."""
    metrics = told.ranking.metrics
    if metrics == (HEADLINE,):
        return (
            "The score is the mean AUC of the headline: at each homecoming the lesser of quality "
            "and semantic convergence."
        )
    if metrics == ("quality",):
        return (
            "The score is the mean AUC of quality (the median of psnr, ssim and lpips), because "
            "semantic convergence is incomplete."
        )
    if metrics == RANKED_BY:
        return f"The score is the mean AUC of {' and '.join(metrics)}."
    lacking = [name for name in RANKED_BY if name not in metrics]
    return (
        f"The score is the mean AUC of {' and '.join(metrics)} alone, because "
        f"{' and '.join(lacking)} cannot be had; it compares with no other report."
    )


def _why_none(told: Evidence) -> str:
    if told.whole.chains.is_empty():
        return "the run has no chain"
    if told.main.chains.is_empty():
        return "no cycle of this run can be fully undone, and only those that can are ranked"
    if not told.main.chains["has_home"].any():
        return "no cycle of this run has a home, so there is nothing to compare with"
    if not told.main.chains["made"].sum():
        return "no chain came home even once"
    if told.main.homes.is_empty():
        return "no frame is scored against home"
    if not told.ranking.metrics:
        return f"convergence by {' or '.join(RANKED_BY)} cannot be had"
    reasons = set(told.ranking.reasons.values())
    if NO_COMMON_CHAIN in reasons:
        waiting = [n for n, why in told.ranking.reasons.items() if why == NO_COMMON_CHAIN]
        least = min(waiting, key=lambda name: (told.complete.get(name, 0), name))
        return (
            f"there is no chain that all of {shown(waiting)} completed; the fewest, "
            f"{told.complete.get(least, 0)}, has {least}"
        )
    counts = Counter(told.ranking.reasons.values())
    return ", ".join(f"{why} ({count})" for why, count in sorted(counts.items()))


def _dimensions(told: Evidence) -> list[str]:
    notes = []
    for dimension, needed in DIMENSIONS.items():
        lacking = [name for name in needed if name not in told.measured.curved]
        scored = set(told.measured.homes["metric"].unique())
        unscored = [name for name in lacking if name not in scored]
        if lacking:
            without = [name for name in lacking if name not in unscored]
            words = [f"{', '.join(unscored)} not scored"] if unscored else []
            words += [f"{', '.join(without)} without convergence"] if without else []
            notes.append(f"{dimension.capitalize()} half-life: incomplete, {'; '.join(words)}.")
    return notes


def _metrics(told: Evidence) -> list[str]:
    notes = [
        f"{name}: has scores but is left out, because it cannot be opened here: {why}"
        for name, why in told.main.closed.items()
    ]
    elsewhere = [name for name, spec in told.main.specs.items() if spec.kind == "no-reference"]
    if (told.main.scores["where"] == "registered").any():
        elsewhere.append("the registered forms")
    if elsewhere:
        notes.append(f"In the score files only, not drawn here: {', '.join(elsewhere)}.")
    paired = set(
        told.main.scores.filter(pl.col("chain").str.starts_with(FLOOR_PREFIX))["metric"].to_list()
    )
    sources = told.whole.chains["source"].n_unique()
    for name, spec in told.main.specs.items():
        if spec.kind == "no-reference" or spec.alignment or spec.directional:
            continue
        rows = told.main.scores.filter(pl.col("metric") == name)
        old = sorted(set(rows["version"].unique()) - {spec.version})
        old = [version for version in old if not version.startswith(PUBLISHED)]
        if name in told.main.stale:
            notes += _stale(told, spec)
            continue
        if old and spec.version not in set(rows["version"].unique()):
            notes.append(
                f"{name}: left out, scored with version {', '.join(old)} only, installed is "
                f"{spec.version}. {_score_again(told, name)}"
            )
            continue
        if name not in told.whole.curved and (told.whole.grid["metric"] == name).any():
            notes.append(
                f"{name}: no convergence, because {_no_floor(told, spec, paired, sources)}."
            )
        notes += _gaps(told, name)
    return notes + _unpublished(told)


def _stale(told: Evidence, spec: MetricSpec) -> list[str]:
    """A run's rows of another version are no measure for the rows of this one."""
    return [
        f"{spec.name}: does not rank, because {run} has scores of version {', '.join(old)} only, "
        f"installed is {spec.version}. Compute them with `convergebench score RUN --metrics "
        f"{spec.name}`, RUN being the directory of {run}."
        for run, old in told.main.stale[spec.name].items()
    ]


def _no_floor(told: Evidence, spec: MetricSpec, paired: set[str], sources: int) -> str:
    if best(spec) is None and spec.identical is None:
        return "its spec does not say the value of identical images (identical=…)"
    if best(spec) is None:
        return "identical images have no finite value"
    if spec.name in told.main.floor:
        return "other sources are as close to a source as the source itself"
    if not any(chain.held for chain in told.main.gathered.chains):
        return (
            "the floor needs pictures, and only scores are here (import the sources' pictures, or "
            f"the floor itself with --floor {spec.name}=VALUE)"
        )
    if sources < 2:
        return "the suite's floor needs two sources"
    if spec.name in paired:
        return "every value of the suite's floor is null"
    return "the suite's floor is not scored"


def _gaps(told: Evidence, name: str) -> list[str]:
    """Frames that are there and have no value: null with a reason, or never scored."""
    rows = told.whole.homes.filter(pl.col("metric") == name)
    made = told.whole.grid.filter((pl.col("metric") == name) & pl.col("made"))
    notes = []
    null = rows.filter(pl.col("value").is_null())
    if len(null):
        counts = null.group_by("note").agg(pl.len()).sort("len", "note", descending=[True, False])
        reasons = [f"{why or 'not a number'} ({n})" for why, n in counts.iter_rows()]
        notes.append(f"{name}: {_of_homecomings(len(null), made)} null: {shown(reasons)}.")
    unscored = made.join(rows, on=["chain", "n"], how="anti")
    here = unscored.join(told.pictured, on=["chain", "n"], how="semi")
    if len(here):
        notes.append(
            f"{name}: {_of_homecomings(len(here), made)} not scored. "
            f"{_score_again(told, name, here)}"
        )
    return notes


def _of_homecomings(count: int, made: pl.DataFrame) -> str:
    are = "is" if count == 1 else "are"
    return f"{count} of {counted(len(made), 'homecoming')} {are}"


def _unpublished(told: Evidence) -> list[str]:
    """Homecomings of chains without pictures that nobody published a value of."""
    made = told.whole.grid.filter("made")
    gone = made.join(told.pictured, on=["chain", "n"], how="anti", maintain_order="left")
    lacking = gone.join(told.whole.homes, on=["metric", "chain", "n"], how="anti")
    counts = lacking.group_by("metric").agg(pl.len()).sort("metric")
    named: dict[int, list[str]] = {}
    for metric, count in counts.iter_rows():
        named.setdefault(count, []).append(metric)
    return [
        f"{', '.join(metrics)}: not published of {counted(count, 'homecoming')} whose pictures are "
        "not here."
        for count, metrics in named.items()
    ]


def _inert(told: Evidence) -> list[str]:
    trips = told.main.chains.filter(pl.col("kind") == "round-trip")
    editors = sorted(set(trips["editor"].unique()))
    unchecked = [name for name in editors if name not in told.inert]
    notes = []
    if not editors:
        any_trip = (told.whole.chains["kind"] == "round-trip").any()
        why = "no round trip of this run can be fully undone" * any_trip
        notes.append(f"Inert check: not made, {why or 'the run has no round trip'}.")
    elif len(unchecked) == len(editors):
        notes.append(
            "Inert check: not made, no round trip is shared with the transport control "
            f"({TRANSPORT}) and scored with psnr against the frame before."
        )
    elif unchecked:
        notes.append(
            f"Inert check: not made for {shown(unchecked)}, which shares no scored first step "
            f"with the transport control ({TRANSPORT})."
        )
    return notes


def _score_again(told: Evidence, metric: str, chains: pl.DataFrame | None = None) -> str:
    them = "it" if chains is not None and len(chains) == 1 else "them"
    return f"Compute {them} with {command(told, 'score', chains, f' --metrics {metric}')}."
