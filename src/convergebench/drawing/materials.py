"""Scenes of made things: a glass tower, a wooden table and a woven cloth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, scaled, tinted, washed
from convergebench.drawing.fields import (
    Field,
    Value,
    bump,
    direction,
    fbm,
    length,
    noise,
    ramp,
    sharpen,
    smooth,
    speckle,
    stripes,
    unit,
    wave,
)

# --- grid --------------------------------------------------------------------------------------

_FOCAL = 1.05
_PITCH = direction(0.068)
_EYE_HEIGHT = 3.0


@dataclass(frozen=True, slots=True)
class _Plane:
    """A facade in perspective: two ratios of affine functions of the screen coordinates."""

    along: tuple[float, float, float]
    height: tuple[float, float, float]
    depth: tuple[float, float, float]

    def at(self, canvas: Canvas, row: tuple[float, float, float]) -> tuple[Field, Field]:
        """A facade coordinate at each pixel, and how much of it the pixel spans."""
        p, q = canvas.x - 0.5, 0.5 - canvas.y
        under = self.depth[0] + self.depth[1] * p + self.depth[2] * q
        under = np.maximum(under, 1e-4)
        value = (row[0] + row[1] * p + row[2] * q) / under
        span_x = np.abs(row[1] - value * self.depth[1])
        span_y = np.abs(row[2] - value * self.depth[2])
        return value, (span_x + span_y) * canvas.px / under


def _facade(corner: tuple[float, float], heading: tuple[float, float]) -> _Plane:
    """The upright plane through `corner` (right, ahead) that runs along `heading`."""
    c, s = _PITCH
    ex, ez = heading
    nx, nz = ez, -ex
    reach = corner[0] * nx + corner[1] * nz
    if reach < 0.0:
        nx, nz, reach = -nx, -nz, -reach
    depth = (_FOCAL * c * nz, nx, -s * nz)
    start = corner[0] * ex + corner[1] * ez
    forward = (_FOCAL * c * ez, ex, -s * ez)
    along = tuple(reach * a - start * b for a, b in zip(forward, depth, strict=True))
    rise = (_FOCAL * s, 0.0, c)
    height = tuple(reach * a + _EYE_HEIGHT * b for a, b in zip(rise, depth, strict=True))
    return _Plane((along[0], along[1], along[2]), (height[0], height[1], height[2]), depth)


@dataclass(frozen=True, slots=True)
class _Tower:
    """A glass tower: its nearest corner, the run and length of two faces, height and haze."""

    corner: tuple[float, float]
    turns: float
    widths: tuple[float, float]
    height: float
    haze: float
    seed: int


_TOWERS = (
    _Tower((-26.0, 44.0), 0.03, (9.0, 10.0), 27.0, 0.62, 5),
    _Tower((24.0, 48.0), 0.22, (8.0, 12.0), 33.0, 0.66, 7),
    _Tower((46.0, 50.0), 0.20, (9.0, 9.0), 24.0, 0.70, 8),
    _Tower((-44.0, 48.0), 0.04, (9.0, 9.0), 34.0, 0.70, 9),
    _Tower((0.9, 10.5), 0.098, (12.0, 13.0), 46.0, 0.0, 11),
)
_SKY = ((0.0, rgb(0x3F7FC0)), (0.45, rgb(0x86B5DE)), (1.0, rgb(0xDCE9F0)))


def _on_screen(right: float, ahead: float, height: float) -> tuple[float, float]:
    """Where a point of the world appears."""
    c, s = _PITCH
    rise = height - _EYE_HEIGHT
    k = _FOCAL / (ahead * c + rise * s)
    return 0.5 + right * k, 0.5 - (rise * c - ahead * s) * k


def grid(canvas: Canvas) -> None:
    """A glass tower seen from the street, its regular facade running up into the sky."""
    x, y = canvas.grid
    canvas.blend(gradient(y + 0.1 * x, *_SKY), 1.0)
    cloud = fbm(x * 2.0, y * 3.4, 3, 5, canvas.px * 3.4)
    canvas.blend(rgb(0xF7FAFB), 0.85 * smooth(cloud, 0.50, 0.74))
    # The horizon lies where a level line of sight ends; below it is the street.
    street = gradient(y, (0.9, rgb(0x7F878B)), (1.6, rgb(0x3B3F43)))
    canvas.blend(street, canvas.cover(0.5 + _FOCAL * _PITCH[1] / _PITCH[0] - y))
    for tower in _TOWERS:
        c, s = direction(tower.turns)
        for side, heading in enumerate(((c, s), (-s, c))):
            right, ahead = tower.corner
            far = (right + heading[0] * tower.widths[side], ahead + heading[1] * tower.widths[side])
            corners = [
                _on_screen(*at, h) for at in (tower.corner, far) for h in (0.0, tower.height)
            ]
            xs, ys = [p for p, _ in corners], [q for _, q in corners]
            part = canvas.crop((min(xs), min(ys), max(xs), max(ys)))
            if part is not None:
                _face(part, tower, side, heading)


def _face(canvas: Canvas, tower: _Tower, side: int, heading: tuple[float, float]) -> None:
    """One glazed face: panes with reflections, spandrels, mullions and floor lines."""
    plane = _facade(tower.corner, heading)
    along, span_a = plane.at(canvas, plane.along)
    height, span_h = plane.at(canvas, plane.height)
    width = tower.widths[side]
    inside = unit(0.5 + along / span_a) * unit(0.5 + (width - along) / span_a)
    inside *= unit(0.5 + (tower.height - height) / span_h) * unit(0.5 + height / span_h)
    across, up = along * 2.0, height * 1.25
    span_a, span_h = span_a * 2.0, span_h * 1.25
    luck = speckle(across, up, tower.seed * 10 + side)
    # Each pane hangs at its own slight angle, so the reflected clouds break at its edges.
    sway = luck - 0.5
    clouds = fbm(
        canvas.x * 2.6 + along * 0.14 + sway * 0.22,
        height * 0.13 + sway * 0.16,
        23 + side,
        4,
        canvas.px * 4.0,
    )
    sky = _pane_sky(height * (1.0 / tower.height), side)
    tint = washed(sky, rgb(0xEAF2F6), (0.80 - 0.35 * side) * smooth(clouds, 0.47, 0.72))
    tint = scaled(tint, 0.90 + 0.22 * luck)
    lamp = ramp(luck, 0.93, 0.96) * unit(1.0 - span_h)
    tint = washed(tint, rgb(0xF6D595), lamp * 0.55)
    level = up - np.floor(up)
    blind = ramp(speckle(across, up, 71 + side), 0.84, 0.86) * smooth(level, 0.50, 0.56)
    tint = washed(tint, rgb(0xB9C2C6), blind * 0.5 * unit(1.2 - span_h))
    # The slab edge of each floor, then the frame.
    slab = stripes(up, 0.20, span_h)
    tint = washed(tint, tinted(rgb(0x24384C), rgb(0x16232F), float(side)), slab * 0.82)
    frame = 1.0 - (1.0 - stripes(across + 0.05, 0.10, span_a)) * (
        1.0 - stripes(up + 0.03, 0.06, span_h)
    )
    tint = washed(tint, tinted(rgb(0xC9D4DB), rgb(0x75828C), float(side)), frame * 0.9)
    pillar = stripes(along * 0.5 + 0.05, 0.10, span_a * 0.25)
    tint = washed(tint, tinted(rgb(0xDDE4E8), rgb(0x87939B), float(side)), pillar)
    # Nearer the street the canyon is darker.
    tint = scaled(tint, 0.62 + 0.38 * smooth(height, 0.0, 12.0))
    canvas.blend(washed(tint, rgb(0xCFE0EC), tower.haze), inside)


def _pane_sky(share: Field, side: int) -> list[Field]:
    """What a clean pane mirrors: the sky, brighter on the face towards the sun."""
    if side == 0:
        return gradient(share, (0.0, rgb(0x27506F)), (0.35, rgb(0x4E88B4)), (1.0, rgb(0x9CC8E6)))
    return gradient(share, (0.0, rgb(0x142C40)), (0.35, rgb(0x254C6B)), (1.0, rgb(0x4A7FA8)))


# --- table -------------------------------------------------------------------------------------

_HORIZON = 0.16
_BACK, _FRONT, _LIP = 0.50, 0.915, 0.955
_KNOTS = ((-0.55, 1.92, 0.055), (0.62, 2.34, 0.06), (0.30, 1.50, 0.045), (-1.25, 2.6, 0.06))


def _wood(x: Field, z: Field, px: Value) -> list[Value]:
    """Planks along x, with rings, fibres and a few knots; `px` is the pixel's span in z."""
    board = z * 4.6
    index = np.floor(board)
    shift = speckle(index, index * 0.0, 5) * 40.0
    u = x + shift
    warp = 1.7 * noise(u * 0.8, z * 3.2 + index, 41) + 0.45 * noise(u * 2.4, z * 13.0, 42)
    for kx, kz, size in _KNOTS:
        near = length((x - kx) * 0.38, z - kz) * (1.0 / size)
        warp = warp + 2.4 / (1.0 + near * near)
    rings = wave(z * 7.0 + warp * 3.0) * 0.5 + 0.5
    fine = np.minimum(np.maximum(1.5 - px * 150.0, 0.0), 1.0)
    fibre = noise(u * 5.0, z * 150.0, 43) * fine + 0.5 * (1.0 - fine)
    pores = ramp(noise(u * 9.0, z * 260.0, 44), 0.80, 0.98) * fine
    tone = 0.46 * rings + 0.40 * fibre + 0.30 * (speckle(index, index * 0.0, 6) - 0.5)
    tint: list[Value] = list(
        gradient(tone, (0.0, rgb(0x6E4122)), (0.40, rgb(0x9C6537)), (0.95, rgb(0xC9945A)))
    )
    tint = washed(tint, rgb(0x4A2915), pores * 0.55)
    gap = stripes(board + 0.018, 0.036, np.maximum(px * 4.6, 0.004))
    return washed(tint, rgb(0x2C170C), gap * 0.8)


