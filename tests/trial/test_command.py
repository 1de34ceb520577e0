"""A command as a metric: real processes over real frames."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from convergebench.errors import InputError, SettingsError
from convergebench.store import RunStore
from convergebench.trial import CommandMetric, try_metrics
from convergebench.trial.command import cache_path, measure, recall
from convergebench.trial.result import Trial
from tests.trial.runs import scored_run

READS = """
import sys, zlib
calls = open({log!r}, "a")
for line in sys.stdin:
    path = line.rstrip("\\n")
    calls.write(path + "\\n")
    print(len(zlib.compress(open(path, "rb").read())))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_run(tmp_path_factory.mktemp("command"))


def script(folder: Path, text: str, name: str = "metric.py") -> str:
    path = folder / name
    path.write_text(text)
    return f"{sys.executable} {path}"


def three(folder: Path) -> dict[str, Path]:
    """Three files to be measured, by names that stand for their hashes."""
    found = {}
    for index in range(3):
        found[f"h{index}"] = folder / f"f{index}.bin"
        found[f"h{index}"].write_bytes(bytes(index + 1))
    return found


def own(text: str) -> CommandMetric:
    return CommandMetric.parse(f"mine={text}")


def alone(run: Path, command: str) -> Trial:
    return try_metrics(run, metrics=[], commands=[command], steps=[3, 5])


def test_a_command_scores_every_distinct_frame_once_and_never_again(
    run: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls.txt"
    command = script(tmp_path, READS.format(log=str(log)))
    seen: list[tuple[int, int, str]] = []
    trial = try_metrics(
        run,
        metrics=["noise"],
        commands=[f"size,lower-is-better={command}"],
        steps=[3, 5],
        observe=lambda *told: seen.append(told),
    )
    card = trial.card("size")
    assert (card.origin, card.higher_is_better) == (f"command {command}", False)
    assert card.failures_by_arm["ref:noise,sigma=8"] == 0, "noisier files are larger"
    store = RunStore.open(run)
    chains = [c for c in store.chains() if not c.key.cycle.startswith("ball")]
    frames = {ref.sha256 for c in chains for ref in c.held.values()}
    called = log.read_text().splitlines()
    assert sorted(Path(path).stem for path in called) == sorted(frames)
    assert all(os.path.isabs(path) for path in called)
    assert seen[-1] == (len(frames), len(frames), "size")
    kept = pl.read_parquet(cache_path(run, CommandMetric.parse(f"size={command}")))
    assert set(kept["sha256"]) == frames

    again = try_metrics(run, metrics=["noise"], commands=[f"size={command}"], steps=[3, 5])
    assert len(log.read_text().splitlines()) == len(frames), "not run twice"
    assert again.single.filter(pl.col("metric") == "size")["value"].equals(
        trial.single.filter(pl.col("metric") == "size")["value"]
    )
    Path(command.split()[1]).write_text(READS.format(log=str(log)) + "# changed\n")
    try_metrics(run, metrics=["noise"], commands=[f"size={command}"], steps=[3, 5])
    assert len(log.read_text().splitlines()) == 2 * len(frames), "another script is another metric"


def test_paths_as_arguments_come_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convergebench.trial.command.BATCH", 2)
    command = script(
        tmp_path,
        "import os, sys\n"
        f"open({str(tmp_path / 'calls')!r}, 'a').write(str(len(sys.argv)) + '\\n')\n"
        "assert sys.stdin.read() == ''\n"
        "print(*(os.path.getsize(p) for p in sys.argv[2:]), sep='\\n')\n",
    )
    kept: list[dict[str, float | None]] = []
    numbers = measure(own(f"{command} --paths {{}}"), three(tmp_path), keep=kept.append)
    assert numbers == {"h0": 1, "h1": 2, "h2": 3}
    assert kept == [{"h0": 1, "h1": 2}, {"h2": 3}]
    assert (tmp_path / "calls").read_text().split() == ["4", "3"]


def test_nan_and_infinity_are_no_scores_and_empty_lines_nothing(tmp_path: Path) -> None:
    command = script(tmp_path, "import sys\nsys.stdin.read()\nprint('nan\\n\\n inf \\n2.5e1')\n")
    assert measure(own(command), three(tmp_path)) == {"h0": None, "h1": None, "h2": 25}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "import sys\nprint(1)\nprint('no model', file=sys.stderr)\nsys.exit(3)",
            r"mine failed with exit code 3 after 1 number of 3\. Its last words: no model",
        ),
        ("raise ValueError('bad weights')", "Its last words: ValueError: bad weights"),
        ("import os\nos.kill(os.getpid(), 9)", "failed with signal 9 after 0 numbers of 3"),
        ("print(1)\nprint(2)", r"printed 2 numbers for 3 pictures\. Print one line per path"),
        ("for k in range(4): print(k)", r"more than one line per picture \(3 wanted\)"),
        ("print('loading …')", "line 1 of its output: 'loading …' is not a number"),
        ("print('0.5 good')", "'0.5 good' is not a number"),
    ],
)
def test_a_command_that_misbehaves_is_one_sentence(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        measure(own(script(tmp_path, text)), three(tmp_path))


def test_a_silent_command_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    left = tmp_path / "alive"
    child = f"import time; time.sleep(3); open({str(left)!r}, 'w')"
    command = script(
        tmp_path,
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print(1)\ntime.sleep(60)\n",
    )
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"timed out: no number for 1\.5 seconds, after 1 of 3"):
        measure(own(command), three(tmp_path), patience=1.5)
    assert time.monotonic() - begun < 30
    time.sleep(3.5)
    assert not left.exists()


