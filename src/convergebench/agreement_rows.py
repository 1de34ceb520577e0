"""Published score rows beside those they are compared with, and what stands where there is none.

The rows of `agreement`: joined by key, with the difference, and the reason where one stands alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from convergebench.chain import Chain
from convergebench.comparisons import row_version
from convergebench.errors import ConvergeBenchError, SettingsError, UnknownName
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.store import RunStore

if TYPE_CHECKING:
    import polars as pl

KEY: Final = ("chain", "step", "metric", "against", "where")
GROUP: Final = ("origin", "other", "metric", "against", "where")
WHOSE: Final = ("editor", "source", "cycle", "repeat", "settings")
"""What a chain's name stands for; null where the run has no such chain."""

ALONE: Final[Mapping[str, str]] = {
    "never computed there": "published without a value, so there is nothing to compare",
    "no home": "the step has no home that this metric could compare with, so we never score it",
    "no picture here": "no picture here, so we cannot score them",
    "no metric of ours": "no metric of ours has that name",
    "not scored": "not scored by us yet",
    "null here": "without a value on the other side; its note says why",
}
"""Why a published score has none to be compared with."""
NEVER, NO_HOME, NO_PICTURE, NOT_OURS, NOT_SCORED, NULL = ALONE


def installed_metrics(metrics: Sequence[str], read_as: Mapping[str, str]) -> dict[str, MetricSpec]:
    """For each of their metrics the installed one of ours."""
    for name in read_as:
        if name not in metrics:
            raise SettingsError(f"no published scores of {name!r}; there are: {', '.join(metrics)}")
    found = {}
    for name in metrics:
        try:
            found[name] = metric_spec(read_as.get(name, name))
        except ConvergeBenchError:  # not ours, or not to be had here: told as such below
            if name in read_as:
                raise
    return found


def our_rows(scores: pl.DataFrame, installed: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """Our rows, of the installed versions, under the names of theirs."""
    import polars as pl

    names = [(theirs, s.name, row_version(s, "all")) for theirs, s in installed.items()]
    schema = dict.fromkeys(("theirs", "metric", "version"), pl.String)
    known = pl.DataFrame(names, schema=schema, orient="row")
    return scores.join(known, on=["metric", "version"]).with_columns(metric="theirs")


def beside(theirs: pl.DataFrame, other: pl.DataFrame, name: str) -> pl.DataFrame:
    """Each of their rows with the other's of the same key."""
    import polars as pl

    right = other.select(
        *KEY, ours="value", our_note="note", our_version="version", other_there=pl.lit(True)
    )
    left = theirs.select("origin", *KEY, theirs="value", their_note="note")
    return left.join(right, on=KEY, how="left", maintain_order="left").with_columns(
        other=pl.lit(name), other_there=pl.col("other_there").fill_null(False)
    )


def judged(
    parts: Sequence[pl.DataFrame],
    store: RunStore,
    ours: Mapping[str, MetricSpec],
    tolerance: float,
) -> pl.DataFrame:
    """All rows with their difference, and `state`: equal, differs, or why they stand alone."""
    import polars as pl

    names = ["origin", "other", *KEY, *WHOSE, "theirs", "ours", "difference", "state",
             "our_version", "their_note", "our_note"]  # fmt: skip
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    rows = pl.concat(parts)
    # Infinity on both sides is no difference; the subtraction alone would say "not a number".
    same = pl.col("theirs") == pl.col("ours")
    rows = rows.with_columns(
        difference=pl.when(same).then(0.0).otherwise(pl.col("theirs") - pl.col("ours"))
    )
    chains = {chain.key.id: chain for chain in store.chains()}
    rows = rows.join(_whose(chains), on="chain", how="left", maintain_order="left")
    place = ["chain", "step", "against", "metric"]
    known = _hindrances(rows.select(place).unique(), chains, store, ours)
    rows = rows.join(known, on=place, how="left", maintain_order="left")
    state = (
        pl.when(pl.col("theirs").is_null()).then(pl.lit(NEVER))
        .when(pl.col("ours").is_not_null() & (pl.col("difference").abs() <= tolerance))
        .then(pl.lit("equal"))
        .when(pl.col("ours").is_not_null()).then(pl.lit("differs"))
        .when("other_there").then(pl.lit(NULL))
        .otherwise("hindrance")
    )  # fmt: skip
    rows = rows.with_columns(state=state).select(names)
    return rows.sort(*GROUP, "chain", "step", maintain_order=True)


def _whose(chains: Mapping[str, Chain]) -> pl.DataFrame:
    """What each chain's name stands for."""
    import polars as pl

    told = [
        (name, key.editor, key.source, key.cycle.partition("@")[0], key.repeat, key.settings.label)
        for name, key in ((name, chain.key) for name, chain in chains.items())
    ]
    schema = {name: pl.Int64 if name == "repeat" else pl.String for name in ("chain", *WHOSE)}
    return pl.DataFrame(told, schema=schema, orient="row")


def _hindrances(
    places: pl.DataFrame,
    chains: Mapping[str, Chain],
    store: RunStore,
    ours: Mapping[str, MetricSpec],
) -> pl.DataFrame:
    """Why there is no score of ours at each place, should there be none."""
    import polars as pl

    told = [
        _hindrance(chains.get(chain), step, against, ours.get(metric), store)
        for chain, step, against, metric in places.iter_rows()
    ]
    return places.with_columns(hindrance=pl.Series(told, dtype=pl.String))


def _hindrance(
    chain: Chain | None, step: int, against: str, spec: MetricSpec | None, store: RunStore
) -> str:
    if spec is None:
        return NOT_OURS
    if chain is None:
        return NO_PICTURE
    needed = [chain.held.get(step)]
    if against == "home":
        try:
            home = store.suite.cycle_of(chain.key.cycle).home(step)
        except UnknownName:
            return NO_PICTURE
        # As `comparisons` has it: a source is not compared with itself.
        if step == 0 or home is None or (home.content_only and spec.kind != "semantic"):
            return NO_HOME
        needed.append(chain.truth if home.of == "truth" else chain.source)
    elif against == "previous":
        needed.append(chain.held.get(step - 1))
    return NO_PICTURE if None in needed else NOT_SCORED
