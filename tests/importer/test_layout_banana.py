"""The banana100 layout: source × variant × run × step, as folders.

The real dataset could not be seen; these trees are made up from the words of its paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Look, Wishes
from convergebench.importer.layouts.banana import LAYOUT
from convergebench.importer.layouts.variants import is_variant, parse_variant
from tests.importer.trees import plant, said, steps_of


def read(root: Path, **wishes: Any) -> Finds:
    wishes.setdefault("editor", "nano")
    return LAYOUT.read(Look(root), Wishes(**wishes))


@pytest.mark.parametrize(
    ("words", "cycle", "kind", "settings"),
    [
        ("replicate", "replicate", "replicate", {}),
        ("Replication_2K", "replicate", "replicate", {"resolution": "2K"}),
        ("mirror", "mirror", "mirror", {}),
        ("rotate_90", "rotate", "rotate", {}),
        ("reconstruct", "reconstruct", "reconstruct", {}),
        ("monochrome", "recolour", "recolour", {}),
        ("recolor", "recolour", "recolour", {}),
        ("add-apples", "add-apples", "accumulate", {}),
        ("add_100_fruits", "add-100-fruits", "accumulate", {}),
        ("replicate_with_denoise", "replicate-denoise", "replicate", {}),
        ("replicate w/o denoise", "replicate", "replicate", {}),
        ("replicate_fixed_seed", "replicate", "replicate", {"seed": "fixed"}),
        ("seed_per_step", "", None, {"seed": "per-step"}),
        ("seed_42", "", None, {"seed": "fixed", "number": 42}),
        ("temperature_0.4", "", None, {"temperature": 0.4}),
        ("temp0", "", None, {"temperature": 0.0}),
        ("4K", "", None, {"resolution": "4K"}),
        ("interleaved", "", None, {"resolution": "interleaved"}),
        ("single-session", "", None, {"session": "chat"}),
        ("replicate_phrasing_2", "replicate", "replicate", {"phrasing": 2}),
    ],
)
def test_the_papers_words_are_cycles_and_settings(
    words: str, cycle: str, kind: str | None, settings: dict[str, Any]
) -> None:
    told = parse_variant(words)
    assert (told.cycle, told.kind, told.settings, told.rest) == (cycle, kind, settings, "")
    assert is_variant(words)


@pytest.mark.parametrize("name", ["Ekphrasis", "Table", "cat", "kitchen", "t1", "portrait_02"])
def test_names_of_sources_are_no_variants(name: str) -> None:
    assert not is_variant(name)


@pytest.mark.parametrize(
    "pattern",
    [
        "{source}/{variant}/run_{run}/step_{step}.png",
        "{variant}/{source}/run_{run}/{step:03}.png",
        "run_{run}/{variant}/{source}/step{step}.jpg",
        "data/{source}/run{run}/{variant}/image_{step}.png",
        "{variant}/run_{run}/{source}_step_{step}.png",
        "{source}_{variant}_run_{run}_step_{step}.png",
        "banana/{source}/{variant}/run-{run}/{source}_{step:04}.webp",
        "{source}/{variant}/run_{run}/edit-{step}.png",
    ],
)
def test_any_nesting_that_names_make_clear_is_read(tmp_path: Path, pattern: str) -> None:
    cells = [(s, v, r) for s in ("Fog", "lake") for v in ("replicate", "mirror") for r in (1, 2)]
    root = plant(
        tmp_path,
        [
            pattern.format(source=s, variant=v, run=r, step=step)
            for s, v, r in cells
            for step in range(3)
        ],
    )
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    wanted = {f"nano · {s} · {v}" + " · repeat 1" * (r - 1): [0, 1, 2] for s, v, r in cells}
    assert steps_of(finds) == wanted
    assert {name: cycle.kind for name, cycle in finds.cycles.items()} == {
        "replicate": "replicate",
        "mirror": "mirror",
    }
    assert said(finds, "run 1 is repeat 0")
    assert not finds.unread


def test_settings_are_axes_and_no_cycle_is_taken_as_replication(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        [
            f"Fog/{variant}/run_0/step_{n}.png"
            for variant in ("replicate_4K", "temperature_0.4", "replicate_seed_7")
            for n in range(2)
        ],
    )
    finds = read(root)
    assert set(steps_of(finds)) == {
        "nano · Fog · replicate · resolution 4K",
        "nano · Fog · replicate · temperature 0.4",
        "nano · Fog · replicate · seed fixed",
    }
    assert {f.seed for f in finds.frames if f.track.settings.seed == "fixed" and f.step} == {7}
    assert said(finds, "taken as replication (--kind): Fog/temperature_0.4/run_0")


def test_unknown_words_keep_variants_apart(tmp_path: Path) -> None:
    names = [f"Fog/{v}/step_{n}.png" for v in ("replicate", "replicate_v2") for n in range(2)]
    plant(
        tmp_path, [*names, "Fog/replicate/evening/step_0.png", "Fog/replicate/evening/step_1.png"]
    )
    finds = read(tmp_path)
    assert {f.track.cycle for f in finds.frames} == {
        "replicate", "replicate-v2", "replicate-evening",
    }  # fmt: skip
    assert said(finds, "part of the cycle: evening")


def test_editors_of_the_study_are_known_by_their_folders(tmp_path: Path) -> None:
    root = plant(
        tmp_path / "set",
        [
            f"{m}/Fog/replicate/step_{n}.png"
            for m in ("FLUX.2-dev", "qwen_image_edit")
            for n in (0, 1)
        ],
    )
    finds = LAYOUT.read(Look(root), Wishes())
    assert {f.track.editor for f in finds.frames} == {"flux-2-dev", "qwen-image-edit"}
    root = plant(tmp_path / "other", [f"Fog/replicate/step_{n}.png" for n in (0, 1)])
    finds = LAYOUT.read(Look(root), Wishes())
    assert {f.track.editor for f in finds.frames} == {"other"}
    assert said(finds, "after the folder (--editor): other")


@pytest.mark.parametrize("initial", ["initial_images/Fog.png", "Fog/original.png"])
def test_initial_images_that_stand_apart_are_sources(tmp_path: Path, initial: str) -> None:
    root = plant(tmp_path, [initial, *(f"Fog/replicate/run_1/step_{n}.png" for n in (1, 2))])
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    assert list(steps_of(finds).values()) == [[1, 2]]
    place = finds.sources["Fog"].place
    assert place
    assert place.name == initial
    assert not said(finds, "source is missing")
    assert not finds.unread


def test_a_source_within_a_run_is_its_step_0_whatever_the_first_number(tmp_path: Path) -> None:
    names = ["source.png", "step_1.png", "step_2.png"]
    root = plant(tmp_path, [f"Fog/replicate/run_1/{name}" for name in names])
    assert list(steps_of(read(root)).values()) == [[0, 1, 2]]


def test_without_step_0_the_source_is_missing_until_first_is_said(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"Fog/replicate/run_1/step_{n}.png" for n in (1, 2, 3)])
    assert said(read(root), "No picture with step 0 for Fog: the source is missing")
    finds = read(root, first=1, steps=100)
    assert list(steps_of(finds).values()) == [[0, 1, 2]]
    assert list(finds.expected.values()) == [100]
    assert not said(finds, "missing")


def test_texts_beside_pictures_are_reasoning(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"Fog/replicate/step_{n}.png" for n in range(3)])
    (root / "Fog/replicate/step_2.txt").write_text("Examining the details\n")
    finds = read(root)
    assert [f.call.reasoning for f in finds.frames] == [None, None, "Examining the details"]
    assert not finds.unread


def test_a_source_beside_its_variants_begins_all_of_them(tmp_path: Path) -> None:
    names = [f"Fog/{v}/run_{r}/step_1.png" for v in ("mirror", "rotate") for r in (1, 2)]
    root = plant(tmp_path, ["Fog/step_0.png", *names])
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    assert list(steps_of(finds).values()) == [[0, 1]] * 4
    assert not said(finds, "missing")


def test_nothing_known_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match="no pictures of which source, run and step are known"):
        read(plant(tmp_path, ["a.png", "b.png"]))


def plain(root: Path) -> Finds:
    return LAYOUT.read(Look(root), Wishes())


@pytest.mark.parametrize("sources", [("cat",), ("cat", "dog")])
@pytest.mark.parametrize(
    ("wrapper", "editors"),
    [("", ("flux", "qwen")), ("set/", ("flux", "qwen")), ("", ("my-model", "nano-banana"))],
)
def test_folders_below_which_the_same_sources_recur_are_editors(
    tmp_path: Path, sources: tuple[str, ...], wrapper: str, editors: tuple[str, ...]
) -> None:
    cells = [(e, s) for e in editors for s in sources]
    root = plant(
        tmp_path, [f"{wrapper}{e}/{s}/run_1/step_{n}.png" for e, s in cells for n in range(3)]
    )
    finds = plain(root)
    assert steps_of(finds) == {f"{e} · {s} · replicate": [0, 1, 2] for e, s in cells}
    assert said(finds, f"EDITOR/SOURCE: editors {', '.join(editors)}; sources {', '.join(sources)}")
    assert {f.track.editor for f in read(root, editor="nano").frames} <= {"nano", "nano-banana"}


@pytest.mark.parametrize("sources", [("cat",), ("cat", "dog")])
def test_variants_of_one_source_begin_with_the_same_picture(
    tmp_path: Path, sources: tuple[str, ...]
) -> None:
    cells = [(s, v) for s in sources for v in ("warm", "cold")]
    root = plant(
        tmp_path / "set", [f"{s}/{v}/run_1/step_{n}.png" for s, v in cells for n in (0, 1)]
    )
    for source, variant in cells:
        (root / f"{source}/{variant}/run_1/step_0.png").write_text(source)
    finds = plain(root)
    assert steps_of(finds) == {f"set · {s} · replicate-{v}": [0, 1] for s, v in cells}
    assert said(finds, "part of the cycle: cold (source: cat)")


def test_variants_without_step_0_belong_to_the_folder_above(tmp_path: Path) -> None:
    root = plant(tmp_path, ["cat/source.png", "cat/warm/run_1/1.png", "cat/cold/run_1/1.png"])
    finds = read(root)
    assert {f.track.source for f in finds.frames} == {"cat"}
    assert set(finds.sources) == {"cat"}


def test_a_folder_around_different_sources_names_nothing_and_that_is_said(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"set/{s}/run_1/step_{n}.png" for s in ("cat", "dog") for n in (0, 1)])
    finds = read(root)
    assert {f.track.source for f in finds.frames} == {"cat", "dog"}
    assert said(finds, "name neither source nor editor: set (source: cat), set (source: dog)")


@pytest.mark.parametrize(
    "pattern", ["apple/step_{n}.png", "apple_step_{n}.png", "green_apple_step_{n}.png"]
)
def test_a_source_called_by_a_word_of_the_table_is_not_enough(tmp_path: Path, pattern: str) -> None:
    assert LAYOUT.recognise(Look(plant(tmp_path, [pattern.format(n=n) for n in range(3)]))) == ""


def test_a_cycle_told_by_a_folders_name_is_said(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"Fog/add_apples/step_{n}.png" for n in range(3)])
    assert LAYOUT.recognise(Look(root))
    assert said(read(root), "Cycles are told by words in the names: add_apples.")


@pytest.mark.parametrize("sheet", ["grid.png", "cat/grid.png", "cat/run_1/grid.png"])
def test_a_contact_sheet_is_unread(tmp_path: Path, sheet: str) -> None:
    root = plant(tmp_path, [sheet, *(f"cat/run_1/step_{n}.png" for n in range(3))])
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    assert steps_of(finds) == {"nano · cat · replicate": [0, 1, 2]}
    assert finds.unread == [sheet]
