"""How training chains of `drift-nr` are damaged: one step of each manner, with random options.

A manner is made from dice that settle its options, and is then the same at every step of a chain:
the single-effect media of the reference editors (`MEDIA`), manners of our own (`OWN`, `GROWING`),
and two of the imitations (`IMITATIONS`). Another two, `banana` and `pointillist`, are never used
here, nor is any autoencoder: they are for trying the metric on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from convergebench.editors.reference import media, personalities
from convergebench.frame import decode, encode

Pixels = NDArray[np.uint8]
Draw = np.random.Generator
Effect = Callable[[Pixels, Draw, int], Pixels]
Maker = Callable[[Draw], Effect]


def _noise(o: Draw) -> Effect:
    sigma = float(np.exp(o.uniform(np.log(0.8), np.log(6))))
    return lambda p, d, k: media.noise(p, d, sigma)


def _blur(o: Draw) -> Effect:
    sigma = float(o.uniform(0.35, 0.9))
    return lambda p, d, k: media.blur(p, sigma)


def _resample(o: Draw) -> Effect:
    scale = float(o.uniform(0.55, 0.95))
    return lambda p, d, k: media.resample(p, scale)


def _smooth(o: Draw) -> Effect:
    contrast, radius = float(o.uniform(8, 40)), int(o.integers(2, 5))
    return lambda p, d, k: media.smooth(p, contrast, radius)


def _scatter(o: Draw) -> Effect:
    density, contrast = float(np.exp(o.uniform(np.log(4e-4), np.log(6e-3)))), o.uniform(30, 120)
    return lambda p, d, k: media.scatter(p, d, density, contrast)


def _latent(o: Draw) -> Effect:
    keep, quantum = int(o.integers(4, 10)), float(o.uniform(4, 25))
    return lambda p, d, k: media.latent(p, k, keep, quantum, moving=True)


def _tint(o: Draw) -> Effect:
    amount = int(o.integers(1, 5))
    return lambda p, d, k: media.tint(p, amount)


def _jpeg(o: Draw) -> Effect:
    quality = int(o.integers(20, 75))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        moved = np.roll(p, (k % 3, k % 5), axis=(0, 1))  # a fixed grid would settle at once
        again = decode(encode(moved, "jpeg", quality=quality))[0]
        return np.roll(again, (-(k % 3), -(k % 5)), axis=(0, 1))

    return effect


def _speckle(o: Draw) -> Effect:
    """Coloured grain of some size."""
    sigma, size, colour = float(o.uniform(0.8, 5)), float(o.uniform(0.5, 3)), float(o.random())

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        grain = d.standard_normal(p.shape, np.float32)
        grain = np.float32(colour) * grain + np.float32(1 - colour) * grain[..., :1]
        return media.levels(p + media.gaussian(grain, size) * np.float32(sigma * 2.5 * size))

    return effect


def _sharpen(o: Draw) -> Effect:
    """What lies between two scales is amplified, with a trace of fresh grain."""
    gain, fine, grain = (
        float(o.uniform(0.04, 0.3)),
        float(o.uniform(0.3, 1.5)),
        float(o.uniform(0.3, 2)),
    )
    coarse = fine * float(o.uniform(1.6, 3))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        wide = p + d.standard_normal(p.shape, np.float32) * np.float32(grain)
        band = media.gaussian(wide, fine) - media.gaussian(wide, coarse)
        return media.levels(wide + np.float32(gain) * np.clip(band, -40, 40))

    return effect


def _warp(o: Draw) -> Effect:
    """Every pass bends the picture a little, and samples it anew."""
    reach, size = float(o.uniform(0.3, 1.2)), float(o.uniform(2, 8))
    method = int(o.choice([cv2.INTER_LINEAR, cv2.INTER_CUBIC]))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        rows, columns = np.indices(p.shape[:2], dtype=np.float32)
        dx, dy = (
            media.gaussian(d.standard_normal(p.shape[:2], np.float32), size)
            * np.float32(3 * size * reach)
            for _ in range(2)
        )
        bent = cv2.remap(p, columns + dx, rows + dy, method, borderMode=cv2.BORDER_REFLECT_101)
        return np.asarray(bent, np.uint8)

    return effect


def _glare(o: Draw) -> Effect:
    """Contrast and saturation creep up."""
    gain, colour = float(o.uniform(1.01, 1.06)), float(o.uniform(1.0, 1.08))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        wide = p.astype(np.float32)
        tone = media.luma(p)[..., None]
        return media.levels(
            128 + np.float32(gain) * (tone - 128) + np.float32(gain * colour) * (wide - tone)
        )

    return effect


def _posterise(o: Draw) -> Effect:
    """Levels are drawn to a coarse scale, and detail finer than a few pixels is flattened."""
    step, pull = float(o.uniform(8, 28)), float(o.uniform(0.1, 0.4))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        calm = np.asarray(cv2.medianBlur(p, 3), np.float32)
        nearest = np.rint(calm / np.float32(step)) * np.float32(step)
        return media.levels(calm + np.float32(pull) * (nearest - calm))

    return effect


def _fade(o: Draw) -> Effect:
    """Fine detail weaker than some levels is lost, stronger detail is kept but for as much."""
    limit, size = float(o.uniform(0.3, 3)), float(o.uniform(0.6, 2.5))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        wide = p.astype(np.float32)
        soft = media.gaussian(wide, size)
        fine = wide - soft
        kept = np.sign(fine) * np.maximum(np.abs(fine) - np.float32(limit), 0)
        return media.levels(soft + kept)

    return effect


def _shock(o: Draw) -> Effect:
    """Osher and Rudin's shock filter: light areas and dark ones grow until they meet."""
    pull, size = float(o.uniform(0.05, 0.35)), float(o.uniform(0.7, 2.0))
    square = np.ones((3, 3), np.uint8)

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        curved = cv2.Laplacian(media.gaussian(media.luma(p), size), cv2.CV_32F)
        side = np.tanh(np.asarray(curved, np.float32) / 2)[..., None]
        wide = p.astype(np.float32)
        light, dark = (np.asarray(f(p, square), np.float32) for f in (cv2.dilate, cv2.erode))
        grown = np.maximum(-side, 0) * (light - wide) + np.maximum(side, 0) * (dark - wide)
        return media.levels(wide + np.float32(pull) * grown)

    return effect


