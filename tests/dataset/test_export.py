"""What is in an exported dataset, read without our code: polars, tarfile, sha256sum."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.dataset import Exported, export
from convergebench.errors import InputError, StoreDamaged, UnknownName
from convergebench.store import RunStore
from tests.dataset.made import Made, Walk, jpeg, make_run, odd_run, png
from tests.test_cli import cb, complaint


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exported, Path]:
    place = tmp_path_factory.mktemp("dataset")
    return export(odd_run(place / "run"), place / "out", form="both"), place / "out"


def rows(out: Path, table: str = "frames") -> list[dict[str, Any]]:
    return pl.read_parquet(out / table / "*.parquet").rows(named=True)


def files(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def test_every_frame_is_a_row_with_its_bytes_as_received(made: tuple[Exported, Path]) -> None:
    found = {(r["editor"], r["step"]): r for r in rows(made[1])}
    assert found["ref:odd", 0]["image"]["bytes"] == png(1)
    assert found["ref:odd", 1]["image"]["bytes"] == jpeg(3)
    assert found["ref:odd", 1]["image"]["path"].endswith("/00001.jpg")
    assert found["ref:odd", 2]["image"]["bytes"] == png(4, 48)
    assert found["ref:odd", 2]["sha256"] == hashlib.sha256(png(4, 48)).hexdigest()
    assert (found["ref:odd", 2]["width"], found["ref:odd", 2]["format"]) == (48, "png")


def test_failures_are_rows_with_their_reason_and_no_image(made: tuple[Exported, Path]) -> None:
    found = {(r["editor"], r["step"]): r for r in rows(made[1])}
    refused = found["ref:odd", 3]
    assert (refused["outcome"], refused["image"]) == ("refused", None)
    assert refused["detail"] == "no <b>thanks</b> | really"
    malformed = found["ref:broken", 2]
    assert malformed["image"] is None, "a library would fail to decode it"
    assert malformed["raw"] == b"<html>not a picture</html>"
    assert found["ref:never", 0]["image"] is None
    assert found["ref:never", 2]["outcome"] == "missing"


def test_a_row_says_what_was_asked_of_whom_and_what_came(made: tuple[Exported, Path]) -> None:
    found = {(r["editor"], r["step"]): r for r in rows(made[1])}
    one = found["ref:odd", 1]
    expected = {
        "suite": "odd@3", "source": "cloth", "cycle": "copy@1", "kind": "replicate",
        "editor_version": "1", "setting_temperature": 0.4, "setting_seed": "per-step",
        "setting_phrasing": 0, "setting_session": "stateless", "repeat": 1, "round": 1,
        "prompt": "Copy the picture.", "seed": 7, "model": "model-7", "cost": 0.25,
        "cost_basis": "reported", "reasoning": "I „see“ noise…\n\nDone.", "bytes": len(jpeg(3)),
        "requested_size": "1024x1024", "caveats": ["rewrites prompts"], "home": "source",
        "started": "2026-02-03T04:05:06Z", "line": 2, "outcome": "edited", "exact": None,
        "score:niqe@2-x:none:all": 3.25, "score:psnr@1:home:all": float("inf"),
    }  # fmt: skip
    assert {name: one[name] for name in expected} == expected
    assert json.loads(one["parameters"]) == {"n": 1, "deep": {"é": [1.5, None, "x"]}}
    assert found["ref:odd", 2]["inputs"] == [one["sha256"]]
    ball = found["ref:broken", 1]
    assert ball["region"] == [0.25, 0.25, 0.75, 0.75]
    assert (ball["home"], ball["edit"]) == (None, 1)
    assert (found["ref:broken", 2]["home"], found["ref:broken", 2]["round"]) == ("source", 1)


def test_a_step_that_was_made_later_counts_once(made: tuple[Exported, Path]) -> None:
    keys = [(r["chain"], r["step"]) for r in rows(made[1])]
    assert len(keys) == len(set(keys))
    (pause,) = rows(made[1], "superseded")
    assert (pause["step"], pause["outcome"], pause["line"]) == (1, "over-budget", 1)


def test_scores_are_all_in_a_table_of_their_own(made: tuple[Exported, Path]) -> None:
    stored = RunStore.open(made[0].run).scores()
    assert pl.read_parquet(made[1] / "scores" / "*.parquet").equals(stored)
    assert made[0].scores == 5


def test_sources_and_truths_have_their_licence(made: tuple[Exported, Path]) -> None:
    found = {(r["source"], r["role"]): r for r in rows(made[1], "sources")}
    assert found["cloth", "truth"]["image"]["bytes"] == png(2)
    assert found["cloth", "source"]["licence"] == "a | licence, of its own"
    assert found["hill.v2", "source"]["drawn"] == "dunes"


def test_no_session_task_or_ledger_is_anywhere(made: tuple[Exported, Path]) -> None:
    for name, data in files(made[1]).items():
        for word in (b"Signature", b"x.test", b"call-1", str(made[0].run).encode()):
            assert word not in data, (name, word)


def test_sha256sum_checks_every_file(made: tuple[Exported, Path], tmp_path: Path) -> None:
    out = made[1]
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=out, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    listed = {line.partition("  ")[2] for line in (out / "SHA256SUMS").read_text().splitlines()}
    assert listed == files(out).keys() - {"SHA256SUMS"}
    assert made[0].files == len(listed) + 1
    assert made[0].bytes == sum(map(len, files(out).values()))


def test_tar_samples_are_a_picture_and_its_json_in_order(made: tuple[Exported, Path]) -> None:
    with tarfile.open(made[1] / "webdataset" / "frames" / "frames-00000.tar") as tar:
        members = tar.getmembers()
        bytes_of = {m.name: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    names = [member.name for member in members]
    assert {(m.mtime, m.uid, m.uname, m.mode) for m in members} == {(0, 0, "", 0o644)}
    keys = [name.partition(".")[0] for name in names]
    assert all("." not in key for key in keys), "the first dot ends a sample's name"
    assert keys == sorted(keys), "members of a sample follow each other"
    told = {key: json.loads(bytes_of[f"{key}.json"]) for key in keys}
    (refused,) = [key for key, one in told.items() if one.get("outcome") == "refused"]
    assert [name for name in names if name.startswith(refused)] == [f"{refused}.json"]
    (second,) = [k for k, one in told.items() if (one["editor"], one["step"]) == ("ref:odd", 1)]
    assert bytes_of[f"{second}.jpg"] == jpeg(3)
    assert told[second]["scores"] == {"niqe@2-x:none:all": 3.25}, "JSON has no infinity"
    assert told[second]["settings"]["temperature"] == 0.4
    (bad,) = [key for key, one in told.items() if one.get("outcome") == "malformed"]
    assert bytes_of[f"{bad}.bin"] == b"<html>not a picture</html>"


def test_tar_shards_are_read_by_the_general_layout(tmp_path: Path) -> None:
    walk = Walk(first=png(1), steps=[Made(1, "edited", jpeg(3)), Made(2, "refused")])
    out = tmp_path / "out"
    export(make_run(tmp_path / "run", [walk]), out, form="webdataset")
    done = cb("import", out / "webdataset" / "frames", "--to", tmp_path / "back", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["layout"] == "webdataset"
    (chain,) = RunStore.open(tmp_path / "back").chains()
    assert [step.outcome for step in chain.steps] == ["edited", "refused"]
    assert RunStore.open(tmp_path / "back").frame(chain.held[1]).data == jpeg(3)


def test_equal_runs_make_equal_datasets(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    for name in ("a", "b"):
        export(run, tmp_path / name, form="both", name="x")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_shards_are_cut_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convergebench.dataset.shards.SHARD_ROWS", 3)
    steps = [Made(n, "edited", png(n)) for n in range(1, 8)]
    run = make_run(tmp_path / "run", [Walk(first=png(0), steps=steps)])
    export(run, tmp_path / "out", form="both")
    shards = sorted(p.name for p in (tmp_path / "out" / "frames").iterdir())
    assert shards == [f"frames-{n:05d}.parquet" for n in range(3)]
    assert len(list((tmp_path / "out" / "webdataset" / "frames").glob("frames-*.tar"))) == 3
    assert [r["step"] for r in rows(tmp_path / "out")] == list(range(8))
    monkeypatch.setattr("convergebench.dataset.shards.SHARD_BYTES", 2 * len(png(0)))
    export(run, tmp_path / "small")
    assert len(list((tmp_path / "small" / "frames").iterdir())) > 3


def test_without_scores_there_is_no_trace_of_them(tmp_path: Path) -> None:
    result = export(odd_run(tmp_path / "run"), tmp_path / "out", scores=False)
    assert result.scores is None
    assert not (tmp_path / "out" / "scores").exists()
    assert not [name for name in rows(tmp_path / "out")[0] if name.startswith("score:")]
    assert "scores" not in (tmp_path / "out" / "README.md").read_text().partition("\n---\n")[0]


def test_damaged_frames_are_not_published(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    frame = next((run / "frames").glob("??/*.jpg"))
    frame.write_bytes(frame.read_bytes() + b"x")
    with pytest.raises(StoreDamaged, match="bytes are not what its name says"):
        export(run, tmp_path / "out")
    frame.unlink()
    with pytest.raises(StoreDamaged, match="verify"):
        export(run, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"], "no half dataset is left"


def test_wrong_wishes_are_one_sentence(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    with pytest.raises(UnknownName, match="no form of dataset called 'parket'"):
        export(run, tmp_path / "out", form="parket")
    with pytest.raises(InputError, match="lies within the run"):
        export(run, run / "out")
    with pytest.raises(InputError, match="is not a folder"):
        export(run, tmp_path / "no" / "out")
    for nameless in (".", "", "/", tmp_path / ".."):
        with pytest.raises(InputError, match="is no name of a folder to be made"):
            export(run, nameless)
    (tmp_path / "out").mkdir()
    export(run, tmp_path / "out")
    assert "exists and is no empty folder" in complaint(cb("export", run, tmp_path / "out"))
    assert "give SIZE" in complaint(cb("export", run, tmp_path / "o2", "--patch-count", "3"))
    assert "is not a run directory" in complaint(cb("export", tmp_path / "out", tmp_path / "o3"))
    bare = make_run(tmp_path / "bare", [])
    assert "nothing to export" in complaint(cb("export", bare, tmp_path / "o4"))


def test_command_prints_a_table_and_json(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    done = cb("export", run, tmp_path / "out", "--name", "Odd set", "--licence", "cc-by-4.0")
    assert done.returncode == 0, done.stderr
    assert "2 steps failed, and each is a row" in done.stdout
    assert "exporting: 11 of 11" in done.stderr
    told = json.loads(cb("export", run, tmp_path / "o2", "--json", "--patches", "16").stdout)
    assert told["rows"] == {"frames": 10, "superseded": 1, "sources": 3, "patches": 25}
    assert told["outcomes"]["refused"] == 1
    assert told["editors"]["ref:odd"]["models"] == {"model-7": 1}
