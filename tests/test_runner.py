from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from convergebench.chain import Chain
from convergebench.editor import EditReply, EditRequest
from convergebench.errors import SettingsError, StoreError, StoreMismatch, UnknownName
from convergebench.frame import encode
from convergebench.planner import plan
from convergebench.runner import run
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.store import RunStore
from convergebench.verifier import verify
from convergebench.walk import Progress
from tests.support.runs import one_chain, picture, records, write_suite

pytestmark = pytest.mark.usefixtures("test_plugin")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    return str(write_suite(tmp_path / "suite"))


def outcomes(chain: Chain) -> list[str]:
    return [step.outcome for step in chain.steps]


@pytest.mark.parametrize(
    ("script", "expected", "detail"),
    [
        ("", ["edited"] * 4, ""),
        ("3:refuse", ["edited", "edited", "refused"], "shows a banana"),
        ("2:empty", ["edited", "no-image"], "only text came back"),
        ("1:nothing", ["no-image"], "no bytes"),
        ("2:truncated", ["edited", "malformed"], "png that is cut short"),
        ("2:html", ["edited", "malformed"], "start with '<html>502 Bad Ga'"),
        ("2:fail", ["edited", "failed"], "no such model"),
        ("2:sleep-5", ["edited", "failed"], "timed out after 0.5 s"),
        ("2:bug", ["edited", "failed"], "RuntimeError: unexpected"),
        ("2:none", ["edited", "failed"], "no EditReply (NoneType"),
        ("2:busy|busy|ok", ["edited"] * 4, ""),
        ("2:busy", ["edited", "failed"], "unavailable after 3 attempts: too many requests"),
        ("2:busy-9999", ["edited", "failed"], "unavailable for 9999 s"),
        ("2:busy|refuse", ["edited", "refused"], "banana"),
    ],
)
def test_every_outcome_is_recorded(
    tmp_path: Path, suite: str, script: str, expected: list[str], detail: str
) -> None:
    chain = one_chain(tmp_path, suite, script, retries=2)
    assert outcomes(chain) == expected
    last = chain.steps[-1]
    assert detail in last.detail
    if last.outcome == "malformed":
        assert last.frame is not None
        assert RunStore.open(tmp_path / "run").frame(last.frame).data, "the bytes are kept"
    # A second run has nothing left to do: failures are data.
    assert run(tmp_path / "run").steps_made == 0
    assert verify(tmp_path / "run").sound


