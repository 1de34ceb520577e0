"""Restoration trees: input/ gt/ method-a/ method-b/ …, pictures of the same name in each.

Every other folder is an editor; each input is one chain of one step per editor, prompt and repeat.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    FoundSource,
    Layout,
    Look,
    Track,
    Wishes,
)
from convergebench.registry import open_suite
from convergebench.suite import Suite
from convergebench.wording import counted, in_order

PAPER: Final = "restoration-v1"
"""The suite that has the paper's prompts."""

INPUTS: Final = frozenset(
    ("input", "inputs", "lq", "lr", "low-quality", "low-resolution", "degraded", "noisy")
)
"""Names of the folder of degraded pictures; capitals, `-`, `_` and spaces make no difference."""

ASIDE = ("mask", "masks")
"""Folders that are neither method nor truth, and are not read."""

TRUTHS: Final = frozenset(
    ("gt", "truth", "target", "hr", "hq", "high-quality", "clean", "ground-truth", "reference")
)
"""Names of the folder of ground truths, likewise."""

DAMAGES: Final = {
    "Defocus Blur": ("defocus", "defocus blur"),
    "Motion Blur": ("motion", "motion blur"),
    "Digital Zoom": ("digital zoom", "zoom"),
    "Old Film": ("old film",),
    "Old Photo (Black and White)": ("old photo bw", "old photo b&w", "old photo black and white"),
    "Old Photo (Color)": ("old photo color", "old photo colour"),
    "Surveillance": ("surveillance",),
}
"""The paper's degradations, and what folders of them may be called."""

CONTAINERS: Final = frozenset(("methods", "results", "outputs", "output", "restored"))
"""Folders that may hold a folder per method."""

