"""The drawn pictures: pinned pixels, equal on every machine, whatever the size or the band."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.drawing import ANCHORS, OBJECTS, SCENES, scene, scene_rows, sprite

ROOT = Path(__file__).resolve().parents[2]
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "drawing.json").read_text())
SCENE_SIZES = ((96, 96), (160, 96))
SPRITE_SIZE = (64, 64)

# Prints the digests of a few pictures; run where the processor's features are switched off.
ELSEWHERE = """
import hashlib, json
from convergebench.drawing import OBJECTS, SCENES, scene, sprite
digests = {f"scene/{n}/96x96": scene(n, 96, 96) for n in SCENES}
digests |= {f"sprite/{n}/64x64": sprite(n, 64, 64) for n in OBJECTS}
print(json.dumps({k: hashlib.sha256(v.tobytes()).hexdigest() for k, v in digests.items()}))
"""


def digest(pixels: NDArray[np.uint8]) -> str:
    return hashlib.sha256(pixels.tobytes()).hexdigest()


def luma(name: str, side: int) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = scene(name, side, side).astype(np.float64).mean(axis=2)
    return mean


def fine_detail(name: str) -> float:
    """Mean size of the second difference along both axes: what a smooth gradient lacks."""
    y = luma(name, 256)
    across = np.abs(y[:, 2:] - 2.0 * y[:, 1:-1] + y[:, :-2]).mean()
    down = np.abs(y[2:] - 2.0 * y[1:-1] + y[:-2]).mean()
    return float(across + down)


def switchable_features() -> list[str]:
    """The processor features numpy found here and lets one switch off."""
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]


def test_public_names_are_sorted_and_complete() -> None:
    assert drawing.__all__ == sorted(drawing.__all__)
    for name in drawing.__all__:
        assert hasattr(drawing, name)


def test_the_scenes_are_there() -> None:
    assert set(SCENES) == {
        "grid", "fog", "particles", "foliage", "table", "fabric", "text", "character",
        "expressions", "dunes", "still-life", "portrait", "potstickers", "library", "bark",
        "peacock", "terraces", "aerial", "fur", "comic", "face-medium", "face-small", "crowd",
        "hands", "sketch", "sign", "elder", "gardener", "street", "stadium", "ink", "knit",
        "leopard",
    }  # fmt: skip
    assert all(SCENES.values())


def test_the_objects_are_there() -> None:
    assert set(OBJECTS) >= {
        "red-ball", "cup", "book", "plant", "vase", "chair", "cat", "apple", "glasses",
        "sunglasses", "hat", "scarf", "umbrella", "party-hat", "earrings", "necklace", "watch",
        "beard", "moustache", "dog",
    }  # fmt: skip
    assert all(OBJECTS.values())


def test_golden_values_cover_every_picture() -> None:
    scenes = {f"scene/{name}/{w}x{h}" for name in SCENES for w, h in SCENE_SIZES}
    sprites = {f"sprite/{name}/{SPRITE_SIZE[0]}x{SPRITE_SIZE[1]}" for name in OBJECTS}
    assert set(GOLDEN["digests"]) == scenes | sprites


@pytest.mark.parametrize("size", SCENE_SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCENES)
def test_scene_has_its_pinned_pixels(name: str, size: tuple[int, int]) -> None:
    width, height = size
    pixels = scene(name, width, height)
    assert pixels.shape == (height, width, 3)
    assert pixels.dtype == np.uint8
    assert digest(pixels) == GOLDEN["digests"][f"scene/{name}/{width}x{height}"]


@pytest.mark.parametrize("name", OBJECTS)
def test_sprite_has_its_pinned_pixels(name: str) -> None:
    width, height = SPRITE_SIZE
    pixels = sprite(name, width, height)
    assert pixels.shape == (height, width, 4)
    assert pixels.dtype == np.uint8
    assert digest(pixels) == GOLDEN["digests"][f"sprite/{name}/{width}x{height}"]


@pytest.mark.parametrize("dispatch", ["all", "none"])
def test_another_process_with_other_processor_features_draws_the_same(dispatch: str) -> None:
    features = switchable_features()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1" if dispatch == "none" else "3",
        "OPENBLAS_NUM_THREADS": "1" if dispatch == "none" else "3",
        "PYTHONHASHSEED": "7" if dispatch == "none" else "11",
    }
    environment.pop("NPY_ENABLE_CPU_FEATURES", None)
    if dispatch == "none":
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(features)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE],
        env=environment, capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    found = json.loads(ran.stdout)
    assert len(found) == len(SCENES) + len(OBJECTS)
    assert found == {key: GOLDEN["digests"][key] for key in found}


@pytest.mark.parametrize("name", SCENES)
def test_bands_join_without_a_seam(name: str) -> None:
    width, height = 150, 101
    whole = scene(name, width, height)
    cuts = (0, 1, 7, 8, 50, 83, 100, 101)
    bands = [scene_rows(name, width, height, a, b) for a, b in itertools.pairwise(cuts)]
    assert np.array_equal(np.concatenate(bands), whole)


@pytest.mark.parametrize("name", OBJECTS)
def test_the_band_height_does_not_show_in_a_sprite(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sprite(name, 90, 70)
    monkeypatch.setattr("convergebench.drawing.canvas._BAND_PIXELS", 90 * 3)
    assert np.array_equal(sprite(name, 90, 70), whole)


@pytest.mark.parametrize("size", [(16, 16), (17, 31), (16, 120), (120, 16), (33, 18)])
@pytest.mark.parametrize("name", SCENES)
def test_any_size_can_be_drawn(name: str, size: tuple[int, int]) -> None:
    pixels = scene(name, *size)
    assert pixels.shape == (size[1], size[0], 3)
    assert pixels.std() > 1.0


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (17, 31), (300, 20), (20, 300)])
@pytest.mark.parametrize("name", OBJECTS)
def test_any_sprite_size_can_be_drawn(name: str, size: tuple[int, int]) -> None:
    pixels = sprite(name, *size)
    assert pixels.shape == (size[1], size[0], 4)


@pytest.mark.parametrize("name", SCENES)
def test_a_wide_picture_shows_the_square_one_in_its_middle(name: str) -> None:
    wide, square = scene(name, 160, 96), scene(name, 96, 96)
    assert np.array_equal(wide[:, 32:128], square)


@pytest.mark.parametrize("name", SCENES)
def test_a_larger_picture_is_the_same_picture(name: str) -> None:
    small = scene(name, 96, 96).astype(np.float64)
    large = scene(name, 192, 192).astype(np.float64).reshape(96, 2, 96, 2, 3).mean(axis=(1, 3))
    assert np.abs(large - small).mean() < 9.0


def test_scenes_differ_from_each_other() -> None:
    pictures = {name: scene(name, 96, 96).astype(np.float64) for name in SCENES}
    for a, b in itertools.combinations(pictures, 2):
        assert np.abs(pictures[a] - pictures[b]).mean() > 30.0, (a, b)


def test_textures_are_fine_where_they_should_be_and_smooth_elsewhere() -> None:
    assert fine_detail("fabric") > 6.0 * fine_detail("dunes")
    assert fine_detail("foliage") > 6.0 * fine_detail("dunes")
    assert fine_detail("grid") > 6.0 * fine_detail("dunes")
    assert fine_detail("foliage") > 1.5 * fine_detail("fog")


def test_fog_has_low_contrast() -> None:
    y = luma("fog", 96)
    assert y.min() > 70.0
    assert y.std() < 0.8 * luma("grid", 96).std()


@pytest.mark.parametrize("name", OBJECTS)
def test_a_sprite_is_solid_within_and_clear_at_its_upper_corners(name: str) -> None:
    alpha = sprite(name, 120, 120)[..., 3]
    assert alpha.max() == 255
    assert alpha[0, 0] == 0
    assert alpha[0, -1] == 0
    assert 0.05 < float((alpha > 128).mean()) < 0.95


@pytest.mark.parametrize(
    "name", ["red-ball", "cup", "book", "plant", "vase", "chair", "cat", "dog"]
)
def test_what_stands_stays_on_the_lower_edge_of_a_tall_box(name: str) -> None:
    rows = np.flatnonzero((sprite(name, 80, 240)[..., 3] > 200).any(axis=1))
    assert rows.min() > 100
    assert rows.max() >= 225


def test_a_sprite_keeps_its_proportions() -> None:
    solid = sprite("red-ball", 300, 100)[..., 3] > 200
    columns, rows = np.flatnonzero(solid.any(axis=0)), np.flatnonzero(solid.any(axis=1))
    assert abs(int(np.ptp(columns)) - int(np.ptp(rows))) <= 6


@pytest.mark.parametrize("width", [90, 240, 600])
def test_earrings_hang_at_the_sides_of_their_box_and_keep_their_size(width: int) -> None:
    solid = sprite("earrings", width, 90)[..., 3] > 200
    columns = np.flatnonzero(solid.any(axis=0))
    assert columns.min() < 8
    assert columns.max() >= width - 8
    left, right = solid[:, : width // 2], solid[:, (width + 1) // 2 :]
    assert abs(int(left.sum()) - int(right.sum())) <= 0.02 * left.sum()
    assert abs(int(left.sum()) - int((sprite("earrings", 90, 90)[:, :45, 3] > 200).sum())) < 120
    if width > 200:
        assert not solid[:, 60 : width - 60].any(), "the face between them stays free"


@pytest.mark.parametrize(
    ("name", "size", "clear", "solid"),
    [
        ("necklace", (250, 200), (125, 60), (125, 160)),
        ("beard", (250, 200), (125, 25), (125, 130)),
        ("moustache", (260, 100), (130, 90), (100, 50)),
        ("watch", (120, 200), (8, 20), (60, 100)),
    ],
)
def test_what_is_worn_leaves_free_what_must_be_seen(
    name: str, size: tuple[int, int], clear: tuple[int, int], solid: tuple[int, int]
) -> None:
    alpha = sprite(name, *size)[..., 3]
    assert alpha[clear[1], clear[0]] == 0
    assert alpha[solid[1], solid[0]] > 240


@pytest.mark.parametrize("name", ["beard", "necklace", "dog", "watch", "moustache", "earrings"])
def test_a_larger_sprite_is_the_same_object(name: str) -> None:
    small, large = (
        sprite(name, side, side).astype(np.float64).reshape(80, k, 80, k, 4).mean(axis=(1, 3))
        for side, k in ((80, 1), (320, 4))
    )
    shown = [pixels[..., :3] * pixels[..., 3:] / 255 for pixels in (small, large)]
    assert np.abs(shown[0] - shown[1]).mean() < 6.0
    assert np.abs(small[..., 3] - large[..., 3]).mean() < 6.0


def test_alpha_is_straight() -> None:
    pixels = sprite("red-ball", 120, 120)[:40]
    edge = (pixels[..., 3] > 20) & (pixels[..., 3] < 235)
    assert edge.any()
    # Premultiplied colour would fade with alpha at the rim.
    assert pixels[edge][:, 0].min() > 80


def test_anchors_are_boxes_within_the_square() -> None:
    assert set(ANCHORS) == set(SCENES)
    for anchors in ANCHORS.values():
        for x0, y0, x1, y1 in anchors.values():
            assert 0.0 <= x0 < x1 <= 1.0
            assert 0.0 <= y0 < y1 <= 1.0
        x0, y0, x1, y1 = anchors["spot"]
        assert x1 - x0 == pytest.approx(0.2, abs=0.03)
        assert y1 - y0 == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("name", ["character", "portrait"])
def test_people_have_anchors_for_what_they_wear(name: str) -> None:
    anchors = ANCHORS[name]
    assert {"eyes", "head-top", "neck", "spot"} <= set(anchors)
    assert anchors["head-top"][3] < anchors["eyes"][3] < anchors["neck"][3]


@pytest.mark.parametrize("name", ["character", "portrait"])
def test_the_eyes_anchor_lies_over_the_eyes(name: str) -> None:
    x0, y0, x1, y1 = (round(edge * 256) for edge in ANCHORS[name]["eyes"])
    face = luma(name, 256)[y0:y1, x0:x1]
    middle = face[:, face.shape[1] * 2 // 5 : face.shape[1] * 3 // 5]
    left, right = face[:, : face.shape[1] * 2 // 5], face[:, face.shape[1] * 3 // 5 :]
    assert min(left.min(), right.min()) < middle.min()


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        scene("nowhere", 64, 64)
    with pytest.raises(KeyError, match="nothing"):
        sprite("nothing", 64, 64)


@pytest.mark.parametrize("size", [(15, 64), (64, 15), (0, 0)])
def test_a_scene_too_small_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"at least 16x16 pixels\. Got"):
        scene("fog", *size)


def test_a_sprite_without_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 1x1 pixels\. Got 0x5"):
        sprite("cup", 0, 5)
