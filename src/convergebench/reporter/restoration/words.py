"""What the page says in sentences, and how it prints numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from convergebench.reporter.printing import listed, number
from convergebench.restoration.result import Cell, Effect, Measure, Method, Restoration, Row
from convergebench.wording import counted, shown

NO_TRUTH: Final = "/"
NO_SCORE: Final = "–"
LEVEL: Final = 0.05
"""The level of the tests, as in the paper."""

KINDS: Final = {
    "full-reference": "against the truth",
    "semantic": "content",
    "no-reference": "without reference",
    "human": "people",
}
"""What the kinds of measures are called above their columns."""


def value_of(cell: Cell | None) -> str:
    """A cell as printed: its mean, or why there is none."""
    if cell is None:
        return NO_SCORE
    if cell.mean is None:
        return NO_TRUTH if cell.absent == "truth" else "∞" if cell.infinite else NO_SCORE
    return number(cell.mean)


def ends_of(low: float | None, high: float | None) -> str:
    """An interval in brackets; empty for none."""
    return f"[{number(low)}, {number(high)}]" if low is not None and high is not None else ""


def about(cell: Cell | None, measure: Measure) -> str:
    """What pointing at a cell tells."""
    if cell is None or (cell.mean is None and cell.absent == "score"):
        return "no score"
    if cell.absent == "truth":
        return "no ground truth"
    told = [f"{measure.title} over {counted(cell.n, 'picture')}"]
    if cell.low is not None:
        told.append(f"95 % interval {ends_of(cell.low, cell.high)}")
    if cell.infinite:
        told.append(f"{counted(cell.infinite, 'picture')} with an infinite score left out")
    if cell.place:
        told.append("best" if cell.place == 1 else "second")
    return "; ".join(told)


def chance(p: float | None) -> str:
    """A p-value as printed."""
    if p is None:
        return NO_SCORE
    return "< 0.001" if p < 0.001 else number(p)


def facts_of(found: Restoration) -> dict[str, Any]:
    """What was studied, counted: the numbers of the page's first sentences."""
    rows = found.overall.rows if found.overall else ()
    tests = [test for test in found.stability if test.p is not None]
    tried = [method for method in found.methods if not method.control]
    return {
        "pictures": len(found.pictures),
        "with_truth": sum(picture.truth for picture in found.pictures),
        "methods": len(tried),
        "prompts": len({method.prompt for method in tried if method.prompt}),
        "prompted_editors": len({method.editor for method in tried if method.prompt}),
        "unprompted": sum(not method.prompt for method in tried),
        "controls": len(found.methods) - len(tried),
        "repeats": max((test.repeats for test in found.stability), default=0),
        "failed": sum(row.failed for row in rows),
        "expected": sum(row.expected for row in rows),
        "tests": len(tests),
        "significant": sum(test.significant for test in tests),
        "by_chance": LEVEL * len(tests),
        "level": LEVEL,
        "interval": 95,
    }


def studied(facts: Mapping[str, Any]) -> str:
    """What was studied, in one sentence."""
    told = []
    if facts["pictures"]:
        truth, every = facts["with_truth"], facts["pictures"]
        which = "all" if truth == every else f"{truth:,} of them" if truth else "none"
        told.append(f"{counted(every, 'damaged picture')} ({which} with a ground truth)")
    told.append(_methods(facts))
    if facts["repeats"] > 1:
        told.append(f"up to {facts['repeats']} repeats")
    if facts["expected"]:
        told.append(f"{facts['failed']:,} of {facts['expected']:,} outputs failed")
    return "; ".join(told) + "."


def _methods(facts: Mapping[str, Any]) -> str:
    words = counted(facts["methods"], "method")
    parts = []
    if facts["prompted_editors"]:
        parts.append(
            f"{counted(facts['prompted_editors'], 'prompted editor')} with "
            f"{counted(facts['prompts'], 'prompt')}"
        )
    if facts["unprompted"]:
        parts.append(f"{facts['unprompted']:,} that read no prompt")
    words += f" ({', '.join(parts)})" if parts else ""
    if facts["controls"]:
        words += f", and {counted(facts['controls'], 'control')}"
    return words


def verdict(found: Restoration, facts: Mapping[str, Any]) -> list[str]:
    """What was found: who is best, what the wording does, how stable it is."""
    return [
        words
        for words in (
            _best(found),
            _beaten(found),
            *_wording(found),
            _stable(facts),
            _cases(found),
        )
        if words
    ]


