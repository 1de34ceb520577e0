"""Patterns with named fields: any layout can be told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import ImportProblem, UnknownName
from convergebench.frame import encode
from convergebench.importer import Look, Wishes
from convergebench.importer.pattern import PATTERN, Pattern
from tests.importer.test_import import write_tree
from tests.support.runs import picture

WORD = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.]{0,8}", fullmatch=True)


def read(root: Path, files: list[str], **wishes: object) -> list[tuple[str, str, str, int, int]]:
    write_tree(root, {name: encode(picture(i)) for i, name in enumerate(files)})
    finds = PATTERN.read(Look(root), Wishes(**wishes))  # type: ignore[arg-type]
    return sorted(
        (f.track.editor, f.track.source, f.track.cycle, f.track.repeat, f.step)
        for f in finds.frames
    )


@given(editor=WORD, source=WORD, step=st.integers(0, 10**6), pad=st.integers(0, 8))
def test_what_was_written_is_read(editor: str, source: str, step: int, pad: int) -> None:
    path = f"out/{editor}/x/{source}-step{step:0{pad}d}.png"
    found = Pattern.parse("**/{editor}/x/{source:[^-/]+}-step{step}.*").match(path)
    assert found is not None
    assert (found["editor"], found["source"], int(found["step"])) == (editor, source, step)


@given(text=st.text(st.characters(exclude_characters="{}*?/\n", codec="utf-8"), min_size=1))
def test_signs_of_regular_expressions_are_plain_letters(text: str) -> None:
    assert Pattern.parse(text + "{step}").match(text + "7") == {"step": "7"}
    assert Pattern.parse(text + "{step}").match("#" + text + "7") is None


def test_rounds_and_phases_are_steps(tmp_path: Path) -> None:
    files = ["a/x-1-forward.png", "a/x-1-backward.png", "a/x-2-forward.png", "a/x-0.png"]
    found = read(tmp_path, files, pattern="{editor}/{source}-{round}-{phase}.png")
    assert [step for *_, step in found] == [1, 2, 3]
    rounds = read(tmp_path / "b", ["m/y_2.png"], pattern="{editor}/{source}_{round}.png",
                  kind="round-trip")  # fmt: skip
    assert [step for *_, step in rounds] == [4]


def test_settings_and_repeats_are_fields(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        ["gem/2K/run_3/cat/7.png"],
        pattern="{editor}/{resolution}/run_{repeat}/{source}/{step}.png",
    )
    assert found == [("gem", "cat", "replicate", 3, 7)]
    with pytest.raises(ImportProblem, match="no legal settings: resolution"):
        read(tmp_path / "b", ["e/9K/s/1.png"], pattern="{editor}/{resolution}/{source}/{step}.png")


def test_repeats_may_be_letters(tmp_path: Path) -> None:
    files = ["e/trialA/s_1.png", "e/trialB/s_1.png"]
    found = read(tmp_path, files, pattern="{editor}/trial{repeat}/{source}_{step}.png")
    assert [repeat for *_, repeat, _ in found] == [0, 1]
    with pytest.raises(ImportProblem, match="a number or a letter, got 'one'"):
        read(
            tmp_path / "b",
            ["e/one/s_1.png"],
            pattern="{editor}/{repeat:[a-z]+}/{source}_{step}.png",
        )


def test_numbering_may_begin_elsewhere(tmp_path: Path) -> None:
    found = read(tmp_path, ["s_1.png", "s_2.png"], pattern="{source}_{step}.png", first=1)
    assert [step for *_, step in found] == [0, 1]
    with pytest.raises(ImportProblem, match="before --first 2"):
        read(tmp_path / "b", ["s_1.png"], pattern="{source}_{step}.png", first=2)


def test_sources_and_truths_may_stand_apart(tmp_path: Path) -> None:
    write_tree(tmp_path, {name: encode(picture(1)) for name in (
        "in/cat.png", "gt/cat.png", "net/cat.png", "notes.txt")})  # fmt: skip
    wishes = Wishes(
        pattern="{editor:net}/{source}.png",
        source_pattern="in/{source}.png",
        truth_pattern="gt/{source}.png",
        kind="restore",
    )
    finds = PATTERN.read(Look(tmp_path), wishes)
    assert finds.sources["cat"].place
    assert finds.sources["cat"].truth
    assert [(f.track.editor, f.step) for f in finds.frames] == [("net", 1)]
    assert finds.unread == ["notes.txt"]


@pytest.mark.parametrize(
    ("pattern", "error", "said"),
    [
        ("{soruce}/{step}.png", UnknownName, "Did you mean source"),
        ("{step}/{step}.png", ImportProblem, "twice"),
        ("{editor}/{source}.png", ImportProblem, "neither {step} nor {round}"),
        ("{source}_{phase}_{step}.png", ImportProblem, "needs {round}"),
        ("{source:[}/{step}.png", ImportProblem, "{source:[}"),
        ("{source}/frame{step}.jpg", ImportProblem, "matches none of 1 files"),
        ("{source}_{cycle}_{step}.png", ImportProblem, "in two ways"),
    ],
)
def test_a_pattern_that_cannot_work_is_told(
    tmp_path: Path, pattern: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        read(tmp_path, ["a_b_c_1.png"], pattern=pattern)
