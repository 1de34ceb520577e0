"""MagicBrush's trees and what models made of them; and who says yes to which folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look
from convergebench.importer.layouts import film, imgedit, magicbrush, webdataset
from tests.importer.turn_trees import read, tree, walks

MAGICBRUSH, IMGEDIT = magicbrush.LAYOUT, imgedit.LAYOUT


def turn(name: str, number: int, text: str) -> dict[str, str]:
    before = f"{name}-input.png" if number == 1 else f"{name}-output{number - 1}.png"
    return {
        "input": before,
        "mask": f"{name}-mask{number}.png",
        "output": f"{name}-output{number}.png",
        "instruction": text,
    }


def pictures(name: str, turns: int, below: str = "images/") -> list[str]:
    files = [f"{below}{name}/{name}-input.png"]
    for number in range(1, turns + 1):
        files += [f"{below}{name}/{name}-{what}{number}.png" for what in ("output", "mask")]
    return files


SESSIONS = {
    "30": [turn("30", 1, "add a dog")],
    "139": [turn("139", n, f"do {n}") for n in (1, 2, 3)],
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return tree(tmp_path / "dev", pictures("30", 1) + pictures("139", 3), edit_sessions=SESSIONS)


def test_magicbrush_sessions_are_chains_with_their_own_prompts(dataset: Path) -> None:
    assert "edit_sessions.json" in MAGICBRUSH.recognise(Look(dataset))
    finds = read(MAGICBRUSH, dataset)
    assert walks(finds) == {
        ("dev", "30", "turns-1"): {
            0: ("images/30/30-input.png", None),
            1: ("images/30/30-output1.png", "add a dog"),
        },
        ("dev", "139", "turns-3"): {
            0: ("images/139/139-input.png", None),
            1: ("images/139/139-output1.png", "do 1"),
            2: ("images/139/139-output2.png", "do 2"),
            3: ("images/139/139-output3.png", "do 3"),
        },
    }
    assert {name: (c.kind, c.prompts) for name, c in finds.cycles.items()} == {
        "turns-1": ("free", (None,)),
        "turns-3": ("free", (None, None, None)),
    }
    assert sorted(finds.expected.values()) == [1, 3]
    assert "Not read: 4 masks." in finds.notes
    assert sum("mask" in name for name in finds.unread) == len(finds.unread) == 4
    assert any("editor's name is its folder's (dev)" in note for note in finds.notes)


def test_magicbrush_turns_may_come_as_one_list(dataset: Path) -> None:
    (dataset / "edit_sessions.json").unlink()
    flat = [t for turns in SESSIONS.values() for t in reversed(turns)] + [{"instruction": "?"}, 3]
    (dataset / "edit_turns.json").write_text(json.dumps(flat))
    finds = read(MAGICBRUSH, dataset)
    assert walks(finds)["dev", "139", "turns-3"][2][1] == "do 2"
    assert "Not read: 2 annotated turns without an output's name." in finds.notes


def test_magicbrush_annotations_that_disagree_are_told(dataset: Path) -> None:
    other = [turn("30", 1, "add a cat"), *SESSIONS["139"]]
    (dataset / "edit_turns.json").write_text(json.dumps(other))
    finds = read(MAGICBRUSH, dataset)
    assert walks(finds)["dev", "30", "turns-1"][1][1] == "add a dog"
    assert any("Two different instructions for 1 turn:" in note for note in finds.notes)


def test_magicbrush_gaps_and_missing_ends_are_left_to_the_record(dataset: Path) -> None:
    (dataset / "images/139/139-output2.png").unlink()
    (dataset / "images/30/30-output1.png").unlink()
    sessions = {**SESSIONS, "7": [turn("7", 1, "nothing here")]}
    sessions["139"] = [*SESSIONS["139"], turn("139", 4, "do 4")]
    (dataset / "edit_sessions.json").write_text(json.dumps(sessions))
    finds = read(MAGICBRUSH, dataset)
    ((key, steps),) = walks(finds).items()
    assert key == ("dev", "139", "turns-4")
    assert sorted(steps) == [0, 1, 3]
    assert list(finds.expected.values()) == [4]
    assert "Left out: 2 annotated sessions without a picture here." in finds.notes


def test_magicbrush_captions_describe_sources(dataset: Path) -> None:
    told = {"30": {"30-input.png": "a lawn", "30-output1.png": "a dog on a lawn"}, "139": 3}
    (dataset / "global_descriptions.json").write_text(json.dumps(told))
    finds = read(MAGICBRUSH, dataset)
    assert {name: s.description for name, s in finds.sources.items()} == {"30": "a lawn"}


def test_a_models_results_are_read_as_chains_and_single_edits_are_not(tmp_path: Path) -> None:
    files = ["30/30_1.png", "139/139_1.png", "139/139_iter_2.png", "139/139_iter_3.png"]
    files += ["139/139_inde_2.png", "139/139_inde_3.png"]
    root = tree(tmp_path / "InstructPix2Pix", files)
    assert "model's pictures" in MAGICBRUSH.recognise(Look(root))
    finds = read(MAGICBRUSH, root)
    assert walks(finds) == {
        ("InstructPix2Pix", "30", "turns-1"): {1: ("30/30_1.png", None)},
        ("InstructPix2Pix", "139", "turns-3"): {
            1: ("139/139_1.png", None),
            2: ("139/139_iter_2.png", None),
            3: ("139/139_iter_3.png", None),
        },
    }
    assert any("Not read: 2 pictures named <id>_inde_N" in note for note in finds.notes)
    assert any("No <id>-input picture here: 2 sources" in note for note in finds.notes)
    assert "Not recorded: the instructions of 2 of 2 sessions." in finds.notes
    assert sorted(finds.unread) == ["139/139_inde_2.png", "139/139_inde_3.png"]
    assert not finds.expected


def test_a_model_beside_the_dataset_has_its_sources_and_prompts(dataset: Path) -> None:
    tree(dataset, ["MyModel/139/139_1.png", "MyModel/139/139_iter_2.png"])
    finds = read(MAGICBRUSH, dataset, editor="ignored")
    found = walks(finds)
    assert set(found) == {
        ("dev", "30", "turns-1"),
        ("dev", "139", "turns-3"),
        ("MyModel", "139", "turns-3"),
    }
    mine = found["MyModel", "139", "turns-3"]
    assert mine == {
        1: ("MyModel/139/139_1.png", "do 1"),
        2: ("MyModel/139/139_iter_2.png", "do 2"),
    }
    source = finds.sources["139"].place
    assert source is not None
    assert source.name == "images/139/139-input.png"
    assert any("--editor ignored is not used" in note for note in finds.notes)


def test_numbered_and_inpainted_names_are_read_too(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", ["5/5_1.png", "5/5_2.png"])
    assert MAGICBRUSH.recognise(Look(root)) == ""  # might be any sequence: must be asked for
    assert sorted(walks(read(MAGICBRUSH, root))["m", "5", "turns-2"]) == [1, 2]
    files = ["5/5-input.png", "5/5-inpaint1.png", "5/5-inpaint2.png"]
    root = tree(tmp_path / "n", files)
    assert MAGICBRUSH.recognise(Look(root))
    assert sorted(walks(read(MAGICBRUSH, root))["n", "5", "turns-2"]) == [0, 1, 2]
    tree(root, ["5/5-output1.png"])
    found = walks(read(MAGICBRUSH, root))
    assert sorted(found["n-inpaint", "5", "turns-2"]) == [0, 1, 2]
    assert sorted(found["n", "5", "turns-1"]) == [0, 1]


def test_a_turn_that_took_another_input_says_so(dataset: Path) -> None:
    sessions = {"139": [turn("139", n, f"do {n}") for n in (1, 2, 3)]}
    sessions["139"][2]["input"] = "139-output1.png"
    sessions["139"][1]["input"] = "139-input.png"
    (dataset / "edit_sessions.json").write_text(json.dumps(sessions))
    finds = read(MAGICBRUSH, dataset)
    calls = {f.step: f.call for f in finds.frames if f.track.source == "139"}
    assert calls[1].caveats == ()
    assert calls[2].caveats == ("the annotation says its input was the source",)
    assert calls[3].caveats == ("the annotation says its input was frame 1, not the frame before",)
    assert calls[3].parameters == {"annotated_input": "139-output1.png"}
    assert any("recorded with the step: 2 turns" in note for note in finds.notes)


def test_wishes_name_editor_cycle_kind_and_prompts(dataset: Path) -> None:
    finds = read(MAGICBRUSH, dataset, editor="m", cycle="mine", prompts=("a", "b", "c"))
    assert {frame.track.editor for frame in finds.frames} == {"m"}
    assert not any("--editor" in note for note in finds.notes)
    assert set(finds.cycles) == {"mine-turns-1", "mine-turns-3"}
    assert finds.cycles["mine-turns-3"].prompts == ("a", "b", "c")
    assert any("mine-turns-1: not used there" in note for note in finds.notes)
    finds = read(MAGICBRUSH, dataset, kind="replicate")
    assert {n: (c.kind, c.prompts) for n, c in finds.cycles.items()} == {
        "replicate": ("replicate", (None,))
    }
    only = tree(dataset.parent / "one", pictures("1", 2))
    assert set(read(MAGICBRUSH, only, cycle="mine").cycles) == {"mine"}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("edit_sessions", [], "expected an object of sessions by id, got list"),
        ("edit_sessions", {"30": {}}, "expected a list of turns for session 30"),
        ("edit_turns", {}, "expected a list of turns, got dict"),
    ],
)
def test_magicbrush_annotations_of_another_shape_are_refused(
    dataset: Path, name: str, content: Any, complaint: str
) -> None:
    (dataset / f"{name}.json").write_text(json.dumps(content))
    with pytest.raises(ImportProblem, match=complaint):
        read(MAGICBRUSH, dataset)


def test_magicbrush_without_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "edit_turns.json").write_text("[]")
    with pytest.raises(ImportProblem, match="no picture named as in MagicBrush"):
        read(MAGICBRUSH, tmp_path)


# Nobody says yes to another's folder.

OTHERS = {
    "sequence": ["cat_step_0.png", "cat_step_1.png"],
    "numbered folders": ["cat/0.png", "cat/1.png", "dog/0.png"],
    "named folders": ["cat/cat_1.png", "cat/cat_2.png"],
    "round-trip": ["c/I0_source.png", "c/I1_forward.png", "c/I1_backward.png", "results.json"],
    "restoration": ["input/a.png", "gt/a.png", "method-x/a.png", "method-y/a.png"],
    "plain": ["a.jpg", "b.jpg", "notes.txt"],
    "table": ["scores.csv"],
    "empty": [],
}


@pytest.mark.parametrize("other", OTHERS)
def test_no_layout_here_says_yes_to_other_folders(tmp_path: Path, other: str) -> None:
    root = tree(tmp_path, OTHERS[other])
    if other == "round-trip":
        (root / "results.json").write_text(json.dumps({"c": {"rounds": [{"psnr": 3}]}}))
    for layout in (MAGICBRUSH, IMGEDIT, film.LAYOUT, webdataset.LAYOUT):
        assert layout.recognise(Look(root)) == "", layout.name


def test_each_layout_says_yes_only_to_its_own(tmp_path: Path) -> None:
    roots = {
        "magicbrush": tree(tmp_path / "a", pictures("139", 3), edit_sessions=SESSIONS),
        "imgedit": tree(
            tmp_path / "b", ["p/s/origin_0.png", "p/s/result_0.png", "p/s/result_1.png"]
        ),
        "webdataset": tree(tmp_path / "c", ["part-0.tar", "part-1.tar"]),
        "film": tree(tmp_path / "d", ["cat.mp4", "dog.webm"]),
    }
    for name, root in roots.items():
        layouts = (MAGICBRUSH, IMGEDIT, film.LAYOUT, webdataset.LAYOUT)
        assert [lay.name for lay in layouts if lay.recognise(Look(root))] == [name]
