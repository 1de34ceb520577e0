"""An exported dataset: its files, its columns, and records to and from rows.

The writing half is the package `dataset`, the reading half the layout `own`; what both must agree
on is here. A row is one record of a chain, and line 0 is the chain's source. Every field of a
record has a column, so a row says all; where a value does not fit its column (a seed beyond 64
bits), the whole record stands in `exact`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from convergebench.chain import Call, ChainHeader, FrameRef, Settings, Step
from convergebench.cycle import Record
from convergebench.frame import EXTENSIONS
from convergebench.store.reading import RunInfo

if TYPE_CHECKING:
    import polars as pl

FORMAT: Final = 1
FOLDER: Final = "convergebench"
MARKER: Final = f"{FOLDER}/dataset.json"
SUITE: Final = f"{FOLDER}/suite.json"
SOURCES: Final = f"{FOLDER}/sources.json"
HEADERS: Final = f"{FOLDER}/headers.jsonl"
SCORES: Final = "scores/scores.parquet"
SUMS: Final = "SHA256SUMS"
TARS: Final = "webdataset"
TABLES: Final = ("frames", "superseded", "sources")
"""Tables with pictures, each with shards of its own; `patches` is one more, and is not read."""

SOURCE: Final = "source"
"""The outcome of line 0."""

LEFT_OUT: Final = (
    "call.session and call.task, which may hold addresses that open for whoever has them",
    "call.ledger, ledger.jsonl, sessions.jsonl and spec.json: of the machine that made the run",
    "imports/ and judgements/: what an import has read, and answers of judges",
    "failures/, trial/, self-evaluation.json, findings.json and report/: made again by their "
    "commands",
)
"""What of a run is not in a dataset made from it."""

_LARGEST: Final = {"Int32": 2**31, "Int64": 2**63}
_SETTING: Final = "setting_"
_SCORE: Final = "score:"


class Marker(Record):
    """`convergebench/dataset.json`: what this folder is, and the run it was made from."""

    format: int = FORMAT
    name: str
    licence: str
    convergebench: str
    run: RunInfo
    form: str
    rows: dict[str, int]
    chains: int
    scores: int | None
    cleaned: int
    left_out: tuple[str, ...] = LEFT_OUT


@dataclass(frozen=True)
class Column:
    """A column: its name, its type (of polars; Image, Texts and Numbers are ours), its meaning."""

    name: str
    kind: str
    about: str


def _settings() -> list[Column]:
    kinds = {"phrasing": "Int32", "temperature": "Float64"}
    said = "setting of the chain, one of the axes of the run"
    names = Settings.model_fields
    return [Column(f"{_SETTING}{name}", kinds.get(name, "String"), said) for name in names]


PICTURE: Final = (
    Column("image", "Image", "the picture, its bytes as received; null where none came"),
    Column("raw", "Binary", "bytes that came and are no readable picture"),
)
FILE: Final = (
    Column("sha256", "String", "SHA-256 of the bytes; the frame's name in a run"),
    Column("format", "String", "file format, as the bytes say"),
    Column("bytes", "Int64", "size of the file"),
    Column("width", "Int32", "width that came back, in pixels"),
    Column("height", "Int32", "height that came back, in pixels"),
    Column("notes", "Texts", "what decoding found: alpha, a colour profile, an animation"),
)
FRAMES: Final = (
    *PICTURE,
    Column("chain", "String", "the chain's name"),
    Column("line", "Int32", "which record of the chain this is; 0 is its source"),
    Column("suite", "String", "suite and version"),
    Column("source", "String", "name of the source picture"),
    Column("cycle", "String", "cycle and version"),
    Column("kind", "String", "kind of the cycle"),
    Column("editor", "String", "editor, as it was asked for"),
    Column("editor_version", "String", "version of the editor"),
    *_settings(),
    Column("repeat", "Int32", "which repeat of the chain, from 0"),
    Column("step", "Int32", "which frame of the chain; 0 is the source"),
    Column("round", "Int32", "which round of the cycle the step belongs to"),
    Column("edit", "Int32", "which edit of the cycle it is, from 1"),
    Column("region", "Numbers", "left, top, right, bottom of what the edit may touch, of 1"),
    Column("home", "String", "what the frame should equal (source, truth); null where unknown"),
    Column("home_flip", "String", "home is flipped: horizontal or vertical"),
    Column("home_quarters", "Int32", "home is turned clockwise by so many quarters"),
    Column("home_grey", "Boolean", "home is the grey version"),
    Column("home_content_only", "Boolean", "only the content can be compared with home"),
    Column("expected_count", "Int32", "objects that should have been added by now"),
    Column("outcome", "String", "source; edited; or the failure: refused, no-image, malformed …"),
    Column("detail", "String", "the reason, where the outcome is a failure"),
    Column("prompt", "String", "what was asked"),
    Column("inputs", "Texts", "SHA-256 of the pictures that were sent"),
    Column("seed", "Int64", "the seed that was sent"),
    Column("attempts", "Int32", "calls made for this step; 0 where not known"),
    Column("again", "Boolean", "the answer was lost and the step was made once more"),
    Column("model", "String", "the model that the provider says has answered"),
    Column("request_id", "String", "the provider's name of the call"),
    Column("effective_prompt", "String", "the prompt that was really used, where it is told"),
    Column("parameters", "String", "what was sent besides prompt and pictures, as JSON"),
    Column("usage", "String", "amounts as the provider counts them, as JSON"),
    Column("cost", "Float64", "dollars"),
    Column("cost_basis", "String", "where the cost comes from"),
    Column("reasoning", "String", "summary of the model's reasoning"),
    Column("caveats", "Texts", "what could not be switched off and may move a number"),
    Column("requested_size", "String", "the size that was asked for"),
    Column("requested_format", "String", "the file format that was asked for"),
    Column("latency", "Float64", "seconds that the answering call took"),
    Column("started", "String", "when the step was begun (UTC)"),
    Column("seconds", "Float64", "seconds it took, retries and waits included"),
    *FILE,
    Column("exact", "String", "the whole record as JSON, where a column cannot hold it"),
)
"""Columns of `frames` and `superseded`, in order; scores of frames follow."""

SOURCE_COLUMNS: Final = (
    *PICTURE,
    Column("source", "String", "name of the source"),
    Column("role", "String", "source, or truth: what a degraded source should look like"),
    Column("licence", "String", "licence of the picture"),
    Column("category", "String", "what sort of picture it is"),
    Column("description", "String", "what it shows"),
    Column("origin", "String", "who made it, where that is told"),
    Column("address", "String", "where it can be had, where that is told"),
    Column("drawn", "String", "the scene that our own code drew, where it is no photograph"),
    *FILE,
)
SCORE_COLUMNS: Final = (
    Column("chain", "String", "the chain's name; floor--SOURCE for pairs of sources"),
    Column("step", "Int32", "the frame; 0 is the source"),
    Column("metric", "String", "what measured it"),
    Column("version", "String", "version of the metric"),
    Column("against", "String", "what it was compared with"),
    Column("where", "String", "which part of the picture was measured"),
    Column("value", "Float64", "the score; null where there is none"),
    Column("note", "String", "why it is null, or what to know of it"),
)


def score_column(metric: str, version: str, against: str, where: str) -> Column:
    """The column that a score has beside the frames."""
    name = f"{_SCORE}{metric}@{version}:{against}:{where}"
    return Column(name, "Float64", f"{metric}, version {version}, against {against}, {where}")


def schema(columns: Sequence[Column]) -> dict[str, pl.DataType]:
    """The columns' types in polars."""
    import polars as pl

    ours: dict[str, pl.DataType] = {
        "Image": pl.Struct({"bytes": pl.Binary(), "path": pl.String()}),
        "Texts": pl.List(pl.String()),
        "Numbers": pl.List(pl.Float64()),
    }
    return {c.name: ours.get(c.kind) or getattr(pl, c.kind)() for c in columns}


