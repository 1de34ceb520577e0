"""What is on this machine alone: it is kept, marked, and stored when it can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from convergebench.disk import hold_lock
from convergebench.errors import StoreBusy, StoreError
from convergebench.store import ANSWERS, RunStore
from convergebench.suite import load_suite
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.handmade import CHAIN, KEY, begun, grown, step_of
from tests.support.commands import Command

LINE = b'{"paid": "for"}'


def marked(shelf: Shelf) -> bool:
    return (shelf.copy() / "UNSTORED").exists()


def refuse(store: RunStore) -> None:
    (chain,) = store.chains()
    step = step_of(chain, 1)[0].model_copy(update={"outcome": "refused", "frame": None})
    store.append(KEY.id, step)


def answer(store: RunStore) -> None:
    path = store.path / ANSWERS
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(LINE + b"\n")
    store.stored(ANSWERS)


WORK: dict[str, tuple[Callable[[RunStore], object], str]] = {
    "step": (lambda store: grown(store, store.chains()[0], 1), CHAIN),
    "refused step": (refuse, CHAIN),
    "ledger": (lambda store: store.append_ledger(LINE), "ledger.jsonl"),
    "answer": (answer, ANSWERS),
}


def failed(shelf: Shelf, work: Callable[[RunStore], object], name: str) -> bytes:
    """What a session leaves here whose store took everything but that record."""
    shelf.machine("a", patience=0.1)
    store = RunStore.open(shelf.run)
    with store.writing("run"):
        assert marked(shelf), "should we be killed"
        shelf.proxy.trouble = lambda a: "silent" if a.key.endswith(name) else None
        with pytest.raises(StoreError, match="does not answer"):
            work(store)
    shelf.proxy.trouble = lambda _asked: None
    shelf.machine("a")
    return (store.path / name).read_bytes()


@pytest.mark.parametrize("what", WORK)
def test_a_copy_with_something_that_was_not_stored_says_so(
    shelf: Shelf, tmp_path: Path, what: str
) -> None:
    begun(shelf, tmp_path)
    assert not marked(shelf), "all is stored"
    work, name = WORK[what]
    kept = failed(shelf, work, name)
    assert list(shelf.copy().glob("frames/??/*")) == []
    assert marked(shelf)
    store = RunStore.open(shelf.run)  # as `status` does
    assert marked(shelf)
    assert name not in shelf.names() or shelf.get(name) != kept
    with store.writing("run"):
        assert shelf.get(name) == kept, "stored first, whoever has looked meanwhile"
    assert not marked(shelf)


@pytest.mark.parametrize("what", WORK)
def test_verify_names_records_that_are_on_this_machine_alone(
    shelf: Shelf, tmp_path: Path, what: str
) -> None:
    """Who reads `sound` may delete the working copy."""
    begun(shelf, tmp_path)
    work, name = WORK[what]
    failed(shelf, work, name)
    for _ in range(2):
        found = verify(shelf.run)
        assert found.unstored == [f"records of {name}"]
        assert found.to_dict()["unstored"] == found.unstored
        assert not found.sound
        assert f"not stored yet, on this machine: records of {name}" in found.defects
        assert f"Store it from here with: convergebench run {shelf.run}" in str(found)
    shelf.machine("b")
    assert verify(shelf.run).unstored == [], "nothing of it is there"
    shelf.machine("a")
    with RunStore.open(shelf.run).writing("run"):
        pass
    assert verify(shelf.run).unstored == []


def test_verify_after_a_kill_between_the_disk_and_the_store(shelf: Shelf, tmp_path: Path) -> None:
    """No session could tell: the line is in the file here, and that is all."""
    store, chain = begun(shelf, tmp_path)
    assert Command("verify").told(shelf.run).endswith("sound\n")
    step = step_of(chain, 1)[0].model_copy(update={"outcome": "refused", "frame": None})
    with open(store.path / CHAIN, "ab") as file:
        file.write(step.model_dump_json().encode() + b"\n")
    result = Command("verify").invoke(shelf.run)
    assert result.exit_code == 1
    assert "not all of it stored yet" in result.stdout
    assert f"records of {CHAIN}" in result.stdout
    assert f"Store it from here with: convergebench run {shelf.run}" in result.stdout
    with RunStore.open(shelf.run).writing("run"):
        pass
    assert Command("verify").told(shelf.run).endswith("sound\n")


def test_verify_calls_sound_what_can_be_made_again_and_keeps_the_copy(
    shelf: Shelf, tmp_path: Path
) -> None:
    """Scores, findings; and where a session is at work, it cannot tell at all."""
    store, _ = begun(shelf, tmp_path)
    with store.writing("run"):
        found = verify(shelf.run)
        assert found.sound
        assert f"Do not delete the working copy {store.path}" in str(found)
    assert verify(shelf.run).notes == []
    (store.path / "findings.json").write_text("{}")
    assert verify(shelf.run).sound
    assert verify(shelf.run).notes == []
    (store.path / "scores" / "1.parquet").write_bytes(b"hours of work")
    found = verify(shelf.run)
    assert (found.sound, found.unstored) == (True, [])
    assert f"Do not delete the working copy {store.path}" in str(found)


def test_a_session_for_another_purpose_leaves_the_mark(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path)
    failed(shelf, *WORK["step"])
    store = RunStore.open(shelf.run)
    with store.writing("score"):
        pass
    assert marked(shelf)
    with store.writing("run"), store.writing("score"):
        pass
    assert not marked(shelf)


def test_answers_that_were_never_stored_are_found(shelf: Shelf, tmp_path: Path) -> None:
    """Judges write them outside of any session; the command was killed."""
    store, _ = begun(shelf, tmp_path)
    path = store.path / ANSWERS
    path.parent.mkdir()
    path.write_bytes(LINE + b"\n")
    store = RunStore.open(shelf.run)
    assert marked(shelf)
    with store.writing("score"):
        assert shelf.get(ANSWERS) == LINE + b"\n"
    assert not marked(shelf)


def test_records_that_went_elsewhere_keep_the_mark(shelf: Shelf, tmp_path: Path) -> None:
    begun(shelf, tmp_path)
    failed(shelf, *WORK["refused step"])
    shelf.machine("b")
    with (there := RunStore.open(shelf.run)).writing("run"):
        grown(there, there.chains()[0], 2)
    shelf.machine("a")
    with RunStore.open(shelf.run).writing("run"):
        pass
    (aside,) = shelf.copy().glob("chains/*/*.diverged-*")
    assert marked(shelf)
    aside.unlink()
    with RunStore.open(shelf.run).writing("run"):
        pass
    assert not marked(shelf)


def test_where_no_run_is_found_the_copy_stays(shelf: Shelf, tmp_path: Path) -> None:
    """Another server, by mistake: what was never stored is stored when it is the right one."""
    begun(shelf, tmp_path)
    kept = failed(shelf, *WORK["step"])
    objects = {name: shelf.get(name) for name in shelf.names()}
    for name in objects:
        shelf.delete(name)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"is not a run directory \(no run.json\)"):
            RunStore.open(shelf.run)
    path = shelf.copy()
    assert (path / CHAIN).read_bytes() == kept
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    for name, data in objects.items():
        shelf.put(name, data)
    with RunStore.open(shelf.run).writing("run") as notes:
        assert any("1 record stored that an earlier session could not" in n for n in notes)
    assert shelf.get(CHAIN) == kept
    assert verify(shelf.run).sound


def test_a_new_run_sets_the_copy_aside_and_the_old_one_brings_it_back(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, _ = begun(shelf, tmp_path)
    kept = failed(shelf, *WORK["step"])
    objects = {name: shelf.get(name) for name in shelf.names()}
    for name in objects:
        shelf.delete(name)
    (old.path / "run.json").write_text(
        (old.path / "run.json").read_text().replace(old.info.created, "2020-01-01T00:00:00Z")
    )
    told = objects["run.json"].replace(old.info.created.encode(), b"2020-01-01T00:00:00Z")
    capsys.readouterr()
    store = RunStore.create(shelf.run, load_suite(tmp_path / "suite" / "suite.toml"), 16)
    (aside,) = [p for p in old.path.parent.iterdir() if p.name.startswith(f"{old.path.name}.")]
    assert (aside / CHAIN).read_bytes() == kept
    assert (aside / "UNSTORED").exists()
    assert f"it is kept in {aside}" in capsys.readouterr().err
    with store.writing("run") as notes:
        assert any(str(aside) in note for note in notes)
        store.append_ledger(LINE)
    assert store.chains() == []
    assert (store.path / "ADDRESS").read_text() == f"{shelf.run}\n"
    for name, data in {**objects, "run.json": told}.items():
        shelf.put(name, data)
    with RunStore.open(shelf.run).writing("run") as notes:
        assert any(f"kept in {aside} is used" in note for note in notes)
        assert any("1 record stored that an earlier session could not" in n for n in notes)
    assert shelf.get(CHAIN) == kept
    assert not aside.exists()


def test_a_copy_that_somebody_works_on_is_not_set_aside(shelf: Shelf, tmp_path: Path) -> None:
    store, chain = begun(shelf, tmp_path)
    told = json.loads(shelf.get("run.json"))
    shelf.put("run.json", json.dumps({**told, "created": "2020-01-01T00:00:00Z"}).encode())
    with (
        hold_lock(store.path / "run.lock", "run"),
        pytest.raises(StoreBusy, match=r"is another run than the one that process \d+ \(run\)"),
    ):
        RunStore.open(shelf.run)
    assert (store.path / CHAIN).exists()
    assert RunStore.open(shelf.run).chains() == [chain]


@pytest.mark.parametrize("name", [CHAIN, "ledger.jsonl", ANSWERS, "run.json"])
def test_what_the_store_has_lost_is_kept_and_stored_again(
    shelf: Shelf, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        chain = grown(store, chain, 1, 2)
        store.append_ledger(LINE)
        answer(store)
    store = RunStore.open(shelf.run)
    kept = shelf.get(name)
    shelf.delete(name)
    capsys.readouterr()
    for _ in range(2):
        store.refresh()
        assert (store.path / name).read_bytes() == kept
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"{name} was in the store and is no longer: it is kept on this machine"
    assert marked(shelf)
    with store.writing("run") as notes:
        assert line in notes
        assert shelf.get(name) == kept
    assert not marked(shelf)
    assert RunStore.open(shelf.run).chains() == [chain]
    shelf.delete(name)
    with store.writing("run") as notes:
        assert any(f"{name} was in the store and is no longer: it is stored" in n for n in notes)
    assert shelf.get(name) == kept


@pytest.mark.parametrize("cached", [True, False])
def test_a_chain_that_was_lost_with_its_frames(shelf: Shelf, tmp_path: Path, cached: bool) -> None:
    """Frames that are here are stored again; records of those that are not are kept aside."""
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        grown(store, chain, 1, 2)
    kept = shelf.get(CHAIN)
    step, _ = step_of(chain, 1)
    lost = [name for name in shelf.names("run/frames/") if step.frame.sha256 in name]  # type: ignore[union-attr]
    RunStore.open(shelf.run)
    for name in [CHAIN, *lost]:
        shelf.delete(name)
        if not cached:
            (store.path / "cache" / name.removeprefix("frames/")).unlink(missing_ok=True)
    with RunStore.open(shelf.run).writing("run"):
        pass
    asides = [path.read_bytes() for path in store.path.glob("chains/*/*.diverged-*")]
    assert asides == ([] if cached else [kept])
    assert shelf.get(CHAIN).count(b"\n") == (3 if cached else 1)
    assert verify(shelf.run).sound
