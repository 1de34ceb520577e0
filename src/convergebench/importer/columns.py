"""What the columns of somebody's score table mean.

A column is what the user says it is; else what `SYNONYMS` or the metrics' names say. Two columns
for one field, or none for a necessary one, are refused: the user chooses, nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from convergebench.cycle import CycleKind, Record
from convergebench.errors import ConvergeBenchError, ImportProblem, explain
from convergebench.importer.found import Wishes
from convergebench.metric import MetricSpec
from convergebench.registry import metric_name, metric_spec, names

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "editor": ("editor", "editor_name", "model", "model_name", "method", "system"),
    "source": (
        "source", "source_id", "source_image", "source_name", "image", "image_file", "image_id",
        "image_name", "img", "file", "file_name", "filename", "picture",
    ),
    "cycle": ("cycle", "cycle_name", "edit_pair", "edit", "edit_name", "task"),
    "step": ("step", "step_index", "step_number", "iteration", "iter", "turn", "generation"),
    "round": ("round", "round_index", "round_number", "rounds", "n"),
    "repeat": ("repeat", "rep", "run", "sample", "trial"),
    "prompt": ("prompt", "edit_prompt", "instruction"),
    "kind": ("kind", "cycle_kind"),
    "source_category": ("source_category", "source_type", "image_category", "image_type"),
    "cycle_category": ("cycle_category", "cycle_type", "edit_category", "edit_type"),
    "metric": ("metric", "metric_name"),
    "value": ("value", "metric_value", "score"),
    "against": ("against", "compared_with"),
}  # fmt: skip
"""Our fields, and what others call them. `seed` is no repeat, and `category` could be either's."""

METRIC_SYNONYMS: Final[Mapping[str, str]] = {
    "clip-i": "clip",
    "clip-image-similarity": "clip",
    "clip-sim": "clip",
    "clip-similarity": "clip",
    "msssim": "ms-ssim",
    "psnr-db": "psnr",
}
"""What others call metrics, beyond `registry.METRIC_ALIASES`; `clip-score` compares with a text."""

POSSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    "clip": (-1.0, 1.0),
    "clip-b32": (-1.0, 1.0),
    "lpips": (0.0, float("inf")),
    "lpips-vgg": (0.0, float("inf")),
    "ms-ssim": (-1.0, 1.0),
    "psnr": (0.0, float("inf")),
    "ssim": (-1.0, 1.0),
    "ssim-rgb": (-1.0, 1.0),
    "ssim-uniform": (-1.0, 1.0),
}
"""What values can be at all: others are kept, counted and told."""


def plain(column: str) -> str:
    """A column's name without capitals, units in brackets and arrows: `PSNR (dB) ↑` is `psnr`."""
    bare = re.sub(r"\(.*?\)|\[.*?\]|[↑↓]", "", column)
    return re.sub(r"[\s.\-/]+", "_", bare.strip().lower()).strip("_")


def our_metric(text: str) -> str | None:
    """Our name of the metric that others call so, or None."""
    word = plain(text).replace("_", "-")
    for name in (text.strip(), METRIC_SYNONYMS.get(word, word)):
        try:
            parsed = metric_name(name)
        except ConvergeBenchError:  # a comma in it: no metric's name
            continue
        if parsed.family in names("metrics") and not parsed.model and not parsed.options:
            return parsed.family
    return None


def spec_of(metric: str) -> MetricSpec | None:
    """The card of a metric, or None where it is not ours or cannot be loaded."""
    try:
        return metric_spec(metric)
    except ConvergeBenchError:
        return None


@dataclass(frozen=True)
class Columns:
    """Which column is what.

    Attributes:
        fields: Our field to the table's column.
        metrics: Our metric to the table's column, or in long form to the metric column's cell.
        unused: Columns that mean nothing to us.
    """

    fields: Mapping[str, str]
    metrics: Mapping[str, str]
    unused: tuple[str, ...] = ()

    @property
    def long(self) -> bool:
        """Whether there is one row per metric, not one column."""
        return "metric" in self.fields

    @property
    def place(self) -> str:
        """The field that says where in its chain a row is: `step` or `round`."""
        return "round" if "round" in self.fields else "step"


