"""The suite `roundtrip-v1`: what it must have, and that it is what it says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from convergebench.cycle import Cycle
from convergebench.frame import Frame, sha256
from convergebench.preparation import prepare_suite
from convergebench.registry import open_suite
from convergebench.reversibility.sorting import sort_suite
from convergebench.suite import Suite, check_suite

LICENCES = {
    "Apache-2.0",  # our own drawings
    "CC-BY-2.0",
    "CC-BY-4.0",
    "CC0-1.0",
    "Released by Eastman Kodak for unrestricted usage",
}
PINNED = re.compile(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/[^ ]+")
WORN = {"face", "eyes", "head", "ears", "neck", "chin", "lip", "wrist"}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return open_suite("roundtrip-v1")


def pairs(suite: Suite) -> list[Cycle]:
    return [cycle for cycle in suite.cycle if cycle.kind != "cross"]


def test_it_has_a_hundred_sources_thirty_pairs_and_is_sealed(suite: Suite) -> None:
    assert len(suite.source) == 100
    assert len(pairs(suite)) == 30
    assert suite.fingerprint == suite.content_hash()


def test_every_source_says_whose_it_is_and_where_it_can_be_had(suite: Suite) -> None:
    for source in suite.source:
        public = source.licence.lower().startswith("public domain")
        assert public or source.licence in LICENCES, source.name
        assert source.description
        assert source.category
        if source.draw is None:
            assert PINNED.fullmatch(source.address or ""), source.name
            assert source.origin, source.name
    wanted = {"face", "person", "object", "animal", "scene", "interior", "text", "illustration"}
    assert wanted <= {source.category for source in suite.source}


def test_each_source_has_edits_and_only_people_wear_things(suite: Suite) -> None:
    walked = Counter(
        source.name for source in suite.source for c in suite.cycle if suite.applies(c, source)
    )
    assert min(walked[source.name] for source in suite.source) >= 6
    for source in suite.source:
        if WORN & source.regions.keys():
            assert source.category in ("face", "person", "illustration"), source.name


def test_the_headline_is_of_what_can_be_undone(suite: Suite) -> None:
    classes = Counter(cycle.reversibility for cycle in pairs(suite))
    assert classes == {
        "preserving": 18, "exact": 4, "ambiguous": 4, "destroying": 3, "inventing": 1,
    }  # fmt: skip
    categories = {cycle.category for cycle in pairs(suite) if cycle.reversible}
    assert categories == {"accessory", "object", "geometric"}
    assert {c.category for c in pairs(suite) if not c.reversible} == {
        "colour", "lighting", "expression", "weather", "style", "clarity",
    }  # fmt: skip


def test_the_rules_agree_with_what_it_declares_in_every_phrasing(suite: Suite) -> None:
    found = sort_suite(suite)
    assert len(found.rows) == 34 * 3
    assert [(row.name, row.verdict.rule) for row in found.differing] == []


def test_every_prompt_has_several_phrasings_with_their_opposite(suite: Suite) -> None:
    for cycle in suite.cycle:
        counts = {len(edit.prompts) for edit in cycle.edit}
        assert counts == {3}, cycle.name
        assert all(len(set(edit.prompts)) == 3 for edit in cycle.edit)


def test_cross_cycles_come_in_both_orders(suite: Suite) -> None:
    cross = {cycle.name: cycle for cycle in suite.cycle if cycle.kind == "cross"}
    for nested in (cycle for name, cycle in cross.items() if name.endswith("-nested")):
        other = cross[nested.name.replace("-nested", "-crossed")]
        first, second, undo_second, undo_first = nested.edit
        order = (first, second, undo_first, undo_second)
        assert [edit.prompts for edit in other.edit] == [edit.prompts for edit in order]
    assert len(cross) == 4


def test_the_drawn_sources_run_without_any_download(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_DATA", str(tmp_path))
    part = open_suite("roundtrip-v1").available()
    assert [source.draw is not None for source in part.source] == [True] * 12
    assert part.whole == suite.content_hash()


@pytest.mark.shared
def test_the_photographs_here_are_found_by_hash_and_decode(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_DATA", str(tmp_path))
    prepare_suite(open_suite("roundtrip-v1"), search=[shared / "data" / "photos"], offline=True)
    suite = open_suite("roundtrip-v1")
    part = suite.available()
    assert len(part.source) == 44 + 12
    for source in part.source:
        if source.file:
            frame: Frame = suite.frame(source)
            assert sha256(frame.data) == source.sha256
    problems = check_suite(part)
    assert problems == []
