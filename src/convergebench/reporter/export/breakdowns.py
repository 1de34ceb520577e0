"""Tables of parts: by category, cycle, session and settings; of the drift; of the variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from convergebench.analysis import Finding, Findings
from convergebench.reporter.charts import is_taken_apart, wider_names
from convergebench.reporter.charts.drift import REST
from convergebench.reporter.export import sheets
from convergebench.reporter.export.sheets import CENSORED, COUNTS, INTERVALS, Cell, Column, Sheet

SPLITS: Final = {
    "edit": "edit category",
    "image": "image category",
    "cycle": "cycle",
    "session": "session",
    "settings": "settings",
}
SCORE: Final = "score"
OVER_ALL: Final = (
    "Over all chains, those of partially reversible cycles too; each editor's own complete chains."
)


def group_tables(findings: Findings) -> list[Sheet]:
    """Scores and half-lives by part of the chains."""
    return [_group_table(findings, split, words) for split, words in SPLITS.items()]


def _group_table(findings: Findings, split: str, words: str) -> Sheet:
    means = {_key(f): f for f in findings.findings if f.kind == f"by-{split}"}
    lives = {_key(f): f for f in findings.findings if f.kind == f"life-by-{split}"}
    order = [SCORE, *wider_names(findings)]
    editors = [s.editor for s in findings.standings]
    keys = sorted(
        {*means, *lives},
        key=lambda k: (k[0], _place(order, k[1]), k[1], _place(editors, k[2]), k[2]),
    )
    columns = (
        Column("group", words),
        Column("metric", "metric"),
        Column("editor", "editor"),
        Column("auc", "mean AUC", "estimate"),
        Column("half_life", "half-life", "estimate"),
        *sheets.count_columns(),
        Column("note", "note", "words"),
    )
    rows: list[tuple[Cell, ...]] = []
    for key in keys:
        mean, life = means.get(key), lives.get(key)
        both = [f for f in (mean, life) if f]
        rows.append(
            (
                _bare(key[0]),
                key[1],
                key[2],
                sheets.of(mean),
                sheets.of(life, 2),
                *sheets.counts(both[0])[:4],
                life.censored if life else None,
                "; ".join(dict.fromkeys(f.note for f in both if f.note)),
            )
        )
    title = f"Results by {words}"
    caption = (OVER_ALL, "Score: mean AUC of what ranks.", INTERVALS, f"{COUNTS} {CENSORED}")
    scores = [f for f in means.values() if f.metric == SCORE]
    shown = _across(f"by-{split}", f"Score by {words}", words, scores, editors)
    return Sheet(f"by-{split}", title, columns, tuple(rows), caption, shown if scores else None)


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.group, finding.metric, finding.editor


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _bare(group: str) -> str:
    """A group without the word that says what it is a group of."""
    return group.partition(":")[2] or group


def _across(
    name: str, title: str, words: str, points: Sequence[Finding], editors: Sequence[str]
) -> Sheet:
    """Groups down, editors across."""
    known = {(f.group, f.editor): f for f in points}
    have = [e for e in editors if any(f.editor == e for f in points)]
    columns = [Column("group", words), *(Column(e, e, "estimate", "score") for e in have)]
    rows: list[tuple[Cell, ...]] = [
        (_bare(group), *(sheets.of(known.get((group, editor))) for editor in have))
        for group in sorted({f.group for f in points})
    ]
    caption = (
        f"Mean AUC of what ranks, by {words}. {OVER_ALL}",
        INTERVALS,
        sheets.spread(points),
    )
    return Sheet(name, title, tuple(columns), tuple(rows), caption)


def drift_table(findings: Findings) -> Sheet:
    """What the drift is made of: each component at the last round it was measured at.

    A rest that is everything says nothing, and is left out.
    """
    apart = is_taken_apart(findings)
    every = [f for f in findings.findings if apart or f.group != REST]
    shares = {(f.editor, f.group): f for f in every if f.kind == "drift-share"}
    last: dict[tuple[str, str], Finding] = {}
    for f in every:
        if f.kind == "drift" and (f.round or 0) >= (_round(last.get((f.editor, f.group)))):
            last[f.editor, f.group] = f
    editors = [s.editor for s in findings.standings]
    parts = list(dict.fromkeys(part for _, part in {**shares, **last}))
    columns = (
        Column("editor", "editor"),
        Column("component", "component"),
        Column("share", "share", "estimate"),
        Column("size", "size", "estimate"),
        Column("round", "round", "number"),
        *sheets.count_columns()[:4],
        Column("note", "note", "words"),
    )
    rows: list[tuple[Cell, ...]] = []
    for editor in editors:
        for part in parts:
            share, size = shares.get((editor, part)), last.get((editor, part))
            told = size or share
            if told is None:
                continue
            cells = (sheets.of(share), sheets.of(size, 2), size.round if size else None)
            rows.append((editor, part, *cells, *sheets.counts(told)[:4], told.note))
    caption = ("Size: mean over chains at the last homecoming, in the unit of the note; share: of "
               "the drift at that homecoming.", INTERVALS, COUNTS)  # fmt: skip
    wide = shares or last
    units = sorted({f"{f.group} ({f.note})" for f in wide.values() if f.note and not shares})
    shown = _parts(
        "drift",
        "What the drift is made of" if apart else "Drift",
        wide,
        editors,
        parts,
        "share of the drift" if shares else "size of the drift",
        tuple(units),
    )
    return Sheet("drift", "Drift", columns, tuple(rows), caption, shown if rows else None)


def _round(finding: Finding | None) -> int:
    return (finding.round or 0) if finding else -1


def variance_table(findings: Findings) -> Sheet:
    """Where the variance of AUC comes from."""
    every = [f for f in findings.findings if f.kind == "variance"]
    order = wider_names(findings)
    metrics = sorted(
        {f.metric for f in every},
        key=lambda m: (_place([SCORE, *order], m), m),
    )
    parts = list(dict.fromkeys(f.group for f in every))
    known = {(f.metric, f.editor, f.group): f for f in every}
    columns = (
        Column("metric", "metric"),
        Column("editor", "editor"),
        *(Column(part, part, "estimate", "share of the variance") for part in parts),
        *sheets.count_columns()[:4],
        Column("note", "note", "words"),
    )
    rows: list[tuple[Cell, ...]] = []
    for metric in metrics:
        for s in findings.standings:
            mine = [f for part in parts if (f := known.get((metric, s.editor, part)))]
            if mine:
                shares = (sheets.of(known.get((metric, s.editor, p)), 2) for p in parts)
                notes = "; ".join(dict.fromkeys(f.note for f in mine if f.note))
                rows.append((metric, s.editor, *shares, *sheets.counts(mine[0])[:4], notes))
    caption = (
        "Share of the variance of AUC that goes with the source picture, the edit and the repeat.",
        COUNTS,
    )
    first = [f for f in every if f.metric == metrics[0]] if metrics else []
    shown = _parts(
        "variance",
        f"Variance of AUC by {metrics[0]}" if metrics else "",
        {(f.editor, f.group): f for f in first},
        [s.editor for s in findings.standings],
        parts,
        "share of the variance",
        (),
    )
    return Sheet("variance", "Variance of AUC", columns, tuple(rows), caption, shown)


def _parts(
    name: str,
    title: str,
    known: Mapping[tuple[str, str], Finding],
    editors: Sequence[str],
    parts: Sequence[str],
    words: str,
    units: tuple[str, ...],
) -> Sheet:
    """Editors down, parts of a whole across."""
    columns = [Column("editor", "editor"), *(Column(p, p, "estimate", words) for p in parts)]
    rows: list[tuple[Cell, ...]] = [
        (editor, *(sheets.of(known.get((editor, part)), 2) for part in parts))
        for editor in editors
        if any((editor, part) in known for part in parts)
    ]
    caption = [sheets.spread(known.values())]
    if any(f.low is not None for f in known.values()):
        caption.insert(0, INTERVALS)
    if units:
        caption.append(f"Units: {', '.join(units)}.")
    return Sheet(name, title, tuple(columns), tuple(rows), tuple(c for c in caption if c))