def test_a_command_that_lingers_after_its_last_number_times_out(tmp_path: Path) -> None:
    text = "import os, time\nprint('1\\n2\\n3', flush=True)\nos.close(1)\ntime.sleep(60)\n"
    with pytest.raises(InputError, match="did not end within 1 seconds of its last number"):
        measure(own(script(tmp_path, text)), three(tmp_path), patience=1)


def test_failed_commands_leave_nothing_behind(run: Path, tmp_path: Path) -> None:
    command = script(tmp_path, "print(1)")
    with pytest.raises(InputError, match="printed 1 number for"):
        alone(run, f"broken={command}")
    assert recall(run, CommandMetric.parse(f"broken={command}")) == {}


def test_a_damaged_cache_is_measured_again(run: Path, tmp_path: Path) -> None:
    command = script(tmp_path, "import sys\nfor _ in sys.stdin: print(7)")
    path = cache_path(run, CommandMetric.parse(f"seven={command}"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"not parquet")
    card = alone(run, f"seven={command}").card("seven")
    assert (card.verdict, card.failed, card.cells) == ("fails", 4, 4), "constants are ties"
    assert len(pl.read_parquet(path))


def test_numbers_that_cannot_be_kept_are_told(run: Path, tmp_path: Path) -> None:
    command = script(tmp_path, "import sys\nfor _ in sys.stdin: print(7)")
    path = cache_path(run, CommandMetric.parse(f"stuck={command}"))
    path.mkdir(parents=True)  # in the way
    trial = alone(run, f"stuck={command}")
    assert any("numbers of stuck could not be kept" in note for note in trial.notes)


def test_how_commands_are_written() -> None:
    found = CommandMetric.parse("a-b.c,lower-is-better,range=-1:1=python m.py --x=1,range=2=3")
    assert (found.reading.name, found.text) == ("a-b.c", "python m.py --x=1,range=2=3")
    assert (found.reading.higher_is_better, found.reading.typical) == (False, (-1, 1))
    assert CommandMetric.parse("m=./run 'a b'").words == ["./run", "a b"]
    for text in ("python metric.py", "=python", "m=", "../m=python x", "m,upside-down=x"):
        with pytest.raises(SettingsError, match="expected a name, = and a command"):
            CommandMetric.parse(text)
    with pytest.raises(SettingsError, match="No closing quotation"):
        CommandMetric.parse("m=python 'x")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no program 'no-such-program'"):
        measure(own("no-such-program --x"), three(tmp_path))
    (tmp_path / "plain.txt").write_text("x")
    with pytest.raises(InputError, match="there is no program"):
        measure(own(str(tmp_path / "plain.txt")), three(tmp_path))


def test_a_child_that_is_left_behind_holds_nothing_up(tmp_path: Path) -> None:
    text = "sleep 45 & while read path; do echo 1; done"
    began = time.monotonic()
    found = measure(own(f"sh -c {text!r}"), three(tmp_path), patience=30)
    assert found == {"h0": 1.0, "h1": 1.0, "h2": 1.0}
    assert time.monotonic() - began < 15
