"""Changes inside and outside of an edit's region, from rows written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.analysis import Finding, forward_effects, region_changes, study
from convergebench.analysis.regions import region_findings
from convergebench.runspec import TRANSPORT
from tests.analysis.handmade import HandMade, decibels

SIZES = {"inside": (20.0, 30.0), "outside": (2.0, 5.0)}
"""RMSE against home at rounds 1 and 2."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = HandMade(tmp_path_factory.mktemp("regions"))
    for source, more in (("s0", 0.0), ("s1", 4.0)):
        for editor, forward in (("e", 40.0), (TRANSPORT, 1.0)):
            chain = made.walk(source, "ball", editor, [0.9, 0.8]).key.id
            for where, sizes in SIZES.items():
                for n, size in enumerate(sizes, 1):
                    made.score(chain, 2 * n, "psnr", decibels(size + more), where=where)
                told = forward if where == "inside" else forward / 10
                made.score(chain, 1, "psnr", decibels(told), against="previous", where=where)
            made.score(chain, 1, "psnr", decibels(forward / 2), against="previous")
        # a cycle without a region has nothing inside and misses nothing
        made.walk(source, "copy", "e", [0.9, 0.8])
    made.walk("s0", "ball", "shy", [0.9], ended="refused")
    made.chain("s1", "ball", "shy", 0, "refused")
    made.floors()
    return made.done()


@pytest.fixture(scope="module")
def found(run: Path) -> dict[str, Finding]:
    return {f.id: f for f in region_findings(study(run))}


def test_change_against_home_is_told_by_round_and_place(found: dict[str, Finding]) -> None:
    for where, sizes in SIZES.items():
        for n, size in enumerate(sizes, 1):
            one = found[f"region/e/{where}/{n}"]
            assert one.estimate == pytest.approx(size + 2)
            half = 12.706 * 2  # Student's t, two sources that are 4 apart
            ends = [max(0, size + 2 - half), size + 2 + half]
            assert [one.low, one.high] == pytest.approx(ends, abs=0.01)
            assert (one.n, one.missing, one.group, one.round) == (2, 0, where, n)


def test_what_is_missing_is_counted(found: dict[str, Finding]) -> None:
    shy = found["region/shy/inside/2"]
    assert (shy.estimate, shy.n, shy.missing, shy.failed, shy.refused) == (None, 0, 2, 2, 2)
    forward = found["forward/shy/inside"]
    assert (forward.n, forward.missing, forward.failed, forward.refused) == (0, 2, 1, 1)


def test_forward_edits_are_told_beside_the_transport_control(found: dict[str, Finding]) -> None:
    sizes = {place: found[f"forward/e/{place}"].estimate for place in ("inside", "outside", "all")}
    assert sizes == pytest.approx({"inside": 40, "outside": 4, "all": 20})
    assert found["forward/e/inside"].note.endswith(f"{TRANSPORT} on the same 2: 1.00")
    assert found["forward/e/outside"].note.endswith(f"{TRANSPORT} on the same 2: 0.10")
    assert f"no chain of {TRANSPORT}" in found["forward/shy/inside"].note


def test_tables_are_there_for_notebooks(run: Path) -> None:
    whole = study(run)
    changes = region_changes(whole)
    assert changes.columns == ["chain", "n", "group", "value"]
    assert len(changes) == 2 * 2 * 2 * 2
    assert len(forward_effects(whole)) == 2 * 2 * 3


def test_without_regions_there_is_nothing_to_tell(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "e", [0.9, 0.8], metrics=("ssim",))
    assert region_findings(study(made.done())) == []
