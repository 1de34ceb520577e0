from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convergebench.bundler import bundle
from convergebench.chain import Chain
from convergebench.errors import SettingsError, StoreDamaged
from convergebench.money.ledger import KILLED, read_ledger
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.unbundler import unbundle
from convergebench.verifier import verify
from convergebench.walk import Progress
from tests.support.runs import one_chain, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


def lines(run_path: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (run_path / "ledger.jsonl").read_text().splitlines()]


def settled(run_path: Path) -> list[tuple[float, str, str]]:
    found = [line for line in lines(run_path) if line["event"] == "settled"]
    return [(line["dollars"], line["basis"], line["outcome"]) for line in found]


def check_sums(run_path: Path) -> None:
    chains = RunStore.open(run_path).chains()
    total = sum(dollars for dollars, _, _ in settled(run_path))
    assert sum(chain.spent for chain in chains) == pytest.approx(total)
    assert verify(run_path).sound, verify(run_path).defects


def only(run_path: Path) -> Chain:
    (chain,) = RunStore.open(run_path).chains()
    return chain


def test_every_try_is_reserved_and_settled(tmp_path: Path, suite: str) -> None:
    script = "1:busy|ok;2:ok;3:refuse,price=0.01/0.04/0.1,account=acme/f00"
    chain = one_chain(tmp_path, suite, script, budget=9)
    path = tmp_path / "run"
    assert settled(path) == [
        (0, "none", "unavailable"),
        (0.04, "rule", "edited"),
        (0.04, "rule", "edited"),
        (0, "none", "refused"),
    ]
    first = lines(path)[0]
    assert (first["event"], first["dollars"], first["expected"]) == ("reserved", 0.1, 0.04)
    assert (first["chain"], first["step"], first["attempt"]) == (chain.key.id, 1, 1)
    assert first["provider"] == "acme", "whose account, but nothing of its key"
    assert [s.call.basis for s in chain.steps] == ["rule", "rule", ""]
    assert chain.steps[0].call.ledger == lines(path)[2]["call"]
    assert chain.steps[0].call.caveats == ("keeps a watermark",)
    check_sums(path)


