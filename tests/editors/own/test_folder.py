"""`folder:path`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.editor import EditReply, Turn
from convergebench.editors.own.folder import DEFAULT, FolderEditor, Pattern, _read, source_names
from convergebench.errors import EditorError, EditorFailed, EditorNoImage, SettingsError
from convergebench.frame import Frame, encode
from convergebench.importer.naming import legal_names
from convergebench.registry import open_editor, reads_prompts
from convergebench.store import RunStore
from convergebench.testing import check_editor
from tests.editors.own.asking import command, fault, frame, key, reply, request, run_words
from tests.support.runs import picture, write_suite


def put(folder: Path, name: str, seed: int = 1, kind: str = "png") -> bytes:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = encode(picture(seed), kind)
    path.write_bytes(data)
    return data


def test_frames_are_read_as_they_are_from_the_documented_place(tmp_path: Path) -> None:
    data = put(tmp_path, "s0/copy/001.png")
    made = reply(f"folder:{tmp_path}")
    assert made.data == data
    assert made.cost == 0.0
    assert made.parameters == {"file": "s0/copy/001.png"}
    spec = open_editor(f"folder:{tmp_path}").spec
    assert (spec.price, spec.deterministic) == (0.0, True)
    assert made.caveats == spec.caveats != ()


@pytest.mark.parametrize(("ending", "kind"), [("jpg", "jpeg"), ("JPEG", "jpeg"), ("webp", "webp")])
def test_any_image_ending_will_do(tmp_path: Path, ending: str, kind: str) -> None:
    data = put(tmp_path, f"s0/copy/001.{ending}", kind=kind)
    assert reply(f"folder:{tmp_path}").data == data


def test_a_pattern_tells_chains_apart(tmp_path: Path) -> None:
    settings = "t{temperature}_{resolution}_{session}_{seed}_p{phrasing}"
    pattern = f"{{source}}_{{cycle}}_{settings}/r{{repeat}}-{{step}}.png"
    name = f"folder:{tmp_path},pattern={pattern}"
    first = put(tmp_path, "s0_copy_tdefault_native_stateless_per-step_p0/r0-12.png", 1)
    second = put(tmp_path, "cat_copy_t0.5_2K_chat_fixed_p1/r3-12.png", 2)
    asked: dict[str, Any] = {"step": 12, "history": ()}
    assert reply(name, **asked).data == first
    other = key(
        source="cat", repeat=3, temperature=0.5, resolution="2K", session="chat", seed="fixed",
        phrasing=1,
    )  # fmt: skip
    assert reply(name, **asked, key=other).data == second
    able = open_editor(name).spec.abilities
    assert (able.seeds, able.temperature, able.sessions) == (True, True, ("stateless", "chat"))
    plain = open_editor(f"folder:{tmp_path}").spec.abilities
    assert (plain.seeds, plain.temperature, plain.resolutions) == (False, False, ())
    assert plain.sessions == ("stateless",)


def test_a_missing_frame_says_which_file_was_looked_for(tmp_path: Path) -> None:
    error = fault(f"folder:{tmp_path}", step=7, history=())
    assert isinstance(error, EditorNoImage)
    assert str(error) == f"there is no s0/copy/007.png in {tmp_path} (nor with another ending)"


def test_pictures_named_like_the_sources_are_chains_of_one_step(tmp_path: Path) -> None:
    data = put(tmp_path, "s0.png")
    name = f"folder:{tmp_path},pattern={{source}}.png"
    assert reply(name).data == data
    error = fault(name, step=2, history=())
    assert isinstance(error, EditorFailed)
    assert "has no {step}, so that there is a first step and no step 2" in str(error)


def test_a_missing_frame_says_which_pattern_would_have_found_one(tmp_path: Path) -> None:
    put(tmp_path, "s0.jpg", kind="jpeg")
    said = "There is one of the source's name: add ,pattern={source}.png"
    assert str(fault(f"folder:{tmp_path}")).endswith(said)
    other = fault(f"folder:{tmp_path},pattern={{source}}.png", key=key(source="s1"))
    assert str(other) == f"there is no s1.png in {tmp_path} (nor with another ending)"


def test_a_picture_is_found_whose_name_is_no_legal_one(tmp_path: Path) -> None:
    data = put(tmp_path, "Large Face (1).PNG")
    name = f"folder:{tmp_path},pattern={{source}}.png"
    made = reply(name, key=key(source="large-face-1"))
    assert (made.data, made.parameters) == (data, {"file": "Large Face (1).PNG"})
    put(tmp_path, "large face_(1).png")
    assert isinstance(fault(name, key=key(source="large-face")), EditorNoImage)
    put(tmp_path, "LARGE-FACE-1.jpg", kind="jpeg")
    assert "are both there" in str(fault(name, key=key(source="large-face-1")))


def test_pictures_may_be_in_any_folder_below(tmp_path: Path) -> None:
    name = f"folder:{tmp_path},pattern=**/{{source}}.png"
    data = put(tmp_path, "Large Face/img_1.jpg", kind="jpeg")
    put(tmp_path, "Crowd/img_2.png", 2)
    made = reply(name, key=key(source="img_1"))
    assert (made.data, made.parameters) == (data, {"file": "Large Face/img_1.jpg"})
    other = put(tmp_path, "Crowd/img_1.png", 3)
    assert "are both there" in str(fault(name, key=key(source="img_1")))
    assert reply(name, key=key(source="large-face_img_1")).data == data
    assert reply(name, key=key(source="crowd_img_1")).data == other
    assert isinstance(fault(name, key=key(source="img_3")), EditorNoImage)
    by_prompt = f"folder:{tmp_path},pattern=**/{{cycle}}/{{source}}.png"
    wanted = put(tmp_path, "net/copy/x.png", 4)
    put(tmp_path, "net/other/x.png", 5)
    assert reply(by_prompt, key=key(source="x")).data == wanted
    with pytest.raises(SettingsError, match="must stay inside the folder"):
        open_editor(f"folder:{tmp_path},pattern=a/**/{{source}}.png")


@pytest.mark.parametrize(
    ("pattern", "reads"),
    [("", True), (",pattern={source}.png", False), (",pattern={cycle}/{source}.png", True)],
)
def test_its_pattern_tells_whether_prompts_matter(pattern: str, reads: bool) -> None:
    assert reads_prompts(f"folder:no/such{pattern}") is reads


@pytest.mark.parametrize("pattern", ["deep/{source}.png", "**/{source}.png"])
def test_a_folder_that_cannot_be_read_is_told_and_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    put(tmp_path, "deep/S0!.png")
    looks = {name: getattr(os, name) for name in ("scandir", "listdir")}

    def guarded(name: str, path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return looks[name](path)

    for name in looks:
        monkeypatch.setattr(os, name, partial(guarded, name))
    editor = open_editor(f"folder:{tmp_path},pattern={pattern}")
    assert isinstance(editor, FolderEditor)
    told = editor.foreseen(key(), 1)
    assert f"{tmp_path}/deep" in told
    assert "cannot be read" in told
    assert "Permission denied" in told
    with pytest.raises(EditorError, match="cannot be read"):
        editor.edit(request())


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_a_file_is_known_by_the_name_that_an_import_gives_its_source(called: str) -> None:
    assert legal_names([called], "source")[called] in source_names(called)
    taken = {legal_names([called], "source")[called]: "another"}
    assert legal_names([called], "source", taken)[called] in source_names(called)


@pytest.mark.parametrize("pattern", ["{source}.png", "**/{source}.png"])
def test_pictures_with_names_in_any_script_are_found(tmp_path: Path, pattern: str) -> None:
    names = ("日本", "中国", "A", "a", "é")
    made = {name: put(tmp_path, f"{name}.png", seed) for seed, name in enumerate(names)}
    for called, source in legal_names(names, "source").items():
        name = f"folder:{tmp_path},pattern={pattern}"
        assert reply(name, key=key(source=source), history=()).data == made[called]


def test_what_will_be_wrong_is_foreseen(tmp_path: Path) -> None:
    editor = open_editor(f"folder:{tmp_path},pattern={{source}}.png")
    assert isinstance(editor, FolderEditor)
    assert "there is no s0.png" in editor.foreseen(key(), 1)
    put(tmp_path, "s0.png")
    assert editor.foreseen(key(), 1) == ""
    assert "no step 2" in editor.foreseen(key(), 2)
    assert "has no {repeat}" in editor.foreseen(key(repeat=1), 1)
    (tmp_path / "s0.png").write_bytes(b"no picture")
    assert editor.foreseen(key(), 1) == f"{tmp_path / 's0.png'} is no image of a known type"


@pytest.mark.parametrize("what", ["repeat", "phrasing"])
def test_two_chains_never_read_the_same_frames(tmp_path: Path, what: str) -> None:
    put(tmp_path, "s0/copy/001.png")
    error = fault(f"folder:{tmp_path}", key=key(**{what: 1}))
    assert isinstance(error, EditorFailed)
    assert f"has no {{{what}}}, so that it would read the frames of another chain" in str(error)


def test_two_files_for_one_frame_are_a_question(tmp_path: Path) -> None:
    put(tmp_path, "s0/copy/001.jpg", kind="jpeg")
    put(tmp_path, "s0/copy/001.webp", kind="webp")
    assert "001.jpg and 001.webp are both there" in str(fault(f"folder:{tmp_path}"))
    exact = put(tmp_path, "s0/copy/001.png")
    assert reply(f"folder:{tmp_path}").data == exact


def test_frames_of_two_generations_are_not_mixed(tmp_path: Path) -> None:
    first = Frame(put(tmp_path, "s0/copy/001.png", 1))
    second = put(tmp_path, "s0/copy/002.png", 2)
    history = (Turn(0, "", frame), Turn(1, "Copy.", lambda: first))
    asked: dict[str, Any] = {"step": 2, "history": history, "inputs": (first,)}
    assert reply(f"folder:{tmp_path}", **asked).data == second
    put(tmp_path, "s0/copy/001.png", 3)
    error = fault(f"folder:{tmp_path}", **asked)
    assert isinstance(error, EditorFailed)
    assert "s0/copy/001.png has changed since this chain read it" in str(error)


def test_mistakes_in_the_name_are_one_sentence(tmp_path: Path) -> None:
    said = {
        "folder": "has no folder. Write for example folder:frames",
        "folder:no/such": "there is no folder .*no/such",
        f"folder:{tmp_path},patern=x": "has no option 'patern'. It has pattern, price",
        f"folder:{tmp_path},pattern={{cycle}}.png": r"has neither \{step\} nor \{source\}: every",
        f"folder:{tmp_path},pattern={{stap}}.png": r"there is no placeholder \{stap\}. There are",
        f"folder:{tmp_path},pattern={{step": "expected '}'|unmatched",
        f"folder:{tmp_path},pattern={{step:x}}": "Numbers may have a width",
        f"folder:{tmp_path},pattern={{source!r}}{{step}}": "is not understood",
        f"folder:{tmp_path},pattern={{step.real}}": r"there is no placeholder \{step.real\}",
        f"folder:{tmp_path},pattern=../{{step}}.png": "must stay inside the folder",
        f"folder:{tmp_path},pattern=/{{step}}.png": "must stay inside the folder",
        f"folder:{tmp_path},pattern={{step}}.png,b": "Every comma begins an option: a path cannot",
    }
    for name, words in said.items():
        with pytest.raises(SettingsError, match=words):
            open_editor(name)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "secret/001.png")
    frames = tmp_path / "frames"
    (frames / "s0").mkdir(parents=True)
    (frames / "s0" / "copy").symlink_to(tmp_path / "secret")
    error = fault(f"folder:{frames}")
    assert isinstance(error, EditorFailed)
    assert "s0/copy/001.png is a link that leads out of" in str(error)


@given(
    source=st.text(max_size=12)
    | st.sampled_from(["..", ".", "", "../..", "/etc", "a/../..", "a\\b"]),
    cycle=st.text(max_size=8) | st.sampled_from(["..", "../x@1", "@1"]),
    step=st.integers(1, 10**6),
)
def test_no_name_leads_out_of_the_folder(source: str, cycle: str, step: int) -> None:
    root = Path("/root-of-frames")
    try:
        place = Pattern(DEFAULT).path(key(source=source, cycle=cycle), step)
    except EditorError:
        return
    path = Path(*(root / place).parts)
    assert ".." not in path.parts
    assert path.is_relative_to(root)
    assert len(path.parts) == len(root.parts) + 3


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    put(tmp_path, "1.png")
    put(tmp_path, "2.png")
    check_editor(open_editor(f"folder:{tmp_path},pattern={{step}}.png"))


def test_a_number_after_a_dot_is_no_ending(tmp_path: Path) -> None:
    """`frame.7` without its file must not become `frame.png`, which is every step's."""
    put(tmp_path, "frame.png")
    name = f"folder:{tmp_path},pattern=frame.{{step}}"
    assert isinstance(fault(name, step=7, history=()), EditorNoImage)
    data = put(tmp_path, "frame.7.png", 3)
    assert reply(name, step=7, history=()).data == data


