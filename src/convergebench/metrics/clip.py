"""CLIP: does the picture still show the same thing, and did an edit go the way its words say?

A picture is prepared as CLIP's authors did: bicubic resampling (Pillow's, on 8-bit samples) to 224
pixels on the short side, the central 224×224, then OpenAI's mean and deviation per channel. The
central square of a wide or tall picture is all that CLIP sees of it: that is what every published
CLIP number measures, so it is kept. Equal to `transformers`' `CLIPImageProcessor` with Pillow; the
crop of `openai-clip` and `open_clip` (torchvision's) may lie a pixel aside where the margin is odd.

The towers run in ONNX Runtime (see `vit`), so neither torch nor a CLIP library is needed. The
weights could not be reached when this was written, so no known answer is given for the test card;
tests run the full architecture with random weights against `transformers` and `openai-clip`.

Radford et al.: Learning transferable visual models from natural language supervision. ICML 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metric import MetricSpec, Needs, NoScore, Picture, StepView
from convergebench.metrics.pair import pair
from convergebench.metrics.tokens import Tokenizer
from convergebench.metrics.vit import ImageTower, TextTower, hugging_face_layout
from convergebench.resources import Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

PAPER: Final = "https://arxiv.org/abs/2103.00020"
BATCH: Final = 16
"""Pictures that go through a tower at once; more would only cost memory."""
NARROWEST: Final = 100
"""Aspect ratio up to which a picture is prepared: a longer strip would be resampled to a giant."""
UNCHANGED: Final = 1e-5
"""A difference of unit vectors below this is float32's rounding, and has no direction."""

LARGE: Final = "clip-vit-l-14"
BASE: Final = "clip-vit-b-32"
SHAPES: Final = {LARGE: (14, 1024), BASE: (32, 768)}
"""Patch and width of each, to notice a file that is something else."""


@dataclass(frozen=True)
class Preparation:
    """How pictures are made ready: short side, side of the central crop, mean and deviation."""

    short: int = 224
    crop: int = 224
    mean: tuple[float, ...] = (0.48145466, 0.4578275, 0.40821073)
    deviation: tuple[float, ...] = (0.26862954, 0.26130258, 0.27577711)

    def __call__(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32] | NoScore:
        """3×crop×crop numbers, or why there are none."""
        height, width = pixels.shape[:2]
        short, long = min(height, width), max(height, width)
        if long > NARROWEST * short:
            return NoScore(f"a strip of {width}×{height}: CLIP would see its middle only")
        # The long side is rounded down, as all CLIP libraries do.
        size = (self.short * width // short, self.short * height // short)
        resampled = Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)
        left, top = (size[0] - self.crop) // 2, (size[1] - self.crop) // 2
        square = resampled.crop((left, top, left + self.crop, top + self.crop))
        unit = np.asarray(square, np.float32) / np.float32(255)
        mean, deviation = (np.array(each, np.float32) for each in (self.mean, self.deviation))
        scaled = (unit - mean) / deviation
        return np.ascontiguousarray(scaled.transpose(2, 0, 1), np.float32)


class _Slot:
    """Where a picture keeps its embedding, so that a batch can fill many."""

    value: Vector | NoScore | None = None


class Encoder:
    """Embeddings of pictures, each computed once.

    Args:
        tower: CLIP's image tower.
        key: What the embeddings are kept under in each picture; equal keys mean equal weights.
        prepare: What happens to pixels before.
    """

    def __init__(self, tower: ImageTower, key: str, prepare: Preparation | None = None) -> None:
        self._tower, self._key = tower, ("clip", key)
        self._prepare = prepare or Preparation(tower.side, tower.side)

    def __call__(self, pictures: Sequence[Picture]) -> list[Vector | NoScore]:
        """The embedding of each picture, not normalised."""
        slots = [picture.shared(self._key, lambda _: _Slot()) for picture in pictures]
        waiting: list[tuple[_Slot, NDArray[np.float32]]] = []
        for slot, picture in zip(slots, pictures, strict=True):
            if slot.value is None and all(slot is not other for other, _ in waiting):
                prepared = self._prepare(picture.pixels)
                if isinstance(prepared, NoScore):
                    slot.value = prepared
                else:
                    waiting.append((slot, prepared))
            if len(waiting) == BATCH:
                self._fill(waiting)
        self._fill(waiting)
        return [slot.value for slot in slots if slot.value is not None]

    def _fill(self, waiting: list[tuple[_Slot, NDArray[np.float32]]]) -> None:
        if waiting:
            found = self._tower(np.stack([prepared for _, prepared in waiting]))
            for (slot, _), embedding in zip(waiting, found, strict=True):
                slot.value = embedding.astype(np.float64)
            waiting.clear()


