"""LPIPS with small random networks against its formula, written down with SciPy's correlation."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from convergebench import testcard
from convergebench.errors import MetricUnavailable
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics import lpips as module
from convergebench.metrics.lpips import (
    ALEX,
    ALEXNET,
    VGG,
    VGG16,
    Block,
    Distance,
    Parameters,
    Stage,
    lpips,
    lpips_vgg,
)
from convergebench.testing.metrics import check_metric
from tests.metrics.pairs import CHANGES, scene
from tests.test_network import slow_conv, slow_pool

Pixels = NDArray[np.uint8]
Array = NDArray[Any]

# The reference is in float64, our networks in float32.
TOLERANCE = 1e-5
NETS: dict[str, Sequence[Block]] = {"alex": ALEXNET, "vgg": VGG16}
SPECS = {"alex": ALEX, "vgg": VGG}
WIDTHS = (4, 6, 5, 7, 3)


@cache
def parameters(net: str) -> Parameters:
    """A network of the right shape with few channels."""
    random = np.random.default_rng(7)
    convs: list[tuple[Array, Array]] = []
    inputs = 3
    for block, width in zip(NETS[net], WIDTHS, strict=True):
        for _ in range(block.convs):
            spread = np.sqrt(2 / (inputs * block.kernel**2))
            kernel = random.normal(0, spread, (width, inputs, block.kernel, block.kernel))
            convs.append((kernel.astype(np.float32), random.normal(0, 0.2, width).astype("f4")))
            inputs = width
    return Parameters(convs, [random.random(width).astype(np.float32) for width in WIDTHS])


def metric(net: str) -> LiftedMetric:
    return LiftedMetric(SPECS[net], Distance(NETS[net], lambda: parameters(net)))


METRICS = {net: metric(net) for net in NETS}
nets = pytest.mark.parametrize("net", NETS)


def score(
    of: LiftedMetric, home: Pixels, frame: Pixels, mask: NDArray[np.bool_] | None = None
) -> float:
    (value,) = of.score([StepView(Picture(frame), Picture(home), mask)])
    assert not isinstance(value, NoScore), value
    return value


def slow_features(net: str, pixels: Pixels) -> list[Array]:
    """Each block's features, unit length; the paper's equation 1 and figure 3."""
    x = pixels.astype(np.float64).transpose(2, 0, 1) / 255 * 2 - 1
    shift = np.array([-0.030, -0.088, -0.188]).reshape(3, 1, 1)
    x = (x - shift) / np.array([0.458, 0.448, 0.450]).reshape(3, 1, 1)
    convs = iter(parameters(net).convs)
    found = []
    for number in range(5):
        if net == "alex":
            if number in (1, 2):
                x = slow_pool(x, 3, 2)
            stride, padding = ((4, 2), (1, 2), (1, 1), (1, 1), (1, 1))[number]
            x = np.maximum(slow_conv(x, *next(convs), stride, padding), 0)
        else:
            if number:
                x = slow_pool(x, 2, 2)
            for _ in range((2, 2, 3, 3, 3)[number]):
                x = np.maximum(slow_conv(x, *next(convs), 1, 1), 0)
        found.append(x / (np.sqrt((x**2).sum(0)) + 1e-10))
    return found


def slow_maps(net: str, home: Pixels, frame: Pixels) -> list[Array]:
    pairs = zip(
        slow_features(net, home), slow_features(net, frame), parameters(net).heads, strict=True
    )
    return [np.tensordot(head.astype(np.float64), (x - y) ** 2, 1) for x, y, head in pairs]


def slow_lpips(net: str, home: Pixels, frame: Pixels) -> float:
    return float(sum(distance.mean() for distance in slow_maps(net, home, frame)))


# -- values ---------------------------------------------------------------------------------------


@nets
@pytest.mark.parametrize("change", CHANGES)
def test_equals_the_formula(net: str, change: str) -> None:
    home = scene(60, 77)
    frame = CHANGES[change](home)
    want = slow_lpips(net, home, frame)
    assert score(METRICS[net], home, frame) == pytest.approx(want, abs=TOLERANCE)


@nets
@pytest.mark.parametrize("size", [(31, 31), (32, 35), (33, 34), (97, 31), (31, 110), (46, 47)])
def test_equals_the_formula_at_odd_sizes(net: str, size: tuple[int, int]) -> None:
    home = scene(*size)
    frame = CHANGES["noise"](home)
    want = slow_lpips(net, home, frame)
    assert score(METRICS[net], home, frame) == pytest.approx(want, abs=TOLERANCE)


@nets
def test_the_smallest_side(net: str) -> None:
    smallest = SPECS[net].min_side
    assert score(METRICS[net], scene(smallest, smallest), scene(smallest, smallest)) == 0
    small = scene(smallest, smallest - 1)
    (answer,) = METRICS[net].score([StepView(Picture(small), Picture(small))])
    assert answer == NoScore(f"{smallest - 1} pixels on the short side, {smallest} needed")


@nets
@pytest.mark.parametrize("strip", [1, 40_000])
@pytest.mark.parametrize("keep", [0, 30_000, 1 << 30])
def test_strips_and_forgetting_change_nothing(
    net: str, strip: int, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = scene(203, 90)
    frame = CHANGES["noise"](home)
    want = score(METRICS[net], home, frame)
    monkeypatch.setattr(module, "STRIP_BYTES", strip)
    monkeypatch.setattr(module, "KEEP_BYTES", keep)
    fresh, views = metric(net), [StepView(Picture(frame), Picture(home)) for _ in range(2)]
    for value in fresh.score([*views, *views]):
        assert value == pytest.approx(want, abs=1e-6)
    mask = np.zeros(home.shape[:2], bool)
    mask[50:140, 20:70] = True
    masked = score(fresh, home, frame, mask)
    assert masked == pytest.approx(score(METRICS[net], home, frame, mask), abs=1e-6)


@nets
def test_a_mask_weighs_each_position_by_its_share(net: str) -> None:
    """Blocks of which each position covers whole pixels, so that shares can be counted."""
    home = scene(64, 96)
    frame = CHANGES["coarser"](home)
    mask = np.random.default_rng(1).random(home.shape[:2]) < 0.3
    want = 0.0
    for distance in slow_maps(net, home, frame):
        rows, columns = distance.shape
        # Every pixel in a grid that both divide, then the mean of each position.
        fine = mask.repeat(rows, axis=0).repeat(columns, axis=1).astype(np.float64)
        share = fine.reshape(rows, mask.shape[0], columns, mask.shape[1]).mean((1, 3))
        want += float((share * distance).sum() / share.sum())
    assert score(METRICS[net], home, frame, mask) == pytest.approx(want, abs=TOLERANCE)


pictures = st.tuples(st.integers(31, 48), st.integers(31, 48), st.just(3)).flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.uint8, shape), hnp.arrays(np.uint8, shape), hnp.arrays(np.bool_, shape[:2])
    )
)


@settings(max_examples=25, deadline=None)
@given(pictures, st.sampled_from(sorted(NETS)))
def test_a_distance_is_symmetric_and_splits_into_inside_and_outside(
    drawn: tuple[Pixels, Pixels, NDArray[np.bool_]], net: str
) -> None:
    home, frame, mask = drawn
    whole = score(METRICS[net], home, frame)
    assert whole >= 0
    assert score(METRICS[net], frame, home) == pytest.approx(whole, abs=1e-6)
    assert score(METRICS[net], home, home) == 0
    share = float(mask.mean())
    if 0 < share < 1:
        inside, outside = (score(METRICS[net], home, frame, m) for m in (mask, ~mask))
        assert share * inside + (1 - share) * outside == pytest.approx(whole, abs=TOLERANCE)


@nets
def test_contract(net: str) -> None:
    check_metric(metric(net))


# -- work and memory ------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often the first block has run."""
    count = [0]
    run: Callable[..., Any] = Stage.run

    def counted(self: Stage, x: Array, *rest: Any) -> Any:
        count[0] += x.dtype == np.uint8
        return run(self, x, *rest)

    monkeypatch.setattr(Stage, "run", counted)
    return count


