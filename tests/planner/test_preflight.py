"""What is wrong with a restoration's pictures is told in one list, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import InputError, SuiteError
from convergebench.frame import encode, sha256
from convergebench.planner import plan
from convergebench.planner.preflight import SHOWN, listed, misfit
from convergebench.runner import run
from convergebench.store import RunStore
from tests.editors.own.asking import command
from tests.support.runs import CYCLES, picture

RESTORE = """
[[cycle]]
name = "restore"
kind = "restore"
[[cycle.edit]]
prompt = "Restore it."
"""


def pairs(folder: Path, sizes: dict[str, tuple[Any, Any]], cycles: str = RESTORE) -> Path:
    """A suite of pairs; a size is width and height, and None is a source without a truth."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ['name = "pairs"\nversion = 1\nsize = 32\n']
    for seed, (name, both) in enumerate(sizes.items()):
        lines.append(f'[[source]]\nname = "{name}"\nlicence = "CC0-1.0"\n')
        for key, size in zip(("file", "truth"), both, strict=True):
            if size is not None:
                data = encode(picture(seed, *size))
                (folder / f"{name}-{key}.png").write_bytes(data)
                hashed = "sha256" if key == "file" else "truth_sha256"
                lines.append(f'{key} = "{name}-{key}.png"\n{hashed} = "{sha256(data)}"\n')
    (folder / "suite.toml").write_text("".join(lines) + cycles)
    return folder


@pytest.mark.parametrize(
    ("source", "truth", "fits"),
    [
        ((32, 24), (32, 24), True),
        ((32, 24), None, True),
        ((32, 24), (64, 48), True),
        ((32, 24), (128, 96), True),
        ((32, 24), (64, 49), False),
        ((32, 24), (33, 24), False),
        ((32, 24), (24, 32), False),
        ((64, 48), (32, 24), False),
        ((32, 24), (48, 36), False),
    ],
)
def test_a_pair_has_one_size_or_a_truth_of_whole_times_the_size(
    source: tuple[int, int], truth: tuple[int, int] | None, fits: bool
) -> None:
    told = misfit("source 'a'", source, truth)
    assert (told == "") is fits
    assert fits or f"{source[0]}×{source[1]} pixels and its truth" in told


def test_everything_is_named_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    suite = pairs(
        tmp_path / "suite",
        {
            "good": ((32, 24), (32, 24)),
            "gone": ((32, 24), (32, 24)),
            "lost": ((32, 24), (32, 24)),
            "torn": ((32, 24), (32, 24)),
            "wide": ((32, 24), (40, 24)),
            "old": ((32, 24), None),
        },
    )
    (suite / "gone-file.png").unlink()
    (suite / "gone-truth.png").unlink()
    (suite / "lost-truth.png").unlink()
    (suite / "torn-truth.png").write_bytes(b"torn")
    outputs = tmp_path / "net"
    outputs.mkdir()
    (outputs / "good.png").write_bytes(encode(picture(1)))
    (outputs / "old.png").write_bytes(b"no picture")
    name = f"folder:{outputs},pattern={{source}}.png"
    with pytest.raises(InputError, match="10 problems with the pictures of this run") as raised:
        run(tmp_path / "run", suite=str(suite), editors=[name], controls=False)
    text = str(raised.value)
    for told in (
        f"source 'gone': cannot read {suite / 'gone-file.png'}",
        f"source 'gone': cannot read {suite / 'gone-truth.png'}",
        "source 'lost': cannot read",
        "torn-truth.png has SHA-256",
        "source 'wide': its picture has 32×24 pixels and its truth 40×24",
        "source 'gone': there is no gone.png",
        "source 'wide': there is no wide.png",
        f"source 'old': {outputs / 'old.png'} is no image of a known type",
    ):
        assert told in text
    assert "source 'good'" not in text
    assert text.count("\n") == 10
    assert not (tmp_path / "run").exists()
    done = command(
        tmp_path, "run", "run", "--suite", "suite", "-e", "folder:net,pattern={source}.png"
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "10 problems" in done.stderr
    assert not (tmp_path / "run").exists()


def test_missing_pictures_may_be_allowed_and_are_failures(tmp_path: Path) -> None:
    both = ((32, 24), (32, 24))
    suite = pairs(tmp_path / "suite", {"a": both, "b": both})
    outputs = tmp_path / "net"
    outputs.mkdir()
    (outputs / "a.png").write_bytes(encode(picture(1)))
    asked: dict[str, Any] = {
        "suite": str(suite),
        "editors": [f"folder:{outputs},pattern={{source}}.png"],
        "controls": False,
    }
    with pytest.raises(InputError, match="1 picture of its methods cannot be used; with --allow-m"):
        run(tmp_path / "run", **asked)
    assert any("there is no b.png" in note for note in plan(tmp_path / "run", **asked).notes)
    done = run(tmp_path / "run", allow_missing=True, **asked)
    assert done.outcomes == {"edited": 1, "no-image": 1}
    again = run(tmp_path / "run")  # a chain that has ended is not looked at again
    assert again.complete
    chains = {chain.key.source: chain for chain in RunStore.open(tmp_path / "run").chains()}
    assert chains["b"].last is not None
    assert "there is no b.png" in chains["b"].last.detail


def test_low_resolution_inputs_are_legal(tmp_path: Path) -> None:
    suite = pairs(tmp_path / "suite", {"a": ((16, 16), (32, 32))})
    done = run(
        tmp_path / "run", suite=str(suite), editors=["classic:bicubic,scale=2"], controls=False
    )
    assert done.outcomes == {"edited": 1}


def test_other_runs_are_told_the_first_problem_as_before(tmp_path: Path) -> None:
    suite = pairs(tmp_path / "suite", {"a": ((16, 16), None)}, CYCLES)
    (suite / "a-file.png").write_bytes(b"torn")
    with pytest.raises(SuiteError, match=r"source 'a': .* has SHA-256"):
        run(tmp_path / "run", suite=str(suite), editors=["ref:jpeg"], cycles=["copy"])


def test_a_long_list_is_cut() -> None:
    lines = listed("Many:", [f"problem\n{n}" for n in range(100)]).split("\n")
    assert lines[0] == "Many:"
    assert lines[1] == "  problem 0"
    assert lines[-1] == "  … and 80 more"
    assert len(lines) == SHOWN + 2
