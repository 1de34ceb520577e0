"""A table of scores from elsewhere: a paper's rows of means, or a value per picture.

Columns: `prompt` (with `group`, and further columns of words as the prompts' factors) or `method`,
`editor`; `image`, `scene`, `damage`, `repeat` where rows are of single pictures; and a column per
metric, called as the paper calls it, `CLIP-IQA`, or as `mine↑` or `mine↓` where it is none of ours.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from convergebench.errors import InputError, UnknownName
from convergebench.registry import metric_name, metric_spec, names
from convergebench.restoration import measures as m
from convergebench.restoration.material import NEEDS_TRUTH, Attempt, Key, Material
from convergebench.restoration.reading import paper_factors
from convergebench.restoration.result import Measure, Method, Picture
from convergebench.wording import counted

ENDINGS: Final = (".csv", ".tsv")

_CALLED: Final = {
    "group": "group",
    "prompt": "prompt",
    "method": "method",
    "model": "editor",
    "editor": "editor",
    "image": "image",
    "picture": "image",
    "source": "image",
    "scene": "scene",
    "category": "scene",
    "damage": "damage",
    "degradation": "damage",
    "repeat": "repeat",
    "run": "repeat",
}
"""What columns may be called, in small letters."""

_EMPTY: Final = frozenset(("", "/", "-", "–", "—", "na", "n/a", "nan", "null", "none"))
"""Cells without a value; a `/` is the paper's, where no truth exists."""

_ARROWS: Final = {"↑": True, "↓": False}

Line = tuple[int, dict[str, str]]
"""A line's number in the file, and its cells by column."""


def is_table(path: Path) -> bool:
    """Whether this is a table and no run."""
    return path.suffix.lower() in ENDINGS


def material_of_table(path: Path, metrics: Sequence[str] | None = None) -> Material:
    """What a file of scores says.

    Args:
        path: A CSV or TSV file with a line of column names.
        metrics: Names of the measures; all its columns by default.

    Raises:
        InputError: It cannot be read, or is not such a table.
    """
    columns, lines = _read(path)
    roles = {name: _CALLED[name.lower()] for name in columns if name.lower() in _CALLED}
    _once(path, roles)
    if not {"prompt", "method", "editor"} & set(roles.values()):
        raise InputError(
            f"{path.name} has no column 'prompt' or 'method'; its columns: {', '.join(columns)}. "
            "Expected one of them, and a column per metric (PSNR, SSIM, …)."
        )
    rest = [name for name in columns if name not in roles]
    measured = {name: found for name in rest if (found := _measure(name)) is not None}
    factors = _factors(path, lines, [name for name in rest if name not in measured])
    if not measured:
        raise InputError(
            f"{path.name} has no column of a metric; expected names as PSNR, SSIM, MUSIQ, or "
            f"mine↑. Its columns: {', '.join(columns)}."
        )
    wanted = _wanted(path, measured, metrics)
    return _Table(path, roles, measured, factors).material(lines, wanted)


class _Table:
    """How a file's columns are to be read."""

    def __init__(
        self,
        path: Path,
        roles: Mapping[str, str],
        measured: Mapping[str, Measure],
        factors: Sequence[str],
    ) -> None:
        self._path = path
        self._roles = roles
        self._measured = measured
        self._factors = factors
        self._per_picture = "image" in roles.values()
        self._methods: dict[str, Method] = {}
        self._told: dict[str, dict[str, str]] = {}
        self._pictures: dict[str, tuple[str, str]] = {}
        self._attempts: dict[tuple[str, str, int], int] = {}
        self._values: dict[Key, dict[int, float]] = {}
        self._averages = 0

    def material(self, lines: Sequence[Line], wanted: Sequence[str]) -> Material:
        above = {"group": "", "editor": ""}
        for number, cells in lines:
            told = {role: cells[name].strip() for name, role in self._roles.items()}
            # In a printed table a group is named once, in the first of its lines.
            for role, before in above.items() if told.get("prompt") else ():
                told[role] = above[role] = told.get(role, "") or before
            name = told.get("prompt") or told.get("method") or ""
            if name.lower().startswith(("avg", "average", "mean")):
                self._averages += 1
                continue
            self._take(number, cells, told, name)
        if not self._methods:
            raise InputError(f"{self._path.name} has no line of a prompt or method.")
        used = set(wanted)
        by_title = {measure.name: measure for measure in self._measured.values()}
        return Material(
            title=self._path.name,
            measures=m.in_columns(by_title[name] for name in wanted),
            methods=tuple(self._methods.values()),
            pictures=self._seen(),
            attempts=tuple(
                Attempt(method, source, repeat) for method, source, repeat in self._attempts
            ),
            values={key: told for key, told in self._values.items() if key[0] in used},
            factors=self._told,
            means=not self._per_picture,
            notes=self._notes(),
        )

    def _take(
        self, number: int, cells: Mapping[str, str], told: Mapping[str, str], name: str
    ) -> None:
        where = f"{self._path.name}, line {number}"
        prompted = bool(told.get("prompt"))
        editor = told.get("editor") or ("" if prompted else name)
        label = " · ".join(dict.fromkeys(word for word in (editor, name) if word))
        if not label:
            raise InputError(f"{where}: neither a prompt nor a method is named.")
        group = told.get("group", "") if prompted else ""
        method = Method(label, label, editor, name if prompted else "", group)
        factors = {n: cells[n].strip() for n in self._factors if cells[n].strip()}
        about = (factors or paper_factors(group)) if prompted else {}
        before = self._methods.setdefault(label, method), self._told.setdefault(label, about)
        if before != (method, about):
            raise InputError(
                f"{where}: {label} has another group or other factors than in the lines above: "
                f"{_words(method.group, about)}, and there {_words(before[0].group, before[1])}."
            )
        source = told.get("image", "")
        if self._per_picture and not source:
            raise InputError(f"{where}: no image is named.")
        if not self._per_picture:  # a scene's mean stands for its pictures
            source = " · ".join(told[role] for role in ("scene", "damage") if told.get(role))
        repeat = _whole(told.get("repeat", ""), where)
        if (label, source, repeat) in self._attempts:
            first = self._attempts[label, source, repeat]
            raise InputError(
                f"{where}: {label}{' of ' + source if source else ''} is there already, in line "
                f"{first}. Tell repeats apart by a column 'repeat'."
            )
        self._attempts[label, source, repeat] = number
        place = (told.get("scene", ""), told.get("damage", ""))
        known = self._pictures.get(source, place)
        if any(new and old and new != old for new, old in zip(place, known, strict=True)):
            raise InputError(
                f"{where}: {source} is of {_words(*place)}, and in the lines above of "
                f"{_words(*known)}. A picture has one scene and one damage."
            )
        self._pictures[source] = (known[0] or place[0], known[1] or place[1])
        for column, measure in self._measured.items():
            value = _number(cells[column], f"{where}, column {column}")
            if value is not None:
                key = (measure.name, label, source)
                self._values.setdefault(key, {})[repeat] = value

    def _seen(self) -> tuple[Picture, ...]:
        """The pictures; one has a truth where any score that compares with it is there."""
        compares = {one.name for one in self._measured.values() if one.kind in NEEDS_TRUTH}
        truths = {source for measure, _, source in self._values if measure in compares}
        return tuple(
            Picture(source, scene, damage, source in truths)
            for source, (scene, damage) in self._pictures.items()
        )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self._averages:
            notes.append(f"{counted(self._averages, 'line')} of averages left out: made anew here.")
        if not self._per_picture:
            notes.append(
                f"{self._path.name} is a table of means: no intervals, no tests, and group means "
                "are means of rounded means."
            )
        if not self._per_picture and len(self._pictures) > 1:
            notes.append("All pictures: the mean of the scenes' means, whatever their sizes.")
        return tuple(notes)


