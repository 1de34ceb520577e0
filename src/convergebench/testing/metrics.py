"""The contract of metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.metric import Memo, Metric, MetricSpec, NoScore, Picture, StepView
from convergebench.testing.contract import ContractBroken
from convergebench.testing.pictures import colourful, noisy

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOISE_LEVELS: Final = (0, 2, 6, 15, 40)


def check_metric(metric: Metric, *, exempt: Mapping[str, str] | None = None) -> None:
    """Check a metric against the promises of `convergebench.metric`.

    Its spec is filled in; identical pictures score `spec.identical`; the same views score the same
    again; more noise is never better; a batch scores as its views do one by one, and with shared
    memos as without; small, narrow and constant pictures give a number or a NoScore; a regional
    metric looks inside its mask and nowhere else. A value is a number, never NaN, and infinite only
    for identical pictures, where `spec.identical` says so.

    Args:
        metric: The metric to check.
        exempt: `{"noise": reason}` leaves out the check that more noise is never better, which is
            otherwise made for metrics that compare with a reference. That nothing scores better
            than an identical picture is checked all the same.
    """
    excused = dict(exempt or {})
    unknown = set(excused) - {"noise"}
    if unknown or not all(reason.strip() for reason in excused.values()):
        raise ValueError(f"exempt takes {{'noise': reason}}, got {excused}")
    spec = _check_metric_spec(metric)
    subject = _Subject(metric, spec)
    side = max(64, spec.min_side)
    home = colourful(side, side)
    # Where nothing changed there is no direction to measure.
    levels = NOISE_LEVELS[1:] if spec.directional else NOISE_LEVELS
    ladder = [noisy(home, level) for level in levels]
    views = [subject.view(home, frame) for frame in ladder]
    scores = subject.numbers(views, "noisy pictures")
    if spec.identical is not None and not _same(scores[0], spec.identical):
        raise ContractBroken(
            f"{spec.name}: identical pictures score {scores[0]}, its spec says {spec.identical}"
        )
    fresh = [subject.view(home, frame) for frame in ladder]
    if subject.numbers(fresh, "noisy pictures") != scores:
        raise ContractBroken(f"{spec.name}: the same pictures scored differently the second time")
    if spec.kind != "no-reference" and not spec.directional:
        _check_order(spec, scores, every="noise" not in excused)
    _check_batching(subject, home, ladder, scores)
    _check_sizes(subject)
    if spec.regional:
        _check_mask(subject)


@dataclass(frozen=True)
class _Subject:
    """A metric under examination."""

    metric: Metric
    spec: MetricSpec

    def view(
        self,
        reference: NDArray[np.uint8],
        frame: NDArray[np.uint8],
        mask: NDArray[np.bool_] | None = None,
        memo: Memo | None = None,
    ) -> StepView:
        """A view with fresh pictures, read-only as those that a scorer hands out."""
        reference.setflags(write=False)
        frame.setflags(write=False)
        home = None if self.spec.kind == "no-reference" else Picture(reference)
        texts = ("a picture", "a noisy picture") if self.spec.directional else None
        return StepView(Picture(frame), home, mask, memo or Memo(), texts=texts)

    def score(self, views: Sequence[StepView], what: str) -> list[float | NoScore]:
        """One checked value per view."""
        name = self.spec.name
        try:
            scores = list(self.metric.score(views))
        except Exception as error:  # whatever a foreign metric does
            raise ContractBroken(
                f"{name}: given {what}, it raised {type(error).__name__} ({error}); "
                "what cannot be measured is a NoScore"
            ) from error
        if len(scores) != len(views):
            raise ContractBroken(f"{name}: {len(views)} views got {len(scores)} scores")
        for view, score in zip(views, scores, strict=True):
            if isinstance(score, NoScore):
                continue
            if not isinstance(score, (int, float, np.integer, np.floating)):
                raise ContractBroken(f"{name}: given {what}, a score is {type(score).__name__}")
            if math.isnan(score):
                raise ContractBroken(f"{name}: given {what}, a score is NaN; say NoScore and why")
            if math.isinf(score) and not (score == self.spec.identical and _identical(view)):
                raise ContractBroken(f"{name}: given {what}, a score is {score}")
        return scores

    def numbers(self, views: Sequence[StepView], what: str) -> list[float]:
        """Like `score`, for views that must be measurable."""
        found: list[float] = []
        for score in self.score(views, what):
            if isinstance(score, NoScore):
                raise ContractBroken(
                    f"{self.spec.name}: given {what}, it has no score ({score.reason})"
                )
            found.append(float(score))
        return found


def _check_metric_spec(metric: Metric) -> MetricSpec:
    spec = metric.spec
    if not isinstance(spec, MetricSpec):
        raise ContractBroken(f"spec must be a MetricSpec, got {type(spec).__name__}")
    for field in ("name", "version", "title"):
        if not getattr(spec, field):
            raise ContractBroken(f"metric {spec.name!r}: spec.{field} is empty")
    if spec.kind not in ("full-reference", "semantic", "no-reference"):
        raise ContractBroken(f"{spec.name}: spec.kind is {spec.kind!r}")
    if spec.directional and spec.identical is not None:
        raise ContractBroken(f"{spec.name}: a directional metric has no value of identical images")
    if spec.typical is not None and not spec.typical[0] < spec.typical[1]:
        raise ContractBroken(f"{spec.name}: spec.typical is {spec.typical}, expected low < high")
    return spec


def _check_order(spec: MetricSpec, scores: Sequence[float], *, every: bool) -> None:
    """No picture scores better than the identical one, nor than any with less noise."""
    for noisier in range(1, len(scores)):
        for calmer in range(noisier if every else 1):
            low, high = scores[calmer], scores[noisier]
            if high > low if spec.higher_is_better else high < low:
                raise ContractBroken(
                    f"{spec.name}: noise of {NOISE_LEVELS[noisier]} levels scores better ({high}) "
                    f"than noise of {NOISE_LEVELS[calmer]} ({low})"
                )


def _check_batching(
    subject: _Subject,
    home: NDArray[np.uint8],
    ladder: Sequence[NDArray[np.uint8]],
    scores: Sequence[float],
) -> None:
    for frame, batched in zip(ladder, scores, strict=True):
        memo = Memo()
        for what, view in (
            ("alone", subject.view(home, frame)),
            ("with a memo", subject.view(home, frame, memo=memo)),
            ("when it remembers the pair", subject.view(home, frame, memo=memo)),
        ):
            alone = subject.numbers([view], "one view")[0]
            if not _same(alone, batched):
                raise ContractBroken(
                    f"{subject.spec.name}: a view scores {alone} {what}, but {batched} in a batch"
                )
    if list(subject.metric.score([])):
        raise ContractBroken(f"{subject.spec.name}: no views got a score")


def _check_sizes(subject: _Subject) -> None:
    for width, height in ((1, 1), (7, 7), (64, 9), (9, 64)):
        picture = colourful(width, height)
        flat = np.full_like(picture, 128)
        for what, home, frame in (
            ("pictures", picture, noisy(picture, 10)),
            ("identical pictures", picture, picture),
            ("constant pictures", flat, flat),
            ("a constant picture and another", flat, picture),
        ):
            view = subject.view(home, frame)
            subject.score([view], f"{what} of {width}×{height}")
    side = max(64, subject.spec.min_side)
    flat = np.full((side, side, 3), 128, np.uint8)
    subject.score([subject.view(flat, flat)], f"constant pictures of {side}×{side}")


def _check_mask(subject: _Subject) -> None:
    """Damage far from the mask must not matter, damage inside it must."""
    side = max(256, 4 * subject.spec.min_side)
    quarter = side // 4
    home = colourful(side, side)
    base = noisy(home, 5)
    mask = np.zeros((side, side), bool)
    mask[:quarter, :quarter] = True
    outside, inside = base.copy(), base.copy()
    outside[-quarter:, -quarter:] = 255 - outside[-quarter:, -quarter:]
    inside[:quarter, :quarter] = 255 - inside[:quarter, :quarter]
    plain, far, near = (
        subject.numbers([subject.view(home, frame, mask)], "a mask")[0]
        for frame in (base, outside, inside)
    )
    if not _same(plain, far):
        raise ContractBroken(
            f"{subject.spec.name}: damage far outside the mask changed the score inside it "
            f"from {plain} to {far}"
        )
    if _same(plain, near):
        raise ContractBroken(
            f"{subject.spec.name}: damage inside the mask left the score at {near}"
        )
    memo = Memo()
    subject.numbers([subject.view(home, outside, memo=memo)], "no mask")
    again = subject.numbers([subject.view(home, outside, mask, memo)], "a mask and a memo")[0]
    if not _same(again, far):
        raise ContractBroken(
            f"{subject.spec.name}: what it remembered of the whole picture changed the score in a "
            f"mask from {far} to {again}"
        )
    subject.score([subject.view(home, base, np.zeros_like(mask))], "an empty mask")


def _same(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)


def _identical(view: StepView) -> bool:
    home = view.reference
    return home is not None and np.array_equal(home.pixels, view.frame.pixels)
