"""Draws docs/images/degradations.png: every kind of damage at every severity, beside its truth.

python docs/contact_sheet.py [FILE]

The pictures are scenes drawn by our own code at 1024×1024. Motion and zoom are shown as
crops of 320×320 pixels, so that their grain is seen; the others whole.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from convergebench.degrading import KINDS, SEVERITIES, degrade
from convergebench.drawing import scene

SIDE, CELL, GAP, HEAD = 1024, 232, 6, 22
# Kind, scene, seed, and the upper left corner of the crop (none: the whole picture).
ROWS: tuple[tuple[str, str, int, tuple[int, int] | None], ...] = (
    ("defocus", "library", 2, None),
    ("motion", "still-life", 5, (330, 300)),
    ("digital-zoom", "text", 1, (100, 120)),
    ("old-film", "portrait", 3, None),
    ("old-photo-bw", "dunes", 8, None),
    ("old-photo-colour", "still-life", 2, None),
    ("surveillance", "terraces", 4, None),
)
CROP = 320


def cell(pixels: NDArray[np.uint8], corner: tuple[int, int] | None) -> Image.Image:
    """A picture or a crop of it, at the size it has on the sheet."""
    if corner is not None:
        left, top = corner
        pixels = pixels[top : top + CROP, left : left + CROP]
    return Image.fromarray(pixels).resize((CELL, CELL), Image.Resampling.LANCZOS)


def sheet() -> Image.Image:
    """All rows, each with its kind's name above."""
    columns = 1 + len(SEVERITIES)
    size = (GAP + columns * (CELL + GAP), len(ROWS) * (HEAD + CELL + GAP))
    drawn = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(drawn)
    font = ImageFont.load_default(13)
    for row, (kind, name, seed, corner) in enumerate(ROWS):
        top = row * (HEAD + CELL + GAP)
        clean = scene(name, SIDE, SIDE)
        pictures = [clean, *(degrade(clean, kind, level, seed) for level in SEVERITIES)]
        labels = [f"{KINDS[kind]}: clean", *(f"severity {level}" for level in SEVERITIES)]
        for column, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            left = GAP + column * (CELL + GAP)
            pen.text((left, top + 3), label, "black", font)
            drawn.paste(cell(picture, corner), (left, top + HEAD))
    return drawn


def main() -> None:
    """Draw the sheet with few colours, so that the file stays small."""
    file = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent / "images/degradations.png")
    drawn = sheet()
    colours = drawn.quantize(256, method=Image.Quantize.MEDIANCUT)
    drawn.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
