from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.analysis import analyze
from convergebench.analysis.compare import rank
from convergebench.analysis.convergence import convergence, half_life
from convergebench.analysis.pairs import needed_sources
from convergebench.analysis.summaries import chain_summaries
from convergebench.analysis.survival import Survival, survival
from convergebench.metric import MetricSpec
from convergebench.runspec import TRANSPORT
from tests.analysis.handmade import (
    LPIPS,
    MORE_CYCLES,
    PSNR,
    SSIM,
    HandMade,
    curve_table,
)
from tests.support.runs import CYCLES

SHARE = st.floats(0, 1)
CURVE = st.lists(SHARE, max_size=12)
NUMBER = st.floats(allow_nan=False, width=32)


@given(st.sampled_from([PSNR, SSIM, LPIPS]), st.lists(NUMBER | st.none()), st.floats(-300, 2))
def test_convergence_lies_between_0_and_1(
    spec: MetricSpec, values: list[float | None], floor: float
) -> None:
    table = pl.DataFrame(
        {"metric": [spec.name] * len(values), "value": values},
        schema={"metric": pl.String(), "value": pl.Float64()},
    )
    found = convergence(table, {spec.name: floor}, {spec.name: spec})
    for value, c in zip(found["value"], found["c"], strict=True):
        assert (c is None) == (value is None)
        assert c is None or 0 <= c <= 1


