"""The page of self-evaluation: who noticed when, step by step, and in which words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from convergebench.reporter.folder import templates, write_changed, write_static
from convergebench.selfeval import Section, sections
from convergebench.selfeval.result import By, Delay, Followed, SelfEvaluation
from convergebench.store import RunStore

PAGE: Final = "self-evaluation.html"
QUOTED: Final = 3
"""Chains of each editor whose first summary that says yes is quoted."""


@dataclass(frozen=True)
class Line:
    """One chain in the map of steps: a word per step, and where it first says yes."""

    chain: Followed
    cells: tuple[str, ...]
    first: int | None


@dataclass(frozen=True)
class Quote:
    """A summary, in its sections."""

    chain: Followed
    step: int
    words: tuple[str, ...]
    told: tuple[Section, ...]


@dataclass(frozen=True)
class Group:
    """One editor's chains."""

    name: str
    steps: int
    whole: tuple[Delay, ...]
    delays: tuple[Delay, ...]
    lines: tuple[Line, ...]
    quotes: tuple[Quote, ...]


def write_self_evaluation(found: SelfEvaluation, folder: Path, run: str | os.PathLike[str]) -> Path:
    """Write the page into a folder of pages, or into one of its own; returns its path.

    Args:
        found: What was found.
        folder: Where it goes; may hold the run's report.
        run: The run directory, for the summaries themselves.
    """
    texts = {
        (chain.key.id, step.step): step.call.reasoning or ""
        for chain in RunStore.open(run).chains()
        for step in chain.final
    }
    by: By = "judge" if found.judge else "rule"
    names = list(dict.fromkeys((c.editor, c.variant) for c in found.chains))
    groups = [_group(found, name, by, texts) for name in names]
    write_static(folder)
    page = (
        templates()
        .get_template("self-evaluation.html")
        .render(found=found, groups=groups, by=by, report=(folder / "report.json").is_file())
    )
    write_changed(folder / PAGE, page.encode())
    return folder / PAGE


def _group(
    found: SelfEvaluation, name: tuple[str, str], by: By, texts: dict[tuple[str, int], str]
) -> Group:
    chains = [c for c in found.chains if (c.editor, c.variant) == name]
    delays = [d for d in found.delays if (d.editor, d.variant) == name]
    steps = max((chain.steps for chain in chains), default=0)
    return Group(
        name=" · ".join(word for word in name if word),
        steps=steps,
        whole=tuple(d for d in delays if not d.source),
        delays=tuple(d for d in delays if d.source),
        lines=tuple(_line(chain, by, steps) for chain in chains),
        quotes=tuple(_quotes(chains, by, texts)),
    )


def _line(chain: Followed, by: By, steps: int) -> Line:
    said: dict[int, str] = {}
    for one in chain.read:
        answer = one.rule if by == "rule" else one.judge
        said[one.step] = "unasked" if answer is None else "yes" if answer else "no"
    told = chain.delay(by)
    cells = tuple(said.get(step, "silent") for step in range(1, steps + 1))
    return Line(chain, cells, told[0] if told and told[1] else None)


def _quotes(chains: Sequence[Followed], by: By, texts: dict[tuple[str, int], str]) -> list[Quote]:
    """The first summaries that say yes, of chains of different sources where there are some."""
    found: list[Quote] = []
    for chain in sorted(chains, key=lambda c: (c.repeat, c.source)):
        told = chain.delay(by)
        if told and told[1] and len(found) < QUOTED:
            read = next(one for one in chain.read if one.step == told[0])
            text = texts.get((chain.chain, told[0]), "")
            found.append(Quote(chain, told[0], read.words, sections(text)))
    return found
