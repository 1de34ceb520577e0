"""The banana100 layout with tables: metadata files beside pictures, and pictures in Parquet."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Look, Wishes
from convergebench.importer.layouts.banana import LAYOUT
from tests.importer.trees import plant, said, steps_of

COPY = "Produce an exact replica of the provided image, with no alterations."


def read(root: Path, **wishes: Any) -> Finds:
    wishes.setdefault("editor", "nano")
    return LAYOUT.read(Look(root), Wishes(**wishes))


def rows(source: str = "Fog.png") -> list[dict[str, Any]]:
    return [
        {
            "file_name": f"pictures/{run}-{step}.png",
            "initial_image": source,
            "task": "replicate",
            "run": f"run_{run}",
            "iteration": step,
            "prompt": COPY,
            "reasoning_summary": f"step {step}: looks fine",
            "seed": 5 if run == 1 else step,
            "temperature": "0.4",
            "resolution": "2K",
            "model": "gemini-3-pro-image",
        }
        for run in (1, 2)
        for step in range(3)
    ]


def write_metadata(root: Path, ending: str, told: list[dict[str, Any]]) -> None:
    path = root / f"metadata.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in told))
    elif ending == "csv":
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(told[0]))
            writer.writeheader()
            writer.writerows(told)
    else:
        pl.DataFrame(told).write_parquet(path)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_metadata_says_everything(tmp_path: Path, ending: str) -> None:
    root = plant(tmp_path, [row["file_name"] for row in rows()])
    write_metadata(root, ending, rows())
    assert LAYOUT.recognise(Look(root)).startswith(f"metadata.{ending}")
    finds = read(root)
    common = "gemini-3-pro-image · Fog · replicate · "
    assert steps_of(finds) == {
        f"{common}seed fixed, temperature 0.4, resolution 2K": [0, 1, 2],
        f"{common}temperature 0.4, resolution 2K · repeat 1": [0, 1, 2],
    }
    assert finds.cycles["replicate"].prompts == (COPY,)
    last = next(f for f in finds.frames if f.track.repeat and f.step == 2)
    assert last.prompt == COPY
    assert last.seed == 2
    assert last.call.reasoning == "step 2: looks fine"
    assert last.call.model == "gemini-3-pro-image"
    assert last.place
    assert last.place.read() == b"pictures/2-2.png"
    assert not finds.unread


def test_rows_without_their_picture_are_missing_steps(tmp_path: Path) -> None:
    told = rows()
    root = plant(tmp_path, [row["file_name"] for row in told if row["iteration"] != 1])
    write_metadata(root, "jsonl", [*told, {**told[0], "file_name": "../../secret", "iteration": 9}])
    finds = read(root)
    lost = [f for f in finds.frames if f.outcome == "missing"]
    assert sorted(f.step for f in lost) == [1, 1, 9]
    assert all(f.place is None for f in lost)
    assert said(finds, "Rows whose picture is not there are recorded as missing")


def test_metadata_lies_beside_its_pictures_and_paths_fill_its_gaps(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"train/Fog/mirror/run_1/{n}.png" for n in range(3)])
    told = [{"file_name": f"Fog/mirror/run_1/{n}.png", "step": n} for n in range(3)]
    write_metadata(root / "train", "jsonl", told)
    assert steps_of(read(root)) == {"nano · Fog · mirror": [0, 1, 2]}


def test_rows_of_step_0_know_no_call_and_belong_to_every_chain_they_fit(tmp_path: Path) -> None:
    told = [row for row in rows() if row["iteration"]]
    told += [{**row, "file_name": f"warm/{row['file_name']}", "temperature": 1} for row in told]
    told.append({"file_name": "pictures/fog.png", "initial_image": "Fog", "iteration": 0})
    root = plant(tmp_path, [row["file_name"] for row in told])
    write_metadata(root, "jsonl", told)
    finds = read(root, editor=None)
    assert len(steps_of(finds)) == 4
    assert set(map(tuple, steps_of(finds).values())) == {(0, 1, 2)}
    assert not said(finds, "--editor")
    assert not said(finds, "--kind")


def test_resolutions_in_turn_are_one_interleaved_chain_and_others_are_apart(tmp_path: Path) -> None:
    row: dict[str, Any] = {"initial_image": "Fog", "task": "replicate"}
    turns = [
        row | {"file_name": f"{n}.png", "step": n, "resolution": size}
        for n, size in enumerate((None, "1K", "2K", "4K", "1K"))
    ]
    root = plant(tmp_path / "turns", [str(told["file_name"]) for told in turns])
    write_metadata(root, "jsonl", turns)
    assert steps_of(read(root)) == {"nano · Fog · replicate · resolution interleaved": [*range(5)]}
    arms = [
        row | {"file_name": f"{size}/{n}.png", "step": n, "resolution": size}
        for size in ("1K", "4K")
        for n in range(1, 3)
    ]
    root = plant(tmp_path / "arms", [str(told["file_name"]) for told in arms])
    write_metadata(root, "jsonl", arms)
    assert steps_of(read(root)) == {
        "nano · Fog · replicate · resolution 1K": [1, 2],
        "nano · Fog · replicate · resolution 4K": [1, 2],
    }


def test_columns_may_be_named_by_the_user(tmp_path: Path) -> None:
    told = [
        {"file_name": f"{n}.png", "k": n, "what": "Fog", "how": "mirror", "by": "nano", "again": 1}
        for n in range(2)
    ]
    root = plant(tmp_path, ["0.png", "1.png"])
    write_metadata(root, "csv", told)
    assert not LAYOUT.recognise(Look(root))
    named = {"step": "k", "source": "what", "cycle": "how", "editor": "by", "repeat": "again"}
    finds = read(root, editor=None, columns=named)
    assert steps_of(finds) == {"nano · Fog · mirror": [0, 1]}
    assert said(finds, "run 1 is repeat 0")


def test_different_prompts_are_different_cycles(tmp_path: Path) -> None:
    told = rows()
    for row in told[3:]:
        row["prompt"] = "Copy this."
    root = plant(tmp_path, [row["file_name"] for row in told])
    write_metadata(root, "jsonl", told)
    finds = read(root)
    assert {cycle.prompts for cycle in finds.cycles.values()} == {(COPY,), ("Copy this.",)}
    assert said(finds, "told apart as replicate, replicate-2")


def test_prompts_that_change_every_step_stay_with_their_steps(tmp_path: Path) -> None:
    told = [row | {"task": "add-100-fruits", "prompt": f"Add {row['iteration']}"} for row in rows()]
    root = plant(tmp_path, [row["file_name"] for row in told])
    write_metadata(root, "jsonl", told)
    finds = read(root)
    assert finds.cycles["add-100-fruits"].kind == "accumulate"
    assert finds.cycles["add-100-fruits"].prompts == ()
    assert {f.prompt for f in finds.frames} == {None, "Add 1", "Add 2"}


def test_an_unknown_variant_is_free_unless_the_user_says_what_it_is(tmp_path: Path) -> None:
    told = [row | {"task": "sharpen"} for row in rows()]
    root = plant(tmp_path, [row["file_name"] for row in told])
    write_metadata(root, "jsonl", told)
    finds = read(root)
    assert finds.cycles["sharpen"].kind == "free"
    assert said(finds, "taken as free, without a home (--kind): pictures")
    assert read(root, kind="replicate").cycles["sharpen"].kind == "replicate"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iteration": "last"}, "step 'last' of pictures/1-0.png is no number"),
        ({"temperature": "warm"}, "temperature 'warm' is no number"),
        ({"temperature": -1}, "temperature"),
    ],
)
def test_cells_that_make_no_sense_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    told = rows()
    root = plant(tmp_path, [row["file_name"] for row in told])
    write_metadata(root, "jsonl", [row | change for row in told])
    with pytest.raises(ImportProblem, match=words):
        read(root)


def test_a_broken_line_of_metadata_is_named(tmp_path: Path) -> None:
    root = plant(tmp_path, ["0.png"])
    (root / "metadata.jsonl").write_text('{"file_name": "0.png", "step": 0}\n{"file_')
    with pytest.raises(ImportProblem, match=r"metadata.jsonl, line 2: not valid JSON"):
        read(root)


def shards(root: Path, count: int = 2) -> Path:
    """Parquet files with pictures in them, in row groups of 7, as the Hub writes them."""
    told = []
    for number in range(60):
        image = {"bytes": f"picture {number}".encode(), "path": f"{number}.png"}
        row = rows()[0] | {"run": number // 30, "iteration": number % 30, "image": image}
        del row["file_name"]
        told.append(row)
    root.mkdir(exist_ok=True)
    part = len(told) // count
    for shard in range(count):
        frame = pl.DataFrame(told[shard * part : (shard + 1) * part])
        frame.write_parquet(root / f"train-{shard:05}-of-{count:05}.parquet", row_group_size=7)
    return root


def test_pictures_in_parquet_are_spooled_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    root = shards(tmp_path / "set")
    assert "train-00000-of-00002.parquet" in LAYOUT.recognise(Look(root))
    assert not list((tmp_path / "scratch").iterdir()), "recognising spools nothing"
    finds = read(root)
    assert [len(steps) for steps in steps_of(finds).values()] == [30, 30]
    for frame in finds.frames:
        number = frame.track.repeat * 30 + frame.step
        assert frame.place
        assert frame.place.read() == f"picture {number}".encode()
    assert finds.frames[0].place
    assert finds.frames[0].place.name == "train-00000-of-00002.parquet#0"
    assert finds.cleanup
    finds.cleanup()
    assert not list((tmp_path / "scratch").iterdir())


def test_one_parquet_file_is_a_dataset_too(tmp_path: Path) -> None:
    file = next(shards(tmp_path, 1).glob("*.parquet"))
    assert LAYOUT.recognise(Look(file))
    finds = read(file)
    assert finds.cleanup
    assert len(finds.frames) == 60
    finds.cleanup()


def test_a_refused_import_leaves_no_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    image = {"bytes": b"x", "path": "0.png"}
    pl.DataFrame({"step": ["zero"], "image": [image]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ImportProblem, match="step 'zero'"):
        read(tmp_path / "a.parquet")
    assert not list((tmp_path / "scratch").iterdir())


def test_too_little_scratch_space_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shards(tmp_path / "set")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(ImportProblem, match=r"scratch space.*set TMPDIR"):
        read(root)


def test_a_column_that_the_first_row_lacks_is_read_and_blank_lines_are_not(tmp_path: Path) -> None:
    root = plant(tmp_path, ["0.png", "1.png"])
    (root / "metadata.jsonl").write_text(
        '\n{"file_name": "0.png", "step": 0, "source": "cat"}\n  \n'
        '{"file_name": "1.png", "step": 1, "source": "cat", "prompt": "on", "model": "flux"}\n'
    )
    assert LAYOUT.recognise(Look(root))
    finds = LAYOUT.read(Look(root), Wishes())
    assert steps_of(finds) == {"flux · cat · replicate": [0, 1]}
    assert [f.prompt for f in sorted(finds.frames, key=lambda f: f.step)] == [None, "on"]


def test_json_nested_too_deeply_is_refused_in_a_sentence(tmp_path: Path) -> None:
    root = plant(tmp_path, ["0.png"])
    deep = '{"file_name": "0.png", "step": ' + "[" * 100_000 + "]" * 100_000 + "}"
    (root / "metadata.jsonl").write_text(deep)
    with pytest.raises(ImportProblem, match=r"metadata\.jsonl, line 1: nested too deeply"):
        LAYOUT.recognise(Look(root))


def test_pictures_that_no_table_lists_are_unread_and_rows_without_a_name_are_told(
    tmp_path: Path,
) -> None:
    root = plant(tmp_path, ["0.png", "1.png", "stray_2.png", "initial_images/cat.png"])
    told = [{"file_name": f"{n}.png", "step": n, "source": "cat"} for n in range(2)]
    write_metadata(root, "jsonl", [*told, {"step": 2, "source": "cat"}])
    finds = read(root)
    assert steps_of(finds) == {"nano · cat · replicate": [0, 1, 2]}
    assert finds.unread == ["stray_2.png"]
    assert said(finds, "1 picture that no table lists is not read: stray_2.png")
    assert said(finds, "recorded as missing: rows without a file name.")
    assert set(finds.sources) == {"cat"}


def two_columns(root: Path, *names: str) -> Path:
    images = {
        name: [{"bytes": f"{name} {n}".encode(), "path": None} for n in range(2)] for name in names
    }
    pl.DataFrame({"step": [1, 2], "source": ["cat"] * 2, **images}).write_parquet(
        root / "a.parquet"
    )
    return root


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("input", "output"), "output"),
        (("source_image", "image"), "image"),
        (("image", "mask", "edited_image"), "edited_image"),
    ],
)
def test_of_several_columns_of_pictures_the_edited_ones_are_read_by_name(
    tmp_path: Path, names: tuple[str, ...], taken: str
) -> None:
    finds = read(two_columns(tmp_path, *names))
    assert [f.place.read() for f in finds.frames if f.place] == [
        f"{taken} {n}".encode() for n in range(2)
    ]
    assert {f.track.source for f in finds.frames} == {"cat"}
    assert said(finds, f"Of several columns of pictures {taken} is read")
    assert finds.cleanup
    finds.cleanup()


@pytest.mark.parametrize("names", [("left", "right"), ("output", "result"), ("image", "picture")])
def test_columns_of_pictures_in_doubt_are_for_the_user_to_choose(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    root = two_columns(tmp_path, *names)
    with pytest.raises(ImportProblem, match=rf"\({', '.join(names)}\).*--column image=NAME"):
        read(root)
    finds = read(root, columns={"image": names[1]})
    assert next(f.place.read() for f in finds.frames if f.place) == f"{names[1]} 0".encode()
    assert finds.cleanup
    finds.cleanup()
    with pytest.raises(ImportProblem, match="no column of pictures called 'middle'"):
        read(root, columns={"image": "middle"})
