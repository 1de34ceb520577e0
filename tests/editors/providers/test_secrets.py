"""Keys are nowhere: not in the run, the report, what is printed, whatever goes wrong.

Every fate and every refusal that a provider knows, a key that is echoed and rejected, and a call
that is not heard of again; by the command line, as a user would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.providers.speakers import NAMES, speaker_of
from tests.support.loopback import Received, Reply
from tests.support.runs import write_suite
from tests.support.speaker import Speaker

MARKER = "MARKER-c0ffee-5a9e-not-to-be-seen"


def command(environment: dict[str, str], *words: str) -> tuple[int, str]:
    """A command's exit code and all it printed, without the marker."""
    done = subprocess.run(
        [sys.executable, "-m", "convergebench", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    told = done.stdout + done.stderr
    assert MARKER not in told, told
    assert "Traceback" not in told, told
    return done.returncode, told


class Echo:
    """Answers some requests by repeating the headers it was sent, key and all."""

    def __init__(self, speaker: Speaker, status: int) -> None:
        self.status = status
        self.count = 0
        speaker.answer = self.answer  # type: ignore[method-assign]

    def answer(self, request: Received) -> Reply:
        self.count += 1
        words = " ".join(f"{name}: {value}" for name, value in request.headers.items())
        assert MARKER in words
        return Reply({"error": {"message": words}, "detail": words}, self.status)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_nowhere_after_every_kind_of_failure(name: str, tmp_path: Path) -> None:
    kind = speaker_of(name)
    suite = write_suite(tmp_path / "suite", 1, size=64)
    fates = [fate for fate in kind.fates if fate not in ("oversize", "slow")] + [*kind.refusals]
    path, page = tmp_path / "run", tmp_path / "page"
    words = ("--suite", str(suite), "-e", kind.editor, "--cycle", "copy", "--no-controls")
    more = ("--retries", "0", "--repeat-lost", "0", "--budget", "1000", "--concurrency", "1")
    with kind(lambda number: fates[number % len(fates)]) as speaker:
        environment = {**os.environ, **speaker.environment(MARKER)}
        command(environment, "plan", *words)
        run = ("run", str(path), *words, *more, "--steps", "2")
        _, told = command(environment, *run, "--repeats", str(len(fates)))
        assert {"refused", "failed"} & set(told.split()), told
        assert set(fates) <= set(speaker.begun), "every fate was met"
        for more_chains, status in enumerate((400, 401, 500), 1):
            echo = Echo(speaker, status)
            code, told = command(environment, *run, "--repeats", str(len(fates) + more_chains))
            assert echo.count, "the server was asked"
            assert code in (0, 1), told
        command(environment, "editors", "check", kind.editor, "--yes")
        for after in (
            ("score", str(path), "--metrics", "psnr,ssim"),
            ("report", str(path), "--out", str(page)),
            ("spend", str(path), "--calls"),
            ("verify", str(path)),
            ("editors", "show", kind.editor, "--json"),
        ):
            code, told = command(environment, *after)
            assert code == 0, told
    assert (page / "index.html").exists()
    for file in [*path.rglob("*"), *page.rglob("*")]:
        assert not file.is_file() or MARKER.encode() not in file.read_bytes(), file
