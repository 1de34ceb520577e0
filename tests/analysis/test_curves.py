from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from convergebench.analysis.curves import (
    Planned,
    auc_findings,
    curve_findings,
    life_findings,
    planned_chains,
)
from convergebench.analysis.findings import Finding
from convergebench.analysis.roster import chain_table
from convergebench.analysis.summaries import chain_summaries
from convergebench.suite import load_suite
from tests.analysis.handmade import MORE_CYCLES, chain_of, curve_table
from tests.support.runs import CYCLES, write_suite


def curves(
    values: dict[str, list[Any]], kind: str = "value", metric: str = "psnr"
) -> dict[int, Finding]:
    """Findings by round, from {source: values}; "made" is unscored, "failed" and "later" unmade."""
    grid, rows = [], []
    for source, points in values.items():
        for n, value in enumerate(points, 1):
            cell = {"metric": metric, "chain": source, "n": n}
            made = value not in ("failed", "later")
            grid.append(
                cell
                | {
                    "source": source,
                    "editor": "a/b",
                    "made": made,
                    "failed": value == "failed",
                    "refused": False,
                }
            )
            if not isinstance(value, str):
                rows.append(cell | {"value": value})
    keys = {"metric": pl.String(), "chain": pl.String(), "n": pl.Int32()}
    table = pl.DataFrame(rows, schema={**keys, "value": pl.Float64()})
    wanted = pl.DataFrame(grid).cast({"n": pl.Int32()})
    found = curve_findings(kind, table, "value", wanted)
    return {f.round or 0: f for f in found}


def test_a_point_is_a_mean_with_its_n() -> None:
    found = curves({"s0": [30.0, 20.0], "s1": [40.0, 25.0]})
    assert [f.estimate for f in found.values()] == [35.0, 22.5]
    first = found[1]
    assert (first.id, first.metric, first.editor, first.round) == (
        "value/psnr/a/b/1",
        "psnr",
        "a/b",
        1,
    )
    assert (first.n, first.missing, first.failed, first.infinite) == (2, 0, 0, 0)


def test_what_has_no_value_is_counted() -> None:
    found = curves({"s0": [30.0], "s1": [None], "s2": ["made"], "s3": ["failed"], "s4": ["later"]})
    assert (found[1].estimate, found[1].n, found[1].missing, found[1].failed) == (30.0, 1, 4, 1)


def test_a_round_without_any_value_is_a_finding_too() -> None:
    found = curves({"s0": [30.0, "failed"]})
    assert (found[2].estimate, found[2].n, found[2].missing, found[2].failed) == (None, 0, 1, 1)


def test_infinite_psnr_does_not_vanish() -> None:
    found = curves({"s0": [math.inf, math.inf], "s1": [40.0, math.inf], "s2": [math.inf, None]})
    some, all_of_them = found[1], found[2]
    assert (some.estimate, some.n, some.infinite, some.missing) == (40.0, 1, 2, 0)
    assert some.note == "2 more identical to home, so infinite, not in the mean"
    assert (all_of_them.estimate, all_of_them.n, all_of_them.infinite) == (None, 0, 2)
    assert all_of_them.missing == 1
    for finding in found.values():
        assert Finding.model_validate_json(finding.model_dump_json()) == finding


def test_infinities_of_other_metrics_are_called_so() -> None:
    found = curves({"s0": [math.inf], "s1": [-math.inf]}, metric="ratio")
    assert found[1].note == "2 more infinite, not in the mean"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_finding_is_never_infinite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Finding(id="x", estimate=value)


def test_bands_resample_sources() -> None:
    found = curves({"s0": [0.2, 0.4], "s1": [0.2, 0.8]}, "convergence")
    assert [found[1].low, found[1].high] == pytest.approx([0.2, 0.2])
    # Student's t of one degree of freedom is 12.7: two sources that differ say next to nothing.
    assert [found[2].low, found[2].high] == [0, 1]
    more = {f"s{i}": [0.4 + 0.4 * (i % 2)] for i in range(12)}
    point = curves(more, "convergence")[1]
    assert point.low is not None
    assert point.high is not None
    assert 0.4 < point.low < 0.6 < point.high < 0.8


def test_no_band_from_a_single_source() -> None:
    found = curves({"s0": [0.2, 0.4], "s1": [0.2, None]}, "convergence")
    assert found[1].low is not None
    assert (found[2].estimate, found[2].low, found[2].high) == (0.4, None, None)
    assert curves({"s0": [0.2]}, "convergence")[1].low is None


def test_auc_of_complete_chains_by_source() -> None:
    summaries = chain_summaries(
        curve_table(
            [
                {"editor": "a", "source": "s0", "c": (0.8, 0.6)},
                {"editor": "a", "source": "s0", "c": (0.4, 0.2), "repeat": 1},
                {"editor": "a", "source": "s1", "c": (1.0, 0.8)},
                {"editor": "a", "source": "s2", "c": (0.0,)},
            ]
        )
    )
    plan = {("psnr", "a"): Planned(5, 1, 1, 2), ("psnr", "b"): Planned(4, 4, 0, 2)}
    mine, theirs = auc_findings(summaries, plan)
    assert mine.id == "auc/psnr/a"
    assert mine.estimate == pytest.approx((0.5 + 0.9) / 2)
    assert [mine.low, mine.high] == [0, 1]
    assert (mine.n, mine.missing, mine.failed) == (3, 2, 1)
    assert (mine.refused, theirs.refused) == (1, 0)
    assert (theirs.estimate, theirs.n, theirs.missing, theirs.failed) == (None, 0, 4, 4)


