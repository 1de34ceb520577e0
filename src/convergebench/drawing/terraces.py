"""A scene of water and steps: flooded rice terraces at sunset."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Dice,
    Field,
    Value,
    bump,
    fbm,
    grit,
    length,
    noise,
    ramp,
    smooth,
    speckle,
    unit,
    wave,
)

_HORIZON = 0.20
_CREST = 0.36
_SUN = (0.64, 0.245)
_SKY = (
    (-0.45, rgb(0x2B2A5E)),
    (-0.12, rgb(0x4B3C7C)),
    (0.06, rgb(0x9C5A86)),
    (0.16, rgb(0xE27E67)),
    (0.24, rgb(0xFBB565)),
    (0.31, rgb(0xFFE0A0)),
)


def _sky(x: Field, y: Field, px: float, octaves: int) -> list[Value]:
    """The evening sky at (x, y): a gradient, streaks of lit cloud, and the glow of the sun."""
    tint: list[Value] = list(gradient(y + 0.03 * (x - 0.6) * (x - 0.6), *_SKY))
    cloud = fbm(x * 2.1 + 0.6 * y, y * 11.0, 3, octaves, px * 11.0)
    streak = smooth(cloud, 0.48, 0.70) * smooth(y, 0.34, 0.20)
    edge = smooth(cloud, 0.46, 0.52) * smooth(cloud, 0.62, 0.52)
    low = smooth(y, -0.10, 0.22)
    shade = [a + (b - a) * low for a, b in zip(rgb(0x5A4580), rgb(0xC05A5C), strict=True)]
    tint = washed(tint, shade, 0.70 * streak)
    tint = washed(tint, rgb(0xFFC98A), 0.55 * edge * low)
    near = length((x - _SUN[0]) * 0.8, y - _SUN[1])
    glow = unit(1.0 - near * 2.4)
    tint = washed(tint, rgb(0xFFE7A8), 0.75 * glow * glow)
    return washed(tint, rgb(0xFFFBE6), smooth(near, 0.040, 0.026))


def terraces(canvas: Canvas) -> None:
    """Rice terraces stepping down from misty hills, their water full of the evening sky."""
    x, y = canvas.grid
    canvas.blend(_sky(x, y, canvas.px, 5), 1.0)
    for index in range(4):
        _hill(canvas, index)
    part = canvas.crop((-1e6, _CREST - 0.06, 1e6, 1e6))
    if part is not None:
        _slope(part)
    _trees(canvas)


def _hill(canvas: Canvas, index: int) -> None:
    """One of the far hills, sharper and darker the nearer it is, standing in mist."""
    x, y = canvas.grid
    near = index / 3.0
    rough = fbm(x * (1.6 + 0.5 * index) + 7.0 * index, x * 0.0, 81 + index, 6, canvas.px * 3.0)
    crown = 0.275 + 0.030 * index - (0.20 - 0.04 * index) * (rough - 0.46)
    woods = 0.010 * near * fbm(x * 60.0, y * 60.0, 91, 3, canvas.px * 60.0)
    tone = tinted(rgb(0xD58B77), rgb(0x3E3450), 0.25 + 0.65 * near)
    mist = tinted(rgb(0xFFC890), rgb(0xB88A94), near)
    tint = gradient(y - crown, (0.0, tone), (0.13, tinted(tone, mist, 0.75)))
    canvas.blend(tint, canvas.cover(crown - woods - y))


def _slope(canvas: Canvas) -> None:
    """The terraced ground: contour lines of a rolling slope, seen from above."""
    x, y = canvas.grid
    rim = _CREST + 0.05 * (fbm(x * 2.2, x * 0.0, 60, 3) - 0.5)
    down = np.maximum(y, _CREST - 0.06) - _HORIZON
    z = 0.40 / down
    across = (x - 0.5) * z
    warp = fbm(across * 1.3 + 3.0, z * 1.5, 61, 3) - 0.5
    wiggle = noise(across * 5.0, z * 4.0, 62) - 0.5
    level = 10.5 * z + 9.0 * warp + 0.9 * wiggle + 1.4 * wave(across * 0.30 + 0.1)
    span = 10.5 * 0.40 * canvas.px / (down * down)
    step = np.floor(level)
    f = level - step
    luck = speckle(step, step * 0.0, 63)
    # Beyond the lip a pixel's edge belongs to the next water, not to the dark under this bank.
    tint = _water(canvas, across, z, np.where(f > 0.9, 0.0, f), luck)
    # The bank behind the water, up to its lip, where the next step's water begins.
    face = unit(0.5 + (f - 0.60 + 0.14 * (luck - 0.5)) / span) * unit(0.5 + (1.0 - f) / span)
    face = np.maximum(face, unit(0.5 - f / span))
    tint = washed(tint, _bank(canvas, across, z, np.where(f < 0.3, 1.0, f)), face)
    far = smooth(y, _CREST + 0.13, _CREST - 0.02)
    tint = washed(tint, rgb(0xD98C70), 0.42 * far)
    canvas.blend(tint, smooth(y - rim, -0.004, 0.004))


def _water(canvas: Canvas, across: Field, z: Field, f: Field, luck: Field) -> list[Value]:
    """Still water: the sky upside down, the bank behind it, and rows of seedlings."""
    x, y = canvas.grid
    px = canvas.px
    # No two fields are quite level, so each holds another piece of the sky.
    tone = luck * 7.0 - np.floor(luck * 7.0)
    ripple = fbm(across * 12.0, z * 70.0, 64, 3, px * 60.0) - 0.5
    ripple = ripple + 0.10 * grit(across * 130.0, z * 420.0, 65, 3, px * 900.0)
    mirror = 0.27 - 0.42 * (y - _CREST) + 0.26 * (tone - 0.5) + 0.020 * ripple
    tint = _sky(x + 0.012 * ripple, mirror, px, 3)
    # The sun's track runs towards the viewer, broken into glints.
    track = bump((x - _SUN[0] + 0.03 * ripple) / (0.05 + 0.10 * _size(y)), 0.0, 1.0)
    glint = smooth(ripple, -0.12, 0.20)
    tint = washed(tint, rgb(0xFFF0B8), track * (0.25 + 0.65 * glint))
    tint = scaled(tint, 0.78 + 0.24 * luck + 0.16 * ripple)
    # The bank behind throws its dark image on the water.
    tint = washed(tint, rgb(0x2C2430), 0.80 * smooth(f + 0.16 * ripple, 0.30, 0.60))
    planted = ramp(luck, 0.36, 0.40) * (1.0 - ramp(luck, 0.84, 0.88))
    return washed(tint, *_shoots(across, z, f, px, planted))


def _shoots(
    across: Field, z: Field, f: Field, px: float, planted: Field
) -> tuple[list[Field], Field]:
    """Rows of seedlings: their colours, and how much of the water they hide."""
    stray = noise(across * 11.0, z * 16.0, 66)
    u, v = across * 58.0 + 1.6 * stray, f * 11.0 + 1.2 * stray
    rank = np.floor(v)
    row = v - rank
    u = u + 0.37 * rank
    plant = np.floor(u)
    luck = speckle(plant, rank, 67)
    # A tuft: blades that part from their root (row 0) towards their tips (row 1).
    tip = row
    p = u - plant - 0.5 + 0.2 * (luck - 0.5)
    bow = tip * tip
    blade = np.minimum(np.abs(p + 0.06 * bow), np.abs(np.abs(p - 0.05 * tip) - 0.17 * tip))
    blade = np.minimum(blade, np.abs(np.abs(p + 0.03 * tip) - 0.36 * bow))
    grown = smooth(tip - 0.28 * luck, 0.70, 0.50)
    shoot = smooth(blade + 0.05 * tip, 0.085, 0.035) * grown
    fine = np.minimum(np.maximum(1.5 - 58.0 * px * 2.4 * z, 0.0), 1.0)
    shoot = shoot * fine + 0.42 * (1.0 - fine)
    green = gradient(tip, (0.0, rgb(0x2C3A18)), (0.35, rgb(0x71862C)), (0.8, rgb(0xC8C65A)))
    return green, 0.92 * planted * shoot * smooth(f, 0.60, 0.50)


def _size(y: Field) -> Field:
    """How near the ground at a row of the picture is: 0 at the crest, 1 at the lower edge."""
    return ramp(y, _CREST, 1.0)


def _bank(canvas: Canvas, across: Field, z: Field, f: Field) -> list[Value]:
    """A grassy bank: dark against the light, with a bright lip where the water ends."""
    grass = fbm(across * 26.0, z * 70.0, 68, 5, canvas.px * 70.0)
    blades = fbm(across * 150.0, z * 60.0 + 3.0 * grass, 69, 4, canvas.px * 150.0)
    turf = grit(canvas.x * 330.0 + 2.0 * grass, canvas.y * 120.0, 70, 3, canvas.px * 330.0)
    tone = 0.55 * grass + 0.45 * blades + 0.16 * turf
    tint: list[Value] = list(
        gradient(
            tone, (0.25, rgb(0x14150F)), (0.48, rgb(0x34391A)), (0.62, rgb(0x5F5E24)),
            (0.80, rgb(0xA08A3A)),
        )
    )  # fmt: skip
    tint = scaled(tint, 0.55 + 0.75 * smooth(f, 0.55, 1.0))
    lip = smooth(f + 0.16 * (blades - 0.5) + 0.06 * turf, 0.86, 0.98)
    return washed(tint, scaled(rgb(0xE8A95A), 0.9 + 0.5 * turf), 0.62 * lip)


def _trees(canvas: Canvas) -> None:
    """Clumps of trees on the banks, dark against the light."""
    for index in range(26):
        dice = Dice(index, 733)
        y = _CREST + 0.02 + 0.34 * dice.roll() * dice.roll()
        x = dice.roll(-0.9, 1.9)
        size = (0.014 + 0.10 * (y - _CREST)) * dice.roll(0.8, 1.3)
        part = canvas.crop((x - 2.2 * size, y - 2.6 * size, x + 2.2 * size, y + 0.4 * size))
        if part is None:
            continue
        p, q = (part.x - x) * (1.0 / size), (part.y - y) * (1.0 / size)
        leaves = fbm(part.x * 1.2 / size, part.y * 1.2 / size, 740 + index, 5, part.px * 1.2 / size)
        crown = length(p * 0.75, q + 1.1) - 0.85 - 1.0 * (leaves - 0.5)
        trunk = np.maximum(np.abs(p + 0.1 * q) - 0.09, np.abs(q + 0.4) - 0.55)
        shape = np.minimum(crown * 0.6, trunk)
        light = unit(0.4 * (p * 0.5 - q - 1.1) + 2.2 * (leaves - 0.5))
        tint = gradient(light, (0.0, rgb(0x16171A)), (0.5, rgb(0x35351F)), (1.0, rgb(0xA47A3C)))
        part.blend(tint, unit(0.5 - shape * (size / part.px)))
