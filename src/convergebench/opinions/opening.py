"""Answers from wherever they are: a run, a file. Studies are opened by the rating app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from convergebench.errors import InputError
from convergebench.opinions.answers import read_answers
from convergebench.opinions.keeping import answers_in
from convergebench.store import RunStore
from convergebench.wording import shown

if TYPE_CHECKING:
    import polars as pl


def answers_at(path: Path) -> pl.DataFrame:
    """The answers in a run directory or in a file.

    Raises:
        InputError: There are none.
    """
    if RunStore.is_run(path):
        store = RunStore.open(path)
        found = answers_in(store)
        if found.is_empty():
            raise InputError(
                f"{path} has no human answers. `convergebench rate export STUDY --to {path}` "
                "brings them in."
            )
        return found
    if path.is_dir():
        raise InputError(
            f"{path} is neither a rating study nor a run directory. `convergebench rate create` "
            "makes a study; answers in a file are given as CSV or Parquet."
        )
    return read_answers(path)


def scores_for(answers: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The score table of the run that was rated.

    Raises:
        InputError: None of the rated chains is in it.
        StoreError: It is no run.
    """
    import polars as pl

    store = RunStore.open(path)
    here = {chain.key.id for chain in store.chains()}
    rated = answers.filter(pl.col("kind") == "item")["chain"].unique(maintain_order=True).to_list()
    if rated and not here.intersection(rated):
        raise InputError(
            f"{path} has none of the chains that were rated ({shown(rated, 2)}). Give the run that "
            "the study was made from, or no --run."
        )
    return store.scores()
