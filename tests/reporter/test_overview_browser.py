"""The first page in a real browser: choosing, sorting, printing, hostile names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter import Report
from tests.reporter.conftest import CHROMIUM
from tests.reporter.rich import rich_findings
from tests.reporter.test_overview import HOSTILE, editors_of, rich_of, write_page
from tests.reporter.test_report_browser import drawn_charts, visited

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]
LINES = "document.querySelectorAll('#convergence-headline svg .mark-line path')"


@pytest.fixture(scope="module")
def rich_page(
    made_run: Path, made_report: Report, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of findings of every kind, one editor's name being hostile."""
    folder = tmp_path_factory.mktemp("live")
    shutil.copytree(made_report.path.parent / "static", folder / "static")
    return write_page(made_run, folder, rich_of(made_run, [(HOSTILE, False)]))


def shapes(page: Page) -> list[str]:
    found: list[str] = page.evaluate(f"() => [...{LINES}].map((path) => path.getAttribute('d'))")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_chart_is_drawn(browser: Browser, rich_page: Path, scheme: str) -> None:
    with visited(browser, rich_page, scheme=scheme) as page:
        assert drawn_charts(page) == 19
        for name in ("heatmap", "scatter", "drift-shares", "contraction-psnr", "forward"):
            assert page.locator(f"#{name} svg path[d]").count() > 5
        keys = page.locator("figure:has(#drift-shares) .parts span")
        assert keys.all_inner_texts()[:2] == ["geometry", "colour"]


def test_a_part_of_the_chains_changes_what_is_drawn(browser: Browser, rich_page: Path) -> None:
    with visited(browser, rich_page) as page:
        drawn_charts(page)
        every = shapes(page)
        page.locator("#part").select_option("image:face")
        page.wait_for_function(f"before => {LINES}[0]?.getAttribute('d') !== before", arg=every[0])
        faces = shapes(page)
        assert len(faces) == len(every)
        caption = page.locator("figure:has(#convergence-headline) .of")
        assert caption.inner_text() == "Only image: face."
        left = page.locator("#curves figure.unfiltered:visible")
        assert left.locator(".chart").evaluate_all("all => all.map(c => c.id)") == [
            "survival-headline"
        ]
        assert left.locator(".whole").inner_text() == "All chains; not filtered."
        options = page.locator("#part option").all_inner_texts()
        assert len(set(options)) == len(options)
        assert "edit: accessory" in options
        page.locator("#part").select_option("edit:accessory")
        page.wait_for_function(f"before => {LINES}[0]?.getAttribute('d') !== before", arg=faces[0])
        page.get_by_role("tab", name="quality").click()
        page.wait_for_selector("#convergence-quality svg")
        mine = page.locator("figure:has(#convergence-quality) .of")
        page.wait_for_function("e => e.textContent.startsWith('Only edit')",
                               arg=mine.element_handle())  # fmt: skip
        page.get_by_role("tab", name="headline").click()
        page.locator("#part").select_option("")
        page.wait_for_function(f"before => {LINES}[0]?.getAttribute('d') === before", arg=every[0])
        assert page.locator(".unfiltered, .whole").count() == 0


def test_metrics_are_chosen_by_mouse_and_keyboard(browser: Browser, rich_page: Path) -> None:
    with visited(browser, rich_page) as page:
        tabs = page.get_by_role("tab")
        assert tabs.all_inner_texts() == [
            "headline", "quality", "semantic", "psnr", "ssim", "lpips", "clip",
        ]  # fmt: skip
        assert page.locator(".panel:visible").count() == 1
        page.get_by_role("tab", name="psnr").click()
        page.wait_for_selector("#value-psnr svg")
        assert not page.locator("#convergence-headline").is_visible()
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#value-ssim svg")
        chosen = page.locator("[role='tab'][aria-selected='true']")
        assert chosen.inner_text() == "ssim"
        page.keyboard.press("Home")
        assert chosen.inner_text() == "headline"
        assert page.evaluate("document.activeElement.id") == "tab-1"


