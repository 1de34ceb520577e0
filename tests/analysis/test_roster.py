from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.analysis.roster import chain_table, expected, home_scores, homecomings
from convergebench.chain import Chain, Settings
from convergebench.gathering import Plan
from convergebench.runspec import RunSpec
from convergebench.suite import Suite, load_suite
from tests.analysis.handmade import (
    CLIP,
    MORE_CYCLES,
    NIQE,
    PSNR,
    SPECS,
    SSIM,
    chain_of,
    score_rows,
)
from tests.support.runs import CYCLES, write_suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(write_suite(tmp_path / "suite", cycles=CYCLES + MORE_CYCLES))


def planned(chains: list[Chain], suite: Suite, spec: RunSpec) -> pl.DataFrame:
    return chain_table(chains, suite, Plan.of(spec, chains, suite))


def counted(chain: Chain, suite: Suite) -> list[tuple[int, int]]:
    return list(homecomings([chain], suite).select("step", "n").iter_rows())


@pytest.mark.parametrize(
    ("cycle", "length", "expected"),
    [
        ("ball", 6, [(2, 1), (4, 2), (6, 3)]),
        ("ball", 5, [(2, 1), (4, 2)]),
        ("copy", 3, [(1, 1), (2, 2), (3, 3)]),
        # Grey home at odd frames, the source at even ones: every frame is a homecoming.
        ("grey", 4, [(2, 1), (4, 2)]),
        ("more", 4, []),
        ("rebuild", 7, [(3, 1), (6, 2)]),
        ("repair", 2, []),
        ("copy", 0, []),
    ],
)
def test_homecomings_are_counted(
    suite: Suite, cycle: str, length: int, expected: list[tuple[int, int]]
) -> None:
    assert counted(chain_of("s0", cycle, "a", length), suite) == expected


def test_a_restored_picture_comes_home_where_there_is_a_truth(suite: Suite) -> None:
    assert counted(chain_of("s0", "repair", "a", 2, truth=True), suite) == [(1, 1), (2, 2)]


def test_home_scores_count_homecomings(suite: Suite) -> None:
    trip, copy = chain_of("s0", "ball", "a", 4), chain_of("s0", "copy", "b", 2)
    rows = [(trip.key.id, step, "ssim", "1", "home", "all", step / 10) for step in (2, 4)]
    rows += [(copy.key.id, step, "ssim", "1", "home", "all", step / 10) for step in (1, 2)]
    found = home_scores(score_rows(rows), [trip, copy], suite, SPECS)
    assert found.select("editor", "cycle", "step", "n", "value").rows() == [
        ("a", "ball@1", 2, 1, 0.2),
        ("a", "ball@1", 4, 2, 0.4),
        ("b", "copy@1", 1, 1, 0.1),
        ("b", "copy@1", 2, 2, 0.2),
    ]


def test_home_scores_leave_out_what_is_not_meant(suite: Suite) -> None:
    chain = chain_of("s0", "ball", "a", 4)
    name = chain.key.id
    rows: list[Any] = [
        (name, 2, "ssim", "1", "home", "all", 0.5),
        (name, 2, "ssim", "0", "home", "all", 0.1),  # an older version
        (name, 2, "ssim", "1", "home", "inside", 0.1),
        (name, 2, "ssim", "1", "previous", "all", 0.1),
        (name, 6, "ssim", "1", "home", "all", 0.1),  # beyond the chain
        (name, 2, "closed", "1", "home", "all", 0.1),  # cannot be opened
        ("floor--s0", 0, "ssim", "1", "s1", "all", 0.1),
        ("gone", 2, "ssim", "1", "home", "all", 0.1),
    ]
    found = home_scores(score_rows(rows), [chain], suite, SPECS)
    assert found["value"].to_list() == [0.5]


def test_a_null_is_kept_and_not_a_number_is_a_null(suite: Suite) -> None:
    chain = chain_of("s0", "copy", "a", 2)
    rows: list[Any] = [
        (chain.key.id, 1, "ssim", "1", "home", "all", None),
        (chain.key.id, 2, "ssim", "1", "home", "all", float("nan")),
    ]
    found = home_scores(score_rows(rows), [chain], suite, SPECS)
    assert found["value"].to_list() == [None, None]


