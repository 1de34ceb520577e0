"""Several runs as one: what is the same becomes one, what is not is told apart or refused."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.analysis import Findings, analyze
from convergebench.chain import ChainKey
from convergebench.comparisons import FLOOR_PREFIX
from convergebench.cycle import NOT_RECORDED, Cycle, Edit
from convergebench.errors import SettingsError, StoreError, StoreMismatch
from convergebench.gathering import gather
from convergebench.store import RunStore
from tests.analysis.handmade import installed
from tests.analysis.several import COPY, TRIP, Made, four_editors


def numbers(found: Findings) -> dict[str, Any]:
    """Every number, and who stands where; without which run a line is from."""
    told = found.model_dump(mode="json")
    for standing in told["standings"]:
        standing.pop("runs", None)
    return {k: told[k] for k in ("standings", "findings", "floors", "common", "sources")}


def told(found: Findings) -> str:
    return "\n".join(found.notes)


# -- the same numbers -----------------------------------------------------------------------------


def test_two_runs_tell_what_one_run_with_all_of_their_chains_tells(tmp_path: Path) -> None:
    whole = analyze(four_editors(tmp_path / "whole"))
    parts = analyze(
        four_editors(tmp_path / "x", ("a", "c")), four_editors(tmp_path / "y", ("b", "d"))
    )
    assert numbers(parts) == numbers(whole)
    assert (parts.run, parts.suite) == ("x + y", "tiny@1")
    assert [run.name for run in parts.runs] == ["x", "y"]
    assert {s.editor: s.runs for s in parts.standings}["a"] == ("x",)
    assert not (tmp_path / "x" / "findings.json").exists(), "several runs are written nowhere"


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    side=st.tuples(*[st.sampled_from(((0,), (1,), (0, 1)))] * 4).filter(
        lambda s: any(0 in w for w in s) and any(1 in w for w in s)
    )
)
def test_any_split_by_editor_gives_the_same_standings(
    tmp_path_factory: pytest.TempPathFactory, side: tuple[tuple[int, ...], ...]
) -> None:
    folder = tmp_path_factory.mktemp("split")
    halves = [[e for e, of in zip("abcd", side, strict=True) if i in of] for i in (0, 1)]
    found = [four_editors(folder / f"half{i}", half) for i, half in enumerate(halves)]
    whole = four_editors(folder / "whole")
    assert numbers(analyze(*found)) == numbers(analyze(whole))
    assert numbers(analyze(*reversed(found))) == numbers(analyze(whole))


def test_one_run_is_taken_as_it_is(tmp_path: Path) -> None:
    path = four_editors(tmp_path / "run")
    gathered, store = gather([path]), RunStore.open(path)
    assert gathered.suite == store.suite
    assert list(gathered.chains) == store.chains()
    assert gathered.scores.equals(store.scores())
    assert (gathered.notes, gathered.rounds, gathered.several) == ((), None, False)
    analyze(path)
    keys = json.loads((path / "findings.json").read_text())
    assert not {"runs", "rounds"} & set(keys)
    assert not {"runs", "origin"} & set(keys["standings"][0])


# -- told apart -----------------------------------------------------------------------------------


def test_the_same_chain_counts_once(tmp_path: Path) -> None:
    found = analyze(
        four_editors(tmp_path / "x", ("a", "b")), four_editors(tmp_path / "y", ("b", "c"))
    )
    assert "4 chains are the same in x and y and count once." in told(found)
    runs = {s.editor: s.runs for s in found.standings}
    assert runs == {"a": ("x",), "b": ("x", "y"), "c": ("y",)}
    assert {s.chains for s in found.standings} == {4}


def test_an_editor_that_answered_differently_has_a_line_per_run(tmp_path: Path) -> None:
    for name, frames in (("host-1", "x"), ("host-2", "y")):
        made = Made(tmp_path / name)
        made.walk("s0", "copy", "a", (0.9, 0.8), frames=frames)
        made.walk("s1", "copy", "a", (0.7, 0.6), frames=frames)
        made.done()
    found = analyze(tmp_path / "host-1", tmp_path / "host-2")
    assert {s.editor for s in found.standings} == {"a [host-1]", "a [host-2]"}
    assert "a gave different frames for the same chains in host-1, host-2" in told(found)
    assert all(s.complete == 2 for s in found.standings)


def test_versions_of_an_editor_are_told_apart(tmp_path: Path) -> None:
    for name, version in (("x", "1"), ("y", "2"), ("z", "2")):
        made = Made(tmp_path / name)
        made.walk("s0", "copy", "a", (0.9,), version=version)
        made.done()
    found = analyze(*(tmp_path / name for name in "xyz"))
    lines = {s.editor: s.runs for s in found.standings}
    assert lines == {"a [version 1]": ("x",), "a [version 2]": ("y", "z")}
    assert "a has other versions in other runs (1 in x, 2 in y and z)" in told(found)


def test_a_control_stays_one_when_it_is_told_apart(tmp_path: Path) -> None:
    for name in ("x", "y"):
        made = Made(tmp_path / name)
        made.walk("s0", "copy", "ref:random", (0.1,), frames=name)
        made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert {s.editor: s.control for s in found.standings} == {
        "ref:random [x]": True,
        "ref:random [y]": True,
    }


def test_pictures_of_one_name_never_pair(tmp_path: Path) -> None:
    made = Made(tmp_path / "x", {"s0": "p0", "s1": "p1"})
    made.walk("s0", "copy", "a", (0.9,))
    made.walk("s1", "copy", "a", (0.9,))
    made.done()
    made = Made(tmp_path / "Y 2", {"s0": "other", "s1": "p1"}, label="mine@3")
    made.walk("s0", "copy", "b", (0.5,))
    made.walk("s1", "copy", "b", (0.5,))
    made.done()
    gathered = gather([tmp_path / "x", tmp_path / "Y 2"])
    assert {c.key.source for c in gathered.chains} == {"s0-in-x", "s0-in-y-2", "s1"}
    floors = gathered.scores.filter(pl.col("chain").str.starts_with(FLOOR_PREFIX))
    assert set(floors["chain"]) | {FLOOR_PREFIX + n for n in floors["against"]} == {
        "floor--s0-in-x", "floor--s0-in-y-2", "floor--s1",
    }  # fmt: skip
    found = analyze(tmp_path / "x", tmp_path / "Y 2")
    assert (found.common, found.sources) == (1, 1)
    assert (
        "s0 is the name of 2 different pictures, told apart as s0-in-x (x), s0-in-y-2 (Y 2)."
        in told(found)
    )
    assert "The runs' suites differ (x: tiny@1, Y 2: mine@3)" in told(found)


def test_a_picture_of_two_names_is_mentioned(tmp_path: Path) -> None:
    for name, pictures in (("x", {"s0": "p0", "s1": "p1"}), ("y", {"s0": "p0", "cat": "p1"})):
        made = Made(tmp_path / name, pictures, label=f"{name}@1")
        for source in pictures:
            made.walk(source, "copy", name, (0.9,))
        made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert "several names and is not paired: s1 in x and cat in y." in told(found)


def test_cycles_of_one_name_never_pair(tmp_path: Path) -> None:
    other = Cycle(
        name="trip", kind="round-trip", edit=(Edit(prompt="Hat."), Edit(prompt="No hat."))
    )
    for name, trip in (("x", TRIP), ("y", other)):
        made = Made(tmp_path / name, cycles=(COPY, trip), label=f"{name}@1")
        made.walk("s0", "copy", name, (0.9,))
        made.walk("s0", "trip", name, (0.9,))
        made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert found.common == 1
    assert "trip is the name of 2 different cycles, told apart as trip-in-x (x)" in told(found)


def test_a_cycle_whose_prompts_are_not_recorded_goes_by_name_and_kind(tmp_path: Path) -> None:
    unknown = Edit(prompt=NOT_RECORDED)
    bare = Cycle(name="trip", kind="round-trip", version=2, edit=(unknown, unknown))
    for name, trip in (("x", bare), ("y", TRIP)):
        made = Made(tmp_path / name, cycles=(trip,), label=f"{name}@1")
        made.walk("s0", "trip", name, (0.9,), cycle_version=trip.version)
        made.done()
    gathered = gather([tmp_path / "x", tmp_path / "y"])
    assert {c.key.cycle for c in gathered.chains} == {"trip@1"}
    assert gathered.suite.cycle_of("trip@1").edit == TRIP.edit
    assert "x has no prompts of trip" in "\n".join(gathered.notes)
    assert analyze(tmp_path / "x", tmp_path / "y").common == 1


def test_two_runs_of_one_name_are_numbered(tmp_path: Path) -> None:
    one = four_editors(tmp_path / "january" / "run", ("a",))
    two = four_editors(tmp_path / "february" / "run", ("b",))
    assert [run.name for run in gather([one, two]).runs] == ["run (1)", "run (2)"]


# -- equal footing --------------------------------------------------------------------------------


def test_the_shortest_run_says_how_far_is_compared(tmp_path: Path) -> None:
    made = Made(tmp_path / "long")
    made.walk("s0", "copy", "a", (0.9, 0.7, 0.5, 0.1))
    made.walk("s0", "trip", "a", (0.9, 0.7))
    made.plan(4, "a")
    made.done()
    made = Made(tmp_path / "short")
    made.walk("s0", "copy", "b", (0.8, 0.6))
    made.done()
    found = analyze(tmp_path / "long", tmp_path / "short")
    assert "copy@1: compared over the first 2 homecomings, as far as short goes." in told(found)
    scores = {s.editor: s.score for s in found.standings}
    assert scores == {"a": pytest.approx(0.8), "b": pytest.approx(0.7)}
    points = {f.round for f in found.findings if f.id.startswith("value/psnr/a/")}
    assert points == {1, 2, 3, 4}, "its own cycle is followed as far as it was planned"
    assert "RUN being the directory of long" in told(found), "trip is not finished there"


def test_a_run_that_only_failed_does_not_shorten_the_others(tmp_path: Path) -> None:
    made = Made(tmp_path / "x")
    made.walk("s0", "trip", "a", (0.9, 0.8, 0.7))
    made.done()
    made = Made(tmp_path / "y")
    made.walk("s0", "trip", "b", (0.5,), version="imported", ended="failed")
    made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    lines = {s.editor: s for s in found.standings}
    assert (lines["a"].complete, lines["b"].complete, lines["b"].failed) == (1, 0, 1)
    assert "compared over" not in told(found)


def test_rounds_look_at_the_first_homecomings_only(tmp_path: Path) -> None:
    short = Made(tmp_path / "short")
    long = Made(tmp_path / "long")
    for made, count in ((short, 2), (long, 4)):
        for source in ("s0", "s1"):
            made.walk(source, "copy", "a", (0.9, 0.7, 0.5, 0.1)[:count])
            made.walk(source, "trip", "a", (0.8, 0.6, 0.4, 0.2)[:count])
        made.walk("s0", "copy", "b", (0.9, 0.8), ended="refused" if made is long else None)
        made.done()
    found = analyze(tmp_path / "long", rounds=2)
    assert numbers(found) == numbers(analyze(tmp_path / "short"))
    assert found.rounds == 2
    assert "Only the first 2 homecomings are looked at, as asked." in told(found)
    with pytest.raises(SettingsError, match=r"counts homecomings from 1, got 0"):
        analyze(tmp_path / "long", rounds=0)


def test_a_floor_that_was_outgrown_is_left_out(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", {f"s{i:02}": f"p{i}" for i in range(16)})
    made.walk("s00", "copy", "a", (0.9,))
    # Of 14 sources the floor of s03 was compared with the next twelve, s00 and s01 among them.
    for metric in ("psnr", "ssim"):
        made.row("floor--s03", 0, metric, 50.0, against="s01")
    path = made.done()
    assert analyze(path).floors == pytest.approx({"psnr": -100, "ssim": 0.2})


# -- refusals -------------------------------------------------------------------------------------


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    made = Made(tmp_path / "x", {"s0": "p0", "s1": "p1"})
    made.walk("s0", "copy", "a", (0.9,))
    made.done()
    made = Made(tmp_path / "y", {"s0": "q0", "s1": "q1"}, label="else@1")
    made.walk("s0", "copy", "b", (0.9,))
    made.done()
    with pytest.raises(
        StoreMismatch,
        match=r"x cannot be compared with y: no source picture of x walked the same cycle there; "
        r"of equal name and different content: s0, s1\. Make a report of each",
    ):
        analyze(tmp_path / "x", tmp_path / "y")


def test_the_odd_one_of_three_is_named(tmp_path: Path) -> None:
    for name, cycle in (("x", "copy"), ("y", "copy"), ("z", "trip")):
        made = Made(tmp_path / name)
        made.walk("s0", cycle, name, (0.9,))
        made.done()
    with pytest.raises(StoreMismatch, match="z cannot be compared with x and y: no source"):
        analyze(*(tmp_path / name for name in "xyz"))


def test_an_empty_run_is_refused(tmp_path: Path) -> None:
    four_editors(tmp_path / "x", ("a",))
    Made(tmp_path / "y").done()
    with pytest.raises(StoreMismatch, match="y cannot be compared with x: y has no chain"):
        analyze(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize("what", ["source", "cycle"])
def test_one_suite_version_with_two_contents_is_refused(tmp_path: Path, what: str) -> None:
    other = Cycle(
        name="trip", kind="round-trip", edit=(Edit(prompt="Hat."), Edit(prompt="No hat."))
    )
    changes: dict[str, dict[str, Any]] = {
        "source": {"pictures": {"s0": "p0", "s1": "q1"}},
        "cycle": {"cycles": (COPY, other)},
    }
    name = {"source": "s1", "cycle": "trip"}[what]
    four_editors(tmp_path / "x", ("a",))
    four_editors(tmp_path / "y", ("b",), **changes[what])
    with pytest.raises(
        StoreMismatch,
        match=rf"x and y were both made with suite tiny@1, but its content differs: {what} "
        rf"'{name}' is not the same in both",
    ):
        analyze(tmp_path / "x", tmp_path / "y")


def test_suites_that_imports_made_up_are_told_apart_instead(tmp_path: Path) -> None:
    four_editors(tmp_path / "x", ("a",), imported=True)
    four_editors(tmp_path / "y", ("b",), imported=True, pictures={"s0": "p0", "s1": "q1"})
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert (found.common, found.sources) == (2, 1)
    assert "s1 is the name of 2 different pictures" in told(found)


def test_one_suite_version_whose_words_alone_differ_is_compared(tmp_path: Path) -> None:
    four_editors(tmp_path / "x", ("a",))
    four_editors(tmp_path / "y", ("b",), description="Reworded.")
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert found.common == 4
    assert "The runs' suites differ (x: tiny@1 (" in told(found)


def test_a_run_given_twice_and_no_run_are_refused(tmp_path: Path) -> None:
    path = four_editors(tmp_path / "x", ("a",))
    with pytest.raises(SettingsError, match="is given twice"):
        gather([path, tmp_path / "." / "x"])
    with pytest.raises(SettingsError, match="at least one run"):
        gather([])
    with pytest.raises(StoreError, match="is not a run directory"):
        gather([path, tmp_path / "nowhere"])


def test_another_version_of_a_metric_does_not_rank(tmp_path: Path) -> None:
    four_editors(tmp_path / "x", ("a",))
    made = Made(tmp_path / "y")
    for source, cycle in itertools.product(("s0", "s1"), ("copy", "trip")):
        made.walk(source, cycle, "b", (0.9, 0.8, 0.7), metrics=["psnr"], metric_version="0")
        for n in (1, 2, 3):
            key = ChainKey(suite="tiny@1", source=source, cycle=f"{cycle}@1", editor="b")
            made.row(key.id, n * (1 + (cycle == "trip")), "ssim", 0.8)
    made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert found.ranked_by == ("ssim",)
    assert {s.best_rank is not None for s in found.standings} == {True}
    assert (
        f"psnr: does not rank, because y has scores of version 0 only, installed is "
        f"{installed('psnr')}. Compute them with `convergebench score RUN --metrics psnr`, RUN "
        "being the directory of y." in told(found)
    )


def test_a_copy_of_a_run_changes_nothing(tmp_path: Path) -> None:
    path = four_editors(tmp_path / "x")
    shutil.copytree(path, tmp_path / "y")
    assert numbers(analyze(path, tmp_path / "y")) == numbers(analyze(path))
