"""NRQM and PI against their papers written down slowly; the parameters are random numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from convergebench.errors import MetricUnavailable
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import niqe as niqe_module
from convergebench.metrics import nrqm as nrqm_module
from convergebench.metrics.blockdct import block_features, shape
from convergebench.metrics.forest import Forest
from convergebench.metrics.niqe import Pristine, niqe
from convergebench.metrics.nrqm import COUNTS, Model, nrqm, plane_features, read_model
from convergebench.metrics.pi import challenge, pi
from convergebench.metrics.scalemixture import mixture_features
from convergebench.metrics.steerable import steerable
from convergebench.testing import check_metric
from tests.metrics import superresolution as paper
from tests.metrics.forests import save_model, trees, walked
from tests.metrics.naturalness import drawn, luma, measured

Doubles = NDArray[np.float64]


def model(seed: int = 5) -> Model:
    rng = np.random.default_rng(seed)
    one, two, three = (Forest.of(trees(rng, n, 30, 41), n) for n in COUNTS)
    return Model((one, two, three), np.array([0.5, 0.2, 0.4, 0.3]))


def pristine() -> Pristine:
    rng = np.random.Generator(np.random.PCG64(3))
    spread = rng.normal(size=(36, 60))
    return Pristine(rng.uniform(0.2, 2, 36), spread @ spread.T / 60)


@pytest.mark.parametrize("size", [(90, 120), (85, 103), (101, 88)])
def test_features_equal_the_paper(size: tuple[int, int]) -> None:
    pixels = drawn(*size)
    plane = luma(pixels)
    blocks, mixture, singular = nrqm_module.features(Picture(pixels))
    scales = paper.scales_of(plane / 255)
    np.testing.assert_allclose(
        blocks, np.concatenate([paper.block_features(s) for s in scales]), rtol=1e-9
    )
    np.testing.assert_allclose(
        singular, np.concatenate([paper.singular_values(s) for s in scales]), rtol=1e-9
    )
    # Shapes lie on a grid of 0.001, of which float32 may choose the neighbour; the paper's program
    # takes the pyramid's factors from tables, 5e-6 off.
    np.testing.assert_allclose(mixture, paper.mixture_features(plane), rtol=2e-5, atol=1.1e-3)
    assert np.median(np.abs(mixture - paper.mixture_features(plane))) < 1e-5


# -- the pyramid ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(16, 60), st.integers(16, 60), st.integers(0, 99))
def test_the_pyramid_keeps_all_of_the_picture(height: int, width: int, seed: int) -> None:
    """Energies of its parts, each times how much sparser it is sampled, add up to the picture's."""
    plane = np.random.default_rng(seed).normal(100, 30, (height, width))
    pyramid = steerable(plane, 2, 6)
    area = height * width
    energy = float((pyramid.high.astype(np.float64) ** 2).sum()) / area
    for band in [*pyramid.levels[0], *pyramid.levels[1], pyramid.low]:
        # a smaller transform back leaves the sums as large as the larger one's
        energy += float((band.astype(np.float64) ** 2).sum()) * band.size / area**2
    assert energy == pytest.approx(float((plane**2).mean()), rel=1e-5)


@pytest.mark.parametrize("size", [(48, 64), (45, 51)])
def test_bands_equal_the_tables(size: tuple[int, int]) -> None:
    plane = luma(drawn(*size))
    high, levels = paper.pyramid_bands(plane)
    got = steerable(plane, 2, 6)
    np.testing.assert_allclose(got.high, high, atol=2e-3)
    for ours, theirs in zip(got.levels, levels, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=4e-3)


def test_a_stripe_is_seen_by_the_band_of_its_direction() -> None:
    x = np.arange(96)
    for direction in range(6):
        angle = direction * math.pi / 6
        wave = np.cos(2 * math.pi * 0.2 * (math.cos(angle) * x + math.sin(angle) * x[:, None]))
        energies = [float((band**2).sum()) for band in steerable(wave * 50, 2, 6).levels[0]]
        assert int(np.argmax(energies)) == direction


# -- fits and forests -----------------------------------------------------------------------------


@pytest.mark.parametrize(("true", "beta"), [(1.0, 1.0), (2.0, 2.0), (0.7, 0.7)])
def test_shapes_are_recovered(true: float, beta: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.choice([-1, 1], 400_000) * rng.gamma(1 / beta, 1, 400_000) ** (1 / beta)
    found = shape(np.array(x.var(ddof=1)), np.array(np.abs(x - x.mean()).mean()))
    assert float(found) == pytest.approx(true, rel=0.02)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.integers(0, 999))
def test_a_forest_answers_as_its_trees_do(nodes: int, count: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = trees(rng, width, count, nodes)
    case = rng.normal(size=width)
    node = int(rng.integers(nodes))
    case[max(0, int(parts["mbest"][node, 0]) - 1)] = parts["upper"][node, 0]  # equal goes left
    want = np.mean([walked(parts, case, tree) for tree in range(count)])
    assert Forest.of(parts, width).predict(case) == pytest.approx(want, rel=1e-12)


def test_a_corrected_forest() -> None:
    parts = trees(np.random.default_rng(0), 3, 5, 9)
    case = np.zeros(3)
    plain = Forest.of(parts, 3).predict(case)
    parts["coef"] = np.array([[2.0, 0.5]])
    assert Forest.of(parts, 3).predict(case) == pytest.approx(2 + plain / 2)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("lDau", 1, "do not form trees"),
        ("rDau", 99, "do not form trees"),
        ("mbest", 4, "do not form trees"),
        ("mbest", 0, "do not form trees"),
        ("upper", None, "lacks upper"),
    ],
)
def test_a_forest_that_would_never_end_is_refused(
    field: str, value: int | None, complaint: str
) -> None:
    parts: dict[str, NDArray[Any]] = {
        "lDau": np.array([[2], [0], [0]]),
        "rDau": np.array([[3], [0], [0]]),
        "mbest": np.array([[1], [0], [0]]),
        "upper": np.zeros((3, 1)),
        "avnode": np.zeros((3, 1)),
    }
    assert Forest.of(parts, 3).predict(np.zeros(3)) == 0
    if value is None:
        del parts[field]
    else:
        parts[field][0, 0] = value
    with pytest.raises(ValueError, match=complaint):
        Forest.of(parts, 3)


