"""A scene of deep shadow: a library's hall with shafts of light."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import (
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
    stripes,
    unit,
    wave,
)

# The eye is the hall's origin: x to the right, y down, z ahead, in units of half its width.
_EYE = (0.5, 0.50)
_FOCAL = 0.56
_SIDE, _FLOOR, _CEILING, _END = 1.0, 0.62, 1.30, 6.4
_GALLERY, _RAIL, _HAND = 0.30, 0.80, 0.50
_BAY, _SHELF, _BOOK = 0.92, 0.178, 0.034
# The windows' height above the eye, and how far the sun's rays go sideways on one unit down.
_SILL, _LINTEL, _SLANT = 0.86, 1.20, 0.50
_COVERS = np.array(
    [
        rgb(0x7E241E), rgb(0x8C5628), rgb(0x35512F), rgb(0x2A3F66), rgb(0x9A7640),
        rgb(0x5A3226), rgb(0xC9B486), rgb(0x6A6254), rgb(0xA04326), rgb(0x4A3450),
    ]
)  # fmt: skip


def library(canvas: Canvas) -> None:
    """Two storeys of shelves down a long hall, light falling in from high windows."""
    _end_wall(canvas)
    below = canvas.crop((-1e6, _EYE[1] + _FOCAL * _FLOOR / _END, 1e6, 1e6))
    if below is not None:
        _floor(below)
    above = canvas.crop((-1e6, -1e6, 1e6, _EYE[1] - _FOCAL * _CEILING / _END))
    if above is not None:
        _ceiling(above)
    reach = _FOCAL * _SIDE / _END
    for right, bounds in ((0, (-1e6, _EYE[0] - reach)), (1, (_EYE[0] + reach, 1e6))):
        part = canvas.crop((bounds[0], -1e6, bounds[1], 1e6))
        if part is not None:
            _wall(part, right)
            _gallery(part)
            _table(part, right)
    _shafts(canvas)
    _, y = canvas.grid
    canvas.blend((0.02, 0.014, 0.012), 0.40 * smooth(y, 0.72, 1.25))


def _rays(canvas: Canvas) -> tuple[Field, Field]:
    """Where each pixel looks: the sideways and downward part of its ray for one unit ahead."""
    k = 1.0 / _FOCAL
    return (canvas.x - _EYE[0]) * k, (canvas.y - _EYE[1]) * k


def _end_wall(canvas: Canvas) -> None:
    """The far wall with a tall arched window full of light."""
    canvas.blend(rgb(0x54402E), 1.0)
    part = canvas.crop((0.40, 0.36, 0.60, 0.56))
    if part is None:
        return
    p, q = _rays(part)
    u, v = p * _END, q * _END
    span = part.px * (_END / _FOCAL)
    arch = np.maximum(np.abs(u) - 0.52, np.where(v < -0.55, length(u, v + 0.55) - 0.52, v - 0.22))
    glass = gradient(v, (-1.05, rgb(0xFFF9E6)), (0.25, rgb(0xF6D08F)))
    bars = 1.0 - (1.0 - stripes(u * 4.4 + 0.55, 0.10, span * 4.4)) * (
        1.0 - stripes(v * 4.4, 0.10, span * 4.4)
    )
    part.blend(washed(glass, rgb(0x4A3826), bars * 0.85), unit(0.5 - arch / span))


def _floor(canvas: Canvas) -> None:
    """Polished boards with a long rug, mirroring the window at the end."""
    p, q = _rays(canvas)
    z = _FLOOR / np.maximum(q, 0.02)
    u = p * z
    span = z * (canvas.px / _FOCAL)
    board = u * 9.0
    index = np.floor(board)
    grain = fbm(board * 5.0 + 9.0 * index, z * 2.4 + 5.0 * index, 41, 6, canvas.px * 60.0)
    length_wise = z * 0.9 + 0.37 * index
    tone = grain + 0.22 * (speckle(index, np.floor(length_wise), 42) - 0.5)
    tint: list[Value] = list(
        gradient(tone, (0.2, rgb(0x23150C)), (0.5, rgb(0x5A3A22)), (0.8, rgb(0x94683E)))
    )
    seam = stripes(board + 0.02, 0.04, np.maximum(9.0 * span, 0.01))
    butt = stripes(length_wise + 0.004, 0.008, np.maximum(0.9 * span * z, 0.004))
    tint = washed(tint, rgb(0x0C0705), 0.7 * np.maximum(seam, butt))
    tint = scaled(tint, 0.50 + 0.50 * smooth(z, 0.7, 4.0))
    mirror = bump(u, 0.0, 0.70) * smooth(z, 1.0, 6.0)
    tint = washed(tint, rgb(0xF4CF96), mirror * (0.15 + 0.45 * grain))
    tint = washed(tint, _rug(canvas, u, z), unit(0.5 - (np.abs(u) - 0.34) / span))
    # Each window lays a bright patch of sun on the boards.
    sun = _sunlit(z) * bump(u - _landing(_FLOOR), 0.0, 0.22)
    tint = [a * (1.0 + light * sun) for a, light in zip(tint, (2.0, 1.9, 1.5), strict=True)]
    canvas.blend(tint, unit(0.5 + (q - _FLOOR / _END) * (_FOCAL / canvas.px)))


def _rug(canvas: Canvas, u: Field, z: Field) -> list[Value]:
    """A red rug with a border, knotted finely enough to be seen close by."""
    knots = fbm(u * 130.0, z * 130.0, 43, 4, canvas.px * 200.0)
    figure = wave(u * 5.0) * wave(z * 4.0) + 0.5 * wave(u * 15.0 + 0.25) * wave(z * 12.0)
    pile = gradient(
        figure + 0.5 * (knots - 0.5), (-0.6, rgb(0x3E0E10)), (0.1, rgb(0x84211F)),
        (0.6, rgb(0xB8743E)),
    )  # fmt: skip
    border = smooth(np.abs(np.abs(u) - 0.285), 0.022, 0.014)
    woven = washed(pile, rgb(0xC39A5A), 0.75 * border)
    return scaled(woven, (0.55 + 0.5 * smooth(z, 0.6, 4.5)) * (0.75 + 0.5 * knots))


def _ceiling(canvas: Canvas) -> None:
    """Coffers between beams, lost in the dark towards the viewer."""
    p, q = _rays(canvas)
    z = _CEILING / np.maximum(-q, 0.02)
    u = p * z
    span = z * (canvas.px / _FOCAL)
    a, b = u * 2.5 + 0.5, z * (2.0 / _BAY)
    beam = 1.0 - (1.0 - stripes(a + 0.11, 0.22, span * 2.5)) * (
        1.0 - stripes(b + 0.11, 0.22, np.maximum(span * z * 1.7, 0.01))
    )
    inset = length(a - np.floor(a) - 0.5, b - np.floor(b) - 0.5)
    rose = smooth(inset, 0.22, 0.17) * (0.6 + 0.4 * smooth(np.abs(inset - 0.11), 0.015, 0.045))
    wood = fbm(u * 12.0, z * 34.0, 51, 5, canvas.px * 50.0)
    tint = gradient(wood, (0.2, rgb(0x20160E)), (0.8, rgb(0x4E3722)))
    mixed = washed(tint, rgb(0x9A7640), 0.6 * rose * unit(1.6 - span * 9.0))
    grained = gradient(wood, (0.2, rgb(0x5C4025)), (0.8, rgb(0x86613A)))
    mixed = washed(mixed, grained, 0.75 * beam)
    lit = scaled(mixed, 0.34 + 0.80 * smooth(z, 1.2, 5.5))
    canvas.blend(lit, unit(0.5 + (-q - _CEILING / _END) * (_FOCAL / canvas.px)))


@dataclass(frozen=True, slots=True)
class _Shelves:
    """A wall of shelves: place along and up, the pixel's span in both, which wall, and a pixel."""

    along: Field
    up: Field
    wide: Field
    tall: Field
    wall: int
    px: float


