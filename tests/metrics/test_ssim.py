"""The three forms of SSIM against scikit-image, a slow reference, and published values."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
import pytest
import skimage.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench.frame import Frame, encode, resize
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics.ssim import Known, luma8, ssim, ssim_rgb, ssim_uniform
from convergebench.metrics.windows import GAUSSIAN, UNIFORM, Window, total_loss
from tests.metrics.pairs import PAIRS, measure, scene

Pixels = NDArray[np.uint8]
Doubles = NDArray[np.float64]
Metric = Callable[[], LiftedMetric]

FORMS: Final[dict[str, Metric]] = {"ssim": ssim, "ssim-rgb": ssim_rgb, "ssim-uniform": ssim_uniform}
RADIUS: Final = {"ssim": 5, "ssim-rgb": 5, "ssim-uniform": 3}

scikit_image: Any = skimage.metrics.structural_similarity  # it has no types

# What is left of equality is float32 in the last steps: at most about 3e-7 of the loss, where all
# windows of a picture round the same way (flat pictures). On photographs roundings cancel: 2e-9
# was the largest difference seen.
ANY_PICTURE: Final = 1e-6
PHOTOGRAPH: Final = 1e-8

sides = st.integers(11, 30)
pairs = st.tuples(sides, sides, st.just(3)).flatmap(
    lambda shape: st.tuples(hnp.arrays(np.uint8, shape), hnp.arrays(np.uint8, shape))
)
forms = st.sampled_from(sorted(FORMS))


# -- independent references -----------------------------------------------------------------------


def windowed(plane: Doubles, weights: Doubles) -> Doubles:
    """The weighted sum of every window that lies inside: one shifted copy per weight."""
    height, width = plane.shape[0] - 10, plane.shape[1] - 10
    total = np.zeros((height, width))
    for (dy, dx), weight in np.ndenumerate(weights):
        total += weight * plane[dy : dy + height, dx : dx + width]
    return total


def slow_ssim(x: Doubles, y: Doubles) -> Doubles:
    """Equation 13 of the paper, written down as it stands there."""
    dy, dx = np.mgrid[-5:6, -5:6]
    weights = np.exp(-(dx**2 + dy**2) / (2 * 1.5**2))
    weights /= weights.sum()
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    mx, my = windowed(x, weights), windowed(y, weights)
    vx, vy = windowed(x * x, weights) - mx**2, windowed(y * y, weights) - my**2
    cov = windowed(x * y, weights) - mx * my
    quality: Doubles = ((2 * mx * my + c1) * (2 * cov + c2)) / (
        (mx**2 + my**2 + c1) * (vx + vy + c2)
    )
    return quality


def slow_luma(pixels: Pixels) -> Doubles:
    """MATLAB's rgb2gray: the first row of the inverse of its YIQ matrix, rounded half up."""
    yiq = np.linalg.inv([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.106, 1.703]])
    luma: Doubles = np.floor(pixels.astype(np.float64) @ yiq[0] + 0.5)
    return luma


