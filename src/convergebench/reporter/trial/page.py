"""Writing the page of a trial.

    trial.html                the page
    data/trial/*.js           what its figures draw, loaded when they are looked at
    charts/trial-*.svg        every figure as a drawing
    static/                   style, scripts and Vega, the same as the report's

The folder can be a report's, whose files are left alone, or any other.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.disk import plain_errors
from convergebench.errors import MalformedImage
from convergebench.reporter import charts, palette
from convergebench.reporter.folder import templates, write_changed, write_static
from convergebench.reporter.overview import write_still
from convergebench.reporter.palette import Ink
from convergebench.reporter.pictures import thumbnail
from convergebench.reporter.trial import dots, heat, sparks, steps, words
from convergebench.reporter.trial.figure import Figure, trial_theme
from convergebench.trial.result import Trial
from convergebench.wording import counted

PAGE: Final = "trial.html"
REPORT: Final = ("report.json", "index.html")
"""What tells that a folder is a report's; while one is built its first page comes last."""

DOWNLOADS: Final = {
    "gaps.csv": "gaps, averaged over repeats",
    "individual.csv": "gaps of every repeat",
    "success.csv": "verdict of every cell",
    "per_arm.csv": "order and delay by editor",
    "trajectories.csv": "scores step by step, averaged over repeats",
    "single.csv": "scores of every chain",
    "premise.csv": "what full-reference metrics saw",
    "cards.csv": "trust cards",
    "trial.json": "all of it",
}


@dataclass(frozen=True)
class Figures:
    """Every figure of the page; of some there is one for each arm or metric."""

    gaps: tuple[Figure, ...]
    overlay: tuple[Figure, ...]
    arms: Figure | None
    steps: tuple[Figure, ...]
    images: tuple[Figure, ...]
    adding: tuple[Figure, ...]
    dots: tuple[Figure, ...]

    @property
    def all(self) -> list[Figure]:
        """In the page's order."""
        several = [*self.gaps, *self.overlay, self.arms, *self.steps, *self.images, *self.adding]
        return [figure for figure in [*several, *self.dots] if figure is not None]

    @property
    def models(self) -> dict[str, Figure]:
        """One of each kind, whose specification serves all of its kind."""
        found: dict[str, Figure | None] = {
            "gaps": next(iter(self.gaps), None),
            "overlay": next(iter(self.overlay), None),
            "arms": self.arms,
            "steps": next(iter(self.steps), None),
            "adding": next(iter(self.adding), None),
        }
        return {name: figure for name, figure in found.items() if figure is not None}


