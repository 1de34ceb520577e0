"""ILNIQE: how far the statistics of each patch of a picture are from those of pristine photographs.

The picture is resized to 524×524, and its 36 patches of 84×84 are described by 234 numbers at full
and at half size: generalised Gaussians fitted to the MSCN field and to the products of neighbours
in it, to colour gradients, to log-Gabor responses and to their gradients; Weibull distributions
fitted to the magnitudes of those gradients; means and variances of logarithmic colours. Projected
onto the 430 principal axes of pristine photographs, whose patches have mean ν₀ and covariance Σ₀
there, with Σ the covariance of this picture's patches,

    ILNIQE = mean over patches of √((x − ν₀)ᵀ ((Σ + Σ₀)/2)⁺ (x − ν₀)).

Zhang, Zhang, Bovik: A feature-enriched completely blind image quality evaluator. IEEE Transactions
on Image Processing 24(8), 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

from convergebench import weights
from convergebench.bands import Scratch, in_bands
from convergebench.errors import MetricUnavailable
from convergebench.imresize import imresize
from convergebench.metric import (
    KnownAnswer,
    LiftedMetric,
    MetricSpec,
    Needs,
    NoScore,
    Picture,
)
from convergebench.metrics.gaussians import (
    Moments,
    block_moments,
    fit_asymmetric,
    neighbour_moments,
    scales,
)
from convergebench.metrics.loggabor import bank
from convergebench.metrics.weibull import fit_weibull

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Field = NDArray[np.float32]

SIDE: Final = 524
PATCH: Final = 84
ACROSS: Final = SIDE // PATCH
PATCHES: Final = ACROSS**2
FEATURES: Final = 2 * 234
OPPONENT: Final = np.array([[0.3, 0.04, -0.35], [0.34, -0.6, 0.17], [0.06, 0.63, 0.27]])
"""Two colour differences and lightness (Geusebroek et al. 2001)."""
NOTHING: Final = 1e-9
"""Below this, a filtered plane is what float64 leaves of zero; other values are far above."""
TINY: Final = float(np.finfo(np.float64).eps)
"""Added to magnitudes, which may be zero, before their logarithm is taken."""
INFINITE: Final = 10000.0
"""What the authors put in the place of an infinite feature."""


@dataclass(frozen=True)
class Template:
    """What is known of pristine photographs.

    Attributes:
        centre: Mean of their features.
        axes: Features × axes along which theirs are uncorrelated with variance 1.
        mean: Of the model, along those axes.
    """

    centre: Doubles
    axes: Doubles
    mean: Doubles

    @staticmethod
    def of(mean: Doubles, covariance: Doubles, centre: Doubles, axes: Doubles) -> Template:
        """From the authors' form, which has a covariance along other axes.

        Raises:
            numpy.linalg.LinAlgError: The covariance is not positive definite.
        """
        from scipy.linalg import solve_triangular

        root = np.linalg.cholesky(covariance)
        return Template(
            centre,
            np.ascontiguousarray(solve_triangular(root, axes.T, lower=True).T),
            solve_triangular(root, mean, lower=True),
        )


def read_template(path: Path) -> Template:
    """The template from the authors' file.

    Raises:
        MetricUnavailable: It is no such file.
    """
    found = weights.arrays(path)
    parts = [found.get(f"templateModel/{n}") for n in range(4)]
    mean, covariance, centre, axes = (np.asarray([] if p is None else p, float) for p in parts)
    count = mean.size
    shapes = (covariance.shape, centre.size, axes.shape)
    if shapes != ((count, count), FEATURES, (FEATURES, count)):
        raise MetricUnavailable(
            f"{path} is not ILNIQE's template: expected mean, covariance, centre and axes of"
            f" {FEATURES} features in templateModel"
        )
    try:
        return Template.of(mean.ravel(), covariance, centre.ravel(), axes)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise MetricUnavailable(f"{path} is not ILNIQE's template: {error}") from error


def normalised(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture as MATLAB's `imresize` brings 8-bit samples to 524×524.

    One side after the other, the one that grows less first, and rounded to 8 bits after each.
    """
    height, width = pixels.shape[:2]
    by_height = (SIDE, width), (SIDE, SIDE)
    by_width = (height, SIDE), (SIDE, SIDE)
    planes = []
    for plane in cv2.split(pixels):
        for size in by_height if height >= width else by_width:
            if plane.shape != size:
                levels = imresize(plane, size=size)
                levels += 0.5
                plane = np.clip(np.floor(levels, out=levels), 0, 255).astype(np.uint8)
        planes.append(plane)
    return np.stack(planes, axis=2)


