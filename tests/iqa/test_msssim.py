"""MS-SSIM beside pyiqa's, on its own test set."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.frame import Frame
from convergebench.metrics.msssim import ms_ssim
from tests.metrics.pairs import measure

pyiqa: Any = pytest.importorskip("pyiqa")
torch: Any = pytest.importorskip("torch")


def peer(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    def tensor(pixels: NDArray[np.uint8]) -> Any:
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 255

    return float(pyiqa.create_metric("ms_ssim", device="cpu")(tensor(other), tensor(one)))


def test_the_test_card() -> None:
    known = ms_ssim().spec.known
    assert known is not None
    assert peer(*testcard.testcard()) == pytest.approx(known.value, abs=1e-6)


@pytest.mark.shared
def test_the_official_set(shared: Path) -> None:
    """Only windows with a negative contrast term, which pyiqa sets to 0, make a difference."""
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    for name, official in zip(table["Method"], table["ms_ssim"], strict=True):
        one, other = (
            Frame((folder / side / name).read_bytes()).pixels for side in ("ref_dir", "dist_dir")
        )
        ours, theirs = measure(ms_ssim, one, other), peer(one, other)
        assert ours == pytest.approx(theirs, abs=7e-4), name
        assert ours <= theirs + 1e-6
        assert ours == pytest.approx(float(official), rel=0.01)
