"""The paper's own figures (tests/golden/restoration_paper.json) fed to our analysis."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2

from convergebench.restoration import Restoration, printed
from convergebench.restoration.means import rounded
from tests.restoration.tables import PAPER, cell, judged, rank_table, row

METRICS = PAPER["metrics"]
NAMES = ("psnr", "ssim", "lpips", "musiq", "maniqa", "clipiqa")


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Restoration:
    """Table 2, from its twelve rows of prompts."""
    path = tmp_path_factory.mktemp("paper") / "table2.csv"
    return judged(path, ["Group", "Prompt", *METRICS], PAPER["table2"]["rows"])


def test_its_rows_give_34_of_its_36_averages_to_the_printed_digit(prompts: Restoration) -> None:
    (sheet,) = prompts.prompts
    unlike = []
    for group, averages in PAPER["table2"]["averages"].items():
        for title, name, theirs in zip(METRICS, NAMES, averages, strict=True):
            ours = cell(sheet, f"Avg ({group})", name).mean
            assert ours is not None
            if printed(ours) != f"{theirs:.3f}":
                unlike.append([group, title])
    # The authors averaged what they had not rounded yet.
    assert unlike == PAPER["table2"]["unlike"] == [["S", "PSNR"], ["S", "SSIM"]]
    assert printed(cell(sheet, "Avg (S)", "psnr").mean or 0) == "22.517"
    assert printed(cell(sheet, "Avg (S)", "ssim").mean or 0) == "0.661"


def test_all_36_averages_are_what_rounding_of_the_rows_allows(prompts: Restoration) -> None:
    (sheet,) = prompts.prompts
    looked = 0
    for group, averages in PAPER["table2"]["averages"].items():
        for name, theirs in zip(NAMES, averages, strict=True):
            ours = cell(sheet, f"Avg ({group})", name).mean or math.nan
            # Each row may be half a unit off, and so may the average as printed.
            assert abs(ours - theirs) <= 0.0005 + 0.0005 + 1e-12
            looked += 1
    assert looked == 36


def test_best_and_second_prompts_are_those_of_its_table(prompts: Restoration) -> None:
    (sheet,) = prompts.prompts
    places = {
        (name, place): [r.label for r in sheet.rows if r.cells[name].place == place]
        for name in NAMES
        for place in (1, 2)
    }
    assert places["psnr", 1] == ["SF3"]
    assert places["psnr", 2] == ["LF1"]
    assert places["lpips", 1] == ["SF1", "SF3"]  # a tie at the printed digit
    assert places["lpips", 2] == ["LF1"]
    assert places["ssim", 2] == ["LF1", "SF1"]
    # "S3 obtains the highest scores across all no-reference IQA metrics"
    assert [places[name, 1] for name in NAMES[3:]] == [["S3"]] * 3
    assert all(r.cells[name].place == 0 for r in sheet.rows for name in NAMES if r.kind != "prompt")


def test_groups_that_share_a_level_are_put_together(prompts: Restoration) -> None:
    (sheet,) = prompts.prompts
    assert {r.group: r.level for r in sheet.rows if r.kind == "groups"} == {
        "L + LF": "length=long",
        "S + SF": "length=short",
        "L + S": "fidelity=no",
        "LF + SF": "fidelity=yes",
    }


def test_its_text_says_more_than_its_figures(prompts: Restoration) -> None:
    """Long beats short in all six averages, but by less than prompts of one group differ."""
    (sheet,) = prompts.prompts
    long, short = row(sheet, "Avg (L + LF)"), row(sheet, "Avg (S + SF)")
    for measure in sheet.measures:
        mine = [r.cells[measure.name].mean or 0.0 for r in sheet.rows if r.kind == "prompt"]
        apart = (long.cells[measure.name].mean or 0) - (short.cells[measure.name].mean or 0)
        assert apart > 0 if measure.higher_is_better else apart < 0
        assert abs(apart) < 0.25 * (max(mine) - min(mine))


@pytest.mark.parametrize("tested", PAPER["table3"]["rows"], ids=lambda tested: tested["prompt"])
def test_ranks_of_its_statistics_give_its_p_values(tmp_path: Path, tested: dict[str, Any]) -> None:
    """All 24 pairs of Table 3, through tables of ranks that have these statistics."""
    told: dict[tuple[int, int], list[float | None]] = {}
    sizes = [PAPER["table3"]["pictures_with_truth"]] * 3 + [PAPER["table3"]["pictures"]] * 3
    for place, (size, statistic) in enumerate(zip(sizes, tested["statistic"], strict=True)):
        for picture, ranks in enumerate(rank_table(size, round(statistic * size))):
            for repeat, rank in enumerate(ranks):
                told.setdefault((picture, repeat), [None] * 6)[place] = rank
    lines = [["P1", f"i{picture}", repeat, *cells] for (picture, repeat), cells in told.items()]
    study = judged(tmp_path / "t.csv", ["prompt", "image", "repeat", *METRICS], lines)
    found = {test.measure: test for test in study.stability}
    for name, size, statistic, p in zip(
        NAMES, sizes, tested["statistic"], tested["p"], strict=True
    ):
        assert found[name].pictures == size
        assert f"{found[name].statistic:.3f}" == f"{statistic:.3f}"
        assert f"{found[name].p:.3f}" == f"{p:.3f}"
        assert found[name].w == pytest.approx(round(statistic * size) / size / (2 * size))
        # Of the printed statistic itself p may be one in the last digit off.
        assert chi2.sf(statistic, 2) == pytest.approx(p, abs=0.00075)
    low = {"LF1": 1, "S1": 1}.get(tested["prompt"], 0)  # 2 of its 24 tests
    assert sum(test.significant for test in study.stability) == low


@pytest.mark.parametrize(
    ("size", "squares", "statistic", "p"),
    [(21, 26, "1.238", "0.538"), (35, 218, "6.229", "0.044"), (35, 278, "7.943", "0.019")],
)
def test_the_named_statistics(size: int, squares: int, statistic: str, p: str) -> None:
    import numpy as np

    from convergebench.restoration.stability import friedman

    found = friedman(np.array(rank_table(size, squares), dtype=np.float64))
    assert found is not None
    assert (f"{found[0]:.3f}", f"{found[1]:.3f}") == (statistic, p)


def test_scenes_without_truth_have_a_slash_and_the_rest_its_places(tmp_path: Path) -> None:
    study = judged(tmp_path / "table4.csv", ["Scene", "Method", *METRICS], PAPER["table4"])
    sheets = {sheet.of: sheet for sheet in study.scenes}
    for scene in ("Motion Blur", "Old Film", "Surveillance"):
        for r in sheets[scene].rows:
            assert [r.cells[name].absent for name in NAMES] == ["truth"] * 3 + [""] * 3
    assert cell(sheets["Text"], "PiSA-SR", "psnr").place == 1
    assert cell(sheets["Text"], "Nano Banana 2", "psnr").place == 2
    assert cell(sheets["Small Faces"], "Nano Banana 2", "lpips").place == 1
    assert "/" in str(study)


def test_the_overall_table_has_its_places(tmp_path: Path) -> None:
    study = judged(tmp_path / "table5.csv", ["Method", *METRICS], PAPER["table5"])
    assert study.overall is not None
    best = {
        name: [r.label for r in study.overall.rows if r.cells[name].place == 1] for name in NAMES
    }
    # "achieving the highest SSIM scores and the lowest LPIPS values"
    assert (best["ssim"], best["lpips"]) == (["Nano Banana 2"], ["Nano Banana 2"])
    assert best["psnr"] == ["PiSA-SR"]
    assert len(study.tradeoff) == 9 * 5


def test_means_are_rounded_half_up_as_people_do() -> None:
    assert str(rounded(0.6615)) == "0.662"
    assert str(rounded((0.661 + 0.662) / 2)) == "0.662"
    assert printed(-0.0001) == "0.000"
    assert printed(22.51666666) == "22.517"
