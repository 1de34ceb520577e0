from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from convergebench.cycle import Cycle, Edit, Home, Operation, flip, grey, turn
from tests.support.runs import picture

FLIP = {"prompt": "Mirror it.", "operation": {"kind": "flip", "axis": "horizontal"}}
TURN = {"prompt": "Turn it.", "operation": {"kind": "turn", "quarters": 1}}


def cycle(kind: str, *edits: dict[str, Any], **more: Any) -> Cycle:
    return Cycle.model_validate({"name": "c", "kind": kind, "edit": edits, **more})


def plain(count: int) -> list[dict[str, Any]]:
    return [{"prompt": f"edit {i}"} for i in range(count)]


REBUILD: list[dict[str, Any]] = [
    {"prompt": "patches"},
    {"prompt": "edges", "inputs": ["back 2"]},
    {"prompt": "rebuild", "inputs": ["back 2", "previous"]},
]


@pytest.mark.parametrize(
    ("made", "homes"),
    [
        (cycle("round-trip", *plain(2)), [None, Home(), None, Home()]),
        (cycle("replicate", *plain(1)), [Home()] * 4),
        (cycle("mirror", FLIP), [Home(flip="horizontal"), Home()] * 2),
        (cycle("rotate", TURN), [Home(quarters=q) for q in (1, 2, 3, 0)]),
        (
            cycle("reconstruct", *REBUILD),
            [None, None, Home(content_only=True), None],
        ),
        (cycle("recolour", *plain(2)), [Home(grey=True), Home()] * 2),
        (cycle("accumulate", *plain(1)), [None] * 4),
        (cycle("cross", *plain(4)), [None, None, None, Home()]),
        (cycle("restore", *plain(1)), [Home(of="truth")] * 4),
        (
            cycle("free", {"prompt": "a"}, {"prompt": "b", "home": "source"}),
            [None, Home(), None, Home()],
        ),
        (cycle("free", {"prompt": "a", "home": "grey"}), [Home(grey=True)] * 4),
    ],
    ids=lambda value: value.kind if isinstance(value, Cycle) else "",
)
def test_home_of_every_kind(made: Cycle, homes: list[Home | None]) -> None:
    assert [made.home(step) for step in range(1, 5)] == homes
    assert made.home(0) == Home()


def test_rebuilding_is_given_both_images() -> None:
    made = cycle("reconstruct", *REBUILD)
    assert [made.inputs_at(step) for step in range(1, 7)] == [
        (0,),
        (0,),
        (1, 2),
        (3,),
        (3,),
        (4, 5),
    ]


def test_source_as_input() -> None:
    made = cycle("free", {"prompt": "a", "inputs": ["source", "previous"]})
    assert made.inputs_at(5) == (0, 4)


def test_prompts_per_step_and_phrasing() -> None:
    edit = Edit(phrasings=("Add {item}.", "Put {item} there."), items=("a pear", "a fig"))
    assert [edit.wording(0, n) for n in (1, 2, 3)] == ["Add a pear.", "Add a fig.", "Add a pear."]
    assert edit.wording(1, 2) == "Put a fig there."
    made = cycle("accumulate", {"prompt": "Add {item}.", "items": ["x"]})
    assert made.expected_count(7) == 7


def test_rounds() -> None:
    made = cycle("cross", *plain(4))
    assert [made.round_of(s) for s in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: cycle("round-trip", *plain(3)), "has 2 edits, got 3"),
        (lambda: cycle("mirror", *plain(1)), "needs operation 'flip'"),
        (lambda: cycle("rotate", FLIP), "needs operation 'turn'"),
        (lambda: cycle("reconstruct", *plain(3)), "rebuilding takes two inputs"),
        (lambda: cycle("replicate", {"prompt": "a", "home": "source"}), "only for kind 'free'"),
        (lambda: cycle("free", {"prompt": "a", "inputs": ["back 2"]}), "cannot look 2 frames"),
        (lambda: cycle("free", {"prompt": "a", "inputs": ["next"]}), "'next' is not"),
        (lambda: cycle("free", {"prompt": "a", "phrasings": ["b"]}), "either 'prompt' or"),
        (lambda: cycle("free", {}), "either 'prompt' or"),
        (lambda: cycle("free", {"prompt": "Add {item}."}), "go together"),
        (lambda: cycle("free", {"prompt": "a", "region": [0.5, 0, 0.5, 1]}), "a region is"),
        (lambda: Operation(kind="flip"), "needs 'axis'"),
        (lambda: Operation(kind="grey", axis="horizontal"), "takes no 'axis'"),
        (lambda: Operation(kind="add", object="yeti"), "no drawn object 'yeti'"),
        (
            lambda: Edit(prompt="a", operation=Operation(kind="add", object="cup")),
            "needs a 'region'",
        ),
        (lambda: Edit.model_validate({"prompt": "a", "promt": "b"}), "Extra inputs"),
    ],
)
def test_contradictions_are_named(wrong: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        wrong()


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 9), st.integers(0, 12))
def test_turning_and_flipping_come_home(seed: int, width: int, height: int, steps: int) -> None:
    pixels = picture(seed, width, height)
    rotate, mirror = cycle("rotate", TURN), cycle("mirror", FLIP)
    turned = flipped = pixels
    for _ in range(steps):
        turned, flipped = turn(turned, 1), flip(flipped, "horizontal")
    home = rotate.home(steps)
    assert home is not None
    assert np.array_equal(turned, home.view(pixels))
    home = mirror.home(steps)
    assert home is not None
    assert np.array_equal(flipped, home.view(pixels))


def test_turning_is_clockwise() -> None:
    pixels = np.zeros((2, 3, 3), np.uint8)
    pixels[0, 0] = 255
    assert turn(pixels, 1).shape == (3, 2, 3)
    assert turn(pixels, 1)[0, 1].tolist() == [255, 255, 255]


def test_grey_is_rounded_luma() -> None:
    pixels = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 20, 30]]], np.uint8)
    # 76.245, 149.685, 29.07 and 2.99 + 11.74 + 3.42 = 18.15, rounded
    assert grey(pixels)[0, :, 0].tolist() == [76, 150, 29, 18]
