"""Editors for tests, loaded through entry points like any plug-in."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.errors import EditorFailed, EditorNoImage, EditorRefused, EditorUnavailable
from convergebench.frame import encode


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
        line = f"{request.chain} {request.step}\n".encode()
        fd = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(fd, line)
        os.close(fd)
        time.sleep(self.sleep)
        rng = np.random.default_rng(request.seed)
        pixels = request.inputs[-1].pixels
        noise = rng.integers(-3, 4, pixels.shape)
        return EditReply(encode(np.clip(pixels + noise, 0, 255).astype(np.uint8)))


def counting(log: str, sleep: str = "0", price: str = "0", name: str = "") -> Counting:
    """Counts its calls in the file `log`."""
    return Counting(Path(log), float(sleep), None if price == "unknown" else float(price))


@dataclass(frozen=True)
class Scripted:
    """Does at each step what its script says; `|` separates the tries of one step."""

    script: dict[int, list[str]]
    price: float | None

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec(name="scripted", version="1", price=self.price, concurrency=2)

    def edit(self, request: EditRequest) -> EditReply:
        tries = self.script.get(request.step, ["ok"])
        todo = tries[min(request.attempt, len(tries)) - 1]
        match todo.partition("-"):
            case ("refuse", _, _):
                raise EditorRefused("the picture shows a banana")
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
            case ("dear", _, _):
                return EditReply(request.inputs[-1].data, cost=0.5)
        return EditReply(request.inputs[-1].data, model="scripted-1", reasoning="I copied it.")


def scripted(script: str = "", price: str = "0") -> Scripted:
    """Follows a script such as `1:ok;2:busy|busy|ok;3:refuse`."""
    steps = [part.partition(":") for part in script.split(";") if part]
    return Scripted(
        {int(step): tries.split("|") for step, _, tries in steps},
        None if price == "unknown" else float(price),
    )
