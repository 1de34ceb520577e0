from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Cycle
from convergebench.editors.reference import open_editor, personalities
from convergebench.editors.reference.media import luma
from convergebench.frame import Frame, resize

Walk = Callable[..., list[Frame]]
PERSONALITIES = ["banana", "wrinkle", "pointillist", "painter"]


def dice() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(4))


def psnr(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    error = np.mean((one.astype(float) - other) ** 2)
    return float(10 * np.log10(255**2 / error))


@pytest.fixture(scope="module")
def scene() -> NDArray[np.uint8]:
    return drawing.scene(sorted(drawing.SCENES)[0], 256, 256)


@pytest.fixture(scope="module")
def disc() -> NDArray[np.uint8]:
    """A bright disc with a soft edge on a dark ground, with a little grain."""
    y, x = np.mgrid[0:256, 0:256]
    inside = np.clip((80 - np.hypot(x - 128, y - 128)) / 2, 0, 1)
    grain = dice().normal(0, 1, inside.shape)
    tone = np.rint(70 + 110 * inside + grain).astype(np.uint8)
    return np.repeat(tone[..., None], 3, axis=2)


@pytest.mark.parametrize("model", PERSONALITIES)
def test_every_step_is_further_from_home(
    model: str, walk: Walk, replicate: Cycle, scene: NDArray[np.uint8]
) -> None:
    options = {"crop": "0"} if model == "banana" else {}
    frames = walk(open_editor(model, **options), replicate, Frame.of_pixels(scene), 20)
    curve = [psnr(frame.pixels, scene) for frame in frames[1:]]
    assert (np.diff(curve[:10]) < 0).all(), curve
    assert curve[0] > 32, "one step is hardly seen"
    assert curve[9] < 31, "ten are"
    assert curve[19] < curve[9] - 0.3


@pytest.mark.parametrize("model", PERSONALITIES)
def test_amount_scales_the_decay(
    model: str, walk: Walk, replicate: Cycle, scene: NDArray[np.uint8]
) -> None:
    extra = {"crop": "0"} if model == "banana" else {}
    ends = [
        walk(open_editor(model, amount=amount, **extra), replicate, Frame.of_pixels(scene), 4)[-1]
        for amount in ("0.5", "1", "2")
    ]
    curve = [psnr(frame.pixels, scene) for frame in ends]
    assert curve[0] > curve[1] > curve[2]


def test_banana_crops_once_and_then_keeps_its_size(walk: Walk, replicate: Cycle) -> None:
    source = Frame.of_pixels(drawing.scene(sorted(drawing.SCENES)[0], 200, 100))
    cut = walk(open_editor("banana"), replicate, source, 3)
    assert [f.pixels.shape[:2] for f in cut] == [(100, 200), (98, 200), (98, 200), (98, 200)]
    kept = walk(open_editor("banana", **{"keep-size": "yes"}), replicate, source, 2)
    assert [f.pixels.shape[:2] for f in kept] == [(100, 200)] * 3
    whole = walk(open_editor("banana", crop="0"), replicate, source, 1)
    assert psnr(kept[1].pixels, source.pixels) < psnr(whole[1].pixels, source.pixels)
    back = resize(np.asarray(source.pixels[1:99]), 200, 98)
    assert psnr(cut[1].pixels, back) > 34


def test_static_grows_and_turns_green() -> None:
    frame = start = np.full((128, 128, 3), 120, np.uint8)
    spread, green = [], []
    for seed in range(12):
        frame = personalities.static(frame, np.random.default_rng(seed), 1)
        spread.append(luma(frame).std())
        means = frame.reshape(-1, 3).mean(axis=0)
        green.append(means[1] - (means[0] + means[2]) / 2)
    assert (np.diff(spread) > 0).all()
    assert spread[-1] > 4.2 * spread[0], "added noise alone would grow by √12 = 3.46"
    assert (np.diff(green) > 0).all()
    assert green[-1] > 12
    assert start[0, 0, 0] == 120


def test_wrinkles_run_along_contours_and_spare_flat_areas(disc: NDArray[np.uint8]) -> None:
    frame = disc
    for seed in range(10):
        frame = personalities.wrinkled(frame, np.random.default_rng(seed), 1)
    relief = luma(frame) - luma(disc)
    y, x = np.mgrid[0:256, 0:256]
    radius = np.hypot(x - 128, y - 128)
    near, far = np.abs(radius - 80) < 15, np.abs(radius - 80) > 45
    assert relief[near].std() > 20 * relief[far].std()
    # Along a contour (the angle) relief changes slowly, across it (the radius) fast.
    polar = cv2.warpPolar(relief, (110, 720), (128, 128), 110, cv2.WARP_POLAR_LINEAR)
    ring = polar[:, 70:90]
    along = np.abs(np.diff(ring, axis=0)).mean() * 720 / (2 * np.pi * 80)
    across = np.abs(np.diff(ring, axis=1)).mean()
    assert across > 2 * along


def test_points_fall_on_what_has_structure(disc: NDArray[np.uint8]) -> None:
    busy = disc.copy()
    texture = np.random.default_rng(1).normal(0, 25, (256, 128, 1))
    busy[:, :128] = np.clip(busy[:, :128] + texture, 0, 255).astype(np.uint8)
    change = np.abs(personalities.dotted(busy, dice(), 1).astype(int) - busy).max(axis=2)
    hit = change > 20
    assert 0.001 < hit.mean() < 0.1, "points, not a veil"
    assert hit[:, :96].mean() > 2 * hit[:, 224:].mean()
    signs = personalities.dotted(busy, dice(), 1).astype(int).sum(axis=2) - busy.sum(axis=2)
    assert (signs > 60).any()
    assert (signs < -60).any()


def test_painting_flattens_texture_and_keeps_the_contour(disc: NDArray[np.uint8]) -> None:
    frame = noisy = np.clip(
        disc + np.random.default_rng(2).normal(0, 8, disc.shape[:2])[..., None], 0, 255
    ).astype(np.uint8)
    for _ in range(10):
        frame = personalities.painted(frame, 1)
    assert luma(frame)[118:138, 118:138].std() < luma(noisy)[118:138, 118:138].std() / 3
    row = luma(frame)[128]
    assert row[50:70].mean() - row[20:40].mean() > 95


def test_painting_leaves_fewer_hues() -> None:
    angles = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    red, blue = 60 * np.sin(angles), 60 * np.cos(angles)
    stripe = np.stack([128 + 1.402 * red, 128 - 0.344 * blue - 0.714 * red, 128 + 1.772 * blue], -1)
    wheel = np.rint(np.repeat(np.repeat(stripe[:, None], 12, axis=1), 12, axis=0)).astype(np.uint8)

    def nearest(picture: NDArray[np.uint8]) -> float:
        ycc = cv2.cvtColor(picture, cv2.COLOR_RGB2YCrCb).astype(float) - 128
        hue = np.arctan2(ycc[..., 1], ycc[..., 2]) + 0.17
        sector = np.pi / 3
        return float(np.abs(hue - np.rint(hue / sector) * sector).mean())

    frame = wheel
    for _ in range(20):
        frame = personalities.painted(frame, 1)
    assert nearest(frame) < 0.6 * nearest(wheel)


@pytest.mark.parametrize("model", PERSONALITIES)
def test_the_decay_looks_alike_at_every_resolution(
    model: str, walk: Walk, replicate: Cycle
) -> None:
    options = {"crop": "0"} if model == "banana" else {}
    found = []
    for side in (512, 1024):
        source = Frame.of_pixels(drawing.scene(sorted(drawing.SCENES)[0], side, side))
        last = walk(open_editor(model, **options), replicate, source, 2)[-1]
        found.append(psnr(last.pixels, source.pixels))
    assert found[0] == pytest.approx(found[1], abs=4)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (9, 64)])
@pytest.mark.parametrize("model", PERSONALITIES)
def test_tiny_pictures_are_taken(
    model: str, size: tuple[int, int], walk: Walk, replicate: Cycle
) -> None:
    source = Frame.of_pixels(np.full((*size, 3), 77, np.uint8))
    assert walk(open_editor(model), replicate, source, 2)[-1].pixels.shape[2] == 3
