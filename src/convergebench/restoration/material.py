"""What the study is judged from: methods, pictures, what was asked for, scores and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

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
        excess: How much finer detail an output has than its truth, by chain.
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
    excess: Mapping[str, float] = field(default_factory=dict)
    means: bool = False
    notes: tuple[str, ...] = ()

    def value(self, measure: str, method: str, source: str) -> float | None:
        """The mean over repeats of one picture; infinite where one of them is."""
        found = self.values.get((measure, method, source))
        if not found:
            return None
        # In a fixed order, because the last digit of a sum depends on it.
        mean = math.fsum(found[repeat] for repeat in sorted(found)) / len(found)
        return mean if not math.isnan(mean) else math.inf

    def sources(self, measure: Measure, among: Iterable[Picture] | None = None) -> list[str]:
        """The pictures that a measure can have a value of."""
        mine = self.pictures if among is None else among
        bare = measure.kind not in NEEDS_TRUTH
        return [picture.source for picture in mine if bare or picture.truth]

    def having(self, measure: Measure, methods: Sequence[str]) -> list[str]:
        """Those of the methods that have a value of the measure at all."""
        known = {method for name, method, _ in self.values if name == measure.name}
        return [method for method in methods if method in known]

    def asked(self, method: str) -> set[str]:
        """The pictures that a method was asked for."""
        return {one.source for one in self.attempts if one.method == method}

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


BASELINES: Final = frozenset(("no", "none", "off", "short"))
"""Levels that others are compared with, whatever the order of prompts."""
