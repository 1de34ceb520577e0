"""What notes are written from, and the commands they advise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from convergebench.analysis.leaderboard import Ranking
from convergebench.analysis.published import held_frames
from convergebench.analysis.roster import homecomings
from convergebench.analysis.study import Study


@dataclass(frozen=True)
class Evidence:
    """All that notes are written from.

    Attributes:
        main: The study of the chains that the headline is made of.
        whole: That of all chains.
        ranking: Who stands where.
        inert: The verdict on each editor that could be checked.
        complete: How many complete chains each editor has.
        published: Sentences on scores that are not ours.
    """

    main: Study
    whole: Study
    ranking: Ranking
    inert: Mapping[str, bool]
    complete: Mapping[str, int]
    published: Sequence[str] = ()

    @property
    def measured(self) -> Study:
        """The study of the headline; that of all chains where it has none."""
        return self.whole if self.main.chains.is_empty() else self.main

    @cached_property
    def pictured(self) -> pl.DataFrame:
        """Chain and n of the homecomings whose picture is here."""
        chains = self.main.gathered.chains
        came = homecomings(chains, self.main.gathered.suite)
        return came.join(held_frames(chains), on=["chain", "step"], how="semi")


def command(
    told: Evidence, verb: str, chains: pl.DataFrame | None = None, options: str = ""
) -> str:
    """A command that is right wherever it is read: reports travel, and name no machine's paths."""
    if not told.main.gathered.several:
        return (
            f"`convergebench {verb} RUN{options}`, RUN being this run's directory "
            f"({told.main.gathered.name})"
        )
    runs = told.main.gathered.runs_of(chains["chain"]) if chains is not None else ()
    names = " and of ".join(runs or [run.name for run in told.main.gathered.runs])
    return f"`convergebench {verb} RUN{options}`, RUN being the directory of {names}"