@nets
def test_features_are_computed_once_per_picture(net: str, runs: list[int]) -> None:
    """A chain of five frames, against home, against the frame before, and in two masks."""
    home = scene(64, 64)
    chain = [Picture(home)]
    for _ in range(5):
        chain.append(Picture(CHANGES["noise"](chain[-1].pixels)))
    mask = np.zeros((64, 64), bool)
    mask[:20, :30] = True
    views: list[StepView] = []
    for before, frame in pairwise(chain):
        against_home = StepView(frame, chain[0])
        views.append(against_home)
        views += [StepView(frame, chain[0], m, against_home.memo) for m in (mask, ~mask)]
        views.append(StepView(frame, before))
    own = metric(net)
    for view in views:  # in batches of one, as for large frames
        own.score([view])
    assert runs == [6]


def test_what_was_not_used_of_late_makes_room(
    runs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, frames = Picture(scene(64, 64)), [Picture(scene(64, 64)) for _ in range(4)]
    own = metric("alex")
    own.score([StepView(frames[0], home)])
    (_, tower) = own.measure._towers(home, frames[0])  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "KEEP_BYTES", 2 * tower.bytes)  # home, and one frame
    own.score([StepView(frame, home) for frame in frames])
    assert runs == [5]
    own.score([StepView(frames[3], home)])
    assert runs == [5]
    own.score([StepView(frames[0], home)])
    assert runs == [6]


def test_a_picture_no_longer_used_is_freed_at_once() -> None:
    home, frame = Picture(scene(64, 64)), Picture(scene(64, 64))
    own = metric("alex")
    own.score([StepView(frame, home)])
    gone = weakref.ref(own.measure._towers(home, frame)[1])  # type: ignore[attr-defined]
    del frame
    assert gone() is None


# -- the real weights -----------------------------------------------------------------------------


def test_without_weights_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MetricUnavailable, match="convergebench weights pull lpips-alex"):
        lpips()
    with pytest.raises(MetricUnavailable, match="convergebench weights pull lpips-vgg"):
        lpips_vgg()


@pytest.mark.weights
@pytest.mark.parametrize("factory", [lpips, lpips_vgg])
def test_known_answer(factory: Callable[[], LiftedMetric]) -> None:
    real = factory()
    known = real.spec.known
    assert known is not None
    found = score(real, *testcard.testcard())
    assert found == pytest.approx(known.value, abs=known.tolerance)


@pytest.mark.weights
def test_contract_with_the_real_weights() -> None:
    check_metric(lpips())
