"""What age does to paper: creases, cracks, stains, foxing, wear, texture, halftone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from convergebench.degrading.chance import between, field, fractal, grain, places
from convergebench.degrading.light import NOMINAL, Plane, bounded, softened, unit
from convergebench.degrading.marks import Sheet, heavy, speck, wanderer


@dataclass(frozen=True)
class Folds:
    """What folding did: `shade` to add to the tone, and `bare`, where the emulsion is gone."""

    shade: Plane
    bare: Plane


def folded(rng: np.random.Generator, shape: tuple[int, ...], creases: int, flaked: float) -> Folds:
    """Creases across the print: one side catches the light, the other lies in shadow.

    Along the crest the emulsion flakes off, and finer cracks branch from it.
    """
    one = unit(shape)
    y, x = (place / one * min(shape[:2]) for place in places(shape))
    shade = np.zeros(shape[:2])
    bare = np.zeros(shape[:2])
    ragged = fractal(rng, shape, 30.0, 5, 0.85)
    sheet = Sheet(shape)
    for number in range(creases):
        turn = (rng.choice([0.0, np.pi / 2]) if rng.random() < 0.55 else rng.uniform(0, np.pi)) + (
            rng.normal(0.0, 0.06)
        )
        across = -np.sin(turn) * x + np.cos(turn) * y
        along = np.cos(turn) * x + np.sin(turn) * y
        offset = rng.uniform(-0.38, 0.38) * NOMINAL
        knots = np.linspace(-1.5, 1.5, 40) * max(shape[:2]) / one
        wobble = np.interp(along, knots, np.cumsum(rng.normal(0.0, 1.6, 40)))
        away = across - offset - wobble
        # Some creases run through, others end within the print.
        end = rng.uniform(-0.3, 0.5) * NOMINAL if number and rng.random() < 0.6 else 1e9
        there = between(along * rng.choice([-1.0, 1.0]), end, end - 120.0)
        strength = rng.uniform(0.55, 1.0) * there
        wide = rng.uniform(5.0, 11.0)
        slope = (away / wide) * np.exp(0.5 - 0.5 * (away / wide) ** 2)
        shade += 0.07 * strength * slope - 0.035 * strength * np.exp(-np.abs(away) / 30.0)
        half = (0.5 + flaked * (1.2 + 2.0 * ragged)) * strength
        edge = max(0.6, 0.7 / one)
        core = bounded((half - np.abs(away)) / edge + 0.35 * strength)
        core *= np.exp(-np.abs(away) / (8.0 + 10.0 * flaked))
        np.maximum(bare, core * bounded(0.5 + 0.4 * ragged + 0.5 * flaked), out=bare)
        _branches(rng, sheet, (turn, offset), flaked)
    np.maximum(bare, 0.85 * softened(sheet.cover(), 0.5 * one), out=bare)
    return Folds(shade, bare)


def _branches(
    rng: np.random.Generator, sheet: Sheet, crease: tuple[float, float], flaked: float
) -> None:
    """Fine cracks that leave a crease on both sides."""
    turn, offset = crease
    for _ in range(round(16 * flaked)):
        along = rng.uniform(-0.6, 0.6) * NOMINAL
        x = sheet.width / 2 + np.cos(turn) * along - np.sin(turn) * offset
        y = sheet.height / 2 + np.sin(turn) * along + np.cos(turn) * offset
        leaves = turn + rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5)
        path = wanderer(rng, (x, y), leaves, heavy(rng, 30.0, 150.0), 0.9, 16)
        sheet.line(path, 1.1, float(rng.uniform(0.4, 0.9)))


def crazed(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> Plane:
    """Coverage by fine cracks and scuffs anywhere on the print."""
    sheet = Sheet(shape)
    for _ in range(count):
        start = (rng.uniform(0, sheet.width), rng.uniform(0, sheet.height))
        curl, length = heavy(rng, 0.3, 1.6), heavy(rng, 55.0, 400.0)
        path = wanderer(rng, start, rng.uniform(0, 2 * np.pi), length, curl, 30)
        sheet.line(path, rng.uniform(0.6, 1.4), float(rng.uniform(0.2, 0.85)))
    return softened(sheet.cover(), 0.45 * unit(shape))


def worn(rng: np.random.Generator, shape: tuple[int, ...], wear: float) -> Plane:
    """Coverage of edges and corners rubbed off to the paper, `wear` nominal pixels deep."""
    height, width = shape[:2]
    one = unit(shape)
    rows = np.minimum(np.arange(height) + 0.5, height - np.arange(height) - 0.5) / one
    columns = np.minimum(np.arange(width) + 0.5, width - np.arange(width) - 0.5) / one
    inward = np.minimum(rows[:, None], columns)
    corner = np.sqrt(rows[:, None] ** 2 + columns**2)
    ragged = fractal(rng, shape, 7.0, 7, 0.66)
    depth = wear * (0.55 * ragged - 0.15) + 2.6 * wear * np.exp(-corner / (2.5 * wear + 1.0))
    return between(depth - inward, -0.5 / one, 0.8 / one + 0.5)


def foxed(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> Plane:
    """Foxing: small brown spots with soft rims."""
    sheet = Sheet(shape)
    for _ in range(count):
        place = (rng.uniform(0, sheet.width), rng.uniform(0, sheet.height))
        sheet.blob(speck(rng, place, heavy(rng, 5.0, 22.0)), float(rng.uniform(0.3, 0.9)))
    cover = sheet.cover()
    return 0.55 * softened(cover, 1.2 * unit(shape)) + 0.45 * softened(cover, 5.0 * unit(shape))


def stained(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> tuple[Plane, Plane]:
    """Water stains: how stained each pixel is inside, and the tide line where the water dried."""
    y, x = places(shape)
    half = np.array([shape[0], shape[1]]) / (2.0 * min(shape[:2]))
    inside = np.zeros(shape[:2])
    tide = np.zeros(shape[:2])
    ragged = fractal(rng, shape, 4.0, 6, 0.55)
    patchy = np.clip(0.75 + 0.3 * fractal(rng, shape, 5.0, 4), 0.2, 1.3)
    for _ in range(count):
        # Water comes from the edges, mostly.
        place = rng.uniform(-1.0, 1.0, 2) * half
        if rng.random() < 0.7:
            place[rng.integers(2)] = rng.choice([-1.0, 1.0]) * half.min()
        radius = rng.uniform(0.12, 0.34)
        squeeze = rng.uniform(0.7, 1.4)
        away = np.sqrt((y - place[0]) ** 2 * squeeze + (x - place[1]) ** 2 / squeeze)
        level = (radius - away) / radius + 0.22 * ragged
        for ring, strength in ((0.0, 1.0), (rng.uniform(0.12, 0.3), 0.45)):
            within = between(level, ring - 0.008, ring + 0.012)
            rim = within * np.exp(-np.maximum(level - ring, 0.0) / 0.035)
            inside = np.maximum(inside, 0.5 * strength * within)
            tide = np.maximum(tide, strength * rim)
    return inside * patchy, tide * patchy


def fibres(rng: np.random.Generator, shape: tuple[int, ...]) -> Plane:
    """The tooth of plain paper: fibres a few pixels long in all directions, about unit variance."""
    one = unit(shape)
    white = rng.standard_normal((2, *shape[:2]))
    calm = min(1.0, 1.6 * one)
    across = softened(white[0], 0.7 * one, 3.2 * one)
    down = softened(white[1], 3.2 * one, 0.7 * one)
    total = across / max(float(across.std()), 1e-9) + down / max(float(down.std()), 1e-9)
    return 0.6 * calm * total + 0.35 * calm * grain(rng, shape, 9.0)


def silk(shape: tuple[int, ...], pitch: float) -> Plane:
    """The embossed honeycomb of matt colour prints, lit from the upper left; about [-1, 1]."""
    y, x = (place * NOMINAL / pitch for place in places(shape))
    total = np.zeros(shape[:2])
    for turn in (0.35, 0.35 + np.pi / 3, 0.35 + 2 * np.pi / 3):
        phase = 2.0 * np.pi * (np.cos(turn) * x + np.sin(turn) * y)
        total += (np.cos(turn - 0.6) * 0.8) * np.sin(phase) + 0.35 * np.cos(phase)
    # Too fine for the pixels it would be moiré: then it is its mean.
    visible = between(np.array(pitch * unit(shape)), 2.2, 4.0)
    return total * float(visible) / 2.0


def halftone(tone: Plane, pitch: float) -> Plane:
    """A tone in [0, 1] printed as soft dots at 45°, `pitch` nominal pixels apart."""
    y, x = (place * NOMINAL / pitch for place in places(tone.shape))
    cell = pitch * unit(tone.shape)
    turn = np.pi / 4
    across = np.cos(2.0 * np.pi * (np.cos(turn) * x + np.sin(turn) * y))
    along = np.cos(2.0 * np.pi * (np.cos(turn) * y - np.sin(turn) * x))
    screen = 0.5 + 0.25 * (across + along)
    steep = 2.2 * float(between(np.array(cell), 2.0, 4.5))
    # The screen's mean over a cell is a half, so the mean tone is kept to first order.
    dots = tone + steep * (screen - 0.5) * 2.0 * tone * (1.0 - tone)
    return bounded(dots)


def uneven(rng: np.random.Generator, shape: tuple[int, ...]) -> Plane:
    """Where the print has faded more: towards the edges, and in clouds; in [0, 1]."""
    y, x = places(shape)
    half = np.array([shape[0], shape[1]]) / (2.0 * min(shape[:2]))
    inward = np.minimum(half[0] - np.abs(y), half[1] - np.abs(x))
    edges = np.exp(-inward / 0.09)
    return bounded(0.35 + 0.5 * edges + 0.2 * field(rng, shape, 2.5))
