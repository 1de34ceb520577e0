"""Sets of prompts: the paper's, and a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import SuiteError
from convergebench.planner import plan
from convergebench.prompts import load_prompts, word_count
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.suites import restoration_v1
from tests.support.restorations import part_of_restoration

OWN = """
name = "mine"
[[group]]
name = "terse"
factors = { length = "short" }
prompts = { "T 1" = "Repair this photograph.", T2 = "Make this picture as new." }
[[group]]
name = "wordy"
words = [9, 20]
factors = { length = "long" }
prompts = { W1 = "Repair this photograph with care and change nothing that it shows." }
"""
PAPER = restoration_v1().parent / "prompts.toml"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    return path


def test_the_papers_prompts_have_as_many_words_as_its_table_says() -> None:
    groups = {group.name: group for group in load_prompts(PAPER).group}
    counts = {name: [word_count(t) for t in g.prompts.values()] for name, g in groups.items()}
    assert counts == {
        "S": [30, 29, 29],
        "SF": [27, 26, 28],
        "L": [47, 35, 38],
        "LF": [38, 35, 34],
    }
    for name, group in groups.items():  # "Short (29–30 words)" and so on
        assert group.words == (min(counts[name]), max(counts[name]))


def test_the_papers_prompts_are_verbatim(shared: Path) -> None:
    paper = (shared / "seeds" / "restoration-paper.txt").read_text()
    for group in load_prompts(PAPER).group:
        for name, text in group.prompts.items():
            assert f"| {name} | {text} |" in paper


def test_a_prompt_of_another_length_than_its_group_says_is_refused(own: Path) -> None:
    own.write_text(OWN.replace("[9, 20]", "[3, 5]"))
    with pytest.raises(SuiteError, match="'W1' has 11 words, its group 3 to 5"):
        load_prompts(own)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = [", "not valid TOML"),
        ('name = "x"', "group"),
        (OWN.replace('"wordy"', '"terse"'), "group 'terse' is there twice"),
        (OWN.replace("W1", "T2"), "prompt 't2' is there twice"),
        (OWN.replace("Make this picture as new.", " "), "prompt 'T2' is empty"),
        (OWN.replace("factors", "factor"), "factor"),
    ],
)
def test_a_file_that_is_no_set_of_prompts_is_refused(own: Path, text: str, told: str) -> None:
    own.write_text(text)
    with pytest.raises(SuiteError, match=told):
        load_prompts(own)


def test_own_prompts_take_the_place_of_the_suites(own: Path) -> None:
    suite = open_suite("restoration-v1").with_prompts(load_prompts(own))
    assert suite.name == "restoration-v1.mine"
    assert [c.title for c in suite.cycle] == ["restore", "T 1", "T2", "W1"]
    assert suite.cycle_named("w1").factors == {"length": "long"}
    assert suite.intact
    with pytest.raises(SuiteError, match="restores nothing"):
        open_suite("starter").with_prompts(load_prompts(own))


def test_a_preset_that_names_prompts_takes_the_first_of_each_group_of_others(own: Path) -> None:
    from convergebench.presets import open_preset

    table = {**open_preset("restoration-v1/smoke").table, "editors": ["ref:restorer"]}
    planned = plan(None, table, prompts=str(own))
    (row,) = [row for row in planned.rows if row.editor == "ref:restorer"]
    assert row.calls == 6 * 2 * 3  # sources, prompts "T 1" and W1, repeats
    assert "left out: T2." in str(planned)
    few = {"sources": ["page-defocus"], "size": 32}  # a plan draws what it counts
    whole = {**open_preset("restoration-v1/offline").table, "editors": ["ref:restorer"], **few}
    assert "left out" not in str(plan(None, whole, prompts=str(own)))


def test_a_run_keeps_the_prompts_it_was_begun_with(own: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "suite": part_of_restoration(tmp_path / "suite", "page-defocus"),
        "editors": ["ref:restorer"],
        "size": 32,
        "controls": False,
    }
    made = run(tmp_path / "run", None, prompts=str(own), **options)
    assert made.complete
    own.unlink()
    run(tmp_path / "run", None, repeats=2)
    store = RunStore.open(tmp_path / "run")
    asked = {step.prompt for chain in store.chains() for step in chain.steps}
    assert "Make this picture as new." in asked
    assert len(list(store.chains())) == 6


def test_a_prompts_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot read prompts"):
        plan(
            None,
            None,
            suite="restoration-v1",
            editors=["ref:restorer"],
            prompts=str(tmp_path / "none.toml"),
        )
