"""What comes first must not matter, and what is refused must leave no trace."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import convergebench
from convergebench.analysis.roster import chain_table
from convergebench.chain import Chain
from convergebench.errors import ImportProblem, StoreBusy
from convergebench.frame import encode
from convergebench.importer import Wishes, importing
from convergebench.importer.found import FoundCycle
from convergebench.importer.premises import Premises, _cycle, _same, _worded, premises_of
from convergebench.planner import plan
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.importer.test_import import bring, contents, tree, write_tree
from tests.support.runs import picture


def chain_of(run: Path, editor: str, source: str, repeat: int = 0) -> Chain:
    (found,) = (
        c
        for c in RunStore.open(run).chains()
        if (c.key.editor, c.key.source, c.key.repeat) == (editor, source, repeat)
    )
    return found


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["model,image,step,psnr", *rows]) + "\n")
    return path


def test_a_plan_for_an_imported_run_keeps_to_the_sources_asked_for(tmp_path: Path) -> None:
    bring(write_tree(tmp_path / "in", tree(1, 3, 2)), tmp_path / "run")
    planned = plan(tmp_path / "run", editors=["ref:noise"], sources=["s1"], controls=False)
    assert [row.chains for row in planned.rows] == [1]


def test_another_import_in_between_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tree(3, 1, 1)
    for name in ("e0", "e1", "e2"):
        write_tree(tmp_path / name, {k: v for k, v in whole.items() if k.startswith(name)})
    bring(tmp_path / "e0", tmp_path / "run")
    taken, first = threading.Event(), RunStore.writing

    def slow(self: RunStore, what: str, **more: int) -> object:
        if not taken.is_set():
            taken.set()
            bring(tmp_path / "e1", tmp_path / "run", cycle="other")
        return first(self, what, **more)

    monkeypatch.setattr(RunStore, "writing", slow)
    bring(tmp_path / "e2", tmp_path / "run")
    assert [cycle.name for cycle in RunStore.open(tmp_path / "run").suite.cycle] == [
        "replicate", "other",
    ]  # fmt: skip
    assert verify(tmp_path / "run").sound


def test_a_run_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 1))
    bring(root, tmp_path / "run")
    with (
        RunStore.open(tmp_path / "run").writing("score"),
        pytest.raises(StoreBusy, match="being written"),
    ):
        bring(root, tmp_path / "run")


def test_a_source_may_be_called_floor(tmp_path: Path) -> None:
    files = {name.replace("s0", "floor"): data for name, data in tree(1, 2, 2).items()}
    bring(write_tree(tmp_path / "in", files), tmp_path / "run")
    result = convergebench.score(tmp_path / "run", ["psnr"])
    assert (result.problems, result.null) == ([], 0)
    assert len(convergebench.report(tmp_path / "run").findings.standings) == 1


def test_repeats_that_both_have_conflicts_keep_every_picture(tmp_path: Path) -> None:
    files = {
        f"e/s/{r}/{k}{v}.png": encode(picture(100 * r + 10 * k + ord(v)))
        for r in range(2)
        for k, v in ((1, "a"), (1, "b"), (2, "a"))
    }
    result = bring(
        write_tree(tmp_path / "in", files),
        tmp_path / "run",
        pattern="{editor}/{source}/{repeat}/{step}?.png",
        conflicts="repeat",
    )
    chains = RunStore.open(tmp_path / "run").chains()
    assert sum(len(c.held) for c in chains) == len(files)
    assert result.new_frames == len(files)


def test_conflicting_series_are_not_mixed_where_the_first_has_a_gap(tmp_path: Path) -> None:
    files = {
        f"e/trial{t}/s_{k}.png": encode(picture(1000 * ord(t) + k)) for t in "AB" for k in range(5)
    }
    files["e/trialB/s_0.png"] = files["e/trialA/s_0.png"]
    del files["e/trialA/s_3.png"]
    bring(
        write_tree(tmp_path / "in", files),
        tmp_path / "run",
        pattern="{editor}/trial?/{source}_{step}.png",
        conflicts="repeat",
    )
    store = RunStore.open(tmp_path / "run")
    for chain in store.chains():
        stored = {store.frame(ref).data for number, ref in chain.held.items() if number}
        assert any(
            stored == {d for n, d in files.items() if f"trial{t}" in n and "_0" not in n}
            for t in "AB"
        )


def test_names_of_different_imports_are_not_mixed_up(tmp_path: Path) -> None:
    run = tmp_path / "run"
    convergebench.import_run(table(tmp_path / "a.csv", "m,日本,1,30"), run)
    convergebench.import_run(table(tmp_path / "b.csv", "m,中国,1,20"), run)
    convergebench.import_run(table(tmp_path / "c.csv", "m,Foo,1,10", "m,foo,1,5"), run)
    assert len(RunStore.open(run).chains()) == 4
    before = contents(run)
    convergebench.import_run(table(tmp_path / "a.csv", "m,日本,1,30"), run)
    convergebench.import_run(table(tmp_path / "c.csv", "m,Foo,1,10"), run)
    assert contents(run) == before


def test_a_source_keeps_its_name_when_most_chains_have_another_picture(tmp_path: Path) -> None:
    def chain(editor: int, source: int) -> dict[str, bytes]:
        step = encode(picture(100 * editor))
        return {f"e{editor}/s/step_0.png": encode(picture(source)), f"e{editor}/s/step_1.png": step}

    write_tree(tmp_path / "in", chain(1, 7) | chain(2, 7) | chain(3, 8))
    bring(tmp_path / "in", tmp_path / "run")
    write_tree(tmp_path / "in", chain(4, 8) | chain(5, 8))
    result = bring(tmp_path / "in", tmp_path / "run")
    assert (result.new_chains, result.known_chains) == (2, 3)
    assert len(RunStore.open(tmp_path / "run").suite.source) == 2


def test_a_chain_that_was_run_here_is_never_added_to(tmp_path: Path) -> None:
    run = tmp_path / "run"
    convergebench.run(run, {"editors": ["ref:identity"], "sources": ["dunes"], "size": 32,
                            "cycles": ["replicate"], "rounds": 1, "controls": False})  # fmt: skip
    store = RunStore.open(run)
    (chain,) = store.chains()
    data = store.frame(chain.frames[0]).data
    root = write_tree(tmp_path / "in", {f"{k}.png": data for k in (0, 1, 4)})
    before = contents(run)
    wishes = Wishes(editor="ref:identity", source="dunes", pattern="{step}.png")
    with pytest.raises(ImportProblem, match="was run here, not imported"):
        convergebench.import_run(root, run, wishes=wishes)
    assert contents(run) == before
    os.remove(root / "4.png")
    convergebench.import_run(root, run, wishes=wishes)
    assert contents(run) == before
    assert verify(run).sound


@pytest.mark.parametrize("frames_first", [True, False])
def test_a_failed_chain_stays_failed_in_whatever_order_gaps_are_filled(
    tmp_path: Path, frames_first: bool
) -> None:
    files = {k: v for k, v in tree(1, 1, 4).items() if "step_2" not in k}
    root, run = write_tree(tmp_path / "in", files), tmp_path / "run"
    rows = table(tmp_path / "t.csv", "e0,s0,2,30")
    for frames in (frames_first, not frames_first):
        if frames:
            bring(root, run, steps=5)
        else:
            convergebench.import_run(rows, run)
    chain = chain_of(run, "e0", "s0")
    assert chain.ended
    suite = RunStore.open(run).suite
    assert chain_table([chain], suite)["failed"].to_list() == [True]
    assert chain_table([chain], suite)["ended"].to_list() == ["failed"]


def test_a_source_that_comes_with_another_chain_reaches_all(tmp_path: Path) -> None:
    whole, run = tree(2, 1, 2), tmp_path / "run"
    some = {k: v for k, v in whole.items() if k.startswith("e0") and "step_0" not in k}
    bring(write_tree(tmp_path / "a", some), run)
    assert chain_of(run, "e0", "s0").source is None
    rest = {k: v for k, v in whole.items() if k.startswith("e1")}
    bring(write_tree(tmp_path / "b", rest), run)
    assert chain_of(run, "e0", "s0").source is not None
    before = contents(run)
    bring(tmp_path / "a", run)
    assert contents(run) == before
    assert verify(run).sound


def test_another_truth_is_refused(tmp_path: Path) -> None:
    files = {"in/a.png": encode(picture(1)), "gt/a.png": encode(picture(2)),
             "net/a.png": encode(picture(3))}  # fmt: skip
    root, run = write_tree(tmp_path / "in", files), tmp_path / "run"
    wishes = {"pattern": "{editor:net}/{source}.png", "source_pattern": "in/{source}.png",
              "truth_pattern": "gt/{source}.png", "kind": "restore"}  # fmt: skip
    bring(root, run, **wishes)
    assert chain_of(run, "net", "a").truth is not None
    before = contents(run)
    write_tree(root, {"gt/a.png": encode(picture(9))})
    with pytest.raises(ImportProblem, match="two different ground truths"):
        bring(root, run, **wishes)
    assert contents(run) == before


def test_a_truth_that_comes_before_its_source_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    wishes = {"pattern": "{editor:net}/{source}.png", "kind": "restore"}
    root = write_tree(
        tmp_path / "in", {"net/a.png": encode(picture(3)), "gt/a.png": encode(picture(2))}
    )
    bring(root, run, truth_pattern="gt/{source}.png", **wishes)
    write_tree(root, {"in/a.png": encode(picture(1))})
    bring(root, run, source_pattern="in/{source}.png", **wishes)
    chain = chain_of(run, "net", "a")
    assert chain.truth is not None
    assert chain.source is not None
    assert RunStore.open(run).suite.source_named("a").truth_sha256 == chain.truth.sha256
    convergebench.score(run, ["psnr"])


def test_a_refused_import_leaves_no_new_run(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 2))
    (root / "e0/s0/step_3.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(ImportProblem, match=r"cannot read e0/s0/step_3\.png"):
        bring(root, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_picture_that_changes_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 1))

    def then_changed(*told: Any) -> Premises:
        found = premises_of(*told)
        (root / "e0/s0/step_0.png").write_bytes(encode(picture(99)))
        return found

    monkeypatch.setattr(importing, "premises_of", then_changed)
    with pytest.raises(ImportProblem, match="changed while it was read"):
        bring(root, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_dry_run_tells_what_contradicts_the_run(tmp_path: Path) -> None:
    root, run = write_tree(tmp_path / "in", tree(1, 2, 2)), tmp_path / "run"
    bring(root, run)
    write_tree(root, {"e0/s0/step_2.png": encode(picture(55))})
    before = contents(run)
    looked = bring(root, run, dry_run=True)
    assert contents(run) == before
    assert [key for key, _ in looked.conflicts] == ["e0 · s0 · replicate@1: step 2"]
    assert "it would be 1 new chain, 0 extended, 1 known before" in str(looked)
    kept = bring(root, run, conflicts="repeat")
    assert kept.conflicts == looked.conflicts
    assert "kept as repeats" in str(kept)


def test_a_kept_conflict_is_extended_in_place(tmp_path: Path) -> None:
    run = tmp_path / "run"
    bring(write_tree(tmp_path / "a", tree(1, 1, 2)), run)
    other = {"e0/s0/step_0.png": tree()["e0/s0/step_0.png"], "e0/s0/step_1.png": encode(picture(7))}
    bring(write_tree(tmp_path / "b", other), run, conflicts="repeat")
    bring(
        write_tree(tmp_path / "b", {"e0/s0/step_2.png": encode(picture(8))}),
        run,
        conflicts="repeat",
    )
    assert [c.length for c in RunStore.open(run).chains()] == [2, 2]


def test_a_time_stamp_is_no_step(tmp_path: Path) -> None:
    files = {"e/s/0.png": encode(picture(1)), "e/s/1700000000.png": encode(picture(2))}
    with pytest.raises(ImportProblem, match="would be step 1700000000"):
        bring(write_tree(tmp_path / "in", files), tmp_path / "run",
              pattern="{editor}/{source}/{step}.png")  # fmt: skip


def test_what_is_no_news_is_not_recorded_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    bring(write_tree(tmp_path / "only", {"e/s/step_0.png": encode(picture(1))}), run)
    before = contents(run)
    again = bring(tmp_path / "only", run)
    assert (again.new_chains, contents(run)) == (0, before)
    for name in ("a", "b"):
        write_tree(tmp_path / name, tree(1, 1, 2) | {"e0/s0/step_1.png": name.encode()})
    for name in ("a", "b"):
        bring(tmp_path / name, run)
    before = contents(run)
    for name in ("a", "b"):
        bring(tmp_path / name, run)
    assert contents(run) == before


def test_prompts_are_gathered_edit_by_edit(tmp_path: Path) -> None:
    one = _cycle("c", "c", FoundCycle("round-trip", ("go", None)))
    two = _cycle("c", "c", FoundCycle("round-trip", (None, "back")))
    assert _same(one, two)
    assert [e.prompt for e in _worded(one, two).edit] == ["go", "back"]
    with pytest.raises(ImportProblem, match=r"'items' and '\{item\}'"):
        _cycle("c", "c", FoundCycle("replicate", ("add {item}",)))


def test_linked_folders_pipes_and_odd_names_are_told(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 1))
    (root / "linked").symlink_to(tmp_path)
    result = bring(root, tmp_path / "run")
    assert any("Linked folders are not followed: linked" in note for note in result.notes)
    os.mkfifo(root / "e0/s0/step_2.png")
    with pytest.raises(ImportProblem, match="it is no plain file"):
        bring(root, tmp_path / "other")
    os.remove(root / "e0/s0/step_2.png")
    with open(os.fsencode(root) + b"/\xff.png", "wb"):
        pass
    with pytest.raises(ImportProblem, match="no valid UTF-8"):
        bring(root, tmp_path / "third")


def test_a_killed_creation_can_be_done_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "frames" / "00").mkdir(parents=True)
    (run / "chains").mkdir()
    (run / "suite.json").write_text("{}")
    bring(write_tree(tmp_path / "in", tree(1, 1, 1)), run)
    assert verify(run).sound


def test_wishes_that_were_not_granted_are_told(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "in", tree(1, 1, 1))
    result = bring(root, tmp_path / "run", editor="other")
    assert "--editor other is not used: what was read has its own, e0." in result.notes
    with pytest.raises(ImportProblem, match="contradict each other"):
        bring(root, tmp_path / "two", layout="sequence")


def test_the_more_particular_layout_wins_and_litter_is_no_file(tmp_path: Path) -> None:
    files = {f"s1/{name}.png": encode(picture(i)) for i, name in enumerate(
        ("origin_0", "result_0", "result_1"))}  # fmt: skip
    files |= {"__MACOSX/x.png": b"x", "Thumbs.db": b"x", "desktop.ini": b"x"}
    result = convergebench.import_run(write_tree(tmp_path / "in", files), dry_run=True)
    assert (result.layout, result.unread) == ("imgedit", [])


def test_options_that_do_nothing_are_told(tmp_path: Path) -> None:
    files = {f"s_step_{k}.png": encode(picture(k)) for k in range(3)}
    root = write_tree(tmp_path / "in", files)
    result = convergebench.import_run(root, dry_run=True, every=3, prompts=("Copy.",))
    assert "--every 3 is not used: this is no film." in result.notes
    assert not any("--prompt" in note for note in result.notes)
    with pytest.raises(ImportProblem, match="only beside --pattern"):
        convergebench.import_run(root, dry_run=True, truth_pattern="gt/{source}.png")
