"""The score in an answer: read where it is certain, and nowhere else."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.metrics.served_answers import read_score

SCALE = (1.0, 5.0)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("<think>2 or 3?</think><answer>3.65</answer>", 3.65),
        ("<answer>1</answer> no, <answer> 2.50 </answer>", 2.5),
        ("<ANSWER>**4.2**</ANSWER>", 4.2),
        ("<answer>The score is 4.2.</answer>", 4.2),
        ("<answer>4.2/5</answer>", 4.2),
        ("<answer>4.2 out of 5</answer>", 4.2),
        ("<answer>−0.5</answer>", -0.5),
        ("<answer>-0.5</answer>", -0.5),
        ("<answer>12.5</answer>", 12.5),
        ("4.2", 4.2),
        ("  **4.2** \n", 4.2),
        ("4.2.", 4.2),
        ("4.2/5", 4.2),
        ("Score: 4.2", 4.2),
        ("**Overall quality score:** 4.2 / 5.", 4.2),
        ("It is sharp, 3 birds.\n\nFinal rating = 4", 4.0),
        ("The picture is sharp.\n4/5", 4.0),
        ("thoughts 1 2 3</think>4", 4.0),
        ("<think>a</think>b<think>c</think>\nRating: 3", 3.0),
        ("<answer>2</answer><think>or 3?</think>", 2.0),
    ],
)
def test_scores_that_are_read(answer: str, score: float) -> None:
    assert read_score(answer, SCALE) == score


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   ",
        "fine",
        "I give it a 4",
        "The picture is sharp.\n4",
        "4 birds",
        "4,2",
        "42%",
        "<answer>84%</answer>",
        "<answer>4,2</answer>",
        "<answer>3-4</answer>",
        "<answer>between 3 and 4</answer>",
        "<answer>7/10</answer>",
        "<answer>1.2.3</answer>",
        "<answer>9999999999</answer>",
        "<answer>1e3</answer>",
        "<answer>4*2</answer>",
        "<answer></answer>",
        "<answer>good</answer> Score: 4",
        "<answer>4.2",
        "7/10",
        "Score: 84%",
        "Score: 3 or 4",
        "<think>Score: 4.2",
        "<think><answer>4.2</answer>",
        "<think><answer>4.2</answer></think>",
        "<answer>4.2</answer></think>",
        "<think>a<think>b</think>Score: 4</think>",
        "nan",
        "٤",
    ],
)
def test_what_is_no_score(answer: str) -> None:
    assert read_score(answer, SCALE) is None


def test_an_answer_that_was_cut_off_needs_the_tag() -> None:
    assert read_score("4", SCALE, whole=False) is None
    assert read_score("Score: 4", SCALE, whole=False) is None
    assert read_score("<answer>4</answer> because", SCALE, whole=False) == 4.0


letters = st.text(st.characters(exclude_characters="<>"), max_size=60)
scores = st.decimals(0, 99, places=2).map(str)


@given(letters, scores, letters)
def test_nothing_is_ever_read_from_thoughts(thought: str, inner: str, said_after: str) -> None:
    hidden = f"<think>{thought}<answer>{inner}</answer>Score: {inner}\n{inner}</think>"
    assert read_score(hidden, SCALE) is None
    assert read_score(hidden.removesuffix("</think>"), SCALE) is None
    assert read_score(hidden + said_after, SCALE) == read_score(said_after, SCALE)
    assert read_score(f"{hidden}<answer>3.21</answer>", SCALE) == 3.21


@given(letters, st.text("abc xyz.:!?\n", max_size=20), scores, st.text("abc xyz:!?\n", max_size=20))
def test_one_number_in_the_tag_is_what_the_published_code_takes(
    thought: str, before: str, number: str, after: str
) -> None:
    answer = f"<think>{thought}</think> <answer>{before} {number} {after}</answer>"
    # Of README.md, the lines that read the score; its only change of manner is the sign.
    published = re.findall(r"<answer>(.*?)</answer>", answer, re.DOTALL)[-1].strip()
    found = re.search(r"\d+(\.\d+)?", published)
    assert found is not None
    assert read_score(answer, SCALE) == float(found.group())


@given(st.text(max_size=80), st.booleans())
def test_any_text_gives_a_finite_score_or_none(answer: str, whole: bool) -> None:
    value = read_score(answer, SCALE, whole=whole)
    assert value is None or math.isfinite(value)