def test_nothing_in_nothing_out(suite: Suite) -> None:
    assert home_scores(score_rows([]), [], suite, {}).is_empty()
    table = chain_table([], suite)
    assert table.is_empty()
    assert expected(table, homecomings([], suite), [SSIM]).is_empty()


def rows_of(table: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return table.sort("editor", "source", "cycle").select(columns).rows()


def test_without_a_plan_the_longest_chain_of_cycle_and_settings_counts(suite: Suite) -> None:
    hot = Settings(temperature=1.0)
    table = chain_table(
        [
            chain_of("s0", "ball", "a", 6),
            chain_of("s0", "ball", "b", 3, "refused"),
            chain_of("s0", "ball", "c", 2, settings=hot),
        ],
        suite,
    )
    columns = ("editor", "steps", "rounds", "made", "ended", "failed", "begun")
    assert rows_of(table, *columns) == [
        ("a", 6, 3, 3, None, False, True),
        ("b", 6, 3, 1, "refused", True, True),
        ("c", 2, 1, 1, None, False, True),
    ]


def test_a_plan_adds_the_chains_not_begun(suite: Suite) -> None:
    plan = RunSpec(editors=("a", "b"), cycles=("ball",), rounds=3, controls=False)
    table = planned([chain_of("s0", "ball", "a", 4)], suite, plan)
    assert rows_of(table, "editor", "source", "length", "steps", "rounds", "made", "begun") == [
        ("a", "s0", 4, 6, 3, 2, True),
        ("a", "s1", 0, 6, 3, 0, False),
        ("b", "s0", 0, 6, 3, 0, False),
        ("b", "s1", 0, 6, 3, 0, False),
    ]


def test_a_chain_that_failed_after_its_last_homecoming_has_not_failed(suite: Suite) -> None:
    plan = RunSpec(editors=("a",), cycles=("ball", "more"), rounds=2, controls=False)
    chains = [
        chain_of("s0", "ball", "a", 4, "refused"),
        chain_of("s1", "ball", "a", 3, "refused"),
        chain_of("s0", "more", "a", 1, "refused"),
        chain_of("s1", "more", "a", 2, "refused"),
    ]
    table = planned(chains, suite, plan)
    assert rows_of(table, "source", "cycle", "failed") == [
        ("s0", "ball@1", False),
        ("s0", "more@1", True),
        ("s1", "ball@1", True),
        ("s1", "more@1", False),
    ]


def test_what_should_have_a_value(suite: Suite) -> None:
    chains = [
        chain_of("s0", "ball", "a", 4),
        chain_of("s1", "ball", "a", 3, "refused"),
        chain_of("s0", "more", "a", 4),
        chain_of("s0", "rebuild", "a", 3),
    ]
    table, made = chain_table(chains, suite), homecomings(chains, suite)
    grid = expected(table, made, [PSNR, CLIP, NIQE])
    pixels = grid.filter(pl.col("metric") == "psnr").sort("source", "n")
    assert pixels.select("source", "n", "made", "failed").rows() == [
        ("s0", 1, True, False),
        ("s0", 2, True, False),
        ("s1", 1, True, False),
        ("s1", 2, False, True),
    ]
    assert len(grid.filter(pl.col("metric") == "clip")) == 5, "content comes home in `rebuild` too"
    assert "niqe" not in set(grid["metric"])


def test_rounds_beyond_the_plan_are_expected_where_they_were_made(suite: Suite) -> None:
    plan = RunSpec(editors=("a",), sources=("s0",), cycles=("copy",), rounds=2, controls=False)
    chains = [chain_of("s0", "copy", "a", 3)]
    table = planned(chains, suite, plan)
    assert rows_of(table, "length", "steps", "rounds", "made") == [(3, 2, 2, 2)]
    grid = expected(table, homecomings(chains, suite), [SSIM])
    assert grid["n"].to_list() == [1, 2, 3]
