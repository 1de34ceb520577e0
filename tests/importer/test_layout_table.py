"""Layout `table`: scores of others, whatever their columns are called."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, FoundScore, Look, Track, Wishes
from convergebench.importer.layouts.table import LAYOUT
from tests.importer.tables import HEAD, read, told, values, write

# -- the real table ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def curves(shared: Path) -> Path:
    return shared / "data" / "curves" / "roundtrip-6-models.csv"


def chains_of(path: Path) -> dict[tuple[str, ...], list[tuple[int, tuple[float, ...]]]]:
    """The table read by other means, chain by chain in the file's order."""
    found: dict[tuple[str, ...], list[tuple[int, tuple[float, ...]]]] = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            scores = tuple(float(row[name]) for name in ("psnr", "ssim", "clip_similarity"))
            key = (row["model"], row["image"].removesuffix(".jpg"), row["edit_pair"])
            found.setdefault(key, []).append((int(row["round"]), scores))
    return found


@pytest.mark.shared
def test_real_table_is_recognised_and_counted_exactly(curves: Path) -> None:
    assert "roundtrip-6-models.csv" in LAYOUT.recognise(Look(curves))
    finds = read(curves)
    assert (finds.keys, len(finds.conflicts), finds.collapsed) == (2131, 600, 300)
    assert len({conflict.key for conflict in finds.conflicts}) == 600
    editors = Counter(conflict.key.split(" · ")[0] for conflict in finds.conflicts)
    assert editors == {"grok": 340, "nano_banana": 260}
    assert "(grok 150, nano_banana 150)" in told(finds, "collapsed")
    assert "(grok 340, nano_banana 260)" in told(finds, "values that differ")
    assert len({frame.track for frame in finds.frames}) == 214
    assert {frame.outcome for frame in finds.frames} == {"reported"}


@pytest.mark.shared
def test_real_conflicts_name_every_distinct_value_once(curves: Path) -> None:
    distinct: dict[str, set[tuple[float, ...]]] = {}
    for (editor, image, cycle), rows in chains_of(curves).items():
        for number, scores in rows:
            key = f"{editor} · {image} · {cycle} · round {number}"
            distinct.setdefault(key, set()).add(scores)
    expected = {key: len(found) for key, found in distinct.items() if len(found) > 1}
    assert {c.key: len(set(c.values)) for c in read(curves).conflicts} == expected


@pytest.mark.shared
def test_real_table_has_unequal_coverage_and_an_lpips_that_nobody_computed(curves: Path) -> None:
    finds = read(curves)
    assert told(finds, "Unequal coverage").endswith(
        "flux 12, gemini 10, grok 66, nano_banana 66, qwen 57, seedream 3."
    )
    early = told(finds, "stop early")
    assert "round 4 of 10" in early
    assert "round 7 of 10" in early
    lpips = [score for score in finds.scores if score.metric == "lpips"]
    assert lpips
    assert all(score.value is None and "never computed" in score.note for score in lpips)
    kept = read(curves, keep_constant=True)
    assert {score.value for score in kept.scores if score.metric == "lpips"} == {0.0}
    assert finds.sources["portrait_01"].category == "portrait"
    assert finds.cycles["glasses_add_remove"].category == "accessories"
    assert {cycle.kind for cycle in finds.cycles.values()} == {"round-trip"}


