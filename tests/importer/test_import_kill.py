"""A killed import goes on where it was, and ends as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.importer.test_import import PATTERN, bring, tree, write_tree
from tests.support.runs import records


@pytest.mark.parametrize("frames", [1, 40, 150])
def test_killed_at_any_moment_the_same_command_goes_on(tmp_path: Path, frames: int) -> None:
    root = write_tree(tmp_path / "in", tree(2, 10, 12))
    run = tmp_path / "run"
    command = [sys.executable, "-m", "convergebench", "import", str(root), "--to", str(run),
               "--pattern", PATTERN]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(2000):
        if len(list((run / "frames").glob("??/*"))) >= frames or process.poll() is not None:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, capture_output=True)
    bring(root, tmp_path / "whole")
    assert records(run) == records(tmp_path / "whole")
    assert RunStore.open(run).suite == RunStore.open(tmp_path / "whole").suite
    assert verify(run).sound
    assert not list((run / "frames" / ".new").iterdir())
