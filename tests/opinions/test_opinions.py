"""Mean opinions, their intervals, labels, and the whole analysis."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from convergebench import opinions
from convergebench.errors import InputError
from convergebench.opinions import means
from convergebench.opinions.answers import checked
from convergebench.opinions.matrix import matrix_of
from tests.opinions.material import (
    FILES,
    answers_from,
    choices_from,
    corrupted,
    raw_scores,
    simulated,
)


def test_a_stimulus_has_students_interval_over_its_raters() -> None:
    values = np.array([[3.0, 4, 5, 4, 3], [1, 2, 1, 2, 2]])
    for one, line in zip(
        means.stimulus_means(matrix_of(answers_from(values), "quality")), values, strict=True
    ):
        low, high = stats.t.interval(0.95, 4, line.mean(), stats.sem(line))
        assert (one.mean, one.low, one.high) == pytest.approx((line.mean(), low, high))
        assert one.sd == pytest.approx(line.std(ddof=1))


def test_a_method_is_the_mean_over_pictures_not_over_answers() -> None:
    """One picture has a single answer, the other three; both weigh alike."""
    values = np.array([[1.0, np.nan, np.nan], [4, 4, 4]])
    (told,) = means.method_means(matrix_of(answers_from(values), "quality"))
    assert told.mean == 2.5
    assert (told.answers, told.raters, told.images) == (4, 3, 2)


def test_over_all_stimuli_every_stimulus_weighs_alike_in_the_interval_too() -> None:
    """One picture has eleven stimuli of 5, the other one of 1."""
    values = np.array([[5.0, 5]] * 11 + [[1.0, 1]])
    images = [*(["many"] * 11), "one"]
    answers = answers_from(values).with_columns(
        image=pl.col("chain").replace_strict({f"c{at}": name for at, name in enumerate(images)})
    )
    matrix = matrix_of(answers, "quality")
    assert means.overall_mean(matrix).mean == pytest.approx(56 / 12)
    drawn = means._resampled(matrix, [np.arange(12)], alike=False)
    assert set(np.round(drawn[0], 9)) == {1.0, round(56 / 12, 9), 5.0}


def test_methods_are_ranked_and_their_differences_told() -> None:
    told = opinions.analyse(simulated(), title="made up")
    assert told.quality is not None
    assert [one.of for one in told.quality.methods] == ["m4", "m3", "m2", "m1", "m0"]
    for one in told.quality.methods:
        assert one.low is not None
        assert one.mean is not None
        assert one.high is not None
        assert one.low < one.mean < one.high
    far = next(d for d in told.quality.differences if (d.one, d.other) == ("m4", "m0"))
    assert not far.tied
    assert far.low is not None
    assert far.low > 2


def test_methods_that_are_the_same_are_tied() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(np.round(rng.uniform(1, 5, (8, 6))), 2, axis=0)  # m0 and m1 alike
    told = means.differences(matrix_of(answers_from(values, methods=2), "quality"))
    assert [(d.difference, d.tied) for d in told] == [(0.0, True)]


def test_the_interval_of_a_method_holds_its_truth() -> None:
    """100 studies of 12 raters and 12 pictures: 95 % intervals hold the truth nearly always."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(100):
        values = (
            3
            + rng.normal(0, 0.5, (12, 1))
            + rng.normal(0, 0.5, (1, 12))
            + rng.normal(0, 0.7, (12, 12))
        )
        (one,) = means.method_means(matrix_of(answers_from(values), "quality"))
        assert one.low is not None
        assert one.high is not None
        held += one.low <= 3 <= one.high
    assert 90 <= held <= 100


def test_distributions_count_every_score() -> None:
    values = np.array([[1.0, 1, 5], [2, 2, np.nan]])
    told = means.distributions(matrix_of(answers_from(values, methods=2), "quality"))
    assert [(d.method, d.scores, d.counts) for d in told] == [
        ("m0", (1.0, 2.0, 5.0), (2, 0, 1)),
        ("m1", (1.0, 2.0, 5.0), (0, 2, 0)),
    ]


@pytest.mark.shared
def test_screening_is_told_with_and_without(shared: Path, tmp_path: Path) -> None:
    values = corrupted(raw_scores(shared, "vqeg"))
    told = opinions.analyse(answers_from(values))
    assert told.quality is not None
    assert told.everyone is not None
    left = [one.rater for one in told.left_out]
    assert left == ["r1", "r2"]
    assert told.everyone.overall.mean == pytest.approx(values.mean())
    stay = [at for at in range(values.shape[1]) if at not in (1, 2)]
    assert told.quality.overall.mean == pytest.approx(values[:, stay].mean())
    assert "r1     BT.500: apart from the others" in str(told)
    assert "Left out of the results above: 2 of 24 raters." in str(told)
    all_in = opinions.analyse(answers_from(values), keep_outliers=True)
    assert all_in.quality is not None
    assert all_in.quality.overall.mean == pytest.approx(values.mean())
    assert "They are in the results above all the same." in str(all_in)


