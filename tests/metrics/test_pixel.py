"""PSNR against scikit-image, against published values, and against what must hold of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench.errors import InputError
from convergebench.frame import Frame, resize
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.pixel import psnr, rmse_of_psnr, squared_error
from tests.metrics.pairs import PAIRS, measure, scene

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]

scikit_image: Any = skimage.metrics.peak_signal_noise_ratio  # it has no types

shapes = st.tuples(st.integers(1, 24), st.integers(1, 24), st.just(3))
pairs = shapes.flatmap(
    lambda shape: st.tuples(hnp.arrays(np.uint8, shape), hnp.arrays(np.uint8, shape))
)


def exact(reference: Pixels, frame: Pixels) -> int:
    """The sum of squares in Python's own integers."""
    return sum((int(a) - int(b)) ** 2 for a, b in zip(reference.flat, frame.flat, strict=True))


@pytest.mark.parametrize("name", PAIRS)
def test_equals_scikit_image(name: str) -> None:
    reference, frame = PAIRS[name]
    theirs = scikit_image(reference, frame, data_range=255)
    assert measure(psnr, reference, frame) == pytest.approx(theirs, rel=1e-14)


def test_golden_values() -> None:
    golden = json.loads((Path(__file__).parents[1] / "golden/metrics.json").read_text())
    for name, values in golden["values"].items():
        assert measure(psnr, *PAIRS[name]) == pytest.approx(values["psnr"], abs=1e-9), name


def test_known_answers() -> None:
    black, white = np.zeros((5, 7, 3), np.uint8), np.full((5, 7, 3), 255, np.uint8)
    assert measure(psnr, black, white) == 0
    assert measure(psnr, black, black) == math.inf
    one = black.copy()
    one[2, 3, 1] = 1
    assert measure(psnr, black, one) == pytest.approx(10 * math.log10(255**2 * 105), rel=1e-15)


def test_sums_are_exact_where_float_would_round() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        height, width = rng.integers(1, 90, 2)
        one, other = rng.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
        want = int(((one.astype(np.int64) - other) ** 2).sum())
        assert squared_error(one, other) == want


@given(pairs, st.integers(1, 30))
def test_bands_do_not_matter(pair: tuple[Pixels, Pixels], rows: int) -> None:
    assert squared_error(*pair, band_rows=rows) == exact(*pair)


@given(pairs)
def test_is_symmetric_and_never_negative(pair: tuple[Pixels, Pixels]) -> None:
    one, other = pair
    value = measure(psnr, one, other)
    assert value == measure(psnr, other, one)
    assert value >= 0
    assert (value == math.inf) == bool(np.array_equal(one, other))
    assert measure(psnr, one, one) == math.inf


@given(pairs, st.data())
def test_inside_and_outside_add_up_to_the_whole(
    pair: tuple[Pixels, Pixels], data: st.DataObject
) -> None:
    mask = data.draw(hnp.arrays(np.bool_, pair[0].shape[:2]))
    inside, outside = squared_error(*pair, mask), squared_error(*pair, ~mask)
    assert inside + outside == squared_error(*pair)
    assert inside == exact(pair[0][mask], pair[1][mask])
    assert measure(psnr, *pair, np.ones_like(mask)) == measure(psnr, *pair)
    if mask.any() and inside:
        mean = inside / (3 * np.count_nonzero(mask))
        assert measure(psnr, *pair, mask) == pytest.approx(10 * math.log10(255**2 / mean))


def test_a_mask_that_is_a_view_of_another_array() -> None:
    reference, frame = PAIRS["noise"]
    wide = np.zeros((160, 192), np.bool_)
    wide[20:90:2, 30:100:2] = True
    mask = wide[::2, ::2]
    assert squared_error(reference, frame, mask) == exact(reference[mask], frame[mask])


def test_an_empty_region_has_no_score() -> None:
    picture = Picture(scene())
    (value,) = psnr().score([StepView(picture, picture, np.zeros((80, 96), np.bool_))])
    assert value == NoScore("the region is empty")


def test_what_cannot_be_compared_is_refused() -> None:
    picture = Picture(scene())
    with pytest.raises(InputError, match="needs a reference"):
        psnr().score([StepView(picture)])
    with pytest.raises(InputError, match="size 96×81, got 96×80; resample it first"):
        psnr().score([StepView(picture, Picture(scene(81, 96)))])
    with pytest.raises(InputError, match="mask of the frame's size 96×80, got 80×96"):
        psnr().score([StepView(picture, picture, np.ones((96, 80), np.bool_))])


@given(st.floats(0, 120))
def test_rmse_of_psnr(decibels: float) -> None:
    rmse = rmse_of_psnr(decibels)
    assert 0 < rmse <= 255
    assert 20 * math.log10(255 / rmse) == pytest.approx(decibels, abs=1e-9)


def test_rmse_of_the_ends() -> None:
    assert rmse_of_psnr(math.inf) == 0
    assert rmse_of_psnr(0) == 255


@pytest.mark.shared
def test_published_values_of_real_chains(shared: Path) -> None:
    folder = shared / "data/chains/flux-kontext-dev"
    compared = 0
    for chain in json.loads((folder / "results.json").read_text())["evaluations"]:
        name = f"{Path(chain['image_filename']).stem}_{chain['edit_pair_name']}"
        home = Frame((folder / name / "I0_source.png").read_bytes()).pixels
        for item in chain["rounds"]:
            frame = Frame((folder / name / f"I{item['round']}_backward.png").read_bytes()).pixels
            brought = resize(frame, home.shape[1], home.shape[0])
            assert measure(psnr, home, brought) == pytest.approx(item["quality"]["psnr"], abs=1e-6)
            compared += 1
    assert compared == 24


@pytest.mark.shared
def test_an_autoencoder_loses_16_decibels_in_24_passes(shared: Path) -> None:
    folder = shared / "data/chains/vae-25-steps"
    first, last = (
        Frame((folder / f"eiffel_step_{step}.png").read_bytes()).pixels for step in (0, 24)
    )
    assert measure(psnr, first, last) == pytest.approx(16.64, abs=0.005)
