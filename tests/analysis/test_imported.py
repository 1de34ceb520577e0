"""Runs that were made elsewhere: gaps, failures nobody can repeat, scores without pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.analysis import Finding, Findings, Standing, analyze
from convergebench.chain import IMPORTED, Chain, ChainKey, Outcome, Step
from convergebench.errors import ConvergeBenchError
from tests.analysis.handmade import FLOOR, decibels, ssim_at
from tests.analysis.several import Made, ref

THEIRS = "published:lab-x"


def lines(found: Findings) -> dict[str, Standing]:
    return {s.editor: s for s in found.standings}


def numbers(found: Findings) -> dict[str, Finding]:
    return {f.id: f for f in found.findings}


def told(found: Findings) -> str:
    return "\n".join(found.notes)


def chain(made: Made, source: str, editor: str, outcomes: list[Outcome]) -> str:
    """A round-trip chain with these outcomes."""
    key = ChainKey(suite=made.suite.label, source=source, cycle="trip@1", editor=editor)
    made.store.start(Chain(key, ref(made.pictures[source]), None, IMPORTED))
    for n, outcome in enumerate(outcomes, 1):
        frame = ref(f"{editor}{source}{n}") if outcome == "edited" else None
        step = Step(step=n, outcome=outcome, prompt="p", inputs=(), frame=frame, detail="why")
        made.store.append(key.id, step)
    return key.id


def only_scores(path: Path, *, floor: bool = False, short: bool = False) -> Path:
    """Two editors' published scores of two sources, three rounds."""
    made = Made(path, {"s0": "", "s1": ""}, imported=True)
    for editor, drop in (("a", 0.1), ("b", 0.3)):
        for source in ("s0", "s1"):
            curve = [1 - drop * n for n in (1, 2, 3)]
            if short and source == "s1":
                curve.pop()
            made.walk(source, "trip", editor, curve, version=IMPORTED, metric_version=THEIRS)
    if floor:
        for metric in ("psnr", "ssim"):
            made.row("floor--given", 0, metric, FLOOR[metric], against="given", version=THEIRS)
    return made.done()


