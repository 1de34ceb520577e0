"""`view`: the report served while a run is going."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from convergebench.errors import SettingsError, StoreError
from convergebench.live import Live, served
from convergebench.runner import run
from convergebench.scorer import score
from tests.support.runs import write_suite

COPY = """
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy the picture."
"""


def small_run(place: Path, rounds: int = 2) -> Path:
    suite = write_suite(place / "suite", 2, cycles=COPY, size=32)
    spec = {"suite": str(suite), "editors": ("ref:blur",), "rounds": rounds, "controls": False}
    run(place / "run", spec)
    return place / "run"


def get(address: str, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    """What the server answers; the path goes out as it is."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    connection.request("GET", path, headers={"Host": host or where.netloc})
    answer = connection.getresponse()
    told = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return told


def versions(address: str, end: float = math.inf) -> Iterator[dict[str, object]]:
    """The messages of the stream, until a moment has come; a silent stream has its own signs."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    connection.request("GET", "/events")
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            yield json.loads(line[6:])
        if time.monotonic() > end:
            return


def test_pages_are_served_with_the_script_that_follows_and_pictures_may_be_kept(
    tmp_path: Path,
) -> None:
    live = Live([small_run(tmp_path)])
    live.build()
    with served(live) as address:
        status, headers, page = get(address, "/")
        assert status == 200
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["cache-control"] == "no-store"
        assert b'<script src="/live.js" data-version="' in page
        assert get(address, "/live.js")[0] == 200
        thumb = next((live.folder / "thumbs").rglob("*.webp"))
        status, headers, data = get(address, f"/{thumb.relative_to(live.folder)}")
        assert (status, data) == (200, thumb.read_bytes())
        assert "immutable" in headers["cache-control"]
    assert b"live.js" not in (live.folder / "index.html").read_bytes()


@pytest.mark.parametrize(
    "path",
    ["/../run.json", "/%2e%2e/run.json", "/..%2frun.json", "//etc/passwd", "/nothing", "/%00"],
)
def test_nothing_outside_the_report_is_served(tmp_path: Path, path: str) -> None:
    live = Live([small_run(tmp_path)])
    live.build()
    with served(live) as address:
        assert get(address, path)[0] == 404


def test_a_page_of_another_name_cannot_read_it(tmp_path: Path) -> None:
    with served(Live([small_run(tmp_path)])) as address:
        assert get(address, "/index.html", host="evil.example")[0] == 403
        assert get(address, "/index.html", host="localhost:1")[0] == 200


def test_before_the_first_build_a_page_waits(tmp_path: Path) -> None:
    live = Live([small_run(tmp_path)])
    live.follow = lambda stop: None  # type: ignore[method-assign]
    with served(live) as address:
        page = get(address, "/")[2]
    assert b"being made" in page
    assert b"data-version=0" in page


def test_a_run_without_scores_shows_its_pictures_and_scores_arrive_later(tmp_path: Path) -> None:
    path = small_run(tmp_path)
    with served(Live([path])) as address:
        stream = versions(address)
        told = next(news for news in stream if news["version"])
        assert told["problem"] == ""
        assert b"no frame is scored against home" in get(address, "/")[2]
        score(path, ["psnr", "ssim"], workers=1)
        later = next(stream)
        assert later["version"] != told["version"]
        while b"no frame is scored against home" in get(address, "/")[2]:
            next(stream)  # a build between two files of scores


def test_what_does_not_change_is_not_built_again(tmp_path: Path) -> None:
    live = Live([small_run(tmp_path)])
    stop = threading.Event()
    thread = threading.Thread(target=live.follow, args=(stop,))
    thread.start()
    end = time.monotonic() + 60
    while not live.version and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(3)
    stop.set()
    thread.join()
    assert live.version == 1


def test_a_report_that_cannot_be_made_is_told_and_the_pages_stay(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    with served(Live([small_run(tmp_path)], out=tmp_path / "taken")) as address:
        assert "is not a report" in str(next(n for n in versions(address) if n["problem"]))
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["mine.txt"]


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"port {port} .* cannot be had .* --port"),
            served(Live([small_run(tmp_path)]), port),
        ):
            pass


def test_what_is_no_run_and_several_without_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a run directory"):
        Live([tmp_path])
    with pytest.raises(SettingsError, match="give --out DIR"):
        Live([tmp_path, tmp_path])


@contextlib.contextmanager
def begun(place: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the command, ended at the latest when this ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "convergebench", *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_command_follows_a_run_of_another_process_until_it_is_stopped(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1, cycles=COPY, size=32)
    # More steps than anyone waits for: the run still goes on when its second report is made.
    words = ("-s", str(suite), "-e", "ref:flaky,wait=0.4,rate=0", "-n", "500", "--no-controls")
    end = time.monotonic() + 90
    with begun(tmp_path, "run", "run", *words) as running:
        while not list((tmp_path / "run").glob("frames/*/*")) and time.monotonic() < end:
            time.sleep(0.1)
        with begun(tmp_path, "view", "run") as viewing:
            assert viewing.stdout
            assert viewing.stderr
            address = viewing.stdout.readline().split()[0].decode()
            counts: list[int] = []
            for news in versions(address, end):
                if news["version"]:
                    page = (
                        get(address, "/source-s0.html")[2] + get(address, "/data/source-s0.js")[2]
                    )
                    counts.append(page.count(b"thumbs/"))
                if len(set(counts)) >= 2:
                    break
            assert running.poll() is None
            viewing.send_signal(signal.SIGINT)
            assert viewing.wait(30) == 0
            assert b"The pages stay in" in viewing.stderr.read()
    assert counts == sorted(counts)
    assert counts[-1] > counts[0] > 0