@pytest.mark.shared
def test_real_conflicts_become_repeats_without_losing_a_value(curves: Path) -> None:
    finds = read(curves, conflicts="repeat")
    expected: dict[tuple[str, ...], list[list[tuple[int, tuple[float, ...]]]]] = {}
    for key, rows in chains_of(curves).items():
        runs: list[list[tuple[int, tuple[float, ...]]]] = []
        for number, scores in rows:
            if not runs or number <= runs[-1][-1][0]:
                runs.append([])
            runs[-1].append((number, scores))
        expected[key] = [run for i, run in enumerate(runs) if run not in runs[:i]]
    got: dict[tuple[str, ...], dict[int, dict[int, list[float]]]] = {}
    for score in finds.scores:
        if score.metric != "lpips" and score.value is not None:
            track = score.track
            chain = got.setdefault((track.editor, track.source, track.cycle), {})
            row = chain.setdefault(track.repeat, {}).setdefault(score.step // 2, [])
            row.append(score.value)
    assert {
        key: [[(n, tuple(v)) for n, v in chain[i].items()] for i in range(len(chain))]
        for key, chain in got.items()
    } == expected
    repeats = Counter(track.editor for track in {frame.track for frame in finds.frames})
    assert repeats == {"flux": 12, "gemini": 10, "grok": 101, "nano_banana": 92, "qwen": 57,
                       "seedream": 3}  # fmt: skip
    assert "grok: 66 chains became 101; nano_banana: 66 chains became 92" in told(
        finds, "kept as repeats"
    )


# -- numbers ----------------------------------------------------------------------------------


def test_what_is_no_score_is_null_with_its_reason_and_counted(tmp_path: Path) -> None:
    cells = ["30", "inf", "∞", "-inf", "nan", "", "n/a", " 31.5 "]
    rows = "".join(f"a,x,hat,{i},{cell},{cell}\n" for i, cell in enumerate(cells, 1))
    finds = read(write(tmp_path, HEAD + rows))
    psnr = [score for score in finds.scores if score.metric == "psnr"]
    assert [score.value for score in psnr] == [
        30.0, math.inf, math.inf, None, None, None, None, 31.5
    ]  # fmt: skip
    assert [score.note.partition(": ")[2] for score in psnr if score.value is None] == [
        "infinite", "NaN", "empty", "not a number"
    ]  # fmt: skip
    ssim = [score for score in finds.scores if score.metric == "ssim"]
    assert [score.value for score in ssim] == [30.0, *[None] * 6, 31.5]
    assert "3 infinite, 1 NaN, 1 empty, 1 not a number" in told(finds, "column ssim without")
    assert "2 values of column ssim lie outside -1 to 1" in told(finds, "outside")
    assert "impossible for ssim" in ssim[0].note


def test_constant_distance_is_kept_when_nothing_varies_beside_it(tmp_path: Path) -> None:
    head = "model,image,round,psnr,lpips\n"
    same = read(write(tmp_path, head + "a,x,1,inf,0\na,x,2,inf,0\n"))
    assert {s.value for s in same.scores} == {math.inf, 0.0}
    other = read(write(tmp_path, head + "a,x,1,30,0.2\na,x,2,29,0.2\n"))
    assert [s.value for s in other.scores if s.metric == "lpips"] == [0.2, 0.2]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("1.5", r"whole numbers; it has 1\.5"),
        ("first", r"whole numbers; it has 'first'"),
        ("-2", r"'round' begins with -2, before the source, which is 0\. Say with --first"),
    ],
)
def test_places_must_be_whole_numbers(tmp_path: Path, cell: str, message: str) -> None:
    with pytest.raises(ImportProblem, match=message):
        read(write(tmp_path, HEAD + f"a,x,hat,{cell},30,0.9\n"))


def test_words_around_round_numbers_are_understood_and_told(tmp_path: Path) -> None:
    finds = read(write(tmp_path, HEAD + "a,x,hat,R1,30,0.9\na,x,hat,round 2,29,0.8\n"))
    assert sorted({score.step for score in finds.scores}) == [2, 4]
    assert told(finds, "words around")


def test_round_zero_is_the_source_and_must_look_like_it(tmp_path: Path) -> None:
    finds = read(write(tmp_path, HEAD + "a,x,hat,0,inf,1\na,x,hat,1,30,0.9\n"))
    assert (Track("x", "hat", "a"), 0, "psnr") in values(finds)
    edited = write(tmp_path, HEAD + "a,x,hat,0,30,0.9\na,x,hat,1,29,0.8\n")
    with pytest.raises(ImportProblem, match=r"round 0 is the source.*psnr of 30.*--first -1"):
        read(edited)
    assert {score.step for score in read(edited, first=-1).scores} == {2, 4}


def test_rows_without_a_key_are_left_out_and_told(tmp_path: Path) -> None:
    finds = read(write(tmp_path, HEAD + "a,x,hat,1,30,0.9\nmean,,hat,,30,0.9\n"))
    assert len(finds.scores) == 2
    assert "the first is row 2" in told(finds, "left out")
    with pytest.raises(ImportProblem, match="no row with an editor"):
        read(write(tmp_path, HEAD + ",,,,1,1\n"))


# -- repeats ----------------------------------------------------------------------------------


