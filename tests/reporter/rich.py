"""Findings of every kind, made up to be plausible, so that pages can be tested without a study."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from convergebench.analysis import Finding, Findings, Standing

WIDER = ("headline", "quality", "semantic")
METRICS = ("psnr", "ssim", "lpips", "clip")
EDITS = ("accessory", "scene-object", "geometric", "colour")
IMAGES = ("face", "animal", "interior", "text")
CYCLES = ("glasses", "hat", "red-ball", "mirror", "monochrome")
PARTIAL = "monochrome"
COMPONENTS = ("geometry", "colour", "noise", "sharpness", "semantics", "rest")
SHAPES = ("linear", "exponential", "plateau", "cliff")
CHAINS = 40


class Maker:
    """Makes findings of editors that decay at rates of their own."""

    def __init__(self, editors: Sequence[tuple[str, bool]], rounds: int, seed: int) -> None:
        """Editors as (name, is a control), best first."""
        self.editors = list(editors)
        self.rounds = rounds
        self.dice = random.Random(seed)
        count = max(1, len(editors) - 1)
        self.rate = {name: 0.01 + 0.45 * (i / count) ** 2 for i, (name, _) in enumerate(editors)}
        self.made: list[Finding] = []

    def add(self, *parts: object, estimate: float | None, width: float = 0.03, **more: Any) -> None:
        """One finding, with an interval of about this width around it."""
        span: dict[str, Any] = {}
        if width and estimate is not None and "low" not in more:
            span = {"low": estimate - width * 0.9, "high": estimate + width * 1.1}
        name = "/".join(str(part) for part in parts)
        counts = {"n": CHAINS, "missing": 2, "failed": 1, "refused": 1}
        self.made.append(Finding(id=name, estimate=estimate, **{**counts, **span, **more}))

    def left(self, editor: str, n: float, factor: float = 1.0) -> float:
        """C(n)."""
        return math.exp(-self.rate[editor] * factor * n)

    def auc(self, editor: str, factor: float = 1.0) -> float:
        """The mean of C(n)."""
        values = [self.left(editor, n, factor) for n in range(1, self.rounds + 1)]
        return sum(values) / len(values)


def factor_of(name: str) -> float:
    """How fast a metric or group loses, against the headline."""
    return 0.6 + 0.8 * (sum(map(ord, name)) % 11) / 10


def rich_findings(
    editors: Sequence[tuple[str, bool]],
    *,
    chains: Sequence[tuple[str, str]] = (),
    rounds: int = 10,
    metrics: Sequence[str] = METRICS,
    drop: Sequence[str] = (),
    cycles: Sequence[str] = CYCLES,
    run: str = "made-up",
    seed: int = 5,
) -> Findings:
    """Findings of every kind but those to drop.

    Args:
        editors: (name, is a control), best first.
        chains: (id, editor) of chains to call the worst.
        rounds: Homecomings.
        metrics: The metrics; without lpips and clip the dimensions are incomplete.
        drop: Kinds to leave out.
        cycles: What the cycles are called.
        run: What the run is called.
        seed: Of the noise.
    """
    make = Maker(editors, rounds, seed)
    whole = {"lpips", "clip"} <= set(metrics)
    wider = WIDER if whole else ()
    for editor, _ in editors:
        _of_editor(make, editor, [*wider, *metrics], metrics)
        _groups(make, editor, [*wider[:2], *metrics[:2]], cycles)
    _pairs(make)
    for index, (chain, editor) in enumerate(chains):
        make.add(
            "worst", index, estimate=0.05 + 0.02 * index, width=0, chain=chain, editor=editor,
            metric="quality", group="glasses / face", at=0.4 + 0.3 * index, n=1,
            note=f"glasses@1 of someone (face): below 0.5 after {0.4 + 0.3 * index:.2f} rounds",
        )  # fmt: skip
    ranked_by = ("headline",) if whole else tuple(metrics[:2])
    return Findings(
        run=run,
        suite="roundtrip-v1@1",
        metrics=tuple(f"{name}@1" for name in metrics),
        common=CHAINS,
        floors={name: -40.0 if name == "psnr" else 0.1 for name in metrics},
        standings=tuple(_standings(make, [*wider, *metrics])),
        findings=tuple(f for f in make.made if f.kind not in drop),
        notes=("Ranked on 40 chains (from 20 sources) that all ranked editors completed.",),
        sources=20,
        ranked_by=ranked_by,
    )


def _life(make: Maker, editor: str, metric: str) -> float | None:
    life = math.log(2) / (make.rate[editor] * factor_of(metric))
    return life if life < make.rounds else None


def _standings(make: Maker, metrics: Sequence[str]) -> list[Standing]:
    found = []
    for index, (editor, control) in enumerate(make.editors, 1):
        score = make.auc(editor)
        lives = {m: _life(make, editor, m) for m in metrics}
        tied = 2 <= index <= 3
        found.append(
            Standing(
                editor=editor,
                control=control,
                best_rank=2 if tied else index,
                worst_rank=3 if tied else index,
                score=score,
                low=max(0.0, score - 0.03),
                high=min(1.0, score + 0.03),
                auc={m: make.auc(editor, factor_of(m)) for m in metrics},
                half_life={
                    m: f"> {make.rounds}" if life is None else f"{life:.2f}"
                    for m, life in lives.items()
                },
                chains=CHAINS + 2,
                complete=CHAINS,
                outcomes={"edited": 800, "refused": 1},
                failed=1,
            )
        )
    return found


def _of_editor(make: Maker, editor: str, every: Sequence[str], metrics: Sequence[str]) -> None:
    make.add("score", editor, estimate=make.auc(editor), editor=editor)
    make.add("inert", editor, estimate=0.02, width=0, editor=editor)
    for metric in every:
        told: dict[str, Any] = {"metric": metric, "editor": editor}
        factor = factor_of(metric)
        make.add("auc", metric, editor, estimate=make.auc(editor, factor), **told)
        life = _life(make, editor, metric)
        ends: dict[str, Any] = {"low": life * 0.8, "high": life * 1.3} if life else {}
        if life is None:
            ends = {"low": 0.9 * make.rounds, "high": None}
        make.add("half-life", metric, editor, estimate=life, **ends, censored=7, **told)
        mean = make.rounds * make.auc(editor, factor)
        make.add("restricted-mean", metric, editor, estimate=mean, width=0.4, **told)
        for n in range(1, make.rounds + 1):
            here = {**told, "round": n}
            left = make.left(editor, n, factor)
            make.add("convergence", metric, editor, n, estimate=left, **here)
            if metric in metrics:
                make.add("value", metric, editor, n, estimate=40 * left, width=0, **here)
        for i in range(make.rounds + 1):
            share = 1.0 if not i else make.left(editor, i, 0.9 * factor)
            step = {**told, "at": float(i) if not i else i - 0.4}
            make.add("survival", metric, editor, i, estimate=share, **step)
    rate = make.rate[editor]
    word = "settles" if rate < 0.1 else "drifts" if rate < 0.3 else "diverges"
    told = {"metric": "psnr", "editor": editor}
    make.add("contraction", "psnr", editor, estimate=0.7 + rate, note=word, **told)
    for n in range(1, make.rounds + 1):
        size = 4 * (0.7 + rate) ** n * (1 + 0.1 * make.dice.random())
        make.add("distance", "psnr", editor, n, estimate=size, width=0, round=n, **told)
    shares = [0.1, 0.3 + rate, 0.35 - rate / 2, 0.25 - rate / 2]
    for shape, share in zip(SHAPES, shares, strict=True):
        told = {"metric": "quality", "editor": editor, "group": shape}
        make.add("shape", "quality", editor, shape, estimate=share, width=0, **told)
    for index, part in enumerate(COMPONENTS):
        told = {"editor": editor, "group": part}
        share = (index + 1 + 5 * rate * (index == 2)) / (21 + 5 * rate)
        make.add("drift-share", editor, part, estimate=share, width=0, **told)
        for n in range(1, make.rounds + 1):
            size = (index + 1) * rate * n
            make.add("drift", editor, part, n, estimate=size, width=0.1, round=n, note="in levels",
                     **told)  # fmt: skip
    for place, size in (("inside", 12.0), ("outside", 5.0)):
        told = {"editor": editor, "group": place}
        make.add("forward", editor, place, estimate=size * (1 + rate), width=1.0, **told)
        for n in range(1, make.rounds + 1):
            size *= 1 + rate / 8
            make.add("region", editor, place, n, estimate=size, width=0.8, round=n, **told)
    for part, share in (("source", 0.5), ("edit", 0.3), ("repeat", 0.05), ("rest", 0.15)):
        told = {"metric": "quality", "editor": editor, "group": part}
        make.add("variance", "quality", part, editor, estimate=share, width=0, **told)


def _groups(make: Maker, editor: str, metrics: Sequence[str], cycles: Sequence[str]) -> None:
    splits = [("edit", EDITS), ("image", IMAGES), ("cycle", [f"{c}@1" for c in cycles])]
    for kind, names in splits:
        for name in names:
            group = f"{kind}:{name}"
            partial = name.partition("@")[0] == PARTIAL or name == "colour"
            note = "4 chains of cycles that cannot be fully undone among them" if partial else ""
            told: dict[str, Any] = {"editor": editor, "group": group, "note": note}
            for metric in ("score", *metrics):
                factor = factor_of(group + metric)
                mean = make.auc(editor, factor)
                ids = (group, metric, editor)
                make.add(f"by-{kind}", *ids, estimate=mean, metric=metric, **told)
                life = min(make.rounds, math.log(2) / make.rate[editor] / factor)
                make.add(f"life-by-{kind}", *ids, estimate=life, metric=metric, censored=3, **told)
                if kind == "cycle" or metric == "score":
                    continue
                for n in range(1, make.rounds + 1):
                    left = make.left(editor, n, factor)
                    make.add("group-convergence", *ids, n, estimate=left, metric=metric, round=n,
                             **told)  # fmt: skip


def _pairs(make: Maker) -> None:
    for i, (a, _) in enumerate(make.editors):
        for j, (b, _) in enumerate(make.editors[i + 1 :], i + 1):
            tied = {i, j} == {1, 2}
            gap = make.auc(a) - make.auc(b)
            note = (
                f"{'tied' if tied else f'{a} above {b}'}; Wilcoxon signed-rank, corrected by Holm"
            )
            make.add("pair", a, b, estimate=gap, width=0.02, editor=a, other=b, note=note,
                     p=0.4 if tied else 0.001)  # fmt: skip
