from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Cycle, Edit, Operation, flip, grey, pixel_box, turn
from convergebench.editor import EditRequest, Turn
from convergebench.editors.reference import open_editor
from convergebench.editors.reference.operations import (
    TRANSLUCENT,
    add,
    focused,
    is_grey,
    perform,
    recolour,
    remove,
    toned,
)
from convergebench.errors import EditorFailed
from convergebench.frame import Frame
from convergebench.testing.pictures import colourful

Walk = Callable[..., list[Frame]]
Ask = Callable[..., EditRequest]
THING = sorted(drawing.OBJECTS)[0]
BOX = (0.2, 0.3, 0.7, 0.9)


def one_edit(kind: Literal["mirror", "rotate"], operation: Operation) -> Cycle:
    return Cycle(name=kind, kind=kind, edit=(Edit(prompt="Do it.", operation=operation),))


def recolour_cycle() -> Cycle:
    there = Edit(prompt="Make it monochrome.", operation=Operation(kind="grey"))
    back = Edit(prompt="Colour it.", operation=Operation(kind="colour"))
    return Cycle(name="recolour", kind="recolour", edit=(there, back))


def put_and_take(name: str = THING) -> Cycle:
    put = Edit(prompt="Add it.", region=BOX, operation=Operation(kind="add", object=name))
    take = Edit(prompt="Remove it.", region=BOX, operation=Operation(kind="remove", object=name))
    return Cycle(name="object", kind="round-trip", edit=(put, take))


def there_and_back(forward: str, backward: str) -> Cycle:
    edits = ({"prompt": kind, "operation": {"kind": kind}} for kind in (forward, backward))
    return Cycle.model_validate({"name": forward, "kind": "round-trip", "edit": list(edits)})


def every_level() -> NDArray[np.uint8]:
    """A picture with all 256 levels in each channel."""
    level = np.arange(256, dtype=np.uint8)
    return np.ascontiguousarray(np.stack([level, level[::-1], np.roll(level, 90)], -1)[None])


def waves(frequency: int, amplitude: float) -> NDArray[np.uint8]:
    """A grey picture 256 pixels square whose brightness swings across."""
    turns = (np.arange(256) + 0.5) * frequency / 256
    row = np.rint(128 + amplitude * np.cos(2 * np.pi * turns)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(row[None, :, None], (256, 256, 3)))


def swing(pixels: NDArray[np.uint8], frequency: int) -> float:
    """How much of the frequency is in the picture: twice the mean of it times its cosine."""
    turns = (np.arange(256) + 0.5) * frequency / 256
    return float(2 * (pixels[128, :, 0] * np.cos(2 * np.pi * turns)).mean())


def changed(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one != other).any(axis=2)
    return found


@pytest.mark.parametrize(
    "cycle",
    [
        one_edit("mirror", Operation(kind="flip", axis="horizontal")),
        one_edit("mirror", Operation(kind="flip", axis="vertical")),
        one_edit("rotate", Operation(kind="turn", quarters=1)),
        one_edit("rotate", Operation(kind="turn", quarters=2)),
        one_edit("rotate", Operation(kind="turn", quarters=3)),
        recolour_cycle(),
    ],
    ids=["across", "down", "quarter", "half", "three", "recolour"],
)
@pytest.mark.parametrize("model", ["identity", "png"])
def test_exact_editors_hit_home_exactly(
    cycle: Cycle, model: str, walk: Walk, confetti: NDArray[np.uint8]
) -> None:
    source = Frame.of_pixels(confetti)
    for step, frame in enumerate(walk(open_editor(model), cycle, source, 9)):
        home = cycle.home(step)
        assert home is not None
        assert np.array_equal(frame.pixels, home.view(confetti)), step


def test_operations_do_what_the_cycle_module_does(ask: Ask, confetti: NDArray[np.uint8]) -> None:
    for operation, expected in (
        (Operation(kind="flip", axis="vertical"), flip(confetti, "vertical")),
        (Operation(kind="turn", quarters=3), turn(confetti, 3)),
        (Operation(kind="grey"), grey(confetti)),
    ):
        request = ask(confetti, edit=Edit(prompt="Do it.", operation=operation))
        assert np.array_equal(perform(request), expected)


def test_without_an_operation_the_last_input_stays_as_it_is(ask: Ask) -> None:
    first, last = Frame.of_pixels(colourful(8, 8)), Frame.of_pixels(colourful(9, 5))
    request = ask(first, inputs=(first, last))
    assert perform(request) is last.pixels


