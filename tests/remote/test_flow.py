"""A run on object storage is the same run as in a directory, and asks the store for little."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from convergebench.money.spending import spend
from convergebench.planner import plan
from convergebench.reporter import report
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.standing import status
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.remote.conftest import Shelf
from tests.remote.same import assert_same_run, assert_tidy
from tests.support.runs import write_suite


def table(suite: Path, **more: Any) -> dict[str, Any]:
    return {"suite": str(suite), "editors": ["ref:noise"], "steps": 3, "controls": False, **more}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "suite", size=16)


def test_it_is_the_same_run_as_in_a_directory(shelf: Shelf, suite: Path, tmp_path: Path) -> None:
    told = table(suite, controls=True)
    assert run(shelf.run, told).complete
    assert score(shelf.run, ["psnr"], workers=1).null == 0
    run(tmp_path / "whole", told)
    score(tmp_path / "whole", ["psnr"], workers=1)
    assert_same_run(shelf, tmp_path / "whole")
    assert_tidy(shelf)
    assert verify(shelf.run).sound
    again = run(shelf.run)
    assert again.steps_made == 0
    assert again.complete


def test_frames_are_put_once_and_never_listed(shelf: Shelf, suite: Path, tmp_path: Path) -> None:
    told = table(suite)
    plan(shelf.run, told)
    run(shelf.run, told)
    written = Counter(shelf.proxy.wrote("/frames/"))
    assert set(written.values()) == {1}
    assert len(written) == len(shelf.names("run/frames/"))
    run(shelf.run, steps=4)
    score(shelf.run, ["psnr"], workers=1)
    report(shelf.run, out=tmp_path / "report")
    status(shelf.run)
    spend(shelf.run)
    plan(shelf.run)
    assert [a.key for a in shelf.proxy.of_kind("LIST", "/frames")] == []
    # Nor by a listing of everything: that of the run itself ends at its folders.
    whole = [a for a in shelf.proxy.of_kind("LIST") if a.key in ("run", "run/")]
    assert whole
    assert all(a.shallow for a in whole)
    assert set(Counter(shelf.proxy.wrote("/frames/")).values()) == {1}
    verify(shelf.run)
    assert shelf.proxy.of_kind("LIST", "/frames"), "or the test would see nothing"


@pytest.mark.parametrize("machine", ["a", "b"])
def test_a_resume_of_a_complete_run_asks_no_more_for_more_frames(
    shelf: Shelf, suite: Path, machine: str
) -> None:
    """Neither where the run was made nor on another machine."""
    counts = []
    for steps in (2, 12):
        shelf.machine("a")
        run(shelf.run, table(suite, steps=steps) if steps == 2 else None, steps=steps)
        shelf.machine(machine)
        shelf.proxy.forget()
        assert run(shelf.run).steps_made == 0
        counts.append(Counter(a.kind for a in shelf.proxy.asked if "/frames/" not in a.key))
        # The sources alone, which the run begins with.
        assert len(shelf.proxy.of_kind("GET", "/frames/")) <= 2
    assert counts[0].total() < 60, counts
    assert counts[1].total() <= counts[0].total() + 4, counts


def test_a_worker_reads_only_what_it_is_asked_for(shelf: Shelf, suite: Path) -> None:
    run(shelf.run, table(suite))
    (chain, *_) = RunStore.open(shelf.run).chains()
    shelf.machine("b")
    shelf.proxy.forget()
    store = RunStore.open(shelf.run, refresh=False)
    assert store.chain(chain.key.id) == chain
    assert store.frame(chain.frames[-1]).digest == chain.frames[-1].sha256
    assert shelf.proxy.of_kind("LIST") == []
    assert len(shelf.proxy.asked) <= 6


def test_sessions_tell_of_every_one_in_order(shelf: Shelf, suite: Path) -> None:
    run(shelf.run, table(suite))
    score(shelf.run, ["psnr"], workers=1)
    lines = shelf.get("sessions.jsonl").decode().splitlines()
    assert ['"event": "start"' in line for line in lines] == [True, False, True, False]
    (local,) = [shelf.copy() / "sessions.jsonl"]
    assert local.read_text().splitlines() == lines


def types_of(shelf: Shelf, prefix: str) -> dict[str, str]:
    found = {}
    for name in shelf.client.names(shelf.bucket, prefix):
        found[name.removeprefix(prefix)] = shelf.client.type_of(shelf.bucket, name)
    return found


def test_a_published_report_is_served_as_pages(shelf: Shelf, suite: Path, tmp_path: Path) -> None:
    """A browser shows what it is told is a page, and saves what it is told is bytes."""
    run(tmp_path / "run", table(suite))
    score(tmp_path / "run", ["psnr"], workers=1)
    pages = f"s3://{shelf.bucket}/pages"
    report(tmp_path / "run", out=pages, formats=("html", "csv", "md"))
    found = types_of(shelf, "pages/")
    kinds = {name.rpartition(".")[2]: kind for name, kind in found.items()}
    expected = {
        "html": "text/html; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "json": "application/json; charset=utf-8",
        "csv": "text/csv; charset=utf-8",
        "md": "text/markdown; charset=utf-8",
        "png": "image/png",
        "webp": "image/webp",
    }
    assert {ending: kinds[ending] for ending in expected} == expected
    assert "binary/octet-stream" not in found.values()


def test_a_report_that_was_published_without_types_is_sent_again_once(
    shelf: Shelf, suite: Path, tmp_path: Path
) -> None:
    run(tmp_path / "run", table(suite))
    score(tmp_path / "run", ["psnr"], workers=1)
    pages = f"s3://{shelf.bucket}/pages"
    report(tmp_path / "run", out=pages)
    right = types_of(shelf, "pages/")
    for name, data in shelf.client.all(shelf.bucket, "pages/").items():
        shelf.client.put(shelf.bucket, name, data)
    assert types_of(shelf, "pages/") != right
    shelf.proxy.forget()
    report(tmp_path / "run", out=pages)
    assert len(shelf.proxy.wrote("pages/")) == len(right)
    assert types_of(shelf, "pages/") == right
    shelf.proxy.forget()
    report(tmp_path / "run", out=pages)
    assert len(shelf.proxy.wrote("pages/")) <= 1, "but for what tells the time"