def test_the_headline_table_is_sorted_by_mouse_and_keyboard(
    browser: Browser, rich_page: Path
) -> None:
    first = ".board tbody:first-of-type tr[data-editor]"
    with visited(browser, rich_page) as page:
        order = [row.get_attribute("data-editor") for row in page.locator(first).all()]
        head = page.locator(".board thead tr:last-child th").nth(2)
        button = head.get_by_role("button")
        button.click()
        assert head.get_attribute("aria-sort") == "descending"
        assert [r.get_attribute("data-editor") for r in page.locator(first).all()] == order
        button.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert [r.get_attribute("data-editor") for r in page.locator(first).all()] == order[::-1]
        page.locator(".board thead").get_by_role("button", name="Rank").press("Space")
        assert head.get_attribute("aria-sort") is None
        assert [r.get_attribute("data-editor") for r in page.locator(first).all()] == order
        apart = page.locator(".board tbody").nth(1)
        assert apart.locator("tr").first.inner_text() == "Controls", "groups stay apart"


def test_a_hostile_name_is_text_in_charts_and_tooltips(browser: Browser, rich_page: Path) -> None:
    with visited(browser, rich_page) as page:
        drawn_charts(page)
        mark = page.locator(f"#scatter svg path[aria-label*='{HOSTILE}']").last
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert HOSTILE in tip.inner_text()
        assert page.evaluate("document.querySelectorAll('#vg-tooltip-element script').length") == 0
        assert page.locator("body script:not([src]):not([type])").count() == 0
        key = page.locator(".legend button", has_text=HOSTILE)
        key.click()
        assert key.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_page_fits_the_width(browser: Browser, rich_page: Path, width: int) -> None:
    with visited(browser, rich_page, width=width) as page:
        drawn_charts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_the_editor_stays_while_its_numbers_scroll(
    browser: Browser, rich_page: Path
) -> None:
    with visited(browser, rich_page, width=390) as page:
        name = page.locator(".board tbody th.who").first
        before = name.bounding_box()
        page.evaluate("document.querySelector('.board-scroll').scrollLeft = 300")
        after = name.bounding_box()
        assert before is not None
        assert after is not None
        assert abs(after["x"] - before["x"]) < 45
        assert page.locator(".board tbody td.rank").first.is_visible()


def test_print_has_every_drawing_and_note(browser: Browser, rich_page: Path) -> None:
    with visited(browser, rich_page, scheme="dark") as page:
        page.wait_for_load_state("load")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function(
            "() => [...document.querySelectorAll('img.still')].every((i) => i.naturalWidth > 0)"
        )
        assert page.locator("img.still:visible").count() == page.locator("figure").count()
        assert page.locator(".chart:visible").count() == 0
        covered = page.evaluate(
            """() => [...document.querySelectorAll('figure')].filter((figure) => {
              const still = figure.querySelector('.still').getBoundingClientRect();
              const under = figure.querySelector('.under').getBoundingClientRect();
              return still.height < 50 || under.top < still.bottom - 1;
            }).length"""
        )
        assert covered == 0, "no drawing lies under its words"
        assert page.locator("#leaderboard .notes").is_visible()
        assert not page.locator(".tabs").is_visible()


def test_many_rounds_open_at_once(
    browser: Browser, made_run: Path, made_report: Report, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("convergebench.reporter.overview.write_still", lambda *told: None)
    shutil.copytree(made_report.path.parent / "static", tmp_path / "static")
    metrics = ("psnr", "ssim", "lpips", "clip", *(f"m{i}" for i in range(6)))
    editors = [*editors_of(made_run), ("x", False), ("y", False)][:10]
    findings = rich_findings(editors, metrics=metrics, rounds=100, run="tiny-run")
    path = write_page(made_run, tmp_path, findings)
    for still in (f"charts/{p.stem}.svg" for p in (tmp_path / "data" / "charts").iterdir()):
        (tmp_path / still).parent.mkdir(exist_ok=True)
        (tmp_path / still).write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    with visited(browser, path) as page:
        page.locator("#more-metrics").select_option(label="m5")
        page.locator("#curves").scroll_into_view_if_needed()
        page.wait_for_selector("#convergence-m5 svg .mark-line path")
        took = page.evaluate(
            "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        )
        print(f"opened in {took:.0f} ms")
        assert took < 10_000, "2 s on a machine that is not busy"
