"""Every exception ConvergeBench raises on purpose.

ConvergeBenchError                 one clear sentence; the command line prints it and exits with 2
├── InputError                     what the user gave cannot be used
│   ├── UnknownName                no plug-in, source or cycle of that name; offers near matches
│   ├── SuiteError                 a suite file, or a file it names, is not what it should be
│   ├── SettingsError              run settings that are wrong or contradict each other
│   ├── ImportProblem              what is to be imported is not what it should be
│   └── BundleError                a file that is no whole and safe bundle, or a run unfit for one
├── StoreError                     the run directory cannot be used as asked
│   ├── StoreBusy                  another process is writing to it
│   ├── StoreMismatch              it belongs to another suite or suite version
│   ├── StoreDamaged               a record in it cannot be read
│   └── StoreFull                  no space left; everything received so far is saved
├── EngineError                    the machines that should do the work cannot be used as asked
├── PluginBroken                   an installed plug-in that was asked for cannot be loaded
├── MetricUnavailable              a metric lacks something it needs (weights, a library)
├── MalformedImage                 bytes that are not a readable image
└── EditorError                    raised by editors, recorded by the runner as outcomes
    ├── EditorRefused              the editor declines this edit: data, never retried
    ├── EditorNoImage              the editor answered, without an image: data, never retried
    ├── EditorFailed               this call can never succeed: data, never retried
    ├── EditorLost                 sent, perhaps billed, and no answer: never repeated blindly
    ├── AccountBlocked             no call of this account succeeds now: its chains pause
    └── EditorUnavailable          not billed, try again later: the runner retries
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convergebench.editor import EditReply


class ConvergeBenchError(Exception):
    """Base of all errors whose text is meant for the user."""


class InputError(ConvergeBenchError):
    """What the user gave cannot be used."""


class UnknownName(InputError):
    """No such plug-in, source or cycle; the message offers near matches."""

    def __init__(self, what: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            rest = f"Did you mean {' or '.join(near)}?"
        elif names:
            shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            rest = f"Known: {shown}."
        else:
            rest = "None is installed."
        super().__init__(f"no {what} called {name!r}. {rest}{' ' + hint if hint else ''}")


class SuiteError(InputError):
    """A suite file, or a file it names, is not what it should be."""


class SettingsError(InputError):
    """Run settings that are wrong or contradict each other."""


class ImportProblem(InputError):
    """What is to be imported is missing, contradictory or laid out in a way nobody described."""


class BundleError(InputError):
    """A file is not a whole and safe bundle, or a run cannot be made into one.

    Args:
        message: What is wrong, and what to do.
        defects: What is wrong, file by file.
    """

    def __init__(self, message: str, defects: Sequence[str] = ()) -> None:
        shown = [f"  {text}" for text in defects[:20]]
        if len(defects) > len(shown):
            shown.append(f"  … and {len(defects) - len(shown)} more")
        super().__init__("\n".join([message, *shown]))
        self.defects = tuple(defects)


class StoreError(ConvergeBenchError):
    """The run directory cannot be used as asked."""


class StoreBusy(StoreError):
    """Another process is writing to the run directory."""


class StoreMismatch(StoreError):
    """The run directory belongs to another suite or suite version."""


class StoreDamaged(StoreError):
    """A record in the run directory cannot be read."""


class StoreFull(StoreError):
    """No space is left for the run directory; everything received so far is saved."""


class EngineError(ConvergeBenchError):
    """The machines that should do the work cannot be used as asked."""


class PluginBroken(ConvergeBenchError):
    """An installed plug-in that was asked for cannot be loaded."""


class MetricUnavailable(ConvergeBenchError):
    """A metric lacks something it needs, and says how to get it."""


class MalformedImage(ConvergeBenchError):
    """Bytes that are not a readable image."""


class EditorError(ConvergeBenchError):
    """Raised by an editor; the runner records it as the outcome of the step.

    Args:
        message: What happened, in the provider's words where it gave some; never a key.
        told: What the editor learnt about the call all the same (request id, model, usage, cost):
            an EditReply without bytes.
    """

    def __init__(self, message: str, *, told: EditReply | None = None) -> None:
        super().__init__(message)
        self.told = told


class EditorRefused(EditorError):
    """The editor declines this edit."""


class EditorNoImage(EditorError):
    """The editor answered, but without an image."""


class EditorFailed(EditorError):
    """This call can never succeed (a bad request, a withdrawn model)."""


class EditorLost(EditorError):
    """The call was sent and may have been billed, but its answer did not come.

    Args:
        message: What happened.
        timed_out: Whether it took too long; otherwise the connection was cut or the task vanished.
        told: As of every EditorError.
    """

    def __init__(
        self, message: str, *, timed_out: bool = False, told: EditReply | None = None
    ) -> None:
        super().__init__(message, told=told)
        self.timed_out = timed_out


class AccountBlocked(EditorError):
    """No call of this account will succeed now: the day's quota, no credit, a rejected key.

    Not a word about this edit: the chains of the account pause and go on with the next `run`.
    """


class EditorUnavailable(EditorError):
    """The editor cannot answer now and has not billed the call; the runner tries again.

    Args:
        message: What happened.
        retry_after: Seconds the editor asked us to wait, if it said so.
        limited: Whether there were too many calls (HTTP 429), so that fewer should be in flight.
        told: As of every EditorError.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        limited: bool = False,
        told: EditReply | None = None,
    ) -> None:
        super().__init__(message, told=told)
        self.retry_after = retry_after
        self.limited = limited


def explain(error: Exception) -> str:
    """The first complaint of a pydantic ValidationError as one plain phrase: where, what, got."""
    complaints = error.errors() if hasattr(error, "errors") else []
    if not complaints:
        return str(error)
    first = complaints[0]
    parts = [p + 1 if isinstance(p, int) else p for p in first["loc"]]
    where = "".join(f"{p} " for p in parts).rstrip()
    what = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        what = "there is no such key"
    elif first["type"] == "missing":
        what = "is missing"
    elif first["type"] != "value_error":
        what += f" (got {first['input']!r})"
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    what = what.replace("valid tuple", "list")
    return f"{where}: {what}{more}" if where else f"{what}{more}"


_SECRET_NAME = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|CONNECTION_STRING)S?$", re.IGNORECASE
)


def scrub(text: str) -> str:
    """The text without the value of any secret in the environment, for records and messages."""
    for name, value in os.environ.items():
        if len(value) >= 6 and _SECRET_NAME.search(name):
            # As it is, and as it stands in JSON.
            for form in (value, *(json.dumps(value, ensure_ascii=a)[1:-1] for a in (False, True))):
                text = text.replace(form, f"<{name}>")
    return text
