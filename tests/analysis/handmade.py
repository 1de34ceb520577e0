"""Tables and run directories written by hand, so that every expected number is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from convergebench.chain import Chain, ChainKey, FrameRef, Outcome, Settings, Step
from convergebench.comparisons import FLOOR_PREFIX
from convergebench.errors import ConvergeBenchError
from convergebench.metric import MetricSpec
from convergebench.registry import open_metric
from convergebench.scoretable import rows_frame
from convergebench.store import RunStore
from convergebench.suite import Suite, load_suite
from tests.support.runs import CYCLES, write_suite

PSNR = MetricSpec("psnr", "1", "full-reference", True, identical=math.inf)
SSIM = MetricSpec("ssim", "1", "full-reference", True, identical=1.0)
LPIPS = MetricSpec("lpips", "1", "full-reference", False, identical=0.0)
CLIP = MetricSpec("clip", "1", "semantic", True, identical=1.0)
NIQE = MetricSpec("niqe", "1", "no-reference", False)
SPECS = {spec.name: spec for spec in (PSNR, SSIM, LPIPS, CLIP)}
REF = FrameRef(sha256="0" * 64, format="png", bytes=1, width=32, height=32)

MORE_CYCLES = """
[[cycle]]
name = "grey"
kind = "recolour"
[[cycle.edit]]
prompt = "Make it monochrome."
[[cycle.edit]]
prompt = "Give it its colours back."

[[cycle]]
name = "more"
kind = "accumulate"
[[cycle.edit]]
prompt = "Add one more apple."

[[cycle]]
name = "rebuild"
kind = "reconstruct"
[[cycle.edit]]
prompt = "Colour patches only."
[[cycle.edit]]
prompt = "Edges only."
inputs = ["source"]
[[cycle.edit]]
prompt = "Rebuild the picture."
inputs = ["back 2", "previous"]

[[cycle]]
name = "repair"
kind = "restore"
[[cycle.edit]]
prompt = "Restore the picture."
"""


def decibels(rmse: float) -> float:
    """The PSNR of a root mean squared error."""
    return math.inf if rmse == 0 else 20 * math.log10(255 / rmse)


def psnr_at(c: float, floor: float = 100.0) -> float:
    """The PSNR whose convergence is c when the floor is an RMSE of 100."""
    return decibels((1 - c) * floor)


def ssim_at(c: float, floor: float = 0.2) -> float:
    """The SSIM whose convergence is c when the floor is 0.2."""
    return floor + c * (1 - floor)


VALUE_AT = {"psnr": psnr_at, "ssim": ssim_at}
FLOOR = {"psnr": decibels(100), "ssim": 0.2}


@cache
def installed(metric: str) -> str:
    """The version of a metric that is installed; `1` for one that is not."""
    try:
        return open_metric(metric).spec.version
    except ConvergeBenchError:
        return "1"


def score_rows(rows: Sequence[tuple[str, int, str, str, str, str, float | None]]) -> pl.DataFrame:
    """A score table from (chain, step, metric, version, against, where, value)."""
    names = ("chain", "step", "metric", "version", "against", "where", "value")
    return rows_frame([dict(zip(names, row, strict=True)) | {"note": None} for row in rows])


def curve_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Curves from {editor, c: [C(1), …]} and, where it matters, any other column.

    A None in `c` is a null score; the string "-" is a homecoming without a row.
    """
    found = []
    for row in rows:
        told = {"metric": "psnr", "source": "s0", "cycle": "copy@1", "settings": "", "repeat": 0}
        told |= {key: value for key, value in row.items() if key != "c"}
        told.setdefault("chain", "/".join(str(v) for k, v in told.items() if k != "metric"))
        for n, c in enumerate(row["c"], 1):
            if c != "-":
                found.append(told | {"n": n, "c": c})
    schema: dict[str, pl.DataType] = {
        name: pl.String() for name in ("metric", "chain", "source", "cycle", "editor", "settings")
    }
    schema |= {"repeat": pl.Int32(), "n": pl.Int32(), "c": pl.Float64()}
    return pl.DataFrame(found, schema=schema)


def chain_of(
    source: str,
    cycle: str,
    editor: str,
    length: int,
    ended: Outcome | None = None,
    *,
    settings: Settings | None = None,
    repeat: int = 0,
    truth: bool = False,
) -> Chain:
    """A chain of made-up frames: `length` edits, and how the next one ended."""
    key = ChainKey(
        suite="tiny@1",
        source=source,
        cycle=f"{cycle}@1",
        editor=editor,
        settings=settings or Settings(),
        repeat=repeat,
    )
    steps = [
        Step(step=n, outcome="edited", prompt="p", inputs=("x",), frame=REF)
        for n in range(1, length + 1)
    ]
    if ended is not None:
        steps.append(Step(step=length + 1, outcome=ended, prompt="p", inputs=("x",)))
    return Chain(key, REF, REF if truth else None, "1", tuple(steps))


class HandMade:
    """A run directory with made-up values; `done()` writes the scores."""

    def __init__(self, folder: Path, sources: int = 2, cycles: str = CYCLES) -> None:
        self.suite: Suite = load_suite(write_suite(folder / "suite", sources, cycles=cycles))
        self.path = folder / "run"
        self.store = RunStore.create(self.path, self.suite, 32)
        self.rows: list[dict[str, Any]] = []

    def chain(self, *told: Any, **more: Any) -> Chain:
        """Record a chain, as `chain_of` describes it."""
        chain = chain_of(*told, **more)
        self.store.start(chain)
        for step in chain.steps:
            self.store.append(chain.key.id, step)
        return chain

    def score(
        self,
        chain: str,
        step: int,
        metric: str,
        value: float | None,
        *,
        against: str = "home",
        where: str = "all",
        version: str | None = None,
        note: str | None = None,
    ) -> None:
        """Add one score row."""
        self.rows.append(
            {
                "chain": chain,
                "step": step,
                "metric": metric,
                "version": installed(metric) if version is None else version,
                "against": against,
                "where": where,
                "value": value,
                "note": note,
            }
        )

    def walk(
        self,
        source: str,
        cycle: str,
        editor: str,
        curve: Sequence[float | None],
        *,
        metrics: Sequence[str] = ("psnr", "ssim"),
        every: int | None = None,
        length: int | None = None,
        **more: Any,
    ) -> Chain:
        """A chain whose convergence is `curve` by every metric."""
        period = every or (2 if cycle == "ball" else 1)
        steps = period * len(curve) if length is None else length
        chain = self.chain(source, cycle, editor, steps, **more)
        for n, c in enumerate(curve, 1):
            for metric in metrics:
                value = None if c is None else VALUE_AT[metric](c)
                self.score(chain.key.id, n * period, metric, value)
        return chain

    def floors(self, metrics: Sequence[str] = ("psnr", "ssim"), version: str | None = None) -> None:
        """Floor rows such that `psnr_at` and `ssim_at` hold."""
        names = [source.name for source in self.suite.source]
        for metric in metrics:
            for name in names:
                for other in names:
                    if other != name:
                        self.score(
                            FLOOR_PREFIX + name,
                            0,
                            metric,
                            FLOOR[metric],
                            against=other,
                            version=version,
                        )

    def done(self) -> Path:
        """Write the score rows."""
        if self.rows:
            self.store.add_scores(rows_frame(self.rows))
        return self.path