def patch_features(picture: Picture) -> Doubles:
    """Patches × 468 features, row by row of patches, computed once per picture.

    Rows have NaN where a distribution cannot be fitted, as in a patch without texture.
    """
    return picture.shared("ilniqe", lambda p: features(normalised(p.pixels)))


def features(pixels: NDArray[np.uint8]) -> Doubles:
    """Patches × 468 features of a picture of 524×524."""
    colours: Doubles = pixels[: ACROSS * PATCH, : ACROSS * PATCH].astype(np.float64)
    taps = _gaussian(6, 0.9)
    smooth = cv2.sepFilter2D(
        colours, -1, taps, taps, anchor=(2, 2), borderType=cv2.BORDER_REPLICATE
    )
    found = np.empty((PATCHES, FEATURES))
    half = FEATURES // 2
    jobs = [
        *_jobs(colours, 1, found[:, :half]),
        *_jobs(np.ascontiguousarray(smooth[::2, ::2]), 2, found[:, half:]),
    ]
    # each job is a band of its own
    in_bands(len(jobs), 1, lambda number, _, scratch: jobs[number](scratch))
    return found


def _jobs(colours: Doubles, scale: int, found: Doubles) -> list[Callable[[Scratch], None]]:
    """What there is to do at one scale; each job fills its columns of `found`."""
    side = PATCH // scale
    planes: list[Doubles] = [np.asarray(p) for p in cv2.split(cv2.transform(colours, OPPONENT))]
    taps = _derivative_taps(1.66 / scale**0.28)
    spectrum = np.fft.fft2(planes[2])
    wavelengths = tuple(2.4 / scale**0.87 * 1.31**n for n in range(3))
    filters = bank(*spectrum.shape, wavelengths, 4, 0.55, math.pi / 4 / 1.1)

    def fields(scratch: Scratch) -> None:
        found[:, 0:18] = _contrast(planes[2], side)
        found[:, 24:30] = _colours(colours, side)

    def plane(number: int, scratch: Scratch) -> None:
        slopes = [
            np.where(np.abs(slope) < NOTHING, 0, slope).astype(np.float32)
            for slope in _slopes(planes[number], taps, scratch)
        ]
        found[:, 18 + 2 * number : 20 + 2 * number] = _magnitude(slopes, side, scratch)
        found[:, 30 + 4 * number : 34 + 4 * number] = _fitted(slopes, side, scratch)

    def response(number: int, passes: Field, scratch: Scratch) -> None:
        for n, part in enumerate(_response(spectrum, passes, scratch), 2 * number):
            slopes = _slopes(part, taps, scratch)
            found[:, 42 + 2 * n : 44 + 2 * n] = _fitted([part], side, scratch)
            found[:, 90 + 4 * n : 94 + 4 * n] = _fitted(slopes, side, scratch)
            found[:, 186 + 2 * n : 188 + 2 * n] = _magnitude(slopes, side, scratch)

    return [
        fields,
        *(partial(plane, n) for n in range(3)),
        *(partial(response, n, f) for n, f in enumerate(filters.reshape(-1, *spectrum.shape))),
    ]


