"""A study's answers as a table: one row per picture and question, as `opinions` reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convergebench.ratings.session import LETTERS
from convergebench.ratings.storage import Answer, Answers
from convergebench.ratings.study import SPECIAL, Item, Study, open_study
from convergebench.table import FORMULA

if TYPE_CHECKING:
    import polars as pl


def answers(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """Every answer of a study, practice and attention items included.

    Raises:
        StoreError: The folder is no study, or its answers cannot be read.
    """
    study = open_study(folder)
    with Answers.open(Path(folder), study.name, study.created, study.plan) as stored:
        return table(study, stored.all())


def table(study: Study, stored: list[Answer]) -> pl.DataFrame:
    """Answers as rows of `opinions.answers.SCHEMA`; of a pair, one row per side."""
    import polars as pl

    from convergebench.opinions.answers import SCHEMA

    sessions = {one.id: one.items for one in study.participants}
    rows = [row for answer in stored for row in _rows(study, sessions[answer.participant], answer)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def csv_text(frame: pl.DataFrame) -> str:
    """The table as CSV in which no text is a formula: such a cell begins with an apostrophe."""
    import polars as pl

    text = pl.col(pl.String())
    guarded = pl.when(text.str.contains(f"^(?:{FORMULA})")).then(pl.lit("'") + text).otherwise(text)
    return frame.with_columns(guarded.name.keep()).write_csv()


def _rows(study: Study, items: tuple[Item, ...], answer: Answer) -> list[dict[str, Any]]:
    item = items[answer.item]
    image = study.images[item.image]
    common = {
        "study": study.name,
        "rater": answer.participant,
        "order": answer.item + 1,
        "at": answer.at,
        "seconds": answer.milliseconds / 1000,
        "design": study.design,
        "kind": item.kind,
        "image": image.source,
        "scene": image.scene,
        "damage": image.damage,
        "comment": answer.comment,
        "passed": answer.passed,
    }
    found = []
    for letter, slot in zip(LETTERS, item.slots, strict=False):
        for question, value, other in _given(study, item, letter, answer.answer):
            told = {"question": question, "value": value, **_method(study, item, slot)}
            against = _method(study, item, other) if other else {"method": None, "chain": None}
            told |= {"other_method": against["method"], "other_chain": against["chain"]}
            found.append({**common, **told})
    return found


def _given(
    study: Study, item: Item, letter: str, given: dict[str, Any]
) -> list[tuple[str, float, str | None]]:
    """The values given to a slot: question, value, and the slot it was compared with."""
    if study.design == "pairs":
        other = item.slots[1 - LETTERS.index(letter)]
        choice = given["choice"]
        return [("preference", 0.5 if choice == "tie" else float(choice == letter), other)]
    if study.design == "labels":
        return [(question, float(yes), None) for question, yes in given[letter].items()]
    return [("quality", float(given[letter]), None)]


def _method(study: Study, item: Item, slot: str) -> dict[str, Any]:
    if slot in SPECIAL:
        return {"method": slot, "chain": slot, "step": 0}
    shot = study.images[item.image].shots[slot]
    return {"method": slot, "chain": shot.chain, "step": shot.step}
