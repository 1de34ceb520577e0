"""From answers to opinions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from convergebench.analysis.resampling import FEW, resampling_weights
from convergebench.errors import InputError
from convergebench.opinions import means
from convergebench.opinions.against import correlations
from convergebench.opinions.answers import LABELS, PREFERENCE, QUALITY, checked, counting
from convergebench.opinions.choices import choices
from convergebench.opinions.labels import label_agreement, label_counts
from convergebench.opinions.matrix import Matrix, matrix_of
from convergebench.opinions.preferences import preferences
from convergebench.opinions.reliability import (
    Level,
    Reliability,
    alpha_interval,
    iccs,
    kendall_w,
    krippendorff_alpha,
)
from convergebench.opinions.result import Opinions, Quality
from convergebench.opinions.screening import ANSWER, Rater, kept, raters
from convergebench.wording import counted, shown


def analyse(
    answers: pl.DataFrame,
    scores: pl.DataFrame | None = None,
    *,
    title: str = "",
    keep_outliers: bool = False,
) -> Opinions:
    """All statistics of ratings.

    Args:
        answers: A table of answers (`opinions.answers.SCHEMA`).
        scores: A run's score table, to compare metrics with people.
        title: What it is called; the studies' names by default.
        keep_outliers: Whether raters that something speaks against take part all the same. The
            results of everyone are always told beside the others.

    Raises:
        InputError: There is no answer that counts.
    """
    answers = _apart(checked(answers))
    earnest = answers.filter((pl.col("kind") == "item") & pl.col("value").is_not_null())
    if earnest.is_empty():
        raise InputError(
            "there is no answer to analyse: practice and attention items do not count, and "
            "nothing else was answered. Give participants their links, which `rate create` wrote "
            "into links.csv, and serve the study with: convergebench rate serve STUDY"
        )
    everyone = matrix_of(answers, QUALITY)
    known = raters(answers, everyone)
    names = {one.rater for one in known} if keep_outliers else kept(known)
    mine = answers.filter(pl.col("rater").is_in(sorted(names)))
    quality = quality_of(everyone.of(names)) if everyone.stimuli else None
    same = len(names) == len(known)
    whole = quality if same or quality is None else quality_of(everyone)
    chosen = preferences(mine)
    studies = tuple(earnest["study"].unique(maintain_order=True))
    return Opinions(
        title=title or shown(filter(None, studies)) or "ratings",
        studies=studies,
        designs=tuple(d for d in earnest["design"].unique(maintain_order=True) if d),
        answers=given(earnest),
        raters=known,
        screened=not keep_outliers,
        quality=quality,
        everyone=whole,
        preferences=chosen,
        everyone_preferences=chosen if same else preferences(answers),
        labels=label_counts(mine),
        label_agreement=label_agreement(mine),
        correlations=correlations(scores, quality.stimuli)
        if scores is not None and quality
        else (),
        choices=choices(scores, mine) if scores is not None else (),
        notes=tuple(_notes(answers, known, names, keep_outliers=keep_outliers)),
    )


def _apart(answers: pl.DataFrame) -> pl.DataFrame:
    """Raters of several studies under names of their own: two studies' p01 are two people."""
    if answers["study"].n_unique() < 2:
        return answers
    return answers.with_columns(rater=pl.col("study") + pl.lit(":") + pl.col("rater"))


def given(answers: pl.DataFrame) -> int:
    """How many answers these rows are: the two sides of a pair are one."""
    return int(answers.select(pl.struct(ANSWER).n_unique()).item())


def quality_of(matrix: Matrix) -> Quality:
    """The statistics of scores on a scale."""
    return Quality(
        overall=means.overall_mean(matrix),
        methods=means.method_means(matrix),
        images=means.image_means(matrix),
        stimuli=means.stimulus_means(matrix),
        differences=means.differences(matrix),
        distributions=means.distributions(matrix),
        reliability=reliability(matrix),
        raters=matrix.raters,
    )


