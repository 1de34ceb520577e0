"""Every installed metric keeps the contract that plug-ins must keep."""

from __future__ import annotations

import pytest

from convergebench.metrics.sets import ALIGNMENT
from convergebench.registry import metric_spec, names, open_metric
from convergebench.testing import check_metric

PULLED = ("brisque", "effnet-lite0", "lpips", "lpips-vgg", "nima-mobilenet", "niqe")
"""Metrics whose weights a package index carries."""
ELSEWHERE = {
    "clip": "tests/metrics/test_clip.py, with random weights: none can be reached",
    "clip-b32": "tests/metrics/test_clip.py, the same",
    "clip-direction": "tests/metrics/test_clip.py, the same",
    "ilniqe": "tests/metrics/test_ilniqe.py, with the template beside the repository",
    "nrqm": "tests/metrics/test_nrqm.py, with random forests: none can be reached",
    "pi": "tests/metrics/test_nrqm.py, the same",
    "rali": "tests/metrics/test_rali.py, with random weights: none can be reached",
}
OURS = names("metrics")
READY = [
    name
    for name in OURS
    if not (metric_spec(name).needs.weights or metric_spec(name).needs.settings)
]
ALIGNED = {"noise": "noise does not move a picture"}


@pytest.mark.parametrize("name", READY)
def test_metrics_keep_the_contract(name: str) -> None:
    check_metric(open_metric(name), exempt=ALIGNED if name in ALIGNMENT else None)


@pytest.mark.weights
@pytest.mark.parametrize("name", PULLED)
def test_metrics_with_weights_keep_the_contract(name: str) -> None:
    check_metric(open_metric(name))


def test_no_metric_is_forgotten() -> None:
    learned = {name for name in OURS if metric_spec(name).isolated}  # tests/iqa/test_learned.py
    served = {name for name in OURS if metric_spec(name).needs.settings}  # metrics/test_served.py
    assert set(OURS) == {*READY, *PULLED, *ELSEWHERE, *learned, *served}
