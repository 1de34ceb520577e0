"""The scenes that stand for the categories of the restoration paper: what each must show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.drawing import SCENES, scene, scene_rows

# The paper's 13 scene categories by the scenes drawn for them.
CATEGORIES = {
    "Aerial View": ("aerial",),
    "Animal Fur": ("fur", "leopard"),
    "Architecture": ("grid", "library"),
    "Cartoon/Comic": ("comic", "character", "expressions"),
    "Large Face": ("portrait", "elder"),
    "Medium Face": ("face-medium", "gardener"),
    "Small Face": ("face-small", "street"),
    "Crowd": ("crowd", "stadium"),
    "Text": ("text", "sign"),
    "Hands/Feet": ("hands",),
    "Trees/Leaves": ("foliage", "bark"),
    "Hand-drawn": ("sketch", "ink"),
    "Fabric Texture": ("fabric", "knit"),
}
NEW = (
    "aerial", "fur", "leopard", "comic", "elder", "face-medium", "gardener", "face-small", "street",
    "crowd", "stadium", "sign", "hands", "sketch", "ink", "knit",
)  # fmt: skip


@cache
def picture(name: str) -> NDArray[np.uint8]:
    """A scene at half of the suite's size, drawn once."""
    return scene(name, 512, 512)


def luma(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = pixels.astype(np.float64).mean(axis=-1)
    return mean


def box(name: str, x0: float, y0: float, x1: float, y1: float) -> NDArray[np.uint8]:
    """A part of a picture, in shares of its sides."""
    edges = [round(512 * edge) for edge in (x0, y0, x1, y1)]
    return picture(name)[edges[1] : edges[3], edges[0] : edges[2]]


def runs(marked: NDArray[np.bool_]) -> int:
    """How many separate stretches of a row are marked."""
    return int((marked[1:] & ~marked[:-1]).sum() + marked[0])


def test_the_guide_lists_every_scene_with_what_it_shows() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "suite.md"
    text = guide.read_text(encoding="utf-8")
    assert [name for name, what in SCENES.items() if f"| `{name}` | {what} |" not in text] == []


def test_every_category_of_the_paper_has_a_scene() -> None:
    assert len(CATEGORIES) == 13
    drawn = [name for names in CATEGORIES.values() for name in names]
    assert len(drawn) == len(set(drawn))
    assert set(NEW) < set(drawn)


@pytest.mark.parametrize("name", NEW)
def test_there_is_something_to_restore_at_every_scale(name: str) -> None:
    """Each halving of the picture loses detail worth seeing, as it must in a truth."""
    y = luma(picture(name))
    for _ in range(4):
        half = y.reshape(y.shape[0] // 2, 2, y.shape[1] // 2, 2).mean(axis=(1, 3))
        lost = y - np.repeat(np.repeat(half, 2, axis=0), 2, axis=1)
        assert lost.std() > 2.0
        y = half


@pytest.mark.parametrize("name", NEW)
def test_rows_of_a_very_large_picture_can_be_drawn_alone(name: str) -> None:
    rows = scene_rows(name, 4096, 4096, 2000, 2003)
    assert rows.shape == (3, 4096, 3)
    assert np.array_equal(scene_rows(name, 4096, 4096, 2001, 2002)[0], rows[1])
    assert rows.std() > 5.0


@pytest.mark.parametrize("name", ["fur", "leopard", "sketch", "ink", "hands", "knit", "crowd"])
def test_a_large_picture_has_more_than_a_small_one_blown_up(name: str) -> None:
    large = luma(scene_rows(name, 2048, 2048, 1000, 1004))
    small = luma(scene_rows(name, 256, 256, 125, 126))[0]
    blown_up = np.interp(np.arange(2048), np.arange(256) * 8.0 + 3.5, small)

    def bent(y: NDArray[np.float64]) -> float:
        """Share of pixels off the line between their neighbours."""
        return float((np.abs(np.diff(y, 2)) > 1.5).mean())

    assert bent(large[2]) > 3.0 * bent(blown_up)


def test_the_cat_has_two_green_eyes_and_a_pink_nose() -> None:
    for x in (0.318, 0.682):
        red, green, blue = (
            box("fur", x + 0.02, 0.44, x + 0.05, 0.50)[..., channel].mean() for channel in range(3)
        )
        assert green > red + 10.0
        assert green > blue + 40.0
    red, green, blue = (
        box("fur", 0.47, 0.598, 0.53, 0.618)[..., channel].mean() for channel in range(3)
    )
    assert red > green + 40.0
    assert red > blue + 40.0


def test_each_hand_has_four_fingers_side_by_side_and_a_thumb() -> None:
    """Skin is redder and brighter than the boards between the fingers."""
    for across, row in (((0.02, 0.44), 0.345), ((0.56, 0.98), 0.355)):
        strip = box("hands", across[0], row - 0.004, across[1], row + 0.004).astype(np.float64)
        red = strip[..., 0].mean(axis=0)
        assert runs(red > 168.0) == 4
    thumb = box("hands", 0.40, 0.545, 0.43, 0.555)
    assert thumb[..., 0].mean() > 168.0


def test_the_crowd_has_many_faces_of_many_colours() -> None:
    """Rows of heads: dark and light follow each other far more often than in a group of eight."""
    few, many = (
        float(np.abs(np.diff(luma(picture(name))[300:500], axis=1)).mean())
        for name in ("face-small", "crowd")
    )
    assert many > 1.3 * few
    pixels = box("crowd", 0.0, 0.3, 1.0, 1.0).reshape(-1, 3).astype(np.int64)
    red, green, blue = pixels.T
    skin = pixels[(red > green + 12) & (green > blue + 8) & (red > 70)]
    tones = skin.mean(axis=1)
    assert len(skin) > 0.12 * len(pixels)
    assert np.ptp(np.percentile(tones, [5, 95])) > 90.0


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [("elder", 0.5, 0.470), ("face-medium", 0.415, 0.331), ("gardener", 0.587, 0.316)],
)
def test_a_face_has_two_eyes_darker_than_the_bridge_between_them(
    name: str, x: float, y: float
) -> None:
    size = {"elder": 0.305, "face-medium": 0.128, "gardener": 0.122}[name]
    eyes = [
        luma(box(name, x + side * 0.325 * size - 0.06 * size, y - 0.06 * size,
                 x + side * 0.325 * size + 0.06 * size, y + 0.06 * size)).min()
        for side in (-1.0, 1.0)
    ]  # fmt: skip
    bridge = luma(box(name, x - 0.05 * size, y - 0.06 * size, x + 0.07 * size, y + 0.06 * size))
    assert max(eyes) < bridge.mean() - 25.0


def test_the_letters_on_the_shops_stand_out() -> None:
    board = luma(box("sign", 0.37, 0.245, 0.69, 0.315))
    assert (board > 200.0).mean() > 0.15
    assert (board < 90.0).mean() > 0.30
    # Through the middle of BOOKS: three strokes of B and S at least, two for each O.
    assert runs(board[board.shape[0] // 2] > 170.0) >= 6


def test_the_comic_has_flat_colours_dots_and_white_balloons() -> None:
    balloon = box("comic", 0.52, 0.362, 0.66, 0.368)
    assert luma(balloon).mean() > 215.0
    dotted = luma(box("comic", 0.05, 0.40, 0.09, 0.48))
    assert runs(dotted[dotted.shape[0] // 2] > dotted.mean()) >= 2


def test_the_drawings_are_lines_on_paper() -> None:
    for name, ground in (("sketch", (190, 165, 120)), ("ink", (240, 232, 212))):
        pixels = picture(name).astype(np.int64)
        near = np.abs(pixels - np.array(ground)).sum(axis=-1) < 90
        dark = luma(picture(name)) < 90.0
        assert near.mean() > 0.25, name
        assert 0.03 < dark.mean() < 0.6, name


def test_the_town_lies_on_one_bank_and_the_fields_on_the_other() -> None:
    river = box("aerial", 0.55, 0.72, 0.65, 0.74).reshape(-1, 3).astype(np.float64).mean(axis=0)
    fields = box("aerial", 0.35, 0.90, 0.60, 0.98).reshape(-1, 3).astype(np.float64).mean(axis=0)
    assert river[2] > river[0] + 30.0
    assert fields[1] > fields[2] + 30.0
