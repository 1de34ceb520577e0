"""Pulls that the disk or another process stands in the way of, and pulls that are killed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from convergebench.weights import transfer
from convergebench.weights.pulling import pull
from tests.weights.entries_text import file_entry, set_entry
from tests.weights.hub_of_one import DATA, HUB, HUB_PATH, Use, failing, files
from tests.weights.shelf import Shelf

KILLED = """
import sys
from pathlib import Path
from convergebench.weights import lookup, pulling
from convergebench.weights.entries import Catalogue
made = Catalogue.parse(sys.stdin.read())
lookup.catalogue = pulling.catalogue = lambda: made
pulling.pull(["h"], Path(sys.argv[1]), lambda *told: print(told, flush=True))
"""


def test_a_full_disk_is_told_and_what_arrived_is_kept(
    hub: Shelf, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transfer._blocks

    def full(answer: Any) -> Any:
        for number, block in enumerate(real(answer)):
            if number == 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            yield block

    monkeypatch.setattr(transfer, "BLOCK", 4096)
    monkeypatch.setattr(transfer, "_blocks", full)
    failing(["h"], r"no space left in \S+ for w\.bin\. What has arrived is kept", machine / "w")
    monkeypatch.setattr(transfer, "_blocks", real)
    pull(["h"], machine / "w")
    assert hub.asked[-1][1] == "bytes=4096-"


def test_what_cannot_fit_is_not_begun(
    hub: Shelf, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    failing(["h"], r"w\.bin needs 300 kB in \S+, and 1 kB are free", machine / "w")
    assert not hub.asked


def test_a_folder_that_cannot_be_written(hub: Shelf, machine: Path) -> None:
    (machine / "file").write_text("x")
    failing(["h"], r"cannot write to \S+/file/w \(Not a directory\)", machine / "file/w")


def test_a_disk_that_really_fills_up(hub: Shelf, use: Use, machine: Path) -> None:
    place = machine / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        use(set_entry("h", file_entry("w.bin", None, HUB)))  # its size is not known beforehand
        failing(["h"], r"no space left in \S+ for w\.bin\. What has arrived is kept", place)
        (part,) = files(place)
        assert part.startswith(".partial/")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_killed_pull_goes_on_where_it_was(hub: Shelf, machine: Path) -> None:
    hub.slow[HUB_PATH] = 0.02
    run = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(machine / "w")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdin
    assert run.stdout
    with run, run.stdin, run.stdout:
        run.stdin.write(set_entry("h", file_entry("w.bin", DATA, HUB)))
        run.stdin.close()
        run.stdout.readline()
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert not (machine / "w/h/w.bin").exists()
    hub.slow.clear()
    (got,) = pull(["h"], machine / "w")
    assert got.path.read_bytes() == DATA
    assert int(hub.asked[-1][1].removeprefix("bytes=").rstrip("-")) >= 4096
    assert files(machine / "w") == {"h/w.bin"}


def test_two_processes_take_turns(hub: Shelf, machine: Path) -> None:
    folder = machine / "w"
    folder.mkdir()
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    waiting = threading.Event()

    def observe(*told: Any) -> None:
        if "another process is pulling into" in told[3]:
            waiting.set()

    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(pull, ["h"], folder, observe)
        assert waiting.wait(10)
        assert not hub.asked
        os.close(other)
        assert turn.result()[0].path.read_bytes() == DATA