def test_colour_follows_the_newest_coloured_frame_and_its_luma(confetti: NDArray[np.uint8]) -> None:
    calm = (confetti // 2 + 60).astype(np.uint8)
    older, newer = Frame.of_pixels(255 - calm), Frame.of_pixels(calm)
    brighter = Frame.of_pixels(grey(calm) + np.uint8(9))
    history = [
        Turn(0, "", lambda: older),
        Turn(1, "", lambda: newer),
        Turn(2, "", lambda: Frame.of_pixels(grey(calm))),
        Turn(3, "", lambda: brighter),
    ]
    assert np.array_equal(recolour(brighter, history), calm + np.uint8(9))


def test_colour_without_a_coloured_frame_changes_nothing(confetti: NDArray[np.uint8]) -> None:
    frame = Frame.of_pixels(grey(confetti))
    assert recolour(frame, [Turn(0, "", lambda: frame)]) is frame.pixels


def test_colour_from_a_frame_of_another_size() -> None:
    source = Frame.of_pixels(colourful(60, 40))
    small = Frame.of_pixels(grey(colourful(30, 20)))
    result = recolour(small, [Turn(0, "", lambda: source), Turn(1, "", lambda: small)])
    assert result.shape == (20, 30, 3)
    assert not is_grey(result)
    assert np.abs(grey(result).astype(int) - small.pixels).max() <= 2


def test_colours_survive_a_noisy_editor(walk: Walk) -> None:
    """A noisy grey frame is not exactly grey, and must not be taken for the coloured one."""
    source = Frame.of_pixels(colourful(64, 64))
    last = walk(open_editor("noise", sigma="2"), recolour_cycle(), source, 6)[-1]
    before, after = (p.astype(float) for p in (source.pixels, last.pixels))
    chroma = [(p[..., 0] - p[..., 2]).ravel() for p in (before, after)]
    assert np.corrcoef(chroma[0], chroma[1])[0, 1] > 0.95
    assert chroma[1].std() == pytest.approx(chroma[0].std(), rel=0.1)


@pytest.mark.parametrize(
    ("forward", "backward", "lost"), [("warm", "cool", 1), ("dim", "brighten", 2)]
)
def test_a_curve_is_undone_to_a_level_or_two_and_then_loses_nothing(
    forward: str, backward: str, lost: int, walk: Walk
) -> None:
    source = Frame.of_pixels(every_level())
    frames = walk(open_editor(), there_and_back(forward, backward), source, 6)
    apart = np.abs(frames[2].pixels.astype(int) - source.pixels)
    assert apart.max() == lost
    assert np.abs(frames[1].pixels.astype(int) - source.pixels).mean() > 15
    assert frames[1].pixel_digest == frames[3].pixel_digest == frames[5].pixel_digest
    assert frames[2].pixel_digest == frames[4].pixel_digest == frames[6].pixel_digest


def test_a_warm_cast_is_orange_and_the_dark_is_dark_and_blue() -> None:
    grey_card = np.full((4, 4, 3), 128, np.uint8)
    assert toned(grey_card, "warm")[0, 0].tolist() == [166, 134, 90]
    assert toned(grey_card, "dim")[0, 0].tolist() == [38, 45, 58]
    ends = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    assert np.array_equal(toned(ends, "warm"), ends), "black and white stay"
    assert toned(ends, "brighten")[0].tolist() == [[0, 0, 0], [253, 254, 255]]


@pytest.mark.parametrize("frequency", [4, 16, 32, 64])
def test_focus_does_to_a_frequency_what_it_says(frequency: int) -> None:
    picture = waves(frequency, 50)
    kept = math.exp(-2 * (math.pi * 2 * frequency / 256) ** 2)
    blurred, sharp = focused(picture, "blur"), focused(picture, "sharpen")
    for result, share in (
        (blurred, kept),
        (sharp, 2 - kept),
        (focused(picture, "soften"), 1 / (2 - kept)),
        (focused(blurred, "sharpen"), kept * (2 - kept)),
        (focused(sharp, "soften"), 1),
    ):
        found = swing(result, frequency) / swing(picture, frequency)
        assert found == pytest.approx(share, abs=0.03)


def test_sharpening_is_undone_where_nothing_was_clipped_and_a_blur_never(walk: Walk) -> None:
    calm = np.random.default_rng(3).integers(108, 148, (96, 96, 3)).astype(np.uint8)
    source = Frame.of_pixels(calm)
    back = walk(open_editor(), there_and_back("sharpen", "soften"), source, 2)[-1]
    assert np.abs(back.pixels.astype(int) - calm).max() <= 1
    faded = walk(open_editor(), there_and_back("blur", "sharpen"), source, 4)
    apart = [np.abs(frame.pixels.astype(int) - calm).mean() for frame in faded]
    assert 3 < apart[2] < apart[4]


@pytest.mark.parametrize("kind", ["warm", "cool", "dim", "brighten", "blur", "sharpen", "soften"])
def test_the_operations_on_the_whole_picture_are_performed(
    kind: str, ask: Ask, confetti: NDArray[np.uint8]
) -> None:
    edit = Edit.model_validate({"prompt": "Do it.", "operation": {"kind": kind}})
    confetti.setflags(write=False)
    result = perform(ask(confetti, edit=edit))
    assert result.shape == confetti.shape
    assert result.dtype == np.uint8
    assert changed(result, confetti).mean() > 0.9
    with pytest.raises(ValueError, match="takes no 'quarters'"):
        Operation.model_validate({"kind": kind, "quarters": 1})


@pytest.mark.parametrize("name", sorted(drawing.OBJECTS))
def test_add_blends_the_sprite_into_the_region_and_nowhere_else(name: str) -> None:
    picture = colourful(120, 90)
    result = add(picture, name, BOX)
    x0, y0, x1, y1 = pixel_box(BOX, 120, 90)
    outside = np.ones((90, 120), bool)
    outside[y0:y1, x0:x1] = False
    assert not changed(result, picture)[outside].any()
    sprite = drawing.sprite(name, x1 - x0, y1 - y0)
    alpha = sprite[..., 3:].astype(np.float64) / 255
    exact = sprite[..., :3] * alpha + picture[y0:y1, x0:x1] * (1 - alpha)
    assert np.abs(result[y0:y1, x0:x1] - exact).max() <= 0.5 + 1e-9
    assert changed(result, picture).mean() > 0.01


@pytest.mark.parametrize("name", sorted(drawing.OBJECTS))
def test_remove_fills_what_is_opaque_and_touches_nothing_outside_the_region(name: str) -> None:
    picture = np.random.default_rng(5).integers(0, 256, (90, 120, 3)).astype(np.uint8)
    result = remove(picture, name, BOX)
    x0, y0, x1, y1 = pixel_box(BOX, 120, 90)
    outside = np.ones((90, 120), bool)
    outside[y0:y1, x0:x1] = False
    touched = changed(result, picture)
    assert not touched[outside].any()
    opaque = drawing.sprite(name, x1 - x0, y1 - y0)[..., 3] > TRANSLUCENT
    assert touched[y0:y1, x0:x1][opaque].mean() > 0.95


@pytest.mark.parametrize("name", sorted(drawing.OBJECTS))
def test_what_shows_through_an_object_comes_back(name: str) -> None:
    picture = np.random.default_rng(6).integers(0, 256, (200, 200, 3)).astype(np.uint8)
    after = remove(add(picture, name, BOX), name, BOX)
    x0, y0, x1, y1 = pixel_box(BOX, 200, 200)
    alpha = np.zeros((200, 200), np.uint8)
    alpha[y0:y1, x0:x1] = drawing.sprite(name, x1 - x0, y1 - y0)[..., 3]
    clear = cv2.dilate((alpha > TRANSLUCENT).astype(np.uint8), np.ones((5, 5), np.uint8)) == 0
    assert np.abs(after.astype(int) - picture)[clear].max() <= 1
    assert np.abs(after.astype(int) - picture)[~clear].mean() > 20, "noise cannot be inpainted"


@pytest.mark.parametrize("name", sorted(drawing.OBJECTS))
def test_an_object_on_a_flat_ground_leaves_almost_no_trace(name: str) -> None:
    ground = np.full((200, 200, 3), (90, 140, 180), np.uint8)
    after = remove(add(ground, name, BOX), name, BOX)
    assert np.abs(after.astype(int) - ground).max() <= 1


@pytest.mark.parametrize("name", sorted(drawing.OBJECTS))
def test_an_exact_editor_settles_after_the_first_round(name: str, walk: Walk) -> None:
    noise = np.random.default_rng(8).integers(0, 256, (96, 96, 3)).astype(np.uint8)
    source = Frame.of_pixels(noise)
    frames = walk(open_editor(), put_and_take(name), source, 6, region=BOX)
    assert frames[1].pixel_digest != source.pixel_digest
    assert frames[1].pixel_digest != frames[2].pixel_digest
    assert frames[2].pixel_digest == frames[4].pixel_digest == frames[6].pixel_digest


def test_an_object_without_a_region_cannot_be_placed(ask: Ask) -> None:
    edit = put_and_take().edit[0]
    with pytest.raises(EditorFailed, match="without a region"):
        perform(ask(colourful(8, 8), edit=edit, region=None))


@pytest.mark.parametrize(
    ("box", "size", "expected"),
    [
        ((0.0, 0.0, 1.0, 1.0), (10, 7), (0, 0, 10, 7)),
        ((0.25, 0.25, 0.75, 0.75), (10, 10), (2, 2, 8, 8)),
        ((0.5, 0.5, 0.51, 0.51), (4, 4), (2, 2, 3, 3)),
        ((0.99, 0.99, 1.0, 1.0), (3, 3), (2, 2, 3, 3)),
        ((0.4, 0.4, 0.6, 0.6), (1, 1), (0, 0, 1, 1)),
    ],
)
def test_boxes_contain_the_region_and_are_never_empty(
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    expected: tuple[int, int, int, int],
) -> None:
    assert pixel_box(box, *size) == expected


def test_inputs_are_never_written_to(confetti: NDArray[np.uint8]) -> None:
    confetti.setflags(write=False)
    before = confetti.copy()
    add(confetti, THING, BOX)
    remove(confetti, THING, BOX)
    assert np.array_equal(confetti, before)
