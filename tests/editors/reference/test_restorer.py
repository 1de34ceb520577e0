"""`ref:restorer` does what its docstring says about prompts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.editors.reference import open_editor
from convergebench.editors.reference.restorer import manner
from convergebench.frame import Frame
from convergebench.registry import open_suite

PLAIN = "Enhance and restore the image."
CAREFUL = "Enhance and restore the image, preserving what it shows."


def restored(
    pixels: NDArray[np.uint8], prompt: str, seed: int = 1, **options: str
) -> NDArray[np.uint8]:
    request = EditRequest(
        (Frame.of_pixels(pixels),), prompt, Edit(prompt=prompt), 1, seed, chain=f"c{seed}"
    )
    return Frame(open_editor("restorer", **options).edit(request).data).pixels


@pytest.fixture(scope="module")
def noisy() -> NDArray[np.uint8]:
    clean = drawing.scene("fabric", 128, 128)
    grain = np.random.Generator(np.random.PCG64(1)).normal(0, 12, clean.shape)
    return np.clip(clean + grain, 0, 255).astype(np.uint8)


def off(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.sqrt(np.mean((one.astype(float) - other) ** 2)))


def test_it_reads_the_papers_prompts_as_their_groups_say() -> None:
    for cycle in open_suite("restoration-v1").cycle:
        if cycle.factors:
            asked = manner(cycle.edit[0].prompts[0])
            assert asked.careful == (cycle.factors["fidelity"] == "yes"), cycle.title


def test_more_words_make_it_more_thorough() -> None:
    assert manner("word " * 20).thorough == 0
    assert manner("word " * 35).thorough == pytest.approx(0.5)
    assert manner("word " * 80).thorough == 1


def test_the_same_call_gives_the_same_bytes_and_another_seed_others(
    noisy: NDArray[np.uint8],
) -> None:
    first = restored(noisy, PLAIN)
    assert np.array_equal(first, restored(noisy, PLAIN))
    assert not np.array_equal(first, restored(noisy, PLAIN, seed=2))


def test_a_wish_for_fidelity_makes_it_invent_less(noisy: NDArray[np.uint8]) -> None:
    base = {p: restored(noisy, p, amount="0", odd="0") for p in (PLAIN, CAREFUL)}
    added = {p: off(restored(noisy, p, odd="0"), base[p]) for p in (PLAIN, CAREFUL)}
    assert added[CAREFUL] < 0.75 * added[PLAIN]


def test_it_adds_things_a_quarter_as_often_when_asked_to_be_faithful() -> None:
    flat = np.full((32, 32, 3), 128, np.uint8)
    odd = {
        prompt: sum(
            restored(flat, prompt, seed, odd="0.4", amount="0").std() > 1 for seed in range(200)
        )
        for prompt in (PLAIN, CAREFUL)
    }
    assert 55 <= odd[PLAIN] <= 105  # 80 of 200 expected; four standard deviations
    assert 5 <= odd[CAREFUL] <= 38  # 20 of 200
