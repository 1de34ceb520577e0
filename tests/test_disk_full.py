"""A file system that really fills up: everything received is kept, and one sentence says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from convergebench.money.ledger import read_ledger
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import write_suite


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("price", ["0", "0.01"])
@pytest.mark.usefixtures("test_plugin")
def test_disk_full(tmp_path: Path, small_disk: Path, price: str) -> None:
    suite = write_suite(tmp_path / "suite", size=256)
    log = tmp_path / "log"
    path = small_disk / "run"
    command = [sys.executable, "-m", "convergebench", "run", str(path)]
    flags = [
        "--suite",
        str(suite),
        "-e",
        f"counting,log={log},sleep=0.01,price={price}",
        "--no-controls",
    ]
    flags += ["--cycle", "copy", "--steps", "500", "--concurrency", "4", "--budget", "99"]
    done = subprocess.run(command + flags, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("convergebench:")]
    assert "no space left" in line
    assert "Traceback" not in done.stderr
    store = RunStore.open(path)
    kept = sum(chain.length for chain in store.chains())
    assert kept == len(log.read_text().splitlines()) > 10, "every reply received is kept"
    assert verify(path).sound
    full = subprocess.run(command, capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert "kept in reserve" in full.stderr
    assert kept == len(log.read_text().splitlines()), "nothing is called without room to keep it"
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    again = subprocess.run([*command, "--steps", "60"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert sum(chain.length for chain in store.chains()) >= 120
    paid = [e.settled.dollars for e in read_ledger(path).values() if e.settled]
    billed = len(log.read_text().splitlines()) if float(price) else 0
    assert paid == [float(price)] * billed, "every call once, and none in doubt"
    assert verify(path).sound
