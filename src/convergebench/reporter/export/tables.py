"""The report's tables as data, made from findings alone; what has no finding has no table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from convergebench.analysis import Finding, Findings
from convergebench.analysis.findings import DIMENSIONS, HEADLINE
from convergebench.reporter.charts import contraction_word, wider_names
from convergebench.reporter.export import sheets
from convergebench.reporter.export.breakdowns import drift_table, group_tables, variance_table
from convergebench.reporter.export.material import Material
from convergebench.reporter.export.records import cost_table, failure_table, provenance_table
from convergebench.reporter.export.sheets import (
    CENSORED,
    COUNTS,
    ENDED,
    INTERVALS,
    Cell,
    Column,
    Sheet,
)
from convergebench.reporter.leaders import INCOMPLETE, life_names, primary_metric
from convergebench.reporter.pairs import is_tied
from convergebench.wording import counted

Known = Mapping[tuple[str, str, str], Finding]
"""Findings by kind, metric and editor."""


def tables_of(material: Material) -> list[Sheet]:
    """Every table that has a row, in the report's order."""
    makers: tuple[Callable[[Findings], Sheet], ...] = (
        leaderboard,
        pairs_table,
        metrics_table,
    )
    findings = material.findings
    found = [make(findings) for make in makers]
    found += group_tables(findings)
    found += [
        decay_table(findings),
        drift_table(findings),
        variance_table(findings),
        worst_table(material),
        failure_table(material),
        cost_table(material),
        floors_table(findings),
        provenance_table(material),
    ]
    return [sheet for sheet in found if sheet.rows]


def known_of(findings: Findings) -> Known:
    """The findings that are of a whole editor."""
    return {(f.kind, f.metric, f.editor): f for f in findings.findings if not f.group}


def footing(findings: Findings) -> str:
    """What a ranking rests on, in a sentence."""
    if not findings.common:
        return "No editor is ranked."
    chains = counted(findings.common, "common chain")
    sources = counted(findings.sources, "source image")
    return f"Ranked by {' and '.join(findings.ranked_by)} on {chains} from {sources}."


