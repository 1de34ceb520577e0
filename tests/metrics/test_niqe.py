"""NIQE."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.brisque import features as brisque_features_of
from convergebench.metrics.niqe import Pristine, block_features, distance, niqe, read_pristine
from convergebench.testing import check_metric
from tests.metrics.naturalness import drawn, measured, niqe_features, official

MODEL = "weights/niqe_modelparameters.mat"


def pristine() -> Pristine:
    """Of the right form, with random numbers."""
    rng = np.random.Generator(np.random.PCG64(3))
    spread = rng.normal(size=(36, 60))
    return Pristine(rng.uniform(0.2, 2, 36), spread @ spread.T / 60)


@pytest.mark.parametrize("size", [(192, 288), (200, 300), (191, 97), (97, 192), (96, 384)])
def test_features_equal_the_paper(size: tuple[int, int]) -> None:
    """Whatever is cropped, and whether or not BRISQUE has asked for the fields before."""
    pixels = drawn(*size)
    want = niqe_features(pixels)
    picture, other = Picture(pixels), Picture(pixels)
    brisque_features_of(other)
    # Shapes lie on a grid of 0.001, of which float32 may choose the neighbour.
    np.testing.assert_allclose(block_features(picture), want, atol=1.1e-3)
    np.testing.assert_array_equal(block_features(other), block_features(picture))


def test_the_score_is_a_distance() -> None:
    model, pixels = pristine(), drawn(200, 300)
    found = niqe_features(pixels)
    apart = found.mean(axis=0) - model.mean
    centred = found - found.mean(axis=0)
    spread = centred.T @ centred / (len(found) - 1)
    want = math.sqrt(apart @ np.linalg.solve((spread + model.covariance) / 2, apart))
    assert measured(niqe(model), pixels) == pytest.approx(want, rel=1e-3)


def test_the_model_itself_scores_nothing() -> None:
    model = pristine()
    blocks = model.mean + np.random.default_rng(0).normal(size=(4, 36)) * [[1], [-1], [0], [0]]
    blocks -= blocks.mean(axis=0) - model.mean
    assert distance(blocks, model) == pytest.approx(0, abs=1e-6)


def test_a_single_block_has_no_spread() -> None:
    model, pixels = pristine(), drawn(96, 96)
    apart = niqe_features(pixels)[0] - model.mean
    want = math.sqrt(apart @ np.linalg.solve(model.covariance / 2, apart))
    assert measured(niqe(model), pixels) == pytest.approx(want, rel=1e-3)


def test_blocks_without_texture_are_left_out() -> None:
    model, pixels = pristine(), drawn(96, 384)
    half = pixels.copy()
    half[:, 180:] = 128
    found = block_features(Picture(half))
    assert np.isfinite(found[:2]).all()
    assert np.isnan(found[2:]).any(axis=1).all()
    assert measured(niqe(model), half) == distance(found[:2], model)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_constant_picture_has_no_score(level: int) -> None:
    view = StepView(Picture(np.full((200, 96, 3), level, np.uint8)))
    assert niqe(pristine()).score([view]) == [
        NoScore("every block of 96×96 pixels is too flat or too regular")
    ]


def test_a_singular_model_still_gives_a_score() -> None:
    model = Pristine(np.zeros(36), np.zeros((36, 36)))
    assert measured(niqe(model), drawn(96, 96)) == 0
    assert math.isfinite(measured(niqe(model), drawn(96, 300)))


def test_pictures_without_a_block_have_no_score() -> None:
    view = StepView(Picture(drawn(95, 1000)))
    assert niqe(pristine()).score([view]) == [NoScore("95 pixels on the short side, 96 needed")]
    assert block_features(view.frame).shape == (0, 36)


def test_the_contract() -> None:
    check_metric(niqe(pristine()))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_matter(threads: int) -> None:
    pixels = drawn(300, 200)
    want = block_features(Picture(pixels))
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(threads)
        np.testing.assert_array_equal(block_features(Picture(pixels)), want)
    finally:
        cv2.setNumThreads(before)


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("mu_prisparam", "cov_prisparam"), ("mu_pris_param", "cov_pris_param")]
)
@pytest.mark.parametrize("suffix", ["mat", "npz"])
def test_either_file_is_read(names: tuple[str, str], suffix: str, tmp_path: Path) -> None:
    from scipy.io import savemat

    model, path = pristine(), tmp_path / f"model.{suffix}"
    content = dict(zip(names, (model.mean[None], model.covariance), strict=True))
    if suffix == "mat":
        savemat(path, content)
    else:
        np.savez(path, allow_pickle=False, **content)
    found = read_pristine(path)
    np.testing.assert_array_equal(found.mean, model.mean)
    np.testing.assert_array_equal(found.covariance, model.covariance)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"mu_prisparam": np.zeros(36)}, "it lacks"),
        ({"mu_prisparam": np.zeros(18), "cov_prisparam": np.eye(36)}, "it is not of 36"),
        ({"mu_prisparam": np.zeros(36), "cov_prisparam": np.eye(18)}, "it is not of 36"),
        ({"mu_prisparam": np.full(36, np.nan), "cov_prisparam": np.eye(36)}, "not all of its"),
    ],
)
def test_a_wrong_file_is_refused(
    content: dict[str, np.ndarray], complaint: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "model.npz", allow_pickle=False, **content)
    with pytest.raises(MetricUnavailable, match=f"is not NIQE's model: {complaint}"):
        read_pristine(tmp_path / "model.npz")


def test_without_weights_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MetricUnavailable, match="weights pull niqe"):
        niqe()
    assert niqe.spec.name == "niqe"  # type: ignore[attr-defined]


# -- real pictures --------------------------------------------------------------------------------


@pytest.mark.shared
def test_official_values(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 1 %, and to six digits where no part of the picture is flat (I04)."""
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(shared / "weights"))
    values, pictures = official(shared)
    ours = [measured(niqe(), picture) for picture in pictures]
    assert ours == pytest.approx(values["niqe"], rel=0.01)
    assert ours[1] == pytest.approx(values["niqe"][1], rel=1e-6)


@pytest.mark.shared
def test_the_test_card(shared: Path) -> None:
    known = niqe.spec.known  # type: ignore[attr-defined]
    metric = niqe(read_pristine(shared / MODEL))
    assert measured(metric, testcard.testcard()[1]) == pytest.approx(
        known.value, abs=known.tolerance
    )


@pytest.mark.weights
def test_the_test_card_with_the_pulled_weights() -> None:
    known = niqe.spec.known  # type: ignore[attr-defined]
    card = testcard.testcard()[1]
    assert measured(niqe(), card) == pytest.approx(known.value, abs=known.tolerance)
