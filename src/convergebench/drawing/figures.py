"""The cartoon scenes: one character in full, and nine heads of it with different expressions."""

from __future__ import annotations

from convergebench.drawing.canvas import Canvas, Colour, gradient, rgb, tinted
from convergebench.drawing.cartoon import (
    GOLD,
    PEN,
    SKIN,
    SKIN_SHADE,
    STREAK,
    Expression,
    paint_head,
    star,
)
from convergebench.drawing.fields import Field, stripes
from convergebench.drawing.shapes import blob, both, box, circle, ellipse, line, ribbon, union

_WHITE: Colour = (1.0, 1.0, 1.0)
_JACKET = rgb(0xF0A93A)
_JACKET_SHADE = rgb(0xD4862A)
_SHIRT = rgb(0x5B4BB7)
_SHORTS = rgb(0x2F4B7C)
_LINE = 0.0085


def _striped(part: Canvas, a: Colour, b: Colour, pitch: float) -> list[Field]:
    """Level stripes."""
    share = stripes(part.y * (1.0 / pitch), 0.5, part.px / pitch)
    return [low + (high - low) * share for low, high in zip(a, b, strict=True)]


def _backdrop(canvas: Canvas) -> None:
    """Flat sky, sun, clouds and a hill."""
    canvas.blend(rgb(0xBFE6F2), 1.0)
    canvas.fill(circle(0.5, 0.46, 0.43), rgb(0xD9F2F5))
    canvas.fill(circle(0.115, 0.155, 0.075), rgb(0xFFDD6B))
    for x, y, size in ((0.86, 0.16, 1.0), (0.08, 0.42, 0.7), (1.28, 0.30, 1.1), (-0.25, 0.18, 0.9)):
        puffs = [
            circle(x + dx * size, y + dy * size, r * size)
            for dx, dy, r in ((-0.06, 0.01, 0.035), (0.0, -0.015, 0.05), (0.06, 0.008, 0.038))
        ]
        canvas.fill(
            union(
                *puffs,
                box(
                    x - 0.09 * size,
                    y + 0.01 * size,
                    x + 0.095 * size,
                    y + 0.045 * size,
                    0.017 * size,
                ),
            ),
            _WHITE,
        )
    canvas.fill(ellipse(0.25, 1.30, 1.15, 0.50), rgb(0x9BD08A))
    canvas.fill(ellipse(0.85, 1.42, 1.45, 0.54), rgb(0x7BBF73))
    part = canvas.crop((-1e6, 1.0, 1e6, 1e6))
    if part is not None:
        part.blend(rgb(0x7BBF73), part.cover(1.0 - part.y))
    for x, y in (
        (0.16, 0.93),
        (0.27, 0.975),
        (0.90, 0.965),
        (0.06, 0.98),
        (1.15, 0.96),
        (-0.2, 0.97),
    ):
        canvas.fill(circle(x, y, 0.013), _WHITE)
        canvas.fill(circle(x, y, 0.006), GOLD)


def character(canvas: Canvas) -> None:
    """A flat-coloured cartoon character, no two sides alike, with four-colour eyes."""
    _backdrop(canvas)
    canvas.fill(ellipse(0.50, 0.945, 0.20, 0.025), rgb(0x4F9356), 0.8)
    _legs(canvas)
    _body(canvas)
    paint_head(canvas.placed(0.485, 0.372, 0.187), Expression(mouth="smile", brows=(0.02, 0.10)))


