"""Whether the pairs of an imported restoration fit, told in one list before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convergebench.chain import FrameRef
from convergebench.errors import ImportProblem
from convergebench.importer.assembly import Line
from convergebench.importer.found import Finds, Place
from convergebench.planner.preflight import listed, misfit
from convergebench.wording import counted


def unfit(lines: Sequence[Line], finds: Finds, read: Mapping[Place, FrameRef]) -> list[str]:
    """What is wrong with the inputs and truths of chains that restore, a sentence each.

    Outputs that are no picture are no fault of the import: they are failures of their method.

    Args:
        lines: The chains to be.
        finds: What the layout said about cycles.
        read: The pictures and truths that could be read.
    """
    pairs = dict.fromkeys(
        (line.source, line.truth)
        for line in lines
        if (told := finds.cycles.get(line.track.cycle)) and told.kind == "restore"
    )
    bad = dict.fromkeys(p for pair in pairs for p in pair if p is not None and p not in read)
    problems = [f"{place.name} is no readable picture" for place in bad]
    for source, truth in pairs:
        if source in read and truth in read and source and truth:
            one, other = (_size(read[place]) for place in (source, truth))
            if wrong := misfit(f"{source.name} and {truth.name}", one, other):
                problems.append(wrong)
    return problems


def refuse(problems: Sequence[str]) -> None:
    """Raise ImportProblem if there are any."""
    if problems:
        message = f"{counted(len(problems), 'problem')} with these pairs, nothing was imported:"
        raise ImportProblem(listed(message, problems))


def _size(ref: FrameRef) -> tuple[int, int] | None:
    return (ref.width, ref.height) if ref.width and ref.height else None
