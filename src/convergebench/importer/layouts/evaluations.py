"""Results files of round-trip studies: editor, prompts and published scores of each chain."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look, Wishes
from convergebench.importer.layouts.samples import STEP_LIMIT, our_metric
from convergebench.wording import counted, in_order

OUR_NAMES: Final = {"clip_similarity": "clip"}
"""Our metric names for the keys that are called otherwise in results files."""

_REASONS: Final = ("error", "error_message", "reason", "message", "detail")
_NO_VALUES: Final = frozenset(("round", "success", *_REASONS))
_HOMECOMING: Final = ("backward", "return", "quality", "home")


@dataclass(frozen=True)
class Round:
    """One round: its values by our metric names with a note each, and why it failed if it did.

    Those in `forward` belong to the forward edit, all others to the homecoming.
    """

    number: int
    values: Mapping[str, tuple[float | None, str]]
    reason: str = ""
    forward: frozenset[str] = frozenset()


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
        place = look.place(file)
        # A file that was cleared says as little as one with an empty object in it.
        told = look.json(file) if place.size > 64 or place.read().strip() else {}
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
        values = _Values(listed, wishes)
        read = [e for e in (_evaluation(file, e, values) for e in listed) if e]
        found.notes += [f"{file}: {words}" for words in values.notes()]
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
                f"{in_order(models)}; the evaluations' name is the editor's."
            )
    return found


def _evaluation(file: str, told: Mapping[str, Any], values: _Values) -> Evaluation | None:
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
        if not isinstance(number, int) or not 1 <= number <= STEP_LIMIT:
            raise ImportProblem(f"{file}: {stem}_{pair} has a round {number!r}; expected 1, 2, …")
        failed = entry.get("success") is False
        reason = _reason(entry, file) if failed else ""
        rounds.append(Round(number, values.read(entry), reason, values.forward))
    for way in ("forward_prompt", "backward_prompt"):
        if not isinstance(told.get(way), str | None):
            raise ImportProblem(
                f"{file}: the {way} of {stem}_{pair} is {str(told[way])[:40]!r}, which is no "
                "text; write it as one line of text"
            )
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


class _Values:
    """The values of one file's rounds, each key of each group under a metric name of its own."""

    def __init__(self, listed: Iterable[Mapping[str, Any]], wishes: Wishes) -> None:
        self._ours = OUR_NAMES | {key: name for name, key in wishes.metrics.items()}
        self._drop = wishes.drop
        self._passed: Counter[str] = Counter()
        self._names: dict[tuple[str, str], str] = {}
        self._apart: list[str] = []
        rounds = [told.get("rounds") for told in listed]
        entries = [r for told in rounds if isinstance(told, list) for r in told]
        found = [one for e in entries if isinstance(e, dict) for one in self._items(e)]
        owners = dict.fromkeys(
            (group, key) for group, key, value in found if key and _is_value(value)
        )
        # The name as it is goes to the group that speaks of the homecoming.
        for group, key in sorted(owners, key=lambda owner: not _speaks(owner[0], _HOMECOMING)):
            self._name(group, key)
        self.forward = frozenset(
            name for (group, _), name in self._names.items() if _speaks(group, ("forward",))
        )

    def _name(self, group: str, key: str) -> None:
        plain = str(self._ours.get(key) or our_metric(key)[0])
        name = f"forward-{plain}" if _speaks(group, ("forward",)) else plain
        taken, place = set(self._names.values()), group or "round"
        for other in (f"{place}-{plain}", f"{place}-{key}", f"{place}.{key}"):
            name = name if name not in taken else other
        while name in taken:
            name += "-2"
        self._names[group, key] = name
        if name != plain:
            self._apart.append(f"{group}.{key} is {name}".lstrip("."))

    def _items(self, entry: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Group, key and content of all that may be a value; without a group, known metrics."""
        for group, told in entry.items():
            if isinstance(told, dict):
                yield from ((group, key, value) for key, value in told.items())
            elif group in self._ours or our_metric(group)[1]:
                yield "", group, told

    def read(self, entry: Mapping[str, Any]) -> dict[str, tuple[float | None, str]]:
        """Every number of a round by its metric name, with a note that names the key."""
        found: dict[str, tuple[float | None, str]] = {}
        items = [one for one in self._items(entry) if one[1] not in self._drop]
        for group, key, value in items:
            path = f"{group}.{key}".lstrip(".")
            if not key or not _is_value(value):
                self._passed[path] += 1
                continue
            number = _number(value)
            words = f"key {path}" + (": not a number there" if number is None else "")
            found[self._names[group, key]] = number, words
        read = {key for group, key, _ in items if not group}
        for key, value in entry.items():
            aside = key in read or key in _NO_VALUES or key in self._drop
            if not aside and (isinstance(value, list) or (value is not None and _is_value(value))):
                self._passed[key] += 1
        return found

    def notes(self) -> list[str]:
        """What has to be said of names and of what was passed over."""
        notes = []
        if self._apart:
            notes.append(
                "values of one metric in several groups are told apart, and those of a forward "
                f"group belong to the forward edit: {in_order(self._apart)}."
            )
        if self._passed:
            notes.append(
                f"{counted(self._passed.total(), 'value')} of rounds not read, being no number or "
                f"no known metric: {in_order(self._passed)}. --metric METRIC=KEY names a metric."
            )
        return notes


def _speaks(group: str, words: Iterable[str]) -> bool:
    return any(word in group.lower() for word in words)


def _is_value(value: Any) -> bool:
    """Whether this is a number, also one written as text, or an empty place for one."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: Any) -> float | None:
    """The number; None for NaN and for what is beyond all numbers."""
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    beyond = math.isinf(number) and isinstance(value, str) and "inf" not in value.lower()
    return None if beyond or math.isnan(number) else number


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
        f"{file}: {in_order(never)} is 0 in every row while {in_order(varying)} vary, so it was "
        "never computed: its values are empty. --keep-constant keeps them."
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