def _wall(canvas: Canvas, right: int) -> None:
    """A side wall: bays of shelves on two storeys, and windows above."""
    p, q = _rays(canvas)
    aside = np.maximum(np.abs(p), 1e-6)
    z = _SIDE / aside
    v = q * z
    tall = z * (canvas.px / _FOCAL)
    wide = z * tall
    tint = _books(_Shelves(z, v, wide, tall, right, canvas.px))
    bay = z * (1.0 / _BAY)
    inside = bay - np.floor(bay) - 0.5
    # Deep bays: each is darker towards its edges.
    tint = scaled(tint, 0.50 + 0.50 * smooth(np.abs(inside), 0.46, 0.28))
    # Pilasters between the bays, a plinth, and panels with windows under the ceiling.
    grain = fbm(z * 44.0, v * 5.0, 61, 3, canvas.px * 90.0)
    grain = grain + 0.16 * grit(z * 230.0, v * 17.0, 62, 3, canvas.px * 460.0)
    oak = gradient(grain, (0.2, rgb(0x321F12)), (0.8, rgb(0x7A5230)))
    post = stripes(bay + 0.07, 0.14, np.maximum(wide / _BAY, 0.004))
    flute = stripes(bay * 28.0, 0.45, np.maximum(wide * 28.0 / _BAY, 0.02))
    oak = [a * (0.75 + 0.45 * flute * post) for a in oak]
    frame = np.maximum(unit(0.5 + (v - 0.53) / tall), unit(0.5 + (-v - 0.80) / tall))
    tint = washed(tint, oak, np.maximum(post, frame))
    light = 0.30 + 0.80 * smooth(z, 0.7, 5.6)
    if not right:
        # What the sunlit boards throw back.
        light = light + 0.75 * bump(inside, 0.0, 0.42) * smooth(v, -0.75, 0.45)
    light = light * (0.72 + 0.28 * smooth(v, -0.1, -0.8))
    warm: list[Value] = [a * (light * b) for a, b in zip(tint, (1.10, 0.98, 0.80), strict=True)]
    pane = np.maximum(np.abs(inside) * _BAY - 0.21, np.maximum(-v - _LINTEL, v + _SILL))
    bars = 1.0 - (1.0 - stripes(inside * 8.0 * _BAY + 0.06, 0.12, wide * 8.0)) * (
        1.0 - stripes(v * 9.0, 0.12, tall * 9.0)
    )
    sky = gradient(-v, (_SILL, rgb(0xFFE9B8)), (_LINTEL, rgb(0xFFFBEF)))
    glass = washed(scaled(sky, 1.0 if right else 0.62), rgb(0x3A2A1C), 0.85 * bars)
    warm = washed(warm, glass, unit(0.5 - pane / np.maximum(wide, tall)))
    flush = aside * np.where(q > 0.0, _FLOOR, _CEILING) - np.abs(q) * _SIDE
    edge = np.minimum(aside - _SIDE / _END, flush)
    canvas.blend(warm, unit(0.5 + edge * (_FOCAL / canvas.px)))


