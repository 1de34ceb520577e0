"""Machines that work on one run at the same time, and what each does to the other's."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from convergebench.errors import StoreBusy
from convergebench.remote import lease, logs
from convergebench.standing import status
from convergebench.store import ANSWERS, RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.handmade import begun, grown
from tests.remote.objects import Asked

FIRST, SECOND = "locks/run-000000000001.json", "locks/run-000000000002.json"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BEAT", 0.15), ("LEASE", 1.2), ("DOUBT", 0.6), ("LOOK", 0.1)):
        monkeypatch.setattr(lease, name, seconds)


def opened(shelf: Shelf, machine: str) -> RunStore:
    shelf.machine(machine)
    return RunStore.open(shelf.run)


def lock_of(pid: int) -> bytes:
    """The lock of a process on a machine that nothing more is heard of."""
    told = {
        "pid": pid,
        "host": f"host{pid}",
        "since": "noon",
        "copy": f"c{pid}",
        "token": f"t{pid}",
    }
    return json.dumps({**told, "beat": 0}).encode()


@pytest.mark.parametrize("what", ["score", "failures"])
def test_what_ends_beside_a_run_leaves_its_logs_alone(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The other machine's logs are in parts, and grow while we are at it."""
    monkeypatch.setattr(logs, "PART", 600)
    monkeypatch.setattr("convergebench.remote.copy.PART", 600)
    store, chain = begun(shelf, tmp_path)
    ledger = b""

    def work(*seeds: int) -> None:
        nonlocal chain, ledger
        for seed in seeds:
            chain = grown(store, chain, seed)
            line = json.dumps({"paid": seed, "for": "x" * 200}).encode()
            store.append_ledger(line)
            ledger += line + b"\n"

    with store.writing("run"):
        work(*range(8))
        there = opened(shelf, "b")
        with there.writing(what):
            work(*range(10, 18))
        parts = [name for name in shelf.names() if "@" in name]
        assert {name.partition("@")[0][:6] for name in parts} == {"chains", "ledger"}
        third = opened(shelf, "c")
        assert third.chains() == [chain]
        assert (third.path / "ledger.jsonl").read_bytes() == ledger
        work(*range(20, 24))
    assert not [name for name in shelf.names() if "@" in name]
    assert shelf.get("ledger.jsonl") == ledger
    for machine in "abc":
        assert opened(shelf, machine).chains() == [chain]
    assert not verify(shelf.run).missing


@pytest.mark.parametrize("seen", ["let go while it is watched", "let go after it was watched"])
def test_a_lock_of_an_old_name_may_be_a_new_one(shelf: Shelf, tmp_path: Path, seen: str) -> None:
    """B lets go, C makes a lock of the same name, and we come in between."""
    store, _ = begun(shelf, tmp_path)
    shelf.put(FIRST, lock_of(7))
    looks: list[str] = []

    def meanwhile(asked: Asked) -> None:
        if asked.kind == "GET" and asked.key.endswith(FIRST):
            looks.append(asked.key)
            if len(looks) == 2 and "while" in seen:
                shelf.delete(FIRST)
        elif asked.kind == "PUT" and "/locks/run-" in asked.key:
            shelf.put(FIRST, lock_of(8))

    shelf.proxy.trouble = meanwhile
    with pytest.raises(StoreBusy, match="is being written by process 8 on host8"):
        store.writing("run").__enter__()
    assert shelf.names("run/locks/") == [FIRST]
    assert shelf.get(FIRST) == lock_of(8)


