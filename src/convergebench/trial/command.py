"""A metric that is a command: paths of pictures in, one number per picture out.

The command is run without a shell. Paths are written to its standard input, a line each, and the
process is started once; with `{}` in the command they take its place as arguments, some at a time.
It prints one number per path, a line each, in the same order; `nan` where it has none. Numbers are
kept in `RUN/trial/NAME.parquet`, by the frame's SHA-256 and the command, so that nothing is
measured twice.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import queue
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

import polars as pl

from convergebench.errors import InputError, SettingsError, scrub
from convergebench.processes import end_group
from convergebench.store import RunStore
from convergebench.trial.own import Reading
from convergebench.wording import counted

PLACE: Final = "{}"
BATCH: Final = 100
"""Paths given as arguments at a time."""

PATIENCE: Final = 600.0
"""Seconds without a number after which a command has timed out."""

_TEXT: Final = re.compile(
    r"^(?P<name>[\w.-]+)"
    r"(?P<options>(?:,(?:lower-is-better|higher-is-better|range=[^,=\s]+))*)"
    r"=(?P<command>.+)$",
    re.DOTALL,
)
_SAFE: Final = re.compile(r"^\w[\w.-]*$")
_NONE: Final = ("nan", "none", "null", "na", "n/a")
_LARGE: Final = 1 << 26
_GRACE: Final = 1.0
"""Seconds of silence after a process has ended: whoever still holds its output says no more."""
SCHEMA: Final = {"sha256": pl.String(), "command": pl.String(), "value": pl.Float64()}

Observe = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CommandMetric:
    """A command that scores pictures, and how its numbers are to be read."""

    reading: Reading
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `NAME[,lower-is-better][,range=LOW:HIGH]=COMMAND`. Raises SettingsError."""
        told = _TEXT.match(text.strip())
        if told is None or not _SAFE.match(told["name"]):
            raise SettingsError(
                f"--command {text!r}: expected a name, = and a command, as in "
                "'mine,lower-is-better,range=0:100=python my_metric.py'"
            )
        options = [word for word in told["options"].split(",") if word]
        found = cls(
            Reading(told["name"]).with_options(options, f"--command {text}"), told["command"]
        )
        found.words  # noqa: B018 - complains of quotes that are not closed
        return found

    @property
    def words(self) -> list[str]:
        """The command's words. Raises SettingsError."""
        try:
            return shlex.split(self.text)
        except ValueError as error:
            raise SettingsError(f"--command {self.reading.name}: {self.text!r}: {error}") from None

    @property
    def origin(self) -> str:
        """Where its scores are from, for the card."""
        return f"command {self.text}"

    @property
    def identity(self) -> str:
        """The command with a hash of the files it names: another script is another command."""
        found = hashlib.sha256()
        for word in self.words:
            path = Path(word)
            with suppress(OSError, ValueError):
                if path.is_file() and path.stat().st_size <= _LARGE:
                    found.update(path.read_bytes())
        return f"{self.text} #{found.hexdigest()[:16]}"


def measure(
    metric: CommandMetric,
    frames: Mapping[str, Path],
    *,
    patience: float = PATIENCE,
    observe: Observe | None = None,
    keep: Callable[[dict[str, float | None]], None] | None = None,
) -> dict[str, float | None]:
    """Run a command over pictures.

    Args:
        metric: The command.
        frames: Where each frame is, by its SHA-256.
        patience: Seconds without a number after which it has timed out.
        observe: Called with numbers done, numbers wanted, the metric's name.
        keep: Called with numbers that are final, as they come.

    Returns:
        A number, or None, for every frame.

    Raises:
        InputError: The command cannot be run, fails, or prints something else.
    """
    words, name = metric.words, metric.reading.name
    digests = list(frames)
    paths = [str(frames[digest].resolve()) for digest in digests]
    size = BATCH if any(PLACE in word for word in words) else max(len(paths), 1)
    found: dict[str, float | None] = {}
    for first in range(0, len(paths), size):
        batch = paths[first : first + size]
        numbers = []
        for number in _answers(name, words, batch, patience):
            numbers.append(number)
            if observe:
                observe(len(found) + len(numbers), len(paths), name)
        new = dict(zip(digests[first : first + size], numbers, strict=True))
        found |= new
        if keep:
            keep(new)
    return found


def _answers(
    name: str, words: Sequence[str], paths: Sequence[str], patience: float
) -> Iterator[float | None]:
    """The numbers of one process, as they come. Raises InputError."""
    as_arguments = any(PLACE in word for word in words)
    call = _filled(words, paths) if as_arguments else list(words)
    if shutil.which(call[0]) is None:
        raise InputError(f"--command {name}: there is no program {call[0]!r}.")
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                call,
                stdin=subprocess.DEVNULL if as_arguments else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                # Otherwise a Python program's numbers come 8 KiB at a time, and look like silence.
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except OSError as error:
            raise InputError(f"--command {name}: {call[0]}: {error.strerror or error}.") from error
        lines: queue.Queue[str | None] = queue.Queue()
        threads = [threading.Thread(target=_listen, args=(process.stdout, lines), daemon=True)]
        if process.stdin is not None:
            threads.append(threading.Thread(target=_tell, args=(process.stdin, paths), daemon=True))
        for thread in threads:
            thread.start()
        try:
            yield from _numbers(name, process, lines, len(paths), patience, errors)
        finally:
            end_group(process)
            for thread in threads:
                thread.join(5)
            if process.stdout is not None:
                process.stdout.close()


