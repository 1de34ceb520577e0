from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.errors import StoreBusy
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


RUN = "from convergebench.runner import run; import sys; r = run(sys.argv[1]); print(r.stopped)"


def begin(tmp_path: Path, suite: str, sleep: float) -> subprocess.Popen[bytes]:
    """A real process in the middle of a run."""
    editor = f"counting,log={tmp_path / 'log'},sleep={sleep}"
    table = {"suite": suite, "editors": [editor], "cycles": ["copy"], "controls": False}
    run(tmp_path / "run", table, steps=1)
    code = RUN.replace("run(sys.argv[1])", "run(sys.argv[1], steps=40)")
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "run"], stdout=subprocess.PIPE
    )
    until = time.monotonic() + 120
    while len((tmp_path / "log").read_text().splitlines()) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_finishes_calls_in_flight(tmp_path: Path, suite: str, number: int) -> None:
    process = begin(tmp_path, suite, 0.3)
    process.send_signal(number)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, b"interrupted\n")
    made = sum(chain.length for chain in RunStore.open(tmp_path / "run").chains())
    assert made == len((tmp_path / "log").read_text().splitlines()), "every call begun is kept"
    assert made < 80


def test_two_signals_stop_at_once(tmp_path: Path, suite: str) -> None:
    process = begin(tmp_path, suite, 5.0)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    made = sum(chain.length for chain in RunStore.open(tmp_path / "run").chains())
    assert made < len((tmp_path / "log").read_text().splitlines()), "calls in flight are left"
    assert verify(tmp_path / "run").sound


def test_two_runs_on_one_directory(tmp_path: Path, suite: str) -> None:
    process = begin(tmp_path, suite, 0.2)
    with pytest.raises(StoreBusy, match=f"process {process.pid}"):
        run(tmp_path / "run")
    process.kill()
    process.communicate()
    assert any("took over" in note for note in run(tmp_path / "run", steps=2).notes)


TURNED = """
import os, signal, sys, time
from convergebench import cli

def app():
    try:
        if sys.argv[1:]:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        raise ValueError("a fault of ours")
    except BaseException as error:
        raise RuntimeError("half imported") from error

cli.app = app
cli.main()
"""


def test_a_stop_that_a_library_turned_into_something_else_is_still_a_stop() -> None:
    done = [
        subprocess.run([sys.executable, "-c", TURNED, *more], capture_output=True, text=True)
        for more in (["stopped"], [])
    ]
    assert done[0].returncode == 130
    assert done[0].stderr.startswith("convergebench: stopped. Whatever was stored is kept")
    assert "Traceback" not in done[0].stderr
    assert done[1].returncode == 1, "a fault that nobody asked for is not hidden"
    assert "half imported" in done[1].stderr


LOST = """
import os, signal, time
from convergebench import cli

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)

def app():
    made = Finalized()
    del made  # Python ignores what is raised in there
    print("went on", flush=True)
    time.sleep(60)

cli.app = app
cli.main()
"""


def test_a_stop_that_python_ignored_comes_again() -> None:
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=120)
    assert time.monotonic() - begun < 25
    assert (done.returncode, done.stdout) == (130, "went on\n")
    assert done.stderr == (
        "convergebench: stopped. Whatever was stored is kept; give the same command again.\n"
    )


DEAF = """
import time
from convergebench import cli

def app():
    while True:
        try:
            print("here", flush=True)
            time.sleep(60)
        except BaseException:
            pass

cli.app = app
cli.main()
"""


def test_the_third_signal_ends_what_hears_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
