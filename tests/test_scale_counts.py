"""What a command opens, lists and looks at: counted, because time says nothing on a busy machine.

Runs have tens of thousands of frames. No command may touch them all, or read a chain's file more
often than it must.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import convergebench as cb
from convergebench import scorer

WATCHED = """
import json, os, sys

run = os.path.realpath(sys.argv[1])
seen = []

def note(kind, path):
    if isinstance(path, (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(path))
        if path.startswith(run + os.sep):
            seen.append((kind, os.path.relpath(path, run)))

def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir"):
        note("opened" if event == "open" else "listed", arguments[0])

def watched(look):  # looking at a file's size or date is told to no hook
    def looking(path, *rest, **more):
        note("looked", path)
        return look(path, *rest, **more)
    return looking

sys.addaudithook(hook)
os.stat, os.lstat = watched(os.stat), watched(os.lstat)
import convergebench as cb

getattr(cb, sys.argv[2])(run, **json.loads(sys.argv[3]))
os.write(1, json.dumps(seen).encode())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of 12 chains, scored."""
    path = tmp_path_factory.mktemp("counts") / "run"
    done = cb.run(
        path,
        suite="starter",
        sources=["grid", "fog"],
        cycles=["replicate"],
        editors=["ref:noise", "ref:banana"],
        size=32,
        steps=6,
    )
    assert done.complete
    cb.score(path, ["psnr", "noise"])
    return path


def watched(run: Path, command: str, **arguments: object) -> dict[str, Counter[str]]:
    """What a command did to the run's files: names, by opened, listed and looked at."""
    words = (WATCHED, run, command, json.dumps(arguments))
    done = subprocess.run(
        [sys.executable, "-c", *map(str, words)], check=True, capture_output=True, text=True
    )
    found: dict[str, Counter[str]] = {kind: Counter() for kind in ("opened", "listed", "looked")}
    for kind, name in json.loads(done.stdout):
        found[kind][name] += 1
    return found


def chains_opened(seen: dict[str, Counter[str]]) -> Counter[str]:
    return Counter({n: c for n, c in seen["opened"].items() if n.endswith(".jsonl") and "/" in n})


def frames_touched(seen: dict[str, Counter[str]]) -> set[str]:
    found = {name for names in seen.values() for name in names if name.startswith("frames/")}
    return {name for name in found if not name.startswith("frames/.new")}


def source_frames(run: Path) -> set[str]:
    told = json.loads((run / "sources.json").read_text())
    digests = [ref["sha256"] for pair in told.values() for ref in pair if ref]
    return {f"frames/{digest[:2]}/{digest}.png" for digest in digests}


def test_a_plan_reads_every_chain_once_and_the_sources_frames_only(run: Path) -> None:
    """Opening and planning a resume."""
    seen = watched(run, "plan")
    assert len(chains_opened(seen)) == 12
    assert set(chains_opened(seen).values()) == {1}
    files = {name for name in frames_touched(seen) if name.endswith(".png")}
    assert files <= source_frames(run)


def test_status_reads_every_chain_once_and_no_frame(run: Path) -> None:
    """What it tells is in the records."""
    seen = watched(run, "status")
    assert len(chains_opened(seen)) == 12
    assert set(chains_opened(seen).values()) == {1}
    assert frames_touched(seen) == set()


def test_scoring_that_finds_nothing_to_do_opens_no_frame(run: Path) -> None:
    """What is known is known by the score files and the chains' records."""
    seen = watched(run, "score", metrics=["psnr", "noise"])
    assert set(chains_opened(seen).values()) == {1}
    assert frames_touched(seen) == set()


def test_scoring_here_opens_each_frame_of_a_unit_once(run: Path) -> None:
    """A new metric: every frame is read once, in one worker, and none is looked for before."""
    seen = watched(run, "score", metrics=["sharpness"], workers=1)
    opened = {n: c for n, c in seen["opened"].items() if n.startswith("frames/") and c > 1}
    assert set(opened) <= source_frames(run)  # many chains share a source
    assert not any(name.startswith("frames/") for name in seen["listed"])


def test_a_run_that_is_complete_touches_the_sources_frames_only(run: Path) -> None:
    """Planned, mended, compared with the ledger: each reads the chains once, and is no more."""
    seen = watched(run, "run")
    assert set(chains_opened(seen).values()) <= {1, 2, 3}
    pictures = {name for name in frames_touched(seen) if name.endswith(".png")}
    assert pictures <= source_frames(run)
    assert not any(n.startswith("frames/") for n in seen["listed"] if n != "frames/.new")


def test_long_scoring_leaves_few_score_files(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are saved every few seconds, for days: the files are made one now and then."""
    monkeypatch.setattr(scorer, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(scorer, "MERGE_EVERY", 3)
    counts = []

    def observe(_: object) -> None:
        counts.append(len(list((run / "scores").glob("part-*.parquet"))))

    done = cb.score(run, ["ssim", "colour-cast"], workers=1, observe=observe)
    assert len(counts) > 10
    assert max(counts) <= 4
    assert done.new > 0
    again = cb.score(run, ["ssim", "colour-cast"])
    assert (again.new, again.known) == (0, done.new)
