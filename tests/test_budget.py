from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.errors import SettingsError
from convergebench.money.budget import Budget
from convergebench.planner import plan
from convergebench.runner import run
from convergebench.verifier import verify
from tests.support.editors import Spread
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


CENTS = st.integers(0, 40).map(lambda cents: cents / 100)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prices=st.lists(CENTS, min_size=3, max_size=3).map(sorted),
    cap=st.integers(0, 600).map(lambda cents: cents / 100),
    pace=st.integers(0, 999),
)
def test_eight_chains_in_flight_never_pass_the_cap(
    tmp_path: Path, suite: str, prices: list[float], cap: float, pace: int
) -> None:
    """Real threads, a real ledger, and a provider that bills what it likes between low and high."""
    Spread.billed = Spread.highest = 0.0
    editor = f"spread,price={'/'.join(map(str, prices))},pace={pace}"
    table: dict[str, Any] = {
        "suite": suite,
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "repeats": 8,
        "steps": 3,
        "controls": False,
        "budget": cap,
        "repeat_lost": 10,
    }
    path = Path(tempfile.mkdtemp(dir=tmp_path)) / "run"
    result = run(path, table)
    assert Spread.highest <= cap + 1e-6, "not at any moment"
    assert result.spent == pytest.approx(Spread.billed)
    assert verify(path).sound, verify(path).defects
    if not result.complete:
        assert result.over_budget
        assert result.spent + prices[2] > cap - 1e-6, "it did not give up while money was left"
    shutil.rmtree(path)


@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=40), st.floats(0, 10)
)
@settings(max_examples=40)
def test_threads_that_wait_for_money_get_what_is_left(
    calls: list[tuple[float, float]], cap: float
) -> None:
    budget, stop, guard = Budget(cap, 0.0), threading.Event(), threading.Lock()
    refused: list[float] = []
    todo = list(calls)
    highest = [0.0]

    def work() -> None:
        while True:
            with guard:
                if not todo:
                    return
                price, share = todo.pop()
            if not budget.reserve(price, stop):
                with guard:
                    refused.append(budget.spent + price)
                continue
            with guard:
                highest[0] = max(highest[0], budget.committed)
            time.sleep(0.0003 * share)
            budget.settle(price, price * share)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert highest[0] <= cap + 1e-6
    assert budget.spent <= cap + 1e-6
    assert all(total > cap - 1e-6 for total in refused), "refused only what could not be paid"
    assert budget.committed == budget.spent


def test_who_waits_for_money_is_woken_by_a_stop() -> None:
    budget, stop = Budget(1.0, 0.0), threading.Event()
    assert budget.reserve(0.8, stop)
    threading.Timer(0.1, stop.set).start()
    clock = time.monotonic()
    assert not budget.reserve(0.5, stop)
    assert time.monotonic() - clock < 30, "nobody gives money back"


def test_what_an_earlier_session_left_open_is_held() -> None:
    budget = Budget(1.0, 0.2, held=0.5)
    assert not budget.reserve(0.4)
    budget.take_up(0.5)
    budget.settle(0.5, 0.1)
    assert budget.reserve(0.4)
    budget.keep(0.4)
    assert budget.committed == pytest.approx(0.7)
    assert not budget.reserve(0.4)


