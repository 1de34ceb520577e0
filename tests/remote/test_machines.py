"""One run and two machines, each with a folder of working copies of its own."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from convergebench.errors import StoreBusy, StoreError
from convergebench.remote import lease, logs
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.handmade import CHAIN, KEY, begun, grown, step_of


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BEAT", 0.15), ("LEASE", 1.2), ("DOUBT", 0.6), ("LOOK", 0.1)):
        monkeypatch.setattr(lease, name, seconds)


def opened(shelf: Shelf, machine: str, patience: float = 20.0) -> RunStore:
    shelf.machine(machine, patience)
    return RunStore.open(shelf.run)


def test_a_run_goes_to_and_fro_between_machines(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, 1, 2)
    there = opened(shelf, "b")
    assert there.chains() == [chain]
    with there.writing("run") as notes:
        assert notes == []
        chain = grown(there, chain, 3, 4)
    back = opened(shelf, "a")
    with back.writing("run") as notes:
        assert notes == []
        chain = grown(back, chain, 5)
    for machine in "ab":
        assert opened(shelf, machine).chains() == [chain]
        assert verify(shelf.run).sound
    copies = [shelf.copy(machine) / CHAIN for machine in "ab"]
    assert [c.read_bytes() for c in copies] == [shelf.get(CHAIN)] * 2


def test_while_one_works_the_other_is_told_within_seconds(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        there = opened(shelf, "b")
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"s3://.* is being written by process \d+ .* \(run\)"):
            there.writing("run").__enter__()
        assert time.monotonic() - began < 10
        with there.writing("score"), pytest.raises(StoreBusy, match=r"^s3://"):
            store.writing("run").__enter__()  # on the same machine
        grown(store, chain, 1)
    with there.writing("run"):
        assert there.chains()[0].length == 1


def test_a_killed_holder_is_taken_over_when_it_has_been_silent(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, chain = begun(shelf, tmp_path)
    held = store.writing("run")
    held.__enter__()
    grown(store, chain, 1)
    (own,) = store._copy._leases  # type: ignore[union-attr]
    own._over.set()  # it beats no more: as good as killed
    own._thread.join()
    there = opened(shelf, "b")
    began = time.monotonic()
    with there.writing("run") as notes:
        assert 1.0 < time.monotonic() - began < 60
        assert any("took over from process" in note for note in notes)
        grown(there, there.chains()[0], 2)
        # The old one wakes up, and writes nothing more.
        before = shelf.client.all(shelf.bucket)
        step, frame = step_of(chain, 3)
        with pytest.raises(StoreBusy, match="was taken over by process"):
            store.append(KEY.id, step, frame)
        with pytest.raises(StoreBusy, match="was taken over"):
            store.write_file("findings.json", b"{}")
        after = shelf.client.all(shelf.bucket)
        for beat in (before, after):
            beat.pop(next(name for name in beat if "/locks/" in name))
        assert after == before
    held.__exit__(None, None, None)  # its own end disturbs nothing, either
    assert verify(shelf.run).sound
    assert len(opened(shelf, "b").chains()[0].steps) == 2


def test_a_holder_that_sleeps_through_a_whole_other_session_notices(
    shelf: Shelf, tmp_path: Path
) -> None:
    """Numbers of locks begin anew: the one it finds may have its own name and be another's."""
    store, chain = begun(shelf, tmp_path)
    held = store.writing("run")
    held.__enter__()
    (own,) = store._copy._leases  # type: ignore[union-attr]
    own._over.set()
    own._thread.join()
    with (there := opened(shelf, "b")).writing("run"):
        chain_there = grown(there, there.chains()[0], 1)
    third = opened(shelf, "c")
    with third.writing("run"):
        assert own.name in shelf.names("run/locks/"), "or this tests nothing"
        time.sleep(1.0)
        step, frame = step_of(chain, 9)
        with pytest.raises(StoreBusy, match="was taken over"):
            store.append(KEY.id, step, frame)
        grown(third, chain_there, 2)
    held.__exit__(None, None, None)
    assert opened(shelf, "b").chains()[0].length == 2
    assert shelf.names("run/locks/") == []


