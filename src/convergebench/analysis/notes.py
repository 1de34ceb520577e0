"""What a reader of the leaderboard has to know, a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from convergebench.analysis.compare import FEW_SOURCES
from convergebench.analysis.convergence import best
from convergebench.analysis.findings import DIMENSIONS, RANKED_BY
from convergebench.analysis.leaderboard import NO_COMMON_CHAIN, Ranking
from convergebench.analysis.presence import absent_frames
from convergebench.analysis.published import held_frames
from convergebench.analysis.roster import homecomings
from convergebench.chain import count_outcomes
from convergebench.comparisons import FLOOR_PREFIX, PUBLISHED
from convergebench.gathering import Gathered
from convergebench.metric import MetricSpec
from convergebench.runspec import TRANSPORT
from convergebench.wording import counted, shown

SHOWN = 3
"""How many names or reasons a note spells out."""

TABLE_KEY: Final = (
    "n: complete chains; missing: chains that are not; failed: steps that gave no frame."
)
"""What the columns of the printed leaderboard are; the report's page has others."""


@dataclass(frozen=True)
class Evidence:
    """All that notes are written from.

    Attributes:
        gathered: The runs.
        scores: The score rows analysed.
        table: What `chain_table` answered.
        grid: What `expected` answered.
        homes: What `home_scores` answered.
        specs: The metrics that have rows and can be opened.
        closed: Why the others cannot.
        floor: Oriented floors.
        curved: The metrics that have convergence.
        ranking: Who stands where.
        inert: The verdict on each editor that could be checked.
        whole: How many complete chains each editor has.
        lives: A sentence on the chains that half-lives are over.
        stale: Per metric the runs that have it in other versions only, and in which.
        published: Sentences on scores that are not ours.
    """

    gathered: Gathered
    scores: pl.DataFrame
    table: pl.DataFrame
    grid: pl.DataFrame
    homes: pl.DataFrame
    specs: Mapping[str, MetricSpec]
    closed: Mapping[str, str]
    floor: Mapping[str, float]
    curved: Sequence[str]
    ranking: Ranking
    inert: Mapping[str, bool]
    whole: Mapping[str, int]
    lives: str
    stale: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    published: Sequence[str] = field(default_factory=tuple)


def notes_of(told: Evidence) -> list[str]:
    """Every note, the most important first."""
    return [
        *_ranking(told),
        *told.gathered.notes,
        *told.published,
        *_dimensions(told),
        *_metrics(told),
        *_inert(told),
        *_chains(told),
        *told.gathered.problems,
        TABLE_KEY,
        told.lives,
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
        elif ranking.sources < FEW_SOURCES:
            notes.append(
                f"Ranks are provisional: {ranking.sources} sources are too few for a 95 % "
                f"statement, which needs {FEW_SOURCES}."
            )
    else:
        notes.append(f"No editor is ranked: {_why_none(told)}.")
    if ranking.metrics and ranking.metrics != RANKED_BY:
        lacking = [name for name in RANKED_BY if name not in ranking.metrics]
        notes.append(
            f"The score is the mean AUC of {' and '.join(ranking.metrics)} alone, because "
            f"{' and '.join(lacking)} cannot be had; it compares with no other report."
        )
    elif ranking.metrics:
        notes.append(f"The score is the mean AUC of {' and '.join(ranking.metrics)}.")
    variants = sorted(set(told.table["settings"]))
    if len(variants) > 1:
        named = [label or "defaults" for label in variants]
        notes.append(f"All numbers are means over {len(variants)} settings: {'; '.join(named)}.")
    return notes


def _why_none(told: Evidence) -> str:
    if told.table.is_empty():
        return "the run has no chain"
    if not told.table["has_home"].any():
        return "no cycle of this run has a home, so there is nothing to compare with"
    if not told.table["made"].sum():
        return "no chain came home even once"
    if told.homes.is_empty():
        return "no frame is scored against home"
    if not told.ranking.metrics:
        return f"convergence by {' or '.join(RANKED_BY)} cannot be had"
    reasons = set(told.ranking.reasons.values())
    if NO_COMMON_CHAIN in reasons:
        waiting = [n for n, why in told.ranking.reasons.items() if why == NO_COMMON_CHAIN]
        least = min(waiting, key=lambda name: (told.whole.get(name, 0), name))
        return (
            f"there is no chain that all of {shown(waiting)} completed; the fewest, "
            f"{told.whole.get(least, 0)}, has {least}"
        )
    counts = Counter(told.ranking.reasons.values())
    return ", ".join(f"{why} ({count})" for why, count in sorted(counts.items()))


def _dimensions(told: Evidence) -> list[str]:
    notes = []
    for dimension, needed in DIMENSIONS.items():
        lacking = [name for name in needed if name not in told.curved]
        unscored = [name for name in lacking if name not in set(told.homes["metric"])]
        if lacking:
            without = [name for name in lacking if name not in unscored]
            words = [f"{', '.join(unscored)} not scored"] if unscored else []
            words += [f"{', '.join(without)} without convergence"] if without else []
            notes.append(f"{dimension.capitalize()} half-life: incomplete, {'; '.join(words)}.")
    return notes


def _metrics(told: Evidence) -> list[str]:
    notes = [
        f"{name}: has scores but is left out, because it cannot be opened here: {why}"
        for name, why in told.closed.items()
    ]
    elsewhere = [name for name, spec in told.specs.items() if spec.kind == "no-reference"]
    if (told.scores["where"] == "registered").any():
        elsewhere.append("the registered forms")
    if elsewhere:
        notes.append(f"In the score files only, not drawn here: {', '.join(elsewhere)}.")
    paired = set(
        told.scores.filter(pl.col("chain").str.starts_with(FLOOR_PREFIX))["metric"].to_list()
    )
    sources = told.table["source"].n_unique()
    for name, spec in told.specs.items():
        if spec.kind == "no-reference" or spec.alignment or spec.directional:
            continue
        rows = told.scores.filter(pl.col("metric") == name)
        old = sorted(set(rows["version"]) - {spec.version})
        old = [version for version in old if not version.startswith(PUBLISHED)]
        if name in told.stale:
            notes += _stale(told, spec)
            continue
        if old and spec.version not in set(rows["version"]):
            notes.append(
                f"{name}: left out, scored with version {', '.join(old)} only, installed is "
                f"{spec.version}. {_score_again(told, name)}"
            )
            continue
        if name not in told.curved and (told.grid["metric"] == name).any():
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
        for run, old in told.stale[spec.name].items()
    ]


