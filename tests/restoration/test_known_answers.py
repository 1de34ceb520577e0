"""A table whose every answer was worked out on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.restoration import Restoration
from tests.restoration.tables import cell, judged, row

COLUMNS = [
    "prompt",
    "group",
    "editor",
    "method",
    "image",
    "scene",
    "damage",
    "repeat",
    "PSNR",
    "Q↑",
]

PICTURES = {
    "p1": ("Text", "defocus"),
    "p2": ("Text", "motion"),
    "p3": ("Crowd", "motion"),
    "p4": ("Film", "old-film"),
}
"""Scene and damage; of p4 there is no truth."""

S1 = {"p1": (20, 22, 24), "p2": (10, 12, 14), "p3": (30, 31, 32)}
SF1 = {"p1": (25, 25, 25), "p2": (15, 15, 15), "p3": (33, 33, 33)}
NET = {"p1": (21,), "p3": (30,)}
QUALITY = {"S1": 50.0, "SF1": 50.0004, "net": 40.0}
"""Of every picture; p2 is missing for `net`. The first two are equal in print."""


def lines() -> list[list[object]]:
    found: list[list[object]] = []
    for name, values in (("S1", S1), ("SF1", SF1), ("net", NET)):
        for image, (scene, damage) in PICTURES.items():
            if (name, image) == ("net", "p2"):
                continue
            for repeat in range(3 if name != "net" else 1):
                psnr = values[image][repeat] if image in values else None
                who = (name, name[:-1], "banana", "") if name != "net" else ("", "", "", name)
                found.append([*who, image, scene, damage, repeat, psnr, QUALITY[name]])
    return found


@pytest.fixture
def study(tmp_path: Path) -> Restoration:
    return judged(tmp_path / "known.csv", COLUMNS, lines())


def test_means_of_prompts_are_over_the_pictures_that_all_prompts_have(study: Restoration) -> None:
    (sheet,) = study.prompts
    assert sheet.of == "banana"
    one, two = cell(sheet, "S1", "psnr"), cell(sheet, "SF1", "psnr")
    assert one.mean == pytest.approx(65 / 3)
    assert two.mean == pytest.approx(73 / 3)
    assert (one.n, two.n) == (3, 3)
    assert (one.place, two.place) == (2, 1)
    assert one.low is not None
    assert one.high is not None
    assert one.low < 65 / 3 < one.high


def test_what_is_equal_in_print_is_a_tie(study: Restoration) -> None:
    (sheet,) = study.prompts
    assert cell(sheet, "S1", "Q").place == cell(sheet, "SF1", "Q").place == 1
    assert cell(sheet, "S1", "Q").n == 4


def test_all_methods_are_compared_over_what_all_have(study: Restoration) -> None:
    sheet = study.overall
    assert sheet is not None
    found = {r.label: (r.cells["psnr"].mean, r.cells["psnr"].place) for r in sheet.rows}
    assert found == {"banana · S1": (26.5, 2), "banana · SF1": (29.0, 1), "net": (25.5, 0)}
    assert cell(sheet, "net", "psnr").n == 2
    assert cell(sheet, "net", "psnr").low is None  # two pictures are too few for an interval
    assert "PSNR: over 2 of 3 pictures: not all methods have a score of p2." in sheet.notes
    assert "Q: over 3 of 4 pictures: not all methods have a score of p2." in sheet.notes
    assert row(sheet, "net").expected == 3


def test_scenes_and_damages_have_sheets_of_their_own(study: Restoration) -> None:
    sheets = {(sheet.by, sheet.of): sheet for sheet in study.scenes}
    assert list(sheets) == [
        ("scene", "Text"), ("scene", "Crowd"), ("scene", "Film"),
        ("damage", "defocus"), ("damage", "motion"), ("damage", "old-film"),
    ]  # fmt: skip
    assert cell(sheets["scene", "Text"], "banana · S1", "psnr").mean == 22
    assert cell(sheets["damage", "motion"], "banana · SF1", "psnr").mean == 33
    film = cell(sheets["scene", "Film"], "net", "psnr")
    assert (film.mean, film.absent) == (None, "truth")
    assert cell(sheets["scene", "Film"], "net", "Q").mean == 40


def test_the_effect_is_paired_by_picture(study: Restoration) -> None:
    found = {(e.factor, e.measure, e.within): e for e in study.effects}
    assert set(found) == {("fidelity", "psnr", ""), ("fidelity", "Q", "")}
    effect = found["fidelity", "psnr", ""]
    assert (effect.level, effect.baseline, effect.n) == ("yes", "no", 3)
    assert effect.difference == pytest.approx(8 / 3)  # 3, 3 and 2
    assert effect.p == pytest.approx(0.25)  # all of one sign: 2 of 8
    assert effect.adjusted == pytest.approx(0.25)  # Holm: 2 · 0.125 for the smaller, then no less
    assert found["fidelity", "Q", ""].p == pytest.approx(0.125)  # 4 pictures: 2 of 16
    assert effect.better == "tied"  # three pictures cannot tell
    assert found["fidelity", "Q", ""].difference == pytest.approx(0.0004)


def test_friedman_and_w_by_hand(study: Restoration) -> None:
    found = {(t.method, t.measure): t for t in study.stability}
    test = found["banana · S1", "psnr"]
    # All three pictures rank the repeats 1, 2, 3: 12 / (3·3·4) · (3² + 6² + 9²) − 3·3·4 = 6
    assert test.statistic == pytest.approx(6)
    assert test.w == pytest.approx(1)
    assert test.p == pytest.approx(6 / 6**3, abs=0.004)  # the same order thrice, of 216
    assert "p by permutation" in test.note
    same = found["banana · SF1", "psnr"]
    assert (same.statistic, same.p, same.w) == (None, None, None)
    assert same.note == "identical in all repeats"
    assert not any(test.method == "net" for test in study.stability)


def test_points_are_over_pictures_with_a_truth(study: Restoration) -> None:
    found = {p.method: (p.x, round(p.y, 9), p.n) for p in study.tradeoff}
    assert found == {
        "banana · S1": (26.5, 50.0, 2),
        "banana · SF1": (29.0, 50.0004, 2),
        "net": (25.5, 40.0, 2),
    }


def test_methods_can_be_left_out(tmp_path: Path) -> None:
    study = judged(tmp_path / "known.csv", COLUMNS, lines(), methods=["S1", "sf1"])
    assert study.overall is not None
    assert cell(study.overall, "banana · S1", "psnr").mean == pytest.approx(65 / 3)


def test_the_terminal_shows_marks_that_survive_plain_text(study: Restoration) -> None:
    text = str(study)
    assert "29.000¹" in text
    assert "26.500²" in text
    assert "     /" in text
    assert study.to_dict()["overall"]["rows"][0]["cells"]["psnr"]["mean"] == 26.5


def test_a_constant_picture_score_of_infinity_is_left_out_and_counted(tmp_path: Path) -> None:
    told: list[list[object]] = [["a", "x", "inf"], ["a", "y", 20], ["b", "x", 30], ["b", "y", 22]]
    study = judged(tmp_path / "t.csv", ["method", "image", "PSNR"], told)
    assert study.overall is not None
    assert cell(study.overall, "a", "psnr").mean == 20
    assert cell(study.overall, "a", "psnr").infinite == 1
    assert cell(study.overall, "b", "psnr").mean == 22
    assert cell(study.overall, "b", "psnr").infinite == 0


def test_no_common_picture_is_said_and_not_worked_around(tmp_path: Path) -> None:
    told = [["a", "x", 20], ["b", "y", 22]]
    study = judged(tmp_path / "t.csv", ["method", "image", "PSNR"], told)
    assert study.overall is not None
    assert [r.cells["psnr"].mean for r in study.overall.rows] == [None, None]
    assert "no mean: of none of 2 pictures do all methods have a score" in str(study)


def test_prompts_asked_for_few_pictures_are_not_in_the_table_of_all(tmp_path: Path) -> None:
    told = [[m, f"i{n}", 20 + n] for m, count in (("net", 10), ("few", 4)) for n in range(count)]
    study = judged(tmp_path / "t.csv", ["method", "image", "PSNR"], told)
    assert study.overall is not None
    assert [r.label for r in study.overall.rows] == ["net"]
    assert cell(study.overall, "net", "psnr").n == 10
    assert "1 method was asked for less than half of the 10 pictures" in str(study)


def test_an_unbalanced_design_does_not_take_one_factor_for_another(tmp_path: Path) -> None:
    """Fidelity wording adds 5; length does nothing, and only long prompts are mostly faithful."""
    told = [
        [f"{group}{n}", group, f"i{i}", 20 + i + (5 if group.endswith("F") else 0)]
        for group, count in (("S", 3), ("SF", 1), ("L", 1), ("LF", 3))
        for n in range(1, count + 1)
        for i in range(8)
    ]
    study = judged(tmp_path / "t.csv", ["prompt", "group", "image", "PSNR"], told)
    found = {(e.factor, e.within): e for e in study.effects}
    assert found["length", ""].difference == pytest.approx(0)
    assert found["length", ""].better == "tied"
    assert found["fidelity", ""].difference == pytest.approx(5)
    assert found["fidelity", ""].better == "level"
    assert found["fidelity", "length=long"].difference == pytest.approx(5)
    (sheet,) = study.prompts
    long, short = cell(sheet, "Avg (L + LF)", "psnr").mean, cell(sheet, "Avg (S + SF)", "psnr").mean
    assert long is not None
    assert short is not None
    assert long - short == pytest.approx(2.5)  # plain means of prompts, as the paper prints


def test_more_than_two_levels_are_told_against_the_first(tmp_path: Path) -> None:
    told = [
        [f"{tone}-{n}", tone, f"i{i}", tone, 20 + i + bonus]
        for tone, bonus in (("plain", 0), ("polite", 1), ("stern", -1))
        for n in (1, 2)
        for i in range(7)
    ]
    study = judged(tmp_path / "t.csv", ["prompt", "group", "image", "tone", "PSNR"], told)
    found = {(e.level, e.baseline): (round(e.difference, 9), e.better) for e in study.effects}
    assert found == {("polite", "plain"): (1, "level"), ("stern", "plain"): (-1, "baseline")}
