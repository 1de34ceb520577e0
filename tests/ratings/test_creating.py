"""Making a study: what is wrong is listed first, what is made is blind and private."""

from __future__ import annotations

import csv
import json
import stat
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench.errors import InputError, StoreDamaged, StoreError, UnknownName
from convergebench.frame import decode, encode
from convergebench.ratings import is_study, open_study
from convergebench.ratings.creating import create
from convergebench.ratings.links import token_hash
from tests.ratings.made import SECRETIVE, admin_secret, picture, restored_run, small_study, tokens
from tests.support.runs import write_suite
from tests.test_cli import cb


def test_a_study_has_every_method_of_every_image_in_one_size(tmp_path: Path) -> None:
    folder = small_study(tmp_path / "s", images=4, odd_sizes=True, practice=0)
    study = open_study(folder)
    assert is_study(folder)
    assert [image.source for image in study.images] == [f"hidden-source-{n}" for n in range(4)]
    for image in study.images:
        assert set(image.shots) == set(SECRETIVE)
        shown = [image.input, image.reference, image.broken]
        shown += [shot.picture for shot in image.shots.values()]
        for name in shown:
            pixels, facts = decode((folder / "images" / f"{name}.png").read_bytes())
            assert (facts.width, facts.height) == (32, 32) == (image.width, image.height)
            assert pixels.shape == (32, 32, 3)


def chunks(data: bytes) -> list[bytes]:
    """The kinds of chunks in a PNG, each with a right checksum."""
    found, at = [], 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        assert zlib.crc32(data[at + 4 : at + 8 + size]) == int.from_bytes(
            data[at + 8 + size : at + 12 + size], "big"
        )
        found.append(kind)
        at += size + 12
    return found


def test_views_are_png_files_with_nothing_but_pixels_and_names_that_say_nothing(
    tmp_path: Path,
) -> None:
    folder = small_study(tmp_path / "s")
    files = list((folder / "images").iterdir())
    assert {file.name for file in files} == {f"{p}.png" for p in open_study(folder).pictures}
    for file in files:
        assert set(chunks(file.read_bytes())) == {b"IHDR", b"IDAT", b"IEND"}


def test_secrets_are_in_private_files_and_nowhere_else(tmp_path: Path) -> None:
    folder = small_study(tmp_path / "s", base_url="https://rate.example.org")
    secret, links = admin_secret(folder), tokens(folder)
    assert len({secret, *links.values()}) == 4
    assert all(len(token) >= 22 for token in (secret, *links.values()))
    for name in ("links.csv", "admin.txt", "server.key", "answers.sqlite"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    text = (folder / "study.json").read_text()
    assert secret not in text
    assert not any(token in text for token in links.values())
    study = open_study(folder)
    assert study.admin_sha256 == token_hash(secret)
    assert {p.id: p.token_sha256 for p in study.participants} == {
        name: token_hash(token) for name, token in links.items()
    }
    with (folder / "links.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["link"].startswith("https://rate.example.org/p/")


def test_everything_missing_is_in_one_list_before_anything_is_written(tmp_path: Path) -> None:
    gone = [("hidden-source-1", "zebra-net"), ("hidden-source-2", "yak-gan")]
    run = restored_run(tmp_path / "run", missing=gone)
    frame = next((run / "frames").glob("0?/*"), None) or next((run / "frames").glob("??/*"))
    frame.unlink()
    with pytest.raises(InputError, match="no study was made") as told:
        create(
            run,
            tmp_path / "s",
            "absolute",
            participants=0,
            per_participant=9,
            attention=-1,
            title="Is zebra-net the best?",
            questions={"preference": "Which?"},
        )
    text = str(told.value)
    for part in (
        "hidden-source-1, zebra-net: no picture (step 1 was refused)",
        "hidden-source-2, yak-gan: no picture",
        "cannot be read",
        "participants: 0",
        "per participant: 9 pages, there are 4 in all",
        "attention: -1",
        "names the method zebra-net",
        "no question 'preference'",
    ):
        assert part in text, part
    assert not (tmp_path / "s").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"design": "pears"}, "no design 'pears'"),
        ({"design": "pairs", "methods": ["zebra-net"]}, "needs two methods"),
        ({"design": "labels", "images": ["hidden-source-0"]}, "need two images"),
        ({"repeats": 3}, "at most half"),
        ({"base_url": "ratings.example.org/x"}, "is no address of a server"),
        ({"base_url": "https://example.org/x"}, "without a path"),
        ({"name": "Not A Name!"}, "expected small letters"),
        ({"step": 3}, "no step 3|step 1 was edited"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, more: dict[str, Any], match: str) -> None:
    run = restored_run(tmp_path / "run")
    with pytest.raises(InputError, match=match):
        create(run, tmp_path / "s", **{"participants": 2, **more})
    assert not (tmp_path / "s").exists()


