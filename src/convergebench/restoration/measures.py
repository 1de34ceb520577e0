"""Which scored metrics are a table's columns, what they are called, and in which order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from convergebench.errors import InputError
from convergebench.metric import MetricSpec
from convergebench.metrics.sets import SETS
from convergebench.registry import metric_name, metric_spec
from convergebench.restoration.result import Kind, Measure

PAPER: Final = SETS["restoration"].metrics
"""The paper's six."""

DETAIL: Final = "detail-ratio"
"""The metric that flags too much fine detail: no column unless it is asked for."""

QUALITY: Final = "human/quality"
HUMAN: Final = Measure(QUALITY, "people", "human", higher_is_better=True)
"""What people think of a picture: the mean over raters."""

REGISTERED: Final = "@registered"
"""How a measure's name ends that is taken after registration."""

ORDER: Final[tuple[Kind, ...]] = ("full-reference", "semantic", "no-reference", "human")

_ASIDE: Final = ("-spread", "-unparsed")
_PARTS: Final = frozenset(
    ("ciede2000-p95", "colour-cast", "colour-offset", "detail-loss", DETAIL, "noise", "sharpness")
)
"""Measure one kind of loss, not quality as a whole: shown where asked for."""

_CAPITALS: Final = frozenset(("psnr", "ssim", "ms", "lpips", "ciede2000", "nrqm", "pi"))


def measure_of(spec: MetricSpec) -> Measure:
    """A metric as a column."""
    return Measure(spec.name, title_of(spec), spec.kind, spec.higher_is_better)


def title_of(spec: MetricSpec) -> str:
    """What it is called in a table: as its own paper writes it."""
    head = re.split(r"[,:(]", spec.title)[0].strip()
    if _letters(head) == _letters(spec.name):
        return head
    return spec.name.upper() if spec.name.split("-")[0] in _CAPITALS else spec.name


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def usual(specs: Mapping[str, MetricSpec]) -> list[str]:
    """The columns where nobody asked for others: the paper's six, and others for want of them.

    Where no full-reference (or no no-reference) one of the six is scored, all others of that kind
    are taken, so that there is something to see.
    """
    found = [name for name in PAPER if name in specs]
    for kind in ("full-reference", "no-reference"):
        if not any(specs[name].kind == kind for name in found):
            found += [
                name
                for name, spec in specs.items()
                if spec.kind == kind
                and not (spec.alignment or spec.directional)
                and name not in _PARTS
                and not name.endswith(_ASIDE)
            ]
    return found


def asked(name: str, known: Iterable[str]) -> str:
    """A measure as it was asked for, in our spelling. Raises UnknownName."""
    there = set(known)
    if name in there:
        return name
    plain = name.removesuffix(REGISTERED)
    ours = str(metric_name(plain))
    metric_spec(ours)  # says what is nearly called so
    return ours + name[len(plain) :]


def in_columns(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Full-reference ones first, then what needs no truth; the paper's in its order."""
    place = {name: index for index, name in enumerate(PAPER)}
    return tuple(
        sorted(
            measures,
            key=lambda m: (
                ORDER.index(m.kind),
                place.get(m.name.removesuffix(REGISTERED), len(place)),
                m.name,
            ),
        )
    )


def unknown_direction(title: str, where: str) -> InputError:
    """What to say of a column that is no metric here."""
    return InputError(
        f"{where}: column {title!r} is no metric known here, so nobody knows which way is better. "
        f"Call it {title}↑ (higher is better) or {title}↓."
    )


def checked(names: Sequence[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(names))
