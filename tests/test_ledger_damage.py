"""Ledgers and chains that somebody edited, or a kill cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.money.ledger import Ledger, Reserved
from convergebench.planner import plan
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import one_chain, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


def test_no_two_calls_have_one_name(tmp_path: Path, suite: str) -> None:
    """Free calls that were turned away have a number and no line."""
    chain = one_chain(tmp_path, suite, "2:busy|dear")
    name = chain.steps[1].call.ledger
    assert name.endswith(".2.2")
    store = RunStore.open(tmp_path / "run")
    ledger = Ledger(store)
    assert ledger.name(chain.key.id, 2).endswith(".2.3")
    line = ledger.entries[name].reserved
    mended = line.model_dump() | {"call": name.replace(".2.2", ".3.1"), "step": 3}
    ledger.write(Reserved.model_validate(mended))
    assert ledger.name(chain.key.id, 3).endswith(".3.2")


def test_what_is_no_number_of_dollars_is_damage(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, ",price=0.1", budget=9)
    file = tmp_path / "run" / "ledger.jsonl"
    file.write_text(file.read_text().replace('"dollars":0.1,"basis"', '"dollars":NaN,"basis"', 1))
    assert "line 2" in str(verify(tmp_path / "run"))


def test_a_chain_whose_header_was_cut_off_is_begun_again(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, ",price=0.1", budget=9, steps=1)
    (records,) = (tmp_path / "run").glob("chains/*/*.jsonl")
    records.write_bytes(records.read_bytes()[:40])
    (tmp_path / "run" / "ledger.jsonl").unlink()
    assert plan(tmp_path / "run").calls == 1
    assert run(tmp_path / "run").complete
    assert verify(tmp_path / "run").sound


@pytest.mark.parametrize(("number", "word"), [(0, "reserved"), (1, "settled")])
def test_a_line_that_is_there_twice_is_damage(
    tmp_path: Path, suite: str, number: int, word: str
) -> None:
    one_chain(tmp_path, suite, ",price=0.1", budget=9)
    file = tmp_path / "run" / "ledger.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[number]]))
    assert f"is {word} twice" in str(verify(tmp_path / "run"))
