"""The page of failures in a real browser, opened from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter.failures import write_failures
from tests.reporter.test_failures_page import seen, stored

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["stored"]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_failures(seen(stored), tmp_path_factory.mktemp("browsed") / "out")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 700, 360])
def test_it_fits_the_window_and_complains_of_nothing(
    browser: Browser, path: Path, scheme: str, width: int
) -> None:
    complaints: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith("file:") else complaints.append(asked.url),
    )
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "failing-run: failures · ConvergeBench"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(21, 23, 26)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    context.close()
    assert not complaints


def test_boxes_lie_on_their_frames(browser: Browser, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.as_uri())
    box = page.locator(".cases .box").first
    box.scroll_into_view_if_needed()
    inner, outer = box.bounding_box(), box.locator("..").locator("img").bounding_box()
    assert inner is not None
    assert outer is not None
    assert inner["x"] - outer["x"] == pytest.approx(0.25 * outer["width"], abs=1)
    assert inner["y"] - outer["y"] == pytest.approx(0.5 * outer["height"], abs=1)
    assert inner["width"] == pytest.approx(0.5 * outer["width"], abs=1)
    page.close()


def test_the_legend_picks_an_editor(browser: Browser, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.as_uri())
    all_cases = page.locator(".cases > li:visible").count()
    assert all_cases == 4 * 3
    page.get_by_role("button", name="ref:blur").click()
    assert page.locator(".cases > li:visible").count() == 0
    assert page.locator(".curves .dim").count() > 0
    page.get_by_role("button", name="all editors").click()
    assert page.locator(".cases > li:visible").count() == all_cases
    assert page.locator(".curves .dim").count() == 0
    page.close()
