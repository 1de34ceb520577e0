"""Bundling: equal runs make equal archives, and a killed process loses nothing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convergebench as cb
from convergebench import bundler
from convergebench.archive import structure
from convergebench.archive.contents import MANIFEST, belongs
from convergebench.disk import hold_lock
from convergebench.errors import BundleError, StoreBusy
from convergebench.store import RunStore
from tests.support.bundles import contents, frame_name, small_run, tree
from tests.test_cli import cb as command
from tests.test_cli import complaint
from tests.test_docs import ROOT, blocks, execute

blobs = st.binary(max_size=300)
word = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
hex2 = st.from_regex(r"[0-9a-f]{2}", fullmatch=True)
frames = st.tuples(blobs, st.sampled_from([".png", ".jpg", ".bin"])).map(
    lambda pair: (frame_name(*pair), pair[0])
)
records = st.tuples(
    st.one_of(
        word.map(lambda w: f"imports/{w}.jsonl"),
        word.map(lambda w: f"ratings/{w}.jsonl"),
        word.map(lambda w: f"scores/{w}.parquet"),
        st.sampled_from(["findings.json", "sessions.jsonl", "spec.json"]),
    ),
    blobs,
)
extras = st.lists(st.one_of(frames, records), max_size=12, unique_by=lambda p: p[0].casefold())


@settings(max_examples=40, deadline=None)
@given(extra=extras, report=st.dictionaries(word, blobs, max_size=3), chunk=st.integers(1, 400))
def test_bundle_unbundle_bundle_is_byte_identical(
    extra: list[tuple[str, bytes]], report: dict[str, bytes], chunk: int
) -> None:
    pages = {f"report/charts/{name}": data for name, data in report.items()}
    pages = {n: d for n, d in pages.items() if len({k.casefold() for k in pages}) == len(pages)}
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundler, "CHUNK", chunk)  # most files then take several pieces
        here = Path(place)
        run = small_run(here / "run", dict(extra) | pages)
        first = cb.bundle(run, here / "a.zip", with_report=True)
        unpacked = cb.unbundle(here / "a.zip", here / "back")
        second = cb.bundle(here / "back", here / "b.zip", with_report=True)
        assert (here / "a.zip").read_bytes() == (here / "b.zip").read_bytes()
        assert tree(run) == tree(here / "back")
        assert first.fingerprint == second.fingerprint == unpacked.fingerprint
        folders = {p.relative_to(run) for p in run.rglob("*") if p.is_dir()} - {Path("status")}
        assert folders == {p.relative_to(here / "back") for p in here.glob("back/**/*/")}


def test_archive_is_stored_ordered_and_dateless(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"notes.txt": b"mine", "report/index.html": b"<p>"})
    result = cb.bundle(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        assert file.testzip() is None
        infos = file.infolist()
        assert {i.compress_type for i in infos} == {zipfile.ZIP_STORED}
        assert {i.date_time for i in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.external_attr >> 16 for i in infos} == {0o100644}
        names = file.namelist()
    assert names[-1] == MANIFEST
    first = [name for name in names[:-1] if not name.startswith("frames/")]
    rest = [name for name in names[:-1] if name.startswith("frames/")]
    assert names[:-1] == sorted(first) + sorted(rest)
    assert set(names) - {MANIFEST} == set(contents(run))
    assert result.strangers == ["notes.txt"]
    assert "left out, no file of a run: notes.txt" in str(result)
    assert all(map(belongs, names[:-1]))


def test_sha256sum_checks_what_was_plainly_unzipped(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    cb.bundle(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        file.extractall(tmp_path / "out")
    check = ["sha256sum", "--check", "--strict", "--quiet", MANIFEST]
    assert subprocess.run(check, cwd=tmp_path / "out", check=False).returncode == 0
    # What was plainly unzipped is the run again: its bundle is the same.
    cb.bundle(tmp_path / "out", tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_wide_fields_are_read_by_others_and_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(tmp_path / "run")
    monkeypatch.setattr(structure, "WIDE_SIZE", 700)
    monkeypatch.setattr(structure, "WIDE_COUNT", 5)
    cb.bundle(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        assert file.testzip() is None
        assert sum(bool(info.extra) for info in file.infolist()) > 5
        assert {i.filename: file.read(i) for i in file.infolist()[:-1]} == contents(run)
    assert cb.verify(tmp_path / "a.zip").sound
    assert cb.unbundle(tmp_path / "a.zip", tmp_path / "back").whole
    assert contents(tmp_path / "back") == contents(run)


def test_more_files_than_16_bits_can_count(tmp_path: Path) -> None:
    path, entries = tmp_path / "many.zip", []
    with open(path, "wb") as out:
        for number in range(70_000):
            entries.append(structure.Entry(f"f{number}", out.tell(), 1, 1, 0xD3D99E8B))
            out.write(structure.local_header(f"f{number}", 1, 0xD3D99E8B) + b"A")
        for record in structure.ending(entries, out.tell()):
            out.write(record)
    with zipfile.ZipFile(path) as file:
        assert len(file.namelist()) == 70_000
        assert file.read("f69999") == b"A"
    with open(path, "rb") as read:
        found, _ = structure.directory(read, path.stat().st_size)
        assert [e.name for e in found] == [e.name for e in entries]
        assert structure.located(read, found[-1]).crc == 0xD3D99E8B


# -- going on ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_an_interrupted_process_left_the_result_is_the_same(data: st.DataObject) -> None:
    with TemporaryDirectory() as place:
        here = Path(place)
        run = small_run(here / "run")
        cb.bundle(run, here / "whole.zip")
        whole = (here / "whole.zip").read_bytes()
        left = bytearray(whole[: data.draw(st.integers(0, len(whole)), label="cut")])
        at = data.draw(st.integers(4, max(4, len(left) - 1)), label="flip")
        flipped = at < len(left) and data.draw(st.booleans(), label="flipped")
        if flipped:
            left[at] ^= 1 << data.draw(st.integers(0, 7))
        (here / "a.zip.part").write_bytes(left)
        result = cb.bundle(run, here / "a.zip")
        assert (here / "a.zip").read_bytes() == whole
        assert not (here / "a.zip.part").exists()
        ends, at_end = [0], 0
        with open(here / "whole.zip", "rb") as file:
            for entry in structure.walk(file, len(whole))[0][:-1]:
                at_end = entry.end
                ends.append(at_end)
        reach = min(len(left), at if flipped else len(left))
        assert result.resumed == max(end for end in ends if end <= reach)


def test_a_run_that_went_on_meanwhile_is_bundled_as_it_is_now(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    cb.bundle(run, tmp_path / "old.zip")
    shutil.copy(tmp_path / "old.zip", tmp_path / "a.zip.part")
    sessions = run / "sessions.jsonl"
    sessions.write_bytes(sessions.read_bytes().replace(b"start", b"START"))
    cb.bundle(run, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        assert file.read("sessions.jsonl") == sessions.read_bytes()
    assert cb.verify(tmp_path / "a.zip").sound


def big_run(path: Path, count: int = 60, size: int = 3_000_000) -> Path:
    extra = {}
    for number in range(count):
        data = hashlib.shake_128(str(number).encode()).digest(size)
        extra[frame_name(data)] = data
    return small_run(path, extra)


def test_killed_process_is_continued_and_the_archive_is_identical(tmp_path: Path) -> None:
    run = big_run(tmp_path / "run")
    cb.bundle(run, tmp_path / "whole.zip")
    part, kills = tmp_path / "a.zip.part", 0
    words = [sys.executable, "-m", "convergebench", "bundle", str(run), "-o"]
    for share in (0.2, 0.5, 0.8):
        process = subprocess.Popen([*words, str(tmp_path / "a.zip")], stderr=subprocess.DEVNULL)
        wanted = share * (tmp_path / "whole.zip").stat().st_size
        while process.poll() is None and not (part.exists() and part.stat().st_size > wanted):
            time.sleep(0.001)
        process.kill()
        process.wait()
        kills += part.exists()
        assert not (tmp_path / "a.zip").exists()
    assert kills == 3, "every process should have been killed midway"
    left = part.stat().st_size
    done = command("bundle", run, "-o", tmp_path / "a.zip", "--json")
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)["resumed"]
    assert left - 3_100_000 < resumed <= left, "all but the file in flight should have been kept"
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "whole.zip").read_bytes()


def test_memory_does_not_grow_with_a_frame(tmp_path: Path) -> None:
    run = big_run(tmp_path / "run", count=1, size=100_000_000)
    tracemalloc.start()
    try:
        cb.bundle(run, tmp_path / "a.zip")
        cb.verify(tmp_path / "a.zip")
        cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15_000_000


# -- what is refused --------------------------------------------------------------------------


def spoil(run: Path) -> tuple[str, str]:
    """Alter one frame and remove another; their names."""
    altered, missing = sorted(run.glob("frames/??/*"))[:2]
    altered.write_bytes(b"x" * altered.stat().st_size)
    missing.unlink()
    return str(altered.relative_to(run)), str(missing.relative_to(run))


def test_an_unsound_run_is_refused_and_what_is_wrong_is_named(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    altered, missing = spoil(run)
    with pytest.raises(BundleError, match=f"not sound(.|\n)*missing: {missing}"):
        cb.bundle(run, tmp_path / "a.zip")
    shutil.rmtree(run)
    small_run(run)
    (run / altered).write_bytes(b"y")
    (run / missing).write_bytes(b"z")
    with pytest.raises(BundleError, match=f"altered: {altered}\n.*altered: {missing}"):
        cb.bundle(run, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_damaged_bundles_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    altered, missing = spoil(run)
    result = cb.bundle(run, tmp_path / "a.zip", damaged=True)
    assert [text.split()[:2] for text in result.absent] == [
        ["missing:", missing],
        ["altered:", altered],
    ]
    assert f"NOT in the bundle: altered: {altered}" in str(result)
    back = cb.unbundle(tmp_path / "a.zip", tmp_path / "back")
    assert back.whole, "all that the bundle has is there"
    assert len(cb.verify(tmp_path / "back").missing) == 2
    assert len(cb.verify(tmp_path / "a.zip").missing) == 2


def test_a_run_being_written_is_not_bundled(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    for lock in ("run.lock", "score.lock"):
        with (
            hold_lock(run / lock, "test"),
            pytest.raises(StoreBusy, match="being written by another process"),
        ):
            cb.bundle(run, tmp_path / "a.zip")


def test_bundling_keeps_the_run_still_and_leaves_its_locks_as_they_were(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    (run / "run.lock").write_text('{"pid": 1, "host": "h", "since": "killed"}')
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    refused = []

    def observe(done: int, total: int) -> None:
        with open(run / "run.lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                refused.append(done)

    cb.bundle(run, tmp_path / "a.zip", observe=observe)
    assert len(refused) > 5
    after = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    assert before == {p: data for p, data in after.items() if p.name != "score.lock"}


def test_two_processes_do_not_write_one_archive(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    with open(tmp_path / "a.zip.part", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match=r"a.zip.part is being written by another process"):
            cb.bundle(run, tmp_path / "a.zip")


def test_only_an_older_bundle_of_the_same_run_is_replaced(tmp_path: Path) -> None:
    run, out = small_run(tmp_path / "run"), tmp_path / "a.zip"
    before = cb.bundle(run, out).sizes["records"]
    (run / "findings.json").write_text("{}")
    assert cb.bundle(run, out).sizes["records"] == before + 2
    other = small_run(tmp_path / "other")
    info = (other / "run.json").read_text()
    (other / "run.json").write_text(info.replace('"created": "20', '"created": "19'))
    with pytest.raises(BundleError, match="exists and is not a readable bundle of"):
        cb.bundle(other, out)
    out.write_bytes(b"my novel")
    with pytest.raises(BundleError, match="exists and is not a readable bundle of"):
        cb.bundle(run, out)
    assert out.read_bytes() == b"my novel"


def test_places_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    with pytest.raises(BundleError, match="lies within the run"):
        cb.bundle(run, run / "a.zip")
    with pytest.raises(BundleError, match="is a directory"):
        cb.bundle(run, tmp_path)
    (tmp_path / "b.zip.part").write_bytes(b"a download of the browser")
    with pytest.raises(BundleError, match=r"b.zip.part exists and is no unfinished bundle"):
        cb.bundle(run, tmp_path / "b.zip")
    assert (tmp_path / "b.zip.part").read_bytes() == b"a download of the browser"
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="file is not a folder"):
        cb.bundle(run, tmp_path / "file" / "a.zip")
    with pytest.raises(BundleError, match="Make it, or choose another --out"):
        cb.bundle(run, tmp_path / "nope" / "a.zip")
    assert not (tmp_path / "nope").exists()


def test_a_run_without_a_step_is_refused_unless_asked_for(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    for chain in RunStore.open(run).chain_files():
        chain.write_bytes(chain.read_bytes().partition(b"\n")[0] + b"\n")
    with pytest.raises(BundleError, match="has no chains: there is nothing to hand on"):
        cb.bundle(run, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()
    cb.bundle(run, tmp_path / "a.zip", damaged=True)
    assert contents(cb.unbundle(tmp_path / "a.zip", tmp_path / "b").path) == contents(run)


def test_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"imports/a-1.jsonl": b"", "imports/A-1.jsonl": b""})
    with pytest.raises(BundleError, match="differ only in upper and lower case"):
        cb.bundle(run, tmp_path / "a.zip")


def test_a_linked_frames_folder_is_followed_and_a_loop_is_not(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    cb.bundle(run, tmp_path / "a.zip")
    os.rename(run / "frames", tmp_path / "big-disk")
    (run / "frames").symlink_to(tmp_path / "big-disk")
    (run / "imports").symlink_to(run)
    cb.bundle(run, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


# -- the command ------------------------------------------------------------------------------


def test_command_writes_beside_and_exits_with_its_state(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    words = [sys.executable, "-m", "convergebench", "bundle", "run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "frames" in done.stdout
    assert "bundling (MiB): 1 of 1" in done.stderr
    assert cb.verify(tmp_path / "run.zip").sound
    altered, missing = spoil(run)
    told = complaint(command("bundle", run, "-o", tmp_path / "b.zip"))
    assert "is not sound" in told
    done = command("bundle", run, "-o", tmp_path / "b.zip", "--damaged")
    assert (done.returncode, altered in done.stdout, missing in done.stdout) == (1, True, True)
    assert "no run.json" in complaint(command("bundle", tmp_path))


def test_the_guide_works_as_written(tmp_path: Path) -> None:
    small_run(tmp_path / "my-run")
    guide = ROOT / "docs" / "guides" / "bundle.md"
    for block in blocks(guide, "console"):
        for line in block.splitlines():
            words = [sys.executable, "-m", *line.split()]
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
            # There are no scores to report yet, and it says so; nothing is damaged either.
            expected = 2 if line.startswith("convergebench report") else 0
            assert done.returncode == expected, f"{line}: {done.stderr}"
    shutil.rmtree(tmp_path / "from-ada")
    execute(guide, tmp_path)
