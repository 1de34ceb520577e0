"""Fetched frames are kept up to a limit, and are what their names say."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from convergebench.chain import Chain
from convergebench.errors import SettingsError, StoreDamaged
from convergebench.frame import sha256
from convergebench.remote.cache import LIMIT, SLACK, FrameCache
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.handmade import begun, grown, step_of

MIB = 1 << 20


def walked(shelf: Shelf, tmp_path: Path, steps: int = 3, size: int = 16) -> Chain:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        return grown(store, chain, *range(1, steps + 1), size=size)


def held(folder: Path) -> int:
    """Bytes of all files; what vanishes while it is looked at is not there."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def test_a_frame_is_fetched_once(shelf: Shelf, tmp_path: Path) -> None:
    chain = walked(shelf, tmp_path)
    shelf.machine("b")
    store = RunStore.open(shelf.run)
    shelf.proxy.forget()
    for _ in range(3):
        assert store.frame(chain.frames[1]).digest == chain.frames[1].sha256
    assert len(shelf.proxy.of_kind("GET", "/frames/")) == 1


def test_a_cached_frame_that_a_power_cut_took_is_fetched_again(
    shelf: Shelf, tmp_path: Path
) -> None:
    chain = walked(shelf, tmp_path)
    shelf.machine("b")
    store = RunStore.open(shelf.run)
    whole = store.frame(chain.frames[1]).data
    (kept,) = [p for p in (store.path / "cache").rglob("*") if p.is_file()]
    for torn in (b"", whole[:100], bytes(len(whole))):
        kept.write_bytes(torn)
        assert store.frame(chain.frames[1]).data == whole
        assert kept.read_bytes() == whole


def test_a_frame_that_was_altered_or_deleted_is_noticed(shelf: Shelf, tmp_path: Path) -> None:
    chain = walked(shelf, tmp_path)
    store = RunStore.open(shelf.run)
    altered, gone = (store.frame_name(ref) for ref in chain.frames[1:3])
    shelf.put(altered, shelf.get(altered)[:-1])
    shelf.delete(gone)
    found = verify(shelf.run)  # from the store, although both are still in the cache
    assert [text.split()[0] for text in found.altered] == [altered]
    assert [text.split()[0] for text in found.missing] == [gone]
    shelf.machine("b")
    there = RunStore.open(shelf.run)
    with pytest.raises(StoreDamaged, match=rf"{altered} of s3://.* was altered"):
        there.frame(chain.frames[1])
    with pytest.raises(StoreDamaged, match=r"cannot be read .*`convergebench verify s3://"):
        there.frame(chain.frames[2])
    assert not [p for p in (there.path / "cache").rglob("*") if p.is_file()]


READER = """
import sys
from convergebench.store import RunStore
store = RunStore.open(sys.argv[1], refresh=False)
(chain,) = [store.chain(sys.argv[2])]
for turn in range(2):
    for ref in chain.frames[:: 1 if sys.argv[3] == "on" else -1]:
        assert store.frame(ref).digest == ref.sha256
"""


