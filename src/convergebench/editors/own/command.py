"""`cmd: my-net --in {input} --out {output}`: any command that reads a picture and writes one.

It is run without a shell, from the folder that `convergebench` was started in; the pictures are in
a temporary folder of their own. Everything after `cmd:` is the command: it takes no options.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.own.terms import patience
from convergebench.errors import EditorFailed, EditorNoImage, SettingsError, scrub
from convergebench.frame import EXTENSIONS, sniff
from convergebench.processes import end_group
from convergebench.registry import PluginName
from convergebench.wording import in_order

VERSION: Final = "1"
EXAMPLE: Final = "cmd: my-net --in {input} --out {output}"
INPUTS: Final = ("input", "input_folder")
OUTPUTS: Final = ("output", "output_folder")
PLACES: Final = (*INPUTS, *OUTPUTS, "prompt", "seed")
LARGEST: Final = 1 << 29
"""Bytes that an output may have."""
SAID: Final = 500
"""How many letters of a command's last words are kept."""

_MARK: Final = re.compile(r"\{\{|\}\}|\{(\w*)(?::(\w+))?\}")
_INTERPRETERS: Final = re.compile(
    r"(python|pypy|ruby|perl|lua)[\d.]*|(ba|da|z|k)?sh|node|Rscript|julia|java|env|nice|uv|conda"
)
"""Programs that only run what is named after them: their updates make no other method."""

_WATCH: Final = """exec 3<&0 </dev/null
( ( read -r _ <&3; rm -rf -- "$0"; kill -KILL 0 ) >/dev/null 2>&1 & )
exec "$@" 3<&-"""
"""Leaves somebody in the command's process group who waits for the end of the run, and becomes the
command. The watcher is no child of the command: one that waits for all its children would hang."""


class CommandEditor:
    """A command, run once per edit.

    Args:
        spec: Its card.
        words: The command's words, with placeholders.
        name: What it is called in messages; the program's name if nothing is given.
    """

    def __init__(self, spec: EditorSpec, words: Sequence[str], name: str = "") -> None:
        self.spec: Final = spec
        self._words: Final = tuple(words)
        self._name: Final = name or Path(words[0]).name

    def edit(self, request: EditRequest) -> EditReply:
        """Write the last input into a file, run the command, and read what it wrote."""
        frame = request.inputs[-1]
        with tempfile.TemporaryDirectory(
            prefix="convergebench-cmd-", ignore_cleanup_errors=True
        ) as scratch:
            given, made = Path(scratch, "input"), Path(scratch, "output")
            given.mkdir()
            made.mkdir()
            picture = given / f"picture{EXTENSIONS.get(sniff(frame.data) or '', '.bin')}"
            picture.write_bytes(frame.data)
            places = {
                "input": str(picture),
                "input_folder": str(given),
                "output": str(made / "picture"),
                "output_folder": str(made),
                "prompt": request.prompt,
                "seed": "-1" if request.seed is None else str(request.seed),
            }
            call = [_filled(word, places) for word in self._words]
            told = self._run(call, Path(scratch), patience(request))
            data = self._output(made, told)
        seed = {"seed": request.seed} if any("{seed}" in word for word in self._words) else {}
        return EditReply(data, parameters=seed, cost=0.0)

    def _run(self, call: Sequence[str], scratch: Path, seconds: float) -> str:
        """Run the command; its last words. Raises EditorFailed."""
        with (
            _lifeline() as line,
            open(scratch / "stdout", "w+b") as out,
            open(scratch / "stderr", "w+b") as err,
        ):
            try:
                process = subprocess.Popen(
                    [*_watched(scratch), *_bound(), *call],
                    stdin=line,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # so that it can be ended with all it has started
                )
            except OSError as error:
                raise EditorFailed(f"{self._name} cannot be run: {error.strerror}") from None
            began = time.monotonic()
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                waited = time.monotonic() - began
                end_group(process)
                last = self._last_words(scratch, err, out)
                raise EditorFailed(f"{self._name} timed out after {waited:.0f} s{last}") from None
            finally:
                end_group(process)
            last = self._last_words(scratch, err, out)
        if code < 0:
            with suppress(ValueError):
                raise EditorFailed(f"{self._name} was ended by {signal.Signals(-code).name}{last}")
        if code:
            raise EditorFailed(f"{self._name} ended with code {code}{last}")
        return last

    def _last_words(self, scratch: Path, *files: IO[bytes]) -> str:
        """The end of the first file that says anything, for a message; empty if none does."""
        for file in files:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * SAID - 4096))
            # Scrubbed before it is cut, so that no half of a secret is left.
            text = scrub(file.read().decode("utf-8", "replace"))
            lines = " ".join(text.replace(f"{scratch}{os.sep}", "").split())
            if lines:
                return f": …{lines[-SAID:]}" if len(lines) > SAID else f": {lines}"
        return ""

    def _output(self, folder: Path, told: str) -> bytes:
        """The bytes that the command wrote. Raises EditorNoImage, EditorFailed."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        if not found:
            raise EditorNoImage(f"{self._name} ended well and wrote no picture{told}")
        if len(found) > 1:
            names = in_order([path.relative_to(folder).as_posix() for path in found])
            raise EditorFailed(f"{self._name} wrote {len(found)} files, expected one: {names}")
        try:
            size = found[0].stat().st_size
            if size > LARGEST:
                raise EditorFailed(f"{self._name} wrote a file of {size:,} bytes, too large")
            data = found[0].read_bytes()
        except OSError as error:
            raise EditorFailed(
                f"what {self._name} wrote cannot be read: {error.strerror}"
            ) from None
        if not data:
            raise EditorNoImage(f"{self._name} wrote an empty file{told}")
        return data


@contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe that nothing is written to: who reads it learns that the run has ended."""
    ours, theirs = os.pipe()
    try:
        yield ours
    finally:
        os.close(ours)
        os.close(theirs)


