"""From scored runs to the material of the study: which methods, which pictures, which scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from convergebench.analysis.leaderboard import controls_among
from convergebench.analysis.roster import chain_table
from convergebench.chain import Chain
from convergebench.cycle import Cycle
from convergebench.errors import ConvergeBenchError, InputError
from convergebench.gathering import Gathered
from convergebench.registry import reads_prompts
from convergebench.restoration.inputs import own_detail
from convergebench.restoration.material import Attempt, Material
from convergebench.restoration.result import Method, Picture
from convergebench.restoration.scores import Scored
from convergebench.wording import counted

_PAPER: Final = re.compile(r"(SF|LF|S|L)[-_ ]?\d+")


def paper_factors(group: str) -> dict[str, str]:
    """What the paper's four groups of prompts differ in; nothing for other groups."""
    if group not in ("S", "SF", "L", "LF"):
        return {}
    return {
        "length": "short" if group[0] == "S" else "long",
        "fidelity": "yes" if group.endswith("F") else "no",
    }


def material_of(gathered: Gathered, metrics: Sequence[str] | None = None) -> Material:
    """What the runs' restorations come to.

    Args:
        gathered: The runs.
        metrics: Names of the measures; by default the paper's six, as far as they are scored.

    Raises:
        InputError: No chain restores, or a measure that was asked for is not there.
        ConvergeBenchError: Nothing is scored.
    """
    table = chain_table(gathered.chains, gathered.suite, gathered.plan)
    table = table.filter(pl.col("kind") == "restore")
    if table.is_empty():
        raise InputError(
            f"{gathered.name} has no chains that restore. Make some with: convergebench run "
            "DIRECTORY --suite restoration-v1 --editor …, or import a folder of outputs with: "
            "convergebench import FOLDER --to RUN"
        )
    field = _Field.of(gathered, table)
    scored = Scored.of(gathered, field.attempts, field.steps, metrics)
    return Material(
        title=gathered.name,
        measures=scored.measures,
        methods=field.methods,
        pictures=field.pictures,
        attempts=field.attempts,
        values=scored.values,
        factors=field.factors,
        labels=scored.labels,
        detail=scored.detail,
        own_detail=own_detail(gathered, scored.detail),
        notes=(*gathered.notes, *gathered.problems, *field.notes, *scored.notes),
    )


@dataclass(frozen=True)
class _Field:
    """The chains that restore, under their methods."""

    methods: tuple[Method, ...]
    pictures: tuple[Picture, ...]
    attempts: tuple[Attempt, ...]
    factors: Mapping[str, Mapping[str, str]]
    steps: Mapping[str, int]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, gathered: Gathered, table: pl.DataFrame) -> _Field:
        known = {chain.key.id: chain for chain in gathered.chains}
        editors = table["editor"].unique(maintain_order=True).to_list()
        controls = controls_among(editors, gathered.editors)
        places = {cycle.name: place for place, cycle in enumerate(gathered.suite.cycle)}
        named = _prompts(gathered, table)
        methods: dict[str, Method] = {}
        factors: dict[str, Mapping[str, str]] = {}
        attempts = []
        steps: dict[str, int] = {}
        order: dict[str, tuple[bool, str, int, str]] = {}
        for row in table.iter_rows(named=True):
            cycle = gathered.suite.cycle_of(row["cycle"])
            prompt = named[row["editor"], row["cycle"]]
            label = " · ".join(w for w in (row["editor"], prompt, row["settings"]) if w)
            group = _group(cycle, prompt)
            if label not in methods:
                shown_as = f"{prompt}, {row['settings']}" if row["settings"] else prompt
                methods[label] = Method(
                    id=label, label=label, editor=row["editor"], prompt=shown_as if prompt else "",
                    group=group if prompt else "", control=row["editor"] in controls,
                )  # fmt: skip
                if prompt:
                    factors[label] = cycle.factors or paper_factors(group)
                order[label] = (
                    row["editor"] in controls, row["editor"], places[cycle.name], row["settings"]
                )  # fmt: skip
            chain = known.get(row["chain"])
            last = max(chain.reached, default=0) if chain else 0
            steps[row["chain"]] = last
            attempts.append(
                Attempt(
                    method=label, source=row["source"], repeat=row["repeat"], chain=row["chain"],
                    made=last > 0, failed=not last and _failed(chain),
                )
            )  # fmt: skip
        used = {one.source for one in attempts}
        return cls(
            methods=tuple(sorted(methods.values(), key=lambda method: order[method.id])),
            pictures=_pictures(gathered, used),
            attempts=tuple(attempts),
            factors=factors,
            steps=steps,
            notes=_chain_notes(attempts, steps),
        )


def _failed(chain: Chain | None) -> bool:
    """Whether an output was asked for and is none: ended, or lost from an import."""
    if chain is None or chain.ending is None:
        return False
    return chain.ended or chain.ending.outcome == "missing"


def _prompts(gathered: Gathered, table: pl.DataFrame) -> dict[tuple[str, str], str]:
    """By editor and cycle the prompt's title; nothing for an editor that reads none."""
    pairs = table.select("editor", "cycle").unique(maintain_order=True).rows()
    found = {}
    for editor, label in pairs:
        cycle = gathered.suite.cycle_of(label)
        alone = sum(other == editor for other, _ in pairs) == 1
        silent = cycle.readers == "unprompted" or (
            cycle.readers is None
            and alone
            and (cycle.name == "restore" or not _reads(gathered.editors.get(editor, editor)))
        )
        found[editor, label] = "" if silent else cycle.title
    return found


def _reads(editor: str) -> bool:
    try:
        return reads_prompts(editor)
    except ConvergeBenchError:  # an import's name that is no name of an editor
        return True


def _group(cycle: Cycle, prompt: str) -> str:
    """The prompt's group: as the suite says, or as the paper's names do."""
    told = _PAPER.fullmatch(prompt.upper())
    return cycle.group or (told[1] if told else "")


def _pictures(gathered: Gathered, used: set[str]) -> tuple[Picture, ...]:
    with_truth = {
        chain.key.source
        for chain in gathered.chains
        # Scores without pictures were measured against a truth that is not here either.
        if chain.truth is not None or chain.source is None
    }
    return tuple(
        Picture(
            source=source.name,
            scene=source.category,
            damage=source.damage,
            truth=source.name in with_truth or source.has_truth,
        )
        for source in gathered.suite.source
        if source.name in used
    )


def _chain_notes(attempts: Sequence[Attempt], steps: Mapping[str, int]) -> tuple[str, ...]:
    notes = []
    longer = sum(last > 1 for last in steps.values())
    if longer:
        notes.append(f"{counted(longer, 'chain')} of several steps: the last frame counts.")
    waiting = sum(not (one.made or one.failed) for one in attempts)
    if waiting:
        are = counted(waiting, "output", "is", "are")
        notes.append(f"{are} not made yet: convergebench run goes on.")
    return tuple(notes)
