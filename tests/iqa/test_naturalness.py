"""BRISQUE, NIQE and PIQE beside pyiqa's, with the same parameters.

pyiqa's luma (0.299, 0.587, 0.114 in float32) is a level away from MATLAB's here and there, so it is
also given ours, as a picture with one channel in float64. What then remains: its Gaussian is
rounded to float32 and sums to 1 + 1.1e-8, which gives flat parts a σ of up to 0.03 and a sign; and
it halves pictures in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.frame import Frame
from convergebench.metric import LiftedMetric, Picture
from convergebench.metrics.brisque import brisque, read_regression
from convergebench.metrics.niqe import niqe, read_pristine
from convergebench.metrics.piqe import piqe
from convergebench.metrics.ssim import luma8
from tests.metrics.naturalness import Pixels, measured, official

pyiqa: Any = pytest.importorskip("pyiqa")
torch: Any = pytest.importorskip("torch")

Peer = Callable[[Any], Any]
NAMES: Final = ("brisque", "niqe", "piqe")

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def metrics(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[LiftedMetric, Peer]]:
    """Ours and pyiqa's by name."""
    from pyiqa.archs.brisque_arch import BRISQUE
    from pyiqa.archs.niqe_arch import NIQE
    from pyiqa.archs.piqe_arch import PIQE

    model = read_regression(shared / "weights/brisque_allmodel_LIVE_libsvm.txt")
    svm = tmp_path_factory.mktemp("pyiqa") / "brisque_svm_weights.pth"
    torch.save((torch.from_numpy(model.coefficients), torch.from_numpy(model.vectors)), svm)
    pristine = shared / "weights/niqe_modelparameters.mat"
    return {
        "brisque": (brisque(model), BRISQUE(pretrained_model_path=svm)),
        "niqe": (niqe(read_pristine(pristine)), NIQE(pretrained_model_path=pristine)),
        "piqe": (piqe(), PIQE()),
    }


def of_colours(peer: Peer, pixels: Pixels) -> float:
    """As anybody calls pyiqa."""
    samples = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None]
    return float(peer(samples.float() / 255))


def of_luma(peer: Peer, pixels: Pixels) -> float:
    """Of the luma that ours sees."""
    luma: NDArray[np.uint8] = luma8(Picture(pixels))
    return float(peer(torch.from_numpy(luma.copy())[None, None].double() / 255))


@pytest.mark.parametrize("name", NAMES)
def test_the_test_card(name: str, metrics: dict[str, tuple[LiftedMetric, Peer]]) -> None:
    ours, peer = metrics[name]
    known, frame = ours.spec.known, testcard.testcard()[1]
    assert known is not None
    assert of_luma(peer, frame) == pytest.approx(known.value, abs=1e-5)
    assert measured(ours, frame) == pytest.approx(known.value, abs=known.tolerance)
    assert of_colours(peer, frame) == pytest.approx(known.value, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_no_farther_from_the_official_values(
    name: str, metrics: dict[str, tuple[LiftedMetric, Peer]], shared: Path
) -> None:
    values, pictures = official(shared)
    ours, peer = metrics[name]
    for pixels, want in zip(pictures, values[name], strict=True):
        apart = abs(of_colours(peer, pixels) - want)
        assert abs(measured(ours, pixels) - want) <= max(apart, 0.01 * abs(want))


@pytest.mark.parametrize(("name", "tolerance"), [("brisque", 5e-4), ("niqe", 7e-4), ("piqe", 1e-3)])
@pytest.mark.parametrize("number", [0, 4, 12, 16])
def test_photographs(
    name: str,
    tolerance: float,
    number: int,
    metrics: dict[str, tuple[LiftedMetric, Peer]],
    shared: Path,
) -> None:
    file = sorted((shared / "data/photos/kodak24").glob("*.png"))[number]
    pixels = Frame(file.read_bytes()).pixels
    ours, peer = metrics[name]
    assert measured(ours, pixels) == pytest.approx(of_luma(peer, pixels), abs=tolerance)
