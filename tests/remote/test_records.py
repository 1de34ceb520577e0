"""What a working copy takes from the store, and what it never takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from convergebench.errors import StoreBusy, StoreDamaged, StoreError
from convergebench.frame import Frame
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket
from convergebench.store import RunStore
from tests.remote.conftest import Shelf
from tests.remote.handmade import CHAIN, KEY, begun, grown, step_of
from tests.remote.objects import client


def test_what_another_machine_changed_or_deleted_is_so_here(shelf: Shelf, tmp_path: Path) -> None:
    store, _ = begun(shelf, tmp_path)
    with store.writing("score"):
        store.write_file("scores/part-1.parquet", b"one")
        store.write_file("scores/part-2.parquet", b"two")
        store.write_json("findings.json", {"a": 1})
    here = RunStore.open(shelf.run).path
    assert {p.name for p in (here / "scores").iterdir()} == {"part-1.parquet", "part-2.parquet"}
    shelf.delete("scores/part-1.parquet")
    shelf.put("scores/part-3.parquet", b"three")
    shelf.put("findings.json", b'{"a": 2}')
    again = RunStore.open(shelf.run)
    assert {p.name for p in (here / "scores").iterdir()} == {"part-2.parquet", "part-3.parquet"}
    assert again.read_json("findings.json") == {"a": 2}


def test_nothing_that_has_not_changed_is_fetched_again(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        grown(store, chain, 1, 2)
    RunStore.open(shelf.run)
    shelf.proxy.forget()
    RunStore.open(shelf.run)
    fetched = {a.key.removeprefix("run/") for a in shelf.proxy.of_kind("GET")}
    assert fetched <= {"run.json", "suite.json", "sources.json"}


def test_a_file_that_was_altered_here_is_not_taken_for_the_stored_one(
    shelf: Shelf, tmp_path: Path
) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, 1)
    path = RunStore.open(shelf.run).path
    (path / CHAIN).write_bytes((path / CHAIN).read_bytes().replace(b"edited", b"editex"))
    assert RunStore.open(shelf.run).chains() == [chain]


HOSTILE = [
    "../../evil.txt",
    "chains/../../../evil.jsonl",
    "chains/ab/../../../evil.jsonl",
    "/etc/evil.json",
    "chains//evil.jsonl",
    "scores/..",
    "chains/ab/%2e%2e%2fevil.jsonl",
    "chains/ab/back\\slash.jsonl",
    "status/../evil.json",
    "judgements/locks/evil",
    "run.lock",
    "cache/ab/evil.png",
    ".stored.json",
    ".copy",
    "ADDRESS",
    "imports/\u202egnp.jsonl",
]


def test_a_hostile_name_never_becomes_a_path(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path)
    stored = []
    for name in HOSTILE:
        status, _ = client(shelf.url).ask("PUT", f"/{shelf.bucket}/run/{name}", b"EVIL")
        stored += [name] if status == 200 else []
    assert len(stored) > 10
    for machine in ("a", "b"):
        shelf.machine(machine)
        store = RunStore.open(shelf.run)
        with store.writing("run"), store.writing("score"):
            pass
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"EVIL" not in path.read_bytes(), path
        assert "evil" not in path.name


def test_a_hostile_part_of_a_log_is_damage(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path)
    shelf.put(f"{CHAIN}@999999999999", b"{}\n")
    with pytest.raises(StoreDamaged, match="are not there"):
        RunStore.open(shelf.run)


def test_another_run_at_the_same_address_is_another_run(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        grown(store, chain, 1)
    for name in shelf.names():
        shelf.delete(name)
    shelf.machine("b")
    other, chain = begun(shelf, tmp_path)
    told = json.loads(shelf.get("run.json"))
    shelf.put("run.json", json.dumps({**told, "created": "2020-01-01T00:00:00Z"}).encode())
    shelf.machine("a")
    assert RunStore.open(shelf.run).chains() == [chain]
    assert other.info.suite == told["suite"]


def test_of_two_that_make_a_run_at_once_one_does(shelf: Shelf, tmp_path: Path) -> None:
    from convergebench.suite import load_suite
    from tests.support.runs import write_suite

    suite = load_suite(write_suite(tmp_path / "suite", size=16))

    def meanwhile(asked: object) -> None:
        if asked.kind == "PUT" and asked.key.endswith("/run.json"):  # type: ignore[attr-defined]
            shelf.put("run.json", b'{"the": "other"}')

    shelf.proxy.trouble = meanwhile
    with pytest.raises(StoreBusy, match="was made by another process just now"):
        RunStore.create(shelf.run, suite, 16)
    assert shelf.get("run.json") == b'{"the": "other"}'
    assert not list((shelf.copy()).glob("run.json"))


def test_a_place_with_other_things_is_not_taken(shelf: Shelf, tmp_path: Path) -> None:
    shelf.put("holiday/beach.jpg", b"sand")
    with pytest.raises(StoreError, match=r"s3://.*/run exists and is not a run directory"):
        begun(shelf, tmp_path)


def test_a_making_that_was_killed_is_gone_on_with(shelf: Shelf, tmp_path: Path) -> None:
    shelf.proxy.trouble = lambda a: "silent" if a.key.endswith("/run.json") else None
    shelf.machine("a", patience=0.1)
    with pytest.raises(StoreError, match="does not answer"):
        begun(shelf, tmp_path)
    shelf.proxy.trouble = lambda _asked: None
    begun(shelf, tmp_path)
    assert RunStore.open(shelf.run).chains()[0].length == 0


@pytest.mark.parametrize("answer", ["lost", "internal"])
def test_an_answer_that_is_lost_on_the_way_changes_nothing(
    shelf: Shelf, tmp_path: Path, answer: str
) -> None:
    """Every write was carried out, or was not, and is asked for again."""
    seen: set[tuple[str, str]] = set()

    def first(asked: object) -> str | None:
        what = (asked.kind, asked.key)  # type: ignore[attr-defined]
        if what in seen or what[0] not in ("PUT", "DELETE"):
            return None
        seen.add(what)
        return answer

    shelf.proxy.trouble = first
    store, chain = begun(shelf, tmp_path)
    with store.writing("run") as notes:
        assert notes == [], "the store can lock, and the lock is our own"
        chain = grown(store, chain, 1, 2)
    assert RunStore.open(shelf.run).chains() == [chain]
    assert shelf.names("run/locks/") == []


def test_a_store_that_cannot_lock_is_told_of_and_used(shelf: Shelf, tmp_path: Path) -> None:
    """As one that takes no notice of the condition, and one that does not know it."""
    from tests.remote.objects import refusal

    shelf.proxy.trouble = lambda a: refusal(501, "NotImplemented") if a.once else None
    store, chain = begun(shelf, tmp_path)
    with store.writing("run") as notes:
        assert any("cannot lock: see to it that one process alone" in note for note in notes)
        chain = grown(store, chain, 1)
    assert RunStore.open(shelf.run).chains() == [chain]


def test_a_torn_line_of_sessions_goes_nowhere(shelf: Shelf, tmp_path: Path) -> None:
    store, _ = begun(shelf, tmp_path)
    with store.writing("run"):
        store.log_session("start", pid=1)
    with open(store.path / "sessions.jsonl", "ab") as file:
        file.write(b'{"event": "sta')
    with (again := RunStore.open(shelf.run)).writing("run"):
        again.log_session("end", pid=2)
    lines = shelf.get("sessions.jsonl").splitlines()
    assert [json.loads(line)["pid"] for line in lines] == [1, 2]


def test_a_record_whose_frame_was_lost_is_not_stored(shelf: Shelf, tmp_path: Path) -> None:
    """A power cut took the frame that was not stored yet: the step is made again."""
    _, chain = begun(shelf, tmp_path)
    shelf.machine("a", patience=0.1)
    store = RunStore.open(shelf.run)
    step, frame = step_of(chain, 1)
    with store.writing("run"):
        shelf.proxy.trouble = lambda a: "silent" if "/locks/" not in a.key else None
        with pytest.raises(StoreError, match="does not answer"):
            store.append(KEY.id, step, frame)
    shelf.proxy.trouble = lambda _asked: None
    (kept,) = store.path.glob("frames/??/*")
    kept.write_bytes(frame.data[:-5])
    with (again := RunStore.open(shelf.run)).writing("run") as notes:
        assert any("a step is made again, its frame was not saved" in note for note in notes)
        assert again.chains() == [chain]
    assert shelf.get(CHAIN).count(b"\n") == 1


def test_a_large_frame_goes_in_parts_and_comes_back(shelf: Shelf, tmp_path: Path) -> None:
    store, _ = begun(shelf, tmp_path)
    frame = Frame(bytes(101 << 20))
    with store.writing("run"):
        store.put(frame)
    assert shelf.proxy.of_kind("POST", "/frames/")
    name = store._frame_name(frame)
    assert Bucket(Address("s3", f"{shelf.bucket}/run")).look(name).size == 101 << 20
    shelf.machine("b")
    assert RunStore.open(shelf.run).frame_bytes(name) == frame.data
