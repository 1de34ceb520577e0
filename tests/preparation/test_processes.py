"""Preparing as a user does: real processes, which are killed, stopped and run at once."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import StoreBusy
from convergebench.frame import sha256
from convergebench.preparation import prepare_suite
from convergebench.suite import check_suite, load_suite
from tests.preparation.far import ALL, data, files, stocked
from tests.support.runs import CYCLES
from tests.test_cli import cb, complaint
from tests.weights.shelf import Shelf


def begun(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "convergebench", "suites", "prepare", *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def until(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_process_is_continued(
    shelf: Shelf, home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    stocked(shelf, tmp_path / "s")
    path = tmp_path / "s/suite.toml"
    shelf.slow["/two.png"] = 0.02
    part = home / ".partial" / f"{sha256(data('two'))[:16]}.part"
    ready = {"deep/one.png", "deep/three.png"}
    with begun(path, "--jobs", "3") as process:
        until(lambda: part.exists() and part.stat().st_size > 0 and ready <= files(home))
        process.send_signal(number)
        process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert not (home / "deep/two.png").exists()
    shelf.slow.clear()
    shelf.asked.clear()
    done = cb("suites", "prepare", path, "--json")
    assert done.returncode == 0, done.stderr
    told = {f["source"]: f["how"] for f in json.loads(done.stdout)["files"]}
    assert told == {"one": "here already", "two": "downloaded", "three": "here already"}
    ((asked, span),) = shelf.asked
    assert asked == "/two.png"
    assert int(span.removeprefix("bytes=").rstrip("-")) >= 1 << 18
    assert files(home) == ALL
    assert (home / "deep/two.png").read_bytes() == data("two")


def test_two_processes_do_not_meet(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    suite = stocked(shelf, tmp_path / "s")
    shelf.slow["/two.png"] = 0.02
    with begun(tmp_path / "s/suite.toml") as process:
        until(lambda: (home / ".partial").is_dir() and shelf.asked)
        with pytest.raises(StoreBusy, match=r"being written by process \d+ .*\(suites prepare\)"):
            prepare_suite(suite)
        process.communicate()
    assert process.returncode == 0
    assert files(home) == ALL


def test_commands_say_what_is_here(shelf: Shelf, home: Path, tmp_path: Path) -> None:
    stocked(shelf, tmp_path / "s")
    path = tmp_path / "s/suite.toml"
    shelf.status["/two.png"] = 404
    done = cb("suites", "prepare", path)
    assert "could not get 1 of 3 files. The same command tries again" in complaint(done)
    assert f"two (deep/two.png) is not here: {shelf.address}/two.png answered 404" in done.stdout
    assert re.search(r"^downloaded +2$", done.stdout, re.MULTILINE)
    shown = cb("suites", "show", path).stdout
    assert re.search(r"^two +no ", shown, re.MULTILINE)
    assert re.search(r"^one +yes ", shown, re.MULTILINE)
    assert f"1 source is not here: convergebench suites prepare {path}" in shown
    assert json.loads(cb("suites", "show", path, "--json").stdout)["missing"] == ["two"]
    checked = cb("suites", "check", path)
    assert checked.returncode == 0
    assert "far@1: 2 sources and 2 cycles, all sound" in checked.stdout
    assert "1 more source is not here, so not checked" in checked.stdout
    told = json.loads(cb("suites", "check", path, "--json").stdout)
    assert (told["missing"], told["problems"]) == (["two"], [])
    (home / "deep/one.png").write_bytes(b"rotten")
    assert "1 problem(s)" in complaint(cb("suites", "check", path))
    listed = cb("suites", "list").stdout
    assert re.search(r"^starter@1 +12/12 ", listed, re.MULTILINE)
    starter = json.loads(cb("suites", "list", "--json").stdout)
    assert all(0 <= suite["here"] <= suite["sources"] for suite in starter)


def test_ctrl_c_does_not_wait_for_a_server_that_hangs(
    shelf: Shelf, home: Path, tmp_path: Path
) -> None:
    stocked(shelf, tmp_path / "s", ("two",))
    shelf.slow["/two.png"] = 60
    with begun(tmp_path / "s/suite.toml") as process:
        until(lambda: shelf.asked)
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert time.monotonic() - sent < 40
    assert process.returncode == 130
    assert "stopped. Whatever was stored is kept" in told


@pytest.mark.shared
def test_real_photographs_are_found_by_their_hash(shared: Path, home: Path, tmp_path: Path) -> None:
    photos = sorted(p for p in (shared / "data/photos").rglob("*") if p.suffix in (".png", ".jpg"))
    text = 'name = "real"\nversion = 1\n'
    for i, photo in enumerate(photos):
        text += (
            f'[[source]]\nname = "p{i}"\nfile = "p/{i}{photo.suffix}"\nlicence = "see there"\n'
            f'sha256 = "{sha256(photo.read_bytes())}"\naddress = "http://127.0.0.1:9/{i}"\n'
        )
    (tmp_path / "suite.toml").write_text(text + CYCLES)
    suite = load_suite(tmp_path / "suite.toml")
    done = prepare_suite(suite, search=[shared / "data"], offline=True)
    assert done.complete
    assert len(done.files) == len(photos) > 40
    assert check_suite(suite) == []
