"""Chains as they will be when a run is complete, so that what is to be scored can be counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from convergebench.chain import Chain, ChainKey, FrameRef, Step
from convergebench.editor import Editor
from convergebench.errors import SuiteError
from convergebench.planner.job import Job
from convergebench.planner.sizes import Sizes, asked_of

Size = tuple[int, int]

PLANNED: Final = "planned"
"""What stands for the hash of a frame that is yet to be made."""


def planned_frame(size: Size) -> FrameRef:
    """A frame that is yet to be made."""
    return FrameRef(sha256=PLANNED, format="png", bytes=0, width=size[0], height=size[1])


def future_chains(
    job: Job,
    keys: Sequence[ChainKey],
    editors: Mapping[str, Editor],
    sizes: Sizes,
    *,
    retry_failed: bool = False,
) -> list[Chain]:
    """Every chain that will be there: those planned, at their full length, and all others as is.

    Chains that have ended stay as they are, except those in `failed` with `retry_failed`.
    """
    found = dict(job.chains)
    begun = {name: _origin(job, name, sizes) for name in dict.fromkeys(k.source for k in keys)}
    for key in keys:
        chain = found.get(key) or Chain(key, *begun[key.source])
        last = chain.last
        again = retry_failed and last is not None and last.outcome == "failed"
        if not chain.ended or again:
            found[key] = _walked(job, chain, editors[key.editor], sizes)
    return sorted(found.values(), key=lambda chain: (chain.key.source, chain.key.id))


def future_sources(job: Job, keys: Sequence[ChainKey], sizes: Sizes) -> dict[str, Size]:
    """The sources whose pictures will be in the run, with their sizes: the floor needs them.

    A run keeps all sources of its suite that are to be had, unless it only restores.
    """
    stored = (job.store.read_json("sources.json") or {}) if job.store else {}
    pictured = {name: FrameRef.model_validate(pair[0]) for name, pair in stored.items() if pair[0]}
    found = {name: (ref.width or 0, ref.height or 0) for name, ref in pictured.items()}
    found |= {key.source: sizes.pixels(key.source) for key in keys if key.source not in found}
    if {job.suite.cycle_of(key.cycle).kind for key in keys} - {"restore"}:
        for source in job.suite.source:
            if source.name in found or source.elsewhere is not None:
                continue
            if source.draw is not None:
                found[source.name] = source.drawn_size(job.size)
                continue
            try:
                facts = job.suite.frame(source, job.size).facts
            except SuiteError:  # its file is not here, so the run goes without
                continue
            found[source.name] = (facts.width, facts.height)
    return dict(sorted(found.items()))


def _origin(job: Job, name: str, sizes: Sizes) -> tuple[FrameRef, FrameRef | None]:
    """A source and its truth, which may be larger than the source where methods enlarge."""
    source = planned_frame(sizes.pixels(name))
    wanted = job.suite.source_named(name)
    if not wanted.has_truth:
        return source, None
    if wanted.draw is not None:
        return source, source
    truth = job.origin(name)[1]
    return source, FrameRef.of(truth) if truth else None


def _walked(job: Job, chain: Chain, editor: Editor, sizes: Sizes) -> Chain:
    key, cycle = chain.key, job.suite.cycle_of(chain.key.cycle)
    own, sizing = sizes.pixels(key.source), editor.spec.sizing
    steps = []
    for step in range(chain.length + 1, job.spec.steps_of(cycle) + 1):
        size = sizing(asked_of(key, cycle, step, own)) if sizing else own
        steps.append(
            Step(step=step, outcome="edited", prompt="", inputs=(), frame=planned_frame(size))
        )
    return replace(chain, steps=(*chain.steps, *steps))
