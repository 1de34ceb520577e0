"""Results files of round-trip studies: editor, prompts and published scores of each chain."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look, Wishes
from convergebench.importer.layouts.wording import counted, shown

OUR_NAMES: Final = {"clip_similarity": "clip"}
"""Our metric names for the keys that are called otherwise in results files."""

_REASONS: Final = ("error", "error_message", "reason", "message", "detail")


@dataclass(frozen=True)
class Round:
    """One round: its values by our metric names with a note each, and why it failed if it did."""

    number: int
    values: Mapping[str, tuple[float | None, str]]
    reason: str = ""


@dataclass(frozen=True)
class Evaluation:
    """What a results file says about one chain."""

    file: str
    stem: str
    pair: str
    model: str
    prompts: tuple[str | None, str | None]
    image_type: str
    category: str
    rounds: tuple[Round, ...]
    reason: str = ""

    @property
    def name(self) -> str:
        """What the chain's folder is called."""
        return f"{self.stem}_{self.pair}"


@dataclass
class Results:
    """What all results files say."""

    evaluations: list[Evaluation] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_results(look: Look, files: Iterable[str], wishes: Wishes) -> Results:
    """Everything the results files say. Raises ImportProblem where one cannot be read."""
    found = Results()
    for file in files:
        told = look.json(file)
        meta = told.get("metadata") if isinstance(told, dict) else None
        listed = told.get("evaluations") if isinstance(told, dict) else told
        if not isinstance(listed, list) or not all(isinstance(e, dict) for e in listed):
            found.unread.append(file)
            found.notes.append(f"{file} has no list of evaluations; it is not read.")
            continue
        meta = meta if isinstance(meta, dict) else {}
        if isinstance(meta.get("max_rounds"), int):
            found.rounds[file] = meta["max_rounds"]
        found.models[file] = str(meta.get("model") or "")
        read = [e for e in (_evaluation(file, e, wishes) for e in listed) if e]
        if len(read) < len(listed):
            found.notes.append(
                f"{file}: {counted(len(listed) - len(read), 'evaluation')} without image name or "
                "edit_pair_name, which fit no folder and are not read."
            )
        found.evaluations += read if wishes.keep_constant else _computed(file, read, found.notes)
        models = {e.model for e in read if e.model}
        if models and found.models[file] and found.models[file] not in models:
            found.notes.append(
                f"{file}: metadata.model is {found.models[file]!r}, the evaluations say "
                f"{shown(models)}; the evaluations' name is the editor's."
            )
    return found


def _evaluation(file: str, told: Mapping[str, Any], wishes: Wishes) -> Evaluation | None:
    image = str(told.get("image_filename") or told.get("source_image") or "")
    stem = os.path.splitext(image.replace("\\", "/").rpartition("/")[2])[0]
    pair = str(told.get("edit_pair_name") or "")
    if not stem or not pair:
        return None
    listed = told.get("rounds") or []
    if not isinstance(listed, list) or not all(isinstance(r, dict) for r in listed):
        raise ImportProblem(f"{file}: the rounds of {stem}_{pair} are no list of rounds")
    rounds = []
    for index, entry in enumerate(listed, 1):
        number = entry.get("round", index)
        if not isinstance(number, int) or number < 1:
            raise ImportProblem(f"{file}: {stem}_{pair} has a round {number!r}; expected 1, 2, …")
        failed = entry.get("success") is False
        rounds.append(Round(number, _values(entry, wishes), _reason(entry, file) if failed else ""))
    forward, backward = (told.get(f"{way}_prompt") or None for way in ("forward", "backward"))
    return Evaluation(
        file=file,
        stem=stem,
        pair=pair,
        model=str(told.get("model") or ""),
        prompts=(forward, backward),
        image_type=str(told.get("image_type") or ""),
        category=str(told.get("edit_category") or ""),
        rounds=tuple(rounds),
        reason=_reason(told, file) if told.get("success") is False else "",
    )


def _reason(told: Mapping[str, Any], file: str) -> str:
    words = [str(told[key]) for key in _REASONS if told.get(key)]
    return "; ".join(words) or f"success: false in {file}"


def _values(entry: Mapping[str, Any], wishes: Wishes) -> dict[str, tuple[float | None, str]]:
    """Every number of a round by our metric name, with a note that names the key."""
    ours = OUR_NAMES | {key: name for name, key in wishes.metrics.items()}
    found: dict[str, tuple[float | None, str]] = {}
    for group, scores in entry.items():
        for key, value in scores.items() if isinstance(scores, dict) else ():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if key in wishes.drop or not (number or value is None):
                continue
            name = str(ours.get(key, key))
            note = f"key {group}.{key}"
            if value is None or math.isnan(value):
                found[name] = None, f"{note}: not a number there"
            else:
                found[name] = float(value), note
    return found


def _computed(file: str, read: list[Evaluation], notes: list[str]) -> list[Evaluation]:
    """The evaluations, without metrics that are 0 in every row while others vary."""
    seen: dict[str, set[float | None]] = {}
    for one in (r for e in read for r in e.rounds if not r.reason):
        for metric, (value, _) in one.values.items():
            seen.setdefault(metric, set()).add(value)
    varying = {metric for metric, values in seen.items() if len(values) > 1}
    never = {metric for metric, values in seen.items() if values == {0.0}} if varying else set()
    if not never:
        return read
    notes.append(
        f"{file}: {shown(never)} is 0 in every row while {shown(varying)} vary, so it was never "
        "computed: its values are empty. --keep-constant keeps them."
    )

    def emptied(one: Round) -> Round:
        values = {
            metric: (None, f"{note}: 0 in every row, never computed")
            if metric in never and value == 0
            else (value, note)
            for metric, (value, note) in one.values.items()
        }
        return replace(one, values=values)

    return [replace(e, rounds=tuple(emptied(r) for r in e.rounds)) for e in read]
