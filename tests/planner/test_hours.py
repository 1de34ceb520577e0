"""Estimates and their intervals: known answers."""

from __future__ import annotations

import math

import pytest

from convergebench.planner.hours import Cost, Estimate, Scoring, each, ratio, span, total
from convergebench.planner.scoring import steps_text
from convergebench.scorer import parse_steps


def test_ratio_of_equal_stretches_is_students_t_of_the_mean() -> None:
    # 1, 2, 3 seconds: mean 2, sd 1, standard error 1/√3, t(0.975, 2) = 4.302653
    found = ratio([(1.0, 1), (2.0, 1), (3.0, 1)])
    assert found is not None
    assert found.mean == pytest.approx(2)
    assert found.half == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert found.low == 0.0  # nothing takes less than no time
    assert found.repeats == 3


def test_ratio_weighs_stretches_by_their_scores() -> None:
    # Stretches of different length at one rate say so without any doubt.
    found = ratio([(1.0, 2), (4.0, 8), (2.0, 4)])
    assert found is not None
    assert (found.mean, found.half) == (0.5, 0.0)


def test_one_repeat_has_no_interval() -> None:
    found = ratio([(3.0, 2)])
    assert found is not None
    assert found.mean == 1.5
    assert found.to_dict() == {"mean": 1.5, "low": None, "high": None, "repeats": 1}
    assert ratio([]) is None
    assert ratio([(0.1, 0)]) is None


def test_independent_errors_add_as_squares() -> None:
    found = total([Estimate(1.0, 0.3), Estimate(2.0, 0.4)])
    assert found.mean == pytest.approx(3.0)
    assert found.half == pytest.approx(0.5)
    assert total([]).mean == 0.0


def scoring(*costs: Cost) -> Scoring:
    return Scoring("ray", costs, (64, 64), 0.0, "0,1,5", "as asked")


def test_sums_leave_out_what_was_not_measured_and_keep_devices_apart() -> None:
    told = scoring(
        Cost("a", 10, 5, Estimate(1.0), Estimate(4.0, 0.6), Estimate(2.0, 0.3), 36.0, workers=4),
        Cost("b", 10, 5, Estimate(1.0), Estimate(8.0, 0.8), Estimate(4.0, 0.4), 0.0, workers=2),
        Cost("c", 10, 5, Estimate(1.0), Estimate(7.0), Estimate(1.0), device="gpu", workers=1),
        Cost("d", 90, 5, why="no weights"),
        Cost("(decoding pictures)", 7, 2, Estimate(1.0), Estimate(1.0), metric=False, workers=4),
    )
    assert (told.scores, told.study_scores) == (120, 20)
    assert told.hours().mean == pytest.approx(13)
    assert told.hours().half == pytest.approx(1.0)
    assert told.hours(study=True).mean == pytest.approx(6)
    assert told.hours("gpu").mean == pytest.approx(7)
    # A network that takes much memory has fewer workers, and a GPU is not a core.
    assert told.wall().mean == pytest.approx(4 / 4 + 8 / 2 + 1 / 4 + 0.01)
    assert told.wall().half == pytest.approx(math.hypot(0.6 / 4, 0.8 / 2))
    assert told.wall("gpu").mean == pytest.approx(7)
    text = str(told)
    assert "On 2 to 4 workers of one core each (as asked)" in text
    assert "(as asked): about 7.0 h, for 25% of the scores that were measured." in text
    assert "Not measured, and in no sum: d (90 scores).\nd: no weights\n" in text
    assert "6.0 h (5.5 to 6.5) instead of 13.0 h (12.0 to 14.0) (CPU)" in text
    assert "score --steps 0,1,5." in text


def test_a_share_is_never_rounded_to_all_or_told_of_nothing() -> None:
    most = scoring(
        Cost("a", 9990, 5, Estimate(1.0), Estimate(4.0, 0.6), workers=1),
        Cost("b", 3, 1, why="lost"),
    )
    assert "for more than 99% of the scores that were measured." in str(most)
    none = scoring(
        Cost("b", 3, 1, why="lost"),
        Cost("(decoding pictures)", 7, 2, Estimate(1.0), Estimate(1.0), metric=False, workers=1),
    )
    assert "On 1 worker" not in str(none)


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (Estimate(100.0, 10.0), "100.0 h (90.0 to 110.0)"),
        (Estimate(1.0), "60.0 min"),
        (Estimate(0.01, 0.001), "36.0 s (32.4 to 39.6)"),
        (Estimate(111.1 / 3600, 3.1 / 3600), "1.9 min (1.8 to 1.9)"),
        (Estimate(0.159 / 3600, 0.01 / 3600), "0.16 s (0.15 to 0.17)"),
        (Estimate(1e-6), "< 0.01 s"),
        (Estimate(0.0), "0 s"),
    ],
)
def test_hours_are_told_as_people_say_them(hours: Estimate, text: str) -> None:
    assert span(hours) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (Estimate(12.345, 1.2, 9), "12.3 ± 1.2 s"),
        (Estimate(1234.5, 120.0, 9), "1,234 ± 120 s"),
        (Estimate(0.011, 0.0023, 9), "11.0 ± 2.3 ms"),
        (Estimate(9.36e-06, 2e-07, 9), "9.36 ± 0.20 µs"),
        (Estimate(9.67e-07, 0.0, 9), "0.967 ± 0.0 µs"),
        (Estimate(2.0, 0.0, 1), "2.00 ± ? s"),
        (None, "–"),
    ],
)
def test_seconds_are_told_without_powers_of_ten(seconds: Estimate | None, text: str) -> None:
    assert each(seconds) == text


def test_every_reason_is_told_once_and_weights_are_pulled_together() -> None:
    told = scoring(
        Cost("small", 3, 3, why="came out null: 32 pixels are too few"),
        Cost("lpips", 1, 1, why="long", pull=("lpips-alex",)),
        Cost("fid", 1, 1, why="torch: not installed"),
        Cost("niqe", 1, 1, why="longer", pull=("niqe",)),
        Cost("kid", 1, 1, why="torch: not installed"),
    )
    assert told.to_dict()["notes"][1:5] == [
        "Not measured, and in no sum: small, lpips, fid, niqe, kid (7 scores).",
        "lpips, niqe: weights are not here. Run `convergebench weights pull lpips-alex niqe`, or "
        "name a folder that has them in CONVERGEBENCH_WEIGHTS.",
        "small: came out null: 32 pixels are too few",
        "fid, kid: torch: not installed",
    ]


def test_rows_without_work_are_not_shown() -> None:
    done = scoring(Cost("a", 0, 0), Cost("b", 0, 0))
    assert str(done) == (
        "Scoring with --engine ray: 0 scores to make, 0 known before\n"
        "Nothing is left to score, so nothing was measured."
    )
    assert len(done.to_dict()["metrics"]) == 2
    some = scoring(Cost("a", 0, 0), Cost("b", 5, 5, Estimate(1.0), Estimate(1.0)))
    assert [row[0] for row in some.table.rows] == ["b", "all, CPU"]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([0, 1, 5, 10, 20], "0,1,5,10,20"),
        ([0, 1, 2, 4, 6, 8], "0-2,4-8:2"),
        ([3], "3"),
        ([0, 1, 2, 3], "0-3"),
    ],
)
def test_steps_are_told_as_score_reads_them(steps: list[int], text: str) -> None:
    assert steps_text(steps) == text
    assert parse_steps(text) == steps
