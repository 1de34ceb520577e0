"""Editors and metrics for tests on a cluster, loaded through entry points like any plug-in.

CB_RAY_FOLDER is in the environment of every node: what was done is noted there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.errors import EditorRefused
from convergebench.frame import encode
from convergebench.metric import LiftedMetric, Metric, MetricSpec, StepView
from convergebench.resources import Resources
from tests.support.plugins import install

EDITORS = {"grainy": "tests.ray.plugins:grainy", "brittle": "tests.ray.plugins:brittle"}
METRICS = {
    "slow-mean": "tests.ray.plugins:slow_mean",
    "large-mean": "tests.ray.plugins:large_mean",
    "meeting": "tests.ray.plugins:meeting",
    "poisoned": "tests.ray.plugins:poisoned",
    "hungry": "tests.ray.plugins:hungry",
    "hoarding": "tests.ray.plugins:hoarding",
    "enormous": "tests.ray.plugins:enormous",
}


def install_plugin(place: Path) -> Path:
    return install(place, "cbray", {"editors": EDITORS, "metrics": METRICS})


def note(name: str) -> None:
    with open(Path(os.environ["CB_RAY_FOLDER"]) / f"{name}.txt", "a") as file:
        file.write(f"{os.getpid()}\n")


class Grainy:
    """Adds noise that depends on seed and step; refuses the 5th step of s1."""

    def __init__(self, name: str, deadly: bool) -> None:
        self._name = name
        self._deadly = deadly

    @property
    def spec(self) -> EditorSpec:
        return EditorSpec(
            name=self._name,
            version="1",
            price=0.0,
            concurrency=1,
            deterministic=True,
            abilities=Abilities(sessions=("stateless",), resolutions=()),
            resources=Resources(cpus=1),
        )

    def edit(self, request: EditRequest) -> EditReply:
        source = request.key.source if request.key else ""
        if self._deadly and source == "s0" and request.step == 2:
            note("deaths")
            os.kill(os.getpid(), signal.SIGKILL)
        if not self._deadly and source == "s1" and request.step == 5:
            raise EditorRefused("not a fifth time")
        if "CB_RAY_FOLDER" in os.environ:
            note("edits")
        time.sleep(0.15)
        rng = np.random.default_rng((request.seed or 0) + request.step)
        pixels = request.inputs[-1].pixels.astype(int)
        noisy = np.clip(pixels + rng.integers(-3, 4, pixels.shape), 0, 255).astype(np.uint8)
        return EditReply(encode(noisy), model="grain", parameters={"step": request.step}, cost=0.0)


def grainy() -> Grainy:
    """An editor for machines of ours."""
    return Grainy("grainy", deadly=False)


def brittle() -> Grainy:
    """The same, but it kills its process at the second step of s0."""
    return Grainy("brittle", deadly=True)


def _metric(
    name: str, measure: Callable[[StepView], float], resources: Resources | None = None
) -> Metric:
    spec = MetricSpec(
        name,
        "1",
        "no-reference",
        True,
        isolated=bool(resources),
        resources=resources or Resources(),
    )
    return LiftedMetric(spec, measure)


def _mean(view: StepView) -> float:
    return float(view.frame.pixels.mean())


def slow_mean() -> Metric:
    """The mean, after a while."""

    def measure(view: StepView) -> float:
        time.sleep(0.1)
        return _mean(view)

    return _metric("slow-mean", measure)


def meeting() -> Metric:
    """The mean, once three workers have come to measure it."""

    def measure(view: StepView) -> float:
        note("meeting")
        met, end = Path(os.environ["CB_RAY_FOLDER"]) / "meeting.txt", time.monotonic() + 90
        while len(set(met.read_text().split())) < 3:
            if time.monotonic() > end:
                raise TimeoutError("no third worker came")
            time.sleep(0.1)
        return _mean(view)

    return _metric("meeting", measure)


def large_mean() -> Metric:
    """An isolated metric that would like a GPU."""
    return _metric("large-mean", _mean, Resources(cpus=1, gpus=1, memory=1 << 28))


def is_poison(pixels: Any) -> bool:
    """Whether `poisoned` dies of these pixels: one frame in five."""
    return int(pixels.astype(int).sum()) % 5 == 0


def poisoned() -> Metric:
    """Kills its process over some frames."""

    def measure(view: StepView) -> float:
        if is_poison(view.frame.pixels):
            os.kill(os.getpid(), signal.SIGKILL)
        return _mean(view)

    return _metric("poisoned", measure)


def hungry() -> Metric:
    """Wants 3 GiB at once, which the system refuses."""

    def measure(view: StepView) -> float:
        return float(np.ones(3 << 27).sum())

    return _metric("hungry", measure, Resources(memory=1 << 28))


def hoarding() -> Metric:
    """Takes memory bit by bit until somebody kills it."""

    def measure(view: StepView) -> float:
        held = []
        for _ in range(80):  # 10 GiB; it is killed at 4
            held.append(np.ones(1 << 24))
            time.sleep(0.05)
        return float(len(held))

    return _metric("hoarding", measure)


def enormous() -> Metric:
    """Needs what no machine has."""
    return _metric("enormous", _mean, Resources(cpus=1000, memory=1 << 45))
