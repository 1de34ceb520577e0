"""Initial images of published datasets: found, taken as they are, made a suite of."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import ImportProblem
from convergebench.frame import encode, sha256
from convergebench.importer.importing import import_run
from convergebench.importer.initials import find_initials
from convergebench.importer.published import UNKNOWN_LICENCE, load_published, toml_text
from convergebench.planner import plan
from convergebench.presets import open_preset, preset_names
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.suite import check_suite
from tests.support.runs import picture

NAMES = [source.name for source in open_suite("banana100").source]


def image(name: str, step: int = 0) -> bytes:
    """A picture of its own for every source and step."""
    return encode(picture(NAMES.index(name) * 10 + step, 32))


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def row(name: str, step: int, **more: Any) -> dict[str, Any]:
    cell = {"bytes": image(name, step), "path": f"{name}_{step}.png"}
    return {"image": cell, "source": name.title(), "step": step, "run": 1, **more}


def taken(folder: Path, **more: Any) -> dict[str, bytes]:
    return {n: one.data for n, one in find_initials(folder, NAMES, **more).images.items()}


ALL = {name: image(name) for name in NAMES}


def test_a_folder_of_pictures_called_after_the_sources(tmp_path: Path) -> None:
    for name, data in ALL.items():
        put(tmp_path / f"{name.title()}.png", data)
    assert taken(tmp_path) == ALL


def test_a_folder_of_initial_images_beside_runs(tmp_path: Path) -> None:
    for name, data in ALL.items():
        put(tmp_path / "initial_images" / f"{name}.png", data)
        put(tmp_path / name / "replicate" / "run_1" / "step_1.png", image(name, 1))
    assert taken(tmp_path) == ALL


@pytest.mark.parametrize(
    "pattern",
    [
        "{source}/replicate/run_{run}/step_{step}.png",
        "replicate/{source}/run_{run}/{step:03d}.png",
        "nano-banana-pro/{source}/run{run}/step_{step}.png",
        "{source}_replicate_run{run}_step{step}.png",
    ],
)
def test_the_first_picture_of_every_run(tmp_path: Path, pattern: str) -> None:
    for name in NAMES[:4]:
        for number in (1, 2):
            for step in range(3):
                where = pattern.format(source=name, run=number, step=step)
                put(tmp_path / where, image(name, step))
    assert taken(tmp_path) == {name: ALL[name] for name in NAMES[:4]}


def test_words_around_the_name_and_numbers_do_not_matter_where_it_is_the_only_one(
    tmp_path: Path,
) -> None:
    put(tmp_path / "01_Building_3392x5056.png", ALL["building"])
    put(tmp_path / "02-fog-original.jpg", ALL["fog"])
    put(tmp_path / "figure-3.png", ALL["moss"])
    assert taken(tmp_path) == {"building": ALL["building"], "fog": ALL["fog"]}


def test_a_metadata_file_that_says_which_picture_is_which(tmp_path: Path) -> None:
    lines = []
    for number, name in enumerate(NAMES[:3]):
        for step in (0, 1):
            put(tmp_path / "images" / f"{number}-{step}.png", image(name, step))
            file = f"images/{number}-{step}.png"
            told = {"file_name": file, "source": name.upper(), "step": step, "run": 1}
            lines.append(json.dumps(told))
    put(tmp_path / "metadata.jsonl", "\n".join(lines).encode())
    assert taken(tmp_path) == {name: ALL[name] for name in NAMES[:3]}


def test_parquet_shards_of_which_only_initial_images_are_read(tmp_path: Path) -> None:
    rows = [row(name, step) for name in NAMES for step in range(3)]
    (tmp_path / "data").mkdir()
    pl.DataFrame(rows[:20]).write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet")
    pl.DataFrame(rows[20:]).write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet")
    assert taken(tmp_path) == ALL
    found = find_initials(tmp_path / "data" / "train-00000-of-00002.parquet", NAMES)
    assert list(found.images) == NAMES[:7], "one shard may be given alone"
    assert found.images["fog"].place == "train-00000-of-00002.parquet#9"


def test_a_parquet_file_of_initial_images_alone(tmp_path: Path) -> None:
    rows = [{"image": {"bytes": data, "path": None}, "name": name} for name, data in ALL.items()]
    pl.DataFrame(rows).write_parquet(tmp_path / "initial.parquet")
    assert taken(tmp_path) == ALL


def test_the_picture_given_to_the_first_step_where_there_is_no_step_0(tmp_path: Path) -> None:
    rows = [
        {
            "input_image": {"bytes": image(name, step - 1), "path": f"{step - 1}.png"},
            "output_image": {"bytes": image(name, step), "path": f"{step}.png"},
            "source": name,
            "step": step,
        }
        for name in NAMES[:2]
        for step in (1, 2)
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "train.parquet")
    assert taken(tmp_path) == {name: ALL[name] for name in NAMES[:2]}


def test_the_number_of_initial_images_can_be_told(tmp_path: Path) -> None:
    for step in (1, 2):
        put(tmp_path / "fog" / "replicate" / "run_1" / f"step_{step}.png", image("fog", step))
    assert taken(tmp_path, first=1) == {"fog": image("fog", 1)}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, r"has no initial image that is told by its name \(0 files\); expected pictures"),
        ({"a.png": b"x", "b.png": b"y"}, r"has no initial image .* \(2 files\)"),
        (
            {"fog/run_1/step_0.png": b"x", "fog/run_2/step_0.png": b"y"},
            "source 'fog' has 2 initial images that differ: fog/run_1/step_0.png, fog/run_2/step",
        ),
        ({"fog.parquet": b"no parquet"}, "cannot read fog.parquet as Parquet"),
    ],
)
def test_what_cannot_be_told_is_one_sentence(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    for name, data in files.items():
        put(tmp_path / name, data)
    with pytest.raises(ImportProblem, match=words):
        find_initials(tmp_path, NAMES)


def test_a_path_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match=r"does not exist\. Give the folder"):
        find_initials(tmp_path / "nothing", NAMES)
    put(tmp_path / "table.csv", b"source,step\n")
    with pytest.raises(ImportProblem, match="is neither a folder nor a Parquet file"):
        find_initials(tmp_path / "table.csv", NAMES)


# -- the suite --------------------------------------------------------------------------------


def test_a_suite_is_made_of_them_and_runs_like_the_drawn_one(tmp_path: Path) -> None:
    for name, data in ALL.items():
        put(tmp_path / "set" / f"{name}.png", data)
    put(tmp_path / "set" / "README.md", b"---\npretty_name: x\nlicense: cc-by-4.0\n---\nText\n")
    loaded = load_published("banana100", tmp_path / "set", tmp_path / "mine")
    like, made = open_suite("banana100"), loaded.suite
    assert [s.name for s in made.source] == NAMES
    assert {s.name: s.sha256 for s in made.source} == {n: sha256(d) for n, d in ALL.items()}
    assert (tmp_path / "mine" / "images" / "fog.png").read_bytes() == ALL["fog"], "as they are"
    assert made.cycle == like.cycle
    assert {s.licence for s in made.source} == {"cc-by-4.0"}
    assert [s.description for s in made.source] == [s.description for s in like.source]
    assert check_suite(made) == []
    assert made.fingerprint == made.content_hash()
    assert len(preset_names(made)) == len(preset_names(like))
    for name in ("paper", "small", "models"):
        mine, theirs = (
            open_preset(f"{folder}/{name}") for folder in (tmp_path / "mine", "banana100")
        )
        assert {**mine.table, "suite": ""} == {**theirs.table, "suite": ""}
        assert mine.about == theirs.about
    planned = plan(open_preset(f"{tmp_path / 'mine'}/paper").table, editors=["ref:banana"])
    assert planned.rows[0].calls == 28_000
    smoke = open_preset(f"{tmp_path / 'mine'}/smoke").table
    result = run(tmp_path / "run", smoke, steps=1, repeats=1, controls=False)
    assert result.complete
    chain = next(c for c in RunStore.open(tmp_path / "run").chains() if c.key.source == "kokoro")
    assert chain.source is not None
    assert chain.source.sha256 == sha256(ALL["kokoro"])


def test_what_is_not_found_is_left_out_and_told(tmp_path: Path) -> None:
    for name in ("fog", "rice"):
        put(tmp_path / "set" / f"{name}.png", ALL[name])
    loaded = load_published("banana100", tmp_path / "set", tmp_path / "mine")
    assert [s.name for s in loaded.suite.source] == ["fog", "rice"]
    assert {s.licence for s in loaded.suite.source} == {UNKNOWN_LICENCE}
    assert "add-apples" not in {c.name for c in loaded.suite.cycle}, "there is no table"
    told = str(loaded)
    assert "11 sources were not found and are left out: building, dongpo" in told
    assert "Of another size than in banana100@1: fog (not 5504×3072)" in told
    assert "these cycles are left out: add-100-fruits, add-apples" in told
    small = open_preset(f"{tmp_path / 'mine'}/small")
    assert "here without what was not found" in small.about.title
    planned = plan(small.table, editors=["ref:banana"])
    assert planned.rows[0].calls == 2 * 5 * 20
    assert [row.chains for row in planned.rows[1:]] == [1, 1, 1, 1], "controls all the same"


def test_with_fill_the_drawn_ones_stand_in(tmp_path: Path) -> None:
    put(tmp_path / "set" / "fog.png", ALL["fog"])
    loaded = load_published("banana100", tmp_path / "set", tmp_path / "mine", fill=True)
    assert [s.name for s in loaded.suite.source] == NAMES
    assert [s.name for s in loaded.suite.source if s.file] == ["fog"]
    assert loaded.missing == ()
    assert [s["how"] for s in loaded.to_dict()["sources"][:2]] == [
        "drawn (grid)",
        "drawn (potstickers)",
    ]
    assert check_suite(open_suite(tmp_path / "mine")) == []


def test_a_picture_that_does_not_decode_and_a_folder_that_is_there_are_refused(
    tmp_path: Path,
) -> None:
    put(tmp_path / "set" / "fog.png", ALL["fog"][:200])
    with pytest.raises(ImportProblem, match=r"fog\.png is no usable image"):
        load_published("banana100", tmp_path / "set", tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    with pytest.raises(ImportProblem, match="is there already, and not empty"):
        load_published("banana100", tmp_path / "set", tmp_path / "set")


def test_the_command_says_what_it_took_from_where(tmp_path: Path) -> None:
    put(tmp_path / "set" / "Fog.png", ALL["fog"])
    command = [sys.executable, "-m", "convergebench", "suites", "load", "banana100"]
    where = ["--from", str(tmp_path / "set"), "--to", str(tmp_path / "mine")]
    done = subprocess.run([*command, *where, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["sources"][0]["place"] == "Fog.png"
    assert len(told["missing"]) == 12
    again = subprocess.run([*command, *where], capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "is there already, and not empty. Name another folder." in again.stderr
    assert "Traceback" not in again.stderr


def test_frames_of_the_dataset_are_imported_under_the_suites_names(tmp_path: Path) -> None:
    rows = [row(name, step, task="replicate") for name in ("fog", "table") for step in range(3)]
    rows += [row("table", step, task="add-apples") for step in range(3)]
    (tmp_path / "set").mkdir()
    pl.DataFrame(rows).write_parquet(tmp_path / "set" / "train.parquet")
    load_published("banana100", tmp_path / "set", tmp_path / "mine")
    import_run(
        tmp_path / "set", tmp_path / "run", suite=str(tmp_path / "mine"), editor="nano-banana-pro"
    )
    keys = {(c.key.source, c.key.cycle) for c in RunStore.open(tmp_path / "run").chains()}
    assert keys == {
        ("fog", "replicate@1"),
        ("table", "replicate@1"),
        ("table", "add-apples@1"),
    }


plain = st.text(max_size=12)
scalars = st.one_of(plain, st.booleans(), st.integers(-9, 9), st.floats(-1e3, 1e3))
inner = st.dictionaries(plain.filter(bool), st.one_of(scalars, st.lists(scalars, max_size=3)))


@given(
    st.dictionaries(
        plain.filter(bool),
        st.one_of(scalars, inner, st.lists(inner, min_size=1, max_size=3)),
        max_size=5,
    )
)
def test_what_is_written_as_toml_is_read_back(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(table)) == table
