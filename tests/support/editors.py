"""Editors for tests, loaded through entry points like any plug-in."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from convergebench.editor import Abilities, Asked, EditorSpec, EditReply, EditRequest, Price
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import encode


def noted(log: Path, line: str) -> None:
    """Append a line to a file, in one write."""
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def priced(text: str) -> Callable[[Asked], Price] | None:
    """A price from `0.1` or `0.1/0.2/0.4`; dearer by half at 2K."""
    if text == "unknown":
        return None
    amounts = [float(part) for part in text.split("/")]
    low, expected, high = amounts if len(amounts) == 3 else amounts * 3

    def price(asked: Asked) -> Price:
        times = 1.5 if asked.settings.resolution_at(asked.step) == "2K" else 1.0
        return Price(low * times, expected * times, high * times)

    return price


@dataclass(frozen=True)
class Counting:
    """Adds seeded noise, and writes every call to a file before answering it."""

    log: Path
    sleep: float
    price: float | None

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec(
            name="counting", version="1", concurrency=8, price=self.price, seconds=self.sleep
        )

    def edit(self, request: EditRequest) -> EditReply:
        noted(self.log, f"{request.chain} {request.step}")
        time.sleep(self.sleep)
        return EditReply(noisy(request))


def noisy(request: EditRequest) -> bytes:
    """The last input with seeded noise."""
    rng = np.random.default_rng(request.seed)
    pixels = request.inputs[-1].pixels
    noise = rng.integers(-3, 4, pixels.shape)
    return encode(np.clip(pixels + noise, 0, 255).astype(np.uint8))


def counting(log: str, sleep: str = "0", price: str = "0", name: str = "") -> Counting:
    """Counts its calls in the file `log`."""
    return Counting(Path(log), float(sleep), None if price == "unknown" else float(price))


@dataclass(frozen=True)
class Polling:
    """Begins a task, tells of it, and asks for it until it is ready, in this process or another.

    Its log says `billed ID` when a task is begun and `polled ID` when one is asked for that an
    earlier call began. A file `LOG.gone` makes all tasks vanish.
    """

    log: Path
    sleep: float
    before: float
    price: str

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec(
            name="polling", version="1", concurrency=8, pricing=priced(self.price), account="poll/x"
        )

    def edit(self, request: EditRequest) -> EditReply:
        if request.task:
            task = dict(request.task)
            noted(self.log, f"polled {task['id']}")
        else:
            task = {"id": f"{request.chain[-10:]}-{request.step}-{time.time_ns()}"}
            task["ready"] = time.time() + self.sleep
            noted(self.log, f"billed {task['id']}")
            time.sleep(self.before)
            request.on_task(task)
            noted(self.log, f"told {task['id']}")
        end = time.time() + request.deadline * 0.8
        while time.time() < task["ready"]:
            if time.time() > end:
                told = EditReply(b"", request_id=task["id"], task=task)
                raise EditorLost("not ready in time", timed_out=True, told=told)
            time.sleep(0.01)
        if Path(f"{self.log}.gone").exists():
            raise EditorLost("the task vanished")
        return EditReply(noisy(request), request_id=task["id"], task=task)


def polling(
    log: str, sleep: str = "0", before: str = "0", price: str = "0.1", name: str = ""
) -> Polling:
    """A provider with tasks; `before` is the time between being billed and telling of it."""
    return Polling(Path(log), float(sleep), float(before), price)


@dataclass(frozen=True)
class Scripted:
    """Does at each step what its script says; `|` separates the tries of one step."""

    script: dict[int, list[str]]
    price: str
    account: str = ""
    abilities: Abilities = field(default_factory=Abilities)
    lacks: str = ""
    seconds: float | None = None

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec(
            name="scripted",
            seconds=self.seconds,
            version="1",
            pricing=priced(self.price),
            concurrency=2,
            account=self.account,
            abilities=self.abilities,
            lacks=self.lacks,
            caveats=("keeps a watermark",) if self.account else (),
        )

    def edit(self, request: EditRequest) -> EditReply:
        tries = self.script.get(request.step, ["ok"])
        todo = tries[min(request.attempt, len(tries)) - 1]
        match todo.partition("-"):
            case ("refuse", _, _):
                raise EditorRefused("the picture shows a banana")
            case ("toldrefuse", _, _):
                told = EditReply(b"", "scripted-2", "req-7", cost=0.02, usage={"tokens": 3})
                raise EditorRefused("not this one", told=told)
            case ("lost", _, cost):
                known = EditReply(b"", request_id="req-8", cost=float(cost)) if cost else None
                raise EditorLost("cut in mid-body", told=known)
            case ("late", _, _):
                raise EditorLost("no answer in time", timed_out=True)
            case ("limited", _, seconds):
                wait = float(seconds) if seconds else None
                raise EditorUnavailable("429", retry_after=wait, limited=True)
            case ("blocked", _, file):
                if not file or not Path(file).exists():
                    raise AccountBlocked("no credit left")
            case ("odd", _, _):
                odd = {"when": Path("x"), "key": os.environ.get("SCRIPTED_API_KEY")}
                return EditReply(request.inputs[-1].data, parameters=odd, cost=float("nan"))
            case ("empty", _, _):
                raise EditorNoImage("only text came back")
            case ("fail", _, _):
                raise EditorFailed("no such model")
            case ("busy", _, seconds):
                wait = float(seconds) if seconds else 0.01
                raise EditorUnavailable("too many requests", retry_after=wait)
            case ("down", _, _):
                raise EditorUnavailable("connection refused")
            case ("bug", _, _):
                raise RuntimeError(f"unexpected, key {os.environ.get('SCRIPTED_API_KEY')}")
            case ("sleep", _, seconds):
                time.sleep(float(seconds))
            case ("truncated", _, _):
                return EditReply(request.inputs[-1].data[:-40])
            case ("html", _, _):
                return EditReply(b"<html>502 Bad Gateway</html>")
            case ("none", _, _):
                return None  # type: ignore[return-value]
            case ("nothing", _, _):
                return EditReply(b"")
            case ("oddrefuse", _, _):
                wrong = EditReply(b"", cost="much", usage=None)  # type: ignore[arg-type]
                raise EditorRefused("in no known words", told=wrong)
            case ("dear", _, _):
                return EditReply(request.inputs[-1].data, cost=0.5)
        return EditReply(request.inputs[-1].data, model="scripted-1", reasoning="I copied it.")


def scripted(
    script: str = "",
    price: str = "0",
    account: str = "",
    can: str = "all",
    lacks: str = "",
    pace: str = "",
) -> Scripted:
    """Follows a script such as `1:ok;2:busy|busy|ok;3:refuse`."""
    steps = [part.partition(":") for part in script.split(";") if part]
    nothing = Abilities(False, False, ("1K",), ("stateless",))
    return Scripted(
        {int(step): tries.split("|") for step, _, tries in steps},
        price,
        account,
        Abilities() if can == "all" else nothing,
        lacks,
        float(pace) if pace else None,
    )


class Spread:
    """Bills every call an amount of its own between low and high, and keeps the highest sum.

    The amount and how long the call takes follow from the chain and the step.
    """

    guard = threading.Lock()
    billed = 0.0
    highest = 0.0

    def __init__(self, price: str, pace: int) -> None:
        self._price = price
        self._pace = pace

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec("spread", "1", concurrency=8, pricing=priced(self._price))

    def edit(self, request: EditRequest) -> EditReply:
        rng = np.random.default_rng([*request.chain.encode(), request.step, self._pace])
        low, _, high = (float(part) for part in self._price.split("/"))
        cost = low + (high - low) * float(rng.choice([0.0, 1.0, rng.random()]))
        with Spread.guard:
            Spread.billed += cost
            Spread.highest = max(Spread.highest, Spread.billed)
        time.sleep(float(rng.random()) * 0.004)
        fate = rng.integers(8)
        if fate == 0:
            raise EditorLost("cut", told=EditReply(b"", cost=cost, basis="usage"))
        if fate == 1 and request.attempt == 1:
            with Spread.guard:
                Spread.billed -= cost
            raise EditorUnavailable("429", retry_after=0.0, limited=True)
        return EditReply(request.inputs[-1].data, cost=cost, basis="reported")


def spread(price: str = "0/0.1/0.2", pace: str = "0") -> Spread:
    """A provider whose calls cost more or less."""
    return Spread(price, int(pace))