def _more(luck: Field, factor: float) -> Field:
    """Another random value from the lower digits of one."""
    t = luck * factor
    return t - np.floor(t)


def _books(shelf: _Shelves) -> list[Value]:
    """Rows of spines of many widths, heights and colours; where too fine, their mean."""
    level = shelf.up * (1.0 / _SHELF)
    row = np.floor(level)
    t = level - row
    cell = shelf.along * (1.0 / _BOOK) + 31.0 * row
    base = np.floor(cell)
    line = row + 40.0 * shelf.wall
    # Every seam between two books is moved by its own luck, so that widths vary.
    shift = (speckle(base, line, 71) - 0.5) * 0.7
    after = cell - base - 0.5 - shift
    late = after > 0.0
    other = (speckle(np.where(late, base + 1.0, base - 1.0), line, 71) - 0.5) * 0.7
    thick = np.abs(np.where(late, 1.0, -1.0) + other - shift)
    across = np.abs(after) / thick
    luck = speckle(np.where(late, base + 1.0, base), line, 72)
    tone, gap, mark = _more(luck, 97.0), _more(luck, 1009.0), _more(luck, 8191.0)
    cover = _COVERS[np.floor(luck * len(_COVERS)).astype(np.int64)]
    fine = np.minimum(np.maximum(1.7 - shelf.wide * (1.3 / _BOOK), 0.0), 1.0)
    cloth = grit(shelf.along * 600.0, shelf.up * 600.0, 75, 2, shelf.px * 900.0)
    cloth = 0.5 + cloth * unit(1.4 - shelf.wide * 600.0)
    middle = across - 0.5
    shade = (0.65 + 0.75 * tone) * (1.10 - 2.2 * middle * middle) * (0.88 + 0.24 * cloth)
    shade = shade * (0.30 + 0.70 * smooth(np.abs(after), 0.0, 0.10))
    gilt = bump(t, 0.45, 0.020) + bump(t, 0.86, 0.020) + bump(t, 0.50, 0.014)
    title = smooth(np.abs(t - 0.62), 0.06, 0.05) * smooth(np.abs(middle), 0.30, 0.22)
    gold = unit(gilt * ramp(mark, 0.40, 0.44) + 0.8 * title * ramp(mark, 0.70, 0.74)) * 0.75
    dark, mean, metal, wood = rgb(0x0A0605), rgb(0x4A3223), rgb(0xD9B25E), rgb(0x6A4628)
    top = unit(0.5 + (t - 0.10 - 0.26 * gap) * _SHELF / shelf.tall)
    top = (top - 0.74) * fine + 0.74
    board = stripes(level + 0.05, 0.10, np.maximum(shelf.tall / _SHELF, 0.01))
    planes: list[Value] = []
    for channel in range(3):
        plane = cover[..., channel] * shade
        plane += (metal[channel] - plane) * gold
        plane = mean[channel] + (plane - mean[channel]) * fine
        plane = dark[channel] + (plane - dark[channel]) * top
        planes.append(plane + (wood[channel] - plane) * board)
    return planes


