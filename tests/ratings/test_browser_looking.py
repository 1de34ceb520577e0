"""Looking closer: zoom, movement, comparison and the lightbox, all pictures in step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ratings.browser_support import DESKTOP, PHONE, begin, serving, until, visiting
from tests.ratings.made import small_study
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

pytestmark = pytest.mark.browser
METHODS = ("zebra-net", "quokka-edit", "walrus-filter")
SIZE = 512

# Where every pane looks: zoom, the part of the picture in the pane's middle, and its rendering.
LOOKS = """() => [...document.querySelectorAll(`${document.querySelector("#lightbox[open]")
  ? "#lightbox" : "#stage"} .pane`)].map((pane) => {
    const image = pane.querySelector("img");
    const outer = pane.getBoundingClientRect(), inner = image.getBoundingClientRect();
    return {
      zoom: inner.width / image.offsetWidth,
      ratio: (inner.width * devicePixelRatio) / image.naturalWidth,
      x: (outer.left + outer.width / 2 - inner.left) / inner.width,
      y: (outer.top + outer.height / 2 - inner.top) / inner.height,
      drawn: getComputedStyle(image).imageRendering,
    };
  })"""


def looks(page: Page) -> dict[str, Any]:
    """Where the panes look; they must all look at the same place."""
    page.wait_for_timeout(60)
    found = page.evaluate(LOOKS)
    for each in found:
        assert each["drawn"] == found[0]["drawn"]
        for name in ("zoom", "x", "y"):
            assert each[name] == pytest.approx(found[0][name], abs=0.005)
    told: dict[str, Any] = found[0]
    return told


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("looking")
    study = small_study(
        folder / "s", images=2, methods=METHODS, size=SIZE, participants=1, practice=0
    )
    with serving(study) as server:
        yield server.link()


def opened(page: Page) -> None:
    """On the first page: by consent the first time, by the instructions in a new profile."""
    page.wait_for_selector("#agree, #start")
    if page.locator("#agree").count():
        begin(page)
    else:
        page.click("#start")
        until(page, "document.querySelector('.pane') && !document.querySelector('.pane.loading')")


def middle(page: Page, slot: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
    """A point of a method's picture."""
    box = page.locator(f"#stage [data-slot={slot}] .pane").bounding_box()
    assert box
    return box["x"] + box["width"] * across, box["y"] + box["height"] * down


def test_wheel_drag_and_double_click_move_all_pictures(browser: Browser, link: str) -> None:
    with visiting(browser, link) as page:
        opened(page)
        whole = looks(page)
        assert whole["zoom"] == pytest.approx(1)
        assert whole["drawn"] == "auto"  # smaller than it is
        spot = middle(page, "b", 0.25, 0.25)
        page.mouse.move(*spot)
        for _ in range(3):
            page.mouse.wheel(0, -100)
        near = looks(page)
        assert near["zoom"] > 1.5
        assert near["x"] < 0.5
        assert near["y"] < 0.5
        assert near["ratio"] == pytest.approx(round(near["ratio"]), abs=0.01)  # whole pixels
        assert near["ratio"] > 1
        assert near["drawn"] == "pixelated"
        assert page.inner_text("#zoom-reset") == f"{round(near['ratio'] * 100)} %"
        page.mouse.down()
        page.mouse.move(spot[0] - 40, spot[1] - 20, steps=4)
        page.mouse.up()
        moved = looks(page)
        assert moved["x"] > near["x"]
        assert moved["y"] > near["y"]
        page.mouse.dblclick(*middle(page, "c"))
        assert looks(page)["zoom"] == pytest.approx(1)
        page.mouse.dblclick(*middle(page, "a", 0.9, 0.9))
        corner = looks(page)
        assert corner["zoom"] > 1
        assert corner["x"] > 0.5
        page.click("#zoom-reset")
        assert looks(page)["zoom"] == pytest.approx(1)


def test_keys_zoom_and_move_all_pictures(browser: Browser, link: str) -> None:
    with visiting(browser, link) as page:
        opened(page)
        page.keyboard.press("+")
        page.keyboard.press("+")
        near = looks(page)
        assert near["zoom"] > 1
        page.keyboard.press("Shift+ArrowRight")
        right = looks(page)
        assert right["x"] > near["x"]
        for _ in range(30):
            page.keyboard.press("Shift+ArrowUp")
        edge = looks(page)
        assert edge["y"] == pytest.approx(0.5 / edge["zoom"], abs=0.01)  # no gap at the edge
        page.keyboard.press("-")
        assert looks(page)["zoom"] < near["zoom"]
        page.keyboard.press("z")
        assert looks(page)["zoom"] == pytest.approx(1)
        assert page.locator("input:checked").count() == 0  # looking marks nothing


