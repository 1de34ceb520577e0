from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.chain import Chain, ChainKey, FrameRef, Step
from convergebench.errors import StoreBusy, StoreDamaged, StoreError, StoreMismatch
from convergebench.frame import Frame
from convergebench.runner import run
from convergebench.scoretable import SCORE_COLUMNS, rows_frame
from convergebench.store import RunStore
from convergebench.suite import load_suite
from convergebench.verifier import verify
from tests.support.runs import picture, records, write_suite

KEY = ChainKey(suite="tiny@1", source="s0", cycle="copy@1", editor="ref:identity")


def make_store(tmp_path: Path) -> tuple[RunStore, Chain]:
    suite = load_suite(write_suite(tmp_path / "suite"))
    store = RunStore.create(tmp_path / "run", suite, 32)
    source = suite.frame(suite.source[0])
    chain = Chain(KEY, FrameRef.of(source), None, "1")
    with store.writing("run"):
        store.put(source)
        store.start(chain)
    return store, chain


def add_step(store: RunStore, chain: Chain, number: int) -> Chain:
    frame = Frame.of_pixels(picture(100 + number))
    step = Step(
        step=number,
        outcome="edited",
        prompt="Copy the picture.",
        inputs=(chain.frames[-1].sha256,),
        frame=FrameRef.of(frame),
    )
    with store.writing("run"):
        store.put(frame)
        store.append(KEY.id, step)
    return chain.with_step(step)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store, chain = make_store(tmp_path)
    for number in (1, 2, 3):
        chain = add_step(store, chain, number)
    (read,) = RunStore.open(store.path).chains()
    assert read == chain
    assert store.frame(chain.frames[2]).data == Frame.of_pixels(picture(102)).data


