"""Defocus and motion blur: what a lens and a hand do to light.

Defocus follows the thin lens: a point becomes the aperture's shape, as large as it is far from
the focal plane (the circle of confusion, Potmesil and Chakravarty 1981); the picture is layered by
radius and blended, as there is no depth to be had. Motion follows the random walk with inertia of
Boracchi and Foi (2012); the shake's roll makes it vary over the picture, by blended local kernels
(Hirsch et al. 2010, efficient filter flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from convergebench.degrading.chance import between, field, normalised, places
from convergebench.degrading.light import (
    Pixels,
    Plane,
    convolved,
    encoded,
    linear,
    softened,
    to_bytes,
    unit,
)

LAYERS: Final = 5
"""Radii that a defocused picture is blended of."""


@dataclass(frozen=True)
class Defocus:
    """Parameters of defocus.

    Attributes:
        least: Radius of the circle of confusion where the picture is sharpest, nominal pixels.
        most: Radius where it is least sharp, nominal pixels.
        bloom: How far clipped highlights are taken to have been brighter than white.
        noise: Sensor noise, standard deviation of a mid-grey in units of 1/255.
    """

    least: float
    most: float
    bloom: float
    noise: float


DEFOCUS: Final = (
    Defocus(least=1.5, most=6.0, bloom=2.0, noise=0.8),
    Defocus(least=4.0, most=12.0, bloom=4.0, noise=1.0),
    Defocus(least=8.0, most=22.0, bloom=6.0, noise=1.2),
)


@dataclass(frozen=True)
class Motion:
    """Parameters of motion blur.

    Attributes:
        extent: Longest distance between two places of the trajectory, nominal pixels.
        roll: Roll of the camera during the exposure, degrees.
        jerk: How often the hand jerks: the expected number of impulses.
        noise: Sensor noise, standard deviation of a mid-grey in units of 1/255.
    """

    extent: float
    roll: float
    jerk: float
    noise: float


MOTION: Final = (
    Motion(extent=14.0, roll=0.15, jerk=0.5, noise=0.8),
    Motion(extent=32.0, roll=0.35, jerk=1.0, noise=1.0),
    Motion(extent=60.0, roll=0.7, jerk=1.5, noise=1.2),
)


def disc(radius: float, blades: int = 0, turn: float = 0.0) -> Plane:
    """A disc of that radius in pixels, as a kernel of odd side that sums to 1.

    With blades it is a polygon with bulging sides, as the leaves of an iris make it.
    """
    half = max(0, int(np.ceil(radius - 0.5)))
    fine = 8
    steps = (np.arange((2 * half + 1) * fine) + 0.5) / fine - half - 0.5
    y, x = np.meshgrid(steps, steps, indexing="ij")
    reach = np.full_like(x, max(radius, 1e-6))
    if blades:
        sector = 2.0 * np.pi / blades
        angle = np.mod(np.arctan2(y, x) + turn, sector) - sector / 2
        polygon = np.cos(sector / 2) / np.cos(angle)
        reach *= 0.45 + 0.55 * polygon
    inside = (np.sqrt(x * x + y * y) <= reach).astype(np.float64)
    side = 2 * half + 1
    kernel = inside.reshape(side, fine, side, fine).mean(axis=(1, 3))
    if kernel.sum() <= 0.0:
        kernel[half, half] = 1.0
    return np.asarray(kernel / kernel.sum(), np.float64)


def depth(rng: np.random.Generator, shape: tuple[int, ...]) -> Plane:
    """How far each pixel is from the focal plane, in [0, 1]: a tilted plane with bumps."""
    y, x = places(shape)
    turn = rng.uniform(0.0, 2.0 * np.pi)
    plane = np.cos(turn) * x + np.sin(turn) * y
    bumps = field(rng, shape, 2.0)
    far = normalised(plane) + 0.22 * bumps
    focus = float(rng.uniform(0.1, 0.9))
    return normalised(np.abs(far - focus))


def defocus(pixels: Pixels, p: Defocus, rng: np.random.Generator) -> Pixels:
    """Out of focus, more so in some places than in others."""
    light = linear(pixels)
    one = unit(pixels.shape)
    light = light * (1.0 + p.bloom * _sparks(light, 40.0 * one))[..., None]
    away = depth(rng, pixels.shape)
    blades, turn = int(rng.integers(6, 10)), float(rng.uniform(0.0, np.pi))
    radii = np.linspace(p.least, p.most, LAYERS) * one
    place = away * (LAYERS - 1)
    done = np.zeros_like(light)
    for layer, radius in enumerate(radii):
        weight = np.maximum(0.0, 1.0 - np.abs(place - layer))[..., None]
        done += weight * convolved(light, disc(float(radius), blades, turn))
    return to_bytes(with_noise(encoded(done), p.noise, rng))


def _sparks(light: Plane, reach: float) -> Plane:
    """Where small highlights are clipped, in [0, 1].

    They were brighter than the file can say: only so does a lamp become a disc of light. A white
    sky or page is as bright as it looks, so what is white far around does not count.
    """
    white = between(light.min(axis=2), 0.75, 0.98)
    return white * np.maximum(0.0, 1.0 - 1.8 * softened(white, reach))


def trajectory(rng: np.random.Generator, jerk: float, steps: int = 400) -> Plane:
    """Where a shaken camera points during an exposure: steps×2, of extent 1 and centred."""
    velocity = _heading(rng)
    at = np.zeros(2)
    path = np.empty((steps, 2))
    bend = rng.normal(0.0, 0.008)
    for step in range(steps):
        bend = 0.98 * bend + rng.normal(0.0, 0.0022)
        turned = np.array([velocity[0] - bend * velocity[1], velocity[1] + bend * velocity[0]])
        velocity = turned + rng.normal(0.0, 0.02, 2) - 0.0008 * at
        if rng.random() < jerk / steps:
            velocity = 0.4 * velocity + 0.9 * _heading(rng)
        speed = float(np.sqrt(velocity @ velocity))
        velocity = velocity * (0.97 + 0.03 * (0.8 / max(speed, 1e-6)))
        at = at + velocity
        path[step] = at
    path -= path.mean(axis=0)
    apart = path[:, None, :] - path[None, :, :]
    return np.asarray(path / np.sqrt((apart**2).sum(axis=2).max()), np.float64)


def _heading(rng: np.random.Generator) -> Plane:
    angle = rng.uniform(0.0, 2.0 * np.pi)
    return np.array([np.cos(angle), np.sin(angle)])


def traced(path: Plane) -> Plane:
    """The kernel of a path in pixels (rows, columns): odd sides, sums to 1, same centroid."""
    half = int(np.ceil(np.abs(path).max())) + 1
    side = 2 * half + 1
    kernel = np.zeros((side, side))
    base = np.floor(path).astype(np.intp)
    part = path - base
    for down in (0, 1):
        for right in (0, 1):
            share = np.abs(1 - down - part[:, 0]) * np.abs(1 - right - part[:, 1])
            np.add.at(kernel, (base[:, 0] + half + down, base[:, 1] + half + right), share)
    return np.asarray(kernel / kernel.sum(), np.float64)


def motion(pixels: Pixels, p: Motion, rng: np.random.Generator) -> Pixels:
    """Shaken while the shutter was open."""
    light = linear(pixels)
    height, width = light.shape[:2]
    one = unit(pixels.shape)
    path = trajectory(rng, p.jerk) * p.extent * one
    way = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.6, 1.0))
    swing = way * np.linspace(-0.5, 0.5, len(path))
    swing += 0.3 * (path[:, 0] / max(p.extent * one, 1e-9))
    roll = np.radians(p.roll) * (swing - swing.mean())
    done = np.zeros_like(light)
    for rows, high in _bands(height):
        for columns, wide in _bands(width):
            # The local kernel: the path, and what the roll adds this far from the middle.
            y = rows[1] - height / 2
            x = columns[1] - width / 2
            local = path + np.stack([roll * x, -roll * y], axis=1)
            kernel = traced(local - local.mean(axis=0))
            reach = len(kernel)
            top, bottom = max(0, rows[0] - reach), min(height, rows[2] + reach)
            left, right = max(0, columns[0] - reach), min(width, columns[2] + reach)
            part = convolved(light[top:bottom, left:right], kernel)
            part = part[rows[0] - top : rows[2] - top, columns[0] - left : columns[2] - left]
            weight = (high[:, None] * wide)[..., None]
            done[rows[0] : rows[2], columns[0] : columns[2]] += weight * part
    return to_bytes(with_noise(encoded(done), p.noise, rng))


def _bands(length: int) -> list[tuple[tuple[int, int, int], Plane]]:
    """Three overlapping stretches of a side: (start, middle, stop), and weights, 1 together."""
    place = (np.arange(length) + 0.5) / length
    found = []
    for node in (0.0, 0.5, 1.0):
        weight = np.maximum(0.0, 1.0 - np.abs(place - node) * 2.0)
        inside = np.flatnonzero(weight > 0.0)
        start, stop = int(inside[0]), int(inside[-1]) + 1
        found.append(((start, round(node * length), stop), weight[start:stop]))
    return found


def with_noise(value: Plane, deviation: float, rng: np.random.Generator) -> Plane:
    """With a little sensor noise, which is less in the highlights of an sRGB picture.

    Of pictures smaller than nominal each pixel is the mean of several, and the noise is less.
    """
    calm = min(1.0, max(0.35, unit(value.shape)))
    strength = calm * deviation / 255.0 * (1.15 - 0.6 * value)
    return value + strength * rng.standard_normal(value.shape)
