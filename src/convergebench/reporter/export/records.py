"""Tables of what the runs' records say: failures, costs, and what the numbers were made with."""

from __future__ import annotations

from convergebench.reporter.export.material import Material
from convergebench.reporter.export.sheets import Cell, Column, Sheet


def failure_table(material: Material) -> Sheet:
    """Every step that gave no frame; in print only how many of each outcome."""
    columns = (
        Column("editor", "editor"),
        Column("source", "source"),
        Column("cycle", "cycle"),
        Column("variant", "variant"),
        Column("step", "step", "number"),
        Column("outcome", "outcome"),
        Column("attempts", "attempts", "number"),
        Column("detail", "detail", "words"),
        Column("chain", "chain"),
    )
    rows: list[tuple[Cell, ...]] = []
    tally: dict[tuple[str, str], int] = {}
    for f in material.failures:
        key = (f.ink.editor, f.outcome)
        tally[key] = tally.get(key, 0) + 1
        where = (f.ink.editor, f.source, f.cycle, f.variant, f.step)
        rows.append((*where, f.outcome, f.attempts, f.detail, f.chain))
    title = "Steps that gave no frame"
    caption = ("A failure is data: it is counted, never scored as 0 and never dropped.",)
    few = (*columns[:1], columns[5], Column("steps", "steps", "number"))
    counted = tuple((*key, count) for key, count in sorted(tally.items()))
    shown = Sheet("failures", title, few, counted, caption)
    return Sheet("failures", title, columns, tuple(rows), caption, shown)


def cost_table(material: Material) -> Sheet:
    """What the calls of every editor came to."""
    columns = (
        Column("editor", "editor"),
        Column("frames", "frames", "number"),
        Column("attempts", "attempts", "number"),
        Column("dollars", "dollars", "number", digits=2),
        Column("calls_without_price", "calls without a price", "number"),
        Column("seconds", "seconds", "number", digits=1),
    )
    rows: list[tuple[Cell, ...]] = [
        (c.ink.editor, c.frames, c.attempts, c.dollars, c.unpriced, float(c.seconds))
        for c in material.costs
    ]
    caption = ("As recorded with every call; retries count.",)
    return Sheet("costs", "Calls and costs", columns, tuple(rows), caption)


def provenance_table(material: Material) -> Sheet:
    """What the numbers were made from and with."""
    findings = material.findings
    rows: list[tuple[Cell, ...]] = [("suite", findings.suite, "", "")]
    rows += [("run", name, created, print_) for name, created, print_ in material.runs]
    rows += [("import", i.origin, i.at, " ".join(i.notes)) for i in material.imports]
    rows += [("metric", *_split(label), "") for label in findings.metrics]
    for facts in material.editors:
        told = [f"model {model}" for model in facts.models]
        told += [f"caveat: {word}" for word in facts.caveats]
        rows.append(("editor", facts.ink.editor, ", ".join(facts.versions), "; ".join(told)))
    rows.append(("setting", "threshold", f"{findings.threshold:g}", ""))
    if findings.rounds is not None:
        rows.append(("setting", "rounds looked at", str(findings.rounds), ""))
    rows += [("library", name, told, "") for name, told in material.versions.items()]
    columns = (
        Column("what", "what"),
        Column("name", "name", "words"),
        Column("version", "version"),
        Column("detail", "detail", "words"),
    )
    caption = (
        "Of editors: the version that ran, and the models that the provider said answered. Of "
        "runs: when they were created, and the fingerprint of their suite. Of imports: when they "
        "were made, and what was noted.",
    )
    return Sheet("provenance", "Provenance", columns, tuple(rows), caption)


def _split(label: str) -> tuple[str, str]:
    name, _, version = label.rpartition("@")
    return name or label, version if name else ""
