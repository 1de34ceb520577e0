"""RALI beside its formula in torch, from a checkpoint folder like the authors'.

joblib's form of `pca.pkl` is tested in tests/metrics, with a file that joblib wrote.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench import testcard
from convergebench.metric import Picture, StepView
from convergebench.metrics.rali import RALI, Rali, read
from tests.iqa.test_clip import SMALL, embedded, random_model

torch: Any = pytest.importorskip("torch")
SIZE, KEPT, COUNT = 48, 20, 30


class Scorer(torch.nn.Module):  # type: ignore[misc]
    """PCA and prototypes, with the names that the checkpoint has."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.pca_scale = torch.nn.Parameter(torch.rand(SIZE) + 0.5)
        self.pca_components = torch.nn.Parameter(torch.randn(KEPT, SIZE))
        self.prototypes = torch.nn.Parameter(torch.randn(COUNT, KEPT))
        self.proto_scores = torch.nn.Parameter(torch.linspace(1, 5, COUNT))
        self.logit_scale = torch.nn.Parameter(torch.tensor(1 / 0.07))
        self.mean = torch.randn(SIZE)

    def forward(self, features: Any) -> Any:
        projected = (features - self.mean) / self.pca_scale.abs() @ self.pca_components.T
        cosines = torch.nn.functional.cosine_similarity(
            projected[:, None], self.prototypes[None], dim=-1
        )
        return torch.softmax(cosines * self.logit_scale, -1) @ self.proto_scores


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.clip = random_model(SMALL)
        self.scorer = Scorer()


def test_a_checkpoint_folder(tmp_path: Path) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    model = Model().eval()
    torch.save({"state_dict": model.state_dict(), "epoch": 3}, tmp_path / "ckpt.pt")
    (tmp_path / "pca.pkl").write_bytes(pickle.dumps({"mean_": model.scorer.mean.numpy()}))
    processor = CLIPImageProcessorPil(
        size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
    )
    model.clip.save_pretrained(tmp_path / "best")
    processor.save_pretrained(tmp_path / "best")

    pictures = list(testcard.testcard())
    with torch.no_grad():
        inputs = processor(images=pictures, return_tensors="pt")
        features = embedded(model.clip.get_image_features(**inputs))
        wanted = model.scorer(torch.from_numpy(features)).numpy()
    metric = Rali(RALI, lambda: read(tmp_path / "ckpt.pt", tmp_path / "pca.pkl"))
    found = metric.score([StepView(Picture(pixels)) for pixels in pictures])
    np.testing.assert_allclose(np.array(found, np.float64), wanted, atol=1e-4)
    assert wanted.min() > 1
    assert wanted.max() < 5
