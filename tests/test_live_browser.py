"""`view` in a real browser: a page that is made again keeps what was chosen on it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.live import Live, served
from convergebench.scorer import score
from tests.reporter.conftest import browser as browser
from tests.test_live import small_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
WAIT = 60_000


def until(page: Page, expression: str) -> None:
    """Wait until something is true of the page; its policy forbids Playwright's own way."""
    from playwright.sync_api import Error

    end = time.monotonic() + WAIT / 1000
    while time.monotonic() < end:
        with suppress(Error):  # the page may go while it is asked
            if page.evaluate(expression):
                return
        page.wait_for_timeout(100)
    pytest.fail(f"never came true: {expression}")


@contextmanager
def viewing(browser: Browser, run: Path, page_name: str = "") -> Iterator[Page]:
    """A page of a scored run's live report, once it has been made."""
    complaints: list[str] = []
    live = Live([run])
    with served(live) as address:
        end = time.monotonic() + WAIT / 1000
        while not live.version and time.monotonic() < end:
            time.sleep(0.1)
        context = browser.new_context(viewport={"width": 1280, "height": 700})
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}{page_name}")
        until(page, "document.readyState === 'complete'")
        page.evaluate("window.mark = 'before'")
        yield page
        context.close()
    assert not complaints


def test_what_was_chosen_is_still_chosen_when_the_page_comes_again(
    browser: Browser, tmp_path: Path
) -> None:
    run = small_run(tmp_path)
    score(run, ["psnr", "ssim"], workers=1)
    with viewing(browser, run) as page:
        page.get_by_role("tab", name="ssim", exact=True).click()
        page.locator(".legend [data-editor='ref:blur']").click()
        page.locator("#numbers details summary").first.click()
        page.locator("table.sortable .sorter").first.click()
        way = page.locator("table.sortable th[aria-sort]").first.get_attribute("aria-sort")
        folded = page.locator("#numbers details[open] > summary").first.text_content()
        page.evaluate("scrollTo({top: 640, behavior: 'instant'})")
        score(run, ["ssim-rgb"], workers=1)
        until(page, "window.mark === undefined")
        until(page, "document.readyState === 'complete'")
        until(page, "sessionStorage.length === 0")
        assert page.get_by_role("tab", name="ssim-rgb").count() == 1
        chosen = page.locator("[role=tab][aria-selected=true]")
        assert chosen.all_text_contents() == ["ssim"]
        shown = page.locator("#curves .panel:visible h3")
        assert shown.count() == 1
        assert page.locator("#curves .panel:visible").get_attribute("id") == (
            chosen.get_attribute("aria-controls")
        )
        pressed = page.locator(".legend [aria-pressed=true]")
        assert [key.get_attribute("data-editor") for key in pressed.all()] == ["ref:blur"]
        assert folded in page.locator("#numbers details[open] > summary").all_text_contents()
        assert page.locator("table.sortable th[aria-sort]").first.get_attribute("aria-sort") == way
        assert abs(page.evaluate("scrollY") - 640) < 40


def test_a_picture_that_is_looked_at_is_not_taken_away(browser: Browser, tmp_path: Path) -> None:
    run = small_run(tmp_path)
    score(run, ["psnr"], workers=1)
    with viewing(browser, run, "source-s0.html") as page:
        page.locator(".strip td > a").nth(1).click()
        page.wait_for_selector("#viewer[open]")
        score(run, ["ssim"], workers=1)
        pill = page.locator("#live")
        until(page, "document.getElementById('live').textContent.includes('New')")
        page.wait_for_timeout(4000)  # longer than a page without a hand on it would wait
        assert page.evaluate("window.mark") == "before"
        assert page.locator("#viewer[open]").count() == 1
        pill.click()  # within the dialog, so that it can be
        until(page, "window.mark === undefined")
        page.wait_for_selector("#viewer[open]")
        assert re.search("#.", page.url)
