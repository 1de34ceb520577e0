"""The suite `restoration-v1`: what the paper says it must be, and how its chains are made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench import degrading, drawing
from convergebench.errors import SuiteError
from convergebench.presets import open_preset
from convergebench.registry import open_suite, reads_prompts
from convergebench.runner import run
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.store import RunStore
from convergebench.suite import Suite, load_suite
from tests.support.restorations import part_of_restoration

SCENES = {
    *("Aerial View", "Animal Fur", "Architecture", "Cartoon/Comic", "Large Face", "Medium Face"),
    *("Small Face", "Crowd", "Text", "Hands/Feet", "Trees/Leaves", "Hand-drawn", "Fabric Texture"),
}
DAMAGES = {
    *("Defocus Blur", "Motion Blur", "Digital Zoom", "Old Film", "Old Photo (Black and White)"),
    *("Old Photo (Color)", "Surveillance"),
}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return open_suite("restoration-v1")


def test_it_has_the_papers_scenes_damages_and_counts(suite: Suite) -> None:
    assert {source.category for source in suite.source} == SCENES
    assert {source.damage for source in suite.source} == DAMAGES
    # Table 3: statistics of full-reference metrics are multiples of 1/21, of the others of 1/35.
    assert len(suite.source) == 35
    assert sum(source.has_truth for source in suite.source) == 21
    with_truth = {source.damage for source in suite.source if source.has_truth}
    assert with_truth == {"Defocus Blur", "Digital Zoom"}
    assert {source.category for source in suite.source if source.has_truth} == SCENES
    assert suite.size == 1024
    assert suite.intact
    assert suite.fingerprint


def test_its_prompts_are_in_the_papers_groups(suite: Suite) -> None:
    prompted = [cycle for cycle in suite.cycle if cycle.readers == "prompted"]
    assert Counter(cycle.group for cycle in prompted) == {"S": 3, "SF": 3, "L": 3, "LF": 3}
    assert suite.cycle_named("lf2").factors == {"length": "long", "fidelity": "yes"}


def test_a_damaged_source_has_the_clean_drawing_as_its_truth(suite: Suite) -> None:
    source = suite.source_named("page-defocus")
    frame, truth = suite.frame(source, 64), suite.truth(source, 64)
    assert truth is not None
    clean = drawing.scene("text", 64, 64)
    (damage,) = source.degrade or ()
    wanted = degrading.degrade(clean, damage.kind, damage.severity, damage.seed)
    assert np.array_equal(truth.pixels, clean)
    assert np.array_equal(frame.pixels, wanted)
    assert not np.array_equal(frame.pixels, clean)


def test_a_withheld_truth_is_none(suite: Suite) -> None:
    assert suite.truth(suite.source_named("crowd-surveillance"), 32) is None


def _keys(editor: str, preset: str) -> Counter[str]:
    table = {**open_preset(f"restoration-v1/{preset}").table, "editors": [editor]}
    keys = RunSpec.model_validate(table).keys(open_suite("restoration-v1"))
    return Counter(key.cycle.partition("@")[0] for key in keys if key.editor == editor)


def test_the_papers_design_is_700_images_of_an_editor_that_reads_prompts() -> None:
    asked = _keys("gemini:gemini-3.1-flash-image", "paper")
    assert sum(asked.values()) == 12 * 35 + 4 * 2 * 35 == 700
    assert asked["l3"] == asked["lf1"] == asked["s1"] == asked["sf2"] == 3 * 35
    assert asked["lf3"] == 35
    assert "restore" not in asked


def test_a_method_that_reads_no_prompt_restores_each_input_once() -> None:
    assert _keys("classic:unsharp", "paper") == {"restore": 35}
    assert not any(reads_prompts(name) for name in CONTROLS)
    assert reads_prompts("ref:restorer")
    assert reads_prompts("not-installed:anything")


def test_inputs_are_restored_once_unless_told_otherwise(tmp_path: Path) -> None:
    suite = part_of_restoration(tmp_path / "suite", "cloth-digital-zoom")
    options: dict[str, Any] = {"size": 32, "controls": False}
    path = tmp_path / "run"
    made = run(path, {"suite": suite, "editors": ["ref:restorer"], "cycles": ["s1"]}, **options)
    assert made.complete
    (chain,) = RunStore.open(path).chains()
    assert chain.length == 1
    assert chain.truth is not None
    assert chain.truth != chain.source


SOURCE = """
name = "x"
version = 1
[[source]]
name = "a"
licence = "CC0"
{more}
[[cycle]]
name = "restore"
kind = "restore"
[[cycle.edit]]
prompt = "Restore."
"""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('draw = "text"\ndegrade = [{ kind = "rust" }]', "no degradation 'rust'"),
        ('draw = "text"\ndegrade = []', "'degrade' is a list"),
        ('draw = "text"\ndegrade = [{ kind = "motion", severity = 4 }]', "severity"),
        ('draw = "text"\nwithheld = true', "only a degraded one"),
        (f'file = "a.png"\nsha256 = "{"0" * 64}"\ndegrade = [{{ kind = "motion" }}]', "drawn"),
        ('draw = "text"', "fits no source"),
    ],
)
def test_a_source_that_cannot_be_degraded_so_is_refused(
    tmp_path: Path, more: str, told: str
) -> None:
    (tmp_path / "suite.toml").write_text(SOURCE.replace("{more}", more))
    with pytest.raises(SuiteError, match=told):
        load_suite(tmp_path)
