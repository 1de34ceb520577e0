"""WebDataset shards: what their samples say becomes the steps of chains."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.chain import Settings
from convergebench.errors import ImportProblem
from convergebench.importer.found import Look, Track
from convergebench.importer.importing import import_run
from convergebench.importer.layouts.webdataset import LAYOUT
from convergebench.store import RunStore
from tests.importer.shard_files import bytes_of, chain, png, read, sample, shard


@pytest.mark.parametrize(
    ("name", "mode"),
    [("s.tar", "w"), ("s.tar.gz", "w:gz"), ("s.tgz", "w:gz"), ("s.tar.xz", "w:xz")],
)
def test_samples_become_steps_with_their_very_bytes(tmp_path: Path, name: str, mode: str) -> None:
    path = shard(tmp_path / name, chain(), mode)
    assert LAYOUT.recognise(Look(path)) == f"a tar archive ({name})"
    finds = read(path)
    track = Track("cat", "replicate", "m")
    assert bytes_of(finds) == {(track, step): png(step) for step in range(3)}
    assert finds.cycles["replicate"].kind == "replicate"
    places = [frame.place for frame in finds.frames if frame.place]
    assert places[1].name == f"{name}/000001.png"
    if name == "s.tar":  # nothing is unpacked
        assert {Path(place.path) for place in places} == {path}
        assert finds.cleanup is None
    else:
        spool = Path(places[0].path).parent
        assert finds.cleanup is not None
        finds.cleanup()
        assert not spool.exists()


def test_a_folder_of_shards_is_one_import(tmp_path: Path) -> None:
    for number, step in enumerate(range(3)):
        files = sample("x", step, source="cat", editor="m", cycle="replicate", step=step)
        shard(tmp_path / f"part-{number}.tar", files)
    (tmp_path / "README.md").write_text("hello")
    assert LAYOUT.recognise(Look(tmp_path)) == "3 tar shards"
    finds = read(tmp_path)
    assert sorted(frame.step for frame in finds.frames) == [0, 1, 2]
    assert finds.unread == ["README.md"]


def test_synonyms_and_the_rest_of_the_fields_are_read(tmp_path: Path) -> None:
    fields = {
        "image_id": "a/cat.jpg", "Model": "gpt", "task": "hat", "turn": "2", "run": 1,
        "instruction": "add a hat", "seed": 7, "reasoning": "I see noise", "cost": 0.04,
        "scores": {"PSNR": 30.5, "theirs": None}, "LPIPS-Alex": 0.2, "brisque": 40,
        "temperature": 0.5, "width": 512, "height": None,
    }  # fmt: skip
    finds = read(shard(tmp_path / "s.tar", sample("k", 1, **fields)))
    (frame,) = finds.frames
    assert frame.track == Track("a/cat", "hat", "gpt", 1, Settings(temperature=0.5))
    assert (frame.step, frame.prompt, frame.seed) == (2, "add a hat", 7)
    assert (frame.call.model, frame.call.reasoning) == ("gpt", "I see noise")
    assert frame.call.cost == 0.04
    scores = {score.metric: (score.value, score.against, score.note) for score in finds.scores}
    assert scores == {
        "psnr": (30.5, "home", "field PSNR"),
        "theirs": (None, "home", "field theirs"),
        "lpips": (0.2, "home", "field LPIPS-Alex"),
        "brisque": (40.0, "none", "field brisque"),
    }
    assert finds.keys == 4
    assert "Fields of the JSON that are not read: width." in finds.notes
    assert any("taken as free" in note for note in finds.notes)


def test_scores_that_come_twice_collapse_or_conflict(tmp_path: Path) -> None:
    base = {"source": "c", "editor": "m", "cycle": "replicate", "step": 1}
    files = sample("a", 1, **base, scores={"psnr": 30, "ssim": 0.5})
    files += sample("b", 1, **base, scores={"psnr": 30, "ssim": 0.6})
    finds = read(shard(tmp_path / "s.tar", files))
    assert (finds.collapsed, finds.keys) == (1, 2)
    (conflict,) = finds.conflicts
    assert conflict.values == ("0.5", "0.6")
    assert "ssim" in conflict.key


def test_scores_that_differ_are_kept_as_repeats_where_that_is_wished(tmp_path: Path) -> None:
    base = {"source": "c", "editor": "m", "cycle": "replicate"}
    files = sample("0", 0, **base, step=0)
    for key, psnr, ssim in (("a", 20.0, 0.5), ("b", 21.0, 0.5), ("c", 22.0, 0.6)):
        files += sample(key, 1, **base, step=1, psnr=psnr, ssim=ssim)
    for key, psnr in (("d", 10.0), ("e", 11.0)):
        files += sample(key, 2, **base, step=1, repeat=3, psnr=psnr)
    path = shard(tmp_path / "s.tar", files)
    finds = read(path, conflicts="repeat")
    told = sorted((s.track.repeat, s.metric, s.value) for s in finds.scores)
    assert told == [
        (0, "psnr", 20.0), (0, "ssim", 0.5), (3, "psnr", 10.0),
        (4, "psnr", 21.0), (4, "ssim", 0.6), (5, "psnr", 22.0), (6, "psnr", 11.0),
    ]  # fmt: skip
    assert (len(finds.conflicts), finds.collapsed, finds.keys) == (3, 1, 3)
    reported = [(f.track.repeat, f.step) for f in finds.frames if f.outcome == "reported"]
    assert reported == [(4, 1), (5, 1), (6, 1)]
    assert any("kept without pictures as m · c · replicate · repeat 4" in n for n in finds.notes)
    import_run(path, tmp_path / "run", conflicts="repeat")
    kept = RunStore.open(tmp_path / "run").scores()
    assert sorted(kept.filter(metric="psnr")["value"]) == [10.0, 11.0, 20.0, 21.0, 22.0]


def test_a_cycle_that_nobody_named_is_not_told_to_be_free(tmp_path: Path) -> None:
    path = shard(tmp_path / "s.tar", [(f"a__m__step_{n}.png", png(n)) for n in range(3)])
    finds = read(path)
    assert finds.cycles["free"].kind == "free"
    assert any("Nothing says what cycle 'free' is: taken as free" in n for n in finds.notes)
    for wishes in ({"cycle": "free"}, {"kind": "free"}):
        assert not any("Nothing says" in note for note in read(path, **wishes).notes)


def test_scores_of_a_sample_with_several_steps_are_counted(tmp_path: Path) -> None:
    files = [("k.0.png", png(0)), ("k.1.png", png(1))]
    about = {"source": "a", "psnr": 20, "scores": {"theirs": 1}}
    path = shard(tmp_path / "s.tar", [*files, ("k.json", json.dumps(about).encode())])
    finds = read(path, cycle="replicate", editor="m")
    assert ([f.step for f in finds.frames], finds.scores) == ([0, 1], [])
    (note,) = finds.notes
    assert note.startswith("2 scores not read, since nothing says of which step: psnr, theirs.")


@pytest.mark.parametrize("about", [b'{"name": "set", "license": "x"}', b"[1]", b"{", b'{"psnr":3}'])
def test_a_file_about_the_whole_archive_is_unread(tmp_path: Path, about: bytes) -> None:
    for files in ([("info.json", about), *chain()], [*chain(), ("info.json", about)]):
        finds = read(shard(tmp_path / "s.tar", files))
        assert [frame.step for frame in finds.frames] == [0, 1, 2]
        assert finds.unread == ["s.tar: samples without a picture (1 member)"]
        assert any("1 score not read" in note for note in finds.notes) == (b"psnr" in about)


def test_counting_begins_where_that_is_wished(tmp_path: Path) -> None:
    path = shard(tmp_path / "k.tar", [(f"a__m__step_{n:03d}.png", png(n)) for n in (1, 2, 3)])
    track = Track("a", "replicate", "m")
    found = bytes_of(read(path, first=1, cycle="replicate"))
    assert found == {(track, step): png(step + 1) for step in range(3)}
    late = read(path, first=2, cycle="replicate")
    assert bytes_of(late) == {(track, 0): png(2), (track, 1): png(3)}
    assert "1 picture not read: they come before number 2, which is the source's." in late.notes
    assert late.unread == ["k.tar: pictures before the source (1 member)"]
    base = {"source": "a", "editor": "m", "cycle": "replicate"}
    files = [f for n in (1, 2) for f in sample(f"{n}", n, **base, step=n, psnr=20 + n)]
    files += [("x.1.png", png(3)), ("x.2.png", png(4))]
    files += [("x.json", json.dumps({**base, "source": "b"}).encode())]
    files += [("y.input.png", png(5)), ("y.output.png", png(6))]
    files += [("y.json", json.dumps({**base, "source": "c"}).encode())]
    finds = read(shard(tmp_path / "j.tar", files), first=1)
    steps = sorted((f.track.source, f.step) for f in finds.frames)
    assert steps == [(source, step) for source in "abc" for step in (0, 1)]
    assert [(s.step, s.value) for s in finds.scores] == [(0, 21.0), (1, 22.0)]


def test_failures_and_steps_without_a_picture_are_told(tmp_path: Path) -> None:
    base = {"source": "c", "editor": "m", "cycle": "replicate"}
    files = sample("0", 0, **base, step=0)
    refused = {**base, "step": 1, "outcome": "refused", "detail": "policy"}
    files += [("1.json", json.dumps(refused).encode())]
    files += [("2.json", json.dumps({**base, "step": 2, "psnr": 20.0}).encode())]
    files += [("3.json", json.dumps({**base, "step": 3}).encode())]
    files += sample("4", 4, **base, step=4, outcome="failed")
    finds = read(shard(tmp_path / "s.tar", files))
    told = {f.step: (f.outcome, f.detail, f.place is not None) for f in finds.frames}
    assert told == {
        0: ("edited", "", True),
        1: ("refused", "policy", False),
        2: ("reported", "", False),
        4: ("failed", "", False),
    }
    assert "s.tar: samples without a picture (1 member)" in finds.unread
    assert "pictures of steps that are failed (1 member)" in finds.unread


def test_keys_say_it_where_there_is_no_json(tmp_path: Path) -> None:
    files = [
        ("d/cat__m__step_000.png", png(0)),
        ("d/cat__m__step_001.png", png(1)),
        ("d/cat__m__step_001.txt", b"add a hat\n"),
        ("cat__m__hat__2.png", png(2)),
        ("cat__m__hat__r3__turn-2.png", png(3)),
        ("cat__m__hat__r3__turn-2.cls", b"3"),
        ("cat__4.png", png(4)),
    ]
    finds = read(shard(tmp_path / "s.tar", files), kind="replicate", editor="wished")
    told = {(f.track.editor, f.track.cycle, f.track.repeat, f.step): f.prompt for f in finds.frames}
    assert told == {
        ("m", "replicate", 0, 0): None,
        ("m", "replicate", 0, 1): "add a hat",
        ("m", "hat", 0, 2): None,
        ("m", "hat", 3, 2): None,
        ("wished", "replicate", 0, 4): None,
    }
    assert finds.unread == ["s.tar: .cls (1 member)"]
    assert any("No cycle is named" in note for note in finds.notes)


def test_one_sample_may_hold_all_its_steps(tmp_path: Path) -> None:
    about = json.dumps({"source": "cat", "editor": "m", "cycle": "replicate"}).encode()
    files = [(f"k.{step}.png", png(step)) for step in range(3)]
    files += [("k.mask.png", png(9)), ("k.json", about)]
    files += [("j.json", about.replace(b'"cat"', b'"dog"')), ("j.input.png", png(5))]
    files += [("j.output.png", png(6))]
    finds = read(shard(tmp_path / "s.tar", files))
    cat, dog = Track("cat", "replicate", "m"), Track("dog", "replicate", "m")
    expected = {(cat, step): png(step) for step in range(3)}
    assert bytes_of(finds) == {**expected, (dog, 0): png(5), (dog, 1): png(6)}
    assert finds.unread == ["s.tar: .mask.png (1 member)"]


def test_prompts_that_all_chains_share_are_the_cycles(tmp_path: Path) -> None:
    files = []
    for source in "ab":
        for step, prompt in enumerate((None, "add", "remove", "add", "remove")):
            fields = {"source": source, "editor": "m", "cycle": "hat", "kind": "round-trip"}
            files += sample(f"{source}{step}", step, **fields, step=step, prompt=prompt)
    path = shard(tmp_path / "s.tar", files)
    cycle = read(path).cycles["hat"]
    assert (cycle.kind, cycle.prompts) == ("round-trip", ("add", "remove"))
    assert read(path, prompts=("x", "y")).cycles["hat"].prompts == ("x", "y")
    free = read(path, kind="free").cycles["hat"]
    assert free.prompts == ("add", "remove", "add", "remove")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"editor": "m", "step": 1}, "does not say its source"),
        ({"source": "c", "editor": "m"}, "does not say its step"),
        ({"source": ["c"], "step": 1}, "'source' should be text, got a list"),
        ({"source": "c", "step": -1}, "'step' should be a whole number"),
        ({"source": "c", "step": 1.5}, "'step' should be a whole number"),
        ({"source": "c", "step": True}, "'step' should be a whole number"),
        ({"source": "c", "step": 10**12}, "is beyond"),
        ({"source": "c", "step": 1, "outcome": "meh"}, "outcome 'meh' is none of"),
        ({"source": "c", "step": 1, "kind": "meh"}, "kind 'meh' is none of"),
        ({"source": "c", "step": 1, "scores": [1]}, "'scores' should be an object"),
        ({"source": "c", "step": 1, "scores": {"psnr": "x"}}, "score 'psnr' should be a number"),
        ({"source": "c", "step": 1, "settings": {"x": 1}}, "no legal settings"),
    ],
)
def test_samples_that_do_not_say_enough_are_refused(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    path = shard(tmp_path / "s.tar", sample("k", 1, **fields))
    with pytest.raises(ImportProblem, match=complaint):
        read(path)


@pytest.mark.parametrize("data", [b"{", b"[]", b"[" * 100_000, b"\xff\xfe\x00", b"1" * 9000])
def test_json_that_is_none_is_named(tmp_path: Path, data: bytes) -> None:
    path = shard(tmp_path / "s.tar", [("k.png", png(1)), ("k.json", data)])
    with pytest.raises(ImportProblem, match=r"s\.tar/k\.json"):
        read(path)


def test_an_archive_without_samples_says_what_to_do(tmp_path: Path) -> None:
    path = shard(tmp_path / "s.tar", [("notes.md", b"x"), ("README", b"y")])
    with pytest.raises(ImportProblem, match="unpack it and import the folder"):
        read(path)
    (tmp_path / "x").mkdir()
    with pytest.raises(ImportProblem, match="has no tar shard"):
        read(tmp_path / "x")


def test_other_folders_are_no_webdataset(tmp_path: Path) -> None:
    (tmp_path / "a_step_0.png").write_bytes(png(0))
    assert LAYOUT.recognise(Look(tmp_path)) == ""
    shard(tmp_path / "s.tar", chain())
    assert LAYOUT.recognise(Look(tmp_path)) == ""
    assert LAYOUT.recognise(Look(tmp_path / "a_step_0.png")) == ""


names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12)
plain = names.filter(lambda text: not text.lower().endswith((".png", ".jpg", ".gif", ".bmp")))
tracks = st.builds(
    Track,
    source=plain.filter(lambda text: os.path.splitext(text)[1].lower() not in (".webp", ".tif")),
    cycle=names,
    editor=names,
    repeat=st.integers(0, 5),
    settings=st.builds(
        Settings,
        temperature=st.none() | st.floats(0, 2),
        session=st.sampled_from(("stateless", "chat")),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    walks=st.dictionaries(tracks, st.sets(st.integers(0, 40), min_size=1, max_size=4), max_size=5,
                          min_size=1),
    cuts=st.integers(1, 3),
    compressed=st.booleans(),
    words=st.lists(
        st.sampled_from(
            [
                {"source": "source", "editor": "editor", "cycle": "cycle", "step": "step"},
                {"source": "image", "editor": "model", "cycle": "task", "step": "turn"},
                {"source": "image_id", "editor": "method", "cycle": "edit", "step": "iteration"},
                {"source": "Source", "editor": "MODEL", "cycle": "Cycle", "step": "round"},
            ]
        ),
        min_size=1, max_size=4,
    ),
)  # fmt: skip
def test_any_tracks_written_as_shards_are_found_again_exactly(
    walks: dict[Track, set[int]], cuts: int, compressed: bool, words: list[dict[str, str]]
) -> None:
    expected: dict[tuple[Track, int], bytes] = {}
    files: list[list[tuple[str, bytes]]] = [[] for _ in range(cuts)]
    for number, (track, step) in enumerate((t, s) for t, steps in walks.items() for s in steps):
        word = words[number % len(words)]
        fields = {word[name]: getattr(track, name) for name in ("source", "editor", "cycle")}
        fields[word["step"]] = step
        fields["repeat"] = track.repeat
        fields["settings"] = track.settings.model_dump(mode="json", exclude_defaults=True)
        expected[track, step] = png(number) + str(number).encode()
        both = [(f"{number:06d}.png", expected[track, step])]
        both += [(f"{number:06d}.json", json.dumps(fields).encode())]
        files[number % cuts] += both if number % 2 else both[::-1]
    with tempfile.TemporaryDirectory() as folder:
        for index, part in enumerate(files):
            name = f"{index}.tar.gz" if compressed else f"{index}.tar"
            shard(Path(folder) / name, part, "w:gz" if compressed else "w")
        finds = read(Path(folder))
        assert bytes_of(finds) == expected
        assert len(finds.frames) == len(expected)
        assert set(finds.cycles) == {track.cycle for track in walks}
        if finds.cleanup:
            finds.cleanup()


words = st.text(st.sampled_from("abcXYZ019-_ é"), min_size=1, max_size=10).filter(
    lambda text: "__" not in text and not text.startswith("_") and not text.endswith("_")
)


@settings(max_examples=80, deadline=None)
@given(st.sets(st.tuples(words, words, words, st.integers(0, 9), st.integers(0, 999)), min_size=1))
def test_any_names_written_as_keys_are_found_again_exactly(
    steps: set[tuple[str, str, str, int, int]],
) -> None:
    ordered = sorted(steps)
    expected = {
        (Track(source, cycle, editor, repeat), step): png(number) + bytes([number % 251])
        for number, (source, editor, cycle, repeat, step) in enumerate(ordered)
    }
    files = [
        (f"{source}__{editor}__{cycle}__r{repeat}__step_{step:03d}.png",
         expected[Track(source, cycle, editor, repeat), step])
        for source, editor, cycle, repeat, step in ordered
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        assert bytes_of(read(shard(Path(folder) / "s.tar", files))) == expected
