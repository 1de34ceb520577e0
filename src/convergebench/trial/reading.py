"""From scored runs to the material of a trial: which chains, which arms, which scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from convergebench.analysis.convergence import best, current, oriented
from convergebench.analysis.leaderboard import controls_among
from convergebench.analysis.published import Promoted, measured_metrics, promote
from convergebench.analysis.roster import chain_table
from convergebench.errors import ConvergeBenchError, InputError, UnknownName
from convergebench.gathering import Gathered
from convergebench.metric import MetricSpec
from convergebench.registry import metric_name, metric_spec, metric_specs
from convergebench.trial.material import REFERENCES, SCORES, Tried
from convergebench.wording import in_order

KINDS: Final = ("replicate", "accumulate")

ASIDE: Final = ("-spread", "-unparsed")
"""What tells how sure a judge is, not how good a picture: on trial only where asked for."""

_CHAIN: Final = ("chain", "arm", "source", "kind", "repeat", "editor", "steps", "control")

DIAGNOSES: Final = ("ciede2000-p95", "colour-cast", "colour-offset", "detail-loss")
"""Full-reference metrics of one kind of loss: no witnesses of quality as a whole."""


@dataclass(frozen=True)
class Field:
    """The chains of a trial under their arms.

    Attributes:
        chains: chain, arm, source, kind, repeat, editor, cycle (its name), settings, steps,
            control: a row per chain.
        frames: chain, step, sha256: every frame there is, 0 being the source; `sha256` is null
            where only scores are.
    """

    chains: pl.DataFrame
    frames: pl.DataFrame

    def arms(self, *, control: bool) -> tuple[str, ...]:
        """Arms of replications, in order."""
        mine = (pl.col("kind") == "replicate") & (pl.col("control") == control)
        return tuple(self.chains.filter(mine)["arm"].unique(maintain_order=True))

    @property
    def cells(self) -> pl.DataFrame:
        """arm, source: every cell there should be."""
        mine = self.chains.filter(pl.col("kind") == "replicate")
        return mine.select("arm", "source").unique(maintain_order=True)

    @property
    def longest(self) -> int:
        """How many steps the arms' chains should have."""
        mine = self.chains.filter((pl.col("kind") == "replicate") & ~pl.col("control"))
        return max(mine["steps"].to_list(), default=0)

    def placed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of chain, step … of frames of this field, with arm, source, kind and repeat."""
        place = self.chains.select("chain", "arm", "source", "kind", "repeat")
        frames = self.frames.select("chain", "step")
        return rows.join(frames, on=["chain", "step"], how="semi").join(place, on="chain")


def field_of(gathered: Gathered, cycles: Sequence[str] | None = None) -> Field:
    """The chains that replicate or add objects, under their arms.

    Args:
        gathered: The runs.
        cycles: Names of the cycles to look at; all of these kinds by default.

    Raises:
        UnknownName: There is no cycle of that name.
        InputError: There is no chain to try a metric on.
    """
    table = chain_table(gathered.chains, gathered.suite, gathered.plan)
    table = table.filter(pl.col("kind").is_in(list(KINDS)))
    table = table.with_columns(name=pl.col("cycle").str.split("@").list.first())
    for name in cycles or ():
        if name not in set(table["name"]):
            raise UnknownName("cycle that replicates or adds objects", name, set(table["name"]))
    if cycles:
        table = table.filter(pl.col("name").is_in(list(cycles)))
    if table.filter(pl.col("kind") == "replicate").is_empty():
        raise InputError(
            f"{gathered.name} has no chains that replicate their source, which metrics are tried "
            "on. Make some with: convergebench run DIRECTORY --cycle replicate --editor …"
        )
    editors = table["editor"].unique(maintain_order=True).to_list()
    controls = list(controls_among(editors, gathered.editors))
    order = {source.name: place for place, source in enumerate(gathered.suite.source)}
    table = (
        table.with_columns(
            arm=pl.Series(_arms(table), dtype=pl.String()),
            control=pl.col("editor").is_in(controls),
            place=pl.col("source").replace_strict(order, default=len(order)),
        )
        .sort("editor", "name", "settings", "place", "repeat")
        .select(*_CHAIN, "settings", cycle="name")
    )
    return Field(table, _frames(gathered, set(table["chain"])))


def _arms(table: pl.DataFrame) -> list[str]:
    """Each chain's arm: its editor, and its variant where the editor has several of that kind."""
    rows = table.select("editor", "kind", "name", "cycle", "settings").rows()
    variants: dict[tuple[str, str], set[tuple[str, str]]] = {}
    cycles: dict[tuple[str, str], set[str]] = {}
    for editor, kind, name, cycle, settings in rows:
        variants.setdefault((editor, kind), set()).add((cycle, settings))
        cycles.setdefault((kind, name), set()).add(cycle)
    found = []
    for editor, kind, name, cycle, settings in rows:
        mine = variants[editor, kind]
        if len(mine) == 1:
            found.append(editor)
            continue
        words = []
        if len({each for each, _ in mine}) > 1:
            words.append(name if len(cycles[kind, name]) == 1 else cycle)
        if settings or not words:
            words.append(settings or "defaults")
        found.append(f"{editor} · {', '.join(words)}")
    return found


