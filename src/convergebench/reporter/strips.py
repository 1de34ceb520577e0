"""Filmstrips: every frame of every chain of a source, editors under each other, steps aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from convergebench.chain import IMPORTED, Chain, FrameRef, Step, count_outcomes
from convergebench.cycle import NOT_RECORDED, Cycle, Home
from convergebench.reporter.palette import Ink
from convergebench.reporter.pictures import Picture
from convergebench.suite import Suite

AT_ONCE: Final = 800
"""Cells that a page has from the start; the rows after them are folded. A browser takes half a
millisecond for each."""


@dataclass(frozen=True)
class Cell:
    """One step of a chain as shown: its frame, or why there is none.

    `absent` is a picture that nobody brought here: scores may be known of it all the same.
    """

    step: int
    picture: Picture
    prompt: str = ""
    outcome: str = ""
    detail: str = ""
    home: str = ""
    size: str = ""
    absent: bool = False


@dataclass(frozen=True)
class Row:
    """One chain."""

    id: str
    ink: Ink
    variant: str
    cells: tuple[Cell, ...]
    rest: int
    rest_text: str
    bare: str = ""
    """What to say in place of all cells, where no picture of the chain is here."""
    folded: bool = False
    """Whether the page has only its two ends, and a script brings the rest when it is seen."""


@dataclass(frozen=True)
class Column:
    """One step of all chains, with the prompt if they share it."""

    step: int
    prompt: str


@dataclass(frozen=True)
class Strip:
    """All chains of one source through one cycle."""

    label: str
    cycle: Cycle
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def unworded(self) -> bool:
        """Whether nobody wrote down any of its prompts."""
        return all(edit.prompts == (NOT_RECORDED,) for edit in self.cycle.edit)


def strips_of(
    chains: Sequence[Chain],
    suite: Suite,
    pictures: Mapping[str, Picture],
    inks: Mapping[str, Ink],
    order: Sequence[str],
) -> list[Strip]:
    """The strips of one source's chains, cycles in the suite's order, editors in the given one."""
    place = {name: index for index, name in enumerate(order)}
    cycles = [cycle.name for cycle in suite.cycle]
    labels = sorted(
        {chain.key.cycle for chain in chains},
        key=lambda label: (cycles.index(suite.cycle_of(label).name), label),
    )
    found = []
    for label in labels:
        cycle = suite.cycle_of(label)
        mine = sorted(
            (chain for chain in chains if chain.key.cycle == label),
            key=lambda c: (place[c.key.editor], c.key.settings.label, c.key.repeat),
        )
        shown = [shown_steps(chain) for chain in mine]
        last = max((step for steps in shown for step in steps), default=0)
        variants = variants_of(mine)
        rows = [
            _row(chain, steps, cycle, last, variants[chain.key.id], pictures, inks)
            for chain, steps in zip(mine, shown, strict=True)
        ]
        columns = [Column(0, "source"), *(_column(step, shown) for step in range(1, last + 1))]
        if all(row.bare for row in rows):
            columns = []
        found.append(Strip(label, cycle, tuple(columns), tuple(rows)))
    return found


def fold(strips: Sequence[Strip], at_once: int = AT_ONCE) -> list[Strip]:
    """The same strips, rows folded once the page has so many cells."""
    found, cells = [], 0
    for strip in strips:
        rows = []
        for row in strip.rows:
            rows.append(replace(row, folded=cells >= at_once and len(row.cells) > 2))
            cells += 2 if rows[-1].folded else len(row.cells)
        found.append(replace(strip, rows=tuple(rows)))
    return found


def variants_of(chains: Sequence[Chain]) -> dict[str, str]:
    """By chain what tells it from its editor's others of the same source and cycle.

    Repeats count from 0, as in the files; where no editor has two, nobody needs their number.
    """
    repeated = {(c.key.source, c.key.cycle) for c in chains if c.key.repeat}
    found = {}
    for chain in chains:
        key = chain.key
        several = (key.source, key.cycle) in repeated
        words = [key.settings.label, f"repeat {key.repeat}" if several else ""]
        found[key.id] = ", ".join(word for word in words if word)
    return found


def shown_steps(chain: Chain) -> dict[int, Step]:
    """Per step the record to show: the edited one, else the latest."""
    found: dict[int, Step] = {}
    for step in chain.steps:
        before = found.get(step.step)
        if before is None or before.outcome != "edited":
            found[step.step] = step
    return found


def _column(number: int, shown: Sequence[Mapping[int, Step]]) -> Column:
    prompts = {steps[number].prompt for steps in shown if number in steps}
    return Column(number, prompts.pop() if len(prompts) == 1 else "prompts differ")


def _row(
    chain: Chain,
    steps: Mapping[int, Step],
    cycle: Cycle,
    last: int,
    variant: str,
    pictures: Mapping[str, Picture],
    inks: Mapping[str, Ink],
) -> Row:
    nothing = Picture(None, None)
    source = pictures.get(chain.source.sha256, nothing) if chain.source else nothing
    cells = [Cell(0, source, absent=chain.source is None)]
    for number in range(1, max(steps, default=0) + 1):
        step = steps.get(number)
        if step is None:
            cells.append(Cell(number, nothing, outcome="missing", detail="no record of this step"))
            continue
        home = cycle.home(number)
        if home is not None and home.of == "truth" and chain.truth is None:
            home = None
        edited = step.outcome in ("edited", "reported")
        cells.append(
            Cell(
                step=number,
                picture=pictures.get(step.frame.sha256, nothing) if step.frame else nothing,
                prompt=step.prompt,
                outcome="" if edited else step.outcome,
                detail="" if edited else step.detail,
                home=home_words(home) if edited and home else "",
                size=_size(step.frame, chain.source, home) if edited and step.frame else "",
                absent=step.outcome == "reported",
            )
        )
    rest = last + 1 - len(cells)
    return Row(
        id=chain.key.id,
        ink=inks[chain.key.editor],
        variant=variant,
        cells=tuple(cells),
        rest=rest,
        rest_text=_rest(chain),
        bare=_bare(chain),
    )


def _rest(chain: Chain) -> str:
    if chain.ended:
        return "ended here"
    return "no more was imported" if chain.editor_version == IMPORTED else "not run yet"


def _bare(chain: Chain) -> str:
    """What is there of a chain without pictures; empty where it has some."""
    if chain.held:
        return ""
    counts = count_outcomes([chain])
    reported = counts.pop("reported", 0)
    words = [f"scores only, up to step {max(chain.reached)}" if reported else ""]
    words += [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
    words += [step.detail for step in chain.final if chain.ended and step == chain.ending]
    return ", ".join(word for word in words if word) + "; the pictures are not here"


def home_words(home: Home) -> str:
    """What a frame should equal, in words."""
    words = ["the source" if home.of == "source" else "the ground truth"]
    if home.flip:
        words.append(f"flipped {'left to right' if home.flip == 'horizontal' else 'upside down'}")
    if home.quarters:
        words.append(f"turned clockwise by {('90°', '180°', '270°')[home.quarters - 1]}")
    if home.grey:
        words.append("in grey")
    if home.content_only:
        words.append("in content")
    return ", ".join(words)


def _size(frame: FrameRef, source: FrameRef | None, home: Home | None) -> str:
    """The returned size where it is not the source's (turned, if home is)."""
    if source is None:
        return ""
    expected = (source.width, source.height)
    if home is not None and home.quarters % 2:
        expected = (source.height, source.width)
    if (frame.width, frame.height) in (expected, (None, None)):
        return ""
    return f"{frame.width}×{frame.height}"
