"""The scene `portrait`: a painted likeness of an invented person, seen from the front."""

from __future__ import annotations

import numpy as np

from convergebench.drawing.canvas import Canvas, gradient, rgb, scaled, washed
from convergebench.drawing.fields import (
    Field,
    Value,
    bearing,
    bump,
    fbm,
    length,
    noise,
    smooth,
    unit,
    wave,
)
from convergebench.drawing.shading import dome, lambert
from convergebench.drawing.shapes import blob, both, circle, ellipse, melt, ribbon

_SKIN = (
    (0.00, rgb(0x4E2A26)),
    (0.22, rgb(0x8A4E3E)),
    (0.45, rgb(0xC4805F)),
    (0.66, rgb(0xE2AA84)),
    (0.86, rgb(0xF3CBA6)),
    (1.05, rgb(0xFDE6CB)),
)
_HAIR = (
    (0.10, rgb(0x150B08)),
    (0.42, rgb(0x3A1F15)),
    (0.70, rgb(0x6E3F26)),
    (1.00, rgb(0xB4794A)),
)
_EYES = ((0.4345, 1.0), (0.5655, -1.0))
_EYE_Y = 0.398

_FACE = melt(0.05, ellipse(0.5, 0.365, 0.1480, 0.180), ellipse(0.5, 0.462, 0.1130, 0.152))
_MANE = blob(
    (0.500, 0.112), (0.590, 0.130), (0.665, 0.205), (0.690, 0.320), (0.700, 0.450), (0.735, 0.570),
    (0.725, 0.690), (0.640, 0.740), (0.500, 0.700), (0.360, 0.740), (0.268, 0.690), (0.262, 0.570),
    (0.300, 0.450), (0.310, 0.320), (0.335, 0.205), (0.410, 0.130), steps=5,
)  # fmt: skip
_NECK = blob(
    (0.438, 0.500), (0.562, 0.500), (0.560, 0.620), (0.582, 0.672), (0.640, 0.712), (0.560, 0.860),
    (0.500, 0.900), (0.440, 0.860), (0.360, 0.712), (0.418, 0.672), (0.440, 0.620), steps=4,
)  # fmt: skip
_COAT = blob(
    (0.070, 1.060), (0.110, 0.880), (0.200, 0.785), (0.335, 0.715), (0.395, 0.685), (0.440, 0.790),
    (0.500, 0.865), (0.560, 0.790), (0.605, 0.685), (0.665, 0.715), (0.800, 0.785), (0.890, 0.880),
    (0.930, 1.060), (0.950, 1.500), (0.500, 1.600), (0.050, 1.500), steps=5,
)  # fmt: skip
# The hair that falls before the face, to either side of a parting left of the middle.
_SWEEP_RIGHT = blob(
    (0.455, 0.150), (0.560, 0.143), (0.645, 0.210), (0.674, 0.330), (0.676, 0.450), (0.702, 0.560),
    (0.712, 0.640), (0.690, 0.715), (0.668, 0.650), (0.640, 0.560), (0.634, 0.460), (0.634, 0.380),
    (0.616, 0.318), (0.568, 0.272), (0.510, 0.246), (0.468, 0.222), steps=5,
)  # fmt: skip
_SWEEP_LEFT = blob(
    (0.482, 0.148), (0.420, 0.150), (0.356, 0.215), (0.328, 0.330), (0.324, 0.450), (0.300, 0.560),
    (0.290, 0.640), (0.308, 0.715), (0.334, 0.650), (0.360, 0.560), (0.366, 0.460), (0.366, 0.380),
    (0.380, 0.318), (0.410, 0.272), (0.445, 0.240), (0.466, 0.218), steps=5,
)  # fmt: skip


