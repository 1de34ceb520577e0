"""Numbered sequences: eiffel_step_0.png, eiffel_step_1.png …, in one folder or one per source."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from convergebench.cycle import CYCLE_EDITS
from convergebench.errors import ImportProblem
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    Layout,
    Look,
    Track,
    Wishes,
)
from convergebench.importer.layouts import film, hub, restoration, variants
from convergebench.importer.layouts.stems import split_number
from convergebench.wording import counted, in_order


@dataclass(frozen=True)
class _Named:
    """A numbered picture; without a `prefix` its folder is all that names its source."""

    file: str
    folder: str
    prefix: str
    number: int
    counts: bool


def recognise(look: Look) -> str:
    """Why this is a numbered sequence, or nothing."""
    if look.is_file or not look.images:
        return ""
    named = _sourced(look, list(_numbered(look)), 0)
    folders = {one.folder for one in named}
    if any("/" in folder for folder in folders) or ("" in folders and len(folders) > 1):
        return ""
    others = restoration.is_input_folder, variants.is_run
    if any(other(folder) for folder in folders for other in others):
        return ""
    # A contact sheet beside the steps changes nothing; a folder of photographs is no sequence.
    extra = len(look.images) - len(named)
    if extra and (len(named) < 3 or extra * 3 > len(named)):
        return ""
    gifs = all(one.file.lower().endswith(".gif") for one in named)
    if gifs and not film.is_still(Path(look.place(named[0].file).path)):
        return ""
    if hub.find_tables(look, {}).metadata:
        return ""
    groups = _groups(named)
    if not all(_counts(group) for group in groups.values()):
        return ""
    if all(len({n.number for n in group}) < 2 for group in groups.values()):
        return ""
    return f"{counted(len(groups), 'sequence')} of numbered pictures"


def read(look: Look, wishes: Wishes) -> Finds:
    """Every numbered picture as a step of its sequence. Raises ImportProblem."""
    named = list(_numbered(look))
    if not named:
        raise ImportProblem(
            f"{look.root} has no pictures whose names end with a number (NAME_0.png, NAME_1.png "
            "…); name another layout with --layout, or describe the names with --pattern"
        )
    steps = len(named)
    named = _sourced(look, named, wishes.first)
    kind = wishes.kind or "replicate"
    wanted = CYCLE_EDITS.get(kind)
    if wishes.prompts and wanted and len(wishes.prompts) != wanted:
        raise ImportProblem(
            f"a cycle of kind {kind!r} has {counted(wanted, 'edit')}, got "
            f"{counted(len(wishes.prompts), 'prompt')}; --kind says what the cycle is"
        )
    cycle = wishes.cycle or kind
    editor = wishes.editor or look.root.resolve().name
    used = {one.file for one in named}
    finds = Finds(unread=[name for name in look.files if name not in used])
    finds.cycles[cycle] = FoundCycle(kind, wishes.prompts)
    tracks = _tracks(named, look, wishes, finds)
    if not all(owner for owner, _ in tracks) and not wishes.editor:
        finds.notes.append(f"The editor is called {editor!r}, after the folder (--editor).")
    if named[steps:]:
        told = in_order(one.file for one in named[steps:])
        finds.notes.append(f"Taken as the source, step 0, by the name: {told}.")
    left = [name for name in look.images if name not in used]
    if left:
        finds.notes.append(f"Pictures without a number are not read: {in_order(left)}.")
    if not wishes.kind:
        finds.notes.append(
            "Taken as replication: every frame should equal the source; --kind says otherwise."
        )
    for (owner, source), group in sorted(tracks.items()):
        track = Track(source, cycle, owner or editor)
        if wishes.steps:
            finds.expected[track] = wishes.steps
        _steps(track, group, look, wishes, finds)
    return finds


def _counts(group: list[_Named]) -> bool:
    """Whether numbers are steps: from 0, or from 1 with a word such as "step" before them."""
    lowest = min(group, key=lambda one: one.number)
    return lowest.number == 0 or (lowest.number == 1 and all(one.counts for one in group))


def _steps(track: Track, group: list[_Named], look: Look, wishes: Wishes, finds: Finds) -> None:
    before = [one.file for one in group if one.number < wishes.first]
    if before:
        finds.unread += before
        finds.notes.append(
            f"{counted(len(before), 'picture')} of {track.source!r} come before number "
            f"{wishes.first}, which is the source's, and are not read: {in_order(before)}."
        )
    lowest = min(group, key=lambda one: one.number)
    if all(one.number != wishes.first for one in group):
        finds.notes.append(
            f"No picture of {track.source!r} has number {wishes.first}, so its source is missing; "
            f"say --first {lowest.number} if {lowest.file} is the source."
        )
    prompts = wishes.prompts
    for one in sorted(group, key=lambda one: (one.number, one.file)):
        step = one.number - wishes.first
        if step >= 0:
            prompt = prompts[(step - 1) % len(prompts)] if prompts and step else None
            finds.frames.append(FoundFrame(track, step, look.place(one.file), prompt))


def _numbered(look: Look) -> Iterator[_Named]:
    for file in look.images:
        folder, _, base = file.rpartition("/")
        told = split_number(os.path.splitext(base)[0])
        if told:
            yield _Named(file, folder, *told)


def _sourced(look: Look, named: list[_Named], first: int) -> list[_Named]:
    """With `source.png` as the first of the only sequence of its folder, where that has none."""
    told = {one.file for one in named}
    beside = _groups(named)
    added = []
    for file in look.images:
        folder, _, base = file.rpartition("/")
        if file in told or os.path.splitext(base)[0].lower() not in variants.SOURCE_NAMES:
            continue
        near = [(prefix, group) for (at, prefix), group in beside.items() if at == folder]
        if len(near) == 1 and min(one.number for one in near[0][1]) == first + 1:
            added.append(_Named(file, folder, near[0][0], first, True))
    places = Counter(one.folder for one in added)
    return named + [one for one in added if places[one.folder] == 1]


def _groups(named: list[_Named]) -> dict[tuple[str, str], list[_Named]]:
    groups: dict[tuple[str, str], list[_Named]] = {}
    for one in named:
        groups.setdefault((one.folder, one.prefix), []).append(one)
    return groups


def _tracks(
    named: list[_Named], look: Look, wishes: Wishes, finds: Finds
) -> dict[tuple[str, str], list[_Named]]:
    """Editor (empty where no folder names it) and source of each group."""
    groups = _groups(named)
    folders = {folder for folder, _ in groups}
    shared = Counter(prefix for folder, prefix in groups if folder and prefix)
    if not wishes.editor and max(shared.values(), default=0) > 1:
        finds.notes.append(
            f"Folders are taken as editors ({in_order(folders - {''})}) and the names before the "
            f"numbers as sources ({in_order(shared)}), because several folders have the same; "
            "--editor NAME says that they are all of one editor, and makes each folder a source."
        )
        found: dict[tuple[str, str], list[_Named]] = {}
        for (folder, prefix), group in groups.items():
            owner = folder.replace("/", "_")
            source = prefix or wishes.source or owner or look.root.resolve().name
            while (owner, source) in found:
                source += "_"
            found[owner, source] = group
        return found
    if len(folders) > 1 and not wishes.editor:
        finds.notes.append(
            f"Each folder is taken as a source ({in_order(folders - {''})}); if they are editors, "
            "say --pattern '{editor}/…{step}.png'."
        )
    return {("", source): group for source, group in _sources(groups, look, wishes).items()}


def _sources(
    groups: dict[tuple[str, str], list[_Named]], look: Look, wishes: Wishes
) -> dict[str, list[_Named]]:
    """What each group's source is called: its folder or its prefix, or both where it takes both."""
    if wishes.source and len(groups) == 1:
        return {wishes.source: next(iter(groups.values()))}
    folders = Counter(folder for folder, _ in groups)
    named: dict[str, list[_Named]] = {}
    for (folder, prefix), group in groups.items():
        place = folder.replace("/", "_")
        if not place:
            name = prefix or wishes.source or look.root.resolve().name
        elif folders[folder] == 1 or not prefix:
            name = place
        else:
            name = f"{place}_{prefix}"
        while name in named:
            name += "_"  # two groups are never one, however alike their names come out
        named[name] = group
    return named


LAYOUT: Final = Layout(
    name="sequence",
    summary="numbered pictures: NAME_step_0.png, NAME_step_1.png …, or a folder of them per source",
    recognise=recognise,
    read=read,
    general=True,
)
