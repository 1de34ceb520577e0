"""A scene of iridescence: a peacock feather, barb by barb."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bump,
    direction,
    fbm,
    length,
    noise,
    smooth,
    speckle,
    unit,
    wave,
)

_BARBS = 92.0
# Out from the heart of the eye; each zone shifts its hue with the angle of the light.
_ZONES = (
    (0.20, rgb(0x14113F)),
    (0.33, rgb(0x2A1E78)),
    (0.40, rgb(0x1450B4)),
    (0.52, rgb(0x12A6C2)),
    (0.62, rgb(0x1CC0A8)),
    (0.68, rgb(0x6E5A2C)),
    (0.80, rgb(0xA9682C)),
    (0.93, rgb(0xC78A3A)),
    (0.99, rgb(0xB5B84A)),
    (1.07, rgb(0x4E9A46)),
    (1.16, rgb(0xC2A04A)),
    (1.26, rgb(0x3A7C4A)),
    (1.50, rgb(0x4F7A3C)),
    (2.10, rgb(0x74682F)),
    (3.20, rgb(0x6B5630)),
)
_TURNED = (
    (0.20, rgb(0x231058)),
    (0.33, rgb(0x4A1F9A)),
    (0.40, rgb(0x3B36C8)),
    (0.52, rgb(0x1E86DC)),
    (0.62, rgb(0x2FD0D0)),
    (0.68, rgb(0x3F7A50)),
    (0.80, rgb(0x8C7A30)),
    (0.93, rgb(0xE0A850)),
    (0.99, rgb(0xE8D070)),
    (1.07, rgb(0x2FB070)),
    (1.16, rgb(0x86C050)),
    (1.26, rgb(0x1F9A80)),
    (1.50, rgb(0x2E9A6A)),
    (2.10, rgb(0x5E9A50)),
    (3.20, rgb(0x88703C)),
)


_STEPS = 160
_REACH = 3.3


@cache
def _scale() -> Field:
    """Both rows of colours at evenly spaced places, so that a pixel looks up only two of them."""
    t = np.arange(_STEPS + 2, dtype=np.float64) * (_REACH / _STEPS)
    table = np.empty((_STEPS + 2, 6))
    for channel, plane in enumerate((*gradient(t, *_ZONES), *gradient(t, *_TURNED))):
        table[:, channel] = plane
    return table


def _iridescence(zone: Field, turn: Field) -> list[Value]:
    """The colours of a zone, turned by the angle of the light."""
    t = np.minimum(np.maximum(zone, 0.0), _REACH) * (_STEPS / _REACH)
    whole = np.floor(t)
    index, share = whole.astype(np.int64), t - whole
    planes: list[Value] = []
    for channel in range(3):
        plain, turned = _scale()[:, channel], _scale()[:, channel + 3]
        low, high = plain[index], turned[index]
        low = low + (plain[index + 1] - low) * share
        high = high + (turned[index + 1] - high) * share
        planes.append(low + (high - low) * turn)
    return planes


@dataclass(frozen=True, slots=True)
class _Feather:
    """Where a feather's eye is, how large it is and turned, and how bright and sharp it is seen."""

    x: float
    y: float
    size: float
    turns: float
    bright: float
    seed: int


_FEATHERS = (
    _Feather(0.04, -0.16, 0.66, -0.020, 0.48, 13),
    _Feather(0.95, -0.20, 0.66, 0.025, 0.48, 14),
    _Feather(-0.30, 0.34, 0.78, -0.050, 0.55, 3),
    _Feather(1.30, 0.30, 0.80, 0.055, 0.55, 5),
    _Feather(-0.06, 0.93, 0.70, -0.035, 0.62, 7),
    _Feather(1.07, 0.96, 0.72, 0.030, 0.62, 8),
    _Feather(0.50, 0.42, 1.00, 0.012, 1.0, 11),
)


def peacock(canvas: Canvas) -> None:
    """The eye of a peacock feather in front of others of the same train."""
    x, y = canvas.grid
    haze = fbm(x * 2.2, y * 2.2, 2, 3)
    canvas.blend(
        gradient(haze, (0.25, rgb(0x0E2A26)), (0.50, rgb(0x2C4A2C)), (0.75, rgb(0x6A6236))), 1.0
    )
    for index in range(16):
        dice = Dice(index, 71)
        at = (dice.roll(-0.6, 1.6), dice.roll(-0.5, 1.5))
        warm = dice.roll()
        tone = (0.25 + 0.35 * warm, 0.50 + 0.15 * warm, 0.36 - 0.12 * warm)
        canvas.glow(*at, dice.roll(0.03, 0.10), tone, dice.roll(0.10, 0.35))
    for feather in _FEATHERS:
        wide, up = 0.74 * feather.size, 0.66 * feather.size
        foot = 1e6 if feather.bright == 1.0 else feather.y + 1.05 * feather.size
        part = canvas.crop((feather.x - wide, feather.y - up, feather.x + wide, foot))
        if part is not None:
            _paint_feather(part, feather)


