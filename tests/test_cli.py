"""The command line as a user meets it: real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.errors import scrub
from tests.support.runs import write_suite


def cb(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "convergebench", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a user's mistake."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("convergebench: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


HEAVY = {"numpy", "polars", "altair", "scipy", "cv2", "PIL", "jinja2", "rich.progress"}
HEAVY |= {"starlette", "uvicorn", "sqlite3"}


@pytest.mark.parametrize(
    "words", [[], ["run"], ["suites"], ["suites", "degrade"], ["rate"], ["restoration"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "convergebench", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "convergebench.cli" in modules
    assert not modules & HEAVY
    assert len(modules) < 500, "what --help imports is counted, because each costs time"
    assert "Usage" in done.stdout


def test_every_command_has_examples() -> None:
    listed = re.findall(r"^\W*([a-z]+)  ", cb("--help").stdout, re.MULTILINE)
    assert {"demo", "plan", "run", "score", "report", "verify", "suites", "plugins"} <= set(listed)
    for words in (["demo"], ["plan"], ["run"], ["score"], ["report"], ["verify"], ["plugins"],
                  ["suites", "list"], ["suites", "show"], ["suites", "check"]):  # fmt: skip
        assert "Examples:" in cb(*words, "--help").stdout, words


def test_version() -> None:
    assert re.fullmatch(r"convergebench \d+\.\d+\.\d+\n", cb("--version").stdout)


def test_from_suite_to_report(tmp_path: Path) -> None:
    suite, path = write_suite(tmp_path / "suite"), tmp_path / "run"
    flags: list[str | Path] = ["--suite", suite, "-e", "ref:noise", "--rounds", "2"]
    planned = json.loads(cb("plan", *flags, "--json").stdout)
    ran = json.loads(cb("run", path, *flags, "--json").stdout)
    assert ran["steps_made"] == planned["calls"]
    assert ran["complete"]
    scored = json.loads(cb("score", path, "--json").stdout)
    assert scored["new"] > 0
    reported = cb("report", path)
    assert reported.returncode == 0, reported.stderr
    assert "Leaderboard" in reported.stdout
    assert (path / "report" / "index.html").is_file()
    verified = cb("verify", path)
    assert (verified.returncode, "sound" in verified.stdout) == (0, True)
    next(path.glob("frames/??/*")).write_bytes(b"x")
    broken = cb("verify", path, "--json")
    assert broken.returncode == 1
    assert json.loads(broken.stdout)["altered"]


def test_progress_goes_to_stderr_as_plain_lines(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    done = cb("run", tmp_path / "run", "--suite", suite, "-e", "ref:noise", "--rounds", "1")
    assert re.search(r"running: \d+ of \d+, \d+/\d+ chains, 0 failed, \$0\.00", done.stderr)
    assert "running" not in done.stdout
    assert "\x1b" not in done.stderr + done.stdout


def test_suites(tmp_path: Path) -> None:
    assert "starter@1" in cb("suites", "list").stdout
    assert json.loads(cb("suites", "list", "--json").stdout)[0]["sources"] >= 12
    shown = cb("suites", "show", "starter").stdout
    assert "Produce an exact replica of the provided image, with no alterations." in shown
    assert "all sound" in cb("suites", "check", "starter").stdout
    path = write_suite(tmp_path)
    unsealed = cb("suites", "check", tmp_path)
    assert unsealed.returncode == 0
    path.write_text(unsealed.stdout.splitlines()[-1] + "\n" + path.read_text())
    assert "Not sealed" not in cb("suites", "check", path).stdout
    path.write_text(path.read_text().replace("Copy the picture.", "Copy the image."))
    assert "1 problem" in complaint(cb("suites", "check", path))
    changed = complaint(cb("run", tmp_path / "run", "--suite", path, "-e", "ref:noise"))
    assert "was changed after it was sealed" in changed


def test_plugins() -> None:
    listed = json.loads(cb("plugins", "--json").stdout)
    assert {"psnr", "ref", "starter"} <= {p["name"] for p in listed["plugins"]}
    assert "ref:jpeg" in listed["editors"]


def test_mistakes_get_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    path = tmp_path / "run"
    base: list[str | Path] = ["run", path, "--suite", suite]
    assert "no editor called 'rfe:jpeg'" in complaint(cb(*base, "-e", "rfe:jpeg"))
    assert "no editor is named" in complaint(cb(*base))
    assert "cannot read suite" in complaint(
        cb("run", path, "--suite", "no/such.toml", "-e", "ref:x")
    )
    assert "contradict" in complaint(cb(*base, "-e", "ref:jpeg", "--steps", "3", "--rounds", "2"))
    config = tmp_path / "run.toml"
    config.write_text("editors = [")
    assert "not valid TOML" in complaint(cb("run", path, "--config", config))
    config.write_text('editors = ["ref:jpeg"]\nrouns = 3\n')
    assert f"{config}: rouns: there is no such key" in complaint(cb("run", path, "-c", config))
    assert not path.exists()

    (tmp_path / "suite" / "s0.png").write_bytes(b"no longer an image")
    wrong = complaint(cb(*base, "-e", "ref:jpeg"))
    assert "has SHA-256" in wrong
    assert not path.exists()

    assert "is not a run directory" in complaint(cb("score", tmp_path / "nowhere"))
    assert "is not a run directory" in complaint(cb("report", tmp_path / "nowhere"))
    assert "takes numbers and ranges" in complaint(cb("score", path, "--steps", "one"))


def test_an_unreadable_source_is_a_mistake(tmp_path: Path) -> None:
    import hashlib

    suite = write_suite(tmp_path / "suite")
    data = b"\x89PNG\r\n\x1a\n broken"
    good = hashlib.sha256((tmp_path / "suite" / "s0.png").read_bytes()).hexdigest()
    (tmp_path / "suite" / "s0.png").write_bytes(data)
    suite.write_text(suite.read_text().replace(good, hashlib.sha256(data).hexdigest()))
    wrong = complaint(cb("run", tmp_path / "run", "--suite", suite, "-e", "ref:jpeg"))
    assert "source 's0'" in wrong
    assert "is no usable image: png" in wrong


def test_a_read_only_place_is_a_mistake(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    wrong = complaint(cb("run", "/proc/nope/run", "--suite", suite, "-e", "ref:jpeg"))
    assert "cannot write to /proc/nope/run" in wrong


def test_other_suite_version_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = write_suite(tmp_path / "one")
    cb("run", path, "--suite", first, "-e", "ref:jpeg", "--rounds", "1")
    before = sorted(p.read_bytes() for p in path.glob("chains/*/*"))
    second = write_suite(tmp_path / "two", version=2)
    assert "tiny@1" in complaint(cb("run", path, "--suite", second, "-e", "ref:jpeg"))
    assert sorted(p.read_bytes() for p in path.glob("chains/*/*")) == before


def test_ctrl_c_stops_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-m", "convergebench", "demo", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not list(path.glob("chains/*/*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in told
    assert not (path / "scores").exists() or not list((path / "scores").iterdir())
    assert not (path / "report").exists()
    command = [sys.executable, "-m", "convergebench", "score", str(path)]
    for number in (signal.SIGINT, signal.SIGTERM):
        (path / "score.lock").unlink(missing_ok=True)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while not (path / "score.lock").exists():
                time.sleep(0.02)
            time.sleep(0.3)
            process.send_signal(number)
            _, told = process.communicate()
        assert process.returncode == 130
        assert "convergebench: stopped. Whatever was stored is kept" in told


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    marker = "sk-marker-0987654321"
    done = cb("score", tmp_path / marker, env={"SOME_API_KEY": marker})
    assert marker not in complaint(done)


@pytest.mark.parametrize("plain", [True, False])
def test_a_secret_is_known_in_json_too(monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    monkeypatch.setenv("SOME_PASSWORD", secret := 'pa"ss\\wörd\t123')
    told = scrub(json.dumps({"said": f"it is {secret}!"}, ensure_ascii=plain))
    assert json.loads(told) == {"said": "it is <SOME_PASSWORD>!"}
