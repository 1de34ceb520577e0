"""Every design from consent to thanks in a real browser, by keys alone and by clicks alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.ratings.study import open_study
from tests.ratings.browser_support import begin, rated, serving, until, until_count, visiting
from tests.ratings.made import small_study
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
METHODS = ("zebra-net", "quokka-edit", "walrus-filter")
PAGES = 3
CASES = ("absolute", "single", "pairs", "labels")
Marker = Callable[["Page", str, list[float]], None]


def keys(page: Page, design: str, values: list[float]) -> None:
    """Mark a page with the keyboard, from wherever the focus is, and send it."""
    if design == "pairs":
        page.keyboard.press({1.0: "ArrowLeft", 0.0: "ArrowRight", 0.5: "Space"}[values[0]])
    for value in values if design != "pairs" else ():
        page.keyboard.press(f"{value:g}" if design != "labels" else "y" if value else "n")
    page.keyboard.press("Enter")


def clicks(page: Page, design: str, values: list[float]) -> None:
    """Mark a page with the mouse, and send it."""
    if design == "pairs":
        name = {1.0: "A is better", 0.0: "B is better", 0.5: "No difference"}[values[0]]
        page.locator(".step", has_text=name).click()
    for place, value in enumerate(values if design != "pairs" else ()):
        group = page.locator("#stage [role=radiogroup]").nth(place)
        named = f"{value:g}" if design != "labels" else "Yes" if value else "No"
        group.locator(".step", has=page.get_by_text(named, exact=True)).click()
    page.click("#next")


def wanted(design: str, number: int) -> list[float]:
    """What is answered to the page of a number: different from page to page."""
    if design == "pairs":
        return [(1.0, 0.0, 0.5)[number % 3]]
    if design == "labels":
        return [float((number + place) % 3 == 0) for place in range(2 * len(METHODS))]
    return [float((number + 2 * place) % 6) for place in range(len(METHODS))][
        : 1 if design == "single" else None
    ]


@pytest.mark.parametrize("mark", [keys, clicks])
@pytest.mark.parametrize("design", CASES)
def test_a_session_from_consent_to_thanks(
    browser: Browser, tmp_path: Path, design: str, mark: Marker
) -> None:
    study = small_study(
        tmp_path / "s", design, images=PAGES, methods=METHODS, participants=2, practice=1,
        ties=True, code="each", per_participant=PAGES,
    )  # fmt: skip
    with serving(study) as server, visiting(browser, server.link()) as page:
        if mark is keys:
            for _ in range(2):  # from the heading to the button of the consent, of the instructions
                page.wait_for_selector("h1:focus")
                page.keyboard.press("Tab")
                heading = page.inner_text("h1")
                page.keyboard.press("Enter")
                until(page, f"document.querySelector('h1').textContent !== {heading!r}")
        else:
            begin(page)
        until_count(page, "Practice: 1 left")
        assert "does not count" in page.inner_text("#stage")
        mark(page, design, wanted(design, 0))
        page.wait_for_selector(".feedback")
        assert "on purpose" in page.inner_text(".feedback") or "scene" in page.inner_text(
            ".feedback"
        )
        assert "answers count" in page.inner_text(".feedback")
        until(page, "!document.getElementById('next').disabled")
        (page.keyboard.press("Enter") if mark is keys else page.click("#next"))
        for number in range(PAGES):
            until_count(page, f"{number + 1} of {PAGES}")
            mark(page, design, wanted(design, number + 1))
        until(page, "document.body.dataset.screen === 'done'")
        assert page.inner_text("#code") == server.state()["code"]
        rows = rated(server.export())
    items = [item for item in open_study(study).participants[0].items if item.kind == "item"]
    expected: list[tuple[str, str, float]] = []
    for number, item in enumerate(items):
        values = wanted(design, number + 1)
        if design == "pairs":
            values = [values[0], 1 - values[0]]
        asked = ("infidelity", "over-generation") if design == "labels" else ("",)
        expected += [
            (slot, question, values[place * len(asked) + turn])
            for place, slot in enumerate(item.slots)
            for turn, question in enumerate(asked)
        ]
    found = [
        (row["method"], row["question"] if design == "labels" else "", float(row["value"]))
        for row in rows
    ]
    assert sorted(found) == sorted(expected)
    assert len(found) == len(expected) > 0


def test_scales_and_pictures_have_names_for_a_screen_reader(
    browser: Browser, tmp_path: Path
) -> None:
    study = small_study(tmp_path / "s", images=2, methods=METHODS, participants=1, practice=0)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        for letter in "ABC":
            group = page.get_by_role("radiogroup", name=f"Picture {letter}")
            assert group.get_by_role("radio").count() == 6
            assert page.get_by_role("img", name=f"Picture {letter}", exact=True).count() == 1
            assert group.get_by_role("radio", name="5, excellent").count() == 1
        for name in ("Input", "Reference"):
            assert page.get_by_role("img", name=name, exact=True).count() == 1
        assert page.get_by_role("heading", level=1).inner_text() == "Page 1 of 2"


def test_next_says_what_is_missing_and_goes_there(browser: Browser, tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=2, methods=METHODS, participants=1, practice=0)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        assert page.locator("#next").is_disabled()
        page.keyboard.press("Enter")
        assert "3 of 3 still to answer" in page.inner_text("#status")
        focused = "document.activeElement.closest('[data-place]')?.dataset.place"
        assert page.evaluate(focused) == "a"
        page.keyboard.press("4")  # marks A, goes to B
        assert page.evaluate(focused) == "b"
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == "c"
        page.keyboard.press("2")  # marks C; B is what is missing
        assert page.evaluate(focused) == "b"
        page.keyboard.press("9")  # not on the scale
        assert page.inner_text("#status") == "2 of 3 answered"
        page.keyboard.press("0")
        assert page.locator("#next").is_enabled()
        page.keyboard.press("Shift+Tab")  # to the card's other button or the scale before
        page.keyboard.press("?")
        page.wait_for_selector("#help[open]")
        shown = page.inner_text("#help")
        assert "rate the framed picture" in shown
        assert "choose A" not in shown
        page.keyboard.press("Escape")
        assert server.state()["done"] == 0


def test_a_scale_of_many_steps_is_a_slider_that_must_be_touched(
    browser: Browser, tmp_path: Path
) -> None:
    from convergebench.ratings.design import Scale

    study = small_study(
        tmp_path / "s", "single", images=1, methods=METHODS[:1], participants=1, practice=0,
        scale=Scale(low=0, high=100),
    )  # fmt: skip
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        assert page.locator("#next").is_disabled()
        page.locator("input[type=range]").focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#next").is_enabled()
        page.keyboard.press("Enter")
        until(page, "document.body.dataset.screen === 'done'")
        assert [float(row["value"]) for row in rated(server.export())] == [51.0]


def test_who_does_not_agree_is_not_recorded(browser: Browser, tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=2, methods=METHODS, participants=1, practice=0)
    with serving(study) as server, visiting(browser, server.link()) as page:
        page.click("#decline")
        assert "Nothing was recorded" in page.inner_text("#stage")
        assert server.state()["stage"] == "consent"
        page.get_by_text("Go back").click()
        begin(page)
        assert server.state()["stage"] == "rate"
