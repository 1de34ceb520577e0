"""The scene `sign`: a street of shops, with lettering of every size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from convergebench.drawing.canvas import (
    Bounds,
    Canvas,
    Colour,
    gradient,
    rgb,
    scaled,
    tinted,
    washed,
)
from convergebench.drawing.fields import (
    Dice,
    Value,
    bump,
    fbm,
    grit,
    length,
    noise,
    smooth,
    speckle,
    stripes,
)
from convergebench.drawing.lettering import breadth, write
from convergebench.drawing.shapes import box, circle, ellipse, line, outline, ribbon, union

_INK = rgb(0x1E1B1A)
_CREAM = rgb(0xF6EEDC)


@dataclass(frozen=True, slots=True)
class _Shop:
    """A shop: its breadth, the colours of its paint and letters, and what is written on it."""

    x0: float
    x1: float
    paint: Colour
    letters: Colour
    name: str
    under: str
    awning: Colour


_SHOPS = (
    _Shop(-0.420, -0.008, rgb(0x6B4A2E), rgb(0xF2D9A0), "CLOCKS", "REPAIRS WHILE YOU WAIT",
          rgb(0x8A5A34)),
    _Shop(0.000, 0.345, rgb(0x1F4A3E), rgb(0xF0D089), "BAKERY", "FRESH BREAD SINCE 1908",
          rgb(0xB53A34)),
    _Shop(0.353, 0.700, rgb(0x22375E), rgb(0xF7F1E2), "BOOKS", "NEW, OLD AND RARE",
          rgb(0x3C5C94)),
    _Shop(0.708, 1.000, rgb(0x7A2730), rgb(0xF3E3C0), "CAFE 27", "COFFEE  TEA  CAKES",
          rgb(0x2F6B57)),
    _Shop(1.008, 1.420, rgb(0x3B3A44), rgb(0xE9C46A), "TAILOR", "SUITS AND COATS",
          rgb(0x5A5A6E)),
)  # fmt: skip
_BOARD = (
    ("Onion soup", "4.50"), ("Cheese toast", "3.80"), ("Apple cake", "2.90"),
    ("Black coffee", "1.70"), ("Tea, any kind", "1.90"), ("Lemonade", "2.40"),
)  # fmt: skip
_POSTER = (
    "Town Hall, Friday", "at half past seven.", "Doors open at six.", "Bring a friend!",
)  # fmt: skip


def sign(canvas: Canvas) -> None:
    """Three shops with their boards, windows, posters, prices and a street name."""
    _upper_wall(canvas)
    for shop in _SHOPS:
        _front(canvas, shop)
    _pavement(canvas)
    _plates(canvas)
    _chalkboard(canvas)
    _hanging(canvas)


def _centred(
    canvas: Canvas, text: str, x: float, y: float, size: float, weight: float, ink: Colour
) -> None:
    """A line of text with its middle at `x`."""
    write(canvas, text, (x - 0.5 * (breadth(text) - 1.9) * size, y), size, weight, ink)


def _upper_wall(canvas: Canvas) -> None:
    """Brick and sash windows above the shops."""
    x, y = canvas.grid
    v = y * 60.0
    row = np.floor(v)
    u = x * 21.0 + 0.5 * (row - 2.0 * np.floor(row * 0.5))
    tone = speckle(u, v, 4)
    rough = grit(x * 150.0, y * 150.0, 6, 3, canvas.px * 150.0)
    tint = gradient(tone, (0.0, rgb(0x8A6A50)), (0.5, rgb(0xA9845F)), (1.0, rgb(0xC4A078)))
    mortar = np.maximum(
        stripes(u + 0.04, 0.08, canvas.px * 21.0), stripes(v + 0.08, 0.16, canvas.px * 60.0)
    )
    light = 0.80 + 0.16 * rough + 0.18 * fbm(x * 3.0, y * 3.0, 7, 3)
    canvas.blend(scaled(washed(tint, rgb(0xC9BCA6), mortar), light), 1.0)
    left, _, right, _ = canvas.extent
    for index in range(math.floor(left / 0.24) - 1, math.ceil(right / 0.24) + 1):
        a = index * 0.24 + 0.05
        canvas.fill(box(a - 0.014, -0.30, a + 0.154, 0.150), rgb(0xEDE6D6))
        canvas.fill(box(a - 0.024, 0.146, a + 0.164, 0.164), rgb(0xD9D0BE))
        canvas.fill(box(a - 0.024, 0.164, a + 0.164, 0.172), rgb(0x3A2C20), 0.5, 0.006)

        def glass(part: Canvas, a: float = a) -> list[Value]:
            sky = fbm(part.x * 5.0, part.y * 5.0, 8, 3)
            fold = noise((part.x - a) * 90.0, part.y * 2.0, 9)
            tint = gradient(sky, (0.3, rgb(0x2D3A46)), (0.7, rgb(0x8FA5B5)))
            side = smooth(np.abs(part.x - a - 0.07), 0.035, 0.060)
            return washed(tint, scaled(rgb(0xE9E2D2), 0.6 + 0.5 * fold), side * 0.8)

        canvas.fill(box(a, -0.30, a + 0.140, 0.138), glass)
        for bar in (box(a + 0.066, -0.3, a + 0.074, 0.138), box(a, 0.028, a + 0.140, 0.038)):
            canvas.fill(bar, rgb(0xEDE6D6))


def _front(canvas: Canvas, shop: _Shop) -> None:
    """One shop from its cornice down to the step."""
    part = canvas.crop((shop.x0 - 0.02, 0.18, shop.x1 + 0.02, 0.92))
    if part is None:
        return
    x0, x1 = shop.x0, shop.x1
    middle = 0.5 * (x0 + x1)

    def wood(part: Canvas) -> list[Value]:
        vein = (
            noise(part.x * 18.0, part.y * 160.0, 11) * 0.5
            + noise(part.x * 160.0, part.y * 18.0, 12) * 0.5
        )
        return scaled(shop.paint, 0.80 + 0.36 * vein)

    part.fill(box(x0, 0.190, x1, 0.900), wood)
    part.fill(box(x0 - 0.006, 0.188, x1 + 0.006, 0.206), tinted(shop.paint, (1.0, 1.0, 1.0), 0.28))
    part.fill(box(x0, 0.206, x1, 0.216), (0.03, 0.03, 0.03), 0.55, 0.005)
    # The name board, its gilt line, and letters with a shadow.
    part.fill(outline(box(x0 + 0.014, 0.222, x1 - 0.014, 0.352, 0.006), 0.0032), shop.letters, 0.9)
    room = x1 - x0 - 0.075
    size = min(room / (breadth(shop.name) - 1.9), 0.0112)
    base = 0.282 + 3.0 * size
    _centred(part, shop.name, middle + 0.0035, base + 0.0042, size, 1.55, (0.02, 0.02, 0.03))
    _centred(part, shop.name, middle, base, size, 1.5, shop.letters)
    small = min(room / (breadth(shop.under) - 1.9), 0.00265)
    _centred(part, shop.under, middle, 0.3435, small, 0.95, shop.letters)
    _awning(part, shop)
    door = x1 - 0.112
    _window(part, shop, (x0 + 0.026, 0.452, door - 0.018, 0.780))
    _door(part, shop, (door, 0.452, x1 - 0.022, 0.892))
    for a, b in ((x0 + 0.026, door - 0.018),):
        part.fill(
            outline(box(a, 0.800, b, 0.880, 0.003), 0.004), tinted(shop.paint, (0, 0, 0), 0.4)
        )
        part.fill(box(a + 0.012, 0.812, b - 0.012, 0.868), tinted(shop.paint, (1, 1, 1), 0.07))


def _awning(part: Canvas, shop: _Shop) -> None:
    """A striped awning with a scalloped edge and its shadow."""
    x0, x1 = shop.x0 + 0.010, shop.x1 - 0.010
    count = int((x1 - x0) / 0.0265)
    pitch = (x1 - x0) / count
    part.fill(box(x0, 0.430, x1, 0.500), (0.02, 0.02, 0.03), 0.55, 0.030)

    def stuff(part: Canvas) -> list[Value]:
        t = (part.x - x0) * (1.0 / pitch)
        band = stripes(t * 0.5, 0.5, part.px * 19.0)
        light = 0.70 + 0.34 * smooth(part.y, 0.436, 0.366)
        weave = grit(part.x * 240.0, part.y * 240.0, 13, 2, part.px * 240.0)
        return scaled(washed(_CREAM, shop.awning, band), light + 0.08 * weave)

    scallops = [box(x0, 0.362, x1, 0.428)]
    for index in range(count):
        scallops.append(circle(x0 + (index + 0.5) * pitch, 0.428, 0.5 * pitch))
    part.fill(union(*scallops), stuff)
    part.fill(box(x0, 0.424, x1, 0.4265), (0.1, 0.08, 0.08), 0.30)


def _window(part: Canvas, shop: _Shop, bounds: Bounds) -> None:
    """Glass with goods behind it, price tags and letters on the pane."""
    x0, y0, x1, y1 = bounds
    part.fill(
        box(x0 - 0.008, y0 - 0.008, x1 + 0.008, y1 + 0.008), tinted(shop.paint, (0, 0, 0), 0.55)
    )

    def inside(part: Canvas) -> list[Value]:
        glow = 0.30 + 0.60 * bump(
            length((part.x - 0.5 * (x0 + x1)) * 1.6, part.y - 0.54), 0.0, 0.42
        )
        tint = gradient(glow, (0.25, rgb(0x1E1512)), (0.6, rgb(0x6E4A2A)), (0.9, rgb(0xE2B066)))
        street = fbm(part.x * 6.0 + part.y * 4.0, part.y * 3.0, 14, 3)
        return washed(tint, rgb(0xA9C2D2), 0.35 * smooth(street, 0.52, 0.70))

    part.fill(box(*bounds), inside)
    for row, shelf in enumerate((0.610, 0.695, 0.770)):
        part.fill(box(x0, shelf, x1, shelf + 0.008), rgb(0x8A6440))
        x, index = x0 + 0.010, 0
        while x < x1 - 0.022:
            dice = Dice(index, row, int(shop.x0 * 1000.0) + 900, 61)
            x += _ware(part, shop.name, x, shelf, dice) + dice.roll(0.001, 0.006)
            index += 1
        if shop.name != "BOOKS":
            for tag in range(3):
                at = x0 + 0.030 + tag * 0.062
                price = f"{1 + (tag * 3 + row) % 6}.{(tag * 35 + row * 20) % 90 + 5:02d}"
                part.fill(box(at - 0.004, shelf - 0.012, at + 0.028, shelf + 0.006), _CREAM)
                write(part, price, (at, shelf + 0.001), 0.00145, 0.95, _INK)
    hours = "OPEN DAILY 8 - 6"
    size = min((x1 - x0 - 0.020) / breadth(hours), 0.00215)
    _centred(part, hours, 0.5 * (x0 + x1), 0.508, size, 0.8, _CREAM)
    for slope in (0.0, 0.055):
        gleam = line((x0 + 0.03 + slope, y1 - 0.01), (x0 + 0.15 + slope, y0 + 0.01), 0.022, 0.012)
        part.fill(gleam, (1.0, 1.0, 1.0), 0.09, 0.004)


def _ware(part: Canvas, shop: str, x: float, shelf: float, dice: Dice) -> float:
    """One thing on a shelf; tells how much room it took."""
    if shop == "BOOKS":
        wide, tall = dice.roll(0.007, 0.014), dice.roll(0.040, 0.062)
        colour = (
            rgb(0x8E2F35),
            rgb(0x2F5B58),
            rgb(0xC59A45),
            rgb(0x3A3F66),
            rgb(0xD8D0BE),
            rgb(0x51402F),
        )[dice.pick(6)]
        part.fill(box(x, shelf - tall, x + wide, shelf, 0.0008), colour)
        part.fill(
            box(x + 0.001, shelf - tall * 0.86, x + wide - 0.001, shelf - tall * 0.80), _CREAM, 0.8
        )
        part.fill(
            box(x + 0.001, shelf - tall * 0.22, x + wide - 0.001, shelf - tall * 0.18),
            rgb(0xE0B95A),
            0.9,
        )
        part.fill(box(x, shelf - tall, x + 0.0014, shelf), (1.0, 1.0, 1.0), 0.18)
        return wide
    if shop == "BAKERY":
        wide, tall = dice.roll(0.028, 0.042), dice.roll(0.016, 0.026)
        cx = x + 0.5 * wide
        crust = (rgb(0xC98A42), rgb(0xA8652C), rgb(0xDDA85A))[dice.pick(3)]
        loaf = ellipse(cx, shelf - 0.45 * tall, 0.5 * wide, 0.55 * tall)
        part.fill(
            loaf,
            lambda part: gradient(
                (part.y - shelf) * (1.0 / tall) + 0.3 * noise(part.x * 200.0, part.y * 200.0, 15),
                (-1.0, tinted(crust, rgb(0xFBE3B0), 0.6)), (-0.4, crust), (0.1, rgb(0x5A3014)),
            ),
        )  # fmt: skip
        for cut in (-0.22, 0.0, 0.22):
            a = cx + cut * wide
            part.fill(
                line((a - 0.003, shelf - 0.85 * tall), (a + 0.003, shelf - 0.55 * tall), 0.0022),
                rgb(0xF3DDB0),
            )
        return wide
    wide, tall = dice.roll(0.016, 0.026), dice.roll(0.024, 0.046)
    colour = (rgb(0xE8E2D4), rgb(0x3E6E8C), rgb(0xC65A3C), rgb(0x5C7A4A), rgb(0xD9B04A))[
        dice.pick(5)
    ]
    cup = box(x, shelf - tall, x + wide, shelf, 0.004)
    part.fill(cup, lambda part: scaled(colour, 1.10 - 0.42 * (part.x - x) * (1.0 / wide)))
    part.fill(outline(circle(x + wide, shelf - 0.5 * tall, 0.006), 0.0024), colour)
    part.fill(
        box(x, shelf - 0.55 * tall, x + wide, shelf - 0.45 * tall), tinted(colour, (0, 0, 0), 0.3)
    )
    return wide + 0.007


def _door(part: Canvas, shop: _Shop, bounds: Bounds) -> None:
    """A door with a pane, a notice, a letter box and a handle."""
    x0, y0, x1, y1 = bounds
    middle = 0.5 * (x0 + x1)
    part.fill(box(x0 - 0.006, y0 - 0.006, x1 + 0.006, y1), (0.04, 0.03, 0.03), 0.8)
    part.fill(box(*bounds), tinted(shop.paint, (1.0, 1.0, 1.0), 0.12))
    part.fill(box(x0 + 0.011, y0 + 0.014, x1 - 0.011, 0.712), rgb(0x241A16))
    part.shade((x0, y0, x1, 0.72), rgb(0xD9A35C), 0.40)
    part.fill(box(middle - 0.027, 0.545, middle + 0.027, 0.592, 0.003), _CREAM)
    part.fill(
        outline(box(middle - 0.025, 0.547, middle + 0.025, 0.590, 0.003), 0.0016), rgb(0xA3352E)
    )
    _centred(part, "OPEN", middle, 0.570, 0.00195, 1.2, rgb(0xA3352E))
    _centred(part, "please come in", middle, 0.5835, 0.00072, 0.85, _INK)
    part.fill(box(middle - 0.020, 0.758, middle + 0.020, 0.770, 0.002), rgb(0xC9A45C))
    part.fill(circle(x1 - 0.009, 0.735, 0.0062), rgb(0xE3C47A))
    part.fill(
        outline(box(x0 + 0.012, 0.788, x1 - 0.012, 0.876), 0.003),
        tinted(shop.paint, (0, 0, 0), 0.5),
    )
    number = f"{25 + 2 * _SHOPS.index(shop) - 4}"
    _centred(part, number, middle, 0.736, 0.0026, 1.1, rgb(0xF0D89C))


def _pavement(canvas: Canvas) -> None:
    """Flagstones and a kerb."""
    part = canvas.crop((-9.0, 0.895, 9.0, 9.0))
    if part is None:
        return
    x, y = part.grid
    deep = 1.0 / (y - 0.80)
    u, v = (x - 0.5) * deep * 0.75, deep * 0.62
    joint = np.maximum(
        stripes(u + 0.01, 0.03, part.px * 6.0), stripes(v + 0.02, 0.05, part.px * 30.0)
    )
    rough = grit(x * 140.0, y * 200.0, 21, 3, part.px * 200.0)
    tint = scaled(
        gradient(speckle(u, v, 22), (0.0, rgb(0x8F8B84)), (1.0, rgb(0xB5AFA5))), 0.94 + 0.22 * rough
    )
    part.blend(washed(tint, rgb(0x55504A), joint * 0.8), part.cover(0.900 - y + 0.0 * x))
    part.blend(_INK, 0.42 * smooth(y, 0.925, 0.898) * part.cover(0.900 - y + 0.0 * x))


def _plates(canvas: Canvas) -> None:
    """The street's name, a poster and a parking notice on the wall."""
    plate = box(0.206, 0.046, 0.286, 0.086, 0.004)
    canvas.fill(plate, rgb(0xF4F2EA))
    canvas.fill(outline(box(0.2085, 0.0485, 0.2835, 0.0835, 0.003), 0.0018), rgb(0x1D3E7A))
    _centred(canvas, "MILL", 0.246, 0.0645, 0.0021, 1.15, rgb(0x1D3E7A))
    _centred(canvas, "LANE", 0.246, 0.0800, 0.0021, 1.15, rgb(0x1D3E7A))
    canvas.fill(box(0.447, 0.020, 0.527, 0.132), (0.05, 0.04, 0.03), 0.4, 0.006)
    canvas.fill(box(0.444, 0.016, 0.524, 0.128), rgb(0xF2C84B))
    _centred(canvas, "JAZZ", 0.484, 0.0440, 0.0034, 1.5, rgb(0x7A1F2A))
    _centred(canvas, "NIGHT", 0.484, 0.0720, 0.0027, 1.3, _INK)
    for index, text in enumerate(_POSTER):
        _centred(canvas, text, 0.484, 0.0860 + 0.0098 * index, 0.00082, 0.85, _INK)
    canvas.fill(circle(0.965, 0.065, 0.027), rgb(0xB8322E))
    canvas.fill(circle(0.965, 0.065, 0.021), rgb(0x24489A))
    _centred(canvas, "P", 0.9655, 0.0745, 0.0031, 1.5, rgb(0xFFFFFF))