def leaderboard(findings: Findings) -> Sheet:
    """Ranks, scores, half-lives, restricted means, AUC, contraction, and how many chains.

    The headline's half-life stands beside those of both dimensions, always.
    """
    known = known_of(findings)
    lives = life_names(findings)
    printed = [name for name in lives if any(name in s.half_life for s in findings.standings)]
    means = [name for name in printed if any(_has(known, "restricted-mean", name))]
    aucs = [name for name in (*DIMENSIONS, *findings.ranked_by) if any(_has(known, "auc", name))]
    aucs = [name for name in dict.fromkeys(aucs) if name != HEADLINE]
    walked = sorted({m for kind, m, _ in known if kind == "contraction"})
    walked = ["psnr"] if "psnr" in walked else walked[:1]
    primary = primary_metric(findings)
    columns = [
        Column("rank", "rank"),
        Column("editor", "editor"),
        Column("role", "role"),
        Column("runs", "runs"),
        Column("scores", "scores"),
        Column("score", "score", "estimate"),
        *(
            Column(f"half_life_{name}", name, "estimate", "half-life", worded=True)
            for name in lives
        ),
        *(Column(f"restricted_mean_{m}", m, "estimate", "restricted mean") for m in means),
        *(Column(f"auc_{name}", name, "estimate", "AUC") for name in aucs),
        *(Column(f"contraction_{name}", name, "estimate", "contraction λ") for name in walked),
        *sheets.count_columns(),
        Column("unranked_because", "unranked because", "words"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for s in findings.standings:
        refused = [f.refused for (k, _, e), f in known.items() if e == s.editor and k == "auc"]
        life = known.get(("half-life", primary, s.editor))
        role = "control" if s.control else "editor" if s.best_rank is not None else "not ranked"
        rows.append(
            (
                s.place,
                s.editor,
                role,
                ", ".join(s.runs),
                s.origin or ("measured" if any(x.origin for x in findings.standings) else ""),
                sheets.Estimate(s.score, s.low, s.high),
                *(_life(known, name, s.editor, s.half_life.get(name)) for name in lives),
                *(sheets.of(known.get(("restricted-mean", m, s.editor)), 2) for m in means),
                *(sheets.of(known.get(("auc", name, s.editor))) for name in aucs),
                *(sheets.of(known.get(("contraction", name, s.editor)), 2) for name in walked),
                s.complete,
                s.chains - s.complete,
                s.failed,
                max(refused, default=0),
                life.censored if life else None,
                s.why_unranked,
            )
        )
    caption = [
        footing(findings),
        "Score: mean AUC of what ranks. Half-lives and restricted means in homecomings; the "
        "headline is the time until the first of quality and semantic falls below "
        f"{findings.threshold:g}.",
        INTERVALS,
        f"n counts complete chains, missing the others; {ENDED}",
        f"Censored: chains that never fell, by {primary}.",
    ]
    idle = ("runs", "scores", "unranked_because")
    sheet = Sheet("leaderboard", "Leaderboard", tuple(columns), tuple(rows), tuple(caption))
    # In print one restricted mean has to do, and controls are named as such.
    spare = [f"restricted_mean_{name}" for name in means if name != primary]
    marked = [
        (row[0], f"{row[1]} (control)" if row[2] == "control" else row[1], *row[2:]) for row in rows
    ]
    short = Sheet(
        "leaderboard",
        "Leaderboard",
        *_short(tuple(columns), marked, "role", *spare),
        tuple(caption),
    )
    return replace(sheets.without_idle(sheet, *idle), shown=sheets.without_idle(short, *idle))


def _has(known: Known, kind: str, metric: str) -> list[bool]:
    return [True for (k, m, _), f in known.items() if (k, m) == (kind, metric) and f.n]


def _life(known: Known, name: str, editor: str, printed: str | None) -> sheets.Estimate:
    """A half-life as the leaderboard prints it; incomplete where a dimension lacks a metric."""
    lacking = name == HEADLINE or name in DIMENSIONS
    said = printed if printed is not None else INCOMPLETE if lacking else "–"
    return sheets.of(known.get(("half-life", name, editor)), 2, said)


def pairs_table(findings: Findings) -> Sheet:
    """Every pair of ranked editors, and whether one is above the other."""
    pairs = [f for f in findings.findings if f.kind == "pair"]
    rows: list[tuple[Cell, ...]] = []
    for f in pairs:
        decision = "tied with" if is_tied(f) else "above" if (f.estimate or 0) > 0 else "below"
        told = (f.editor, decision, f.other, sheets.of(f), f.p)
        rows.append((*told, *sheets.counts(f)[:4], f.note))
    columns = (
        Column("editor", "editor"),
        Column("decision", "is"),
        Column("other", "other"),
        Column("difference", "difference", "estimate"),
        Column("p_corrected", "p", "number", digits=4),
        *sheets.count_columns("")[:4],
        Column("note", "note", "words"),
    )
    caption = (
        "Mean paired difference of the score, editor minus other, on the chains that all ranked "
        "editors completed. p is corrected by Holm's method for all pairs; tied where it is 0.05 "
        "or more. Intervals are of each pair alone.",
        INTERVALS,
    )
    shown = _short(columns, rows, "note", "missing", "failed", "refused")
    some = sheets.spread(pairs)
    return Sheet(
        "pairs",
        "Pairs of editors",
        columns,
        tuple(rows),
        caption,
        Sheet("pairs", "Pairs of editors", *shown, (*caption, some)),
    )


def _short(
    columns: tuple[Column, ...], rows: list[tuple[Cell, ...]], *gone: str
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    """Without these columns."""
    kept = [i for i, column in enumerate(columns) if column.key not in gone]
    return tuple(columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows)


def metrics_table(findings: Findings) -> Sheet:
    """Every editor by every metric and dimension: AUC, half-life, restricted mean."""
    known = known_of(findings)
    order = wider_names(findings)
    kinds = ("auc", "half-life", "restricted-mean", "literal-half-life")
    metrics = sorted(
        {m for kind, m, _ in known if kind in kinds},
        key=lambda m: (order.index(m) if m in order else len(order), m),
    )
    columns = (
        Column("editor", "editor"),
        Column("metric", "metric"),
        Column("auc", "AUC", "estimate"),
        Column("half_life", "half-life", "estimate", worded=True),
        Column("restricted_mean", "restricted mean", "estimate"),
        Column("literal_half_life", "literal half-life", "estimate", worded=True),
        *sheets.count_columns(),
    )
    rows: list[tuple[Cell, ...]] = []
    for s in findings.standings:
        for metric in metrics:
            auc, life, mean, literal = (known.get((kind, metric, s.editor)) for kind in kinds)
            if not (auc or life or mean or literal):
                continue
            counts = auc or life or literal
            censored = life or literal
            rows.append(
                (
                    s.editor,
                    metric,
                    sheets.of(auc),
                    sheets.of(life, 2, _beyond(life, s.half_life.get(metric))),
                    sheets.of(mean, 2),
                    sheets.of(literal, 2, _beyond(literal, None)),
                    *sheets.counts(counts)[:4],
                    censored.censored if censored else None,
                )
            )
    caption = (
        "AUC: mean of C(n) of an editor's own complete chains. Half-lives (Kaplan-Meier medians) "
        "and restricted means in homecomings; the literal half-life falls below "
        f"{findings.threshold:g} times the value of identical pictures.",
        INTERVALS,
        f"{COUNTS} {CENSORED}",
    )
    sheet = Sheet("metrics", "Editors by metric", columns, tuple(rows), caption)
    if not any(kind == "literal-half-life" for kind, _, _ in known):
        return Sheet("metrics", sheet.title, *_short(columns, rows, "literal_half_life"), caption)
    return sheet


def _beyond(finding: Finding | None, printed: str | None) -> str:
    """What is printed where a half-life was not reached."""
    if finding is None or finding.estimate is not None:
        return ""
    return printed or (finding.note.split(";")[0] if finding.note.startswith(">") else "")


def decay_table(findings: Findings) -> Sheet:
    """How editors decay: contraction, shapes, inert edits, the size of the forward edit."""
    kinds = ("contraction", "shape", "inert", "forward")
    every = [f for f in findings.findings if f.kind in kinds]
    known = {(f.kind, f.metric, f.group, f.editor): f for f in every}
    order = ["psnr", *wider_names(findings)]
    walked = _metrics(every, "contraction", order)
    shaped = _metrics(every, "shape", ["quality", *order])
    shapes = [(m, g) for m in shaped for g in _groups(every, "shape", m)]
    places = _groups(every, "forward", "")
    columns = [Column("editor", "editor")]
    for name in walked:
        columns += [
            Column(f"contraction_{name}", f"λ, {name}", "estimate", "contraction"),
            Column(f"verdict_{name}", "verdict", group="contraction"),
        ]
    for metric, shape in shapes:
        group = f"shape by {metric}, share of chains"
        columns.append(Column(f"shape_{metric}_{shape}", shape, "estimate", group))
    if any(f.kind == "inert" for f in every):
        columns.append(Column("inert", "inert, share", "estimate"))
    columns += [Column(f"forward_{p}", p, "estimate", "forward edit, RMSE") for p in places]
    columns += sheets.count_columns()[:4]
    rows: list[tuple[Cell, ...]] = []
    for s in findings.standings:
        mine = [f for f in every if f.editor == s.editor]
        if not mine:
            continue
        row: list[Cell] = [s.editor]
        for name in walked:
            found = known.get(("contraction", name, "", s.editor))
            row += [sheets.of(found, 2), contraction_word(found) if found else ""]
        row += [sheets.of(known.get(("shape", m, g, s.editor)), 2) for m, g in shapes]
        if any(f.kind == "inert" for f in every):
            row.append(sheets.of(next((f for f in mine if f.kind == "inert"), None), 2))
        row += [sheets.of(known.get(("forward", "", p, s.editor)), 1) for p in places]
        rows.append((*row, *sheets.counts(mine[0])[:4]))
    caption = (
        "λ: contraction of the distance between homecomings, median over chains; below 1 an "
        "editor settles, near 1 it drifts, above 1 it diverges. Inert: share of forward edits no "
        "larger than the transport control's.",
        INTERVALS,
        f"{COUNTS} They are those of the first number in a row.",
    )
    title = "How editors decay"
    # In print one metric has to do for each.
    spare = [f"{word}_{name}" for name in walked[1:] for word in ("contraction", "verdict")]
    spare += [f"shape_{m}_{g}" for m, g in shapes if m != shaped[0]]
    shown = Sheet("decay", title, *_short(tuple(columns), rows, *spare), caption)
    return Sheet("decay", title, tuple(columns), tuple(rows), caption, shown)


def _metrics(findings: list[Finding], kind: str, order: list[str]) -> list[str]:
    """The metrics of a kind, in this order."""
    have = {f.metric for f in findings if f.kind == kind}
    return sorted(have, key=lambda m: (order.index(m) if m in order else len(order), m))


def _groups(findings: list[Finding], kind: str, metric: str) -> list[str]:
    """The groups of a kind and metric, in the order they come."""
    some = (f.group for f in findings if f.kind == kind and f.metric == metric)
    return list(dict.fromkeys(some))


def worst_table(material: Material) -> Sheet:
    """The chains that lost most."""
    cases = [f for f in material.findings.findings if f.kind == "worst"]
    rows: list[tuple[Cell, ...]] = [
        (i, f.editor, f.group, f.metric, f.estimate, f.at, f.note, f.chain)
        for i, f in enumerate(cases, 1)
    ]
    columns = (
        Column("place", "place", "number"),
        Column("editor", "editor"),
        Column("case", "cycle / image"),
        Column("metric", "metric"),
        Column("auc", "AUC", "number"),
        Column("first_fell_at", "first fell at", "number", digits=2),
        Column("note", "note", "words"),
        Column("chain", "chain"),
    )
    caption = (
        "The chains with the lowest AUC, each one chain (n = 1). First fell at: the homecoming at "
        "which the first of what ranks fell below the threshold; a dash where none did. Chains "
        "that are not complete have no AUC and are not here.",
    )
    shown = Sheet("worst", "Worst cases", *_short(columns, rows, "chain"), caption)
    return Sheet("worst", "Worst cases", columns, tuple(rows), caption, shown)


def floors_table(findings: Findings) -> Sheet:
    """The floors: what each metric gives for pictures that have nothing to do with each other."""
    return Sheet(
        "floors",
        "Floors",
        (Column("metric", "metric"), Column("floor", "floor m0", "number", digits=4)),
        tuple(sorted(findings.floors.items())),
        (
            "m0: mean over the suite of each metric between a source and the other sources, "
            "oriented so that larger is better; PSNR as minus the RMSE. C(n) is 0 there.",
        ),
    )
