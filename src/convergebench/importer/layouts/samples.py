"""What a WebDataset sample says: its JSON's fields, or the rule that reads its key.

{"source": "portrait_01", "editor": "m", "cycle": "hat", "step": 3, "prompt": "…"}
portrait_01__m__step_003            source, editor, step
portrait_01__m__hat__step_003       source, editor, cycle, step
portrait_01__m__hat__r1__step_003   source, editor, cycle, repeat, step
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError

from convergebench import registry
from convergebench.chain import Call, Outcome, Settings
from convergebench.errors import ConvergeBenchError, ImportProblem, explain
from convergebench.importer.found import (
    IMAGES,
    Conflict,
    Finds,
    FoundFrame,
    FoundScore,
    Track,
)
from convergebench.wording import in_order

FIELDS: Final = {
    "source": ("source", "source_id", "image", "image_id", "img_id"),
    "editor": ("editor", "model", "method"),
    "cycle": ("cycle", "task", "edit"),
    "kind": ("kind",),
    "step": ("step", "turn", "iteration", "round"),
    "repeat": ("repeat", "run", "sample"),
    "prompt": ("prompt", "instruction"),
    "seed": ("seed",),
    "reasoning": ("reasoning",),
    "outcome": ("outcome",),
    "detail": ("detail", "error"),
    "cost": ("cost",),
    "temperature": ("temperature",),
}
"""Our fields, and the names each may have; the first that is there counts."""

STEP_LIMIT: Final = 10_000
NO_SETTINGS: Final = Settings()  # one for all: samples come by the ten thousand
NO_CALL: Final = Call()
OUTCOMES: Final = get_args(Outcome)
_STEP: Final = re.compile(r"(?:step|turn|iteration|round|frame)?[-_]?(\d{1,9})", re.I)
_REPEAT: Final = re.compile(r"r(?:epeat|un)?[-_]?(\d{1,9})", re.I)


@dataclass
class Told:
    """What a sample says; None where it says nothing."""

    source: str | None = None
    editor: str | None = None
    cycle: str | None = None
    kind: str | None = None
    step: int | None = None
    repeat: int = 0
    settings: Settings = NO_SETTINGS
    prompt: str | None = None
    seed: int | None = None
    outcome: Outcome | None = None
    detail: str = ""
    call: Call = NO_CALL
    scores: dict[str, float | None] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


def from_key(key: str) -> Told:
    """What a key says by our rule; nothing when it does not follow it."""
    parts = key.rpartition("/")[2].split("__")
    match = _STEP.fullmatch(parts[-1])
    if not match or not 2 <= len(parts) <= 5 or not all(parts):
        return Told()
    told = Told(source=parts[0], step=int(match[1]))
    told.editor = parts[1] if len(parts) > 2 else None
    told.cycle = parts[2] if len(parts) > 3 else None
    if len(parts) == 5:
        repeat = _REPEAT.fullmatch(parts[3])
        if not repeat:
            return Told()
        told.repeat = int(repeat[1])
    return told


def from_json(data: bytes, where: str) -> Told:
    """What a sample's JSON says. Raises ImportProblem."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ImportProblem(f"{where} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise ImportProblem(f"{where}: expected an object with fields, got {_kind(content)}")
    known = {str(name).lower(): name for name in reversed(content)}
    used: set[str] = set()

    def take(what: str) -> Any:
        for name in FIELDS[what]:
            if name in known and content[known[name]] is not None:
                used.add(known[name])
                return content[known[name]]
        return None

    told = Told(
        source=_text(take("source"), "source", where, path=True),
        editor=_text(take("editor"), "editor", where),
        cycle=_text(take("cycle"), "cycle", where),
        kind=_text(take("kind"), "kind", where),
        step=_whole(take("step"), "step", where),
        repeat=_whole(take("repeat"), "repeat", where) or 0,
        prompt=_text(take("prompt"), "prompt", where),
        seed=_whole(take("seed"), "seed", where, negative=True),
        outcome=_outcome(take("outcome"), where),
        detail=_text(take("detail"), "detail", where) or "",
    )
    model = content.get(known.get("model", ""))
    call = {
        "model": model if isinstance(model, str) else None,
        "reasoning": _text(take("reasoning"), "reasoning", where),
        "cost": _number(take("cost")),
    }
    if any(value is not None for value in call.values()):
        told.call = Call.model_validate(call)
    told.settings = _settings(content.get("settings"), take("temperature"), where)
    told.scores = _scores(content, used, where)
    used |= {"settings", "scores"} | {name for name in content if str(name).lower() == "model"}
    told.unused = tuple(
        sorted(
            str(name) for name, value in content.items() if name not in used and value is not None
        )
    )
    return told


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", str: "text"}
    return names.get(type(value), "a number")


