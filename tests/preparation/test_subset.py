"""Suites whose files are not all here: what is left of them, and runs on it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import SettingsError, StoreMismatch, SuiteError, UnknownName
from convergebench.frame import sha256
from convergebench.gathering import gather
from convergebench.planner import plan
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore
from convergebench.suite import Suite, check_suite, load_suite
from convergebench.walk import Progress
from tests.support.runs import records, write_suite
from tests.test_cli import cb, complaint

ONLY = """
[[cycle]]
name = "only-last"
kind = "replicate"
sources = ["s1", "s2"]
[[cycle.edit]]
prompt = "Copy it."
"""
SETTINGS = {"editors": ["ref:noise"], "rounds": 1, "controls": False}


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONVERGEBENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def addressed(folder: Path, sources: int = 3, more: str = ONLY) -> Path:
    """A suite whose sources have addresses; its files are beside it."""
    path = write_suite(folder, sources)
    text = path.read_text().replace("licence", 'address = "https://example.org/x"\nlicence')
    path.write_text(text + more)
    return path


def sealed(path: Path) -> Path:
    path.write_text(f'fingerprint = "{load_suite(path).content_hash()}"\n{path.read_text()}')
    return path


def names(suite: Suite) -> list[str]:
    return [source.name for source in suite.source]


# -- what is left ---------------------------------------------------------------------------------


@given(
    places=st.lists(st.sampled_from(["beside", "data", "gone"]), min_size=6, max_size=6),
    bare=st.sets(st.integers(0, 5)),
)
def test_what_is_missing_is_dropped_and_nothing_else(places: list[str], bare: set[int]) -> None:
    """Wherever files are, and whichever sources have no address."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVERGEBENCH_DATA", f"{folder}/data")
        roots = {"beside": Path(folder, "own"), "data": Path(folder, "data/tiny")}
        for i, place in enumerate(places):
            if root := roots.get(place):
                root.mkdir(parents=True, exist_ok=True)
                (root / f"s{i}.png").touch()
        _check_the_rest(_whole(roots["beside"], bare), [p != "gone" for p in places], bare)


def _check_the_rest(suite: Suite, here: list[bool], bare: set[int]) -> None:
    kept = [f"s{i}" for i in range(6) if here[i] or i in bare]
    assert [s.name for s in suite.missing()] == [f"s{i}" for i in range(6) if f"s{i}" not in kept]
    if not kept:
        with pytest.raises(SuiteError, match=r"6 sources, and none of them is here\. `convergeb"):
            suite.available()
        return
    left = suite.available()
    assert names(left) == kept
    assert left.available() == left, "once is enough"
    applies = [c for c in suite.cycle if any(suite.applies(c, s) for s in left.source)]
    assert list(left.cycle) == applies
    if len(kept) == 6:
        assert left == suite
        assert left.full_label == left.label
        return
    assert left.whole == left.whole_hash() == suite.content_hash() != left.content_hash()
    digest = sha256("\n".join(sorted(kept)).encode())[:8]
    assert left.full_label == f"tiny@1, {len(kept)} of 6 sources ({digest})"
    assert Suite.model_validate_json(left.model_dump_json()).content_hash() == left.content_hash()
    same = {"source", "cycle", "subset", "whole"}
    assert left.model_dump(exclude=same) == suite.model_dump(exclude=same)


def _whole(root: Path, bare: set[int]) -> Suite:
    cycles = [
        {"name": "copy", "kind": "replicate", "edit": [{"prompt": "Copy."}]},
        {"name": "few", "kind": "replicate", "edit": [{"prompt": "x"}], "sources": ["s1", "s4"]},
    ]
    source = [
        {"name": f"s{i}", "file": f"s{i}.png", "sha256": f"{i}" * 64, "licence": "CC0-1.0",
         "address": None if i in bare else f"https://example.org/{i}.png"}
        for i in range(6)
    ]  # fmt: skip
    told = {"name": "tiny", "version": 1, "source": source, "cycle": cycles, "root": root}
    return Suite.model_validate(told)


def test_new_keys_leave_old_hashes_alone() -> None:
    starter = open_suite("starter")
    assert starter.intact
    assert not {"subset", "whole", "root", "opened_as"} & set(starter.model_dump())


