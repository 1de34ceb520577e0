"""Which frame is compared with what, and where: pure bookkeeping, no pixels.

A score row is keyed by (chain, step, metric, version, against, where). `against` is

* `home`: what the cycle says this frame should equal;
* `previous`: the frame before, exactly flipped or turned if that was the edit, so that the number
  is the size of the step and not of the turn;
* `homecoming`: the homecoming before, or frame 0 for the first: how far the chain still moves from
  round to round. In a cycle of one edit that is the frame before, and its rows are `previous`;
* `none`: nothing, for no-reference metrics;
* the name of another source, in the rows of the suite's *floor* (chain `floor--SOURCE`).

`where` is `all`, `inside` / `outside` of the region that the edits in question may touch, or
`registered`: the area that home and frame have in common, after shift, zoom and crop are undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from convergebench.chain import Chain
from convergebench.cycle import Box, Cycle, Home
from convergebench.metric import MetricSpec
from convergebench.registration import VERSION
from convergebench.source import Source
from convergebench.suite import region_box

FLOOR_PREFIX: Final = "floor--"
PUBLISHED: Final = "published:"
"""How the version of somebody else's scores begins; their origin's name follows."""

HUMAN: Final = "human/"
"""How the names of people's answers begin; the version of such a row is STUDY:RATER."""

ANSWERS: Final = (HUMAN, "judge/")
"""How the names of answers begin, by people and by models as judges: rows that no metric made."""

GIVEN: Final = "given"
"""The source, and the other one, in rows of a floor that came with published scores."""

FLOOR_OTHERS: Final = 12
"""With how many other sources each is compared for the floor: all of them in a small suite."""

Against = Literal["home", "previous", "homecoming"]
AGAINST: Final[tuple[Against, ...]] = ("home", "previous", "homecoming")
"""What frames can be compared with; all of it by default."""

LATER_STEPS: Final = (5, 10, 20)
"""The steps that the trial of metrics compares with step 1: the paper's choice."""

BETWEEN_HOMECOMINGS: Final = ("psnr", "ssim", "lpips")
"""The metrics that compare a homecoming with the one before: each costs a comparison more."""


@dataclass(frozen=True)
class Comparison:
    """One thing to measure on one frame; `earlier` is the step of the frame it is compared with."""

    step: int
    against: str
    where: str = "all"
    home: Home | None = None
    boxes: tuple[Box, ...] = ()
    texts: tuple[str, str] | None = None
    earlier: int | None = None


@dataclass(frozen=True)
class Wanted:
    """Which comparisons are asked for (`AGAINST`), and whether with home after registration too."""

    against: tuple[str, ...] = AGAINST
    registered: bool = False


def row_version(spec: MetricSpec, where: str) -> str:
    """The version in a score row: the registration's is part of it where it moves the number."""
    return f"{spec.version}+registration{VERSION}" if where == "registered" else spec.version


def comparisons(
    chain: Chain, cycle: Cycle, source: Source, spec: MetricSpec, wanted: Wanted
) -> list[Comparison]:
    """Everything one metric has to measure on a chain as long as it is now."""
    if spec.kind == "no-reference":
        return [Comparison(step, "none") for step in chain.held]
    if spec.directional:
        return _directions(chain, cycle, source)
    against = wanted.against
    stepwise = "previous" in against or ("homecoming" in against and cycle.period == 1)
    homecoming = _homecoming(chain, cycle, spec) if "homecoming" in against else None
    found: list[Comparison] = []
    for step in chain.held:
        if step == 0:
            continue
        home = cycle.home(step)
        if "home" in against and home is not None and _measurable(home, chain, spec):
            first = (cycle.round_of(step) - 1) * cycle.period + 1
            boxes = _boxes(cycle, source, range(first, step + 1))
            found += _places(Comparison(step, "home", home=home, boxes=boxes), spec)
            if wanted.registered and spec.kind == "full-reference" and not spec.alignment:
                found.append(Comparison(step, "home", "registered", home))
        if stepwise and step - 1 in chain.held:
            boxes = _boxes(cycle, source, range(step, step + 1))
            found += _places(
                Comparison(
                    step, "previous", home=_exact(cycle, step), boxes=boxes, earlier=step - 1
                ),
                spec,
            )
        earlier = step - cycle.period
        if home is not None and step % cycle.period == homecoming and earlier in chain.held:
            # Homecomings of one cycle all lie alike; only frame 0 may have to be greyed first.
            view = Home(grey=home.grey and earlier == 0)
            found.append(Comparison(step, "homecoming", home=view, earlier=earlier))
    return found


def _homecoming(chain: Chain, cycle: Cycle, spec: MetricSpec) -> int | None:
    """Which step of a round comes home, modulo the period; None where nothing is to be compared.

    It is the last one with a home. Cycles of one edit have rows against the frame before instead.
    """
    if cycle.period == 1 or spec.name not in BETWEEN_HOMECOMINGS:
        return None
    for step in range(cycle.period, 0, -1):
        home = cycle.home(step)
        if home is not None and _measurable(home, chain, spec):
            return step % cycle.period
    return None


def _directions(chain: Chain, cycle: Cycle, source: Source) -> list[Comparison]:
    """The steps that leave home, each against the frame it was made from, with what it is told."""
    phrasing = chain.key.settings.phrasing
    return [
        Comparison(
            step,
            "previous",
            texts=cycle.edit_at(step).texts(source.description, phrasing, cycle.round_of(step)),
            earlier=step - 1,
        )
        for step in chain.held
        if step - 1 in chain.held and cycle.home(step) is None
    ]


def floor_pairs(sources: list[str]) -> list[tuple[str, str]]:
    """Ordered pairs of sources whose likeness is the suite's floor.

    Every source with every other, or with its next twelve (in the suite's order, wrapping round)
    in suites so large that all pairs would take longer than the run.
    """
    count = len(sources)
    return [
        (name, sources[(index + offset) % count])
        for index, name in enumerate(sources)
        for offset in range(1, min(count, FLOOR_OTHERS + 1))
    ]


def _measurable(home: Home, chain: Chain, spec: MetricSpec) -> bool:
    if (chain.truth if home.of == "truth" else chain.source) is None:
        return False
    return spec.kind == "semantic" or not home.content_only


def _exact(cycle: Cycle, step: int) -> Home:
    operation = cycle.edit_at(step).operation
    if operation and operation.kind == "flip":
        return Home(flip=operation.axis)
    if operation and operation.kind == "turn":
        return Home(quarters=operation.quarters or 0)
    return Home()


def _boxes(cycle: Cycle, source: Source, steps: range) -> tuple[Box, ...]:
    """Regions of these steps' edits; empty as soon as one of them may touch the whole picture."""
    boxes = [region_box(cycle.edit_at(step), source) for step in steps]
    return () if None in boxes else tuple(dict.fromkeys(box for box in boxes if box))


def _places(whole: Comparison, spec: MetricSpec) -> list[Comparison]:
    if not (whole.boxes and spec.regional):
        return [whole]
    return [
        replace(whole, where=where)
        # Regions first: metrics that keep a map for them then have it for the whole picture, too.
        for where in ("inside", "outside", "all")
    ]