_METHOD = re.compile(r"methods?[-_ ](.+)", re.IGNORECASE)
_RUN = re.compile(r"(?:run|repeat|rep|r)[-_ ]?(\d+)", re.IGNORECASE)
_PROMPT = re.compile(r"prompt(?:[-_ ](.+)|(\d+))|((?:SF|LF|S|L)\d+)", re.IGNORECASE)
_REPEATED = re.compile(r"(.+)[-_](?:run|repeat|rep|r)[-_]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class _Output:
    file: str
    editor: str
    prompt: str
    run: int | None
    source: str


@dataclass
class _Index:
    """Pictures by scene and stem, and by stem alone where that is enough."""

    files: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    alike: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    scenes: set[str] = field(default_factory=set)

    def add(self, scene: str, stem: str, file: str) -> None:
        if (scene, stem) not in self.files:
            self.scenes.update(part for part in scene.split("/") if part)
            self.alike.setdefault(stem, []).append((scene, stem))
            if scene:
                self.alike.setdefault(f"{scene}_{stem}", []).append((scene, stem))
        self.files.setdefault((scene, stem), []).append(file)

    def find(self, scene: str, stem: str) -> tuple[str, str] | None:
        """The key of a picture: same scene and stem, or the only one of that stem."""
        if (scene, stem) in self.files:
            return scene, stem
        alike = self.alike.get(stem, [])
        # A scene that is given and does not fit is another picture.
        return alike[0] if len(alike) == 1 and not scene else None


def is_input_folder(name: str) -> bool:
    """Whether a folder of this name holds degraded pictures."""
    return _bare(name) in _BARE_INPUTS


def is_truth_folder(name: str) -> bool:
    """Whether a folder of this name holds ground truths."""
    return _bare(name) in _BARE_TRUTHS


def damage_of(scene: str) -> str:
    """The degradation that a part of a path is called after, or nothing."""
    found = (_BARE_DAMAGES.get(_bare(part), "") for part in scene.split("/"))
    return next((damage for damage in found if damage), "")


def category_of(scene: str, like: Suite) -> str:
    """A scene as the suite spells it, if it has one like it; a folder of the damage is none."""
    known = {_bare(source.category): source.category for source in like.source}
    parts = [part for part in scene.split("/") if part]
    apart = [part for part in parts if not damage_of(part)] or parts
    return known.get(_bare("".join(apart)), "/".join(apart))


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BARE_INPUTS: Final = frozenset(map(_bare, INPUTS))
_BARE_TRUTHS: Final = frozenset(map(_bare, TRUTHS))
_BARE_DAMAGES: Final = {_bare(name): damage for damage in DAMAGES for name in DAMAGES[damage]}


@dataclass(frozen=True)
class Pairs:
    """The inputs and truths of a tree, and what its sources are called.

    Attributes:
        given: The folder of inputs.
        truth: The folder of truths, if there is one.
        inputs: What is in the one.
        truths: What is in the other.
        names: A name for every input, by scene and stem.
    """

    given: str
    truth: str | None
    inputs: _Index
    truths: _Index
    names: dict[tuple[str, str], str]


def pairs_of(look: Look) -> Pairs:
    """The inputs and truths of a tree. Raises ImportProblem."""
    tops = sorted({name.split("/")[0] for name in look.images if "/" in name})
    given = _one([top for top in tops if is_input_folder(top)], "degraded pictures", INPUTS, look)
    if given is None:
        raise ImportProblem(
            f"{look.root} has no folder of degraded pictures; expected one called "
            f"{in_order(INPUTS, 9)}"
        )
    truth = _one([top for top in tops if is_truth_folder(top)], "ground truths", TRUTHS, look)
    inputs = _index(look, given)
    truths = _index(look, truth) if truth else _Index()
    return Pairs(given, truth, inputs, truths, _names(inputs))


def recognise(look: Look) -> str:
    """Why this is a restoration tree, or nothing."""
    if look.is_file:
        return ""
    tops = {name.split("/")[0] for name in look.images if "/" in name}
    given = [top for top in tops if is_input_folder(top)]
    others = [top for top in tops if top not in given and top.lower() not in ASIDE]
    methods = [top for top in others if not is_truth_folder(top)]
    if len(given) != 1 or not methods:
        return ""
    inputs = _index(look, given[0])
    if not any(_output(name, inputs) for name in look.images if name.split("/")[0] in methods):
        return ""
    return f"{given[0]}/ and {counted(len(methods), 'folder')} of pictures with the same names"


def read(look: Look, wishes: Wishes) -> Finds:
    """One chain of one step per input, editor, prompt and repeat. Raises ImportProblem."""
    pairs = pairs_of(look)
    given, truth, inputs, truths = pairs.given, pairs.truth, pairs.inputs, pairs.truths
    names = pairs.names
    finds = Finds()
    used = {file for files in inputs.files.values() for file in files}
    used |= _sources(look, inputs, truths, names, finds)
    outputs = []
    for file in look.images:
        top = file.split("/")[0]
        if "/" in file and top not in (given, truth) and top.lower() not in ASIDE:
            told = _output(file, inputs)
            if told:
                outputs.append(told)
                used.add(file)
    if not outputs:
        raise ImportProblem(
            f"{look.root} has no folder of restored pictures named like those in {given}/; "
            "expected method-NAME/ or any other folder beside it"
        )
    finds.unread = [name for name in look.files if name not in used]
    pictures = set(look.images)
    lost = [file for file in finds.unread if file in pictures]
    if lost:
        finds.notes.append(
            f"{counted(len(lost), 'picture')} without a picture of that name in {given}/, not "
            f"read: {in_order(lost)}."
        )
    _chains(look, wishes, inputs, names, outputs, finds)
    return finds


def _one(found: list[str], what: str, known: Iterable[str], look: Look) -> str | None:
    if len(found) > 1:
        raise ImportProblem(
            f"{look.root} has several folders of {what}: {in_order(found)}; keep one, or name the "
            f"others otherwise than {in_order(known, 9)}"
        )
    return found[0] if found else None


def _index(look: Look, top: str) -> _Index:
    index = _Index()
    for file in look.images:
        head, _, below = file.partition("/")
        if head == top and below:
            scene, _, base = below.rpartition("/")
            index.add(scene, os.path.splitext(base)[0], file)
    return index


def _names(inputs: _Index) -> dict[tuple[str, str], str]:
    """Sources are called like their file, with the scene where two scenes have the same name."""
    stems = Counter(stem for _, stem in inputs.files)
    return {
        (scene, stem): stem if stems[stem] == 1 else f"{scene.replace('/', '_')}_{stem}"
        for scene, stem in inputs.files
    }


def _sources(
    look: Look, inputs: _Index, truths: _Index, names: dict[tuple[str, str], str], finds: Finds
) -> set[str]:
    """Tell every source with its truth; which truths were used."""
    used: set[str] = set()
    without = []
    paper = open_suite(PAPER)  # spelt as `suites load` does: one picture, one scene
    for key, files in inputs.files.items():
        match = truths.find(*key)
        if match:
            used |= set(truths.files[match])
            if len(truths.files[match]) > 1:
                finds.notes.append(
                    f"{names[key]!r} has several truths; {truths.files[match][0]} is taken."
                )
        else:
            without.append(names[key])
        finds.sources[names[key]] = FoundSource(
            place=look.place(files[0]),
            truth=look.place(truths.files[match][0]) if match else None,
            category=category_of(key[0], paper),
            degradation=damage_of(key[0]),
        )
    if without and truths.files:
        finds.notes.append(
            f"{len(without)} of {counted(len(inputs.files), 'input')} have no ground truth: "
            f"{in_order(without)}."
        )
    elif without:
        finds.notes.append("There are no ground truths: only no-reference metrics apply.")
    return used


def _output(file: str, inputs: _Index) -> _Output | None:
    """What a restored picture is: whose, of which input, with which prompt, which run."""
    top, *parts = file.split("/")
    stem = os.path.splitext(parts.pop())[0] if parts else ""
    method = _METHOD.fullmatch(top)
    editor = method[1] if method else top
    if top.lower() in CONTAINERS and parts and parts[0] not in inputs.scenes:
        head = parts[0]
        if not (_RUN.fullmatch(head) or _PROMPT.fullmatch(head)):
            inner = _METHOD.fullmatch(parts.pop(0))
            editor = inner[1] if inner else head
    prompt, run, rest = "", None, []
    for part in parts:
        told = None if part in inputs.scenes else _RUN.fullmatch(part)
        worded = None if part in inputs.scenes else _PROMPT.fullmatch(part)
        if told:
            run = int(told[1])
        elif worded:
            prompt = worded[1] or worded[2] or worded[3]
        else:
            rest.append(part)
    scene = "/".join(rest)
    key = inputs.find(scene, stem)
    repeated = _REPEATED.fullmatch(stem)
    if key is None and repeated:
        key, run = inputs.find(scene, repeated[1]), int(repeated[2])
    return _Output(file, editor, prompt, run, "/".join(key)) if key else None


def _chains(
    look: Look,
    wishes: Wishes,
    inputs: _Index,
    names: dict[tuple[str, str], str],
    outputs: list[_Output],
    finds: Finds,
) -> None:
    runs = {one.run for one in outputs if one.run is not None}
    first = 0 if 0 in runs else 1
    if runs and first:
        finds.notes.append("Runs are numbered from 1 there; run 1 is repeat 0 here.")
    prompts = {one.prompt for one in outputs}
    if wishes.prompts and (len(wishes.prompts) > 1 or len(prompts) > 1):
        raise ImportProblem(
            f"a restoration has one edit; got {counted(len(wishes.prompts), 'prompt')} for "
            f"{counted(len(prompts), 'prompt folder')}"
        )
    made: dict[tuple[str, str, int], dict[str, list[str]]] = {}
    for one in outputs:
        repeat = one.run - first if one.run is not None else 0
        cycle = one.prompt or wishes.cycle or "restore"
        made.setdefault((one.editor, cycle, repeat), {}).setdefault(one.source, []).append(one.file)
        if cycle not in finds.cycles:
            finds.cycles[cycle] = _cycle(cycle, wishes, finds)
    prompt = wishes.prompts[0] if wishes.prompts else None
    missing = []
    for (editor, cycle, repeat), files in sorted(made.items()):
        for key in inputs.files:
            track = Track(names[key], cycle, editor, repeat)
            finds.expected[track] = 1
            for file in inputs.files[key]:
                finds.frames.append(FoundFrame(track, 0, look.place(file)))
            for file in files.get("/".join(key), ()):
                finds.frames.append(FoundFrame(track, 1, look.place(file), prompt))
            if "/".join(key) not in files:
                missing.append(str(track))
    if missing:
        finds.notes.append(
            f"{counted(len(missing), 'output')} missing, taken as failed: {in_order(missing)}."
        )


def _cycle(name: str, wishes: Wishes, finds: Finds) -> FoundCycle:
    """A prompt's cycle, in the paper's group if it is called like one of the paper's prompts."""
    for known in open_suite(PAPER).cycle:
        if known.group and known.title.lower() == name.lower():
            note = f"Prompts called like the paper's are put into its groups ({PAPER})."
            if note not in finds.notes:
                finds.notes.append(note)
            return FoundCycle("restore", wishes.prompts, group=known.group, factors=known.factors)
    return FoundCycle("restore", wishes.prompts)


LAYOUT: Final = Layout(
    name="restoration",
    summary="input/ gt/ method-a/ method-b/ … with pictures of the same names",
    recognise=recognise,
    read=read,
)
