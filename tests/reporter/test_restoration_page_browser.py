"""The restoration study's page in a real browser: slider, addresses, choosing, themes, print."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from convergebench.reporter.restoration import Shot, write_restoration
from tests.reporter.conftest import CHROMIUM
from tests.reporter.restored import HOSTILE, made_restoration, made_shots
from tests.reporter.test_report_browser import drawn_charts, visited

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}"),
]
SHOWN = "#slider[data-shown]"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Shot]]:
    """The page of a study with a hostile method and scene, and its pictures."""
    folder = tmp_path_factory.mktemp("restored")
    found = made_restoration(6, hostile=True)
    shots = made_shots(found, folder / "shots", side=128)
    return write_restoration(found, folder / "page", shots=shots), shots


@pytest.fixture(scope="module")
def page_path(made: tuple[Path, list[Shot]]) -> Path:
    return made[0]


@contextmanager
def sliding(browser: Browser, path: Path, address: str = "", **how: Any) -> Iterator[Page]:
    """The page with the slider in sight and its pictures there."""
    with visited(browser, path, **how) as page:
        if address:
            page.goto(path.as_uri() + address)
            page.reload()  # a fragment alone loads nothing anew
        page.locator("#compare h2").scroll_into_view_if_needed()
        page.wait_for_selector(SHOWN)
        settled(page)
        page.locator("#split").evaluate("(split) => split.scrollIntoView({ block: 'center' })")
        yield page


def settled(page: Page) -> None:
    page.wait_for_function(
        "() => [...document.querySelectorAll('.split img:not([hidden])')]"
        ".every((i) => i.complete && i.naturalWidth && !i.classList.contains('waiting'))"
    )


def at(page: Page) -> int:
    """Where the line is."""
    return int(page.locator("#divider").get_attribute("aria-valuenow") or -1)


def mean_of(image: Image.Image, across: float) -> Any:
    """The mean colour of a part that is a fifth as wide, in the lower half."""
    pixels = np.asarray(image.convert("RGB")).astype(float)
    height, width = pixels.shape[:2]
    left, right = round((across - 0.1) * width), round((across + 0.1) * width)
    return pixels[round(0.6 * height) : round(0.8 * height), left:right].mean(axis=(0, 1))


def seen(page: Page, across: float) -> Any:
    """The same of the split as the screen has it."""
    with Image.open(io.BytesIO(page.locator("#split").screenshot())) as shot:
        return mean_of(shot, across)


def kept(shots: list[Shot], source: str, key: str, across: float) -> Any:
    """The same of a stored picture."""
    (shot,) = [s for s in shots if (s.source, s.key) == (source, key)]
    assert shot.store is not None
    assert shot.ref is not None
    with Image.open(shot.store.frame_path(shot.ref)) as image:
        return mean_of(image, across)


def test_left_and_right_of_the_line_are_the_pictures_that_were_chosen(
    browser: Browser, made: tuple[Path, list[Shot]]
) -> None:
    path, shots = made
    right = "nano-banana-2--sf3.1"
    with sliding(browser, path, f"#compare/p01/truth/{right}") as page:
        assert page.locator("#left").input_value() == "truth"
        assert page.locator("#right").input_value() == right
        for across, key, other in ((0.25, "truth", right), (0.75, right, "truth")):
            there = seen(page, across)
            assert np.abs(there - kept(shots, "p01", key, across)).max() < 3
            assert np.abs(there - kept(shots, "p01", other, across)).max() > 6
        page.locator("#swap").click()
        settled(page)
        assert page.locator("#left").input_value() == right
        assert np.abs(seen(page, 0.25) - kept(shots, "p01", right, 0.25)).max() < 3


def test_the_line_follows_mouse_and_keys(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path) as page:
        assert at(page) == 50
        box = page.locator("#split").bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] / 2, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.2, middle, steps=4)
        page.mouse.up()
        assert at(page) == 20
        page.mouse.move(box["x"] + box["width"] * 0.9, middle)
        assert at(page) == 20, "nobody holds it"
        page.locator("#divider").focus()
        for key, place in (
            ("ArrowRight", 21), ("Shift+ArrowRight", 31), ("ArrowLeft", 30), ("PageUp", 40),
            ("Home", 0), ("ArrowLeft", 0), ("End", 100), ("ArrowRight", 100),
        ):  # fmt: skip
            page.keyboard.press(key)
            assert at(page) == place, key
        slider = page.get_by_role("slider")
        assert slider.get_attribute("aria-valuemin") == "0"
        assert slider.get_attribute("aria-valuemax") == "100"
        assert "Input" in (slider.get_attribute("aria-valuetext") or "")


def touch(page: Page, *paths: list[tuple[float, float]]) -> None:
    """Fingers that go down, move and go up, as the browser has them from a touch screen.

    Args:
        page: The page.
        paths: Of each finger its places, in shares of the split's width and height.
    """
    box = page.locator("#split").bounding_box()
    assert box is not None
    screen = page.context.new_cdp_session(page)
    for step in range(len(paths[0])):
        points = [
            {"x": box["x"] + path[step][0] * box["width"],
             "y": box["y"] + path[step][1] * box["height"], "id": finger}
            for finger, path in enumerate(paths)
        ]  # fmt: skip
        kind = "touchMove" if step else "touchStart"
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    screen.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    screen.detach()


def test_a_finger_moves_the_line(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path, width=390) as page:
        touch(page, [(0.5 + 0.05 * step, 0.4) for step in range(6)])
        assert at(page) == 75


def test_two_fingers_zoom(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path, width=390) as page:
        page.get_by_role("button", name="Zoom in").click()
        before = float(page.locator("#zoom").inner_text().rstrip("×"))
        wide = [(0.4 - 0.02 * step, 0.5) for step in range(6)]
        touch(page, wide, [(1 - x, y) for x, y in wide])
        assert float(page.locator("#zoom").inner_text().rstrip("×")) == pytest.approx(
            before * 2, abs=0.1
        )


def test_both_pictures_are_zoomed_and_moved_together(browser: Browser, page_path: Path) -> None:
    transforms = (
        "() => [...document.querySelectorAll('.split img')]"
        ".map((image) => getComputedStyle(image).transform)"
    )
    with sliding(browser, page_path) as page:
        page.get_by_role("button", name="Zoom in").click()
        page.get_by_role("button", name="Zoom in").click()
        left, right = page.evaluate(transforms)
        assert left == right
        assert left.startswith("matrix(4,")
        box = page.locator("#split").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 60, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 100, box["y"] + 90, steps=3)
        page.mouse.up()
        moved = page.evaluate(transforms)
        assert moved[0] == moved[1] != left
        assert at(page) == 50, "the picture was moved, not the line"
        page.get_by_role("button", name="Whole picture").click()
        assert page.locator("#zoom").inner_text() == "1×"
        page.locator("#split").dblclick(position={"x": 50, "y": 50})
        assert page.locator("#zoom").inner_text() == "3×"


def test_the_address_names_what_is_shown(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path) as page:
        assert "compare" not in page.url, "nothing was chosen yet"
        page.locator("#of-source").select_option("p03")
        page.wait_for_selector("#slider[data-shown='p03']")
        page.locator("#right").select_option("tsd-sr.0")
        address = page.url
        assert address.endswith("#compare/p03/input/tsd-sr.0")
        page.locator("#shots button[data-key='pisa-sr.0']").click()
        assert page.url.endswith("#compare/p03/input/pisa-sr.0")
        page.locator("#shots button[data-key='truth']").click(modifiers=["Shift"])
        assert page.url.endswith("#compare/p03/truth/pisa-sr.0")
    with sliding(browser, page_path, "#" + address.partition("#")[2]) as page:
        assert page.locator("#of-source").input_value() == "p03"
        assert page.locator("#right").input_value() == "tsd-sr.0"


@pytest.mark.parametrize("address", ["#compare/nobody/x/y", "#compare/%E0%A4%A/a", "#compare//"])
def test_a_wrong_address_shows_the_first_picture(
    browser: Browser, page_path: Path, address: str
) -> None:
    with sliding(browser, page_path, address) as page:
        assert page.locator("#of-source").input_value() == "p00"


def test_a_link_in_a_table_opens_its_picture(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path) as page:
        page.locator("#stability a", has_text="p02").click()
        page.wait_for_selector("#slider[data-shown='p02']")
        assert page.locator("#left").input_value() == "nano-banana-2--s1.0"
        assert page.locator("#right").input_value() == "nano-banana-2--s1.1"


def test_filters_and_arrows_choose_among_pictures(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path) as page:
        assert page.locator("#how-many").inner_text() == "6 pictures"
        page.locator("#of-damage").select_option("old film")
        page.wait_for_selector("#slider[data-shown='p04']")
        assert page.locator("#how-many").inner_text() == "1 picture"
        assert page.locator("#left option").all_inner_texts()[:2] != ["Input", "Ground truth"]
        page.locator("#of-damage").select_option("")
        page.get_by_role("button", name="Next picture").click()
        page.wait_for_selector("#slider[data-shown='p05']")
        page.get_by_role("button", name="Next picture").click()
        page.wait_for_selector("#slider[data-shown='p00']")


def test_an_output_that_failed_says_so(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path, "#compare/p00/input/nano-banana-2--l2.1") as page:
        assert page.locator(".side[data-side='right'] .hole").inner_text() == "refused"
        assert not page.locator(".side[data-side='right'] img").is_visible()


def test_pictures_are_loaded_only_when_they_are_looked_at(
    browser: Browser, page_path: Path
) -> None:
    asked: list[str] = []
    with visited(browser, page_path) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.set_viewport_size({"width": 1280, "height": 300})
        page.reload()
        page.wait_for_load_state("load")
        page.wait_for_timeout(300)
        assert not [url for url in asked if "/frames/" in url]
        page.locator("#compare h2").scroll_into_view_if_needed()
        page.wait_for_selector(SHOWN)
        settled(page)
        assert len([url for url in asked if "/frames/" in url]) == 2
        assert len([url for url in asked if "/data/restoration/source-" in url]) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_and_follows_the_choice(
    browser: Browser, page_path: Path, scheme: str
) -> None:
    with visited(browser, page_path, scheme=scheme, width=1400) as page:
        assert drawn_charts(page) == 2
        words = page.locator("#chart-tradeoff svg text")
        assert "PSNR ↑ (better to the right)" in words.all_text_contents()
        assert "ref:identity" not in words.all_text_contents()
        before = page.locator("[data-figure='tradeoff']").get_attribute("data-drawn")
        page.locator("#distortion").select_option("lpips")
        page.locator("#points").select_option("controls")
        page.wait_for_function(
            "n => document.querySelector('#tradeoff figure').dataset.drawn > Number(n) + 1",
            arg=before,
        )
        told = words.all_text_contents()
        assert "LPIPS ↓ (better to the right)" in told
        assert "ref:identity" in told
        page.locator("#points").select_option("prompts")
        page.wait_for_function(
            "() => !document.querySelector('#chart-tradeoff svg').textContent.includes('TSD-SR')"
        )
        assert {"L1", "LF2", "S3", "SF1"} <= set(words.all_text_contents())
        still = page.locator("[data-figure='tradeoff'] a.svg").get_attribute("href")
        assert still == "charts/restoration-tradeoff-7.svg"
        page.locator("#spread-of").select_option("musiq")
        page.wait_for_function(
            "() => document.querySelector('#chart-spread svg').textContent.includes('MUSIQ')"
        )


def test_one_table_of_scenes_is_shown_at_a_time(browser: Browser, page_path: Path) -> None:
    with visited(browser, page_path) as page:
        panels = page.locator("#scenes .panel:visible h3")
        assert panels.all_inner_texts() == ["PSNR ↑ by scene"]
        page.get_by_role("button", name="Next table").click()
        assert panels.all_inner_texts() == ["SSIM ↑ by scene"]
        page.locator("#scenes select").select_option(label="old film")
        assert panels.all_inner_texts() == ["old film"]


def test_hostile_names_do_not_run(browser: Browser, page_path: Path) -> None:
    with sliding(browser, page_path, "#compare/p00/input/hypir.0") as page:
        assert page.locator(".tag.right").inner_text() == HOSTILE
        assert page.title().startswith("Restoration: ")
        assert page.evaluate("document.querySelectorAll('img[onerror]').length") == 0


@pytest.mark.parametrize("width", [1400, 700, 390])
def test_the_page_fits_the_width(browser: Browser, page_path: Path, width: int) -> None:
    with sliding(browser, page_path, width=width) as page:
        drawn_charts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_tables_and_drawings_are_there(browser: Browser, page_path: Path) -> None:
    with visited(browser, page_path, script=False) as page:
        assert page.locator("img.still:visible").count() == 2
        assert page.locator("#scenes .panel:visible").count() > 10
        assert "needs JavaScript" in page.locator("#compare").inner_text()
        assert not page.locator("#slider").is_visible()
