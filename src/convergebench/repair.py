"""Mending a run directory after a kill or a power cut; what is cut off is told, never silent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from convergebench.frame import sha256
from convergebench.lines import is_json, torn_off
from convergebench.processes import is_alive

if TYPE_CHECKING:
    from convergebench.store import RunStore


def cut_torn_lines(store: RunStore) -> list[str]:
    """Cut last lines that were not written whole; a note for each."""
    notes = []
    files = [*(store.path / "chains").glob("*/*.jsonl"), *store.path.glob("ledger.jsonl")]
    for path in files:
        lines = path.read_bytes()
        if lines.endswith(b"\n") and is_json(lines[:-1].rpartition(b"\n")[2]):
            continue
        if not lines.strip(b"\n") or b"\n" not in lines:
            path.unlink()
            torn = lines
        else:
            torn = torn_off(lines)
            with open(path, "r+b") as file:
                file.truncate(len(lines) - len(torn))
        notes.append(f"{path.name}: removed {len(torn)} bytes of a record cut off in writing")
    return notes


def sweep(scratch: Path) -> None:
    """Remove what killed processes left half-written; not what a living one writes."""
    for left in scratch.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
            continue
        told = re.search(r"\.(\d+)\.\d+$", left.name)  # as `disk.Writing` names them
        if told is None or not is_alive(int(told[1])):
            left.unlink(missing_ok=True)


def drop_frameless(store: RunStore) -> list[str]:
    """Drop last records whose frame did not reach the disk before a power cut.

    Frame and record of a step are flushed together, so only a chain's last record can be
    concerned, and only before the call that made it returned: it was still in flight.
    """
    notes = []
    for path in store.chain_files():
        last = store.read_chain(path)[0].last
        if last is None or last.frame is None:
            continue
        file = store.frame_path(last.frame)
        if file.exists() and sha256(file.read_bytes()) == last.frame.sha256:
            continue
        lines = path.read_bytes()
        with open(path, "r+b") as records:
            records.truncate(lines[:-1].rfind(b"\n") + 1)
        notes.append(f"{path.name}: step {last.step} is made again, its frame was not saved")
    return notes
