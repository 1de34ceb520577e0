"""Pictures of a replication study as rows or paths tell of them, and which chains they make."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from convergebench.chain import Settings
from convergebench.cycle import CYCLE_EDITS
from convergebench.errors import ImportProblem, explain
from convergebench.importer.found import Look, Place
from convergebench.importer.layouts.variants import INITIALS, PathName, Variant


@dataclass(frozen=True)
class Picture:
    """A picture, or a row without one, with all that is known about it.

    `assumed` is what was taken for its cycle where none is named; an editor may be unnamed.
    """

    source: str
    variant: Variant
    assumed: str
    editor: str
    run: int | None
    step: int
    place: Place | None
    name: str
    told: Mapping[str, Any]

    @property
    def chain(self) -> tuple[Any, ...]:
        """What tells chains apart; resolutions of a column may also change within one."""
        loose = {"number"} | ({"resolution"} if "resolution" in self.told else set())
        axes = {k: v for k, v in self.variant.settings.items() if k not in loose}
        return (self.source, self.cycle, self.editor, self.run, tuple(sorted(axes.items())))

    def fits(self, other: Picture) -> bool:
        """Whether this picture of a source may be where another's chain began."""
        return (
            self.run in (None, other.run)
            and self.editor in ("", other.editor)
            and (not self.variant.known or self.cycle == other.cycle)
            and all(other.variant.settings.get(k) == v for k, v in self.variant.settings.items())
        )

    @property
    def cycle(self) -> str:
        """The cycle's name: the table's word for it, and whatever words are not in the table."""
        return "-".join(word for word in (self.variant.cycle, self.variant.rest) if word)


def name_editors(paths: Mapping[str, PathName], look: Look) -> tuple[list[str], list[str]]:
    """Make EDITOR/SOURCE of the first folders, where the second recur below each of the first.

    SOURCE/VARIANT can look the same: then the steps 0 of one source are the same picture.
    Returns the editors and the sources; nothing when the first folders are no editors.
    """
    steps = {name: told for name, told in paths.items() if told.step is not None and not told.apart}
    unnamed = {name: told for name, told in steps.items() if told.model is None}
    shared = len(_shared(list(unnamed.values()))) if len(unnamed) == len(steps) else 0
    below: dict[str, dict[str, str]] = {}
    for name, told in steps.items():
        parts = [told.model, *told.others] if told.model else told.others[shared:]
        if len(parts) < 2 or (not told.model and f"{parts[0]}/{parts[1]}/" not in name):
            return [], []
        first, second = below.setdefault(parts[0], {}), parts[1]
        if told.step == 0 or second not in first:
            first[second] = name
    recurring = set.intersection(*(set(seconds) for seconds in below.values())) if below else set()
    if not unnamed or len(below) < 2 or not recurring or INITIALS & {f.lower() for f in below}:
        return [], []
    if any(_same_start(list(seconds.values()), steps, look) for seconds in below.values()):
        return [], []
    for told in unnamed.values():
        told.model = told.others.pop(shared)
    return sorted(below), sorted({second for seconds in below.values() for second in seconds})


def only_source(paths: Mapping[str, PathName], look: Look) -> str:
    """SOURCE of one SOURCE/VARIANT whose variants are not in the table, or nothing.

    WRAPPER/SOURCE looks the same: there the pictures of step 0 differ.
    """
    steps = {name: told for name, told in paths.items() if told.step is not None and not told.apart}
    shared = _shared(list(steps.values()))
    if not shared or any(
        told.variants or len(told.others) != len(shared) + 1 for told in steps.values()
    ):
        return ""
    last = {told.others[-1] for told in steps.values()}
    if any(told.apart and last & {*told.others} for told in paths.values()):
        return ""
    starts = {told.others[-1]: name for name, told in steps.items() if told.step == 0}
    alike = len(starts) < 2 or _same_start(list(starts.values()), steps, look)
    return shared[-1] if alike else ""


def _shared(paths: Sequence[PathName]) -> list[str]:
    """The folders that all paths begin with."""
    parts = zip(*(told.others for told in paths), strict=False)
    return [level[0] for level in itertools.takewhile(lambda p: len(set(p)) == 1, parts)]


def _same_start(names: list[str], steps: Mapping[str, PathName], look: Look) -> bool:
    """Whether pictures of step 0 are one picture, byte for byte."""
    places = [look.place(name) for name in names if steps[name].step == 0]
    if len(places) < 2 or len({place.size for place in places}) > 1:
        return False
    return len({place.read() for place in places}) == 1


def told_apart(pictures: list[Picture]) -> list[list[Picture]]:
    """Pictures by chain. 1K, 2K, 4K in turn are one interleaved chain, else one each."""
    alike: dict[tuple[Any, ...], list[Picture]] = {}
    for one in pictures:
        alike.setdefault(one.chain, []).append(one)
    chains = []
    for steps in alike.values():
        sizes: dict[Any, list[Picture]] = {}
        for one in steps:
            sizes.setdefault(one.variant.settings.get("resolution"), []).append(one)
        whole = len(sizes) == 1 or _interleaved(steps)
        chains += [steps] if whole else list(sizes.values())
    return chains


def _interleaved(steps: list[Picture]) -> bool:
    asked = Settings(resolution="interleaved")
    sizes = [(one.step, one.variant.settings.get("resolution")) for one in steps if one.step > 0]
    return len(set(sizes)) > 1 and all(asked.resolution_at(n) == size for n, size in sizes)


def prompts_of(steps: Sequence[Picture]) -> tuple[str | None, ...]:
    """The prompts of one round, where each place of it always has the same; else nothing."""
    period = CYCLE_EDITS.get(steps[0].variant.kind or "free", 1)
    said: list[set[str]] = [set() for _ in range(period)]
    for one in steps:
        if one.step > 0 and "prompt" in one.told:
            said[(one.step - 1) % period].add(str(one.told["prompt"]))
    if not all(len(prompts) <= 1 for prompts in said) or not any(said):
        return ()
    return tuple(next(iter(prompts), None) for prompts in said)


def settings_of(steps: list[Picture]) -> Settings:
    """The axes of a chain; whether its seed is fixed shows in the seeds that were sent."""
    head = max(steps, key=lambda one: one.step)
    axes = {k: v for k, v in head.variant.settings.items() if k != "number"}
    if len({one.variant.settings.get("resolution") for one in steps if one.step > 0}) > 1:
        axes["resolution"] = "interleaved"
    seeds = [str(one.told["seed"]) for one in steps if one.step > 0 and "seed" in one.told]
    if len(seeds) > 1 and "seed" not in axes:
        axes["seed"] = "fixed" if len(set(seeds)) == 1 else "per-step"
    try:
        return Settings(**axes)
    except ValidationError as error:
        raise ImportProblem(f"{steps[0].name}: {explain(error)}") from error
