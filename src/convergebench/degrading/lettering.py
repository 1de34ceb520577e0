"""The time stamp of a surveillance recorder, in a bitmap font of our own."""

from __future__ import annotations

from typing import Final

import numpy as np

from convergebench.degrading.light import Plane

# Five columns of seven pixels each, as the rows of a letter: a bit a pixel, the left one highest.
GLYPHS: Final = {
    "0": "0e 11 13 15 19 11 0e", "1": "04 0c 04 04 04 04 0e", "2": "0e 11 01 06 08 10 1f",
    "3": "1e 01 01 0e 01 01 1e", "4": "02 06 0a 12 1f 02 02", "5": "1f 10 1e 01 01 11 0e",
    "6": "06 08 10 1e 11 11 0e", "7": "1f 01 02 04 08 08 08", "8": "0e 11 11 0e 11 11 0e",
    "9": "0e 11 11 0f 01 02 0c", ":": "00 0c 0c 00 0c 0c 00", "-": "00 00 00 1f 00 00 00",
    "A": "0e 11 11 1f 11 11 11", "C": "0e 11 10 10 10 11 0e", "E": "1f 10 10 1e 10 10 1f",
    "H": "11 11 11 1f 11 11 11", "M": "11 1b 15 15 11 11 11", "R": "1e 11 11 1e 14 12 11",
    " ": "00 00 00 00 00 00 00",
}  # fmt: skip
HIGH, WIDE = 7, 6


def written(text: str) -> Plane:
    """A line of text as a mask of 7 rows, 6 columns a letter."""
    rows = np.zeros((HIGH, WIDE * len(text)))
    for place, letter in enumerate(text):
        for row, bits in enumerate(GLYPHS[letter].split()):
            for column in range(5):
                rows[row, WIDE * place + column] = int(bits, 16) >> (4 - column) & 1
    return rows


def stamp(rng: np.random.Generator) -> tuple[str, str]:
    """A camera's name, and a date and time between 2004 and 2019."""
    year, month, day = rng.integers(2004, 2020), rng.integers(1, 13), rng.integers(1, 29)
    hour, minute, second = rng.integers(0, 24), rng.integers(0, 60), rng.integers(0, 60)
    name = ("CAM", "CH")[int(rng.integers(2))]
    return (
        f"{name} {rng.integers(1, 17):02d}",
        f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}",
    )


def stamped(value: Plane, rng: np.random.Generator) -> Plane:
    """The camera's name and the time burnt into a small picture: white, with a dark outline.

    A picture too small for the time stays without it.
    """
    camera, time = stamp(rng)
    height, width = value.shape[:2]
    size = max(1, round(min(height, width) / 210))
    margin = 3 + 3 * size
    done = value.copy()
    for text, top in ((time, margin), (camera, height - margin - HIGH * size)):
        mask = written(text).repeat(size, 0).repeat(size, 1)
        high, wide = mask.shape
        if wide + 2 * margin > width or high + 2 * margin > height:
            continue
        cover = np.zeros((high + 2, wide + 2))
        for down in (0, 1, 2):
            for right in (0, 1, 2):
                part = cover[down : down + high, right : right + wide]
                np.maximum(part, mask, out=part)
        place = done[top - 1 : top + high + 1, margin - 1 : margin + wide + 1]
        place += (0.06 - place) * 0.75 * cover[..., None]
        place = done[top : top + high, margin : margin + wide]
        place += (0.95 - place) * mask[..., None]
    return done
