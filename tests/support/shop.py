"""A provider that keeps its own books, for runs that are killed."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path

from convergebench.editor import EditorSpec, EditReply, EditRequest, Price
from convergebench.errors import EditorLost, EditorRefused, EditorUnavailable
from tests.support.editors import noisy, noted

_numbers = itertools.count()


@dataclass(frozen=True)
class Shop:
    """Does at each step what its script says, and notes `billed CALL DOLLARS` before it answers.

    `task` begins a task and hands it out, `shaky` turns the first poll away, `gone` has lost the
    task, `slow` has it ready on the second asking only.
    """

    log: Path
    script: dict[int, list[str]]
    price: Price

    @property
    def spec(self) -> EditorSpec:
        price = self.price
        return EditorSpec("shop", "1", concurrency=2, pricing=lambda _: price, account="shop/x")

    def edit(self, request: EditRequest) -> EditReply:
        if request.task:
            noted(self.log, f"polled {request.task['id']} {request.step}")
            return self._collected(request, str(request.task["id"]), str(request.task["fate"]))
        tries = self.script.get(request.step, ["ok"])
        fate = tries[min(request.attempt, len(tries)) - 1]
        if fate in ("busy", "limited"):
            raise EditorUnavailable("503", retry_after=0.0, limited=fate == "limited")
        name = f"{os.getpid()}-{next(_numbers)}-{time.time_ns()}"
        if fate == "refuse":
            noted(self.log, f"billed {name} {request.step} 0.02")
            raise EditorRefused("no", told=EditReply(b"", request_id=name, cost=0.02))
        noted(self.log, f"billed {name} {request.step} {self.price.expected}")
        if fate == "lost":
            raise EditorLost("cut in mid-body")
        if fate in ("task", "shaky", "gone", "slow"):
            request.on_task({"id": name, "fate": fate})
            noted(self.log, f"told {name} {request.step}")
            if fate == "shaky":
                raise EditorUnavailable("poll turned away", retry_after=0.2)
            if fate == "slow":
                told = EditReply(b"", task={"id": name, "fate": fate})
                raise EditorLost("not ready", timed_out=True, told=told)
            return self._collected(request, name, fate)
        return EditReply(noisy(request), request_id=name)

    def _collected(self, request: EditRequest, name: str, fate: str) -> EditReply:
        if fate == "gone":
            raise EditorLost("the task vanished")
        return EditReply(noisy(request), request_id=name)


def shop(log: str, script: str = "", price: str = "0.1") -> Shop:
    """Follows a script such as `1:ok;2:busy|ok;3:task`."""
    steps = [part.partition(":") for part in script.split(";") if part]
    amounts = [float(part) for part in price.split("/")]
    low, expected, high = amounts if len(amounts) == 3 else amounts * 3
    return Shop(Path(log), {int(s): t.split("|") for s, _, t in steps}, Price(low, expected, high))
