"""The page of ratings in a real browser, opened from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter.opinions import write_ratings
from tests.reporter.test_opinions_page import rated

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ratings(rated(), tmp_path_factory.mktemp("browsed") / "out")


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
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "Ratings of made up · ConvergeBench"
    context.close()
    assert not complaints


def test_one_plot_is_shown_as_chosen_and_all_without_scripts(browser: Browser, path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    assert page.locator("#plots figure:visible").count() == 1
    page.locator("#pick select").select_option(label="niqe")
    assert page.locator("#plots figure:visible strong").inner_text() == "niqe"
    page.close()
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(path.as_uri())
    assert still.locator("#plots figure:visible").count() == 3
    assert still.locator("#pick:visible").count() == 0
    context.close()


def test_dots_lie_where_their_numbers_say(browser: Browser, path: Path) -> None:
    """A mean of m on a scale from a to b lies at (m − a) / (b − a) of its lane."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    head = page.locator("#opinions .ticks > span")
    ticks = {}
    for at in range(head.count()):
        box = head.nth(at).bounding_box()
        assert box is not None
        ticks[float(head.nth(at).inner_text())] = box["x"] + box["width"] / 2
    (low, left), (high, right) = min(ticks.items()), max(ticks.items())
    rows = page.locator("#opinions .lanes tbody tr").all()
    assert len(rows) == 5
    for row in rows:
        mean = float(row.locator("td.num b").inner_text())
        box = row.locator(".dot").bounding_box()
        assert box is not None
        expected = left + (right - left) * (mean - low) / (high - low)
        assert box["x"] + box["width"] / 2 == pytest.approx(expected, abs=2.5)
    page.close()
