"""Several runs on equal footing: half-lives cut alike, repeats matched by their frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.analysis import Findings, analyze
from convergebench.cycle import Cycle, Edit
from convergebench.gathering import gather
from tests.analysis.several import COPY, TRIP, Made

THIRD = Cycle(name="turn", kind="replicate", edit=(Edit(prompt="Copy it again."),))


def told(found: Findings) -> str:
    return "\n".join(found.notes)


def lives(found: Findings, metric: str = "psnr") -> dict[str, str]:
    return {s.editor: s.half_life.get(metric, "–") for s in found.standings}


# -- half-lives -----------------------------------------------------------------------------------


def test_half_lives_are_over_what_all_runs_have(tmp_path: Path) -> None:
    one = Made(tmp_path / "x")
    two = Made(tmp_path / "y")
    for source in ("s0", "s1"):
        one.walk(source, "trip", "a", (0.9,) * 3)
        two.walk(source, "trip", "b", (0.9,) * 3)
        two.walk(source, "copy", "b", (0.9,) * 10)
    one.done()
    two.done()
    alone = analyze(two.path)
    assert lives(alone) == {"b": "> 10"}, "a single run is as it always was"
    found = analyze(one.path, two.path)
    assert lives(found) == {"a": "> 3", "b": "> 3"}
    means = {f.editor: f for f in found.findings if f.id.startswith("restricted-mean/psnr/")}
    assert {m.estimate for m in means.values()} == {3.0}
    assert {m.n for m in means.values()} == {2}
    assert "over an editor's chains through what all runs have (trip@1)" in told(found)
    assert "medians over all chains of an editor" not in told(found)
    aucs = {f.editor: f.n for f in found.findings if f.id.startswith("auc/psnr/")}
    assert aucs == {"a": 2, "b": 4}, "AUCs are means and need no cut"


def test_without_a_cycle_in_all_runs_every_chain_is_cut_at_the_shortest(tmp_path: Path) -> None:
    cycles = (COPY, TRIP, THIRD)
    walks = {
        "x": [("copy", "a", 5)],
        "y": [("copy", "b", 5), ("trip", "b", 2)],
        "z": [("trip", "c", 2), ("turn", "c", 9)],
    }
    for name, mine in walks.items():
        made = Made(tmp_path / name, cycles=cycles)
        for cycle, editor, rounds in mine:
            made.walk("s0", cycle, editor, (0.9,) * rounds)
        made.done()
    found = analyze(*(tmp_path / name for name in walks))
    assert lives(found) == {"a": "> 2", "b": "> 2", "c": "> 2"}
    assert "cut after the first 2 homecomings" in told(found)


# -- repeats --------------------------------------------------------------------------------------


def repeats(path: Path, *told: tuple[int, str], rounds: int = 2) -> Path:
    """A run with an editor's repeats of one chain: their numbers, and what their frames are."""
    made = Made(path)
    for number, frames in told:
        made.walk("s0", "copy", "a", (0.9,) * rounds, frames=frames, repeat=number)
    return made.done()


@pytest.mark.parametrize(
    ("one", "two", "numbers", "moved"),
    [
        (((0, "p"), (1, "q")), ((1, "p"), (2, "q")), {0: "xy", 1: "xy"}, 2),
        (((0, "p"), (1, "q")), ((0, "q"), (1, "p")), {0: "xy", 1: "xy"}, 2),
        (((0, "p"), (1, "q")), ((5, "q"),), {0: "x", 1: "xy"}, 1),
        (((0, "p"), (1, "q")), ((0, "q"), (1, "r")), {0: "x", 1: "xy", 2: "y"}, 2),
        (((0, "p"),), ((0, "p"), (1, "p")), {0: "xy", 1: "y"}, 0),
        (((0, "p"),), ((1, "q"),), {0: "x", 1: "y"}, 0),
    ],
)
def test_repeats_are_matched_by_their_frames(
    tmp_path: Path,
    one: tuple[tuple[int, str], ...],
    two: tuple[tuple[int, str], ...],
    numbers: dict[int, str],
    moved: int,
) -> None:
    paths = repeats(tmp_path / "x", *one), repeats(tmp_path / "y", *two)
    gathered = gather(paths)
    owners = {c.key.repeat: "".join(gathered.owners[c.key.id]) for c in gathered.chains}
    assert owners == numbers
    assert {c.key.editor for c in gathered.chains} == {"a"}
    notes = "\n".join(gathered.notes)
    assert "different frames" not in notes
    what = "1 repeat of y has" if moved == 1 else f"{moved} repeats of y have"
    assert (f"a: {what} another number here, matched by the frames" in notes) == bool(moved)
    found = analyze(*paths)
    assert {s.complete for s in found.standings} == {len(numbers)}, "scores follow their chains"