@dataclass
class Similarity:
    """Cosine of the embeddings of frame and reference; the network is loaded by the first score."""

    spec: MetricSpec
    load: Callable[[], Encoder]
    together = BATCH

    @cached_property
    def _encoder(self) -> Encoder:
        return self.load()

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure all views, their pictures in batches."""
        pairs = _embedded(self._encoder, views) if views else []
        return [each if isinstance(each, NoScore) else _cosine(*each) for each in pairs]


@dataclass
class Direction:
    """Cosine of what changed in the picture and what should have, by the edit's words."""

    spec: MetricSpec
    load: Callable[[], tuple[Encoder, TextTower, Tokenizer]]
    together = BATCH

    def __post_init__(self) -> None:
        self._texts: dict[str, Vector] = {}

    @cached_property
    def _loaded(self) -> tuple[Encoder, TextTower, Tokenizer]:
        return self.load()

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure all views, their pictures and texts in batches."""
        reasons = [_no_direction(view) for view in views]
        along = [view for view, reason in zip(views, reasons, strict=True) if reason is None]
        values = iter(self._measured(along) if along else [])
        return [next(values) if reason is None else reason for reason in reasons]

    def _measured(self, views: Sequence[StepView]) -> list[float | NoScore]:
        encoder, tower, tokenizer = self._loaded
        texts = dict.fromkeys(text for view in views for text in view.texts or ())
        new = [text for text in texts if text not in self._texts]
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            found = tower([tokenizer.encode(text, tower.context) for text in batch])
            self._texts |= zip(batch, found.astype(np.float64), strict=True)
        return [
            each
            if isinstance(each, NoScore)
            else _along(*each, *(self._texts[text] for text in view.texts or ()))
            for view, each in zip(views, _embedded(encoder, views), strict=True)
        ]


def _no_direction(view: StepView) -> NoScore | None:
    reference, frame = pair(view)
    if view.texts is None:
        return NoScore("no words for this edit: what the picture shows before and after it")
    if view.texts[0] == view.texts[1]:
        return NoScore("both texts are the same")
    if np.array_equal(reference.pixels, (view.native or frame).pixels):
        return NoScore("the picture did not change")
    return None


def _embedded(encoder: Encoder, views: Sequence[StepView]) -> list[tuple[Vector, Vector] | NoScore]:
    """Embeddings of reference and frame: the frame as the editor made it, resampled once only."""
    homes, frames = [], []
    for view in views:
        home, frame = pair(view)
        homes.append(home)
        frames.append(view.native or frame)
    found = encoder([*homes, *frames])
    pairs: list[tuple[Vector, Vector] | NoScore] = []
    for one, other in zip(found[: len(views)], found[len(views) :], strict=True):
        if isinstance(one, NoScore):
            pairs.append(one)
        else:
            pairs.append(other if isinstance(other, NoScore) else (one, other))
    return pairs


def _cosine(one: Vector, other: Vector) -> float | NoScore:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    if not np.isfinite(lengths) or lengths == 0:
        return NoScore("an embedding without a direction")
    return max(-1.0, min(1.0, float(np.dot(one, other)) / lengths))


def _along(home: Vector, frame: Vector, before: Vector, after: Vector) -> float | NoScore:
    change, wish = _unit(frame) - _unit(home), _unit(after) - _unit(before)
    if np.linalg.norm(change) <= UNCHANGED:
        return NoScore("CLIP sees no change in the picture")
    if np.linalg.norm(wish) <= UNCHANGED:
        return NoScore("to CLIP both texts say the same")
    return _cosine(change, wish)


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


# -- the metrics ----------------------------------------------------------------------------------


def _parameters(name: str, path: Path) -> dict[str, NDArray[Any]]:
    """Both towers' parameters, checked to be of the model that the metric is named after."""
    found = hugging_face_layout(weights.arrays(path))
    kernel = found.get("vision_model.embeddings.patch_embedding.weight", np.empty(0))
    if (kernel.shape[-1], len(kernel)) != SHAPES[name]:
        patch, width = SHAPES[name]
        raise MetricUnavailable(
            f"{path} is not {name}: expected an image tower with patches of {patch} and a width of "
            f"{width}, got a first layer of shape {list(kernel.shape)}. Remove it and run "
            f"`convergebench weights pull {name}`"
        )
    return found