def test_a_chain_that_failed_alone_is_a_failed_chain(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        made = Made(tmp_path / f"run{count}")
        name = chain(made, "s0", "a", [*["edited"] * count, "failed"])  # type: ignore[list-item]
        if count > 1:
            made.row(name, 2, "psnr", 30.0)
        line = lines(analyze(made.done()))["a"]
        assert (line.failed, line.complete, line.chains) == (1, 0, 1), f"after {count} frames"
        assert line.outcomes == {"edited": count, "failed": 1}


def test_a_gap_is_missing_and_no_failure(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    whole = chain(made, "s0", "a", ["edited"] * 6)
    holed = chain(made, "s1", "a", ["edited", "edited", "missing", "missing", "edited", "edited"])
    for metric in ("psnr", "ssim"):
        for name, steps in ((whole, (2, 4, 6)), (holed, (2, 6))):
            for step in steps:
                made.row(name, step, metric, {"psnr": 30.0, "ssim": 0.9}[metric])
    found = analyze(made.done())
    line = lines(found)["a"]
    assert (line.complete, line.chains, line.failed, line.lost) == (1, 2, 0, 0)
    assert line.outcomes == {"edited": 10, "missing": 2}
    assert numbers(found)["value/psnr/a/2"].missing == 1
    assert numbers(found)["value/psnr/a/3"].n == 2, "what comes after a gap counts"
    assert {f.failed for f in found.findings} == {0}
    assert "2 frames are missing in the import" in told(found)
    assert "not scored" not in told(found).replace("lpips not scored", "").replace(
        "clip not scored", ""
    )


def test_only_what_comes_after_the_last_frame_failed(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    name = chain(made, "s0", "a", ["edited", "missing", "edited", "edited", "edited", "failed"])
    made.row(name, 4, "ssim", 0.9)
    points = numbers(analyze(made.done()))
    assert [points[f"value/ssim/a/{n}"].failed for n in (1, 2, 3)] == [0, 0, 1]


def test_short_imported_chains_cannot_go_on(tmp_path: Path) -> None:
    found = analyze(only_scores(tmp_path / "run", short=True))
    assert "2 of 4 imported chains are shorter than the longest of their cycle" in told(found)
    assert "convergebench run" not in told(found)


def test_scores_without_pictures_are_taken_as_published(tmp_path: Path) -> None:
    found = analyze(only_scores(tmp_path / "run"))
    assert found.metrics == ("psnr@published:lab-x", "ssim@published:lab-x")
    assert "psnr, ssim of 4 chains are as published by lab-x, not measured here." in told(found)
    assert {s.origin for s in found.standings} == {"published by lab-x"}
    assert all(s.outcomes == {"reported": 12} and s.lost == 0 for s in found.standings)
    assert all(s.complete == 2 for s in found.standings)
    assert numbers(found)["value/psnr/a/1"].estimate == pytest.approx(decibels(10))
    # Nothing to rank by without a floor; the literal rule needs none. SSIM of b is 0.2 + 0.8 C:
    # 0.76, 0.52, 0.28.
    assert "No editor is ranked: convergence by psnr or ssim cannot be had." in told(found)
    assert "psnr: no convergence, because the floor needs pictures" in told(found)
    assert numbers(found)["literal-half-life/ssim/b"].estimate == 3
    assert lines(found)["b"].half_life == {"ssim (literal)": "3.00"}
    assert [row["scores"] for row in found.table.records()] == ["published by lab-x"] * 2


def test_a_floor_that_was_given_ranks(tmp_path: Path) -> None:
    found = analyze(only_scores(tmp_path / "run", floor=True))
    assert found.floors == pytest.approx({"psnr": -100, "ssim": 0.2})
    assert lines(found)["a"].score == pytest.approx(0.8)
    assert lines(found)["b"].score == pytest.approx(0.4)
    assert "The floor of psnr, ssim was given with the published scores" in told(found)
    assert "mixes" not in told(found)


def test_a_ranking_of_published_and_measured_scores_says_so(tmp_path: Path) -> None:
    only_scores(tmp_path / "theirs")
    made = Made(tmp_path / "ours", label="ours@1")
    for source in ("s0", "s1"):
        made.walk(source, "trip", "c", (0.9, 0.9, 0.9))
    made.done()
    found = analyze(tmp_path / "ours", tmp_path / "theirs")
    assert [s.editor for s in found.standings] == ["c", "a", "b"]
    assert {s.place for s in found.standings} == {"1–3"}, "two sources"
    assert {s.editor: s.score for s in found.standings} == pytest.approx(
        {"c": 0.9, "a": 0.8, "b": 0.4}
    )
    assert "The ranking mixes published scores (a, b) with scores measured here (c)" in told(found)
    rows = {str(row["editor"]): row["scores"] for row in found.table.records()}
    assert rows == {"a": "published by lab-x", "b": "published by lab-x", "c": "measured"}


def test_a_measured_floor_is_preferred(tmp_path: Path) -> None:
    only_scores(tmp_path / "theirs", floor=True)
    made = Made(tmp_path / "ours", label="ours@1")
    for source in ("s0", "s1"):
        made.walk(source, "trip", "c", (0.9, 0.9, 0.9))
    made.rows = [
        row | ({"value": ssim_at(0, 0.4)} if row["chain"].startswith("floor") else {})
        for row in made.rows
        if row["metric"] == "ssim"
    ]
    made.done()
    found = analyze(tmp_path / "ours", tmp_path / "theirs")
    assert found.floors == pytest.approx({"ssim": 0.4, "psnr": -100})
    assert "The floor of psnr was given" in told(found)
    assert found.metrics[1].startswith("ssim@1"), "measured here, too"
    assert "theirs has no pictures of s0, s1: they are taken to be" in told(found)
    assert lines(found)["c"].origin == ""


def test_published_scores_of_pictures_that_are_here_wait_for_ours(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    made.rows = []
    made.walk("s0", "trip", "a", (0.9,), metric_version=THEIRS)
    path = made.done()
    with pytest.raises(ConvergeBenchError, match="has no scores yet"):
        analyze(path)
    made.rows = []
    made.row(next(c.key.id for c in made.store.chains()), 2, "ssim", 0.5)
    made.done()
    found = analyze(path)
    assert numbers(found)["value/ssim/a/1"].estimate == 0.5, "ours, not theirs"
    assert {s.origin for s in found.standings} == {""}
    assert "psnr" not in "".join(found.metrics)


def test_a_published_metric_that_is_none_of_ours_is_mentioned(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", {"s0": "", "s1": ""}, imported=True)
    walked = made.walk("s0", "trip", "a", (0.9,), version=IMPORTED, metric_version=THEIRS)
    made.row(walked.key.id, 2, "dreamyness", 0.5, version=THEIRS)
    found = analyze(made.done())
    assert "no metric here, so in the score files only: dreamyness." in told(found)


def test_identical_published_chains_count_once_and_others_are_told_apart(tmp_path: Path) -> None:
    one, two = only_scores(tmp_path / "x"), only_scores(tmp_path / "y")
    assert "4 chains are the same in x and y and count once." in told(analyze(one, two))
    made = Made(tmp_path / "z", {"s0": "", "s1": ""}, imported=True)
    made.walk("s0", "trip", "a", (0.5, 0.4, 0.3), version=IMPORTED, metric_version=THEIRS)
    found = analyze(one, made.done())
    assert set(lines(found)) == {"a [x]", "a [z]", "b"}