def portrait(canvas: Canvas) -> None:
    """A young woman with long brown hair before a dark ground, lit from the upper left."""
    _ground(canvas)
    canvas.fill(_MANE, lambda part: _hair(part, 0.80))
    _bust(canvas)
    canvas.fill(_FACE, _skin)
    for x, side in _EYES:
        _eye(canvas, x, side)
    _nose(canvas)
    _lips(canvas)
    for sweep in (_SWEEP_RIGHT, _SWEEP_LEFT):
        canvas.fill(sweep, rgb(0x2A120C), 0.60, 0.020)
        canvas.fill(sweep, lambda part: _hair(part, 1.0), 1.0, 0.006)
    parting = ribbon((0.473, 0.116), (0.464, 0.170), (0.467, 0.226), width=0.004)
    canvas.fill(parting, rgb(0x8A5A44), 0.55, 0.004)
    _varnish(canvas)


def _ground(canvas: Canvas) -> None:
    """Broad dark brushwork, lighter behind the shaded side of the head."""
    x, y = canvas.grid
    sway = fbm(x * 2.2, y * 2.2, 5, 3)
    stroke = fbm(x * 5.0 + sway * 5.0, y * 16.0 - sway * 9.0 + x * 8.0, 6, 3, canvas.px * 18.0)
    light = 0.50 * stroke + 0.35 * sway + 0.42 * bump(length(x - 0.80, (y - 0.42) * 0.8), 0.0, 0.75)
    tint = gradient(
        light,
        (0.15, rgb(0x161C1D)),
        (0.50, rgb(0x33433F)),
        (0.80, rgb(0x66705A)),
        (1.10, rgb(0xA09A72)),
    )
    canvas.blend(tint, 1.0)


def _skin(part: Canvas) -> list[Value]:
    """Colours of the face: light on an egg, changed by the forms upon it."""
    x, y = part.grid
    across, down = (x - 0.5) * (1.0 / 0.162), (y - 0.405) * (1.0 / 0.245)
    light = 0.10 + 0.82 * lambert(dome(across, down * 0.72))
    mirror = np.abs(x - 0.5)

    def mound(u: Field, v: Field, height: float) -> Field:
        fall = np.maximum(1.0 - u * u - v * v, 0.0)
        return fall * fall * height

    def form(cx: float, cy: float, rx: float, ry: float, height: float) -> Field:
        return mound((x - cx) / rx, (y - cy) / ry, height)

    def twin(cx: float, cy: float, rx: float, ry: float, height: float) -> Field:
        return mound((mirror - cx) / rx, (y - cy) / ry, height)

    light = light + form(0.465, 0.285, 0.11, 0.075, 0.12)  # forehead
    light = light + twin(0.0635, 0.392, 0.052, 0.036, -0.20)  # eye sockets
    light = light + twin(0.030, 0.385, 0.020, 0.040, -0.16)  # beside the bridge
    light = light + form(0.497, 0.420, 0.015, 0.085, 0.17)  # ridge of the nose
    light = light + form(0.521, 0.445, 0.020, 0.070, -0.17)  # its far side
    light = light + form(0.499, 0.478, 0.025, 0.020, 0.13)  # tip
    light = light + form(0.508, 0.510, 0.036, 0.016, -0.20)  # shadow below it
    light = light + form(0.415, 0.455, 0.060, 0.050, 0.13)  # cheeks
    light = light + form(0.582, 0.452, 0.050, 0.045, 0.09)
    light = light + twin(0.062, 0.505, 0.024, 0.050, -0.07)  # from nose to mouth
    light = light + form(0.500, 0.565, 0.055, 0.014, -0.17)  # below the lower lip
    light = light + form(0.494, 0.592, 0.042, 0.026, 0.10)  # chin
    light = light + 0.03 * (fbm(x * 34.0, y * 34.0, 8, 3, part.px * 34.0) - 0.5)
    edge = smooth(_FACE.distance(x, y), -0.035, 0.004)
    light = light - edge * (0.10 + 0.14 * smooth(x, 0.44, 0.60))
    rose = (
        form(0.412, 0.468, 0.060, 0.048, 0.40)
        + form(0.588, 0.468, 0.060, 0.048, 0.36)
        + form(0.5, 0.482, 0.03, 0.025, 0.26)
    )
    return washed(gradient(light, *_SKIN), rgb(0xC9594A), rose)