def test_free_calls_leave_no_ledger(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:busy|ok")
    assert chain.length == 4
    assert not (tmp_path / "run" / "ledger.jsonl").exists()
    assert {(s.call.cost, s.call.basis, s.call.ledger) for s in chain.steps} == {(0.0, "", "")}


def test_a_free_call_that_costs_something_is_entered(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, "2:dear")
    assert settled(tmp_path / "run") == [(0.5, "reported", "edited")]
    check_sums(tmp_path / "run")


def test_an_unknown_price_is_not_called_nothing(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:dear,price=unknown")
    assert [s.call.cost for s in chain.steps] == [None, 0.5, None, None]
    check_sums(tmp_path / "run")


def test_what_a_refusal_told_is_recorded_and_paid(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:toldrefuse,price=0.1", budget=9)
    call = chain.steps[1].call
    assert (call.model, call.request_id, call.cost) == ("scripted-2", "req-7", 0.02)
    assert call.usage == {"tokens": 3}
    assert call.basis == "reported"
    assert call.latency is not None
    assert settled(tmp_path / "run")[-1] == (0.02, "reported", "refused")
    check_sums(tmp_path / "run")


def test_odd_answers_are_kept_without_secrets(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_API_KEY", "sk-marker-1234567890")
    chain = one_chain(tmp_path, suite, "2:odd;3:bug,price=0.1", budget=9)
    assert chain.steps[1].call.parameters == {"when": "x", "key": "<SCRIPTED_API_KEY>"}
    assert chain.steps[1].call.cost == 0.1, "not a number is no cost"
    assert chain.steps[2].call.basis == "assumed", "a bug after sending may have been billed"
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"sk-marker" not in path.read_bytes()


@pytest.mark.parametrize(
    ("script", "repeat_lost", "outcomes", "costs"),
    [
        ("2:lost|ok", 1, ["edited", "failed", "edited", "edited", "edited"], [1, 1, 1, 1, 1]),
        ("2:lost|lost|ok", 1, ["edited", "failed", "failed"], [1, 1, 1]),
        ("2:lost|lost|ok", 2, ["edited", *["failed"] * 2, *["edited"] * 3], [1] * 6),
        ("2:lost|ok", 0, ["edited", "failed"], [1, 1]),
        ("2:lost-0.03|busy|ok", 1, ["edited", "failed", *["edited"] * 3], [1, 0.3, 1, 1, 1]),
        ("2:late|ok", 1, ["edited", "failed"], [1, 1]),
        ("2:sleep-5", 1, ["edited", "failed"], [1, 1]),
    ],
)
def test_lost_calls_are_paid_and_repeated_so_often(
    tmp_path: Path,
    suite: str,
    script: str,
    repeat_lost: int,
    outcomes: list[str],
    costs: list[float],
) -> None:
    more: dict[str, Any] = {"budget": 9, "repeat_lost": repeat_lost}
    chain = one_chain(tmp_path, suite, f"{script},price=0.1", **more)
    assert [s.outcome for s in chain.steps] == outcomes
    assert [s.call.cost for s in chain.steps] == pytest.approx([c * 0.1 for c in costs])
    lost = chain.steps[1].call
    assert lost.basis == ("assumed" if costs[1] == 1 else "reported")
    assert chain.ended == (outcomes[-1] == "failed")
    check_sums(tmp_path / "run")
    assert run(tmp_path / "run").steps_made == 0


def test_a_lost_step_counts_once_in_the_end(tmp_path: Path, suite: str) -> None:
    one_chain(tmp_path, suite, "2:lost|ok,price=0.1", budget=9)
    assert run(tmp_path / "run").outcomes == {"edited": 4}


def test_a_timed_out_task_is_collected_at_no_new_price(tmp_path: Path, suite: str) -> None:
    log, path = tmp_path / "log", tmp_path / "run"
    table = {
        "suite": suite,
        "editors": [f"polling,log={log},sleep=1,price=0.05/0.1/0.3"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 1,
        "controls": False,
    }
    first = run(path, table, budget=9, deadline=0.3)
    assert first.outcomes == {"failed": 1}
    assert first.spent == pytest.approx(0.1)
    assert only(path).steps[-1].call.task["id"] in log.read_text()
    assert run(path, deadline=0.3).steps_made == 0, "a failure is data until asked for again"
    again = run(path, retry_failed=True, deadline=0.3)
    assert again.spent == pytest.approx(0.1), "asked for again, still not ready"
    last = run(path, retry_failed=True, deadline=30)
    assert last.outcomes == {"edited": 1}
    assert last.spent == pytest.approx(0.1)
    assert [line.split()[0] for line in log.read_text().splitlines()].count("billed") == 1
    check_sums(path)


def test_a_timed_out_task_that_is_gone_is_begun_again(tmp_path: Path, suite: str) -> None:
    log, path = tmp_path / "log", tmp_path / "run"
    table = {
        "suite": suite,
        "editors": [f"polling,log={log},sleep=0.5"],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 1,
        "controls": False,
    }
    run(path, table, budget=9, deadline=0.3)
    Path(f"{log}.gone").touch()

    def back(progress: Progress) -> None:
        if "vanished" in progress.event:
            Path(f"{log}.gone").unlink()

    last = run(path, retry_failed=True, deadline=30, repeat_lost=0, observe=back)
    assert last.outcomes == {"edited": 1}
    assert [(s.outcome, s.call.cost) for s in only(path).steps] == [
        ("failed", 0.1),
        ("failed", 0.0),
        ("edited", 0.1),
    ]
    words = [line.split()[0] for line in log.read_text().splitlines()]
    assert [w for w in words if w != "told"] == ["billed", "polled", "billed"]
    check_sums(path)


def test_a_blocked_account_pauses_its_chains_and_no_other(tmp_path: Path, suite: str) -> None:
    paid, path = tmp_path / "paid", tmp_path / "run"
    table = {
        "suite": suite,
        "editors": [
            f"scripted,script=1:ok;2:blocked-{paid},price=0.1,account=acme/k",
            f"scripted,script=1:ok;3:ok;2:blocked-{paid},price=0.1,account=acme/k",
            f"counting,log={tmp_path / 'log'},price=0.1",
        ],
        "cycles": ["copy"],
        "steps": 3,
        "controls": False,
    }
    first = run(path, table, budget=9)
    assert not first.complete
    assert not first.interrupted
    assert "blocked by acme: no credit left" in first.stopped
    assert "Go on with: convergebench run" in str(first)
    by_editor: dict[str, list[Chain]] = {}
    for chain in RunStore.open(path).chains():
        by_editor.setdefault(chain.key.editor.partition(",")[0], []).append(chain)
    assert [chain.length for chain in by_editor["counting"]] == [3, 3], "other accounts go on"
    for chain in by_editor["scripted"]:
        assert chain.steps[-1].outcome == "blocked"
        assert not chain.ended
    calls = len(lines(path))
    second = run(path, budget=9)
    assert second.outcomes["blocked"] == 4, "once, as of a budget that is used up"
    blocked = [line for line in lines(path)[calls:] if line.get("outcome") == "blocked"]
    assert len(blocked) <= 2, "a closed account is not hammered"
    paid.touch()
    third = run(path, budget=9)
    assert third.complete
    assert third.stopped == ""
    assert third.outcomes == {"edited": 18}
    check_sums(path)


def test_a_long_wait_asked_for_by_the_limit_pauses(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:limited-9999", retries=2)
    assert [s.outcome for s in chain.steps] == ["edited", "blocked"]
    assert "limited for 9999 s" in chain.steps[-1].detail
    assert not chain.ended


def test_the_limiter_is_told_of_too_many_calls(tmp_path: Path, suite: str) -> None:
    events: list[Progress] = []
    table = {
        "suite": suite,
        "editors": ["scripted,script=2:limited-0.05|ok,price=0.1,account=acme/k"],
        "cycles": ["copy"],
        "steps": 3,
        "controls": False,
        "budget": 9,
    }
    assert run(tmp_path / "run", table, observe=events.append).complete
    told = [event.event for event in events]
    assert any("acme: too many calls, at most 1 at once after 0.1 s" in text for text in told), told
    assert (0, "none", "limited") in settled(tmp_path / "run")
    check_sums(tmp_path / "run")


def torn(path: Path, keep: int, half: bytes = b"") -> None:
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:keep]) + half)


def test_a_kill_between_any_two_writes_is_mended(tmp_path: Path, suite: str) -> None:
    """All prefixes of what is written, in the order in which it is written."""
    path = tmp_path / "run"
    one_chain(tmp_path, suite, "2:busy|ok;3:lost|ok,price=0.1", budget=9)
    (records,) = path.glob("chains/*/*.jsonl")
    ledger = (path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    chain = records.read_bytes().splitlines(keepends=True)
    written: list[tuple[str, bytes]] = [("chain", chain[0])]
    steps = iter(chain[1:])
    for line in ledger:
        told = json.loads(line)
        if told["event"] == "settled" and told["outcome"] != "unavailable":
            written.append(("chain", next(steps)))
        written.append(("ledger", line))
    assert next(steps, None) is None
    for cut in range(1, len(written) + 1):
        for half in (b"", b'{"event":"settl'):
            for name, file in (("chain", records), ("ledger", path / "ledger.jsonl")):
                file.write_bytes(b"".join(data for kind, data in written[:cut] if kind == name))
            with open(path / "ledger.jsonl", "ab") as end:
                end.write(half)
            if half:
                assert "torn record" in str(verify(path))
            else:
                assert verify(path).sound, verify(path).defects
            result = run(path)
            assert result.complete, cut
            assert result.outcomes == {"edited": 4}
            check_sums(path)
            assert all(entry.settled for entry in read_ledger(path).values())
            assumed = [s for s in only(path).steps if s.detail == KILLED]
            assert len(assumed) == (
                written[cut - 1][0] == "ledger" and b'"reserved"' in written[cut - 1][1]
            )
            assert all(s.call.cost == 0.1 and s.call.basis == "assumed" for s in assumed)


def test_verify_names_what_ledger_and_records_disagree_on(tmp_path: Path, suite: str) -> None:
    path = tmp_path / "run"
    one_chain(tmp_path, suite, ",price=0.1", budget=9)
    file = path / "ledger.jsonl"
    good = file.read_text()
    file.write_text(good.replace('"dollars":0.1,"basis"', '"dollars":0.3,"basis"', 1))
    assert "a difference of $0.2000" in str(verify(path))
    file.unlink()
    assert "does not know call" in str(verify(path))
    file.write_text(good)
    (records,) = path.glob("chains/*/*.jsonl")
    kept = records.read_bytes()
    torn(records, 3)
    assert "no record of" in str(verify(path))
    run(path)
    assert verify(path).sound, "what was settled is recorded, and the step made again"
    assert only(path).length == 4
    records.write_bytes(kept)
    file.write_text(good.replace('"event":"task"', '"event":"x"').replace('"call"', '"cal"', 1))
    with pytest.raises(StoreDamaged, match="line 1"):
        read_ledger(path)
    assert not verify(path).sound


def test_a_bundle_carries_the_ledger(tmp_path: Path, suite: str) -> None:
    path = tmp_path / "run"
    one_chain(tmp_path, suite, "2:lost|ok,price=0.1", budget=9)
    bundle(path, tmp_path / "run.zip")
    assert verify(tmp_path / "run.zip").sound
    unbundle(tmp_path / "run.zip", tmp_path / "back")
    assert lines(tmp_path / "back") == lines(path)
    check_sums(tmp_path / "back")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": [0.5]}, "takes no temperature, and 0.5 is asked for"),
        ({"resolution": ["2K"]}, "cannot follow resolution 2K: it makes native, 1K"),
        ({"resolution": ["interleaved"]}, "cannot follow resolution interleaved"),
        ({"session": ["chat"]}, "cannot follow session chat: it can stateless"),
        ({"seed": ["fixed"]}, "takes no seed, and a fixed one is asked for"),
    ],
)
def test_settings_an_editor_cannot_follow_are_refused(
    tmp_path: Path, suite: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        one_chain(tmp_path, suite, ",can=little", settings=settings)
    assert not (tmp_path / "run").exists()


def test_settings_it_can_follow_are_and_a_seed_it_cannot_take_is_not_sent(
    tmp_path: Path, suite: str
) -> None:
    settings = {"resolution": ["1K"], "seed": ["per-step"]}
    chain = one_chain(tmp_path, suite, ",can=little", settings=settings)
    assert [s.seed for s in chain.steps] == [None] * 4


def test_an_editor_that_lacks_something_is_planned_but_not_run(tmp_path: Path, suite: str) -> None:
    with pytest.raises(SettingsError, match="cannot be run here: set ACME_KEY"):
        one_chain(tmp_path, suite, ",lacks=set ACME_KEY")
    assert not (tmp_path / "run").exists()


def test_a_refusal_told_in_the_wrong_words_is_a_refusal(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:oddrefuse,price=0.1", budget=9)
    assert [s.outcome for s in chain.steps] == ["edited", "refused"]
    check_sums(tmp_path / "run")


def test_a_chain_that_waits_for_a_try_is_not_kept_by_a_closed_account(
    tmp_path: Path, suite: str
) -> None:
    table = {
        "suite": suite,
        "editors": [
            "scripted,script=1:busy-300|ok,price=0.1,account=acme/k",
            "scripted,script=1:ok;2:blocked,price=0.1,account=acme/k",
        ],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": 2,
        "controls": False,
    }
    result = run(tmp_path / "run", table, budget=9)
    assert result.outcomes == {"edited": 1, "blocked": 2}
