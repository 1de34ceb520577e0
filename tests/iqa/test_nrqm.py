"""NRQM and PI beside pyiqa's, with the same random parameters in the same file.

Where pyiqa's translation differs from the authors' program, which ours follows, the features that
depend on it are compared loosely: the last band of the finer level has a parent there (`PARENT`),
negative agreement counts as 0, and the pooled tenths have a sample more or less. Sides are
multiples of 12, because with others it also places blocks and parents differently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.metric import Picture
from convergebench.metrics.niqe import niqe, read_pristine
from convergebench.metrics.nrqm import features, nrqm, read_model
from convergebench.metrics.pi import challenge, pi
from tests.metrics.forests import save_model, trees
from tests.metrics.naturalness import Pixels, drawn, luma, measured

torch: Any = pytest.importorskip("torch")
arch: Any = pytest.importorskip("pyiqa.archs.nrqm_arch")

Doubles = NDArray[np.float64]

PARENT: Final = {5, 17, *(30 + n for n in (4, 8, 11, 13, 14))}
"""Features of the oriented bands that the last of the finer level has a part in."""


def peer_features(plane: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    image = torch.from_numpy(plane)[None, None]
    scales = arch.get_gauss_pyramid(image / 255)
    blocks = [arch.block_dct(scale) for scale in scales]
    singular = [torch.linalg.svd(arch.im2col(s, 5, "distinct"))[1] for s in scales]
    return (
        torch.cat(blocks, dim=1)[0].numpy(),
        arch.global_gsm(image)[0].numpy(),
        torch.cat(singular, dim=1)[0].numpy(),
    )


@pytest.fixture(scope="module")
def pixels() -> Pixels:
    return drawn(120, 144)


def test_features(pixels: Pixels) -> None:
    blocks, mixture, singular = features(Picture(pixels))
    want_blocks, want_mixture, want_singular = peer_features(luma(pixels))
    # its Gaussian is rounded to float32
    np.testing.assert_allclose(singular, want_singular, rtol=1e-6)
    np.testing.assert_allclose(blocks[1::2], want_blocks[1::2], rtol=1e-6)
    np.testing.assert_allclose(blocks[::2], want_blocks[::2], rtol=0.03)
    same = [n for n in range(45) if n not in PARENT]
    shapes = [n for n in same if n < 18]
    np.testing.assert_allclose(mixture[shapes], want_mixture[shapes], atol=1.1e-3)
    agreements = [n for n in same if n >= 18]
    np.testing.assert_allclose(mixture[agreements], want_mixture[agreements], atol=0.01)
    np.testing.assert_allclose(mixture[sorted(PARENT)], want_mixture[sorted(PARENT)], atol=0.15)


@pytest.fixture
def path(pixels: Pixels, tmp_path: Path) -> Path:
    """Forests whose thresholds lie among the features of a picture, but not next to any."""
    rng = np.random.default_rng(4)
    forests = []
    for case, other in zip(features(Picture(pixels)), peer_features(luma(pixels)), strict=True):
        parts = trees(rng, len(case), 40, 61)
        used = np.maximum(parts["mbest"] - 1, 0)
        middle = (case[used] + other[used]) / 2
        away = np.maximum(0.2 * np.abs(middle), 2 * np.abs(case - other)[used]) + 1e-6
        parts["upper"] = middle + rng.choice([-1, 1], used.shape) * away
        forests.append(parts)
    return save_model(tmp_path / "NRQM_model.mat", forests, [0.3, 0.2, 0.5, 0.25])


def tensor(pixels: Pixels) -> Any:
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 255


def test_the_score(pixels: Pixels, path: Path) -> None:
    """Equal, once every feature is on the same side of every threshold."""
    peer = arch.NRQM(pretrained_model_path=str(path))
    grey = luma(pixels).astype(np.uint8)[..., None].repeat(3, axis=2)
    ours = measured(nrqm(read_model(path)), grey)
    assert float(peer(tensor(grey))) == pytest.approx(ours, rel=1e-6)  # pyiqa's sum is float32


@pytest.mark.shared
def test_the_perceptual_index(pixels: Pixels, shared: Path, path: Path) -> None:
    """The same formula, luma and border: pyiqa's halves, put together by our formula."""
    pristine = shared / "weights/niqe_modelparameters.mat"
    options = {"crop_border": 4, "color_space": "ycbcr"}
    distance = arch.NIQE(pretrained_model_path=str(pristine), **options)
    theirs = float(distance(tensor(pixels)))
    grey = challenge(Picture(pixels)).pixels
    assert measured(niqe(read_pristine(pristine)), grey) == pytest.approx(theirs, rel=1e-4)
    value = measured(pi(read_model(path), read_pristine(pristine)), pixels)
    quality = measured(nrqm(read_model(path)), grey)
    assert value == pytest.approx((10 - quality + theirs) / 2, rel=1e-4)
