"""Looking at a source's page in a real browser, opened from a file as a user would."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from convergebench.chain import Chain
from convergebench.store import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

BLUR, CROP, REFUSER = "ref:blur", "ref:crop-first,crop=0.2,keep-size=no", "ref:refuser,rate=0.5"


@contextmanager
def looking(
    browser: Browser,
    walked: Path,
    address: str = "",
    *,
    width: int = 1280,
    scheme: str = "light",
    motion: str = "no-preference",
) -> Iterator[Page]:
    """The first source's page at an address; it may neither complain nor ask but for files."""
    complaints: list[str] = []

    def refuse(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def inspect(asked: Request) -> None:
        if not asked.url.startswith("file:"):
            complaints.append(asked.url)

    context = browser.new_context(
        viewport={"width": width, "height": 860},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce" if motion == "reduce" else "no-preference",
    )
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", inspect)
    page.goto((walked / "report" / "source-s0.html").as_uri() + address)
    if address:
        page.wait_for_selector("#viewer[open]")
        settled(page)
    yield page
    context.close()
    assert not complaints


def settled(page: Page) -> None:
    """Wait until all pictures in the panes are there."""
    page.wait_for_function(
        "() => document.querySelector('.pane') && "
        "[...document.querySelectorAll('.world img:not([hidden])')]"
        ".every((i) => i.complete && !i.classList.contains('waiting'))"
    )


def chain_of(walked: Path, cycle: str, editor: str) -> Chain:
    (found,) = [
        chain
        for chain in RunStore.open(walked).chains()
        if (chain.key.source, chain.key.cycle, chain.key.editor) == ("s0", f"{cycle}@1", editor)
    ]
    return found


def at(walked: Path, cycle: str, step: int, mode: str, *editors: str) -> str:
    ids = [chain_of(walked, cycle, editor).key.id for editor in editors]
    return f"#{'+'.join(ids)}/{step}/{mode}"


def seen(page: Page, pane: str, size: tuple[int, int]) -> Any:
    """The picture in a pane as the screen has it, one value per pixel of the picture."""
    world = page.locator(f".pane[data-pane='{pane}'] .world")
    shot = np.asarray(Image.open(io.BytesIO(world.screenshot())).convert("RGB"))
    height, width = shot.shape[:2]
    across, down = size
    assert min(width / across, height / down) > 3  # squares, so that their middles are exact
    rows = ((np.arange(down) + 0.5) * height / down).astype(int)
    columns = ((np.arange(across) + 0.5) * width / across).astype(int)
    return shot[rows[:, None], columns].astype(int)


def pixels(walked: Path, chain: Chain, step: int) -> Any:
    return RunStore.open(walked).frame(chain.frames[step]).pixels
