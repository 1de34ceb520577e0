"""Impatient hands, reloads, the back button, a second tab, a server that dies: nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ratings.browser_support import (
    DESKTOP,
    begin,
    count,
    rated,
    serving,
    until,
    until_count,
    visiting,
    watched,
)
from tests.ratings.made import small_study
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser
METHODS = ("zebra-net", "quokka-edit")


def study_of(folder: Path, design: str = "absolute", images: int = 4) -> Path:
    return small_study(
        folder / "s", design, images=images, methods=METHODS, participants=2, practice=0
    )


def mark(page: Page, digits: str) -> None:
    for digit in digits:
        page.keyboard.press(digit)


def checked(page: Page) -> list[str]:
    found = page.locator("#stage input:checked").all()
    return [str(each.get_attribute("value")) for each in found]


def test_an_impatient_hand_answers_once(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    with serving(study) as server, visiting(browser, server.link()) as page:
        posts: list[str] = []
        page.on("request", lambda r: posts.append(r.url) if r.url.endswith("/answers") else None)
        begin(page)
        mark(page, "42")
        page.dblclick("#next")
        until_count(page, "2 of 4")
        mark(page, "31")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        until_count(page, "3 of 4")
        page.wait_for_timeout(300)
        assert count(page) == "3 of 4"
        assert checked(page) == []
        assert len(posts) == 2
        assert server.state()["done"] == 2
        assert sorted(float(row["value"]) for row in rated(server.export())) == [1, 2, 3, 4]


def test_a_double_click_does_not_go_past_the_feedback(browser: Browser, tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=2, methods=METHODS, participants=1, practice=1)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        for group in page.locator("#stage [role=radiogroup]").all():
            group.locator(".step").first.click()
        page.dblclick("#next")
        page.wait_for_selector(".feedback")
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        assert page.locator(".feedback").count() == 1
        page.click("#next")  # waits until it can be pressed
        until_count(page, "1 of 2")
        assert server.state()["practice_left"] == 0


def test_marks_that_were_not_sent_survive_a_reload(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path, images=2)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        mark(page, "4")
        page.wait_for_timeout(400)
        page.reload()
        until_count(page, "1 of 2")  # neither consent nor instructions again
        assert checked(page) == ["4"]
        mark(page, "1")
        page.keyboard.press("Enter")
        until_count(page, "2 of 2")
        assert checked(page) == []
        rows = rated(server.export())
        assert {float(row["value"]) for row in rows} == {4, 1}
        assert all(0.4 <= float(row["seconds"]) < 30 for row in rows)  # the time before it counts
        page.reload()
        until_count(page, "2 of 2")
        assert checked(page) == []


def test_a_comment_survives_a_reload(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path, design="labels", images=2)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        page.fill("#comment", "six <b>fingers</b>")
        page.reload()
        until_count(page, "1 of 2")
        assert page.input_value("#comment") == "six <b>fingers</b>"
        page.focus("h1")
        mark(page, "ynyn")
        page.keyboard.press("Enter")
        until_count(page, "2 of 2")
        assert page.input_value("#comment") == ""
        assert {row["comment"] for row in rated(server.export())} == {"six <b>fingers</b>"}


def test_the_back_button_changes_no_answer(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path, images=2)
    with serving(study) as server, visiting(browser, f"{server.address}/healthz") as page:
        page.goto(server.link())
        begin(page)
        before = page.evaluate("history.length")
        mark(page, "42")
        page.keyboard.press("Enter")
        until_count(page, "2 of 2")
        assert page.evaluate("history.length") == before
        page.go_back()
        assert page.url.endswith("/healthz")
        page.go_forward()
        until_count(page, "2 of 2")
        mark(page, "13")
        page.keyboard.press("Enter")
        until(page, "document.body.dataset.screen === 'done'")
        page.go_back()
        page.go_forward()
        until(page, "document.body.dataset.screen === 'done'")
        assert len(rated(server.export())) == 4


def test_a_second_tab_that_lags_behind_catches_up(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    complaints: list[str] = []
    with serving(study) as server:
        context = browser.new_context(**DESKTOP)
        first, second = watched(context, complaints), watched(context, complaints)
        first.goto(server.link())
        begin(first)
        second.goto(server.link())
        second.click("#start")
        until_count(second, "1 of 4")
        for number in (1, 2):
            until_count(first, f"{number} of 4")
            mark(first, "55")
            first.keyboard.press("Enter")
        until_count(first, "3 of 4")
        mark(second, "00")  # another answer to a page that has one
        second.keyboard.press("Enter")
        until_count(second, "3 of 4")
        assert {float(row["value"]) for row in rated(server.export())} == {5}
        context.close()
    assert not complaints


def test_the_page_waits_for_a_server_that_was_killed(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path, images=2)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        mark(page, "42")
        server.kill()
        page.keyboard.press("Enter")
        until(page, "document.getElementById('status').textContent.startsWith('Not saved yet')")
        assert count(page) == "1 of 2"  # never moves on before it is saved
        assert page.locator("#next").is_disabled()
        mark(page, "00")  # an answer that is on its way is not changed any more
        assert checked(page) == ["4", "2"]
        server.start()
        until_count(page, "2 of 2")
        server.kill()
        mark(page, "13")
        server.start()
        page.keyboard.press("Enter")
        until(page, "document.body.dataset.screen === 'done'")
        assert sorted(float(row["value"]) for row in rated(server.export())) == [1, 2, 3, 4]


def test_nobody_rates_a_picture_that_is_not_there(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    with serving(study) as server, visiting(browser, server.link()) as page:
        there = False
        wanted = server.state()

        def late(route: Route) -> None:
            if there or route.request.url != held:
                route.continue_()
            else:
                route.abort()

        page.click("#agree")
        page.wait_for_selector("#start")
        wanted = server.state()
        held = server.address + wanted["item"]["slots"][1]["image"]
        page.route("**/i/*", late)
        page.click("#start")
        page.wait_for_selector(".pane.broken")
        mark(page, "42")
        assert page.locator("#next").is_disabled()
        assert "Loading" in page.inner_text("#status")
        page.keyboard.press("Enter")
        assert count(page) == "1 of 4"
        there = True
        until(page, "!document.getElementById('next').disabled")
        page.keyboard.press("Enter")
        until_count(page, "2 of 4")


def test_time_is_counted_while_the_page_is_seen(browser: Browser, tmp_path: Path) -> None:
    study = study_of(tmp_path, images=2)
    with serving(study) as server, visiting(browser, server.link()) as page:
        begin(page)
        hide = "Object.defineProperty(document, 'hidden', {{value: {}, configurable: true}});"
        tell = "document.dispatchEvent(new Event('visibilitychange'))"
        page.evaluate(hide.format("true") + tell)
        page.wait_for_timeout(8000)
        page.evaluate(hide.format("false") + tell)
        mark(page, "42")
        page.keyboard.press("Enter")
        until_count(page, "2 of 2")
        assert all(float(row["seconds"]) < 7.9 for row in rated(server.export()))
