"""What `Bucket` promises, kept by each of the clouds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from convergebench.errors import StoreError
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket
from convergebench.reporter import report
from convergebench.runner import run
from convergebench.scorer import score
from tests.clouds import azure
from tests.remote.conftest import Shelf
from tests.support.runs import write_suite


@pytest.fixture
def bucket(shelf: Shelf) -> Bucket:
    return Bucket(Address(shelf.scheme, f"{shelf.bucket}/run"))


def test_put_get_list_look_and_delete(shelf: Shelf, bucket: Bucket) -> None:
    assert bucket.list() == {}
    assert bucket.shallow() == ({}, set())
    objects = {"top": b"1", "a/b": b"22", "a/c/d": b""}
    for name, data in objects.items():
        bucket.put(name, data)
    shelf.client.put(shelf.bucket, "run2/other/x", b"of another run")
    shelf.client.put(shelf.bucket, "run2/y", b"of another run")
    assert {name: bucket.get(name) for name in objects} == objects
    assert {name: told.size for name, told in bucket.list().items()} == {
        name: len(data) for name, data in objects.items()
    }
    assert set(bucket.list("a")) == {"a/b", "a/c/d"}
    assert set(bucket.list("a", deep=False)) == {"a/b"}
    top, folders = bucket.shallow()
    assert (set(top), folders) == ({"top"}, {"a"})
    before = bucket.look("a/b")
    bucket.put("a/b", b"33")
    assert bucket.look("a/b").tag != before.tag
    assert bucket.look("a/b") == bucket.list()["a/b"]
    bucket.delete(["a/b", "there-is-none"])
    assert not bucket.exists("a/b")
    for look in (bucket.get, bucket.look):
        with pytest.raises(FileNotFoundError):
            look("a/b")


@pytest.mark.parametrize(
    "data", [b"\n", b"\r\n", b"--==0==", b"x\n--==0==--\n", b"\r\n--==0==\r\n\r\n", b"\0\xff"]
)
def test_bytes_are_stored_as_they_are(shelf: Shelf, bucket: Bucket, data: bytes) -> None:
    """Also those that look like the separators of gcsfs."""
    bucket.put("one", data)
    assert bucket.put_once("two", data)
    assert not bucket.put_once("two", b"other")
    for name in ("one", "two"):
        assert bucket.get(name) == shelf.get(name) == data


@pytest.mark.filterwarnings("ignore:Sending a large body")  # by aiohttp, which Python hides
def test_a_large_object_is_whole_and_made_once(shelf: Shelf, bucket: Bucket) -> None:
    """Beyond what goes in one request: 50 MiB with gcsfs, 64 MiB with Azure's library."""
    if shelf.scheme == "az":  # which then streams, and the proxy takes no streams
        shelf.patch.setenv("AZURE_STORAGE_CONNECTION_STRING", azure.connection(shelf.url))
    data = bytes(range(256)) * (66 * 2**12)
    assert bucket.put_once("large", data)
    assert not bucket.put_once("large", data[:-1])
    assert bucket.look("large").size == len(data)
    assert bucket.get("large") == data


def test_of_several_that_write_at_once_one_does(bucket: Bucket) -> None:
    assert bucket.is_exclusive()
    gate, won = threading.Barrier(6), []

    def write(number: int) -> None:
        gate.wait()
        if bucket.put_once("lock", b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bucket.get("lock")] == [b"%d" % number for number in won]
    assert bucket.list("locks") == {}


@pytest.mark.parametrize("kind", ["silent", "cut"])
def test_the_library_tries_nothing_again_by_itself(shelf: Shelf, bucket: Bucket, kind: str) -> None:
    """We do, and tell of it: the library would wait for a minute without a word."""
    bucket.put("x", b"1")
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "0")
    shelf.proxy.trouble = lambda _asked: kind
    looks: dict[str, Callable[[], object]] = {
        "PUT": lambda: bucket.put("x", b"2"),
        "GET": lambda: bucket.get("x"),
        "DELETE": lambda: bucket.delete(["x"]),
    }
    for method, do in looks.items():
        shelf.proxy.forget()
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"does not answer .*, 1 try"):
            do()
        # Over a connection that was open aiohttp asks once more, at once.
        asked = [each.kind for each in shelf.proxy.asked]
        assert asked == [method] * (len(asked) if kind == "cut" and len(asked) == 2 else 1)
        assert time.monotonic() - began < 5


def test_a_published_report_is_pages_and_is_sent_once(shelf: Shelf, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1, size=16)
    told = {"suite": str(suite), "editors": ["ref:noise"], "steps": 2, "controls": False}
    run(tmp_path / "run", told)
    score(tmp_path / "run", ["psnr"], workers=1)
    pages = f"{shelf.scheme}://{shelf.bucket}/pages"
    report(tmp_path / "run", out=pages)
    types = {
        name.rpartition(".")[2]: shelf.client.type_of(shelf.bucket, name).partition(";")[0]
        for name in shelf.client.names(shelf.bucket, "pages/")
    }
    expected = {"html": "text/html", "css": "text/css", "json": "application/json"}
    assert {ending: types[ending] for ending in expected} == expected
    kind = Bucket(Address(shelf.scheme, f"{shelf.bucket}/pages")).kind("index.html")
    assert kind.partition(";")[0] == "text/html"
    shelf.proxy.forget()
    report(tmp_path / "run", out=pages)
    assert len(shelf.proxy.wrote("pages/")) <= 1, "but for what tells the time"