def test_two_processes_keep_to_the_limit(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most the limit, and for each process a twentieth of it and one frame."""
    chain = walked(shelf, tmp_path, steps=24, size=256)  # 24 frames of some 160 KB
    total = sum(len(shelf.get(n)) for n in shelf.names("run/frames/"))
    largest = max(len(shelf.get(n)) for n in shelf.names("run/frames/"))
    assert total > 2.5 * MIB
    environment = {**os.environ, **shelf.machine("b"), LIMIT: str(MIB / 2**30)}
    command = [sys.executable, "-c", READER, shelf.run, chain.key.id]
    processes = [subprocess.Popen([*command, way], env=environment) for way in ("on", "back")]
    most, copy = 0, shelf.caches / "b"
    while any(process.poll() is None for process in processes):
        most = max(most, sum(held(p) for p in copy.glob("*/cache")))
        time.sleep(0.01)
    assert [process.returncode for process in processes] == [0, 0]
    assert MIB / 2 < most <= MIB + 2 * (MIB // SLACK + 2 * largest), most
    fetched = len(shelf.proxy.of_kind("GET", "/frames/"))
    assert fetched > len(chain.frames), "what was pushed out was fetched again"


def test_a_writer_keeps_to_the_limit(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "0")  # that is a MiB at least
    walked(shelf, tmp_path, steps=24, size=256)
    kept = held(shelf.copy() / "cache")
    assert MIB / 2 < kept < 1.4 * MIB
    assert not list((shelf.copy() / "frames").glob("[0-9a-f][0-9a-f]/*"))


def test_what_was_used_last_is_kept(tmp_path: Path) -> None:
    cache = FrameCache(tmp_path / "cache", limit=1000)
    names = [f"frames/ab/{number}" for number in range(12)]
    for number, name in enumerate(names[:10]):
        cache.add(name, bytes(100))
        os.utime(cache.path(name), (number, number))
    assert cache.get(names[0]) == bytes(100)
    cache.add(names[10], bytes(100))
    assert cache.get(names[0]) is not None
    assert cache.get(names[1]) is None
    assert held(tmp_path) <= 1000


def test_a_full_disk_keeps_nothing_and_stops_nobody(shelf: Shelf, tmp_path: Path) -> None:
    chain = walked(shelf, tmp_path)
    shelf.machine("b")
    store = RunStore.open(shelf.run)
    (store.path / "cache").write_bytes(b"")  # no folder can be made there
    for _ in range(2):
        assert store.frame(chain.frames[1]).digest == chain.frames[1].sha256


def test_threads_that_make_the_same_frame_store_it_once(shelf: Shelf, tmp_path: Path) -> None:
    from convergebench.frame import Frame
    from tests.support.runs import picture

    store, _ = begun(shelf, tmp_path)
    frame, failed = Frame.of_pixels(picture(7)), []
    gate = threading.Barrier(8)

    def put() -> None:
        gate.wait()
        try:
            store.put(frame)
        except BaseException as error:
            failed.append(error)

    with store.writing("run"):
        threads = [threading.Thread(target=put) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert len(shelf.proxy.wrote(frame.digest)) == 1
    assert sha256(shelf.get(store._frame_name(frame))) == frame.digest


@pytest.mark.parametrize("how", ["put", "append"])
def test_a_frame_that_another_thread_moves_to_the_cache_meanwhile_is_written_again(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Between the look for it and the reading of it, the other one stores it and moves it away."""
    store, chain = begun(shelf, tmp_path)
    step, frame = step_of(chain, 7)
    name, read, moved = store._frame_name(frame), Path.read_bytes, threading.Event()
    path = store.path / name

    def late(self: Path) -> bytes:
        if self == path and not moved.is_set():
            moved.set()
            assert store._copy
            store._copy.store_frame(name)
            assert not path.exists()
        return read(self)

    with store.writing("run"):
        path.write_bytes(frame.data)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", late)
            store.put(frame) if how == "put" else store.append(chain.key.id, step, frame)
    assert moved.is_set()
    assert sha256(shelf.get(name)) == frame.digest
    (found,) = RunStore.open(shelf.run).chains()
    assert found.length == (how == "append")
    assert verify(shelf.run).sound


@pytest.mark.parametrize("told", ["lots", "inf", "nan", "-1"])
def test_a_limit_that_is_no_number_is_told(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setenv(LIMIT, told)
    with pytest.raises(SettingsError, match=f"is a number of GiB, got '{told}'"):
        RunStore.open(shelf.run)


def test_a_file_that_was_handed_out_is_not_the_first_to_go(shelf: Shelf, tmp_path: Path) -> None:
    chain = walked(shelf, tmp_path)
    shelf.machine("b")
    store = RunStore.open(shelf.run)
    first = store.frame_path(chain.frames[1])
    for number, path in enumerate(p for p in (store.path / "cache").rglob("*") if p.is_file()):
        os.utime(path, (number, number))
    again = store.frame_path(chain.frames[1])
    assert again == first
    assert again.stat().st_mtime > time.time() - 60


def test_a_torn_file_is_not_handed_out(shelf: Shelf, tmp_path: Path) -> None:
    chain = walked(shelf, tmp_path)
    shelf.machine("b")
    whole = RunStore.open(shelf.run).frame(chain.frames[1]).data
    for torn in (b"", whole[:100], bytes(len(whole))):
        store = RunStore.open(shelf.run)  # a new process, after a power cut
        (kept,) = [p for p in (store.path / "cache").rglob("*") if p.is_file()]
        kept.write_bytes(torn)
        assert store.frame_path(chain.frames[1]).read_bytes() == whole
    shelf.proxy.forget()
    for _ in range(3):
        store.frame_path(chain.frames[1])
    assert shelf.proxy.asked == []
