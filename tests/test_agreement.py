"""`compare-scores`: published scores beside ours, with answers known by hand."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import convergebench
from convergebench.agreement import Agreement, ScoreAgreement, compare_scores
from convergebench.errors import SettingsError, StoreError, UnknownName
from convergebench.registry import metric_spec
from convergebench.scoretable import rows_frame
from convergebench.store import RunStore
from convergebench.suite import load_suite
from tests.support.runs import write_suite

THEIRS = "published:lab"


def row(
    step: int,
    value: float | None,
    version: str | None = None,
    metric: str = "psnr",
    chain: str = "c",
    note: str = "",
    against: str = "home",
) -> dict[str, Any]:
    """A score row; of ours, in the installed version, where none is given."""
    return {
        "chain": chain,
        "step": step,
        "metric": metric,
        "version": version or metric_spec(metric).version,
        "against": against,
        "where": "all",
        "value": value,
        "note": note,
    }


def store_of(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A run with these score rows and no chain."""
    suite = load_suite(write_suite(folder / "suite"))
    store = RunStore.create(folder / "run", suite, 32)
    if rows:
        store.add_scores(rows_frame(rows))
    return store.path


def only(found: ScoreAgreement) -> Agreement:
    (group,) = found.groups
    return group


@pytest.fixture
def walked(tmp_path: Path) -> tuple[Path, str]:
    """A run with the pictures of one chain of three steps, and the chain's name."""
    path = tmp_path / "walked"
    suite = write_suite(tmp_path / "tiny")
    convergebench.run(path, {"suite": str(suite), "editors": ["ref:jpeg"], "sources": ["s0"],
                             "cycles": ["copy"], "steps": 3, "controls": False})  # fmt: skip
    (chain,) = RunStore.open(path).chains()
    return path, chain.key.id


def test_differences_are_counted_and_summed_up(tmp_path: Path) -> None:
    theirs, ours = [30.0, 28.5, math.inf, 25.0], [30.0, 28.0, math.inf, 26.0]
    rows = [row(step, value, THEIRS) for step, value in enumerate(theirs, 1)]
    rows += [row(step, value) for step, value in enumerate(ours, 1)]
    found = compare_scores(store_of(tmp_path, rows))
    group = only(found)
    assert (group.origin, group.other, group.metric) == ("lab", "ours", "psnr")
    assert (group.published, group.common, group.equal, group.differing) == (4, 4, 2, 2)
    assert group.largest == 1.0
    assert group.mean == pytest.approx(0.375)
    assert group.signed == pytest.approx(-0.125)
    assert group.rank == pytest.approx(1.0)
    assert not group.lonely
    assert found.differing == 2
    assert [(w["step"], w["theirs"], w["ours"], w["difference"]) for w in found.worst] == [
        (4, 25.0, 26.0, -1.0), (2, 28.5, 28.0, 0.5)
    ]  # fmt: skip
    assert "of 4 scores in common, 2 differ by more than 1e-06" in str(found)
    assert "The largest differences" in str(found)
    assert "<table>" in found._repr_html_()


def test_tolerance_and_length_of_the_list_are_choices(tmp_path: Path) -> None:
    rows = [row(step, 30.0 + step / 10, THEIRS) for step in (1, 2, 3)]
    path = store_of(tmp_path, rows + [row(step, 30.0) for step in (1, 2, 3)])
    found = compare_scores(path, tolerance=0.25, show=0)
    assert (only(found).equal, found.worst) == (2, [])
    assert "largest differences" not in str(found)
    assert len(compare_scores(path, show=2).worst) == 2
    with pytest.raises(SettingsError, match="a tolerance is a number from 0, got nan"):
        compare_scores(path, tolerance=math.nan)


def test_infinity_on_one_side_is_an_infinite_difference(tmp_path: Path) -> None:
    rows = [row(1, math.inf, THEIRS), row(2, 30.0, THEIRS), row(1, 40.0), row(2, 31.0)]
    found = compare_scores(store_of(tmp_path, rows))
    group = only(found)
    assert (group.equal, group.largest, group.mean, group.signed) == (0, math.inf, 1.0, -1.0)
    assert group.rank is None, "two rows have no rank correlation to speak of"
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["groups"][0]["largest"] == "inf"
    assert told["worst"][0]["theirs"] == "inf"


def test_rank_correlation_needs_both_sides_to_vary(tmp_path: Path) -> None:
    rows = [row(step, 30.0, THEIRS) for step in (1, 2, 3)] + [row(step, step) for step in (1, 2, 3)]
    assert only(compare_scores(store_of(tmp_path, rows))).rank is None


