"""Every installed metric keeps the contract that plug-ins must keep."""

from __future__ import annotations

import pytest

from convergebench.registry import names, open_metric
from convergebench.testing import check_metric


@pytest.mark.parametrize("name", names("metrics"))
def test_metrics_keep_the_contract(name: str) -> None:
    check_metric(open_metric(name))


def test_the_metrics_in_the_box_are_among_them() -> None:
    assert {"psnr", "ssim", "ssim-rgb", "ssim-uniform"} <= set(names("metrics"))
