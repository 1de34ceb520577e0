"""Designs that are no full grid: arms of a run, and presets that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from convergebench.chain import ChainKey
from convergebench.errors import SettingsError, SuiteError, UnknownName
from convergebench.planner import plan
from convergebench.presets import open_preset, preset_names
from convergebench.registry import open_suite
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.source import Source
from convergebench.suite import Suite

SUITE = open_suite("starter")
SOURCES = [source.name for source in SUITE.source]
CYCLES = [cycle.name for cycle in SUITE.cycle]


def keys(**table: Any) -> list[ChainKey]:
    spec = RunSpec.model_validate({"editors": ["ref:noise"], **table})
    return spec.keys(SUITE)


def some(names: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True, max_size=3)


arms = st.fixed_dictionaries(
    {"controls": st.sampled_from(["with", "without", "only"])},
    optional={
        "sources": some(SOURCES),
        "cycles": some(CYCLES),
        "repeats": st.integers(1, 3),
        "settings": st.just({"temperature": [0.0, 0.4]}),
    },
)


@settings(deadline=None, max_examples=40)
@given(st.lists(arms, min_size=1, max_size=4), st.integers(1, 3))
def test_a_design_is_the_union_of_its_arms(design: list[dict[str, Any]], repeats: int) -> None:
    each = [keys(arms=[arm], repeats=repeats) for arm in design if _walks(arm)]
    together = keys(arms=design, repeats=repeats) if each else []
    assert set(together) == {key for part in each for key in part}
    assert len(together) == len(set(together))


@settings(deadline=None, max_examples=40)
@given(arms, some(SOURCES), some(CYCLES))
def test_sources_and_cycles_of_the_run_only_ever_take_chains_away(
    arm: dict[str, Any], sources: list[str], cycles: list[str]
) -> None:
    if not _walks(arm):
        return
    whole = keys(arms=[arm])
    left = [
        key
        for key in whole
        if (not sources or key.source in sources)
        and (not cycles or key.cycle.partition("@")[0] in cycles)
    ]
    if left:
        assert set(keys(arms=[arm], sources=sources, cycles=cycles)) == set(left)
    else:
        with pytest.raises(SettingsError, match="no arm of the design has any of the sources"):
            keys(arms=[arm], sources=sources, cycles=cycles)


def _walks(arm: dict[str, Any]) -> bool:
    """Whether a cycle of the arm fits one of its sources."""
    return any(
        SUITE.applies(SUITE.cycle_named(cycle), SUITE.source_named(source))
        for cycle in arm.get("cycles") or CYCLES
        for source in arm.get("sources") or SOURCES
    )


def test_one_arm_that_says_nothing_is_the_full_grid() -> None:
    assert keys(arms=[{}]) == keys()
    assert keys(arms=[{}, {"sources": ["fog"]}]) == keys(), "and a part of it adds nothing"


def test_an_arm_says_whether_controls_walk_it() -> None:
    def editors(controls: str) -> set[str]:
        return {key.editor for key in keys(arms=[{"controls": controls}])}

    assert editors("with") == {"ref:noise", *CONTROLS}
    assert editors("without") == {"ref:noise"}
    assert editors("only") == set(CONTROLS)
    with pytest.raises(SettingsError, match="no arm of the design"):
        keys(arms=[{"controls": "only"}], controls=False)


def test_an_arms_settings_and_repeats_go_before_the_runs() -> None:
    arm = {"sources": ["fog"], "cycles": ["replicate"], "controls": "without"}
    found = keys(
        arms=[arm, {**arm, "settings": {"resolution": ["1K"]}, "repeats": 1}],
        settings={"resolution": ["2K"], "temperature": [0.4]},
        repeats=3,
    )
    told = [(key.settings.resolution, key.settings.temperature, key.repeat) for key in found]
    assert told == [("2K", 0.4, 0), ("2K", 0.4, 1), ("2K", 0.4, 2), ("1K", 0.4, 0)]


@pytest.mark.parametrize(
    ("arm", "error", "words"),
    [
        ({"sources": ["fogg"]}, UnknownName, r"no source called 'fogg'\. Did you mean fog"),
        ({"cycles": ["mirrors"]}, UnknownName, r"no cycle called 'mirrors'\. Did you mean mirror"),
        ({"settings": {"phrasing": [1]}}, SettingsError, "phrasing 1 is asked for, but no prompt"),
        ({"steps": 3}, SettingsError, "steps"),
        ({"controls": "yes"}, SettingsError, "controls"),
        ({"repeats": 0}, SettingsError, "repeats"),
    ],
)
def test_a_wrong_arm_is_one_sentence(
    arm: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        plan({"editors": ["ref:noise"], "arms": [arm]})
    assert "\n" not in str(raised.value)


# -- presets ----------------------------------------------------------------------------------

SMALL = """
name = "tiny"
version = 1
size = 32
[[source]]
name = "wide"
draw = "fog"
width = 90
height = 60
licence = "Apache-2.0"
[[cycle]]
name = "replicate"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy it."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny" / "presets").mkdir(parents=True)
    (tmp_path / "tiny" / "suite.toml").write_text(SMALL)
    return tmp_path / "tiny"


