"""Folder layouts know their own trees and say no to each other's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.importer.found import Layout, Look
from convergebench.importer.layouts import banana, restoration, roundtrip, sequence
from tests.importer.trees import plant


def _round_trip(root: Path) -> Path:
    names = ("I0_source", "I1_forward", "I1_backward")
    return plant(root, [f"cat_01_hat_add_remove/{name}.png" for name in names])


def _flat(root: Path) -> Path:
    return plant(root, [f"eiffel_step_{n}.png" for n in range(4)])


def _per_source(root: Path) -> Path:
    return plant(root, [f"{s}/{n:04}.jpg" for s in ("cat", "dog") for n in range(3)])


def _apple(root: Path) -> Path:
    return plant(root, [f"{s}/step_{n}.png" for s in ("apple", "car") for n in range(3)])


def _per_editor(root: Path) -> Path:
    return plant(root, [f"{e}/cat_step_{n}.png" for e in ("flux", "qwen") for n in range(3)])


def _contact_sheet(root: Path) -> Path:
    return plant(_flat(root), ["grid.png"])


def _banana_sheet(root: Path) -> Path:
    return plant(_banana(root), ["Fog/grid.png"])


def _banana(root: Path) -> Path:
    return plant(root, [f"Fog/replicate/run_1/step_{n}.png" for n in range(4)])


def _banana_runs(root: Path) -> Path:
    return plant(root, [f"run_{r}/step_{n}.png" for r in (1, 2) for n in range(4)])


def _banana_metadata(root: Path) -> Path:
    plant(root, [f"frames/a_{n}.png" for n in range(3)])
    rows = (f'{{"file_name": "frames/a_{n}.png", "step": {n}}}\n' for n in range(3))
    (root / "metadata.jsonl").write_text("".join(rows))
    return root


def _restoration(root: Path) -> Path:
    folders = ("input", "gt", "method-a", "method-b/run_1")
    return plant(root, [f"{f}/{n:04}.png" for f in folders for n in range(3)])


def _csv(root: Path) -> Path:
    (root / "scores.csv").write_text("chain,step,psnr\na,1,30\n")
    return root / "scores.csv"


def _parquet(root: Path) -> Path:
    pl.DataFrame({"step": [1], "psnr": [30.0]}).write_parquet(root / "scores.parquet")
    return root / "scores.parquet"


def _tar(root: Path) -> Path:
    return plant(root, ["shard-000.tar"])


def _film(root: Path) -> Path:
    return plant(root, ["chain_0.mp4"]) / "chain_0.mp4"


def _photos(root: Path) -> Path:
    return plant(root, ["cat.png", "dog_2.png", "house.jpg"])


def _empty(root: Path) -> Path:
    return root


LAYOUTS = (roundtrip.LAYOUT, sequence.LAYOUT, banana.LAYOUT, restoration.LAYOUT)


@pytest.mark.parametrize(
    ("make", "own"),
    [
        (_round_trip, roundtrip.LAYOUT),
        (_flat, sequence.LAYOUT),
        (_per_source, sequence.LAYOUT),
        (_apple, sequence.LAYOUT),
        (_per_editor, sequence.LAYOUT),
        (_contact_sheet, sequence.LAYOUT),
        (_banana_sheet, banana.LAYOUT),
        (_banana, banana.LAYOUT),
        (_banana_runs, banana.LAYOUT),
        (_banana_metadata, banana.LAYOUT),
        (_restoration, restoration.LAYOUT),
        *((make, None) for make in (_csv, _parquet, _tar, _film, _photos, _empty)),
    ],
)
def test_each_layout_knows_its_own_and_no_other(
    tmp_path: Path, make: Any, own: Layout | None
) -> None:
    look = Look(make(tmp_path))
    assert [layout.name for layout in LAYOUTS if layout.recognise(look)] == (
        [own.name] if own else []
    )