def test_a_subset_of_a_subset_counts_from_the_whole(tmp_path: Path) -> None:
    suite = load_suite(sealed(addressed(tmp_path, 4)))
    (tmp_path / "s3.png").unlink()
    first = suite.available()
    (tmp_path / "s0.png").unlink()
    second = first.available()
    assert re.fullmatch(r"2 of 4 sources \(.{8}\)", second.subset or "")
    assert second == suite.available()
    assert second.intact, "the seal is the whole suite's"
    assert check_suite(second) == []
    altered = second.model_copy(update={"whole": "0" * 64})
    assert "content changed since version 1" in check_suite(altered)[0]


def test_a_missing_file_without_an_address_stays_an_error(tmp_path: Path) -> None:
    path = write_suite(tmp_path / "s")
    (tmp_path / "s/s1.png").unlink()
    assert load_suite(path).available() == load_suite(path)
    with pytest.raises(SuiteError, match=r"cannot read .*s1.png \(No such file"):
        plan({**SETTINGS, "suite": str(path)})


def test_nobody_writes_a_subset_by_hand(tmp_path: Path) -> None:
    path = addressed(tmp_path)
    path.write_text('subset = "1 of 2 sources (00000000)"\n' + path.read_text())
    with pytest.raises(SuiteError, match="subset: there is no such key"):
        load_suite(path)


def test_the_command_is_the_one_its_user_can_type(tmp_path: Path) -> None:
    assert open_suite("starter").preparing == "convergebench suites prepare starter"
    path = addressed(tmp_path)
    assert open_suite(path).preparing == f"convergebench suites prepare {path}"


# -- runs -----------------------------------------------------------------------------------------


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run on two of three sources; the third's file is here now, as `s2.png`."""
    path = sealed(addressed(tmp_path / "s"))
    os.rename(tmp_path / "s/s2.png", tmp_path / "s2.png")
    run(tmp_path / "run", {**SETTINGS, "suite": str(path)})
    os.rename(tmp_path / "s2.png", tmp_path / "s/s2.png")
    return tmp_path / "run"


def test_plan_and_run_name_the_subset(tmp_path: Path) -> None:
    path = addressed(tmp_path / "s")
    os.remove(tmp_path / "s/s2.png")
    table = {**SETTINGS, "suite": str(path)}
    planned = plan(table)
    assert re.search(r"Plan for suite tiny@1, 2 of 3 sources \(\w{8}\)", str(planned))
    note = (
        rf"Not the whole suite: tiny@1, 2 of 3 sources \(\w{{8}}\)\. 1 source is not here \(s2\): "
        rf"`convergebench suites prepare {path}` brings what is missing\."
    )
    assert re.search(note, str(planned))
    assert re.search(note, planned.to_dict()["notes"][0])
    events: list[Progress] = []
    result = run(tmp_path / "run", table, observe=events.append)
    assert result.complete
    assert re.search(note, events[0].event), "before the first call"
    assert events[0].steps_done == 0
    assert re.search(note, str(result))
    store = RunStore.open(tmp_path / "run")
    assert store.suite.whole == load_suite(path).content_hash()
    assert store.info.fingerprint == store.suite.content_hash() != store.suite.whole
    assert {chain.key.source for chain in store.chains()} == {"s0", "s1"}
    scored = score(tmp_path / "run", metrics=["psnr"])
    assert scored
    assert set(store.read_json("sources.json") or {}) == {"s0", "s1"}


@pytest.mark.parametrize("with_suite", [True, False])
def test_a_run_keeps_to_its_sources_when_more_are_brought(
    begun: Path, tmp_path: Path, with_suite: bool
) -> None:
    before = (begun / "suite.json").read_bytes(), (begun / "run.json").read_bytes()
    table = {**SETTINGS, "rounds": 2}
    if with_suite:
        result = run(begun, {**table, "suite": str(tmp_path / "s/suite.toml")})
        assert "Not in it: s2. A run keeps to the sources it was begun with." in str(result)
    else:
        result = run(begun, rounds=2)
        assert "A run keeps to the sources it was begun with." in str(result)
    assert result.steps_made == 7, "2 sources: copy, ball and, for s1, only-last"
    assert ((begun / "suite.json").read_bytes(), (begun / "run.json").read_bytes()) == before
    assert {chain.key.source for chain in RunStore.open(begun).chains()} == {"s0", "s1"}
    with pytest.raises(UnknownName, match=r"no source called 's2'.* tiny@1, 2 of 3 sources"):
        run(begun, {**table, "sources": ["s2"]})


