"""Answers for the tests of the rating statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from convergebench.opinions.answers import checked

Array = NDArray[np.float64]

FILES = {"nflx": "NFLX_dataset_public_raw.csv", "vqeg": "VQEGHD3_dataset_raw.csv"}
GOLDEN = Path(__file__).parents[1] / "golden" / "opinions.json"


def golden() -> Any:
    """What other libraries say."""
    return json.loads(GOLDEN.read_text())


def raw_scores(shared: Path, name: str) -> Array:
    """A set's raw scores, read with numpy and not with our reader."""
    path = shared / "data" / "ratings" / FILES[name]
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    found: Array = table[:, 2:]
    return found


def corrupted(values: Array) -> Array:
    """The first five raters rate another row's stimulus."""
    found = values.copy()
    for column in range(5):
        found[:, column] = np.roll(found[:, column], 7 * (column + 1))
    return found


def with_holes(values: Array) -> Array:
    """Every seventh cell is missing."""
    found = values.copy()
    row, column = np.indices(found.shape)
    found[(3 * row + 5 * column) % 7 == 0] = np.nan
    return found


def answers_from(values: Array, methods: int = 1, **facts: Any) -> pl.DataFrame:
    """A matrix of stimuli × raters as answers: stimulus s is of method s mod `methods`."""
    rows = [
        {
            "study": "s", "rater": f"r{rater}", "question": "quality", "design": "absolute",
            "image": f"i{stimulus // methods}", "method": f"m{stimulus % methods}",
            "chain": f"c{stimulus}", "value": float(value), **facts,
        }
        for stimulus, line in enumerate(values)
        for rater, value in enumerate(line)
        if not np.isnan(value)
    ]  # fmt: skip
    return checked(pl.DataFrame(rows))


def simulated(raters: int = 20, images: int = 20, methods: int = 5, seed: int = 3) -> pl.DataFrame:
    """Raters with a bias of their own, pictures that are harder than others; m0 is worst."""
    rng = np.random.default_rng(seed)
    level = np.linspace(1.2, 4.2, methods)[None, :] + rng.normal(0, 0.5, (images, 1))
    level = (level + rng.normal(0, 0.3, level.shape)).reshape(-1, 1)
    values = level + rng.normal(0, 0.4, (1, raters)) + rng.normal(0, 0.6, (level.size, raters))
    return answers_from(np.clip(np.round(values), 0, 5), methods)


def choices_from(wins: Array, raters: int = 4, images: int = 3) -> pl.DataFrame:
    """As many paired choices as a table of wins says, dealt out to raters and pictures."""
    rows = []
    at = 0
    for one, other in np.ndindex(*wins.shape):
        for _ in range(int(wins[one, other])):
            rows.append({
                "study": "s", "rater": f"r{at % raters}", "question": "preference",
                "design": "pairs", "order": at, "image": f"i{at % images}", "value": 1.0,
                "method": f"m{one}", "chain": f"m{one}-i{at % images}",
                "other_method": f"m{other}", "other_chain": f"m{other}-i{at % images}",
            })  # fmt: skip
            at += 1
    return checked(pl.DataFrame(rows))
