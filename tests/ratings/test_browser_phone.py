"""The participant's pages on a phone: nothing beside the screen, all large enough to touch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ratings.browser_support import PHONE, begin, rated, serving, until, until_count, visiting
from tests.ratings.made import small_study
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
METHODS = ("zebra-net", "quokka-edit", "walrus-filter")
SMALL = """() => [...document.querySelectorAll("button, .step, textarea")].filter((each) => {
  const box = each.getBoundingClientRect();
  return box.width && (box.width < 43.9 || box.height < 43.9);
}).map((each) => `${each.id} ${each.className} ${each.textContent}`)"""


def fits(page: Page) -> None:
    """Nothing is beside the screen, and no target is too small for a thumb."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("visualViewport.scale") == 1
    assert page.evaluate(SMALL) == []


def tap(page: Page, design: str) -> None:
    """Answer a page with a thumb."""
    if design == "pairs":
        page.tap(".verdict .step >> nth=0")
    else:
        for group in page.locator("#stage [role=radiogroup]").all():
            group.locator(".step").first.tap()


@pytest.mark.parametrize("design", ["absolute", "single", "pairs", "labels"])
def test_a_session_on_a_phone(browser: Browser, tmp_path: Path, design: str) -> None:
    study = small_study(
        tmp_path / "s", design, images=2, methods=METHODS, size=256, participants=1, practice=1,
        ties=True, per_participant=2, title="A study with a title too long for the top of a phone",
        code="each", shows=["input", "reference"],
    )  # fmt: skip
    with serving(study) as server, visiting(browser, server.link(), **PHONE) as page:
        page.wait_for_selector("#agree")
        fits(page)
        page.tap("#agree")
        page.wait_for_selector("#start")
        fits(page)
        page.tap("#start")
        until_count(page, "Practice: 1 left")
        fits(page)
        tap(page, design)
        page.tap("#next")
        page.wait_for_selector(".feedback")
        fits(page)
        page.tap("#next")
        for number in (1, 2):
            until_count(page, f"{number} of 2")
            assert page.evaluate("scrollY") == 0  # a new page begins at its top
            tap(page, design)
            fits(page)
            for bar in ("#count", "#next"):  # in sight wherever one has scrolled to
                box = page.locator(bar).bounding_box()
                assert box
                assert 0 <= box["y"] <= 844 - box["height"]
            page.tap("#next")
        until(page, "document.body.dataset.screen === 'done'")
        fits(page)
        assert rated(server.export())


def test_cards_are_stacked_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    study = small_study(
        tmp_path / "s", images=1, methods=METHODS, size=256, participants=1, practice=0
    )
    with serving(study) as server, visiting(browser, server.link(), **PHONE) as page:
        begin(page)
        boxes = [page.locator(f"[data-slot={slot}]").bounding_box() for slot in "abc"]
        assert all(box and box["x"] == boxes[0]["x"] and box["width"] > 350 for box in boxes)  # type: ignore[index]
        tops = [box["y"] for box in boxes if box]
        assert tops == sorted(tops)
        assert len(set(tops)) == 3
