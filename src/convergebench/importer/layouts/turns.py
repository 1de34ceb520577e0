"""Walks of several turns where every picture has instructions of its own.

MagicBrush and ImgEdit share this: a session is one source, edited in two or three turns, each turn
told in an annotation file. No cycle repeats, so a session's cycle is `free`, has one edit per turn
and records no prompt: the prompts are with the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from convergebench.chain import Call
from convergebench.cycle import CYCLE_EDITS, CycleKind
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    FoundSource,
    Look,
    Track,
    Wishes,
)


@dataclass(frozen=True)
class Turn:
    """What an annotation says about one turn.

    Attributes:
        prompt: The instruction.
        parameters: What else is recorded with the call.
        caveats: What a reader must know of the call.
    """

    prompt: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()


@dataclass
class Session:
    """One source walked through its turns by one editor.

    Attributes:
        source: Its name.
        editor: Who made the pictures.
        task: What sort of session it is, where that is known; begins the cycle's name.
        pictures: File names by step; 0 is the source. Several of a step are for `assembly`.
        turns: What the annotation says, by step.
        told: How many turns the annotation has; 0 without one.
        description: What the source shows, in words.
    """

    source: str
    editor: str
    task: str = ""
    pictures: dict[int, list[str]] = field(default_factory=dict)
    turns: dict[int, Turn] = field(default_factory=dict)
    told: int = 0
    description: str = ""

    @property
    def length(self) -> int:
        """How many turns it has, as annotated or as found."""
        return max(self.told, max(self.pictures, default=0), 1)

    def add(self, step: int, name: str) -> None:
        """One more picture of a step."""
        self.pictures.setdefault(step, []).append(name)


def gather(look: Look, sessions: Sequence[Session], wishes: Wishes) -> Finds:
    """The frames, cycles and expectations of sessions that have pictures."""
    finds = Finds()
    names = _cycle_names(sessions, wishes)
    mismatched = set()
    for session in sessions:
        cycle = names[session.task, session.length]
        track = Track(session.source, cycle, session.editor)
        if cycle not in finds.cycles:
            finds.cycles[cycle] = _cycle(session, wishes)
            if wishes.prompts and finds.cycles[cycle].prompts != wishes.prompts:
                mismatched.add(cycle)
        for step, pictures in sorted(session.pictures.items()):
            turn = session.turns.get(step, Turn())
            call = Call(parameters=turn.parameters, caveats=turn.caveats)
            prompt = turn.prompt if step else None
            finds.frames += [
                FoundFrame(track, step, look.place(name), prompt=prompt, call=call)
                for name in sorted(pictures)
            ]
        if session.told:
            finds.expected[track] = session.told
        if session.description:
            finds.sources[session.source] = FoundSource(description=session.description)
    if mismatched:
        finds.notes.append(
            f"{len(wishes.prompts)} prompts were given, which does not fit the number of edits of "
            f"{', '.join(sorted(mismatched))}: not used there."
        )
    return finds


def _cycle_names(sessions: Iterable[Session], wishes: Wishes) -> dict[tuple[str, int], str]:
    """The cycle's name for each task and number of turns."""
    shapes = sorted({(session.task, session.length) for session in sessions})
    if wishes.kind in CYCLE_EDITS:  # one cycle repeats, however often
        return {
            shape: wishes.cycle or "-".join(filter(None, (shape[0], wishes.kind)))
            for shape in shapes
        }
    if wishes.cycle and len(shapes) == 1:
        return {shapes[0]: wishes.cycle}
    return {
        (task, length): "-".join(filter(None, (wishes.cycle, task, f"turns-{length}")))
        for task, length in shapes
    }


def _cycle(session: Session, wishes: Wishes) -> FoundCycle:
    kind: CycleKind = wishes.kind or "free"
    edits = CYCLE_EDITS.get(kind, session.length)
    prompts: tuple[str | None, ...] = (None,) * edits
    if len(wishes.prompts) == edits:
        prompts = wishes.prompts
    return FoundCycle(
        kind=kind,
        prompts=prompts,
        category=session.task,
        description="Every source has instructions of its own, recorded with its steps.",
    )


def editor_of(folder: str, look: Look) -> str:
    """An editor's name from the folder its pictures are in, below the root.

    `images` names no editor, so the folder above it does.
    """
    parts = [part for part in folder.split("/") if part]
    while parts and parts[-1].lower() in ("images", "image", "imgs"):
        parts.pop()
    if parts:
        return parts[-1]
    root = look.root.resolve()
    return root.parent.name if root.name.lower() in ("images", "image", "imgs") else root.name


def name_editors(folders: Iterable[str], look: Look, wishes: Wishes) -> tuple[dict[str, str], str]:
    """An editor for each folder of pictures, and the sentence that says where it is from."""
    known = sorted(set(folders))
    if wishes.editor and len(known) <= 1:
        return dict.fromkeys(known, wishes.editor), ""
    named = {folder: editor_of(folder, look) for folder in known}
    if len(set(named.values())) < len(named):  # two folders of one name: tell them apart
        named = {folder: folder.replace("/", "-") or editor_of("", look) for folder in known}
    told = ", ".join(sorted(set(named.values())))
    note = f"No file says who made the pictures: the editor's name is its folder's ({told})."
    if wishes.editor:
        note += f" Several folders have pictures, so --editor {wishes.editor} is not used."
    else:
        note += " --editor NAME says otherwise." if len(known) <= 1 else ""
    return named, note


def input_turn(given: str, step: int, outputs: Sequence[str], source: str) -> Turn:
    """What to record about a turn whose annotation names its input.

    Args:
        given: The input's file name, as annotated.
        step: The turn.
        outputs: File names of all turns' outputs, as annotated.
        source: The first turn's input, as annotated.
    """
    previous = source if step == 1 else outputs[step - 2]
    if not given or given == previous:
        return Turn()
    parameters = {"annotated_input": given}
    if given == source:
        return Turn(None, parameters, ("the annotation says its input was the source",))
    if given in outputs[: step - 1]:
        earlier = outputs.index(given) + 1
        told = f"the annotation says its input was frame {earlier}, not the frame before"
        return Turn(None, parameters, (told,))
    told = f"the annotation names an input of its own ({given}); whether it is the frame before "
    return Turn(None, parameters, (told + "was not checked",))


def number_in(text: str, pattern: re.Pattern[str]) -> int | None:
    """The number a pattern's first group finds in a text."""
    match = pattern.fullmatch(text)
    return int(match.group(1)) if match else None