def _gallery(canvas: Canvas) -> None:
    """The walk along the upper storey: its underside, its edge and its railing."""
    p, q = _rays(canvas)
    aside = np.maximum(np.abs(p), 1e-6)
    upward = np.maximum(-q, 1e-6)
    # Seen from below between the railing and the wall.
    under = np.minimum(aside * _GALLERY - upward * _RAIL, upward * _SIDE - aside * _GALLERY)
    grain = noise(canvas.x * 60.0, canvas.y * 9.0, 81)
    canvas.blend(
        scaled(rgb(0x1E130B), 0.7 + 0.6 * grain), unit(0.5 + under * (2.0 * _FOCAL / canvas.px))
    )
    z = _RAIL / aside
    v = upward * z
    tall = z * (canvas.px / _FOCAL)
    wide = z * tall * (1.0 / _RAIL)
    turn = z * 11.0
    bulge = 0.34 + 0.14 * wave((v - _GALLERY) * 10.0)
    baluster = unit(0.5 + (0.5 * bulge - np.abs(turn - np.floor(turn) - 0.5)) / (wide * 11.0))
    far = ramp(wide * 11.0, 0.5, 1.2)
    baluster = baluster + (0.34 - baluster) * far
    rail = unit(0.5 + (0.016 - np.abs(v - _HAND)) / tall)
    slab = unit(0.5 + (0.035 - np.abs(v - _GALLERY - 0.005)) / tall)
    bars = baluster * np.where((v > _GALLERY) & (v < _HAND), 1.0, 0.0)
    cover = np.maximum(np.maximum(rail, slab), bars) * np.where(z < _END, 1.0, 0.0)
    round_bar = 1.15 - 1.6 * np.abs(turn - np.floor(turn) - 0.5) * (1.0 - far) * (1.0 - rail)
    light = (0.34 + 0.95 * smooth(z, 0.8, 5.5)) * round_bar
    canvas.blend(scaled(rgb(0x8A5E36), light), cover)