def test_a_run_needs_no_file_once_it_has_begun(begun: Path, tmp_path: Path) -> None:
    for name in ("s0", "s1", "s2"):
        os.remove(tmp_path / f"s/{name}.png")
    done = records(begun)
    assert run(begun, {**SETTINGS, "suite": str(tmp_path / "s/suite.toml")}).steps_made == 0
    assert records(begun) == done


def test_a_whole_run_stays_whole_when_files_go(tmp_path: Path) -> None:
    path = addressed(tmp_path / "s")
    run(tmp_path / "run", {**SETTINGS, "suite": str(path)})
    os.remove(tmp_path / "s/s2.png")
    result = run(tmp_path / "run", {**SETTINGS, "suite": str(path), "rounds": 2})
    assert result.complete
    assert result.notes == ()
    assert {c.key.source for c in RunStore.open(tmp_path / "run").chains()} == {"s0", "s1", "s2"}


def test_runs_on_two_subsets_are_told_apart_and_compared_on_what_is_common(
    begun: Path, tmp_path: Path
) -> None:
    os.remove(tmp_path / "s/s0.png")
    run(tmp_path / "other", {**SETTINGS, "suite": str(tmp_path / "s/suite.toml")})
    for path in (begun, tmp_path / "other"):
        score(path, metrics=["psnr"])
    gathered = gather([begun, tmp_path / "other"])
    assert sorted(names(gathered.suite)) == ["s0", "s1", "s2"]
    assert re.search(
        r"suites differ \(run: tiny@1 \(\w{8}\), other: tiny@1 \(\w{8}\)\)",
        " ".join(gathered.notes),
    )


def _raise_version(path: Path) -> None:
    text = path.read_text().replace("version = 1", "version = 2")
    path.write_text(text)


def _change_content(path: Path) -> None:
    text = re.sub("fingerprint.*\n", "", path.read_text())
    path.write_text(text.replace("Copy it.", "Copy it well."))


@pytest.mark.parametrize(
    ("change", "told"),
    [(_raise_version, "made with suite tiny@1, this command asks for tiny@2"),
     (_change_content, "made with content of the suite")],
)  # fmt: skip
def test_another_suite_is_refused_all_the_same(
    begun: Path, tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    change(tmp_path / "s/suite.toml")
    with pytest.raises(StoreMismatch, match=told):
        run(begun, {**SETTINGS, "suite": str(tmp_path / "s/suite.toml")})


def test_what_is_asked_for_and_missing_is_told(tmp_path: Path) -> None:
    path = addressed(tmp_path / "s")
    for name in ("s1", "s2"):
        os.remove(tmp_path / f"s/{name}.png")
    table = {**SETTINGS, "suite": str(path)}
    brings = rf"`convergebench suites prepare {path}` brings what is missing"
    with pytest.raises(SuiteError, match=rf"source 's1' of .*: its file is not here. {brings}"):
        plan({**table, "sources": ["s1"]})
    with pytest.raises(SuiteError, match=r"cycle 'only-last' of .*: the files of its sources are"):
        plan({**table, "cycles": ["only-last"]})
    with pytest.raises(SettingsError, match="no editor is named"):
        plan({"suite": str(path)})
    assert re.search(r"ref:noise +2 ", str(plan({**table, "sources": ["s0"]})))


def test_nothing_here_is_one_sentence(tmp_path: Path) -> None:
    path = addressed(tmp_path / "s")
    for name in ("s0", "s1", "s2"):
        os.remove(tmp_path / f"s/{name}.png")
    told = complaint(cb("plan", "-s", path, "-e", "ref:noise"))
    assert "suite tiny@1 has 3 sources, and none of them is here." in told
    assert f"`convergebench suites prepare {path}` brings them." in told


def test_commands_show_the_subset(tmp_path: Path) -> None:
    path = addressed(tmp_path / "s")
    os.remove(tmp_path / "s/s2.png")
    words = ["-s", str(path), "-e", "ref:noise", "-n", "1", "--no-controls"]
    told = json.loads(cb("plan", *words, "--json").stdout)
    assert re.fullmatch(r"tiny@1, 2 of 3 sources \(\w{8}\)", told["suite"])
    done = cb("run", tmp_path / "run", *words)
    assert done.returncode == 0, done.stderr
    assert "Not the whole suite: tiny@1, 2 of 3 sources" in done.stderr
    assert "Not the whole suite: tiny@1, 2 of 3 sources" in done.stdout
    again = cb("run", tmp_path / "run")
    assert "A run keeps to the sources it was begun with." in again.stdout