def ending(kind: str | None) -> str:
    """The ending of a picture's file, by its format."""
    return EXTENSIONS.get(kind or "", ".bin")


def file_row(ref: FrameRef | None) -> dict[str, Any]:
    """The columns that describe a file."""
    if ref is None:
        return dict.fromkeys(column.name for column in FILE)
    return {**ref.model_dump(exclude={"notes"}), "notes": list(ref.notes)}


def step_row(step: Step) -> dict[str, Any]:
    """A record's own columns, with all of it in `exact` where they cannot hold it."""
    call = step.call
    row = {
        "step": step.step,
        "outcome": step.outcome,
        "detail": step.detail,
        "prompt": step.prompt,
        "inputs": list(step.inputs),
        "seed": step.seed,
        "attempts": step.attempts,
        "again": step.again,
        "model": call.model,
        "request_id": call.request_id,
        "effective_prompt": call.effective_prompt,
        "parameters": _json(call.parameters),
        "usage": _json(call.usage),
        "cost": call.cost,
        "cost_basis": call.basis,
        "reasoning": call.reasoning,
        "caveats": list(call.caveats),
        "requested_size": call.size,
        "requested_format": call.format,
        "latency": call.latency,
        "started": step.started,
        "seconds": step.seconds,
        **file_row(step.frame),
        "exact": None,
    }
    for column in FRAMES:
        value, limit = row.get(column.name), _LARGEST.get(column.kind)
        if limit and isinstance(value, int) and not -limit <= value < limit:
            row[column.name] = None
    try:
        same = row_step(row) == step
    except ValueError:  # a number that had to be left out
        same = False
    return row if same else {**row, "exact": step.model_dump_json()}