def test_what_the_editor_told_is_kept(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:busy|ok")
    first, second = chain.steps[:2]
    assert (first.call.model, first.call.reasoning) == ("scripted-1", "I copied it.")
    assert (first.attempts, second.attempts) == (1, 2)
    assert first.prompt == "Copy the picture."
    assert first.inputs == (chain.frames[0].sha256,)
    assert first.seed == chain.key.seed(1)


def test_an_editor_is_told_whose_edit_it_makes_and_what_it_said_before(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[EditRequest] = []

    def edit(self: object, request: EditRequest) -> EditReply:
        seen.append(request)
        time.sleep(0.02)
        return EditReply(encode(picture(request.step, 48)), session={"turn": request.step})

    monkeypatch.setattr("tests.support.editors.Scripted.edit", edit)
    chain = one_chain(tmp_path, suite, "")
    assert {request.key for request in seen} == {chain.key}
    assert {request.home_size for request in seen} == {(32, 32)}, "the source's, whatever came back"
    assert {request.task for request in seen} == {None}
    assert [dict(turn.session) for turn in seen[-1].history] == [
        {},
        *({"turn": i} for i in (1, 2, 3)),
    ]
    assert [s.call.session for s in chain.steps] == [{"turn": i} for i in (1, 2, 3, 4)]
    assert all(0.02 <= (s.call.latency or 0) <= s.seconds + 0.01 for s in chain.steps)


def test_asked_waiting_time_is_honoured(tmp_path: Path, suite: str) -> None:
    clock = time.monotonic()
    one_chain(tmp_path, suite, "1:busy-0.4|busy-0.3|ok")
    assert time.monotonic() - clock >= 0.7


def test_secrets_do_not_reach_the_record(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_API_KEY", "sk-marker-1234567890")
    chain = one_chain(tmp_path, suite, "2:bug")
    assert "key <SCRIPTED_API_KEY>" in chain.steps[-1].detail
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"sk-marker" not in path.read_bytes()


def test_failed_chains_are_taken_up_again_only_when_asked(tmp_path: Path, suite: str) -> None:
    chain = one_chain(tmp_path, suite, "2:down|down|ok", retries=0)
    assert outcomes(chain) == ["edited", "failed"]
    again = run(tmp_path / "run", retry_failed=True, retries=0)
    assert again.outcomes == {"edited": 1, "failed": 1}, "tried once more, not for ever"
    records = RunStore.open(tmp_path / "run").chains()[0].steps
    assert [r.outcome for r in records] == ["edited", "failed", "failed"]
    assert run(tmp_path / "run", retry_failed=True, retries=2).complete
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert outcomes(chain) == ["edited", "failed", "failed", "edited", "edited", "edited"]
    assert verify(tmp_path / "run").sound


def test_runs_grow(tmp_path: Path, suite: str) -> None:
    path = tmp_path / "run"
    table = {"suite": suite, "editors": ["ref:noise"], "cycles": ["copy"], "rounds": 2}
    first = run(path, table)
    assert (first.chains, first.steps_made) == (
        2 * (1 + len(CONTROLS)),
        2 * 2 * (1 + len(CONTROLS)),
    )
    assert run(path).steps_made == 0
    assert run(path, rounds=3).steps_made == first.chains
    more = run(path, editors=["ref:blur"])
    assert more.steps_made == 2 * 3, "an editor given later joins those the run has"
    assert more.chains == 2 * (2 + len(CONTROLS))
    assert run(path, rounds=4).steps_made == more.chains
    assert len(RunStore.open(path).chains()) == 2 * (2 + len(CONTROLS))


def test_resume_needs_neither_the_suite_nor_its_files(tmp_path: Path, suite: str) -> None:
    path = tmp_path / "run"
    table = {"suite": suite, "editors": ["ref:noise"], "sources": ["s0"], "rounds": 1}
    run(path, table)
    Path(suite).unlink()
    for source in Path(suite).parent.glob("*.png"):
        source.unlink()
    assert run(path, rounds=2, sources=["s0", "s1"]).complete


def test_config_file_with_a_relative_suite(tmp_path: Path, suite: str) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'suite = "suite/suite.toml"\neditors = ["ref:identity"]\nrounds = 1\n'
        '[settings]\nphrasing = [0, 1]\nseed = ["fixed", "none"]\n'
    )
    result = run(tmp_path / "run", config, controls=False)
    # Two sources, two seed policies; copying has two phrasings, the ball one.
    assert result.chains == 2 * 2 * (2 + 1)
    prompts = {s.prompt for c in RunStore.open(tmp_path / "run").chains() for s in c.steps}
    assert {"Copy the picture.", "Make the same picture again."} <= prompts


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"editors": ["ref:jpeg"], "rounds": 2, "steps": 3}, "contradict each other"),
        ({"editors": ["ref:jpeg", "ref:jpeg"]}, "'ref:jpeg' is listed twice"),
        ({"editors": []}, "editors: "),
        ({}, "no editor is named"),
        ({"editors": ["ref:jpeg"], "round": 2}, "round: there is no such key"),
        ({"editor": ["ref:jpeg"]}, "editor: there is no such key|editors: is missing"),
        ({"editors": "ref:jpeg"}, "editors: Input should be a list"),
        ({"editors": ["ref:jpeg"], "settings": {"phrasing": [7]}}, "no prompt has more than 2"),
        ({"editors": ["ref:jpeg"], "rounds": "many"}, "rounds: .*got 'many'"),
        ({"editors": ["ref:jpeg,quality"]}, "'quality' is no option"),
        ({"editors": ["ref:jpeg,quality=high"]}, "quality"),
        ({"editors": ["counting,log=x,price=unknown"], "budget": 3}, "price of counting"),
        ({"editors": ["ref:jpeg"], "settings": {"sed": ["none"]}}, "settings sed: there is no"),
    ],
)
def test_contradictory_settings_get_one_sentence(
    tmp_path: Path, suite: str, table: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        run(tmp_path / "run", {"suite": suite, **table})
    assert not (tmp_path / "run").exists()


def test_unknown_names(tmp_path: Path, suite: str) -> None:
    for table, message in (
        ({"editors": ["rfe:jpeg"]}, "no editor called 'rfe:jpeg'. Did you mean ref:jpeg"),
        ({"editors": ["jpeg"]}, "no editor called 'jpeg'. Did you mean ref:jpeg"),
        ({"editors": ["ref:jpg"]}, "no reference editor called 'jpg'. Did you mean .*jpeg"),
        ({"editors": ["ref:jpeg"], "sources": ["s7"]}, "no source called 's7'"),
        ({"editors": ["ref:jpeg"], "cycles": ["coppy"]}, "Did you mean copy"),
    ):
        with pytest.raises(UnknownName, match=message):
            run(tmp_path / "run", {"suite": suite, **table})


def test_a_directory_of_another_suite_version_is_refused(tmp_path: Path, suite: str) -> None:
    run(tmp_path / "run", {"suite": suite, "editors": ["ref:identity"], "rounds": 1})
    before = records(tmp_path / "run")
    newer = write_suite(tmp_path / "newer", version=2)
    with pytest.raises(StoreMismatch, match="tiny@1, this command asks for tiny@2"):
        run(tmp_path / "run", {"suite": str(newer), "editors": ["ref:identity"]})
    assert records(tmp_path / "run") == before


def test_plan_counts_what_run_does(tmp_path: Path, suite: str) -> None:
    table = {
        "suite": suite,
        "editors": [f"counting,log={tmp_path / 'log'},price=0.04,sleep=2"],
        "rounds": 3,
        "controls": False,
    }
    planned = plan(tmp_path / "run", table)
    # 2 sources × (3 copies + 3 × 2 round-trip steps)
    assert planned.calls == 18
    assert plan(table) == planned
    assert planned.dollars == pytest.approx(18 * 0.04)
    assert planned.rows[0].hours == pytest.approx(6 * 2 / 3600), "the longest chain, in order"
    assert planned.hours == planned.rows[0].hours
    local = plan(config={"suite": suite, "editors": ["ref:noise", "ref:blur"], "controls": False})
    assert local.hours == pytest.approx(sum(row.hours or 0 for row in local.rows)), (
        "one set of cores"
    )
    assert planned.disk > 0
    assert not (tmp_path / "run").exists()
    assert "$0.72" in str(planned)
    cheap = {**table, "editors": [f"counting,log={tmp_path / 'log'},price=0.04"]}
    with pytest.raises(SettingsError, match=r"about \$0.72 on 18 calls, and no budget is set"):
        run(tmp_path / "run", cheap)
    assert not (tmp_path / "log").exists(), "nothing is spent that was not agreed to"
    run(tmp_path / "run", cheap, budget=1)
    after = plan(tmp_path / "run")
    assert (after.calls, after.done) == (0, 18)


def test_frame_directory_and_record_are_flushed_before_the_next_call(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    events: list[int] = []
    fsync = os.fsync

    def noting(fd: int) -> None:
        fsync(fd)
        flushed.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", noting)

    def edit(self: object, request: EditRequest) -> EditReply:
        if request.step > 1:
            frame = request.inputs[0].digest
            (record,) = (tmp_path / "run").glob("chains/*/*.jsonl")
            names = flushed[events[-1] :]
            assert any(name.endswith(f"/{frame}.png") for name in names)
            assert str(tmp_path / "run" / "frames" / frame[:2]) in names
            assert str(record) in names
        events.append(len(flushed))
        return EditReply(encode(picture(50 + request.step)))

    monkeypatch.setattr("tests.support.editors.Scripted.edit", edit)
    chain = one_chain(tmp_path, suite, "")
    assert outcomes(chain) == ["edited"] * 4, chain.steps[-1].detail
    assert len(events) == 4


def test_chains_run_in_parallel_within_the_editors_limit(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Progress] = []
    together = threading.Barrier(8)  # the editor bears 8 calls: fewer would wait here in vain
    active: list[int] = [0, 0]
    guard = threading.Lock()

    def edit(self: object, request: EditRequest) -> EditReply:
        with guard:
            active[0] += 1
            active[1] = max(active)
        together.wait(timeout=30)
        with guard:
            active[0] -= 1
        return EditReply(request.inputs[-1].data)

    monkeypatch.setattr("tests.support.editors.Counting.edit", edit)
    editor = f"counting,log={tmp_path / 'log'}"
    table = {"suite": suite, "editors": [editor], "cycles": ["copy"], "repeats": 8, "steps": 5}
    result = run(tmp_path / "run", table, controls=False, deadline=60, observe=events.append)
    assert result.outcomes == {"edited": 16 * 5}
    assert active == [0, 8]
    assert events[-1].steps_done == events[-1].steps == 80
    assert [e.steps_done for e in events] == sorted(e.steps_done for e in events)


def test_an_error_in_one_worker_ends_the_run_after_the_others_saved(
    tmp_path: Path, suite: str
) -> None:
    editor = f"counting,log={tmp_path / 'log'},sleep=0.05"
    table = {"suite": suite, "editors": [editor], "cycles": ["copy"], "controls": False}
    run(tmp_path / "run", table, steps=1)
    victim = sorted((tmp_path / "run").glob("chains/*/*.jsonl"))[0].parent
    timer = threading.Timer(0.4, lambda: victim.rename(tmp_path / "away"))
    timer.start()
    with pytest.raises(StoreError, match=r"cannot write to .*No such file or directory"):
        run(tmp_path / "run", steps=200)
    timer.join()
    (tmp_path / "away").rename(victim)
    chains = RunStore.open(tmp_path / "run").chains()
    made = len((tmp_path / "log").read_text().splitlines())
    assert sum(chain.length for chain in chains) == made - 1, "only the failed record is missing"


def test_a_call_has_four_times_as_long_as_it_usually_takes() -> None:
    spec = RunSpec.model_validate({"editors": ["ref:blur"]})
    assert [spec.deadline_of(s) for s in (None, 0.05, 30.0, 120.0)] == [120, 120, 120, 480]
    told = RunSpec.model_validate({"editors": ["ref:blur"], "deadline": 60})
    assert told.deadline_of(120.0) == 60


def test_a_value_given_twice_is_no_chain_more(tmp_path: Path) -> None:
    table = {
        "suite": str(write_suite(tmp_path / "suite")),
        "editors": ["ref:identity"],
        "sources": ["s0", "s0"],
        "cycles": ["copy"],
        "settings": {"seed": ["fixed", "fixed"], "temperature": [1, 1.0]},
        "steps": 1,
        "controls": False,
    }
    assert plan(table).calls == 1
    result = run(tmp_path / "run", table)
    assert (result.chains, result.complete) == (1, True)


def test_chains_that_failed_are_told_with_what_to_do(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1)
    table = {"suite": str(suite), "cycles": ["copy"], "steps": 2, "controls": False}
    result = run(tmp_path / "run", {**table, "editors": ["ref:flaky,rate=0,fail=1"]})
    assert "1 chain ended in failure. Take up what failed again with: convergebench run" in str(
        result
    )
    assert "--retry-failed" in str(result)