def test_who_let_go_while_it_was_watched_was_not_taken_over(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    shelf.put(FIRST, lock_of(7))
    threading.Timer(0.5, lambda: shelf.delete(FIRST)).start()
    with store.writing("run") as notes:
        assert notes == []
        grown(store, chain, 1)
        assert shelf.names("run/locks/") == [FIRST], "numbers begin anew"
    shelf.put(FIRST, lock_of(7))
    with store.writing("run") as notes:
        assert any("took over from process 7" in note for note in notes)


def test_who_wakes_up_as_it_is_taken_over_keeps_it(shelf: Shelf, tmp_path: Path) -> None:
    store, _ = begun(shelf, tmp_path)
    shelf.put(FIRST, lock_of(7))
    awake = lock_of(7).replace(b'"beat": 0', b'"beat": 1')

    def meanwhile(asked: Asked) -> None:
        if asked.kind == "PUT" and asked.key.endswith(SECOND):
            shelf.put(FIRST, awake)

    shelf.proxy.trouble = meanwhile
    with pytest.raises(StoreBusy, match="is being written by process 7"):
        store.writing("run").__enter__()
    assert shelf.names("run/locks/") == [FIRST]


def test_answers_that_two_machines_store_at_once_are_all_stored(
    shelf: Shelf, tmp_path: Path
) -> None:
    begun(shelf, tmp_path)
    stores = [opened(shelf, machine) for machine in "abc"]
    stores.append(opened(shelf, "a"))  # and another process on the first
    gate = threading.Barrier(len(stores))

    def slowly(asked: Asked) -> None:
        if asked.kind == "GET" and asked.key.endswith(ANSWERS):
            time.sleep(0.5)

    def work(number: int) -> None:
        gate.wait()
        path = stores[number].path / ANSWERS
        path.parent.mkdir(exist_ok=True)
        with open(path, "ab") as file:
            file.write(b'{"paid": %d}\n' % number)
        stores[number].stored(ANSWERS)

    shelf.put(ANSWERS, b'{"paid": "before"}\n')
    shelf.proxy.trouble = slowly
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    paid = [json.loads(line)["paid"] for line in shelf.get(ANSWERS).splitlines()]
    assert sorted(map(str, paid)) == ["0", "1", "2", "3", "before"]
    assert shelf.names("run/locks/") == []


def test_a_merge_that_was_killed_holds_others_up_for_a_lease_at_most(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, _ = begun(shelf, tmp_path)
    shelf.put("locks/merge-000000000001.json", lock_of(7))
    began = time.monotonic()
    store.log_session("start", pid=1)
    assert 1.0 < time.monotonic() - began < 60
    assert b'"start"' in shelf.get("sessions.jsonl")
    assert shelf.names("run/locks/") == []


def test_an_answer_that_a_kill_cut_off_is_cut_off(shelf: Shelf, tmp_path: Path) -> None:
    """A judge would take it for a line that somebody has altered."""
    store, _ = begun(shelf, tmp_path)
    path = store.path / ANSWERS
    path.parent.mkdir()
    path.write_bytes(b'{"paid": 1}\n{"pai')
    store.stored(ANSWERS)
    assert path.read_bytes() == shelf.get(ANSWERS) == b'{"paid": 1}\n'


def test_status_sees_the_other_machine_past_a_lock_that_a_kill_left_here(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, _ = begun(shelf, tmp_path)
    left = {"pid": 1, "host": "here", "since": "yesterday"}
    (store.path / "run.lock").write_text(json.dumps(left))
    (work,) = status(shelf.run).works
    assert (work.state, work.pid) == ("killed", 1)
    there = opened(shelf, "b")
    with there.writing("run"):
        shelf.machine("a")
        found = status(shelf.run)
        assert found.working
        assert found.works[0].pid != 1


def test_a_wait_for_a_lock_is_told_once(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = begun(shelf, tmp_path)
    shelf.put(FIRST, lock_of(7))
    capsys.readouterr()
    with store.writing("run"):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{shelf.run}: waiting up to 1 s to see whether process 7 on host7")


def test_a_wait_for_the_store_is_told_once(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        capsys.readouterr()
        tries: list[int] = []

        def down(asked: Asked) -> str | None:
            tries.extend([1] if "/chains/" in asked.key else [])
            return "slow-down" if "/chains/" in asked.key and len(tries) < 10 else None

        shelf.proxy.trouble = down
        grown(store, chain, 1)
        assert len(tries) == 10
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{shelf.run} does not answer (")
