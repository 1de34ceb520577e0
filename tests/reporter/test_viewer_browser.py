"""The viewer's pictures: what is seen is measured in the pixels of the screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from convergebench.store import RunStore
from tests.reporter.conftest import CHROMIUM
from tests.reporter.looking import BLUR, CROP, REFUSER, at, chain_of, looking, pixels, seen
from tests.reporter.walked import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]


# -- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cycle", ["copy", "mirror", "turn", "grey"])
def test_home_is_seen_as_metrics_see_it(browser: Browser, walked: Path, cycle: str) -> None:
    chain = chain_of(walked, cycle, BLUR)
    home = RunStore.open(walked).suite.cycle_named(cycle).home(1)
    assert home is not None
    wanted = home.view(pixels(walked, chain, 0)).astype(int)
    size = (wanted.shape[1], wanted.shape[0])
    with looking(browser, walked, at(walked, cycle, 1, "side", BLUR)) as page:
        assert np.abs(seen(page, "home", size) - wanted).max() <= (1 if home.grey else 0)
        frame = pixels(walked, chain, 1).astype(int)
        assert np.array_equal(seen(page, chain.key.id, size), frame)


def test_difference_is_amplified(browser: Browser, walked: Path) -> None:
    chain = chain_of(walked, "mirror", BLUR)
    home = pixels(walked, chain, 0)[:, ::-1].astype(int)
    apart = np.abs(home - pixels(walked, chain, 1).astype(int))
    assert apart.max() > 8
    with looking(browser, walked, at(walked, "mirror", 1, "difference", BLUR)) as page:
        for gain, label in ((1, "×1"), (4, "×4"), (16, "×16")):
            page.locator(".v-gains label", has_text=re.compile(f"^{label}$")).click()
            found = seen(page, chain.key.id, (48, 32))
            assert np.abs(found - np.minimum(255, gain * apart)).max() <= gain


def test_blink_shows_frame_and_home_in_turn(browser: Browser, walked: Path) -> None:
    chain = chain_of(walked, "copy", BLUR)
    source, frame = (pixels(walked, chain, step).astype(int) for step in (0, 2))
    with looking(browser, walked, at(walked, "copy", 2, "blink", BLUR)) as page:
        for _ in range(2):
            page.wait_for_selector(".panes.swapped")
            page.wait_for_selector(".panes:not(.swapped)")
        met = set[bool]()
        for _ in range(30):  # a busy machine may stop it a swap later than it was asked to
            page.keyboard.press("Space")
            assert page.locator("[data-do=swap]").inner_text() == "Go on"
            swapped = bool(page.locator(".panes.swapped").count())
            if swapped not in met:
                page.wait_for_timeout(900)
                assert bool(page.locator(".panes.swapped").count()) == swapped, "it has stopped"
                shown = seen(page, chain.key.id, (48, 32))[4:-4, 8:-8]
                assert np.array_equal(shown, (source if swapped else frame)[4:-4, 8:-8])
            met.add(swapped)
            if len(met) == 2:
                break
            page.keyboard.press("Space")
            page.wait_for_selector(".panes:not(.swapped)" if swapped else ".panes.swapped")
        assert met == {False, True}


def test_nothing_blinks_by_itself_where_motion_is_reduced(browser: Browser, walked: Path) -> None:
    address = at(walked, "copy", 2, "blink", BLUR)
    with looking(browser, walked, address, motion="reduce") as page:
        page.wait_for_timeout(1500)
        assert not page.locator(".panes.swapped").count()
        assert page.locator("[data-do=swap]").inner_text() == "Swap"
        page.keyboard.press("Space")
        assert page.locator(".panes.swapped").count()
        page.locator("[data-do=swap]").click()
        assert not page.locator(".panes.swapped").count()


def test_another_size_is_marked_and_laid_on_home(browser: Browser, walked: Path) -> None:
    chain = chain_of(walked, "copy", CROP)
    frame = chain.frames[1]
    assert (frame.width, frame.height) != (48, 32)
    with looking(browser, walked, at(walked, "copy", 1, "difference", CROP)) as page:
        mark = page.locator(".pane .size").inner_text()
        assert mark == f"{frame.width}×{frame.height} in 48×32"
        world, image = (
            page.locator(f".pane {what}").bounding_box() for what in (".world", ".frame")
        )
        assert world == image


def test_a_refused_step_tells_why_in_place_of_the_picture(browser: Browser, walked: Path) -> None:
    chain = next(
        c
        for c in RunStore.open(walked).chains()
        if c.key.editor == REFUSER and c.key.source == "s0" and c.ended
    )
    assert chain.ending is not None
    with looking(browser, walked, f"#{chain.key.id}/{chain.ending.step}/frame") as page:
        hole = page.locator(".pane .v-hole")
        assert hole.is_visible()
        assert "refused" in hole.inner_text()
        assert HOSTILE in hole.inner_text()
        assert not page.locator(".pane .world").is_visible()


# -- zoom and pan ---------------------------------------------------------------------------------


def transforms(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('.world')].map((w) => getComputedStyle(w).transform)"
    )
    return found


def test_zoom_and_pan_are_the_same_in_all_panes(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 2, "side", BLUR, HOSTILE)) as page:
        before = transforms(page)
        assert len(before) == 3
        stage = page.locator(".stage").nth(1).bounding_box()
        assert stage
        page.mouse.move(stage["x"] + stage["width"] * 0.7, stage["y"] + stage["height"] * 0.5)
        page.mouse.wheel(0, -600)
        page.wait_for_selector(".panes.zoomed")
        zoomed = transforms(page)
        assert len(set(zoomed)) == 1
        assert zoomed[0] != before[0]
        page.mouse.down()
        page.mouse.move(stage["x"] + stage["width"] * 0.4, stage["y"] + stage["height"] * 0.4)
        page.mouse.up()
        panned = transforms(page)
        assert len(set(panned)) == 1
        assert panned[0] != zoomed[0]
        page.keyboard.press("Shift+ArrowRight")
        assert transforms(page)[0] != panned[0]
        page.keyboard.press("0")
        assert transforms(page) == before
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert len(set(transforms(page))) == 1
        assert page.locator("[data-zoom]").inner_text().endswith("%")
        page.keyboard.press("-")
        page.keyboard.press("-")
        assert transforms(page) == before


def test_the_point_under_the_pointer_stays_there(browser: Browser, walked: Path) -> None:
    share = """([x, y]) => { const b = document.querySelector('.world').getBoundingClientRect();
      return [(x - b.left) / b.width, (y - b.top) / b.height]; }"""
    with looking(browser, walked, at(walked, "copy", 2, "frame", BLUR)) as page:
        world = page.locator(".world").bounding_box()
        assert world
        point = [world["x"] + world["width"] * 0.6, world["y"] + world["height"] * 0.45]
        page.mouse.move(*point)
        before = page.evaluate(share, point)
        page.mouse.wheel(0, -400)
        page.wait_for_selector(".panes.zoomed")
        assert page.evaluate(share, point) == pytest.approx(before, abs=0.002)
        page.mouse.dblclick(*point)
        page.wait_for_selector(".panes:not(.zoomed)")
        page.mouse.dblclick(*point)
        page.wait_for_selector(".panes.zoomed")
        assert page.evaluate(share, point) == pytest.approx(before, abs=0.002)


def test_two_fingers_zoom(browser: Browser, walked: Path) -> None:
    with looking(browser, walked, at(walked, "copy", 2, "side", BLUR), width=390) as page:
        stage = page.locator(".stage").first.bounding_box()
        assert stage
        x, y = stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2
        touch = page.context.new_cdp_session(page)

        def fingers(kind: str, apart: float) -> None:
            points = [{"x": x + side * apart, "y": y, "id": side + 1} for side in (-1, 1)]
            told = {"type": kind, "touchPoints": points if kind != "touchEnd" else []}
            touch.send("Input.dispatchTouchEvent", told)

        fingers("touchStart", 10)
        for apart in (15, 20, 30):
            fingers("touchMove", apart)
        fingers("touchEnd", 30)
        page.wait_for_selector(".panes.zoomed")
        assert len(set(transforms(page))) == 1
        scale = float(transforms(page)[0].removeprefix("matrix(").partition(",")[0])
        assert scale == pytest.approx(3, rel=0.05)


def test_pixels_are_squares_when_large_and_can_be_seen_one_to_one(
    browser: Browser, walked: Path
) -> None:
    rendering = "getComputedStyle(document.querySelector('.world .frame')).imageRendering"
    with looking(browser, walked, at(walked, "copy", 2, "frame", BLUR)) as page:
        assert page.evaluate(rendering) == "pixelated"
        page.keyboard.press("1")
        assert page.evaluate(rendering) == "auto"
        box = page.locator(".world").bounding_box()
        assert box
        assert (round(box["width"]), round(box["height"])) == (48, 32)
        assert page.locator("[data-zoom]").inner_text() == "100 %"
