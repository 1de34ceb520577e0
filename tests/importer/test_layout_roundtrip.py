"""The round-trip layout: folders of I0_source, I1_forward …, and the results files beside them."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look
from convergebench.importer.layouts import roundtrip
from tests.importer.round_trips import chain, evaluation, read, results, rounds
from tests.importer.trees import plant, said, steps_of, write_json


@pytest.mark.shared
def test_all_eight_flux_chains_come_with_prompts_and_published_values(shared: Path) -> None:
    root = shared / "data/chains/flux-kontext-dev"
    finds = read(root)
    assert Counter(frame.step > 0 for frame in finds.frames) == {True: 48, False: 8}
    assert len(steps_of(finds)) == 8
    assert set(map(tuple, steps_of(finds).values())) == {(0, 1, 2, 3, 4, 5, 6)}
    assert {frame.track.editor for frame in finds.frames} == {"flux-kontext-dev"}
    hat = finds.cycles["hat_add_remove"]
    assert hat.kind == "round-trip"
    assert hat.prompts == ("Add a hat to the person", "Remove the hat from the person")
    assert hat.category == "accessories"
    assert finds.sources["scene_01"].category == "scene"
    assert Counter(score.metric for score in finds.scores) == dict.fromkeys(
        ("psnr", "ssim", "lpips", "clip"), 24
    )
    assert finds.keys == 96
    assert {score.value for score in finds.scores if score.metric == "lpips"} == {None}
    assert {score.step for score in finds.scores} == {2, 4, 6}
    first = next(s for s in finds.scores if (s.track.source, s.metric) == ("portrait_01", "psnr"))
    assert (first.step, first.value, first.note) == (2, 34.253197183826515, "key quality.psnr")
    clip = next(score for score in finds.scores if score.metric == "clip")
    assert clip.note == "key semantic.clip_similarity"
    assert set(finds.expected.values()) == {6}
    assert not finds.unread
    assert not finds.conflicts
    assert said(finds, "lpips is 0 in every row while clip, psnr, ssim vary")
    assert said(finds, "metadata.model is 'flux-dev'")


@pytest.mark.shared
def test_a_constant_distance_is_kept_when_that_is_wished(shared: Path) -> None:
    finds = read(shared / "data/chains/flux-kontext-dev", keep_constant=True)
    assert {score.value for score in finds.scores if score.metric == "lpips"} == {0.0}
    assert not said(finds, "never computed")


@pytest.mark.shared
def test_the_failed_gemini_chain_is_expected_to_come_home(shared: Path) -> None:
    finds = read(shared / "data/chains/gemini-failed")
    assert steps_of(finds) == {"gemini-failed · portrait_02 · sunglasses_add_remove": [0, 1]}
    assert list(finds.expected.values()) == [2]
    assert said(finds, "portrait_02 + sunglasses_add_remove")
    assert said(finds, "Stops after a forward edit")
    assert said(finds, "(--editor): gemini-failed")


@pytest.mark.shared
def test_one_real_chain_alone_is_a_tree_too(shared: Path) -> None:
    root = shared / "data/chains/flux-kontext-dev/scene_02_red_ball_add_remove"
    assert roundtrip.LAYOUT.recognise(Look(root)).startswith("1 folder")
    finds = read(root)
    assert steps_of(finds) == {"flux-kontext-dev · scene_02 · red_ball_add_remove": [*range(7)]}


@pytest.mark.shared
def test_a_parent_of_real_trees_has_an_editor_per_tree(shared: Path) -> None:
    finds = read(shared / "data/chains")
    assert {frame.track.editor for frame in finds.frames} == {"flux-kontext-dev", "gemini-failed"}
    assert len(finds.unread) == 25
    assert said(finds, "1 folder without an evaluation")


def test_a_parent_with_a_tree_per_editor_names_them_by_folder(tmp_path: Path) -> None:
    for editor in ("alpha", "beta"):
        chain(tmp_path, f"{editor}/cat_01_hat_add_remove")
    finds = read(tmp_path)
    assert set(steps_of(finds)) == {
        "alpha · cat_01 · hat_add_remove",
        "beta · cat_01 · hat_add_remove",
    }
    assert said(finds, "The editor's name is its folder's, for want of another (--editor): alpha")


def test_wishes_name_editor_and_prompts_that_nobody_recorded(tmp_path: Path) -> None:
    finds = read(chain(tmp_path, "cat_01_hat"), editor="mine", prompts=("on", "off"))
    assert set(steps_of(finds)) == {"mine · cat_01 · hat"}
    assert finds.cycles["hat"].prompts == ("on", "off")
    with pytest.raises(ImportProblem, match="two edits, forward and backward; got 1"):
        read(tmp_path, prompts=("on",))


@pytest.mark.parametrize(
    ("folder", "source", "pair"),
    [
        ("portrait_02_sunglasses_add_remove", "portrait_02", "sunglasses_add_remove"),
        ("scene12_3d_glasses", "scene12", "3d_glasses"),
        ("2024_01_05_cat_hat", "2024_01_05", "cat_hat"),
        ("cat_hat_add_remove", "cat", "hat_add_remove"),
        ("cat", "cat", "round-trip"),
    ],
)
def test_without_results_the_folder_name_is_split_and_that_is_said(
    tmp_path: Path, folder: str, source: str, pair: str
) -> None:
    finds = read(chain(tmp_path, folder))
    assert {(f.track.source, f.track.cycle) for f in finds.frames} == {(source, pair)}
    assert said(finds, f"split by the folder's name: {source} + {pair}")


def test_a_wished_cycle_or_source_says_where_a_name_is_split(tmp_path: Path) -> None:
    chain(tmp_path, "black_cat_hat")
    for wishes in ({"cycle": "hat"}, {"source": "black_cat"}):
        finds = read(tmp_path, **wishes)
        assert {(f.track.source, f.track.cycle) for f in finds.frames} == {("black_cat", "hat")}


def test_results_match_folders_exactly_and_say_what_has_no_partner(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    chain(tmp_path, "cat_01_hat_add_remove_old")
    write_json(
        tmp_path / "results.json", results(evaluation(), evaluation("dog.png", "tie_add_remove"))
    )
    finds = read(tmp_path)
    assert said(finds, "1 evaluation without a folder")
    assert said(finds, "dog_tie_add_remove")
    assert said(
        finds, "1 folder without an evaluation in a results file: cat_01_hat_add_remove_old"
    )
    dog = [frame for frame in finds.frames if frame.track.source == "dog"]
    assert [(f.step, f.outcome, f.place) for f in dog] == [
        (step, "reported", None) for step in (1, 2, 3, 4)
    ]
    old = {f.track for f in finds.frames if f.track.cycle == "hat_add_remove_old"}
    assert [(track.source, track.editor) for track in old] == [("cat_01", "model-x")]


def test_rounds_that_failed_are_failed_steps_with_the_reason(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove", 4)
    failed = [*rounds(30.0), {"round": 2, "success": False, "error": "safety filter"}]
    write_json(tmp_path / "results_a.json", results(evaluation(rounds=failed), max_rounds=3))
    finds = read(tmp_path)
    last = finds.frames[-1]
    assert (last.step, last.outcome, last.detail, last.prompt) == (
        4, "failed", "safety filter", "Remove the hat",
    )  # fmt: skip
    assert list(finds.expected.values()) == [6]
    assert {score.step for score in finds.scores} == {2}


def test_a_round_without_any_picture_failed_on_its_way_out(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove", 3)
    failed = [*rounds(30.0), {"round": 2, "success": False, "quality": {"psnr": 0.0}}]
    write_json(tmp_path / "results.json", results(evaluation(rounds=failed)))
    finds = read(tmp_path)
    assert (finds.frames[-1].step, finds.frames[-1].detail) == (3, "success: false in results.json")
    assert all(score.step == 2 for score in finds.scores), "a failed round is never scored as 0"


def test_a_picture_that_is_there_is_kept_though_marked_as_failed(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    told = rounds(30.0, 25.0)
    told[1]["success"] = False
    write_json(tmp_path / "results.json", results(evaluation(rounds=told)))
    finds = read(tmp_path)
    assert [frame.outcome for frame in finds.frames] == ["edited"] * 5
    assert finds.frames[-1].notes == ("marked as failed: success: false in results.json",)
    assert said(finds, "yet the picture is there: cat_01_hat_add_remove")


def test_an_evaluation_that_failed_as_a_whole_fails_at_the_next_step(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove", 1)
    told = evaluation(rounds=[], success=False, error="HTTP 500")
    write_json(tmp_path / "results.json", results(told))
    finds = read(tmp_path)
    assert [(f.step, f.outcome, f.detail) for f in finds.frames] == [
        (0, "edited", ""),
        (1, "failed", "HTTP 500"),
    ]


def test_steps_that_were_meant_beat_what_the_results_say(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    write_json(tmp_path / "results.json", results(evaluation(), max_rounds=10))
    assert list(read(tmp_path).expected.values()) == [20]
    assert list(read(tmp_path, steps=8).expected.values()) == [8]


def test_equal_values_of_two_results_files_collapse(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    for name in ("results_1.json", "results_2.json"):
        write_json(tmp_path / name, results(evaluation()))
    finds = read(tmp_path)
    assert (finds.keys, finds.collapsed, finds.conflicts) == (6, 6, [])
    assert len(finds.scores) == 6


def test_different_values_of_two_results_files_are_conflicts_or_repeats(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    write_json(tmp_path / "results_1.json", results(evaluation()))
    write_json(tmp_path / "results_2.json", results(evaluation(rounds=rounds(31.0, 25.0))))
    finds = read(tmp_path)
    key = "model-x · cat_01 · hat_add_remove: step 2: psnr"
    assert [(c.key, sorted(c.values)) for c in finds.conflicts] == [(key, ["30.0", "31.0"])]
    assert len(finds.scores) == 6
    kept = read(tmp_path, conflicts="repeat")
    psnr = [s for s in kept.scores if s.metric == "psnr" and s.step == 2]
    assert sorted((s.track.repeat, s.value) for s in psnr) == [(0, 30.0), (1, 31.0)]
    assert [(f.track.repeat, f.step) for f in kept.frames if f.outcome == "reported"] == [(1, 2)]


@pytest.mark.parametrize("conflicts", ["refuse", "repeat"])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"model": "model-y"},
            "its model is 'model-x' in results_1.json and 'model-y' in results_2",
        ),
        ({"forward_prompt": "Put a hat on"}, "its forward prompt is 'Add a hat' in results_1.json"),
        ({"backward_prompt": "Off"}, "its backward prompt is 'Remove the hat' in results_1.json"),
    ],
)
def test_different_models_or_prompts_for_one_folder_are_refused(
    tmp_path: Path, more: dict[str, str], words: str, conflicts: str
) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    write_json(tmp_path / "results_1.json", results(evaluation()))
    write_json(tmp_path / "results_2.json", results(evaluation(**more)))
    with pytest.raises(ImportProblem, match=words):
        read(tmp_path, conflicts=conflicts)


def test_an_edit_pair_with_different_prompts_is_several_cycles(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    chain(tmp_path, "dog_hat_add_remove")
    other = evaluation("dog.png", forward_prompt="Give the dog a hat")
    write_json(tmp_path / "results.json", results(evaluation(), other))
    finds = read(tmp_path)
    assert finds.cycles["hat_add_remove"].prompts == ("Add a hat", "Remove the hat")
    assert finds.cycles["hat_add_remove-2"].prompts == ("Give the dog a hat", "Remove the hat")
    assert {f.track.cycle for f in finds.frames if f.track.source == "dog"} == {"hat_add_remove-2"}
    assert said(finds, "told apart as cycles hat_add_remove, hat_add_remove-2")


def test_results_of_several_editors_find_the_tree_of_their_model(tmp_path: Path) -> None:
    for editor in ("model-x", "model-y"):
        chain(tmp_path, f"{editor}/cat_01_hat_add_remove")
    other = evaluation(model="model-y", rounds=rounds(11.0, 10.0))
    write_json(tmp_path / "results.json", results(evaluation(), other))
    finds = read(tmp_path)
    first = {s.track.editor: s.value for s in finds.scores if (s.metric, s.step) == ("psnr", 2)}
    assert first == {"model-x": 30.0, "model-y": 11.0}


def test_an_evaluation_that_fits_several_trees_is_not_guessed(tmp_path: Path) -> None:
    for editor in ("a", "b"):
        chain(tmp_path, f"{editor}/cat_01_hat_add_remove")
    write_json(tmp_path / "results.json", results(evaluation(model="c")))
    finds = read(tmp_path)
    assert not finds.scores
    assert said(finds, "fits a/cat_01_hat_add_remove, b/cat_01_hat_add_remove")


def test_values_that_are_no_numbers_are_empty_and_infinity_stays(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    told = rounds(math.inf, math.nan)
    write_json(tmp_path / "results.json", results(evaluation(rounds=told)))
    psnr = {s.step: (s.value, s.note) for s in read(tmp_path).scores if s.metric == "psnr"}
    assert psnr[2] == (math.inf, "key quality.psnr")
    assert psnr[4] == (None, "key quality.psnr: not a number there")


def test_a_zero_that_does_not_stand_in_every_row_is_a_value(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    told = rounds(30.0, 25.0, lpips=0.0)
    told[1]["quality"]["lpips"] = 0.1
    write_json(tmp_path / "results.json", results(evaluation(rounds=told)))
    assert [s.value for s in read(tmp_path).scores if s.metric == "lpips"] == [0.0, 0.1]


def test_metrics_can_be_named_and_dropped(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    write_json(tmp_path / "results.json", results(evaluation()))
    finds = read(tmp_path, metrics={"clip-b32": "clip_similarity"}, drop=("lpips",))
    assert {score.metric for score in finds.scores} == {"psnr", "clip-b32"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "results.json is not valid JSON"),
        ('{"evaluations": [{"image_filename": "a.png", "edit_pair_name": "b", "rounds": 3}]}',
         "no list of rounds"),
        ('{"evaluations": [{"image_filename": "a.png", "edit_pair_name": "b", '
         '"rounds": [{"round": "x"}]}]}', "has a round 'x'; expected 1, 2, …"),
    ],
)  # fmt: skip
def test_results_that_cannot_be_read_are_refused_in_a_sentence(
    tmp_path: Path, content: str, words: str
) -> None:
    chain(tmp_path, "a_b")
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ImportProblem, match=words):
        read(tmp_path)


def test_other_files_are_unread_and_other_json_is_said(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat")
    plant(tmp_path, ["cat_01_hat/grid.png", "cat_01_hat/I3_source.png", "log.txt"])
    write_json(tmp_path / "results_summary.json", {"mean": 3})
    finds = read(tmp_path)
    assert set(finds.unread) == {
        "cat_01_hat/grid.png", "cat_01_hat/I3_source.png", "log.txt", "results_summary.json",
    }  # fmt: skip
    assert said(finds, "results_summary.json has no list of evaluations")
    with pytest.raises(ImportProblem, match="no pictures called I0_source"):
        read(plant(tmp_path / "other", ["a.png"]))