def _best(found: Restoration) -> str:
    sheet = found.overall
    if sheet is None:
        return ""
    winners: dict[tuple[str, ...], list[str]] = {}
    for measure in sheet.measures:
        best = tuple(
            row.label
            for row in sheet.rows
            if (cell := row.cells.get(measure.name)) is not None and cell.place == 1
        )
        if best:
            winners.setdefault(best, []).append(measure.title)
    told = [
        f"{listed(measures)}: {shown(who, 3, ' and ')}{' (tied)' if len(who) > 1 else ''}"
        for who, measures in winners.items()
    ]
    return f"Best by {'; by '.join(told)}." if told else ""


def _beaten(found: Restoration) -> str:
    """Where a control, such as the untouched input, does better than every method."""
    if found.overall is None:
        return ""
    told: dict[str, list[str]] = {}
    for measure in found.overall.measures:
        sign = 1 if measure.higher_is_better else -1
        means: dict[bool, list[tuple[float, str]]] = {True: [], False: []}
        for row in found.overall.rows:
            cell = row.cells.get(measure.name)
            if cell is not None and cell.mean is not None:
                means[row.control].append((sign * cell.mean, row.label))
        if all(means.values()):
            # Of equal controls the first is named: the untouched input before its copies.
            (control, label), (method, _) = (
                max(means[is_one], key=lambda each: each[0]) for is_one in (True, False)
            )
            if control > method:
                told.setdefault(label, []).append(measure.title)
    each = [f"{label} by {listed(measures)}" for label, measures in told.items()]
    return f"A control does better than every method: {'; '.join(each)}." if each else ""


def _wording(found: Restoration) -> Iterable[str]:
    """What each factor of the prompts does, over all prompts, a sentence each."""
    titles = {measure.name: measure.title for measure in found.measures}
    several = len({effect.editor for effect in found.effects}) > 1
    whole = [effect for effect in found.effects if not effect.within]
    for key in dict.fromkeys((e.editor, e.factor, e.level, e.baseline) for e in whole):
        mine = [e for e in whole if (e.editor, e.factor, e.level, e.baseline) == key]
        better = [titles[e.measure] for e in mine if e.better == "level"]
        worse = [titles[e.measure] for e in mine if e.better == "baseline"]
        words = [f"better by {listed(better)}" if better else ""]
        words.append(f"worse by {listed(worse)}" if worse else "")
        told = ", ".join(word for word in words if word) or "no measure tells them apart"
        who = f" ({key[0]})" if several else ""
        yield f"{factor_words(mine[0])}{who}: {told}."


def factor_words(effect: Effect) -> str:
    """A factor in words: what against what."""
    words = f"{effect.factor.capitalize()} {effect.level} against {effect.baseline}"
    if effect.within:
        factor, _, level = effect.within.partition("=")
        words += f", where {factor} is {level}" if level else f", {factor}"
    return words


def _stable(facts: Mapping[str, Any]) -> str:
    if not facts["tests"]:
        return ""
    return (
        f"Stability: {facts['significant']:,} of {counted(facts['tests'], 'Friedman test')} "
        f"{'finds' if facts['significant'] == 1 else 'find'} that repeats differ (p < {LEVEL:g}); "
        f"by chance alone it would be about {facts['by_chance']:.1f}."
    )


def _cases(found: Restoration) -> str:
    told = [
        f"{kind} in {sums['cases']:,} of {sums['looked']:,} outputs looked at"
        for kind, sums in sorted(case_sums(found).items())
    ]
    return f"Cases: {'; '.join(told)}." if told else ""


def case_sums(found: Restoration) -> dict[str, dict[str, int]]:
    """Cases and what was looked at, by kind, controls left out: what the first sentences tell."""
    controls = {method.id for method in found.methods if method.control}
    sums: dict[str, dict[str, int]] = {}
    for count in found.counts:
        if count.method not in controls:
            mine = sums.setdefault(count.kind, {"cases": 0, "looked": 0})
            mine["cases"] += count.cases
            mine["looked"] += count.looked
    return sums


def made_of(row: Row) -> tuple[int, int]:
    """The pictures that a row's means are made of: the most, and the fewest that any has."""
    counts = [cell.n for cell in row.cells.values() if cell.n]
    return max(counts, default=0), min(counts, default=0)


def measure_spans(measures: Sequence[Measure]) -> list[tuple[str, int]]:
    """The kinds of neighbouring measures, and how many columns each has."""
    spans: list[tuple[str, int]] = []
    for measure in measures:
        title = KINDS[measure.kind]
        if spans and spans[-1][0] == title:
            spans[-1] = (title, spans[-1][1] + 1)
        else:
            spans.append((title, 1))
    return spans


def labels_of(methods: Iterable[Method]) -> dict[str, str]:
    """What each method is called, by its id."""
    return {method.id: method.label for method in methods}
