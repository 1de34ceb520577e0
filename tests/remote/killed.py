"""Kills a run on object storage at its n-th write: `… tests.remote.killed TABLE PLACE HOW NUMBERS`.

Every run is made in a fork of a process that has asked the store nothing, because connections do
not survive a fork. PLACE is an address in which `{N}` stands for the number.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from convergebench.remote.bucket import Bucket
from convergebench.runner import run


def _dies_at(number: int, how: str) -> None:
    """Let this process die at that write to the store, of a record or a frame: before or after."""
    put, once, seen = Bucket.put, Bucket.put_once, [0]

    def deadly(do: Any) -> Any:
        def write(self: Bucket, name: str, data: bytes, **more: Any) -> Any:
            counts = name.startswith(("chains/", "frames/", "ledger"))
            seen[0] += counts
            mine = counts and seen[0] == number  # others may write while this one is on its way
            if mine and how == "before":
                os._exit(9)
            result = do(self, name, data, **more)
            if mine:
                os._exit(9)
            return result

        return write

    Bucket.put = deadly(put)  # type: ignore[method-assign]
    Bucket.put_once = deadly(once)  # type: ignore[method-assign]


def _forked(place: str, table: dict[str, Any], number: int = 0, how: str = "") -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        if number:
            _dies_at(number, how)
        code = 0 if run(place, table).complete else 3
    finally:
        os._exit(code)


def main(table: dict[str, Any], place: str, log: str, how: str, numbers: list[int]) -> None:
    """Kill at each of those writes, each in a run of its own, and go on; prints how many there are.

    A number that is beyond the last write ends it.
    """
    made = 0
    for number in numbers:
        here = place.replace("{N}", str(number))
        editor = table["editors"][0].replace("LOG", log.replace("{N}", str(number)))
        told = {**table, "editors": [editor]}
        killed = _forked(here, told, number, how)
        if killed == 0:
            break
        if killed != 9 or _forked(here, told) != 0:
            sys.exit(f"{here}: failed")
        made = number
    print(made)


if __name__ == "__main__":
    table, place, log, how, numbers = sys.argv[1:]
    main(json.loads(table), place, log, how, json.loads(numbers))
