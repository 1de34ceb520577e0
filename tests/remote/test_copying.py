"""Copying a run between a directory and an address, there and back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from convergebench import copying
from convergebench.copying import copy
from convergebench.errors import StoreBusy, StoreDamaged, StoreError
from convergebench.remote.bucket import Bucket
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.support.runs import write_suite

WORKING = ("run.lock", "score.lock", "reserve", ".copy-of")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    suite = write_suite(folder / "suite", size=16)
    told = {"suite": str(suite), "editors": ["ref:noise"], "steps": 4, "controls": False}
    run(folder / "run", told)
    score(folder / "run", ["psnr"], workers=1)
    return folder / "run"


def files(path: Path) -> dict[str, bytes]:
    found = (p for p in path.rglob("*") if p.is_file() and "status" not in p.parts)
    told = {p.relative_to(path).as_posix(): p.read_bytes() for p in found}
    return {name: data for name, data in told.items() if name not in WORKING}


def test_there_and_back_is_the_same_bytes(shelf: Shelf, made: Path, tmp_path: Path) -> None:
    before = files(made)
    there = copy(made, shelf.run)
    assert there.frames == len([name for name in before if name.startswith("frames/")])
    assert {name: shelf.get(name) for name in shelf.names() if "status" not in name} == before
    assert verify(shelf.run).sound
    back = copy(shelf.run, tmp_path / "back")
    assert (back.frames, back.records) == (there.frames, there.records)
    assert files(tmp_path / "back") == before
    assert files(made) == before
    assert run(tmp_path / "back").steps_made == 0
    assert run(shelf.run).steps_made == 0


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_copy_that_was_interrupted_goes_on(
    shelf: Shelf, made: Path, tmp_path: Path, way: str
) -> None:
    origin, target = made, shelf.run
    if way == "back":
        copy(made, shelf.run)
        origin, target = shelf.run, tmp_path / "back"  # type: ignore[assignment]
    shelf.machine("a", patience=0.1)
    shelf.proxy.forget()
    method = "PUT" if way == "there" else "GET"

    def down(asked: object) -> str | None:
        mine = shelf.proxy.of_kind(method, "/frames/")
        return "silent" if len(mine) > 4 else None

    shelf.proxy.trouble = down
    with pytest.raises(StoreError, match="does not answer"):
        copy(origin, target)
    assert not RunStore.is_run(target) if way == "back" else "run.json" not in shelf.names()
    if way == "back":
        with pytest.raises(StoreError, match="not finished: give its convergebench copy again"):
            RunStore.open(target)
    shelf.proxy.trouble = lambda _asked: None
    shelf.machine("a")
    result = copy(origin, target)
    assert result.known >= 1
    assert result.frames >= 1
    assert verify(target).sound
    assert {name for name in shelf.names() if name == ".copy-of"} == set()
    assert steps_of(target) == steps_of(made)


def steps_of(place: str | Path) -> object:
    return [chain.steps for chain in RunStore.open(place).chains()]


def test_a_taken_place_is_refused(shelf: Shelf, made: Path, tmp_path: Path) -> None:
    copy(made, shelf.run)
    before = shelf.client.all(shelf.bucket)
    with pytest.raises(StoreError, match=r"s3://.* exists and is no unfinished copy of"):
        copy(made, shelf.run)
    assert shelf.client.all(shelf.bucket) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    with pytest.raises(StoreError, match="exists and is no unfinished copy of s3://"):
        copy(shelf.run, tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["diary.txt"]


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_copy_that_has_gone_on_is_not_overwritten(
    shelf: Shelf, made: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after `run.json`, before the mark is taken away; then the copy is worked on."""
    origin, target = (made, shelf.run) if way == "there" else (shelf.run, str(tmp_path / "back"))
    if way == "back":
        copy(made, shelf.run)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        where, name = (Bucket, "delete") if way == "there" else (copying, "sync_directory")
        patch.setattr(where, name, killed)
        if way == "back":
            unlink = Path.unlink
            patch.setattr(
                Path,
                "unlink",
                lambda self, **k: killed() if self.name == ".copy-of" else unlink(self, **k),
            )
        with pytest.raises(KeyboardInterrupt):
            copy(origin, target)
    marked = (
        ".copy-of" in shelf.names() if way == "there" else (tmp_path / "back/.copy-of").exists()
    )
    assert marked
    run(target, steps=6)
    after = steps_of(target)
    assert after != steps_of(origin)
    for match in ("is a copy of .* already, and whole", "exists and is no unfinished copy"):
        with pytest.raises(StoreError, match=match):
            copy(origin, target)
        assert steps_of(target) == after
    assert verify(target).sound


def test_a_copy_whose_last_file_a_power_cut_took_goes_on(made: Path, tmp_path: Path) -> None:
    copy(made, tmp_path / "there")
    mark = f"{RunStore.open(made).info.suite} {RunStore.open(made).info.created}\n"
    (tmp_path / "there" / ".copy-of").write_text(mark)
    (tmp_path / "there" / "run.json").write_bytes(b"")
    assert copy(made, tmp_path / "there").frames == 0
    assert files(tmp_path / "there") == files(made)


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_damaged_frame_is_refused(shelf: Shelf, made: Path, tmp_path: Path, way: str) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(made, damaged)
    victim = sorted(damaged.glob("frames/??/*"))[0]
    if way == "there":
        victim.write_bytes(victim.read_bytes()[:-1])
        with pytest.raises(StoreDamaged, match="is not what its name says"):
            copy(damaged, shelf.run)
        assert "run.json" not in shelf.names()
        return
    copy(damaged, shelf.run)
    name = victim.relative_to(damaged).as_posix()
    shelf.put(name, shelf.get(name)[:-1])
    with pytest.raises(StoreDamaged, match=f"{name} of s3://.* is not what its name says"):
        copy(shelf.run, tmp_path / "back")
    assert not RunStore.is_run(tmp_path / "back")


def test_a_run_that_is_worked_on_is_not_copied(shelf: Shelf, made: Path, tmp_path: Path) -> None:
    copy(made, shelf.run)
    with (
        RunStore.open(shelf.run).writing("score"),
        pytest.raises(StoreBusy, match=r"s3://.* is being written"),
    ):
        copy(shelf.run, tmp_path / "back")


def test_what_is_no_run_is_not_copied(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        copy(shelf.run, tmp_path / "back")
    assert not (tmp_path / "back").exists()
