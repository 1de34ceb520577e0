"""The answers of a study, brought out and analysed: `rate export` and `rate analyze`."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from convergebench.disk import plain_errors, replace_file
from convergebench.opinions import Opinions, analyse
from convergebench.opinions.keeping import Kept, keep_in_run
from convergebench.opinions.opening import answers_at, scores_for
from convergebench.ratings.export import answers, csv_text
from convergebench.ratings.study import is_study, open_study
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.wording import counted

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Exported:
    """All answers of a study.

    Attributes:
        answers: A row per picture and question.
        files: Where they were written.
        kept: What was added to a run.
    """

    answers: pl.DataFrame
    files: tuple[Path, ...] = ()
    kept: Kept | None = None

    def __str__(self) -> str:
        told = f"{counted(self.answers.height, 'row')} of answers"
        return told + (f" in {', '.join(map(str, self.files))}." if self.files else ".")

    def _repr_html_(self) -> str:
        return self.answers._repr_html_()


def export(
    study: str | os.PathLike[str],
    *,
    csv: str | os.PathLike[str] | None = None,
    parquet: str | os.PathLike[str] | None = None,
    to: str | os.PathLike[str] | None = None,
) -> Exported:
    """Bring out all answers of a rating study, of practice and attention items as well.

    Args:
        study: Its folder.
        csv: A file to write them into.
        parquet: A file to write them into.
        to: The run that was rated, to add them to; nothing is added twice.

    Raises:
        StoreError: There is no such study or run, or a file cannot be written.
        InputError: None of the rated chains is in the run.
    """
    told = open_study(study)
    # Before anything is written.
    run = RunStore.open(require_directory(to, "rate export")) if to else None
    found = answers(study)
    files = []
    if csv:
        files.append(_written(Path(csv), csv_text(found).encode()))
    if parquet:
        data = io.BytesIO()
        found.write_parquet(data)
        files.append(_written(Path(parquet), data.getvalue()))
    kept = keep_in_run(found, run, partly=len(told.runs) > 1) if run else None
    return Exported(found, tuple(files), kept)


def analyze(
    place: str | os.PathLike[str],
    run: str | os.PathLike[str] | None = None,
    *,
    keep_outliers: bool = False,
) -> Opinions:
    """What people think: mean opinions, who agrees, which metrics agree with people.

    Args:
        place: A rating study, a run that has its answers, or a file: as `export` writes it, or a
            CSV of raw scores.
        run: The scored run that was rated, to compare metrics with; where `place` is a run, it.
        keep_outliers: Whether raters that something speaks against take part all the same.

    Raises:
        InputError: There are no answers, or the run has none of the rated chains.
        StoreError: A study or a run cannot be read.
    """
    path = Path(place)
    found = answers(path) if is_study(path) else answers_at(path)
    rated = run or (path if RunStore.is_run(path) else None)
    scores = scores_for(found, Path(rated)) if rated else None
    return analyse(found, scores, title=path.resolve().name, keep_outliers=keep_outliers)


def _written(path: Path, data: bytes) -> Path:
    with plain_errors(path):
        replace_file(path, data)
    return path