def test_half_lives_say_what_is_censored_and_what_is_left_out() -> None:
    summaries = chain_summaries(
        curve_table(
            [
                {"editor": "a", "source": "s0", "c": (0.2, 0.1, 0.0)},  # fell at 0.625
                {"editor": "a", "source": "s1", "c": (0.9, 0.4, 0.0)},  # fell at 1.8
                {"editor": "a", "source": "s2", "c": (0.9, 0.9, 0.9)},  # censored at 3
                {"editor": "a", "source": "s3", "c": (None, 0.1, 0.1)},  # never seen
            ]
        )
    )
    found, printed = life_findings(summaries, {("psnr", "a"): Planned(5, 1, 1, 3)})
    life, mean = found
    # Survival 1 until 0.625, 2/3 until 1.8, then 1/3 until 3.
    assert life.id == "half-life/psnr/a"
    assert life.estimate == pytest.approx(1.8)
    assert (life.n, life.missing, life.failed, life.refused, life.censored) == (3, 2, 1, 1, 1)
    assert life.note == "1 censored, upper end > 3, 2 without a first homecoming left out"
    assert life.low == pytest.approx(0.625)
    assert life.high is None
    assert mean.estimate == pytest.approx(0.625 + (1.8 - 0.625) * 2 / 3 + 1.2 / 3)
    assert (mean.n, mean.missing, mean.note) == (3, 2, "up to round 3")
    assert printed == {"a": {"psnr": "1.80"}}


def test_half_lives_of_nobody() -> None:
    found, printed = life_findings(
        chain_summaries(curve_table([])), {("psnr", "a"): Planned(2, 2, 0, 3)}, "literal-"
    )
    assert [f.id for f in found] == ["literal-half-life/psnr/a", "literal-restricted-mean/psnr/a"]
    assert [(f.estimate, f.n, f.failed) for f in found] == [(None, 0, 2), (None, 0, 2)]
    assert found[0].note == "2 without a first homecoming left out"
    assert printed == {}


def test_an_unreached_half_life_is_said_in_words() -> None:
    table = curve_table([{"editor": "a", "c": (0.9, 0.8)}])
    (life, _), printed = life_findings(chain_summaries(table), {("psnr", "a"): Planned(1, 0, 0, 2)})
    assert (life.estimate, life.note) == (None, "1 censored, half-life > 2")
    assert printed == {"a": {"psnr": "> 2"}}


def test_planned_chains_depend_on_what_home_means(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path / "suite", cycles=CYCLES + MORE_CYCLES))
    chains = [
        chain_of("s0", "copy", "a", 4),
        chain_of("s1", "copy", "a", 1, "refused"),
        chain_of("s0", "rebuild", "a", 9),
        chain_of("s0", "more", "a", 4),
    ]
    found = planned_chains(chain_table(chains, suite), {"psnr": False, "clip": True})
    assert found == {("clip", "a"): Planned(3, 1, 1, 4), ("psnr", "a"): Planned(2, 1, 1, 4)}


def test_restricted_means_in_one_column_end_at_one_round() -> None:
    told: dict[str, list[Any]] = {
        "good": [0.99] * 10,
        "quits": [0.99] * 2,
        "falls": [0.9, 0.8, 0.4, *([0.3] * 7)],
    }
    rows = [
        {"editor": editor, "source": source, "c": curve}
        for editor, curve in told.items()
        for source in ("s0", "s1")
    ]
    plan = {("psnr", editor): Planned(2, 0, 0, 10) for editor in told}
    ends = {row["chain"]: 10 for row in curve_table(rows).iter_rows(named=True)}
    found, printed = life_findings(chain_summaries(curve_table(rows), rounds=ends), plan)
    mean = {f.editor: f for f in found if f.kind == "restricted-mean"}
    assert [mean[e].estimate for e in ("good", "falls")] == pytest.approx([10, 2.75])
    assert (mean["quits"].estimate, mean["quits"].low, mean["quits"].high) == (None, None, None)
    assert mean["quits"].note == "none up to round 10: known only up to round 2"
    assert mean["good"].note == "up to round 10"
    assert printed["quits"]["psnr"] == "> 2"
    shorter = plan | {("psnr", "quits"): Planned(2, 0, 0, 2)}
    found, _ = life_findings(chain_summaries(curve_table(rows), rounds=ends), shorter)
    mean = {f.editor: f for f in found if f.kind == "restricted-mean"}
    assert {f.estimate for f in mean.values()} == {2.0}
    assert mean["good"].note == "up to round 2, known up to round 10"