def _legs(canvas: Canvas) -> None:
    """One striped stocking and one bare leg, in odd shoes."""
    canvas.ink(
        line((0.448, 0.80), (0.440, 0.92), 0.062),
        lambda part: _striped(part, _WHITE, STREAK, 0.030),
        _LINE,
    )
    canvas.ink(line((0.535, 0.80), (0.545, 0.92), 0.060), SKIN, _LINE)
    canvas.ink(box(0.512, 0.872, 0.578, 0.905, 0.012), _WHITE, _LINE)
    canvas.ink(
        blob(
            (0.375, 0.940),
            (0.400, 0.905),
            (0.440, 0.893),
            (0.478, 0.905),
            (0.480, 0.945),
            (0.43, 0.955),
        ),
        rgb(0xD8433B),
        _LINE,
    )
    canvas.ink(
        blob(
            (0.505, 0.945),
            (0.508, 0.905),
            (0.545, 0.893),
            (0.588, 0.905),
            (0.612, 0.940),
            (0.56, 0.955),
        ),
        rgb(0x2E9E6B),
        _LINE,
    )
    canvas.fill(box(0.378, 0.942, 0.480, 0.955, 0.006), _WHITE)
    canvas.fill(box(0.506, 0.942, 0.610, 0.955, 0.006), _WHITE)
    shorts = blob(
        (0.400, 0.735),
        (0.495, 0.720),
        (0.590, 0.735),
        (0.602, 0.825),
        (0.548, 0.845),
        (0.500, 0.790),
        (0.448, 0.845),
        (0.392, 0.825),
    )
    canvas.ink(shorts, _SHORTS, _LINE)
    canvas.fill(box(0.41, 0.782, 0.448, 0.815, 0.006), tinted(_SHORTS, _WHITE, 0.25))


def _body(canvas: Canvas) -> None:
    """Open jacket with one striped sleeve, a shirt with a star, and a bag on its strap."""
    raised = ribbon((0.585, 0.610), (0.660, 0.600), (0.715, 0.535), width=0.070, end_width=0.058)
    canvas.ink(circle(0.722, 0.512, 0.034), SKIN, _LINE)
    for tip in ((0.700, 0.470), (0.724, 0.462), (0.748, 0.472)):
        canvas.ink(line((0.722, 0.508), tip, 0.020), SKIN, _LINE)
    canvas.fill(circle(0.722, 0.510, 0.030), SKIN)
    canvas.ink(raised, lambda part: _striped(part, rgb(0x3FB6A8), _WHITE, 0.034), _LINE)
    canvas.ink(box(0.455, 0.515, 0.515, 0.600, 0.02), SKIN_SHADE, _LINE)
    torso = blob(
        (0.410, 0.585),
        (0.455, 0.568),
        (0.515, 0.568),
        (0.560, 0.585),
        (0.592, 0.680),
        (0.602, 0.765),
        (0.495, 0.785),
        (0.388, 0.765),
        (0.395, 0.680),
    )
    canvas.ink(torso, _JACKET, _LINE)
    shirt = both(
        torso,
        blob(
            (0.458, 0.55), (0.515, 0.55), (0.535, 0.62), (0.555, 0.80), (0.440, 0.80), (0.450, 0.64)
        ),
    )
    canvas.ink(shirt, _SHIRT, _LINE * 0.7)
    canvas.fill(star(0.495, 0.690, 0.034), GOLD)
    canvas.fill(both(torso, box(0.565, 0.56, 0.62, 0.80)), _JACKET_SHADE)
    canvas.ink(box(0.402, 0.700, 0.436, 0.736, 0.005), rgb(0xE8584E), _LINE * 0.6)
    strap = both(torso, line((0.400, 0.560), (0.610, 0.775), 0.020))
    canvas.ink(strap, rgb(0x8A4B2C), _LINE * 0.6)
    canvas.ink(
        blob((0.585, 0.735), (0.655, 0.725), (0.668, 0.805), (0.625, 0.825), (0.580, 0.810)),
        rgb(0xA85F38),
        _LINE,
    )
    canvas.ink(box(0.592, 0.733, 0.660, 0.768, 0.012), rgb(0x8A4B2C), _LINE * 0.6)
    canvas.fill(circle(0.626, 0.768, 0.008), GOLD)
    canvas.ink(circle(0.352, 0.755, 0.030), SKIN, _LINE)
    arm = ribbon((0.412, 0.612), (0.368, 0.670), (0.353, 0.738), width=0.072, end_width=0.062)
    canvas.ink(arm, _JACKET, _LINE)
    canvas.fill(line((0.332, 0.728), (0.376, 0.734), 0.020), _JACKET_SHADE)
    canvas.ink(circle(0.392, 0.655, 0.016), STREAK, _LINE * 0.5)


