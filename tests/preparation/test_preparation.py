"""Bringing a suite's files here: real folders, and a real server with its faults."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from convergebench.errors import InputError, StoreFull, SuiteError
from convergebench.frame import sha256
from convergebench.preparation import bringing, prepare_suite
from convergebench.suite import load_suite
from convergebench.weights import transfer
from tests.preparation.far import ALL, NAMES, data, far, files, how, stocked
from tests.test_cli import cb, complaint
from tests.weights.shelf import Shelf, serving


def test_downloads_verifies_and_does_not_ask_twice(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    suite = stocked(shelf, tmp_path / "s")
    assert [s.name for s in suite.missing()] == list(NAMES)
    done = prepare_suite(suite)
    assert done.complete
    assert set(how(done).values()) == {"downloaded"}
    assert files(home) == ALL
    assert suite.missing() == ()
    assert suite.available() is suite
    assert suite.frame(suite.source[1]).data == data("two")
    shelf.asked.clear()
    assert set(how(prepare_suite(suite)).values()) == {"here already"}
    assert not shelf.asked


def test_the_folder_explains_itself(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    shelf.status["/two.png"] = 404
    prepare_suite(stocked(shelf, tmp_path / "s"))
    told = (home / "README").read_text()
    assert "deep/one.png\n  source: one\n  licence: CC0-1.0\n  origin: Ann one\n" in told
    assert f"  address: {shelf.address}/one.png\n  sha256: {sha256(data('one'))}\n" in told
    assert "two.png" not in told


def test_folders_are_searched_by_hash_whatever_files_are_called(
    shelf: Shelf, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = stocked(shelf, tmp_path / "s")
    for place, content in (
        ("a/IMG_1.jpeg", data("one")),
        ("a/b/two.png", data("two")),
        ("a/one.png", b"another picture of that name"),
        ("a/copy of two", data("two")),
        ("a/empty", b""),
    ):
        (tmp_path / "album" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "album" / place).write_bytes(content)
    os.symlink(tmp_path / "album", tmp_path / "album/a/loop")
    os.mkfifo(tmp_path / "album/a/pipe")
    hashed: list[bytes] = []

    def counting(content: bytes) -> str:
        hashed.append(content)
        return sha256(content)

    monkeypatch.setattr(bringing, "sha256", counting)
    done = prepare_suite(suite, search=[tmp_path / "album", tmp_path / "album/a"], offline=True)
    assert how(done) == {"one": "copied", "two": "copied", "three": "not here"}
    assert len(hashed) == 4, "each file once, though it is in two of the folders"
    assert not shelf.asked
    assert files(home) == {"deep/one.png", "deep/two.png"}
    (lost,) = done.missing
    assert lost.reason == "no folder had it, and nothing was to be downloaded"
    assert how(prepare_suite(suite))["three"] == "downloaded"
    assert [path for path, _ in shelf.asked] == ["/three.png"]


def test_what_cannot_be_had_is_told_and_the_rest_goes_on(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    suite = stocked(shelf, tmp_path / "s")
    shelf.status["/one.png"] = 404
    shelf.files["/two.png"] = data("two")[:-1] + b"?"
    done = prepare_suite(suite)
    assert how(done) == {"one": "not here", "two": "not here", "three": "downloaded"}
    first, second = done.missing
    assert re.fullmatch(r"\S+/one\.png answered 404 Not Found", first.reason)
    got = sha256(shelf.files["/two.png"])[:12]
    wanted = sha256(data("two"))[:12]
    assert f"and SHA-256 {got}… instead of {wanted}…, and was thrown away" in second.reason
    assert f"Address: {shelf.address}/one.png" in str(done)
    assert files(home) == {"deep/three.png"}, "nothing wrong is under the right name, or left"
    assert "1 of 3 files here" in str(done)
    assert done.to_dict()["complete"] is False


def test_a_transfer_that_breaks_off_goes_on(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s", ("one",))
    shelf.cut["/one.png"] = [4096, 20000]
    assert prepare_suite(suite).complete
    assert [span for _, span in shelf.asked] == ["", "bytes=4096-", "bytes=20000-"]


def test_a_server_without_ranges_sends_all_of_it_again(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    suite = stocked(shelf, tmp_path / "s", ("one",))
    shelf.ranges = False
    shelf.cut["/one.png"] = [4096]
    assert prepare_suite(suite).complete
    assert suite.frame(suite.source[0]).data == data("one")


def test_a_part_of_something_else_is_thrown_away(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s", ("one",))
    part = home / ".partial" / f"{sha256(data('one'))[:16]}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"not the beginning of it")
    (part.parent / "left-by-a-killed-process").write_bytes(b"x")
    assert prepare_suite(suite).complete
    assert [span for _, span in shelf.asked] == ["bytes=23-", ""]
    assert files(home) == {"deep/one.png"}


def test_a_busy_server_is_asked_again(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s", ("one",))
    shelf.status["/one.png"] = 503
    told: list[str] = []

    def observe(_done: int, _total: int, _text: str, event: str) -> None:
        told.append(event)

    done = prepare_suite(suite, observe=observe)
    assert "answered 503" in done.missing[0].reason
    assert len(shelf.asked) == transfer.TRIES
    assert any("one.png: not here" in event for event in told)


def test_a_silent_server_is_not_asked_for_every_file(home: Path, tmp_path: Path) -> None:
    with serving() as shelf:
        address = shelf.address
    names = tuple(f"n{i}" for i in range(12))
    begun = time.monotonic()
    done = prepare_suite(load_suite(far(tmp_path / "s", address, names)), jobs=1)
    assert len(done.missing) == 12
    assert "cannot be reached (Connection refused)" in done.missing[-1].reason
    assert time.monotonic() - begun < 30


def test_an_answer_without_end_is_cut(
    shelf: Shelf, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "LARGEST", 5000)
    done = prepare_suite(stocked(shelf, tmp_path / "s", ("one",)))
    assert "which no picture has" in done.missing[0].reason
    assert files(home) == set()


def test_a_wrong_file_in_the_way_is_put_aside(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s")
    prepare_suite(suite)
    (home / "deep/one.png").write_bytes(b"rotten")
    with pytest.raises(SuiteError, match=r"has SHA-256 .* `convergebench suites prepare .*` bri"):
        suite.frame(suite.source[0])
    shelf.status["/one.png"] = 404
    assert how(prepare_suite(suite))["one"] == "not here"
    assert (home / "deep/one.png.wrong").read_bytes() == b"rotten"
    assert [s.name for s in suite.missing()] == ["one"]
    shelf.status.clear()
    assert how(prepare_suite(suite))["one"] == "downloaded"


def test_another_folder_is_filled_from_what_is_here_and_found_again(
    shelf: Shelf, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = stocked(shelf, tmp_path / "s")
    prepare_suite(suite)
    shelf.asked.clear()
    done = prepare_suite(suite, to=tmp_path / "data")
    assert set(how(done).values()) == {"copied"}
    assert not shelf.asked
    assert done.notes == (f"To have them found there: export CONVERGEBENCH_DATA={tmp_path}/data",)
    for name in NAMES:
        (home / f"deep/{name}.png").unlink()
    assert len(suite.missing()) == 3
    monkeypatch.setenv("CONVERGEBENCH_DATA", f"{tmp_path}/other:{tmp_path}/data")
    assert suite.missing() == ()
    assert suite.frame(suite.source[0]).data == data("one")
    assert prepare_suite(suite, to=tmp_path / "data").notes == ()


def test_files_beside_the_suite_come_first(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s")
    (tmp_path / "s/deep").mkdir()
    (tmp_path / "s/deep/one.png").write_bytes(data("one"))
    assert how(prepare_suite(suite))["one"] == "here already"
    assert files(home) == ALL - {"deep/one.png"}
    (tmp_path / "s/deep/one.png").write_bytes(b"altered by its user")
    assert how(prepare_suite(suite))["one"] == "downloaded"
    assert (tmp_path / "s/deep/one.png").read_bytes() == b"altered by its user"
    assert suite.frame(suite.source[0]).data == data("one")


def test_the_same_picture_under_two_names_is_downloaded_once(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    shelf.files["/one.png"] = data("one")
    twin = (
        f'[[source]]\nname = "twin"\nfile = "twin.png"\nlicence = "CC0-1.0"\n'
        f'sha256 = "{sha256(data("one"))}"\n'
    )
    suite = load_suite(far(tmp_path / "s", shelf.address, ("one",), twin))
    assert prepare_suite(suite).complete
    assert len(shelf.asked) == 1
    assert files(home) == {"deep/one.png", "twin.png"}


def test_truths_are_brought_as_well(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    shelf.files.update({"/one.png": data("one"), "/t.png": data("truth")})
    path = far(tmp_path / "s", shelf.address, ("one",))
    truth = f'truth = "t.png"\ntruth_sha256 = "{sha256(data("truth"))}"\n'
    there = f'truth_address = "{shelf.address}/t.png"\n'
    path.write_text(path.read_text().replace("origin", f"{truth}{there}origin"))
    suite = load_suite(path)
    shelf.status["/t.png"] = 404
    prepare_suite(suite)
    assert [s.name for s in suite.missing()] == ["one"], "it lacks its truth"
    shelf.status.clear()
    assert prepare_suite(suite).complete
    frame = suite.truth(suite.source[0])
    assert frame
    assert frame.data == data("truth")


@pytest.mark.parametrize("file", ["../out.png", "/out.png", "README", ".partial/x"])
def test_files_have_no_place_elsewhere(home: Path, tmp_path: Path, file: str) -> None:
    path = far(tmp_path / "s", "http://127.0.0.1:9", ("one",))
    path.write_text(path.read_text().replace("deep/one.png", file, 1))
    with pytest.raises(SuiteError, match="is no place in the suite's folder"):
        prepare_suite(load_suite(path))


def test_a_folder_that_is_none_is_refused(home: Path, tmp_path: Path) -> None:
    suite = load_suite(far(tmp_path / "s", "http://127.0.0.1:9"))
    with pytest.raises(InputError, match="nowhere is no folder"):
        prepare_suite(suite, search=[tmp_path / "nowhere"])


def test_a_folder_that_cannot_be_written_is_one_sentence(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    suite = far(tmp_path / "s", "http://127.0.0.1:9")
    told = complaint(cb("suites", "prepare", suite, "--offline", "--to", tmp_path / "file"))
    assert "cannot write to" in told


def test_a_full_disk_is_one_sentence_and_keeps_what_arrived(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    suite = stocked(shelf, tmp_path / "s")
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        with pytest.raises(StoreFull, match=r"no space left for \S+ .*run the same command again"):
            prepare_suite(suite, to=place, jobs=1)
        assert files(place / "far") >= {"deep/one.png"}
        assert not (place / "far/deep/two.png").exists()
        subprocess.run(["mount", "-o", "remount,size=4m", str(place)], check=True)
        done = prepare_suite(suite, to=place, jobs=1)
        assert how(done) == {"one": "here already", "two": "downloaded", "three": "downloaded"}
        assert shelf.asked[-2][1].startswith("bytes="), "it went on with what had arrived"
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
