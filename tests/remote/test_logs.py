"""Logs in parts: whatever is appended, killed or put together, they read the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.errors import StoreDamaged, StoreError
from convergebench.remote import logs
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket, Object
from convergebench.remote.logs import Log, joined, log_of, part_name
from tests.remote.conftest import Shelf

NAME = "chains/ab/x.jsonl"


def test_names_of_parts() -> None:
    assert part_name(NAME, 0) == NAME
    assert part_name(NAME, 65_600) == f"{NAME}@000000065600"
    assert log_of(f"{NAME}@000000065600") == (NAME, 65_600)
    assert log_of(NAME) == (NAME, 0)
    assert log_of("chains/ab/me@home.jsonl") == ("chains/ab/me@home.jsonl", 0)


@given(st.binary(max_size=60), st.data())
def test_parts_that_overlap_are_joined(whole: bytes, data: st.DataObject) -> None:
    """As a kill leaves them between putting them together and deleting them."""
    starts = data.draw(st.lists(st.integers(0, len(whole)), max_size=4))
    parts = [(start, whole[start : data.draw(st.integers(start, len(whole)))]) for start in starts]
    assert joined("x", [*parts, (0, whole)]) == whole


def test_a_part_that_is_missing_is_noticed() -> None:
    with pytest.raises(StoreDamaged, match="the bytes from 3 to 5 are not there"):
        joined("x", [(0, b"abc"), (5, b"f")])


class Memory(Bucket):
    """The objects in a dict; dies at a chosen request, as a killed process does.

    `late` is killed after the request was carried out.
    """

    def __init__(self) -> None:
        super().__init__(Address("s3", "b/run"))
        self.objects: dict[str, bytes] = {}
        self.left = 10**6
        self.late = False

    def _die(self, do: object) -> None:
        self.left -= 1
        if self.left == 0 and not self.late:
            raise StoreError("killed")
        assert callable(do)
        do()
        if self.left <= 0:
            raise StoreError("killed")

    def get(self, name: str) -> bytes:
        return self.objects[name]

    def put(self, name: str, data: bytes, *, free: bool = False, kind: str = "") -> None:
        self._die(lambda: self.objects.update({name: data}))

    def delete(self, names: object, *, free: bool = False) -> None:
        for name in names:  # type: ignore[attr-defined]
            self._die(lambda name=name: self.objects.pop(name, None))

    def listed(self) -> dict[str, Object]:
        return {name: Object(len(data), "") for name, data in self.objects.items()}


SESSIONS = st.lists(
    st.tuples(
        st.lists(
            st.binary(min_size=1, max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=9
        ),
        st.integers(1, 12),  # the request at which the session is killed
        st.booleans(),
    ),
    max_size=6,
)


@settings(max_examples=200)
@given(SESSIONS)
def test_any_sessions_with_kills_leave_the_same_bytes(
    sessions: list[tuple[list[bytes], int, bool]],
) -> None:
    folder = Path(tempfile.mkdtemp())
    bucket, path, part = Memory(), folder / "log", logs.PART
    logs.PART = 8  # type: ignore[misc]
    try:
        path.touch()
        for lines, kill, late in [*sessions, ([b"end"], 10**6, False)]:
            bucket.left, bucket.late = kill, late
            starts = [log_of(name)[1] for name in bucket.objects]
            parts = [(log_of(name)[1], data) for name, data in bucket.objects.items()]
            there = joined(NAME, parts)
            assert path.read_bytes().startswith(there), "what is stored is never ahead"
            log = Log(bucket, NAME, path, starts or [0], len(there))
            try:
                log.push()
                for line in lines:
                    with open(path, "ab") as file:
                        file.write(line + b"\n")
                    log.push()
                    stored = joined(
                        NAME, [(log_of(name)[1], data) for name, data in bucket.objects.items()]
                    )
                    assert stored == path.read_bytes(), "stored before the work goes on"
                log.compact()
            except StoreError:
                continue
            assert bucket.objects == {NAME: path.read_bytes()} or not path.read_bytes()
    finally:
        logs.PART = part  # type: ignore[misc]
        shutil.rmtree(folder)


def test_an_append_writes_a_few_kib_however_long_the_log_is(shelf: Shelf, tmp_path: Path) -> None:
    bucket, path = Bucket(Address("s3", f"{shelf.bucket}/run")), tmp_path / "log"
    log, line = Log(bucket, NAME, path), b"x" * 30_000 + b"\n"
    for _ in range(40):
        with open(path, "ab") as file:
            file.write(line)
        log.push()
    sizes = [a.size for a in shelf.proxy.of_kind("PUT")]
    assert len(sizes) == 40
    assert max(sizes) <= logs.PART + len(line)
    assert len(shelf.names()) > 10
    log.compact()
    assert shelf.names() == [NAME]
    assert shelf.get(NAME) == path.read_bytes()