def _window_light(x: Field, y: Field, soft: float) -> Field:
    """Brightness of four panes of sunlight, in the window's own coordinates (0..2, 0..3)."""
    total: Field = x * 0.0 + y * 0.0
    for column in range(2):
        across = smooth(x, column - soft, column + soft) * smooth(
            x, column + 0.9 + soft, column + 0.9 - soft
        )
        for row in range(3):
            down = smooth(y, row - soft, row + soft) * smooth(
                y, row + 0.92 + soft, row + 0.92 - soft
            )
            total = total + across * down
    return unit(total)


def table(canvas: Canvas) -> None:
    """An empty wooden table by a plain wall, in soft light from a window on the left."""
    x, y = canvas.grid
    plaster = fbm(x * 9.0, y * 9.0, 31, 5, canvas.px * 9.0) - 0.5
    wall = gradient(
        x * 0.75 + y * 0.35, (-0.2, rgb(0xE7DFD0)), (0.45, rgb(0xCFC5B4)), (1.2, rgb(0x9D958A))
    )
    canvas.blend(scaled(wall, 1.0 + 0.10 * plaster), 1.0)
    sun = _window_light((x - 0.40 + 0.30 * y) * 5.2, (y + 0.13 - 0.10 * x) * 6.4, 0.13)
    leaves = smooth(fbm(x * 7.0, y * 7.0, 37, 3), 0.62, 0.48)
    canvas.blend(rgb(0xFFF3D6), sun * (0.42 + 0.30 * leaves))
    canvas.blend(rgb(0x54473B), 0.45 * smooth(y, 0.36, 0.52) * smooth(y, 0.62, 0.50))
    part = canvas.crop((-1e6, _BACK, 1e6, 1e6))
    if part is not None:
        _table_top(part)


