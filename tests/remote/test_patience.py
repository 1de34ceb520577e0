"""For how long a store that does not answer is asked, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.errors import StoreError
from convergebench.remote import bucket as buckets
from convergebench.remote.address import Address
from convergebench.remote.bucket import ANSWERED, FIRST_PATIENCE, Bucket
from convergebench.remote.telling import lasting
from convergebench.runner import run
from convergebench.store import RunStore
from tests.remote.conftest import Shelf
from tests.remote.handmade import begun
from tests.remote.processes import command
from tests.support.runs import write_suite


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "for up to 0.5 s"),
        (20.0, "for up to 20 s"),
        (60.0, "for up to 1 min"),
        (90.0, "for up to 1 min 30 s"),
        (300.0, "for up to 5 min"),
        (3600.0, "for up to 1 h"),
        (7260.4, "for up to 2 h 1 min"),
        (float("inf"), "without end"),
    ],
)
def test_how_long_in_words(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(buckets, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def asked(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, patience: str) -> tuple[float, str, str]:
    """How long a store that is away was asked, what was told first, and what last."""
    told: list[str] = []
    bucket = Bucket(Address("s3", f"{shelf.bucket}/run"), told.append)
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", patience)
    with monkeypatch.context() as patch:
        clock = Clock(patch)
        with pytest.raises(StoreError) as error:
            bucket.get("x")
        return clock.now - 1000.0, told[0] if told else "", str(error.value)


@pytest.mark.parametrize(
    ("patience", "first", "later", "words", "more"),
    [
        ("", 20, 300, "for up to 20 s", "for up to 5 min"),
        ("90", 20, 90, "for up to 20 s", "for up to 1 min 30 s"),
        ("8", 8, 8, "for up to 8 s", "for up to 8 s"),
    ],
)
def test_a_store_that_never_answered_is_given_up_sooner(
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
    patience: str,
    first: float,
    later: float,
    words: str,
    more: str,
) -> None:
    shelf.proxy.trouble = lambda _asked: "silent"
    seconds, told, error = asked(shelf, monkeypatch, patience)
    assert 0.2 * first <= seconds <= first
    assert f"; it is asked again {words}, next try in " in told
    assert "It has not answered once: check the address and the endpoint, or give" in error
    assert "kept on this machine" not in error
    shelf.proxy.trouble = lambda _asked: None
    assert not Bucket(Address("s3", f"{shelf.bucket}/run")).exists("x")
    shelf.proxy.trouble = lambda _asked: "silent"
    seconds, told, error = asked(shelf, monkeypatch, patience)
    assert later - 20 <= seconds <= later
    assert f"; it is asked again {more}, next try in " in told
    assert "Whatever was received is kept on this machine" in error


def test_a_worker_knows_that_its_command_was_answered(shelf: Shelf, tmp_path: Path) -> None:
    """It may begin while the store is away: a score that has begun does not end for that."""
    begun(shelf, tmp_path)
    away = [True]
    code = "import sys; from convergebench.store import RunStore as R; R.open(sys.argv[1])"
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "300")
    shelf.proxy.trouble = lambda _asked: "silent" if away[0] else None
    words = [sys.executable, "-c", code, shelf.run]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        told = worker.stderr.readline()
        away[0] = False
    assert worker.returncode == 0
    assert "it is asked again for up to 5 min, next try in " in told


def test_a_wrong_endpoint_is_told_of_soon_and_how_soon(shelf: Shelf) -> None:
    """As a user meets it, who has not set any patience."""
    environment = {**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    for name in ("CONVERGEBENCH_PATIENCE", ANSWERED):
        environment.pop(name, None)
    began = time.monotonic()
    done = subprocess.run(
        command("status", shelf.run), capture_output=True, text=True, env=environment, timeout=200
    )
    assert time.monotonic() - began < FIRST_PATIENCE + 40, "of which imports, on a busy machine"
    assert done.returncode == 2
    first, *_ = done.stderr.splitlines()
    assert "; it is asked again for up to 20 s, next try in " in first
    assert first.endswith(" (told once)")
    text = " ".join(done.stderr.split())
    assert "Traceback" not in text
    assert "It has not answered once: check the address and the endpoint" in text


def test_a_store_that_says_not_now_has_answered(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 503 at the very first request is no wrong address."""
    shelf.proxy.trouble = lambda _asked: "slow-down"
    seconds, told, error = asked(shelf, monkeypatch, "60")
    assert 40 <= seconds <= 60
    assert "; it is asked again for up to 1 min, next try in " in told
    assert "It has not answered once" not in error


def test_an_endpoint_without_a_scheme_is_one_sentence(shelf: Shelf) -> None:
    environment = {**os.environ, "AWS_ENDPOINT_URL": "127.0.0.1:9"}
    done = subprocess.run(
        command("status", shelf.run), capture_output=True, text=True, env=environment, timeout=200
    )
    assert done.returncode == 2
    text = " ".join(done.stderr.split())
    assert "AWS_ENDPOINT_URL does not begin with http:// or https://" in text
    # What botocore does not look at is not looked at here.
    server = os.environ["AWS_ENDPOINT_URL"]
    environment["AWS_ENDPOINT_URL_S3"] = server.replace("http://", "HTTP://")
    done = subprocess.run(
        command("status", shelf.run), capture_output=True, text=True, env=environment, timeout=200
    )
    assert "is not a run directory" in " ".join(done.stderr.split())


def test_a_run_that_has_begun_keeps_its_patience(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a first contact has, at a write of the run."""
    monkeypatch.setattr(buckets, "FIRST_PATIENCE", 0.1)
    suite = write_suite(tmp_path / "suite", 1, size=16)
    told = {"suite": str(suite), "editors": ["ref:noise"], "cycles": ["copy"], "controls": False}
    away: list[float] = []

    def trouble(_asked: object) -> str | None:
        if not away and shelf.proxy.wrote("/chains/"):
            away.append(time.monotonic())
        return "silent" if away and time.monotonic() < away[0] + 3 else None

    shelf.proxy.trouble = trouble
    assert run(shelf.run, told, steps=3).complete
    assert away
    assert json.loads(shelf.get("run.json"))
    assert RunStore.open(shelf.run).chains()[0].length == 3