def seen(page: Page, slot: str, kind: str) -> bool:
    """Whether the input or the reference is shown in a picture's place."""
    shown: bool = page.evaluate(
        f"""getComputedStyle(document.querySelector("#stage [data-slot={slot}] img.{kind}"))
        .visibility === "visible" """
    )
    return shown


def test_press_and_hold_shows_what_to_compare_with(browser: Browser, link: str) -> None:
    with visiting(browser, link) as page:
        opened(page)
        assert not seen(page, "a", "reference")
        page.mouse.move(*middle(page, "a"))
        page.mouse.down()
        page.wait_for_timeout(450)
        assert seen(page, "a", "reference")
        assert not seen(page, "b", "reference")
        page.mouse.up()
        assert not seen(page, "a", "reference")
        page.keyboard.down("i")
        assert seen(page, "a", "input")
        assert seen(page, "c", "input")
        page.keyboard.up("i")
        assert not seen(page, "a", "input")
        box = page.locator("#hold-reference").bounding_box()
        assert box
        page.mouse.move(box["x"] + 10, box["y"] + 10)
        page.mouse.down()
        assert seen(page, "b", "reference")
        page.mouse.up()
        assert not seen(page, "b", "reference")
        assert page.locator("input:checked").count() == 0


def test_one_picture_on_the_whole_screen_looks_at_the_same_place(
    browser: Browser, link: str
) -> None:
    with visiting(browser, link) as page:
        opened(page)
        page.mouse.move(*middle(page, "b", 0.2, 0.2))
        for _ in range(2):
            page.mouse.wheel(0, -100)
        before = looks(page)
        page.keyboard.press("f")
        page.wait_for_selector("#lightbox[open]")
        assert page.inner_text("#lightbox-name").startswith("Picture A")
        there = looks(page)
        assert there["zoom"] == pytest.approx(before["zoom"], rel=0.01)
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#lightbox-name").startswith("Picture B")
        assert looks(page) == there
        page.keyboard.press("4")  # marks what is seen
        assert page.locator("#lightbox input:checked").get_attribute("value") == "4"
        page.keyboard.press("Escape")
        assert page.locator("#stage [data-slot=b] input:checked").get_attribute("value") == "4"
        assert page.locator("#stage input:checked").count() == 1


def fingers(client: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    client.send(
        "Input.dispatchTouchEvent",
        {
            "type": kind,
            "touchPoints": [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)],
        },
    )


def test_fingers_pinch_double_tap_and_swipe(browser: Browser, link: str) -> None:
    with visiting(browser, link, **PHONE) as page:
        opened(page)
        page.evaluate("document.querySelector('[data-slot=b]').scrollIntoView({block: 'center'})")
        page.wait_for_timeout(200)
        client = page.context.new_cdp_session(page)
        x, y = middle(page, "b")
        fingers(client, "touchStart", (x - 30, y))
        fingers(client, "touchStart", (x - 30, y), (x + 30, y))
        for step in range(1, 9):
            fingers(client, "touchMove", (x - 30 - 8 * step, y), (x + 30 + 8 * step, y))
        fingers(client, "touchEnd")
        pinched = looks(page)
        assert pinched["zoom"] > 2
        where = page.evaluate("scrollY")
        fingers(client, "touchStart", (x, y))
        for step in range(1, 6):
            fingers(client, "touchMove", (x, y + 12 * step))
        fingers(client, "touchEnd")
        assert looks(page)["y"] < pinched["y"]  # a finger moves what is zoomed
        assert page.evaluate("scrollY") == where  # and not the page
        page.touchscreen.tap(x, y)
        page.touchscreen.tap(x, y)
        assert looks(page)["zoom"] == pytest.approx(1)
        page.tap("[data-slot=b] .large")
        page.wait_for_selector("#lightbox[open]")
        fingers(client, "touchStart", (300, 400))
        for step in range(1, 9):
            fingers(client, "touchMove", (300 - 25 * step, 400))
        fingers(client, "touchEnd")
        until(page, "document.getElementById('lightbox-name').textContent.startsWith('Picture C')")
        page.tap("#lightbox-control .step:nth-child(3)")
        page.tap("#lightbox-close")
        assert page.locator("#stage [data-slot=c] input:checked").get_attribute("value") == "2"


def test_a_small_picture_shows_its_pixels_and_a_large_one_is_smooth(
    browser: Browser, tmp_path: Path
) -> None:
    study = small_study(tmp_path / "s", images=1, methods=METHODS, size=64, participants=1,
                        practice=0)  # fmt: skip
    with serving(study) as server, visiting(browser, server.link(), **DESKTOP) as page:
        begin(page)
        assert looks(page)["ratio"] > 2
        assert looks(page)["drawn"] == "pixelated"
