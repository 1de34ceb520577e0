"""What the study must say aloud: what cannot be told, what is infinite, what contradicts itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import InputError
from convergebench.restoration.cases import cases
from convergebench.restoration.material import Attempt, Label, Material
from convergebench.restoration.result import Measure, Method, Picture
from tests.restoration.tables import judged, row

MUSIQ = Measure("musiq", "MUSIQ", "no-reference", higher_is_better=True)


def test_an_effect_that_no_prompts_tell_alone_is_named(tmp_path: Path) -> None:
    told = [["S1", "S", i, 20 + i] for i in range(6)] + [["LF1", "LF", i, 22 + i] for i in range(6)]
    study = judged(tmp_path / "t.csv", ["prompt", "group", "image", "PSNR"], told)
    assert study.effects == ()
    assert "length: long − short cannot be told: no prompts differ in length alone." in study.notes
    assert "fidelity: yes − no cannot be told: no prompts differ in fidelity alone." in study.notes


def test_what_can_be_told_is_not_called_untold(tmp_path: Path) -> None:
    told = [[p, p[:-1], i, 20 + i] for p in ("S1", "SF1", "L1", "LF1") for i in range(6)]
    study = judged(tmp_path / "t.csv", ["prompt", "group", "image", "PSNR"], told)
    assert study.effects
    assert not any("cannot be told" in note for note in study.notes)


def test_an_infinite_score_is_called_infinite_and_not_missing(tmp_path: Path) -> None:
    told: list[list[object]] = [["a", "x", "inf"], ["a", "y", 20], ["b", "x", 21], ["b", "y", 22]]
    study = judged(tmp_path / "t.csv", ["method", "image", "PSNR"], told)
    assert study.overall is not None
    assert row(study.overall, "b").cells["psnr"].mean == 22
    (note,) = study.overall.notes
    assert "over 1 of 2 pictures" in note
    assert "infinite with a" in note


def test_a_table_of_means_says_why_a_column_is_empty(tmp_path: Path) -> None:
    study = judged(tmp_path / "t.csv", ["method", "PSNR"], [["a", "inf"], ["b", 20]])
    assert study.overall is not None
    assert study.overall.notes == ("PSNR: no mean: not all methods have one (infinite with a).",)
    told = [["a", "X", 20], ["a", "Y", 21], ["b", "X", 22]]
    study = judged(tmp_path / "u.csv", ["method", "scene", "PSNR"], told)
    assert study.overall is not None
    assert study.overall.notes == ("PSNR: over 1 of 2 scenes: not all methods have a score of Y.",)


def test_lines_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3: S1 has another group or other factors"):
        judged(tmp_path / "a.csv", ["prompt", "group", "image", "PSNR"],
               [["S1", "S", "x", 20], ["S1", "L", "y", 21]])  # fmt: skip
    with pytest.raises(InputError, match=r"line 3: x is of Crowd, and in the lines above of Text"):
        judged(tmp_path / "b.csv", ["method", "image", "scene", "PSNR"],
               [["a", "x", "Text", 20], ["b", "x", "Crowd", 21]])  # fmt: skip
    study = judged(tmp_path / "c.csv", ["method", "image", "scene", "PSNR"],
                   [["a", "x", "Text", 20], ["b", "x", "", 21]])  # fmt: skip
    assert [picture.scene for picture in study.pictures] == ["Text"]


def test_half_of_the_votes_is_no_case_as_in_rate_analyze() -> None:
    labels = tuple(
        Label("infidelity", chain, "people (s)", f"p{n}", value)
        for chain, votes in {"c0": (1, 0), "c1": (1, 1, 0)}.items()
        for n, value in enumerate(votes)
    )
    attempts = (Attempt("m", "p", 0, "c0"), Attempt("m", "q", 0, "c1"))
    pictures = (Picture("p", "", "", True), Picture("q", "", "", True))
    method = Method("m", "m", "m")
    found, (count,), _ = cases(
        Material("t", (MUSIQ,), (method,), pictures, attempts, {}, labels=labels)
    )
    assert [case.chain for case in found] == ["c1"]
    assert (count.cases, count.looked) == (1, 2)


def test_cases_of_one_run_do_not_shrink_where_a_repeat_is_partly_there() -> None:
    # Four pictures, all cases; only one of them was made a second time.
    attempts = (
        *(Attempt("m", f"p{i}", 0, f"c{i}") for i in range(4)), Attempt("m", "p0", 1, "again"),
        *(Attempt("n", f"p{i}", 0, f"d{i}") for i in range(4)),
    )  # fmt: skip
    pictures = tuple(Picture(f"p{i}", "", "", True) for i in range(4))
    methods = (Method("m", "m", "e", "S1", "S"), Method("n", "n", "e", "S2", "S"))
    labels = tuple(Label("infidelity", one.chain, "j", "", 1.0) for one in attempts)
    factors = {"m": {"length": "short"}, "n": {"length": "short"}}
    _, counts, (mean,) = cases(
        Material("t", (MUSIQ,), methods, pictures, attempts, {}, factors, labels=labels)
    )
    assert [(c.cases, c.in_one_run) for c in counts] == [(5, 4.0), (4, 4.0)]
    assert mean.per_prompt == 4.0
