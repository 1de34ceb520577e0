"""The sequence layout: pictures whose names end with their step."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from convergebench.errors import ImportProblem
from convergebench.importer.found import IMAGES, Finds, Look, Wishes
from convergebench.importer.layouts import film
from convergebench.importer.layouts.sequence import LAYOUT
from tests.importer.trees import plant, said, steps_of


def read(root: Path, **wishes: Any) -> Finds:
    return LAYOUT.read(Look(root), Wishes(**wishes))


@pytest.mark.shared
def test_a_folder_of_photographs_is_no_sequence(shared: Path) -> None:
    assert LAYOUT.recognise(Look(shared / "data/photos/kodak24")) == ""


@pytest.mark.shared
def test_the_25_real_steps_are_one_replication_chain(shared: Path) -> None:
    root = shared / "data/chains/vae-25-steps"
    assert LAYOUT.recognise(Look(root)) == "1 sequence of numbered pictures"
    finds = read(root)
    assert steps_of(finds) == {"vae-25-steps · eiffel · replicate": [*range(25)]}
    assert all(f.place and f.place.name == f"eiffel_step_{f.step}.png" for f in finds.frames)
    assert finds.cycles["replicate"].kind == "replicate"
    assert not finds.unread
    assert said(finds, "Taken as replication: every frame should equal the source")
    assert said(finds, "The editor is called 'vae-25-steps', after the folder")


@pytest.mark.parametrize(
    ("names", "sources"),
    [
        (["img_000.jpg", "img_001.jpg"], {"pile": [0, 1]}),
        (["0001.png", "0000.png"], {"pile": [0, 1]}),
        (["cat0.png", "cat1.png", "dog-0.png", "dog-2.png"], {"cat": [0, 1], "dog": [0, 2]}),
        (["cat_step_0.png", "cat_step_10.webp"], {"cat": [0, 10]}),
        (["cat/0.png", "cat/1.png", "dog/0.png"], {"cat": [0, 1], "dog": [0]}),
        (["cat/step_0.png", "cat/step_1.png"], {"cat": [0, 1]}),
        (["a/x_0.png", "a/x_1.png", "a/y_0.png"], {"a_x": [0, 1], "a_y": [0]}),
        (["x_1.png", "x_01.png", "x_1.jpg", "x_0.png"], {"x": [0, 1, 1, 1]}),
        (["room_2_0.png", "room_2_1.png"], {"room_2": [0, 1]}),
    ],
)
def test_names_say_source_and_step(
    tmp_path: Path, names: list[str], sources: dict[str, list[int]]
) -> None:
    root = plant(tmp_path / "pile", names)
    assert LAYOUT.recognise(Look(root))
    found = steps_of(read(root, editor="e"))
    assert found == {f"e · {source} · replicate": steps for source, steps in sources.items()}


def test_wishes_name_everything_and_count_from_where_they_say(tmp_path: Path) -> None:
    root = plant(tmp_path, [f"img_{n:03}.png" for n in range(1, 6)])
    finds = read(
        root, editor="e", source="cat", cycle="hat", kind="round-trip",
        prompts=("on", "off"), first=1, steps=6,
    )  # fmt: skip
    assert steps_of(finds) == {"e · cat · hat": [0, 1, 2, 3, 4]}
    assert [frame.prompt for frame in finds.frames] == [None, "on", "off", "on", "off"]
    assert finds.cycles["hat"].prompts == ("on", "off")
    assert list(finds.expected.values()) == [6]
    assert not finds.notes


def test_numbers_from_1_are_not_taken_for_a_source(tmp_path: Path) -> None:
    root = plant(tmp_path / "p", ["cat_step_1.png", "cat_step_2.png"])
    assert LAYOUT.recognise(Look(root))
    finds = read(root)
    assert list(steps_of(finds).values()) == [[1, 2]]
    assert said(finds, "source is missing; say --first 1 if cat_step_1.png is the source")


def test_pictures_before_the_source_are_not_read(tmp_path: Path) -> None:
    finds = read(plant(tmp_path, ["cat_0.png", "cat_1.png", "cat_2.png"]), first=1)
    assert list(steps_of(finds).values()) == [[0, 1]]
    assert finds.unread == ["cat_0.png"]
    assert said(finds, "come before number 1")


def test_prompts_must_fit_the_kind(tmp_path: Path) -> None:
    root = plant(tmp_path, ["cat_0.png", "cat_1.png"])
    with pytest.raises(ImportProblem, match="kind 'replicate' has 1 edit, got 2 prompts"):
        read(root, prompts=("on", "off"))
    assert read(root, kind="free", prompts=("on", "off", "up")).cycles["free"].prompts[2] == "up"


def test_other_files_are_unread_and_no_numbers_are_refused(tmp_path: Path) -> None:
    root = plant(tmp_path, ["cat_0.png", "cat_1.png", "contact sheet.png", "notes.txt"])
    assert not LAYOUT.recognise(Look(root))
    assert read(root).unread == ["contact sheet.png", "notes.txt"]
    with pytest.raises(ImportProblem, match="no pictures whose names end with a number"):
        read(plant(tmp_path / "none", ["a.png"]))


@pytest.mark.parametrize(
    "names",
    [
        ["a_5.png", "a_6.png"],
        ["kodim01.png", "kodim02.png"],
        ["img_001.png", "img_002.png"],
        ["a_0.png"],
        ["a_0.png", "b_0.png"],
        ["a/b/0.png", "a/b/1.png"],
        ["0.png", "1.png", "more/0.png"],
        ["a_0.gif", "a_1.gif"],
    ],
)
def test_numbers_that_are_no_steps_are_not_recognised(tmp_path: Path, names: list[str]) -> None:
    assert LAYOUT.recognise(Look(plant(tmp_path, names))) == ""


letters = st.text("abcXYZäé ()+,'~0123456789._-", min_size=0, max_size=12)


@given(
    prefix=letters.filter(lambda text: not text.startswith(".") and not text[-1:].isdigit()),
    padding=st.integers(0, 6),
    ending=st.sampled_from(sorted(IMAGES)),
    capitals=st.booleans(),
    steps=st.sets(st.integers(0, 300), min_size=1, max_size=20),
)
def test_any_prefix_padding_and_ending_gives_exactly_the_steps_that_are_there(
    prefix: str, padding: int, ending: str, capitals: bool, steps: set[int]
) -> None:
    ending = ending.upper() if capitals else ending
    with tempfile.TemporaryDirectory() as folder:
        root = plant(Path(folder), [f"{prefix}{n:0{padding}}{ending}" for n in steps])
        finds = read(root)
        assert list(steps_of(finds).values()) == [sorted(steps)]
        assert not finds.unread
        assert said(finds, "source is missing") == (0 not in steps)
        recognised = bool(LAYOUT.recognise(Look(root)))
        assert recognised == (0 in steps and len(steps) > 1 and ending.lower() != ".gif")


def test_folders_that_share_a_name_before_the_number_are_editors(tmp_path: Path) -> None:
    groups = [("flux", "eiffel"), ("flux", "dog"), ("qwen", "eiffel")]
    root = plant(tmp_path, [f"{e}/{s}_step_{n}.png" for e, s in groups for n in range(3)])
    finds = read(root)
    assert steps_of(finds) == {f"{e} · {s} · replicate": [0, 1, 2] for e, s in groups}
    assert said(finds, "Folders are taken as editors (flux, qwen)")
    assert not said(finds, "The editor is called")
    assert {f.track.source for f in read(root, editor="e").frames} == {
        "flux_eiffel", "flux_dog", "qwen",
    }  # fmt: skip


def test_folders_of_bare_numbers_are_sources_and_that_is_said(tmp_path: Path) -> None:
    finds = read(plant(tmp_path / "p", [f"{s}/{n}.png" for s in ("cat", "dog") for n in (0, 1)]))
    assert set(steps_of(finds)) == {"p · cat · replicate", "p · dog · replicate"}
    assert said(finds, "Each folder is taken as a source (cat, dog)")


@pytest.mark.parametrize("sheet", ["grid.png", "cat/grid.png"])
def test_a_contact_sheet_beside_the_steps_is_unread(tmp_path: Path, sheet: str) -> None:
    root = plant(tmp_path, [sheet, *(f"cat/step_{n}.png" for n in range(3))])
    assert LAYOUT.recognise(Look(root))
    finds = read(root, editor="e")
    assert steps_of(finds) == {"e · cat · replicate": [0, 1, 2]}
    assert finds.unread == [sheet]
    assert said(finds, f"Pictures without a number are not read: {sheet}")


def test_many_pictures_without_a_number_are_no_sequence(tmp_path: Path) -> None:
    names = ["a.png", "b.png", *(f"cat_{n}.png" for n in range(5))]
    assert LAYOUT.recognise(Look(plant(tmp_path, names))) == ""


@pytest.mark.parametrize("name", ["source.png", "Input.jpg", "original.png"])
@pytest.mark.parametrize("pattern", ["cat/step_{n}.png", "cat/{n:02}.png"])
def test_a_picture_called_source_is_step_0(tmp_path: Path, name: str, pattern: str) -> None:
    root = plant(tmp_path, [f"cat/{name}", *(pattern.format(n=n) for n in (1, 2, 3))])
    assert LAYOUT.recognise(Look(root))
    finds = read(root, editor="e")
    assert steps_of(finds) == {"e · cat · replicate": [0, 1, 2, 3]}
    assert said(finds, f"Taken as the source, step 0, by the name: cat/{name}")
    assert not said(finds, "missing")


def test_a_picture_called_source_beside_a_step_0_is_unread(tmp_path: Path) -> None:
    root = plant(tmp_path, ["source.png", *(f"step_{n}.png" for n in range(3))])
    assert read(root).unread == ["source.png"]


@pytest.mark.parametrize("frames", [1, 2])
def test_gifs_of_one_picture_are_a_sequence(tmp_path: Path, frames: int) -> None:
    pictures = [Image.new("RGB", (8, 8), (99 * n, 0, 0)) for n in range(frames)]
    for step in range(3):
        path = tmp_path / f"step_{step}.gif"
        pictures[0].save(path, save_all=True, append_images=pictures[1:])
    assert bool(LAYOUT.recognise(Look(tmp_path))) == (frames == 1)
    assert bool(film.LAYOUT.recognise(Look(tmp_path))) == (frames == 2)


@pytest.mark.parametrize("pattern", ["apple/step_{n}.png", "apple_step_{n}.png"])
def test_a_source_may_be_called_apple(tmp_path: Path, pattern: str) -> None:
    root = plant(tmp_path, [pattern.format(n=n) for n in range(3)])
    assert LAYOUT.recognise(Look(root))
    assert steps_of(read(root, editor="e")) == {"e · apple · replicate": [0, 1, 2]}
