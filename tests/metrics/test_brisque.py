"""BRISQUE."""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np
import pytest

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.frame import Frame, encode
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import brisque as module
from convergebench.metrics.brisque import (
    RANGES,
    Regression,
    brisque,
    features,
    read_regression,
    score,
)
from convergebench.testing import check_metric
from tests.metrics.naturalness import brisque_features, drawn, measured, official
from tests.metrics.pairs import scene

MODEL = "weights/brisque_allmodel_LIVE_libsvm.txt"


def regression() -> Regression:
    """Of the right form, with random numbers."""
    rng = np.random.Generator(np.random.PCG64(3))
    return Regression(0.05, -20, rng.normal(0, 30, 50), rng.uniform(-1, 1, (50, 36)))


def written(path: Path, model: Regression, **changes: str) -> Path:
    """The regression as LIBSVM writes it; zeros are left out."""
    head = {
        "svm_type": "epsilon_svr",
        "kernel_type": "rbf",
        "gamma": str(model.gamma),
        "nr_class": "2",
        "total_sv": str(len(model.vectors)),
        "rho": str(model.rho),
    } | changes
    lines = [f"{key} {value}" for key, value in head.items() if value]
    lines.append("SV")
    for coefficient, vector in zip(model.coefficients, model.vectors, strict=True):
        pairs = " ".join(f"{i}:{float(v)!r}" for i, v in enumerate(vector, 1) if v)
        lines.append(f"{float(coefficient)!r} {pairs} ")
    path.write_text("\n".join(lines) + "\n")
    return path


# -- features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(80, 96), (61, 47), (13, 200), (130, 131)])
def test_features_equal_the_paper(size: tuple[int, int]) -> None:
    pixels = drawn(*size)
    # Shapes lie on a grid of 0.001, of which float32 may choose the neighbour.
    np.testing.assert_allclose(features(Picture(pixels)), brisque_features(pixels), atol=1.1e-3)


def test_features_of_flat_parts_count_half_of_the_zeros() -> None:
    np.testing.assert_allclose(features(Picture(scene())), brisque_features(scene()), atol=1.1e-3)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("rows", [5, 64, 200])
def test_bands_and_threads_do_not_matter(
    threads: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = drawn(120, 96)
    want = features(Picture(pixels))
    before = cv2.getNumThreads()
    monkeypatch.setattr(module, "BAND", rows)
    try:
        cv2.setNumThreads(threads)
        np.testing.assert_allclose(features(Picture(pixels)), want, rtol=1e-6, atol=1e-6)
    finally:
        cv2.setNumThreads(before)


# -- the regression -------------------------------------------------------------------------------


def test_one_support_vector_in_closed_form() -> None:
    vector = np.linspace(-1, 1, 36)
    model = Regression(0.05, 1.5, np.array([3.0]), vector[None])
    assert model(vector) == pytest.approx(3 - 1.5)
    assert model(vector + 0.5) == pytest.approx(3 * math.exp(-0.05 * 36 * 0.25) - 1.5)


def test_features_are_scaled_to_the_range_of_training() -> None:
    low, high = RANGES.T
    for found, scaled in ((low, -1), (high, 1), ((low + high) / 2, 0)):
        model = Regression(1, 0, np.array([1.0]), np.full((1, 36), float(scaled)))
        # six decimals of features whose range is 0.2 wide
        assert score(found, model) == pytest.approx(1, abs=1e-8)


def test_the_file_is_read_with_its_gaps(tmp_path: Path) -> None:
    model = regression()
    model.vectors[::3, ::5] = 0
    found = read_regression(written(tmp_path / "model", model))
    assert (found.gamma, found.rho) == (model.gamma, model.rho)
    np.testing.assert_array_equal(found.vectors, model.vectors)
    np.testing.assert_array_equal(found.coefficients, model.coefficients)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"svm_type": "c_svc"}, "its svm_type is 'c_svc', not epsilon_svr"),
        ({"kernel_type": "linear"}, "its kernel_type is 'linear', not rbf"),
        ({"total_sv": "51"}, "it has 50 support vectors, not 51"),
        ({"gamma": ""}, "it lacks 'gamma'"),
        ({"rho": "nan"}, "not all of its numbers are finite"),
        ({"rho": "much"}, "could not convert"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, changes: dict[str, str], complaint: str) -> None:
    path = written(tmp_path / "model", regression(), **changes)
    with pytest.raises(MetricUnavailable, match=f"is not BRISQUE's regression: {complaint}"):
        read_regression(path)


