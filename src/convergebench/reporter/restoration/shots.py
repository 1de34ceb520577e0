"""The pictures of the study: inputs, truths and outputs, brought into the folder for the slider.

A frame that a browser can show and that is no larger than `SIDE` is shown as it is stored. Of any
other a WebP view is made, in `views/`, smaller where there are so many that they would take more
than `MOST_BYTES` together.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from convergebench.chain import FrameRef
from convergebench.disk import replace_file
from convergebench.errors import MalformedImage, StoreDamaged
from convergebench.reporter.pictures import Picture, bring_pictures
from convergebench.reporter.strips import shown_steps
from convergebench.restoration.result import Restoration
from convergebench.store import RunStore

if TYPE_CHECKING:
    from convergebench.gathering import Gathered

SIDE: Final = 1024
"""Longest side of a picture in the slider."""

SIDES: Final = (SIDE, 768, 512, 384)
"""What views are made smaller to, where there are many."""

MOST_BYTES: Final = 1_000_000_000
"""All views together take about this much at most."""

BYTES_PER_PIXEL: Final = 0.3
"""Of a view: WebP of this quality seldom takes more."""

QUALITY: Final = 92
BROWSERS_SHOW: Final = frozenset(("png", "jpeg", "webp", "gif"))
INPUT, TRUTH = "input", "truth"


@dataclass(frozen=True)
class Shot:
    """One picture of a source.

    Attributes:
        source: Whose.
        key: `input`, `truth`, or an output's (`output_key`).
        method: The id of the method that made it; empty for input and truth.
        repeat: Which repeat.
        ref: The frame; None where there is none.
        store: The run that has it.
        missing: Why there is none.
    """

    source: str
    key: str
    method: str = ""
    repeat: int = 0
    ref: FrameRef | None = None
    store: RunStore | None = None
    missing: str = ""


@dataclass(frozen=True)
class View:
    """A shot as the page has it: `full` is the stored file, `shown` what the slider shows."""

    shot: Shot
    full: str = ""
    shown: str = ""
    thumb: str = ""
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Brought:
    """Every view, and what those that had to be made take."""

    views: tuple[View, ...] = ()
    made: int = 0
    side: int = SIDE
    bytes: int = 0

    @property
    def stored(self) -> int:
        """How many pictures are shown as they are stored."""
        return sum(1 for view in self.views if view.shown and view.shown == view.full)


def output_key(method: str, repeat: int) -> str:
    """How addresses name an output."""
    return f"{method}.{repeat}"


def shots_of(found: Restoration, gathered: Gathered) -> list[Shot]:
    """Every picture of the study's sources, in the order of sources and methods."""
    methods = {(method.editor, method.prompt): method for method in found.methods}
    inputs: dict[str, dict[str, Shot]] = {picture.source: {} for picture in found.pictures}
    outputs: dict[str, dict[tuple[int, int], Shot]] = {name: {} for name in inputs}
    order = {method.id: place for place, method in enumerate(found.methods)}
    for chain in gathered.chains:
        key, cycle = chain.key, gathered.suite.cycle_of(chain.key.cycle)
        if cycle.kind != "restore" or key.source not in inputs:
            continue
        named = ", ".join(word for word in (cycle.title, key.settings.label) if word)
        told_as = (named, cycle.title, key.settings.label, "")
        method = next((methods[key.editor, n] for n in told_as if (key.editor, n) in methods), None)
        if method is None:
            continue
        store = gathered.stores[key.id]
        for name, ref in ((INPUT, chain.source), (TRUTH, chain.truth)):
            if ref is not None and name not in inputs[key.source]:
                shot = Shot(key.source, name, ref=ref, store=store)
                inputs[key.source][name] = shot
        step = shown_steps(chain).get(1)
        place = (order[method.id], key.repeat)
        if place in outputs[key.source]:
            continue  # the same with other settings: the source's own page has it
        told = Shot(key.source, output_key(method.id, key.repeat), method.id, key.repeat)
        frame = step.frame if step and step.outcome == "edited" else None
        if frame is not None:
            told = Shot(*_named(told), ref=frame, store=store)
        else:
            told = Shot(*_named(told), missing=step.outcome if step else "not run yet")
        outputs[key.source][place] = told
    return [
        shot
        for name, mine in inputs.items()
        for shot in (
            *(mine[each] for each in (INPUT, TRUTH) if each in mine),
            *(outputs[name][place] for place in sorted(outputs[name])),
        )
    ]


def _named(shot: Shot) -> tuple[str, str, str, int]:
    return shot.source, shot.key, shot.method, shot.repeat


def bring(
    shots: Sequence[Shot], folder: Path, observe: Callable[[int, int], None] | None = None
) -> Brought:
    """Link every frame into the folder, with thumbnails, and views where they are needed."""
    frames = [(shot.ref, shot.store) for shot in shots if shot.ref and shot.store]
    pictures = bring_pictures(frames, folder, observe)
    large = {
        ref.sha256: (ref, store)
        for ref, store in frames
        if pictures[ref.sha256].thumb and not _shown_as_is(ref)
    }
    side = _side(ref for ref, _ in large.values())
    made = _make_views(list(large.values()), side, folder)
    views = tuple(_view(shot, pictures, made) for shot in shots)
    size = sum((folder / name).stat().st_size for name in made.values())
    return Brought(views, len(made), side, size)


def _shown_as_is(ref: FrameRef) -> bool:
    longest = max(ref.width or 0, ref.height or 0)
    return ref.format.lower() in BROWSERS_SHOW and longest <= SIDE


def _side(refs: Iterable[FrameRef]) -> int:
    """The longest side of views with which all of them stay within bounds."""
    shapes = [(ref.width or SIDE, ref.height or SIDE) for ref in refs]
    for side in SIDES:
        pixels = 0.0
        for width, height in shapes:
            scale = min(1.0, side / max(width, height))
            pixels += width * height * scale * scale
        if pixels * BYTES_PER_PIXEL <= MOST_BYTES:
            return side
    return SIDES[-1]


def _make_views(
    frames: Sequence[tuple[FrameRef, RunStore]], side: int, folder: Path
) -> dict[str, str]:
    """The views by the frame's hash; one that is there is what would be made again."""

    def make(told: tuple[FrameRef, RunStore]) -> tuple[str, str] | None:
        ref, store = told
        name = f"views/{ref.sha256[:2]}/{ref.sha256}-{side}.webp"
        if not (folder / name).is_file():
            try:
                data = _webp(store.frame(ref).data, side)
            except (MalformedImage, StoreDamaged):
                return None
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / name, data)
        return ref.sha256, name

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return dict(each for each in pool.map(make, frames) if each)


def _webp(data: bytes, side: int) -> bytes:
    """A view with the longest side told. Raises MalformedImage."""
    import cv2
    from PIL import Image

    from convergebench.frame import decode

    pixels, _ = decode(data)
    height, width = pixels.shape[:2]
    scale = side / max(width, height)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "WEBP", quality=QUALITY, method=4)
    return out.getvalue()


def _view(shot: Shot, pictures: dict[str, Picture], made: dict[str, str]) -> View:
    ref = shot.ref
    if ref is None:
        return View(shot)
    picture = pictures[ref.sha256]
    full, thumb = picture.full or "", picture.thumb or ""
    shown = made.get(ref.sha256, full if thumb and _shown_as_is(ref) else "")
    size = (ref.width, ref.height) if ref.width and ref.height else None
    return View(shot, full, shown, thumb, size)
