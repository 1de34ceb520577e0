"""The page of a trial: its numbers, its drawings, hostile names, missing data, its size."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.reporter.trial import heat, steps, write_trial
from convergebench.reporter.trial.figure import slug
from convergebench.reporter.trial.words import verdict_of
from convergebench.trial.result import Card, Delay, Trial
from tests.reporter.pages import assert_links_resolve, read_page
from tests.reporter.trials import made_trial

# -- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trial() -> Trial:
    return made_trial(5, 3, 4, 20, 2)


@pytest.fixture(scope="module")
def page(trial: Trial, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a trial; read-only for tests."""
    return write_trial(trial, tmp_path_factory.mktemp("trial"))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stills, which take most of the time."""
    monkeypatch.setattr(
        "convergebench.reporter.trial.page.write_still",
        lambda path, figure: (path.parent.mkdir(exist_ok=True), path.write_text("<svg/>")),
    )


def taken(path: Path) -> Any:
    """What a data script hands over."""
    found = re.fullmatch(
        r'convergebench\.take\("([\w-]+)",(.*)\);\n', path.read_text("utf-8"), re.S
    )
    assert found
    assert found[1] == path.stem
    return json.loads(found[2])


def column(data: Any, name: str) -> list[Any]:
    told = data[name]
    return [told["words"][i] for i in told["are"]] if isinstance(told, dict) else told


def told_of(page: Path) -> dict[str, Any]:
    (script,) = [e for e in read_page(page).all("script") if e.attributes.get("id") == "trial-data"]
    found: dict[str, Any] = json.loads(script.raw)
    return found


def test_the_page_has_its_sections_in_reading_order(page: Path) -> None:
    sections = [e.attributes["id"] for e in read_page(page).all("section")]
    assert sections == ["verdict", "success", "gaps", "arms", "steps", "more", "premise", "cards",
                        "downloads"]  # fmt: skip


def test_every_link_stays_in_the_folder_and_resolves(page: Path) -> None:
    assert_links_resolve(page.parent)


def test_the_verdict_counts_the_cards(trial: Trial) -> None:
    failing = [c.metric for c in trial.cards if c.verdict == "fails"]
    first, second, *_ = verdict_of(trial)
    assert first == (
        f"{len(failing)} of 5 metrics are fooled by at least one editor, on 4 initial images and "
        "3 editors."
    )
    assert second == "No metric fully succeeds."
    better = trial.cards[0].model_copy(update={"verdict": "fully succeeds"})
    told = verdict_of(replace(trial, cards=(better, *trial.cards[1:])))
    assert told[1] == "Fully succeeding: drift-nr."


def test_the_success_table_counts_cells(trial: Trial, page: Path) -> None:
    (table,) = read_page(page).one("success").all("table")
    rows = table.all("tbody")[0].all("tr")
    assert [row.all("th")[0].text for row in rows] == [c.metric for c in trial.cards]
    for card, row in zip(trial.cards, rows, strict=True):
        assert row.all("a")[0].attributes["href"] == f"#card-{trial.cards.index(card) + 1}"
        assert row.all("span", "verdict")[0].text == card.verdict
        for arm, cell in zip(trial.arms, row.all("td", "tally"), strict=True):
            mine = trial.success.filter(metric=card.metric, arm=arm)
            failed = mine.filter(verdict="failure").height
            incomplete = mine.filter(verdict="incomplete").height
            wanted = f"{failed} /{mine.height}"
            wanted += f" {incomplete} incomplete" if incomplete else ""
            doubtful = mine.filter(verdict="failure", premise="doubtful").height
            assert cell.text == wanted + (f" {doubtful} doubtful" if doubtful else "")
            assert ("none" in cell.attributes["class"].split()) == (incomplete == mine.height)
            assert cell.attributes["title"].endswith(
                "; τ −0.50 [−0.60, −0.40]; P(later better) 0.25 [0.20, 0.30]; "
                "delay never, noticed in 1 of 8 chains"
            )
        assert card.tau is not None
        assert f"{card.tau.value:.2f}".replace("-", "−") in row.text


def test_a_censored_delay_says_how_long_was_looked(
    trial: Trial, tmp_path: Path, undrawn: None
) -> None:
    card = trial.cards[0].model_copy(
        update={"delay": Delay(median=None, noticed=3, chains=8, longest=20)}
    )
    page = read_page(write_trial(replace(trial, cards=(card,)), tmp_path))
    row = page.one("success").all("tbody")[0].all("tr")[0]
    assert "> 20 noticed in 3 of 8" in row.text


def test_a_card_tells_all_it_has(trial: Trial, page: Path) -> None:
    for place, card in enumerate(trial.cards, 1):
        text = read_page(page).one(f"card-{place}").text
        assert card.content is not None
        assert card.sensitivity is not None
        for words in (
            card.metric, f"@{card.version}", card.title, card.verdict, card.sentence, card.origin,
            *card.caveats,
            f"{card.failed} of {card.cells} fail",
            f"spread {card.content.spread:.1f}",
            f"{card.sensitivity.failing} of {card.sensitivity.pairs} pairs of steps fail",
            "higher is better" if card.higher_is_better else "lower is better",
            f"Scores missing {card.nulls}", f"outside the range {card.outside}",
            "ρ with lpips", "ρ with ratings: human/quality", "Kendall τ",
        ):  # fmt: skip
            assert " ".join(words.split()) in text


def test_a_sparkline_has_a_line_for_every_editor_that_has_scores(trial: Trial, page: Path) -> None:
    last = read_page(page).one(f"card-{len(trial.cards)}")
    assert len(last.all("path")) == len(trial.arms) - 1
    assert len(read_page(page).one("card-1").all("path")) == len(trial.arms)


def test_the_premise_tells_what_was_lost(trial: Trial, page: Path) -> None:
    rows = read_page(page).one("premise").all("tbody")[0].all("tr")
    assert len(rows) == len(trial.arms)
    mean = -math.log(5) - 1.5  # of 0, 1, 2 and 3 more on four images
    assert f"−{-mean:.3g} 4 of 4 lost" in rows[0].text


def test_an_image_that_an_editor_was_not_tried_on_is_left_empty(trial: Trial) -> None:
    gone = (pl.col("arm") == "taef2") & (pl.col("source") == "rice")
    less = replace(trial, gaps=trial.gaps.filter(~gone), success=trial.success.filter(~gone))
    assert {r["source"] for r in heat.gap_rows(less, "taef2")} == set(trial.sources) - {"rice"}
    assert {r["source"] for r in heat.gap_rows(less, "ref:static")} == set(trial.sources)
    counted = {r["source"] for r in heat.count_rows(less) if r["arm"] == "taef2"}
    assert counted == set(trial.sources) - {"rice"}


def test_variants_are_not_counted_as_editors(trial: Trial) -> None:
    arms = ("a · replicate", "a · denoise", "b · replicate")
    assert "and 3 variants of 2 editors." in verdict_of(replace(trial, arms=arms))[0]


# -- data -----------------------------------------------------------------------------------------


def test_every_cell_has_a_row_known_or_not(trial: Trial, page: Path) -> None:
    seen = set()
    for place, arm in enumerate(trial.arms, 1):
        data = taken(page.parent / "data" / "trial" / f"gaps-{place}.js")
        keys = list(zip(*(column(data, n) for n in ("metric", "source", "step")), strict=True))
        assert len(set(keys)) == len(keys) == 5 * 4 * 3
        gaps = dict(zip(keys, column(data, "gap"), strict=True))
        states = dict(zip(keys, column(data, "state"), strict=True))
        for row in trial.gaps.filter(arm=arm).iter_rows(named=True):
            key = (row["metric"], row["source"], row["step"])
            if row["gap"] is None:
                assert gaps[key] is None
            else:
                assert gaps[key] == pytest.approx(row["gap"], rel=1e-3)
            failed = {True: "fails", False: "succeeds", None: "missing"}[row["failed"]]
            assert states[key] == failed
            seen.add(failed)
    assert seen == {"fails", "succeeds", "missing"}


def test_the_overlay_counts_failures_and_calls_no_gap_a_success(trial: Trial) -> None:
    rows = {(r["metric"], r["arm"], r["source"]): r for r in heat.count_rows(trial)}
    assert len(rows) == 5 * 3 * 4
    blanks = 0
    for cell in trial.success.iter_rows(named=True):
        row = rows[cell["metric"], cell["arm"], cell["source"]]
        if cell["verdict"] == "incomplete":
            assert row["failures"] is None
            blanks += 1
        else:
            assert row["failures"] == cell["failures"]
    assert blanks


def test_trajectories_come_back_from_their_scripts(trial: Trial, page: Path) -> None:
    walks = steps.walks_of(trial)
    folder = page.parent / "data" / "trial"
    assert walks.sources == {"replicate": trial.sources, "accumulate": ("table",)}
    for place, card in enumerate(trial.cards, 1):
        for kind in steps.KINDS:
            means = taken(folder / f"steps-{place}.js")[kind]
            singles = taken(folder / f"single-{place}.js")[kind]
            back = {
                (walks.arms[a], walks.sources[kind][s], step): value / steps.FINE
                for a, s, mean, *_ in means
                for step, value in zip(walks.steps, mean, strict=True)
                if value is not None
            }
            wanted = trial.trajectories.filter(metric=card.metric, kind=kind)
            assert len(back) == wanted.height
            for row in wanted.iter_rows(named=True):
                mine = back[row["arm"], row["source"], row["step"]]
                assert mine == pytest.approx(row["mean"], abs=0.006)
            chains = trial.single.filter(metric=card.metric, kind=kind)
            assert len(singles) == chains.select("arm", "source", "repeat").unique().height


@given(st.sets(st.integers(0, 500), min_size=1), st.integers(2, 60))
def test_thinned_steps_keep_their_ends(some: set[int], most: int) -> None:
    every = sorted(some)
    kept = steps.thinned(every, most)
    assert len(kept) <= most
    assert set(kept) <= some
    assert (kept[0], kept[-1]) == (every[0], every[-1])
    assert kept == sorted(set(kept))


@given(st.text(max_size=80))
def test_a_name_in_a_file_name_is_plain(name: str) -> None:
    assert re.fullmatch(r"([a-z0-9]+(-[a-z0-9]+)*)?", slug(name))


# -- what is missing ------------------------------------------------------------------------------


def test_a_trial_without_anything_is_a_page(trial: Trial, tmp_path: Path) -> None:
    bare = replace(
        trial, arms=(), sources=(), controls=(), cards=(), notes=(), gaps=trial.gaps.clear(),
        individual=trial.individual.clear(), success=trial.success.clear(),
        trajectories=trial.trajectories.clear(), single=trial.single.clear(),
        premise=trial.premise.clear(),
    )  # fmt: skip
    page = read_page(write_trial(bare, tmp_path))
    assert page.one("verdict").text.startswith("No metric was tried")
    assert not page.all("figure")
    assert_links_resolve(tmp_path)


def test_a_metric_without_data_and_a_run_of_one_editor(tmp_path: Path) -> None:
    trial = made_trial(2, 1, 3, 20, 1, missing=False)
    gone = Card(
        metric="ghost", version="", title="", origin="", higher_is_better=True, low=0, high=1,
        verdict="no data", cells=0, failed=0, incomplete=0, failures_by_step={},
        failures_by_arm={},
    )  # fmt: skip
    still = pl.col("kind") == "replicate"
    trial = replace(
        trial,
        cards=(*trial.cards, gone),
        trajectories=trial.trajectories.filter(still),
        single=trial.single.filter(still),
        premise=trial.premise.clear(),
    )
    path = write_trial(trial, tmp_path)
    page = read_page(path)
    ids = [e.attributes["id"] for e in page.all("section")]
    assert "arms" not in ids
    assert "premise" not in ids
    assert "No runs that add objects were scored." in page.one("steps").text
    assert "Without data: ghost." in page.one("verdict").text
    assert "No trajectory." in page.one("card-3").text
    cell = page.one("success").all("tbody")[0].all("tr")[2].all("td", "tally")[0]
    assert cell.text == "–"
    assert told_of(path)["stills"]["steps"][2] is None
    assert_links_resolve(tmp_path)


@pytest.mark.parametrize("asked", [(5,), (2, 4, 6, 8, 10, 20)])
def test_any_number_of_steps_is_drawn(asked: tuple[int, ...], tmp_path: Path) -> None:
    trial = made_trial(2, 2, 2, 20, 1, steps=asked)
    page = write_trial(trial, tmp_path)
    data = taken(tmp_path / "data" / "trial" / "gaps-1.js")
    assert set(column(data, "step")) == set(asked)
    svg = (tmp_path / "charts" / "trial-gaps-1-taef2.svg").read_text("utf-8")
    assert all(f"Δ{step}<" in svg for step in asked)
    assert len(told_of(page)["themes"]["light"]["range"]["ordinal"]) == len(asked) + 1
