"""Cases with known answers for the object-level and sub-object-level detectors.

Counting and replacement are not here: how often they are wrong depends on the judge that is asked.
"""

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

from convergebench.cycle import Box, Cycle, Edit, Operation, pixel_box
from convergebench.editors.reference.operations import add
from convergebench.failures.situation import Situation, constructed
from convergebench.frame import resize
from convergebench.source import Source

COPY = Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy the picture."),))
MIRROR = Cycle(
    name="mirror",
    kind="mirror",
    edit=(Edit(prompt="Mirror it.", operation=Operation(kind="flip", axis="horizontal")),),
)
GROW = Cycle(name="grow", kind="accumulate", edit=(Edit(prompt="Add one more apple."),))
SPOT: Box = (0.6, 0.62, 0.84, 0.86)
CUP = Cycle(
    name="cup",
    kind="round-trip",
    edit=(
        Edit(prompt="Add a cup.", region=SPOT),
        Edit(prompt="Remove the cup.", region=SPOT),
    ),
)
SQUARE, WIDE = (256, 256), (320, 224)
EYES: Box = (0.3, 0.36, 0.7, 0.56)
IRISES = ((205, 40, 45), (225, 130, 25), (130, 60, 190), (40, 90, 215))
"""Red, orange, purple and blue: the four eye colours that the paper saw become two."""

Change = Callable[[Pixels, str], Pixels]


def cases(sources: Sequence[str]) -> Iterator[Case]:
    """Every case made from these sources."""
    for source in sources:
        yield from _hues(source)
        yield from _gradients(source)
        yield from _backgrounds(source)


# -- harmless changes, and harmful ones -------------------------------------------------------


def _same(pixels: Pixels, _seed: str) -> Pixels:
    return pixels


def _noise(sigma: float, pixels: Pixels, seed: str) -> Pixels:
    return noisy(pixels, sigma, seed)


def _jpeg(quality: int, pixels: Pixels, _seed: str) -> Pixels:
    return jpeg(pixels, quality)


def _blur(sigma: float, pixels: Pixels, _seed: str) -> Pixels:
    return blurred(pixels, sigma)


def _tint(far: float, pixels: Pixels, seed: str) -> Pixels:
    """Off in a direction of its own in each case, brightness hardly changed."""
    way = dice("tint", seed).normal(size=3)
    way -= way.mean()
    return levels(pixels.astype(float) + far * way / np.linalg.norm(way))


def _fade(left: float, pixels: Pixels, _seed: str) -> Pixels:
    grey = pixels.mean(axis=2, keepdims=True)
    return levels(grey + left * (pixels - grey))


def _contrast(left: float, pixels: Pixels, _seed: str) -> Pixels:
    return levels(128 + left * (pixels.astype(float) - 128))


def _cropped(share: float, pixels: Pixels, _seed: str) -> Pixels:
    """Cut at the right and bottom, and brought back to size."""
    height, width = pixels.shape[:2]
    kept = pixels[: height - round(share * height), : width - round(share * width)]
    return resize(np.ascontiguousarray(kept), width, height)


HARMLESS: dict[str, Change] = {
    "the same": _same,
    "noise of 6 levels": partial(_noise, 6.0),
    "noise of 14 levels": partial(_noise, 14.0),
    "as JPEG of quality 40": partial(_jpeg, 40),
    "blurred by a pixel": partial(_blur, 1.0),
    "tinted": partial(_tint, 14.0),
    "faded to 70 %": partial(_fade, 0.7),
    "less contrast": partial(_contrast, 0.8),
    "cropped by 4 %": partial(_cropped, 0.04),
}
"""Damage of other kinds, which takes neither hues nor gradients away."""


# -- hues -------------------------------------------------------------------------------------


def _hues(source: str) -> Iterator[Case]:
    name = "simplification"
    for what, change in HARMLESS.items():
        for cycle, size in ((COPY, SQUARE), (MIRROR, WIDE)):
            make = partial(_eyed, cycle, source, size, IRISES, change, "none")
            yield Case(name, False, source, f"{what}, {cycle.name}", make)
    red, orange, purple, blue = IRISES
    simpler = {
        "two of four hues": (red, red, blue, blue),
        "orange gone": (red, red, purple, blue),
        "purple gone": (red, orange, blue, blue),
        "orange gone grey": (red, (128, 125, 120), purple, blue),
        "all red": (red, red, red, red),
    }
    for what, irises in simpler.items():
        for kind in NUISANCES:
            make = partial(_eyed, COPY, source, SQUARE, irises, _same, kind)
            yield Case(name, True, source, f"{what}, {kind}", make)
        for harm in ("noise of 14 levels", "tinted", "cropped by 4 %", "as JPEG of quality 40"):
            make = partial(_eyed, MIRROR, source, WIDE, irises, HARMLESS[harm], "none")
            yield Case(name, True, source, f"{what}, {harm}", make)


