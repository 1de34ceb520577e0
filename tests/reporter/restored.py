"""A restoration study made up from the paper's tables, with pictures, for tests of its page."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
from PIL import Image

from convergebench.chain import FrameRef
from convergebench.frame import Frame
from convergebench.reporter.restoration.shots import Shot, output_key
from convergebench.restoration.result import (
    Case,
    CaseCount,
    CaseMean,
    Cell,
    Effect,
    Measure,
    Method,
    Outlier,
    Picture,
    Point,
    Restoration,
    Row,
    Score,
    Sheet,
    Stability,
)
from tests.support.runs import shelf

MEASURES: Final = (
    Measure("psnr", "PSNR", "full-reference", True),
    Measure("ssim", "SSIM", "full-reference", True),
    Measure("lpips", "LPIPS", "full-reference", False),
    Measure("musiq", "MUSIQ", "no-reference", True),
    Measure("maniqa", "MANIQA", "no-reference", True),
    Measure("clipiqa", "CLIP-IQA", "no-reference", True),
)
FULL: Final = ("psnr", "ssim", "lpips")
PROMPTS: Final = {
    "L1": (22.910, 0.670, 0.223, 69.339, 0.393, 0.667),
    "L2": (23.211, 0.668, 0.222, 69.462, 0.401, 0.684),
    "L3": (22.729, 0.666, 0.221, 69.255, 0.394, 0.677),
    "LF1": (23.284, 0.671, 0.216, 67.365, 0.374, 0.659),
    "LF2": (23.018, 0.665, 0.223, 68.386, 0.382, 0.667),
    "LF3": (22.265, 0.662, 0.223, 68.170, 0.380, 0.666),
    "S1": (22.920, 0.664, 0.224, 68.809, 0.386, 0.669),
    "S2": (22.655, 0.665, 0.224, 68.768, 0.387, 0.670),
    "S3": (21.975, 0.655, 0.237, 70.444, 0.408, 0.686),
    "SF1": (23.003, 0.671, 0.215, 67.496, 0.371, 0.650),
    "SF2": (23.090, 0.663, 0.217, 66.748, 0.374, 0.655),
    "SF3": (23.360, 0.672, 0.215, 67.794, 0.377, 0.665),
}
OTHERS: Final = {
    "HYPIR": (21.307, 0.622, 0.240, 67.103, 0.407, 0.582),
    "PiSA-SR": (22.744, 0.633, 0.237, 71.276, 0.468, 0.681),
    "TSD-SR": (21.439, 0.599, 0.232, 72.144, 0.479, 0.708),
    "DiffBIR": (21.856, 0.602, 0.273, 69.974, 0.478, 0.685),
    "ref:identity": (20.112, 0.561, 0.401, 41.902, 0.205, 0.311),
}
FRIEDMAN: Final = {
    "L3": ((1.238, 0.538), (0.857, 0.651), (0.857, 0.651), (3.257, 0.196), (0.171, 0.918),
           (0.229, 0.892)),
    "LF1": ((1.238, 0.538), (1.524, 0.467), (0.095, 0.953), (6.229, 0.044), (3.486, 0.175),
            (1.429, 0.490)),
    "S1": ((0.667, 0.717), (1.238, 0.538), (2.000, 0.368), (2.114, 0.347), (4.800, 0.091),
           (7.943, 0.019)),
    "SF2": ((0.667, 0.717), (2.667, 0.264), (1.238, 0.538), (3.257, 0.196), (0.057, 0.972),
            (0.914, 0.633)),
}  # fmt: skip
SCENES: Final = ("Small faces", "Hands and feet", "Text", "Street", "Old film")
DAMAGES: Final = ("defocus", "digital zoom", "old film")
EDITOR: Final = "nano-banana-2"
REPEATS: Final = 3
HOSTILE: Final = """Net </script><script>document.title="owned"</script> & <img src=x onerror=1>"""


def _group(prompt: str) -> str:
    return prompt.rstrip("0123456789")


def methods_of(hostile: bool = False) -> tuple[Method, ...]:
    prompted = [
        Method(f"{EDITOR}--{p.lower()}", f"{EDITOR}, {p}", EDITOR, p, _group(p)) for p in PROMPTS
    ]
    rest = [Method(name.lower(), name, name, control=name.startswith("ref:")) for name in OTHERS]
    if hostile:
        rest[0] = replace(rest[0], label=HOSTILE, editor=HOSTILE)
    return (*prompted, *rest)


def _values(method: Method) -> tuple[float, ...]:
    return PROMPTS[method.prompt] if method.prompt else OTHERS[_named(method)]


def _named(method: Method) -> str:
    return next(name for name in OTHERS if name.lower() == method.id)


def _placed(rows: list[Row]) -> tuple[Row, ...]:
    """Best and second among those that compete, ties sharing a place."""
    found = [dict(row.cells) for row in rows]
    for measure in MEASURES:
        compete = [
            i
            for i, row in enumerate(rows)
            if not row.control and row.cells[measure.name].mean is not None
            and row.kind in ("prompt", "method")
        ]  # fmt: skip
        sign = -1 if measure.higher_is_better else 1
        levels = sorted({sign * (rows[i].cells[measure.name].mean or 0) for i in compete})
        for i in compete:
            at = levels.index(sign * (rows[i].cells[measure.name].mean or 0))
            if at < 2:
                cell = found[i][measure.name]
                found[i][measure.name] = replace(cell, place=1 if at == 0 else 2)
    return tuple(replace(row, cells=cells) for row, cells in zip(rows, found, strict=True))


def _cells(values: tuple[float, ...], n: int, with_truth: int) -> dict[str, Cell]:
    found = {}
    for measure, value in zip(MEASURES, values, strict=True):
        over = with_truth if measure.kind == "full-reference" else n
        if over:
            found[measure.name] = Cell(value, value * 0.97, value * 1.03, over)
        else:
            found[measure.name] = Cell(None, absent="truth")
    return found


def _rows(methods: tuple[Method, ...], n: int, with_truth: int, shift: float) -> tuple[Row, ...]:
    rows = []
    for index, method in enumerate(methods):
        values = tuple(value * (1 + shift) for value in _values(method))
        rows.append(
            Row(method.label, "method", _cells(values, n, with_truth), method.group,
                failed=2 if index == 1 else 0, expected=n * REPEATS, control=method.control,
                method=method.id)
        )  # fmt: skip
    return _placed(rows)


def _prompt_sheet(n: int, with_truth: int) -> Sheet:
    rows: list[Row] = []
    for groups, title in ((("L", "LF"), "L + LF"), (("S", "SF"), "S + SF")):
        halves = []
        for group in groups:
            mine = {p: v for p, v in PROMPTS.items() if _group(p) == group}
            for prompt, values in mine.items():
                rows.append(
                    Row(prompt, "prompt", _cells(values, n, with_truth), group,
                        expected=n * REPEATS, method=f"{EDITOR}--{prompt.lower()}")
                )  # fmt: skip
            mean = tuple(float(np.mean(column)) for column in zip(*mine.values(), strict=True))
            halves.append(mean)
            rows.append(Row(group, "group", _cells(mean, n, with_truth), group))
        both = tuple(float(np.mean(column)) for column in zip(*halves, strict=True))
        rows.append(Row(title, "groups", _cells(both, n, with_truth)))
    return Sheet(f"Prompts of {EDITOR}", _placed(rows), MEASURES, of=EDITOR)


def made_restoration(pictures: int = 12, *, hostile: bool = False) -> Restoration:
    """A study of that many pictures, one third of which (old film) have no truth."""
    dice = random.Random(7)
    methods = methods_of(hostile)
    shots = tuple(
        Picture(f"p{i:02d}", SCENES[i % 5], DAMAGES[2 if i % 5 == 4 else i % 2], i % 5 != 4)
        for i in range(pictures)
    )
    if hostile:
        shots = (replace(shots[0], scene=HOSTILE), *shots[1:])
    scenes = []
    kinds: tuple[tuple[Literal["scene", "damage"], list[str]], ...] = (
        ("scene", list(dict.fromkeys(p.scene for p in shots))),
        ("damage", list(DAMAGES)),
    )
    for by, parts in kinds:
        for k, part in enumerate(parts):
            mine = [p for p in shots if (p.scene if by == "scene" else p.damage) == part]
            truth = sum(p.truth for p in mine)
            rows = _rows(methods, len(mine), truth, 0.02 * (k - 2))
            scenes.append(Sheet(part, rows, MEASURES, by=by, of=part))
    with_truth = sum(p.truth for p in shots)
    effects = []
    for factor, level, base, within, scale in (
        ("length", "long", "short", "", 0.4), ("fidelity", "yes", "no", "", 1.0),
        ("fidelity", "yes", "no", "length=short", 1.3),
        ("fidelity", "yes", "no", "length=long", 0.5),
    ):  # fmt: skip
        for measure, gap in zip(
            MEASURES, (0.63, 0.007, -0.012, -1.994, -0.02, -0.018), strict=True
        ):
            gap *= scale
            tied = scale < 0.45
            half = abs(gap) * (1.6 if tied else 0.5)
            good = (gap > 0) == measure.higher_is_better
            over = with_truth if measure.kind == "full-reference" else pictures
            p = 0.41 if tied else 0.0004 if scale > 1 else 0.012
            effects.append(
                Effect(factor, level, base, measure.name, gap, gap - half, gap + half, p,
                       min(1.0, 2 * p), over, "tied" if tied else "level" if good else "baseline",
                       EDITOR, within)
            )  # fmt: skip
    stability = tuple(
        Stability(f"{EDITOR}--{prompt.lower()}", m.name, stat, p, stat / (2 * pictures), REPEATS,
                  with_truth if m.kind == "full-reference" else pictures)
        for prompt, told in FRIEDMAN.items() for m, (stat, p) in zip(MEASURES, told, strict=True)
    )  # fmt: skip
    points = [
        Point(m.id, m.label, m.group, a.name, b.name, values[i], values[j], with_truth, m.control)
        for i, a in enumerate(MEASURES[:3]) for j, b in enumerate(MEASURES[3:], 3)
        for m in methods for values in [_values(m)]
    ]  # fmt: skip
    scores = [
        Score(m.id, measure.name, p.source, value * dice.gauss(1, 0.06))
        for m in methods
        for measure, value in zip(MEASURES, _values(m), strict=True)
        for p in shots
        if p.truth or measure.name not in FULL
    ]
    counts, cases = [], []
    for k, method in enumerate(methods[:12]):
        counts.append(
            CaseCount("infidelity", method.id, method.group, k % 4, pictures, "people, 5 raters")
        )
        if k % 4:
            cases.append(
                Case("infidelity", method.id, shots[k % len(shots)].source, k % REPEATS, f"c{k}",
                     "people, 5 raters", 0.6 + 0.1 * (k % 4), 5, "a second hand appeared")
            )  # fmt: skip
    cases.append(
        Case("over-generation", methods[8].id, shots[1].source, 0, "c9", "flag: no-reference rose "
             "while full-reference fell", 1.0, 0, "MUSIQ +9.1, PSNR −2.4")
    )  # fmt: skip
    counts.append(CaseCount("over-generation", methods[8].id, "S", 1, pictures, "flag"))
    return Restoration(
        title="restoration-v1@1" + (HOSTILE if hostile else ""),
        measures=MEASURES,
        methods=methods,
        pictures=shots,
        prompts=(_prompt_sheet(pictures, with_truth),),
        effects=tuple(effects),
        stability=stability,
        outliers=(
            Outlier(f"{EDITOR}--s1", "psnr", shots[0].source, (18.2, 25.9, 24.7), 7.7, 0.9),
            Outlier(f"{EDITOR}--s1", "clipiqa", shots[2].source, (0.41, 0.71, 0.7), 0.3, 0.04),
        ),
        scenes=tuple(scenes),
        overall=Sheet("All methods", _rows(methods, pictures, with_truth, 0.0), MEASURES),
        tradeoff=tuple(points),
        counts=tuple(counts),
        cases=tuple(cases),
        case_means=(
            CaseMean("infidelity", "people, 5 raters", EDITOR, "fidelity", "no", 6, 12, 72, 2.0),
            CaseMean("infidelity", "people, 5 raters", EDITOR, "fidelity", "yes", 6, 3, 72, 0.5),
        ),
        notes=("Full-reference measures are means over the pictures that have a truth.",),
        scores=tuple(scores),
    )


def made_shots(found: Restoration, folder: Path, side: int = 96, repeats: int = 2) -> list[Shot]:
    """Small pictures of every source: input, truth, and each method's outputs as files."""
    folder.mkdir(parents=True, exist_ok=True)
    shots: list[Shot] = []
    for index, picture in enumerate(found.pictures):
        clean = _scene(index, side)
        noisy = np.clip(clean + np.random.default_rng(index).normal(0, 30, clean.shape), 0, 255)
        shots.append(_shot(picture.source, "input", None, noisy, folder))
        if picture.truth:
            shots.append(_shot(picture.source, "truth", None, clean, folder))
        for m, method in enumerate(found.methods):
            for repeat in range(repeats if method.prompt else 1):
                if (index, m, repeat) == (0, 1, 1):
                    key = output_key(method.id, repeat)
                    shots.append(Shot(picture.source, key, method.id, repeat, missing="refused"))
                    continue
                out = 0.8 * clean + 0.2 * noisy + (m - 8) * 3 + repeat * 6
                key = output_key(method.id, repeat)
                shots.append(_shot(picture.source, key, method.id, out, folder, repeat))
    return shots


def _scene(index: int, side: int) -> np.ndarray:
    y, x = np.mgrid[0:side, 0:side] / side
    waves = [np.sin((3 + index + k) * (x + (k - 1) * y) * 3) for k in range(3)]
    disc = ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.06)[..., None] * np.array([90.0, 40, -60])
    picture: np.ndarray = 128 + 70 * np.stack(waves, axis=-1) + disc
    return picture


def _shot(
    source: str, key: str, method: str | None, pixels: np.ndarray, folder: Path, repeat: int = 0
) -> Shot:
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    out = io.BytesIO()
    image.save(out, "PNG")
    frame, store = Frame(out.getvalue()), shelf(folder)
    store.put(frame)
    return Shot(source, key, method or "", repeat, FrameRef.of(frame), store)
