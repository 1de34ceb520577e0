"""Patches: where they are cut, that they are lossless, and that places can be followed."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from convergebench.dataset import Patches, export
from convergebench.errors import InputError
from convergebench.frame import decode
from tests.dataset.made import Made, Walk, jpeg, make_run, odd_run, png

sides = st.integers(1, 60)


def patches(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(out / "patches" / "*.parquet").rows(named=True)


def test_a_grid_covers_all_but_the_rest_at_right_and_bottom() -> None:
    places = Patches(16).places("s", 40, 33)
    assert places == [(0, 0), (16, 0), (0, 16), (16, 16)]
    assert Patches(16).places("s", 15, 99) == []
    assert Patches(16).places("s", 16, 16) == [(0, 0)]


@given(size=sides, width=sides, height=sides, count=st.none() | st.integers(1, 9))
def test_patches_lie_within_and_a_grid_has_no_overlap(
    size: int, width: int, height: int, count: int | None
) -> None:
    places = Patches(size, count).places("s", width, height)
    fits = width >= size and height >= size
    assert len(places) == (count or (width // size) * (height // size)) * fits
    assert all(0 <= x <= width - size and 0 <= y <= height - size for x, y in places)
    if count is None:
        assert len(set(places)) == len(places)
        assert all(x % size == 0 and y % size == 0 for x, y in places)


def test_random_places_follow_source_size_and_seed_only() -> None:
    one = Patches(8, 5, seed=3)
    assert one.places("a", 64, 64) == one.places("a", 64, 64)
    assert one.places("a", 64, 64) != one.places("b", 64, 64)
    assert one.places("a", 64, 64) != Patches(8, 5, seed=4).places("a", 64, 64)
    many = Patches(8, 4000).places("a", 64, 32)
    assert {x for x, _ in many} == set(range(57)), "every place can be drawn, the last as well"
    assert {y for _, y in many} == set(range(25))


def test_patches_are_the_pixels_of_their_frame(tmp_path: Path) -> None:
    data = {0: png(1), 1: jpeg(3), 2: png(4, 48)}
    steps = [Made(n, "edited", data[n]) for n in (1, 2)] + [Made(3, "malformed", b"no")]
    run = make_run(tmp_path / "run", [Walk(first=data[0], steps=steps)])
    result = export(run, tmp_path / "out", form="both", patches=Patches(16, 3, seed=1))
    found = patches(tmp_path / "out")
    assert [(r["step"], r["patch"]) for r in found] == [(s, p) for s in range(3) for p in range(3)]
    for row in found:
        assert row["image"]["bytes"].startswith(b"\x89PNG")
        whole = decode(data[row["step"]])[0]
        cut = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        x, y, size = row["x"], row["y"], row["size"]
        assert np.array_equal(cut, whole[y : y + size, x : x + size])
    by_step = {s: [(r["x"], r["y"]) for r in found if r["step"] == s] for s in range(3)}
    assert by_step[0] == by_step[1], "equally large frames of a source are cut at the same places"
    assert by_step[0] != by_step[2], "this one came back larger"
    with tarfile.open(tmp_path / "out" / "webdataset" / "patches" / "patches-00000.tar") as tar:
        assert len(tar.getnames()) == 18
    assert result.rows["patches"] == 9


def test_frames_too_small_are_counted(tmp_path: Path) -> None:
    steps = [Made(1, "edited", png(1, 16)), Made(2, "edited", png(2, 40))]
    run = make_run(tmp_path / "run", [Walk(first=png(0), steps=steps)])
    result = export(run, tmp_path / "out", patches=Patches(32))
    assert (result.uncut, result.rows["patches"]) == (1, 2)
    assert "1 frame is smaller than a patch" in str(result)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Patches are 32 × 32 pixels" in card
    none = export(run, tmp_path / "none", patches=Patches(64))
    assert (none.uncut, none.rows["patches"]) == (3, 0)
    assert not (tmp_path / "none" / "patches").exists()
    assert "config_name: patches" not in (tmp_path / "none" / "README.md").read_text()


def test_patches_of_no_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1 pixel"):
        export(odd_run(tmp_path / "run"), tmp_path / "out", patches=Patches(0))