@pytest.mark.parametrize("line", ["1 37:0.5", "1 0:2", "1 1.5:2", "1 2", "1 1:inf", "1 1:x", ""])
def test_a_wrong_support_vector_is_refused(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "model", regression())
    lines = path.read_text().splitlines()
    lines[20] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(MetricUnavailable, match="is not BRISQUE's regression"):
        read_regression(path)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\xff", b"svm_type epsilon_svr\n"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(MetricUnavailable, match="is not BRISQUE's regression"):
        read_regression(tmp_path / "model")
    with pytest.raises(MetricUnavailable, match="cannot be read"):
        read_regression(tmp_path / "none")


# -- the metric -----------------------------------------------------------------------------------


def test_the_contract() -> None:
    check_metric(brisque(regression()))


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("size", [(64, 64), (13, 208)])
def test_a_constant_picture_has_no_score(level: int, size: tuple[int, int]) -> None:
    (value,) = brisque(regression()).score(
        [StepView(Picture(np.full((*size, 3), level, np.uint8)))]
    )
    assert isinstance(value, NoScore)
    assert "too flat or too regular" in value.reason


def test_strips_have_a_score() -> None:
    for size in ((16, 256), (256, 16)):
        assert math.isfinite(measured(brisque(regression()), drawn(*size)))


def test_without_weights_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MetricUnavailable, match="weights pull brisque"):
        brisque()
    assert brisque.spec.name == "brisque"  # type: ignore[attr-defined]


@pytest.mark.shared
def test_official_values(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No farther from the official value than pyiqa 0.1.16 is, or within 1 %.

    Only I04 has no flat parts.
    """
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(shared / "weights"))
    values, pictures = official(shared)
    peer = [94.64536, -0.10767, 1.07739, 5.14185, 66.83856]
    ours = [measured(brisque(), picture) for picture in pictures]
    assert f"{ours[1]:.5f}" == f"{values['brisque'][1]:.5f}"
    for found, theirs, want in zip(ours, peer, values["brisque"], strict=True):
        assert abs(found - want) <= max(abs(theirs - want), 0.01 * abs(want))


@pytest.mark.shared
def test_official_value_depends_on_rounding_where_a_picture_is_flat(shared: Path) -> None:
    """Between leaving out and counting zeros lie the official values of the pictures with them."""
    model = read_regression(shared / MODEL)
    values, pictures = official(shared)
    for number in (2, 3, 4):
        found = []
        for part in (0.0, 1.0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "FLAT", part)
                found.append(score(features(Picture(pictures[number])), model))
        low, high = sorted(float(v) for v in found if not isinstance(v, NoScore))
        assert low <= values["brisque"][number] <= high


@pytest.mark.shared
def test_the_test_card(shared: Path) -> None:
    known = brisque.spec.known  # type: ignore[attr-defined]
    metric = brisque(read_regression(shared / MODEL))
    assert measured(metric, testcard.testcard()[1]) == pytest.approx(
        known.value, abs=known.tolerance
    )


@pytest.mark.shared
def test_damage_to_a_photograph_costs(shared: Path) -> None:
    metric = brisque(read_regression(shared / MODEL))
    file = sorted((shared / "data/photos/kodak24").glob("*.png"))[6]
    photo = Frame(file.read_bytes()).pixels
    blurred = cv2.GaussianBlur(photo, (0, 0), 3).astype(np.uint8)
    jpeg = Frame(encode(photo, "jpeg", quality=8)).pixels
    plain = measured(metric, photo)
    assert plain < measured(metric, blurred)
    assert plain < measured(metric, jpeg)


@pytest.mark.weights
def test_the_test_card_with_the_pulled_weights() -> None:
    known = brisque.spec.known  # type: ignore[attr-defined]
    card = testcard.testcard()[1]
    assert measured(brisque(), card) == pytest.approx(known.value, abs=known.tolerance)
