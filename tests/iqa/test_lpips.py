"""LPIPS beside the `lpips` package, which is given the same backbone and heads."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import testcard, weights
from convergebench.frame import Frame
from convergebench.metric import LiftedMetric, NoScore, Picture, StepView
from convergebench.metrics import lpips as ours

torch: Any = pytest.importorskip("torch")
package: Any = pytest.importorskip("lpips")

Pixels = NDArray[np.uint8]

# Two libraries add up the same products in another order; 6e-8 was the most seen.
TOLERANCE = 1e-6

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module", params=["alex", "vgg"])
def nets(request: pytest.FixtureRequest) -> tuple[LiftedMetric, Any]:
    """Our metric, and the package's with the parameters of our file."""
    net = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchvision's, about how the package calls it
        theirs = package.LPIPS(pretrained=False, pnet_rand=True, net=net, verbose=False).eval()
    stored = weights.arrays(weights.find(f"lpips-{net}"))
    convs = [m for m in theirs.net.modules() if isinstance(m, torch.nn.Conv2d)]
    name = {"alex": "AlexNet_0", "vgg": "VGG16_0"}[net]
    with torch.no_grad():
        for index, conv in enumerate(convs):
            kernel = torch.from_numpy(np.array(stored[f"{name}/Conv_{index}/kernel"]))
            conv.weight.copy_(kernel.permute(3, 2, 0, 1))
            conv.bias.copy_(torch.from_numpy(np.array(stored[f"{name}/Conv_{index}/bias"])))
        for index, head in enumerate(theirs.lins):
            kernel = torch.from_numpy(np.array(stored[f"NetLinLayer_{index}/Conv_0/kernel"]))
            head.model[-1].weight.copy_(kernel.permute(3, 2, 0, 1))
    return (ours.lpips if net == "alex" else ours.lpips_vgg)(), theirs


def peer(theirs: Any, one: Pixels, other: Pixels) -> float:
    def tensor(pixels: Pixels) -> Any:
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 127.5 - 1

    with torch.no_grad():
        return float(theirs(tensor(one), tensor(other)))


def score(metric: LiftedMetric, one: Pixels, other: Pixels) -> float | NoScore:
    return metric.score([StepView(Picture(other), Picture(one))])[0]


def test_the_test_card(nets: tuple[LiftedMetric, Any]) -> None:
    metric, theirs = nets
    known = metric.spec.known
    assert known is not None
    assert peer(theirs, *testcard.testcard()) == pytest.approx(known.value, abs=TOLERANCE)
    assert score(metric, *testcard.testcard()) == pytest.approx(known.value, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("width", "height"), [(31, 31), (32, 47), (33, 200), (301, 64), (77, 131), (496, 31)]
)
def test_odd_sizes(nets: tuple[LiftedMetric, Any], width: int, height: int) -> None:
    metric, theirs = nets
    random = np.random.default_rng(width)
    one = random.integers(0, 256, (height, width, 3), np.uint8)
    other = np.clip(one + random.integers(-40, 40, one.shape), 0, 255).astype(np.uint8)
    assert score(metric, one, other) == pytest.approx(peer(theirs, one, other), abs=TOLERANCE)


def test_strips_and_forgetting(
    nets: tuple[LiftedMetric, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, theirs = nets
    one, other = (np.ascontiguousarray(p[100:300, 80:180]) for p in testcard.testcard())
    want = peer(theirs, one, other)
    monkeypatch.setattr(ours, "STRIP_BYTES", 1 << 19)
    for keep in (0, 4 << 20, 1 << 30):
        monkeypatch.setattr(ours, "KEEP_BYTES", keep)
        assert score(metric, one, other) == pytest.approx(want, abs=TOLERANCE)


def test_the_smallest_side_is_the_packages(nets: tuple[LiftedMetric, Any]) -> None:
    metric, theirs = nets
    side = metric.spec.min_side
    small = np.full((side, side, 3), 77, np.uint8)
    assert peer(theirs, small, small) == 0
    with pytest.raises(RuntimeError, match="too small"):
        peer(theirs, small[1:], small[1:])


@pytest.mark.shared
def test_the_official_set(nets: tuple[LiftedMetric, Any], shared: Path) -> None:
    metric, theirs = nets
    folder = shared / "data/iqa/official"
    with (folder / "results_official.csv").open() as lines:
        table = {row[0]: row[1:] for row in csv.reader(lines)}
    official = [float(value) for value in table["lpips"]]
    names = sorted(path.name for path in (folder / "ref_dir").iterdir())
    for name, value in zip(names, official, strict=True):
        one, other = (
            Frame((folder / side / name).read_bytes()).pixels for side in ("ref_dir", "dist_dir")
        )
        found = score(metric, one, other)
        assert found == pytest.approx(peer(theirs, one, other), abs=TOLERANCE)
        if metric.spec.name == "lpips-vgg":
            break  # the table has AlexNet's, and one pair is enough work
        assert found == pytest.approx(value, abs=5e-5)  # the digits that are printed