def _table_top(canvas: Canvas) -> None:
    """The table itself, from its back edge down to the dark under its lip."""
    x, y = canvas.grid
    down = np.minimum(np.maximum(y, _BACK - 0.02), _FRONT)
    z = 0.75 / (down - _HORIZON)
    across = (x - 0.5) * z
    span = 0.75 * canvas.px / ((down - _HORIZON) * (down - _HORIZON))
    tint = _wood(across, z, span)
    light = gradient(x * 0.8 + (1.0 - y) * 0.2, (0.0, (1.1, 1.08, 1.02)), (1.0, (0.72, 0.70, 0.72)))
    tint = [a * b for a, b in zip(tint, light, strict=True)]
    patch = _window_light((x - 0.02 - 0.55 * (y - 0.5)) * 3.3, (y - 0.565) * 9.0, 0.16)
    tint = washed(tint, rgb(0xFFE2AE), patch * 0.34)
    sheen = smooth(y, 0.80, _BACK) * 0.24
    tint = washed(tint, rgb(0xEDE4D6), sheen)
    canvas.blend(tint, canvas.cover(_BACK - y))
    edge = _wood(x - 0.5, 2.0 + (y - _FRONT) * 0.6, canvas.px * 0.6)
    rim = bump(y, _FRONT, 0.010)
    edge = washed(scaled(edge, 0.52), rgb(0xE9C48E), rim * 0.6)
    canvas.blend(edge, canvas.cover(_FRONT - y))
    floor = gradient(y, (_LIP, rgb(0x17100C)), (1.3, rgb(0x3A2C23)))
    canvas.blend(floor, canvas.cover(_LIP - y))


