"""drift-nr against a slow copy of itself, on chains it was never shown, and on huge pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.drawing import scene
from convergebench.editors.reference import media, personalities
from convergebench.frame import decode
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import driftnr, driftnr_features
from convergebench.metrics.driftnr import drift_nr
from convergebench.testing import check_metric
from tests.metrics.driftnr_slowly import slow_features, slow_score

Pixels = NDArray[np.uint8]

TIED: dict[str, float] = {"extrema": 0.05, "cast": 0.01, "colours": 0.01}
"""Features that count samples beyond a bound: single and double precision may differ in a few that
lie on it. The others agree to 1e-5."""


def value(pixels: Pixels) -> float:
    (found,) = drift_nr().score([StepView(Picture(pixels))])
    assert not isinstance(found, NoScore)
    return found


def parameters() -> dict[str, list[float]]:
    told: dict[str, list[float]] = json.loads(driftnr.PARAMETERS.read_text(encoding="utf-8"))
    return told


def tolerance(name: str) -> float:
    return next((t for start, t in TIED.items() if name.startswith(start)), 1e-5)


def test_contract() -> None:
    check_metric(drift_nr())


def test_the_test_card_equals_the_slow_copy() -> None:
    known = drift_nr().spec.known
    assert known is not None
    card = testcard.testcard()[1]
    assert value(card) == pytest.approx(known.value, abs=known.tolerance)
    slow = slow_score(slow_features(card), parameters())
    assert slow == pytest.approx(known.value, abs=known.tolerance)


def _noisy(name: str, width: int, height: int) -> Pixels:
    grain = np.random.default_rng(3).normal(0, 9, (height, width, 3))
    return media.levels(scene(name, width, height) + grain)


@pytest.mark.parametrize(
    "pixels",
    [
        scene("portrait", 72, 64),
        _noisy("foliage", 67, 75),
        np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8),
        np.full((64, 66, 3), 9, np.uint8),
    ],
    ids=["drawn", "noisy", "static", "flat"],
)
def test_features_and_score_equal_the_slow_copy(pixels: Pixels) -> None:
    slow = slow_features(pixels)
    quick = dict(zip(driftnr_features.NAMES, driftnr_features.features(pixels[None]), strict=True))
    assert set(quick) == set(slow)
    apart = {name: abs(quick[name] - slow[name]) for name in quick}
    assert {name: gap for name, gap in apart.items() if gap > tolerance(name)} == {}
    assert value(pixels) == pytest.approx(slow_score(slow, parameters()), abs=0.1)


def test_the_features_of_two_tiles_are_those_of_one_twice() -> None:
    pixels = _noisy("text", 96, 96)
    once, twice = (driftnr_features.features(np.stack([pixels] * n)) for n in (1, 2))
    # Quantiles between two blocks lie elsewhere when every block is there twice.
    names = [i for i, name in enumerate(driftnr_features.NAMES) if "-" not in name]
    chosen = [i for i in names if not driftnr_features.NAMES[i].startswith(("follows", "slope"))]
    assert twice[chosen] == pytest.approx(once[chosen], abs=1e-5)


@settings(deadline=None, max_examples=20)
@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(64, 70), st.integers(64, 70), st.just(3))),
)
def test_any_picture_scores_between_0_and_100(pixels: Pixels) -> None:
    assert 0 <= value(pixels) <= 100


def test_the_scale_can_be_undone() -> None:
    for score in (0.5, 10, 50, 70, 99):
        assert driftnr.scaled(driftnr.unscaled(score)) == pytest.approx(score)


def test_parameters_of_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="belong to other features"):
        driftnr.Network.of({**parameters(), "features": ["noise"]})


def chain_scores(home: Pixels, manner: str, steps: Sequence[int] = (1, 5, 10, 20)) -> list[float]:
    draw = np.random.default_rng(2)
    effects = {
        "banana": lambda p: personalities.static(p, draw, 1.0),
        "pointillist": lambda p: personalities.dotted(p, draw, 1.0),
        "painter": lambda p: personalities.painted(p, 1.0),
        "wrinkle": lambda p: personalities.wrinkled(p, draw, 1.0),
        "blur": lambda p: media.blur(p, 0.6),
        "noise": lambda p: media.noise(p, draw, 3.0),
        "smooth": lambda p: media.smooth(p, 18.0, 3),
    }
    found = []
    for step in range(1, max(steps) + 1):
        home = effects[manner](home)
        if step in steps:
            found.append(value(home))
    return found


@pytest.mark.parametrize("name", ["expressions", "foliage", "text"])
@pytest.mark.parametrize(
    "manner", ["banana", "pointillist", "painter", "wrinkle", "blur", "noise", "smooth"]
)
def test_later_frames_of_scenes_it_was_not_trained_on_score_worse(name: str, manner: str) -> None:
    """`banana` and `pointillist` were not trained on either."""
    first, *later = chain_scores(scene(name, 256, 256), manner)
    assert min(later) > first


def test_a_frame_that_did_not_change_scores_the_same() -> None:
    pixels = scene("fog", 200, 160)
    assert value(pixels.copy()) == value(pixels)


@pytest.mark.parametrize("name", ["foliage", "portrait", "text", "expressions"])
def test_flips_crops_and_light_matter_little(name: str) -> None:
    pixels = scene(name, 288, 288)
    damaged = media.noise(pixels, np.random.default_rng(1), 20.0)
    room = value(damaged) - value(pixels)
    assert room > 20
    for harmless in (pixels[:, ::-1], pixels[16:-16, 16:-16], media.levels(pixels * 0.96 + 3)):
        assert abs(value(np.ascontiguousarray(harmless)) - value(pixels)) < room / 4


@pytest.mark.parametrize("size", [(513, 513), (700, 520), (1600, 1100)])
def test_a_large_picture_is_looked_at_in_two_views(size: tuple[int, int]) -> None:
    pixels = scene("still-life", *size)
    tiles, whole = driftnr.views(pixels)
    assert tiles.shape == (16, 256, 256, 3)
    assert min(whole.shape[1:3]) == 512
    assert np.array_equal(tiles[0], pixels[:256, :256])
    assert np.array_equal(tiles[-1], pixels[-256:, -256:])
    noisy = media.noise(pixels, np.random.default_rng(0), 15.0)
    assert value(noisy) > value(pixels) + 5
    assert value(media.blur(pixels, 3.0)) > value(pixels) + 5


def test_memory_is_bounded_for_a_huge_picture() -> None:
    """Views of any picture of one shape hold the same number of samples."""
    small, huge = (np.zeros((side, 2 * side, 3), np.uint8) for side in (600, 3000))
    counts = [[stack.size for stack in driftnr.views(p)] for p in (small, huge)]
    assert counts[0] == counts[1]
    assert sum(counts[1]) < 8_000_000


def test_small_pictures_have_no_score() -> None:
    tiny = Picture(np.zeros((63, 90, 3), np.uint8))
    assert drift_nr().score([StepView(tiny)]) == [NoScore("63 pixels on the short side, 64 needed")]


@pytest.mark.shared
def test_the_real_autoencoder_chain(shared: Path) -> None:
    folder = shared / "data" / "chains" / "vae-25-steps"
    files = [folder / f"eiffel_step_{step}.png" for step in (1, 5, 10, 20)]
    first, *later = [value(decode(f.read_bytes())[0]) for f in files]
    assert min(later) > first


@pytest.mark.shared
def test_photographs_score_lower_than_damaged_ones(shared: Path) -> None:
    files = sorted((shared / "data" / "photos" / "kodak24").glob("*.png"))[::4]
    for file in files:
        pixels = decode(file.read_bytes())[0]
        small = np.asarray(cv2.resize(pixels, (384, 256), interpolation=cv2.INTER_AREA), np.uint8)
        draw = np.random.default_rng(0)
        assert value(media.noise(small, draw, 20.0)) > value(small) + 10
        assert value(media.blur(small, 2.5)) > value(small) + 10