def test_repeat_column_is_used_as_it_is(tmp_path: Path) -> None:
    head = "model,image,round,run,psnr\n"
    finds = read(write(tmp_path, head + "a,x,1,1,30\na,x,1,2,29\n"))
    assert {(s.track.repeat, s.value) for s in finds.scores} == {(1, 30.0), (2, 29.0)}
    assert not finds.conflicts
    twice = write(tmp_path, head + "a,x,1,1,30\na,x,1,1,29\n")
    assert len(read(twice).conflicts) == 1
    with pytest.raises(
        ImportProblem,
        match=r"^1 key has values that differ within one repeat of column 'run'.*--drop",
    ):
        read(twice, conflicts="repeat")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1]),
        ([1, 2, 1, 2, 3], [0, 0, 1, 1, 1]),
        ([1, 1, 2, 2, 3], [0, 1, 0, 1, 0]),
        ([1, 1, 2], [0, 1, 0]),
        ([1, 2, 3, 2, 3], [0, 0, 0, 1, 1]),
        ([3, 1, 2, 2, 1], [0, 0, 0, 1, 1]),
    ],
    ids=[
        "in turn",
        "the first stops early",
        "side by side",
        "only the first",
        "the end again",
        "shuffled",
    ],
)
def test_repeats_are_told_apart_by_the_order_of_rows(
    tmp_path: Path, steps: list[int], expected: list[int]
) -> None:
    rows = "".join(f"a,x,{step},{20 + i}\n" for i, step in enumerate(steps))
    finds = read(write(tmp_path, "model,image,step,psnr\n" + rows), conflicts="repeat")
    got = {score.value: (score.step, score.track.repeat) for score in finds.scores}
    assert [got[20.0 + i] for i in range(len(steps))] == list(zip(steps, expected, strict=True))
    assert any("in no order" in note for note in finds.notes) == (steps[0] == 3)


def test_repeats_that_say_nothing_new_collapse(tmp_path: Path) -> None:
    rows = ["a,x,1,30", "a,x,2,29", "a,x,1,30", "a,x,2,29", "a,x,1,25", "a,x,2,24", "a,x,2,24"]
    text = "model,image,step,psnr\n" + "\n".join(rows)
    finds = read(write(tmp_path, text), conflicts="repeat")
    assert {(s.track.repeat, s.step, s.value) for s in finds.scores} == {
        (0, 1, 30.0), (0, 2, 29.0), (1, 1, 25.0), (1, 2, 24.0)
    }  # fmt: skip


# -- forms and files --------------------------------------------------------------------------


def test_long_form_is_read_like_the_wide_one(tmp_path: Path) -> None:
    wide = read(write(tmp_path, "model,image,step,PSNR,niqe\na,x,1,30,4\na,x,2,29,5\n"))
    rows = "a,x,1,PSNR,30\na,x,2,PSNR,29\na,x,1,niqe,4\na,x,2,niqe,5\n"
    long = read(write(tmp_path, "model,image,step,metric,value\n" + rows))
    assert values(long) == values(wide)
    assert {(s.metric, s.against) for s in long.scores} == {("psnr", "home"), ("niqe", "none")}
    assert long.keys == 4
    head = "model,image,step,metric,value,against\n"
    said = read(write(tmp_path, head + "a,x,1,psnr,30,previous\na,x,1,psnr,20,source\n"))
    assert {(s.against, s.value) for s in said.scores} == {("previous", 30.0), ("home", 20.0)}
    with pytest.raises(ImportProblem, match=r"home, previous or none; the table has 'sky'"):
        read(write(tmp_path, head + "a,x,1,psnr,30,sky\n"))


def test_long_form_has_constants_conflicts_and_doubts_of_its_own(tmp_path: Path) -> None:
    head = "model,image,step,metric,value\n"
    zeros = read(write(tmp_path, head + "a,x,1,psnr,3\na,x,2,psnr,2\na,x,1,lpips,0\na,x,2,lpips,0"))
    assert [s.value for s in zeros.scores if s.metric == "lpips"] == [None, None]
    twice = write(tmp_path, head + "a,x,1,psnr,3\na,x,1,psnr,2\na,x,1,ssim,0.5\na,x,1,ssim,0.5\n")
    finds = read(twice)
    (conflict,) = finds.conflicts
    assert conflict.key == "a · x · replicate · psnr · home · step 1"
    assert conflict.values == ("value 3.0 (row 1)", "value 2.0 (row 2)")
    assert (finds.keys, finds.collapsed) == (2, 1)
    split = read(twice, conflicts="repeat")
    assert {(s.track.repeat, s.metric, s.value) for s in split.scores} == {
        (0, "psnr", 3.0), (0, "ssim", 0.5), (1, "psnr", 2.0), (1, "ssim", 0.5)
    }  # fmt: skip
    with pytest.raises(ImportProblem, match=r"'PSNR' and 'psnr' could both be psnr"):
        read(write(tmp_path, head + "a,x,1,PSNR,3\na,x,1,psnr,2\n"))
    mapped = write(tmp_path, head + "a,x,1,similarity,0.5\n")
    assert [s.metric for s in read(mapped, metrics={"clip": "similarity"}).scores] == ["clip"]
    with pytest.raises(ImportProblem, match=r"rows of 'sim', of which there are none"):
        read(mapped, metrics={"clip": "sim"})