def find_columns(columns: Sequence[str], wishes: Wishes) -> Columns:
    """Say what each column is. Raises ImportProblem where that cannot be known."""
    asked = _asked(columns, wishes)
    known = [column for column in columns if column not in wishes.drop]
    fields = dict(asked)
    taken = {*asked.values(), *wishes.metrics.values()}
    for name, words in SYNONYMS.items():
        if name in fields:
            continue
        found = [c for c in known if c not in taken and plain(c) in words]
        if len(found) > 1:
            raise ImportProblem(
                f"columns {_listed(found)} could all be the {name}. Say which with "
                f"--column {name}={found[0]}, or leave the others out with --drop {found[-1]}."
            )
        if found:
            fields[name] = found[0]
    if "step" in fields and "round" in fields:
        fields = _one_place(fields, asked)
    long = "metric" in fields and "value" in fields
    if not long:
        _no_half(asked)
        fields = {k: v for k, v in fields.items() if k not in ("metric", "value", "against")}
    rest = [c for c in known if c not in fields.values()]
    metrics = {_called(name): told for name, told in wishes.metrics.items()}
    if long:
        wide = [c for c in rest if our_metric(c)]
        if wide:
            raise ImportProblem(
                f"the table has metric and value columns ({fields['metric']!r}, "
                f"{fields['value']!r}) and also columns of metrics ({_listed(wide)}). Leave one "
                f"kind out with --drop."
            )
    else:
        metrics = _metric_columns(columns, rest, metrics)
    used = {*fields.values(), *metrics.values()}
    unused = tuple(c for c in columns if c not in used)
    _complete(columns, fields, metrics, long, wishes)
    return Columns(fields, metrics, unused)


def looks_like_scores(columns: Iterable[str]) -> bool:
    """Whether a header has an editor or a source, and metrics: wide or long."""
    words = {plain(column) for column in columns}
    who = words & {*SYNONYMS["editor"], *SYNONYMS["source"]}
    long = words & set(SYNONYMS["metric"]) and words & set(SYNONYMS["value"])
    return bool(who) and bool(long or any(our_metric(column) for column in columns))


def _asked(columns: Sequence[str], wishes: Wishes) -> dict[str, str]:
    """What the user said about columns, checked against the table."""
    for name in wishes.columns:
        if name not in SYNONYMS:
            raise ImportProblem(f"no field called {name!r}.{_near(name, SYNONYMS)}")
    for name, column in wishes.columns.items():
        if column not in columns:
            raise ImportProblem(
                f"{name} is to be read from column {column!r}, which the table has not."
                f"{_near(column, columns)}"
            )
    for column in wishes.drop:
        if column not in columns:
            raise ImportProblem(f"no column {column!r} to leave out.{_near(column, columns)}")
        if column in wishes.columns.values() or column in wishes.metrics.values():
            raise ImportProblem(f"column {column!r} is both asked for and left out")
    return dict(wishes.columns)


