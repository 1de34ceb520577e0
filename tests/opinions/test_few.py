"""Few raters, few pictures, and answers that tell nothing: what must not look sure."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from convergebench import opinions
from convergebench.errors import InputError
from convergebench.opinions import means
from convergebench.opinions.answers import checked
from convergebench.opinions.matrix import matrix_of
from convergebench.opinions.preferences import preferences
from tests.opinions.material import answers_from


@pytest.mark.parametrize("pictures", [2, 3])
def test_few_pictures_do_not_tell_methods_apart_that_are_alike(pictures: int) -> None:
    # What a picture does to a method is the greater part; raters nearly agree on it.
    rng = np.random.default_rng(5)
    holds = apart = 0
    for _ in range(60):
        taste = rng.normal(0, 1, (pictures, 2))
        values = (3 + taste).reshape(-1, 1) + rng.normal(0, 0.3, (2 * pictures, 12))
        matrix = matrix_of(answers_from(values, methods=2), "quality")
        (found,) = means.differences(matrix)
        assert found.low is not None
        assert found.high is not None
        holds += found.low <= 0 <= found.high
        apart += not found.tied
    assert holds >= 54
    assert apart <= 6


def test_a_method_with_two_pictures_of_many_has_the_interval_of_two() -> None:
    rng = np.random.default_rng(6)
    values = 3 + rng.normal(0, 1, (24, 1)) + rng.normal(0, 0.1, (24, 10))
    table = answers_from(values, methods=2)
    rare = table.filter((pl.col("method") == "m0") | pl.col("image").is_in(["i0", "i1"]))
    found = {one.of: one for one in means.method_means(matrix_of(rare, "quality"))}
    assert (found["m0"].images, found["m1"].images) == (12, 2)
    width = {name: (one.high or 0) - (one.low or 0) for name, one in found.items()}
    assert width["m1"] > 3 * width["m0"]


def _pairs(value: float, couples: list[tuple[str, str]]) -> pl.DataFrame:
    return checked(
        pl.DataFrame(
            [
                {
                    "study": "s", "rater": f"r{r}", "question": "preference", "image": f"i{i}",
                    "order": 10 * i + at, "method": a, "other_method": b, "chain": f"c{i}{a}",
                    "other_chain": f"c{i}{b}", "value": value,
                }
                for r in range(7)
                for i in range(7)
                for at, (a, b) in enumerate(couples)
            ]
        )
    )  # fmt: skip


@pytest.mark.parametrize("value", [1.0, 0.5])
def test_resamples_that_are_all_alike_are_no_certainty(value: float) -> None:
    found = preferences(_pairs(value, [("a", "b"), ("b", "c"), ("a", "c")]))
    assert found is not None
    for one in found.strengths:
        assert one.low is not None
        assert one.high is not None
        assert one.low < one.theta - 0.1
        assert one.high > one.theta + 0.1


def test_choices_and_labels_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"not 1 .preferred., 0 or 0.5"):
        _pairs(0.3, [("a", "b")])
    with pytest.raises(InputError, match=r"2 labels with a value that is not 1 .yes. or 0 .no., "):
        answers_from(np.array([[1.0, 2.0], [0.5, 0.0]]), question="infidelity")
    missing = answers_from(np.array([[1.0, 0.0]]), question="infidelity").with_columns(
        value=pl.Series([1.0, math.nan])
    )
    assert checked(missing)["value"].to_list() == [1.0, None]


def test_scores_of_several_studies_are_said_to_be_mixed() -> None:
    one = answers_from(np.array([[1.0, 5.0], [2.0, 4.0]]))
    other = answers_from(np.array([[10.0, 90.0], [20.0, 80.0]]), study="t")
    notes = " ".join(opinions.analyse(pl.concat([one, other])).notes)
    assert "Scores of 2 studies are taken together as they are: s (1 to 5), t (10 to 90)" in notes
    assert "taken together" not in " ".join(opinions.analyse(one).notes)


def test_a_method_without_a_finite_score_is_named_over_methods() -> None:
    values = np.array([[m + i / 7 + r / 9 for r in range(3)] for i in range(4) for m in range(5)])
    answers = answers_from(values, methods=5)
    scores = pl.DataFrame(
        [
            {
                "chain": f"c{s}", "step": 1, "metric": metric, "version": "1", "against": "home",
                "where": "all", "value": value, "note": None,
            }
            for s in range(20)
            for metric, value in (
                ("psnr", math.inf if s % 5 == 4 else 20.0 + s % 5),
                ("ssim", math.nan if s < 5 else float(s % 5)),
            )
        ],
        schema_overrides={"step": pl.Int32(), "note": pl.String()},
    )  # fmt: skip
    found = {(c.metric, c.level): c for c in opinions.analyse(answers, scores).correlations}
    over = found["psnr", "method"]
    assert (over.n, over.note) == (4, "without m4, which has no finite score")
    assert found["psnr", "stimulus"].infinite == 4
    # Not a number is no score: missing, and not infinite.
    assert (found["ssim", "stimulus"].missing, found["ssim", "stimulus"].infinite) == (5, 0)


@pytest.mark.parametrize("pictures", [5, 6])
def test_agreement_has_an_interval_from_six_pictures_on(pictures: int) -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 6, (5 * pictures, 4)).astype(float)
    scores = pl.DataFrame(
        [
            {
                "chain": f"c{s}",
                "step": 1,
                "metric": "ssim",
                "version": "1",
                "against": "home",
                "where": "all",
                "value": float(rng.normal()),
                "note": None,
            }
            for s in range(len(values))
        ],
        schema_overrides={"step": pl.Int32(), "note": pl.String()},
    )
    found = opinions.analyse(answers_from(values, methods=5), scores)
    assert found.quality is not None
    alpha = found.quality.reliability[0]
    assert alpha.value is not None
    lows = [alpha.low, *(c.srcc.low for c in found.correlations)]
    assert [low is not None for low in lows] == [pictures == 6] * 3
