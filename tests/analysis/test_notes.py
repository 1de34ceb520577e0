"""Notes that tell what to do, and only what helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from convergebench.analysis import Findings, analyze
from convergebench.chain import IMPORTED, Chain, ChainKey, Step
from convergebench.comparisons import FLOOR_PREFIX
from convergebench.cycle import NOT_RECORDED, Cycle, Edit
from convergebench.errors import ConvergeBenchError
from convergebench.gathering import gather
from convergebench.registry import metric_spec
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from tests.analysis.several import COPY, Made, ref
from tests.support.runs import write_suite

THEIRS = "published:lab-x"


def told(found: Findings) -> str:
    return "\n".join(found.notes)


def test_frames_that_are_not_on_the_disk_are_counted(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 2, size=16)
    path = tmp_path / "run"
    run(path, {"suite": str(suite), "editors": ["ref:blur"], "rounds": 1, "controls": False})
    score(path, ["psnr", "ssim"], workers=1)
    assert "not on the disk" not in told(analyze(path))
    frames = sorted(p for p in (path / "frames").glob("??/*") if p.is_file())
    frames[0].unlink()
    assert (
        f"1 of {len(frames)} frames is not on the disk; `convergebench verify RUN` names it."
        in (told(analyze(path)))
    )
    frames[1].unlink()
    assert f"2 of {len(frames)} frames are not on the disk;" in told(analyze(path))


def test_short_imports_name_the_rounds_that_all_have(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", imported=True)
    for source in ("s0", "s1"):
        made.walk(source, "trip", "long", (0.9,) * 10, version=IMPORTED)
        made.walk(source, "trip", "short", (0.9,) * 3, version=IMPORTED)
    path = made.done()
    found = analyze(path)
    assert {s.editor: s.complete for s in found.standings} == {"long": 2, "short": 0}
    assert "2 of 4 imported chains are shorter than the longest of their cycle" in told(found)
    assert "`convergebench report RUN --rounds 3` compares what all editors have" in told(found)
    level = analyze(path, rounds=3)
    assert {s.editor: s.complete for s in level.standings} == {"long": 2, "short": 2}
    assert "--rounds" not in told(level)


def test_no_rounds_are_named_where_every_editor_has_a_whole_chain(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", imported=True)
    made.walk("s0", "trip", "a", (0.9,) * 10, version=IMPORTED)
    made.walk("s1", "trip", "a", (0.9,) * 3, version=IMPORTED)
    text = told(analyze(made.done()))
    assert "1 of 2 imported chains is shorter than the longest of its cycle; it was" in text
    assert "--rounds" not in text


def test_cycles_taken_by_their_names_are_told_once(tmp_path: Path) -> None:
    bare = Cycle(name="copy", kind="replicate", edit=(Edit(prompt=NOT_RECORDED),))
    for name, cycle in (("x", COPY), ("y", bare)):
        made = Made(tmp_path / name, cycles=(cycle,), imported=True)
        made.walk("s0", "copy", name, (0.9,))
        made.done()
    notes = analyze(tmp_path / "x", tmp_path / "y").notes
    assert sum("y has no prompts of copy" in note for note in notes) == 1
    assert len(notes) == len(set(notes))


def test_a_published_metric_of_ours_is_to_be_measured(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", imported=True)
    walked = made.walk("s0", "trip", "a", (0.9,), version=IMPORTED)
    for metric in ("lpips", "clip", "dreamyness"):
        made.row(walked.key.id, 2, metric, 0.5, version=THEIRS)
    text = told(analyze(made.done()))
    assert "no metric here, so in the score files only: dreamyness." in text
    assert "clip, lpips: published and not measured here" in text
    assert "`convergebench score RUN --metrics clip,lpips`" in text


@pytest.mark.parametrize("value", [0.5, None])
def test_nothing_is_to_be_scored_of_frames_that_are_not_here(
    tmp_path: Path, value: float | None
) -> None:
    made = Made(tmp_path / "run", imported=True)
    made.walk("s0", "copy", "a", (0.9,), version=IMPORTED)
    key = ChainKey(suite=made.suite.label, source="s1", cycle="copy@1", editor="a")
    made.store.start(Chain(key, ref("p1"), None, IMPORTED))  # the source is here, no frame is
    made.store.append(key.id, Step(step=1, outcome="reported", prompt="p", inputs=()))
    made.row(key.id, 1, "psnr", value, version=THEIRS)
    found = analyze(made.done())
    text = told(found)
    assert "Compute" not in text
    assert "ssim: not published of 1 homecoming whose pictures are not here." in text
    assert ("psnr: 1 of 2 homecomings is null" in text) == (value is None)
    assert "psnr of 1 chain is as published by lab-x" in text


def test_a_metric_without_convergence_is_not_called_impossible(tmp_path: Path) -> None:
    made = Made(tmp_path / "run")
    one = made.walk("s0", "copy", "a", (0.9, 0.8))
    made.row(one.key.id, 1, "lpips", 0.1, version=metric_spec("lpips").version)
    text = told(analyze(made.done()))
    assert "Quality half-life: incomplete, lpips without convergence." in text
    assert "Compute it with `convergebench score RUN --metrics lpips`" in text
    assert "cannot be had" not in text


@pytest.mark.parametrize("chains", [0, 1])
def test_an_interrupted_import_has_no_report(tmp_path: Path, chains: int) -> None:
    made = Made(tmp_path / "run", imported=True)
    for _ in range(chains):
        key = ChainKey(suite=made.suite.label, source="s0", cycle="copy@1", editor="a")
        made.store.start(Chain(key, ref("p0"), None, IMPORTED))
    with pytest.raises(ConvergeBenchError, match=r"has no chains: .* Run the same import again"):
        analyze(made.done())
    assert not (made.path / "findings.json").exists()


def test_a_truth_without_its_source_has_no_part_in_the_floor(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", {"s0": "p0", "s1": "p1", "s2": ""}, imported=True)
    made.walk("s0", "copy", "a", (0.9,), version=IMPORTED)
    for one, other in (("s0", "s2"), ("s2", "s0")):
        made.row(FLOOR_PREFIX + one, 0, "psnr", 99.0, against=other)
    path = made.done()
    known = json.loads((path / "sources.json").read_text())
    known["s2"] = [None, ref("t2").model_dump(mode="json")]
    RunStore.open(path).write_json("sources.json", known)
    floor = gather([path]).scores
    assert "s2" not in set(floor["against"])
    assert analyze(path).floors["psnr"] == pytest.approx(-100)


def test_answers_by_another_model_or_of_another_size_are_told(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 2, size=16)
    path = tmp_path / "run"
    run(path, {"suite": str(suite), "editors": ["ref:blur"], "rounds": 1, "controls": False})
    score(path, ["psnr", "ssim"], workers=1)
    assert "asked for" not in told(analyze(path))
    for number, file in enumerate(sorted((path / "chains").glob("*/*.jsonl"))):
        header, *steps = [json.loads(line) for line in file.read_text().splitlines()]
        for step in steps:
            step["call"] |= {"size": "16x16" if number else "24x16", "model": f"m{number % 2}"}
        file.write_text("".join(json.dumps(line) + "\n" for line in (header, *steps)))
    said = told(analyze(path))
    assert "ref:blur was answered by 2 models (m0, m1): its frames are not all of one" in said
    assert "another size than was asked for (such as 24x16, returned 16x16)" in said