@given(CURVE, st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_higher_threshold_is_never_crossed_later(curve: list[float], a: float, b: float) -> None:
    low, high = sorted((a, b))
    (later, fell_low), (sooner, fell_high) = half_life(curve, low), half_life(curve, high)
    assert sooner <= later + 1e-9
    assert fell_high or not fell_low


@given(CURVE, st.floats(0.01, 1))
def test_a_half_life_lies_in_the_round_that_fell(curve: list[float], threshold: float) -> None:
    life, fell = half_life(curve, threshold)
    whole, _ = half_life(curve, threshold, interpolate=False)
    assert 0 <= life <= len(curve)
    if fell:
        assert whole - 1 <= life <= whole
        assert curve[int(whole) - 1] < threshold
        assert all(c >= threshold for c in curve[: int(whole) - 1])
    else:
        assert life == len(curve)
        assert all(c >= threshold for c in curve)


@given(st.lists(SHARE, min_size=1, max_size=12))
def test_an_auc_lies_between_the_least_and_the_greatest(curve: list[float]) -> None:
    (row,) = chain_summaries(curve_table([{"editor": "a", "c": curve}])).to_dicts()
    assert min(curve) - 1e-12 <= row["auc"] <= max(curve) + 1e-12


@given(st.lists(SHARE | st.none() | st.just("-"), min_size=1, max_size=12))
def test_a_chain_with_a_gap_has_no_auc(curve: list[Any]) -> None:
    rows = [{"editor": "a", "c": curve}, {"editor": "full", "c": [1.0] * 12}]
    for row in chain_summaries(curve_table(rows)).filter(pl.col("editor") == "a").to_dicts():
        whole = len(curve) == 12 and not any(c is None or c == "-" for c in curve)
        assert row["complete"] == whole
        assert (row["auc"] is not None) == whole
        assert row["followed"] == len([*curve, None][: first_gap(curve)])


def first_gap(curve: list[Any]) -> int:
    return next((i for i, c in enumerate(curve) if c is None or c == "-"), len(curve))


def boards(least: int, most: int) -> st.SearchStrategy[list[list[float]]]:
    return st.integers(least, most).flatmap(
        lambda sources: st.lists(
            st.lists(SHARE, min_size=sources, max_size=sources), min_size=1, max_size=4
        )
    )


@settings(deadline=None)
@given(boards(needed_sources(5), 14), st.floats(0.001, 1))
def test_an_editor_better_on_every_source_is_first(rows: list[list[float]], by: float) -> None:
    values = {f"e{i}": np.array(row) for i, row in enumerate(rows)}
    best = np.max(np.array(rows), axis=0) + by
    first, *rest = rank(values | {"better": best})
    assert (first.editor, first.best_rank, first.worst_rank) == ("better", 1, 1)
    assert all(r.best_rank > 1 for r in rest)
    # One more editor is more comparisons: what was tied stays so, what was not may become so.
    for before in rank(values):
        (after,) = (r for r in rest if r.editor == before.editor)
        assert after.best_rank <= before.best_rank + 1
        assert after.worst_rank >= before.worst_rank + 1


@settings(deadline=None)
@given(boards(2, 14))
def test_ranks_are_possible(rows: list[list[float]]) -> None:
    ranked = rank({f"e{i}": np.array(row) for i, row in enumerate(rows)})
    assert [r.mean for r in ranked] == sorted((r.mean for r in ranked), reverse=True)
    for r in ranked:
        assert 1 <= r.best_rank <= r.worst_rank <= len(ranked)
        assert r.low is not None
        assert r.high is not None
        assert r.low - 1e-9 <= r.mean <= r.high + 1e-9 or len(rows[0]) > 1
    assert min(r.best_rank for r in ranked) == 1
    assert max(r.worst_rank for r in ranked) == len(ranked)


CHAINS = st.lists(st.tuples(st.integers(0, 40).map(lambda n: n / 4), st.booleans()), min_size=1)


def curve_of(chains: list[tuple[float, bool]]) -> Survival:
    found = survival([time for time, _ in chains], [fell for _, fell in chains])
    assert found is not None
    return found


@settings(deadline=None)
@given(CHAINS)
def test_survival_never_rises(chains: list[tuple[float, bool]]) -> None:
    found = curve_of(chains)
    shares = [1.0, *found.share]
    assert all(later < sooner for sooner, later in pairwise(shares))
    assert list(found.times) == sorted({time for time, fell in chains if fell})
    assert found.restricted_mean is not None
    assert 0 <= found.restricted_mean <= found.horizon + 1e-9
    assert found.censored == sum(not fell for _, fell in chains)


@settings(deadline=None)
@given(CHAINS)
def test_survival_is_a_product_of_shares(chains: list[tuple[float, bool]]) -> None:
    share = 1.0
    expected = []
    for time in sorted({time for time, fell in chains if fell}):
        at_risk = sum(t >= time for t, _ in chains)
        share *= 1 - sum(t == time and fell for t, fell in chains) / at_risk
        expected.append(share)
    assert curve_of(chains).share == pytest.approx(expected)


@settings(deadline=None)
@given(CHAINS)
def test_without_censoring_survival_is_the_share_still_up(chains: list[tuple[float, bool]]) -> None:
    times = [time for time, _ in chains]
    found = curve_of([(time, True) for time in times])
    up = [sum(t > time for t in times) / len(times) for time in found.times]
    assert found.share == pytest.approx(up)
    assert found.median == sorted(times)[(len(times) - 1) // 2]
    assert found.restricted_mean == pytest.approx(sum(times) / len(times))


OUTCOMES = st.sampled_from([None, "refused", "failed", "no-image", "malformed", "over-budget"])
EDITORS = ("lab:a", "lab/b,size=1K", "ref:identity", TRANSPORT)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_any_run_can_be_analysed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sources = data.draw(st.integers(1, 3))
    made = HandMade(tmp_path_factory.mktemp("any"), sources, CYCLES + MORE_CYCLES)
    picks = st.tuples(
        st.sampled_from([f"s{i}" for i in range(sources)]),
        st.sampled_from(["copy", "ball", "grey", "more", "rebuild", "repair"]),
        st.sampled_from(EDITORS),
        st.integers(0, 1),
    )
    for source, cycle, editor, repeat in data.draw(st.lists(picks, max_size=6, unique=True)):
        length = data.draw(st.integers(0, 4))
        chain = made.chain(source, cycle, editor, length, data.draw(OUTCOMES), repeat=repeat)
        for step in range(1, length + 1):
            for metric in ("psnr", "ssim"):
                for against in ("home", "previous"):
                    value = data.draw(st.sampled_from([None, 0.0, 0.5, 1.0, 30.0, math.inf]))
                    if data.draw(st.integers(0, 4)):
                        made.score(chain.key.id, step, metric, value, against=against)
    if data.draw(st.booleans()):
        made.floors()
    if data.draw(st.booleans()):
        plan = {"editors": ["lab:a"], "rounds": data.draw(st.integers(1, 3))}
        made.store.write_json("spec.json", plan)
    path = made.done()
    if not made.rows and any(chain.length for chain in made.store.chains()):
        return
    found = analyze(path)
    assert json.loads((path / "findings.json").read_text()) == found.model_dump(mode="json")
    assert str(found)
    assert found.notes
    for f in found.findings:
        assert min(f.n, f.missing, f.failed, f.infinite) >= 0, f
        assert f.estimate is None or f.n > 0, f
        if f.low is not None and f.high is not None:
            assert f.low <= f.high, f
    for s in found.standings:
        assert (s.best_rank is None) == bool(s.why_unranked), s
        assert 0 <= s.complete <= s.chains, s
        assert s.score is None or 0 <= s.score <= 1, s