def test_every_published_score_that_stands_alone_has_its_reason(walked: tuple[Path, str]) -> None:
    path, chain = walked
    RunStore.open(path).add_scores(rows_frame([
        row(1, 30.0, THEIRS, chain=chain), row(1, 30.0, chain=chain),
        row(2, 29.0, THEIRS, chain=chain),
        row(3, None, THEIRS, chain=chain, note="column psnr: never computed there"),
        row(9, 20.0, THEIRS, chain=chain),
        row(1, 20.0, THEIRS, chain="elsewhere"),
        row(1, 0.5, THEIRS, chain=chain, metric="dino"),
        row(1, 0.5, THEIRS, chain=chain, metric="ssim"),
        row(1, None, chain=chain, metric="ssim", note="too small"),
    ]))  # fmt: skip
    found = compare_scores(path)
    told = {group.metric: group for group in found.groups}
    assert told["psnr"].common == told["psnr"].equal == 1
    assert told["psnr"].lonely == {
        "never computed there": 1, "no picture here": 2, "not scored": 1
    }  # fmt: skip
    assert told["dino"].lonely == {"no metric of ours": 1}
    assert told["ssim"].lonely == {"null here": 1}
    assert f"convergebench score {path} --metrics psnr." in str(found)
    assert "too small" in found.rows["our_note"].to_list()
    convergebench.score(path, ["psnr"])
    again = {group.metric: group for group in compare_scores(path).groups}["psnr"]
    assert again.common == 2
    assert "not scored" not in again.lonely


def test_a_chain_without_its_source_is_only_measured_without_reference(
    walked: tuple[Path, str],
) -> None:
    path, name = walked
    store = RunStore.open(path)
    (chain,) = store.chains()
    header, *steps = store.chain_path(name).read_text().splitlines(keepends=True)
    sourceless = {**json.loads(header), "source": None}
    store.chain_path(name).write_text("".join([json.dumps(sourceless) + "\n", *steps]))
    rows = [row(1, 30.0, THEIRS, chain=name)]
    rows += [row(1, 4.0, THEIRS, "niqe", name, against="none")]
    store.add_scores(rows_frame(rows))
    assert chain.held.keys() == {0, 1, 2, 3}
    told = {group.metric: group.lonely for group in compare_scores(path).groups}
    assert told == {"psnr": {"no picture here": 1}, "niqe": {"not scored": 1}}


def test_rows_of_an_older_version_of_ours_do_not_count(tmp_path: Path) -> None:
    rows = [row(1, 30.0, THEIRS), row(1, 30.0, "0-old")]
    found = compare_scores(store_of(tmp_path, rows))
    assert only(found).common == 0
    assert "Nothing of ours is scored for these metrics." in str(found)


def test_two_origins_of_the_same_frames_are_compared_with_each_other(tmp_path: Path) -> None:
    rows = [row(step, 30.0, THEIRS) for step in (1, 2)]
    rows += [row(step, 29.0, "published:blog") for step in (2, 3)] + [row(2, 30.0)]
    found = compare_scores(store_of(tmp_path, rows))
    told = {(group.origin, group.other): group for group in found.groups}
    assert set(told) == {("lab", "ours"), ("blog", "ours"), ("blog", "lab")}
    assert (told["blog", "lab"].published, told["blog", "lab"].common) == (1, 1)
    assert told["blog", "lab"].signed == -1.0
    assert told["lab", "ours"].equal == 1
    assert told["blog", "ours"].equal == 0


def test_the_worst_rows_say_whose_they_are_in_few_digits(walked: tuple[Path, str]) -> None:
    path, chain = walked
    value = 30.123456789012345
    rows = [row(1, value, THEIRS, chain=chain), row(1, 30.0, chain=chain)]
    rows += [row(1, 31.0, THEIRS, chain="gone"), row(1, 30.0, chain="gone")]
    RunStore.open(path).add_scores(rows_frame(rows))
    found = compare_scores(path)
    told = {record["source"]: record for record in found.worst_table.records()}
    assert list(told["s0"]) == ["editor", "source", "cycle", "repeat", "step", "metric",
                                "published by", "theirs", "with", "ours", "Δ"]  # fmt: skip
    assert list(told["s0"].values())[:8] == [
        "ref:jpeg", "s0", "copy", 0, 1, "psnr", "lab", "30.12345679"
    ]  # fmt: skip
    assert told["gone"]["editor"] is None, "of a chain that is not there its name is all we have"
    assert chain not in str(found.worst_table)
    whole = {worst["chain"]: worst for worst in found.to_dict()["worst"]}[chain]
    assert (whole["theirs"], whole["repeat"], whole["source"]) == (value, 0, "s0")
    found.write_csv(path / "all.csv")
    with open(path / "all.csv", newline="") as file:
        written = {line["chain"]: line for line in csv.DictReader(file)}[chain]
    assert (float(written["theirs"]), written["repeat"]) == (value, "0")