def test_unknown_methods_and_images_are_named_with_near_ones(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run")
    with pytest.raises(UnknownName, match="Did you mean zebra-net"):
        create(run, tmp_path / "s", participants=2, methods=["zebra"])
    with pytest.raises(UnknownName, match="no image called 'cat'"):
        create(run, tmp_path / "s", participants=2, images=["cat"])


def test_a_taken_place_is_refused(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s")
    with pytest.raises(StoreError, match="is a rating study already"):
        create(tmp_path / "s-run", study, participants=1)


def test_a_folder_of_pictures_is_told_how_to_become_a_run_and_then_is_rated(
    tmp_path: Path,
) -> None:
    for seed, folder in enumerate(("input", "gt", "net-a", "net-b")):
        (tmp_path / "tree" / folder).mkdir(parents=True)
        for number in range(2):
            pixels = picture(seed * 10 + number, 32)
            (tmp_path / "tree" / folder / f"im{number}.png").write_bytes(encode(pixels))
    with pytest.raises(StoreError, match="is not a run directory") as told:
        create(tmp_path / "tree", tmp_path / "t", participants=1)
    words = str(told.value).partition("with: convergebench ")[2].replace("RUN", str(tmp_path / "r"))
    done = cb(*words.split())
    assert done.returncode == 0, done.stderr
    study = create(tmp_path / "r", tmp_path / "t", participants=1).study
    assert [method.label for method in study.methods] == ["net-a", "net-b"]
    assert all(image.input and image.reference for image in study.images)


def test_truth_of_another_size_is_named(tmp_path: Path) -> None:
    from convergebench.chain import FrameRef
    from convergebench.frame import Frame
    from convergebench.store import RunStore

    run = restored_run(tmp_path / "run", images=2)
    store = RunStore.open(run)
    odd = Frame.of_pixels(np.zeros((20, 24, 3), np.uint8))
    store.put(odd)
    for path in store.chain_files():
        lines = path.read_text().splitlines()
        header = json.loads(lines[0])
        if header["chain"]["source"] == "hidden-source-1":
            header["truth"] = FrameRef.of(odd).model_dump(mode="json")
            path.write_text("\n".join([json.dumps(header), *lines[1:], ""]))
    with pytest.raises(InputError, match="hidden-source-1: the input is 32×32, the truth 24×20"):
        create(run, tmp_path / "s", participants=2)


def test_practice_prefers_images_that_are_not_rated(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=4)
    made = create(run, tmp_path / "s", participants=2, practice=1,
                  images=["hidden-source-0", "hidden-source-3"])  # fmt: skip
    study = made.study
    assert [(i.source, i.practice) for i in study.images] == [
        ("hidden-source-0", False),
        ("hidden-source-3", False),
        ("hidden-source-1", True),
    ]
    assert study.participants[0].items[0].image == 2
    assert not made.notes
    whole = create(run, tmp_path / "t", participants=2, practice=1)
    assert "Practice uses images of the study" in str(whole)


def test_without_a_truth_the_input_is_what_is_known_to_be_better(tmp_path: Path) -> None:
    study = open_study(small_study(tmp_path / "s", truths=False, attention=1))
    assert all(image.reference is None and image.input for image in study.images)
    item = next(i for i in study.participants[0].items if i.kind == "attention")
    assert study.picture_in(item, "(reference)") == study.images[item.image].input


def test_a_record_that_was_tampered_with_is_damaged(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s")
    told = json.loads((study / "study.json").read_text())
    told["participants"][0]["items"][0]["slots"] = ["somebody"]
    (study / "study.json").write_text(json.dumps(told))
    with pytest.raises(StoreDamaged, match="an item that the study does not know"):
        open_study(study)
    with pytest.raises(StoreError, match="is not a rating study"):
        open_study(tmp_path)


def test_two_runs_make_one_study_and_different_pictures_of_one_name_are_named(
    tmp_path: Path,
) -> None:
    one = restored_run(tmp_path / "one", images=2, methods=SECRETIVE[:2])
    other = restored_run(tmp_path / "other", images=2, methods=SECRETIVE[2:])
    made = create([one, other], tmp_path / "s", participants=1)
    assert [m.label for m in made.study.methods] == sorted(SECRETIVE)
    assert {shot.run for shot in made.study.images[0].shots.values()} == {"one", "other"}
    third = restored_run(tmp_path / "third", images=2, methods=SECRETIVE[2:], size=40)
    with pytest.raises(InputError, match="have different pictures under this name"):
        create([one, third], tmp_path / "t", participants=1)


def walked(tmp_path: Path) -> Path:
    """A run of two editors and the controls that ride along, in two kinds of cycles."""
    from convergebench.runner import run

    table = {
        "suite": str(write_suite(tmp_path / "suite")),
        "editors": ["ref:blur", "ref:noise"],
        "steps": 2,
    }
    run(tmp_path / "run", table)
    return tmp_path / "run"


def test_any_cycle_can_be_rated_at_a_step_and_controls_only_where_they_are_named(
    tmp_path: Path,
) -> None:
    run = walked(tmp_path)
    made = create(run, tmp_path / "s", participants=1, cycles=["copy"], step=2)
    assert [m.label for m in made.study.methods] == ["ref:blur · copy", "ref:noise · copy"]
    assert "Controls are left out" in str(made)
    for image in made.study.images:
        assert image.input is None
        assert image.reference is not None
        assert {shot.step for shot in image.shots.values()} == {2}
    named = create(run, tmp_path / "t", participants=1, cycles=["copy"], methods=["ref:identity"])
    assert [m.editor for m in named.study.methods] == ["ref:identity"]
    with pytest.raises(InputError, match="should not all come to the same picture"):
        create(run, tmp_path / "u", participants=1, step=1)


def test_a_truth_that_the_suite_promises_and_the_run_lacks_is_named(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=2, truths=False)
    told = json.loads((run / "suite.json").read_text())
    told["source"][1] |= {"truth": "t.png", "truth_sha256": "0" * 64}
    (run / "suite.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="hidden-source-1: the suite has a truth for it"):
        create(run, tmp_path / "s", participants=1)
