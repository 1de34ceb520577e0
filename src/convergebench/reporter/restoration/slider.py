"""What the slider is given: the sources, and of each its pictures and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from convergebench.reporter.restoration.shots import INPUT, TRUTH, Brought, View, output_key
from convergebench.reporter.restoration.words import labels_of
from convergebench.restoration.result import Restoration


@dataclass(frozen=True)
class Sitter:
    """One source as the page lists it; `data` names the script that has its pictures."""

    name: str
    scene: str
    damage: str
    truth: bool
    data: str
    thumb: str


@dataclass(frozen=True)
class Album:
    """The sources that have pictures here, and all their views."""

    sources: tuple[Sitter, ...]
    views: Mapping[tuple[str, str], View] = field(default_factory=dict)

    @property
    def scenes(self) -> list[str]:
        """The scenes that there are, in the sources' order."""
        return [name for name in dict.fromkeys(s.scene for s in self.sources) if name]

    @property
    def damages(self) -> list[str]:
        """The degradations."""
        return [name for name in dict.fromkeys(s.damage for s in self.sources) if name]

    def view(self, source: str, key: str) -> View | None:
        """A picture, where it is here."""
        return self.views.get((source, key))

    def link(self, source: str, method: str, repeat: int, left: str = "") -> str:
        """The address of the slider with an output on its right; empty where it is not here."""
        key = output_key(method, repeat)
        if (source, key) not in self.views:
            return ""
        if not left:
            left = TRUTH if (source, TRUTH) in self.views else INPUT
        return "#compare/" + "/".join(quote(part, safe="") for part in (source, left, key))


def album_of(found: Restoration, brought: Brought) -> Album:
    """The album of a study."""
    views = {(view.shot.source, view.shot.key): view for view in brought.views}
    here = {source for source, _ in views}
    sources = []
    for index, picture in enumerate(found.pictures, 1):
        first = views.get((picture.source, INPUT))
        if picture.source not in here:
            continue
        sources.append(
            Sitter(
                picture.source,
                picture.scene,
                picture.damage,
                picture.truth,
                f"source-{index}",
                first.thumb if first else "",
            )
        )
    return Album(tuple(sources), views)


def source_scripts(found: Restoration, album: Album) -> dict[str, Any]:
    """By the script's name what it holds: the source's views, and each method's scores."""
    labels = labels_of(found.methods)
    of_source: dict[str, list[View]] = {}
    for view in album.views.values():
        of_source.setdefault(view.shot.source, []).append(view)
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for score in found.scores:
        mine = scores.setdefault(score.source, {}).setdefault(score.measure, {})
        mine[score.method] = round(score.value, 3)
    several = {
        (view.shot.source, view.shot.method) for view in album.views.values() if view.shot.repeat
    }
    return {
        sitter.data: {
            "views": [_told(view, labels, several) for view in of_source[sitter.name]],
            "scores": [
                {"title": f"{measure.title} {measure.arrow}", "of": of_methods}
                for measure in found.measures
                if (of_methods := scores.get(sitter.name, {}).get(measure.name))
            ],
        }
        for sitter in album.sources
    }


def _told(view: View, labels: Mapping[str, str], several: set[tuple[str, str]]) -> dict[str, Any]:
    shot = view.shot
    label = {INPUT: "Input", TRUTH: "Ground truth"}.get(shot.key) or labels[shot.method]
    if (shot.source, shot.method) in several:
        label += f" · repeat {shot.repeat}"
    told = {
        "key": shot.key,
        "label": label,
        "method": shot.method,
        "shown": view.shown,
        "full": view.full,
        "thumb": view.thumb,
        "size": view.size,
        "missing": shot.missing,
    }
    return {name: value for name, value in told.items() if value}
