"""Trust cards: what is known of a metric, and one plain sentence on whether to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from convergebench.analysis.resampling import SHARE
from convergebench.trial.gaps import sensitivity_of
from convergebench.trial.material import Scale, Tried
from convergebench.trial.peers import agreements
from convergebench.trial.result import Agreement, Card, Content, Sensitivity
from convergebench.trial.trends import SIGNED, content_of, delay_of, over_sources
from convergebench.wording import counted

FEW_SOURCES: Final = 6
"""With fewer initial images a card says so: intervals are wide then, and success is easy."""

VerdictWord = Literal["fully succeeds", "fails", "incomplete", "no data"]


@dataclass(frozen=True)
class CardTables:
    """The rows of one metric that its card is made of, and what others say of the same frames.

    Attributes:
        gaps: Mean gaps.
        success: Verdicts by cell.
        replications: Normalised scores of replications.
        additions: Those of chains that add objects.
        trends: Chain by chain.
        references: Oriented scores of full-reference metrics.
        ratings: People's ratings.
    """

    gaps: pl.DataFrame
    success: pl.DataFrame
    replications: pl.DataFrame
    additions: pl.DataFrame
    trends: pl.DataFrame
    references: pl.DataFrame
    ratings: pl.DataFrame


def card_of(
    tried: Tried,
    scale: Scale,
    tables: CardTables,
    steps: Sequence[int],
    longest: int,
) -> Card:
    """The card of one metric.

    Args:
        tried: The metric.
        scale: How its scores are normalised.
        tables: Its rows of all tables, controls left out.
        steps: The later steps.
        longest: How many steps chains should have.
    """
    gaps, success, scores = tables.gaps, tables.success, tables.replications
    failures = success.filter(pl.col("verdict") == "failure")
    failed, cells = len(failures), len(success)
    incomplete = len(success.filter(pl.col("verdict") == "incomplete"))
    doubtful = len(failures.filter(pl.col("premise") == "doubtful"))
    known = int(success["known"].sum())
    verdict = verdict_of(known, failed, incomplete)
    sensitivity = sensitivity_of(scores, longest)
    content = content_of(scores, tables.additions, gaps, max(steps))
    values = pl.concat([scores, tables.additions])["value"]
    outside = int(((values < scale.low) | (values > scale.high)).sum())
    nulls = int(values.null_count())
    agreement = agreements(scores, tables.references, tables.ratings)
    sources = success.filter(pl.col("known") > 0)["source"].n_unique()
    fails = gaps.filter(pl.col("failed"))
    by_step = dict(fails.group_by("step").len().iter_rows())
    by_arm = dict(failures.group_by("arm").len().iter_rows())
    arms = success["arm"].unique(maintain_order=True).to_list()
    return Card(
        metric=tried.name,
        version=tried.version,
        title=tried.title,
        origin=tried.origin,
        higher_is_better=tried.higher_is_better,
        low=scale.low,
        high=scale.high,
        verdict=verdict,
        cells=cells,
        failed=failed,
        incomplete=incomplete,
        failures_by_step={step: by_step.get(step, 0) for step in steps},
        failures_by_arm={arm: by_arm.get(arm, 0) for arm in arms},
        tau=over_sources(tables.trends, "tau", SIGNED),
        later_better=over_sources(tables.trends, "later_better", SHARE),
        delay=delay_of(tables.trends),
        sensitivity=sensitivity,
        content=content,
        agreement=agreement,
        nulls=nulls,
        outside=outside,
        doubtful=doubtful,
        sentence=sentence_of(
            tried.name, verdict, cells, failed, incomplete, steps, sorted(by_step)
        ),
        caveats=(
            *_on_scores(scale, nulls, outside, len(values)),
            *_on_extent(sources, verdict, failed, incomplete, doubtful),
            *_on_repeats(gaps, scores),
            *_on_robustness(verdict, sensitivity, content),
            *_on_agreement(agreement),
        ),
    )


def verdict_of(known: int, failed: int, incomplete: int) -> VerdictWord:
    """What a metric comes to: gaps that are known, cells that failed, cells that lack a gap."""
    if not known:
        return "no data"
    if failed:
        return "fails"
    return "incomplete" if incomplete else "fully succeeds"


def sentence_of(
    name: str,
    verdict: VerdictWord,
    cells: int,
    failed: int,
    incomplete: int,
    steps: Sequence[int],
    failing: Sequence[int],
) -> str:
    """The verdict in words; `failing` are the steps that have a failure."""
    pairs = counted(cells, "pair") + " of editor and initial image"
    later = _frames(steps, "and")
    if verdict == "fully succeeds":
        return f"{name} fully succeeds: on all {pairs} it scores {later} below frame 1."
    if verdict == "incomplete":
        return (
            f"{name} has not failed, but {incomplete} of {pairs} "
            f"{'lacks' if incomplete == 1 else 'lack'} a score of frame 1 or of "
            f"{_frames(steps, 'or')}."
        )
    if verdict == "no data":
        return f"{name} has no score of frame 1 and of {_frames(steps, 'or')} of the same chain."
    where = f"all {pairs}" if failed == cells > 1 else f"{failed} of {pairs}"
    return f"{name} fails on {where}: it scores {_frames(failing, 'or')} no lower than frame 1."


def _frames(steps: Sequence[int], word: str) -> str:
    *rest, last = map(str, steps)
    return f"frames {', '.join(rest)} {word} {last}" if rest else f"frame {last}"


def _on_scores(scale: Scale, nulls: int, outside: int, count: int) -> list[str]:
    found = []
    if not scale.given:
        found.append(
            f"No range was given: gaps are scaled by that of the scores here, {scale.low:.4g} to "
            f"{scale.high:.4g}. Their signs do not depend on it."
        )
    if outside:
        found.append(
            f"{counted(outside, 'score')} of {count:,} {'lies' if outside == 1 else 'lie'} outside "
            f"its {'typical ' * scale.given}range, {scale.low:g} to {scale.high:g}."
        )
    if nulls:
        found.append(f"It gave no score to {counted(nulls, 'frame')} of {count:,}.")
    return found


def _on_extent(
    sources: int, verdict: VerdictWord, failed: int, incomplete: int, doubtful: int
) -> list[str]:
    found = []
    if 0 < sources < FEW_SOURCES:
        found.append(f"This rests on {counted(sources, 'initial image')} only.")
    if verdict == "fails" and incomplete:
        found.append(f"{counted(incomplete, 'pair')} more could not be judged: a score is missing.")
    if doubtful:
        found.append(
            f"Of its {counted(failed, 'failure')} {doubtful} {'is' if doubtful == 1 else 'are'} "
            "where full-reference metrics see no loss since frame 1 either."
        )
    return found


def _on_repeats(gaps: pl.DataFrame, scores: pl.DataFrame) -> list[str]:
    """A sentence where a mean over repeats lacks some: those that broke off may not be alike."""
    planned = scores.group_by("arm", "source").agg(planned=pl.col("repeat").n_unique())
    known = gaps.filter(pl.col("repeats") > 0).join(planned, on=["arm", "source"])
    fewer = len(known.filter(pl.col("repeats") < pl.col("planned")))
    if not fewer:
        return []
    return [
        f"{fewer} of its {counted(len(known), 'mean gap')} {'lacks' if fewer == 1 else 'lack'} a "
        "repeat: a frame or a score is missing there."
    ]


def _on_robustness(
    verdict: VerdictWord, sensitivity: Sensitivity | None, content: Content | None
) -> list[str]:
    found = []
    if verdict == "fully succeeds" and sensitivity and sensitivity.worst:
        first, later = sensitivity.worst
        found.append(
            f"Other steps say otherwise: {sensitivity.failing} of {sensitivity.pairs} choices of "
            f"two steps have a failure, worst {first} and {later} "
            f"({100 * sensitivity.worst_share:.0f} % of pairs)."
        )
    if content and content.drop is not None and 0 < content.drop < content.spread:
        found.append(
            f"Content moves it more than damage: initial images differ by {content.spread:.1f} "
            f"points (sd), the damage takes {content.drop:.1f}."
        )
    if content and content.spikes:
        found.append(
            f"It jumps upwards at {content.spikes} of {counted(content.additions, 'step')} that "
            "add an object."
        )
    return found


def _on_agreement(agreement: Sequence[Agreement]) -> list[str]:
    against = [a.other for a in agreement if a.spearman.high is not None and a.spearman.high < 0]
    if not against:
        return []
    return [f"It ranks frames in the reverse order of {', '.join(against)}."]


def trustworthiness(card: Card) -> tuple[bool, float, float, float, str]:
    """What cards are sorted by: full success first, then by the share of cells that failed."""
    cells = max(card.cells, 1)
    gaps = sum(card.failures_by_step.values())
    return (
        card.verdict == "no data",
        card.failed / cells,
        card.incomplete / cells,
        gaps / cells,
        card.metric,
    )