def _one_place(fields: dict[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Only one of step and round: the one that was asked for."""
    told = [name for name in ("step", "round") if name in asked]
    if len(told) != 1:
        raise ImportProblem(
            f"columns {fields['round']!r} (round) and {fields['step']!r} (step) both say where in "
            f"its chain a row is. Say which counts with --column round={fields['round']} or "
            f"--column step={fields['step']}."
        )
    return {k: v for k, v in fields.items() if k not in ("step", "round") or k == told[0]}


def _no_half(asked: Mapping[str, str]) -> None:
    for name in ("metric", "value", "against"):
        if name in asked:
            raise ImportProblem(
                f"column {asked[name]!r} was given as the {name}, but one row per metric takes "
                "both a metric and a value column: --column metric=… --column value=…"
            )


def _metric_columns(
    columns: Sequence[str], rest: Sequence[str], metrics: dict[str, str]
) -> dict[str, str]:
    """The metrics asked for and those found by name among the other columns."""
    for name, column in metrics.items():
        if column not in columns:
            raise ImportProblem(
                f"metric {name} is to be read from column {column!r}, which the table has not."
                f"{_near(column, columns)}"
            )
    found: dict[str, list[str]] = {}
    for column in rest:
        ours = our_metric(column)
        if column not in metrics.values() and ours and ours not in metrics:
            found.setdefault(ours, []).append(column)
    for name, several in found.items():
        if len(several) > 1:
            raise ImportProblem(
                f"columns {_listed(several)} could all be {name}. Say which with "
                f"--metric {name}={several[0]}, or leave the others out with --drop {several[-1]}."
            )
    # In the order of the table, so that the same table always gives the same rows.
    all_of_them = {**{name: told for name, (told,) in found.items()}, **metrics}
    order = {column: index for index, column in enumerate(columns)}
    return dict(sorted(all_of_them.items(), key=lambda pair: order[pair[1]]))


def _complete(
    columns: Sequence[str],
    fields: Mapping[str, str],
    metrics: Mapping[str, str],
    long: bool,
    wishes: Wishes,
) -> None:
    there = f"The columns are: {_listed(columns)}."
    if "step" not in fields and "round" not in fields:
        raise ImportProblem(
            "no column says where in its chain a row is. Name it with --column round=COLUMN or "
            f"--column step=COLUMN. {there}"
        )
    for name in ("editor", "source"):
        if name not in fields and getattr(wishes, name) is None:
            raise ImportProblem(
                f"no column says which {name} a row is of. Name it with --column {name}=COLUMN, "
                f"or give one name for all with --{name} NAME. {there}"
            )
    if not (metrics or long):
        raise ImportProblem(
            "no column is a metric. Name them with --metric psnr=COLUMN, or, where each row has "
            f"one metric, with --column metric=COLUMN --column value=COLUMN. {there}"
        )


def _called(name: str) -> str:
    """A metric as asked for: our name where it is one, else as it is."""
    return our_metric(name) or name


def strange_metrics(metrics: Iterable[str]) -> list[str]:
    """A note on each metric that is none of ours."""
    return [
        f"Metric {name!r} is none of ours: kept under that name, as compared with home."
        f"{_near(name, names('metrics'), silent=True)}"
        for name in metrics
        if our_metric(name) is None
    ]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _near(name: str, known: Iterable[str], silent: bool = False) -> str:
    """Near matches as a further sentence; without any, all there are."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    if near:
        return f" Did you mean {' or '.join(near)}?"
    return "" if silent else f" Known: {', '.join(known)}."


# -- the mapping file -------------------------------------------------------------------------


class MapFile(Record):
    """A mapping file: `Wishes` that describe a table, all optional."""

    columns: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, str] = Field(default_factory=dict)
    floors: dict[str, float] = Field(default_factory=dict)
    editor: str | None = None
    source: str | None = None
    cycle: str | None = None
    kind: CycleKind | None = None
    prompts: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    first: int = 0
    steps: int | None = None
    keep_constant: bool = False
    conflicts: Literal["refuse", "repeat"] = "refuse"
    origin: str | None = None
    licence: str = ""


def read_mapping(path: Path) -> dict[str, Any]:
    """The `Wishes` that a mapping file (`--map FILE.toml`) has. Raises ImportProblem."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportProblem(f"cannot read {path} ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ImportProblem(f"{path} is not valid TOML: {error}") from error
    known = MapFile.model_fields
    for key in told:
        if key not in known:
            raise ImportProblem(f"{path}: there is no key {key!r}.{_near(key, known)}")
    try:
        mapping = MapFile.model_validate(told)
    except ValidationError as error:
        raise ImportProblem(f"{path}: {explain(error)}") from error
    for name in mapping.columns:
        if name not in SYNONYMS:
            raise ImportProblem(f"{path}: no field called {name!r}.{_near(name, SYNONYMS)}")
    return {key: getattr(mapping, key) for key in told}