# --- fabric ------------------------------------------------------------------------------------

_THREADS = 112.0
_SETT = (
    (0.00, 0xA52833),
    (0.30, 0x1E2B57),
    (0.48, 0x2F6048),
    (0.62, 0x1E2B57),
    (0.80, 0xA52833),
    (0.885, 0xEFE3C2),
    (0.915, 0xA52833),
)


@cache
def _sett() -> tuple[tuple[float, Colour], ...]:
    """The tartan's stripes as (start in the period, colour)."""
    return tuple((start, rgb(code)) for start, code in _SETT)


def _yarn(t: Field, px: float) -> list[Field]:
    """Colour of the threads at position `t` of the tartan, `px` wide pixels."""
    place = t - np.floor(t)
    first = _sett()[0][1]
    planes = [np.full_like(place, channel) for channel in first]
    before = first
    k = 1.0 / max(px, 0.004)
    for start, colour in _sett()[1:]:
        step = unit((place - start) * k + 0.5)
        for plane, low, high in zip(planes, before, colour, strict=True):
            if high != low:
                plane += (high - low) * step
        before = colour
    return planes


def _folds(x: Field, y: Field) -> Field:
    """Height of the cloth: long diagonal folds that merge and part."""
    drift = noise(x * 1.3 + 3.0, y * 1.3, 13)
    main = wave((x * 0.92 + y * 0.55) * 1.25 + drift * 0.75)
    cross = wave((x * 0.35 - y * 1.05) * 1.15 + drift * 0.6 + 0.2)
    return 0.068 * main * (0.6 + 0.4 * cross) + 0.024 * cross


def fabric(canvas: Canvas) -> None:
    """Woven tartan cloth with soft folds, every thread drawn."""
    x, y = canvas.grid
    step = 0.004
    height = _folds(x, y)
    slope_x = (_folds(x + step, y) - height) * (1.0 / step)
    slope_y = (_folds(x, y + step) - height) * (1.0 / step)
    s = x + 0.03 * wave(y * 0.7) + 0.55 * height
    t = y + 0.04 * wave(x * 0.6 + 0.3) - 0.40 * height
    warp, weft = _yarn(s * 3.1 + 0.15, canvas.px * 3.1), _yarn(t * 3.1 + 0.05, canvas.px * 3.1)
    a, b = s * _THREADS, t * _THREADS
    over = (np.floor(a) + np.floor(b)) * 0.25
    over = np.where(over - np.floor(over) < 0.5, 1.0, 0.0)
    fine = min(max(1.7 - canvas.px * _THREADS * 2.4, 0.0), 1.0)
    share = over * fine + 0.5 * (1.0 - fine)
    tint = washed(weft, warp, share)
    round_a, round_b = a - np.floor(a) - 0.5, b - np.floor(b) - 0.5
    bulge = np.where(over > 0.5, round_a * round_a, round_b * round_b) * 4.0
    twist = np.where(over > 0.5, b + round_a * 1.2, a + round_b * 1.2) * 1.5
    twist = np.abs(twist - np.floor(twist) - 0.5)
    fuzz = noise(x * 300.0, y * 300.0, 17) - 0.5
    detail = 1.14 - 0.42 * bulge - 0.22 * (0.5 - twist) + 0.16 * fuzz
    detail = detail * fine + 1.0 * (1.0 - fine)
    steep = 1.0 / np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
    facing = (slope_x * 0.62 + slope_y * 0.48 + 0.62) * steep
    light = 0.40 + 0.98 * unit(facing) + 1.0 * np.minimum(height, 0.06)
    sheen = sharpen(unit(facing), 3) * 0.16
    canvas.blend(washed(scaled(tint, light * detail), (1.0, 0.97, 0.9), sheen), 1.0)
