"""Metrics for tests, loaded through entry points like any plug-in."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from convergebench.errors import MetricUnavailable
from convergebench.metric import LiftedMetric, Metric, MetricSpec, NoScore, StepView


def _spec(name: str) -> MetricSpec:
    return MetricSpec(name, "1", "no-reference", True)


def _metric(name: str, measure: Callable[[StepView], float | NoScore]) -> LiftedMetric:
    return LiftedMetric(_spec(name), measure)


def apart() -> Metric:
    """An isolated metric that answers with the number of its process."""
    spec = replace(_spec("apart-metric"), isolated=True)
    return LiftedMetric(spec, lambda view: float(os.getpid()))


def greedy() -> Metric:
    """An isolated metric that wants 3 GiB."""

    def measure(view: StepView) -> float:
        return float(np.ones(3 << 27).sum())

    return LiftedMetric(replace(_spec("greedy-metric"), isolated=True), measure)


def told() -> Metric:
    """A directional metric: how many letters the text gains."""

    def measure(view: StepView) -> float | NoScore:
        if view.texts is None:
            return NoScore("no texts")
        before, after = view.texts
        return float(len(after) - len(before))

    spec = MetricSpec("told-metric", "1", "semantic", True, directional=True, typical=(0, 10))
    return LiftedMetric(spec, measure)


def counting() -> Metric:
    """The mean of the picture; notes every measurement in a file."""

    def measure(view: StepView) -> float:
        with open(os.environ["COUNTING_METRIC_LOG"], "a") as file:
            file.write("measured\n")
        return float(view.frame.pixels.mean())

    return _metric("counting-metric", measure)


def deadly() -> Metric:
    """Kills its process, as a crash in a native library would."""

    def measure(view: StepView) -> float:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    return _metric("deadly-metric", measure)


def is_poison(pixels: Any) -> bool:
    """Whether `poisoned-metric` dies of these pixels: one picture in seven."""
    return int(pixels.astype(int).sum()) % 7 == 0


def poisoned() -> Metric:
    """Kills its process over some pictures, after it has noted that."""

    def measure(view: StepView) -> float:
        if is_poison(view.frame.pixels):
            with open(os.environ["COUNTING_METRIC_LOG"], "a") as file:
                file.write("died\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return float(view.frame.pixels.mean())

    return _metric("poisoned-metric", measure)


def leaky() -> Metric:
    """Kills its process at its 13th picture, as one would whose memory runs out; takes its time.

    Eight take longer than the second after which rows are told. Notes the pixels of all that it
    has measured.
    """
    seen = [0]

    def measure(view: StepView) -> float:
        time.sleep(0.15)
        seen[0] += 1
        if seen[0] == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(os.environ["COUNTING_METRIC_LOG"], "a") as file:
            file.write(f"{hashlib.sha256(view.frame.pixels.tobytes()).hexdigest()}\n")
        return float(view.frame.pixels.mean())

    return _metric("leaky-metric", measure)


def patient() -> Metric:
    """Takes half a second for a picture."""

    def measure(view: StepView) -> float:
        time.sleep(0.5)
        return float(view.frame.pixels.mean())

    return _metric("patient-metric", measure)


class Together:
    """A metric that would like four pictures at once, and answers how many it was given."""

    spec = _spec("together-metric")
    together = 4

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """As many as there are."""
        return [float(len(views))] * len(views)


def in_fours() -> Metric:
    """One of those."""
    return Together()


def faulty() -> Metric:
    """Raises on dark pictures, answers NaN on bright ones, works otherwise."""

    def measure(view: StepView) -> float:
        mean = float(view.frame.pixels.mean())
        if mean < 100:
            raise ZeroDivisionError("too dark")
        return float("nan") if mean > 150 else mean

    return _metric("faulty-metric", measure)


def noisy() -> Metric:
    """Prints to stdout while it measures."""

    def measure(view: StepView) -> float:
        print("loading checkpoint …")
        sys.stdout.flush()
        return 1.0

    return _metric("noisy-metric", measure)


def elsewhere() -> Metric:
    """Lacks its weights on the machines of workers."""
    if Path(sys.argv[0]).name == "host.py":
        raise MetricUnavailable("its weights are not here.")
    return _metric("elsewhere-metric", lambda _view: 1.0)


def unavailable() -> Metric:
    """Lacks its weights."""
    raise MetricUnavailable("its weights are not here. Get them with: convergebench weights pull x")