def test_a_frame_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    put(tmp_path, "s0/copy/001.png")
    with pytest.raises(EditorFailed, match=r"001\.png cannot be read: "):
        _read(tmp_path / "s0" / "copy" / "001.png" / "no-folder.001.png")


def test_a_run_goes_on_with_frames_that_come_later(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    put(tmp_path / "frames", "s0/copy/001.png", 1)
    done = command(tmp_path, *run_words(suite, "folder:frames", 1))
    assert done.returncode == 0, done.stderr
    put(tmp_path / "frames", "s0/copy/002.png", 2)
    done = command(tmp_path, "run", "run", "--steps", "2")
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 2


def test_a_run_reads_the_frames_and_ends_where_one_is_missing(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    data = [put(tmp_path / "frames", f"s0/copy/{step:03d}.png", step) for step in (1, 2, 3)]
    done = command(tmp_path, *run_words(suite, "folder:frames", 5))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 3
    assert chain.last is not None
    assert chain.last.outcome == "no-image"
    assert "s0/copy/004.png" in chain.last.detail
    assert [f.sha256 for f in chain.frames[1:]] == [Frame(d).digest for d in data]
    assert chain.spent == 0


def test_a_reply_is_an_edit_reply_even_for_a_broken_file(tmp_path: Path) -> None:
    """Decoding is the runner's: what is no picture is recorded as malformed."""
    path = tmp_path / "s0" / "copy" / "001.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a picture")
    assert isinstance(open_editor(f"folder:{tmp_path}").edit(request()), EditReply)
