"""ImgEdit's sessions of several turns, and a model's pictures of its benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look
from convergebench.importer.layouts import imgedit
from tests.importer.turn_trees import read, tree, walks

IMGEDIT = imgedit.LAYOUT

# ImgEdit: the dataset's folders.

TASK = "results_version_backtracking_part0"


def staged(session: str, turns: int, task: str = TASK) -> list[str]:
    return [
        f"{task}/{session}/{what}_{n}.png" for n in range(turns) for what in ("origin", "result")
    ]


def row(session: str, *prompts: str, task: str = TASK) -> list[dict[str, Any]]:
    return [
        {
            "input_images": [f"{task}/{session}/origin_{n}.png"],
            "output_images": [f"{task}/{session}/result_{n}.png"],
            "prompt": prompt,
        }
        for n, prompt in enumerate(prompts)
    ]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "json", "lists"])
def test_imgedit_sessions_are_chains_with_their_own_prompts(tmp_path: Path, form: str) -> None:
    root = tree(tmp_path / "ImgEdit", staged("a", 3) + staged("b", 2) + [f"{TASK}/a/mask_0.png"])
    rows = [row("a", "add", "replace", "withdraw"), row("b", "x", "y", "z"), row("gone", "w")]
    if form == "parquet":
        (root / "Parquet").mkdir()
        told = root / "Parquet/version_backtracking_part0.parquet"
        pl.DataFrame({"data": rows}).write_parquet(told)
        single = {"input_images": [["x"]], "output_images": [["y"]], "prompt": ["z"]}
        pl.DataFrame(single).write_parquet(root / "Parquet/add_part0.parquet")
    elif form == "jsonl":
        lines = "\n".join(json.dumps({"data": turns}) for turns in rows)
        (root / "turns.jsonl").write_text(lines + "\n")
    else:
        content = [{"data": turns} for turns in rows] if form == "json" else rows
        (root / "turns.json").write_text(json.dumps(content))
    assert "origin_0" in IMGEDIT.recognise(Look(root))
    finds = read(IMGEDIT, root, editor="pipeline")
    cycle = "version-backtracking-turns-3"
    assert walks(finds) == {
        ("pipeline", "a", cycle): {
            0: (f"{TASK}/a/origin_0.png", None),
            1: (f"{TASK}/a/result_0.png", "add"),
            2: (f"{TASK}/a/result_1.png", "replace"),
            3: (f"{TASK}/a/result_2.png", "withdraw"),
        },
        ("pipeline", "b", cycle): {
            0: (f"{TASK}/b/origin_0.png", None),
            1: (f"{TASK}/b/result_0.png", "x"),
            2: (f"{TASK}/b/result_1.png", "y"),
        },
    }
    assert set(finds.expected.values()) == {3}
    assert finds.cycles[cycle].category == "version-backtracking"
    assert finds.cycles[cycle].prompts == (None, None, None)
    assert "Without a picture here: 1 of 3 annotated sessions." in finds.notes
    assert "Not read: 1 mask." in finds.notes
    assert any("Not read: 3 pictures origin_1, origin_2" in note for note in finds.notes)
    late = next(f for f in finds.frames if f.track.source == "a" and f.step == 3)
    assert late.call.parameters == {"annotated_input": f"{TASK}/a/origin_2.png"}
    assert "was not checked" in late.call.caveats[0]


def test_imgedit_backtracking_that_names_an_earlier_frame_says_so(tmp_path: Path) -> None:
    root = tree(tmp_path / TASK, [name.partition("/")[2] for name in staged("a", 3)])
    turns = row("a", "add", "replace", "withdraw")
    turns[1]["input_images"] = turns[0]["output_images"]
    turns[2]["input_images"] = turns[0]["output_images"]
    (root / "t.json").write_text(json.dumps([{"data": turns}]))
    calls = {f.step: f.call for f in read(IMGEDIT, root).frames}
    assert calls[2].caveats == ()
    assert calls[3].caveats == ("the annotation says its input was frame 1, not the frame before",)


def test_imgedit_instructions_for_the_whole_session_are_no_step(tmp_path: Path) -> None:
    task = "results_content_memory_part2"
    root = tree(tmp_path / "x", staged("a", 2, task))
    overall = {"input_images": [], "output_images": [], "prompt": "only fruit from now on"}
    turns = [overall, *row("a", "add", "more", task=task)]
    (root / "t.json").write_text(json.dumps([{"data": turns}]))
    finds = read(IMGEDIT, root)
    assert set(finds.cycles) == {"content-memory-turns-2"}
    assert [(f.step, f.prompt) for f in finds.frames] == [(0, None), (1, "add"), (2, "more")]
    assert finds.frames[2].call.parameters["session_prompt"] == "only fruit from now on"
    assert any("An instruction for all turns begins 1 session" in n for n in finds.notes)


def test_imgedit_folders_speak_for_themselves_without_an_annotation(tmp_path: Path) -> None:
    root = tree(tmp_path / "set", staged("a", 3, "part") + staged("b", 2, "part"))
    told = {"round1_prompt": "add", "round2_prompt": None, "round3_prompt": "more"}
    (root / "part/a/result.json").write_text(json.dumps(told))
    (root / "part/b/judge.json").write_text("not even JSON")
    (root / "all_dataset_gpt_score.json").write_text("huge, and not read")
    finds = read(IMGEDIT, root)
    found = walks(finds)
    assert [found["set", "a", "turns-3"][n][1] for n in range(4)] == [None, "add", None, "more"]
    assert sorted(found["set", "b", "turns-2"]) == [0, 1, 2]
    assert "Not recorded: the instructions of 1 of 2 sessions." in finds.notes
    assert "part/b/judge.json" in finds.unread
    assert "part/a/result.json" not in finds.unread


# ImgEdit: the benchmark's turns.

BENCH = {
    "1": {"id": "000066341.jpg", "turn1": "green from now on", "turn2": "fruit", "turn3": "plate"},
    "2": {"id": "animal/000012.jpg", "turn1": "add it", "turn2": "undo it"},
}


@pytest.mark.parametrize(
    "name",
    ["{key}_turn{n}.png", "{key}-{n}.png", "{key}/turn{n}.png", "{key}/{n}.png",
     "{key}/{key}_{n}.png", "{stem}_round{n}.png", "{key}/result_{n}.png", "{key}/edit-{n}.webp"],
)  # fmt: skip
def test_a_models_pictures_of_the_benchmark_are_found_under_many_names(
    tmp_path: Path, name: str
) -> None:
    stems = {"1": "000066341", "2": "000012"}
    files = ["origin/000066341.jpg", "origin/animal/000012.jpg"]
    made = {
        (key, n): "gpt-4o/" + name.format(key=key, n=n, stem=stems[key])
        for key, count in (("1", 3), ("2", 1))
        for n in range(1, count + 1)
    }
    root = tree(tmp_path / "bench", [*files, *made.values()], version_backtracking=BENCH)
    assert "version_backtracking.json has turns" in IMGEDIT.recognise(Look(root))
    finds = read(IMGEDIT, root)
    assert walks(finds) == {
        ("gpt-4o", "000066341", "version-backtracking-turns-3"): {
            0: ("origin/000066341.jpg", None),
            **{n: (made["1", n], BENCH["1"][f"turn{n}"]) for n in (1, 2, 3)},
        },
        ("gpt-4o", "000012", "version-backtracking-turns-2"): {
            0: ("origin/animal/000012.jpg", None),
            1: (made["2", 1], "add it"),
        },
    }
    assert sorted(finds.expected.values()) == [2, 3]
    assert any("KEY_turnN" in note for note in finds.notes)
    assert finds.unread == []


def test_the_benchmark_with_several_models_and_tasks_keeps_them_apart(tmp_path: Path) -> None:
    other = {"1": {"id": "000066341.jpg", "turn1": "remember", "turn2": "again"}}
    files = ["000066341.jpg"]
    for model in ("a", "b"):
        files += [
            f"{model}/content_memory/1_turn1.png",
            f"{model}/version_backtracking/1_turn1.png",
        ]
    files += ["a/1_turn1.png"]
    root = tree(tmp_path / "bench", files, content_memory=other, version_backtracking=BENCH)
    finds = read(IMGEDIT, root)
    prompts = {key[0] + " " + key[2]: steps[1][1] for key, steps in walks(finds).items()}
    assert prompts == {
        "a content-memory-turns-2": "remember",
        "a version-backtracking-turns-3": "green from now on",
        "b content-memory-turns-2": "remember",
        "b version-backtracking-turns-3": "green from now on",
    }
    assert any("Not read: 1 picture that could be of several" in n for n in finds.notes)
    assert finds.unread == ["a/1_turn1.png"]


def test_two_sessions_of_one_picture_are_two_sources(tmp_path: Path) -> None:
    told = {key: {"id": "x.jpg", "turn1": f"p{key}"} for key in ("7", "8")}
    root = tree(tmp_path / "m", ["x.jpg", "7_1.png", "8_1.png"], turns=told)
    found = walks(read(IMGEDIT, root))
    assert {key[1]: steps[1] for key, steps in found.items()} == {
        "x-7": ("7_1.png", "p7"),
        "x-8": ("8_1.png", "p8"),
    }


def test_what_is_not_imgedit_is_refused(tmp_path: Path) -> None:
    root = tree(tmp_path / "x", ["a.png"])
    with pytest.raises(ImportProblem, match="not laid out as ImgEdit"):
        read(IMGEDIT, root)
    tree(root, [], turns=BENCH)
    with pytest.raises(ImportProblem, match="no picture is named after one"):
        read(IMGEDIT, root)
    with pytest.raises(ImportProblem, match="origin_N and no result_N"):
        read(IMGEDIT, tree(tmp_path / "y", ["s/origin_0.png"]))
    broken = tree(tmp_path / "z", staged("a", 2))
    (broken / "t.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ImportProblem, match=r"t\.parquet is not a readable Parquet file"):
        read(IMGEDIT, broken)
    (broken / "t.parquet").unlink()
    (broken / "t.jsonl").write_text('{"data": []}\n{oops\n')
    with pytest.raises(ImportProblem, match=r"t\.jsonl line 2 is not valid JSON"):
        read(IMGEDIT, broken)