def _read(path: Path) -> tuple[list[str], list[Line]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except FileNotFoundError:
        raise InputError(f"{path} is not there.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a table: {error}") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise InputError(f"{path.name} is empty; expected a line of column names.")
    columns = [cell.strip() for cell in rows[0]]
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise InputError(f"{path.name} has the column {twice[0]!r} twice.")
    lines = []
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(columns):
            raise InputError(
                f"{path.name}, line {number} has {counted(len(row), 'cell')}, expected "
                f"{len(columns)}."
            )
        lines.append((number, dict(zip(columns, row, strict=True))))
    return columns, lines


def _words(*told: str | Mapping[str, str]) -> str:
    """What a line says of a prompt or a picture."""
    found = []
    for one in told:
        found += [one] if isinstance(one, str) else [f"{k}={v}" for k, v in one.items()]
    return ", ".join(word for word in found if word) or "nothing"


def _once(path: Path, roles: Mapping[str, str]) -> None:
    for role in set(roles.values()):
        mine = [name for name, told in roles.items() if told == role]
        if len(mine) > 1:
            raise InputError(f"{path.name}: columns {mine[0]!r} and {mine[1]!r} say the same.")


def _measure(title: str) -> Measure | None:
    """The measure that a column is called after; None where it is none."""
    arrow = _ARROWS.get(title[-1:])
    plain = title.rstrip("↑↓ ")
    try:
        name = metric_name(plain)
    except InputError:
        return None
    if name.family in names("metrics"):
        spec = metric_spec(str(name))
        if arrow is None or arrow == spec.higher_is_better:
            return m.measure_of(spec)
        raise InputError(
            f"column {title!r}: {m.title_of(spec)} is the better the "
            f"{'higher' if spec.higher_is_better else 'lower'}, the arrow says otherwise."
        )
    if arrow is None or not plain:
        return None
    return Measure(plain, plain, "no-reference", arrow)


def _factors(path: Path, lines: Sequence[Line], columns: Sequence[str]) -> list[str]:
    """Columns of words: what sets prompts apart. Numbers would be a metric that nobody knows."""
    for name in columns:
        for _, cells in lines:
            try:
                float(cells[name])
            except ValueError:
                continue
            raise m.unknown_direction(name, path.name)
    return list(columns)


def _wanted(
    path: Path, measured: Mapping[str, Measure], metrics: Sequence[str] | None
) -> list[str]:
    there = {measure.name: column for column, measure in measured.items()}
    if len(there) < len(measured):
        raise InputError(f"{path.name} has two columns of one metric: {', '.join(measured)}.")
    if metrics is None:
        return list(there)
    found = []
    for name in m.checked(metrics):
        ours = name if name in there else str(metric_name(name))
        if ours not in there:
            raise UnknownName(f"metric in {path.name}", name, there)
        found.append(ours)
    return found


def _whole(text: str, where: str) -> int:
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{where}: repeat {text!r} is no whole number.") from None


def _number(text: str, where: str) -> float | None:
    if text.strip().lower() in _EMPTY:
        return None
    try:
        found = float(text)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no number.") from None
    return None if math.isnan(found) else found