def test_all_kinds_of_files_give_the_same(tmp_path: Path) -> None:
    rows = [
        {"model": "a", "image": "x.png", "round": 1, "psnr": 30.25, "ssim": 0.5},
        {"model": "a", "image": "x.png", "round": 2, "psnr": math.inf, "ssim": None},
    ]
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_csv(tmp_path / "b.csv", separator=";")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "b.csv").read_bytes())
    found = [read(tmp_path / name) for name in ("a.csv", "b.csv", "a.tsv", "a.parquet", "a.jsonl")]
    track = Track("x", "round-trip", "a")
    assert values(found[0]) == {
        (track, 2, "psnr"): 30.25, (track, 4, "psnr"): math.inf,
        (track, 2, "ssim"): 0.5, (track, 4, "ssim"): None,
    }  # fmt: skip
    assert all(finds == found[0] for finds in found[1:])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"", "has no rows|cannot read a.csv"),
        ("a.csv", b"model,image,round,psnr\n", "has no rows"),
        ("a.csv", b"model,image,round,psnr\na,b,1,2,3,4\n", "cannot read a.csv as a table"),
        ("a.csv", b"model,image,round,psnr\n\xff\xfe,b,1,2\n", "cannot read a.csv as a table"),
        ("a.parquet", b"PAR1 no", "cannot read a.parquet as a table"),
        ("a.jsonl", b'{"model": "a"}\n[1]\n', "line 2 is no object|cannot read"),
        ("a.jsonl", b'{"model": NaN}\nhello\n', "cannot read a.jsonl as a table"),
    ],
)
def test_unreadable_tables_are_one_sentence(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ImportProblem, match=message) as told:
        read(tmp_path / name)
    assert "\n" not in str(told.value)


def test_only_tables_of_scores_are_recognised(tmp_path: Path) -> None:
    def says(*files: tuple[str, str]) -> bool:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in files:
            (folder / name).write_text(text)
        return bool(LAYOUT.recognise(Look(folder)))

    scores = ("scores.csv", HEAD + "a,x,hat,1,30,0.9\n")
    assert says(scores)
    assert says(scores, ("README.md", "hello"))
    assert says(("s.jsonl", '{"model": "a", "metric": "psnr", "value": 1}\n'))
    assert not says(scores, ("more.csv", HEAD))
    assert not says(scores, ("x.png", ""))
    assert not says(("notes.csv", "name,address\n"))
    assert not says(("scores.csv", "psnr,ssim\n"))
    assert not says(("people.csv", "model,colour\n"))
    assert not says(("list.jsonl", "[1, 2]\n"))
    assert not says(("broken.parquet", "nothing"))
    assert not says(("README.md", "hello"))
    with pytest.raises(ImportProblem, match="is not one table of scores"):
        LAYOUT.read(Look(tmp_path), Wishes())


# -- any table --------------------------------------------------------------------------------

SCORES = st.floats(0, 60, allow_nan=False).map(lambda value: value + 0.0)
KEYS = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(1, 4))
TABLES = st.dictionaries(KEYS, st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=3))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=TABLES.filter(bool), again=st.randoms(use_true_random=False))
def test_any_table_is_read_back_exactly(tmp_path: Path, table: Any, again: Any) -> None:
    rows = [(*key, *value) for key, found in table.items() for value in found]
    rows += [row for row in rows if again.random() < 0.3]
    again.shuffle(rows)
    ending = again.choice(["csv", "tsv", "parquet"])
    frame = pl.DataFrame(rows, schema=["model", "image", "step", "psnr", "brisque"], orient="row")
    path = tmp_path / f"scores.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    counts = Counter(row[:3] for row in rows)
    distinct = {key: set(found) for key, found in table.items()}
    finds = read(path)
    assert finds.keys == len(table)
    assert finds.collapsed == sum(
        1 for key, found in distinct.items() if len(found) == 1 and counts[key] > 1
    )
    assert {c.key: len(set(c.values)) for c in finds.conflicts} == {
        f"{editor} · {source} · replicate · step {step}": len(found)
        for (editor, source, step), found in distinct.items()
        if len(found) > 1
    }
    assert by_key(finds) == {key: found for key, found in distinct.items() if len(found) == 1}
    # As repeats every value is there, and no row twice.
    assert by_key(read(path, conflicts="repeat")) == distinct


def by_key(finds: Finds) -> dict[tuple[str, str, int], set[tuple[float | None, ...]]]:
    rows: dict[tuple[Track, int], dict[str, FoundScore]] = {}
    for score in finds.scores:
        assert score.metric not in rows.setdefault((score.track, score.step), {})
        rows[score.track, score.step][score.metric] = score
    found: dict[tuple[str, str, int], set[tuple[float | None, ...]]] = {}
    for (track, step), row in rows.items():
        value = (row["psnr"].value, row["brisque"].value)
        found.setdefault((track.editor, track.source, step), set()).add(value)
    return found
