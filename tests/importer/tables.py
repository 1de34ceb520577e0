"""Tables of scores, written and read for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convergebench.importer.found import Finds, Look, Track, Wishes
from convergebench.importer.layouts.table import LAYOUT

HEAD = "model,image,edit_pair,round,psnr,ssim\n"


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **wishes: Any) -> Finds:
    return LAYOUT.read(Look(path), Wishes(**wishes))


def told(finds: Finds, words: str) -> str:
    """The one note with these words."""
    (note,) = [note for note in finds.notes if words in note]
    return note


def values(finds: Finds) -> dict[tuple[Track, int, str], float | None]:
    found = {(s.track, s.step, s.metric): s.value for s in finds.scores}
    assert len(found) == len(finds.scores), "a key comes twice"
    return found
