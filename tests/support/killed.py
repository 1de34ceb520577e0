"""Kills a run at its n-th write, for every n: `… tests.support.killed TABLE PLACE HOWS SEED`.

Every run is made in a fork of a process that has no other threads. `PLACE/N-HOW/run` is left as the
resumed run leaves it, `PLACE/whole/run` as a run that nobody has killed.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from convergebench.runner import run
from convergebench.store import RunStore

HOWS = ("before", "half", "after")


def _dies_at(number: int, how: str) -> None:
    """Let this process die at that write: before it, in the middle of its line, or after it."""
    append, seen = RunStore._append, [0]

    def deadly(self: RunStore, path: Path, line: bytes, frame: Any = None, **more: bool) -> None:
        seen[0] += 1
        if seen[0] == number and how == "half":
            with open(path, "ab") as file:
                file.write(line[: len(line) // 2])
        if seen[0] == number and how != "after":
            os._exit(9)
        append(self, path, line, frame, **more)
        if seen[0] == number:
            os._exit(9)

    RunStore._append = deadly  # type: ignore[method-assign]


def _forked(path: Path, table: dict[str, Any], number: int = 0, how: str = "") -> int:
    """Run in a fork; its exit code: 9 when it was killed."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        if number:
            _dies_at(number, how)
        retry = table.pop("retry_failed", False)
        run(path, table)
        if retry:
            run(path, table, retry_failed=True)
        code = 0
    finally:
        os._exit(code)


def main(table: dict[str, Any], place: Path, hows: str, seed: str) -> None:
    """Kill at every write once; with a seed, kill the resumed run as well, at a random one.

    `hows` names some of HOWS, with commas between them.
    """
    rng = random.Random(seed)

    def ready(name: str) -> tuple[Path, dict[str, Any]]:
        folder = place / name
        folder.mkdir(parents=True)
        editor = table["editors"][0].replace("LOG", str(folder / "log"))
        return folder / "run", {**table, "editors": [editor]}

    assert _forked(*ready("whole")) == 0
    for how in hows.split(","):
        for number in range(1, 1000):
            path, told = ready(f"{number}-{how}")
            ended = _forked(path, told, number, how)
            if ended == 0:
                break
            if ended != 9:
                sys.exit(f"{path}: the run failed before it was killed")
            if seed:
                _forked(path, told, rng.randint(1, 12), rng.choice(HOWS))
            if _forked(path, told) != 0:
                print(f"{path}: the resumed run failed", file=sys.stderr)
                sys.exit(1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