def _eyed(
    cycle: Cycle,
    source: str,
    size: tuple[int, int],
    irises: Sequence[tuple[int, int, int]],
    change: Change,
    kind: str,
) -> Situation:
    """A source with four coloured irises, and a frame in which they have these colours."""
    origin = picture(source, *size)
    before, after = _with_eyes(origin, IRISES), _with_eyes(origin, irises)
    seed = f"{source} {size} {irises}"
    frame = nuisance(change(after, seed), kind, seed)
    if cycle is MIRROR:
        frame = np.ascontiguousarray(frame[:, ::-1])
    told = Source(name=source, licence="none", elsewhere="made", regions={"eyes": EYES})
    return constructed(cycle, {0: before, 1: frame}, source=told)


def _with_eyes(pixels: Pixels, irises: Sequence[tuple[int, int, int]]) -> Pixels:
    """Two white eyes, each iris coloured in two halves, with pupil and light."""
    made = np.ascontiguousarray(pixels).copy()
    height, width = made.shape[:2]
    x0, y0, x1, y1 = pixel_box(EYES, width, height)
    for side in range(2):
        centre = (round(x0 + (x1 - x0) * (0.25 + 0.5 * side)), (y0 + y1) // 2)
        wide, high = round((x1 - x0) * 0.22), round((y1 - y0) * 0.46)
        cv2.ellipse(made, centre, (wide, high), 0, 0, 360, (245, 243, 238), -1, cv2.LINE_AA)
        radius = round(min(wide, high) * 0.92)
        for half in range(2):
            start = 180 + 180 * half
            colour = irises[2 * side + half]
            cv2.ellipse(made, centre, (radius, radius), 0, start, start + 180, colour, -1)
        cv2.circle(made, centre, max(1, radius // 4), (25, 20, 25), -1, cv2.LINE_AA)
    return made


# -- gradients --------------------------------------------------------------------------------


def _gradients(source: str) -> Iterator[Case]:
    name = "gradient-vanishing"
    for size in (SQUARE, WIDE):
        for what, change in HARMLESS.items():
            yield Case(name, False, source, what, partial(_shaded, source, size, _same, change))
    gone: dict[str, Change] = {
        "flat colour": _flat,
        "6 bands": partial(_bands, 6),
        "10 bands": partial(_bands, 10),
        "8 levels": partial(_levels, 8),
    }
    after: dict[str, Change] = {
        "": _same,
        " and noise of 3 levels": partial(_noise, 3.0),
        " and JPEG": partial(_jpeg, 80),
        " and tinted": partial(_tint, 14.0),
        " and cropped": partial(_cropped, 0.03),
    }
    for what, loss in gone.items():
        for number, (also, change) in enumerate(after.items()):
            make = partial(_shaded, source, (SQUARE, WIDE)[number % 2], loss, change)
            yield Case(name, True, source, what + also, make)


def _shaded(source: str, size: tuple[int, int], loss: Change, change: Change) -> Situation:
    """A source whose upper part is a smooth sky, and a frame in which only that is changed."""
    origin = picture(source, *size)
    seed = f"{source} {size}"
    part = round(0.55 * size[1])
    sky = _sky(size[0], part, seed)
    before, after = origin.copy(), origin.copy()
    before[:part], after[:part] = sky, loss(sky, seed)
    return constructed(COPY, {0: before, 1: change(after, seed)})


def _sky(width: int, height: int, seed: str) -> Pixels:
    """From one colour to another, at a slant, brighter round a sun."""
    random = dice("sky", seed)
    one, other = random.uniform(40, 215, (2, 3))
    while np.abs(one - other).max() < 90:
        one, other = random.uniform(40, 215, (2, 3))
    y, x = np.mgrid[0:height, 0:width]
    along = (y / height + random.uniform(-0.4, 0.4) * x / width).clip(0, 1)[..., None]
    far = np.hypot(x / width - random.uniform(0.2, 0.8), y / width - 0.2)[..., None]
    return levels(one + (other - one) * along + 35 * np.exp(-((far / 0.25) ** 2)))


def _flat(pixels: Pixels, _seed: str) -> Pixels:
    return np.broadcast_to(levels(pixels.mean(axis=(0, 1))), pixels.shape).copy()


def _bands(count: int, pixels: Pixels, _seed: str) -> Pixels:
    """In so many colours, the best ones."""
    points = pixels.reshape(-1, 3).astype(np.float32)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 20, 0.5)
    cv2.setRNGSeed(1)
    _, label, centre = cv2.kmeans(points, count, None, stop, 1, cv2.KMEANS_PP_CENTERS)  # type: ignore[call-overload]
    return levels(centre[label.ravel()].reshape(pixels.shape))


def _levels(count: int, pixels: Pixels, _seed: str) -> Pixels:
    """Each channel in so many levels."""
    return levels(np.rint(pixels / 255 * (count - 1)) * 255 / (count - 1))


# -- backgrounds ------------------------------------------------------------------------------


def _backgrounds(source: str) -> Iterator[Case]:
    name = "background-decay"
    for kind in NUISANCES:
        for cycle, size in ((GROW, SQUARE), (CUP, WIDE)):
            make = partial(_put_in, cycle, source, size, partial(_nuisance, kind), 0)
            yield Case(name, False, source, f"{kind}, {cycle.name}", make)
    more: dict[str, Change] = {"the same": _same, "as JPEG": partial(_jpeg, 90)}
    for what, change in more.items():
        make = partial(_put_in, GROW, source, WIDE, change, 5)
        yield Case(name, False, source, f"{what}, five objects before", make)
    make = partial(_put_in, GROW, source, SQUARE, partial(_cropped, 0.03), 0)
    yield Case(name, False, source, "cropped by 3 %", make)
    decayed: dict[str, Change] = {
        "noise of 16 levels": partial(_noise, 16.0),
        "noise of 28 levels": partial(_noise, 28.0),
        "tinted": partial(_tint, 16.0),
        "noise and tint": _noise_and_tint,
        "blotched": _blotched,
        "cropped and noisy": lambda pixels, seed: noisy(_cropped(0.03, pixels, seed), 18.0, seed),
    }
    for what, change in decayed.items():
        for cycle, before, size in ((GROW, 0, SQUARE), (GROW, 5, WIDE), (CUP, 0, WIDE)):
            make = partial(_put_in, cycle, source, size, change, before)
            yield Case(name, True, source, f"{what}, {cycle.name}, {before} before", make)


def _nuisance(kind: str, pixels: Pixels, seed: str) -> Pixels:
    return nuisance(pixels, kind, seed)


def _noise_and_tint(pixels: Pixels, seed: str) -> Pixels:
    return noisy(_tint(10.0, pixels, seed), 12.0, seed)


def _blotched(pixels: Pixels, seed: str) -> Pixels:
    """Coarse blotches of light, as editors leave them after many steps."""
    random = dice("blotches", seed)
    height, width = pixels.shape[:2]
    rough = random.normal(0, 1, (height, width)).astype(np.float32)
    soft = np.asarray(cv2.GaussianBlur(rough, (0, 0), 2.5))
    return levels(pixels.astype(float) + 14 * (soft / soft.std())[..., None])


def _put_in(
    cycle: Cycle, source: str, size: tuple[int, int], change: Change, before: int
) -> Situation:
    """A source with some objects, its background changed so, and then a fresh object."""
    origin = picture(source, *size)
    seed = f"{source} {size} {before}"
    previous = origin
    random = dice("objects", seed)
    for _ in range(before):
        x, y = random.uniform(0.02, 0.4), random.uniform(0.5, 0.8)
        previous = add(previous, "apple", (x, y, x + 0.14, y + 0.18))
    old = change(previous, seed)
    frame = add(np.ascontiguousarray(old), "apple" if cycle is GROW else "cup", SPOT)
    if cycle is CUP:
        return constructed(cycle, {0: origin, 1: frame})
    # the frame before is not quite as bad
    less = levels((2 * previous.astype(float) + 3 * old) / 5) if old.shape == origin.shape else old
    return constructed(cycle, {0: origin, before + 1: less, before + 2: frame})
