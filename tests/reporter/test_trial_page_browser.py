"""The page of a trial in a real browser: choosing editor and metric, themes, print, names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter.trial import write_trial
from tests.reporter.conftest import CHROMIUM
from tests.reporter.test_report_browser import drawn_charts, visited
from tests.reporter.trials import made_trial

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a trial with a hostile metric, editor and image."""
    return write_trial(made_trial(4, 3, 4, 20, 3, hostile=True), tmp_path_factory.mktemp("live"))


def words(page: Page, figure: str) -> list[str]:
    """All that is written in a chart."""
    found: list[str] = page.locator(f"#chart-{figure} svg text").all_text_contents()
    return found


def lines(page: Page, figure: str) -> list[str]:
    """The outlines of a chart's lines and bands."""
    marks = f"#chart-{figure} svg :is(.mark-line, .mark-area) path"
    found: list[str] = page.locator(marks).evaluate_all("all => all.map(p => p.getAttribute('d'))")
    return found


def choose(page: Page, select: str, label: str, *figures: str) -> None:
    """Choose, and wait until the figures are drawn anew."""
    counts = [page.locator(f"[data-figure='{f}']").get_attribute("data-drawn") for f in figures]
    page.locator(f"#{select}").select_option(label=label)
    for figure, before in zip(figures, counts, strict=True):
        page.wait_for_function(
            "([f, n]) => document.querySelector(`[data-figure='${f}']`).dataset.drawn > n",
            arg=[figure, before],
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn(browser: Browser, page_path: Path, scheme: str) -> None:
    with visited(browser, page_path, scheme=scheme, width=1400) as page:
        assert drawn_charts(page) == 10
        assert not page.locator(".still:visible").count()
        assert page.locator("#chart-gaps svg .mark-rect.role-mark path").count() == 4 * 4 * 3
        assert {"Δ5", "Δ10", "Δ20", "drift-nr"} <= set(words(page, "gaps"))
        assert page.title().startswith("Trial of metrics")


def test_another_editor_changes_the_heat_maps(browser: Browser, page_path: Path) -> None:
    trial = made_trial(4, 3, 4, 20, 3, hostile=True)
    with visited(browser, page_path, width=1400) as page:
        drawn_charts(page)
        before = words(page, "gaps")
        choose(page, "arm", "ref:static", "gaps", "overlay")
        after = words(page, "gaps")
        assert after != before
        gap = trial.gaps.filter(arm="ref:static", metric="drift-nr", source="bark", step=5)["gap"][
            0
        ]
        assert f"{gap:+.0f}".replace("-", "−") in after
        figure = page.locator("[data-figure='gaps']")
        assert figure.locator(".which").inner_text() == ": ref:static"
        assert figure.locator("a.svg").get_attribute("href") == "charts/trial-gaps-2-ref-static.svg"
        assert (page_path.parent / "charts" / "trial-gaps-2-ref-static.svg").is_file()
        page.get_by_role("button", name="Next editor").click()
        assert figure.locator(".which").inner_text() == ": ref:wrinkles"
        page.locator("#success a[data-arm='1']").click()
        assert figure.locator(".which").inner_text() == ": ref:static"


def test_another_metric_changes_the_lines(browser: Browser, page_path: Path) -> None:
    with visited(browser, page_path, width=1400) as page:
        drawn_charts(page)
        first = lines(page, "steps")
        assert len(first) == 3 * (4 + 1), "four images and their mean for each editor"
        choose(page, "metric", "brisque", "steps", "adding")
        assert lines(page, "steps") != first
        assert page.locator("[data-figure='adding'] .which").inner_text() == ": brisque"
        assert len(lines(page, "adding")) == 3 * (1 + 1 + 3), "band, mean, three repeats"
        choose(page, "source", "bark", "steps")
        assert len(lines(page, "steps")) == 3 * (1 + 1 + 3)
        assert "each repeat a thin one" in page.locator("[data-figure='steps'] .how").inner_text()
        choose(page, "panels", "one per image", "steps")
        assert not page.locator("#source").is_visible()
        assert len(lines(page, "steps")) == 4 * 3
        still = page.locator("[data-figure='steps'] img.still").get_attribute("src")
        assert still == "charts/trial-images-3-brisque.svg"
        choose(page, "walker", "ref:wrinkles", "steps")
        assert len(lines(page, "steps")) == 4 * (1 + 1 + 3)


def test_a_view_is_saved_as_svg(browser: Browser, page_path: Path, tmp_path: Path) -> None:
    with visited(browser, page_path) as page:
        drawn_charts(page)
        with page.expect_download() as saved:
            page.locator("[data-figure='adding'] .save").click()
        assert saved.value.suggested_filename == "trial-adding.svg"
        saved.value.save_as(tmp_path / "view.svg")
        assert (tmp_path / "view.svg").read_text("utf-8").startswith("<svg")


def test_a_hostile_name_is_text_in_tooltips(browser: Browser, page_path: Path) -> None:
    trial = made_trial(4, 3, 4, 20, 3, hostile=True)
    with visited(browser, page_path, width=1400) as page:
        drawn_charts(page)
        cell = page.locator("#chart-arms svg .mark-rect.role-mark path").first
        cell.scroll_into_view_if_needed()
        cell.hover(force=True)
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert " ".join(trial.arms[0].split()) in " ".join(tip.inner_text().split())
        assert page.evaluate("document.querySelectorAll('#vg-tooltip-element img').length") == 0
        assert page.title().startswith("Trial of metrics"), "no name has run"


@pytest.mark.parametrize("width", [1400, 700, 390])
def test_the_page_fits_the_width(browser: Browser, page_path: Path, width: int) -> None:
    with visited(browser, page_path, width=width) as page:
        drawn_charts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": width - 60, "height": 900})
        page.wait_for_timeout(600)
        assert page.evaluate("document.documentElement.scrollWidth") <= width - 60


def test_print_has_every_drawing(browser: Browser, page_path: Path) -> None:
    with visited(browser, page_path, scheme="dark") as page:
        drawn_charts(page)
        choose(page, "arm", "ref:wrinkles", "gaps")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function(
            "() => [...document.querySelectorAll('img.still')].every((i) => i.naturalWidth > 0)"
        )
        assert page.locator("img.still:visible").count() == page.locator("figure").count()
        assert page.locator(".chart:visible").count() == 0
        assert not page.locator(".chooser:visible").count()
        still = page.locator("[data-figure='gaps'] img.still").get_attribute("src")
        assert still == "charts/trial-gaps-3-ref-wrinkles.svg"


def test_without_scripts_the_drawings_are_there(browser: Browser, page_path: Path) -> None:
    with visited(browser, page_path, script=False) as page:
        assert page.locator("img.still:visible").count() == page.locator("figure").count()
        assert not page.locator(".chooser:visible").count()
        assert page.locator(".card").count() == 4


def test_a_large_trial_opens_and_changes_at_once(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "convergebench.reporter.trial.page.write_still",
        lambda path, figure: (path.parent.mkdir(exist_ok=True), path.write_text("<svg/>")),
    )
    path = write_trial(made_trial(30, 12, 13, 100, 5), tmp_path)
    with visited(browser, path, width=1400) as page:
        drawn_charts(page)
        opened = page.evaluate(
            "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        )
        begun = page.evaluate("performance.now()")
        choose(page, "metric", "rali", "steps", "adding")
        took = page.evaluate("performance.now()") - begun
        print(f"opened in {opened:.0f} ms, another metric drawn in {took:.0f} ms")
        assert opened < 10_000, "a second on a machine that is not busy"
        assert took < 20_000, "two on a machine that is not busy"
