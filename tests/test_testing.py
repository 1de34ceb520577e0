"""The contract checks find every promise that can be broken."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.errors import EditorRefused, EditorUnavailable
from convergebench.frame import encode
from convergebench.metric import MetricSpec, NoScore, StepView
from convergebench.testing import ContractBroken, check_editor, check_metric

GOOD_EDITOR = EditorSpec("probe", version="1", deterministic=True)
GOOD_METRIC = MetricSpec(
    "probe", "1", "full-reference", higher_is_better=False, identical=0.0, title="Mean difference"
)


@dataclass(frozen=True)
class Probe:
    """An editor made of one function."""

    answer: Callable[[EditRequest], Any] = lambda request: EditReply(request.inputs[-1].data)
    spec: EditorSpec = GOOD_EDITOR

    def edit(self, request: EditRequest) -> EditReply:
        reply: EditReply = self.answer(request)
        return reply


@dataclass(frozen=True)
class Gauge:
    """A metric made of one function of one view."""

    measure: Callable[[StepView], Any]
    spec: MetricSpec = GOOD_METRIC

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        return [self.measure(view) for view in views]


def difference(view: StepView) -> float:
    assert view.reference is not None
    apart = np.abs(view.frame.pixels.astype(float) - view.reference.pixels).mean(axis=2)
    return float(apart.mean() if view.mask is None else apart[view.mask].mean())


def masked(view: StepView) -> float | NoScore:
    if view.mask is not None and not view.mask.any():
        return NoScore("the region is empty")
    return difference(view)


def test_a_good_editor_passes() -> None:
    check_editor(Probe())


def test_a_good_metric_passes() -> None:
    check_metric(Gauge(difference))
    check_metric(Gauge(masked, replace(GOOD_METRIC, regional=True)))


def raising(error: Exception) -> Callable[[EditRequest], EditReply]:
    def answer(request: EditRequest) -> EditReply:
        raise error

    return answer


def counted() -> Callable[[EditRequest], EditReply]:
    ticks = itertools.count()
    return lambda request: EditReply(encode(np.full((8, 8, 3), next(ticks) % 256, np.uint8)))


def slow_and_shared() -> Callable[[EditRequest], EditReply]:
    """Fine on one thread; on several, one call overwrites what another is working on."""
    desk: dict[str, bytes] = {}

    def answer(request: EditRequest) -> EditReply:
        desk["work"] = request.inputs[-1].data
        time.sleep(0.01)
        return EditReply(desk["work"])

    return answer


def scribble(request: EditRequest) -> EditReply:
    pixels = request.inputs[0].pixels
    pixels.setflags(write=True)
    pixels[0, 0] ^= 255
    return EditReply(request.inputs[0].data)


def pixels_of_one_size_only(request: EditRequest) -> EditReply:
    return EditReply(encode(request.inputs[-1].pixels.reshape(64, 64, 3)))


@pytest.mark.parametrize(
    ("editor", "message"),
    [
        (Probe(spec=replace(GOOD_EDITOR, name="")), "spec.name is empty"),
        (Probe(spec=replace(GOOD_EDITOR, version="")), "spec.version is empty"),
        (Probe(spec=replace(GOOD_EDITOR, concurrency=0)), "spec.concurrency is 0"),
        (Probe(spec=replace(GOOD_EDITOR, price=-1.0)), "spec.price is -1.0"),
        (Probe(lambda request: request.inputs[0].data), "returned bytes"),
        (Probe(lambda request: EditReply("no")), "its data is str"),  # type: ignore[arg-type]
        (Probe(lambda request: EditReply(b"GIF89a")), "given a plain picture, it returned gif"),
        (Probe(raising(KeyError("x"))), "a plain picture, it raised KeyError"),
        (Probe(raising(EditorRefused("never"))), "none of 12 edits .*EditorRefused: never"),
        (Probe(counted()), "calls itself deterministic, but answered the same request"),
        (Probe(slow_and_shared()), "differently when called from 4 threads"),
        (Probe(scribble), "it changed its input"),
        (Probe(pixels_of_one_size_only), "given an odd size, it raised ValueError"),
        (
            Probe(lambda r: EditReply(r.inputs[0].data, parameters={"when": object()})),
            "cannot be written as JSON",
        ),
    ],
)
def test_editors_that_break_the_contract_are_told_how(editor: Probe, message: str) -> None:
    with pytest.raises(ContractBroken, match=message):
        check_editor(editor)


def test_an_editor_whose_spec_changes_is_found() -> None:
    class Shifty(Probe):
        ticks = itertools.count()

        def __getattribute__(self, name: str) -> Any:
            if name == "spec":
                return replace(GOOD_EDITOR, version=str(next(Shifty.ticks)))
            return super().__getattribute__(name)

    with pytest.raises(ContractBroken, match="spec changed"):
        check_editor(Shifty())


def test_chance_is_allowed_to_those_who_say_so() -> None:
    check_editor(Probe(counted(), replace(GOOD_EDITOR, deterministic=False)))


def test_refusing_some_edits_is_allowed() -> None:
    def picky(request: EditRequest) -> EditReply:
        if request.edit.operation is not None:
            raise EditorRefused("only copies")
        return EditReply(request.inputs[-1].data)

    check_editor(Probe(picky))


def test_unavailability_is_retried_with_the_attempt_counted_up() -> None:
    seen = set()

    def twice_away(request: EditRequest) -> EditReply:
        seen.add(request.attempt)
        if request.attempt < 3:
            raise EditorUnavailable("later", retry_after=0.001)
        return EditReply(request.inputs[-1].data)

    check_editor(Probe(twice_away))
    assert seen == {1, 2, 3}
    with pytest.raises(ContractBroken, match="none of 12 edits"):
        check_editor(Probe(raising(EditorUnavailable("closed for good"))))


def test_no_more_threads_than_the_editor_bears() -> None:
    inside, most = [0], [0]
    lock = threading.Lock()

    def watched(request: EditRequest) -> EditReply:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.005)
        with lock:
            inside[0] -= 1
        return EditReply(request.inputs[-1].data)

    check_editor(Probe(watched, replace(GOOD_EDITOR, concurrency=2)))
    assert most[0] == 2


def remembering() -> Callable[[StepView], float]:
    """Keeps what it found in a mask under a key that forgets the mask."""
    return lambda view: view.shared("difference", lambda: difference(view))


def drifting() -> Callable[[StepView], float]:
    ticks = itertools.count()
    return lambda view: difference(view) + 1e-9 * next(ticks)


@dataclass(frozen=True)
class Batched(Gauge):
    """Lets a view's value depend on its company, as a careless normalisation would."""

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        return [difference(v) + 0.01 * (len(views) == 1) for v in views]


