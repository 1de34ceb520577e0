"""A few plain sentences on what was found, made from findings alone."""

from __future__ import annotations

from typing import Final

from convergebench.analysis import Findings, Standing
from convergebench.analysis.findings import DIMENSIONS, HEADLINE
from convergebench.reporter.leaders import MEANINGS, primary_metric, refusals_of
from convergebench.reporter.pairs import is_tied, pairs_of
from convergebench.reporter.printing import interval, listed, number
from convergebench.wording import counted, shown

HALF: Final = 0.5
"""The threshold that is half of the likeness."""


def summary(findings: Findings) -> list[str]:
    """What a hurried reader should know, a sentence or two each."""
    ranked = [s for s in findings.standings if s.best_rank is not None and not s.control]
    told: list[str] = []
    if not ranked:
        return [
            "No editor is ranked: the reasons stand in the table.",
            *_provisional(findings),
            *_unranked(findings),
        ]
    told.append(_compared(findings, len(ranked)))
    top = _top(ranked, findings)
    if len(ranked) == 1:
        told.append(_told(ranked[0], findings, "scores"))
    elif len(top) == 1:
        told.append(_told(top[0], findings, "keeps pictures best: it scores"))
    elif len(top) == len(ranked):
        told.append(f"No test tells the {len(ranked)} editors apart: all of them are tied.")
        told.append(_told(top[0], findings, "has the highest score,"))
        told.append(_told(ranked[-1], findings, "has the lowest,"))
    else:
        names = shown([s.editor for s in top], 5)
        told.append(f"{len(top)} editors are tied at the top: {names}.")
        told.append(_told(top[0], findings, "has the highest score of them,"))
    last = ranked[-1]
    if len(ranked) > 1 and last not in top:
        told.append(_told(last, findings, "scores lowest,"))
    return [
        *told,
        *_ties(findings, ranked),
        *_early(findings, ranked),
        *_provisional(findings),
        *_unranked(findings),
    ]


def _compared(findings: Findings, editors: int) -> str:
    """Who was compared on what; ranks and tests count the ranked controls too."""
    controls = sum(s.control and s.best_rank is not None for s in findings.standings)
    on = f"on {counted(findings.sources, 'source')} and {counted(findings.common, 'common chain')}"
    if editors > 1:
        more = f" ({editors + controls} with {counted(controls, 'control')}, which ranks and tests "
        more += "count too)"
        return f"{editors} editors were compared{more if controls else ''} {on} each."
    if controls:
        return f"1 editor was compared with {counted(controls, 'control')} {on} each."
    return f"1 editor was measured, with no other to compare it with, {on.replace('common ', '')}."


def _top(ranked: list[Standing], findings: Findings) -> list[Standing]:
    """The leader, and whoever is not told apart from it."""
    first = ranked[0]
    if first.worst_rank is None or first.best_rank is None:
        return [first]
    pairs = {frozenset((f.editor, f.other)): f for f in pairs_of(findings)}
    top = [first]
    for s in ranked[1:]:
        pair = pairs.get(frozenset((first.editor, s.editor)))
        overlaps = s.best_rank is not None and s.best_rank <= first.worst_rank
        if is_tied(pair) if pair else overlaps:
            top.append(s)
    return top


def _told(standing: Standing, findings: Findings, words: str) -> str:
    """One editor in a sentence: its score, and how long half of its chains stay above C."""
    score = number(standing.score)
    if standing.low is not None:
        score += f" [{number(standing.low)}, {number(standing.high)}]"
    lives = {
        f.metric: f
        for f in findings.findings
        if f.kind == "half-life" and f.editor == standing.editor and f.metric in standing.half_life
    }
    named = [name for name in _life_metrics(findings) if name in lives]
    if not named:
        return f"{standing.editor} {words} {score}."
    level = f"C > {findings.threshold:g}"
    above = f"above half likeness ({level})" if findings.threshold == HALF else f"at {level}"
    times = {
        name: f"{standing.half_life[name]} {interval(lives[name], 2)}".rstrip() for name in named
    }
    if len(named) > 1:
        each = ", ".join(f"{name} {time}" for name, time in times.items())
        ends = f"homecomings until half of its chains are no longer {above}: {each}"
    else:
        ((name, time),) = times.items()
        by = "" if name == HEADLINE else f" by {name}"
        if lives[name].estimate is None:
            ends = f"more than half of its chains are still {above}{by} when they end ({time})"
        else:
            ends = f"half of its chains are no longer {above}{by} after {time} homecomings"
    return f"{standing.editor} {words} {score}; {ends}."


def _life_metrics(findings: Findings) -> list[str]:
    """Whose half-lives are told: the headline's, else those of every metric that ranks."""
    first = primary_metric(findings)
    known = {name for s in findings.standings for name in s.half_life}
    ranking = [name for name in findings.ranked_by if name in known]
    return [first] if first == HEADLINE or not ranking else ranking


def _early(findings: Findings, ranked: list[Standing]) -> list[str]:
    """How many chains ended too early, and how many of them are of the editor that scores best."""
    editors = [s for s in findings.standings if not s.control]
    ended = sum(s.failed for s in editors)
    if not ended:
        return []
    refusals = refusals_of(findings)
    refused = sum(refusals.get(s.editor, 0) for s in editors)
    kinds = [
        f"{refused} refused" if refused else "",
        f"{ended - refused} failed" if ended > refused else "",
    ]
    told = f"{counted(ended, 'chain')} of the editors ended early: "
    told += f"{' and '.join(kind for kind in kinds if kind)}."
    best = max(ranked, key=lambda s: s.score or 0)
    if best.failed:
        told += (
            f" {best.failed} of them {'is' if best.failed == 1 else 'are'} of {best.editor}, which "
            "has the highest score: scores are of complete chains alone."
        )
    return [told]


def _ties(findings: Findings, ranked: list[Standing]) -> list[str]:
    names = {s.editor for s in ranked}
    pairs = [f for f in pairs_of(findings) if {f.editor, f.other} <= names]
    if not pairs:
        return []
    tied = sum(is_tied(f) for f in pairs)
    if tied == len(pairs):
        return []  # said already
    if not tied:
        return [f"All {len(pairs)} pairs of editors differ."] if len(pairs) > 1 else []
    return [f"{tied} of {counted(len(pairs), 'pair')} {'is' if tied == 1 else 'are'} tied."]


def _provisional(findings: Findings) -> list[str]:
    """What the score rests on when that is less than both dimensions, and what else weakens it."""
    said = [note for note in findings.notes if note.startswith("Ranks are provisional")]
    if findings.ranked_by == (HEADLINE,) or not findings.ranked_by:
        return said
    scored = {label.rpartition("@")[0] for label in findings.metrics}
    lacking = [
        f"{name} lacks {listed([m for m in needs if m not in scored])}"
        for name, needs in DIMENSIONS.items()
        if set(needs) - scored
    ]
    why = f": {' and '.join(lacking)}" if lacking else ""
    return [*said, f"The score rests on {listed(list(findings.ranked_by))} alone{why}."]


def _unranked(findings: Findings) -> list[str]:
    found = []
    for s in findings.standings:
        if s.why_unranked and not s.control:
            more = MEANINGS.get(s.why_unranked, "")
            found.append(
                f"{s.editor} is not ranked: {s.why_unranked}{f' ({more})' if more else ''}."
            )
    return found[:3] + ([f"{len(found) - 3} more are not ranked."] if len(found) > 3 else [])