def test_a_holder_that_was_cut_off_writes_nothing_when_it_is_heard_again(
    shelf: Shelf, tmp_path: Path
) -> None:
    """It is in the middle of trying again when the other takes over."""
    store, chain = begun(shelf, tmp_path)
    store = opened(shelf, "a", patience=60)
    failed: list[BaseException] = []
    down = threading.Event()
    refused = step_of(chain, 1)[0].model_copy(update={"outcome": "refused", "frame": None})

    def work() -> None:
        try:
            with store.writing("run"):
                down.set()
                shelf.proxy.trouble = lambda _asked: "silent"
                store.append(KEY.id, refused)
        except StoreError as error:
            failed.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    assert down.wait(30)
    # The other machine has another way to the store.
    for name, value in shelf.machine("b").items():
        shelf.patch.setenv(name, shelf.url if name == "AWS_ENDPOINT_URL" else value)
    with (there := RunStore.open(shelf.run)).writing("run"):
        chain_there = grown(there, there.chains()[0], 2)
        stored = shelf.get(CHAIN)
        shelf.proxy.trouble = lambda _asked: None
        worker.join(60)
        assert shelf.get(CHAIN) == stored
    assert isinstance(failed[0], StoreBusy), failed
    assert RunStore.open(shelf.run).chains() == [chain_there]


@pytest.mark.parametrize("jump", [(7200.0, 0.0), (-7200.0, 0.0), (0.0, 7200.0)])
def test_a_clock_that_jumps_costs_a_look_and_no_lease(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: tuple[float, float]
) -> None:
    """One of the two clocks is set, or stood still while the machine slept."""
    monkeypatch.setattr(lease, "BEAT", 600.0)
    monkeypatch.setattr(lease, "DOUBT", 300.0)
    clocks = lease._clocks
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, 1)
        before = len(shelf.proxy.of_kind("LIST", "/locks"))
        chain = grown(store, chain, 2)
        assert len(shelf.proxy.of_kind("LIST", "/locks")) == before
        monkeypatch.setattr(
            lease, "_clocks", lambda: tuple(n + by for n, by in zip(clocks(), jump, strict=True))
        )
        chain = grown(store, chain, 3, 4)
        assert len(shelf.proxy.of_kind("LIST", "/locks")) == before + 1
    assert RunStore.open(shelf.run).chains() == [chain]


