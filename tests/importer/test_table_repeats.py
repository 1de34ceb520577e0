"""Layout `table`: repeats keep their numbers, numbers may have commas, and nothing is NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convergebench
from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds
from convergebench.store import RunStore
from tests.importer.tables import HEAD, read, told, values, write

TRIALS = "model,image,step,Trial,psnr\n"
STEPS = "model,image,step,psnr\n"


def placed(finds: Finds) -> set[tuple[int, int, float | None]]:
    """Repeat, step and value of every score."""
    return {(score.track.repeat, score.step, score.value) for score in finds.scores}


# -- a column of repeats ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["B"], [1]),
        (["c", "A"], [2, 0]),
        (["2"], [2]),
        (["1", "2"], [1, 2]),
        (["0", "07", "2.0"], [0, 7, 2]),
        (["trial_2"], [2]),
        (["Run 3", "run 1"], [3, 1]),
        (["v2-run-10"], [10]),
    ],
)
def test_a_repeat_has_the_number_its_cell_says(
    tmp_path: Path, cells: list[str], expected: list[int]
) -> None:
    rows = "".join(f"a,x,1,{cell},{i}\n" for i, cell in enumerate(cells))
    finds = read(write(tmp_path, TRIALS + rows))
    assert placed(finds) == {(repeat, 1, float(i)) for i, repeat in enumerate(expected)}


def test_letters_and_words_of_repeats_are_told(tmp_path: Path) -> None:
    letters = read(write(tmp_path, TRIALS + "a,x,1,B,30\n"))
    assert "'B' is 1" in told(letters, "'Trial' are letters, counted from A = 0")
    words = read(write(tmp_path, TRIALS + "a,x,1,trial_2,30\n"))
    assert "'trial_2' is 2" in told(words, "words before the number")
    numbers = read(write(tmp_path, TRIALS + "a,x,1,2,30\n"))
    assert not [note for note in numbers.notes if "epeat" in note and "Read as" not in note]


@pytest.mark.parametrize("cell", ["run-x", "monday", "-1", "1.5", "run1.5", "AB", "1e3", "9" * 12])
def test_any_other_repeat_is_refused(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ImportProblem, match=r"column 'Trial'.*whole number.*letter.*--drop") as why:
        read(write(tmp_path, TRIALS + f"a,x,1,0,30\na,x,1,{cell},30\n"))
    assert repr(cell) in str(why.value)


@pytest.mark.parametrize(("one", "two"), [("A", "0"), ("day_1", "run_1"), ("1", "run1")])
def test_two_ways_of_writing_repeats_are_refused(tmp_path: Path, one: str, two: str) -> None:
    with pytest.raises(ImportProblem, match=r"column 'Trial' writes its repeats in several ways"):
        read(write(tmp_path, TRIALS + f"a,x,1,{one},30\na,x,1,{two},29\n"))


# -- repeats by the order of rows -------------------------------------------------------------


def table(rows: list[tuple[int, float]]) -> str:
    return STEPS + "".join(f"a,x,{step},{value}\n" for step, value in rows)


@pytest.mark.parametrize(
    ("before", "added"),
    [
        ("1:30 2:29 1:31", "1:30 2:29 3:28"),
        ("1:30 2:29 1:31", "2:28 3:27"),
        ("1:30 2:29 1:30", "2:25 1:31"),
        ("1:30 2:29 1:29 2:28 3:27", "3:26"),
        ("1:30 1:31 2:29", "1:28 2:27 3:26"),
        ("1:30 1:30 1:31 2:29", "2:25"),
        ("3:30 1:29 2:28 2:27", "1:26 3:25"),
        ("1:30 2:29", "1:31 2:28"),
    ],
    ids=["an earlier one goes on", "the last goes on", "the last turns out different",
         "only an end", "side by side, then in turn", "one contained turns out different",
         "in no order", "none before"],
)  # fmt: skip
def test_rows_added_at_the_end_move_no_others(tmp_path: Path, before: str, added: str) -> None:
    def pairs(text: str) -> list[tuple[int, float]]:
        return [(int(a), float(b)) for a, b in (word.split(":") for word in text.split())]

    path, run = tmp_path / "scores.csv", tmp_path / "run"
    path.write_text(table(pairs(before)))
    first = placed(read(path, conflicts="repeat"))
    convergebench.import_run(path, run, conflicts="repeat", origin="lab")
    path.write_text(table(pairs(f"{before} {added}")))
    assert first <= placed(read(path, conflicts="repeat"))
    convergebench.import_run(path, run, conflicts="repeat", origin="lab")
    convergebench.import_run(path, tmp_path / "fresh", conflicts="repeat", origin="lab")
    key = ["chain", "step", "metric", "value"]
    grown, fresh = (RunStore.open(p).scores().select(key) for p in (run, tmp_path / "fresh"))
    assert sorted(grown.rows()) == sorted(fresh.rows())


def test_a_repeat_that_goes_on_keeps_its_number(tmp_path: Path) -> None:
    rows = [(1, 30.0), (2, 29.0), (1, 31.0), (1, 30.0), (2, 29.0), (3, 28.0)]
    finds = read(write(tmp_path, table(rows)), conflicts="repeat")
    assert placed(finds) == {(0, 1, 30.0), (0, 2, 29.0), (0, 3, 28.0), (1, 1, 31.0)}


RUNS = st.lists(
    st.lists(st.sampled_from([20.0, 21.0]), min_size=1, max_size=4), min_size=1, max_size=5
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs=RUNS, cut=st.integers(1, 20))
def test_chains_one_after_the_other_only_ever_grow(
    tmp_path: Path, runs: list[list[float]], cut: int
) -> None:
    # Steps from 1 on, so that any row that does not go up is the start of a chain. Two rows of
    # step 1 at the very beginning would be read as side by side, so the first chain is longer.
    rows = [(step, value) for run in [[20.0, 20.5], *runs] for step, value in enumerate(run, 1)]
    whole = placed(read(write(tmp_path, table(rows)), conflicts="repeat"))
    part = placed(read(write(tmp_path, table(rows[:cut])), conflicts="repeat"))
    assert part <= whole
    assert {(step, value) for _, step, value in whole} == set(rows)


# -- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mark", "name"), [(";", "scores.csv"), ("\t", "scores.tsv")])
def test_decimal_commas_are_read_and_told(tmp_path: Path, mark: str, name: str) -> None:
    rows = ["model,image,step,psnr,ssim", "a,x,1,28#5,0#5", "a,x,2,30,", "a,x,3,inf,-0#25"]
    text = "\n".join(row.replace(",", mark).replace("#", ",") for row in rows)
    finds = read(write(tmp_path, text, name))
    assert [v for (_, _, m), v in values(finds).items() if m == "psnr"] == [28.5, 30.0, math.inf]
    assert [v for (_, _, m), v in values(finds).items() if m == "ssim"] == [0.5, None, -0.25]
    assert "'28,5' is 28.5" in told(finds, "'psnr' is read with decimal commas")
    long = ["model;image;step;metric;value", "a;x;1;psnr;28,5", "a;x;1;ssim;0,5"]
    found = read(write(tmp_path, "\n".join(long)))
    assert sorted(v for v in values(found).values() if v is not None) == [0.5, 28.5]
    assert told(found, "'value' is read with decimal commas")


@pytest.mark.parametrize("other", ["n/a", "29.5", "1.234,5"])
def test_mixed_decimal_commas_are_null_with_the_remedy(tmp_path: Path, other: str) -> None:
    finds = read(write(tmp_path, f"model;image;step;psnr\na;x;1;28,5\na;x;2;{other}\na;x;3;30\n"))
    found = {score.step: score for score in finds.scores}
    assert (found[1].value, found[3].value) == (None, 30.0)
    assert found[1].note == "column psnr: not a number"
    assert found[2].value == (29.5 if other == "29.5" else None)
    assert repr(other) in told(finds, "Write all its numbers in one way")


def test_decimal_commas_between_commas_are_null_with_the_remedy(tmp_path: Path) -> None:
    finds = read(write(tmp_path, STEPS + 'a,x,1,"28,5"\n'))
    assert [score.value for score in finds.scores] == [None]
    assert "write decimal points" in told(finds, "separated by commas")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "long.csv", "long.parquet"])
def test_no_score_is_ever_nan(tmp_path: Path, ending: str) -> None:
    cells: list[Any] = [30.0, math.nan, -math.nan, None, 28.0]
    rows = [{"model": "a", "image": "x", "step": i, "psnr": c} for i, c in enumerate(cells, 1)]
    frame = pl.DataFrame(rows, schema_overrides={"psnr": pl.Float32})
    if ending.startswith("long"):
        frame = frame.rename({"psnr": "value"}).with_columns(metric=pl.lit("psnr"))
    path = tmp_path / f"scores.{ending}"
    if ending == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    elif ending.endswith("parquet"):
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    finds = read(path)
    assert [score.value for score in finds.scores] == [30.0, None, None, None, 28.0]
    assert [score.note.partition(": ")[2] for score in finds.scores[1:4]] == ["NaN", "NaN", "empty"]
    run = tmp_path / "run"
    for _ in range(2):
        convergebench.import_run(path, run, origin="lab")
    assert RunStore.open(run).scores().height == len(cells)


# -- notes ------------------------------------------------------------------------------------


def test_one_is_singular_and_two_are_plural(tmp_path: Path) -> None:
    one = read(write(tmp_path, HEAD + "a,x,hat,1,30,9\na,x,hat,3,30,0.9\na,,hat,1,1,1\n"))
    assert told(one, "left out").startswith("1 row lacks")
    assert told(one, "outside").startswith("1 value of column ssim lies outside -1 to 1")
    assert told(one, "a gap").startswith("2 steps have no row")
    single = read(write(tmp_path, STEPS + "a,x,1,30\na,x,3,30\n"))
    assert told(single, "a gap").startswith("1 step has no row")
    twice = read(write(tmp_path, STEPS + "a,x,1,30\na,x,1,30\na,x,2,29\na,x,2,28\n"))
    assert told(twice, "equal values").startswith("1 key comes")
    assert told(twice, "that differ").startswith("1 key comes")
    head = "model,image,image_type,step,metric,value\n"
    long = read(write(tmp_path, head + "a,x,p,1,psnr,30\na,x,q,2,psnr,29\na,x,p,3,,29\n"))
    assert told(long, "several categories").startswith("1 source has several")
    assert told(long, "no metric").startswith("1 row names no metric")
