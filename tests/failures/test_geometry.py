"""Which of the eight symmetries a frame shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench import drawing
from convergebench.cycle import Cycle, Edit, Home, Operation
from convergebench.failures.geometry import (
    SYMMETRIES,
    Symmetry,
    compare,
    expected_symmetry,
    symmetry_of,
    symmetry_of_home,
    which_symmetry,
)

symmetries = st.sampled_from(SYMMETRIES)
SCENES = {
    (name, size): drawing.scene(name, *size)
    for name in ("still-life", "portrait")
    for size in ((128, 128), (144, 96))
}


@given(symmetries, symmetries, symmetries)
def test_symmetries_form_a_group_that_acts_on_pictures(
    one: Symmetry, two: Symmetry, three: Symmetry
) -> None:
    pixels = np.arange(2 * 3 * 3).reshape(2, 3, 3)
    assert np.array_equal(one.then(two).view(pixels), two.view(one.view(pixels)))
    assert one.then(two).then(three) == one.then(two.then(three))
    assert one.then(one.inverse) == one.inverse.then(one) == Symmetry()


def test_names_of_the_symmetries_are_what_they_do() -> None:
    pixels = np.arange(6).reshape(2, 3)
    shown = {str(each): each.view(pixels).tolist() for each in SYMMETRIES}
    assert shown["as it is"] == [[0, 1, 2], [3, 4, 5]]
    assert shown["mirrored"] == [[2, 1, 0], [5, 4, 3]]
    assert shown["mirrored upside down"] == [[3, 4, 5], [0, 1, 2]]
    assert shown["turned 90° clockwise"] == [[3, 0], [4, 1], [5, 2]]
    assert shown["turned 180°"] == [[5, 4, 3], [2, 1, 0]]
    assert shown["turned 90° anticlockwise"] == [[2, 5], [1, 4], [0, 3]]
    assert shown["mirrored along the falling diagonal"] == [[0, 3], [1, 4], [2, 5]]
    assert shown["mirrored along the rising diagonal"] == [[5, 2], [4, 1], [3, 0]]


@pytest.mark.parametrize(
    "home", [Home(flip="horizontal"), Home(flip="vertical"), Home(quarters=1), Home(quarters=3)]
)
def test_a_home_is_the_symmetry_that_makes_it(home: Home) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    assert np.array_equal(symmetry_of_home(home).view(pixels), home.view(pixels))


@given(st.integers(1, 3), st.integers(0, 30))
def test_what_is_expected_of_a_rotation_is_what_its_cycle_calls_home(
    quarters: int, step: int
) -> None:
    turn = Operation.model_validate({"kind": "turn", "quarters": quarters})
    cycle = Cycle(name="turn", kind="rotate", edit=(Edit(prompt="Turn.", operation=turn),))
    home = cycle.home(step)
    assert home is not None
    assert expected_symmetry(cycle, step) == symmetry_of_home(home)


@pytest.mark.parametrize("axis", ["horizontal", "vertical"])
@pytest.mark.parametrize("step", [0, 1, 2, 7])
def test_what_is_expected_of_a_mirror_is_what_its_cycle_calls_home(axis: str, step: int) -> None:
    flip = Operation.model_validate({"kind": "flip", "axis": axis})
    cycle = Cycle(name="flip", kind="mirror", edit=(Edit(prompt="Flip.", operation=flip),))
    home = cycle.home(step)
    assert home is not None
    assert expected_symmetry(cycle, step) == symmetry_of_home(home)


def test_a_round_trip_of_turns_is_expected_turned_half_way_and_straight_at_home() -> None:
    edits = tuple(
        Edit(prompt="Turn.", operation=Operation(kind="turn", quarters=quarters))
        for quarters in (1, 3)
    )
    cycle = Cycle(name="there-and-back", kind="round-trip", edit=edits)
    assert [expected_symmetry(cycle, step) for step in range(5)] == [
        Symmetry(), Symmetry(False, 1), Symmetry(), Symmetry(False, 1), Symmetry()
    ]  # fmt: skip
    assert symmetry_of(None) == Symmetry()


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(SCENES)),
    symmetries,
    st.integers(0, 2**32 - 1),
    st.sampled_from((0, 30, 60, 90)),
)
def test_any_symmetry_is_recognised_through_strong_noise_and_a_cast(
    scene: tuple[str, tuple[int, int]], symmetry: Symmetry, seed: int, sigma: int
) -> None:
    random = np.random.default_rng(seed)
    source = SCENES[scene]
    values = symmetry.view(source) * random.uniform(0.8, 1.1) + random.uniform(-12, 12, 3)
    noise = random.normal(0, sigma, values.shape)
    frame = np.clip(values + noise, 0, 255).astype(np.uint8)
    found, confidence = which_symmetry(frame, source)
    assert found == symmetry
    assert confidence > 0.1


@pytest.mark.parametrize("symmetry", SYMMETRIES, ids=str)
def test_a_turned_picture_cut_to_the_old_shape_is_still_recognised(symmetry: Symmetry) -> None:
    source = drawing.scene("still-life", 160, 112)
    view = symmetry.view(source)
    height, width = view.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    assert which_symmetry(view[top : top + side, left : left + side], source)[0] == symmetry


def test_a_perfect_copy_is_sure_and_an_unrelated_picture_is_not() -> None:
    source, other = drawing.scene("still-life", 128, 128), drawing.scene("text", 128, 128)
    assert which_symmetry(source, source)[1] > 0.8
    assert which_symmetry(other, source)[1] < 0.1


def test_nothing_can_be_told_of_a_symmetric_picture() -> None:
    half = drawing.scene("still-life", 64, 128)
    source = np.ascontiguousarray(np.concatenate([half, half[:, ::-1]], axis=1))
    shown = compare(source, source)
    assert Symmetry(True) in shown.alike(Symmetry())
    assert shown.confidence == 0
    turned = compare(Symmetry(False, 2).view(source), source)
    assert turned.margin(Symmetry(False, 2), Symmetry()) > 0.5


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_flat_frame_shows_nothing(level: int) -> None:
    flat = np.full((64, 64, 3), level, np.uint8)
    assert which_symmetry(flat, drawing.scene("still-life", 64, 64))[1] == 0
    assert which_symmetry(flat, flat)[1] == 0
