"""Unbundling what strangers made: nothing evil in an archive has an effect."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import convergebench as cb
from convergebench.archive import structure
from convergebench.archive.contents import MANIFEST
from convergebench.archive.structure import Entry
from convergebench.errors import BundleError
from convergebench.store import RunStore
from tests.support.bundles import contents, tree, zipped
from tests.test_cli import cb as command
from tests.test_unbundle import defects_of, good

# -- evil -------------------------------------------------------------------------------------


def named(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("x")
    info.filename = name  # as given: the constructor would mend it
    return info


EVIL_NAMES = {
    "../escaped": "leads outside",
    "frames/../../escaped": "leads outside",
    "/escaped-by-a-bundle": "leads outside",
    "..\\escaped": "leads outside",
    "C:\\escaped": "leads outside",
    "c:escaped": "leads outside",
    "\\\\host\\share\\escaped": "leads outside",
    "chains\\ab\\x.jsonl": "has a backslash",
    "run.json\x00.png": "has bytes that no name of a run has",
    "scores/\u202etxt.parquet": "has bytes that no name of a run has",
    "imports/caf\u00e9.jsonl": "has bytes that no name of a run has",
    "scores/a\nb.parquet": "has bytes that no name of a run has",
    "run.lock": "no run has a file of this name",
    "frames/.new/x": "no run has a file of this name",
    "frames/aa/" + "b" * 64 + ".png": "no run has a file of this name",
    "frames/ab/" + "ab" * 32 + ".exe": "no run has a file of this name",
    "chains/ab/.hidden.jsonl": "no run has a file of this name",
    "chains/./ab.jsonl": "no run has a file of this name",
    "chains//x.jsonl": "no run has a file of this name",
    "scores/" + "n" * 300 + ".parquet": "no run has a file of this name",
    "evil.py": "no run has a file of this name",
    "evil/": "no run has a file of this name",
    "": "no run has a file of this name",
}


def refused(tmp_path: Path, path: Path, match: str, *, kept: bool = True) -> None:
    """The bundle is refused, and neither this nor a salvage writes anything outside."""
    inner = tmp_path / "place" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "place" / "sentinel").write_text("here")
    before = tree(tmp_path)
    with pytest.raises(BundleError, match=match):
        cb.unbundle(path, inner / "back")
    assert tree(tmp_path) == before
    assert not (inner / "back").exists()
    assert any(match in text for text in defects_of(path))
    cb.unbundle(path, inner / "back", salvage=True)
    outside = {n: d for n, d in tree(tmp_path).items() if not n.startswith("place/inner/back/")}
    assert outside == before
    assert not os.path.exists("/escaped-by-a-bundle")
    inside = tree(inner / "back")
    assert inside.items() <= good()[2].items()
    assert not kept or inside == good()[2]
    assert not any(p.is_symlink() for p in inner.rglob("*"))


@pytest.mark.parametrize("name", EVIL_NAMES, ids=ascii)
def test_evil_names_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        for each, data in good()[2].items():
            out.writestr(each, data)
        out.writestr(named(name), b"")
        out.writestr(MANIFEST, manifest_of(good()[2]))
    refused(tmp_path, path, EVIL_NAMES[name])


def manifest_of(files: dict[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(d).hexdigest()}  {n}\n" for n, d in files.items()).encode()


def test_names_that_are_not_unicode_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], more=[(named("scores/XXXX.parquet"), b"")])
    data = path.read_bytes().replace(b"scores/XXXX.p", b"scores/\xc0\xae\xff\xfe.p")
    path.write_bytes(data)
    found = defects_of(path)
    assert any("has bytes that no name of a run has" in text for text in found)


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], more=[(named("\x1b]0;owned\x07"), b"")])
    done = command("verify", path)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\x1b]0;owned" in done.stdout


def mode(bits: int) -> Callable[[zipfile.ZipInfo], None]:
    def tweak(info: zipfile.ZipInfo) -> None:
        info.external_attr = bits << 16

    return tweak


@pytest.mark.parametrize(
    ("bits", "match"),
    [
        (stat.S_IFLNK | 0o777, "it is a link"),
        (stat.S_IFIFO | 0o644, "it is a special file"),
        (stat.S_IFCHR | 0o644, "it is a special file"),
        (stat.S_IFBLK | 0o644, "it is a special file"),
        (stat.S_IFSOCK | 0o644, "it is a special file"),
        (stat.S_IFDIR | 0o755, "it is a special file"),
    ],
)
def test_links_and_special_files_are_refused(tmp_path: Path, bits: int, match: str) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], tweak=mode(bits))
    refused(tmp_path, path, match, kept=False)


def test_a_link_with_the_name_of_a_folder_is_refused(tmp_path: Path) -> None:
    info = named("frames/")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        for each, data in good()[2].items():
            out.writestr(each, data)
        out.writestr(info, b"../../outside")
        out.writestr(MANIFEST, manifest_of(good()[2]))
    refused(tmp_path, tmp_path / "a.zip", "it is a link")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["sessions.jsonl", "SESSIONS.jsonl"])
def test_names_that_are_equal_or_nearly_so_are_refused(tmp_path: Path, second: str) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], more=[(named(second), b"other")], listed=good()[2])
    match = "several files of this name" if second.islower() else "no run has a file of this name"
    refused(tmp_path, path, match, kept=False)


def test_imports_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    both = [(named("imports/a.jsonl"), b""), (named("imports/A.jsonl"), b"")]
    path = zipped(tmp_path / "a.zip", good()[2], more=both)
    with pytest.raises(BundleError, match=r"imports/A.jsonl: there are several files of this name"):
        cb.unbundle(path, tmp_path / "back")


def patched(path: Path, name: str, central: tuple[int, bytes], local: tuple[int, bytes]) -> None:
    """Change fields of an entry, by their place in its central and its local header."""
    data = bytearray(path.read_bytes())
    at = data.index(name.encode(), data.index(b"PK\1\2")) - 46
    (offset,) = struct.unpack_from("<I", data, at + 42)
    for base, (field, value) in ((at, central), (offset, local)):
        data[base + field : base + field + len(value)] = value
    path.write_bytes(data)


LAST = "sources.json"


def evil(tmp_path: Path, central: tuple[int, bytes], local: tuple[int, bytes]) -> Path:
    path = zipped(tmp_path / "a.zip", good()[2])
    patched(path, LAST, central, local)
    return path


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    path = evil(tmp_path, (8, b"\1\0"), (6, b"\1\0"))
    refused(tmp_path, path, "it is encrypted", kept=False)


def test_unknown_flags_are_refused(tmp_path: Path) -> None:
    path = evil(tmp_path, (8, b"\0\x20"), (6, b"\0\x20"))
    refused(tmp_path, path, "are unknown", kept=False)


def test_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], method=zipfile.ZIP_LZMA)
    with pytest.raises(BundleError, match="neither stored nor deflated"):
        cb.unbundle(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    def tweak(info: zipfile.ZipInfo) -> None:
        info.extra = struct.pack("<HHBI", 0x7075, 11, 1, 0) + b"../evi"

    path = zipped(tmp_path / "a.zip", good()[2], tweak=tweak)
    refused(tmp_path, path, "it has a second name", kept=False)


def test_overlapping_files_are_refused(tmp_path: Path) -> None:
    # The second name of the same bytes: the trick of bombs that unpack to petabytes.
    data = io.BytesIO()
    files = good()[2]
    entries: list[Entry] = []

    def add(name: str, content: bytes) -> None:
        crc = zlib.crc32(content)
        entries.append(Entry(name, data.tell(), len(content), len(content), crc))
        data.write(structure.local_header(name, len(content), crc) + content)

    for name, content in files.items():
        add(name, content)
    inner = structure.local_header("imports/in.jsonl", 3, zlib.crc32(b"abc")) + b"abc"
    outer = data.tell()
    add("imports/out.jsonl", inner)
    begin = outer + len(structure.local_header("imports/out.jsonl", 0, 0))
    entries.append(Entry("imports/in.jsonl", begin, 3, 3, zlib.crc32(b"abc")))
    add(MANIFEST, manifest_of({**files, "imports/out.jsonl": inner, "imports/in.jsonl": b"abc"}))
    for record in structure.ending(entries, data.tell()):
        data.write(record)
    (tmp_path / "a.zip").write_bytes(data.getvalue())
    refused(tmp_path, tmp_path / "a.zip", "it overlaps with 'imports/out.jsonl'")


def test_bytes_that_are_no_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with open(path, "wb") as file:
        file.write(b"#!/bin/sh\n")
        with zipfile.ZipFile(file, "w") as out:
            for name, content in good()[2].items():
                out.writestr(name, content)
            out.writestr(MANIFEST, manifest_of(good()[2]))
    assert any("bytes before it that are no file's" in text for text in defects_of(path))
    path.write_bytes(good()[0] + b"more")
    with pytest.raises(BundleError, match="the archive has no end"):
        cb.unbundle(path, tmp_path / "back")


# -- bombs ------------------------------------------------------------------------------------


def test_deflated_archives_of_other_programs_are_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", good()[2], method=zipfile.ZIP_DEFLATED)
    assert cb.verify(path).sound
    assert cb.unbundle(path, tmp_path / "back").whole
    assert contents(tmp_path / "back") == good()[2]


def test_an_archive_written_to_a_pipe_is_read(tmp_path: Path) -> None:
    """Such archives have their sizes behind the data, and folders as entries."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as out:
        for folder in ("frames/", "chains/", "chains/ab/", "scores/"):
            out.writestr(folder, b"")
        for name, content in good()[2].items():
            out.writestr(name, content)
        out.writestr(MANIFEST, manifest_of(good()[2]))
    (tmp_path / "a.zip").write_bytes(pipe.data)
    assert cb.verify(tmp_path / "a.zip").defects == []
    assert cb.unbundle(tmp_path / "a.zip", tmp_path / "back").whole
    (tmp_path / "b.zip").write_bytes(pipe.data[:-30])
    assert any("does not tell its size" in text for text in defects_of(tmp_path / "b.zip"))


