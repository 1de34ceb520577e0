"""CNNIQA with the weights trained on LIVE: a learned metric that really runs here."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from convergebench import testcard
from convergebench.metric import Picture, StepView
from convergebench.metrics.learned import cnniqa_live
from convergebench.testing.metrics import check_metric
from convergebench.testing.pictures import colourful, noisy

torch: Any = pytest.importorskip("torch")
pytest.importorskip("pyiqa")
pytestmark = pytest.mark.filterwarnings("ignore")  # of foreign libraries, about their own future

Pixels = NDArray[np.uint8]


def views(*frames: Pixels) -> list[StepView]:
    return [StepView(Picture(frame)) for frame in frames]


def reference(frame: Pixels, state: Mapping[str, Any]) -> float:
    """The port's formula patch by patch, with SciPy and NumPy."""
    from scipy.signal import convolve2d, correlate

    weights = {name: value.numpy().astype(np.float64) for name, value in state.items()}
    luma = np.asarray(Image.fromarray(frame).convert("L")) / np.float32(255)
    box = np.full((3, 3), 1 / 9)
    scores = []
    for top in range(0, luma.shape[0] - 32, 32):
        for left in range(0, luma.shape[1] - 32, 32):
            patch = luma[top : top + 32, left : left + 32].astype(np.float64)
            mean = convolve2d(patch, box, boundary="symm", mode="same")
            square = convolve2d(patch**2, box, boundary="symm", mode="same")
            field = (patch - mean) / (np.sqrt(np.maximum(square - mean**2, 0)) + 1)
            maps = [correlate(field, kernel[0], mode="valid") for kernel in weights["conv1.weight"]]
            found = np.stack(maps) + weights["conv1.bias"][:, None, None]
            layer = np.concatenate([found.max((1, 2)), found.min((1, 2))])
            for full in ("fc1", "fc2"):
                layer = weights[f"{full}.weight"] @ layer + weights[f"{full}.bias"]
                layer = np.maximum(layer, 0)
            scores.append(float((weights["fc3.weight"] @ layer + weights["fc3.bias"])[0]))
    return float(np.mean(scores))


def test_cnniqa_on_live_follows_its_formula(shared: Path) -> None:
    metric = cnniqa_live(folder=shared / "weights")
    (file,) = cnniqa_live.files
    state = torch.load(shared / "weights" / file, map_location="cpu", weights_only=True)
    frames = [
        testcard.testcard()[1],
        colourful(70, 97),
        colourful(64, 64),
        noisy(colourful(33, 40), 9),
    ]
    # float32 through four layers, of scores up to 100.
    for frame, score in zip(frames, metric.score(views(*frames)), strict=True):
        assert score == pytest.approx(reference(frame, state), abs=2e-4)
    known = metric.spec.known
    assert known is not None
    assert known.value == pytest.approx(reference(frames[0], state), abs=5e-5)
    check_metric(metric)


def test_cnniqa_on_live_ranks_noise_jpeg_and_blur(shared: Path) -> None:
    metric = cnniqa_live(folder=shared / "weights")
    grain = np.random.Generator(np.random.PCG64(1)).standard_normal((512, 768, 3))
    for path in sorted((shared / "data" / "photos" / "kodak24").glob("*.png"))[:8]:
        photo = np.asarray(Image.open(path).convert("RGB"))[:512, :512]
        field = grain[: photo.shape[0], : photo.shape[1]]
        ladders = {
            "noise": [np.clip(photo + k * field, 0, 255).round() for k in (0, 10, 20, 40)],
            "blur": [photo, *(cv2.GaussianBlur(photo, (0, 0), k) for k in (0.7, 1.5, 3))],
            "jpeg": [_jpeg(photo, quality) for quality in (90, 50, 20, 10, 5)],
        }
        for what, ladder in ladders.items():
            scores = metric.score(views(*(frame.astype(np.uint8) for frame in ladder)))
            # Lower is better: it predicts how much was lost.
            numbers = [score for score in scores if isinstance(score, float)]
            assert len(numbers) == len(ladder)
            assert all(low < high for low, high in pairwise(numbers)), (path.name, what, numbers)


def _jpeg(photo: Pixels, quality: int) -> Pixels:
    buffer = io.BytesIO()
    Image.fromarray(photo).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer).convert("RGB"))