def _frames(gathered: Gathered, chains: set[str]) -> pl.DataFrame:
    rows = []
    for chain in gathered.chains:
        if chain.key.id in chains:
            held = {step: ref.sha256 for step, ref in chain.held.items()}
            steps = sorted({0, *held, *chain.reached})
            rows += [(chain.key.id, step, held.get(step)) for step in steps]
    schema = {"chain": pl.String(), "step": pl.Int32(), "sha256": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")


@dataclass(frozen=True)
class Scored:
    """What the runs' score files say of a field's frames."""

    tried: tuple[Tried, ...]
    scores: pl.DataFrame
    references: pl.DataFrame
    notes: tuple[str, ...]


def scored(gathered: Gathered, field: Field, metrics: Sequence[str] | None = None) -> Scored:
    """The no-reference scores on trial, and the full-reference ones that witness.

    Args:
        gathered: The runs.
        field: Their chains.
        metrics: Names of the metrics on trial; all no-reference ones that are scored by default.

    Raises:
        InputError: A metric that was asked for is not scored, or looks at a reference.
    """
    mine = gathered.scores.join(field.chains.select("chain"), on="chain", how="semi")
    specs, closed = metric_specs(measured_metrics(mine, gathered.chains))
    promoted = promote(mine, gathered.chains, specs)
    rows = current(promoted.scores, specs).filter(pl.col("where") == "all")
    alone = field.placed(rows.filter(pl.col("against") == "none"))
    there = set(alone["metric"].unique())
    if metrics is None:
        names = [
            name
            for name, spec in specs.items()
            if spec.kind == "no-reference" and name in there and not name.endswith(ASIDE)
        ]
    else:
        names = [_asked(name, gathered, specs, there, closed) for name in dict.fromkeys(metrics)]
    tried = tuple(
        Tried(
            name=name,
            version=promoted.label(specs[name]).partition("@")[2],
            title=specs[name].title,
            higher_is_better=specs[name].higher_is_better,
            typical=specs[name].typical,
        )
        for name in names
    )
    witnesses = {
        name: (spec, ideal)
        for name, spec in specs.items()
        if spec.kind == "full-reference"
        and not spec.alignment
        and name not in DIAGNOSES
        and (ideal := best(spec)) is not None
    }
    home = field.placed(rows.filter(pl.col("against") == "home"))
    parts = [
        home.filter((pl.col("metric") == name) & (pl.col("kind") == "replicate"))
        .with_columns(value=oriented(spec, pl.col("value")) - ideal)
        .select(*REFERENCES)
        for name, (spec, ideal) in witnesses.items()
    ]
    return Scored(
        tried=tried,
        scores=alone.filter(pl.col("metric").is_in(names)).select(*SCORES),
        references=pl.concat([pl.DataFrame(schema=REFERENCES), *parts]),
        notes=(*_old(mine, specs, there, metrics), *_others(promoted, closed, names)),
    )


def _asked(
    name: str,
    gathered: Gathered,
    specs: Mapping[str, MetricSpec],
    there: set[str],
    closed: Mapping[str, str],
) -> str:
    """A metric as it was asked for, in our spelling. Raises InputError, UnknownName."""
    ours = name if name in specs else str(metric_name(name))
    if ours in closed:
        raise InputError(f"{name} cannot be tried: {closed[ours]}")
    spec = specs[ours] if ours in specs else metric_spec(ours)
    if spec.kind != "no-reference":
        raise InputError(
            f"{name} compares frames with a reference ({spec.kind}); a trial is of metrics that "
            "see the frame alone. Full-reference ones take part as witnesses where scored."
        )
    if ours not in there:
        raise InputError(f"{gathered.name} has no scores of {ours}. {score_hint(gathered, ours)}")
    return ours


def score_hint(gathered: Gathered, *metrics: str) -> str:
    """The command that computes scores of these metrics."""
    words = " ".join(f"--metric {name}" for name in metrics) or "--metrics replication"
    paths = [str(run.store.place) for run in gathered.runs]
    return f"Compute them with: convergebench score {paths[0]} {words}" + (
        " (and so for each run)." if len(paths) > 1 else ""
    )


def _old(
    rows: pl.DataFrame,
    specs: Mapping[str, MetricSpec],
    there: set[str],
    metrics: Sequence[str] | None,
) -> list[str]:
    """A note on metrics that were measured in other versions only."""
    if metrics is not None:
        return []
    alone = set(rows.filter(pl.col("against") == "none")["metric"].unique())
    old = [n for n in alone - there if n in specs and specs[n].kind == "no-reference"]
    if not old:
        return []
    return [
        f"Scored in another version than the installed one, so left out: {in_order(old)}. "
        "convergebench score RUN measures them anew."
    ]


def _others(promoted: Promoted, closed: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Notes on scores that are not ours, and on metrics that cannot be opened."""
    notes = [
        f"{name}: scores of {count} chains are as published by {origin}, not measured here."
        for name in names
        for origin, count in promoted.metrics.get(name, {}).items()
    ]
    if closed:
        notes.append(
            f"Scored, but not installed here, so left out: {in_order(closed)}. "
            "convergebench plugins says why."
        )
    return notes


def require(found: Sequence[Tried], gathered: Gathered, metrics: Sequence[str] | None) -> None:
    """Raise where nothing is on trial."""
    if not found and metrics is not None:
        raise InputError(
            "no scored metric is wanted (--metric none) and none of your own is given. Give one "
            "with --scores or --command."
        )
    if not found:
        raise ConvergeBenchError(
            f"{gathered.name} has no scores of no-reference metrics. {score_hint(gathered)}"
        )