# -- the metric -----------------------------------------------------------------------------------


def test_the_score_is_linear_in_the_forests_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    forests = [trees(rng, n, 20, 31) for n in COUNTS]
    path = save_model(tmp_path / "NRQM_model.mat", forests, [1.5, 0.1, 0.2, 0.3])
    pixels = drawn(100, 90)
    sets = nrqm_module.features(Picture(pixels))
    answers = [
        np.mean([walked(parts, case, tree) for tree in range(20)])
        for parts, case in zip(forests, sets, strict=True)
    ]
    want = 1.5 + 0.1 * answers[0] + 0.2 * answers[1] + 0.3 * answers[2]
    assert measured(nrqm(read_model(path)), pixels) == pytest.approx(float(want), rel=1e-12)


def test_another_file_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    forests = [trees(rng, n, 2, 5) for n in COUNTS]
    path = tmp_path / "NRQM_model.mat"
    for content, linear, complaint in (
        (forests, [1.0, 2.0], "expected 4 numbers"),
        (forests[:2], [1.0, 2, 3, 4], "lacks lDau"),
    ):
        with pytest.raises(MetricUnavailable, match=complaint):
            read_model(save_model(path, content, linear))


def test_the_contract() -> None:
    check_metric(nrqm(model()))
    check_metric(pi(model(), pristine()))


@pytest.mark.parametrize("size", [(84, 84), (84, 700), (400, 90)])
def test_small_and_narrow_pictures_have_a_score(size: tuple[int, int]) -> None:
    assert 0 <= measured(nrqm(model()), drawn(*size)) <= 10


def test_smaller_pictures_have_none() -> None:
    view = StepView(Picture(drawn(83, 300)))
    assert nrqm(model()).score([view]) == [NoScore("83 pixels on the short side, 84 needed")]
    view = StepView(Picture(drawn(103, 300)))
    assert pi(model(), pristine()).score([view]) == [
        NoScore("103 pixels on the short side, 104 needed")
    ]


@pytest.mark.parametrize("level", [0, 255])
def test_constant_pictures_are_defined(level: int) -> None:
    flat = np.full((120, 130, 3), level, np.uint8)
    for values in plane_features(flat[..., 0]):
        assert np.isfinite(values).all()
    (score,) = pi(model(), pristine()).score([StepView(Picture(flat))])
    assert isinstance(score, NoScore), "NIQE has none"


def test_constant_blocks_count_as_without_variation() -> None:
    found = block_features(np.full((30, 30), 0.5))
    assert found[1] > 1  # most blocks have the widest shape there is
    assert (mixture_features(np.full((90, 90), 7, np.uint8))[:18] == 10).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_matter(threads: int) -> None:
    plane = drawn(150, 170)[..., 1].copy()
    want = plane_features(plane)
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(threads)
        for one, other in zip(plane_features(plane), want, strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        cv2.setNumThreads(before)


# -- the perceptual index -------------------------------------------------------------------------


def test_the_challenge_looks_at_the_inner_luma() -> None:
    pixels = drawn(110, 130)
    y = 16 + pixels[4:-4, 4:-4] @ np.array([65.481, 128.553, 24.966]) / 255
    got = challenge(Picture(pixels)).pixels
    np.testing.assert_array_equal(got, np.floor(y + 0.5)[..., None].repeat(3, axis=2))


def test_the_index_is_made_of_both() -> None:
    pixels = drawn(220, 210)
    grey = challenge(Picture(pixels)).pixels
    quality, distance = measured(nrqm(model()), grey), measured(niqe(pristine()), grey)
    value = measured(pi(model(), pristine()), pixels)
    assert value == pytest.approx((10 - quality + distance) / 2, rel=1e-12)


def test_each_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    slow_nrqm, slow_niqe = nrqm_module.plane_features, niqe_module._block_features

    def counted_nrqm(plane: NDArray[np.uint8]) -> tuple[Doubles, Doubles, Doubles]:
        calls.append("nrqm")
        return slow_nrqm(plane)

    def counted_niqe(picture: Picture) -> Doubles:
        calls.append("niqe")
        return slow_niqe(picture)

    monkeypatch.setattr(nrqm_module, "plane_features", counted_nrqm)
    monkeypatch.setattr(niqe_module, "_block_features", counted_niqe)
    view = StepView(Picture(drawn(110, 120)))
    index = pi(model(), pristine())
    assert index.score([view]) == index.score([view])
    assert sorted(calls) == ["niqe", "nrqm"]
    grey = StepView(challenge(view.frame))
    nrqm(model()).score([grey])
    niqe(pristine()).score([grey])
    assert sorted(calls) == ["niqe", "nrqm"]


@pytest.mark.parametrize("name", ["nrqm", "pi"])
def test_without_parameters_the_metric_says_how_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CONVERGEBENCH_WEIGHTS", "XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(MetricUnavailable, match="weights pull nrqm"):
        {"nrqm": nrqm, "pi": pi}[name]()
