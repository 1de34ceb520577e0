"""A trial as tables for the terminal, and as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import polars as pl

from convergebench.errors import SettingsError
from convergebench.table import Cell, Table
from convergebench.trial.result import Card, Estimate, Trial

CSVS: Final = ("gaps", "individual", "success", "trajectories", "single", "premise", "per_arm")
"""The tables of a trial that are written, under their names; `cards` comes with them."""


def success_table(trial: Trial) -> Table:
    """A row per metric: failed cells of each arm, the verdict, and how the score goes."""
    cells = {
        (metric, arm): (failed, incomplete, count)
        for metric, arm, failed, incomplete, count in trial.per_arm.select(
            "metric", "arm", "failed", "incomplete", "cells"
        ).iter_rows()
    }
    rows: list[tuple[Cell, ...]] = [
        (
            card.metric,
            card.verdict,
            f"{card.failed}/{card.cells}",
            *(_failed(*cells[card.metric, arm]) for arm in trial.arms),
            _estimate(card.tau, sign="+"),
            _estimate(card.later_better),
            _delay(card),
        )
        for card in trial.cards
    ]
    columns = (
        "metric",
        "verdict",
        "failed",
        *trial.arms,
        "τ [95 %]",
        "P(later better) [95 %]",
        "noticed at",
    )
    deltas = ", ".join(f"Δ{step}" for step in trial.steps)
    legend = (
        f"failed: pairs of editor and initial image where one of {deltas} (score of the later "
        "frame − that of frame 1) is not negative, by arm; ? where a score is missing. τ: of score "
        "and step, −1 is best. P: how often the later of two frames is scored better, 0 is best. "
        "noticed at: the step from which the score stays below that of frame 1, median over chains."
    )
    notes = [legend, *_controls(trial, cells), *trial.notes]
    return Table(f"Trial of no-reference metrics on {trial.title}", columns, rows, notes)


def _controls(trial: Trial, cells: dict[tuple[str, str], tuple[int, int, int]]) -> list[str]:
    """A line on the controls, which are no part of any verdict."""
    if not trial.controls:
        return []
    told = [
        f"{arm} ("
        + ", ".join(f"{card.metric} {_failed(*cells[card.metric, arm])}" for card in trial.cards)
        + ")"
        for arm in trial.controls
    ]
    return [
        "Controls are left out of all verdicts: what is not damaged should not be scored lower. "
        f"Cells without a fall: {'; '.join(told)}."
    ]


def _failed(failed: int, incomplete: int, cells: int) -> str:
    return f"{failed}/{cells}" + (f" ?{incomplete}" if incomplete else "")


def _estimate(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return "–"
    told = f"{estimate.value:{sign}.2f}"
    if estimate.low is None or estimate.high is None:
        return told
    return f"{told} [{estimate.low:{sign}.2f}, {estimate.high:{sign}.2f}]"


def _delay(card: Card) -> str:
    if card.delay is None:
        return "–"
    return f"{card.delay.label} ({card.delay.noticed}/{card.delay.chains} chains)"


def card_frame(trial: Trial) -> pl.DataFrame:
    """The cards as a table, a row each, what is nested flattened."""
    return pl.DataFrame([_flat(card) for card in trial.cards], infer_schema_length=None)


def _flat(card: Card) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in card.model_dump(mode="json").items():
        if name in ("failures_by_step", "failures_by_arm", "agreement"):
            continue
        if name == "caveats":
            told[name] = " ".join(value)
        elif name in ("tau", "later_better"):
            told |= {f"{name}{end}": (value or {}).get(key) for key, end in _ENDS}
        elif name in ("delay", "sensitivity", "content"):
            kept = (value or {}).items()
            told |= {
                f"{name}_{key}": "-".join(map(str, part)) if isinstance(part, list) else part
                for key, part in kept
            }
        else:
            told[name] = value
    told |= {f"failures_at_{step}": count for step, count in card.failures_by_step.items()}
    told |= {f"failures_on_{arm}": count for arm, count in card.failures_by_arm.items()}
    for peer in card.agreement:
        told |= {f"rho_{peer.other}{end}": getattr(peer.spearman, key) for key, end in _ENDS}
    return told


_ENDS: Final = (("value", ""), ("low", "_low"), ("high", "_high"))


def write_tables(trial: Trial, folder: Path) -> list[Path]:
    """Write `trial.json` and a CSV of every table into a folder, which is made if need be.

    Raises:
        SettingsError: The folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / "trial.json"]
        text = json.dumps(trial.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        written[0].write_text(text + "\n", encoding="utf-8")
        for name in (*CSVS, "cards"):
            table = card_frame(trial) if name == "cards" else getattr(trial, name)
            written.append(folder / f"{name}.csv")
            table.write_csv(written[-1])
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be written: {error.strerror or error}. Give another --out."
        ) from error
    return written
