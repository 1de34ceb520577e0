"""Writing the page `ratings.html`, with its numbers as `ratings.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from convergebench.disk import plain_errors
from convergebench.opinions import Opinions
from convergebench.opinions.correlations import Coefficient
from convergebench.opinions.means import Mean
from convergebench.opinions.result import Quality, ends
from convergebench.reporter import palette
from convergebench.reporter.folder import as_json, claim, templates, write_changed
from convergebench.reporter.opinions.drawing import Axis, Violin, axis, scatters, violins
from convergebench.wording import counted

PAGE: Final = "ratings.html"
NUMBERS: Final = "ratings.json"
STATIC: Final = ("report.css", "ratings.css", "ratings.js")
OURS: Final = ("static/report.css", NUMBERS)
"""Files that mark a folder as pages of ours."""


@dataclass(frozen=True)
class Heat:
    """Mean opinions as a map: pictures down, methods across."""

    methods: tuple[str, ...]
    rows: tuple[tuple[Mean, tuple[Mean | None, ...]], ...]


def write_ratings(found: Opinions, folder: Path) -> Path:
    """Write the page into a folder of pages, or into one of its own; returns its path.

    Raises:
        StoreError: The folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    with plain_errors(folder):
        claim(folder, OURS)
        shipped = resources.files("convergebench.reporter") / "static"
        for name in STATIC:
            write_changed(folder / "static" / name, (shipped / name).read_bytes())
        write_changed(folder / NUMBERS, as_json(found.to_dict()))
        write_changed(folder / PAGE, _render(found, folder).encode())
    return folder / PAGE


def _render(found: Opinions, folder: Path) -> str:
    quality = found.quality
    names = dict.fromkeys(
        [
            *(one.of for one in (quality.methods if quality else ())),
            *(one.method for one in (found.preferences.strengths if found.preferences else ())),
            *(one.method for one in found.labels if one.method),
        ]
    )
    inks = palette.inks([(name, False) for name in names])
    scale = _scale(quality)
    strengths = found.preferences.strengths if found.preferences else ()
    return (
        templates()
        .get_template("ratings.html")
        .render(
            found=found,
            quality=quality,
            everyone=_by_name(found.everyone),
            inks=inks,
            scale=scale,
            violins=_violins(quality, scale),
            heat=_heat(quality),
            strength_scale=axis([v for s in strengths for v in (s.theta, s.low, s.high)]),
            plots=scatters(found.correlations, inks),
            stimuli=[one for one in found.correlations if one.level == "stimulus"],
            methods=[one for one in found.correlations if one.level == "method"],
            report=(folder / "index.html").is_file(),
            summary=_summary(found),
            ends=ends,
            number=_number,
            interval=_interval,
        )
    )


def _scale(quality: Quality | None) -> Axis:
    """The scale that scores were given on, as far as it was used."""
    if quality is None:
        return axis([])
    used = [score for one in quality.distributions for score in one.scores]
    return axis(used)


def _violins(quality: Quality | None, scale: Axis) -> tuple[Violin, ...]:
    if quality is None:
        return ()
    place = {one.of: at for at, one in enumerate(quality.methods)}
    ordered = sorted(quality.distributions, key=lambda one: place.get(one.method, 0))
    # A bar stands in the middle of its score, so the scale needs room for half a bar at its ends.
    gap = (scale.high - scale.low) / 10
    return violins(ordered, Axis(scale.low - gap, scale.high + gap, scale.ticks))


def _heat(quality: Quality | None) -> Heat:
    if quality is None:
        return Heat((), ())
    methods = tuple(one.of for one in quality.methods)
    cells: dict[tuple[str, str], list[Mean]] = {}
    for one in quality.stimuli:
        cells.setdefault((one.image, one.method), []).append(one)
    rows = []
    for image in sorted(quality.images, key=lambda one: one.mean or 0.0):
        rows.append((image, tuple(_joined(cells.get((image.of, name), [])) for name in methods)))
    return Heat(methods, tuple(rows))


def _joined(stimuli: Sequence[Mean]) -> Mean | None:
    """The one stimulus of a cell; of several (repeats, steps), their mean, without an interval."""
    if len(stimuli) < 2:
        return stimuli[0] if stimuli else None
    mean = sum(one.mean or 0.0 for one in stimuli) / len(stimuli)
    answers = sum(one.answers for one in stimuli)
    return Mean("", mean, None, None, None, answers, max(one.raters for one in stimuli), 1)


def _by_name(quality: Quality | None) -> Mapping[str, Mean]:
    if quality is None:
        return {}
    return {one.of: one for one in quality.methods} | {"": quality.overall}


def _number(value: float | None, digits: int = 2) -> str:
    """A number as the page prints it; nothing is minus zero."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _interval(one: Coefficient) -> str:
    return ends(one.low, one.high)


def _summary(found: Opinions) -> list[str]:
    """What was asked, and the most that can be said in three sentences."""
    people = counted(len(found.raters), "rater")
    told = [f"{people} gave {counted(found.answers, 'answer')}."]
    if found.left_out and found.screened and len(found.left_out) < len(found.raters):
        told.append(
            f"Screening or attention checks leave out {counted(len(found.left_out), 'rater')}; the "
            "numbers with everybody stand beside."
        )
    quality = found.quality
    if quality and len(quality.methods) > 1:
        best = quality.methods[0]
        near = [d.other for d in quality.differences if d.one == best.of and d.tied]
        told.append(
            f"People like {best.of} best, at {_number(best.mean)} "
            f"({ends(best.low, best.high)})"
            + (f", tied with {', '.join(near)}." if near else ", ahead of every other method.")
        )
    over = [one for one in found.correlations if one.level == "stimulus" and one.srcc.value]
    if over and over[0].srcc.value is not None:
        told.append(
            f"Of {counted(len(over), 'metric')}, {over[0].metric} agrees with them most: SRCC "
            f"{_number(over[0].srcc.value)} ({_interval(over[0].srcc)})."
        )
    return told
