"""Round-trip trees: a folder per chain with I0_source, I1_forward, I1_backward and so on.

A results JSON beside the folders names editor, prompts and published scores. Without it the
folder's name is all there is to tell source and edit pair apart; the notes say how it was split.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from convergebench.errors import ImportProblem
from convergebench.importer.found import (
    Conflict,
    Finds,
    FoundCycle,
    FoundFrame,
    FoundScore,
    FoundSource,
    Layout,
    Look,
    Track,
    Wishes,
)
from convergebench.importer.layouts.evaluations import Evaluation, Results, read_results
from convergebench.wording import counted, in_order

_FRAME = re.compile(r"I(\d+)_(source|forward|backward)", re.I)
_NUMBERED = re.compile(r"(.*?\d+(?:_\d+)*)_(.+)")


@dataclass(frozen=True)
class _Chain:
    """A folder of frames; `tree` is the folder it is in, None when the root is the chain."""

    folder: str
    name: str
    tree: str | None
    frames: tuple[tuple[int, str], ...]

    @property
    def steps(self) -> set[int]:
        return {step for step, _ in self.frames}


def recognise(look: Look) -> str:
    """Why this is a round-trip tree, or nothing."""
    folders = 0 if look.is_file else len(_chains(look)[0])
    return f"{counted(folders, 'folder')} with I0_source, I1_forward, I1_backward …" * bool(folders)


def read(look: Look, wishes: Wishes) -> Finds:
    """Chains, prompts and published scores of a round-trip tree. Raises ImportProblem."""
    chains, rest = _chains(look)
    if not chains:
        raise ImportProblem(
            f"{look.root} has no pictures called I0_source, I1_forward, I1_backward …; name "
            "another layout with --layout, or describe the names with --pattern"
        )
    if wishes.prompts and len(wishes.prompts) != 2:
        raise ImportProblem(
            f"a round-trip has two edits, forward and backward; got {len(wishes.prompts)} prompts"
        )
    files = [n for n in rest if fnmatch.fnmatch(os.path.basename(n).lower(), "results*.json")]
    results = read_results(look, files, wishes)
    finds = Finds(notes=results.notes, unread=[n for n in rest if n not in files] + results.unread)
    matched = _match(chains, results, finds)
    _Reader(look, wishes, finds, results).read(chains, matched)
    return finds


def _chains(look: Look) -> tuple[list[_Chain], list[str]]:
    """The folders of frames, and every other file."""
    pictures = set(look.images)
    frames: dict[str, list[tuple[int, str]]] = {}
    rest = []
    for name in look.files:
        folder, _, base = name.rpartition("/")
        told = _FRAME.fullmatch(os.path.splitext(base)[0]) if name in pictures else None
        number, way = (int(told[1]), told[2].lower()) if told else (0, "")
        if told is None or (way == "source") != (number == 0):
            rest.append(name)
            continue
        step = 2 * number - (way == "forward")
        frames.setdefault(folder, []).append((step, name))
    chains = []
    for folder, found in sorted(frames.items()):
        tree, _, name = folder.rpartition("/")
        own = look.root.resolve().name
        chains.append(_Chain(folder, name or own, tree if folder else None, tuple(sorted(found))))
    return chains, rest


def _match(
    chains: list[_Chain], results: Results, finds: Finds
) -> list[tuple[_Chain | None, Evaluation]]:
    """Each evaluation with its folder, which is called IMAGE_EDITPAIR, if it is there."""
    pairs: list[tuple[_Chain | None, Evaluation]] = []
    for told in results.evaluations:
        scope = told.file.rpartition("/")[0]
        while scope and not any(_below(chain, scope) for chain in chains):
            scope = scope.rpartition("/")[0]
        fitting = [c for c in chains if c.name == told.name and _below(c, scope)]
        if len(fitting) > 1:
            named = [c for c in fitting if (c.tree or "").rpartition("/")[2] == told.model]
            fitting = named or [c for c in fitting if c.tree == scope] or fitting
        if len(fitting) > 1:
            finds.notes.append(
                f"{told.file}: {told.name} fits {in_order(c.folder for c in fitting)}; it is not "
                "read. Import each editor's folder with its own results file."
            )
            continue
        pairs.append((fitting[0] if fitting else None, told))
    without = sorted({told.name for chain, told in pairs if chain is None})
    if without:
        finds.notes.append(
            f"{counted(len(without), 'evaluation')} without a folder, of which only the scores are "
            f"imported: {in_order(without)}."
        )
    known = {chain.folder for chain, _ in pairs if chain}
    alone = [chain.name for chain in chains if chain.folder not in known]
    if alone and results.evaluations:
        finds.notes.append(
            f"{counted(len(alone), 'folder')} without an evaluation in a results file: "
            f"{in_order(alone)}."
        )
    return pairs


def _below(chain: _Chain, scope: str) -> bool:
    return not scope or f"{chain.folder}/".startswith(f"{scope}/")


# -- chains -----------------------------------------------------------------------------------


class _Reader:
    """Turns folders and evaluations into what is found."""

    def __init__(self, look: Look, wishes: Wishes, finds: Finds, results: Results) -> None:
        self._look = look
        self._wishes = wishes
        self._finds = finds
        self._results = results
        self._stems = {e.stem for e in results.evaluations} | {wishes.source or ""}
        self._pairs = {e.pair for e in results.evaluations} | {wishes.cycle or ""}
        self._cycles: dict[str, dict[tuple[str | None, str | None], str]] = {}
        self._assumed: dict[str, list[str]] = {}
        self._claims: dict[tuple[Track, int, str], list[tuple[float | None, str]]] = {}

    def read(self, chains: list[_Chain], matched: list[tuple[_Chain | None, Evaluation]]) -> None:
        told: dict[str, list[Evaluation]] = {}
        for chain, one in matched:
            told.setdefault(chain.folder if chain else f"\0{one.model}\0{one.name}", []).append(one)
        # Prompts that are known name the cycles before folders that know none join them.
        for chain in sorted(chains, key=lambda c: (c.folder not in told, c.folder)):
            self._chain(chain, told.pop(chain.folder, []))
        for evaluations in told.values():
            self._chain(None, evaluations)
        self._score()
        for words, names in self._assumed.items():
            self._finds.notes.append(f"{words}: {in_order(names)}.")
        for pair, prompts in self._cycles.items():
            if len(prompts) > 1:
                self._finds.notes.append(
                    f"Edit pair {pair!r} has different prompts for different images; they are "
                    f"told apart as cycles {in_order(prompts.values())}."
                )

    def _chain(self, chain: _Chain | None, told: list[Evaluation]) -> None:
        first = told[0] if told else None
        name = chain.name if chain else told[0].name
        stem, pair = (first.stem, first.pair) if first else self._split(name)
        model = _agreed(name, "model", [(e.file, e.model) for e in told])
        forward = _agreed(name, "forward prompt", [(e.file, e.prompts[0]) for e in told])
        backward = _agreed(name, "backward prompt", [(e.file, e.prompts[1]) for e in told])
        prompts = forward, backward
        category = next((e.category for e in told if e.category), "")
        cycle = self._cycle(pair, prompts, category)
        track = Track(stem, cycle, self._editor(chain, model or ""))
        image_type = next((e.image_type for e in told if e.image_type), "")
        if image_type or stem not in self._finds.sources:
            self._finds.sources[stem] = FoundSource(category=image_type)
        failed = self._failed(chain, told)
        have = chain.steps if chain else set()
        for step, file in chain.frames if chain else ():
            prompt = prompts[(step - 1) % 2] if step else None
            notes = (f"marked as failed: {failed[step]}",) if step in failed else ()
            place = self._look.place(file)
            self._finds.frames.append(FoundFrame(track, step, place, prompt, notes=notes))
        for step, reason in failed.items():
            if step in have:
                self._assume("Marked as failed in the results file, yet the picture is there", name)
            else:
                prompt = prompts[(step - 1) % 2]
                self._finds.frames.append(FoundFrame(track, step, None, prompt, "failed", reason))
        scored = [r for e in told for r in e.rounds if not r.reason or 2 * r.number in have]
        if any(r.values and r not in scored for e in told for r in e.rounds):
            self._assume("Values of rounds that failed are not read", name)
        for one in scored:
            for metric, claim in one.values.items():
                step = 2 * one.number - (metric in one.forward)
                self._claims.setdefault((track, step, metric), []).append(claim)
        ends = {2 * one.number for one in scored}
        known = {2 * one.number for one in scored if one.values or chain is None}
        without = {step for end in known for step in (end - 1, end)} - have - set(failed)
        for step in sorted(without):
            prompt = prompts[(step - 1) % 2]
            self._finds.frames.append(FoundFrame(track, step, None, prompt, "reported"))
        if without and chain:
            words = "Scored in the results file without a picture, and kept as reported"
            self._assume(words, f"{name} steps {', '.join(map(str, sorted(without)))}")
        self._expect(track, have | ends, told, chain)

    def _failed(self, chain: _Chain | None, told: list[Evaluation]) -> dict[int, str]:
        """The steps that the results call failed: the first of the round without a picture."""
        have = chain.steps if chain else set()
        failed: dict[int, str] = {}
        for one in (r for e in told for r in e.rounds if r.reason):
            forward = 2 * one.number - 1
            failed.setdefault(forward + (forward in have or chain is None), one.reason)
        whole = next((e for e in told if e.reason), None)
        if whole and not failed:
            ends = [2 * r.number for e in told for r in e.rounds if r.values or chain is None]
            last = max([*have, *ends], default=0)
            # A chain with all its pictures has no next step that could have failed.
            complete = last == 2 * self._results.rounds.get(whole.file, 0)
            failed[last + (not complete)] = whole.reason
        return failed

    def _expect(
        self, track: Track, have: set[int], told: list[Evaluation], chain: _Chain | None
    ) -> None:
        """Every chain is meant to come home: whole rounds, as many as the results say."""
        files = {e.file for e in told} or {
            file
            for file in self._results.rounds
            if chain and _below(chain, file.rpartition("/")[0])
        }
        meant = [2 * self._results.rounds[file] for file in files if file in self._results.rounds]
        last = max(have, default=0)
        meant = [self._wishes.steps] if self._wishes.steps else meant
        before = self._finds.expected.get(track, 2)
        self._finds.expected[track] = max([before, last + last % 2, *meant])
        if last % 2:
            name = chain.name if chain else track.source
            self._assume("Stops after a forward edit; the way back is taken as failed", name)

    def _split(self, name: str) -> tuple[str, str]:
        """Source and edit pair from a folder's name alone."""
        for stem in sorted(self._stems - {""}, key=len, reverse=True):
            if name.startswith(f"{stem}_"):
                return stem, name[len(stem) + 1 :]
        for pair in sorted(self._pairs - {""}, key=len, reverse=True):
            if name.endswith(f"_{pair}"):
                return name[: -len(pair) - 1], pair
        told = _NUMBERED.fullmatch(name)
        source, _, pair = (told[1], "_", told[2]) if told else name.partition("_")
        pair = pair or self._wishes.cycle or "round-trip"
        words = "No results file tells source and edit pair apart; split by the folder's name"
        self._assume(words, f"{source} + {pair}")
        return source, pair

    def _cycle(self, pair: str, prompts: tuple[str | None, str | None], category: str) -> str:
        """The name of the cycle with these prompts; another wording is another cycle."""
        known = self._cycles.setdefault(pair, {})
        if not any(prompts):
            given = self._wishes.prompts
            prompts = (given[0], given[1]) if given else next(iter(known), prompts)
        name = known.setdefault(prompts, f"{pair}-{len(known) + 1}" if known else pair)
        before = self._finds.cycles.get(name)
        category = category or (before.category if before else "")
        told = prompts if any(prompts) else ()
        self._finds.cycles[name] = FoundCycle("round-trip", told, category)
        return name

    def _editor(self, chain: _Chain | None, named: str) -> str:
        if not named and chain:
            near = {e.model for e in self._results.evaluations if e.model and _beside(chain, e)}
            near = near or {
                model
                for file, model in self._results.models.items()
                if model and _below(chain, file.rpartition("/")[0])
            }
            named = near.pop() if len(near) == 1 else ""
        if named or self._wishes.editor:
            return named or str(self._wishes.editor)
        root = self._look.root.resolve()
        tree = (chain.tree or "").rpartition("/")[2] if chain else ""
        folder = tree or (root.parent.name if chain and chain.tree is None else root.name)
        self._assume("The editor's name is its folder's, for want of another (--editor)", folder)
        return folder

    def _score(self) -> None:
        """Each key once; equal values collapse, different ones are conflicts or repeats."""
        reported: set[tuple[Track, int]] = set()
        for (track, step, metric), claims in self._claims.items():
            self._finds.keys += 1
            told = [claim for claim in claims if claim[0] is not None] or claims[:1]
            distinct = list({value: (value, note) for value, note in reversed(told)}.values())[::-1]
            if len(distinct) > 1:
                key = f"{track}: step {step}: {metric}"
                values = tuple(f"{value!r}" for value, _ in distinct)
                self._finds.conflicts.append(Conflict(key, values))
            elif len(told) > 1:
                self._finds.collapsed += 1
            kept = distinct if self._wishes.conflicts == "repeat" else distinct[:1]
            for repeat, (value, note) in enumerate(kept):
                other = replace(track, repeat=repeat) if repeat else track
                against: Literal["home", "none"] = "none" if step % 2 else "home"
                score = FoundScore(other, step, metric, value, note, against)
                self._finds.scores.append(score)
                if repeat:
                    reported.add((other, step))
        for other, step in sorted(reported, key=lambda key: (str(key[0]), key[1])):
            self._finds.frames.append(FoundFrame(other, step, None, outcome="reported"))

    def _assume(self, words: str, name: str) -> None:
        names = self._assumed.setdefault(words, [])
        if name not in names:
            names.append(name)


def _agreed(chain: str, what: str, told: list[tuple[str, str | None]]) -> str | None:
    """What all results files say of a chain. Raises ImportProblem where they differ."""
    said: dict[str, str] = {}
    for file, value in told:
        if value:
            said.setdefault(value, file)
    if len(said) > 1:
        (first, here), (other, there) = list(said.items())[:2]
        raise ImportProblem(
            f"{chain}: its {what} is {first!r} in {here} and {other!r} in {there}. One folder is "
            "one chain: take away the file that is not about it, or import each with its folder."
        )
    return next(iter(said), None)


def _beside(chain: _Chain, told: Evaluation) -> bool:
    return _below(chain, told.file.rpartition("/")[0])


LAYOUT: Final = Layout(
    name="round-trip",
    summary="folders SOURCE_EDITPAIR/ of I0_source, I1_forward, I1_backward …; results*.json",
    recognise=recognise,
    read=read,
)