def _eye(canvas: Canvas, x: float, side: float) -> None:
    """An eye with lids, lashes and brow; `side` is 1 on the viewer's left."""
    eye = canvas.placed(x, _EYE_Y, 0.0355)
    out, far = -side, side  # towards the temple, towards the nose
    almond = both(ellipse(0.0, 0.45, 1.0, 0.88), ellipse(0.0, -0.36, 1.0, 0.76))
    socket = ribbon((out * 0.95, 0.10), (0.0, -0.58), (far * 0.92, 0.10), width=0.42)
    eye.fill(socket, rgb(0x7A4433), 0.55, 0.22)
    pouch = ribbon((out * 0.85, 0.26), (0.0, 0.58), (far * 0.92, 0.24), width=0.24)
    eye.fill(pouch, rgb(0x9A5B48), 0.40, 0.18)
    eye.fill(
        almond,
        lambda part: gradient(
            part.y, (-0.42, rgb(0x94867E)), (0.05, rgb(0xEAE3D8)), (0.42, rgb(0xD6C6B9))
        ),
    )
    eye.fill(both(circle(0.01, -0.02, 0.46), almond), rgb(0x1E2B22))
    eye.fill(both(circle(0.01, -0.02, 0.415), almond), _iris)
    eye.fill(both(circle(0.01, -0.02, 0.19), almond), rgb(0x0A0807))
    eye.fill(both(ellipse(0.0, -0.38, 1.0, 0.32), almond), rgb(0x20120E), 0.45, 0.18)
    eye.fill(circle(-0.14, -0.17, 0.11), (1.0, 1.0, 0.98))
    eye.fill(circle(0.16, 0.17, 0.06), rgb(0xCFE0D8), 0.7)
    eye.fill(circle(far * 0.82, 0.09, 0.10), rgb(0xC9776A), 0.8, 0.06)
    lash = ribbon(
        (out * 1.08, -0.02), (out * 0.66, -0.30), (0.0, -0.43), (far * 0.60, -0.27),
        (far * 0.92, 0.12), width=0.20, end_width=0.09,
    )  # fmt: skip
    eye.fill(lash, rgb(0x1C0E0B), 0.95, 0.035)
    rim = ribbon((out * 0.88, 0.14), (0.0, 0.45), (far * 0.90, 0.18), width=0.075)
    eye.fill(rim, rgb(0x5A2E25), 0.6, 0.045)
    crease = ribbon((out * 0.92, -0.42), (0.0, -0.76), (far * 0.85, -0.42), width=0.10)
    eye.fill(crease, rgb(0x6B382B), 0.65, 0.09)
    brow = ribbon(
        (far * 1.00, -1.18), (out * 0.10, -1.56), (out * 1.15, -1.16), width=0.40, end_width=0.13
    )
    eye.fill(brow, lambda part: _brow(part, side), 0.88, 0.10)


def _brow(part: Canvas, side: float) -> list[Field]:
    """Short slanting hairs."""
    hairs = noise(part.x * 15.0 + part.y * 10.5 * side, part.y * 4.0, 9)
    return gradient(hairs, (0.2, rgb(0x2A150E)), (0.9, rgb(0x5B3626)))


def _iris(part: Canvas) -> list[Field]:
    """Hazel with green, darker rays, and lit from below as a lens is."""
    rays = noise(bearing(part.x, part.y) * 46.0 + 60.0, length(part.x, part.y) * 5.0, 4)
    return gradient(
        unit(0.45 + part.y * 0.92 + (rays - 0.5) * 0.7),
        (0.0, rgb(0x2E3B22)),
        (0.5, rgb(0x6E7A3C)),
        (1.0, rgb(0xB8A25A)),
    )


