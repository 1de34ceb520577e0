"""ILNIQE against its paper written down slowly, and against official values."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Final

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage, special

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.frame import Frame
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import ilniqe as module
from convergebench.metrics.ilniqe import (
    FEATURES,
    Template,
    distance,
    features,
    ilniqe,
    normalised,
    patch_features,
    read_template,
)
from convergebench.metrics.loggabor import bank
from convergebench.testing import check_metric
from tests.metrics.naturalness import asymmetric, drawn, measured, resized
from tests.metrics.test_weibull import slow_weibull

Pixels = NDArray[np.uint8]
Doubles = NDArray[np.float64]

AXES: Final = 40


def parts() -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Mean, covariance, centre and axes of the right form, with random numbers."""
    rng = np.random.Generator(np.random.PCG64(3))
    spread = rng.normal(size=(AXES, 2 * AXES))
    axes = np.linalg.qr(rng.normal(size=(FEATURES, AXES)))[0]
    centre = rng.uniform(0.5, 2, FEATURES)
    return rng.normal(size=AXES), spread @ spread.T / AXES, centre, axes


def template() -> Template:
    return Template.of(*parts())


# -- the paper, written down ----------------------------------------------------------------------


def slow_filters(size: tuple[int, int], shortest: float) -> list[Doubles]:
    """Log-Gabor filters on a centred grid, moved to the order of the transform."""

    def axis(n: int) -> Doubles:
        return np.arange(-(n // 2), (n + 1) // 2) / (n - n % 2)

    x, y = np.meshgrid(axis(size[1]), axis(size[0]))
    radius = np.fft.ifftshift(np.hypot(x, y))
    theta = np.fft.ifftshift(np.arctan2(-y, x))
    radius[0, 0] = 1
    found = []
    for scale in range(3):
        radial = np.exp(-(np.log(radius * shortest * 1.31**scale) ** 2) / (2 * np.log(0.55) ** 2))
        radial[0, 0] = 0
        for n in range(4):
            angle = n * np.pi / 4
            apart = np.abs(np.arctan2(np.sin(theta - angle), np.cos(theta - angle)))
            found.append(radial * np.exp(-(apart**2) / (2 * (np.pi / 4 / 1.1) ** 2)))
    return found


def gaussian(count: int, sigma: float) -> Doubles:
    x = np.arange(count) - (count - 1) / 2
    window: Doubles = np.exp(-(x**2 + x[:, None] ** 2) / (2 * sigma**2))
    window /= window.sum()
    return window


def slow_fields(colours: Doubles, scale: int) -> list[tuple[str, Doubles]]:
    """The 109 fields of a scale, each with the letter of what is fitted to it."""
    red, green, blue = colours.transpose(2, 0, 1)
    opponent = [
        0.3 * red + 0.04 * green - 0.35 * blue,
        0.34 * red - 0.6 * green + 0.17 * blue,
        0.06 * red + 0.63 * green + 0.27 * blue,
    ]
    light, window = opponent[2], gaussian(5, 5 / 6)
    mean = ndimage.correlate(light, window, mode="nearest")
    variance = ndimage.correlate(light**2, window, mode="nearest") - mean**2
    sigma = 1.66 / scale**0.28
    reach = math.ceil(3 * sigma)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    bell = np.exp(-(x**2 + y**2) / (2 * sigma**2))

    def slopes(plane: Doubles) -> list[Doubles]:
        return [ndimage.convolve(plane, k, mode="constant") for k in (x * bell, y * bell)]

    gradients = [slopes(plane) for plane in opponent]
    logs = [np.log(c + 1e-5) for c in (red, green, blue)]
    r, g, b = (c - c.mean() for c in logs)
    spectrum, responses, steep = np.fft.fft2(light), [], []
    for passes in slow_filters((light.shape[0], light.shape[1]), 2.4 / scale**0.87):
        response = np.fft.ifft2(spectrum * passes)
        responses += [response.real, response.imag]
        steep += [slopes(response.real), slopes(response.imag)]
    return [
        ("mscn", (light - mean) / (np.sqrt(np.abs(variance)) + 1)),
        *(("weibull", np.hypot(*pair) + 2.0**-52) for pair in gradients),
        ("normal", (r + g + b) / math.sqrt(3)),
        ("normal", (r + g - 2 * b) / math.sqrt(6)),
        ("normal", (r - g) / math.sqrt(2)),
        *(("ggd", f) for pair in gradients for f in pair),
        *(("ggd", f) for f in responses),
        *(("ggd", f) for pair in steep for f in pair),
        *(("weibull", np.hypot(*pair) + 2.0**-52) for pair in steep),
    ]


def described(kind: str, x: Doubles) -> list[float]:
    def fit(values: Doubles) -> tuple[float, float, float]:
        shape, left, right = asymmetric(values)
        ratio = math.sqrt(special.gamma(1 / shape) / special.gamma(3 / shape))
        return shape, left * ratio, right * ratio

    if kind == "weibull":
        return list(slow_weibull(x.ravel()))
    if kind == "normal":
        return [float(x.mean()), float(x.var(ddof=1))]
    shape, left, right = fit(x)
    found = [shape, (left + right) / 2]
    for shift in ((0, 1), (1, 0), (1, 1), (1, -1)) if kind == "mscn" else ():
        shape, left, right = fit(x * np.roll(x, shift, (0, 1)))
        mean = (right - left) * special.gamma(2 / shape) / special.gamma(1 / shape)
        found += [shape, float(mean), left, right]
    return found


def slow_features(pixels: Pixels, patches: list[tuple[int, int]]) -> Doubles:
    """Features of some patches (row, column) of a picture of 524×524."""
    colours = pixels[:504, :504].astype(np.float64)
    rows: list[list[float]] = [[] for _ in patches]
    for scale in (1, 2):
        side = 84 // scale
        for kind, field in slow_fields(colours, scale):
            for row, (i, j) in zip(rows, patches, strict=True):
                row += described(
                    kind, field[side * i : side * i + side, side * j : side * j + side]
                )
        # an even window's centre is the third of its six samples
        smooth = [
            ndimage.correlate(c, gaussian(6, 0.9), mode="nearest", origin=-1)
            for c in colours.transpose(2, 0, 1)
        ]
        colours = np.stack(smooth, axis=2)[::2, ::2]
    return np.array(rows)


def test_features_equal_the_paper() -> None:
    pixels = drawn(524, 524, noise=12)
    patches = [(0, 0), (2, 3), (5, 5)]
    want = slow_features(pixels, patches)
    got = features(pixels)[[6 * i + j for i, j in patches]]
    # Shapes lie on a grid of 0.001, of which float32 may choose the neighbour; scales follow.
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1.1e-3)
    assert np.median(np.abs(got / want - 1)) < 1e-6


@pytest.mark.parametrize("size", [(40, 60), (60, 40), (1, 5), (530, 300)])
def test_the_picture_is_rounded_after_each_side(size: tuple[int, int]) -> None:
    pixels = drawn(*size)
    got = normalised(pixels)
    assert got.shape == (524, 524, 3)
    height, width = size
    wide, tall = (height, 524, (1.0, 524 / width)), (524, width, (524 / height, 1.0))
    first = tall if height >= width else wide
    columns = slice(0, 524, 131)
    plane = resized(pixels[..., 1].astype(np.float64), *first)
    plane = np.clip(np.floor(plane + 0.5), 0, 255)
    plane = np.clip(
        np.floor(resized(plane, 524, 524, (524 / plane.shape[0], 524 / plane.shape[1])) + 0.5),
        0,
        255,
    )
    # rounding noise decides where a sample lies halfway between two levels
    apart = np.abs(got[:, columns, 1] - plane[:, columns])
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.01


@pytest.mark.parametrize("size", [(12, 16), (15, 9)])
def test_filters_equal_the_paper(size: tuple[int, int]) -> None:
    wavelengths = (2.4, 2.4 * 1.31, 2.4 * 1.31**2)
    got = bank(*size, wavelengths, 4, 0.55, math.pi / 4 / 1.1).reshape(12, *size)
    np.testing.assert_allclose(got, slow_filters(size, 2.4), atol=1e-7)
    assert not got.flags.writeable


# -- the distance ---------------------------------------------------------------------------------


def slow_distance(found: Doubles) -> float:
    mean, covariance, centre, axes = parts()
    points = (np.where(np.isinf(found), 10000, found) - centre) @ axes
    usable = points[~np.isnan(points).any(axis=1)]
    spread = np.cov(usable, rowvar=False) if len(usable) > 1 else np.zeros_like(covariance)
    inverse = np.linalg.pinv((covariance + spread) / 2)
    points = np.where(np.isnan(points), usable.mean(axis=0), points)
    return float(np.mean([math.sqrt((p - mean) @ inverse @ (p - mean)) for p in points]))


@pytest.mark.parametrize("missing", [0, 1, 20, 35])
def test_the_distance_is_the_papers(missing: int) -> None:
    rng = np.random.default_rng(missing)
    found = rng.normal(1, 1, (36, FEATURES))
    found[rng.permutation(36)[:missing], rng.integers(FEATURES)] = np.nan
    assert distance(found, template()) == pytest.approx(slow_distance(found), rel=1e-9)
    found[0, 3] = found[35, 30] = np.inf
    assert distance(found, template()) == pytest.approx(slow_distance(found), rel=1e-6)


@pytest.mark.shared
def test_official_values(shared: Path) -> None:
    """What is left of the difference are the signs of rounding noise in flat parts."""
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    metric = ilniqe(read_template(shared / "weights/ILNIQE_templateModel.mat"))
    # pyiqa 0.1.16 with the same template
    peers = [115.618, 24.0712, 19.7533, 22.3366, 54.8379]
    for name, official, peer in zip(table["Method"], table["ilniqe"], peers, strict=True):
        value = measured(metric, Frame((folder / "dist_dir" / name).read_bytes()).pixels)
        assert value == pytest.approx(float(official), rel=2e-3), name
        assert abs(value - float(official)) < abs(peer - float(official)), name


@pytest.mark.shared
def test_the_test_card(shared: Path) -> None:
    metric = ilniqe(read_template(shared / "weights/ILNIQE_templateModel.mat"))
    known = metric.spec.known
    assert known is not None
    value = measured(metric, testcard.testcard()[1])
    assert value == pytest.approx(known.value, abs=known.tolerance)


# -- odd pictures ---------------------------------------------------------------------------------


def test_the_contract() -> None:
    check_metric(ilniqe(template()))


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("size", [(1, 1), (16, 256), (600, 600)])
def test_a_constant_picture_has_no_score(level: int, size: tuple[int, int]) -> None:
    view = StepView(Picture(np.full((*size, 3), level, np.uint8)))
    assert ilniqe(template()).score([view]) == [
        NoScore("none of its 36 patches has texture at both scales")
    ]


def test_flat_patches_stand_at_the_mean_of_the_others() -> None:
    pixels = drawn(524, 524)
    pixels[:, 150:] = 90
    found = patch_features(Picture(pixels))
    flat = np.isnan(found).any(axis=1).reshape(6, 6)
    assert not flat[:, 0].any()
    assert flat[:, 3:].all()
    assert distance(found, template()) == pytest.approx(slow_distance(found), rel=1e-6)


@pytest.mark.parametrize("size", [(7, 7), (64, 9), (30, 480), (480, 30)])
def test_small_pictures_and_strips_have_a_score(size: tuple[int, int]) -> None:
    assert math.isfinite(measured(ilniqe(template()), drawn(*size)))


def test_black_and_white_have_a_score() -> None:
    dots = np.where(np.random.default_rng(1).random((120, 120, 1)) < 0.5, 0, 255)
    assert math.isfinite(measured(ilniqe(template()), dots.astype(np.uint8).repeat(3, axis=2)))


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_matter(threads: int) -> None:
    pixels = drawn(100, 80)
    want = patch_features(Picture(pixels))
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(threads)
        np.testing.assert_array_equal(patch_features(Picture(pixels)), want)
    finally:
        cv2.setNumThreads(before)


def test_features_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(pixels: Pixels) -> Doubles:
        calls.append(pixels.shape)
        return features(pixels)

    monkeypatch.setattr(module, "features", counted)
    view = StepView(Picture(drawn(50, 50)))
    metric = ilniqe(template())
    assert metric.score([view]) == metric.score([view])
    assert len(calls) == 1


# -- parameters -----------------------------------------------------------------------------------


def saved(path: Path, values: list[Doubles]) -> Path:
    from scipy.io import savemat

    cells = np.empty((1, len(values)), object)
    cells[0, :] = values
    savemat(path, {"templateModel": cells})
    return path


def test_the_file_is_read(tmp_path: Path) -> None:
    mean, covariance, centre, axes = parts()
    found = read_template(
        saved(tmp_path / "t.mat", [mean[None], covariance, centre[:, None], axes])
    )
    want = template()
    np.testing.assert_allclose(found.axes, want.axes)
    np.testing.assert_allclose(found.mean, want.mean)
    np.testing.assert_allclose(found.centre, want.centre)


def test_another_file_is_refused(tmp_path: Path) -> None:
    mean, covariance, centre, axes = parts()
    for values, complaint in (
        ([mean, covariance], "expected mean, covariance"),
        ([mean, covariance, centre[:-1], axes], "expected mean, covariance"),
        ([mean, -covariance, centre, axes], "positive definite"),
        ([mean, covariance * np.nan, centre, axes], "is not ILNIQE's template"),
    ):
        with pytest.raises(MetricUnavailable, match=complaint):
            read_template(saved(tmp_path / "t.mat", values))


def test_without_a_template_the_metric_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONVERGEBENCH_WEIGHTS", "XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(MetricUnavailable, match="weights pull ilniqe"):
        ilniqe()
