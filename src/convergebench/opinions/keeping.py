"""Answers in a run: rows `human/…` of its score table, and every answer in `ratings/NAME.jsonl`.

A row's version is STUDY:RATER, so every rater's answer has a key of its own. Practice, attention
and repeated items become no rows; the file has them all, so that a run carries its whole study.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from convergebench.chain import Chain
from convergebench.comparisons import HUMAN
from convergebench.errors import InputError, StoreDamaged, StoreMismatch
from convergebench.opinions.answers import PREFERENCE, SCHEMA, checked, empty
from convergebench.scoretable import SCORE_COLUMNS
from convergebench.store import RunStore
from convergebench.table import Table
from convergebench.wording import shown

FOLDER: Final = "ratings"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.@+,=-]{0,199}")


@dataclass(frozen=True)
class Kept:
    """What was added to a run.

    Attributes:
        run: The run directory.
        file: Where all answers are now.
        answers: Answers in that file.
        added: Score rows that are new; `known` were there before.
        elsewhere: Answers about chains that are not in this run.
    """

    run: str
    file: str
    answers: int
    added: int
    known: int
    elsewhere: int = 0

    @property
    def table(self) -> Table:
        """One line."""
        head = ("run", "file", "answers", "new score rows", "there before", "of other runs")
        row = (self.run, self.file, self.answers, self.added, self.known, self.elsewhere)
        return Table(f"{self.run}: human answers", head, [row])

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "run": self.run, "file": self.file, "answers": self.answers, "added": self.added,
            "known": self.known, "elsewhere": self.elsewhere,
        }  # fmt: skip


def score_rows(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers as rows of a score table."""
    pair = pl.col("question") == PREFERENCE
    mine = answers.filter((pl.col("kind") == "item") & pl.col("value").is_not_null())
    told = mine.select(
        "chain", "step", "question", "study", "rater", "value", "comment", "other_chain"
    )
    # One row for each side of a pair; where both are told they fall together below.
    sides = mine.filter(pair).select(
        pl.col("other_chain").alias("chain"), "step", "question", "study", "rater",
        (1 - pl.col("value")).alias("value"), "comment", pl.col("chain").alias("other_chain"),
    )  # fmt: skip
    rows = pl.concat([told, sides]).select(
        "chain",
        pl.col("step").cast(pl.Int32()),
        metric=pl.lit(HUMAN) + pl.col("question"),
        version=pl.col("study") + pl.lit(":") + pl.col("rater"),
        against=pl.when(pair).then("other_chain").otherwise(pl.lit("none")),
        where=pl.lit("all"),
        value="value",
        note="comment",
    )
    return rows.unique(list(SCORE_COLUMNS)[:6], keep="first", maintain_order=True)


def keep_in_run(answers: pl.DataFrame, run: RunStore, *, partly: bool = False) -> Kept:
    """Add a study's answers to the run they are about. Twice is as good as once.

    Args:
        answers: Of one study.
        run: The run.
        partly: Whether the study shows pictures of other runs as well, which are left out.

    Raises:
        StoreMismatch: The answers are about chains that the run does not have.
        InputError: There is no answer, or the study's name cannot be that of a file.
        StoreBusy: Another process is adding scores.
    """
    answers = checked(answers)
    names = answers["study"].unique(maintain_order=True).to_list()
    if len(names) != 1:
        raise InputError(
            "there is no answer to keep yet."
            if not names
            else f"answers of one study are kept at a time, got {shown(names)}."
        )
    if not _NAME.fullmatch(names[0]):
        raise InputError(f"a study called {names[0]!r} cannot be kept as a file of that name.")
    mine, elsewhere = _of_run(answers, run, partly=partly)
    with run.writing("score"):
        rows = score_rows(mine)
        known = run.scores().filter(pl.col("metric").str.starts_with(HUMAN))
        same = list(SCORE_COLUMNS)
        new = rows.join(known, on=same, how="anti", nulls_equal=True, maintain_order="left")
        file, total = _write_answers(run, names[0], mine)
        if new.height:
            run.add_scores(new)
    return Kept(run.name, file, total, new.height, rows.height - new.height, elsewhere)


