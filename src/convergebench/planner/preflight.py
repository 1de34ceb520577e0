"""What is wrong with the pairs and pictures of a restoration, in one list, before anything runs.

A restoration study is put together from folders of many hands. A source or truth that cannot be
read, a pair whose sizes do not fit and a method that lacks a picture are all named at once; nothing
is called and nothing is written until they are mended. Sources and truths are decoded once, as for
every run; of a method's pictures only the headers are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from convergebench.chain import ChainKey
from convergebench.editor import Editor
from convergebench.errors import InputError, SuiteError
from convergebench.frame import Frame
from convergebench.planner.job import Job
from convergebench.wording import counted

SHOWN: Final = 20
"""How many problems are named; of the others only the number is told."""

Pair = tuple[Frame, Frame | None]
Size = tuple[int, int]


@runtime_checkable
class Foresees(Protocol):
    """An editor that can tell, without being called, that a step will fail."""

    def foreseen(self, key: ChainKey, step: int) -> str:
        """Why the step will fail, or nothing."""
        ...


def gathered(
    job: Job,
    keys: Sequence[ChainKey],
    editors: Mapping[str, Editor],
    load: Callable[[str], Pair],
    *,
    allow_missing: bool = False,
) -> dict[str, Pair]:
    """The sources and truths of a run's chains; of restorations, all of them looked at first.

    Args:
        job: The run.
        keys: Its chains.
        editors: Its editors by name.
        load: Gives a source and its truth.
        allow_missing: Whether pictures that a method lacks are failures of its chains.

    Raises:
        InputError: A restoration has pictures that cannot be used; they are listed.
        SuiteError: So has another run; the first is named.
    """
    names = list(dict.fromkeys(key.source for key in keys))
    restored = {key.source for key in keys if job.suite.cycle_of(key.cycle).kind == "restore"}
    pairs: dict[str, Pair] = {}
    problems = []
    for name in names:
        if name not in restored:
            pairs[name] = load(name)
            continue
        try:
            pairs[name] = load(name)
        except SuiteError as error:
            problems += _faults(job, name) or [str(error)]
            continue
        told = misfit(f"source {name!r}", *(_size(frame) for frame in pairs[name]))
        problems += [told] if told else []
    lacking = [] if allow_missing else foreseen(job, keys, editors)
    if problems or lacking:
        count = len(problems) + len(lacking)
        message = f"{counted(count, 'problem')} with the pictures of this run, nothing was done:"
        if lacking and not problems:
            message = (
                f"{counted(len(lacking), 'picture')} of its methods cannot be used; with "
                "--allow-missing they are counted as failures:"
            )
        raise InputError(listed(message, [*problems, *lacking]))
    return pairs


def listed(message: str, problems: Sequence[str]) -> str:
    """A message with a list of problems below it, a line each, of which many are only counted."""
    lines = [f"  {' '.join(text.split())}" for text in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"  … and {len(problems) - SHOWN} more")
    return "\n".join([message, *lines])


def misfit(what: str, source: Size | None, truth: Size | None) -> str:
    """What is wrong with the sizes of a pair, or nothing.

    They are the same; or the truth is a whole number of times as large, for methods that enlarge.
    """
    if source is None or truth is None or source == truth:
        return ""
    factor = truth[0] // source[0]
    if factor > 1 and truth == (source[0] * factor, source[1] * factor):
        return ""
    return (
        f"{what}: its picture has {source[0]}×{source[1]} pixels and its truth "
        f"{truth[0]}×{truth[1]}; expected one size, or a truth that is 2, 3, 4, … times as large"
    )


def _faults(job: Job, name: str) -> list[str]:
    """What is wrong with a source and with its truth: loading them tells the first."""
    found = []
    source = job.suite.source_named(name)
    for part in (job.suite.frame, job.suite.truth):
        try:
            part(source, job.size)
        except SuiteError as error:
            found.append(str(error))
    return found


def _size(frame: Frame | None) -> Size | None:
    if frame is None:
        return None
    # Not the frame's own: what is decoded here must not stay in memory for all sources at once.
    facts = Frame(frame.data, digest=frame.digest).facts
    return facts.width, facts.height


def foreseen(job: Job, keys: Sequence[ChainKey], editors: Mapping[str, Editor]) -> list[str]:
    """The pictures that a restoration's methods lack or that cannot be read, a sentence each."""
    found = []
    chains = job.chains
    for key in keys:
        editor, cycle = editors[key.editor], job.suite.cycle_of(key.cycle)
        if cycle.kind != "restore" or not isinstance(editor, Foresees):
            continue
        chain = chains.get(key)
        if chain is not None and chain.ended:
            continue
        for step in range(chain.length + 1 if chain else 1, job.spec.steps_of(cycle) + 1):
            if told := editor.foreseen(key, step):
                found.append(f"{key.editor}, source {key.source!r}: {told}")
    return found
