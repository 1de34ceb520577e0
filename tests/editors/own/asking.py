"""Requests for editors of one's own, and what they come to."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from convergebench.chain import ChainKey, Settings
from convergebench.cycle import Edit
from convergebench.editor import EditReply, EditRequest, Turn
from convergebench.errors import EditorError
from convergebench.frame import Frame, encode
from convergebench.registry import open_editor
from tests.support.runs import picture

PROMPT = "Make the sky pink."
MARKER = "MARKER-9b1e77-not-to-be-seen"


def frame(seed: int = 1, width: int = 32, height: int = 24) -> Frame:
    return Frame(encode(picture(seed, width, height)))


def request(**more: Any) -> EditRequest:
    source = frame()
    given: dict[str, Any] = {
        "inputs": (source,),
        "prompt": PROMPT,
        "edit": Edit(prompt=PROMPT),
        "step": 1,
        "seed": 7,
        "history": (Turn(0, "", lambda: source),),
        "deadline": 10.0,
        "chain": "s0--copy--mine",
        "key": key(),
        "home_size": (32, 24),
    }
    return EditRequest(**{**given, **more})


def key(**more: Any) -> ChainKey:
    settings = Settings(**{n: v for n, v in more.items() if n in Settings.model_fields})
    rest = {n: v for n, v in more.items() if n not in Settings.model_fields}
    given = {"suite": "tiny@1", "source": "s0", "cycle": "copy@1", "editor": "mine"}
    return ChainKey(**{**given, **rest}, settings=settings)


def outcome(name: str, **more: Any) -> EditReply | EditorError:
    """What an edit comes to; whatever is raised holds no key."""
    try:
        return open_editor(name).edit(request(**more))
    except EditorError as error:
        raised = error
    assert MARKER not in "".join(traceback.format_exception(raised)) + repr(raised.told)
    return raised


def reply(name: str, **more: Any) -> EditReply:
    found = outcome(name, **more)
    assert isinstance(found, EditReply), found
    return found


def fault(name: str, **more: Any) -> EditorError:
    found = outcome(name, **more)
    assert isinstance(found, EditorError), found
    return found


def command(
    folder: Path, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`convergebench WORDS` as a process of its own, from a folder.

    As the installed script does it: that one does not put the current folder on the path.
    """
    return subprocess.run(
        [*program(), *words],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def program() -> list[str]:
    return [sys.executable, "-P", "-c", "from convergebench.cli import main; main()"]


def run_words(suite: Path, editor: str, steps: int, *more: str) -> list[str]:
    """The command that walks one chain of a tiny suite."""
    return [
        *("run", "run", "-e", editor, "--suite", str(suite), "--source", "s0"),
        *("--cycle", "copy", "--steps", str(steps), "--no-controls", *more),
    ]
