"""How much fine detail the damaged inputs have themselves: what an editor left is no invention."""

from __future__ import annotations

from collections.abc import Iterable

from convergebench.errors import ConvergeBenchError
from convergebench.frame import resize
from convergebench.gathering import Gathered
from convergebench.metric import Picture, StepView
from convergebench.metrics.detail import detail_ratio


def own_detail(gathered: Gathered, chains: Iterable[str]) -> dict[str, float]:
    """By source its `detail-ratio` against its truth, of the pictures of these chains.

    No score row tells it: frame 0 is compared with nothing. Sources whose picture or truth is not
    here, or cannot be read, are left out.
    """
    wanted = set(chains)
    metric = detail_ratio()
    found: dict[str, float] = {}
    for chain in gathered.chains:
        name = chain.key.source
        if chain.key.id not in wanted or name in found or not (chain.source and chain.truth):
            continue
        store = gathered.stores[chain.key.id]
        try:
            given, truth = store.frame(chain.source).pixels, store.frame(chain.truth).pixels
        except (ConvergeBenchError, OSError):
            continue
        if given.shape != truth.shape:
            given = resize(given, truth.shape[1], truth.shape[0])
        (ratio,) = metric.score([StepView(Picture(given), Picture(truth))])
        if isinstance(ratio, float):
            found[name] = ratio
    return found