def _nose(canvas: Canvas) -> None:
    """Nostrils and the wings' edges; the form itself is in the light."""
    for side in (-1.0, 1.0):
        canvas.fill(
            ellipse(0.5 + side * 0.0150, 0.4930, 0.0085, 0.0042), rgb(0x4A1F1A), 0.85, 0.0035
        )
        wing = ribbon(
            (0.5 + side * 0.026, 0.470),
            (0.5 + side * 0.0325, 0.484),
            (0.5 + side * 0.027, 0.4945),
            width=0.005,
        )
        canvas.fill(wing, rgb(0x8A4A3A), 0.50 if side < 0 else 0.75, 0.0055)
    canvas.shade((0.486, 0.466, 0.504, 0.484), rgb(0xFFF1DF), 0.60)
    canvas.fill(ribbon((0.4935, 0.395), (0.4945, 0.455), width=0.005), rgb(0xFFEAD2), 0.40, 0.007)


def _lips(canvas: Canvas) -> None:
    """A closed mouth, faintly smiling."""
    y = 0.5385
    upper = blob(
        (0.4475, y - 0.0015), (0.470, y - 0.0095), (0.4905, y - 0.0150), (0.5, y - 0.0120),
        (0.5095, y - 0.0150), (0.530, y - 0.0095), (0.5525, y - 0.0015), (0.525, y + 0.0030),
        (0.5, y + 0.0020), (0.475, y + 0.0030), steps=4,
    )  # fmt: skip
    lower = blob(
        (0.4480, y - 0.001), (0.475, y + 0.0020), (0.5, y + 0.0010), (0.525, y + 0.0020),
        (0.5520, y - 0.001), (0.530, y + 0.0135), (0.5, y + 0.0190), (0.470, y + 0.0135), steps=4,
    )  # fmt: skip
    canvas.fill(
        lower,
        lambda part: gradient(
            part.y + (part.x - 0.5) * 0.06,
            (y, rgb(0x93352F)),
            (y + 0.009, rgb(0xCB6A5C)),
            (y + 0.019, rgb(0xA04A40)),
        ),
        0.95,
        0.0022,
    )
    canvas.fill(
        upper,
        lambda part: gradient(part.y, (y - 0.014, rgb(0xB4574C)), (y + 0.002, rgb(0x7E2B2B))),
        0.95,
        0.0022,
    )
    canvas.fill(
        ribbon(
            (0.4440, y - 0.0035),
            (0.473, y + 0.0020),
            (0.5, y + 0.0008),
            (0.527, y + 0.0020),
            (0.5560, y - 0.0035),
            width=0.0030,
        ),
        rgb(0x431313),
        0.9,
        0.0013,
    )
    canvas.shade((0.474, y + 0.0055, 0.506, y + 0.0135), rgb(0xFFE0D2), 0.55)
    for side in (-1.0, 1.0):
        canvas.shade(
            (0.5 + side * 0.0585 - 0.010, y - 0.011, 0.5 + side * 0.0585 + 0.010, y + 0.007),
            rgb(0x7A4030),
            0.40,
        )


def _strands(part: Canvas) -> Field:
    """Fine streaks along the hair: from the parting round the head, then straight down in waves."""
    x, y = part.grid
    dx = np.abs(x - 0.485) * (1.0 / 0.17)
    dy = np.minimum(y - 0.42, 0.0) * (1.0 / 0.27)
    sway = smooth(y, 0.36, 0.62) * (wave(y * 5.0 + 0.2) * 0.10 + dx * (y - 0.36) * 0.55)
    track = length(dx, dy) - sway + np.where(x < 0.467, 7.0, 0.0)
    run = y * 3.0 + dx * dy
    return noise(track * 30.0, run * 2.2, 21) * 0.42 + noise(track * 11.0, run * 1.4, 22) * 0.58


def _hair(part: Canvas, bright: float) -> list[Field]:
    """Brown hair with a band of light across its crown."""
    x, y = part.grid
    strands = _strands(part)
    crown = bump(length(x - 0.45, (y - 0.300) * 0.9), 0.120, 0.060) * smooth(y, 0.34, 0.22)
    light = 0.12 + 0.44 * strands + 0.30 * crown * (0.4 + strands) + 0.17 * smooth(x, 0.66, 0.32)
    light = light + 0.12 * bump(y, 0.57, 0.12) * (0.4 + strands) - 0.16 * smooth(y, 0.60, 0.74)
    inner = smooth(np.abs(x - 0.5), 0.185, 0.125) * smooth(y, 0.34, 0.50)
    return gradient(
        (light - 0.20 * inner) * (bright + (0.9 - bright) * smooth(y, 0.4, 0.6)), *_HAIR
    )