def row_step(row: Mapping[str, Any]) -> Step:
    """The record that a row was made from. Raises ValidationError, which is a ValueError."""
    if row.get("exact") is not None:
        return Step.model_validate_json(row["exact"])
    frame = None
    if row["sha256"] is not None:
        frame = FrameRef(**{c.name: row[c.name] for c in FILE} | {"notes": row["notes"] or ()})
    call = Call(
        model=row["model"],
        request_id=row["request_id"],
        effective_prompt=row["effective_prompt"],
        parameters=_unjson(row["parameters"]),
        usage=_unjson(row["usage"]),
        cost=row["cost"],
        basis=row["cost_basis"],
        reasoning=row["reasoning"],
        caveats=tuple(row["caveats"] or ()),
        size=row["requested_size"],
        format=row["requested_format"],
        latency=row["latency"],
    )
    return Step(
        step=row["step"],
        outcome=row["outcome"],
        prompt=row["prompt"],
        inputs=tuple(row["inputs"] or ()),
        seed=row["seed"],
        frame=frame,
        detail=row["detail"],
        attempts=row["attempts"],
        call=call,
        started=row["started"],
        seconds=row["seconds"],
        again=row["again"],
    )


def header_row(header: ChainHeader) -> dict[str, Any]:
    """The columns that all rows of a chain share."""
    key = header.chain
    settings = key.settings.model_dump(mode="json")
    return {
        "chain": key.id,
        "suite": key.suite,
        "source": key.source,
        "cycle": key.cycle,
        "editor": key.editor,
        "editor_version": header.editor_version,
        **{f"{_SETTING}{name}": value for name, value in settings.items()},
        "repeat": key.repeat,
    }


def grouped(name: str) -> tuple[str, str]:
    """The object in a sample's JSON that a column is in, if any, and its name there."""
    for group, prefix in (("settings", _SETTING), ("scores", _SCORE)):
        if name.startswith(prefix):
            return group, name.removeprefix(prefix)
    return "", name


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the JSON of a WebDataset's sample: settings and scores as objects, no bytes."""
    plain = {name: value for name, value in row.items() if name not in ("image", "raw")}
    found: dict[str, Any] = {"settings": {}, "scores": {}}
    for name, value in plain.items():
        group, short = grouped(name)
        # JSON has no infinity (PSNR of equal pictures): scores.parquet has it.
        if group != "scores" or (value is not None and math.isfinite(value)):
            (found[group] if group else found)[short] = value
    if found.get("outcome") == SOURCE:  # said by step 0, and no outcome to other readers
        del found["outcome"]
    return {name: value for name, value in found.items() if value not in ({}, None)}


def untold(content: Mapping[str, Any]) -> dict[str, Any]:
    """The row that a sample's JSON was made from, as far as a record needs it."""
    return {column.name: content.get(column.name) for column in FRAMES}


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)


def _unjson(text: str | None) -> Any:
    return json.loads(text) if text else {}