def _watched(scratch: Path) -> tuple[str, ...]:
    """What ends whatever a command has started with the run, even a killed one."""
    return ("/bin/sh", "-c", _WATCH, str(scratch))


@lru_cache(maxsize=1)
def _bound() -> tuple[str, ...]:
    """What ends a command with the run, even a killed one, where the system has it."""
    program = shutil.which("setpriv")
    return (program, "--pdeathsig", "KILL", "--") if program else ()


def _filled(word: str, places: Mapping[str, str]) -> str:
    """A word with its placeholders replaced, in one pass: a prompt with braces stays as it is."""

    def value(mark: re.Match[str]) -> str:
        if mark[1] is None:
            return mark[0][0]
        ending = f".{mark[2] or 'png'}" if mark[1] == "output" else ""
        return places[mark[1]] + ending

    return _MARK.sub(value, word)


def open_editor(model: str = "") -> CommandEditor:
    """Any command that reads a picture and writes one: cmd: my-net --in {input} --out {output}.

    Raises:
        SettingsError: The command cannot be understood, there is no such program, or a placeholder
            is missing.
    """
    text = model.strip()
    words = _words(text)
    _check_marks(text)
    _check_secrets(text)
    program = shutil.which(words[0])
    if program is None:
        raise SettingsError(
            f"editor cmd: there is no program {words[0]!r}. Install it, or give its path; a path "
            "is taken from the folder that the command is given in."
        )
    spec = EditorSpec(
        name=str(PluginName("cmd", text, ())),
        version=f"{VERSION}-{_fingerprint(program, words)}",
        description=f"the command {text}",
        concurrency=1,
        price=0.0,
        abilities=Abilities(
            seeds="{seed}" in text, temperature=False, resolutions=(), sessions=("stateless",)
        ),
    )
    return CommandEditor(spec, words)


def reads_prompts(name: PluginName) -> bool:
    """Whether the prompt is a part of the command."""
    return "{prompt}" in (name.model or "")


open_editor.reads_prompts = reads_prompts  # type: ignore[attr-defined]


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"editor cmd: {_shown(text)} cannot be read: {error}.") from None
    if not words:
        raise SettingsError(f"editor cmd: has no command. Write for example {EXAMPLE!r}.")
    return words


def _check_marks(text: str) -> None:
    """Raise SettingsError for a placeholder that is unknown, or for one that is missing."""
    marks = [mark for mark in _MARK.finditer(text) if mark[1] is not None]
    for mark in marks:
        if mark[1] not in PLACES or (mark[2] and mark[1] != "output"):
            known = ", ".join(f"{{{name}}}" for name in PLACES)
            raise SettingsError(
                f"editor cmd: there is no placeholder {mark[0]}. There are {known}, and "
                "{output:jpg} where it is to write another kind of file than PNG; a brace that is "
                "none is written twice."
            )
    names = {mark[1] for mark in marks}
    for wanted, does in ((INPUTS, "reads its picture"), (OUTPUTS, "writes its picture")):
        here = [name for name in wanted if name in names]
        if not here:
            raise SettingsError(
                f"editor cmd: {_shown(text)} has no {{{wanted[0]}}}. Write it where the command "
                f"{does}, as in {EXAMPLE!r}."
            )
    outputs = {mark[0] for mark in marks if mark[1] in OUTPUTS}
    if len(outputs) > 1:
        raise SettingsError(
            f"editor cmd: {_shown(text)} names {' and '.join(sorted(outputs))}: give one of them."
        )


def _check_secrets(text: str) -> None:
    """Raise SettingsError where a command holds a secret: its text is part of every record."""
    if scrub(text) != text:
        raise SettingsError(
            f"editor cmd: the command holds the value of a secret of the environment, as in "
            f"{_shown(text)}, and its text is written into every record. Let the program read the "
            "variable itself."
        )


def _shown(text: str) -> str:
    safe = scrub(text)
    return repr(safe if len(safe) <= 120 else f"{safe[:119]}…")


def _fingerprint(program: str, words: Sequence[str]) -> str:
    """A hash of the files that a command names: another script is another version."""
    found = hashlib.sha256()
    own = _INTERPRETERS.fullmatch(Path(program).name) is None
    # Also what is behind an equals sign: --weights=net.bin.
    named = [part for word in words[1:] for part in {word, word.partition("=")[2]}]
    for word in ([program] if own else []) + sorted(named):
        with suppress(OSError, ValueError):
            path = Path(word)
            if word and path.is_file():
                told = path.stat()
                found.update(_hash_of(str(path.resolve()), told.st_size, told.st_mtime_ns))
    return found.hexdigest()[:12]


@lru_cache(maxsize=64)
def _hash_of(path: str, _size: int, _changed: int) -> bytes:
    # Weights are large, and an editor is opened several times in one command.
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
