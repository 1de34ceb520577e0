"""The page of ratings: every number on it is in the file beside it, and nothing is run as code."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from convergebench import opinions
from convergebench.errors import StoreError
from convergebench.reporter.opinions import write_ratings
from convergebench.reporter.opinions.drawing import axis
from tests.opinions.material import answers_from, choices_from, simulated


def rated(raters: int = 8, images: int = 6, methods: int = 4) -> opinions.Opinions:
    """Scores, choices and labels of the same methods, and three metrics."""
    answers = simulated(raters, images, methods)
    labels = answers.with_columns(
        question=pl.lit("infidelity"), value=(pl.col("value") < 2).cast(pl.Float64())
    )
    wins = np.array([[0, 2, 1, 1], [8, 0, 3, 2], [9, 7, 0, 3], [9, 8, 7, 0]])
    checks = answers.filter((pl.col("rater") == "r0") & (pl.col("chain") == "c0")).with_columns(
        kind=pl.lit("attention"), passed=pl.lit(False)
    )
    whole = pl.concat([answers, labels, choices_from(wins), checks])
    stimuli = answers.group_by("chain", "step", maintain_order=True).agg(pl.col("value").mean())
    rng = np.random.default_rng(0)
    noise = pl.Series(rng.normal(0, 0.4, stimuli.height))
    scores = pl.concat(
        stimuli.select(
            "chain", pl.col("step").cast(pl.Int32()), metric=pl.lit(name), version=pl.lit("1"),
            against=pl.lit(against), where=pl.lit("all"), value=value,
            note=pl.lit(None, pl.String()),
        )
        for name, against, value in (
            ("psnr", "home", 20 + 4 * (pl.col("value") + noise)),
            ("lpips", "home", 1 - (pl.col("value") - noise) / 6),
            ("niqe", "none", 9 - noise),
        )
    )  # fmt: skip
    return opinions.analyse(whole, scores, title="made up")


def _numbers(value: Any) -> set[str]:
    """Every number of the file, in all ways that the page prints it."""
    if isinstance(value, dict):
        return set().union(*(_numbers(each) for each in value.values()), set())
    if isinstance(value, list):
        return set().union(*(_numbers(each) for each in value), {str(len(value))})
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        shown = {f"{value * factor:.{digits}f}" for factor in (1, 100) for digits in range(4)}
        return {re.sub(r"^-(?=0\.?0*$)", "", text) for text in shown}
    return set(re.findall(r"\d+(?:\.\d+)?", value))


def test_every_number_in_the_tables_is_in_the_file(tmp_path: Path) -> None:
    page = write_ratings(rated(), tmp_path / "out").read_text()
    told = _numbers(json.loads((tmp_path / "out" / "ratings.json").read_text()))
    cells = re.findall(r'<td class="num[^"]*"[^>]*>(.*?)</td>', page, re.DOTALL)
    assert len(cells) > 200
    for cell in cells:
        text = unescape(re.sub(r"<[^>]+>", " ", cell)).replace(",", "").replace("−", "-")
        for number in re.findall(r"-?\d+(?:\.\d+)?", text):
            assert number in told, (number, cell)


def test_all_parts_are_there_and_one_plot_for_each_metric(tmp_path: Path) -> None:
    page = write_ratings(rated(), tmp_path / "out").read_text()
    for part in ("opinions", "scores", "pictures", "choices", "labels", "metrics", "agreement",
                 "raters", "notes"):  # fmt: skip
        assert f'<section id="{part}">' in page
        assert f'href="#{part}"' in page
    assert page.count("<figure id=") == 3
    assert page.count("<option value=") == 3
    assert "attention: 0 of 1 checks passed" in page
    assert page.count('class="lane tall') == 4


def test_raw_scores_without_methods_have_a_page(tmp_path: Path) -> None:
    answers = answers_from(np.array([[1.0, 2, 1], [4, 5, 5], [3, 3, 4]]))
    page = write_ratings(opinions.analyse(answers.with_columns(method=pl.lit(""))), tmp_path / "o")
    text = page.read_text()
    assert "All stimuli" in text
    assert 'id="metrics"' not in text


def test_one_answer_has_a_page(tmp_path: Path) -> None:
    assert write_ratings(
        opinions.analyse(answers_from(np.array([[3.0]]))), tmp_path / "o"
    ).is_file()


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>'
    answers = simulated(4, 4, 2).with_columns(
        method=pl.when(pl.col("method") == "m0").then(pl.lit(evil)).otherwise("method"),
        rater=pl.when(pl.col("rater") == "r0").then(pl.lit(evil)).otherwise("rater"),
        image=pl.when(pl.col("image") == "i0").then(pl.lit(evil)).otherwise("image"),
    )
    page = write_ratings(opinions.analyse(answers, title=evil), tmp_path / "o").read_text()
    assert evil not in page
    assert "&lt;script&gt;alert" in page


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="is not empty and holds no pages of ConvergeBench"):
        write_ratings(rated(), tmp_path)
    with pytest.raises(StoreError, match="is a file, and a folder is needed"):
        write_ratings(rated(), tmp_path / "letter.txt")


def test_a_page_with_the_same_numbers_is_the_same_page(tmp_path: Path) -> None:
    one, two = (write_ratings(rated(), tmp_path / name).read_bytes() for name in "ab")
    assert one == two


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 5.0], (0, 1, 2, 3, 4, 5)),
        ([1.2, 4.4], (1, 2, 3, 4, 5)),
        ([-0.9, 1.3], (-1, -0.5, 0, 0.5, 1, 1.5)),
        ([0.012, 0.031], (0.01, 0.015, 0.02, 0.025, 0.03, 0.035)),
        ([3.0], (2.6, 2.8, 3.0, 3.2, 3.4)),
    ],
)
def test_scales_have_round_ticks(values: list[float], ticks: tuple[float, ...]) -> None:
    found = axis(values)
    assert found.low <= min(values)
    assert found.high >= max(values)
    if len(values) > 1:
        assert found.ticks == pytest.approx(ticks)
