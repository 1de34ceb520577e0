"""Suites of pairs made of clean pictures: real folders, real runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from convergebench import degrading, suites
from convergebench.drawing import scene
from convergebench.errors import SuiteError
from convergebench.frame import Frame
from convergebench.preparation.clean import squared
from convergebench.preparation.degraded import Degraded, degrade_pictures
from convergebench.registry import open_suite
from convergebench.suite import check_suite, load_suite
from tests.test_cli import cb

PROMPTS = suites.restoration_v1().with_name("prompts.toml")


def made(clean: Path, out: Path, *damages: str, size: int = 64, each: bool = False) -> Degraded:
    recipes = [damage.split("+") for damage in damages]
    return degrade_pictures(clean, out, prompts=PROMPTS, damages=recipes, size=size, each=each)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """Three pictures of several sizes and types in two scenes, and a file that is none."""
    folder = tmp_path / "photos"
    for place, name, size in (
        ("Indoor/a b.png", "library", (96, 64)),
        ("Indoor/c.JPG", "table", (70, 70)),
        ("Portrait/a-b.png", "portrait", (64, 128)),
    ):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(scene(name, *size)).save(folder / place)
    (folder / "notes.txt").write_text("not a picture")
    (folder / ".hidden.png").write_text("not looked at")
    return folder


def test_a_folder_of_clean_pictures_becomes_a_sound_sealed_suite(
    clean: Path, tmp_path: Path
) -> None:
    done = made(clean, tmp_path / "pairs", "defocus", "old-film")
    suite = load_suite(tmp_path / "pairs")
    assert check_suite(suite) == []
    assert suite.fingerprint == suite.content_hash()
    assert [s.name for s in suite.source] == [
        "indoor-a-b-defocus",
        "indoor-c-old-film",
        "portrait-a-b-defocus",
    ]
    assert [s.category for s in suite.source] == ["Indoor", "Indoor", "Portrait"]
    assert [s.damage for s in suite.source] == ["defocus blur", "old film", "defocus blur"]
    assert all(s.has_truth for s in suite.source)
    unprompted, *prompted = suite.cycle
    assert (unprompted.name, unprompted.readers) == ("restore", "unprompted")
    assert [c.title for c in prompted] == [
        f"{group}{n}" for group in ("S", "SF", "L", "LF") for n in (1, 2, 3)
    ]
    assert done.notes == ("1 file is no picture by name and passed over.",)
    assert "3 inputs from photos, 3 with a truth" in str(done)
    with Image.open(tmp_path / "pairs" / "contact-sheet.png") as sheet:
        assert sheet.size == (3 * 8 + 2 * 512, 8 + 2 * (256 + 8))


def test_input_is_the_truth_damaged_with_the_seed_that_is_told(clean: Path, tmp_path: Path) -> None:
    done = made(clean, tmp_path / "pairs", "surveillance+defocus")
    for source, told in zip(done.suite.source, done.sources, strict=True):
        truth = done.suite.truth(source)
        assert truth is not None
        again = degrading.degrade_all(
            truth.pixels, [(d.kind, d.severity, d.seed) for d in told.damages]
        )
        assert np.array_equal(done.suite.frame(source).pixels, again)
        original = Frame((clean / told.picture).read_bytes()).pixels
        assert np.array_equal(truth.pixels, squared(original, 64))
        assert [d.kind for d in told.damages] == ["surveillance", "defocus"]
        assert f"seed {told.damages[0].seed}" in source.description


def test_the_same_seed_makes_the_same_suite_and_other_pictures_do_not_matter(
    clean: Path, tmp_path: Path
) -> None:
    first = made(clean, tmp_path / "one" / "pairs", "motion")
    again = made(clean, tmp_path / "two" / "pairs", "motion")
    assert first.suite.content_hash() == again.suite.content_hash()
    (clean / "Indoor" / "a b.png").unlink()
    fewer = made(clean, tmp_path / "three" / "pairs", "motion")
    digests = {s.name: s.sha256 for s in first.suite.source}
    assert all(digests[s.name] == s.sha256 for s in fewer.suite.source)


def test_every_picture_gets_every_damage_when_asked(clean: Path, tmp_path: Path) -> None:
    done = made(clean, tmp_path / "pairs", "defocus", "defocus+motion", each=True)
    assert len(done.sources) == 6
    assert {s.kinds for s in done.sources} == {"defocus blur", "defocus blur + motion blur"}
    assert done.suite.source[1].name == "indoor-a-b-defocus-motion"


def test_names_that_would_be_equal_are_told_apart(clean: Path, tmp_path: Path) -> None:
    Image.open(clean / "Indoor" / "a b.png").save(clean / "Indoor" / "A-B.png")
    names = [s.name for s in made(clean, tmp_path / "pairs", "defocus").sources]
    assert len(set(names)) == 4
    assert "indoor-a-b-defocus-2" in names


def test_size_zero_leaves_the_pictures_as_they_are(clean: Path, tmp_path: Path) -> None:
    done = made(clean, tmp_path / "pairs", "digital-zoom", size=0)
    assert [(s.width, s.height) for s in done.sources] == [(96, 64), (70, 70), (64, 128)]


def test_a_withheld_truth_is_nowhere(clean: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    done = degrade_pictures(
        clean,
        out,
        prompts=PROMPTS,
        damages=[["defocus"], ["old-film", "motion"]],
        size=64,
        withhold=["motion"],
    )
    assert [s.truth for s in done.sources] == [True, False, True]
    assert [s.has_truth for s in done.suite.source] == [True, False, True]
    assert sorted(path.stem for path in (out / "gt").iterdir()) == [
        "indoor-a-b-defocus",
        "portrait-a-b-defocus",
    ]
    assert "withheld" in str(done)
    assert "To run it" in done._repr_html_()


def test_a_suite_gives_its_clean_pictures(tmp_path: Path, clean: Path) -> None:
    starter = open_suite("starter")
    drawn = degrade_pictures(
        starter, tmp_path / "drawn", prompts=PROMPTS, damages=[["defocus"]], size=64
    )
    assert len(drawn.sources) == len(starter.source)
    assert {s.licence for s in drawn.suite.source} == {s.licence for s in starter.source}
    pairs = made(clean, tmp_path / "pairs", "defocus")
    twice = degrade_pictures(
        pairs.suite, tmp_path / "twice", prompts=PROMPTS, damages=[["motion"]], size=64
    )
    truths = [s.truth_sha256 for s in pairs.suite.source]
    assert [s.truth_sha256 for s in twice.suite.source] == truths


def test_all_that_is_wrong_is_named_in_one_list_and_nothing_is_written(
    clean: Path, tmp_path: Path
) -> None:
    (clean / "broken.png").write_text("hello")
    Image.new("RGB", (100, 15)).save(clean / "narrow.png")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SuiteError, match="nothing was written, for 7 reasons") as caught:
        degrade_pictures(
            clean,
            clean,
            prompts=tmp_path / "none.toml",
            damages=[["fog"], ["motion"]],
            severity=4,
            size=64,
            withhold=["defocus"],
        )
    for part in (
        "photos is there already, and not empty",
        "no degradation called 'fog'",
        "cannot withhold the truth of defocus",
        "severity 4: give 1, 2 or 3",
        "broken.png is no usable picture",
        "narrow.png has 100×15 pixels, and both sides must have 16",
        "cannot read prompts",
    ):
        assert part in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_cannot_be_looked_at_is_named_and_not_passed_over(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / "gone.png").symlink_to(tmp_path / "nowhere.png")
    os.mkfifo(clean / "pipe.png")
    look = os.scandir

    def guarded(path: Any) -> Any:
        if str(path).endswith("Portrait"):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(SuiteError, match="nothing was written, for 3 reasons") as raised:
        made(clean, tmp_path / "pairs", "defocus")
    assert "gone.png is no file: it links to nothing" in str(raised.value)
    assert "pipe.png is no file: it is a pipe" in str(raised.value)
    assert f"cannot read {clean}/Portrait (Permission denied)" in str(raised.value)


def test_a_suite_that_was_made_among_the_clean_pictures_is_not_damaged_again(clean: Path) -> None:
    made(clean, clean / "pairs", "defocus")
    again = made(clean, clean / "more", "motion")
    assert len(again.sources) == 3
    assert "Not clean pictures but suites, passed over: pairs." in again.notes


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("photos/notes.txt", "is a file; give a folder of clean pictures"),
        ("nowhere", "is not there; give a folder of clean pictures"),
        ("empty", "has no pictures"),
    ],
)
def test_what_is_no_folder_of_pictures_is_said(
    clean: Path, tmp_path: Path, place: str, said: str
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match=said):
        made(tmp_path / place, tmp_path / "pairs", "defocus")
    assert not (tmp_path / "pairs").exists()


def test_pictures_that_would_be_enlarged_too_much_are_refused(clean: Path, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="has 96×64 pixels, and both sides must have 75"):
        made(clean, tmp_path / "pairs", "defocus", size=300)


def test_truths_that_were_enlarged_are_said_and_how_to_avoid_it(
    clean: Path, tmp_path: Path
) -> None:
    said = str(made(clean, tmp_path / "pairs", "defocus", size=128))
    assert "3 pictures were enlarged, up to 2 times" in said
    assert "--size 64 enlarges none" in said
    assert "enlarges none" not in str(made(clean, tmp_path / "others", "defocus", size=64))


def test_the_command_makes_a_suite_that_runs_and_scores(clean: Path, tmp_path: Path) -> None:
    out, run = tmp_path / "pairs", tmp_path / "run"
    done = cb(
        "suites", "degrade", clean, out, "--kind", "defocus", "--mix", "old-film + motion",
        "--size", "64", "--severity", "1", "--withhold", "motion", "--licence", "CC0", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [s["truth"] for s in told["sources"]] == [True, False, True]
    assert {s.licence for s in load_suite(out).source} == {"CC0"}
    assert "3 of 3" in done.stderr
    assert cb("suites", "check", out).returncode == 0
    ran = cb("run", run, "--suite", out, "--editor", "ref:identity", "--no-controls")
    assert ran.returncode == 0, ran.stderr
    assert "3 of 3 chains done" in ran.stdout
    scored = cb("score", run, "--metric", "psnr")
    assert scored.returncode == 0, scored.stderr


def test_the_command_takes_a_suites_name_and_complains_in_one_message(tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    done = cb("suites", "degrade", "starter", out, "-k", "old-photo-bw", "--size", "32")
    assert done.returncode == 0, done.stderr
    assert "old photo, black and white" in done.stdout
    again = cb("suites", "degrade", "starter", out, "-k", "old-photo", "--size", "32")
    assert again.returncode == 2
    assert "nothing was written, for 2 reasons" in again.stderr
    assert "Traceback" not in again.stderr