def write_trial(
    trial: Trial,
    folder: str | os.PathLike[str],
    *,
    pictures: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Path:
    """Write the page of a trial, with its data and drawings.

    Tables that lie in the folder already (`gaps.csv`, `trial.json` and the like) are linked, so
    write them first. Only what has changed is written.

    Args:
        trial: What was found.
        folder: Where to write; a report's folder, or any other.
        pictures: The initial images' files, by source, to be shown small.

    Returns:
        The page, `trial.html` in the folder.

    Raises:
        StoreError: The folder cannot be written.
    """
    place = Path(folder)
    with plain_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        write_static(place)
        inks = palette.inks(
            [*((arm, False) for arm in trial.arms), *((arm, True) for arm in trial.controls)]
        )
        walks = steps.walks_of(trial)
        # Those that only add objects are drawn apart, and need not take a colour from the others.
        inks |= palette.inks([(arm, False) for arm in walks.arms if arm not in inks])
        figures = _figures(trial, walks, inks)
        _write_drawings(place, figures)
        _write_data(place, trial, walks, figures)
        page = templates().get_template(PAGE).render(
            trial=trial,
            inks=inks,
            verdict=words.verdict_of(trial),
            lines=words.lines_of(trial),
            facts={card.metric: words.facts_of(card) for card in trial.cards},
            classes=words.CLASSES,
            premise=words.premise_of(trial),
            sparks=sparks.sparks_of(trial, inks),
            figures=figures,
            walks=walks,
            live=_live(trial, walks, figures, inks),
            thumbs=_thumbs(place, trial, pictures or {}),
            downloads={name: what for name, what in DOWNLOADS.items() if (place / name).is_file()},
            beside=any((place / name).is_file() for name in REPORT),
            size=", ".join(
                (
                    counted(len(trial.cards), "metric"),
                    words.editors_of(trial),
                    counted(len(trial.sources), "initial image"),
                )
            ),
        )  # fmt: skip
        write_changed(place / PAGE, page.encode())
    return place / PAGE


def _figures(trial: Trial, walks: steps.Walks, inks: Mapping[str, Ink]) -> Figures:
    counts = heat.count_rows(trial)
    cells = bool(counts) and bool(trial.steps)
    copied, added = walks.sources["replicate"], walks.sources["accumulate"]
    return Figures(
        gaps=tuple(heat.gaps_figures(trial) if cells else ()),
        overlay=tuple(heat.overlay_figures(trial, counts) if cells else ()),
        arms=heat.side_by_side_figure(trial, counts) if cells and len(trial.arms) > 1 else None,
        steps=tuple(steps.steps_figures(trial, walks, inks) if copied else ()),
        images=tuple(steps.images_figures(trial, walks, inks) if copied else ()),
        adding=tuple(steps.adding_figures(trial, walks, inks) if added else ()),
        dots=tuple(dots.dot_figures(trial)),
    )


def _write_drawings(folder: Path, figures: Figures) -> None:
    """Every figure as SVG; those of arms and metrics that are no more are taken away."""
    wanted = {f"{figure.id}.svg" for figure in figures.all if figure.rows}
    for figure in figures.all:
        if figure.rows:
            write_still(folder / "charts" / f"{figure.id}.svg", figure)
    _keep(folder / "charts", "trial-*.svg", wanted)


def _write_data(folder: Path, trial: Trial, walks: steps.Walks, figures: Figures) -> None:
    scripts = dict(steps.step_scripts(trial, walks))
    for index, figure in enumerate(figures.gaps, 1):
        scripts[f"gaps-{index}"] = _script(f"gaps-{index}", figure)
    if figures.overlay:
        whole = [row for figure in figures.overlay for row in figure.rows]
        scripts["counts"] = _script("counts", figures.overlay[0], whole)
    for figure in figures.dots:
        scripts[figure.id] = _script(figure.id, figure)
    for name, data in scripts.items():
        write_changed(folder / "data" / "trial" / f"{name}.js", data)
    _keep(folder / "data" / "trial", "*.js", {f"{name}.js" for name in scripts})


def _script(name: str, figure: Figure, rows: Sequence[charts.drawing.Row] | None = None) -> bytes:
    told = charts.columns(figure.rows if rows is None else rows)
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    return f"convergebench.take({json.dumps(name)},{text});\n".encode()


def _keep(folder: Path, pattern: str, wanted: set[str]) -> None:
    for path in folder.glob(pattern):
        if path.name not in wanted:
            path.unlink()


def _live(
    trial: Trial, walks: steps.Walks, figures: Figures, inks: Mapping[str, Ink]
) -> dict[str, Any]:
    """What the page's script needs beside the data."""
    shown = [inks[arm] for arm in walks.arms]
    most = len(trial.steps)
    models = [*figures.models.items(), *((figure.id, figure) for figure in figures.dots)]
    return {
        "themes": {
            "light": trial_theme((), most, dark=False),
            "dark": trial_theme((), most, dark=True),
        },
        "charts": {
            name: {
                "spec": figure.specification(page=True),
                "light": figure.light,
                "dark": figure.dark,
                **({"fit": figure.fit.__dict__} if figure.fit else {}),
            }
            for name, figure in models
        },
        "stills": {
            "gaps": [figure.id for figure in figures.gaps],
            "overlay": [figure.id for figure in figures.overlay],
            "steps": [f.id if f.rows else None for f in figures.steps],
            "images": [f.id if f.rows else None for f in figures.images],
            "adding": [f.id if f.rows else None for f in figures.adding],
        },
        "arms": trial.arms,
        "metrics": [card.metric for card in trial.cards],
        "walks": {
            "steps": walks.steps,
            "few": walks.few,
            "arms": [ink.editor for ink in shown],
            "sources": dict(walks.sources),
            "fine": steps.FINE,
        },
    }


def _thumbs(
    folder: Path, trial: Trial, pictures: Mapping[str, str | os.PathLike[str]]
) -> dict[str, str]:
    """Thumbnails of the sources that have a readable picture, in their order."""
    found = {}
    for source in trial.sources:
        try:
            data = Path(pictures[source]).read_bytes()
            name = hashlib.sha256(data).hexdigest()
            thumb = f"thumbs/{name[:2]}/{name}.webp"
            if not (folder / thumb).is_file():
                write_changed(folder / thumb, thumbnail(data))
        except (KeyError, FileNotFoundError, MalformedImage):
            continue
        found[source] = thumb
    return found