def _no_floor(told: Evidence, spec: MetricSpec, paired: set[str], sources: int) -> str:
    if best(spec) is None and spec.identical is None:
        return "its spec does not say the value of identical images (identical=…)"
    if best(spec) is None:
        return "identical images have no finite value"
    if spec.name in told.floor:
        return "other sources are as close to a source as the source itself"
    if not any(chain.held for chain in told.gathered.chains):
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
    rows = told.homes.filter(pl.col("metric") == name)
    made = told.grid.filter((pl.col("metric") == name) & pl.col("made"))
    notes = []
    null = rows.filter(pl.col("value").is_null())
    if len(null):
        counts = null.group_by("note").agg(pl.len()).sort("len", "note", descending=[True, False])
        reasons = [f"{why or 'not a number'} ({n})" for why, n in counts.iter_rows()]
        notes.append(f"{name}: {_of_homecomings(len(null), made)} null: {shown(reasons)}.")
    unscored = made.join(rows, on=["chain", "n"], how="anti")
    here = unscored.join(_pictured(told), on=["chain", "n"], how="semi")
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
    made = told.grid.filter("made")
    gone = made.join(_pictured(told), on=["chain", "n"], how="anti", maintain_order="left")
    lacking = gone.join(told.homes, on=["metric", "chain", "n"], how="anti")
    counts = lacking.group_by("metric").agg(pl.len()).sort("metric")
    named: dict[int, list[str]] = {}
    for metric, count in counts.iter_rows():
        named.setdefault(count, []).append(metric)
    return [
        f"{', '.join(metrics)}: not published of {counted(count, 'homecoming')} whose pictures are "
        "not here."
        for count, metrics in named.items()
    ]


def _pictured(told: Evidence) -> pl.DataFrame:
    """Chain and n of the homecomings whose picture is here."""
    chains = told.gathered.chains
    came = homecomings(chains, told.gathered.suite)
    return came.join(held_frames(chains), on=["chain", "step"], how="semi")


def _inert(told: Evidence) -> list[str]:
    trips = told.table.filter(pl.col("kind") == "round-trip")
    editors = sorted(set(trips["editor"]))
    unchecked = [name for name in editors if name not in told.inert]
    notes = []
    if not editors:
        notes.append("Inert check: not made, the run has no round trip.")
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