def test_a_suite_of_ones_own_may_have_presets(folder: Path) -> None:
    (folder / "presets" / "quick.toml").write_text('steps = 2\n[about]\ntitle = "quick"\n')
    assert preset_names(open_suite(str(folder))) == [f"{folder}/quick"]
    preset = open_preset(f"{folder}/quick")
    assert (preset.name, preset.about.title) == (f"{folder}/quick", "quick")
    planned = plan(preset.table, editors=["ref:noise"])
    assert (planned.suite, planned.rows[0].calls) == ("tiny@1", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps = 2", r"quick\.toml: about: .*title"),
        ('[about]\ntitle = "x"\nsteps = 3', r"quick\.toml: about: .*steps"),
        ('step = 2\n[about]\ntitle = "x"', r"quick\.toml: .*step"),
        ('steps = 2\nrounds = 2\n[about]\ntitle = "x"', r"quick\.toml: .*rounds"),
        ('[[arms]]\nsource = ["wide"]\n[about]\ntitle = "x"', r"quick\.toml: arms.*source"),
        ("steps = ", r"cannot read preset .*quick\.toml"),
    ],
)
def test_a_wrong_preset_names_its_file_in_one_sentence(folder: Path, text: str, words: str) -> None:
    (folder / "presets" / "quick.toml").write_text(text)
    with pytest.raises(SuiteError, match=words) as raised:
        open_preset(f"{folder}/quick")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("banana100/smal", "no preset called 'banana100/smal'. Did you mean banana100/small"),
        ("banana100", "no preset called 'banana100'"),
        ("starter/small", "no preset called 'starter/small'"),
        ("bananas/small", "no suite called 'bananas'. Did you mean banana100"),
    ],
)
def test_an_unknown_preset_is_answered_with_near_ones(name: str, words: str) -> None:
    with pytest.raises(UnknownName) as raised:
        open_preset(name)
    assert words in str(raised.value)


def test_some_arms_of_a_preset_can_be_had_alone() -> None:
    preset = open_preset("banana100/paper")
    assert preset.arms[:2] == ["replication", "denoising"]
    planned = plan(preset.only(["addition", "controls"]), editors=["ref:noise"], size=64)
    assert [row.chains for row in planned.rows] == [10, 2, 2, 2, 2]
    assert preset.only([]) == preset.table
    with pytest.raises(UnknownName, match=r"no arm called 'additions'\. Did you mean addition"):
        preset.only(["additions"])


# -- sources with a size of their own ----------------------------------------------------------


@given(st.integers(16, 8192), st.integers(16, 8192), st.integers(16, 8192))
def test_a_drawn_source_keeps_its_shape_and_its_short_side_is_never_longer_than_asked(
    width: int, height: int, side: int
) -> None:
    source = Source(name="x", draw="fog", licence="-", width=width, height=height)
    wide, high = source.drawn_size(side)
    assert min(wide, high) <= max(side, 16)
    if side >= min(width, height):
        assert (wide, high) == (width, height), "never made larger"
    else:
        assert min(wide, high) == side
        assert abs(wide * height - high * width) <= max(width, height), "to the nearest pixel"


def test_a_drawn_source_without_a_size_is_a_square_of_the_suites() -> None:
    assert Source(name="x", draw="fog", licence="-").drawn_size(96) == (96, 96)


def test_a_source_is_drawn_in_its_size(folder: Path) -> None:
    suite: Suite = open_suite(str(folder))
    (source,) = suite.source
    assert suite.frame(source).facts.width == 48, "32 is the suite's size, of the short side"
    assert suite.frame(source, 512).pixels.shape == (60, 90, 3)


@pytest.mark.parametrize(
    "keys_", [{"width": 90}, {"height": 90}, {"width": 9, "height": 90}, {"width": 9000}]
)
def test_half_a_size_or_an_impossible_one_is_refused(keys_: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=r"width|height"):
        Source.model_validate({"name": "x", "draw": "fog", "licence": "-", **keys_})


def test_a_file_has_the_size_it_has() -> None:
    table = {"name": "x", "file": "x.png", "sha256": "0" * 64, "licence": "-"}
    with pytest.raises(ValidationError, match="a drawn source has 'width' and 'height'"):
        Source.model_validate({**table, "width": 90, "height": 60})


def test_suites_without_such_sizes_keep_their_content_hash() -> None:
    assert SUITE.intact
    assert open_suite("roundtrip-v1").intact
