from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.analysis.inert import forward_changes, inert_editors, inert_findings
from convergebench.analysis.roster import chain_table
from convergebench.chain import Chain, Settings
from convergebench.runspec import TRANSPORT
from convergebench.suite import Suite, load_suite
from tests.analysis.handmade import SPECS, chain_of, decibels, score_rows
from tests.support.runs import write_suite


class Trips:
    """Round trips and the size of their forward edits, as RMSE."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.chains: list[Chain] = []
        self.rows: list[Any] = []

    def add(
        self,
        editor: str,
        change: float | None,
        source: str = "s0",
        *,
        cycle: str = "ball",
        where: str = "all",
        version: str = "1",
        step: int = 1,
        against: str = "previous",
        **more: Any,
    ) -> None:
        chain = chain_of(source, cycle, editor, 2, **more)
        if chain not in self.chains:
            self.chains.append(chain)
        value = None if change is None else decibels(change)
        self.rows.append((chain.key.id, step, "psnr", version, against, where, value))

    @property
    def table(self) -> pl.DataFrame:
        return chain_table(self.chains, self.suite)

    def verdict(self) -> dict[str, bool]:
        return inert_editors(score_rows(self.rows), self.table, SPECS)


@pytest.fixture
def trips(tmp_path: Path) -> Trips:
    return Trips(load_suite(write_suite(tmp_path / "suite", sources=4)))


def test_inert_control_and_real_editors(trips: Trips) -> None:
    for source in ("s0", "s1"):
        trips.add(TRANSPORT, 2.0, source)
        trips.add("lab:inert", 0.0, source)
        trips.add("lab:gentle", 2.1, source)
        trips.add("lab:real", 40.0, source)
    assert trips.verdict() == {
        TRANSPORT: True,
        "lab:inert": True,
        "lab:gentle": False,
        "lab:real": False,
    }


def test_half_of_the_chains_is_enough(trips: Trips) -> None:
    for source, often, seldom in (("s0", 1, 1), ("s1", 1, 9), ("s2", 9, 9), ("s3", 9, 9)):
        trips.add(TRANSPORT, 2.0, source)
        trips.add("lab:often", often, source)
        trips.add("lab:seldom", seldom, source)
    verdict = trips.verdict()
    assert verdict["lab:often"]
    assert not verdict["lab:seldom"]


def test_the_region_counts_where_there_is_one(trips: Trips) -> None:
    # A large change outside the region is no edit; a large one inside is, however small overall.
    for where, pipe, stray, aimed in (
        ("all", 2.0, 30.0, 1.0),
        ("inside", 2.0, 1.0, 30.0),
        ("outside", 2.0, 40.0, 0.0),
    ):
        trips.add(TRANSPORT, pipe, where=where)
        trips.add("lab:stray", stray, where=where)
        trips.add("lab:aimed", aimed, where=where)
    assert trips.verdict() == {TRANSPORT: True, "lab:stray": True, "lab:aimed": False}


def test_the_whole_picture_counts_where_the_region_has_no_value(trips: Trips) -> None:
    trips.add(TRANSPORT, None, where="inside")
    trips.add(TRANSPORT, 2.0, where="all")
    trips.add("lab:real", 1.0, where="inside")
    trips.add("lab:real", 30.0, where="all")
    assert trips.verdict()["lab:real"] is False


def test_editors_without_a_shared_forward_edit_are_left_out(trips: Trips) -> None:
    trips.add(TRANSPORT, 2.0)
    trips.add("lab:elsewhere", 0.0, "s1")
    trips.add("lab:other-settings", 0.0, settings=Settings(temperature=1.0))
    trips.add("lab:other-repeat", 0.0, repeat=1)
    trips.add("lab:null", None)
    trips.add("lab:not-a-trip", 0.0, cycle="copy")
    trips.add("lab:old", 0.0, version="0")
    trips.add("lab:second-step", 0.0, step=2)
    trips.add("lab:home", 0.0, against="home")
    assert trips.verdict() == {TRANSPORT: True}


def test_nothing_is_said_without_the_control_or_without_psnr(trips: Trips) -> None:
    trips.add("lab:inert", 0.0)
    assert trips.verdict() == {}
    trips.add(TRANSPORT, 2.0)
    others = {name: spec for name, spec in SPECS.items() if name != "psnr"}
    assert inert_editors(score_rows(trips.rows), trips.table, others) == {}
    assert inert_editors(score_rows([]), trips.table, SPECS) == {}


def test_the_check_says_its_numbers(trips: Trips) -> None:
    for source, change in (("s0", 1.0), ("s1", 9.0), ("s2", 9.0)):
        trips.add(TRANSPORT, 2.0, source)
        trips.add("lab:a", change, source)
    trips.chains.append(chain_of("s3", "ball", "lab:a", 0, "refused"))
    trips.chains.append(chain_of("s3", "ball", "lab:a", 0, "failed", repeat=1))
    changes = forward_changes(score_rows(trips.rows), trips.table, SPECS)
    found = {f.editor: f for f in inert_findings(changes, trips.table)}
    mine = found["lab:a"]
    assert mine.id == "inert/lab:a"
    assert mine.estimate == pytest.approx(1 / 3)
    assert (mine.n, mine.missing, mine.failed, mine.refused) == (3, 2, 2, 1)
    assert found[TRANSPORT].estimate == 1
