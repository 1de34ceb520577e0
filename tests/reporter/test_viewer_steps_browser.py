"""The viewer's steps, keys and addresses, what it tells, how it looks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from convergebench.reporter import build, report
from convergebench.reporter.strips import fold
from convergebench.store import RunStore
from tests.reporter.conftest import CHROMIUM
from tests.reporter.looking import BLUR, CROP, at, chain_of, looking, settled
from tests.reporter.walked import HOSTILE, REASONING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]


# -- steps, keys, addresses -----------------------------------------------------------------------


def test_the_slider_steps_through_the_chain(browser: Browser, walked: Path) -> None:
    chain = chain_of(walked, "ball", BLUR)
    with looking(browser, walked, at(walked, "ball", 0, "frame", BLUR)) as page:
        slider = page.get_by_role("slider", name="Step")
        for step in (3, 1, 4):
            slider.fill(str(step))
            settled(page)
            src = page.locator(".pane .frame").get_attribute("src")
            assert src
            assert chain.frames[step].sha256 in src
            assert page.url.endswith(f"/{step}/frame")
            prompt = "Remove the red ball." if step % 2 == 0 else "Add a red ball."
            assert prompt in page.locator(".v-now").inner_text()
            assert f"step {step} of 4" in (slider.get_attribute("aria-valuetext") or "")
            told = "should equal the source" in page.locator(".v-now").inner_text()
            assert told == (step % 2 == 0)
            assert page.locator(".v-facts th", has_text="psnr").count() == (step % 2 == 0)


def test_play_goes_to_the_end_and_stops(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 2, "frame", BLUR)) as page:
        page.keyboard.press("Space")
        assert page.locator("[data-do=play]").inner_text() == "Stop"
        page.wait_for_url("**/4/frame")
        page.wait_for_function(
            "() => document.querySelector('[data-do=play]').textContent === 'Play'"
        )


def test_everything_can_be_done_with_keys_alone(browser: Browser, walked: Path) -> None:
    chain = chain_of(walked, "copy", BLUR)
    with looking(browser, walked) as page:
        page.locator(f"[id='{chain.key.id}'] td a").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_selector("#viewer[open]")
        assert page.url.endswith(f"#{chain.key.id}/2/frame")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("s")
        assert page.url.endswith("/3/side")
        page.keyboard.press("b")
        page.keyboard.press("d")
        page.keyboard.press("g")
        assert page.locator("[name=viewer-gain]:checked").get_attribute("value") == "16"
        page.keyboard.press("Home")
        page.keyboard.press("End")
        assert page.url.endswith("/4/difference")
        reached = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.closest('.v-chains') !== null"))
            if True in reached:
                break
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        assert page.locator(".pane").count() == 2
        assert "+" in page.url
        page.keyboard.press("Escape")
        page.wait_for_selector("#viewer:not([open])", state="attached")
        focused = page.evaluate("document.activeElement.closest('tr').id")
        assert focused in {c.key.id for c in RunStore.open(walked).chains()}


def test_back_closes_and_forward_opens_again(browser: Browser, walked: Path) -> None:
    with looking(browser, walked) as page:
        page.locator(".strip td a img").nth(1).click()
        page.wait_for_selector("#viewer[open]")
        page.keyboard.press("d")
        page.go_back()
        page.wait_for_selector("#viewer:not([open])", state="attached")
        assert page.url.endswith("source-s0.html")
        page.go_forward()
        page.wait_for_selector("#viewer[open]")
        assert page.url.endswith("/1/difference")
        page.get_by_role("button", name="Close").click()
        page.wait_for_selector("#viewer:not([open])", state="attached")


def test_a_linked_step_closes_to_its_row(browser: Browser, walked: Path) -> None:
    address = at(walked, "turn", 2, "side", BLUR)
    with looking(browser, walked, address) as page:
        page.keyboard.press("Escape")
        page.wait_for_selector("#viewer:not([open])", state="attached")
        assert page.url.endswith(address.partition("/")[0])
    for broken in ("#nobody/3/blink", "#a/b/c", "#%E0%A4%A/1/side", "#/1/frame"):
        with looking(browser, walked) as page:
            page.evaluate("(hash) => { location.hash = hash; }", broken)
            page.wait_for_timeout(150)
            assert not page.locator("#viewer[open]").count()


def test_a_step_beyond_the_end_is_the_last(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 99, "frame", BLUR)) as page:
        assert page.url.endswith("/4/frame")


def test_up_to_four_editors_are_seen_at_once(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 1, "side", BLUR)) as page:
        boxes = page.locator(".v-chains input")
        for index in range(boxes.count()):
            if not boxes.nth(index).is_checked() and boxes.nth(index).is_enabled():
                boxes.nth(index).check()
        settled(page)
        assert page.locator(".pane").count() == 5, "home and four editors"
        assert page.locator(".v-chains input:checked").count() == 4
        assert page.locator(".v-chains input:disabled").count() == boxes.count() - 4
        sizes = {
            (box["width"], box["height"])
            for stage in page.locator(".stage").all()
            if (box := stage.bounding_box())
        }
        assert len(sizes) == 1, "or zoom would not be the same in all"
        page.reload()
        settled(page)
        assert page.locator(".pane").count() == 5


# -- outside, looks -------------------------------------------------------------------------------


def test_what_came_from_outside_is_shown_as_text(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 1, "blink", HOSTILE)) as page:
        assert HOSTILE in page.locator(".v-now").inner_text()
        assert HOSTILE in page.locator(".pane figcaption").inner_text()
        facts = page.locator(".v-facts")
        for row in ("Model", "Sent instead", "Caveats"):
            assert HOSTILE in facts.locator("tr", has_text=row).inner_text()
        page.locator(".v-reasoning summary").click()
        told = page.locator(".v-reasoning p").text_content()
        assert told == REASONING
        assert "$0.039" in facts.inner_text()
        assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        assert page.evaluate("document.querySelectorAll('body script:not([src])').length") == 0
        page.keyboard.press("End")
        assert page.locator(".v-reasoning").get_attribute("open") is not None


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("mode", ["side", "blink", "difference"])
def test_the_viewer_fits_the_width(browser: Browser, walked: Path, width: int, mode: str) -> None:
    address = at(walked, "copy", 1, mode, BLUR, HOSTILE, CROP)
    with looking(browser, walked, address, width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.getElementById('viewer').scrollWidth") <= width
        slider = page.get_by_role("slider", name="Step").bounding_box()
        assert slider
        assert slider["y"] + slider["height"] <= 860, "pictures and slider are seen together"


def test_the_viewer_follows_the_theme(browser: Browser, walked: Path) -> None:
    ground = "getComputedStyle(document.getElementById('viewer')).backgroundColor"
    address = at(walked, "copy", 1, "side", BLUR)
    with looking(browser, walked, address) as page:
        light = page.evaluate(ground)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(ground) != light
    with looking(browser, walked, address, scheme="dark") as page:
        assert page.evaluate(ground) == "rgb(21, 23, 26)"


def test_data_and_frames_are_only_asked_for_when_the_viewer_opens(
    browser: Browser, walked: Path
) -> None:
    asked: list[str] = []
    with looking(browser, walked) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.wait_for_load_state("networkidle")
        assert asked
        assert not [url for url in asked if "/data/" in url or "/frames/" in url]
        page.locator(".strip td a img").nth(1).click()
        settled(page)
        assert len([url for url in asked if "/data/" in url]) == 1
        assert 0 < len([url for url in asked if "/frames/" in url]) <= 4


def test_folded_rows_open_as_they_come_into_view(
    browser: Browser, walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "fold", lambda strips: fold(strips, 12))
    pages = report(walked, out=tmp_path / "report").path.parent
    written = (pages / "source-s0.html").read_text("utf-8").count(" data-folded>")
    folded = "document.querySelectorAll('tr[data-folded]').length"
    with looking(browser, tmp_path) as page:
        page.set_viewport_size({"width": 1280, "height": 300})
        page.reload()
        page.wait_for_function(f"() => {folded} < {written}")
        assert page.evaluate(folded) > 5, "what is far away stays folded"
        last = chain_of(walked, "grey", BLUR).key.id
        row = page.locator(f"[id='{last}']")
        assert row.locator("img").count() == 2
        row.scroll_into_view_if_needed()
        page.wait_for_function(
            "(id) => document.getElementById(id).querySelectorAll('img').length === 5", arg=last
        )
        page.keyboard.press("Tab")
        row.locator("td a").nth(3).click()
        page.wait_for_selector("#viewer[open]")
        assert page.url.endswith(f"#{last}/3/frame")
    with looking(browser, tmp_path, f"#{last}/2/frame") as page:
        page.keyboard.press("Escape")
        page.wait_for_selector("#viewer:not([open])", state="attached")
        assert page.evaluate("document.activeElement.closest('td').cellIndex") == 3


def test_folded_rows_are_whole_in_print(
    browser: Browser, walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "fold", lambda strips: fold(strips, 12))
    report(walked, out=tmp_path / "report")
    with looking(browser, tmp_path) as page:
        page.set_viewport_size({"width": 1280, "height": 300})
        page.reload()
        page.wait_for_load_state("networkidle")
        assert page.locator("tr[data-folded]").count()
        assert len(page.pdf()) > 10_000
        assert not page.locator("tr[data-folded]").count()


def test_a_printed_page_has_every_thumbnail_within_its_width(
    browser: Browser, walked: Path
) -> None:
    with looking(browser, walked, width=700) as page:
        page.emulate_media(media="print")
        page.wait_for_timeout(100)
        outside = page.evaluate(
            "[...document.querySelectorAll('.strip td')]"
            ".filter((c) => c.getBoundingClientRect().right > innerWidth + 1).length"
        )
        assert outside == 0
        assert not page.locator("#viewer").is_visible()