def _of_run(answers: pl.DataFrame, run: RunStore, *, partly: bool) -> tuple[pl.DataFrame, int]:
    """The answers about chains of this run, and how many others there are."""
    steps = {
        (chain.key.id, step) for chain in run.chains() for step in (*chain.held, *chain.reached)
    }
    earnest = pl.col("kind").is_in(["item", "repeat"])
    frames = pl.struct("chain", "step").map_elements(
        lambda told: (told["chain"], told["step"]) in steps, return_dtype=pl.Boolean()
    )
    others = pl.struct("other_chain", "step").map_elements(
        lambda told: told["other_chain"] is None or (told["other_chain"], told["step"]) in steps,
        return_dtype=pl.Boolean(),
    )
    here = answers.with_columns(here=~earnest | (frames & others))
    strange = here.filter(~pl.col("here"))
    if strange.height and (not partly or here.filter(earnest & pl.col("here")).is_empty()):
        raise StoreMismatch(
            f"{run.place} is not the run that was rated: it has no "
            f"{shown(strange['chain'].unique(maintain_order=True), 2)}. Give the run that the "
            "study was made from."
        )
    return here.filter(pl.col("here")).drop("here"), strange.height


def _write_answers(run: RunStore, study: str, answers: pl.DataFrame) -> tuple[str, int]:
    """Write all answers, those kept before included, whole and by rename."""
    name = f"{FOLDER}/{study}.jsonl"
    path = run.path / name
    # Not `splitlines`: a comment may have separators in it that only that takes for line ends.
    lines = dict.fromkeys(path.read_text("utf-8").split("\n") if path.is_file() else [])
    lines |= dict.fromkeys(
        json.dumps(row, ensure_ascii=False, allow_nan=False) for row in answers.to_dicts()
    )
    lines.pop("", None)
    text = "".join(f"{line}\n" for line in lines)
    if not path.is_file() or path.read_text("utf-8") != text:
        run.write_file(name, text.encode())
    return name, len(lines)


def kept_studies(run: RunStore) -> list[Path]:
    """The files of answers that a run has."""
    return sorted((run.path / FOLDER).glob("*.jsonl"))


def has_answers(run: RunStore, scores: pl.DataFrame) -> bool:
    """Whether a run has people's answers."""
    return bool(kept_studies(run)) or scores["metric"].str.starts_with(HUMAN).any()


def answers_in(run: RunStore, scores: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every answer in a run: its files, and score rows of studies that have no file.

    Raises:
        StoreDamaged: A file cannot be read.
    """
    parts = [_read(path) for path in kept_studies(run)]
    studies = {name for part in parts for name in part["study"].unique()}
    rows = (run.scores() if scores is None else scores).filter(
        pl.col("metric").str.starts_with(HUMAN)
    )
    rows = rows.with_columns(
        study=pl.col("version").str.replace(r":[^:]*$", ""),
        rater=pl.col("version").str.extract(r"([^:]*)$"),
    ).filter(~pl.col("study").is_in(sorted(studies)))
    if rows.height:
        parts.append(_from_rows(rows, run))
    return pl.concat(parts) if parts else empty()


def _read(path: Path) -> pl.DataFrame:
    try:
        told = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        return checked(pl.DataFrame(told, schema=SCHEMA, orient="row"), str(path))
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise StoreDamaged(f"{path} cannot be read: {error}") from error


def _from_rows(rows: pl.DataFrame, run: RunStore) -> pl.DataFrame:
    names = _named(run.chains(), run)
    table = rows.filter(pl.col("chain").is_in(list(names))).with_columns(
        question=pl.col("metric").str.strip_prefix(HUMAN),
        other_chain=pl.when(pl.col("against") == "none").then(None).otherwise("against"),
        comment="note",
    )
    for column, at in (("image", 0), ("method", 1)):
        here = {chain: name[at] for chain, name in names.items()}
        table = table.with_columns(pl.col("chain").replace_strict(here).alias(column))
    method = {chain: name[1] for chain, name in names.items()}
    table = table.with_columns(
        other_method=pl.col("other_chain").replace_strict(method, default=None)
    )
    known = [name for name in SCHEMA if name in table.columns]
    return checked(table.select(known), f"the score table of {run.place}")


def _named(chains: list[Chain], run: RunStore) -> dict[str, tuple[str, str]]:
    """Each chain's picture and method, as far as its key tells them: as the rating app does it."""
    cycles: dict[str, set[str]] = {}
    for chain in chains:
        cycles.setdefault(chain.key.editor, set()).add(chain.key.cycle)
    titles = {cycle.name: cycle.title for cycle in run.suite.cycle if cycle.readers != "unprompted"}
    found = {}
    for chain in chains:
        key = chain.key
        title = titles.get(key.cycle.partition("@")[0], "") if len(cycles[key.editor]) > 1 else ""
        words = (key.editor, title, key.settings.label)
        found[key.id] = (key.source, " · ".join(word for word in words if word))
    return found
