from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.budget import Budget
from convergebench.planner import plan
from convergebench.runner import run
from tests.support.runs import one_chain, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


def test_budget_pauses_and_more_money_goes_on(tmp_path: Path, suite: str) -> None:
    editor = f"counting,log={tmp_path / 'log'},price=0.1"
    table = {
        "suite": suite,
        "editors": [editor],
        "cycles": ["copy"],
        "steps": 10,
        "controls": False,
    }
    first = run(tmp_path / "run", table, budget=0.5)
    assert first.steps_made == 5
    assert first.spent == pytest.approx(0.5)
    assert first.stopped == "the budget is used up"
    assert not first.complete
    assert f"Go on with: convergebench run {tmp_path / 'run'} --budget MORE" in str(first)
    assert "It will not suffice" in str(plan(tmp_path / "run"))
    second = run(tmp_path / "run", budget=0.5)
    assert second.steps_made == 0
    assert second.outcomes["over-budget"] == first.outcomes["over-budget"]
    third = run(tmp_path / "run", budget=5)
    assert third.complete
    assert third.outcomes == {"edited": 20}, "a pause that is over is no outcome"
    assert third.spent == pytest.approx(2.0)
    assert len((tmp_path / "log").read_text().splitlines()) == 20


def test_a_call_that_may_have_been_billed_counts(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:sleep-5,price=0.1", budget=9)
    assert chain.spent == pytest.approx(0.2)
    dear = one_chain(tmp_path / "dear", suite, "1:dear;2:refuse,price=0.1", budget=9)
    assert dear.spent == pytest.approx(0.5), "the provider's own figure counts"


@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1), st.booleans()), max_size=60),
    st.floats(0, 10),
)
def test_the_cap_is_never_passed(calls: list[tuple[float, float, bool]], cap: float) -> None:
    budget = Budget(cap, 0.0)
    open_calls: list[tuple[float, float]] = []
    for price, share, settle_one in calls:
        if budget.reserve(price):
            open_calls.append((price, price * share))
        if settle_one and open_calls:
            budget.settle(*open_calls.pop(0))
        assert budget.spent + sum(p for p, _ in open_calls) <= cap + 1e-6
    for pair in open_calls:
        budget.settle(*pair)
    assert budget.spent <= cap + 1e-6
