"""`drift-nr` and the classical no-reference metrics in the paper's trial, side by side.

    python -m benchmarks.driftnr [--photos FOLDER] [--chain FOLDER] [--roundtrips FOLDER]
        [--metrics drift-nr,brisque,niqe,piqe,ilniqe] [--editors ref:banana,taef2] [--few N]
        [--size 256] [--workers 2] [--json]

A *cell* is one editor on one picture: it fails unless steps 5, 10 and 20 all score worse than step
1. τ is Kendall's, of the score with the step (1, 5, 10, 15, 20; 1 is best), mean over cells. Spread
is the standard deviation over pictures at step 1, drop the mean change from step 1 to 20, both in
points of the metric's typical range mapped to 0…100.

Pictures: drawn scenes that `drift-nr` was not trained on; photographs of a folder, by turns reduced
to `--size` and cropped to it; and a real chain, a folder of numbered frames. Editors: three that it
was not trained on (`ref:banana`, `ref:pointillist`, and the tiny autoencoder `taef2`, which needs
its weights), though on grain and specks of other making; and those that it was trained on. Then
what a metric must not do: how far harmless changes move the score, and where pictures begin.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from benchmarks.driftnr_data import variant
from benchmarks.driftnr_pictures import TRAINING_SCENES
from numpy.typing import NDArray
from scipy.stats import kendalltau

from convergebench.cycle import Edit
from convergebench.drawing import SCENES, scene
from convergebench.editor import EditRequest
from convergebench.errors import ConvergeBenchError
from convergebench.frame import Frame, decode
from convergebench.metric import Metric, NoScore, Picture, StepView
from convergebench.registry import open_editor, open_metric
from convergebench.table import Table

Pixels = NDArray[np.uint8]

METRICS: Final = ("drift-nr", "brisque", "niqe", "piqe", "ilniqe")
UNSEEN: Final = ("ref:banana", "ref:pointillist", "taef2")
SEEN: Final = ("ref:painter", "ref:wrinkle", "ref:latent", "ref:blur", "ref:noise", "ref:smooth")
LATER: Final = (5, 10, 20)
STEPS: Final = (1, 5, 10, 15, 20)
VARIANTS: Final = 4


@dataclass(frozen=True)
class Cell:
    """One picture under one editor, or a real chain: its frames by step, or where they are."""

    group: str
    editor: str
    source: str
    home: Pixels | None = None
    files: tuple[Path, ...] = ()


@cache
def opened(name: str) -> Metric:
    """A metric, opened once per process."""
    return open_metric(name)


def scored(metric: str, pixels: Pixels) -> float:
    """The score, mapped from the typical range to 0…100 so that higher is better."""
    held = opened(metric)
    (value,) = held.score([StepView(Picture(pixels))])
    if isinstance(value, NoScore) or held.spec.typical is None:
        return float("nan")
    low, high = held.spec.typical
    share = 100 * (value - low) / (high - low)
    return share if held.spec.higher_is_better else 100 - share


def frames(cell: Cell) -> dict[int, Pixels]:
    """The frames of a cell at `STEPS`."""
    if cell.home is None:
        return {step: decode(cell.files[step].read_bytes())[0] for step in STEPS}
    editor = open_editor(cell.editor)
    frame, kept = Frame.of_pixels(cell.home), {}
    for step in range(1, STEPS[-1] + 1):
        request = EditRequest((frame,), "replicate", Edit(prompt="replicate"), step, seed=step)
        frame = Frame(editor.edit(request).data)
        if step in STEPS:
            kept[step] = frame.pixels
    return kept


def tried(cell: Cell, metrics: Sequence[str]) -> dict[str, list[float]]:
    """The scores of a cell at `STEPS`, by metric."""
    cv2.setNumThreads(1)
    made = frames(cell)
    return {name: [scored(name, made[step]) for step in STEPS] for name in metrics}


def sources(folder: Path, size: int, few: int | None) -> Iterator[tuple[str, Pixels]]:
    """Photographs of a folder: the whole, reduced to a short side of `size`, or a crop of it."""
    for n, path in enumerate(sorted(folder.glob("*.png"))[:few]):
        pixels = decode(path.read_bytes())[0]
        height, width = pixels.shape[:2]
        if n % 2 and min(height, width) >= size:  # as the camera made it
            top, left = (height - size) // 2, (width - size) // 2
            yield path.stem, np.ascontiguousarray(pixels[top : top + size, left : left + size])
        else:
            scale = size / min(height, width)
            to = (round(width * scale), round(height * scale))
            reduced = cv2.resize(pixels, to, interpolation=cv2.INTER_AREA)
            yield path.stem, np.asarray(reduced, np.uint8)


def cells(asked: argparse.Namespace) -> list[Cell]:
    """Everything that is tried."""
    found = []
    held_out = [name for name in SCENES if name not in TRAINING_SCENES][: asked.few]
    pictures = {"drawn": [(name, scene(name, asked.size, asked.size)) for name in held_out]}
    for folder in asked.photos:
        pictures[folder.name] = list(sources(folder, asked.size, asked.few))
    for kind, listed in pictures.items():
        for editor in asked.editors.split(","):
            if open_editor(editor).spec.lacks:
                continue
            found += [Cell(kind, editor, name, home) for name, home in listed]
    for folder in asked.chain:
        numbered = sorted(folder.glob("*.png"), key=lambda p: int(re.findall(r"\d+", p.stem)[-1]))
        found.append(Cell("real", folder.name, numbered[0].stem, files=tuple(numbered)))
    return found


def fails(scores: Sequence[float]) -> bool:
    """Whether some later step is not worse than step 1."""
    return not all(scores[STEPS.index(step)] < scores[0] for step in LATER)


def trial_table(found: Sequence[tuple[Cell, dict[str, list[float]]]]) -> Table:
    """Failures, τ, spread and drop per group, editor and metric."""
    rows: list[list[str]] = []
    metrics = list(found[0][1])
    for group, editor in dict.fromkeys((cell.group, cell.editor) for cell, _ in found):
        mine = [s for cell, s in found if (cell.group, cell.editor) == (group, editor)]
        for metric in metrics:
            scores = np.array([s[metric] for s in mine])
            taus = [-kendalltau(STEPS, row).statistic for row in scores]
            failed = sum(fails(row) for row in scores.tolist())
            drop = float((scores[:, 0] - scores[:, -1]).mean())
            rows.append(
                [
                    *(group, editor, metric, f"{failed}/{len(scores)}"),
                    *(f"{np.nanmean(taus):.2f}", f"{scores[:, 0].std():.1f}", f"{drop:.1f}"),
                ]
            )
    return Table(
        "The trial: cells that fail",
        ("pictures", "editor", "metric", "failed", "τ", "spread", "drop"),
        tuple(tuple(row) for row in rows),
    )


def harmless(pictures: Sequence[tuple[str, Pixels]], metrics: Sequence[str]) -> dict[str, Any]:
    """Quantiles of how far crops, flips, light and size move a score."""
    draw = np.random.default_rng(5)
    moved: dict[str, list[float]] = {name: [] for name in metrics}
    for _, pixels in pictures:
        made = [variant(pixels, draw) for _ in range(VARIANTS)]
        for name in metrics:
            base = scored(name, pixels)
            moved[name] += [abs(scored(name, v) - base) for v in made]
    return {
        n: [round(float(q), 1) for q in np.percentile(m, (50, 90, 100))] for n, m in moved.items()
    }


def roundtrips(folder: Path, metric: str) -> dict[str, list[float]]:
    """Scores (higher is worse) of source and homecomings of real round trips."""
    found = {}
    for chain in sorted(p for p in folder.iterdir() if p.is_dir()):
        files = [chain / "I0_source.png", *sorted(chain.glob("I*_backward.png"))]
        values = [100 - scored(metric, decode(f.read_bytes())[0]) for f in files if f.exists()]
        found[chain.name] = [round(v, 1) for v in values]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photos", type=Path, action="append", default=[])
    parser.add_argument("--chain", type=Path, action="append", default=[])
    parser.add_argument("--roundtrips", type=Path)
    parser.add_argument("--metrics", default=",".join(METRICS))
    parser.add_argument("--editors", default=",".join((*UNSEEN, *SEEN)))
    parser.add_argument("--few", type=int, help="only so many pictures of each kind")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    metrics = [name for name in asked.metrics.split(",") if _ready(name)]
    listed = cells(asked)
    # A fork would inherit OpenCV's threads' locks, not its threads.
    with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
        found = list(zip(listed, pool.map(partial(tried, metrics=metrics), listed), strict=True))
    table = trial_table(found)
    failures: list[dict[str, Any]] = [
        {"pictures": c.group, "editor": c.editor, "source": c.source, "metric": m, "scores": s}
        for c, by in found
        for m, s in by.items()
        if fails(s)
    ]
    homes = {(c.group, c.source): c.home for c, _ in found if c.home is not None}
    moved = harmless([(source, home) for (_, source), home in homes.items()], metrics)
    pristine = {
        group: np.percentile(
            [100 - scored("drift-nr", h) for (g, _), h in homes.items() if g == group], (0, 50, 100)
        )
        for group in dict.fromkeys(g for g, _ in homes)
    }
    trips = roundtrips(asked.roundtrips, "drift-nr") if asked.roundtrips else {}
    if asked.json:
        told = {"rows": [list(r) for r in table.rows], "failures": failures, "harmless": moved}
        print(json.dumps({**told, "roundtrips": trips}, ensure_ascii=False))
        return
    print(table)
    print("\nCells in which drift-nr fails (scores at steps 1, 5, 10, 15, 20; 0 is undamaged):")
    for f in failures:
        if f["metric"] == "drift-nr":
            shown = " ".join(f"{100 - v:.1f}" for v in f["scores"])
            print(f"  {f['pictures']} · {f['editor']} · {f['source']}: {shown}")
    print("\nHarmless changes move the score by (median, 90 %, largest):")
    for name, quantiles in moved.items():
        print(f"  {name}: {' '.join(str(q) for q in quantiles)}")
    print("\ndrift-nr of the pictures before any edit (least, median, greatest):")
    for group, quantiles in pristine.items():
        print(f"  {group}: {' '.join(f'{q:.1f}' for q in quantiles)}")
    for name, values in trips.items():
        print(f"  round trips, {name}: {' '.join(map(str, values))}")


def _ready(name: str) -> bool:
    try:
        opened(name)
    except ConvergeBenchError as error:
        print(f"{name} left out: {error}")
        return False
    return True


if __name__ == "__main__":
    main()
