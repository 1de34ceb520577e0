"""An exported dataset read by the real `datasets` library: from the folder, without a script."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from convergebench.dataset import Patches, export
from convergebench.frame import Frame
from convergebench.store import RunStore
from tests.dataset.made import Made, Walk, jpeg, make_run, odd_run, png

os.environ.setdefault("HF_HUB_OFFLINE", "1")
datasets = pytest.importorskip("datasets")


def load(folder: Path, *words: str, **more: Any) -> Any:
    cache = folder.parent / "cache"
    return datasets.load_dataset(str(folder), *words, cache_dir=str(cache), **more)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("library")
    export(
        odd_run(place / "run"), place / "out", form="both", patches=Patches(16), licence="cc0-1.0"
    )
    return place / "out"


def test_the_default_configuration_is_every_frame_decoded(out: Path) -> None:
    found = load(out)
    assert list(found) == ["train"]
    frames = found["train"]
    assert isinstance(frames.features["image"], datasets.Image)
    assert frames.num_rows == 10
    for row in frames:
        if row["outcome"] not in ("edited", "source") or row["sha256"] is None:
            assert row["image"] is None
            continue
        run = RunStore.open(out.parent / "run")
        ending = {"png": ".png", "jpeg": ".jpg"}[row["format"]]
        stored = run.path / "frames" / row["sha256"][:2] / (row["sha256"] + ending)
        pixels = Frame(stored.read_bytes()).pixels
        assert np.array_equal(np.asarray(row["image"].convert("RGB")), pixels)
        assert row["image"].size == (row["width"], row["height"])


def test_metadata_and_scores_are_columns_of_their_types(out: Path) -> None:
    frames = load(out, split="train")
    (one,) = [r for r in frames if r["editor"] == "ref:odd" and r["step"] == 1]
    assert one["prompt"] == "Copy the picture."
    assert one["reasoning"] == "I „see“ noise…\n\nDone."
    assert one["seed"] == 7
    assert one["caveats"] == ["rewrites prompts"]
    assert one["score:psnr@1:home:all"] == float("inf")
    assert one["score:niqe@2-x:none:all"] == 3.25
    assert str(frames.features["step"].dtype) == "int32"
    outcomes = sorted(r["outcome"] for r in frames.remove_columns("image"))
    assert {"refused", "malformed", "missing", "reported"} <= set(outcomes)


def test_bytes_stay_as_received(out: Path) -> None:
    frames = load(out, split="train").cast_column("image", datasets.Image(decode=False))
    held = {row["image"]["bytes"] for row in frames if row["image"]}
    assert {png(1), jpeg(3), png(4, 48), png(6)} <= held


def test_every_table_is_a_configuration(out: Path) -> None:
    names = datasets.get_dataset_config_names(str(out))
    assert names == ["frames", "superseded", "sources", "patches", "scores"]
    counts = {name: load(out, name, split="train").num_rows for name in names}
    assert counts == {"frames": 10, "superseded": 1, "sources": 3, "patches": 25, "scores": 5}
    patch = load(out, "patches", split="train")[3]
    assert patch["image"].size == (16, 16)
    sources = load(out, "sources", split="train")
    assert {r["licence"] for r in sources} == {"CC0-1.0", "a | licence, of its own"}


def test_streaming_reads_shard_by_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convergebench.dataset.shards.SHARD_ROWS", 4)
    steps = [Made(n, "edited", png(n)) for n in range(1, 10)]
    steps.append(Made(10, "refused", None, {"detail": "no"}))
    export(make_run(tmp_path / "run", [Walk(first=png(0), steps=steps)]), tmp_path / "out")
    stream = load(tmp_path / "out", split="train", streaming=True)
    assert stream.num_shards == 3
    rows = list(stream)
    assert [row["step"] for row in rows] == list(range(11))
    assert rows[10]["image"] is None
    for number, row in enumerate(rows[:10]):
        wanted = np.asarray(Image.open(io.BytesIO(png(number))))
        assert np.array_equal(np.asarray(row["image"]), wanted)


def test_a_card_with_odd_names_still_loads(tmp_path: Path) -> None:
    walk = Walk(first=png(0), editor='odd: "é" | #1\x85', steps=[Made(1, "edited", png(1))])
    run = make_run(tmp_path / "run", [walk])
    store = RunStore.open(run)
    from convergebench.scoretable import rows_frame

    (chain,) = store.chains()
    rows = [(chain.key.id, 1, 'm: "x"\n- y', "published:ö#", "home", "all", 1.5, "")]
    store.add_scores(rows_frame(rows))  # type: ignore[arg-type]
    export(run, tmp_path / "out", name='a: "b" # c\n---\n\x07', licence="my: own | {licence}")
    frames = load(tmp_path / "out", split="train")
    assert frames.num_rows == 2
    assert frames[1]['score:m: "x"\n- y@published:ö#:home:all'] == 1.5
    assert frames[1]["editor"] == 'odd: "é" | #1\x85'


def test_tar_shards_load_as_a_webdataset(tmp_path: Path) -> None:
    steps = [Made(n, "edited", png(n)) for n in range(1, 4)] + [Made(4, "refused")]
    run = make_run(tmp_path / "run", [Walk(first=png(0), steps=steps)])
    export(run, tmp_path / "out", form="webdataset")
    rows = list(load(tmp_path / "out", split="train", streaming=True))
    assert [row["json"]["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert np.array_equal(np.asarray(rows[2]["png"]), np.asarray(Image.open(io.BytesIO(png(2)))))
    assert rows[4]["png"] is None
    assert rows[4]["json"]["outcome"] == "refused"


def test_tar_shards_of_mixed_samples_load(tmp_path: Path) -> None:
    export(odd_run(tmp_path / "run"), tmp_path / "out", form="webdataset", patches=Patches(16))
    rows = load(tmp_path / "out", split="train")
    assert rows.num_rows == 10
    (one,) = [r for r in rows if r["json"]["editor"] == "ref:odd" and r["json"]["step"] == 1]
    assert one["jpg"].size == (32, 32)
    assert one["png"] is None
    assert one["json"]["scores"]["niqe@2-x:none:all"] == 3.25
    assert one["json"]["settings"]["temperature"] == 0.4
    assert [r["bin"] for r in rows if r["bin"]] == [b"<html>not a picture</html>"]
    assert load(tmp_path / "out", "patches", split="train").num_rows == 25


def test_the_card_says_how_and_its_code_runs(out: Path, tmp_path: Path) -> None:
    card = (out / "README.md").read_text()
    code = card.partition("```python\n")[2].partition("```")[0].replace("PATH", str(out))
    env = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code + "\nprint(len(frames), frames.columns[:2])"],
        capture_output=True, text=True, env=env, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "10 ['image', 'raw']"
