"""What users see of long work: drawn in a terminal, in plain lines, as JSON. Real processes."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.segment import Segment

from convergebench.cli.watching import panel
from convergebench.progress import Pace, Snapshot
from tests.support.runs import write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")
CB = [sys.executable, "-m", "convergebench"]
SECRET = "marker-3f1c-not-to-be-seen"
METRICS = ("psnr", "noisy-metric", "ms-ssim")
NUMBERS = {
    "done", "total", "unit", "failures", "bytes", "workers", "dollars", "chains", "kind", "seconds",
    "rate", "bytes_rate", "left", "at_least", "parts",
}  # fmt: skip


def walk(tmp_path: Path, *editors: str, steps: int = 3) -> list[str]:
    """The command line of a small run."""
    suite = tmp_path / "suite"
    path = suite / "suite.toml" if suite.exists() else write_suite(suite)
    words = ["run", str(tmp_path / "run"), "--suite", str(path), "--steps", str(steps)]
    named = [word for editor in editors for word in ("-e", editor)]
    return [*CB, *words, *named, "--cycle", "copy", "--no-controls"]


def counting(tmp_path: Path, sleep: float) -> str:
    return f"counting,log={tmp_path / 'log'},sleep={sleep}"


def events(text: str) -> list[dict[str, Any]]:
    """Every line of a log; each must be an event."""
    found = [json.loads(line) for line in text.splitlines()]
    for event in found:
        assert list(event)[:4] == ["at", "event", "command", "run"]
        assert datetime.fromisoformat(event["at"]).utcoffset() is not None
        if event["event"] == "progress":
            assert set(event) >= NUMBERS, event
    return found


def begun(tmp_path: Path, command: list[str], calls: int) -> subprocess.Popen[str]:
    """A process in the middle of a run."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    awaited(lambda: (tmp_path / "log").exists() and _lines(tmp_path / "log") >= calls)
    return process


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def awaited(ready: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, "waited for in vain"
        time.sleep(0.05)


def test_every_line_of_a_log_is_json_whatever_happens(tmp_path: Path) -> None:
    module = tmp_path / "own"
    module.mkdir()
    (module / "loud.py").write_text(
        "import os, sys, warnings\n"
        "def edit(image, prompt, seed):\n"
        "    print('on stdout'); print('on stderr', file=sys.stderr)\n"
        f"    os.write(2, b'half a line, {SECRET}'); os.write(2, bytes([10, 255, 10]))\n"
        "    os.write(2, b'1 of 9\\r2 of 9\\n{\"at\": 1}\\n')\n"
        "    return image\n"
    )
    env = {**os.environ, "LOUD_API_KEY": SECRET}
    env["PYTHONPATH"] = os.pathsep.join([str(module), env.get("PYTHONPATH", "")])
    editors = ("python:loud:edit,price=0", "scripted,script=2:refuse", "scripted,script=1:busy|ok")
    command = [*walk(tmp_path, *editors), "--json", "--log-json"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stderr
    told = events(done.stderr)
    assert {event["command"] for event in told} == {"run"}
    assert {event["run"] for event in told} == {str(tmp_path / "run")}
    assert told[0]["event"] == "start"
    assert told[0]["version"]
    assert (told[-1]["event"], told[-1]["exit"]) == ("end", 0)
    by_kind = {event["event"]: event for event in told}
    assert by_kind["step"] | {"at": ""} == {
        "at": "", "event": "step", "command": "run", "run": str(tmp_path / "run"),
        "part": "running", "chain": by_kind["step"]["chain"], "step": 2, "outcome": "refused",
        "detail": "the picture shows a banana",
    }  # fmt: skip
    assert "try 1 failed (too many requests)" in by_kind["problem"]["text"]
    last = by_kind["progress"]
    assert (last["done"], last["total"], last["failures"]) == (14, 14, 2)
    assert last["left"] == 0
    assert set(last["parts"]) == set(editors)
    texts = {event["text"] for event in told if event["event"] == "text"}
    assert {"on stdout", "on stderr", "half a line, <LOUD_API_KEY>", "2 of 9", '{"at": 1}'} <= texts
    assert json.loads(done.stdout)["complete"], "stdout is the result's"


def test_a_log_of_a_kill_a_ctrl_c_and_two(tmp_path: Path) -> None:
    command = [*walk(tmp_path, counting(tmp_path, 0.3), steps=500), "--log-json"]
    process = begun(tmp_path, command, 6)
    process.kill()
    _, text = process.communicate(timeout=120)
    told = events(text)
    assert told[0]["pid"] == process.pid
    assert "end" not in {event["event"] for event in told}

    process = begun(tmp_path, command, _lines(tmp_path / "log") + 6)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=120)
    told = events(text)
    assert process.returncode == 130
    assert told[-1] | {"exit": 130, "event": "end", "stopped": "interrupted"} == told[-1]
    problems = [event["text"] for event in told if event["event"] == "problem"]
    assert problems[0].startswith("took over from process")
    assert problems[-1].startswith("stopping: finishing the calls in flight")
    moving = [e for e in told if e["event"] == "progress" and e["rate"]]
    assert moving
    assert moving[-1]["workers"] <= 2

    command = [*walk(tmp_path, counting(tmp_path, 90.0), steps=600), "--log-json"]
    process = begun(tmp_path, command, _lines(tmp_path / "log") + 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=120)
    told = events(text)
    assert process.returncode == 130
    assert (told[-1]["event"], told[-1]["exit"]) == ("end", 130)
    assert any(e.get("text", "").startswith("stopped at once") for e in told)
    assert told[-1] | {"exit": 130, "event": "end", "stopped": "interrupted"} == told[-1]


def test_errors_are_events_and_score_logs_its_metrics(tmp_path: Path) -> None:
    missing = tmp_path / SECRET
    done = subprocess.run(
        [*CB, "score", missing, "--log-json"], capture_output=True, text=True,
        env={**os.environ, "SOME_API_KEY": SECRET},
    )  # fmt: skip
    start, error = events(done.stderr)
    assert (done.returncode, error["event"], error["exit"]) == (2, "error", 2)
    assert "<SOME_API_KEY> is not a run directory" in error["text"]
    assert (start["event"], SECRET in done.stderr) == ("start", False)

    subprocess.run(walk(tmp_path, "ref:noise"), check=True, capture_output=True)
    words = ["score", str(tmp_path / "run"), "--log-json", "--metrics", ",".join(METRICS)]
    done = subprocess.run([*CB, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = events(done.stderr)
    last = [event for event in told if event["event"] == "progress"][-1]
    assert set(last["parts"]) == set(METRICS)
    assert last["done"] == last["total"]
    assert last["failures"] > 0
    assert last["bytes"] > 0
    assert told[-1]["failures"] == last["failures"]
    assert "loading checkpoint …" in {event.get("text") for event in told}, "of a worker"


def test_plain_lines_have_the_same_facts(tmp_path: Path) -> None:
    command = walk(tmp_path, counting(tmp_path, 0.5), "ref:noise", steps=24)
    at = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - at
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("running: ")]
    assert 2 <= len(told) <= took / 5 + 2, "one every five seconds, and the last"
    always, rate = r"running: \d+ of 96, \d/4 chains, 0 failed, \$0\.00", r", [\d.]+/s"
    moving = always + rate + r", [\d.]+ KiB at .*/s, \d calls?, about \d+ s left"
    assert all(re.match(always, line) for line in told), told
    assert any(re.match(moving, line) for line in told), "a first line may come before any rate"
    last = always.replace(r"\d+ of", "96 of").replace(r"\d/4", "4/4") + rate
    assert re.match(last + r", [\d.]+ KiB at .*/s", told[-1]), told[-1]
    assert "\x1b" not in done.stderr + done.stdout


def test_what_is_left_out_is_told_before_the_first_row_and_once(tmp_path: Path) -> None:
    subprocess.run(walk(tmp_path, "ref:noise"), check=True, capture_output=True)
    command = [*CB, "score", str(tmp_path / "run"), "--metrics", "psnr,unavailable-metric"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("  Left out: unavailable-metric. ")
    assert (done.stderr + done.stdout).count("Left out") == 1
    logged = subprocess.run([*command, "--json", "--log-json"], capture_output=True, text=True)
    first, second, *_ = events(logged.stderr)
    assert (first["event"], second["event"]) == ("start", "problem")
    assert second["text"].startswith("Left out: unavailable-metric. ")
    assert json.loads(logged.stdout)["problems"] == [second["text"]]


@pytest.mark.parametrize("parts", [0, 1, 2, 20])
@pytest.mark.parametrize("total", [0, 7000])
def test_an_echoed_ctrl_c_has_room_in_the_last_line(total: int, parts: int) -> None:
    # Else it would begin a line that the display knows nothing of, and its first line stays.
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    split = {f"a-metric-with-a-long-name-indeed-{n}": (3, total) for n in range(parts)}
    now = Snapshot(3 if total else 0, total, "scores", workers=2, kind="metric", parts=split)
    *above, last = console.render_lines(panel("scoring", Pace(now, 9.0, 0.5)), pad=False)
    assert above, "one line would be as wide as the terminal"
    assert Segment.get_line_length(last) <= 80 - len("^C")


def drawn(command: list[str], env: dict[str, str], until: str = "", then: str = "") -> str:
    """What a command writes to a terminal; once `until` is seen, `then` is typed with pauses."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, "COLUMNS": "80", "LINES": "24", **env})
    seen, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        if then and until.encode() in seen:
            os.write(terminal, then[0].encode())
            then = then[1:]
            time.sleep(0.5)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return f"{seen.decode()}\nexit {os.waitstatus_to_exitcode(status)}"


def screen(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_terminal_is_drawn_on(tmp_path: Path) -> None:
    command = walk(tmp_path, counting(tmp_path, 0.4), "ref:noise", "scripted,script=2:refuse",
                   steps=12)  # fmt: skip
    seen = drawn(command, {"TERM": "xterm-256color"})
    assert seen.endswith("exit 0"), seen[-2000:]
    assert "\x1b[?25l" in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "the cursor is back"
    text = screen(seen)
    assert re.search(r"running ━.* \d+ of \d+ steps", text)
    assert re.search(r"editor +done +of +rate", text)
    assert re.search(r"ref:noise +24 +24", text)
    assert re.search(r"counting,log=.*….*,sleep=0.4 +\d+ +24", text), "cut in the middle"
    assert re.search(r"about \d+ s left", text)
    assert "step 2 refused (the picture shows a banana)" in re.sub(r"\s+", " ", text)
    assert max(map(len, re.split(r"[\r\n]+", text))) <= 80
    final = text[text.rindex("running ━") :]
    assert "50 of 50 steps" in final
    assert "editor " not in final, "the list goes when the work is done"

    plain = drawn(walk(tmp_path, counting(tmp_path, 0.4), steps=13), {"TERM": "dumb"})
    assert "running: " in plain
    assert "\x1b" not in plain


def test_two_ctrl_c_leave_the_terminal_as_it_was(tmp_path: Path) -> None:
    command = walk(tmp_path, counting(tmp_path, 90.0), steps=9)
    seen = drawn(command, {"TERM": "xterm"}, until="2 calls", then="\x03\x03")
    assert seen.endswith("exit 130"), seen[-2000:]
    assert "stopped at once" in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")


def test_a_plan_that_is_stopped_says_nothing_of_what_was_stored(tmp_path: Path) -> None:
    command = [*CB, "plan", "-e", "ref:noise", "--metrics", "fast"]
    seen = drawn(command, {"TERM": "xterm"}, until="measuring", then="\x03")
    assert seen.endswith("exit 130"), seen[-2000:]
    assert "stored" not in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "the cursor is back"


def test_status_watches_until_the_end_or_ctrl_c(tmp_path: Path) -> None:
    process = begun(tmp_path, walk(tmp_path, counting(tmp_path, 0.3), steps=60), 4)
    look = [*CB, "status", str(tmp_path / "run"), "--watch"]
    lines = subprocess.Popen([*look, "--json"], stdout=subprocess.PIPE, text=True)
    seen = drawn(look, {"TERM": "xterm"}, until=" left", then="\x03")
    assert seen.endswith("exit 130"), seen[-2000:]
    assert re.search(rf"run ━.* \d+ of 120 steps.+run: process {process.pid} on ", screen(seen),
                     re.DOTALL)  # fmt: skip
    assert process.poll() is None, "who watches ends only the watching"
    out, _ = lines.communicate(timeout=120)
    *while_working, last = [json.loads(line) for line in out.splitlines()]
    assert lines.returncode == 0
    assert while_working[0]["works"][0]["state"] == "working"
    assert last["works"][0]["state"] == "ended"
    assert last["chains_done"] == 2
    assert process.wait(30) == 0
    process.communicate()
    done = subprocess.run(look, capture_output=True, text=True)
    assert done.returncode == 0
    assert "2 of 2 chains done" in done.stdout


@pytest.mark.timeout(300)
def test_a_study_passes_it_on(tmp_path: Path) -> None:
    words = ["study", "banana100/smoke", str(tmp_path / "run"), "-e", "ref:noise", "--steps", "2"]
    done = subprocess.run(
        [*CB, *words, "--size", "64", "--log-json", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = events(done.stderr)
    assert {"running", "scoring"} <= {event.get("part") for event in told}
    assert told[-1]["event"] == "end"
