"""Runs with little to say: `analyze` says so, and why."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from convergebench import registry
from convergebench.analysis import Finding, Findings, Standing, analyze
from convergebench.chain import Settings
from convergebench.errors import ConvergeBenchError, MetricUnavailable
from convergebench.metric import MetricSpec
from convergebench.runspec import TRANSPORT
from tests.analysis.handmade import MORE_CYCLES, NIQE, SPECS, VALUE_AT, HandMade
from tests.support.runs import CYCLES

STUDY: Final = import_module("convergebench.analysis.study")
"""The module: its name in the package is that of the function."""


def line(found: Findings, editor: str) -> Standing:
    return next(s for s in found.standings if s.editor == editor)


def number(found: Findings, name: str) -> Finding:
    return next(f for f in found.findings if f.id == name)


def noted(found: Findings, text: str) -> bool:
    return any(text in note for note in found.notes)


def test_frames_without_scores_are_an_error_with_the_next_step(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.chain("s0", "copy", "a", 1)
    with pytest.raises(ConvergeBenchError, match=r"no scores yet.*convergebench score"):
        analyze(made.done())


def test_a_run_without_chains(tmp_path: Path) -> None:
    found = analyze(HandMade(tmp_path).done())
    assert found.standings == ()
    assert found.notes[0] == "No editor is ranked: the run has no chain."


@pytest.mark.parametrize("sources", [1, 2])
def test_a_run_in_which_every_first_step_failed(tmp_path: Path, sources: int) -> None:
    made = HandMade(tmp_path, sources)
    for cycle in ("copy", "ball"):
        made.chain("s0", cycle, "a", 0, "refused")
    made.floors()  # none, from one source: then there is no score at all
    found = analyze(made.done())
    assert found.notes[0] == "No editor is ranked: no chain came home even once."
    assert noted(found, "2 of 2 chains ended early: 2 refused.")
    mine = line(found, "a")
    assert (mine.chains, mine.complete, mine.failed) == (2, 0, 2)
    assert mine.outcomes == {"refused": 2}


def test_a_round_trip_that_never_came_back(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.chain("s0", "ball", "a", 1, "malformed")
    made.score(chain.key.id, 1, "psnr", 20.0, against="previous")
    made.floors()
    found = analyze(made.done())
    assert found.notes[0] == "No editor is ranked: no chain came home even once."
    assert line(found, "a").why_unranked == "nothing to rank by"


def test_cycles_without_a_home(tmp_path: Path) -> None:
    made = HandMade(tmp_path, cycles=CYCLES + MORE_CYCLES)
    chain = made.chain("s0", "more", "a", 3)
    for step in (1, 2, 3):
        made.score(chain.key.id, step, "psnr", 20.0, against="previous")
    made.floors()
    found = analyze(made.done())
    assert found.notes[0].startswith("No editor is ranked: no cycle of this run has a home")
    mine = line(found, "a")
    assert (mine.chains, mine.complete, mine.unmeasurable) == (0, 0, 1)
    assert mine.outcomes == {}, "outcomes are those of the chains that are counted"


def test_a_chain_without_a_home_is_not_missing_from_the_ranking(tmp_path: Path) -> None:
    made = HandMade(tmp_path, cycles=CYCLES + MORE_CYCLES)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.8, 0.6))
        made.chain(source, "more", "a", 3)
        made.chain(source, "rebuild", "a", 3)
        made.chain(source, "repair", "a", 3)
    made.floors()
    found = analyze(made.done())
    mine = line(found, "a")
    assert (mine.best_rank, mine.chains, mine.complete, mine.unmeasurable) == (1, 2, 2, 6)
    assert noted(found, "6 chains of more@1, rebuild@1, repair@1 have no home that psnr and ssim")


def test_one_source_has_values_but_no_convergence(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=1)
    made.walk("s0", "copy", "a", (0.8, 0.6))
    found = analyze(made.done())
    mine = line(found, "a")
    assert (mine.complete, mine.chains, mine.why_unranked) == (1, 1, "nothing to rank by")
    assert number(found, "value/ssim/a/1").estimate == pytest.approx(0.2 + 0.8 * 0.8)
    assert not any(f.id.startswith("convergence/") for f in found.findings)
    assert noted(found, "ssim: no convergence, because the suite's floor needs two sources.")
    assert found.notes[0] == "No editor is ranked: convergence by psnr or ssim cannot be had."


def test_one_common_source_gives_no_interval(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "a", (0.8, 0.6))
    made.walk("s0", "copy", "b", (0.4, 0.2))
    made.floors()
    found = analyze(made.done())
    first, second = found.standings
    assert (first.editor, first.low, first.high) == ("a", None, None)
    assert first.score == pytest.approx(0.7)
    assert (first.best_rank, first.worst_rank, second.best_rank) == (1, 2, 1)
    assert noted(found, "One source gives no interval, so no editor is above another.")
    assert "0.700" in str(found)


@pytest.mark.parametrize(
    ("floor", "why"),
    [
        (None, "every value of the suite's floor is null"),
        (1.0, "other sources are as close to a source as the source itself"),
        ("absent", "the suite's floor is not scored"),
    ],
)
def test_floors_that_cannot_be_used(tmp_path: Path, floor: Any, why: str) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.8, 0.6))
    made.floors(["psnr"])
    if floor != "absent":
        made.score("floor--s0", 0, "ssim", floor, against="s1")
    found = analyze(made.done())
    assert noted(found, f"ssim: no convergence, because {why}.")
    assert found.ranked_by == ("psnr",)
    assert noted(found, "mean AUC of psnr alone, because ssim cannot be had")


def test_only_one_of_the_ranking_metrics(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.8, 0.6), metrics=["psnr"])
    made.floors(["psnr"])
    found = analyze(made.done())
    assert line(found, "a").score == pytest.approx(0.7)
    assert found.ranked_by == ("psnr",)
    assert noted(found, "mean AUC of psnr alone, because ssim cannot be had")
    assert noted(found, "Quality half-life: incomplete, ssim, lpips not scored.")


def test_scores_of_older_versions_only(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.chain("s0", "copy", "a", 1)
    made.score(chain.key.id, 1, "psnr", 30.0, version="0")
    made.floors(["psnr"], version="0")
    found = analyze(made.done())
    assert noted(found, "psnr: left out, scored with version 0 only, installed is 1.")
    assert noted(found, "No editor is ranked: no frame is scored against home.")


def test_metrics_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        chain = made.walk(source, "copy", "a", (0.8, 0.6))
        for metric in ("nobody's", "weightless", "broken"):
            made.score(chain.key.id, 1, metric, 0.5)
    made.floors()
    read = registry.metric_spec

    def reading(name: str) -> MetricSpec:
        if name == "weightless":
            raise MetricUnavailable("its weights are not here")
        if name == "broken":
            raise RuntimeError("no such device")
        return read(name)

    monkeypatch.setattr(STUDY, "metric_spec", reading)
    found = analyze(made.done())
    assert [label.partition("@")[0] for label in found.metrics] == ["psnr", "ssim"]
    assert noted(found, "nobody's: has scores but is left out")
    assert noted(found, "weightless: has scores but is left out, because it cannot be opened here: "
                        "its weights are not here")  # fmt: skip
    assert noted(found, "RuntimeError: no such device")
    assert line(found, "a").best_rank == 1


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the metrics of `handmade` the installed ones."""
    known = SPECS | {"niqe": NIQE}
    monkeypatch.setattr(STUDY, "metric_spec", known.__getitem__)


