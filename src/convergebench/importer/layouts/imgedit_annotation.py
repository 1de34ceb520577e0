"""ImgEdit's annotations: sessions as rows of turns, from Parquet, JSON lines or JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from convergebench.errors import ImportProblem
from convergebench.importer.found import Look
from convergebench.importer.layouts.turns import Turn, input_turn

ENDINGS: Final = (".parquet", ".jsonl", ".json")
_TASK: Final = re.compile(r"(content|version)[-_ ](memory|understanding|backtracking)", re.I)


@dataclass
class Row:
    """One annotated session, in either shape.

    Attributes:
        key: Its name in the annotation.
        task: Which of the three tasks, where names say so.
        source: The first input, as annotated.
        prompts: The instructions, in order.
        inputs: The turns' inputs as annotated; empty in the benchmark.
        outputs: The turns' outputs as annotated; empty in the benchmark.
        overall: An instruction for the whole session (a first turn without pictures).
    """

    key: str
    task: str
    source: str = ""
    prompts: list[str | None] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    overall: str = ""

    def turn(self, number: int) -> Turn:
        """What is recorded with a turn."""
        about = Turn()
        if self.outputs:
            about = input_turn(self.inputs[number - 1], number, self.outputs, self.source)
        parameters = dict(about.parameters)
        if self.overall:
            parameters["session_prompt"] = self.overall
        return replace(about, prompt=self.prompts[number - 1], parameters=parameters)


def task_of(text: str) -> str:
    """Which of ImgEdit's three tasks a path names, or nothing."""
    match = _TASK.search(text)
    return f"{match[1]}-{match[2]}".lower() if match else ""


def stem_of(path: str) -> str:
    """A file's name without its ending."""
    return os.path.splitext(path.rpartition("/")[2])[0]


def entries(look: Look, path: str) -> Iterator[tuple[str, Any]]:
    """The entries of an annotation file, with their keys. Raises ImportProblem."""
    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        import polars as pl

        try:
            file = look.place(path).path
            if "data" not in pl.read_parquet_schema(file):  # a part of single turns
                return
            rows = pl.read_parquet(file, columns=["data"])["data"].to_list()
        except (pl.exceptions.PolarsError, OSError) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ImportProblem(f"{path} is not a readable Parquet file ({told})") from error
        yield from ((str(number), row) for number, row in enumerate(rows, 1))
    elif ending == ".jsonl":
        with open(look.place(path).path, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        yield str(number), json.loads(line)
                    except (ValueError, RecursionError) as error:
                        told = f"{path} line {number} is not valid JSON: {error}"
                        raise ImportProblem(told) from error
    else:
        content = look.json(path)
        if isinstance(content, dict):
            yield from content.items()
        elif isinstance(content, list):
            yield from ((str(number), entry) for number, entry in enumerate(content, 1))


def row_of(key: str, entry: Any, path: str) -> Row | None:
    """An annotated session, or None when the entry is none."""
    task = task_of(path)
    turns = entry.get("data") if isinstance(entry, dict) else entry
    if isinstance(turns, list) and turns and all(isinstance(turn, dict) for turn in turns):
        row = Row(key, task or task_of(_first(turns[-1].get("output_images"))))
        for turn in turns:
            given, made = _first(turn.get("input_images")), _first(turn.get("output_images"))
            prompt = turn.get("prompt")
            prompt = prompt if isinstance(prompt, str) else None
            if not made:
                row.overall = " ".join(filter(None, (row.overall, prompt)))
                continue
            row.source = row.source or given
            row.inputs.append(given)
            row.outputs.append(made)
            row.prompts.append(prompt)
        return row if row.outputs else None
    if isinstance(entry, dict) and isinstance(entry.get("turn1"), str):
        named = entry.get("id") or entry.get("image") or ""
        row = Row(str(entry.get("key", key)), task, str(named))
        while isinstance(prompt := entry.get(f"turn{len(row.prompts) + 1}"), str):
            row.prompts.append(prompt)
        return row
    return None


def _first(value: Any) -> str:
    found = value[0] if isinstance(value, list) and value else value
    return found if isinstance(found, str) else ""