def _resonance(o: Draw) -> Effect:
    """A linear map near the identity, the same at every step: some waves grow, others die.

    What an autoencoder does to a picture that it is given again and again, to first order.
    """
    reach = int(o.choice([3, 5, 7]))
    kernels = o.standard_normal((3, 3, reach, reach)).astype(np.float32)
    kernels -= kernels.mean(axis=(2, 3), keepdims=True) * np.float32(o.random())
    waves = np.abs(np.fft.fft2(kernels, (32, 32))).max()
    kernels *= np.float32(o.uniform(0.04, 0.3) / waves)
    limit = np.float32(o.uniform(8, 60))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        wide = p.astype(np.float32) - 128
        change = np.zeros_like(wide)
        for target in range(3):
            for source in range(3):
                plane = np.ascontiguousarray(wide[..., source])
                change[..., target] += cv2.filter2D(plane, cv2.CV_32F, kernels[target, source])
        return media.levels(wide + limit * np.tanh(change / limit) + 128)

    return effect


def _specks(o: Draw) -> Effect:
    """Light and dark blobs of some size, anywhere."""
    density, size = float(np.exp(o.uniform(np.log(3e-4), np.log(5e-3)))), float(o.uniform(0.5, 2))
    contrast = float(o.uniform(20, 90))

    def effect(p: Pixels, d: Draw, k: int) -> Pixels:
        chosen = d.random(p.shape[:2], np.float32) < density / size
        sign = d.choice([-1.0, 1.0], p.shape[:2])
        blobs = media.gaussian((chosen * sign).astype(np.float32), size)
        return media.levels(p + (blobs * np.float32(2 * np.pi * size**2 * contrast))[..., None])

    return effect


def _painter(o: Draw) -> Effect:
    amount = float(o.uniform(0.5, 2))
    return lambda p, d, k: personalities.painted(p, amount)


def _wrinkle(o: Draw) -> Effect:
    amount = float(o.uniform(0.5, 2))
    return lambda p, d, k: personalities.wrinkled(p, d, amount)


MEDIA: Final[dict[str, Maker]] = {
    "noise": _noise,
    "blur": _blur,
    "resample": _resample,
    "smooth": _smooth,
    "scatter": _scatter,
    "latent": _latent,
    "tint": _tint,
    "jpeg": _jpeg,
}
OWN: Final[dict[str, Maker]] = {
    "speckle": _speckle,
    "sharpen": _sharpen,
    "warp": _warp,
    "glare": _glare,
    "posterise": _posterise,
    "fade": _fade,
    "shock": _shock,
    "resonance": _resonance,
}


GROWING: Final[dict[str, Maker]] = {
    "specks": _specks,
    "resonance": _resonance,
    "sharpen": _sharpen,
    "speckle": _speckle,
    "shock": _shock,
}
"""Manners that add what was not there, for pictures in which there is little."""
IMITATIONS: Final[dict[str, Maker]] = {"painter": _painter, "wrinkle": _wrinkle}


def gently(name: str, draw: Draw) -> Effect:
    """A manner of which every step does only a share of the change."""
    effect = {**OWN, **GROWING, **IMITATIONS}[name](draw)
    share = np.float32(draw.uniform(0.25, 0.7))

    def part(p: Pixels, d: Draw, k: int) -> Pixels:
        changed = effect(p, d, k).astype(np.float32)
        mixed = p + share * (changed - p)
        return media.levels(mixed + d.random(p.shape, np.float32) - np.float32(0.5))  # dithered

    return part


def manner(draw: Draw) -> tuple[str, Effect]:
    """A way of decay: one of `MEDIA` or `OWN`, or two of them in turn at every step."""
    known = {**MEDIA, **OWN}
    first = str(draw.choice(list(known)))
    if draw.random() < 0.6:
        return first, known[first](draw)
    second = str(draw.choice([name for name in known if name != first]))
    one, other = known[first](draw), known[second](draw)
    return f"{first}+{second}", lambda p, d, k: other(one(p, d, k), d, k)