def reliability(matrix: Matrix) -> tuple[Reliability, ...]:
    """How far raters agree, by every coefficient."""
    place = {name: at for at, name in enumerate(matrix.image_names())}
    groups = np.array([place[name] for name in matrix.images], dtype=np.intp)
    found = []
    size = {"stimuli": len(matrix.stimuli), "raters": len(matrix.raters)}
    levels: tuple[tuple[Level, str], ...] = (
        ("interval", "distances between scores count"),
        ("ordinal", "only the order of scores counts"),
        ("nominal", "only equal scores agree"),
    )
    for level, words in levels:
        value = krippendorff_alpha(matrix.values, level)
        low, high = None, None
        if value is not None and len(place) >= FEW:
            weights = resampling_weights(len(place))
            low, high = alpha_interval(matrix.values, level, groups, weights)
        note = "" if value is not None else "all scores are the same, or nobody shared a stimulus"
        found.append(
            Reliability(f"α {level}", f"Krippendorff's α, {words}", value, low, high,
                        note=note, **size)
        )  # fmt: skip
    w = kendall_w(matrix.values)
    note = "" if w is not None else "needs two raters and two stimuli that all of them rated"
    found += iccs(matrix.values)
    found.append(Reliability("W", "Kendall's concordance of ranks", w, note=note, **size))
    return tuple(found)


def agreement(answers: pl.DataFrame) -> dict[str, Any]:
    """How far raters agree so far: cheap, without intervals, for a page that follows a study."""
    answers = checked(answers)
    found: dict[str, Any] = {}
    for question in (QUALITY, *LABELS):
        matrix = matrix_of(answers, question)
        if not matrix.stimuli:
            continue
        level: Level = "interval" if question == QUALITY else "nominal"
        found[question] = {
            "alpha": krippendorff_alpha(matrix.values, level),
            "level": level,
            "stimuli": len(matrix.stimuli),
            "raters": len(matrix.raters),
            "answers": matrix.answers,
        }
    pairs = _same_choice(answers)
    if pairs is not None:
        found[PREFERENCE] = pairs
    return found


def _same_choice(answers: pl.DataFrame) -> dict[str, Any] | None:
    """α (nominal) over pairs of frames; a rater's choice is which of the two, or neither."""
    from convergebench.opinions.preferences import comparisons

    table = comparisons(answers)
    if table.is_empty():
        return None
    wide = (
        table.group_by("first", "second", "step", "rater", maintain_order=True)
        .agg(pl.col("value").first())
        .pivot("rater", index=["first", "second", "step"], values="value")
        .drop("first", "second", "step")
    )
    values = wide.cast(pl.Float64()).fill_null(float("nan")).to_numpy()
    return {
        "alpha": krippendorff_alpha(values, "nominal"),
        "level": "nominal",
        "stimuli": wide.height,
        "raters": wide.width,
        "answers": table.height,
    }


def _notes(
    answers: pl.DataFrame, known: tuple[Rater, ...], names: set[str], *, keep_outliers: bool
) -> list[str]:
    notes = []
    if all(one.kept for one in known):
        heard = sum(one.answers > 0 for one in known)  # others have only practised
        notes.append(f"Nothing speaks against any of {counted(heard, 'rater')}.")
    against = [one for one in known if not one.kept]
    if against and len(names) == len(known) and not keep_outliers:
        notes.append("Something speaks against every rater, so nobody was left out.")
    elif against and not keep_outliers:
        scored = (answers["question"] == QUALITY).any()  # only that table has the column
        everybody = "`with all raters` has" if scored else "--keep-outliers counts"
        notes.append(
            f"{counted(len(against), 'rater')} left out ({shown(r.rater for r in against)}); "
            f"{everybody} everybody."
        )
    notes += _scales(answers)
    empty = answers.filter((pl.col("kind") == "item") & pl.col("value").is_null()).height
    if empty:
        notes.append(f"{counted(empty, 'answer')} without a value: missing, not zero.")
    again = [one for one in known if one.repeats]
    if again:
        error = np.mean([one.repeat_error for one in again if one.repeat_error is not None])
        notes.append(
            f"{counted(sum(one.repeats for one in again), 'repeated answer')}: the "
            f"second answer differs by {error:.2f} on average; it is in no mean."
        )
    return notes


def _scales(answers: pl.DataFrame) -> list[str]:
    """A word where scores of several studies are taken together: nobody knows their scales."""
    ranges = (
        counting(answers, QUALITY)
        .group_by("study", maintain_order=True)
        .agg(low=pl.col("value").min(), high=pl.col("value").max())
    )
    if ranges.height < 2:
        return []
    told = shown(f"{study} ({low:g} to {high:g})" for study, low, high in ranges.iter_rows())
    return [
        f"Scores of {ranges.height} studies are taken together as they are: {told}. Where scales "
        "differ, analyse each study alone."
    ]