def test_repeats_that_match_nowhere_are_told_apart(tmp_path: Path) -> None:
    one = repeats(tmp_path / "x", (0, "p"), (1, "q"))
    found = analyze(one, repeats(tmp_path / "y", (0, "p"), (1, "r")))
    assert {s.editor for s in found.standings} == {"a [x]", "a [y]"}
    assert "a gave different frames for the same chains in x, y" in told(found)


def test_a_renumbered_repeat_is_not_planned_once_more(tmp_path: Path) -> None:
    one = repeats(tmp_path / "x", (1, "p"))
    made = Made(tmp_path / "y", {"s0": "p0"}, cycles=(COPY,))
    made.walk("s0", "copy", "a", (0.9,) * 2, frames="p")
    made.plan(2, "a")
    found = analyze(one, made.done())
    assert [(s.complete, s.chains) for s in found.standings] == [(1, 1)]


BLUR = Cycle(
    name="blur",
    kind="round-trip",
    reversibility="destroying",
    edit=(Edit(prompt="Blur it."), Edit(prompt="Sharpen it.")),
)


def test_a_common_cycle_that_cannot_be_undone_takes_no_half_life_away(tmp_path: Path) -> None:
    for name, editor, cycle, rounds in (("x", "a", "copy", 3), ("y", "b", "turn", 5)):
        made = Made(tmp_path / name, cycles=(BLUR, COPY, THIRD))
        for source in ("s0", "s1"):
            made.walk(source, "blur", editor, (0.9,) * 4)
            made.walk(source, cycle, editor, (0.9,) * rounds)
        made.done()
    found = analyze(tmp_path / "x", tmp_path / "y")
    assert lives(found) == {"a": "> 3", "b": "> 3"}
    assert "all chains of an editor, cut after the first 3 homecomings" in told(found)
    assert "no fully reversible cycle is in all runs" in told(found), "the blur is"
    assert "By group" not in told(found), "the blur is in both runs, and whole"
    groups = {f.id: f for f in found.findings if f.kind == "life-by-cycle" and f.metric == "psnr"}
    assert groups["life-by-cycle/blur@1/psnr/a"].note.startswith("half-life > 4")
    assert groups["life-by-cycle/turn@1/psnr/b"].note == "half-life > 3"


def test_half_lives_by_group_of_what_cannot_be_undone_are_level_too(tmp_path: Path) -> None:
    fog = BLUR.model_copy(update={"name": "fog"})
    walks = {
        "x": [("copy", "a", 3), ("blur", "a", 4)],
        "y": [("copy", "b", 3), ("fog", "b", 6)],
        "z": [("fog", "c", 6)],
    }
    for name, mine in walks.items():
        made = Made(tmp_path / name, cycles=(BLUR, fog, COPY))
        for cycle, editor, rounds in mine:
            made.walk("s0", cycle, editor, (0.9,) * rounds)
        made.done()
    found = analyze(*(tmp_path / name for name in walks))
    assert lives(found) == {"a": "> 3", "b": "> 3"}, "the run that has nothing else takes no part"
    assert "medians over all chains of an editor. By group, those of cycles that cannot be " in (
        told(found)
    )
    assert "cut after the first 4 homecomings" in told(found)
