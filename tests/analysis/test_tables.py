"""What the printed tables say: never the headline alone, always over how many."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from convergebench.analysis import Finding, Findings, analyze
from convergebench.analysis.tables import (
    Analysis,
    group_table,
    pair_table,
    variance_table,
    worst_table,
)
from tests.analysis.handmade import SPECS, VALUE_AT, HandMade
from tests.analysis.test_study import TINT
from tests.support.runs import CYCLES

STUDY = sys.modules["convergebench.analysis.study"]
CURVES = {"psnr": (0.8, 0.1), "ssim": (0.9, 0.6), "lpips": (0.3, 0.6), "clip": (0.9, 0.45)}


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the metrics of `handmade` the installed ones."""
    monkeypatch.setattr(STUDY, "metric_spec", SPECS.__getitem__)


def scored(folder: Path, metrics: Sequence[str]) -> Findings:
    """Editor `a` with two chains; one more of it was refused after its first homecoming."""
    made = HandMade(folder)
    for source, repeat in (("s0", 0), ("s1", 0), ("s1", 1)):
        length, ended = (1, "refused") if repeat else (2, None)
        chain = made.chain(source, "copy", "a", length, ended, repeat=repeat)
        for metric in metrics:
            for step, value in enumerate(CURVES[metric][:length], 1):
                stored = VALUE_AT[metric](value) if metric in VALUE_AT else value
                made.score(chain.key.id, step, metric, stored, version="1")
    made.floors(version="1")
    made.score("floor--s0", 0, "lpips", 1.0, against="s1", version="1")
    made.score("floor--s0", 0, "clip", 0.0, against="s1", version="1")
    return analyze(made.done())


def test_no_table_shows_the_headline_alone(tmp_path: Path) -> None:
    found = scored(tmp_path, tuple(CURVES))
    assert found.ranked_by == ("headline",)
    (line,) = found.table.records()
    assert (line["AUC quality"], line["AUC semantic"]) == ("0.600", "0.675")
    (row,) = group_table(found.findings, "cycle").records()
    assert str(row["mean AUC [95 %]"]).startswith("0.600")
    assert (row["AUC quality"], row["AUC semantic"]) == ("0.600", "0.675")
    lives = {name: cell for name, cell in row.items() if name.startswith("half-life")}
    assert list(lives) == ["half-life headline", "half-life quality", "half-life semantic"]
    for chain in worst_table(found.findings).records():
        assert str(chain["what happened"]).endswith(
            "below 0.5 after 1.75 rounds; quality after 1.75, AUC 0.600; "
            "semantic after 1.89, AUC 0.675"
        )


def test_a_dimension_that_is_there_is_shown_beside_one_that_is_incomplete(tmp_path: Path) -> None:
    found = scored(tmp_path, ("psnr", "ssim", "lpips"))
    assert found.ranked_by == ("quality",)
    (line,) = found.table.records()
    assert (line["half-life quality"], line["half-life semantic"]) == ("1.75", "incomplete")
    assert "half-life headline" not in line
    (row,) = group_table(found.findings, "cycle").records()
    assert str(row["half-life quality"]).startswith("1.75")
    assert row["half-life semantic"] == "incomplete"


def test_every_table_says_n_and_what_is_not_in_it(tmp_path: Path) -> None:
    found = scored(tmp_path, tuple(CURVES))
    (line,) = found.table.records()
    counts = ("n", "missing", "failed", "refused", "censored")
    assert [line[name] for name in counts] == [2, 1, 1, 1, 1]
    table = group_table(found.findings, "cycle")
    (row,) = table.records()
    assert [row[name] for name in counts] == [2, 1, 1, 1, 1]
    assert row["half-life headline"] == "1.75 (n 3)", "the refused chain was followed until then"
    assert "(n …) where another number is over more or fewer chains" in str(table)
    assert "1 chain of these editors more has no AUC (1 failed, 1 of them refused)" in str(
        worst_table(found.findings)
    )


def test_pairs_and_shares_say_what_is_missing() -> None:
    score = {"estimate": 0.5, "n": 2, "missing": 1, "failed": 1, "refused": 1}
    found = [
        Finding(id="score/a", editor="a", **score),
        Finding(id="score/b", editor="b", **(score | {"missing": 3})),
        Finding(id="pair/a/b", editor="a", other="b", estimate=0.1, n=2, note="tied; …"),
        Finding(id="variance/psnr/source/a", editor="a", metric="psnr", group="source", **score),
    ]
    (pair,) = pair_table(found).records()
    assert [pair[name] for name in ("n", "missing", "failed", "refused")] == [2, 4, 2, 2]
    (share,) = variance_table(found).records()
    assert [share[name] for name in ("n", "missing", "failed", "refused")] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("note", "cell"),
    [
        ("3 chains of cycles that cannot be fully undone among them", "–"),
        ("half-life > 7, 3 chains of cycles that cannot be fully undone among them", "> 7"),
        ("", "–"),
    ],
)
def test_no_sentence_stands_for_a_half_life(note: str, cell: str) -> None:
    told = {"editor": "a", "group": "edit:x", "metric": "psnr", "n": 3}
    found = [
        Finding(id="by-edit/x/psnr/a", estimate=0.5, **told),
        Finding(id="life-by-edit/x/psnr/a", estimate=None, note=note, **told),
    ]
    (row,) = group_table(found, "edit").records()
    assert row["half-life psnr"] == cell


def test_a_run_of_cycles_that_cannot_be_undone_is_told_by_group(tmp_path: Path) -> None:
    made = HandMade(tmp_path, cycles=CYCLES + TINT)
    for source in ("s0", "s1"):
        chain = made.chain(source, "tint", "a", 4)
        for n, c in enumerate((0.6, 0.2), 1):
            for metric in ("psnr", "ssim"):
                made.score(chain.key.id, 2 * n, metric, VALUE_AT[metric](c), version="1")
    made.floors(version="1")
    found = analyze(made.done())
    text = str(Analysis(found))
    assert "No editor is ranked: no cycle of this run can be fully undone" in text
    assert "Inert check: not made, no round trip of this run can be fully undone." in text
    assert "Quality half-life: incomplete, lpips not scored." in text
    assert "no chain" not in text
    assert "no round trip." not in text
    (row,) = group_table(found.findings, "edit").records()
    assert (row["edit"], row["editor"], row["n"]) == ("colour", "a", 2)
    assert (row["half-life psnr"], row["half-life ssim"]) == ("1.25", "1.25")
