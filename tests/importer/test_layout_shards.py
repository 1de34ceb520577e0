"""Hostile and damaged archives: named, passed over or refused, and never written out."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.layouts import shards
from tests.conftest import ROOT
from tests.importer.shard_files import chain, member, png, read, shard


@pytest.fixture(autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))


def hostile(path: Path, *infos: tuple[str, bytes, dict[str, Any]]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, kind, more in infos:
            info = tarfile.TarInfo(name)
            info.type = kind
            for key, value in more.items():
                setattr(info, key, value)
            tar.addfile(info)
        for name, data in chain():
            member(tar, name, data)
    return path


def test_links_devices_and_names_that_lead_out_are_passed_over(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(99))
    path = hostile(
        tmp_path / "s.tar",
        ("a__m__step_1.png", tarfile.SYMTYPE, {"linkname": str(secret)}),
        ("b__m__step_1.png", tarfile.LNKTYPE, {"linkname": "000000.png"}),
        ("c__m__step_1.png", tarfile.CHRTYPE, {"devmajor": 1, "devminor": 5}),
        ("d__m__step_1.png", tarfile.FIFOTYPE, {}),
        ("../e__m__step_1.png", tarfile.REGTYPE, {}),
        ("/f__m__step_1.png", tarfile.REGTYPE, {}),
        ("x/../../g__m__step_1.png", tarfile.REGTYPE, {}),
        ("C:/h__m__step_1.png", tarfile.REGTYPE, {}),
        ("i\n__m__step_1.png", tarfile.REGTYPE, {}),
        ("j\udcff__m__step_1.png", tarfile.REGTYPE, {}),
    )
    finds = read(path)
    assert {frame.track.source for frame in finds.frames} == {"cat"}
    assert "s.tar: not read: 2 links." in finds.notes
    assert "s.tar: not read: 2 devices and other special files." in finds.notes
    assert any("4 files with names that lead out" in note for note in finds.notes)
    assert any("2 files with unprintable names" in note for note in finds.notes)


def test_sparse_members_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("big__m__step_1.png")
        info.size = len(b"1\n0\n4\n".ljust(512, b"\0")) + 4
        info.pax_headers = {
            "GNU.sparse.major": "1", "GNU.sparse.minor": "0",
            "GNU.sparse.name": "big__m__step_1.png", "GNU.sparse.realsize": str(1 << 50),
        }  # fmt: skip
        tar.addfile(info, io.BytesIO(b"1\n0\n4\n".ljust(512, b"\0") + b"1234"))
        for name, data in chain():
            member(tar, name, data)
    finds = read(path)
    assert {frame.track.source for frame in finds.frames} == {"cat"}
    assert "s.tar: not read: 1 sparse files." in finds.notes


def test_nothing_is_ever_written_under_an_archives_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    files = [("../../out__m__step_1.png", png(1)), ("/abs__m__step_1.png", png(1)), *chain()]
    finds = read(shard(tmp_path / "s.tar.gz", files, "w:gz"))
    written = sorted(p.name for p in scratch.rglob("*") if p.is_file())
    assert written == ["0000001.png", "0000002.png", "0000003.png"]
    assert finds.cleanup is not None
    finds.cleanup()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("opener", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused_and_its_scratch_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opener: Callable[[bytes], bytes]
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(shards, "RATIO_FROM", 1 << 20)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member(tar, "a__m__step_0.png", png(1))
        member(tar, "a__m__step_1.png", bytes(40 << 20))
    ending = "gz" if opener is gzip.compress else "xz"
    path = tmp_path / f"s.tar.{ending}"
    path.write_bytes(opener(out.getvalue()))
    with pytest.raises(ImportProblem, match="inflates to more than 300 times its size"):
        read(path)
    assert list(scratch.iterdir()) == []


def test_a_header_that_inflates_without_end_is_refused_in_little_memory(tmp_path: Path) -> None:
    """A long name of 60 MB, which `tarfile` alone would read whole."""
    info = tarfile.TarInfo("././@LongLink")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 60 << 20
    path = tmp_path / "s.tar.gz"
    with gzip.open(path, "wb", 1) as out:
        out.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(61):
            out.write(b"a" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(ImportProblem, match="a header of more than 128 KiB"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_headers_nested_a_thousand_deep_are_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type = tarfile.XHDTYPE
    path = tmp_path / "s.tar"
    path.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) * 5000)
    with pytest.raises(ImportProblem, match="not a readable tar"):
        read(path)


def test_members_of_absurd_size_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [("big__m__step_1.png", bytes(5000)), *chain()]
    for name, mode in (("s.tar", "w"), ("s.tar.gz", "w:gz")):
        path = shard(tmp_path / name, files, mode)
        with monkeypatch.context() as patch:
            patch.setattr(shards, "MEMBER_LIMIT", 4000)
            finds = read(path)
        assert {frame.track.source for frame in finds.frames} == {"cat"}
        assert f"{name}: not read: 1 files of absurd size." in finds.notes
    files = [("k.png", png(1)), ("k.json", b" " * 5000)]
    monkeypatch.setattr(shards, "TEXT_LIMIT", 4000)
    with pytest.raises(ImportProblem, match=r"k\.json has 5,000 bytes"):
        read(shard(tmp_path / "t.tar", files))


@pytest.mark.parametrize("name", ["s.tar", "s.tar.gz", "s.tar.xz"])
def test_a_shard_cut_short_is_named(tmp_path: Path, name: str) -> None:
    noisy = [
        (key, data + os.urandom(3000) if key.endswith("png") else data) for key, data in chain()
    ]
    mode = "w" if name == "s.tar" else f"w:{name[-2:]}"
    whole = shard(tmp_path / name, noisy, mode).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 3])
    with pytest.raises(ImportProblem, match=f"{name.replace('.', '[.]')} .*cut short"):
        read(tmp_path / name)


def test_every_cut_of_a_shard_is_noticed(tmp_path: Path) -> None:
    whole = shard(tmp_path / "w.tar", chain(2)).read_bytes()
    end = len(whole.rstrip(b"\0"))
    path = tmp_path / "s.tar"
    for cut in range(0, end, 97):
        path.write_bytes(whole[:cut])
        try:
            finds = read(path)
        except ImportProblem as problem:
            assert "s.tar" in str(problem)  # noqa: PT017 - either way it must be told
        else:
            assert any("no end mark" in note for note in finds.notes), cut


def test_a_shard_without_its_end_mark_is_read_with_a_note(tmp_path: Path) -> None:
    path = shard(tmp_path / "s.tar", chain())
    whole = path.read_bytes()
    used = -(-len(whole.rstrip(b"\0")) // 512) * 512
    path.write_bytes(whole[:used])
    finds = read(path)
    assert len(finds.frames) == 3
    told = "s.tar has no end mark after 000002.json: it may be cut short."
    assert finds.notes == [told]


@pytest.mark.parametrize("name", ["s.tar", "s.tar.gz", "s.tar.xz", "s.tar.bz2"])
def test_members_that_fill_whole_blocks_are_read_exactly(tmp_path: Path, name: str) -> None:
    sizes = (512, 1024, 511, 513, 0, 1 << 20)
    files = [(f"c__m__step_{n}.png", os.urandom(size)) for n, size in enumerate(sizes)]
    finds = read(shard(tmp_path / name, files, "w" if name == "s.tar" else f"w:{name[6:]}"))
    assert [frame.place.read() for frame in finds.frames if frame.place] == [d for _, d in files]
    if finds.cleanup:
        finds.cleanup()


def test_a_shard_damaged_in_the_middle_is_named(tmp_path: Path) -> None:
    """`tarfile` stops at a damaged header without a word."""
    path = shard(tmp_path / "s.tar", chain())
    data = bytearray(path.read_bytes())
    start = data.index(b"000001.png")
    data[start : start + 8] = b"\x01" * 8
    path.write_bytes(data)
    with pytest.raises(ImportProblem, match=r"s\.tar is damaged or cut short: what follows 000000"):
        read(path)


@pytest.mark.parametrize("name", ["s.tar", "s.tar.gz", "s.tgz", "s.tar.xz", "s.tar.bz2"])
@pytest.mark.parametrize("data", [b"", b"no archive at all" * 100])
def test_what_is_no_archive_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ImportProblem, match=name.replace(".", "[.]")):
        read(tmp_path / name)


MEASURED = """
import sys, tracemalloc
from pathlib import Path
from tests.importer.shard_files import read
path = Path(sys.argv[1])
read(path)  # imports and caches are not what is measured
tracemalloc.start()
finds = read(path)
print(len(finds.frames), *tracemalloc.get_traced_memory())
if finds.cleanup:
    finds.cleanup()
"""


@pytest.mark.parametrize("name", ["s.tar", "s.tar.gz"])
def test_thousands_of_members_take_no_memory_of_their_size(tmp_path: Path, name: str) -> None:
    picture = png(1) + os.urandom(20_000)
    count = 2000
    with tarfile.open(tmp_path / name, "w" if name == "s.tar" else "w:gz", **(
        {} if name == "s.tar" else {"compresslevel": 1}
    )) as tar:  # type: ignore[call-overload] # fmt: skip
        for step in range(count):
            member(tar, f"cat__m__step_{step:05d}.png", picture)
    # In a process of its own: threads that other tests left behind use memory, too.
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / name], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    frames, now, peak = map(int, done.stdout.split())
    assert frames == count
    assert now < 3000 * count  # the bookkeeping
    most = 1 << 20 if name == "s.tar" else 5 << 20  # pieces of 1 MB are inflated
    assert peak - now < most  # what passes through, of 40 MB
