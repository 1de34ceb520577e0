"""Named sets of metrics: tiers by cost, and one set for each study.

28,000 frames × 23 metrics are hundreds of CPU hours, so nobody should have to ask for all of them
by accident. Where a metric of a set cannot be used on this machine, scoring goes on without it and
says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from convergebench.errors import ConvergeBenchError, UnknownName
from convergebench.registry import metric_name, metric_spec, names

DEFAULT_SET: Final = "fast"

FAST: Final = (
    "psnr",
    "ssim",
    "ssim-rgb",
    "ssim-uniform",
    "ms-ssim",
    "ciede2000",
    "ciede2000-p95",
    "colour-cast",
    "colour-offset",
    "detail-loss",
    "noise",
    "sharpness",
)
ALIGNMENT: Final = (
    "registration-dx",
    "registration-dy",
    "registration-scale",
    "registration-crop",
    "registration-crop-left",
    "registration-crop-top",
    "registration-crop-right",
    "registration-crop-bottom",
    "registration-confidence",
)
PAPER: Final = (
    "arniqa",
    "brisque",
    "clipiqa",
    "cnniqa",
    "dbcnn",
    "hyperiqa",
    "ilniqe",
    "liqe",
    "maniqa",
    "musiq",
    "nima",
    "niqe",
    "nrqm",
    "paq2piq",
    "pi",
    "piqe",
    "qalign",
    "qualiclip",
    "topiq-nr",
    "tres",
    "wadiqam",
    "visualquality-r1",
    "rali",
)
"""The 23 no-reference metrics of the replication paper (Banana100), in the order of its table."""


@dataclass(frozen=True)
class MetricSet:
    """Metrics asked for by one word.

    Attributes:
        metrics: Their names.
        title: What it is for.
        registered: Whether the full-reference ones are also computed after registration.
    """

    metrics: tuple[str, ...]
    title: str
    registered: bool = False


SETS: Final = {
    "fast": MetricSet(FAST, "no weights needed, milliseconds per frame"),
    "standard": MetricSet(
        (
            *FAST,
            *ALIGNMENT,
            "lpips",
            "brisque",
            "niqe",
            "piqe",
            "drift-nr",
            "effnet-lite0",
            "clip",
        ),
        "what a study should report, on a CPU; most weights come from the package index",
        registered=True,
    ),
    "paper": MetricSet(PAPER, "the 23 no-reference metrics of the replication paper"),
    "round-trip": MetricSet(
        (
            *("psnr", "ssim", "ms-ssim", "lpips", "lpips-vgg", "ciede2000", "ciede2000-p95"),
            *("colour-cast", "colour-offset", "detail-loss", "noise", "sharpness"),
            *("clip", "clip-direction", "effnet-lite0", *ALIGNMENT),
        ),
        "the round-trip study",
        registered=True,
    ),
    "replication": MetricSet(
        ("psnr", "ssim", "lpips", *PAPER, "drift-nr"),
        "the replication study and the trial of its metrics",
    ),
    "restoration": MetricSet(
        ("psnr", "ssim", "lpips", "musiq", "maniqa", "clipiqa"), "the restoration study"
    ),
}
ALL: Final = "all"


def chosen(asked: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """The metrics that names and sets stand for, each once; and whether a set wants registration.

    Raises:
        UnknownName: There is neither a set nor a metric of that name.
    """
    found: dict[str, None] = {}
    registered = False
    installed = names("metrics")
    for word in asked:
        group = everything() if word == ALL else SETS.get(word)
        if group is not None:
            found |= dict.fromkeys(group.metrics)
            registered = registered or group.registered
            continue
        name = metric_name(word)
        if name.family not in installed:
            raise UnknownName("metric", word, [*installed, *SETS, ALL])
        found[str(name)] = None
    return tuple(found), registered


def everything() -> MetricSet:
    """Every installed metric that runs here; those served by a model are asked for by name."""
    return MetricSet(
        tuple(name for name in names("metrics") if not _served(name)),
        "every installed metric but those served by a model",
        registered=True,
    )


def _served(name: str) -> bool:
    try:
        return bool(metric_spec(name).needs.settings)
    except ConvergeBenchError:  # scoring will name it as left out
        return False
