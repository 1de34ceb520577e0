"""The pages in a real browser, opened from files as a user would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter import Report
from tests.reporter.conftest import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]


@contextmanager
def visited(
    browser: Browser, path: Path, *, scheme: str = "light", width: int = 1280, script: bool = True
) -> Iterator[Page]:
    """A page, which may neither complain nor ask for anything but files."""
    complaints: list[str] = []

    def refuse(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def inspect(asked: Request) -> None:
        if not asked.url.startswith(("file:", "data:")):
            complaints.append(asked.url)

    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=script,
    )
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", inspect)
    page.goto(path.as_uri())
    yield page
    context.close()
    assert not complaints


def drawn_charts(page: Page) -> int:
    """Scroll past every chart of the chosen metric, and wait until all of them are drawn."""
    figures = page.locator("figure:has(.chart):visible")
    wanted = figures.count()
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
    page.wait_for_function(
        "n => document.querySelectorAll('figure.live .chart svg').length >= n", arg=wanted
    )
    return wanted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_charts_are_drawn(browser: Browser, made_report: Report, scheme: str) -> None:
    with visited(browser, made_report.path, scheme=scheme) as page:
        assert drawn_charts(page) > 5
        assert page.locator(".chart svg path[aria-roledescription='line mark']").count() > 8
        assert not page.locator(".still").first.is_visible()
        for box in (chart.bounding_box() for chart in page.locator(".chart svg:visible").all()):
            assert box is not None
            assert box["width"] > 300


def test_charts_out_of_sight_are_not_drawn(browser: Browser, made_report: Report) -> None:
    with visited(browser, made_report.path) as page:
        page.wait_for_load_state("load")
        assert page.locator("figure.live").count() < page.locator("figure").count() / 2


def test_the_legend_picks_editors_out_in_all_charts(browser: Browser, made_report: Report) -> None:
    faint = "document.querySelectorAll('.chart svg .mark-line path[opacity=\"0.12\"]').length"
    with visited(browser, made_report.path) as page:
        drawn_charts(page)
        assert page.evaluate(faint) == 0
        key = page.locator(".legend [data-editor='ref:blur']")
        key.click()
        page.wait_for_function(f"() => {faint} > 10")
        assert key.get_attribute("aria-pressed") == "true"
        assert page.locator(".board tr.picked").get_attribute("data-editor") == "ref:blur"
        key.press("Enter")
        page.wait_for_function(f"() => {faint} === 0")
        page.locator(".legend [data-editor='ref:random']").press("Space")
        page.wait_for_function(f"() => {faint} > 0")
        page.get_by_role("button", name="Show all").click()
        page.wait_for_function(f"() => {faint} === 0")


def test_a_point_tells_its_editor_and_value(browser: Browser, made_report: Report) -> None:
    with visited(browser, made_report.path) as page:
        drawn_charts(page)
        page.locator("#value-psnr svg .mark-symbol path[d]").last.hover(force=True)
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "editor" in tip.inner_text()
        assert "chains" in tip.inner_text()


def test_nothing_from_outside_is_executed(browser: Browser, made_report: Report) -> None:
    for path in made_report.path.parent.glob("*.html"):
        with visited(browser, path) as page:
            page.wait_for_load_state("networkidle")
            assert page.title().endswith("ConvergeBench")
            assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


def test_thumbnails_are_seen_and_lead_to_the_frames(browser: Browser, made_report: Report) -> None:
    with visited(browser, made_report.path.parent / "source-s0.html") as page:
        image = page.locator(".strip td img").first
        image.scroll_into_view_if_needed()
        page.wait_for_function("() => document.querySelector('.strip td img').naturalWidth === 48")
        page.locator(".strip td a").first.click()
        page.locator(".v-facts a[href^='frames/']").click()
        page.wait_for_url("**/frames/**")
    with visited(browser, made_report.path.parent / "source-s0.html", script=False) as page:
        page.locator(".strip td a").first.click()
        page.wait_for_url("**/frames/**")


@pytest.mark.parametrize("name", ["index.html", "source-s0.html"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_width(browser: Browser, made_report: Report, name: str, width: int) -> None:
    with visited(browser, made_report.path.parent / name, width=width) as page:
        if name == "index.html":
            drawn_charts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_editor_labels_stay_when_a_strip_is_scrolled(browser: Browser, made_report: Report) -> None:
    with visited(browser, made_report.path.parent / "source-s0.html", width=390) as page:
        label = page.locator(".strip tbody .stub").first
        before = label.bounding_box()
        page.evaluate("document.querySelector('.film').scrollLeft = 100")
        assert page.evaluate("document.querySelector('.film').scrollLeft") == 100
        after = label.bounding_box()
        assert before is not None
        assert after is not None
        assert after["x"] == before["x"]


def test_the_edge_of_a_strip_fades_until_its_end_is_reached(
    browser: Browser, made_report: Report
) -> None:
    fade = "getComputedStyle(document.querySelector('.film')).getPropertyValue('--fade')"
    with visited(browser, made_report.path.parent / "source-s0.html", width=390) as page:
        assert page.evaluate(fade) == "80px"
        page.evaluate("document.querySelector('.film').scrollLeft = 9999")
        page.wait_for_function(f"{fade} === '0px'")
    with visited(browser, made_report.path.parent / "source-s0.html", width=4000) as page:
        assert page.evaluate(fade) == "0px", "what fits does not fade"


def test_without_script_and_in_print_there_are_drawings(
    browser: Browser, made_report: Report
) -> None:
    with visited(browser, made_report.path, script=False) as page:
        assert page.locator(".still").first.is_visible()
    with visited(browser, made_report.path, scheme="dark") as page:
        drawn_charts(page)
        page.emulate_media(media="print")
        assert page.locator(".still").first.is_visible()
        assert not page.locator(".chart").first.is_visible()


def test_charts_follow_the_theme(browser: Browser, made_report: Report) -> None:
    line = "document.querySelector('#convergence-psnr svg .mark-line path')"
    colour, gone = f"{line}.getAttribute('stroke')", f"!{line}"
    with visited(browser, made_report.path) as page:
        drawn_charts(page)
        light = page.evaluate(colour)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"() => {gone} || {colour} !== {light!r}")
        drawn_charts(page)
        page.wait_for_function(f"() => !{gone} && {colour} !== {light!r}")