def _chalkboard(canvas: Canvas) -> None:
    """The cafe's board on the pavement, with the day's dishes and prices."""
    canvas.fill(box(0.505, 0.760, 0.700, 0.990), (0.03, 0.02, 0.02), 0.55, 0.016)
    canvas.fill(box(0.500, 0.742, 0.690, 0.982, 0.004), rgb(0x7A5632))

    def slate(part: Canvas) -> list[Value]:
        smear = fbm(part.x * 16.0, part.y * 9.0, 23, 4, part.px * 16.0)
        return list(gradient(smear, (0.3, rgb(0x1C2422)), (0.75, rgb(0x3C4744))))

    canvas.fill(box(0.510, 0.752, 0.680, 0.972), slate)
    chalk = rgb(0xF4F0E4)
    _centred(canvas, "Today", 0.595, 0.7860, 0.0038, 0.9, rgb(0xF6D77A))
    canvas.fill(
        ribbon((0.540, 0.796), (0.570, 0.793), (0.620, 0.797), (0.652, 0.794), width=0.002),
        chalk,
        0.8,
    )
    for index, (dish, price) in enumerate(_BOARD):
        y = 0.8240 + 0.0232 * index
        write(canvas, dish, (0.5185, y), 0.00156, 0.85, chalk)
        write(canvas, price, (0.672 - breadth(price) * 0.00156, y), 0.00156, 0.85, rgb(0xF6D77A))
    _centred(canvas, "please pay at the bar", 0.595, 0.9645, 0.00112, 0.85, chalk)


def _hanging(canvas: Canvas) -> None:
    """An iron bracket with an oval sign that swings from it."""
    canvas.fill(line((0.690, 0.062), (0.762, 0.062), 0.005), _INK)
    canvas.fill(ribbon((0.692, 0.040), (0.712, 0.046), (0.730, 0.060), width=0.0036), _INK)
    for x in (0.706, 0.744):
        canvas.fill(line((x, 0.062), (x, 0.084), 0.0018), _INK)
    canvas.fill(ellipse(0.731, 0.119, 0.050, 0.038), (0.02, 0.02, 0.02), 0.5, 0.010)
    canvas.fill(ellipse(0.725, 0.113, 0.050, 0.036), rgb(0xC9A45C))
    canvas.fill(ellipse(0.725, 0.113, 0.046, 0.032), rgb(0x22375E))
    _centred(canvas, "MAPS", 0.725, 0.1140, 0.0028, 1.2, rgb(0xF0D89C))
    _centred(canvas, "bought and sold", 0.725, 0.1275, 0.00094, 0.85, _CREAM)