REGIONAL = replace(GOOD_METRIC, regional=True)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Gauge(difference, replace(GOOD_METRIC, version="")), "spec.version is empty"),
        (Gauge(difference, replace(GOOD_METRIC, title="")), "spec.title is empty"),
        (Gauge(difference, replace(GOOD_METRIC, typical=(1, 0))), "expected low < high"),
        (Gauge(difference, replace(GOOD_METRIC, identical=1.0)), "score 0.0, its spec says 1.0"),
        (Gauge(difference, replace(GOOD_METRIC, higher_is_better=True)), "noise of 2 .* better"),
        (Gauge(lambda v: math.sin(difference(v))), "noise of 6 levels scores better"),
        (Gauge(drifting()), "scored differently the second time"),
        (Batched(difference), "alone, but 0.0 in a batch"),
        (Gauge(lambda v: math.nan), "a score is NaN"),
        (Gauge(lambda v: None), "a score is NoneType"),
        (Gauge(lambda v: 1 / difference(v)), "it raised ZeroDivisionError"),
        (Gauge(lambda v: math.inf if difference(v) else 0.0), "a score is inf"),
        (
            Gauge(lambda v: -math.inf, replace(GOOD_METRIC, identical=-math.inf)),
            "noisy pictures, a score is -inf",
        ),
        (Gauge(lambda v: NoScore("busy")), r"it has no score \(busy\)"),
        (
            Gauge(lambda v: difference(v) / (min(v.frame.size) - 1)),
            "of 1×1, it raised ZeroDivisionError",
        ),
        (
            Gauge(lambda v: difference(replace(v, mask=None)), REGIONAL),
            "damage far outside the mask changed",
        ),
        (
            Gauge(lambda v: difference(v) if v.mask is None else 0.0, REGIONAL),
            "damage inside the mask left the score at 0.0",
        ),
        (Gauge(remembering(), REGIONAL), "what it remembered of the whole picture"),
    ],
)
def test_metrics_that_break_the_contract_are_told_how(metric: Gauge, message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(ContractBroken, match=message):
        check_metric(metric)


def test_a_metric_that_loses_a_view_is_found() -> None:
    class Forgetful(Gauge):
        def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
            return list(super().score(views))[1:]

    with pytest.raises(ContractBroken, match="5 views got 4 scores"):
        check_metric(Forgetful(difference))


def test_a_metric_that_writes_into_its_pictures_is_found() -> None:
    def sloppy(view: StepView) -> float:
        found = difference(view)
        if found:
            view.frame.pixels[0, 0] = 0
        return found

    with pytest.raises(ContractBroken, match=r"it raised ValueError .*read-only"):
        check_metric(Gauge(sloppy))


def test_noise_may_be_exempted_with_a_reason_but_not_the_identical_picture() -> None:
    wavy = Gauge(lambda v: 1.5 - math.cos(difference(v)) - 0.5)
    with pytest.raises(ContractBroken, match="scores better"):
        check_metric(wavy)
    check_metric(wavy, exempt={"noise": "it is periodic"})
    turned = Gauge(lambda v: -difference(v))
    with pytest.raises(ContractBroken, match="than noise of 0"):
        check_metric(turned, exempt={"noise": "it is upside down"})


@pytest.mark.parametrize("exempt", [{"noise": " "}, {"sizes": "too lazy"}])
def test_an_exemption_needs_a_known_check_and_a_reason(exempt: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exempt takes"):
        check_metric(Gauge(difference), exempt=exempt)


def test_a_no_reference_metric_gets_no_reference() -> None:
    def spread(view: StepView) -> float:
        assert view.reference is None
        return float(view.frame.pixels.std())

    spec = replace(GOOD_METRIC, kind="no-reference", identical=None, higher_is_better=True)
    check_metric(Gauge(spread, spec))
    with pytest.raises(ContractBroken, match="AssertionError"):
        check_metric(Gauge(spread))


def test_a_metric_with_a_smallest_size_is_tried_at_it() -> None:
    def choosy(view: StepView) -> float | NoScore:
        small = min(view.frame.size) < 100
        return NoScore("100 pixels needed") if small else difference(view)

    check_metric(Gauge(choosy, replace(GOOD_METRIC, min_side=100)))
    with pytest.raises(ContractBroken, match="100 pixels needed"):
        check_metric(Gauge(choosy))
