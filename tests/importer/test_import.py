"""Importing: gaps, repeats, contradictions, and that importing again changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convergebench
from convergebench.errors import ImportProblem, SettingsError, StoreError, UnknownName
from convergebench.frame import encode
from convergebench.importer import ImportResult, import_run
from convergebench.planner import plan
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.support.runs import picture, records, write_suite

PATTERN = "{editor}/{source}/step_{step}.png"


def write_tree(root: Path, tree: dict[str, bytes]) -> Path:
    """Files with their contents."""
    for name, data in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def tree(editors: int = 1, sources: int = 2, steps: int = 3) -> dict[str, bytes]:
    """Chains of one size, every frame another picture, sources shared by the editors."""
    return {
        f"e{e}/s{s}/step_{k}.png": encode(picture(1000 * e * bool(k) + 100 * s + k))
        for e in range(editors)
        for s in range(sources)
        for k in range(steps + 1)
    }


def contents(run: Path) -> dict[str, bytes]:
    """Every file of a run that says what was imported."""
    files = [p for p in run.rglob("*") if p.is_file() and p.suffix != ".lock"]
    return {str(p.relative_to(run)): p.read_bytes() for p in files}


def bring(root: Path, to: Path, **more: Any) -> ImportResult:
    return import_run(root, to, **{"pattern": PATTERN, **more})


def test_frames_become_chains_with_every_record(tmp_path: Path) -> None:
    files = tree(2, 2, 3)
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run", prompts=("Copy it.",))
    store = RunStore.open(tmp_path / "run")
    chains = store.chains()
    assert (result.new_chains, result.new_frames) == (4, 2 + 4 * 3)
    assert {(c.key.editor, c.key.source, c.length) for c in chains} == {
        ("e0", "s0", 3), ("e1", "s0", 3), ("e0", "s1", 3), ("e1", "s1", 3),
    }  # fmt: skip
    for chain in chains:
        for number, ref in chain.held.items():
            name = f"{chain.key.editor}/{chain.key.source}/step_{number}.png"
            assert store.frame(ref).data == files[name]
        first = chain.steps[0]
        assert (first.prompt, first.outcome, first.attempts) == ("Copy it.", "edited", 0)
        assert first.inputs == (chain.frames[0].sha256,)
    assert verify(tmp_path / "run").sound
    assert store.suite.source_named("s0").licence == "unknown (imported)"


def test_an_imported_run_is_scored_and_reported_like_any_other(tmp_path: Path) -> None:
    bring(write_tree(tmp_path / "in", tree()), tmp_path / "run")
    assert convergebench.score(tmp_path / "run").new
    report = convergebench.report(tmp_path / "run")
    (line,) = report.findings.standings
    assert (line.editor, line.complete, line.chains) == ("e0", 2, 2)


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(2))
    bring(root, tmp_path / "run")
    before = contents(tmp_path / "run")
    again = bring(root, tmp_path / "run")
    assert contents(tmp_path / "run") == before
    assert (again.new_chains, again.extended, again.known_chains) == (0, 0, 4)
    assert again.new_frames == 0


def test_importing_more_extends_the_run(tmp_path: Path) -> None:
    whole = tree(2, 3, 4)
    some = {name: data for name, data in whole.items() if "e1" not in name and "s2" not in name}
    short = {name: data for name, data in some.items() if name[-5] in "012"}
    bring(write_tree(tmp_path / "a", short), tmp_path / "run", origin="mine")
    result = bring(write_tree(tmp_path / "b", whole), tmp_path / "run", origin="mine")
    assert (result.new_chains, result.extended, result.known_chains) == (4, 2, 0)
    bring(tmp_path / "b", tmp_path / "at-once", origin="mine")
    assert records(tmp_path / "run") == records(tmp_path / "at-once")
    assert verify(tmp_path / "run").sound
    assert len(list((tmp_path / "run" / "imports").iterdir())) == 2
    assert RunStore.open(tmp_path / "run").suite == RunStore.open(tmp_path / "at-once").suite


def test_a_missing_frame_is_a_recorded_gap_and_the_rest_is_measured(tmp_path: Path) -> None:
    files = tree(1, 2, 4)
    del files["e0/s0/step_2.png"]
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    assert result.missing == ["e0 · s0 · replicate: step 2"]
    chain = next(c for c in RunStore.open(tmp_path / "run").chains() if c.key.source == "s0")
    assert [s.outcome for s in chain.steps] == ["edited", "missing", "edited", "edited"]
    assert chain.steps[2].inputs == ()
    assert sorted(chain.held) == [0, 1, 3, 4]
    assert verify(tmp_path / "run").sound
    convergebench.score(tmp_path / "run", ["psnr"])
    rows = RunStore.open(tmp_path / "run").scores()
    mine = rows.filter((rows["chain"] == chain.key.id) & (rows["against"] == "home"))
    assert sorted(mine["step"]) == [1, 3, 4]
    assert mine["value"].null_count() == 0
    # The frame turns up: the gap is filled, nothing else changes.
    write_tree(tmp_path / "in", tree(1, 2, 4))
    bring(tmp_path / "in", tmp_path / "run")
    chain = next(c for c in RunStore.open(tmp_path / "run").chains() if c.key.source == "s0")
    assert chain.length == 4
    assert verify(tmp_path / "run").sound


def test_a_source_that_is_missing_is_told_and_no_home_is_invented(tmp_path: Path) -> None:
    files = tree(1, 2, 2)
    del files["e0/s1/step_0.png"]
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    assert result.missing == ["e0 · s1 · replicate: no picture of the source (step 0)"]
    chain = next(c for c in RunStore.open(tmp_path / "run").chains() if c.key.source == "s1")
    assert chain.source is None
    assert sorted(chain.held) == [1, 2]
    convergebench.score(tmp_path / "run", ["psnr", "noise"])
    rows = RunStore.open(tmp_path / "run").scores()
    mine = rows.filter(rows["chain"] == chain.key.id)
    assert set(mine["against"]) == {"none", "previous"}
    # Its picture arrives later: the chain has a home then.
    write_tree(tmp_path / "in", tree(1, 2, 2))
    bring(tmp_path / "in", tmp_path / "run")
    chain = next(c for c in RunStore.open(tmp_path / "run").chains() if c.key.source == "s1")
    assert chain.source is not None
    assert chain.length == 2
    assert RunStore.open(tmp_path / "run").suite.source_named("s1").elsewhere is None


def test_chains_shorter_than_expected_have_failed(tmp_path: Path) -> None:
    result = bring(write_tree(tmp_path / "in", tree(1, 1, 2)), tmp_path / "run", steps=5)
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.ended
    assert (chain.steps[-1].step, chain.steps[-1].outcome) == (3, "failed")
    assert "5 steps were expected" in result.failed[0]


def test_equal_duplicates_are_taken_once_with_a_note(tmp_path: Path) -> None:
    files = tree(1, 1, 2)
    files["e0/s0/step_01.png"] = files["e0/s0/step_1.png"]
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    assert any("equal bytes" in note for note in result.notes)
    assert len(RunStore.open(tmp_path / "run").chains()) == 1


def test_different_pictures_of_one_step_are_refused_or_kept_as_repeats(tmp_path: Path) -> None:
    files = tree(1, 1, 2)
    files["e0/s0/step_01.png"] = encode(picture(77))
    root = write_tree(tmp_path / "in", files)
    with pytest.raises(ImportProblem, match="1 key with values that differ"):
        bring(root, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    looked = bring(root, tmp_path / "run", dry_run=True)
    assert looked.conflicts == [
        ("e0 · s0 · replicate: step 1", ("e0/s0/step_01.png", "e0/s0/step_1.png"))
    ]
    bring(root, tmp_path / "run", conflicts="repeat")
    first, second = sorted(RunStore.open(tmp_path / "run").chains(), key=lambda c: c.key.repeat)
    assert (first.length, second.key.repeat) == (2, 1)
    assert second.steps[0].frame is not None
    before = contents(tmp_path / "run")
    bring(root, tmp_path / "run", conflicts="repeat")
    assert contents(tmp_path / "run") == before


def test_a_picture_that_contradicts_the_run_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    bring(write_tree(tmp_path / "in", tree(1, 1, 2)), tmp_path / "run")
    before = contents(tmp_path / "run")
    write_tree(tmp_path / "in", {"e0/s0/step_2.png": encode(picture(55))})
    with pytest.raises(ImportProblem, match="step 2"):
        bring(tmp_path / "in", tmp_path / "run")
    assert contents(tmp_path / "run") == before
    bring(tmp_path / "in", tmp_path / "run", conflicts="repeat")
    assert len(RunStore.open(tmp_path / "run").chains()) == 2
    twice = contents(tmp_path / "run")
    bring(tmp_path / "in", tmp_path / "run", conflicts="repeat")
    assert contents(tmp_path / "run") == twice


def test_sources_of_one_name_with_different_pictures_are_told_apart(tmp_path: Path) -> None:
    files = tree(2, 1, 1)
    files["e1/s0/step_0.png"] = encode(picture(99))
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    names = [source.name for source in RunStore.open(tmp_path / "run").suite.source]
    assert len(names) == 2
    assert any("1 other picture than 's0'" in note for note in result.notes)


def test_what_is_no_picture_is_kept_and_recorded_as_malformed(tmp_path: Path) -> None:
    files = tree(1, 1, 2)
    files["e0/s0/step_1.png"] = files["e0/s0/step_1.png"][:90]
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert [s.outcome for s in chain.steps] == ["malformed", "edited"]
    assert "step_1.png" in result.malformed[0]
    assert chain.steps[0].frame is not None
    kept = RunStore.open(tmp_path / "run").frame(chain.steps[0].frame)
    assert kept.data == files["e0/s0/step_1.png"]
    assert verify(tmp_path / "run").sound


def test_size_changes_are_told(tmp_path: Path) -> None:
    files = tree(1, 1, 2)
    files["e0/s0/step_2.png"] = encode(picture(5, 40, 32))
    result = bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    assert result.sizes == ["e0/s0/step_2.png: 40×32"]


def test_where_every_file_came_from_is_recorded(tmp_path: Path) -> None:
    files = tree(1, 1, 2)
    write_tree(tmp_path / "in", {**files, "readme.txt": b"hello"})
    result = bring(tmp_path / "in", tmp_path / "run", origin="lab 7", licence="CC0-1.0")
    (record,) = (tmp_path / "run" / "imports").iterdir()
    head, *lines = (json.loads(line) for line in record.read_text().splitlines())
    assert (head["origin"], head["layout"], head["importer"]) == ("lab 7", "pattern", 1)
    assert head["unread"] == result.unread == ["readme.txt"]
    assert head["options"]["licence"] == "CC0-1.0"
    assert sorted(line["file"] for line in lines) == sorted(files)
    assert str(tmp_path) not in record.read_text()


def test_a_suite_that_is_there_makes_imports_comparable_with_new_runs(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    files = {
        f"old/s{s}/step_{k}.png": encode(picture(s if k == 0 else 50 + s + k))
        for s in range(2)
        for k in range(3)
    }
    root = write_tree(tmp_path / "in", files)
    bring(root, tmp_path / "run", suite=str(suite), cycle="copy")
    table = {"suite": str(suite), "editors": ["ref:jpeg"], "cycles": ["copy"], "steps": 2}
    convergebench.run(tmp_path / "new", {**table, "controls": False})
    old, new = RunStore.open(tmp_path / "run"), RunStore.open(tmp_path / "new")
    assert old.info.fingerprint == new.info.fingerprint
    assert {c.key.cycle for c in old.chains()} == {"copy@1"}
    # New chains can be run beside the imported ones.
    convergebench.run(tmp_path / "run", None, editors=["ref:jpeg"], cycles=["copy"], steps=2)
    assert {c.key.editor for c in RunStore.open(tmp_path / "run").chains()} > {"old", "ref:jpeg"}


def test_another_picture_under_a_suites_name_is_refused(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    root = write_tree(tmp_path / "in", tree(1, 1, 1) | {"e0/s0/step_0.png": encode(picture(9))})
    with pytest.raises(ImportProblem, match="is not the picture"):
        bring(root, tmp_path / "run", suite=str(suite), cycle="copy")
    with pytest.raises(UnknownName, match="no cycle called 'replicate'"):
        bring(write_tree(tmp_path / "b", {"e/s0/step_0.png": encode(picture(0)),
                                          "e/s0/step_1.png": encode(picture(1))}),
              tmp_path / "run", suite=str(suite))  # fmt: skip


def test_an_editor_is_never_sent_a_prompt_that_nobody_recorded(
    tmp_path: Path, test_plugin: Path
) -> None:
    bring(write_tree(tmp_path / "in", tree(1, 1, 2)), tmp_path / "run")
    with pytest.raises(SettingsError, match="were not recorded"):
        plan(tmp_path / "run", editors=["scripted,script=1:ok"])
    assert plan(tmp_path / "run", editors=["ref:identity"]).calls


def test_a_run_directory_that_is_something_else_is_refused(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 1))
    write_tree(tmp_path / "taken", {"notes.txt": b"mine"})
    with pytest.raises(StoreError, match="not a run directory"):
        bring(root, tmp_path / "taken")
    with pytest.raises(ImportProblem, match="does not exist"):
        import_run(tmp_path / "nowhere", tmp_path / "run")
    with pytest.raises(ImportProblem, match="say where the run is to be"):
        bring(root, None)  # type: ignore[arg-type]
    with pytest.raises(ImportProblem, match="no importer knows"):
        import_run(write_tree(tmp_path / "odd", {"a/b.dat": b"x"}), tmp_path / "run")
    (tmp_path / "void").mkdir()
    with pytest.raises(ImportProblem, match="is empty"):
        import_run(tmp_path / "void", tmp_path / "run")


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree())
    result = bring(root, tmp_path / "run", dry_run=True)
    assert not (tmp_path / "run").exists()
    assert "Nothing is written" in str(result)
    assert result.to_dict()["editors"][0]["frames"] == 6


@settings(max_examples=15, deadline=None)
@given(
    present=st.sets(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), min_size=1),
    order=st.randoms(use_true_random=False),
    parts=st.integers(1, 3),
)
def test_any_part_first_gives_the_same_chains(
    tmp_path_factory: pytest.TempPathFactory,
    present: set[tuple[int, int, int]],
    order: Any,
    parts: int,
) -> None:
    """Whatever is imported first, and in how many parts, the frames and gaps are the same."""
    place = tmp_path_factory.mktemp("parts")
    whole = tree(2, 2, 3)
    names = sorted(f"e{e}/s{s}/step_{k}.png" for e, s, k in present)
    order.shuffle(names)
    for part in range(parts):
        some = names[part::parts]
        if some:
            write_tree(place / "in", {name: whole[name] for name in some})
            bring(place / "in", place / "run", origin="x")
    bring(place / "in", place / "once", origin="x")
    held = [
        {
            c.key.id: {k: r.sha256 for k, r in c.held.items()}
            for c in RunStore.open(place / run).chains()
        }
        for run in ("run", "once")
    ]
    assert held[0] == held[1]
    assert verify(place / "run").sound
    assert {
        (c.key.editor[1], c.key.source[1], k) for c in RunStore.open(place / "run").chains()
        for k in c.held if k
    } == {(str(e), str(s), k) for e, s, k in present if k}  # fmt: skip
