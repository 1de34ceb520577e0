from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from convergebench.analysis import Finding, Findings, analyze
from convergebench.analysis.resampling import mean_interval
from convergebench.chain import Settings
from tests.analysis.handmade import HandMade, ssim_at
from tests.analysis.test_study import TINT
from tests.support.runs import CYCLES

HOT = Settings(temperature=1.0)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    made = HandMade(tmp_path_factory.mktemp("groups"), 3, CYCLES + TINT)
    for i, source in enumerate(("s0", "s1", "s2")):
        made.walk(source, "copy", "a", (0.9 - i / 10, 0.7 - i / 10))
        made.walk(source, "tint", "a", (0.4, 0.2), every=2)
    made.walk("s0", "ball", "a", (0.6, 0.4))
    made.walk("s0", "ball", "a", (0.8, 0.6), settings=HOT)
    made.walk("s1", "ball", "a", (0.6,), ended="refused")
    made.floors()
    return analyze(made.done())


@pytest.fixture(scope="module")
def numbers(found: Findings) -> dict[str, Finding]:
    return {f.id: f for f in found.findings}


def test_a_group_is_a_mean_over_its_sources(numbers: dict[str, Finding]) -> None:
    mine = numbers["by-cycle/copy@1/ssim/a"]
    assert (mine.group, mine.metric, mine.editor) == ("cycle:copy@1", "ssim", "a")
    assert mine.estimate == pytest.approx(0.7)
    assert (mine.low, mine.high) == pytest.approx(mean_interval(np.array([0.8, 0.7, 0.6])))
    assert (mine.n, mine.missing, mine.failed, mine.refused, mine.note) == (3, 0, 0, 0, "")


def test_the_score_is_a_metric_of_groups(numbers: dict[str, Finding]) -> None:
    assert numbers["by-cycle/copy@1/score/a"].estimate == pytest.approx(0.7)


def test_what_is_missing_is_counted_and_one_source_has_no_interval(
    numbers: dict[str, Finding],
) -> None:
    ball = numbers["by-cycle/ball@1/psnr/a"]
    assert ball.estimate == pytest.approx((0.5 + 0.7) / 2)
    assert (ball.low, ball.high) == (None, None)
    assert (ball.n, ball.missing, ball.failed, ball.refused) == (2, 1, 1, 1)


def test_partially_reversible_cycles_are_in_and_said(numbers: dict[str, Finding]) -> None:
    colour = numbers["by-edit/colour/score/a"]
    assert colour.estimate == pytest.approx(0.3)
    assert colour.note == "3 chains of cycles that cannot be fully undone among them"
    assert numbers["by-edit/replicate/score/a"].note == ""


def test_settings_are_groups_where_there_are_several(numbers: dict[str, Finding]) -> None:
    hot = numbers["by-settings/temperature 1.0/psnr/a"]
    assert (hot.group, hot.n) == ("settings:temperature 1.0", 1)
    assert hot.estimate == pytest.approx(0.7)
    assert "by-settings/defaults/psnr/a" in numbers
    assert not any(f.startswith(("by-session", "by-image")) for f in numbers)


def test_half_lives_by_group(numbers: dict[str, Finding]) -> None:
    life = numbers["life-by-cycle/tint@1/psnr/a"]
    assert life.estimate == pytest.approx(0.5 / 0.6)
    assert (life.n, life.censored) == (3, 0)
    assert life.low == pytest.approx(0.5 / 0.6)
    copy = numbers["life-by-cycle/copy@1/psnr/a"]
    assert (copy.estimate, copy.n, copy.censored) == (None, 3, 3)
    assert (copy.low, copy.high, copy.note) == (2, None, "half-life > 2")
    ball = numbers["life-by-cycle/ball@1/psnr/a"]
    # Fell at 1.5, censored at 2 and, refused, at 1.
    assert ball.estimate == pytest.approx(1.5)
    assert (ball.n, ball.missing, ball.censored) == (3, 0, 2)


def test_curves_by_group(numbers: dict[str, Finding]) -> None:
    point = numbers["group-convergence/edit:replicate/ssim/a/1"]
    assert point.estimate == pytest.approx(0.8)
    assert (point.round, point.group, point.n) == (1, "edit:replicate", 3)
    assert point.low is not None
    late = numbers["group-convergence/edit:round-trip/ssim/a/2"]
    assert (late.n, late.missing, late.failed, late.refused) == (2, 1, 1, 1)


def test_long_curves_are_thinned_and_keep_their_end(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", np.linspace(0.9, 0.1, 60).tolist(), metrics=["ssim"])
    made.floors(["ssim"])
    found = analyze(made.done())
    rounds = [f.round for f in found.findings if f.kind == "group-convergence"]
    assert rounds == [*range(1, 60, 3), 60]
    whole = [f for f in found.findings if f.id.startswith("value/ssim/a/")]
    assert len(whole) == 60
    assert whole[-1].estimate == pytest.approx(ssim_at(0.1))


AGAIN = """
[[cycle]]
name = "again"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy it once more."
"""


def test_a_thinned_round_is_over_all_chains_of_the_group(tmp_path: Path) -> None:
    made = HandMade(tmp_path, cycles=CYCLES + AGAIN)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.9,) * 30, metrics=["ssim"])
        made.walk(source, "again", "a", (0.3,) * 10, metrics=["ssim"])
    made.floors(["ssim"])
    found = analyze(made.done()).findings
    mine = {f.round: f for f in found if f.id.startswith("group-convergence/edit:replicate/ssim/")}
    assert list(mine) == [*range(1, 10, 2), 10, *range(11, 30, 2), 30]
    assert mine[10].estimate == pytest.approx(0.6), "not of the short one alone"
    assert mine[11].estimate == pytest.approx(0.9)
    assert (mine[10].n, mine[11].n) == (4, 2)


def test_points_count_each_source_once_as_aucs_do(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "a", (0.9, 0.9))
    for repeat in range(3):
        made.walk("s1", "copy", "a", (0.3, 0.3), repeat=repeat)
    made.floors()
    found = {f.id: f for f in analyze(made.done()).findings}
    for name in ("auc/ssim/a", "convergence/ssim/a/1", "group-convergence/edit:replicate/ssim/a/1"):
        assert found[name].estimate == pytest.approx(0.6), name
        assert found[name].n == 4, name
    assert found["value/ssim/a/2"].estimate == pytest.approx((ssim_at(0.9) + ssim_at(0.3)) / 2)
    point, auc = found["convergence/ssim/a/1"], found["auc/ssim/a"]
    assert (point.low, point.high) == pytest.approx((auc.low, auc.high))


def test_a_chain_that_is_not_planned_to_come_home_is_not_missing(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.9, 0.8))
        made.chain(source, "ball", "a", 1)  # half a round, and all that was asked for
    made.chain("s0", "copy", "b", 0, "refused")
    made.chain("s0", "ball", "b", 0, "refused")
    made.floors()
    result = analyze(made.done())
    found = {f.id: f for f in result.findings}
    for name in ("auc/ssim/a", "half-life/ssim/a", "score/a"):
        assert (found[name].n, found[name].missing) == (2, 0), name
    assert "by-cycle/ball@1/ssim/a" not in found
    lines = {s.editor: s for s in result.standings}
    assert (lines["a"].chains, lines["a"].unmeasurable) == (2, 2)
    assert (lines["b"].chains, lines["b"].failed) == (2, 2), "who failed would have come home"