def _slopes(
    plane: NDArray[Any], taps: tuple[Doubles, Doubles], scratch: Scratch
) -> list[NDArray[Any]]:
    """Gaussian derivatives across and down; beyond the border is zero."""
    kernels = {"across": taps, "down": taps[::-1]}
    kind = plane.dtype.type
    return [
        cv2.sepFilter2D(
            plane, -1, x, y, dst=scratch(n, plane.shape, kind), borderType=cv2.BORDER_CONSTANT
        )
        for n, (x, y) in kernels.items()
    ]


def _magnitude(slopes: Sequence[Field], side: int, scratch: Scratch) -> Doubles:
    """Patches × scale and shape of the Weibull distribution of the gradient's magnitude."""
    size = scratch("size", slopes[0].shape, np.float32)
    # not cv2.magnitude, whose last bit depends on where in memory its arrays lie
    np.multiply(slopes[0], slopes[0], out=size)
    size += np.multiply(slopes[1], slopes[1], out=scratch("square", size.shape, np.float32))
    np.sqrt(size, out=size)
    size += np.float32(TINY)
    np.log(size, out=size)
    return np.stack(fit_weibull(_patches(size, side)), axis=1)


def _fitted(fields: Sequence[Field], side: int, scratch: Scratch) -> Doubles:
    """Patches × shape and mean scale of each field's generalised Gaussian."""
    tops = range(0, len(fields[0]), side)
    moments = Moments.joined(
        [
            Moments.joined([block_moments(f[t : t + side], side, scratch) for t in tops], axis=1)
            for f in fields
        ]
    )
    shape, left, right = fit_asymmetric(moments)
    scale = (left + right) / 2 * scales(shape)[0]
    return np.stack([shape, scale], axis=1).reshape(-1, shape.shape[1]).T


def _response(spectrum: NDArray[np.complex128], passes: Field, scratch: Scratch) -> Sequence[Field]:
    """Real and imaginary part of a filtered picture, from its spectrum."""
    shape = passes.shape
    filtered = scratch("filtered", shape, np.complex64)
    np.multiply(spectrum, passes, out=filtered, casting="same_kind")
    pairs = filtered.view(np.float32).reshape(*shape, 2)
    response = cv2.idft(pairs, scratch("response", pairs.shape, np.float32), cv2.DFT_SCALE)
    parts = [scratch(name, shape, np.float32) for name in ("real", "imaginary")]
    cv2.split(response, parts)
    return parts


def _contrast(plane: Doubles, side: int) -> Doubles:
    """Patches × 18 features of the MSCN field and of the products of its neighbours."""
    taps, border = _gaussian(5, 5 / 6), cv2.BORDER_REPLICATE
    mean = cv2.sepFilter2D(plane, -1, taps, taps, borderType=border)
    squares = cv2.sepFilter2D(plane * plane, -1, taps, taps, borderType=border)
    apart = plane - mean
    field = apart / (np.sqrt(np.abs(squares - mean * mean)) + 1)
    field = np.where(np.abs(apart) < NOTHING, 0, field).astype(np.float32)
    bands = [field[top : top + side] for top in range(0, len(field), side)]
    moments = Moments.joined([neighbour_moments(b, b[-1], side) for b in bands], axis=1)
    shape, left, right = fit_asymmetric(moments)
    ratio, mean = scales(shape)
    left, right = left * ratio, right * ratio
    found = [shape[0], (left[0] + right[0]) / 2]
    for direction in range(1, 5):
        found += [a[direction] for a in (shape, (right - left) * mean, left, right)]
    return np.stack(found, axis=1)


def _colours(colours: Doubles, side: int) -> Doubles:
    """Patches × means and variances of three logarithmic colours (Ruderman et al. 1998)."""
    logs = np.log(colours + 1e-5)
    logs -= logs.mean(axis=(0, 1))
    opponent = np.array([[1, 1, 1], [1, 1, -2], [1, -1, 0]])
    opponent = opponent / np.sqrt((opponent**2).sum(axis=1, keepdims=True))
    found: list[Doubles] = []
    for plane in cv2.split(cv2.transform(logs, opponent)):
        mean, square = (
            rows.reshape(-1, side).sum(axis=1) / side**2
            for rows in (
                plane.reshape(-1, side, plane.shape[1]).sum(axis=1),
                np.einsum("ijk,ijk->ik", *[plane.reshape(-1, side, plane.shape[1])] * 2),
            )
        )
        found += [mean, (square - mean**2) * side**2 / (side**2 - 1)]
    return np.stack(found, axis=1)


