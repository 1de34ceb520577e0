"""Cases with known answers for the image-level detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import cv2
import numpy as np
from benchmarks.failure_case import (
    NUISANCES,
    Case,
    Pixels,
    blurred,
    dice,
    jpeg,
    levels,
    noisy,
    nuisance,
    picture,
)

from convergebench.chain import Settings
from convergebench.cycle import Cycle, Edit, Operation, grey
from convergebench.failures.geometry import SYMMETRIES, Symmetry, expected_symmetry
from convergebench.failures.situation import Situation, constructed
from convergebench.frame import resize

COPY = Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy the picture."),))
MIRROR = Cycle(
    name="mirror",
    kind="mirror",
    edit=(Edit(prompt="Mirror it.", operation=Operation(kind="flip", axis="horizontal")),),
)
ROTATE = Cycle(
    name="rotate",
    kind="rotate",
    edit=(Edit(prompt="Turn it.", operation=Operation(kind="turn", quarters=1)),),
)
RECOLOUR = Cycle(
    name="recolour",
    kind="recolour",
    edit=(
        Edit(prompt="Make it grey.", operation=Operation(kind="grey")),
        Edit(prompt="Colour it.", operation=Operation(kind="colour")),
    ),
)
SIZES = ((256, 256), (256, 176))
"""Sizes of the sources: a square, and one that is none."""
SIGMAS = (0, 30, 60, 100)
"""Levels of noise over turned and mirrored frames."""
COLOURED = 20.0
"""Chroma (95th percentile) that a source needs for keeping a part of its colour to be visible."""

Change = Callable[[Pixels, str], Pixels]


def cases(sources: Sequence[str]) -> Iterator[Case]:
    """Every case made from these sources."""
    for source in sources:
        yield from _shapes(source)
        yield from _orientations(source)
        yield from _colours(source)
        yield from _surfaces(source)


def _situation(
    cycle: Cycle,
    source: str,
    size: tuple[int, int],
    change: Change,
    harm: str,
    *,
    step: int = 1,
    asked: str | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
) -> Situation:
    """The source, and a frame that is home, changed, with a nuisance on top."""
    origin = picture(source, *size)
    home = cycle.home(step)
    whole = home.view(origin) if home else origin
    seed = f"{source} {size} {step}"
    frame = nuisance(change(whole, seed), harm, seed)
    return constructed(cycle, {0: origin, step: frame}, step, asked=asked, settings=settings)


def _each(
    detector: str,
    failed: bool,
    source: str,
    changes: dict[str, Change],
    *,
    cycle: Cycle = COPY,
    harms: Sequence[str] = NUISANCES,
    step: int = 1,
) -> Iterator[Case]:
    for number, (what, change) in enumerate(changes.items()):
        for index, harm in enumerate(harms):
            size = SIZES[(number + index) % len(SIZES)]
            told = f"{what}, {size[0]}×{size[1]}, nuisance {harm}"
            make = partial(_situation, cycle, source, size, change, harm, step=step)
            yield Case(detector, failed, source, told, make)


def _same(pixels: Pixels, _seed: str) -> Pixels:
    return pixels


# -- shape ---------------------------------------------------------------------------------------


def _scaled(factor: float, stretch: float = 1.0) -> Change:
    def change(pixels: Pixels, _seed: str) -> Pixels:
        height, width = pixels.shape[:2]
        return resize(pixels, round(width * factor * stretch), round(height * factor))

    return change


def _cut(side: str, share: float) -> Change:
    """Without a part of one side."""

    def change(pixels: Pixels, _seed: str) -> Pixels:
        height, width = pixels.shape[:2]
        x, y = round(width * share), round(height * share)
        return {
            "left": pixels[:, x:],
            "right": pixels[:, : width - x],
            "top": pixels[y:],
            "bottom": pixels[: height - y],
        }[side]

    return change


def _zoomed(share: float) -> Change:
    """Cropped by the same share of width and height, at one corner, and brought back to size."""

    def change(pixels: Pixels, seed: str) -> Pixels:
        height, width = pixels.shape[:2]
        dx, dy = round(width * share), round(height * share)
        left, top = (dx, dy) if dice("corner", seed).random() < 0.5 else (0, 0)
        part = pixels[top : top + height - dy, left : left + width - dx]
        return resize(part, width, height)

    return change


def _shapes(source: str) -> Iterator[Case]:
    sides = ("left", "right", "top", "bottom")
    cuts = {
        f"{share:.0%} of the {side} cut": _cut(side, share)
        for side in sides
        for share in (0.02, 0.06, 0.15)
    }
    stretched = {f"stretched by {s:.0%}": _scaled(1, 1 + s) for s in (-0.1, -0.02, 0.02, 0.1)}
    whole = {"the whole picture": _same} | {
        f"scaled by {factor:g}": _scaled(factor) for factor in (0.5, 0.707, 1.37, 2)
    }
    plain = ("none",)
    yield from _each("aspect-change", True, source, cuts | stretched, harms=plain)
    yield from _each("aspect-change", False, source, whole, harms=plain)
    zoomed = {f"zoomed in by {share:.0%}": _zoomed(share) for share in (0.03, 0.08, 0.15)}
    yield from _each("crop", True, source, cuts | zoomed, harms=("jpeg",))
    noise = {f"noise of {s} levels": partial(_noise, s) for s in (10, 25)}
    yield from _each("crop", False, source, whole | noise, harms=("jpeg", "colour", "blur"))
    yield from _sizes(source)


def _noise(sigma: float, pixels: Pixels, seed: str) -> Pixels:
    return noisy(pixels, sigma, seed)


def _sizes(source: str) -> Iterator[Case]:
    """What was asked for in numbers, by name, or not at all, and what came back."""
    told = (
        (False, "256x256", "native", (256, 256)),
        (True, "256x256", "native", (256, 255)),
        (True, "256x256", "native", (512, 512)),
        (False, None, "native", (256, 256)),
        (True, None, "native", (248, 256)),
        (False, None, "1K", (1024, 1024)),
        (False, None, "1K", (1344, 768)),
        (True, None, "1K", (512, 512)),
        (True, None, "2K", (1024, 1024)),
        (False, "16:9 2K", "2K", (2752, 1536)),
        (True, "16:9 2K", "2K", (1376, 768)),
    )
    for failed, asked, resolution, size in told:
        settings = Settings(resolution=resolution)
        change = partial(_resized, size)
        make = partial(
            _situation, COPY, source, (256, 256), change, "none", asked=asked, settings=settings
        )
        what = f"{size[0]}×{size[1]} for {asked or resolution}"
        yield Case("size-mismatch", failed, source, what, make)


def _resized(size: tuple[int, int], pixels: Pixels, _seed: str) -> Pixels:
    return resize(pixels, *size)


# -- orientation -----------------------------------------------------------------------------------


def turned(cycle: Cycle, source: str, size: tuple[int, int], shown: Symmetry, step: int,
           sigma: float, harm: str) -> Situation:  # fmt: skip
    """A frame that shows some symmetry of the source, with a cast, a slight crop and noise."""
    origin = picture(source, *size)
    seed = f"{source} {size} {shown} {step} {sigma}"
    random = dice("turned", seed)
    frame = shown.view(origin)
    if harm == "crop":
        frame = _zoomed(0.04)(frame, seed)
    frame = levels(frame * random.uniform(0.85, 1.1) + random.uniform(-10, 10, 3))
    frame = noisy(frame, sigma, seed)
    if harm != "crop":
        frame = nuisance(frame, harm, seed)
    return constructed(cycle, {0: origin, step: frame}, step)


def _orientations(source: str) -> Iterator[Case]:
    for name, cycle in (("mirror-failure", MIRROR), ("rotation-failure", ROTATE)):
        for step in (1, 2):
            for number, shown in enumerate(SYMMETRIES):
                failed = shown != expected_symmetry(cycle, step)
                # About as many right frames as wrong ones, or precision would mean little.
                harms = ("jpeg",) if failed else ("none", "jpeg", "blur", "colour", "crop")
                for index, harm in enumerate(harms):
                    sigma = SIGMAS[(number + index + step) % len(SIGMAS)]
                    size = SIZES[(shown.quarters + step) % len(SIZES)]
                    what = f"{shown} at step {step}, noise {sigma}, {harm}, {size}"
                    make = partial(turned, cycle, source, size, shown, step, sigma, harm)
                    yield Case(name, failed, source, what, make)


# -- colour ----------------------------------------------------------------------------------------


def _faded(kept: float, pixels: Pixels, _seed: str) -> Pixels:
    """Grey with a part of the colour left."""
    return levels(grey(pixels) * (1.0 - kept) + pixels * kept)


def _tinted(r: float, g: float, b: float, pixels: Pixels, _seed: str) -> Pixels:
    return levels(pixels * np.array([r, g, b]))


def _patched(source: str, size: tuple[int, int], _pixels: Pixels, seed: str) -> Pixels:
    """Grey but for a part of 40 % of the sides that kept its colour, where most of it is."""
    origin = picture(source, *size)
    made = grey(origin)
    height, width = made.shape[:2]
    h, w = int(0.4 * height), int(0.4 * width)
    chroma = np.ptp(origin.astype(float), axis=2).astype(np.float32)
    sums = cv2.boxFilter(chroma, -1, (w, h), anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
    y, x = np.unravel_index(
        int(np.argmax(sums[: height - h, : width - w])), (height - h, width - w)
    )
    made[y : y + h, x : x + w] = origin[y : y + h, x : x + w]
    return made


def _chroma(source: str) -> float:
    from convergebench.failures.tone import PERCENTILE, coarse, lab

    values = lab(coarse(picture(source, *SIZES[0])))
    return float(np.percentile(np.hypot(values[..., 1], values[..., 2]), PERCENTILE))


def _shifted(r: float, g: float, b: float, pixels: Pixels, _seed: str) -> Pixels:
    return levels(pixels.astype(float) + np.array([r, g, b]))


def _bright(factor: float, pixels: Pixels, _seed: str) -> Pixels:
    return levels(pixels * factor)


def _colours(source: str) -> Iterator[Case]:
    sepia: dict[str, Change] = {
        "sepia": partial(_tinted, 1.08, 0.98, 0.8),
        "bluish grey": partial(_tinted, 0.92, 0.98, 1.08),
    }
    yield from _each("monochrome-failure", True, source, sepia, cycle=RECOLOUR)
    greys: dict[str, Change] = {
        "grey": _same,
        "grey with noise": partial(_noise, 8),
        "grey and brighter": partial(_bright, 1.1),
        "grey as a poor JPEG": lambda pixels, _: jpeg(pixels, 40),
    }
    yield from _each("monochrome-failure", False, source, greys, cycle=RECOLOUR)
    if _chroma(source) >= COLOURED:
        for size in SIZES:
            for harm in NUISANCES:
                kinds: dict[str, Change] = {
                    f"{kept:.0%} of the colour kept": partial(_of, source, size, kept)
                    for kept in (0.35, 0.6)
                }
                kinds["a part kept its colour"] = partial(_patched, source, size)
                for what, change in kinds.items():
                    make = partial(_situation, RECOLOUR, source, size, change, harm)
                    yield Case("monochrome-failure", True, source, f"{what}, {harm}", make)
    casts: dict[str, Change] = {
        "green tint": partial(_shifted, -8, 8, -8),
        "warm tint": partial(_shifted, 12, 2, -12),
        "blue gain": partial(_tinted, 0.93, 0.97, 1.08),
        "magenta tint": partial(_shifted, 10, -8, 10),
    }
    yield from _each("colour-cast", True, source, casts)
    plain: dict[str, Change] = {
        "the same": _same,
        "brighter": partial(_bright, 1.08),
        "darker": partial(_bright, 0.9),
        "noise of 12 levels": partial(_noise, 12),
    }
    yield from _each("colour-cast", False, source, plain)


def _of(source: str, size: tuple[int, int], kept: float, _pixels: Pixels, seed: str) -> Pixels:
    return _faded(kept, picture(source, *size), seed)


# -- surface ---------------------------------------------------------------------------------------


def _blur(sigma: float, pixels: Pixels, _seed: str) -> Pixels:
    return blurred(pixels, sigma)


def _smeared(pixels: Pixels, _seed: str) -> Pixels:
    """Flat where there was texture, sharp at strong edges, as painted."""
    return np.asarray(cv2.bilateralFilter(cv2.medianBlur(pixels, 5), 9, 60, 5), np.uint8)


def _hidden(pixels: Pixels, seed: str) -> Pixels:
    """Smoothed, and noise over it."""
    return noisy(blurred(pixels, 2.5), 10, seed)


def _surfaces(source: str) -> Iterator[Case]:
    noise: dict[str, Change] = {f"noise of {s} levels": partial(_noise, s) for s in (7, 12, 25)}
    yield from _each("persistent-noise", True, source, noise)
    clean: dict[str, Change] = {
        "the same": _same,
        "blurred": partial(_blur, 1.0),
        "brighter": partial(_bright, 1.1),
        "as JPEG of quality 60": lambda pixels, _: jpeg(pixels, 60),
        "sharpened": _sharpened,
    }
    yield from _each("persistent-noise", False, source, clean)
    lost: dict[str, Change] = {
        "smoothed by 2 pixels": partial(_blur, 2.0),
        "smoothed by 4 pixels": partial(_blur, 4.0),
        "smoothed, with noise over it": _hidden,
        "painted flat": _smeared,
    }
    yield from _each("texture-loss", True, source, lost)
    kept: dict[str, Change] = {
        "the same": _same,
        "noise of 12 levels": partial(_noise, 12),
        "brighter": partial(_bright, 1.08),
        "as JPEG of quality 60": lambda pixels, _: jpeg(pixels, 60),
    }
    yield from _each("texture-loss", False, source, kept)
    yield from _still(source)


def _sharpened(pixels: Pixels, _seed: str) -> Pixels:
    return levels(1.3 * pixels.astype(float) - 0.3 * blurred(pixels, 1.0))


def _still(source: str) -> Iterator[Case]:
    """A second frame that equals the first, or nearly, or does not."""
    kinds: tuple[tuple[bool, str, Change], ...] = (
        (True, "equal", _same),
        (True, "a level off in 5 % of the pixels", _speckled),
        (False, "noise of 1.5 levels", partial(_noise, 1.5)),
        (False, "brighter by 2 %", partial(_bright, 1.02)),
        (False, "shifted by a pixel", lambda pixels, _: np.roll(pixels, 1, axis=1)),
    )
    for failed, what, change in kinds:
        for cycle in (COPY, MIRROR):
            for size in SIZES:
                make = partial(_second, cycle, source, size, change)
                yield Case("fixed-point", failed, source, f"{what}, {cycle.name}", make)


def _speckled(pixels: Pixels, seed: str) -> Pixels:
    random = dice("speckles", seed)
    flips = random.random(pixels.shape[:2]) < 0.05
    return levels(pixels.astype(float) + flips[..., None])


def _second(cycle: Cycle, source: str, size: tuple[int, int], change: Change) -> Situation:
    origin = picture(source, *size)
    first = jpeg(expected_symmetry(cycle, 1).view(origin), 70)
    second = change(expected_symmetry(cycle, 1).view(first), f"{source} {size}")
    return constructed(cycle, {0: origin, 1: first, 2: second})
