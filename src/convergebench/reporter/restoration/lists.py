"""The study's lists as LaTeX: effects, outliers, trade-off, cases by method.

Tables of means have bold and underlined cells of their own: `latex`.
"""

from __future__ import annotations

from pathlib import Path

from convergebench.reporter.export.latex import table_tex
from convergebench.reporter.export.sheets import Column, Estimate, Sheet
from convergebench.reporter.folder import write_changed
from convergebench.reporter.printing import number
from convergebench.reporter.restoration.words import chance, factor_words, labels_of
from convergebench.restoration.result import Restoration


def write_lists(found: Restoration, folder: Path) -> list[Path]:
    """Write every list that has lines as `NAME.tex`; says what was written."""
    made = {
        "effects": _effects(found),
        "outliers": _outliers(found),
        "tradeoff": _tradeoff(found),
        "counts": _counts(found),
    }
    written = []
    for name, sheet in made.items():
        if sheet.rows:
            write_changed(folder / f"{name}.tex", table_tex(sheet).encode())
            written.append(folder / f"{name}.tex")
    return written


def _effects(found: Restoration) -> Sheet:
    titles = {measure.name: f"{measure.title} {measure.arrow}" for measure in found.measures}
    verdicts = {"level": "better", "baseline": "worse", "tied": "tied"}
    rows = tuple(
        (
            e.editor,
            factor_words(e),
            titles[e.measure],
            Estimate(e.difference, e.low, e.high),
            chance(e.p),
            chance(e.adjusted),
            e.n,
            verdicts[e.better],
        )
        for e in found.effects
    )
    columns = (
        Column("editor", "editor"),
        Column("factor", "factor", "words"),
        Column("measure", "measure"),
        Column("difference", "difference", "estimate"),
        Column("p", "p"),
        Column("adjusted", "p, corrected"),
        Column("n", "pictures", "number"),
        Column("verdict", "verdict"),
    )
    caption = (
        "Paired by picture: the mean over prompts of the first level minus that of the second, "
        "with 95 % intervals that resample pictures.",
    )
    return Sheet("restoration-effects", "What the wording does", columns, rows, caption)


def _outliers(found: Restoration) -> Sheet:
    labels = labels_of(found.methods)
    titles = {measure.name: measure.title for measure in found.measures}
    rows = tuple(
        (o.source, labels[o.method], titles[o.measure], ", ".join(map(number, o.values)),
         o.spread, o.usual)
        for o in found.outliers
    )  # fmt: skip
    columns = (
        Column("source", "picture"),
        Column("method", "method"),
        Column("measure", "measure"),
        Column("values", "repeats"),
        Column("spread", "spread", "number"),
        Column("usual", "usual spread", "number"),
    )
    return Sheet("restoration-outliers", "Pictures whose repeats differ most", columns, rows)


def _tradeoff(found: Restoration) -> Sheet:
    titles = {measure.name: f"{measure.title} {measure.arrow}" for measure in found.measures}
    rows = tuple(
        (p.label, p.group, titles[p.distortion], p.x, titles[p.perception], p.y, p.n)
        for p in found.tradeoff
    )
    columns = (
        Column("method", "method"),
        Column("group", "group"),
        Column("distortion", "distortion"),
        Column("x", "mean", "number"),
        Column("perception", "perception"),
        Column("y", "mean", "number"),
        Column("n", "pictures", "number"),
    )
    return Sheet("restoration-tradeoff", "Perception against distortion", columns, rows)


def _counts(found: Restoration) -> Sheet:
    labels = labels_of(found.methods)
    rows = tuple((c.kind, c.by, labels[c.method], c.group, c.cases, c.looked) for c in found.counts)
    columns = (
        Column("kind", "kind"),
        Column("by", "told by"),
        Column("method", "method"),
        Column("group", "group"),
        Column("cases", "cases", "number"),
        Column("looked", "outputs", "number"),
    )
    return Sheet("restoration-counts", "Infidelity and over-generation", columns, rows)
