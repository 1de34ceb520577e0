"""Films: every frame a step, each with the warning that it is lossy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Look, Wishes
from convergebench.importer.layouts import film
from convergebench.importer.layouts.film import LAYOUT


@pytest.fixture(autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))


def picture(step: int, size: int = 48) -> np.ndarray[Any, np.dtype[np.uint8]]:
    pixels = np.full((size, size, 3), 20 + 10 * step, np.uint8)
    pixels[: 4 * (step + 1), :8] = (200, 30, 90)
    return pixels


def noise() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(3).integers(0, 255, (48, 48, 3), np.uint8)


def gif(path: Path, steps: list[int], **options: Any) -> Path:
    frames = [Image.fromarray(picture(step)) for step in steps]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, **options)
    return path


def video(path: Path, steps: list[int], codec: str) -> Path:
    fourcc = cv2.VideoWriter.fourcc(*codec)
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, fourcc, 10, (48, 48))
    assert writer.isOpened()
    for step in steps:
        writer.write(picture(step) if step >= 0 else noise())
    writer.release()
    return path


def read(path: Path, **wishes: Any) -> Finds:
    finds = LAYOUT.read(Look(path), Wishes(**wishes))
    assert finds.cleanup is not None
    return finds


def pixels_of(finds: Finds, index: int) -> Any:
    place = finds.frames[index].place
    assert place is not None
    with Image.open(place.path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("ending", ["gif", "webp", "apng", "png"])
def test_every_frame_of_an_animation_is_a_step(tmp_path: Path, ending: str) -> None:
    options: dict[str, Any] = {"lossless": True} if ending == "webp" else {}
    options |= {"format": "PNG"} if ending == "apng" else {}
    path = gif(tmp_path / f"cat.{ending}", [0, 1, 2, 3], **options)
    assert LAYOUT.recognise(Look(path)) == f"a film (cat.{ending})"
    finds = read(path)
    assert [frame.step for frame in finds.frames] == [0, 1, 2, 3]
    assert {frame.track.source for frame in finds.frames} == {"cat"}
    for step in range(4):  # composited: a GIF stores only what changed
        assert np.abs(pixels_of(finds, step).astype(int) - picture(step)).max() <= 1


@pytest.mark.parametrize(
    ("ending", "codec"), [("avi", "MJPG"), ("mp4", "mp4v"), ("mkv", "mp4v"), ("webm", "VP80")]
)
def test_every_frame_of_a_video_is_a_step(tmp_path: Path, ending: str, codec: str) -> None:
    path = video(tmp_path / f"cat.{ending}", [0, 1, 2, 3, 4], codec)
    assert LAYOUT.recognise(Look(path))
    finds = read(path, editor="banana", kind="accumulate", source="bowl", prompts=("more",))
    assert [frame.step for frame in finds.frames] == [0, 1, 2, 3, 4]
    track = finds.frames[0].track
    assert (track.source, track.editor, track.cycle) == ("bowl", "banana", "accumulate")
    assert finds.cycles["accumulate"].prompts == ("more",)
    for step in range(5):
        written = picture(step)[..., ::-1]  # OpenCV's order is BGR
        assert np.abs(pixels_of(finds, step).astype(int) - written).mean() < 8


def test_every_step_says_that_it_is_lossy(tmp_path: Path) -> None:
    finds = read(video(tmp_path / "film.avi", [0, 1, 2], "MJPG"))
    told = "from film.avi, frame 2: lossy, not the bytes the editor returned"
    assert finds.frames[2].notes == (told,)
    assert finds.frames[2].call.caveats == (told,)
    assert finds.frames[0].notes[0].startswith("from film.avi, frame 0: lossy")
    assert any("lossy" in note for note in finds.notes)
    assert any("--editor" in note for note in finds.notes)
    assert any("replicate" in note for note in finds.notes)
    assert finds.frames[0].track.editor == tmp_path.name


@pytest.mark.parametrize("ending", ["gif", "avi"])
def test_every_nth_frame_is_taken_when_wished(tmp_path: Path, ending: str) -> None:
    steps = list(range(7))
    path = tmp_path / f"f.{ending}"
    gif(path, steps) if ending == "gif" else video(path, steps, "MJPG")
    finds = read(path, every=3)
    assert [frame.step for frame in finds.frames] == [0, 1, 2]
    names = [frame.place.name for frame in finds.frames if frame.place]
    assert names == [f"f.{ending}#frame={number}" for number in (0, 3, 6)]
    assert np.abs(pixels_of(finds, 2).astype(int)[-1, -1] - 80).max() < 12
    with pytest.raises(ImportProblem, match="at least two"):
        read(path, every=7)
    with pytest.raises(ImportProblem, match="expected 1 or more"):
        read(path, every=0)


def test_equal_neighbours_are_counted_and_not_merged(tmp_path: Path) -> None:
    finds = read(video(tmp_path / "slow.avi", [0, 0, 0, 1, 1, 1, 2, 2, 2], "MJPG"))
    assert len(finds.frames) == 9
    assert any("6 of 9 frames equal" in note and "--every 3" in note for note in finds.notes)
    finds = read(video(tmp_path / "odd.avi", [0, 1, 1, 2], "MJPG"))
    assert any("1 of 4 frames equal" in note and "--every N" in note for note in finds.notes)


def test_frames_are_scratch_files_that_cleanup_removes(tmp_path: Path) -> None:
    finds = read(gif(tmp_path / "cat.gif", [0, 1]))
    folder = Path(finds.frames[0].place.path).parent  # type: ignore[union-attr]
    assert folder.exists()
    assert finds.cleanup is not None
    finds.cleanup()
    assert not folder.parent.exists()


def test_a_refused_film_leaves_no_scratch_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    films = tmp_path / "films"
    films.mkdir()
    gif(films / "a.gif", [0, 1])
    (films / "b.gif").write_bytes(b"GIF89a nothing")
    with pytest.raises(ImportProblem, match=r"b\.gif"):
        LAYOUT.read(Look(films), Wishes())
    assert list(scratch.iterdir()) == []


def test_a_folder_of_films_has_a_source_for_each(tmp_path: Path) -> None:
    gif(tmp_path / "cat.gif", [0, 1])
    video(tmp_path / "dog.avi", [0, 1, 2], "MJPG")
    video(tmp_path / "cat.avi", [0, 1], "MJPG")
    assert LAYOUT.recognise(Look(tmp_path)) == "3 films"
    finds = read(tmp_path, source="x")
    counts = {name: 0 for name in ("cat.gif", "dog", "cat.avi")}
    for frame in finds.frames:
        counts[frame.track.source] += 1
    assert counts == {"cat.gif": 2, "dog": 3, "cat.avi": 2}
    assert any("--source is not used" in note for note in finds.notes)


def test_a_video_cut_in_the_middle_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    whole = video(tmp_path / "whole.avi", [-1] * 20, "MJPG").read_bytes()
    cut = tmp_path / "cut.avi"
    cut.write_bytes(whole[: len(whole) // 2])
    finds = read(cut)
    assert 2 <= len(finds.frames) < 20
    assert any("cut short or damaged: 20 frames are announced" in note for note in finds.notes)


def test_a_gif_cut_in_the_middle_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    whole = gif(tmp_path / "whole.gif", list(range(12))).read_bytes()
    cut = tmp_path / "cut.gif"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    finds = read(cut)
    assert 2 <= len(finds.frames) <= 12
    assert any("cut short or damaged" in note for note in finds.notes)
    assert not any("cut short" in note for note in read(tmp_path / "whole.gif").notes)
    cut.write_bytes(whole.rstrip(b"\0").removesuffix(b";"))
    finds = read(cut)
    assert len(finds.frames) == 12
    assert any("its end mark is missing" in note for note in finds.notes)


@pytest.mark.parametrize("ending", ["mp4", "avi", "mkv", "webm", "gif", "webp"])
def test_what_is_no_film_is_refused_by_name(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    path.write_bytes(b"this is only text, and long enough to be looked at " * 20)
    with pytest.raises(ImportProblem, match=rf"x\.{ending} is not a readable film"):
        LAYOUT.read(Look(path), Wishes())


def test_a_playlist_that_calls_itself_a_film_never_reaches_the_decoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.mp4"
    path.write_text("#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n")
    monkeypatch.setattr(cv2, "VideoCapture", lambda *_: pytest.fail("was opened"))
    with pytest.raises(ImportProblem, match="does not begin like"):
        LAYOUT.read(Look(path), Wishes())


def test_a_damaged_mp4_is_refused(tmp_path: Path) -> None:
    whole = video(tmp_path / "w.mp4", [0, 1, 2], "mp4v").read_bytes()
    path = tmp_path / "x.mp4"
    path.write_bytes(whole[: whole.index(b"moov")])  # its index is at the end, and is gone
    with pytest.raises(ImportProblem, match=r"x\.mp4 is not a readable film"):
        LAYOUT.read(Look(path), Wishes())


def test_a_percent_sign_in_the_name_is_only_a_name(tmp_path: Path) -> None:
    Image.fromarray(picture(0)).save(tmp_path / "f_0.png")
    path = tmp_path / "f_%d.avi"
    shutil.copy(video(tmp_path / "plain.avi", [0, 1, 2], "MJPG"), path)
    assert len(read(path).frames) == 3


def test_a_damaged_film_is_not_taken_for_a_row_of_pictures(tmp_path: Path) -> None:
    for number in range(3):
        still = tmp_path / f"f_{number}.avi"
        Image.fromarray(picture(number)).save(still, "PNG")
    path = tmp_path / "f_%d.avi"
    path.write_bytes(b"RIFF" + b"damaged" * 100)
    with pytest.raises(ImportProblem, match="is not a readable film"):
        LAYOUT.read(Look(path), Wishes())


def test_too_many_and_too_large_frames_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gif(tmp_path / "x.gif", list(range(6)))
    monkeypatch.setattr(film, "FRAME_LIMIT", 4)
    with pytest.raises(ImportProblem, match="more than 4 frames"):
        LAYOUT.read(Look(path), Wishes())
    monkeypatch.setattr(film, "MAX_PIXELS", 1000)
    with pytest.raises(ImportProblem, match="beyond the limit"):
        LAYOUT.read(Look(path), Wishes())
    with pytest.raises(ImportProblem, match="beyond the limit"):
        LAYOUT.read(Look(video(tmp_path / "x.avi", [0, 1], "MJPG")), Wishes())


def test_pictures_that_do_not_move_and_other_folders_are_no_films(tmp_path: Path) -> None:
    still = tmp_path / "still"
    still.mkdir()
    for step in range(3):
        Image.fromarray(picture(step)).save(still / f"a_step_{step}.png")
    assert LAYOUT.recognise(Look(still)) == ""
    assert LAYOUT.recognise(Look(still / "a_step_0.png")) == ""
    with pytest.raises(ImportProblem, match="at least two"):
        LAYOUT.read(Look(still / "a_step_0.png"), Wishes())
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    gif(mixed / "a.gif", [0, 1])
    (mixed / "results.json").write_text("{}")
    assert LAYOUT.recognise(Look(mixed)) == ""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert LAYOUT.recognise(Look(empty)) == ""
    with pytest.raises(ImportProblem, match="is no film"):
        LAYOUT.read(Look(empty), Wishes())


def test_folders_with_films_of_the_same_name_are_editors(tmp_path: Path) -> None:
    for folder in ("flux", "qwen"):
        (tmp_path / folder).mkdir()
        gif(tmp_path / folder / "cat.gif", [0, 1])
    finds = read(tmp_path)
    tracks = {(frame.track.editor, frame.track.source) for frame in finds.frames}
    assert tracks == {("flux", "cat"), ("qwen", "cat")}
    assert any("Folders are taken as editors" in note for note in finds.notes)
    assert not any("No film says who made it" in note for note in finds.notes)
    tracks = {(f.track.editor, f.track.source) for f in read(tmp_path, editor="e").frames}
    assert tracks == {("e", "flux/cat"), ("e", "qwen/cat")}


def test_a_readme_beside_a_film_is_unread(tmp_path: Path) -> None:
    gif(tmp_path / "cat.gif", [0, 1])
    (tmp_path / "README.md").write_text("A film.")
    assert LAYOUT.recognise(Look(tmp_path)) == "a film (cat.gif)"
    assert read(tmp_path).unread == ["README.md"]
    (tmp_path / "scores.csv").write_text("a,b")
    assert LAYOUT.recognise(Look(tmp_path)) == ""
