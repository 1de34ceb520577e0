"""What the study is judged from: methods, pictures, what was asked for, scores and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from convergebench.errors import UnknownName
from convergebench.restoration.result import Measure, Method, Picture

NEEDS_TRUTH: Final = ("full-reference", "semantic")
"""Kinds of measures that compare with the truth."""

Key = tuple[str, str, str]
"""Measure, method, source."""


@dataclass(frozen=True)
class Attempt:
    """One output that was asked for: whether it was made, or failed; neither: not made yet."""

    method: str
    source: str
    repeat: int = 0
    chain: str = ""
    made: bool = True
    failed: bool = False


@dataclass(frozen=True)
class Label:
    """What one rater or judge said of one output: 1 yes, 0 no.

    `by` is who labels (a rating study, a judge), `rater` which of them.
    """

    kind: Literal["infidelity", "over-generation"]
    chain: str
    by: str
    rater: str
    value: float
    comment: str = ""


@dataclass(frozen=True)
class Material:
    """All that a restoration study is judged from.

    Attributes:
        title: The runs, or the file.
        measures: The columns of its tables.
        methods: In order.
        pictures: In order.
        attempts: Every output that was asked for.
        values: Scores by measure, method and source, each by repeat; may be infinite.
        factors: What sets a prompted method's prompt apart, by the method's id.
        labels: What people and judges said.
        detail: How many times the truth's fine detail an output has (`detail-ratio`), by chain.
        own_detail: The same of the damaged inputs, by source.
        means: Whether the scores are means already, over pictures that nobody knows.
        notes: What a reader must know, a sentence each.
    """

    title: str
    measures: tuple[Measure, ...]
    methods: tuple[Method, ...]
    pictures: tuple[Picture, ...]
    attempts: tuple[Attempt, ...]
    values: Mapping[Key, Mapping[int, float]]
    factors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    labels: tuple[Label, ...] = ()
    detail: Mapping[str, float] = field(default_factory=dict)
    own_detail: Mapping[str, float] = field(default_factory=dict)
    means: bool = False
    notes: tuple[str, ...] = ()

    def value(self, measure: str, method: str, source: str) -> float | None:
        """The mean over repeats of one picture; infinite where one of them is."""
        return self._means.get((measure, method, source))

    @cached_property
    def _means(self) -> dict[Key, float]:
        return {
            key: math.fsum(found.values()) / len(found)
            if all(map(math.isfinite, found.values()))
            else math.inf
            for key, found in self.values.items()
            if found
        }

    def sources(self, measure: Measure, among: Iterable[Picture] | None = None) -> list[str]:
        """The pictures that a measure can have a value of."""
        mine = self.pictures if among is None else among
        bare = measure.kind not in NEEDS_TRUTH
        return [picture.source for picture in mine if bare or picture.truth]

    def having(self, measure: Measure, methods: Sequence[str]) -> list[str]:
        """Those of the methods that have a value of the measure at all."""
        return [method for method in methods if (measure.name, method) in self._scored]

    @cached_property
    def _scored(self) -> set[tuple[str, str]]:
        return {(measure, method) for measure, method, _ in self.values}

    @cached_property
    def asked(self) -> dict[str, set[str]]:
        """By method, the pictures that it was asked for."""
        found: dict[str, set[str]] = {}
        for one in self.attempts:
            found.setdefault(one.method, set()).add(one.source)
        return found

    def ranked(self) -> list[Method]:
        """The methods that are compared: no controls."""
        return [method for method in self.methods if not method.control]

    def prompted(self) -> dict[str, list[Method]]:
        """By editor, its prompts, where it has several."""
        found: dict[str, list[Method]] = {}
        for method in self.ranked():
            if method.prompt:
                found.setdefault(method.editor, []).append(method)
        return {editor: mine for editor, mine in found.items() if len(mine) > 1}

    def levels(self, methods: Iterable[Method]) -> dict[str, list[str]]:
        """By factor, its levels among these prompts, the one to compare with first."""
        found: dict[str, list[str]] = {}
        for method in methods:
            for factor, level in self.factors.get(method.id, {}).items():
                if level not in found.setdefault(factor, []):
                    found[factor].append(level)
        for levels in found.values():
            levels.sort(key=lambda level: level not in BASELINES)
        return found

    def only(self, methods: Sequence[str] | None) -> Material:
        """The same of some methods, named by label, editor or prompt; controls stay.

        Raises:
            UnknownName: No method is called so.
        """
        if methods is None:
            return self
        called = {
            method.id: {w.lower(): w for w in (method.label, method.editor, method.prompt) if w}
            for method in self.methods
        }
        for name in methods:
            if not any(name.lower() in words for words in called.values()):
                known = {word for words in called.values() for word in words.values()}
                raise UnknownName("method", name, known)
        wanted = {name.lower() for name in methods}
        mine = [m for m in self.methods if m.control or wanted & set(called[m.id])]
        kept = {method.id for method in mine}
        ranked = {method.id for method in mine if not method.control} or kept
        used = {one.source for one in self.attempts if one.method in ranked}
        return replace(
            self,
            methods=tuple(mine),
            pictures=tuple(p for p in self.pictures if p.source in used),
            attempts=tuple(a for a in self.attempts if a.method in kept and a.source in used),
            values={key: told for key, told in self.values.items() if key[1] in kept},
        )


BASELINES: Final = frozenset(("no", "none", "off", "short"))
"""Levels that others are compared with, whatever the order of prompts."""
