"""A small part of `benchmarks/intervals.py`: intervals hold the truth, tests err as they may."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "intervals.py"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_intervals", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def room(studies: int) -> float:
    """Three standard errors of a share of 95 %."""
    return 3 * math.sqrt(0.95 * 0.05 / studies)


@pytest.mark.parametrize("name", ["normal", "skewed", "very skewed", "clustered"])
@pytest.mark.parametrize("sources", [20, 50])
def test_intervals_of_means_hold_the_truth(study: ModuleType, name: str, sources: int) -> None:
    found = study.means(name, sources, 1000)
    plain = found.pop("mean, plain percentiles", 0.0)
    for rate in found.values():
        assert 0.93 - room(1000) <= rate <= 0.97 + room(1000)
    assert plain <= found["mean"] + 0.01  # what is used must be worth it


@pytest.mark.parametrize("sources", [2, 3, 5])
def test_so_few_sources_have_intervals_that_hold_normal_values(
    study: ModuleType, sources: int
) -> None:
    found = study.few("normal", sources, 2000)
    assert found["mean"] == pytest.approx(0.95, abs=0.02)
    assert found["mean, plain percentiles"] < 0.93


@pytest.mark.parametrize("name", ["censored", "censored, clustered"])
def test_intervals_of_half_lives_hold_the_truth(study: ModuleType, name: str) -> None:
    for rate in study.half_lives(name, 20, 250).values():
        assert 0.93 - room(250) <= rate <= 0.97 + room(250)


@pytest.mark.parametrize("name", ["normal", "skewed"])
def test_paired_tests_err_as_they_may(study: ModuleType, name: str) -> None:
    found = study.tests(name, 20, 400)
    # Of 15 pairs of one study some share an editor, so a pair is less than a study of its own.
    assert found["error, one pair"] <= 0.05 + 0.015
    assert found["error, any of 15"] <= 0.05 + room(400)
    assert found["power at 0.04"] > found["power at 0.02"]