def _patches(plane: NDArray[Any], side: int) -> NDArray[Any]:
    """Patches × samples."""
    rows, columns = (length // side for length in plane.shape)
    return plane.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(rows * columns, -1)


def _gaussian(count: int, sigma: float) -> Doubles:
    taps: Doubles = np.exp(-((np.arange(count) - (count - 1) / 2) ** 2) / (2 * sigma**2))
    taps /= taps.sum()
    return taps


def _derivative_taps(sigma: float) -> tuple[Doubles, Doubles]:
    """The slope of a Gaussian, and the Gaussian, neither of them normalised."""
    radius = math.ceil(3 * sigma)
    x = np.arange(-radius, radius + 1)
    smooth: Doubles = np.exp(-(x**2) / (2 * sigma**2))
    return -x * smooth, smooth


def distance(found: Doubles, template: Template) -> float | NoScore:
    """The score of patches × 468 features."""
    finite = np.where(np.isinf(found), INFINITE, found)
    usable = finite[~np.isnan(finite).any(axis=1)]
    if not len(usable):
        return NoScore(f"none of its {PATCHES} patches has texture at both scales")
    points = (usable - template.centre) @ template.axes
    middle = points.mean(axis=0)
    # patches without texture stand at the mean of the others
    missing = np.tile(middle, (len(found) - len(usable), 1))
    apart = np.vstack([points, missing]) - template.mean
    # along the template's axes Σ₀ is 1 and Σ = SᵀS, so (1 + SᵀS)⁻¹ = 1 − Sᵀ(1 + SSᵀ)⁻¹S
    spread = (points - middle) / math.sqrt(max(1, len(points) - 1))
    seen = apart @ spread.T
    inner = np.linalg.solve(np.eye(len(spread)) + spread @ spread.T, seen.T).T
    squares = 2 * ((apart**2).sum(axis=1) - (seen * inner).sum(axis=1))
    return float(np.sqrt(np.maximum(squares, 0)).mean())


SPEC: Final = MetricSpec(
    name="ilniqe",
    version="1-524-rounded",
    kind="no-reference",
    higher_is_better=False,
    typical=(0, 100),
    title="ILNIQE (Zhang et al. 2015)",
    paper="https://doi.org/10.1109/TIP.2015.2426416",
    cost="medium",
    needs=Needs(weights=("ilniqe",)),
    known=KnownAnswer(77.699, 0.05, "pyiqa 0.1.16, of the picture resized in 8 bits"),
)


def ilniqe(template: Template | None = None) -> LiftedMetric:
    """ILNIQE: mean distance of a picture's patches from natural ones, as its authors computed it.

    From 0 up; about 20 for a good photograph. The picture is resized to 524×524, whatever its own
    shape, in 8 bits as MATLAB's `imresize` does it: rounded after each side. pyiqa does not round,
    which puts it 0.3 to 3.2 % away from the official values of its test set.

    Those are met to within 0.2 %. What is left: in flat parts the authors' program counts the
    signs of rounding noise and takes logarithms of its size; here both are exactly zero, and 2⁻⁵²
    is added before the logarithm, as there. A patch without texture, to which no distribution can
    be fitted, stands at the mean of the others; a picture of such patches alone has no score.

    Ours because pyiqa may not be used commercially and is some sixty times slower.
    """
    if template is not None:
        return LiftedMetric(SPEC, lambda view: distance(patch_features(view.frame), template))
    path = weights.find("ilniqe")
    load = cache(lambda: read_template(path))
    return LiftedMetric(SPEC, lambda view: distance(patch_features(view.frame), load()))


ilniqe.spec = SPEC  # type: ignore[attr-defined]
