"""The trial of no-reference metrics: do they notice that iterated generation ruins a picture?

Frames of replications get worse from step to step. A metric that scores a later frame no lower
than frame 1 is fooled. `try_metrics` puts every scored metric on trial, and a researcher's own, by
plug-in, by a table of scores or by a command that takes paths of pictures.
"""

from __future__ import annotations

from convergebench.trial.command import CommandMetric
from convergebench.trial.own import Reading, ScoreFile
from convergebench.trial.result import Card, Trial
from convergebench.trial.tables import write_tables
from convergebench.trial.trying import STEPS, try_metrics

__all__ = [
    "STEPS",
    "Card",
    "CommandMetric",
    "Reading",
    "ScoreFile",
    "Trial",
    "try_metrics",
    "write_tables",
]