def _text(value: Any, field: str, where: str, *, path: bool = False) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ImportProblem(f"{where}: {field!r} should be text, got {_kind(value)}")
    text = str(value)
    if path and os.path.splitext(text)[1].lower() in IMAGES:
        text = os.path.splitext(text)[0]
    return text or None


def _whole(value: Any, field: str, where: str, *, negative: bool = False) -> int | None:
    if value is None:
        return None
    number = None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", value):
        number = int(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = int(value) if math.isfinite(value) and value == int(value) else None
    if number is None or (number < 0 and not negative):
        raise ImportProblem(
            f"{where}: {field!r} should be a whole number from 0, got {str(value)[:40]!r}"
        )
    return number


def _number(value: Any) -> float | None:
    """A number as it is, NaN as None; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


def _outcome(value: Any, where: str) -> Outcome | None:
    if value is None:
        return None
    if value not in OUTCOMES:
        raise ImportProblem(
            f"{where}: outcome {str(value)[:40]!r} is none of {', '.join(OUTCOMES)}"
        )
    found: Outcome = value
    return found


def _settings(told: Any, temperature: Any, where: str) -> Settings:
    fields = dict(told) if isinstance(told, dict) else {}
    if temperature is not None:
        fields.setdefault("temperature", temperature)
    if not fields:
        return NO_SETTINGS
    try:
        return Settings.model_validate(fields)
    except ValidationError as error:
        raise ImportProblem(f"{where}: no legal settings: {explain(error)}") from error


def _scores(content: dict[str, Any], used: set[str], where: str) -> dict[str, float | None]:
    """The object `scores`, and every number whose field is a metric's name."""
    told = content.get("scores")
    if told is not None and not isinstance(told, dict):
        raise ImportProblem(f"{where}: 'scores' should be an object, got {_kind(told)}")
    scores = {}
    for name, value in (told or {}).items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ImportProblem(f"{where}: score {name!r} should be a number, got {_kind(value)}")
        scores[name] = _number(value)
    for name, value in content.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and name not in used and our_metric(name)[1]:
            scores[name] = _number(value)
            used.add(name)
    return scores


@cache
def our_metric(name: str) -> tuple[str, bool]:
    """Our name for a metric, and whether it is one of ours; else the name as it is."""
    try:
        ours = registry.metric_name(name)
    except ConvergeBenchError:
        return name, False
    known = ours.family in registry.names("metrics")
    return (str(ours), True) if known else (name, False)


@cache
def compared_with(metric: str) -> Literal["home", "none"]:
    """What a metric of that name compares a frame with."""
    try:
        spec = registry.metric_spec(metric)
    except ConvergeBenchError:
        return "home"
    return "none" if spec.kind == "no-reference" else "home"


def settle(
    scores: Mapping[tuple[Track, int, str], list[FoundScore]], finds: Finds, *, repeat: bool
) -> None:
    """Each score once; values that differ are conflicts, and repeats where that is wished."""
    finds.keys = len(scores)
    last: Counter[Track] = Counter()
    for frame in finds.frames:
        alike = replace(frame.track, repeat=0)
        last[alike] = max(last[alike], frame.track.repeat)
    others: dict[tuple[Track, int], Track] = {}
    apart: dict[tuple[Track, int], None] = {}
    for (track, step, metric), known in scores.items():
        finds.scores.append(known[0])
        if len(known) == 1:
            continue
        values = tuple(f"{score.value}" for score in known)
        finds.conflicts.append(Conflict(f"{track}: step {step}: {metric}", values))
        for index, score in enumerate(known[1:] if repeat else ()):
            if (track, index) not in others:
                # Beyond every repeat that the samples name, so that no two chains are mixed up.
                alike = replace(track, repeat=0)
                last[alike] += 1
                others[track, index] = replace(track, repeat=last[alike])
            finds.scores.append(replace(score, track=others[track, index]))
            apart[others[track, index], step] = None
    finds.frames += [FoundFrame(track, step, None, outcome="reported") for track, step in apart]
    if apart:
        tracks = {str(track) for track, _ in apart}
        finds.notes.append(f"Scores that differ are kept without pictures as {in_order(tracks)}.")