def _bust(canvas: Canvas) -> None:
    """Neck and breast with the shadow of the chin, then the coat with its collar."""

    def neck(part: Canvas) -> list[Field]:
        x, y = part.grid
        light = 0.72 - 10.0 * (x - 0.45) * (x - 0.45) - 0.50 * smooth(x, 0.44, 0.60)
        light = light - 0.62 * smooth(y, 0.690, 0.595) * smooth(
            length((x - 0.47) * 0.9, y - 0.52), 0.20, 0.10
        )
        light = (
            light
            + 0.16 * bump(y + 0.5 * np.abs(x - 0.5), 0.745, 0.03)
            - 0.10 * bump(x, 0.5, 0.02) * bump(y, 0.76, 0.06)
        )
        return gradient(light, *_SKIN)

    canvas.fill(_NECK, neck)
    canvas.fill(_FACE, rgb(0x3A1C17), 0.50, 0.030)
    canvas.fill(_COAT, rgb(0x1C0F0C), 0.45, 0.022)
    canvas.fill(_COAT, _cloth)
    canvas.fill(_COLLAR_LEFT, (0.02, 0.03, 0.05), 0.6, 0.016)
    canvas.fill(_COLLAR_LEFT, lambda part: scaled(_cloth(part), 1.15))
    canvas.fill(_COLLAR_RIGHT, (0.02, 0.03, 0.05), 0.6, 0.016)
    canvas.fill(_COLLAR_RIGHT, lambda part: scaled(_cloth(part), 0.80))
    for y in (0.905, 0.965, 1.04):
        canvas.fill(circle(0.502, y, 0.0085), rgb(0x0D1418))
        canvas.fill(circle(0.5, y - 0.001, 0.0075), rgb(0xC9A45C))
        canvas.fill(circle(0.4975, y - 0.0035, 0.0025), rgb(0xFFF0C4))


_COLLAR_LEFT = blob(
    (0.392, 0.672),
    (0.345, 0.700),
    (0.352, 0.760),
    (0.405, 0.815),
    (0.498, 0.890),
    (0.448, 0.795),
    (0.412, 0.730),
    steps=4,
)
_COLLAR_RIGHT = blob(
    (0.608, 0.672),
    (0.655, 0.700),
    (0.648, 0.760),
    (0.595, 0.815),
    (0.502, 0.890),
    (0.552, 0.795),
    (0.588, 0.730),
    steps=4,
)


def _cloth(part: Canvas) -> list[Field]:
    """Blue wool with soft folds falling from the shoulders."""
    x, y = part.grid
    fold = wave((x - 0.5) * (7.0 - 3.0 * y) + 0.6 * noise(x * 3.0, y * 3.0, 31) + 0.1)
    wool = fbm(x * 190.0, y * 190.0, 32, 2, part.px * 190.0) - 0.5
    light = 0.62 - 0.75 * (x - 0.34) + 0.14 * fold * smooth(y, 0.70, 0.95) + 0.10 * wool
    light = (
        light + 0.28 * bump(y + 0.35 * np.abs(x - 0.5), 0.83, 0.08) - 0.25 * smooth(y, 0.85, 1.2)
    )
    return gradient(
        light,
        (0.05, rgb(0x0A1420)),
        (0.45, rgb(0x1D3A52)),
        (0.80, rgb(0x3D6C86)),
        (1.1, rgb(0x8DB3BE)),
    )


def _varnish(canvas: Canvas) -> None:
    """Grain of the canvas, brushwork over all, and darker corners."""
    x, y = canvas.grid
    brush = fbm(x * 30.0 + y * 9.0, y * 64.0 - x * 18.0, 51, 2, canvas.px * 64.0) - 0.5
    corner = length(x - 0.48, (y - 0.45) * 0.9)
    canvas.planes[:] *= (1.0 + 0.085 * brush) * (1.0 - 0.42 * smooth(corner, 0.34, 0.95))
