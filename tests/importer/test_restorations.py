"""A suite of somebody's own pairs, and imports of restoration trees whose pairs do not fit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem, InputError
from convergebench.frame import encode
from convergebench.importer import import_run
from convergebench.importer.found import Look, Wishes
from convergebench.importer.layouts.restoration import DAMAGES, LAYOUT, damage_of
from convergebench.importer.restorations import load_pairs, restores
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.suite import check_suite
from tests.editors.own.asking import command
from tests.importer.trees import plant, said
from tests.support.runs import picture

Size = tuple[int, int]


def put(root: Path, name: str, size: Size = (32, 24), kind: str = "png") -> bytes:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = encode(picture(len(name), *size), kind)
    path.write_bytes(data)
    return data


def tree(root: Path) -> Path:
    """Pairs in two scenes, and inputs alone in a third."""
    for scene in ("Large_Face", "Digital Zoom/text"):
        for name in ("a b.png", "c.png"):
            put(root, f"input/{scene}/{name}")
            put(root, f"gt/{scene}/{name}")
    put(root, "input/Surveillance/street.jpg", kind="jpeg")
    put(root, "method-net/Large_Face/a b.png")
    return root


def test_a_tree_becomes_a_suite_with_the_prompts_of_the_paper(tmp_path: Path) -> None:
    root = tree(tmp_path / "Pairs")
    loaded = load_pairs("restoration-v1", root, tmp_path / "mine")
    like, made = open_suite("restoration-v1"), loaded.suite
    assert made.name == "restoration-v1.pairs"
    assert check_suite(made) == []
    assert made.intact
    assert [(c.name, c.group, c.factors, c.readers) for c in made.cycle] == [
        (c.name, c.group, c.factors, c.readers) for c in like.cycle
    ]
    told = {s.name: (s.called, s.category, s.degradation, s.has_truth) for s in made.source}
    assert told == {
        "large_face_a-b": ("a b", "Large Face", None, True),
        "large_face_c": ("c", "Large Face", None, True),
        "digital-zoom_text_a-b": ("a b", "Text", "Digital Zoom", True),
        "digital-zoom_text_c": ("c", "Text", "Digital Zoom", True),
        "street": (None, "Surveillance", "Surveillance", False),
    }
    assert (tmp_path / "mine/images/street.jpg").read_bytes() == (
        root / "input/Surveillance/street.jpg"
    ).read_bytes()
    text = str(loaded)
    assert "1 source without a truth" in text
    assert "pattern=**/{source}.png" in text
    assert len(loaded.to_dict()["sources"]) == 5


def test_editors_run_on_such_a_suite_and_the_unprompted_walk_one_cycle(tmp_path: Path) -> None:
    loaded = load_pairs("restoration-v1", tree(tmp_path / "pairs"), tmp_path / "mine")
    done = run(
        tmp_path / "run", suite=str(loaded.folder), editors=["classic:median"], controls=False
    )
    assert done.outcomes == {"edited": 5}
    chains = RunStore.open(tmp_path / "run").chains()
    assert {chain.key.cycle.partition("@")[0] for chain in chains} == {"restore"}
    assert sum(chain.truth is not None for chain in chains) == 4


def test_a_folder_of_a_method_is_run_as_an_editor(tmp_path: Path) -> None:
    root = tree(tmp_path / "pairs")
    loaded = load_pairs("restoration-v1", root, tmp_path / "mine")
    name = f"folder:{root / 'method-net'},pattern=**/{{source}}.png"
    asked: dict[str, Any] = {
        "suite": str(loaded.folder),
        "editors": [name],
        "controls": False,
    }
    with pytest.raises(InputError, match="4 pictures of its methods cannot be used") as raised:
        run(tmp_path / "run", **asked)
    assert "source 'street': there is no street.png" in str(raised.value)
    done = run(tmp_path / "run", allow_missing=True, **asked)
    assert done.outcomes == {"edited": 1, "no-image": 4}


def test_what_is_wrong_is_told_in_one_list_and_nothing_is_made(tmp_path: Path) -> None:
    root = tree(tmp_path / "pairs")
    put(root, "gt/Large_Face/c.png", (32, 25))
    (root / "input/Large_Face/a b.png").write_bytes(b"torn")
    (root / "gt/Digital Zoom/text/c.png").unlink()
    put(root, "input/Surveillance/street.png")
    with pytest.raises(ImportProblem, match=r"4 problems with .*pairs, nothing was made") as raised:
        load_pairs("restoration-v1", root, tmp_path / "mine")
    text = str(raised.value)
    for told in (
        "input/Large_Face/c.png: its picture has 32×24 pixels and its truth 32×25",
        "input/Large_Face/a b.png is no usable image",
        "input/Digital Zoom/text/c.png has no truth in gt/, and others of its scene have",
        "street.jpg, input/Surveillance/street.png are one picture by name",
    ):
        assert told in text
    assert not (tmp_path / "mine").exists()


def test_a_lacking_truth_may_be_allowed(tmp_path: Path) -> None:
    root = tree(tmp_path / "pairs")
    (root / "gt/Large_Face/c.png").unlink()
    loaded = load_pairs("restoration-v1", root, tmp_path / "mine", allow_missing=True)
    assert not loaded.suite.source_named("large_face_c").has_truth


def test_truths_that_are_larger_are_told(tmp_path: Path) -> None:
    put(tmp_path, "pairs/LR/a.png", (16, 16))
    put(tmp_path, "pairs/HR/a.png", (48, 48))
    loaded = load_pairs("restoration-v1", tmp_path / "pairs", tmp_path / "mine")
    assert "Of 1 source the truth is 3 times as large" in loaded.notes[0]


def test_a_folder_that_is_none_or_there_already_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match=r"is no folder\. Give the folder that holds input/"):
        load_pairs("restoration-v1", tmp_path / "gone", tmp_path / "mine")
    root = tree(tmp_path / "pairs")
    with pytest.raises(ImportProblem, match="is there already, and not empty"):
        load_pairs("restoration-v1", root, root)
    shutil.rmtree(root / "input")
    with pytest.raises(ImportProblem, match="has no folder of degraded pictures; expected one"):
        load_pairs("restoration-v1", root, tmp_path / "mine")


def test_the_command_makes_the_suite_or_exits_with_the_list(tmp_path: Path) -> None:
    root = tree(tmp_path / "pairs")
    words = ("suites", "load", "restoration-v1", "--from", "pairs", "--to", "mine")
    done = command(tmp_path, *words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["suite"] == "restoration-v1.pairs@1"
    shutil.rmtree(tmp_path / "mine")
    put(root, "gt/Large_Face/c.png", (32, 25))
    done = command(tmp_path, *words)
    assert done.returncode == 2
    assert "1 problem with pairs, nothing was made" in done.stderr
    assert "Traceback" not in done.stderr


def test_only_suites_that_restore_are_made_of_pairs() -> None:
    assert restores(open_suite("restoration-v1"))
    assert not restores(open_suite("starter"))


@pytest.mark.parametrize(
    ("scene", "damage"),
    [
        ("defocus_blur", "Defocus Blur"),
        ("Text/Old Photo (Black and White)", "Old Photo (Black and White)"),
        ("old-photo-colour", "Old Photo (Color)"),
        ("old-photo-bw", "Old Photo (Black and White)"),
        ("Zoom", "Digital Zoom"),
        ("crowd", ""),
        ("", ""),
    ],
)
def test_a_folder_may_be_called_after_the_damage(scene: str, damage: str) -> None:
    assert damage_of(scene) == damage


def test_the_damages_are_called_as_in_the_suite() -> None:
    assert {source.degradation for source in open_suite("restoration-v1").source} == set(DAMAGES)


def test_prompts_called_like_the_papers_get_its_groups(tmp_path: Path) -> None:
    plant(tmp_path, [f"{top}/a.png" for top in ("input", "x/SF2", "x/prompt_own", "x/LF1")])
    finds = LAYOUT.read(Look(tmp_path), Wishes())
    told = {name: (cycle.group, cycle.factors) for name, cycle in finds.cycles.items()}
    like = {cycle.title: cycle for cycle in open_suite("restoration-v1").cycle}
    assert told == {
        "SF2": ("SF", like["SF2"].factors),
        "LF1": ("LF", like["LF1"].factors),
        "own": (None, None),
    }
    assert said(finds, "put into its groups")


def test_an_import_keeps_groups_and_damages(tmp_path: Path) -> None:
    for top in ("input", "gt", "net/S1", "net/LF3"):
        put(tmp_path, f"tree/{top}/motion/a.png")
    import_run(tmp_path / "tree", tmp_path / "run")
    suite = RunStore.open(tmp_path / "run").suite
    assert {cycle.title: cycle.group for cycle in suite.cycle} == {"S1": "S", "LF3": "LF"}
    assert [source.damage for source in suite.source] == ["Motion Blur"]


def test_an_import_names_all_pairs_that_do_not_fit_and_writes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for name in ("a", "b", "c", "d"):
        for top in ("input", "gt", "net"):
            put(root, f"{top}/{name}.png")
    put(root, "gt/a.png", (40, 24))
    (root / "input/b.png").write_bytes(b"torn")
    (root / "gt/c.png").write_bytes(b"torn")
    (root / "net/d.png").write_bytes(b"torn")  # a failure of its method
    told = import_run(root, dry_run=True)
    with pytest.raises(
        ImportProblem, match="3 problems with these pairs, nothing was imp"
    ) as raised:
        import_run(root, tmp_path / "run")
    for line in (
        "input/b.png is no readable picture",
        "gt/c.png is no readable picture",
        "input/a.png and gt/a.png: its picture has 32×24 pixels and its truth 40×24",
    ):
        assert line in str(raised.value)
        assert any(line in note for note in told.notes)
    assert not (tmp_path / "run").exists()


def test_folders_that_cannot_be_read_are_named_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for top in ("input", "gt", "method-a", "method-b"):
        put(tmp_path, f"tree/{top}/a.png")
    look = os.scandir

    def guarded(path: Any) -> Any:
        if "method-" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(
        ImportProblem, match=r"cannot read .*method-a \(Permission .*method-b \(Per"
    ):
        import_run(tmp_path / "tree", tmp_path / "run", layout="restoration")
    assert not (tmp_path / "run").exists()


def test_an_unreadable_folder_is_one_of_the_problems_of_a_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "pairs")
    put(root, "gt/Large_Face/c.png", (32, 25))
    look = os.scandir
    closed = "gt/Digital Zoom"

    def guarded(path: Any) -> Any:
        if str(path).endswith(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(ImportProblem, match=r"2 problems with .*pairs, nothing was made") as raised:
        load_pairs("restoration-v1", root, tmp_path / "mine")
    assert f"cannot read {root}/gt/Digital Zoom (Permission denied)" in str(raised.value)
    assert "its truth 32×25" in str(raised.value)
    closed = "pairs/input"
    with pytest.raises(ImportProblem, match=r"(?s)read .*input \(Perm.*no folder of degraded"):
        load_pairs("restoration-v1", root, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_suite_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "pairs")
    write = Path.write_text

    def full(self: Path, *words: Any, **options: Any) -> int:
        if self.name == "suite.toml":
            raise OSError(28, "No space left on device", str(self))
        return write(self, *words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(ImportProblem, match=r"cannot write .*No space left"):
            load_pairs("restoration-v1", root, tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]
    (tmp_path / "mine").mkdir()
    assert load_pairs("restoration-v1", root, tmp_path / "mine").suite.source


def test_an_imported_picture_has_the_scene_that_a_suite_of_the_tree_gives_it(
    tmp_path: Path,
) -> None:
    root = tree(tmp_path / "pairs")
    suite = load_pairs("restoration-v1", root, tmp_path / "mine").suite
    import_run(root, tmp_path / "run")
    told = RunStore.open(tmp_path / "run").suite
    assert {s.name: (s.category, s.damage) for s in told.source} == {
        s.name: (s.category, s.damage) for s in suite.source
    }


def test_an_output_that_is_no_picture_is_imported_as_a_failure(tmp_path: Path) -> None:
    for top in ("input", "gt", "net"):
        put(tmp_path, f"tree/{top}/a.png")
    (tmp_path / "tree/net/a.png").write_bytes(b"torn")
    result = import_run(tmp_path / "tree", tmp_path / "run")
    assert result.malformed
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.last is not None
    assert chain.last.outcome == "malformed"