def _chains(told: Evidence) -> list[str]:
    table = told.table
    notes = []
    failed = table.filter(pl.col("failed"))
    if len(failed):
        counts = failed.group_by("ended").agg(pl.len()).sort("ended")
        words = ", ".join(f"{n} {outcome}" for outcome, n in counts.iter_rows())
        notes.append(f"{len(failed)} of {counted(len(table), 'chain')} ended early: {words}.")
    unfinished = table.filter(pl.col("ended").is_null() & (pl.col("length") < pl.col("steps")))
    open_ones = unfinished.filter(~pl.col("imported"))
    if len(open_ones):
        unborn = len(open_ones.filter(~pl.col("begun")))
        notes.append(
            f"{len(open_ones)} of {counted(len(table), 'chain')} "
            f"{'is' if len(open_ones) == 1 else 'are'} not finished"
            + (f", {unborn} of them not begun" if unborn else "")
            + f". Go on with {_command(told, 'run', open_ones)}."
        )
    short = unfinished.filter("imported")
    if len(short):
        notes.append(
            f"{len(short)} of {counted(len(table.filter('imported')), 'imported chain')} "
            f"{'is' if len(short) == 1 else 'are'} shorter than the longest of "
            f"{'its' if len(short) == 1 else 'their'} cycle; "
            f"{'it was' if len(short) == 1 else 'they were'} imported so.{_remedy(told)}"
        )
    gaps = count_outcomes(told.gathered.chains).get("missing", 0)
    if gaps:
        notes.append(
            f"{counted(gaps, 'frame')} {'is' if gaps == 1 else 'are'} missing in the import: made "
            "elsewhere, and not there. Homecomings among them have no value."
        )
    for run in told.gathered.runs:
        gone, named = absent_frames(run)
        if gone:
            notes.append(
                f"{gone} of {counted(named, 'frame')}"
                + (f" of {run.name}" if told.gathered.several else "")
                + f" {'is' if gone == 1 else 'are'} not on the disk; "
                f"`convergebench verify RUN` names {'it' if gone == 1 else 'them'}."
            )
    homeless = table.filter(~pl.col("has_home") | pl.col("content_only"))
    if len(homeless):
        cycles = sorted(set(homeless["cycle"]))
        notes.append(
            f"{counted(len(homeless), 'chain')} of {shown(cycles)} "
            f"{'has' if len(homeless) == 1 else 'have'} no home that "
            f"{' and '.join(RANKED_BY)} can be measured against and "
            f"{'is' if len(homeless) == 1 else 'are'} not in the ranking."
        )
    return notes


def _remedy(told: Evidence) -> str:
    """How to compare editors none of whose chains is as long as the longest."""
    table = told.table.filter(pl.col("imported") & ~pl.col("failed") & (pl.col("rounds") > 0))
    drawn = {c.key.id for c in told.gathered.chains if any(step for step in c.held)}
    mine = table.filter(pl.col("chain").is_in(list(drawn))) if drawn else table
    gaps = told.grid.filter(~pl.col("made")).group_by("chain").agg(reach=pl.col("n").min() - 1)
    # A chain without a gap is as long as it should be, whatever N is.
    whole = pl.col("reach").is_null().any()
    reach = (
        mine.join(gaps, on="chain", how="left")
        .group_by("editor")
        .agg(reach=pl.when(~whole).then(pl.col("reach").max()))
    )
    least = reach["reach"].min() if len(reach) else None
    if not isinstance(least, int) or least < 1:
        return ""
    runs = "RUN …" if told.gathered.several else "RUN"
    return (
        f" `convergebench report {runs} --rounds {least}` compares what all editors have, the "
        f"first {counted(least, 'homecoming')}."
    )


def _score_again(told: Evidence, metric: str, chains: pl.DataFrame | None = None) -> str:
    them = "it" if chains is not None and len(chains) == 1 else "them"
    return f"Compute {them} with {_command(told, 'score', chains, f' --metrics {metric}')}."


def _command(
    told: Evidence, verb: str, chains: pl.DataFrame | None = None, options: str = ""
) -> str:
    """A command that is right wherever it is read: reports travel, and name no machine's paths."""
    if not told.gathered.several:
        return (
            f"`convergebench {verb} RUN{options}`, RUN being this run's directory "
            f"({told.gathered.name})"
        )
    runs = told.gathered.runs_of(chains["chain"]) if chains is not None else ()
    names = " and of ".join(runs or [run.name for run in told.gathered.runs])
    return f"`convergebench {verb} RUN{options}`, RUN being the directory of {names}"
