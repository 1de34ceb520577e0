from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import SuiteError, UnknownName
from convergebench.registry import open_suite
from convergebench.suite import Suite, check_suite, load_suite, region_box
from tests.support.runs import CYCLES, write_suite


def test_starter_is_sound_and_as_promised() -> None:
    suite = open_suite("starter")
    assert check_suite(suite) == []
    assert len(suite.source) >= 12
    kinds = [cycle.kind for cycle in suite.cycle]
    assert {"replicate", "mirror", "rotate", "recolour"} <= set(kinds)
    assert kinds.count("round-trip") >= 3
    assert all(source.pixels for source in suite.source)


def test_starter_at_another_size() -> None:
    suite = open_suite("starter")
    assert suite.frame(suite.source[0], 96).pixels.shape == (96, 96, 3)


def test_loads_a_folder_or_a_file(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    assert load_suite(path) == load_suite(tmp_path)
    suite = load_suite(path)
    assert suite.label == "tiny@1"
    assert suite.frame(suite.source[0]).facts.width == 32


def test_regions_decide_which_cycles_fit(tmp_path: Path) -> None:
    extra = """
[[cycle]]
name = "glasses"
kind = "round-trip"
[[cycle.edit]]
prompt = "Add glasses."
region = "eyes"
[[cycle.edit]]
prompt = "Remove the glasses."
region = "eyes"
"""
    path = write_suite(tmp_path)
    text = path.read_text().replace(
        'licence = "CC0-1.0"\n',
        'licence = "CC0-1.0"\nregions = { eyes = [0.2, 0.3, 0.8, 0.5] }\n',
        1,
    )
    path.write_text(text + extra)
    suite = load_suite(path)
    cycle = suite.cycle_named("glasses")
    assert [suite.applies(cycle, s) for s in suite.source] == [True, False]
    assert region_box(cycle.edit[0], suite.source[0]) == (0.2, 0.3, 0.8, 0.5)


def test_unknown_names_offer_near_matches(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path))
    with pytest.raises(UnknownName, match=r"no cycle called 'bal'. Did you mean ball"):
        suite.cycle_named("bal")
    with pytest.raises(UnknownName, match=r"no source called 'zebra'. Known: s0, s1"):
        suite.source_named("zebra")
    with pytest.raises(UnknownName, match=r"no suite called 'startr'. Did you mean starter"):
        open_suite("startr")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("version = 1", "version = 0"), "version: .*greater than or equal to 1"),
        (("version = 1", ""), "version: is missing"),
        (("version = 1", "version = 1\nsise = 3"), "sise: there is no such key"),
        (('name = "s1"', 'name = "s0"'), "source 's0' is defined twice"),
        (('file = "s1.png"', 'draw = "grid"\nfile = "s1.png"'), "either 'file' or 'draw'"),
        (('kind = "replicate"', 'kind = "replicat"'), "cycle 1 kind: "),
        (('licence = "CC0-1.0"', ""), "licence: is missing"),
        (('name = "tiny"', "name = tiny"), "not valid TOML"),
        (('name = "copy"', 'name = "copy"\nsources = ["s9"]'), "names source 's9'"),
    ],
)
def test_wrong_suites_get_one_sentence(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = write_suite(tmp_path)
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(SuiteError, match=message) as caught:
        load_suite(path)
    assert "\n" not in str(caught.value).replace("\\n", "")


def test_files_are_checked(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path))
    (tmp_path / "s0.png").write_bytes(b"other")
    with pytest.raises(SuiteError, match=r"has SHA-256 d9298a10d1b0…, the suite says"):
        suite.frame(suite.source[0])
    (tmp_path / "s1.png").unlink()
    with pytest.raises(SuiteError, match=r"cannot read .*s1.png \(No such file"):
        suite.frame(suite.source[1])
    assert len(check_suite(suite)) == 2


def test_files_outside_the_folder_are_refused(tmp_path: Path) -> None:
    path = write_suite(tmp_path / "suite")
    (tmp_path / "secret.png").write_bytes((tmp_path / "suite" / "s0.png").read_bytes())
    path.write_text(path.read_text().replace('file = "s0.png"', 'file = "../secret.png"'))
    suite = load_suite(path)
    with pytest.raises(SuiteError, match="outside the suite's folder"):
        suite.frame(suite.source[0])


def test_seal_breaks_when_content_changes_without_a_new_version(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    seal = load_suite(path).content_hash()
    path.write_text(f'fingerprint = "{seal}"\n' + path.read_text())
    assert check_suite(load_suite(path)) == []
    path.write_text(path.read_text().replace("Copy the picture.", "Copy the image."))
    (problem,) = check_suite(load_suite(path))
    assert "raise 'version'" in problem


def test_every_kind_of_cycle_can_be_written(tmp_path: Path) -> None:
    others = """
[[cycle]]
name = "fruits"
kind = "accumulate"
[[cycle.edit]]
prompt = "Add {item}."
items = ["an apple", "a pear"]
[[cycle]]
name = "rebuild"
kind = "reconstruct"
[[cycle.edit]]
prompt = "Reduce it to colour patches."
[[cycle.edit]]
prompt = "Extract the edges."
inputs = ["back 2"]
[[cycle.edit]]
prompt = "Rebuild it from both."
inputs = ["back 2", "previous"]
[[cycle]]
name = "fix"
kind = "restore"
[[cycle.edit]]
prompt = "Repair it."
"""
    suite = load_suite(write_suite(tmp_path, cycles=CYCLES + others))
    again = Suite.model_validate_json(suite.model_dump_json())
    assert again.content_hash() == suite.content_hash()
