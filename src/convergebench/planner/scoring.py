"""Planning the scoring of a run: what is to be measured, times what that takes on this machine."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from convergebench.chain import ChainKey
from convergebench.comparisons import LATER_STEPS, Wanted
from convergebench.editor import Editor
from convergebench.engines import open_engine, require_engine
from convergebench.engines.address import sought
from convergebench.errors import ConvergeBenchError
from convergebench.metric import MetricSpec
from convergebench.metrics.sets import DEFAULT_SET, chosen
from convergebench.planner.calibration import Timing, calibrate, expected, scratch_run, stretches
from convergebench.planner.future import Size, future_chains, future_sources
from convergebench.planner.hours import Cost, Estimate, Scoring, ratio
from convergebench.planner.job import Job
from convergebench.planner.sizes import Sizes
from convergebench.planner.workload import (
    Amount,
    Group,
    count,
    groups_of,
    known_scores,
    study_steps,
)
from convergebench.registry import lacking, metric_spec
from convergebench.units import MANY, trades_of

Observe = Callable[[float, float, str], None]
"""Told for how many seconds was measured, how many it will be as far as is known, and what."""


@dataclass(frozen=True)
class Asked:
    """How a run is to be scored.

    Attributes:
        engine: `local` or `ray`.
        metrics: Names of metrics and of sets; the set `fast` by default.
        sparse: Slow metrics, scored only at the steps that the trial compares.
        workers: How many work at once; None to find out.
        address: Of a Ray cluster that is asked for how many it has room where `workers` is None.
    """

    engine: str = "local"
    metrics: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    workers: int | None = None
    address: str | None = None


def plan_scoring(
    job: Job,
    keys: Sequence[ChainKey],
    editors: Mapping[str, Editor],
    sizes: Sizes,
    asked: Asked,
    *,
    retry_failed: bool = False,
    observe: Observe | None = None,
) -> Scoring:
    """Count what scoring has to make and measure what that takes. Writes to scratch space only.

    Raises:
        SettingsError: An address without Ray.
        UnknownName: There is no such engine, or no such metric.
        EngineError: The cluster cannot be asked, or has no room for a metric.
    """
    require_engine(asked.engine, asked.address)
    chains = future_chains(job, keys, editors, sizes, retry_failed=retry_failed)
    sources = future_sources(job, keys, sizes)
    study = study_steps(job.suite, chains)
    groups, known = list[Group](), 0
    broken: list[Cost] = []
    why: dict[str, str] = {}
    for words, steps in _passes(asked):
        names, registered = chosen(words)
        wanted = Wanted(registered=registered)
        specs: dict[str, MetricSpec] = {}
        for name in names:
            try:
                specs[name] = metric_spec(name)
            except ConvergeBenchError as error:
                broken.append(Cost(name, 0, 0, why=str(error)))
        there = known_scores(job.store, specs.values(), wanted)
        known += sum(len(rows) for rows in there.values())
        why |= {name: _unusable(spec) for name, spec in specs.items()}
        for unusable in (False, True):  # nothing is decoded for those that cannot be measured
            some = {name: spec for name, spec in specs.items() if bool(why[name]) is unusable}
            for group in groups_of(some, wanted):
                count(group, job.suite, chains, sources, there, steps=steps, study=study)
                groups.append(group)
    size = _usual(groups) or (job.size, job.size)
    able = {n: spec for group in groups for n, spec in group.specs.items() if not why[n]}
    workers, whose = _workers(asked, able)
    measured = _costs(job, groups, why, workers, sources, size, observe)
    longest = max((max(chain.held, default=0) for chain in chains), default=0)
    return Scoring(
        engine=asked.engine,
        costs=(*measured, *broken),
        size=size,
        elsewhere=_elsewhere(groups, size),
        steps="" if len(study) == longest + 1 else steps_text(study),
        whose=whose,
        known=known,
    )


def _passes(asked: Asked) -> list[tuple[tuple[str, ...], tuple[int, ...] | None]]:
    """The calls of `score`, as a study makes them: metrics, and at which steps."""
    found: list[tuple[tuple[str, ...], tuple[int, ...] | None]] = [
        (asked.metrics or (DEFAULT_SET,), None)
    ]
    if asked.sparse:
        found.append((asked.sparse, (0, 1, *LATER_STEPS)))
    return found


def _usual(groups: Sequence[Group]) -> Size | None:
    """The size that most of the pixels to be measured have."""
    pixels: Counter[Size] = Counter()
    for group in groups:
        for amount in group.scores.values():
            for size, number in amount.whole.items():
                pixels[size] += number * size[0] * size[1]
    return pixels.most_common(1)[0][0] if any(pixels.values()) else None


def _elsewhere(groups: Sequence[Group], usual: Size) -> float:
    counts: Counter[Size] = Counter()
    for group in groups:
        for amount in group.scores.values():
            counts.update(amount.whole)
    every = counts.total()
    return 1 - counts[usual] / every if every else 0.0


def _costs(
    job: Job,
    groups: Sequence[Group],
    why: Mapping[str, str],
    workers: Mapping[str, int],
    sources: Mapping[str, Size],
    size: Size,
    observe: Observe | None,
) -> list[Cost]:
    begun = time.monotonic()

    def tell(left: float, text: str) -> None:
        if observe is not None:
            taken = time.monotonic() - begun
            observe(taken, taken + left, text)

    rows, shared = list[Cost](), list[tuple[Group, Timing]]()
    with tempfile.TemporaryDirectory(prefix="convergebench-plan-") as scratch:
        busy = [group for group in groups if _left(group, why).specs]
        ahead = [expected(len(_left(group, why).specs)) for group in busy]
        if busy:
            tell(sum(ahead), f"drawing a source at {size[0]}×{size[1]}")
        origin = job.origin(_likest(sources, size))[0] if busy else None
        for number, group in enumerate(groups):
            timing = Timing()
            if group in busy and origin is not None:
                left, after = _left(group, why), sum(ahead[busy.index(group) + 1 :])
                place = Path(scratch) / str(number)
                store, source, copies = scratch_run(place, job.suite, job.size, origin, size)
                timing = calibrate(
                    store,
                    left,
                    stretches(store, left, source, copies),
                    source,
                    copies[0],
                    # Called before the next turn of this loop, so `after` is this turn's.
                    lambda seconds, text: tell(seconds + after, text),  # noqa: B023
                )
                shared.append((group, timing))
            rows += [_cost(group, name, timing, size, why[name]) for name in group.specs]
        if busy:
            tell(0.0, "")
    decoded = _beside("(decoding pictures)", [(g.decoded, t.decoding) for g, t in shared], size)
    moved = _beside("(registration)", [(g.registered, t.registering) for g, t in shared], size)
    most = max(workers.values(), default=1)
    rows = [replace(row, workers=workers.get(row.name, 1)) for row in rows]
    return [*rows, *(replace(row, workers=most) for row in (*decoded, *moved))]


def _left(group: Group, why: Mapping[str, str]) -> Group:
    """The group without the metrics that cannot be measured here, or have nothing left to do."""
    scores = group.scores
    specs = {n: s for n, s in group.specs.items() if not why[n] and scores[n].whole.total()}
    pieces = [piece for piece in group.pieces if piece.metrics & specs.keys()]
    return Group(specs, group.wanted, registered=group.registered, pieces=pieces)


def _unusable(spec: MetricSpec) -> str:
    """Why a metric cannot be measured now, or nothing. A served one is not asked: it may cost."""
    lacks = lacking(spec.needs)
    if lacks:
        return " ".join(lack.remedy for lack in lacks)
    if spec.needs.settings or spec.resources is None:
        return "it is served by a model elsewhere, which is not asked for a plan"
    return ""


def _pulled(spec: MetricSpec) -> tuple[str, ...]:
    """The sets of weights that a metric lacks, where it lacks nothing else and they can be had."""
    lacks = [(lack.what.removeprefix("weights "), lack.remedy) for lack in lacking(spec.needs)]
    mended = all(f"`convergebench weights pull {name}`" in remedy for name, remedy in lacks)
    return tuple(name for name, _ in lacks) if mended else ()


def _likest(sources: Mapping[str, Size], size: Size) -> str:
    """The source whose size is nearest: the picture that is measured."""
    return min(sources, key=lambda n: (sources[n] != size, abs(sources[n][0] - size[0]), n))


def _cost(group: Group, name: str, timing: Timing, size: Size, why: str) -> Cost:
    amount = group.scores[name]
    seconds = None if why else ratio(timing.metrics.get(name, ()))
    scores, study = amount.whole.total(), amount.study.total()
    if seconds is None:
        told = (why or timing.why.get(name) or "no sample of it was met") if scores else ""
        pull = _pulled(group.specs[name]) if why and told else ()
        return Cost(name, scores, study, why=told, pull=pull)
    return Cost(
        name,
        scores,
        study,
        seconds,
        hours=_hours(seconds, amount.whole, size),
        study_hours=_hours(seconds, amount.study, size),
        loading=timing.loading.get(name, 0.0),
        device=timing.device,
    )


def _beside(name: str, parts: Sequence[tuple[Amount, Sequence[float]]], size: Size) -> list[Cost]:
    """The row of what metrics share, or none where there is nothing of it."""
    whole, study = Counter[Size](), Counter[Size]()
    times: list[float] = []
    for amount, seconds in parts:
        whole.update(amount.whole)
        study.update(amount.study)
        times += seconds
    each = ratio([(seconds, 1) for seconds in times])
    if each is None or not whole:
        return []
    return [
        Cost(
            name,
            whole.total(),
            study.total(),
            each,
            hours=_hours(each, whole, size),
            study_hours=_hours(each, study, size),
            metric=False,
        )
    ]


def _hours(seconds: Estimate, amount: Mapping[Size, int], size: Size) -> Estimate:
    """Hours for all sizes: scaled by pixels where they are not what was measured."""
    pixels = sum(number * width * height for (width, height), number in amount.items())
    return seconds.times(pixels / (size[0] * size[1]) / 3600)


def _workers(asked: Asked, specs: Mapping[str, MetricSpec]) -> tuple[dict[str, int], str]:
    """How many measure each metric at once, as the engine would hire them; and why so many.

    Raises:
        EngineError: No cluster answers, or no machine of it has what a metric takes.
    """
    if asked.workers:
        return dict.fromkeys(specs, asked.workers), "as asked"
    where = sought(asked.address).text if asked.engine == "ray" else "local"
    cluster = None if where == "local" else where
    engine = open_engine("ray" if cluster else "local", asked.address if cluster else None)
    found = {}
    with contextlib.closing(engine):
        for trade, groups in trades_of("", specs, together=asked.engine == "ray"):
            hands = engine.hands(trade, MANY)
            found.update({name: hands for group in groups for name in group})
    return found, f"as {cluster or 'this machine'} has room"


def steps_text(steps: Sequence[int]) -> str:
    """Steps as `score --steps` takes them: numbers, and ranges of three or more."""
    found, left = list[str](), list(steps)
    while left:
        run = left[:2]
        stride = run[1] - run[0] if len(run) == 2 else 0
        while stride and len(run) < len(left) and left[len(run)] - run[-1] == stride:
            run.append(left[len(run)])
        if len(run) < 3:
            found.append(str(left.pop(0)))
            continue
        found.append(f"{run[0]}-{run[-1]}" + (f":{stride}" if stride > 1 else ""))
        left = left[len(run) :]
    return ",".join(found)