def _table(canvas: Canvas, right: int) -> None:
    """A reading table at the side of the rug, with a green lamp and its pool of light."""
    near, far, inner, outer, top = 1.75, 2.75, 0.44, 0.80, 0.30
    p, q = _rays(canvas)
    aside = np.abs(p)
    soft = _FOCAL / canvas.px
    # The front: an apron and two legs.
    u, v = aside * near, q * near
    hung = np.maximum(np.abs(v - top - 0.035) - 0.035, np.abs(u - 0.62) - 0.17)
    leg = np.maximum(np.abs(np.abs(u - 0.62) - 0.15) - 0.018, np.abs(v - 0.46) - 0.16)
    canvas.blend(rgb(0x2A190E), unit(0.5 - np.minimum(hung, leg) * (soft / near)))
    z = top / np.maximum(q, 1e-6)
    u = aside * z
    board = np.minimum(np.minimum(u - inner, outer - u), np.minimum(z - near, far - z) * 0.5)
    grain = fbm(u * 40.0, z * 5.0, 85, 4, canvas.px * 80.0)
    wood = gradient(grain, (0.2, rgb(0x4A2C18)), (0.8, rgb(0x8E5E34)))
    pool = bump(length(u - 0.62, (z - 2.2) * 0.7), 0.0, 0.36)
    lit = [a * (0.70 + b * pool) for a, b in zip(wood, (1.5, 1.3, 0.8), strict=True)]
    canvas.blend(lit, unit(0.5 + board * (soft / 2.0)))
    x = _EYE[0] + (1.0 if right else -1.0) * 0.62 * _FOCAL / 2.2
    y = _EYE[1] + top * _FOCAL / 2.2
    lamp = canvas.placed(x, y, _FOCAL / 2.2)
    stem = np.maximum(np.abs(lamp.x) - 0.010, np.maximum(-0.20 - lamp.y, lamp.y))
    foot = length(lamp.x * 0.35, lamp.y) - 0.018
    lamp.blend(rgb(0xC29A4C), lamp.cover(np.minimum(stem, foot)))
    shade = np.maximum(
        np.abs(lamp.x) - 0.10 - 0.25 * (lamp.y + 0.19), np.abs(lamp.y + 0.19) - 0.035
    )
    green = gradient(lamp.y, (-0.225, rgb(0x2F8A5A)), (-0.155, rgb(0xC8F0B0)))
    lamp.glow(0.0, -0.12, 0.42, rgb(0xFFD98A), 0.30)
    lamp.blend(green, lamp.cover(shade))


def _landing(down: float) -> float:
    """How far to the right the sun's rays are at a depth below the eye."""
    return _SIDE - (0.5 * (_SILL + _LINTEL) + down) * _SLANT


def _sunlit(z: Field) -> Field:
    """Whether the rays at a distance came through a window, with soft edges."""
    bay = z * (1.0 / _BAY)
    return smooth(np.abs(bay - np.floor(bay) - 0.5), 0.26, 0.18) * smooth(z, 6.2, 5.4)


def _shafts(canvas: Canvas) -> None:
    """Sheets of light from the windows on the right, where the dust in the air shows them."""
    p, q = _rays(canvas)
    total: Field = p * 0.0 + q * 0.0
    lean = np.maximum(p + _SLANT * q, 1e-6)
    for offset in (-0.035, 0.0, 0.035):
        # The rays of one height of the windows lie in a plane; the eye's ray meets it once.
        z = (_landing(0.0) + offset) / lean
        down = q * z
        above = smooth(down, -_SILL - 0.30, -_SILL + 0.10)
        total = total + _sunlit(z) * above * smooth(down, _FLOOR + 0.02, _FLOOR - 0.03)
    dust = fbm(canvas.x * 6.0, canvas.y * 6.0, 91, 4, canvas.px * 6.0)
    thin = total * (1.0 / 3.0) * smooth(z, 0.25, 1.2)
    canvas.blend(rgb(0xFFE2A8), unit(thin * (0.20 + 0.85 * dust)))
    motes = ramp(speckle(canvas.x * 460.0, canvas.y * 460.0, 92), 0.985, 1.0)
    canvas.blend(rgb(0xFFF8E4), thin * motes * 0.55)
