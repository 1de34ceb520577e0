"""How far raters agree: Krippendorff's α, intraclass correlations, Fleiss' κ, Kendall's W.

α (Krippendorff 2019, ch. 12) is 1 − D_o/D_e over all pairs of answers to the same stimulus, and
takes missing answers as they come. ICC are Shrout and Fleiss' six (1979) with McGraw and Wong's
intervals (1996); they need every rater on every stimulus, and are over the stimuli that have that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Level = Literal["nominal", "ordinal", "interval"]

MODELS: Final = {
    "ICC(1,1)": "one rater, raters differ between stimuli",
    "ICC(2,1)": "one rater, absolute agreement",
    "ICC(3,1)": "one rater, consistency",
    "ICC(1,k)": "mean of all raters, raters differ between stimuli",
    "ICC(2,k)": "mean of all raters, absolute agreement",
    "ICC(3,k)": "mean of all raters, consistency",
}


@dataclass(frozen=True)
class Reliability:
    """One coefficient of agreement.

    Attributes:
        name: Which: `alpha interval`, `ICC(2,1)` …
        title: In words.
        value: None where it cannot be told; `note` says why.
        low, high: 95 % interval.
        f, df1, df2, p: Of the ICC's F test against zero.
        stimuli, raters: What it is made of.
        note: What to know about it.
    """

    name: str
    title: str
    value: float | None
    low: float | None = None
    high: float | None = None
    f: float | None = None
    df1: int | None = None
    df2: int | None = None
    p: float | None = None
    stimuli: int = 0
    raters: int = 0
    note: str = ""


def krippendorff_alpha(values: Array, level: Level = "interval") -> float | None:
    """Krippendorff's α of a matrix stimuli × raters, NaN being missing.

    None where no stimulus has two answers, or all answers are the same (α is 0/0 there).
    """
    scale, counts = _counts(values)
    return _alpha(counts, _distances(scale, counts, level))


def alpha_interval(
    values: Array, level: Level, groups: NDArray[np.intp], weights: Array
) -> tuple[float | None, float | None]:
    """The 95 % interval of α from resampled groups of stimuli (the source pictures).

    Args:
        values: Stimuli × raters.
        level: Of measurement.
        groups: The group of each stimulus.
        weights: How often each group (row) is drawn by each resample (column).
    """
    from convergebench.analysis.resampling import intervals

    scale, counts = _counts(values, drop=False)
    estimate = _alpha(counts, _distances(scale, counts, level))
    if estimate is None or len(weights) < 2:
        return None, None
    size = len(scale)
    pairs = counts.sum(axis=1)
    share = np.divide(1.0, pairs - 1, out=np.zeros_like(pairs), where=pairs > 1)
    own = np.einsum("sc,sd,s->scd", counts, counts, share)
    own[:, np.arange(size), np.arange(size)] -= counts * share[:, None]
    by_group = np.zeros((len(weights), size, size))
    np.add.at(by_group, groups, own)
    drawn = np.einsum("gr,gcd->rcd", weights, by_group)  # coincidences of each resample
    totals = drawn.sum(axis=2)
    n = totals.sum(axis=1)
    found = np.full(len(n), np.nan)
    if level == "ordinal":
        # Ranks, and with them distances, are those of each resample.
        below = np.cumsum(totals, axis=1) - totals / 2
        far = (below[:, :, None] - below[:, None, :]) ** 2
    else:
        far = np.broadcast_to(_distances(scale, counts, level), drawn.shape)
    seen = np.einsum("rcd,rcd->r", drawn, far)
    chance = np.einsum("rc,rd,rcd->r", totals, totals, far)
    np.divide(seen * (n - 1), chance, out=found, where=chance > 0)
    found = 1 - found
    if np.isnan(found).all():
        return None, None
    ((low, high),) = intervals(
        found[None], sources=len(weights), estimates=np.array([estimate])
    ).tolist()
    return low, min(high, 1.0)


def _counts(values: Array, *, drop: bool = True) -> tuple[Array, Array]:
    """The values that occur, and per stimulus how often; stimuli with one answer pair nothing."""
    known = ~np.isnan(values)
    if drop:
        values = values[known.sum(axis=1) > 1]
        known = ~np.isnan(values)
    paired = known.sum(axis=1) > 1
    scale = np.unique(values[known & paired[:, None]]) if values.size else np.zeros(0)
    counts = np.zeros((len(values), len(scale)))
    for at, value in enumerate(scale):
        counts[:, at] = np.sum(values == value, axis=1)
    counts[~paired] = 0
    return scale, counts


def _distances(scale: Array, counts: Array, level: Level) -> Array:
    """Squared distances between the values, as the level of measurement has them."""
    if level == "nominal":
        return 1.0 - np.eye(len(scale))
    if level == "interval":
        return (scale[:, None] - scale[None, :]) ** 2
    frequency = counts.sum(axis=0)
    middle = np.cumsum(frequency) - frequency / 2
    return np.asarray((middle[:, None] - middle[None, :]) ** 2, dtype=np.float64)


def _alpha(counts: Array, far: Array) -> float | None:
    per = counts.sum(axis=1)
    share = np.divide(1.0, per - 1, out=np.zeros_like(per), where=per > 1)
    seen = float(np.einsum("sc,sd,cd,s->", counts, counts, far, share))
    total = counts.sum(axis=0)
    chance = float(total @ far @ total)
    n = float(total.sum())
    return 1.0 - (n - 1) * seen / chance if chance > 0 else None


@dataclass(frozen=True)
class Anova:
    """Mean squares of a two-way layout without replication: stimuli × raters."""

    stimuli: int
    raters: int
    rows: float
    columns: float
    error: float
    within: float


def anova(values: Array) -> Anova:
    """Mean squares of a complete matrix."""
    n, k = values.shape
    whole = values.mean()
    rows = k * np.sum((values.mean(axis=1) - whole) ** 2)
    columns = n * np.sum((values.mean(axis=0) - whole) ** 2)
    total = np.sum((values - whole) ** 2)
    within = total - rows
    noise = 1e-12 * max(float(total), 1e-300)  # what rounding leaves of nothing

    def mean(squares: float, freedom: int) -> float:
        return float(squares) / freedom if squares > noise else 0.0

    return Anova(
        n, k,
        rows=mean(rows, n - 1),
        columns=mean(columns, k - 1),
        error=mean(within - columns, (n - 1) * (k - 1)),
        within=mean(within, n * (k - 1)),
    )  # fmt: skip


def iccs(values: Array) -> tuple[Reliability, ...]:
    """The six ICC with their F tests and 95 % intervals.

    Over the stimuli that every rater has rated; with fewer than two of them, or of raters, there is
    none, and a note says so.
    """
    complete = values[~np.isnan(values).any(axis=1)] if values.size else values
    n, k = complete.shape
    note = ""
    if n < len(values):
        note = f"over the {n} of {len(values)} stimuli that every rater has rated"
    if n < 2 or k < 2:
        why = "needs two raters and two stimuli that all of them rated"
        return tuple(
            Reliability(name, title, None, stimuli=n, raters=k, note=why)
            for name, title in MODELS.items()
        )
    told = anova(complete)
    if told.rows == told.within == 0:
        return tuple(
            Reliability(name, title, None, stimuli=n, raters=k, note="all scores are the same")
            for name, title in MODELS.items()
        )
    return tuple(_icc(name, title, told, note) for name, title in MODELS.items())


def _icc(name: str, title: str, a: Anova, note: str) -> Reliability:
    from scipy.stats import f as f_distribution

    n, k = a.stimuli, a.raters
    one_way = name.startswith("ICC(1")
    error = a.within if one_way else a.error
    df2 = n * (k - 1) if one_way else (n - 1) * (k - 1)
    spread = a.rows + (k - 1) * error
    if name.startswith("ICC(2"):
        spread += k * (a.columns - a.error) / n
    if spread <= 0:
        why = "stimuli and raters differ too little to tell"
        return Reliability(name, title, None, stimuli=n, raters=k, note=why)
    single = (a.rows - error) / spread
    ratio = a.rows / error if error > 0 else float("inf")
    if name.startswith("ICC(2"):
        low, high = _absolute(a, single)
    elif error > 0:
        down = ratio / float(f_distribution.ppf(0.975, n - 1, df2))
        up = ratio * float(f_distribution.ppf(0.975, df2, n - 1))
        low, high = ((x - 1) / (x + k - 1) for x in (down, up))
    else:
        low, high = 1.0, 1.0
    told = [single, low, high]
    if name.endswith("k)"):
        told = [_of_mean(x, k) for x in told]
    value, *around = (float(x) if np.isfinite(x) else None for x in told)
    return Reliability(
        name, title, value, around[0], around[1],
        f=float(ratio) if np.isfinite(ratio) else None, df1=n - 1, df2=df2,
        p=float(f_distribution.sf(ratio, n - 1, df2)), stimuli=n, raters=k,
        note=note if value is not None else "below what can be told",
    )  # fmt: skip


def _of_mean(one: float, k: int) -> float:
    """Spearman and Brown's step from one rater to the mean of k."""
    below = 1 + (k - 1) * one
    return k * one / below if below > 1e-12 else float("nan")