def _numbers(
    name: str,
    process: subprocess.Popen[str],
    lines: queue.Queue[str | None],
    wanted: int,
    patience: float,
    errors: IO[bytes],
) -> Iterator[float | None]:
    count = 0
    while True:
        try:
            line = _next(lines, process, patience)
        except queue.Empty:
            raise InputError(
                f"--command {name} timed out: no number for {patience:g} seconds, after {count} of "
                f"{wanted}.{_last_words(errors)}"
            ) from None
        if line is None:
            break
        if not line.strip():
            continue
        if count == wanted:
            raise InputError(
                f"--command {name} printed more than one line per picture ({wanted} wanted), the "
                f"next being {line.strip()[:80]!r}. Print one number per path and nothing else."
            )
        count += 1
        yield _number(name, line.strip(), count)
    try:
        code = process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"--command {name} timed out: it did not end within {patience:g} seconds of its last "
            f"number.{_last_words(errors)}"
        ) from None
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise InputError(
            f"--command {name} failed with {how} after {counted(count, 'number')} of {wanted}."
            f"{_last_words(errors)}"
        )
    if count < wanted:
        raise InputError(
            f"--command {name} printed {counted(count, 'number')} for {wanted} pictures. Print one "
            f"line per path, nan where there is no score.{_last_words(errors)}"
        )


def _next(
    lines: queue.Queue[str | None], process: subprocess.Popen[str], patience: float
) -> str | None:
    """The next line; None at the end, also where a child that was left behind keeps it open.

    Raises:
        queue.Empty: There was none for that long.
    """
    until = time.monotonic() + patience
    while True:
        ended = process.poll() is not None
        try:
            return lines.get(timeout=max(0.0, min(_GRACE, until - time.monotonic())))
        except queue.Empty:
            if ended:
                return None
            if time.monotonic() >= until:
                raise


def _number(name: str, text: str, line: int) -> float | None:
    if text.lower() in _NONE:
        return None
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"--command {name}, line {line} of its output: {text[:80]!r} is not a number. Print "
            "one number per path and nothing else."
        ) from None
    return value if math.isfinite(value) else None


def _filled(words: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The words with `{}` replaced by the paths, an argument each."""
    found: list[str] = []
    for word in words:
        found += [word.replace(PLACE, path) for path in paths] if PLACE in word else [word]
    return found


def _listen(stream: IO[str] | None, lines: queue.Queue[str | None]) -> None:
    with suppress(ValueError, OSError):  # closed under our feet
        for line in stream or ():
            lines.put(line)
    lines.put(None)


def _tell(stream: IO[str], paths: Sequence[str]) -> None:
    # A command that has ended does not listen; how it ended is told by its exit code.
    with suppress(OSError, ValueError), stream:
        for path in paths:
            stream.write(f"{path}\n")
            stream.flush()


def _last_words(errors: IO[bytes]) -> str:
    """The last line that it wrote to stderr."""
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return f" Its last words: {scrub(lines[-1].strip())[:300]}" if lines else ""


# -- what was measured before ----------------------------------------------------------------------


def cache_path(run: Path, metric: CommandMetric) -> Path:
    """Where a run keeps the numbers of a command."""
    return run / "trial" / f"{metric.reading.name}.parquet"


def recall(run: Path, metric: CommandMetric) -> dict[str, float | None]:
    """The numbers that a run has of this very command, by SHA-256."""
    try:
        rows = pl.read_parquet(cache_path(run, metric))
        mine = rows.filter(pl.col("command") == metric.identity)
        return dict(mine.select("sha256", "value").iter_rows())
    except (OSError, pl.exceptions.PolarsError):
        return {}  # none yet, or not readable: measured again


def remember(run: RunStore, metric: CommandMetric, numbers: Mapping[str, float | None]) -> None:
    """Keep numbers in a run, beside those of other commands of the same name.

    Raises:
        OSError, StoreError: They cannot be written.
    """
    path = cache_path(run.path, metric)
    identity = metric.identity
    rows = [(digest, identity, value) for digest, value in numbers.items()]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    with suppress(OSError, pl.exceptions.PolarsError):
        table = pl.concat([pl.read_parquet(path).select(*SCHEMA), table])
    table = table.unique(["sha256", "command"], keep="last", maintain_order=True)
    out = io.BytesIO()
    table.write_parquet(out)
    run.write_file(path.relative_to(run.path).as_posix(), out.getvalue(), durable=False)