def test_steps_without_a_home_are_not_said_to_wait_for_scores(tmp_path: Path) -> None:
    path = tmp_path / "run"
    suite = write_suite(tmp_path / "tiny")
    cycle = next(c for c in load_suite(suite).cycle if c.kind == "round-trip")
    convergebench.run(path, {"suite": str(suite), "editors": ["ref:jpeg"], "sources": ["s0"],
                             "cycles": [cycle.name], "steps": 4, "controls": False})  # fmt: skip
    (chain,) = RunStore.open(path).chains()
    rows = [row(step, 30.0, THEIRS, chain=chain.key.id) for step in range(5)]
    rows += [row(step, 30.0, THEIRS, chain=chain.key.id, against="previous") for step in (1, 9)]
    RunStore.open(path).add_scores(rows_frame(rows))
    found = compare_scores(path)
    told = {group.against: group.lonely for group in found.groups}
    assert told["home"] == {"no home": 3, "not scored": 2}
    assert told["previous"] == {"no picture here": 1, "not scored": 1}
    assert "Alone (psnr 3): the step has no home" in str(found)
    convergebench.score(path, ["psnr"])
    again = compare_scores(path)
    assert {group.against: group.lonely for group in again.groups} == {
        "home": {"no home": 3}, "previous": {"no picture here": 1}
    }  # fmt: skip
    assert "convergebench score" not in str(again)


def test_metrics_with_large_scales_do_not_crowd_out_the_others(tmp_path: Path) -> None:
    rows = []
    for step in range(1, 11):
        rows += [row(step, 30.0 + step, THEIRS), row(step, 30.0)]
        rows += [row(step, 0.5 + step / 1000, THEIRS, "ssim"), row(step, 0.5, metric="ssim")]
    found = compare_scores(store_of(tmp_path, rows), show=4)
    assert [(w["metric"], w["step"]) for w in found.worst] == [
        ("psnr", 10), ("psnr", 9), ("ssim", 10), ("ssim", 9)
    ]  # fmt: skip


def test_against_what_is_compared_is_part_of_the_key(tmp_path: Path) -> None:
    rows = [row(1, 30.0, THEIRS), row(1, 20.0, THEIRS, against="previous")]
    rows += [row(1, 30.0), row(1, 21.0, against="previous")]
    found = compare_scores(store_of(tmp_path, rows))
    assert {(g.against, g.equal) for g in found.groups} == {("home", 1), ("previous", 0)}
    assert "psnr (previous)" in str(found)


def test_another_form_of_a_metric_is_named_when_it_is_the_same(tmp_path: Path) -> None:
    rows = []
    for step, value in enumerate((0.9, 0.8, 0.7), 1):
        rows += [row(step, value, THEIRS, "ssim"), row(step, value - 0.1, metric="ssim")]
        rows += [row(step, value + 1e-9, metric="ssim-uniform"), row(step, 0.9, metric="ssim-rgb")]
    found = compare_scores(store_of(tmp_path, rows))
    assert "ssim of lab equals our ssim-uniform in all 3 rows in common." in found.notes
    assert not any("ssim-rgb" in note for note in found.notes)


def test_their_metric_can_be_compared_with_another_of_ours(tmp_path: Path) -> None:
    rows = [row(1, 0.9, THEIRS, "ssim"), row(1, 0.8, metric="ssim")]
    rows += [row(1, 0.9, metric="ssim-uniform"), row(2, 0.9, THEIRS, "ssim")]
    rows += [row(1, 0.9, THEIRS, "ssim-uniform")]
    path = store_of(tmp_path, rows)
    found = compare_scores(path, read_as={"ssim": "ssim-uniform"})
    assert [(g.metric, g.common, g.equal) for g in found.groups] == [
        ("ssim", 1, 1), ("ssim-uniform", 1, 1)
    ]  # fmt: skip
    assert "Their ssim is compared with our ssim-uniform." in found.notes
    with pytest.raises(SettingsError, match="no published scores of 'psnr'; there are: ssim, ssim"):
        compare_scores(path, read_as={"psnr": "ssim"})
    with pytest.raises(UnknownName, match="Did you mean ssim"):
        compare_scores(path, read_as={"ssim": "ssimm"})


