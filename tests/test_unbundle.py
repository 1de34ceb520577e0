"""Unbundling: damage is named file by file; a run is whole or no run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convergebench as cb
from convergebench.archive import structure
from convergebench.archive.contents import MANIFEST
from convergebench.archive.structure import Entry
from convergebench.errors import BundleError, StoreBusy
from convergebench.store import RunStore
from tests.support.bundles import contents, frame_name, lasting_folder, small_run, tree, zipped
from tests.test_bundle import big_run
from tests.test_cli import cb as command
from tests.test_cli import complaint


@cache
def good() -> tuple[bytes, list[Entry], dict[str, bytes]]:
    """A small bundle: its bytes, its entries, its files."""
    folder = lasting_folder()
    run = small_run(folder / "run")
    cb.bundle(run, folder / "a.zip")
    data = (folder / "a.zip").read_bytes()
    return data, structure.walk(io.BytesIO(data), len(data))[0], contents(run)


def defects_of(path: Path) -> list[str]:
    """What `verify` says of a bundle, in whatever way."""
    try:
        return cb.verify(path).defects
    except BundleError as error:
        return [str(error)]


# -- damage -----------------------------------------------------------------------------------


def check_flip(at: int, bit: int, *, salvage: bool = True) -> None:
    """A flipped bit is reported, with the name of the file it is in, or does no harm."""
    data, entries, files = good()
    broken = bytearray(data)
    broken[at] ^= 1 << bit
    with TemporaryDirectory() as place:
        path, back = Path(place, "a.zip"), Path(place, "back")
        path.write_bytes(broken)
        found = defects_of(path)
        hit = [e.name for e in entries if e.start <= at < e.end]
        if hit:
            assert any(hit[0] in text for text in found), (at, bit, hit, found)
        if found and salvage:
            with pytest.raises(BundleError):
                cb.unbundle(path, back)
            assert not RunStore.is_run(back)
            cb.unbundle(path, back, salvage=True)
            rest = contents(back)
            assert rest.items() <= files.items(), (at, bit)
            lost = len(files) - len(rest)
            assert lost <= 1 or (lost == 2 and "suite.json" in str(found)), (at, bit, found)
        elif not found:
            cb.unbundle(path, back)
            assert contents(back) == files, (at, bit)


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_reported_or_harmless(share: float, bit: int) -> None:
    check_flip(int(share * len(good()[0])), bit)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_bytes_all_over_a_bundle_are_reported_or_harmless() -> None:
    for at in range(0, len(good()[0]), 9):  # all of them take minutes
        check_flip(at, at % 8, salvage=at % 100 == 0)


def test_what_is_salvaged_has_no_fingerprint_and_says_so(tmp_path: Path) -> None:
    data, entries, _ = good()
    frame = next(e for e in entries if e.name.startswith("frames/"))
    broken = bytearray(data)
    broken[frame.start] ^= 1
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(BundleError, match="names the defect:"):
        cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    result = cb.unbundle(tmp_path / "a.zip", tmp_path / "back", salvage=True)
    assert result.is_run
    assert result.fingerprint is None
    assert result.to_dict()["fingerprint"] is None
    assert "No fingerprint: this is not the whole run that was bundled." in str(result)


def test_a_whole_copy_goes_over_a_salvaged_run_that_has_a_report(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"findings.json": b"{}", "report/index.html": b"all"})
    whole = cb.bundle(run, tmp_path / "a.zip", with_report=True)
    data = (tmp_path / "a.zip").read_bytes()
    entries = structure.walk(io.BytesIO(data), len(data))[0]
    broken = bytearray(data)
    broken[next(e for e in entries if e.name.startswith("frames/")).start] ^= 1
    (tmp_path / "b.zip").write_bytes(broken)
    cb.unbundle(tmp_path / "b.zip", tmp_path / "back", salvage=True)
    (tmp_path / "back" / "findings.json").write_bytes(b'{"of": "the rest"}')
    (tmp_path / "back" / "report" / "index.html").write_bytes(b"the rest")
    there = cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    assert there.fingerprint == whole.fingerprint
    assert tree(tmp_path / "back") == tree(run)


def test_a_file_whose_header_is_damaged_is_salvaged_by_its_hash(tmp_path: Path) -> None:
    data, entries, files = good()
    broken = bytearray(data)
    (suite,) = (e for e in entries if e.name == "suite.json")
    broken[suite.start - 3] ^= 1  # in its name
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(BundleError, match="differ in its name"):
        cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    result = cb.unbundle(tmp_path / "a.zip", tmp_path / "back", salvage=True)
    assert (result.is_run, result.whole) == (True, False)
    assert contents(tmp_path / "back") == files


@pytest.mark.parametrize("field", [16, 24, 28, 42, 43])  # checksum, size, name's length, offset
def test_a_damaged_directory_costs_one_file_at_most(tmp_path: Path, field: int) -> None:
    data, entries, files = good()
    record = data.rindex(entries[-3].name.encode()) - 46
    broken = bytearray(data)
    broken[record + field] ^= 1
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(BundleError):
        cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    assert cb.unbundle(tmp_path / "a.zip", tmp_path / "back", salvage=True).is_run
    assert len(contents(tmp_path / "back")) >= len(files) - 1


def check_cut(length: int) -> None:
    """A cut bundle is reported; what lies before the cut is whole, and can be salvaged."""
    data, entries, files = good()
    with TemporaryDirectory() as place:
        path, back = Path(place, "a.zip"), Path(place, "back")
        path.write_bytes(data[:length])
        found = defects_of(path)
        assert found
        with pytest.raises(BundleError):
            cb.unbundle(path, back)
        assert not back.exists()
        whole = {e.name for e in entries if e.end <= length} - {MANIFEST}
        cut = [e.name for e in entries if e.start <= length < e.end]
        assert all(f"{name}: cut off" in " ".join(found) for name in cut)
        assert not any(f"damaged: {name}:" in text for name in whole for text in found)
        if length < entries[0].start:
            assert "is not a bundle" in found[0] or "cut off" in found[0]
            return
        result = cb.unbundle(path, back, salvage=True)
        kept = contents(back)
        opens = {"run.json", "suite.json"} <= whole
        assert (result.is_run, result.whole) == (opens, False)
        assert kept.keys() == whole - (set() if opens else {"run.json"})
        assert kept.items() <= files.items()


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_is_reported_and_what_is_whole_is_told(share: float) -> None:
    check_cut(int(share * len(good()[0])))


@pytest.mark.parametrize("back", [1, 22, 23, 60])
def test_a_cut_in_the_last_bytes_loses_no_file(back: int) -> None:
    check_cut(len(good()[0]) - back)


def test_files_missing_from_archive_or_manifest_are_named(tmp_path: Path) -> None:
    files = good()[2]
    name = list(files)[-1]
    fewer = {n: data for n, data in files.items() if n != name}
    path = zipped(tmp_path / "a.zip", fewer, listed=files)
    assert any(text.startswith(f"missing: {name}") for text in defects_of(path))
    with pytest.raises(BundleError, match=f"{name}: the manifest names it"):
        cb.unbundle(path, tmp_path / "back")
    path = zipped(tmp_path / "b.zip", files, listed=fewer)
    assert any(f"{name}: the manifest does not name it" in text for text in defects_of(path))
    with pytest.raises(BundleError, match="the manifest does not name it"):
        cb.unbundle(path, tmp_path / "back")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as out:
        for each, data in files.items():
            out.writestr(each, data)
    with pytest.raises(BundleError, match="it has no manifest"):
        cb.unbundle(tmp_path / "c.zip", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_frame_whose_bytes_are_not_its_name_is_refused(tmp_path: Path) -> None:
    files = {**good()[2], frame_name(b"one"): b"two"}
    path = zipped(tmp_path / "a.zip", files)
    with pytest.raises(BundleError, match="its bytes are not what its name says"):
        cb.unbundle(path, tmp_path / "back")
    assert not RunStore.is_run(tmp_path / "back")
    assert not (tmp_path / "back" / frame_name(b"one")).exists()


def test_a_manifest_that_denies_a_frame_is_reported(tmp_path: Path) -> None:
    _, entries, files = good()
    name = entries[-2].name
    path = zipped(tmp_path / "a.zip", files, listed={**files, name: b"else"})
    told = f"{name}: its bytes are not what the manifest says"
    assert any(told in text for text in defects_of(path))


# -- the directory ----------------------------------------------------------------------------


def test_an_unbundled_run_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(good()[0])
    back = tmp_path / "back"
    result = cb.unbundle(tmp_path / "a.zip", back)
    assert result.whole
    assert len(list(back.glob("frames/[0-9a-f][0-9a-f]/"))) == 256
    assert cb.verify(back).sound
    assert cb.score(back, ["psnr"]).new > 0
    assert cb.report(back).path.is_file()
    told = cb.bundle(back, tmp_path / "b.zip", with_report=True)
    assert told.files["report"] > 3
    assert cb.unbundle(tmp_path / "b.zip", tmp_path / "again").files == told.files
    assert cb.verify(tmp_path / "b.zip").sound


def test_unbundling_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(good()[0])
    back, files = tmp_path / "back", good()[2]
    seen = 0

    def stop(done: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen == len(files) - 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cb.unbundle(tmp_path / "a.zip", back, observe=stop)
    assert not RunStore.is_run(back)
    torn = max(back.glob("frames/??/*"))
    torn.write_bytes(b"torn")
    (back / "frames" / ".new" / "unpacking").write_bytes(b"left")
    result = cb.unbundle(tmp_path / "a.zip", back)
    assert result.whole
    assert result.kept == len(files) - 2 - 1 - 1, "all but run.json and the torn one were there"
    assert contents(back) == files
    assert cb.unbundle(tmp_path / "a.zip", back).kept == len(files) - 1


def test_a_killed_unbundling_is_no_run_and_is_continued(tmp_path: Path) -> None:
    cb.bundle(big_run(tmp_path / "run", count=40), tmp_path / "a.zip")
    back = tmp_path / "back"
    words = [sys.executable, "-m", "convergebench", "unbundle", str(tmp_path / "a.zip"), "--to"]
    process = subprocess.Popen([*words, str(back)], stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(back.glob("frames/??/*"))) < 15:
        time.sleep(0.001)
    process.kill()
    assert process.wait() != 0, "it should have been killed midway"
    assert not RunStore.is_run(back)
    there = len(contents(back))
    assert cb.unbundle(tmp_path / "a.zip", back).kept == there
    assert contents(back) == contents(tmp_path / "run")


def test_a_refused_bundle_can_be_followed_by_a_whole_copy(tmp_path: Path) -> None:
    data, entries, files = good()
    broken = bytearray(data)
    broken[entries[-2].start] ^= 1
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(BundleError, match="a whole copy of the bundle can be unpacked over it"):
        cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    (tmp_path / "a.zip").write_bytes(data)
    assert cb.unbundle(tmp_path / "a.zip", tmp_path / "back").kept == len(files) - 2


def test_a_place_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    path, back = tmp_path / "a.zip", tmp_path / "back"
    path.write_bytes(good()[0])
    with pytest.raises(BundleError, match="is not a directory"):
        cb.unbundle(path, path)
    back.mkdir()
    (back / "thesis.txt").write_text("mine")
    with pytest.raises(BundleError, match=r"holds thesis.txt, which is not of this bundle"):
        cb.unbundle(path, back)
    assert tree(back) == {"thesis.txt": b"mine"}
    other = small_run(tmp_path / "other", {"run.json": b"{}"})
    with pytest.raises(BundleError, match="holds a different run"):
        cb.unbundle(path, other)


def test_a_run_that_went_on_is_not_overwritten(tmp_path: Path) -> None:
    path, back = tmp_path / "a.zip", tmp_path / "back"
    path.write_bytes(good()[0])
    cb.unbundle(path, back)
    chain = next(back.glob("chains/*/*.jsonl"))
    longer = chain.read_bytes() + b'{"paid": "for"}\n'
    chain.write_bytes(longer)
    with pytest.raises(BundleError, match=f"holds this run, and its chains/.*{chain.name}"):
        cb.unbundle(path, back)
    assert chain.read_bytes() == longer


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    from convergebench.disk import hold_lock

    (tmp_path / "a.zip").write_bytes(good()[0])
    back = tmp_path / "back"
    back.mkdir()
    with hold_lock(back / "run.lock", "test"), pytest.raises(StoreBusy, match="being written"):
        cb.unbundle(tmp_path / "a.zip", back)


@pytest.mark.parametrize("name", ["run.json", "suite.json"])
def test_what_cannot_be_opened_is_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "a.zip", {**good()[2], name: b'{"x": 1}'})
    with pytest.raises(BundleError, match="holds no run that can be opened"):
        cb.unbundle(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    result = cb.unbundle(path, tmp_path / "back", salvage=True)
    assert not result.is_run
    newer = good()[2]["run.json"].replace(b'"format": 1', b'"format": 99')
    path = zipped(tmp_path / "b.zip", {**good()[2], "run.json": newer})
    with pytest.raises(BundleError, match="a run of format 99, this version reads 1"):
        cb.unbundle(path, tmp_path / "new")


@pytest.mark.parametrize("data", [b"", b"PK", b"no archive", b"\x89PNG\r\n" + bytes(99)])
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    for call in (cb.verify, cb.unbundle):
        with pytest.raises(BundleError, match="is not a bundle"):
            call(tmp_path / "a.zip")
    with pytest.raises(BundleError, match=r"cannot read .*none.zip"):
        cb.unbundle(tmp_path / "none.zip")


# -- the commands -----------------------------------------------------------------------------


def test_commands_exit_with_the_state_of_the_bundle(tmp_path: Path) -> None:
    data, entries, files = good()
    (tmp_path / "a.zip").write_bytes(data)
    words = [sys.executable, "-m", "convergebench", "unbundle", "a.zip", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["path"], told["whole"], sum(told["files"].values())) == ("a", True, len(files))
    verified = command("verify", tmp_path / "a.zip")
    assert (verified.returncode, "sound" in verified.stdout) == (0, True)

    broken = bytearray(data)
    broken[entries[-2].start] ^= 1
    (tmp_path / "b.zip").write_bytes(broken)
    verified = command("verify", tmp_path / "b.zip", "--json")
    assert verified.returncode == 1
    assert [text.split(":")[0] for text in json.loads(verified.stdout)["altered"]] == [
        entries[-2].name
    ]
    done = command("unbundle", tmp_path / "b.zip", "--to", tmp_path / "b")
    assert "not a whole and safe bundle" in complaint(done)
    assert entries[-2].name in done.stderr
    done = command("unbundle", tmp_path / "b.zip", "--to", tmp_path / "c", "--salvage")
    assert done.returncode == 1
    assert f"NOT salvaged: {entries[-2].name}" in done.stdout
    limited = command("unbundle", tmp_path / "a.zip", "--to", tmp_path / "d", "--max-size", "1e-6")
    assert "--max-size" in complaint(limited)
