"""ILNIQE beside pyiqa's, with the same template.

pyiqa does not round the resized picture to 8 bits, so it is also given ours, which is. What then
remains: it stops fitting Weibull distributions at a step of 0.01, and adds 10⁻⁸ to squared
magnitudes, where the authors add 2⁻⁵² to magnitudes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench import testcard
from convergebench.frame import Frame
from convergebench.metrics.ilniqe import ilniqe, normalised, read_template
from tests.metrics.naturalness import Pixels, measured

torch: Any = pytest.importorskip("torch")
pytest.importorskip("pyiqa")

pytestmark = pytest.mark.shared


def peer(path: Path, pixels: Pixels) -> float:
    """Of the picture as ours resizes it."""
    from pyiqa.archs.niqe_arch import ILNIQE
    from pyiqa.archs.niqe_arch import ilniqe as scored

    net = ILNIQE(pretrained_model_path=path)
    parts = (net.mu_pris_param, net.cov_pris_param, net.principleVectors, net.meanOfSampleData)
    samples = torch.from_numpy(normalised(pixels).astype(np.float64)).permute(2, 0, 1)[None]
    with torch.no_grad():
        return float(scored(samples, *(part[None] for part in parts), resize=False))


@pytest.fixture
def path(shared: Path) -> Path:
    return shared / "weights/ILNIQE_templateModel.mat"


def test_the_test_card(path: Path) -> None:
    metric = ilniqe(read_template(path))
    frame = testcard.testcard()[1]
    value = peer(path, frame)
    assert measured(metric, frame) == pytest.approx(value, rel=5e-5)
    known = metric.spec.known
    assert known is not None
    assert value == pytest.approx(known.value, abs=known.tolerance)


@pytest.mark.parametrize("name", ["I04"])
def test_official_pictures_without_flat_parts(name: str, shared: Path, path: Path) -> None:
    pixels = Frame((shared / f"data/iqa/official/dist_dir/{name}.bmp").read_bytes()).pixels
    value = measured(ilniqe(read_template(path)), pixels)
    assert value == pytest.approx(peer(path, pixels), rel=2e-4)
