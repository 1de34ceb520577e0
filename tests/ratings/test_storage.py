"""Answers on the disk: the first stands, nothing is changed, damage is told."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from convergebench.errors import StoreDamaged, StoreError, StoreMismatch
from convergebench.ratings import storage
from convergebench.ratings.storage import FILE, Answers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Answers.create(tmp_path, "taste", "today")
    return tmp_path


def opened(folder: Path) -> Answers:
    return Answers.open(folder, "taste", "today")


def test_the_first_answer_stands(folder: Path) -> None:
    with opened(folder) as answers:
        assert answers.add("p01", 0, {"a": 1}, milliseconds=10, comment="first", passed=True)
        assert not answers.add("p01", 0, {"a": 2}, milliseconds=20)
        assert answers.add("p02", 0, {"a": 3}, milliseconds=30)
        assert answers.answered("p01") == {0}
    with opened(folder) as answers:
        told = [(a.participant, a.answer, a.comment, a.passed) for a in answers.all()]
    assert told == [("p01", {"a": 1}, "first", True), ("p02", {"a": 3}, None, None)]


def test_twenty_at_once_from_two_connections_give_one_answer_each(folder: Path) -> None:
    with opened(folder) as one, opened(folder) as other, ThreadPoolExecutor(20) as pool:

        def add(number: int) -> bool:
            answers = (one, other)[number % 2]
            return answers.add(f"p{number // 4}", 7, {"a": number}, milliseconds=1)

        saved = list(pool.map(add, range(200)))
        assert sum(saved) == 50
        assert len({a.participant for a in one.all()}) == one.count() == 50


def test_an_answer_is_neither_changed_nor_deleted(folder: Path) -> None:
    with opened(folder) as answers:
        answers.add("p01", 0, {"a": 1}, milliseconds=10)
    with sqlite3.connect(folder / FILE) as raw:
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            raw.execute("UPDATE answers SET answer = '{}'")
        with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
            raw.execute("DELETE FROM answers")
    raw.close()


def test_the_file_is_durable_by_its_settings(folder: Path) -> None:
    with opened(folder) as answers:
        assert answers._rows("PRAGMA journal_mode") == [("wal",)]
        assert answers._rows("PRAGMA synchronous") == [(2,)]


def test_consent_is_kept_with_the_time_it_was_first_given(folder: Path) -> None:
    with opened(folder) as answers:
        assert not answers.consented("p01")
        answers.consent("p01")
        first = answers.consents()
        answers.consent("p01")
        assert answers.consents() == first
        assert answers.consented("p01")


def test_damaged_missing_and_foreign_files_are_told_in_one_sentence(folder: Path) -> None:
    with pytest.raises(StoreMismatch, match="answers of another study"):
        Answers.open(folder, "other", "today")
    with opened(folder) as answers:
        for item in range(300):
            answers.add("p01", item, {"a": "x" * 100}, milliseconds=10)
    data = bytearray((folder / FILE).read_bytes())
    data[4096 * 6 : 4096 * 8] = b"\xff" * 8192
    (folder / FILE).write_bytes(data)
    with pytest.raises(StoreDamaged, match=r"is damaged|cannot be read"):
        opened(folder)
    (folder / FILE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreDamaged, match="cannot be read"):
        opened(folder)
    (folder / FILE).unlink()
    with pytest.raises(StoreError, match="is not there"):
        opened(folder)


def test_a_file_of_a_later_version_is_refused(folder: Path) -> None:
    with sqlite3.connect(folder / FILE) as raw:
        raw.execute("PRAGMA user_version = 9")
    raw.close()
    with pytest.raises(StoreError, match="has version 9"):
        opened(folder)


def test_while_another_process_writes_reading_goes_on_and_writing_gives_up_in_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BUSY", 5.0)
    with opened(folder) as answers, ThreadPoolExecutor(3) as pool:
        answers.add("p01", 0, {"a": 1}, milliseconds=10)
        other = sqlite3.connect(folder / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        waiting = [pool.submit(answers.add, "p02", n, {"a": 1}, milliseconds=1) for n in range(3)]
        time.sleep(0.1)
        assert answers.answered("p01") == {0}
        assert time.monotonic() - begun < 4, "a reader waited for a writer"
        for one in waiting:
            with pytest.raises(StoreError, match="cannot be used now"):
                one.result()
        assert time.monotonic() - begun < 12, "writers waited one after the other"
        late = pool.submit(answers.add, "p02", 0, {"a": 1}, milliseconds=1)
        other.rollback()
        other.close()
        assert late.result()


@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_an_answer_is_not_acknowledged_into_a_file_that_is_no_longer_there(
    folder: Path, how: str
) -> None:
    with opened(folder) as answers:
        answers.add("p01", 0, {"a": 1}, milliseconds=10)
        copy = folder / "copy"
        copy.write_bytes((folder / FILE).read_bytes())
        if how == "replaced":
            copy.replace(folder / FILE)
        else:
            (folder / FILE).unlink()
        with pytest.raises(StoreError, match="moved, deleted or replaced"):
            answers.add("p01", 1, {"a": 1}, milliseconds=10)


def test_answers_of_a_plan_that_was_changed_are_refused(tmp_path: Path) -> None:
    Answers.create(tmp_path, "taste", "today", "plan one")
    Answers.open(tmp_path, "taste", "today", "plan one").close()
    with pytest.raises(StoreMismatch, match=r"study\.json was changed after the study was made"):
        Answers.open(tmp_path, "taste", "today", "plan two")


def test_a_full_disk_refuses_an_answer_and_takes_it_later(folder: Path) -> None:
    with opened(folder) as answers:
        (pages,) = answers._rows("PRAGMA page_count")[0]
        answers._rows(f"PRAGMA max_page_count = {pages + 2}")

        def fill() -> None:
            for item in range(100):
                answers.add("p01", item, {"a": "x" * 1000}, milliseconds=1)

        with pytest.raises(StoreError, match="full"):
            fill()
        saved = answers.count()
        assert 0 < saved < 100
        answers._rows("PRAGMA max_page_count = 100000")
        assert answers.add("p01", saved, {"a": "x" * 1000}, milliseconds=1)
    with opened(folder) as answers:
        assert answers.answered("p01") == frozenset(range(saved + 1))
