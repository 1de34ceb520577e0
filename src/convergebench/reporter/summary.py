"""A few plain sentences on what was found, made from findings alone."""

from __future__ import annotations

from convergebench.analysis import Finding, Findings, Standing
from convergebench.analysis.findings import DIMENSIONS, HEADLINE
from convergebench.reporter.leaders import MEANINGS, primary_metric
from convergebench.reporter.pairs import is_tied, pairs_of
from convergebench.reporter.printing import interval, listed, number
from convergebench.wording import counted, shown


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
    who = counted(len(ranked), "editor", "was", "were")
    on = counted(findings.sources, "source")
    told.append(f"{who} compared on {on} and {counted(findings.common, 'common chain')} each.")
    lives = {f.editor: f for f in _lives(findings)}
    metric = primary_metric(findings)
    top = _top(ranked, findings)
    if len(ranked) == 1:
        told.append(_told(ranked[0], lives, metric, "scores"))
    elif len(top) == 1:
        told.append(_told(top[0], lives, metric, "keeps pictures best: it scores"))
    elif len(top) == len(ranked):
        told.append(f"No test tells the {len(ranked)} editors apart: all of them are tied.")
        told.append(_told(top[0], lives, metric, "has the highest score,"))
        told.append(_told(ranked[-1], lives, metric, "has the lowest,"))
    else:
        names = shown([s.editor for s in top], 5)
        told.append(f"{len(top)} editors are tied at the top: {names}.")
        told.append(_told(top[0], lives, metric, "has the highest score of them,"))
    last = ranked[-1]
    if len(ranked) > 1 and last not in top:
        told.append(_told(last, lives, metric, "scores lowest,"))
    return [*told, *_ties(findings, ranked), *_provisional(findings), *_unranked(findings)]


def _lives(findings: Findings) -> list[Finding]:
    metric = primary_metric(findings)
    return [f for f in findings.findings if f.kind == "half-life" and f.metric == metric]


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


def _told(standing: Standing, lives: dict[str, Finding], metric: str, words: str) -> str:
    """One editor in a sentence: its score, and when half of its chains have left home."""
    score = number(standing.score)
    if standing.low is not None:
        score += f" [{number(standing.low)}, {number(standing.high)}]"
    life = lives.get(standing.editor)
    by = "" if metric == HEADLINE else f" by {metric}"
    if life is None or standing.half_life.get(metric) is None:
        return f"{standing.editor} {words} {score}."
    printed = standing.half_life[metric]
    if life.estimate is None:
        ends = f"more than half of its chains are still home{by} when they end ({printed})"
    else:
        span = interval(life, 2)
        ends = f"half of its chains have left home{by} after {printed} {span}".rstrip()
        ends += " homecomings"
    return f"{standing.editor} {words} {score}; {ends}."


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