def bomb(path: Path, size: int) -> Path:
    info = named("imports/bomb.jsonl")
    info.compress_type = zipfile.ZIP_DEFLATED
    return zipped(path, good()[2], more=[(info, bytes(size))])


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    refused(tmp_path, bomb(tmp_path / "a.zip", 30_000_000), "as a bomb does", kept=True)


def test_a_bomb_that_lies_about_its_size_is_stopped(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.zip", 30_000_000)
    size = struct.pack("<I", 900_000)
    patched(path, "imports/bomb.jsonl", (24, size), (22, size))
    with pytest.raises(BundleError, match="unpacks to more than the 900000 bytes it declares"):
        cb.unbundle(path, tmp_path / "back")
    assert not RunStore.is_run(tmp_path / "back")
    assert not list((tmp_path / "back" / "frames" / ".new").iterdir())


def test_more_than_allowed_or_free_is_refused_before_writing(tmp_path: Path) -> None:
    data, _, files = good()
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(BundleError, match="more than the 100 allowed"):
        cb.unbundle(path, tmp_path / "back", max_size=100)
    # A file with a hole really has the bytes it declares: all of them nothing.
    huge = shutil.disk_usage(tmp_path).free + 2**33
    manifest = manifest_of(files) + b"0" * 64 + b"  scores/huge.parquet\n"
    placed = [Entry("scores/huge.parquet", 0, huge, huge, 0)]
    with open(path, "wb") as out:
        out.write(structure.local_header(placed[0].name, huge, 0))
        out.seek(huge, os.SEEK_CUR)
        for name, content in {**files, MANIFEST: manifest}.items():
            crc = zlib.crc32(content)
            placed.append(Entry(name, out.tell(), len(content), len(content), crc))
            out.write(structure.local_header(name, len(content), crc) + content)
        for record in structure.ending(placed, out.tell()):
            out.write(record)
    with pytest.raises(BundleError, match=r"needs [\d,]+ bytes, and .* has [\d,]+ free"):
        cb.unbundle(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