def test_bytes_are_kept_once_under_their_hash(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path)
    frame = Frame(b"not an image at all")
    with store.writing("run"):
        store.put(frame)
        store.put(frame)
    (path,) = store.path.glob(f"frames/*/{frame.digest}*")
    assert path.name == frame.digest + ".bin"
    assert path.read_bytes() == frame.data


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_file_cut_anywhere_is_repaired(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store, chain = make_store(tmp_path_factory.mktemp("cut"))
    for number in (1, 2):
        chain = add_step(store, chain, number)
    path = store.chain_path(KEY.id)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    with store.writing("run") as notes:
        chains = store.chains()
    at_a_line_end = whole[:cut].endswith(b"\n")
    assert bool(notes) != at_a_line_end
    if complete == 0:
        assert chains == []
    else:
        (read,) = chains
        assert read.steps == chain.steps[: complete - 1]
        assert path.read_bytes() == whole[: whole[:cut].rfind(b"\n") + 1]


def test_garbage_after_a_power_cut_is_repaired(tmp_path: Path) -> None:
    store, chain = make_store(tmp_path)
    chain = add_step(store, chain, 1)
    with open(store.chain_path(KEY.id), "ab") as file:
        file.write(b"\0" * 300)
    assert store.chains() == [chain], "a reader sees the good records"
    with store.writing("run") as notes:
        pass
    assert "removed 300 bytes" in notes[0]
    assert store.chains() == [chain]


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    store, chain = make_store(tmp_path)
    add_step(store, add_step(store, chain, 1), 2)
    path = store.chain_path(KEY.id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"step": "one"}\n' + lines[2])
    with pytest.raises(StoreDamaged, match=r"jsonl, line 2: .*step"):
        store.chains()
    assert any("line 2" in text for text in verify(store.path).damaged)


def test_unfinished_files_are_swept(tmp_path: Path) -> None:
    """But not what a living process is writing beside this one: `score` may."""
    store, _ = make_store(tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    scratch = store.path / "frames" / ".new"
    for name in ("half", f"{'0' * 64}.png.{gone.pid}.17", f"part-18.parquet.{os.getpid()}.17"):
        (scratch / name).write_bytes(b"half a file")
    with store.writing("run"):
        assert [path.name for path in scratch.iterdir()] == [f"part-18.parquet.{os.getpid()}.17"]


def test_the_row_written_last_counts_whatever_the_clocks_say(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path)

    def rows(value: float | None) -> pl.DataFrame:
        key = ("c", 1, "psnr", "1", "home", "all")
        return rows_frame([dict(zip(SCORE_COLUMNS, (*key, value, None), strict=True))])

    store.add_scores(rows(None))
    (first,) = (store.path / "scores").iterdir()
    ahead = first.with_name(f"part-{time.time_ns() + 600 * 10**9:x}.parquet")
    first.rename(ahead)  # of a machine whose clock is ten minutes ahead
    for value in (2.0, 3.0):
        store.add_scores(rows(value))
        assert store.scores()["value"].to_list() == [value]
    store.merge_scores()
    assert store.scores()["value"].to_list() == [3.0]
    assert len(list((store.path / "scores").iterdir())) == 1


def test_a_record_whose_frame_was_lost_in_a_power_cut_is_made_again(tmp_path: Path) -> None:
    store, chain = make_store(tmp_path)
    one = add_step(store, chain, 1)
    two = add_step(store, one, 2)
    torn = store.frame_path(two.frames[2])
    torn.write_bytes(torn.read_bytes()[:100])
    with store.writing("run") as notes:
        assert notes == [], "an orderly end needs no such check"
    (store.path / "run.lock").write_text('{"pid": 1, "host": "gone", "since": "yesterday"}')
    with store.writing("run") as notes:
        pass
    assert "step 2 is made again" in notes[1]
    assert store.chains() == [one]
    add_step(store, one, 2)
    assert store.chains() == [two]
    assert verify(store.path).sound


HOLDER = """
import sys
from convergebench.store import RunStore
from pathlib import Path
with RunStore.open(Path(sys.argv[1])).writing("run"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_process_is_told_who_holds_it(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy, match=rf"by process {holder.pid} on "), store.writing("run"):
            pass
        with store.writing("score"):
            pass  # scoring beside a run is fine
        holder.kill()
        holder.wait()
    with store.writing("run") as notes:
        assert notes == [
            f"took over from process {holder.pid}" + notes[0].partition(str(holder.pid))[2]
        ]
        assert "without letting go" in notes[0]
    with store.writing("run") as notes:
        assert notes == []


def test_other_suites_versions_and_sizes_are_refused(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path)
    newer = load_suite(write_suite(tmp_path / "newer", version=2))
    with pytest.raises(StoreMismatch, match="made with suite tiny@1, this command asks for tiny@2"):
        store.require(newer, 32)
    other = load_suite(write_suite(tmp_path / "other", sources=3))
    with pytest.raises(StoreMismatch, match="content of the suite"):
        store.require(other, 32)
    with pytest.raises(StoreMismatch, match="source size 32, this command asks for 64"):
        store.require(store.suite, 64)


def test_places_that_are_no_run_directory(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path / "suite"))
    with pytest.raises(StoreError, match="is not a run directory"):
        RunStore.open(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="exists and is not a run directory"):
        RunStore.create(tmp_path / "suite", suite, 32)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StoreError, match="exists and is not a run directory"):
        RunStore.create(file, suite, 32)


def small_run(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite")
    path = tmp_path / "run"
    run(path, {"suite": str(suite), "editors": ["ref:noise"], "rounds": 2, "controls": False})
    return path


def test_verify_names_each_defect(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    assert verify(path).sound
    frames = sorted(path.glob("frames/??/*"))
    frames[0].unlink()
    frames[1].write_bytes(frames[1].read_bytes() + b"x")
    orphan = path / "frames" / "ab" / ("ab" + "0" * 62 + ".png")
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"orphan")
    found = verify(path)
    assert not found.sound
    assert [frames[0].name in text for text in found.missing] == [True]
    assert [frames[1].name in text for text in found.altered if orphan.name not in text] == [True]
    assert found.orphaned == [str(orphan.relative_to(path))]


def test_verify_sees_a_chain_that_was_tampered_with(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    file = sorted(path.glob("chains/*/*copy*.jsonl"))[0]
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[2], lines[1]]))
    assert "step 2 is recorded after step 0" in verify(path).damaged[0]
    record = json.loads(lines[2])
    record["inputs"] = ["0" * 64]
    file.write_text("".join([*lines[:2], json.dumps(record) + "\n"]))
    assert "was not made from the frames before it" in verify(path).damaged[0]


def test_a_run_directory_can_be_moved(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    before = records(path)
    moved = tmp_path / "elsewhere"
    os.rename(path, moved)
    assert records(moved) == before
    assert verify(moved).sound


def test_writes_that_fail_together_are_all_made_again(tmp_path: Path) -> None:
    """The disk is full for several paid replies at once: the reserve makes room for each."""
    store, _ = make_store(tmp_path)
    reserve, together, saved = tmp_path / "run" / "reserve", threading.Barrier(4), []

    def save(number: int) -> None:
        tries: list[int] = []

        def write() -> None:
            tries.append(number)
            if len(tries) == 1:
                together.wait(10)
            if len(tries) == 1 or reserve.exists():
                raise OSError(errno.ENOSPC, "No space left on device")
            saved.append(number)

        store._saving(write)

    with store.writing("run", reserve=4096), ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
        assert store.full
        with pytest.raises(OSError, match="No space"):
            store._saving(lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space")))
    assert sorted(saved) == [0, 1, 2, 3]
