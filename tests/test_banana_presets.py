"""The presets of `banana100`: the paper's designs, what they cost, and how options change them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from convergebench.chain import ChainKey, Settings
from convergebench.errors import SettingsError, UnknownName
from convergebench.frame import Frame
from convergebench.planner import plan
from convergebench.planner.job import prepare
from convergebench.planner.plans import PlanRow
from convergebench.presets import open_preset, preset_names
from convergebench.registry import names as installed
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.suite import Suite

SOURCES = {source.name for source in open_suite("banana100").source}
REPLICATED = SOURCES - {"table"}
PAGE = Path(__file__).resolve().parents[1] / "docs" / "studies" / "replication-suite.md"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return open_suite("banana100")


def spec_of(preset: str, **changes: object) -> RunSpec:
    table = {"editors": ["ref:banana"], **open_preset(f"banana100/{preset}").table, **changes}
    return RunSpec.model_validate(table)


def keys_of(preset: str, suite: Suite, **changes: object) -> list[ChainKey]:
    """The chains of the editors that a preset is about: not those of controls."""
    return [key for key in spec_of(preset, **changes).keys(suite) if key.editor not in CONTROLS]


def cells(keys: Iterable[ChainKey]) -> Counter[tuple[str, str, Settings]]:
    return Counter((key.source, key.cycle.partition("@")[0], key.settings) for key in keys)


def test_every_preset_opens_and_only_asks_for_what_there_is(suite: Suite) -> None:
    names = [name.partition("/")[2] for name in preset_names(suite)]
    assert names == ["chat", "models", "offline", "paper", "small", "smoke"]
    for name in names:
        preset = open_preset(f"banana100/{name}")
        assert preset.about.title
        assert spec_of(name).keys(suite)
        assert set(preset.about.metrics) <= set(installed("metrics"))
        # Without these a report of the study has no editor to rank.
        assert {"psnr", "ssim"} <= set(preset.about.metrics)


def test_the_papers_design_is_280_chains_and_28000_images(suite: Suite) -> None:
    keys = keys_of("paper", suite)
    assert len(keys) == len(set(keys)) == 280
    assert spec_of("paper").steps == 100
    found = cells(keys)
    assert set(found.values()) == {5}, "five separate runs of each of 56 settings"
    assert len(found) == 56
    plain = Settings(resolution="2K")
    assert {s for s, cycle, how in found if (cycle, how) == ("replicate", plain)} == REPLICATED
    assert {s for s, cycle, _ in found if cycle in ("mirror", "rotate")} == {"ekphrasis", "kokoro"}
    assert {cycle for s, cycle, _ in found if s == "table"} == {"add-apples", "add-100-fruits"}
    settings = {how for _, _, how in found}
    assert {s.temperature for s in settings} == {None, 0.0, 0.4}
    assert {s.resolution for s in settings} == {"1K", "2K", "4K", "interleaved"}
    assert {s.seed for s in settings} == {"fixed", "per-step"}
    assert {s.phrasing for s in settings} == {0, 1, 2, 3, 4, 5}
    assert {s.session for s in settings} == {"stateless"}
    usual = sum(s.resolution == "2K" for _, _, s in found)
    assert usual > 50, "the majority was made in 2K"


def test_section_4_4_is_1200_images_of_replication_and_1400_with_the_additions(
    suite: Suite,
) -> None:
    small, models = (keys_of(name, suite) for name in ("small", "models"))
    assert (len(small) * 20, len(models) * 20) == (1200, 1400)
    assert set(cells(small)) < set(cells(models))
    assert {key.source for key in small} == REPLICATED
    assert spec_of("small").steps == spec_of("models").steps == 20


def test_a_session_is_compared_with_stateless_calls(suite: Suite) -> None:
    found = cells(keys_of("chat", suite))
    by_session = {
        session: {(s, c) for s, c, how in found if how.session == session}
        for session in ("stateless", "chat")
    }
    assert by_session["chat"] == by_session["stateless"]
    assert ("table", "add-apples") in by_session["chat"]


def test_the_offline_study_is_of_13_sources_2_repeats_and_6_editors(suite: Suite) -> None:
    keys = keys_of("offline", suite, editors=open_preset("banana100/offline").table["editors"])
    replicated = [key for key in keys if key.cycle == "replicate@1"]
    assert Counter(key.source for key in replicated) == dict.fromkeys(SOURCES, 2 * 6)
    assert "taef2" in {key.editor for key in keys}


def test_controls_walk_one_chain_a_source_and_follow_no_resolution(suite: Suite) -> None:
    for name in ("paper", "small", "models", "offline"):
        keys = [key for key in spec_of(name).keys(suite) if key.editor in CONTROLS]
        assert {key.editor for key in keys} == set(CONTROLS), name
        assert {key.repeat for key in keys} == {0}
        assert {key.settings for key in keys} == {Settings()}


def test_interleaved_goes_1k_2k_4k_and_round_again() -> None:
    settings = Settings(resolution="interleaved")
    asked = [settings.resolution_at(step) for step in range(1, 8)]
    assert asked == ["1K", "2K", "4K", "1K", "2K", "4K", "1K"]


def test_a_plan_of_the_paper_costs_what_its_authors_paid_and_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drawn(*_: object) -> Frame:
        raise AssertionError("a plan must not draw pictures of 17 megapixels")

    monkeypatch.setattr(Suite, "frame", drawn)
    table = open_preset("banana100/paper").table
    planned = plan(table, editors=["gemini:gemini-3-pro-image"])
    (row,) = (row for row in planned.rows if row.editor == "gemini:gemini-3-pro-image")
    assert (row.chains, row.calls) == (280, 28_000)
    assert 3500 < (row.dollars or 0) < 4500, "the authors say: over $4,000"


def test_the_size_of_a_source_that_is_not_drawn_is_near_that_of_the_drawn_one() -> None:
    job = prepare(None, suite="banana100", editors=["ref:banana"], size=800)
    for name in ("ekphrasis", "table"):
        told, drawn = job.extent(name), job.origin(name)[0]
        assert told is not None
        assert (told.width, told.height) == (drawn.facts.width, drawn.facts.height)
        assert told.bytes == pytest.approx(len(drawn.data), rel=0.35), name
    small = prepare(None, suite="banana100", editors=["ref:banana"], size=256)
    assert small.extent("ekphrasis") is None, "soon drawn, so no estimate is needed"


def test_the_page_tells_the_sources_and_prices_that_there_are(suite: Suite) -> None:
    text = PAGE.read_text()
    for s in suite.source:
        told = f"| `{s.name}` | {s.description} | `{s.draw}` | {s.width} × {s.height} |"
        assert told in text
    priced = re.findall(r"^\| `(\w+)` \| `(\S+)` \| ([\d,]+) \| (.+) \|$", text, re.MULTILINE)
    assert len(priced) == 11
    for preset in {preset for preset, *_ in priced}:
        editors = [editor for name, editor, *_ in priced if name == preset]
        table = open_preset(f"banana100/{preset}").table
        planned = plan(table, editors=editors, controls=False)
        planned_rows = [
            (preset, row.editor, f"{row.calls:,}", " | ".join(f"${d:,.2f}" for d in _prices(row)))
            for row in planned.rows
        ]
        assert planned_rows == [one for one in priced if one[0] == preset]


def _prices(row: PlanRow) -> tuple[float, float, float]:
    assert row.price is not None
    return row.price.expected, row.price.low, row.price.high


def test_the_page_counts_the_images_of_every_preset(suite: Suite) -> None:
    told = dict(re.findall(r"^\| `banana100/(\w+)` \| .+ \| ([\d,]+) \|$", PAGE.read_text(), re.M))
    assert set(told) == {name.partition("/")[2] for name in preset_names(suite)}
    for name, count in told.items():
        spec = RunSpec.model_validate(
            {"editors": ["ref:banana"], **open_preset(f"banana100/{name}").table}
        )
        keys = [key for key in spec.keys(suite) if key.editor not in CONTROLS]
        assert f"{len(keys) * (spec.steps or 0):,}" == count, name


# -- overriding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "chains"),
    [
        ({"repeats": 1}, 56),
        ({"sources": ["ekphrasis"], "repeats": 1}, 17),
        ({"sources": ["table"], "repeats": 1}, 2),
        ({"cycles": ["mirror", "rotate"], "repeats": 1}, 4),
        ({"sources": ["kokoro"], "cycles": ["mirror"]}, 5),
        ({"settings": {"resolution": ["1K"]}, "repeats": 1}, 55),
        # In phrasing 3, too: 12 replications (of which 2 were there), 4 of temperature, 5 of a
        # seed, 3 of a resolution.
        ({"settings": {"resolution": ["2K"], "phrasing": [0, 3]}, "repeats": 1}, 56 + 22),
    ],
)
def test_options_change_a_preset_as_a_user_expects(
    suite: Suite, changes: dict[str, object], chains: int
) -> None:
    assert len(keys_of("paper", suite, **changes)) == chains


def test_what_a_preset_does_not_have_is_told() -> None:
    table = open_preset("banana100/small").table
    with pytest.raises(SettingsError, match="no arm of the design has any of the sources"):
        plan(table, editors=["ref:banana"], sources=["table"], size=256)
    with pytest.raises(UnknownName, match=r"no source called 'tabel'\. Did you mean table"):
        plan(table, editors=["ref:banana"], sources=["tabel"], size=256)
    with pytest.raises(SettingsError, match="phrasing 9 is asked for, but no prompt has more"):
        plan(table, editors=["ref:banana"], settings={"phrasing": [9]}, size=256)
    planned = plan(table, editors=["ref:banana"], sources=["table", "fog"], size=256)
    assert "Not part of this design, so left out: source 'table'." in planned.notes
    with pytest.raises(SettingsError, match="taef2 cannot follow resolution 2K"):
        plan(open_preset("banana100/paper").table, editors=["taef2"], size=256)


def test_a_preset_is_run_resumed_and_widened(tmp_path: Path) -> None:
    table = open_preset("banana100/smoke").table
    table |= {"sources": ["table"], "steps": 2, "size": 64, "controls": False}
    begun = run(tmp_path / "run", table)
    assert begun.complete
    assert (begun.chains, begun.steps_made) == (14, 28)
    again = run(tmp_path / "run")
    assert (again.chains, again.steps_made) == (14, 0)
    longer = run(tmp_path / "run", steps=3)
    assert longer.steps_made == 14
    wider = run(tmp_path / "run", sources=["kokoro"])
    assert wider.complete
    # Replication of kokoro twice, and the five other cycles that are not of the table alone.
    assert wider.chains == 14 + 2 * (2 + 5)