def test_a_run_without_published_scores_is_one_sentence(tmp_path: Path) -> None:
    path = store_of(tmp_path, [row(1, 30.0), row(0, 8.0, THEIRS, chain="floor--s0")])
    found = compare_scores(path)
    assert str(found) == f"{path} has no published scores."
    assert found.to_dict()["groups"] == []
    with pytest.raises(StoreError, match="is not a run directory"):
        compare_scores(tmp_path / "nowhere")


VALUES = st.one_of(st.none(), st.floats(0, 50), st.just(math.inf))


@settings(max_examples=25, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture])  # fmt: skip
@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_any_two_columns_are_compared_as_by_hand(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[float | None, float | None]]
) -> None:
    rows = [row(step, theirs, THEIRS) for step, (theirs, _) in enumerate(pairs, 1)]
    rows += [row(step, ours) for step, (_, ours) in enumerate(pairs, 1)]
    group = only(compare_scores(store_of(tmp_path_factory.mktemp("any"), rows), tolerance=0.5))
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    gaps = [0.0 if a == b else a - b for a, b in both]
    finite = [gap for gap in gaps if math.isfinite(gap)]
    assert group.common == len(both)
    assert group.equal == sum(abs(gap) <= 0.5 for gap in gaps)
    assert group.largest == max(map(abs, gaps), default=None)
    assert group.mean == (pytest.approx(sum(map(abs, finite)) / len(finite)) if finite else None)
    assert group.signed == (pytest.approx(sum(finite) / len(finite)) if finite else None)
    assert sum(group.lonely.values()) == len(pairs) - len(both)
    if group.rank is not None:
        # Infinity is just the largest value.
        plain = [(min(a, 1e9), min(b, 1e9)) for a, b in both]
        expected = spearmanr(*zip(*plain, strict=True)).statistic
        assert group.rank == pytest.approx(expected)


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convergebench", "compare-scores", *map(str, words)],
        capture_output=True,
        text=True,
    )


def test_command_prints_writes_and_exits_as_it_says(tmp_path: Path) -> None:
    rows = [row(1, 30.0, THEIRS), row(2, 29.0, THEIRS), row(1, 30.0), row(2, 28.0)]
    path = store_of(tmp_path, rows)
    table = tmp_path / "all.csv"
    plain = command(path, "--csv", table)
    assert plain.returncode == 0, plain.stderr
    assert "of 2 scores in common, 1 differs by more than 1e-06" in plain.stdout
    with open(table, newline="") as file:
        written = list(csv.DictReader(file))
    assert [(r["step"], r["theirs"], r["ours"], r["state"]) for r in written] == [
        ("1", "30.0", "30.0", "equal"), ("2", "29.0", "28.0", "differs")
    ]  # fmt: skip
    strict = command(path, "--strict", "--json")
    assert strict.returncode == 1
    assert json.loads(strict.stdout)["groups"][0]["differing"] == 1
    assert command(path, "--strict", "--tolerance", "1").returncode == 0
    assert command(path, "--strict", "--as", "psnr=ssim").returncode == 0, "nothing in common"


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--csv", "no/all.csv"], "cannot write"), (["--as", "psnr"], "--as takes THEIRS=OURS")],
)
def test_wrong_options_are_one_sentence(tmp_path: Path, words: list[str], message: str) -> None:
    path = store_of(tmp_path, [row(1, 30.0, THEIRS)])
    done = command(path, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.shared
def test_published_scores_of_real_chains_are_ours(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "flux"
    chains = shared / "data" / "chains" / "flux-kontext-dev"
    convergebench.import_run(chains, path, layout="round-trip")
    convergebench.score(path, ["psnr", "ssim-uniform"])
    found = compare_scores(path, read_as={"ssim": "ssim-uniform"})
    told = {group.metric: (group.common, group.equal) for group in found.groups}
    assert told == {"clip": (0, 0), "lpips": (0, 0), "psnr": (24, 24), "ssim": (24, 24)}
    lonely = {group.metric: group.lonely for group in found.groups}
    assert lonely["lpips"] == {"never computed there": 24}
    assert lonely["clip"] == {"not scored": 24}
