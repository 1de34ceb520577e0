"""`convergebench trial`, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from convergebench.store import RunStore
from convergebench.trial import Card, try_metrics
from tests.support.commands import Command
from tests.trial.runs import scored_run

command = Command("trial")
invoke, told, wrong = command.invoke, command.told, command.wrong


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_run(tmp_path_factory.mktemp("trial"), repeats=1)


def test_the_success_table_is_printed_and_page_and_tables_are_written(run: Path) -> None:
    text = told(run, "--steps", "3,5")
    assert "Trial of no-reference metrics on run" in text
    for column in ("verdict", "ref:blur", "ref:noise,sigma=8", "τ [95 %]", "noticed at"):
        assert column in text
    folder = run / "trial"
    names = ("gaps", "individual", "success", "trajectories", "single", "premise", "cards")
    for name in names:
        assert pl.read_csv(folder / f"{name}.csv").height, name
    assert (folder / "trial.html").stat().st_size > 1000
    kept = json.loads((folder / "trial.json").read_text())
    trial = try_metrics(run, steps=[3, 5])
    assert [Card.model_validate(card) for card in kept["cards"]] == list(trial.cards)
    gaps = pl.read_csv(folder / "gaps.csv")
    assert gaps["gap"].to_list() == pytest.approx(trial.gaps["gap"].to_list())


def test_json_has_the_cards(run: Path, tmp_path: Path) -> None:
    words = ("--steps", "3,5", "--metric", "noise", "--json", "--out", tmp_path / "o")
    found = json.loads(told(run, *words))
    assert [card["metric"] for card in found["cards"]] == ["noise"]
    assert found["steps"] == [3, 5]
    assert (tmp_path / "o" / "trial.json").is_file()


def test_ones_own_metric_by_file_and_by_command(run: Path, tmp_path: Path) -> None:
    chains = [c for c in RunStore.open(run).chains() if c.key.cycle.startswith("copy")]
    rows = [(c.key.id, step, step, 9 - step) for c in chains for step in c.held]
    table = pl.DataFrame(rows, schema=["chain", "step", "score", "rating"], orient="row")
    table.drop("rating").write_csv(tmp_path / "file.csv")
    table.drop("score").write_csv(tmp_path / "people.csv")
    script = tmp_path / "metric.py"
    script.write_text("import sys\nfor line in sys.stdin:\n    print(len(line))\n")
    found = json.loads(
        told(
            run,
            "--steps",
            "3,5",
            "--metric",
            "none",
            "--json",
            "--out",
            tmp_path / "o",
            "--scores",
            tmp_path / "file.csv",
            "--lower-is-better",
            "file",
            "--command",
            f"length,range=0:500={sys.executable} {script}",
            "--ratings",
            tmp_path / "people.csv",
        )
    )
    cards = {card["metric"]: card for card in found["cards"]}
    assert cards["file"]["verdict"] == "fully succeeds"
    assert cards["length"]["verdict"] == "fails", "all paths are of one length"
    assert [a["kind"] for a in cards["file"]["agreement"]][-1] == "ratings"


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path) -> None:
    assert "expected whole numbers with commas between" in wrong(run, "--steps", "5;10")
    assert "steps 1 to 5 exist" in wrong(run, "--steps", "10,20")
    assert "convergebench score" in wrong(run, "--steps", "5", "--metric", "piqe")
    assert "Give one with --scores or --command" in wrong(run, "--metric", "none")
    assert "is not a run directory" in wrong(tmp_path)
    assert "Did you mean noise" in wrong(run, "--metric", "noize")
    (tmp_path / "file").write_text("in the way")
    assert "Give another --out" in wrong(run, "--steps", "5", "--out", tmp_path / "file")


def test_a_real_process_says_it_in_one_line_and_exits_with_2(run: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "convergebench", "trial", str(run), "--steps", "5", "--command",
         f"mine={sys.executable} -c 'raise SystemExit(4)'"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "convergebench: --command mine failed with exit code 4" in done.stderr


def test_several_runs_write_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from convergebench.runner import run as run_
    from convergebench.scorer import score
    from tests.support.runs import write_suite

    suite = write_suite(tmp_path / "suite")
    for name, editor in (("x", "ref:noise,sigma=8"), ("y", "ref:blur")):
        told_ = {"suite": str(suite), "editors": [editor], "cycles": ["copy"], "steps": 3}
        run_(tmp_path / name, {**told_, "controls": False})
        score(tmp_path / name, ["noise"], workers=1)
    monkeypatch.chdir(tmp_path)
    text = told("x", "y", "--steps", "3")
    assert "Trial of no-reference metrics on x + y" in text
    assert (tmp_path / "x+y-trial" / "trial.html").is_file()
    assert not (tmp_path / "x" / "trial").exists()