@pytest.mark.shared
def test_the_whole_analysis_of_nflx(shared: Path) -> None:
    told = opinions.analyse(opinions.read_answers(shared / "data" / "ratings" / FILES["nflx"]))
    assert told.quality is not None
    assert told.quality.overall.mean == pytest.approx(3.544790652385589, abs=1e-12)
    assert (told.quality.overall.raters, told.quality.overall.images) == (26, 9)
    assert len(told.quality.stimuli) == 79
    assert told.quality.methods == ()
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["answers"] == 2054


def test_labels_are_counted_by_majority_and_agreement_is_told() -> None:
    votes = {"a": [1, 1, 1, 0], "b": [1, 1, 0, 0], "c": [0, 0, 0, 0], "d": [1, 0, 0, 0]}
    rows = [
        {"rater": f"r{at}", "question": "infidelity", "chain": chain, "image": chain,
         "method": "m", "value": float(vote)}
        for chain, mine in votes.items()
        for at, vote in enumerate(mine)
    ]  # fmt: skip
    told = opinions.analyse(checked(pl.DataFrame(rows)))
    (count,) = told.labels
    assert (count.stimuli, count.cases, count.split, count.ever) == (4, 1, 1, 3)
    assert (count.yes, count.votes, count.share) == (6, 16, 0.375)
    (agreed,) = told.label_agreement
    assert agreed.same == pytest.approx((3 + 2 + 6 + 3) / 24)
    assert agreed.alpha is not None
    assert "infidelity: Krippendorff's α" in str(told)


def test_labels_say_how_to_count_raters_that_were_left_out() -> None:
    given = {"question": "infidelity", "chain": "a", "image": "a", "method": "m", "value": 1.0}
    rows = [{**given, "rater": f"r{at}", "kind": "item", "passed": None} for at in range(3)]
    rows.append({**given, "rater": "r0", "kind": "attention", "passed": False})
    told = str(opinions.analyse(checked(pl.DataFrame(rows))))
    assert "1 rater left out (r0); --keep-outliers counts everybody." in told


def test_nothing_to_analyse_is_told() -> None:
    answers = simulated(2, 2, 2).with_columns(kind=pl.lit("practice"))
    with pytest.raises(InputError, match="there is no answer to analyse"):
        opinions.analyse(answers)


def test_who_has_only_practised_is_no_rater() -> None:
    answers = simulated(3, 4, 3)
    last = pl.col("rater") == answers["rater"].max()
    kind = pl.when(last).then(pl.lit("practice")).otherwise(pl.col("kind"))
    told = opinions.analyse(answers.with_columns(kind=kind))
    assert "Nothing speaks against any of 2 raters." in str(told)


def test_live_agreement_is_cheap_and_plain() -> None:
    answers = pl.concat([simulated(), choices_from(np.array([[0, 8], [3, 0]]))])
    begun = time.perf_counter()
    told = opinions.agreement(answers)
    assert time.perf_counter() - begun < 20
    assert set(json.loads(json.dumps(told, allow_nan=False))) == {"quality", "preference"}
    assert told["quality"]["answers"] == 2000
    assert 0.5 < told["quality"]["alpha"] < 1
    assert opinions.agreement(answers.head(0)) == {}


def test_one_rater_and_one_picture_have_means_and_no_intervals() -> None:
    told = opinions.analyse(answers_from(np.array([[3.0]])))
    assert told.quality is not None
    (one,) = told.quality.methods
    assert (one.mean, one.low, one.high, one.sd) == (3.0, None, None, None)
    assert all(r.value is None for r in told.quality.reliability)
    assert "ICC(1,1), ICC(2,1)" in str(told)


def test_twenty_raters_of_twenty_pictures_of_five_methods_are_soon_done() -> None:
    answers = simulated()
    opinions.analyse(answers)
    begun = time.perf_counter()
    opinions.analyse(answers)
    assert time.perf_counter() - begun < 40  # under a second on an idle machine


def test_it_shows_itself_in_a_notebook() -> None:
    assert opinions.analyse(simulated(4, 4, 2))._repr_html_().startswith("<table>")


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_answers_is_nothing(seed: int) -> None:
    answers = simulated(4, 3, 2)
    other = answers.sample(fraction=1, shuffle=True, seed=seed)
    one, two = matrix_of(answers, "quality"), matrix_of(other, "quality")
    assert (one.stimuli, one.raters) == (two.stimuli, two.raters)
    assert np.array_equal(one.values, two.values)
    assert opinions.analyse(answers) == opinions.analyse(other)