def test_plan_gives_a_range_per_step(tmp_path: Path, suite: str) -> None:
    table = {
        "suite": suite,
        "editors": ["scripted,price=0.01/0.02/0.04"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 3,
        "controls": False,
        "settings": {"resolution": ["interleaved", "native"]},
    }
    planned = plan(table)
    # Interleaved goes 1K, 2K, 4K, and 2K is dearer by half.
    assert planned.price is not None
    assert planned.price.low == pytest.approx(0.01 * 6.5)
    assert planned.dollars == pytest.approx(0.02 * 6.5)
    assert planned.price.high == pytest.approx(0.04 * 6.5)
    assert "$0.13 ($0.07 to $0.26)" in str(planned)
    told = planned.to_dict()
    assert told["dollars_high"] == pytest.approx(0.26)
    assert told["editors"][0]["dollars_low"] == pytest.approx(0.065)
    with pytest.raises(SettingsError, match=r"about \$0.13 \(\$0.07 to \$0.26\) .*--budget 0.26"):
        run(tmp_path / "run", table)
    assert "It may not suffice" in str(plan(table, budget=0.2))
    native = plan({**table, "settings": {"resolution": ["native"]}})
    large = plan({**table, "settings": {"resolution": ["4K"]}})
    assert large.disk == native.disk, "it does not say that it makes another size"


def test_editors_of_one_account_share_its_hours(tmp_path: Path, suite: str) -> None:
    def hours(*accounts: str) -> float:
        names = [
            f"scripted,account={a},pace=3,script=9:{'ok' * (i + 1)}" for i, a in enumerate(accounts)
        ]
        found = plan({"suite": suite, "editors": names, "controls": False}).hours
        assert found is not None
        return found

    apart, together = hours("a/1", "b/1"), hours("a/1", "a/1")
    assert together == pytest.approx(2 * apart)


def test_the_hours_of_what_is_left_are_those_of_the_chains_that_are_left(
    tmp_path: Path, suite: str
) -> None:
    table = {
        "suite": suite,
        "editors": ["scripted,pace=3600"],
        "cycles": ["copy"],
        "controls": False,
    }
    run(tmp_path / "run", table, steps=1)
    assert plan(tmp_path / "run", steps=5).hours == pytest.approx(4), "two chains, two at once"
    run(tmp_path / "run", sources=["s0"], steps=4, config=table)
    assert plan(tmp_path / "run", table, steps=5).hours == pytest.approx(4), "one has 4 to go"


def test_an_editor_that_cannot_be_called_is_planned_with_a_note(suite: str) -> None:
    table = {"suite": suite, "editors": ["scripted,lacks=set ACME_KEY"], "controls": False}
    assert "cannot be run here: set ACME_KEY" in str(plan(table))


def test_a_budget_below_one_call_says_what_is_missing(tmp_path: Path, suite: str) -> None:
    table = {
        "suite": suite,
        "editors": ["scripted,price=0.01/0.02/0.05", "scripted,price=0.1,script=9:ok"],
        "controls": False,
    }
    result = run(tmp_path / "run", table, budget=0.04, steps=1)
    assert (result.steps_made, result.spent) == (0, 0.0)
    assert "may cost up to $0.0500, and $0.0400 of the $0.04 are left" in str(result)
    assert not (tmp_path / "run" / "ledger.jsonl").exists()


def test_a_call_dearer_than_its_highest_price_is_told_and_the_run_stops(
    tmp_path: Path, suite: str
) -> None:
    table = {
        "suite": suite,
        "editors": ["scripted,price=0.1,script=2:dear"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "controls": False,
    }
    result = run(tmp_path / "run", table, budget=0.55, steps=4)
    assert result.spent == pytest.approx(0.6), "the call in flight alone, and none after it"
    assert result.over_budget
    assert "1 call of scripted,price=0.1,script=2:dear cost more than" in str(result)
    assert "$0.5000 instead of $0.1000" in str(result)
    assert verify(tmp_path / "run").sound


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0])
def test_a_budget_is_a_number(tmp_path: Path, suite: str, amount: float) -> None:
    table = {"suite": suite, "editors": ["scripted,price=0.1"]}
    with pytest.raises(SettingsError, match="budget"):
        run(tmp_path / "run", table, budget=amount)
    assert not (tmp_path / "run").exists()


def test_failed_chains_are_not_taken_up_without_a_budget(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, "2:late,price=0.1", budget=9)
    table = {
        "suite": suite,
        "editors": ["scripted,script=2:late,price=0.1"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 4,
        "controls": False,
    }
    assert plan(tmp_path / "run").calls == 0
    assert plan(tmp_path / "run", retry_failed=True).dollars == pytest.approx(0.3)
    assert run(tmp_path / "run", table).complete, "nothing is left to pay for"
    with pytest.raises(SettingsError, match=r"about \$0.30 on 3 calls, and no budget is set"):
        run(tmp_path / "run", table, retry_failed=True)


def test_an_unknown_price_is_no_leave_to_spend_on_another(tmp_path: Path, suite: str) -> None:
    editors = ["scripted,price=unknown", "scripted,price=0.1"]
    table = {"suite": suite, "editors": editors, "controls": False}
    with pytest.raises(SettingsError, match=r"\$3.00 .*price=unknown, whose price is unknown"):
        run(tmp_path / "run", table)
    assert not (tmp_path / "run").exists()


@pytest.mark.timeout(60)
def test_who_waits_for_money_keeps_no_call_from_ending(tmp_path: Path, suite: str) -> None:
    """One call at once: the task's next poll must not wait for the chain that waits for money."""
    editors = [
        f"shop,log={tmp_path / name},script={script},price=0.05/0.1/0.3"
        for name, script in (("a", "1:shaky"), ("b", "1:ok"))
    ]
    table = {
        "suite": suite,
        "editors": editors,
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 1,
        "concurrency": 1,
        "controls": False,
    }
    result = run(tmp_path / "run", table, budget=0.45)
    assert result.complete
    assert result.spent == pytest.approx(0.2)
