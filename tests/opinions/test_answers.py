"""Reading answers: our own tables, raw scores of others, and what is neither."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from convergebench.errors import InputError
from convergebench.opinions.answers import SCHEMA, checked, counting, natural, read_answers
from convergebench.opinions.matrix import matrix_of
from tests.opinions.material import FILES, raw_scores, simulated


@pytest.mark.shared
def test_the_mean_opinion_of_nflx_is_the_published_one(shared: Path) -> None:
    answers = read_answers(shared / "data" / "ratings" / FILES["nflx"])
    assert matrix_of(answers, "quality").means.mean() == pytest.approx(3.544790652385589, abs=1e-12)


@pytest.mark.shared
@pytest.mark.parametrize("name", FILES)
def test_a_wide_table_is_read_as_it_stands(shared: Path, name: str) -> None:
    matrix = matrix_of(read_answers(shared / "data" / "ratings" / FILES[name]), "quality")
    theirs = raw_scores(shared, name)
    assert matrix.values.shape == theirs.shape
    assert sorted(matrix.means.tolist()) == pytest.approx(sorted(theirs.mean(axis=1)), abs=1e-12)
    assert matrix.raters[:3] == ("s1", "s2", "s3")
    assert matrix.raters[-1] == f"s{theirs.shape[1]}"


def test_empty_and_nan_cells_of_a_wide_table_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("asset_id,content_id,s1,s2,s3\n7,0,1,,3\n8,0,NaN,2,4\n")
    answers = read_answers(path)
    assert answers.height == 4
    assert set(answers.columns) == set(SCHEMA)
    told = {(row["chain"], row["rater"]): row["value"] for row in answers.to_dicts()}
    assert told == {("7", "s1"): 1.0, ("7", "s3"): 3.0, ("8", "s2"): 2.0, ("8", "s3"): 4.0}


def test_a_wide_table_may_tell_methods(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("asset_id,content_id,method,s1\n7,0,blur,1\n8,0,sharp,5\n")
    assert matrix_of(read_answers(path), "quality").methods == ("blur", "sharp")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_answers_survive_a_file(tmp_path: Path, ending: str) -> None:
    answers = simulated(3, 2, 2).with_columns(comment=pl.lit('a, "b"\nNA'), passed=pl.lit(True))
    path = tmp_path / f"answers.{ending}"
    answers.write_csv(path) if ending == "csv" else answers.write_parquet(path)
    assert read_answers(path).equals(answers)


def test_the_apostrophe_before_a_formula_is_taken_away_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("rater,question,chain,value,comment\np1,quality,c,3,'=1+1\n")
    assert read_answers(path)["comment"].to_list() == ["=1+1"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a,b\n1,2\n", r"has no column chain, question, rater, value\. A table of answers has"),
        ("rater,question,chain,value\np1,taste,c,3\n", "1 row has the question taste; known are"),
        ("rater,question,chain,value\np1,quality,c,good\n", "column value has 'good', and numbers"),
        ("rater,question,chain,value\np1,quality,,3\n", "row 1: the chain is empty"),
        ("rater,question,chain,value\np1,preference,c,1\n", "1 preference without other_chain"),
        ("rater,question,chain,value\np1,quality,c,inf\n", "has an infinite value"),
        ("asset_id,content_id\n1,2\n", "no raters: columns s1, s2"),
        ("asset_id,content_id,s1\n1,2,3\n1,2,4\n", "several rows for asset_id 1"),
        ("", "is empty, and a table of answers is needed"),
    ],
)
def test_what_is_no_table_of_answers_is_told_in_a_sentence(
    tmp_path: Path, text: str, match: str
) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        read_answers(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nothing\.csv"):
        read_answers(tmp_path / "nothing.csv")


def test_bytes_that_are_no_parquet_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(InputError, match="is no table of answers"):
        read_answers(tmp_path / "a.parquet")


def test_practice_attention_and_repeats_do_not_count() -> None:
    kinds = ["item", "repeat", "attention", "practice"]
    answers = checked(
        pl.DataFrame({
            "rater": ["p1"] * 4, "question": ["quality"] * 4, "chain": ["c"] * 4,
            "kind": kinds, "value": [1.0, 2.0, 3.0, 4.0],
        })
    )  # fmt: skip
    assert counting(answers, "quality")["value"].to_list() == [1.0]


def test_names_with_numbers_are_sorted_as_people_do() -> None:
    assert sorted(["s10", "s9", "a", "s1"], key=natural) == ["a", "s1", "s9", "s10"]
