"""What a participant's browser is told, and what the organiser's page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.ratings.study import open_study
from tests.ratings.browser_support import DESKTOP, begin, serving, until, until_count, visiting
from tests.ratings.made import SCENES, SECRETIVE, admin_secret, small_study, tokens
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

pytestmark = pytest.mark.browser
HOSTILE = """<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"""


def everything(page: Page) -> str:
    """All of a page: its markup, what its scripts keep, its addresses."""
    found: str = page.evaluate(
        """document.documentElement.outerHTML + JSON.stringify({...sessionStorage})
        + JSON.stringify({...localStorage}) + document.cookie
        + performance.getEntriesByType("resource").map((each) => each.name).join(" ")"""
    )
    return found


@pytest.mark.parametrize("design", ["absolute", "single", "pairs", "labels"])
def test_nothing_that_reaches_a_participant_names_a_method(
    browser: Browser, tmp_path: Path, design: str
) -> None:
    study = small_study(
        tmp_path / "s", design, images=3, participants=2, practice=1, attention=1, ties=True,
        odd_sizes=True, shows=["input", "reference"], title="Which is better",
    )  # fmt: skip
    record = open_study(study)
    secret = {*SECRETIVE, *SCENES, "hidden-source", "fog-damage", "(broken)", "(reference)",
              "attention", tokens(study)["p02"]}  # fmt: skip
    secret |= {shot.chain for image in record.images for shot in image.shots.values()}
    secret |= {shot.frame for image in record.images for shot in image.shots.values()}
    secret |= set(record.pictures)
    heard: list[Response] = []
    bodies: list[bytes] = []
    with serving(study) as server:
        context = browser.new_context(**DESKTOP)
        page = context.new_page()
        page.on("response", lambda each: heard.append(each))
        page.goto(server.link())
        begin(page)
        while page.get_attribute("body", "data-screen") == "item":
            for group in page.locator("#stage [role=radiogroup]").all():
                group.locator(".step").first.click()
            told = everything(page)
            assert [word for word in secret if word in told] == []
            bodies += [each.body() for each in heard]
            assert any(body.startswith(b"\x89PNG") for body in bodies)  # pictures are looked into
            heads = [json.dumps(each.headers) + each.url for each in heard]
            assert [(w, h) for w in secret for h in heads if w in h] == []
            assert [w for w in secret for body in bodies if w.encode() in body] == []
            sizes = {
                page.evaluate(
                    "[...document.querySelectorAll('#stage .pane > img:first-child')]"
                    ".map((each) => `${each.naturalWidth} ${each.naturalHeight}`).join()"
                )
            }
            assert len(set(next(iter(sizes)).split(","))) == 1  # a size would tell a method
            heard.clear()
            bodies.clear()
            before = page.evaluate("document.getElementById('count').textContent")
            page.click("#next")
            if before.startswith("Practice"):
                page.wait_for_selector(".feedback")
                page.click("#next")
            until(
                page,
                f"document.getElementById('count').textContent !== {before!r}"
                " && !document.querySelector('.pane.loading')"
                " || document.body.dataset.screen === 'done'",
            )
        assert page.get_attribute("body", "data-screen") == "done"
        assert [word for word in secret if word in everything(page)] == []
        context.close()


def test_a_link_shows_nobody_elses_answers(browser: Browser, tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", "labels", images=2, participants=2, practice=0)
    with serving(study) as server, visiting(browser, server.link("p01")) as page:
        begin(page)
        page.fill("#comment", "a remark of the first")
        page.focus("h1")
        for _ in range(10):
            page.keyboard.press("y")
        page.keyboard.press("Enter")
        until_count(page, "2 of 2")
        own = page.evaluate("[...document.querySelectorAll('#stage img')].map((each) => each.src)")
        # In the same tab, with the other's link: nothing of the first is there.
        page.goto(server.link("p02"))
        begin(page)
        until_count(page, "1 of 2")
        assert page.locator("#stage input:checked").count() == 0
        assert page.input_value("#comment") == ""
        assert "a remark of the first" not in page.content()
        other = tokens(study)["p02"]
        for address in own:  # the first one's pictures have no address under another link
            swapped = address.replace(tokens(study)["p01"], other)
            status = page.evaluate(
                "(address) => fetch(address).then((reply) => reply.status)", swapped
            )
            assert status in (404, 429)


def test_a_wrong_link_gets_a_page_that_says_so(browser: Browser, tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=2, participants=1, practice=0)
    with serving(study) as server:
        wrong = server.link()[:-1] + ("A" if server.link()[-1] != "A" else "B")
        for address in (wrong, f"{server.address}/p/short", f"{server.address}/nowhere"):
            with visiting(browser, address) as page:
                assert page.get_by_role("heading").inner_text() == "This link leads nowhere"
                background = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert background != "rgba(0, 0, 0, 0)"  # its style is there


def test_the_organisers_page_is_live_and_shows_text_as_text(
    browser: Browser, tmp_path: Path
) -> None:
    study = small_study(tmp_path / "s", "labels", images=2, participants=2, practice=0)
    with serving(study) as server, visiting(browser, f"{server.address}/admin") as page:
        page.fill("#secret", "not it")
        page.keyboard.press("Enter")
        until(page, "document.getElementById('refused').textContent.includes('not the secret')")
        assert page.locator("#board").is_hidden()
        page.fill("#secret", admin_secret(study))
        page.keyboard.press("Enter")
        page.wait_for_selector("#board:not([hidden])")
        assert "No answers yet" in page.inner_text("#methods")
        until(page, "document.querySelectorAll('#people tr').length === 2")
        with visiting(browser, server.link("p01")) as person:
            begin(person)
            person.fill("#comment", HOSTILE)
            person.focus("h1")
            for _ in range(10):
                person.keyboard.press("y")
            person.keyboard.press("Enter")
            until_count(person, "2 of 2")
        until(page, "document.getElementById('people').textContent.includes('1 of 2')")
        until(page, "!document.getElementById('comments-section').hidden")
        assert page.inner_text("#comments p") == HOSTILE
        assert page.locator("#comments img, #comments script").count() == 0
        assert "owned" not in page.title()
        assert page.locator("#people progress").first.evaluate("(each) => each.value") == 1
        for method in SECRETIVE:  # here, and only here
            assert method in page.inner_text("#methods")
        assert page.locator(".means .middle").count() == 10  # five methods, two questions
        for token in tokens(study).values():
            assert token not in page.content()
        with page.expect_download() as download:
            page.click("#export")
        text = download.value.path().read_text()
        assert len(text.splitlines()) == 1 + 10
        server.kill()
        until(page, "document.getElementById('fresh').textContent.includes('does not answer')")
        server.start()
        until(page, "document.getElementById('fresh').textContent.startsWith('Live')")
        page.click("#leave")
        page.wait_for_selector("#login:not([hidden])")
        page.reload()
        page.wait_for_selector("#login:not([hidden])")
        assert page.locator("#board").is_hidden()
