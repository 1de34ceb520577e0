"""Sub-object level: hues that are gone from a part, and gradients that went flat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.cycle import Cycle, Edit, Home
from convergebench.failures.aligned import at_home
from convergebench.failures.hues import NAMES, hues_of, oklab
from convergebench.failures.parts import DETECTORS
from convergebench.failures.situation import Situation, constructed
from convergebench.metric import NoScore
from convergebench.source import Source
from tests.failures.cycles import COPY, MIRROR, RECOLOUR, ROTATE

SIMPLIFICATION, GRADIENTS = DETECTORS
RED, ORANGE, PURPLE, BLUE = (205, 40, 45), (225, 130, 25), (130, 60, 190), (40, 90, 215)
EYES = (0.25, 0.25, 0.75, 0.5)
WITH_EYES = Source(name="girl", licence="none", elsewhere="made", regions={"eyes": EYES})


def textured(side: int = 128) -> Any:
    """A grey picture with enough in it to be registered by."""
    coarse = np.random.default_rng(3).integers(60, 200, (16, 16))
    return np.repeat(np.kron(coarse, np.ones((side // 16,) * 2, int))[..., None], 3, 2)


def eyed(*irises: tuple[int, int, int], wide: int = 16) -> Any:
    """Four bars of colour where the eyes are."""
    pixels = textured()
    for number, colour in enumerate(irises):
        pixels[32:64, 32 + wide * number : 32 + wide * (number + 1)] = colour
    return pixels.astype(np.uint8)


def sky(side: int = 128) -> Any:
    """Texture below, a smooth gradient above."""
    pixels = textured(side)
    ramp = np.linspace(0, 1, side // 2)[:, None, None]
    pixels[: side // 2] = np.array((40, 80, 200)) * (1 - ramp) + np.array((240, 170, 90)) * ramp
    return pixels.astype(np.uint8)


def noisy(pixels: Any, sigma: float) -> Any:
    noise = np.random.default_rng(1).normal(0, sigma, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


def looked(detector: Any, situation: Situation) -> Any:
    assert detector.applies(situation) == ""
    return detector.look(situation)


FOUR = eyed(RED, ORANGE, PURPLE, BLUE)


def test_four_hues_that_became_two_are_two_lost() -> None:
    made = {0: FOUR, 1: eyed(RED, RED, BLUE, BLUE)}
    found = looked(SIMPLIFICATION, constructed(COPY, made, source=WITH_EYES))
    assert found.value == 2
    assert found.detail == "2 of 4 hues lost: orange, purple; left: red, blue"
    assert found.box == pytest.approx(EYES, abs=0.02)
    assert SIMPLIFICATION.failed(found.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p,
        lambda p: noisy(p, 10),
        lambda p: np.clip(p.astype(int) + np.array((10, -8, 4)), 0, 255).astype(np.uint8),
        lambda p: (p.mean(2, keepdims=True) * 0.3 + p * 0.7).astype(np.uint8),
    ],
    ids=["same", "noise", "tint", "faded"],
)
def test_hues_survive_what_takes_none_away(change: Any) -> None:
    found = looked(SIMPLIFICATION, constructed(COPY, {0: FOUR, 1: change(FOUR)}, source=WITH_EYES))
    assert (found.value, found.detail) == (0, "all 4 hues are there")


@pytest.mark.parametrize(
    ("cycle", "view"),
    [(MIRROR, lambda p: p[:, ::-1]), (ROTATE, lambda p: np.rot90(p, -1))],
    ids=["mirror", "rotate"],
)
def test_the_eyes_are_looked_for_where_home_has_them(cycle: Cycle, view: Any) -> None:
    frame = np.ascontiguousarray(view(eyed(RED, ORANGE, BLUE, BLUE)))
    found = looked(SIMPLIFICATION, constructed(cycle, {0: FOUR, 1: frame}, source=WITH_EYES))
    assert found.value == 1
    assert found.detail == "1 of 4 hues lost: purple; left: red, orange, blue"


def test_a_frame_that_does_not_show_home_is_not_measured() -> None:
    unrelated = np.ascontiguousarray(FOUR[::-1])
    found = looked(SIMPLIFICATION, constructed(COPY, {0: FOUR, 1: unrelated}, source=WITH_EYES))
    assert found == NoScore("the frame does not lie on home, so parts cannot be compared")


def test_without_a_named_region_colourful_patches_are_found() -> None:
    home = eyed(RED, ORANGE, PURPLE, BLUE, wide=5)
    made = {0: home, 1: eyed(RED, RED, BLUE, BLUE, wide=5)}
    found = looked(SIMPLIFICATION, constructed(COPY, made))
    assert found.value >= 1
    x0, y0, x1, y1 = found.box
    assert max(x0, 0.25) < min(x1, 0.41)
    assert max(y0, 0.25) < min(y1, 0.5)


def test_a_picture_without_colours_has_none_to_lose() -> None:
    grey = textured().astype(np.uint8)
    found = looked(SIMPLIFICATION, constructed(COPY, {0: grey, 1: grey}))
    assert found == NoScore("no part of home has 3 distinct hues")


@pytest.mark.parametrize(
    ("cycle", "why"),
    [
        (RECOLOUR, "home is grey"),
        (Cycle(name="f", kind="free", edit=(Edit(prompt="x"),)), "no home is known"),
    ],
)
def test_hues_are_not_asked_for_where_there_are_none_to_expect(cycle: Cycle, why: str) -> None:
    assert why in SIMPLIFICATION.applies(constructed(cycle, {0: FOUR, 1: FOUR}))


def test_small_pictures_have_no_parts() -> None:
    small = np.zeros((32, 200, 3), np.uint8)
    assert "64 pixels" in GRADIENTS.applies(constructed(COPY, {0: small, 1: small}))


def flat(pixels: Any) -> Any:
    made = pixels.copy()
    made[:64] = made[:64].mean((0, 1)).astype(np.uint8)
    return made


def banded(pixels: Any) -> Any:
    made = pixels.copy()
    made[:64] = np.repeat(made[8:64:16], 16, axis=0)
    return made


@pytest.mark.parametrize("change", [flat, banded, lambda p: noisy(banded(p), 3)])
def test_flat_and_banded_skies_have_lost_their_gradient(change: Any) -> None:
    found = looked(GRADIENTS, constructed(COPY, {0: sky(), 1: change(sky())}))
    assert GRADIENTS.failed(found.value)
    assert found.value > 0.5
    assert found.box[3] < 0.6
    assert found.detail.endswith("% of the smooth gradients are flat or banded")


@pytest.mark.parametrize(
    "change",
    [lambda p: p, lambda p: noisy(p, 8), lambda p: (128 + (p - 128.0) * 0.75).astype(np.uint8)],
    ids=["same", "noise", "contrast"],
)
def test_gradients_survive_noise_and_contrast(change: Any) -> None:
    found = looked(GRADIENTS, constructed(COPY, {0: sky(), 1: change(sky())}))
    assert found.value < 0.1


def test_a_picture_without_gradients_is_not_measured() -> None:
    grey = textured().astype(np.uint8)
    found = looked(GRADIENTS, constructed(COPY, {0: grey, 1: grey}))
    assert found == NoScore("home has hardly any smooth gradient")


@given(
    box=st.tuples(*[st.floats(0, 0.45)] * 2, *[st.floats(0.55, 1)] * 2),
    flip=st.sampled_from([None, "horizontal", "vertical"]),
    quarters=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_a_box_goes_where_its_pixels_go(box: Any, flip: Any, quarters: int) -> None:
    home = Home(flip=flip, quarters=quarters)
    x0, y0, x1, y1 = (round(edge * 40) for edge in box)
    pixels = np.zeros((40, 40, 3), np.uint8)
    pixels[y0:y1, x0:x1] = 255
    rows, columns = np.nonzero(home.view(pixels)[..., 0])
    expected = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    found = at_home((x0 / 40, y0 / 40, x1 / 40, y1 / 40), home)
    assert [edge * 40 for edge in found] == pytest.approx(expected)


@given(st.permutations([RED, ORANGE, PURPLE, BLUE]), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_as_many_hues_are_found_as_were_painted(colours: Any, count: int) -> None:
    part = np.concatenate([np.full((20, 10, 3), c, np.uint8) for c in colours[:count]], axis=1)
    assert len(hues_of(oklab(part, 0.5))) == count


def test_every_angle_has_a_name() -> None:
    assert [end for end, _ in NAMES] == sorted(end for end, _ in NAMES)
    assert NAMES[-1][0] == 360
