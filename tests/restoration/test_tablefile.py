"""Tables of scores that cannot be used, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import InputError, SettingsError
from convergebench.restoration import judge_restorations
from tests.restoration.tables import judged, row


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("PSNR\n20\n", "no column 'prompt' or 'method'"),
        ("method,colour\na,red\n", "no column of a metric"),
        ("method,mine\na,3\n", "'mine' is no metric known here.*mine↑"),
        ("method,PSNR\na,much\n", "line 2, column PSNR: 'much' is no number"),
        ("method,PSNR\na,20\na,21\n", "line 3: a is there already, in line 2"),
        ("method,PSNR\na,20,7\n", "line 2 has 3 cells, expected 2"),
        ("method,PSNR,PSNR\na,20,7\n", "'PSNR' twice"),
        ("method,PSNR,psnr\na,20,7\n", "two columns of one metric"),
        ("method,PSNR↓\na,20\n", "the better the higher, the arrow says otherwise"),
        ("method,image,repeat,PSNR\na,x,one,20\n", "repeat 'one' is no whole number"),
        ("method,image,PSNR\na,,20\n", "line 2: no image is named"),
        ("method,PSNR\n", "no line of a prompt or method"),
        ("image,source,method,PSNR\n", "'image' and 'source' say the same"),
    ],
)
def test_a_table_that_is_none_is_refused_in_a_sentence(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        judge_restorations(tmp_path / "t.csv")


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv is not there"):
        judge_restorations(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="cannot be read as a table"):
        judge_restorations(tmp_path / "b.csv")
    with pytest.raises(SettingsError, match="judged alone"):
        judge_restorations(tmp_path / "b.csv", tmp_path / "run")


def test_a_printed_table_is_read_as_printed(tmp_path: Path) -> None:
    """The group in its first line only, averages below, arrows in the head, tabs between."""
    lines = [
        "Group\tPrompt\tPSNR ↑\tLPIPS↓\tCLIP-IQA\tmine↓",
        "S\tS1\t20\t0.3\t0.5\t7",
        "\tS2\t22\t0.2\t0.6\t8",
        "\tAvg\t21\t0.25\t0.55\t7.5",
        "SF\tSF1\t23\t0.1\t/\t9",
    ]
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    study = judge_restorations(tmp_path / "t.tsv")
    assert [m.name for m in study.measures] == ["psnr", "lpips", "clipiqa", "mine"]
    (sheet,) = study.prompts
    assert [r.label for r in sheet.rows if r.kind == "prompt"] == ["S1", "S2", "SF1"]
    assert row(sheet, "Avg (S)").cells["psnr"].mean == 21
    assert row(sheet, "S1").cells["mine"].place == 1
    assert row(sheet, "SF1").cells["clipiqa"].absent == "score"
    assert "1 line of averages left out" in str(study)


def test_metrics_can_be_chosen_by_any_name_they_have(tmp_path: Path) -> None:
    told = [["a", 20, 0.5], ["b", 21, 0.4]]
    study = judged(tmp_path / "t.csv", ["method", "PSNR", "CLIP-IQA"], told, metrics=["clip-iqa"])
    assert [m.title for m in study.measures] == ["CLIP-IQA"]
    with pytest.raises(InputError, match=r"no metric in t\.csv called 'ssim'"):
        judge_restorations(tmp_path / "t.csv", metrics=["ssim"])
