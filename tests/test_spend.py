from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convergebench import cli
from convergebench.errors import SettingsError, StoreError, UnknownName
from convergebench.money.spending import spend
from convergebench.planner import plan
from convergebench.runner import run
from convergebench.store import RunStore
from tests.support.runs import one_chain, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


def invoke(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def test_spend_tells_how_sure_the_dollars_are(tmp_path: Path, suite: str) -> None:
    script = "1:busy|dear;2:lost|ok;3:toldrefuse,price=0.1"
    chain = one_chain(tmp_path, suite, script, budget=2)
    told = spend(tmp_path / "run").to_dict()
    (row,) = told["editors"]
    assert (row["calls"], row["billed"]) == (5, 4)
    assert row["reported"] == pytest.approx(0.52)
    assert row["rule"] == pytest.approx(0.1)
    assert row["assumed"] == pytest.approx(0.1)
    assert row["unedited"] == pytest.approx(0.12)
    assert told["dollars"] == pytest.approx(chain.spent) == pytest.approx(0.72)
    assert told["left"] == pytest.approx(1.28)
    shown = invoke("spend", tmp_path / "run")
    assert shown.exit_code == 0
    assert "$0.7200 spent" in shown.stdout
    assert "Budget: $2.00, $1.28 left." in shown.stdout
    assert json.loads(invoke("spend", tmp_path / "run", "--json").stdout) == told


def test_spend_lists_the_ledger_call_by_call(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, "1:busy|ok,price=0.1", budget=2)
    shown = invoke("spend", tmp_path / "run", "--calls")
    assert "5 calls in the ledger" in shown.stdout
    assert "unavailable" in shown.stdout
    listed = json.loads(invoke("spend", tmp_path / "run", "--calls", "--json").stdout)["calls"]
    assert [call["outcome"] for call in listed] == ["unavailable", *["edited"] * 4]
    assert sum(call["dollars"] for call in listed) == pytest.approx(0.4)
    assert {call["attempt"] for call in listed} == {1, 2}


def test_spend_works_without_a_ledger(tmp_path: Path, suite: str) -> None:
    table = {"suite": suite, "editors": ["ref:noise"], "cycles": ["copy"], "steps": 2}
    run(tmp_path / "run", table)
    told = spend(tmp_path / "run").to_dict()
    assert told["dollars"] == 0
    assert told["left"] is None
    assert {row["calls"] for row in told["editors"]} == {4}
    assert invoke("spend", tmp_path / "run").exit_code == 0
    with pytest.raises(StoreError, match="not a run directory"):
        spend(tmp_path / "nowhere")


def test_spend_shows_what_a_kill_left_open(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, ",price=0.1/0.1/0.3", budget=2)
    file = tmp_path / "run" / "ledger.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    (records,) = (tmp_path / "run").glob("chains/*/*.jsonl")
    kept = records.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    records.write_text("".join(kept[:-1]))
    told = spend(tmp_path / "run")
    assert told.to_dict()["editors"][0]["open"] == pytest.approx(0.3)
    assert told.left == pytest.approx(2 - 0.3 - 0.3)
    assert "not settled: $0.3000" in str(told)
    assert "open" in str(told.calls)


def test_settings_from_the_command_line(tmp_path: Path, suite: str) -> None:
    words = ("-s", suite, "-e", "scripted", "--cycle", "copy", "--steps", "1", "--no-controls")
    done = invoke(
        "run",
        tmp_path / "run",
        *words,
        "--setting",
        "resolution=1K,2K",
        "--setting",
        "phrasing=0,1",
    )
    assert done.exit_code == 0, done.output
    chains = RunStore.open(tmp_path / "run").chains()
    found = {(c.key.settings.resolution, c.key.settings.phrasing) for c in chains}
    assert found == {("1K", 0), ("1K", 1), ("2K", 0), ("2K", 1)}
    more = invoke("run", tmp_path / "run", "--setting", "temperature=0.5")
    assert more.exit_code == 0, more.output
    assert len(RunStore.open(tmp_path / "run").chains()) == 16, "added to those it has"
    planned = plan(tmp_path / "run", settings={"session": ["chat"]})
    assert (planned.done, planned.calls) == (16, 16)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resolution", "not of the form NAME=VALUE"),
        ("resolution=1K,", "not of the form NAME=VALUE"),
        ("phrasing=first", "phrasing=first: expected a whole number"),
        ("temperature=hot", "expected a number, or none"),
        ("resolution=3K", "settings resolution 1: .*got '3K'"),
    ],
)
def test_settings_that_make_no_sense(suite: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        raise invoke("plan", "-s", suite, "-e", "ref:jpeg", "--setting", text).exception


def test_an_unknown_setting_offers_a_near_one(suite: str) -> None:
    with pytest.raises(UnknownName, match=r"no setting called 'sede'\. Did you mean seed"):
        raise invoke("plan", "-s", suite, "-e", "ref:jpeg", "--setting", "sede=none").exception


def test_a_blocked_account_exits_with_1(tmp_path: Path, suite: str) -> None:
    words = ("-s", suite, "-e", "scripted,script=1:blocked", "--cycle", "copy", "--steps", "1")
    done = invoke("run", tmp_path / "run", *words, "--no-controls", "--repeat-lost", "2")
    assert done.exit_code == 1, done.output
    assert "Stopped: blocked by scripted" in done.stdout
    assert json.loads((tmp_path / "run" / "spec.json").read_text())["repeat_lost"] == 2
