from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Cycle, Edit, Operation
from convergebench.editor import EditRequest
from convergebench.editors.reference import open_editor, ramp_psnr
from convergebench.editors.reference.yardsticks import (
    DEPTH,
    cliff_rmse,
    geometric_rmse,
    plateau_rmse,
    unrelated,
)
from convergebench.frame import Frame

Walk = Callable[..., list[Frame]]
Ask = Callable[..., EditRequest]
THING = sorted(drawing.OBJECTS)[0]


def mean_square(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.mean((one.astype(np.int64) - other) ** 2))


def cycles() -> list[Cycle]:
    across = Operation(kind="flip", axis="horizontal")
    quarter = Operation(kind="turn", quarters=1)
    return [
        Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy it."),)),
        Cycle(name="mirror", kind="mirror", edit=(Edit(prompt="Mirror it.", operation=across),)),
        Cycle(name="rotate", kind="rotate", edit=(Edit(prompt="Turn it.", operation=quarter),)),
    ]


@pytest.mark.parametrize("step", [1, 5, 12])
@pytest.mark.parametrize("cycle", cycles(), ids=lambda cycle: cycle.name)
def test_the_ramp_is_its_formula_at_every_step(
    cycle: Cycle, step: int, walk: Walk, confetti: NDArray[np.uint8]
) -> None:
    editor = open_editor("ramp", step=str(step))
    frames = walk(editor, cycle, Frame.of_pixels(confetti), min(10, 127 // step))
    for n, frame in enumerate(frames):
        home = cycle.home(n)
        assert home is not None
        error = mean_square(frame.pixels, home.view(confetti))
        assert error == (n * step) ** 2
        psnr = 10 * math.log10(255**2 / error) if error else math.inf
        assert psnr == pytest.approx(ramp_psnr(n, step))


def test_the_ramp_holds_to_its_last_level(walk: Walk, confetti: NDArray[np.uint8]) -> None:
    frames = walk(open_editor("ramp"), cycles()[0], Frame.of_pixels(confetti), 127)
    assert mean_square(frames[127].pixels, confetti) == 127**2


def test_on_a_round_trip_the_ramp_counts_calls(walk: Walk, confetti: NDArray[np.uint8]) -> None:
    put = Edit(prompt="Add it.", region=(0, 0, 1, 1), operation=Operation(kind="add", object=THING))
    take = Edit(
        prompt="Remove it.",
        region=(0, 0, 1, 1),
        operation=Operation(kind="remove", object=THING),
    )
    cycle = Cycle(name="object", kind="round-trip", edit=(put, take))
    source = Frame.of_pixels(confetti)
    frames = walk(open_editor("ramp", step="3"), cycle, source, 6, region=(0, 0, 1, 1))
    assert [mean_square(frames[2 * n].pixels, confetti) for n in (1, 2, 3)] == [36, 144, 324]


def test_the_formula_ends_where_samples_would_clip() -> None:
    assert ramp_psnr(0, 5) == math.inf
    assert ramp_psnr(1, 1) == pytest.approx(48.1308, abs=1e-4)
    with pytest.raises(ValueError, match=r"128·1 = 128"):
        ramp_psnr(128, 1)


GROWING: dict[str, tuple[str, Callable[[int], float]]] = {
    "settling": ("geometric,step=24,factor=0.8", lambda n: geometric_rmse(n, 24, 0.8)),
    "diverging": ("geometric,step=8,factor=1.2", lambda n: geometric_rmse(n, 8, 1.2)),
    "plateau": ("plateau,level=60,factor=0.5", lambda n: plateau_rmse(n, 60, 0.5)),
    "cliff": ("cliff,at=3,loss=50", lambda n: cliff_rmse(n, 3, 50)),
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("cycle", cycles(), ids=lambda cycle: cycle.name)
def test_growing_losses_are_their_formulas_at_every_step(
    cycle: Cycle, name: str, walk: Walk
) -> None:
    told, rmse = GROWING[name]
    model, *options = told.split(",")
    editor = open_editor(model, **dict(o.split("=") for o in options))
    # neither square nor of one tone, so that a wrong turn would show
    source = np.random.default_rng(1).integers(0, 256, (48, 80, 3), np.uint8)
    frames = walk(editor, cycle, Frame.of_pixels(source), 6)
    for n, frame in enumerate(frames):
        home = cycle.home(n)
        assert home is not None
        # exact but for half a sample
        error = mean_square(frame.pixels, home.view(source))
        assert error == pytest.approx(rmse(n) ** 2, abs=0.5 * DEPTH**2 / source.size)
        if n:
            # no sample moves twice, so squared distances add up
            operation = cycle.edit[0].operation
            before = frames[n - 1].pixels
            if operation is not None and operation.kind == "flip":
                before = before[:, ::-1]
            elif operation is not None:
                before = np.rot90(before, -1)
            step = rmse(n) ** 2 - rmse(n - 1) ** 2
            assert mean_square(frame.pixels, before) == pytest.approx(
                step, abs=DEPTH**2 / source.size
            )


def test_the_geometric_editor_moves_by_its_factor() -> None:
    distances = [
        math.sqrt(geometric_rmse(n, 12, 0.8) ** 2 - geometric_rmse(n - 1, 12, 0.8) ** 2)
        for n in range(1, 9)
    ]
    assert distances == pytest.approx([12 * 0.8 ** (n - 1) for n in range(1, 9)])


def test_a_growing_loss_ends_where_every_sample_is_moved(walk: Walk) -> None:
    source = np.random.default_rng(2).integers(0, 256, (16, 16, 3), np.uint8)
    editor = open_editor("geometric", step="100", factor="2")
    frames = walk(editor, cycles()[0], Frame.of_pixels(source), 4)
    assert [mean_square(f.pixels, source) for f in frames[2:]] == [DEPTH**2] * 3


def test_random_pictures_have_nothing_in_common(
    walk: Walk, replicate: Cycle, confetti: NDArray[np.uint8]
) -> None:
    source = Frame.of_pixels(np.repeat(np.repeat(confetti, 3, 0), 3, 1))
    frames = walk(open_editor("random"), replicate, source, 6)
    assert len({frame.digest for frame in frames}) == 7
    assert {frame.pixels.shape for frame in frames} == {source.pixels.shape}
    flat = [frame.pixels.astype(float).mean(axis=2).ravel() for frame in frames]
    assert np.abs(np.corrcoef(flat[0], flat[1])[0, 1]) < 0.1
    between = [math.sqrt(mean_square(frames[i].pixels, frames[i + 1].pixels)) for i in range(1, 6)]
    assert min(between) > 25


def test_random_is_another_picture_per_call_even_with_one_seed(ask: Ask) -> None:
    editor = open_editor("random")
    first = ask(np.zeros((16, 16, 3), np.uint8), seed=5, step=1)
    second = ask(np.zeros((16, 16, 3), np.uint8), seed=5, step=2)
    assert editor.edit(first).data != editor.edit(second).data
    assert editor.edit(first).data == editor.edit(first).data


def test_an_unrelated_picture_has_structure_and_range() -> None:
    picture = unrelated(96, 64, np.random.default_rng(1))
    assert picture.shape == (64, 96, 3)
    assert picture.std() > 20
    rows = picture.astype(float).mean(axis=2)
    assert np.corrcoef(rows[:, :-1].ravel(), rows[:, 1:].ravel())[0, 1] > 0.9
