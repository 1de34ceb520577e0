"""Tables of scores as files, and what the study makes of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

from convergebench.restoration import Restoration, judge_restorations
from convergebench.restoration.result import Cell, Row, Sheet

PAPER: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "restoration_paper.json").read_text("utf-8")
)


def written(path: Path, columns: Sequence[str], lines: Sequence[Sequence[object]]) -> Path:
    """A CSV; nothing is a `/`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows([["/" if cell is None else cell for cell in line] for line in lines])
    return path


def judged(
    path: Path, columns: Sequence[str], lines: Sequence[Sequence[object]], **more: Any
) -> Restoration:
    """The study of a table."""
    return judge_restorations(written(path, columns, lines), **more)


def row(sheet: Sheet, label: str) -> Row:
    """The row of that label."""
    (found,) = [each for each in sheet.rows if each.label == label]
    return found


def cell(sheet: Sheet, label: str, measure: str) -> Cell:
    """A row's cell."""
    return row(sheet, label).cells[measure]


def rank_table(blocks: int, squares: int) -> list[tuple[int, ...]]:
    """Ranks of three repeats in so many pictures whose Friedman statistic is squares / blocks.

    The statistic is the sum over repeats of the squared distance of their sum of ranks from its
    middle, over the number of blocks (12 / (n·3·4) = 1 / n). Pairs of opposite orders of two
    pictures move nothing, so few pictures have to be looked for.
    """
    orders = list(permutations((1, 2, 3)))
    for free in range(blocks % 2, blocks + 1, 2):
        rest = [orders[0], orders[-1]] * ((blocks - free) // 2)
        for some in combinations_with_replacement(orders, free):
            sums = [sum(each[i] for each in (*some, *rest)) for i in range(3)]
            if sum((total - 2 * blocks) ** 2 for total in sums) == squares:
                return [*some, *rest]
    raise AssertionError(f"no ranks of {blocks} blocks have the statistic {squares}/{blocks}")