def reference_value(form: str, one: Pixels, other: Pixels) -> float:
    if form == "ssim":
        return float(slow_ssim(slow_luma(one), slow_luma(other)).mean())
    options: dict[str, Any] = {"data_range": 255, "channel_axis": 2}
    if form == "ssim-rgb":
        options |= {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    return float(scikit_image(one, other, **options))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_equals_the_reference_on_drawn_pictures(form: str, name: str) -> None:
    want = reference_value(form, *PAIRS[name])
    assert measure(FORMS[form], *PAIRS[name]) == pytest.approx(want, abs=ANY_PICTURE)


@settings(max_examples=60, deadline=None)
@given(pairs, forms)
def test_equals_the_reference_on_any_picture(pair: tuple[Pixels, Pixels], form: str) -> None:
    want = reference_value(form, *pair)
    assert measure(FORMS[form], *pair) == pytest.approx(want, abs=ANY_PICTURE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("before", "after"), [(255, 155), (0, 60), (250, 251), (255, 0), (3, 5)])
def test_flat_pictures_are_where_float32_would_fail(form: str, before: int, after: int) -> None:
    one = np.full((40, 33, 3), before, np.uint8)
    other = np.full((40, 33, 3), after, np.uint8)
    other[7::9, 5::8] ^= 1
    want = reference_value(form, one, other)
    assert measure(FORMS[form], one, other) == pytest.approx(want, abs=ANY_PICTURE)


@pytest.mark.shared
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [1, 8, 20])
def test_equals_the_reference_on_photographs(form: str, number: int, shared: Path) -> None:
    files = sorted((shared / "data/photos/kodak24").glob("*.png"))
    photo = Frame(files[number].read_bytes()).pixels
    for other in (
        Frame(encode(photo, "jpeg", quality=30)).pixels,
        np.roll(photo, 1, axis=1),
        (photo * 0.8).astype(np.uint8),
    ):
        want = reference_value(form, photo, other)
        assert measure(FORMS[form], photo, other) == pytest.approx(want, abs=PHOTOGRAPH)


def test_golden_values() -> None:
    golden = json.loads((Path(__file__).parents[1] / "golden/metrics.json").read_text())
    assert set(golden["values"]) == set(PAIRS)
    for name, values in golden["values"].items():
        for form, metric in FORMS.items():
            got = measure(metric, *PAIRS[name])
            assert got == pytest.approx(values[form], abs=golden["tolerance"][form]), (name, form)


# -- published values -----------------------------------------------------------------------------


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
            want = item["quality"]["ssim"]
            assert measure(ssim_uniform, home, brought) == pytest.approx(want, abs=PHOTOGRAPH)
            compared += 1
    assert compared == 24


@pytest.mark.shared
def test_official_values_to_the_last_digit_printed(shared: Path) -> None:
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    for name, official in zip(table["Method"], table["ssim"], strict=True):
        one, other = (
            Frame((folder / side / name).read_bytes()).pixels for side in ("ref_dir", "dist_dir")
        )
        assert f"{measure(ssim, one, other):.4f}" == official, name


# -- luma -----------------------------------------------------------------------------------------


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20), st.just(3))))
def test_luma_is_rounded_exactly(pixels: Pixels) -> None:
    np.testing.assert_array_equal(luma8(Picture(pixels)), slow_luma(pixels))


def test_luma_of_greys_is_the_grey() -> None:
    greys = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    np.testing.assert_array_equal(luma8(Picture(greys))[0], np.arange(256))


