"""Cases: outputs that people or a judge call infidel or over-generated, or that we flag ourselves.

An output is a case where more than half of those who looked say so, as in `rate analyze`. A
*measured* flag says only that an output has much more fine detail than its truth: where to look,
not what is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from convergebench.restoration.material import Attempt, Label, Material
from convergebench.restoration.result import Case, CaseCount, CaseMean

Kind = Literal["infidelity", "over-generation"]

KINDS: Final[tuple[Kind, ...]] = ("infidelity", "over-generation")

MAJORITY: Final = 0.5
"""An output is a case where more than this share of those who looked says so."""

FLAGGED: Final = 1.5
"""`detail-ratio`, over the input's own, from which on an output is flagged.

`python -m benchmarks.over_generation` prints how often that is right and wrong.
"""

MEASURED: Final = "measured"


def cases(
    material: Material,
) -> tuple[tuple[Case, ...], tuple[CaseCount, ...], tuple[CaseMean, ...]]:
    """Every case, their number per method, and per prompt by what sets prompts apart."""
    attempts = {one.chain: one for one in material.attempts if one.made and one.chain}
    found: list[Case] = []
    counts: list[CaseCount] = []
    for kind in KINDS:
        for by, labels in _by(material.labels, kind).items():
            looked = [attempts[chain] for chain in labels if chain in attempts]
            mine = [
                case
                for one in looked
                if (case := _labelled(kind, by, one, labels[one.chain])) is not None
            ]
            found += mine
            counts += _counted(material, kind, by, looked, mine)
    looked = [
        attempts[chain]
        for chain in material.detail
        if chain in attempts and attempts[chain].source in material.own_detail
    ]
    mine = _flagged(material, looked)
    found += mine
    counts += _counted(material, "over-generation", MEASURED, looked, mine)
    return tuple(found), tuple(counts), tuple(_means(material, counts))


def _by(labels: Iterable[Label], kind: Kind) -> dict[str, dict[str, list[Label]]]:
    """By who labels, the labels of that kind by chain."""
    found: dict[str, dict[str, list[Label]]] = {}
    for label in labels:
        if label.kind == kind:
            found.setdefault(label.by, {}).setdefault(label.chain, []).append(label)
    return found


def _labelled(kind: Kind, by: str, one: Attempt, labels: list[Label]) -> Case | None:
    share = math.fsum(label.value for label in labels) / len(labels)
    if share <= MAJORITY:
        return None
    said = dict.fromkeys(label.comment for label in labels if label.comment and label.value)
    return Case(
        kind=kind, method=one.method, source=one.source, repeat=one.repeat, chain=one.chain, by=by,
        share=share, votes=len(labels), evidence="; ".join(said),
    )  # fmt: skip


def _flagged(material: Material, looked: list[Attempt]) -> list[Case]:
    """Outputs with far more fine detail than their truth, and than their input."""
    found = []
    for one in looked:
        ratio, before = material.detail[one.chain], material.own_detail[one.source]
        if ratio / before >= FLAGGED:
            told = f"detail-ratio {ratio:.2f}, its input {before:.2f}"
            found.append(
                Case(
                    kind="over-generation", method=one.method, source=one.source,
                    repeat=one.repeat, chain=one.chain, by=MEASURED, share=1.0, votes=1,
                    evidence=told,
                )
            )  # fmt: skip
    return found


def _counted(
    material: Material, kind: Kind, by: str, looked: list[Attempt], found: list[Case]
) -> list[CaseCount]:
    counts = []
    for method in material.methods:
        seen = [one for one in looked if one.method == method.id]
        if seen:
            mine = [case for case in found if case.method == method.id]
            counts.append(
                CaseCount(
                    kind=kind,
                    method=method.id,
                    group=method.group,
                    cases=len(mine),
                    looked=len(seen),
                    by=by,
                    repeats=len({one.repeat for one in seen}),
                    in_one_run=_in_one_run(seen, mine),
                )
            )
    return counts


def _in_one_run(looked: list[Attempt], found: list[Case]) -> float:
    """Cases in one run through the pictures: of each picture the share of its outputs.

    Not all cases over the number of repeats: where repeats failed, or were looked at in part only,
    that would make light of the others.
    """
    outputs = Counter(one.source for one in looked)
    return math.fsum(1 / outputs[case.source] for case in found)


def _means(material: Material, counts: list[CaseCount]) -> list[CaseMean]:
    """Cases per prompt, for every level of every factor of an editor's prompts."""
    found = []
    whose = dict.fromkeys((count.kind, count.by) for count in counts)
    for kind, by in whose:
        mine = {c.method: c for c in counts if (c.kind, c.by) == (kind, by)}
        for editor, methods in material.prompted().items():
            for factor, levels in material.levels(methods).items():
                for level in levels:
                    prompts = [
                        mine[m.id]
                        for m in methods
                        if m.id in mine and material.factors.get(m.id, {}).get(factor) == level
                    ]
                    if prompts:
                        found.append(
                            CaseMean(
                                kind=kind, by=by, editor=editor, factor=factor, level=level,
                                prompts=len(prompts), cases=sum(c.cases for c in prompts),
                                looked=sum(c.looked for c in prompts),
                                per_prompt=math.fsum(c.in_one_run for c in prompts)
                                / len(prompts),
                            )
                        )  # fmt: skip
    return found