_MOODS: tuple[tuple[Expression, int], ...] = (
    (Expression(brows=(0.04, 0.04)), 0xFFE3A8),
    (Expression(lids=(-1.0, -1.0), brows=(0.10, 0.10), mouth="laugh", blush=0.8), 0xBFE8D4),
    (
        Expression(
            lids=(0.80, 0.80), slant=(-0.14, -0.14), look=(0.0, 0.6), mouth="frown", extra="tear"
        ),
        0xBCD4F0,
    ),
    (
        Expression(
            lids=(0.85, 0.85),
            brows=(-0.10, -0.10),
            slant=(0.20, 0.20),
            mouth="teeth",
            blush=0.9,
            extra="cross",
        ),
        0xF6B7A8,
    ),
    (Expression(lids=(1.1, 1.1), brows=(0.16, 0.16), mouth="gasp", blush=0.2), 0xD9C8F2),
    (
        Expression(
            lids=(0.42, 0.42),
            brows=(-0.02, -0.02),
            look=(0.0, 0.4),
            mouth="small",
            blush=0.3,
            extra="snore",
        ),
        0xC5CBDD,
    ),
    (Expression(lids=(1.0, 0.0), brows=(0.12, -0.04), mouth="tongue", blush=0.7), 0xFFD0B8),
    (
        Expression(
            lids=(0.75, 1.0),
            brows=(-0.06, 0.16),
            slant=(0.10, 0.0),
            look=(0.8, -0.6),
            mouth="wavy",
            blush=0.2,
            extra="question",
        ),
        0xCFE6A8,
    ),
    (
        Expression(
            lids=(0.80, 0.80),
            slant=(-0.08, -0.08),
            look=(-0.7, 0.7),
            mouth="shy",
            blush=1.0,
            extra="hearts",
        ),
        0xF9C6DC,
    ),
)


def expressions(canvas: Canvas) -> None:
    """Nine head shots of the character, three by three, each with another expression."""
    canvas.blend(rgb(0x33304D), 1.0)
    side, gap = 0.305, 0.0225
    for index, (mood, code) in enumerate(_MOODS):
        row, column = divmod(index, 3)
        x0, y0 = gap + column * (side + gap), gap + row * (side + gap)
        panel = canvas.crop((x0, y0, x0 + side, y0 + side))
        if panel is None:
            continue
        ground = rgb(code)
        shades = gradient(panel.y, (y0, tinted(ground, _WHITE, 0.35)), (y0 + side, ground))
        frame = box(x0, y0, x0 + side, y0 + side, 0.016).distance(panel.x, panel.y)
        panel.blend(shades, panel.cover(frame))
        head = panel.placed(x0 + 0.126, y0 + 0.160, 0.0855)
        head.ink(box(-0.22, 0.70, 0.22, 1.30, 0.05), SKIN_SHADE, PEN)
        shoulders = blob(
            (-1.30, 1.90), (-1.00, 1.30), (-0.30, 1.12), (0.30, 1.12), (1.00, 1.30), (1.30, 1.90)
        )
        head.ink(both(shoulders, box(-2.0, 1.0, 2.5, 1.66)), _JACKET, PEN)
        head.fill(
            both(
                shoulders, blob((-0.26, 1.0), (0.26, 1.0), (0.18, 1.30), (0.0, 1.42), (-0.18, 1.30))
            ),
            _SHIRT,
        )
        paint_head(head, mood)