def test_luma_of_every_colour_there_is() -> None:
    green, blue = np.mgrid[:256, :256]
    for red in range(256):
        total = 589399 * red + 1157447 * green + 224810 * blue
        assert not (total % 1971656 == 1971656 // 2).any(), "a tie, which rounding would decide"
        colours = np.stack([np.full_like(green, red), green, blue], axis=2).astype(np.uint8)
        np.testing.assert_array_equal(luma8(Picture(colours)), (total + 985828) // 1971656)


# -- properties -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs, forms)
def test_is_symmetric_bounded_and_1_for_identical_pictures(
    pair: tuple[Pixels, Pixels], form: str
) -> None:
    metric = FORMS[form]
    value = measure(metric, *pair)
    assert -1 <= value <= 1
    assert measure(metric, pair[1], pair[0]) == pytest.approx(value, abs=1e-12)
    assert measure(metric, pair[0], pair[0]) == 1.0
    assert measure(metric, pair[1], pair[1].copy()) == 1.0


@pytest.mark.parametrize("form", FORMS)
def test_more_noise_is_worse(form: str) -> None:
    rng = np.random.default_rng(5)
    grain = rng.normal(size=(80, 96, 3))
    values = [
        measure(FORMS[form], scene(), np.clip(scene() + grain * s, 0, 255).astype(np.uint8))
        for s in (2, 5, 10, 20, 40, 80)
    ]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from([GAUSSIAN, UNIFORM]), st.integers(1, 25), st.integers(1, 25))
def test_tiles_do_not_matter(
    pair: tuple[Pixels, Pixels], window: Window, rows: int, columns: int
) -> None:
    whole = total_loss(*pair, window, tile=(1000, 1000))
    assert total_loss(*pair, window, tile=(rows, columns)) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("window", [GAUSSIAN, UNIFORM])
@pytest.mark.parametrize("rows", [1, 7, 64, 128])
def test_bands_and_threads_do_not_matter(window: Window, rows: int) -> None:
    one, other = PAIRS["noise"]
    whole = total_loss(one, other, window, tile=(1000, 1000))
    threads = cv2.getNumThreads()
    try:
        for count in (1, 2, 5):
            cv2.setNumThreads(count)
            got = total_loss(one, other, window, tile=(rows, 96))
            assert got == pytest.approx(whole, rel=1e-12)
    finally:
        cv2.setNumThreads(threads)


# -- regions --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(pairs, forms, st.data())
def test_regions_add_up_to_the_whole(
    pair: tuple[Pixels, Pixels], form: str, data: st.DataObject
) -> None:
    metric, radius = FORMS[form], RADIUS[form]
    whole = measure(metric, *pair)
    mask = data.draw(hnp.arrays(np.bool_, pair[0].shape[:2]))
    assert measure(metric, *pair, np.ones_like(mask)) == pytest.approx(whole, abs=1e-12)
    inside = np.count_nonzero(mask[radius:-radius, radius:-radius])
    outside = np.count_nonzero(~mask[radius:-radius, radius:-radius])
    if inside and outside:
        both = measure(metric, *pair, mask) * inside + measure(metric, *pair, ~mask) * outside
        assert both / (inside + outside) == pytest.approx(whole, abs=1e-12)


def test_a_region_is_the_mean_over_its_window_centres() -> None:
    one, other = PAIRS["shifted"]
    mask = np.zeros((80, 96), np.bool_)
    mask[20:50, 30:60:3] = True
    quality = slow_ssim(slow_luma(one), slow_luma(other))
    want = quality[mask[5:-5, 5:-5]].mean()
    assert measure(ssim, one, other, mask) == pytest.approx(want, abs=ANY_PICTURE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_several_regions_of_a_pair_share_one_map(form: str, order: tuple[int, ...]) -> None:
    one, other = PAIRS["noise"]
    right = np.zeros((80, 96), np.bool_)
    right[:, 40:] = True
    masks = [right, ~right, None]
    alone = [measure(FORMS[form], one, other, masks[n]) for n in order]
    assert len(set(alone)) == 3
    first = StepView(Picture(other), Picture(one))
    maps = []
    for n, want in zip(order, alone, strict=True):
        view = StepView(first.frame, first.reference, masks[n], first.memo)
        (value,) = FORMS[form]().score([view])
        assert value == pytest.approx(want, abs=1e-15)
        maps.append(first.shared((form, "known"), Known).map)
    assert (maps[0] is None) == (masks[order[0]] is None), "kept only once a region asks for it"
    assert len({id(kept) for kept in maps if kept is not None}) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_region_on_the_border_has_no_score(form: str) -> None:
    radius = RADIUS[form]
    mask = np.zeros((80, 96), np.bool_)
    mask[:radius] = True
    mask[:, -radius:] = True
    view = StepView(Picture(scene()), Picture(scene()), mask)
    assert FORMS[form]().score([view]) == [
        NoScore(f"the region lies within {radius} pixels of the border")
    ]
    mask[radius, radius] = True
    assert FORMS[form]().score([view]) == [1.0]


@pytest.mark.parametrize("form", FORMS)
def test_pictures_smaller_than_the_window_have_no_score(form: str) -> None:
    side = 2 * RADIUS[form] + 1
    small, enough = Picture(scene(side - 1, 40)), Picture(scene(side, 40))
    (none, one) = FORMS[form]().score([StepView(small, small), StepView(enough, enough)])
    assert none == NoScore(f"{side - 1} pixels on the short side, {side} needed")
    assert one == 1.0