def _similarity(spec: MetricSpec, name: str) -> Similarity:
    path = weights.find(name)
    return Similarity(spec, lambda: Encoder(ImageTower(_parameters(name, path)), str(path)))


def clip() -> Similarity:
    """Cosine of CLIP's embeddings of frame and reference, with ViT-L/14.

    E(frame)·E(reference) / (|E(frame)|·|E(reference)|), from −1 to 1 and in practice above 0; 1 for
    identical pictures. It asks what a picture shows, not how well: damage that ruins a picture may
    cost it little. Only the central square of a picture counts. No known answer is given for the
    test card, because OpenAI's weights could not be reached when this was written.
    """
    return _similarity(CLIP, LARGE)


def clip_b32() -> Similarity:
    """Cosine of CLIP's embeddings of frame and reference, with ViT-B/32: coarser, much faster.

    As `clip`; values of the two models cannot be compared with each other.
    """
    return _similarity(CLIP_B32, BASE)


def clip_direction() -> Direction:
    """Whether an edit moved the picture the way its words say, with CLIP ViT-L/14.

    cos(Î(frame) − Î(reference), T̂(after) − T̂(before)), where Î and T̂ are embeddings of pictures and
    texts, made unit vectors, and the texts say what the reference shows and what the edit should
    give. From −1 (the opposite) to 1. No score without texts, or where picture or words did not
    change. Texts of more than 77 tokens are cut.

    Gal et al.: StyleGAN-NADA: CLIP-guided domain adaptation of image generators. ACM TOG 2022. As
    in Brooks et al. 2023 (InstructPix2Pix), each text is embedded as it stands, not averaged over
    templates. No known answer is given for the test card, because OpenAI's weights could not be
    reached when this was written.
    """
    path, merges = weights.find(LARGE), weights.find(LARGE, "merges.txt")

    def load() -> tuple[Encoder, TextTower, Tokenizer]:
        parameters = _parameters(LARGE, path)
        tower, tokenizer = TextTower(parameters), Tokenizer.read(merges)
        if tokenizer.size != tower.vocabulary:
            raise MetricUnavailable(
                f"{merges} makes {tokenizer.size} tokens, and {path} has {tower.vocabulary}"
            )
        return Encoder(ImageTower(parameters), str(path)), tower, tokenizer

    return Direction(CLIP_DIRECTION, load)


CLIP: Final = MetricSpec(
    name="clip",
    version="1-vit-l-14",
    kind="semantic",
    higher_is_better=True,
    identical=1,
    typical=(0, 1),
    title="CLIP similarity, ViT-L/14",
    paper=PAPER,
    cost="heavy",
    needs=Needs(weights=(LARGE,)),
    isolated=True,
    resources=Resources(gpus=1, memory=4 << 30),
)
CLIP_B32: Final = replace(
    CLIP,
    name="clip-b32",
    version="1-vit-b-32",
    title="CLIP similarity, ViT-B/32",
    cost="medium",
    needs=Needs(weights=(BASE,)),
    isolated=False,
    resources=Resources(),
)
CLIP_DIRECTION: Final = replace(
    CLIP,
    name="clip-direction",
    identical=None,
    typical=(-1, 1),
    title="CLIP directional similarity, ViT-L/14",
    paper="https://arxiv.org/abs/2108.00946",
    directional=True,
)
clip.spec = CLIP  # type: ignore[attr-defined]
clip_b32.spec = CLIP_B32  # type: ignore[attr-defined]
clip_direction.spec = CLIP_DIRECTION  # type: ignore[attr-defined]
