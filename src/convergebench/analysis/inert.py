"""Inert editors: an editor that ignores prompts would come home perfectly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from convergebench.analysis.convergence import current, oriented
from convergebench.analysis.findings import Finding
from convergebench.metric import MetricSpec
from convergebench.runspec import TRANSPORT

INERT_SHARE = 0.5


def forward_changes(
    scores: pl.DataFrame,
    chains: pl.DataFrame,
    specs: Mapping[str, MetricSpec],
    transports: Sequence[str] = (TRANSPORT,),
) -> pl.DataFrame:
    """The forward edits that an editor shares with the transport control, as chain pairs.

    The forward edit of a round trip is its first step; its size is the RMSE against the frame
    before, inside the edited region where there is one. The control may go by several names
    when several runs are compared; where more than one has a chain, the first counts.

    Returns:
        Columns editor, chain, change (of the editor) and pipe (of the control).
    """
    psnr = {name: spec for name, spec in specs.items() if name == "psnr"}
    if not psnr:
        schema = {"editor": pl.String(), "chain": pl.String()}
        return pl.DataFrame(schema={**schema, "change": pl.Float64(), "pipe": pl.Float64()})
    forward = (
        current(scores, psnr)
        .filter((pl.col("against") == "previous") & (pl.col("step") == 1))
        .filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
        .filter(pl.col("where").is_in(["all", "inside"]))
        .join(chains.filter(pl.col("kind") == "round-trip"), on="chain")
        .with_columns(change=-oriented(psnr["psnr"], pl.col("value")))
    )
    key = ["source", "cycle", "settings", "repeat", "where"]
    control = (
        forward.filter(pl.col("editor").is_in(list(transports)))
        .sort(*key, "editor")
        .unique(key, keep="first", maintain_order=True)
        .select(*key, pipe="change")
    )
    return (
        forward.join(control, on=key)
        .sort("chain", pl.col("where") != "inside")
        .unique("chain", keep="first", maintain_order=True)
        .select("editor", "chain", "change", "pipe")
    )


def inert_editors(
    scores: pl.DataFrame, chains: pl.DataFrame, specs: Mapping[str, MetricSpec]
) -> dict[str, bool]:
    """Whether each editor's forward edits are indistinguishable from the transport control's.

    An editor is inert when on at least half of the round trips it shares with the JPEG transport
    control its forward edit is not the larger one. Editors that share none are left out.
    """
    return is_inert(forward_changes(scores, chains, specs))


def is_inert(changes: pl.DataFrame) -> dict[str, bool]:
    """The verdict on each editor that `forward_changes` has."""
    return {editor: share >= INERT_SHARE for editor, share, _ in _shares(changes)}


def inert_findings(changes: pl.DataFrame, chains: pl.DataFrame) -> list[Finding]:
    """Per editor the share of forward edits no larger than the control's."""
    trips = chains.filter(pl.col("kind") == "round-trip")
    planned = dict(trips.group_by("editor").agg(pl.len()).iter_rows())
    stopped = trips.filter((pl.col("length") == 0) & pl.col("failed"))
    counts = stopped.group_by("editor").agg(pl.len(), pl.sum("refused"))
    ended = {editor: (failed, refused) for editor, failed, refused in counts.iter_rows()}
    return [
        Finding(
            id=f"inert/{editor}",
            estimate=share,
            n=count,
            missing=planned[editor] - count,
            failed=ended.get(editor, (0, 0))[0],
            refused=ended.get(editor, (0, 0))[1],
            note=f"forward edits no larger than those of {TRANSPORT}; inert from {INERT_SHARE:g}",
            editor=editor,
        )
        for editor, share, count in _shares(changes)
    ]


def _shares(changes: pl.DataFrame) -> list[tuple[str, float, int]]:
    not_larger = (pl.col("change") <= pl.col("pipe")).mean()
    return list(
        changes.group_by("editor")
        .agg(not_larger.alias("share"), pl.len())
        .sort("editor")
        .iter_rows()
    )
