"""Which pictures a study shows: methods and images of runs, everything missing named at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from convergebench.chain import Chain, FrameRef
from convergebench.cycle import Cycle
from convergebench.errors import ConvergeBenchError, InputError, StoreError, UnknownName
from convergebench.ratings.study import Method
from convergebench.registry import reads_prompts
from convergebench.remote.address import require_directory
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.wording import in_order

MOST_TOLD: Final = 20
"""Problems that are listed one by one."""


@dataclass(frozen=True)
class Taken:
    """One method's frame of one image, and where it is."""

    store: RunStore
    run: str
    chain: Chain
    step: int
    frame: FrameRef


@dataclass
class Chosen:
    """What is to be shown: methods in order, images in order, a frame for each of both."""

    methods: list[Method]
    images: list[Source]
    spare: list[Source]
    frames: dict[tuple[str, str], Taken]
    cycles: dict[str, Cycle]
    runs: list[str]
    notes: list[str]


@dataclass
class _Pool:
    """All that the runs have."""

    methods: dict[str, Method] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    frames: dict[tuple[str, str], Taken] = field(default_factory=dict)
    cycles: dict[str, Cycle] = field(default_factory=dict)
    why: dict[tuple[str, str], str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def choose(
    runs: Sequence[str | os.PathLike[str]],
    *,
    methods: Sequence[str] | None = None,
    images: Sequence[str] | None = None,
    cycles: Sequence[str] | None = None,
    step: int | None = None,
    repeat: int = 0,
) -> tuple[Chosen, list[str]]:
    """What the runs have of the methods and images asked for, and what is wrong with it.

    A method is asked for by its label, its editor or its prompt; without any, all are taken but
    controls. Without a step, restorations are taken at step 1 and other chains at the last step
    that all of them have.

    Raises:
        StoreError: A run cannot be opened.
        UnknownName: No such method or image.
        InputError: The runs have no picture at all.
    """
    stores = [_opened(require_directory(run, "rate create")) for run in runs]
    pool = _Pool()
    for store in stores:
        _add(pool, store, cycles, step, repeat)
    if not pool.methods:
        which = f" of the cycles {', '.join(cycles)}" if cycles else ""
        raise InputError(f"{', '.join(str(s.path) for s in stores)}: no picture{which} to rate.")
    notes: list[str] = []
    labels = _picked_methods(pool, methods, notes)
    names = _picked_images(pool, images, labels)
    problems = list(pool.problems)
    for name in names:
        for label in labels:
            if (label, name) not in pool.frames:
                reason = pool.why.get((label, name), "there is no such chain")
                problems.append(f"{name}, {label}: no picture ({reason})")
    homes = {
        pool.cycles[label].home(taken.step)
        for (label, _), taken in pool.frames.items()
        if label in labels
    }
    if len(homes) > 1:
        problems.append(
            "the methods should not all come to the same picture; choose cycles that do (--cycle)"
        )
    whole = [name for name in pool.sources if all((label, name) in pool.frames for label in labels)]
    return Chosen(
        methods=[pool.methods[label] for label in labels],
        images=[pool.sources[name] for name in names],
        spare=[pool.sources[name] for name in whole if name not in names],
        frames=pool.frames,
        cycles=pool.cycles,
        runs=[store.name for store in stores],
        notes=notes,
    ), problems


def listed(problems: Sequence[str]) -> str:
    """Problems, a line each, and how many more there are."""
    lines = [f"  {problem}" for problem in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        lines.append(f"  … and {len(problems) - MOST_TOLD} more")
    return "\n".join(lines)


def _opened(path: Path) -> RunStore:
    if not RunStore.is_run(path) and path.is_dir():
        raise StoreError(
            f"{path} is not a run directory. Pictures in folders (input, gt, one per method) "
            f"become one with: convergebench import {path} --to RUN --layout restoration"
        )
    return RunStore.open(path)


def _add(
    pool: _Pool, store: RunStore, cycles: Sequence[str] | None, step: int | None, repeat: int
) -> None:
    """Add a run's pictures to the pool. The same picture from two runs is one."""
    suite, run = store.suite, store.name
    known = {name: cycle for cycle in suite.cycle for name in (cycle.name, cycle.title)}
    for name in cycles or ():
        if name not in known:
            raise UnknownName("cycle", name, known, f"Run: {run}.")
    chains = [c for c in store.chains() if c.key.repeat == repeat and c.source is not None]
    if cycles:
        asked = {known[name].name for name in cycles}
        chains = [c for c in chains if c.key.cycle.partition("@")[0] in asked]
    reached = [max(chain.held, default=0) for chain in chains]
    last = min((far for far in reached if far > 0), default=1)
    cycles_of: dict[str, set[str]] = {}
    for chain in chains:
        cycles_of.setdefault(chain.key.editor, set()).add(chain.key.cycle)
    walked = {chain.key.source for chain in chains}
    for source in suite.source:
        if source.name in walked:
            pool.sources.setdefault(source.name, source)
    for chain in chains:
        cycle = suite.cycle_of(chain.key.cycle)
        at = step or (1 if cycle.kind == "restore" else last)
        prompt = _prompt(chain, cycle, len(cycles_of[chain.key.editor]) == 1)
        words = (chain.key.editor, prompt, chain.key.settings.label)
        label = " · ".join(word for word in words if word)
        pool.methods.setdefault(
            label,
            Method(
                label=label,
                editor=chain.key.editor,
                cycle=chain.key.cycle,
                prompt=prompt,
            ),
        )
        pool.cycles.setdefault(label, cycle)
        name = chain.key.source
        frame = chain.held.get(at)
        if frame is None:
            told = [made for made in chain.final if made.step <= at]
            pool.why[label, name] = (
                f"step {told[-1].step} was {told[-1].outcome}" if told else f"has no step {at}"
            )
            continue
        taken = Taken(store, run, chain, at, frame)
        before = pool.frames.setdefault((label, name), taken)
        for other in (t for (_, image), t in pool.frames.items() if image == name):
            if _inputs(other.chain) != _inputs(chain):
                pool.problems.append(
                    f"{name}: {run} and {other.run} have different pictures under this name"
                )
                break
        if before.frame.sha256 != frame.sha256:
            pool.problems.append(
                f"{name}, {label}: {before.run} and {run} have different pictures of it"
            )


def _inputs(chain: Chain) -> tuple[str | None, str | None]:
    return (
        chain.source.sha256 if chain.source else None,
        chain.truth.sha256 if chain.truth else None,
    )


def _prompt(chain: Chain, cycle: Cycle, alone: bool) -> str:
    """The prompt's title; nothing where the editor reads none, as the restoration study has it.

    Nobody says who reads an imported cycle: an editor with no other has no prompt to be told by.
    """
    unread = cycle.kind == "restore" and (
        cycle.readers == "unprompted"
        or (
            cycle.readers is None
            and alone
            and (cycle.name == "restore" or not _reads(chain.key.editor))
        )
    )
    return "" if unread else cycle.title


def _reads(editor: str) -> bool:
    try:
        return reads_prompts(editor)
    except ConvergeBenchError:  # an import's name that is no name of an editor
        return True


def _picked_methods(pool: _Pool, asked: Sequence[str] | None, notes: list[str]) -> list[str]:
    if not asked:
        return _without_controls(pool, notes)
    picked: list[str] = []
    for name in asked:
        found = [
            label
            for label, method in sorted(pool.methods.items())
            if name in (label, method.editor, method.prompt)
        ]
        if not found:
            raise UnknownName("method", name, _words(pool.methods.values()))
        picked += [label for label in found if label not in picked]
    return picked


def _without_controls(pool: _Pool, notes: list[str]) -> list[str]:
    """All methods but the yardsticks that ride along in every run: people's time is dear."""
    from convergebench.analysis.leaderboard import controls_among

    controls = controls_among([method.editor for method in pool.methods.values()])
    left = sorted(label for label, m in pool.methods.items() if m.editor not in controls)
    if not left:
        return sorted(pool.methods)
    if len(left) < len(pool.methods):
        told = in_order(controls)
        notes.append(f"Controls are left out ({told}); --method names what is to be rated.")
    return left


def _words(methods: Iterable[Method]) -> set[str]:
    return {word for m in methods for word in (m.label, m.editor, m.prompt) if word}


def _picked_images(pool: _Pool, asked: Sequence[str] | None, labels: Sequence[str]) -> list[str]:
    for name in asked or ():
        if name not in pool.sources:
            raise UnknownName("image", name, pool.sources)
    if asked:
        return list(dict.fromkeys(asked))
    # An image that no chosen method was ever asked for is no part of the study.
    pairs = {*pool.frames, *pool.why}
    return [name for name in pool.sources if any((label, name) in pairs for label in labels)]
