"""The restoration layout: input/ gt/ method-a/ …, pictures of the same name in each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Look, Wishes
from convergebench.importer.layouts.restoration import LAYOUT
from tests.importer.trees import plant, said, steps_of


def read(root: Path, **wishes: Any) -> Finds:
    return LAYOUT.read(Look(root), Wishes(**wishes))


def grid(*folders: str, names: tuple[str, ...] = ("a.png", "b.png")) -> list[str]:
    return [f"{folder}/{name}" for folder in folders for name in names]


@pytest.mark.shared
def test_real_pairs_have_their_truths_and_gaps_are_failures_to_be(
    shared: Path, tmp_path: Path
) -> None:
    for number in range(1, 6):
        for kind, folders in (("LR", ("input", "method-copy")), ("HR", ("gt",))):
            name = f"img_00{number}_SRF_2_{kind}.png"
            for folder in folders:
                (tmp_path / folder).mkdir(exist_ok=True)
                whole = shared / "data/restoration/set5/image_SRF_2" / name
                shutil.copy(whole, tmp_path / folder / f"img_00{number}.png")
    (tmp_path / "method-copy/img_004.png").unlink()
    assert LAYOUT.recognise(Look(tmp_path)).startswith("input/ and 1 folder")
    finds = read(tmp_path)
    assert len(finds.sources) == 5
    for name, source in finds.sources.items():
        assert source.place
        assert source.truth
        assert source.truth.read() == (tmp_path / "gt" / f"{name}.png").read_bytes()
    assert {t.split(" · ")[1]: s for t, s in steps_of(finds).items()} == {
        f"img_00{n}": [0] if n == 4 else [0, 1] for n in range(1, 6)
    }
    assert set(finds.expected.values()) == {1}
    assert len(finds.expected) == 5
    assert said(finds, "1 output missing, taken as failed: copy · img_004 · restore")


def test_every_other_folder_is_an_editor(tmp_path: Path) -> None:
    root = plant(tmp_path, grid("input", "gt", "method-a", "method_b", "swinir", "methods/c"))
    finds = read(root)
    assert {frame.track.editor for frame in finds.frames} == {"a", "b", "swinir", "c"}
    assert set(map(tuple, steps_of(finds).values())) == {(0, 1)}
    assert finds.cycles["restore"].kind == "restore"
    assert not finds.unread
    assert not finds.notes


@pytest.mark.parametrize("truth", ["gt", "GT", "truth", "target", "hr", "clean", "ground_truth"])
@pytest.mark.parametrize("given", ["input", "lq", "LR", "degraded", "noisy"])
def test_folders_of_inputs_and_truths_have_many_names(
    tmp_path: Path, given: str, truth: str
) -> None:
    root = plant(tmp_path, grid(given, truth, "x"))
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    assert {frame.track.editor for frame in finds.frames} == {"x"}
    place = finds.sources["a"].truth
    assert place
    assert place.name == f"{truth}/a.png"


def test_missing_truths_are_counted(tmp_path: Path) -> None:
    plant(tmp_path, [*grid("input", "x"), "gt/a.png"])
    finds = read(tmp_path)
    assert finds.sources["b"].truth is None
    assert said(finds, "1 of 2 inputs have no ground truth: b")
    (tmp_path / "gt/a.png").unlink()
    assert said(read(tmp_path), "There are no ground truths")


def test_scenes_are_categories_and_tell_equal_names_apart(tmp_path: Path) -> None:
    plant(tmp_path, grid("input/rain", "input/fog", "gt/rain", "gt/fog", "x/rain", "x/fog"))
    plant(tmp_path, ["input/rain/c.png", "x/c.png"])
    finds = read(tmp_path)
    assert {name: source.category for name, source in finds.sources.items()} == {
        "rain_a": "rain", "rain_b": "rain", "fog_a": "fog", "fog_b": "fog", "c": "rain",
    }  # fmt: skip
    fog = next(f for f in finds.frames if f.track.source == "fog_a" and f.step == 1)
    assert fog.place
    assert fog.place.name == "x/fog/a.png"
    assert finds.sources["c"].truth is None
    assert set(map(tuple, steps_of(finds).values())) == {(0, 1)}


def test_endings_may_differ(tmp_path: Path) -> None:
    plant(tmp_path, ["input/a.png", "gt/a.tif", "x/a.jpg"])
    finds = read(tmp_path)
    assert list(steps_of(finds).values()) == [[0, 1]]
    assert finds.sources["a"].truth


def test_runs_are_repeats_from_0_in_folders_or_names(tmp_path: Path) -> None:
    plant(tmp_path, grid("input", "x/run_1", "x/run_2"))
    plant(tmp_path, grid("y", names=("a_r1.png", "b_r1.png", "a_r2.png")))
    finds = read(tmp_path)
    assert {(f.track.editor, f.track.source, f.track.repeat) for f in finds.frames if f.step} == {
        (e, s, r) for e in "xy" for s in "ab" for r in (0, 1)
    } - {("y", "b", 1)}
    assert said(finds, "run 1 is repeat 0")
    assert said(finds, "y · b · restore · repeat 1")
    plant(tmp_path, grid("z/run_0"))
    assert {f.track.repeat for f in read(tmp_path).frames if f.track.editor == "x"} == {1, 2}


def test_a_name_that_ends_like_a_run_is_a_name_when_the_input_has_it(tmp_path: Path) -> None:
    plant(tmp_path, grid("input", "x", names=("street_r1.png", "street_r2.png")))
    assert {t.split(" · ")[1] for t in steps_of(read(tmp_path))} == {"street_r1", "street_r2"}


def test_each_prompt_folder_is_a_cycle(tmp_path: Path) -> None:
    plant(tmp_path, grid("input", "x/prompt_S1/run_1", "x/prompt_S1/run_2", "x/LF2/run_1"))
    finds = read(tmp_path)
    assert set(finds.cycles) == {"S1", "LF2"}
    assert {cycle.kind for cycle in finds.cycles.values()} == {"restore"}
    assert len(finds.expected) == 6
    with pytest.raises(ImportProblem, match="one edit; got 1 prompt for 2 prompt folders"):
        read(tmp_path, prompts=("Repair it",))


def test_a_scene_called_like_a_prompt_or_run_stays_a_scene(tmp_path: Path) -> None:
    plant(tmp_path, grid("input/S1", "input/run_1", "x/S1", "x/run_1"))
    finds = read(tmp_path)
    assert set(finds.cycles) == {"restore"}
    assert len(steps_of(finds)) == 4


def test_a_wished_prompt_and_cycle_are_taken(tmp_path: Path) -> None:
    plant(tmp_path, grid("input", "x"))
    finds = read(tmp_path, prompts=("Repair it",), cycle="repair")
    assert finds.cycles["repair"].prompts == ("Repair it",)
    assert {frame.prompt for frame in finds.frames if frame.step} == {"Repair it"}


def test_outputs_and_truths_without_an_input_are_unread(tmp_path: Path) -> None:
    plant(tmp_path, [*grid("input", "gt", "x"), "x/c.png", "gt/d.png", "x/log.txt", "sheet.png"])
    finds = read(tmp_path)
    assert finds.unread == ["gt/d.png", "sheet.png", "x/c.png", "x/log.txt"]
    assert said(finds, "3 pictures without a picture of that name in input/")


def test_trees_that_are_none_are_refused_in_a_sentence(tmp_path: Path) -> None:
    root = plant(tmp_path / "1", grid("gt", "x"))
    with pytest.raises(ImportProblem, match="no folder of degraded pictures; expected one called"):
        read(root)
    plant(root, grid("input", "lq"))
    with pytest.raises(ImportProblem, match="several folders of degraded pictures: input, lq"):
        read(root)
    assert not LAYOUT.recognise(Look(root))
    root = plant(tmp_path / "2", grid("input", "gt"))
    assert not LAYOUT.recognise(Look(root))
    with pytest.raises(ImportProblem, match="no folder of restored pictures"):
        read(root)
    root = plant(tmp_path / "3", [*grid("input"), "other/z.png"])
    assert not LAYOUT.recognise(Look(root))


def test_thousands_of_pictures_are_read_in_a_moment(tmp_path: Path) -> None:
    names = tuple(f"{n:05}.png" for n in range(1500))
    plant(tmp_path, grid("input", "x/run_1", names=names))
    assert len(read(tmp_path).frames) == 3000


def test_masks_are_no_method(tmp_path: Path) -> None:
    for name in ("input/a.png", "masks/a.png", "net/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    finds = LAYOUT.read(Look(tmp_path), Wishes())
    assert {frame.track.editor for frame in finds.frames} == {"net"}
    assert finds.unread == ["masks/a.png"]
