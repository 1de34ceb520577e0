"""A whole run directory, written by hand; every number expected is worked out here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from convergebench.analysis import Finding, Findings, Standing, analyze
from convergebench.errors import SettingsError
from convergebench.runspec import TRANSPORT
from tests.analysis.handmade import HandMade, decibels, installed

ALPHA, BETA, GAMMA = "lab:alpha", "lab/beta:v1,size=1K", "lab:gämma ☃ [b]"
LAZY, DEAD = "lab:lazy", "lab:dead"

CURVES: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    # Per source and cycle C(1), C(2); beta is alpha less 0.2, so the AUCs differ by 0.2 everywhere.
    ALPHA: {
        ("s0", "copy"): (0.90, 0.70),  # AUC 0.8
        ("s1", "copy"): (0.72, 0.48),  # AUC 0.6, falls at 1 + 0.22 / 0.24
        ("s0", "ball"): (0.80, 0.60),  # AUC 0.7
        ("s1", "ball"): (0.60, 0.40),  # AUC 0.5, falls at 1.5
    },
    BETA: {
        ("s0", "copy"): (0.70, 0.50 + 1e-6),  # AUC 0.6, just holds
        ("s1", "copy"): (0.52, 0.28),  # AUC 0.4, falls at 1 + 0.02 / 0.24
        ("s0", "ball"): (0.60, 0.40),  # AUC 0.5, falls at 1.5
        ("s1", "ball"): (0.40, 0.20),  # AUC 0.3, falls at 0.5 / 0.6
    },
    GAMMA: {
        ("s0", "copy"): (0.90,),  # refused at the second step
        ("s1", "copy"): (0.20, 0.00),  # AUC 0.1, falls at 0.5 / 0.8
        ("s0", "ball"): (0.40, 0.20),  # AUC 0.3, falls at 0.5 / 0.6
        ("s1", "ball"): (0.30, 0.10),  # AUC 0.2, falls at 0.5 / 0.7
    },
}
FORWARD = {ALPHA: 30.0, BETA: 20.0, GAMMA: 10.0, LAZY: 0.0, "ref:identity": 25.0, TRANSPORT: 2.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = HandMade(tmp_path_factory.mktemp("hand"))
    flat = {LAZY: 1.0, "ref:identity": 1.0, TRANSPORT: 0.95}
    for editor, change in FORWARD.items():
        for source in ("s0", "s1"):
            for cycle in ("copy", "ball"):
                curve = CURVES.get(editor, {}).get((source, cycle), (flat.get(editor, 0.0),) * 2)
                ended = "refused" if len(curve) == 1 else None
                chain = made.walk(source, cycle, editor, curve, ended=ended)
                if cycle == "ball":
                    for where in ("all", "inside"):
                        made.score(
                            chain.key.id,
                            1,
                            "psnr",
                            decibels(change),
                            against="previous",
                            where=where,
                        )
    for source in ("s0", "s1"):
        for cycle in ("copy", "ball"):
            made.chain(source, cycle, DEAD, 0, "failed")
    made.floors()
    return made.done()


@pytest.fixture(scope="module")
def found(run: Path) -> Findings:
    return analyze(run)


@pytest.fixture(scope="module")
def lines(found: Findings) -> dict[str, Standing]:
    return {s.editor: s for s in found.standings}


@pytest.fixture(scope="module")
def numbers(found: Findings) -> dict[str, Finding]:
    by_id = {f.id: f for f in found.findings}
    assert len(by_id) == len(found.findings), "ids are unique"
    return by_id


def test_scores_rest_on_the_three_chains_all_completed(
    found: Findings, lines: dict[str, Standing]
) -> None:
    assert (found.common, found.sources, found.ranked_by) == (3, 2, ("psnr", "ssim"))
    # Without (s0, copy): s0 has its ball, s1 the mean of both cycles.
    assert lines[ALPHA].score == pytest.approx((0.7 + (0.6 + 0.5) / 2) / 2)
    assert lines[BETA].score == pytest.approx((0.5 + (0.4 + 0.3) / 2) / 2)
    assert lines[GAMMA].score == pytest.approx((0.3 + (0.1 + 0.2) / 2) / 2)
    # Two sources: the interval runs from the worse to the better one.
    assert [lines[ALPHA].low, lines[ALPHA].high] == [0, 1], "two sources say next to nothing"
    assert lines[ALPHA].auc == pytest.approx({"psnr": 0.625, "ssim": 0.625})


def test_ranks(lines: dict[str, Standing]) -> None:
    ranks = {name: (s.best_rank, s.worst_rank) for name, s in lines.items() if s.best_rank}
    # From two sources nobody can be told from anybody, however far apart.
    assert ranks == {"ref:identity": (1, 4), ALPHA: (1, 4), BETA: (1, 4), GAMMA: (1, 4)}


def test_every_two_ranked_editors_are_compared(numbers: dict[str, Finding]) -> None:
    pairs = [f for f in numbers.values() if f.kind == "pair"]
    assert len(pairs) == 4 * 3 / 2
    mine = numbers[f"pair/{ALPHA}/{BETA}"]
    assert (mine.editor, mine.other, mine.n) == (ALPHA, BETA, 3)
    assert mine.estimate == pytest.approx(0.2)
    assert mine.p == 1
    assert mine.note.startswith("tied; sign flips, all counted, 6 pairs corrected by Holm")


def test_the_unranked_say_why(lines: dict[str, Standing]) -> None:
    assert {name: s.why_unranked for name, s in lines.items() if s.best_rank is None} == {
        TRANSPORT: "inert",
        LAZY: "inert",
        DEAD: "no complete chain",
    }
    assert lines[TRANSPORT].control
    assert lines[TRANSPORT].score == pytest.approx(0.95), "the pipe's loss is shown"
    assert lines[LAZY].score is None


def test_the_ranked_come_first_and_best_first(found: Findings) -> None:
    order = ["ref:identity", ALPHA, BETA, GAMMA, TRANSPORT, DEAD, LAZY]
    assert [s.editor for s in found.standings] == order


def test_chains_and_outcomes_are_counted(lines: dict[str, Standing]) -> None:
    gamma, dead = lines[GAMMA], lines[DEAD]
    assert (gamma.chains, gamma.complete, gamma.failed) == (4, 3, 1)
    assert gamma.outcomes == {"edited": 1 + 2 + 4 + 4, "refused": 1}
    assert (dead.chains, dead.complete, dead.failed) == (4, 0, 4)
    assert dead.outcomes == {"failed": 4}
    assert (lines[LAZY].chains, lines[LAZY].complete) == (4, 4)


def test_floors_and_metrics(found: Findings) -> None:
    assert found.floors == pytest.approx({"psnr": -100, "ssim": 0.2})
    assert found.metrics == (f"psnr@{installed('psnr')}", f"ssim@{installed('ssim')}")


def test_half_lives(lines: dict[str, Standing], numbers: dict[str, Finding]) -> None:
    # Alpha: 1.5 and 1.9167 fall, two are censored at 2: survival 3/4, then 1/2.
    assert lines[ALPHA].half_life == {"psnr": "1.92", "ssim": "1.92"}
    life = numbers[f"half-life/psnr/{ALPHA}"]
    assert life.estimate == pytest.approx(1 + 0.22 / 0.24)
    assert (life.n, life.missing, life.failed, life.censored) == (4, 0, 0, 2)
    mean = numbers[f"restricted-mean/psnr/{ALPHA}"]
    assert mean.estimate == pytest.approx(
        1.5 + 0.75 * (0.22 / 0.24 - 0.5) + 0.5 * (2 - 1 - 0.22 / 0.24)
    )
    # Beta: 0.8333, 1.0833, 1.5 fall, one is censored at 2.
    assert lines[BETA].half_life["ssim"] == "1.08"
    # Gamma: 0.625, 0.7143, 0.8333 fall, one is censored at 1, when it was refused.
    assert lines[GAMMA].half_life["psnr"] == "0.71"
    assert lines["ref:identity"].half_life["psnr"] == "> 2"
    assert DEAD not in {name for name, s in lines.items() if s.half_life}
    dead = numbers[f"half-life/psnr/{DEAD}"]
    assert (dead.estimate, dead.n, dead.failed) == (None, 0, 4)


def test_the_literal_rule_is_reported_for_ssim(numbers: dict[str, Finding]) -> None:
    # SSIM is 0.2 + 0.8 C, so it falls below 1/2 where C falls below 0.375: beta's s1, at round 2.
    literal = numbers[f"literal-half-life/ssim/{BETA}"]
    assert (literal.estimate, literal.n, literal.missing, literal.censored) == (2.0, 4, 0, 2)
    assert numbers[f"literal-half-life/ssim/{ALPHA}"].estimate is None
    assert f"literal-half-life/psnr/{BETA}" not in numbers


def test_auc_of_each_editors_own_chains(numbers: dict[str, Finding]) -> None:
    alpha, gamma = numbers[f"auc/psnr/{ALPHA}"], numbers[f"auc/ssim/{GAMMA}"]
    assert alpha.estimate == pytest.approx(((0.8 + 0.7) / 2 + (0.6 + 0.5) / 2) / 2)
    assert (alpha.n, alpha.missing, alpha.failed) == (4, 0, 0)
    assert gamma.estimate == pytest.approx((0.3 + 0.15) / 2)
    assert (gamma.n, gamma.missing, gamma.failed) == (3, 1, 1)
    assert numbers[f"auc/psnr/{DEAD}"].missing == 4


def test_score_findings_say_n_missing_and_failed(numbers: dict[str, Finding]) -> None:
    gamma = numbers[f"score/{GAMMA}"]
    assert (gamma.n, gamma.missing, gamma.failed, gamma.note) == (3, 1, 1, "over 2 sources")
    assert numbers[f"score/{LAZY}"].note == "inert"
    assert numbers[f"score/{LAZY}"].estimate is None


def test_curves(numbers: dict[str, Finding]) -> None:
    first = numbers[f"convergence/psnr/{ALPHA}/1"]
    assert first.estimate == pytest.approx((0.9 + 0.72 + 0.8 + 0.6) / 4)
    assert [first.low, first.high] == [0, 1]
    second = numbers[f"convergence/ssim/{GAMMA}/2"]
    assert second.estimate == pytest.approx((0.2 + (0.0 + 0.1) / 2) / 2), "each source once"
    assert (second.n, second.missing, second.failed) == (3, 1, 1)
    assert (second.metric, second.editor, second.round) == ("ssim", GAMMA, 2)
    value = numbers[f"value/ssim/{ALPHA}/1"]
    assert value.estimate == pytest.approx(0.2 + 0.8 * 0.755)
    nobody = numbers[f"value/ssim/{DEAD}/1"]
    assert (nobody.estimate, nobody.n, nobody.missing, nobody.failed) == (None, 0, 4, 4)


def test_identical_frames_have_no_finite_psnr_and_are_counted(numbers: dict[str, Finding]) -> None:
    point = numbers["value/psnr/ref:identity/1"]
    assert (point.estimate, point.n, point.infinite, point.missing) == (None, 0, 4, 0)
    assert numbers["convergence/psnr/ref:identity/1"].estimate == 1


def test_inert_editors_are_findings(numbers: dict[str, Finding]) -> None:
    assert numbers[f"inert/{LAZY}"].estimate == 1
    assert numbers[f"inert/{ALPHA}"].estimate == 0
    assert numbers[f"inert/{ALPHA}"].n == 2


def test_notes(found: Findings) -> None:
    text = "\n".join(found.notes)
    assert "Ranked on 3 chains (from 2 sources) that all ranked editors completed" in text
    assert "The score is the mean AUC of psnr and ssim." in text
    assert "Quality half-life: incomplete, lpips not scored." in text
    assert "Semantic half-life: incomplete, clip not scored." in text
    assert "Ranks are provisional: 2 sources are too few" in text
    assert f"Inert check: not made for {DEAD}" in text
    assert "5 of 28 chains ended early: 4 failed, 1 refused." in text
    assert "not finished" not in text


def test_what_is_written_is_what_is_returned(run: Path, found: Findings) -> None:
    text = (run / "findings.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert Findings.model_validate_json(text) == found
    assert analyze(run) == found, "the same run gives the same findings"


def test_the_table_shows_every_editor(found: Findings) -> None:
    rows = {str(row["editor"]): row for row in found.table.records()}
    assert rows[GAMMA] | {"half-life ssim": ""} == {
        "rank": "1–4",
        "editor": GAMMA,
        "mean AUC [95 %]": "0.225 [0.000, 1.000]",
        "half-life psnr": "0.71",
        "half-life ssim": "",
        "n": 3,
        "missing": 1,
        "failed": 1,
        "refused": 1,
        "censored": 1,
        "unranked because": "",
    }
    assert len(rows) == 7


def test_the_threshold_is_a_setting(run: Path) -> None:
    found = analyze(run, threshold=0.85)
    life = next(f for f in found.findings if f.id == f"half-life/psnr/{ALPHA}")
    # Falls at 0.15 / 0.4, 0.15 / 0.28, 0.15 / 0.2 and 1.25: survival is 1/2 from the second on.
    assert life.estimate == pytest.approx(0.15 / 0.28)
    assert found.threshold == 0.85
    with pytest.raises(SettingsError, match="threshold"):
        analyze(run, threshold=0)
    analyze(run)