def _absolute(a: Anova, single: float) -> tuple[float, float]:
    """McGraw and Wong's interval of ICC(2,1), with Satterthwaite's degrees of freedom."""
    from scipy.stats import f as f_distribution

    n, k = a.stimuli, a.raters
    if a.error <= 0 and a.columns <= 0:
        return 1.0, 1.0
    if a.error <= 0:
        return float("nan"), float("nan")
    ratio = a.columns / a.error
    vn = (k - 1) * (n - 1) * (k * single * ratio + n * (1 + (k - 1) * single) - k * single) ** 2
    vd = (n - 1) * k**2 * single**2 * ratio**2 + (n * (1 + (k - 1) * single) - k * single) ** 2
    v = vn / vd
    up = float(f_distribution.ppf(0.975, n - 1, v))
    down = float(f_distribution.ppf(0.975, v, n - 1))
    base = k * a.columns + (k * n - k - n) * a.error
    low = n * (a.rows - up * a.error) / (up * base + n * a.rows)
    high = n * (down * a.rows - a.error) / (base + n * down * a.rows)
    return low, high


def fleiss_kappa(values: Array) -> float | None:
    """Fleiss' κ of labels; stimuli with fewer raters than the most rated ones count as they are.

    With unequal numbers of raters it is the generalisation that weighs every stimulus alike. None
    where all answers are the same or no stimulus has two.
    """
    scale, counts = _counts(values)
    if not len(counts):
        return None
    per = counts.sum(axis=1)
    seen = float(np.mean((np.sum(counts**2, axis=1) - per) / (per * (per - 1))))
    share = counts.sum(axis=0) / per.sum()
    chance = float(np.sum(share**2))
    return (seen - chance) / (1 - chance) if len(scale) > 1 else None


def kendall_w(values: Array) -> float | None:
    """Kendall's coefficient of concordance over the stimuli that every rater rated, tie-corrected.

    None with fewer than two raters or stimuli, or where a tie correction leaves nothing.
    """
    from scipy.stats import rankdata

    complete = values[~np.isnan(values).any(axis=1)] if values.size else values
    n, m = complete.shape
    if n < 2 or m < 2:
        return None
    ranks = rankdata(complete, axis=0)
    ties = 0.0
    for column in complete.T:
        count = np.unique(column, return_counts=True)[1].astype(float)
        ties += float(np.sum(count**3 - count))
    spread = float(np.sum((ranks.sum(axis=1) - m * (n + 1) / 2) ** 2))
    most = m**2 * (n**3 - n) - m * ties
    return 12 * spread / most if most > 0 else None
