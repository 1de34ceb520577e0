"""Writing the page of the restoration study.

    restoration.html              the page
    restoration.json              every number on it
    restoration/*.csv, *.tex      its tables
    data/restoration/*.js         charts and pictures, loaded when they are looked at
    charts/restoration-*.svg      the charts as drawings
    frames/ thumbs/ views/        pictures (`shots`)

The folder can be a report's, whose files are left alone, or any other.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from convergebench.disk import plain_errors
from convergebench.reporter import charts
from convergebench.reporter.charts import Drawing
from convergebench.reporter.folder import as_json, templates, write_changed, write_static
from convergebench.reporter.overview import write_still
from convergebench.reporter.restoration import grids, words
from convergebench.reporter.restoration.cases import cases_of
from convergebench.reporter.restoration.drawings import (
    STILLS,
    inks_of,
    point_choices,
    spread_drawing,
    tradeoff_drawing,
    tradeoff_pairs,
)
from convergebench.reporter.restoration.latex import write_latex
from convergebench.reporter.restoration.lists import write_lists
from convergebench.reporter.restoration.shots import Brought, Shot, bring
from convergebench.reporter.restoration.slider import Album, album_of, source_scripts
from convergebench.restoration import write_tables
from convergebench.restoration.result import Restoration

PAGE: Final = "restoration.html"
DATA: Final = "data/restoration"
TABLES: Final = "restoration"
REPORT: Final = ("report.json", "index.html")
"""What tells that a folder is a report's; while one is built its first page comes last."""


def write_restoration(
    found: Restoration,
    folder: str | os.PathLike[str],
    *,
    shots: Sequence[Shot] = (),
    observe: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the page of a restoration study, with its tables, charts and pictures.

    Args:
        found: What was found.
        folder: Where to write; a report's folder, or any other.
        shots: The pictures of its sources, for the slider (`shots_of`); none for published means.
        observe: Called with (done, total) as pictures are brought in.

    Returns:
        The page, `restoration.html` in the folder.

    Raises:
        StoreError: The folder cannot be written.
    """
    place = Path(folder)
    with plain_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        write_static(place)
        facts = words.facts_of(found)
        brought = bring(shots, place, observe) if shots else Brought()
        album = album_of(found, brought)
        inks = inks_of(found)
        pairs = tradeoff_pairs(found)
        scatters = [tradeoff_drawing(found, p, inks, i) for i, p in enumerate(pairs, 1)]
        spreads = {
            measure.name: drawing
            for index, measure in enumerate(found.measures, 1)
            if (drawing := spread_drawing(found, measure, inks, index)) is not None
        }
        _write_drawings(place, scatters, list(spreads.values()))
        _write_scripts(place, [*scatters, *spreads.values()], source_scripts(found, album))
        write_tables(found, place / TABLES)
        write_latex(found, place / TABLES)
        write_lists(found, place / TABLES)
        shown = _shown(brought)
        told = {
            **found.to_dict(),
            "page": {**facts, "cases": words.case_sums(found), "slider": shown},
        }
        write_changed(place / "restoration.json", as_json(_plain(told)))
        measures, tried = grids.stability_of(found)
        page = templates().get_template(PAGE).render(
            found=found,
            facts=facts,
            inks=inks,
            studied=words.studied(facts),
            verdict=words.verdict(found, facts),
            words=words,
            forests=grids.forests_of(found),
            tested=measures,
            tried=tried,
            odd=grids.odd_of(found),
            matrices=grids.matrices_of(found),
            by=grids.BY,
            pairs=pairs,
            scatters=scatters,
            stills=STILLS,
            choices=point_choices(scatters),
            spreads=spreads,
            cases=cases_of(found, album),
            album=album,
            slider=shown,
            downloads=_downloads(place),
            live=_live(album, pairs, spreads),
            beside=any((place / name).is_file() for name in REPORT),
        )  # fmt: skip
        write_changed(place / PAGE, page.encode())
    return place / PAGE


def _shown(brought: Brought) -> dict[str, Any]:
    """What the slider's pictures take."""
    return {
        "stored": brought.stored,
        "views": brought.made,
        "side": brought.side,
        "bytes": brought.bytes,
        "megabytes": brought.bytes / 1e6,
    }


def _plain(value: Any) -> Any:
    """Without numbers that JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _write_drawings(folder: Path, scatters: Sequence[Drawing], spreads: Sequence[Drawing]) -> None:
    """The charts as SVG; those of measures that are no more are taken away."""
    wanted = [*scatters[:STILLS], *spreads]
    for drawing in wanted:
        write_still(folder / "charts" / f"{drawing.id}.svg", drawing)
    _keep(folder / "charts", "restoration-*.svg", {f"{drawing.id}.svg" for drawing in wanted})


def _write_scripts(folder: Path, drawings: Sequence[Drawing], sources: Mapping[str, Any]) -> None:
    """Data as scripts: a page opened from a file may load these, and nothing else."""
    scripts: dict[str, Any] = dict(sources)
    for drawing in drawings:
        scripts[drawing.id] = {
            "spec": drawing.specification(page=True),
            "light": drawing.light,
            "dark": drawing.dark,
            "rows": charts.columns(drawing.rows),
            **({"controls": charts.columns(drawing.groups)} if drawing.groups else {}),
        }
    for name, data in scripts.items():
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        line = f"convergebench.take({json.dumps(name)},{text});\n"
        write_changed(folder / DATA / f"{name}.js", line.encode())
    _keep(folder / DATA, "*.js", {f"{name}.js" for name in scripts})


def _keep(folder: Path, pattern: str, wanted: set[str]) -> None:
    for path in folder.glob(pattern):
        if path.name not in wanted:
            path.unlink()


def _downloads(folder: Path) -> dict[str, list[str]]:
    """The tables' files, by the table's name."""
    found: dict[str, list[str]] = {}
    for path in sorted((folder / TABLES).iterdir()):
        if path.suffix in (".csv", ".tex"):
            found.setdefault(path.stem, []).append(f"{TABLES}/{path.name}")
    return found


def _live(
    album: Album, pairs: Sequence[tuple[Any, Any]], spreads: Mapping[str, Drawing]
) -> dict[str, Any]:
    """What the page's scripts need from the start."""
    return {
        "themes": {"light": charts.theme((), dark=False), "dark": charts.theme((), dark=True)},
        "pairs": [[a.name, b.name] for a, b in pairs],
        "stills": STILLS,
        "spreads": {name: drawing.id for name, drawing in spreads.items()},
        "sources": [
            {"name": s.name, "scene": s.scene, "damage": s.damage, "data": s.data}
            for s in album.sources
        ],
    }
