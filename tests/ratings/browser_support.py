"""A rating study served by a real process, and people who use its pages in a real browser."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ratings.made import admin_secret, tokens

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

WAIT = 30.0
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


class Server:
    """`convergebench rate serve` as a process that can be killed and started again."""

    def __init__(self, study: Path) -> None:
        self.study = study
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "convergebench", "rate", "serve", str(self.study)]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        self._process.wait()
        self._process.stderr.close()
        pytest.fail(f"the server did not start: {''.join(said)}")

    def kill(self) -> None:
        """SIGKILL: no goodbye, nothing written after it."""
        if self._process:
            assert self._process.stderr
            self._process.kill()
            self._process.wait()
            self._process.stderr.close()
            self._process = None

    def link(self, participant: str = "p01") -> str:
        """A participant's personal link."""
        return f"{self.address}/p/{tokens(self.study)[participant]}"

    def state(self, participant: str = "p01") -> dict[str, Any]:
        """What the server says is a participant's state, asked past the page."""
        with urllib.request.urlopen(f"{self.link(participant)}/state", timeout=WAIT) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def export(self) -> list[dict[str, str]]:
        """The answers as the organiser downloads them."""
        login = urllib.request.Request(
            f"{self.address}/admin/login",
            json.dumps({"secret": admin_secret(self.study)}).encode(),
            {"Content-Type": "application/json", "Origin": self.address},
        )
        with urllib.request.urlopen(login, timeout=WAIT) as reply:
            cookie = reply.headers["Set-Cookie"].partition(";")[0]
        ask = urllib.request.Request(f"{self.address}/admin/export.csv", headers={"Cookie": cookie})
        with urllib.request.urlopen(ask, timeout=WAIT) as reply:
            return list(csv.DictReader(io.StringIO(reply.read().decode())))


@contextmanager
def serving(study: Path) -> Iterator[Server]:
    """A study's server, for as long as it is needed."""
    server = Server(study)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page in a profile of its own, which must not complain."""
    complaints: list[str] = []
    context = browser.new_context(**(options or DESKTOP))
    page = watched(context, complaints)
    page.goto(address)
    yield page
    context.close()
    assert not complaints


def watched(context: BrowserContext, complaints: list[str]) -> Page:
    """A new page; errors of scripts and of the content policy are complaints."""
    page = context.new_page()
    page.set_default_timeout(WAIT * 1000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if "Content Security" in message.text else None
        ),
    )
    return page


def until(page: Page, expression: str) -> None:
    """Wait until something is true of the page; its policy forbids Playwright's own way."""
    from playwright.sync_api import Error

    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        with suppress(Error):  # the page may go while it is asked
            if page.evaluate(expression):
                return
        page.wait_for_timeout(40)
    pytest.fail(f"never came true: {expression}; the page says: {page.inner_text('body')}")


READY = "document.body.dataset.screen === 'item' && !document.querySelector('.pane.loading')"


def begin(page: Page) -> None:
    """Agree and start: the first page to rate is shown, with its pictures."""
    page.click("#agree")
    page.click("#start")
    until(page, READY)


def count(page: Page) -> str:
    """`7 of 20`."""
    return page.inner_text("#count")


def until_count(page: Page, text: str) -> None:
    """Wait for a page by its number, and for its pictures."""
    until(page, f"document.getElementById('count').textContent === {json.dumps(text)} && {READY}")


def rated(rows: list[dict[str, str]], rater: str = "p01") -> list[dict[str, str]]:
    """A participant's rows that count, in the order in which they were shown."""
    mine = [row for row in rows if row["rater"] == rater and row["kind"] == "item"]
    return sorted(mine, key=lambda row: int(row["order"]))
