"""What a reader has to know about the chains: ended early, unfinished, missing, kept apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import polars as pl

from convergebench.analysis.evidence import Evidence, command
from convergebench.analysis.findings import RANKED_BY
from convergebench.analysis.presence import absent_frames, is_bare
from convergebench.chain import PAUSES, count_outcomes
from convergebench.wording import counted, shown

_SIZE: Final = re.compile(r"\d+x\d+")


def on_chains(told: Evidence) -> list[str]:
    """The notes, a sentence each."""
    table = told.whole.chains
    notes = []
    failed = table.filter(pl.col("failed"))
    if len(failed):
        counts = failed.group_by("ended").agg(pl.len()).sort("ended")
        words = ", ".join(f"{n} {outcome}" for outcome, n in counts.iter_rows())
        notes.append(f"{len(failed)} of {counted(len(table), 'chain')} ended early: {words}.")
    unfinished = table.filter(pl.col("ended").is_null() & (pl.col("length") < pl.col("steps")))
    open_ones = unfinished.filter(~pl.col("imported"))
    if len(open_ones):
        unborn = len(open_ones.filter(~pl.col("begun")))
        paused = _paused(told, set(open_ones["chain"]))
        more = " --budget MORE" if paused["over-budget"] else ""
        notes.append(
            f"{len(open_ones)} of {counted(len(table), 'chain')} "
            f"{'is' if len(open_ones) == 1 else 'are'} not finished"
            + (f", {unborn} of them not begun" if unborn else "")
            + (f", {paused['over-budget']} of them for want of budget" if more else "")
            + (f", {paused['blocked']} of them blocked" if paused["blocked"] else "")
            + f". Go on with {command(told, 'run', open_ones, more)}."
        )
    short = unfinished.filter("imported")
    if len(short):
        notes.append(
            f"{len(short)} of {counted(len(table.filter('imported')), 'imported chain')} "
            f"{'is' if len(short) == 1 else 'are'} shorter than the longest of "
            f"{'its' if len(short) == 1 else 'their'} cycle; "
            f"{'it was' if len(short) == 1 else 'they were'} imported so.{_remedy(told)}"
        )
    gaps = count_outcomes(told.whole.gathered.chains).get("missing", 0)
    if gaps:
        notes.append(
            f"{counted(gaps, 'frame')} {'is' if gaps == 1 else 'are'} missing in the import: made "
            "elsewhere, and not there. Homecomings among them have no value."
        )
    for run in told.whole.gathered.runs:
        if is_bare(run):
            notes.append(f"{run.name} is a submission: its pictures are not here.")
            continue
        gone, named = absent_frames(run)
        if gone:
            notes.append(
                f"{gone} of {counted(named, 'frame')}"
                + (f" of {run.name}" if told.whole.gathered.several else "")
                + f" {'is' if gone == 1 else 'are'} not on the disk; "
                f"`convergebench verify RUN` names {'it' if gone == 1 else 'them'}."
            )
    apart = told.whole.chains.filter(~pl.col("reversible"))
    if len(apart):
        cycles = sorted(set(apart["cycle"].unique()))
        notes.append(
            f"{counted(len(apart), 'chain')} of {counted(len(cycles), 'cycle')} that no editor "
            f"could fully undo ({shown(cycles)}) {'is' if len(apart) == 1 else 'are'} kept out of "
            "the headline and reported by edit category."
        )
    table = told.main.chains
    homeless = table.filter(~pl.col("has_home") | pl.col("content_only"))
    if len(homeless):
        cycles = sorted(set(homeless["cycle"].unique()))
        notes.append(
            f"{counted(len(homeless), 'chain')} of {shown(cycles)} "
            f"{'has' if len(homeless) == 1 else 'have'} no home that "
            f"{' and '.join(RANKED_BY)} can be measured against and "
            f"{'is' if len(homeless) == 1 else 'are'} not in the ranking."
        )
    return notes


def _paused(told: Evidence, chains: set[str]) -> Counter[str]:
    """How many of these chains wait, by what for."""
    last = (c.last for c in told.whole.gathered.chains if c.key.id in chains)
    return Counter(step.outcome for step in last if step and step.outcome in PAUSES)


def on_calls(told: Evidence) -> list[str]:
    """Where a provider answered with another model, or another size, than was asked for."""
    notes = []
    chains = told.whole.gathered.chains
    for editor in dict.fromkeys(chain.key.editor for chain in chains):
        steps = [s for chain in chains if chain.key.editor == editor for s in chain.final]
        models = list(dict.fromkeys(s.call.model for s in steps if s.call.model))
        if len(models) > 1:
            notes.append(
                f"{editor} was answered by {len(models)} models ({shown(models)}): its frames are "
                "not all of one make."
            )
        sized = [s for s in steps if s.frame and s.call.size and _SIZE.fullmatch(s.call.size)]
        other = [s for s in sized if s.frame and s.call.size != f"{s.frame.width}x{s.frame.height}"]
        if other and (frame := other[0].frame):
            notes.append(
                f"{editor}: {len(other)} of {counted(len(sized), 'frame')} "
                f"{'has' if len(other) == 1 else 'have'} another size than was asked for (such as "
                f"{other[0].call.size}, returned {frame.width}x{frame.height})."
            )
    return notes


def _remedy(told: Evidence) -> str:
    """How to compare editors none of whose chains is as long as the longest."""
    table = told.main.chains.filter(pl.col("imported") & ~pl.col("failed") & (pl.col("rounds") > 0))
    drawn = {c.key.id for c in told.main.gathered.chains if any(step for step in c.held)}
    mine = table.filter(pl.col("chain").is_in(list(drawn))) if drawn else table
    gaps = told.main.grid.filter(~pl.col("made")).group_by("chain").agg(reach=pl.col("n").min() - 1)
    # A chain without a gap is as long as it should be, whatever N is.
    whole = pl.col("reach").is_null().any()
    reach = (
        mine.join(gaps, on="chain", how="left")
        .group_by("editor")
        .agg(reach=pl.when(~whole).then(pl.col("reach").max()))
    )
    least = reach["reach"].min() if len(reach) else None
    if not isinstance(least, int) or least < 1:
        return ""
    runs = "RUN …" if told.main.gathered.several else "RUN"
    return (
        f" `convergebench report {runs} --rounds {least}` compares what all editors have, the "
        f"first {counted(least, 'homecoming')}."
    )