@pytest.mark.usefixtures("cards")
def test_both_dimensions_and_the_headline(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    by_metric = {
        # Medians 0.8, 0.4; LPIPS and CLIP have floors 1 and 0, so C is 1 − LPIPS and CLIP itself.
        "psnr": (0.8, 0.1),
        "ssim": (0.9, 0.6),
        "lpips": (0.3, 0.6),
        "clip": (0.9, 0.45),
    }
    for source in ("s0", "s1"):
        chain = made.chain(source, "copy", "a", 2)
        for metric, values in by_metric.items():
            for step, value in enumerate(values, 1):
                stored = VALUE_AT[metric](value) if metric in VALUE_AT else value
                made.score(chain.key.id, step, metric, stored, version="1")
    made.floors(version="1")
    made.score("floor--s0", 0, "lpips", 1.0, against="s1", version="1")
    made.score("floor--s0", 0, "clip", 0.0, against="s1", version="1")
    found = analyze(made.done())
    # Quality falls at 1 + 0.3 / 0.4, semantic at 1 + 0.4 / 0.45: quality is first.
    assert number(found, "half-life/quality/a").estimate == pytest.approx(1.75)
    assert number(found, "half-life/semantic/a").estimate == pytest.approx(1 + 0.4 / 0.45)
    assert number(found, "half-life/headline/a").estimate == pytest.approx(1.75)
    assert number(found, "auc/quality/a").estimate == pytest.approx(0.6)
    assert number(found, "literal-half-life/clip/a").estimate == 2
    # The headline's curve is the lesser of both, 0.8 and 0.4.
    assert number(found, "auc/headline/a").estimate == pytest.approx(0.6)
    assert not noted(found, "incomplete")
    row = found.table.records()[0]
    assert (row["half-life headline"], row["half-life quality"], row["half-life semantic"]) == (
        "1.75",
        "1.75",
        "1.89",
    )


@pytest.mark.usefixtures("cards")
def test_no_reference_metrics_alone(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.chain("s0", "copy", "a", 1)
    for step in (0, 1):
        made.score(chain.key.id, step, "niqe", 4.0, against="none", version="1")
    found = analyze(made.done())
    assert found.metrics == ("niqe@1",)
    assert found.notes[0] == "No editor is ranked: no frame is scored against home."


PLAN = {"editors": ["lab:a", "lab:b"], "cycles": ["copy"], "rounds": 2, "controls": False}


def test_an_unfinished_run_knows_what_is_missing(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=3)
    made.store.write_json("spec.json", PLAN)
    made.walk("s0", "copy", "lab:a", (0.8, 0.6))
    made.walk("s1", "copy", "lab:a", (0.8,), ended="over-budget")
    made.walk("s0", "copy", "lab:b", (0.4, 0.2))
    made.floors()
    found = analyze(made.done())
    a, b = found.standings
    assert (a.editor, a.chains, a.complete, a.failed) == ("lab:a", 3, 1, 0)
    assert a.score == pytest.approx(0.7)
    assert (b.chains, b.complete, b.outcomes) == (3, 1, {"edited": 2})
    assert a.outcomes == {"edited": 3, "over-budget": 1}
    assert noted(
        found,
        "4 of 6 chains are not finished, 3 of them not begun, 1 of them for want of budget. Go on "
        "with `convergebench run RUN --budget MORE`",
    )
    point = number(found, "convergence/psnr/lab:a/2")
    assert (point.n, point.missing, point.failed) == (1, 2, 0)
    life = number(found, "half-life/psnr/lab:a")
    assert life.note == "2 censored, half-life > 2, 1 without a first homecoming left out"


def test_a_run_that_all_stopped_early_is_not_complete(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.store.write_json("spec.json", PLAN)
    for editor in ("lab:a", "lab:b"):
        for source in ("s0", "s1"):
            made.walk(source, "copy", editor, (0.8,))
    made.floors()
    found = analyze(made.done())
    assert {s.why_unranked for s in found.standings} == {"no complete chain"}
    assert found.notes[0] == "No editor is ranked: no complete chain (2)."
    assert number(found, "convergence/ssim/lab:a/1").estimate == pytest.approx(0.8)
    assert number(found, "convergence/ssim/lab:a/2").missing == 2


def test_chains_longer_than_the_plan_count_up_to_it(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.store.write_json("spec.json", PLAN)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "lab:a", (0.8, 0.6, 0.1, 0.0))
        made.walk(source, "copy", "lab:b", (0.7, 0.5))
    made.floors()
    found = analyze(made.done())
    assert line(found, "lab:a").score == pytest.approx(0.7)
    assert line(found, "lab:a").half_life["ssim"] == "> 2"
    assert (line(found, "lab:a").complete, line(found, "lab:a").chains) == (2, 2)
    later = number(found, "convergence/ssim/lab:a/3")
    assert later.estimate == pytest.approx(0.1)
    assert (later.n, later.missing) == (2, 0)


def test_a_plan_that_cannot_be_read(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.store.write_json("spec.json", {"editors": ["a"], "cycles": ["no-such-cycle"]})
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.8, 0.6))
    made.floors()
    found = analyze(made.done())
    assert noted(found, "What was planned is unknown (spec.json: no cycle called 'no-such-cycle'")
    assert line(found, "a").score == pytest.approx(0.7)


def test_settings_and_repeats_are_paired_and_told(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    hot = Settings(temperature=1.0)
    for editor, less in (("a", 0.0), ("b", 0.2)):
        for source in ("s0", "s1"):
            made.walk(source, "copy", editor, (0.9 - less,))
            made.walk(source, "copy", editor, (0.7 - less,), repeat=1)
            if (editor, source) != ("b", "s1"):
                made.walk(source, "copy", editor, (0.5 - less,), settings=hot)
    made.floors()
    found = analyze(made.done())
    assert (found.common, found.sources) == (5, 2)
    assert line(found, "a").score == pytest.approx((0.7 + 0.8) / 2)
    assert line(found, "b").score == pytest.approx((0.5 + 0.6) / 2)
    assert noted(found, "means over 2 settings: defaults; temperature 1.0.")


def test_null_and_unscored_homecomings_are_told_apart(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "a", (0.8, 0.6))
    chain = made.walk("s1", "copy", "a", (0.8,), length=2)
    made.score(chain.key.id, 2, "ssim", None, note="6 pixels on the short side, 11 needed")
    made.floors()
    found = analyze(made.done())
    assert noted(
        found, "ssim: 1 of 4 homecomings is null: 6 pixels on the short side, 11 needed (1)."
    )
    assert noted(
        found,
        "psnr: 1 of 4 homecomings is not scored. Compute it with "
        "`convergebench score RUN --metrics psnr`",
    )
    mine = line(found, "a")
    assert (mine.complete, mine.chains) == (1, 2)
    assert mine.score == pytest.approx(0.7)


def test_no_chain_that_all_completed_names_the_weakest(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=3)
    for source in ("s0", "s1"):
        made.walk(source, "copy", "a", (0.8, 0.6))
    made.walk("s2", "copy", "b", (0.8, 0.6))
    made.floors()
    found = analyze(made.done())
    assert found.notes[0] == (
        "No editor is ranked: there is no chain that all of a, b completed; the fewest, 1, has b."
    )
    assert found.common == 0


def test_the_inert_check_says_when_it_cannot_be_made(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "ball", "a", (0.8,))
    made.floors()
    path = made.done()
    assert noted(analyze(path), "Inert check: not made, no round trip is shared with the transport")


def test_the_inert_check_without_a_round_trip(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source in ("s0", "s1"):
        made.walk(source, "copy", TRANSPORT, (0.8,))
    made.floors()
    assert noted(analyze(made.done()), "Inert check: not made, the run has no round trip.")