def _paint_feather(canvas: Canvas, feather: _Feather) -> None:
    """One feather in its own coordinates: the eye's centre at the origin, the shaft below it."""
    k = 1.0 / feather.size
    px = canvas.px * k
    c, s = direction(feather.turns)
    p0, q0 = (canvas.x - feather.x) * k, (canvas.y - feather.y) * k
    p, q = p0 * c + q0 * s, q0 * c - p0 * s
    p = p + 0.05 * q * unit(q)
    # Confocal parabolas around the shaft's end: barbs that leave it and sweep upwards.
    d = q - 0.03
    u = np.abs(p)
    r = length(p, d)
    drift = noise(p * 6.5 + 2.0, q * 6.5, feather.seed)
    waver = 0.012 * (drift - 0.5)
    rank = (d + r + 1.15 * u + waver) * _BARBS
    side = np.where(p < 0.0, 0.0, 512.0)
    barb = np.floor(rank)
    f = rank - barb
    luck = speckle(barb + side, barb * 0.0, feather.seed + 1)
    along = r - 0.6 * d
    # The egg of the eye, each barb coloured a little further out or in than the next.
    egg = length(p * (1.0 / 0.215), q * np.where(q < 0.0, 1.0 / 0.235, 1.0 / 0.275))
    ragged = (luck - 0.5) * 0.05 * smooth(egg, 0.2, 1.2)
    # The dark heart is notched where the shaft ends.
    notch = 0.22 * bump(p, 0.0, 0.060) * smooth(q, -0.01, 0.07) * smooth(egg, 0.60, 0.30)
    inner = egg + ragged + notch
    # How far the colours have turned: by place, by barb and by the finest barbules.
    octaves = 5 if feather.bright == 1.0 else 3
    spark = fbm(p * 90.0, q * 90.0, feather.seed + 3, octaves, px * 90.0)
    sheen = unit(
        0.5
        + 0.35 * wave(along * 1.9 + 0.4 * drift)
        + 0.25 * wave(p * 1.1 + 0.1)
        + 0.5 * (luck - 0.5)
        + 0.9 * (spark - 0.5)
    )
    tint = _iridescence(inner, sheen)
    fine = min(max(1.6 - px * _BARBS * 2.6, 0.0), 1.0)
    tight = smooth(egg, 1.75, 1.10)
    rib = np.abs(f - 0.5) * 2.0
    relief = (1.12 - 0.55 * rib * rib * rib) * fine + 0.97 * (1.0 - fine)
    glint = unit(1.0 - 3.0 * np.abs(f - 0.36)) * (0.20 + 0.5 * sheen) * fine
    hooks = _barbules(f, along, px)
    shaded: list[Value] = scaled(tint, relief * hooks * (0.80 + 0.34 * luck))
    shaded = washed(shaded, (0.96, 0.98, 0.84), 0.22 * glint)
    # Outside the eye the barbs hang loose and end one by one.
    loose = smooth(rib, 0.86, 0.40) * fine + 0.5 * (1.0 - fine)
    reach = 1.55 + 0.95 * luck + 0.9 * smooth(q, 0.1, 0.7)
    lasts = smooth(egg - reach, 0.10, -0.25)
    cover = (tight + (1.0 - tight) * loose) * lasts
    night = rgb(0x0C1A18)
    canvas.blend(night, 0.55 * smooth(egg, 2.4, 0.9))
    canvas.blend(washed(night, shaded, feather.bright), cover)
    shaft = np.abs(p) - (0.0035 + 0.006 * unit(q))
    # Shafts further back are soon lost among the barbs.
    stem = unit(0.5 - shaft / px) * smooth(q, 0.02, 0.06)
    if feather.bright < 1.0:
        stem = stem * smooth(q, 0.65, 0.30)
    ivory = gradient(p, (-0.008, rgb(0xE8DAB0)), (0.008, rgb(0x7A6238)))
    canvas.blend(scaled(ivory, 0.35 + 0.65 * feather.bright), stem * smooth(egg, 0.60, 1.0))


def _barbules(f: Field, along: Field, px: float) -> Field:
    """The fine hooks to both sides of a barb: a herring-bone, where the pixels can show it."""
    t = (along * 6.0 + np.abs(f - 0.5) * 0.10) * 60.0
    hatch = np.abs(t - np.floor(t) - 0.5) * 2.0
    # More than a third of a period per pixel would only be moiré.
    fine = min(max(2.6 - px * 360.0 * 6.5, 0.0), 1.0)
    return 1.0 + fine * 0.42 * (hatch - 0.5)
