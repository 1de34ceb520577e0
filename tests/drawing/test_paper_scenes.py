"""The scenes that stand for the pictures of the Banana100 paper: what makes each of them hard."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.drawing import scene, scene_rows

# The paper's pictures (its table 1) by the scene that stands for each, at the paper's size.
PAPER = {
    "grid": (3392, 5056), "potstickers": (5504, 3072), "still-life": (5632, 3072),
    "fog": (5504, 3072), "particles": (5632, 3072), "library": (5632, 3072), "bark": (4800, 3584),
    "peacock": (4800, 3584), "terraces": (5504, 3072), "dunes": (5504, 3072),
    "table": (5504, 3072), "character": (1664, 2432), "expressions": (3000, 3000),
}  # fmt: skip
NEW = ("potstickers", "library", "bark", "peacock", "terraces")


def luma(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = pixels.astype(np.float64).mean(axis=-1)
    return mean


def hues(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Hue in degrees of every pixel that has a strong colour."""
    flat = pixels.reshape(-1, 3) / 255.0
    told = [colorsys.rgb_to_hsv(*colour) for colour in flat.tolist()]
    return np.array([360.0 * h for h, s, v in told if s > 0.45 and v > 0.25])


def share_of_hues(pixels: NDArray[np.uint8], low: float, high: float) -> float:
    found = hues(pixels)
    return float(((found >= low) & (found < high)).mean())


@pytest.mark.parametrize("name", PAPER)
def test_rows_of_the_papers_size_can_be_drawn_alone(name: str) -> None:
    width, height = PAPER[name]
    start = height * 6 // 10
    rows = scene_rows(name, width, height, start, start + 4)
    assert rows.shape == (4, width, 3)
    assert np.array_equal(scene_rows(name, width, height, start + 2, start + 3)[0], rows[2])
    assert rows.std() > 3.0


@pytest.mark.parametrize("name", NEW)
def test_the_full_size_shows_more_than_a_small_picture_blown_up(name: str) -> None:
    """Each pixel of a blown-up picture lies between its neighbours; fine texture does not."""
    width, height = PAPER[name]
    strips = [scene_rows(name, width, height, height * k // 8, height * k // 8 + 2) for k in (4, 7)]
    large = np.concatenate([luma(strip) for strip in strips])
    small = np.concatenate(
        [luma(scene_rows(name, width // 4, height // 4, height * k // 32, height * k // 32 + 1))
         for k in (4, 7)]
    )  # fmt: skip
    at, places = np.arange(small.shape[1]) * 4.0 + 1.5, np.arange(width)
    blown_up = np.stack([np.interp(places, at, row) for row in small])

    def textured(y: NDArray[np.float64]) -> float:
        """Share of pixels off the line between their neighbours: edges alone are few."""
        return float((np.abs(y[:, 2:] - 2.0 * y[:, 1:-1] + y[:, :-2]) > 0.7).mean())

    assert textured(large) > 0.12
    assert textured(large) > 2.0 * textured(blown_up)


def test_the_library_has_deep_shadows_and_shafts_of_light() -> None:
    y = luma(scene("library", 352, 192))
    assert (y < 32.0).mean() > 0.35
    assert (y > 200.0).mean() > 0.005
    # Along a row through the air of the hall the light rises and falls again, window by window.
    row = luma(scene("library", 384, 384)[230:234]).mean(axis=0)[250:380]
    assert row.max() > row.min() + 45.0


def test_the_feathers_eye_runs_through_its_colours() -> None:
    eye = scene("peacock", 128, 128)[24:86, 36:92]
    assert share_of_hues(eye, 240.0, 290.0) > 0.02, "violet heart"
    assert share_of_hues(eye, 170.0, 225.0) > 0.05, "blue around it"
    assert share_of_hues(eye, 20.0, 50.0) > 0.15, "bronze ring"
    assert share_of_hues(eye, 60.0, 160.0) > 0.10, "green barbs"


def test_the_moss_is_green_the_bark_brown_and_nothing_repeats() -> None:
    pixels = scene("bark", 192, 192)
    red, green, blue = (pixels[..., channel].astype(np.int64) for channel in range(3))
    assert ((green > red + 12) & (green > blue + 30)).mean() > 0.10
    assert ((red > green + 8) & (green > blue + 4)).mean() > 0.25
    y = luma(pixels)
    spectrum = np.abs(np.fft.fft2(y - y.mean())) ** 2
    alike = np.real(np.fft.ifft2(spectrum))
    alike /= alike[0, 0]
    alike[:24], alike[-24:] = 0.0, 0.0
    assert alike.max() < 0.25


def test_the_terraces_mirror_the_sun_below_it() -> None:
    y = luma(scene("terraces", 256, 256)[180:190])
    below, aside = y[:, 156:172].mean(), y[:, 60:120].mean()
    assert below > aside + 8.0


def test_the_terraces_are_many_bands_and_no_two_alike() -> None:
    column = luma(scene("terraces", 512, 512))[200:, 120:124].mean(axis=1)
    low = column - np.convolve(column, np.full(41, 1.0 / 41.0), mode="same")
    edges = np.flatnonzero((low[1:] < 0.0) & (low[:-1] >= 0.0))
    assert len(edges) >= 8
    assert np.diff(edges).std() > 0.2 * np.diff(edges).mean()


def test_the_potstickers_have_structure_at_every_scale() -> None:
    """Each halving of the picture loses detail worth seeing: plate, pleats, crust, sesame."""
    y = luma(scene("potstickers", 512, 512))[128:384, 96:416]
    for _ in range(4):
        half = y.reshape(y.shape[0] // 2, 2, y.shape[1] // 2, 2).mean(axis=(1, 3))
        lost = y - np.repeat(np.repeat(half, 2, axis=0), 2, axis=1)
        assert lost.std() > 4.0
        y = half


def test_the_eyes_of_the_head_shots_run_through_four_colours() -> None:
    eye = scene("expressions", 900, 900)[146:202, 80:126]
    for low, high in ((235.0, 265.0), (300.0, 335.0), (18.0, 35.0), (45.0, 60.0)):
        assert share_of_hues(eye, low, high) > 0.02, (low, high)


def test_the_standing_character_is_whole_in_a_tall_picture_and_no_two_sides_are_alike() -> None:
    pixels = scene("character", 208, 304).astype(np.int64)
    ink = np.abs(pixels - np.array([42, 32, 60])).sum(axis=-1) < 24
    rows = np.flatnonzero(ink.any(axis=1))
    assert rows.min() > 30
    assert rows.max() < 270
    assert np.ptp(rows) > 150
    figure = pixels[60:250, 50:158]
    assert np.abs(figure - figure[:, ::-1]).mean() > 25.0