def test_two_that_come_at_once_do_not_both_get_it(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path)
    stores = [opened(shelf, machine) for machine in "abcd"]
    inside, most, got = [0], [0], [0]
    lock, gate = threading.Lock(), threading.Barrier(len(stores))

    def work(store: RunStore) -> None:
        gate.wait()
        try:
            with store.writing("run"):
                with lock:
                    inside[0] += 1
                    got[0] += 1
                    most[0] = max(most[0], inside[0])
                time.sleep(0.5)
                with lock:
                    inside[0] -= 1
        except StoreBusy:
            pass

    for _ in range(3):
        threads = [threading.Thread(target=work, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most[0] == 1
    assert got[0] >= 1


def test_a_lock_that_appears_while_ours_is_made_is_respected(shelf: Shelf, tmp_path: Path) -> None:
    """Numbers begin anew when nobody holds it, so two may make locks of different numbers."""
    store, _ = begun(shelf, tmp_path)
    other = b'{"pid": 7, "host": "elsewhere", "since": "now", "copy": "x", "token": "y", "beat": 0}'

    def meanwhile(asked: object) -> None:
        if asked.kind == "PUT" and "/locks/run-" in asked.key:  # type: ignore[attr-defined]
            shelf.put("locks/run-000000000002.json", other)

    shelf.proxy.trouble = meanwhile
    with pytest.raises(StoreBusy, match="is being written by process 7 on elsewhere"):
        store.writing("run").__enter__()
    assert shelf.names("run/locks/") == ["locks/run-000000000002.json"]


def test_what_was_recorded_here_and_went_on_elsewhere_is_kept_aside(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, chain = begun(shelf, tmp_path)
    step, frame = step_of(chain, 1)
    store = opened(shelf, "a", patience=0.1)
    with store.writing("run"):
        shelf.proxy.trouble = lambda a: "silent" if "/locks/" not in a.key else None
        with pytest.raises(StoreError, match="does not answer"):
            store.append(KEY.id, step, frame)
    shelf.proxy.trouble = lambda _asked: None
    with (there := opened(shelf, "b")).writing("run"):
        chain = grown(there, chain, 2)
    back = opened(shelf, "a")  # a reader sets it aside, the writer is told
    with back.writing("run") as notes:
        assert back.chains() == [chain]
        (note,) = [n for n in notes if "went on elsewhere" in n]
    (aside,) = shelf.copy("a").glob("chains/*/*.diverged-*")
    assert str(aside) in note
    assert step.model_dump_json() in aside.read_text()
    assert verify(shelf.run).sound
    with opened(shelf, "a").writing("run") as notes:
        assert not any("elsewhere" in n for n in notes), "told once"
    assert not [name for name in shelf.names() if "diverged" in name]


def test_what_was_not_stored_is_stored_first(shelf: Shelf, tmp_path: Path) -> None:
    _, chain = begun(shelf, tmp_path)
    step, frame = step_of(chain, 1)
    store = opened(shelf, "a", patience=0.1)
    with store.writing("run"):
        shelf.proxy.trouble = lambda a: "silent" if "/locks/" not in a.key else None
        with pytest.raises(StoreError, match="kept on this machine"):
            store.append(KEY.id, step, frame)
    assert shelf.get(CHAIN).count(b"\n") == 1
    shelf.proxy.trouble = lambda _asked: None
    assert opened(shelf, "b").chains()[0].length == 0
    back = opened(shelf, "a")
    assert back.chains()[0].length == 1
    shelf.proxy.forget()
    with back.writing("run") as notes:
        assert any("1 record stored that an earlier session could not" in note for note in notes)
    assert shelf.get(CHAIN).count(b"\n") == 2
    assert shelf.proxy.of_kind("LIST", "/frames") == []
    assert opened(shelf, "b").chains()[0].length == 1
    assert verify(shelf.run).sound


def test_score_on_one_machine_while_the_other_runs(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, 1)
        store.log_session("start", command="run", pid=1)
        there = opened(shelf, "b")
        with there.writing("score"):
            there.log_session("start", command="score", pid=2)
            there.write_file("scores/part-1.parquet", b"rows")
            chain = grown(store, chain, 2)
            assert there.chain(KEY.id) == chain
            there.refresh()
            assert there.chains() == [chain]
            store.log_session("end", pid=1)
            there.log_session("end", pid=2)
    lines = [json.loads(line) for line in shelf.get("sessions.jsonl").splitlines()]
    assert sorted((line["event"], line["pid"]) for line in lines) == [
        ("end", 1), ("end", 2), ("start", 1), ("start", 2),
    ]  # fmt: skip
    for machine in "ab":
        path = opened(shelf, machine).path
        assert (path / "scores/part-1.parquet").read_bytes() == b"rows"
        here = {line for line in (path / "sessions.jsonl").read_text().splitlines() if line}
        assert here == set(shelf.get("sessions.jsonl").decode().splitlines())


def test_a_reader_comes_while_the_parts_are_put_together(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PART", 600)
    monkeypatch.setattr("convergebench.remote.copy.PART", 600)
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, *range(8))
        assert any("@" in name for name in shelf.names("run/chains/"))
        there = opened(shelf, "b")
        shelf.machine("c")
        done: list[int] = []
        joined: list[int] = []

        def put_together(asked: object) -> None:
            key, kind = asked.key, asked.kind  # type: ignore[attr-defined]
            if kind == "GET" and "@" in key and not done:
                done.append(1)
                store._copy._records.compact("run")  # type: ignore[union-attr]
                joined.append(1)

        shelf.proxy.trouble = put_together
        assert RunStore.open(shelf.run).chains() == [chain]
        assert done, "or this tests nothing"
        chain = grown(store, chain, *range(20, 25))
        done.clear()
        assert there.chain(KEY.id) == chain
        assert len(joined) == 2
    assert not [name for name in shelf.names() if "@" in name]
    assert opened(shelf, "b").chains() == [chain]
