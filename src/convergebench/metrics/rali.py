"""RALI: a quality score from CLIP's image tower, aligned with what a reasoning model wrote.

The tower was trained to put a picture where the description of its quality by Q-Insight (a
vision-language model) lies. With E the embedding, m, s and U the mean, scale and components of a
PCA, and K prototypes pᵢ with scores fᵢ and a sharpness t, all learned,

    z = U·((E − m) / |s|),    wᵢ ∝ exp(t·cos(z, pᵢ)),    score = Σ wᵢ·fᵢ.

Zhao et al.: Reasoning as representation: rethinking visual reinforcement learning in image quality
assessment. ICLR 2026.

Written by hand after the authors' demonstration (`src/eval/demo_rali_score.py` of
github.com/bytedance/Q-Insight), because that needs torch, transformers, scikit-learn and an
unrestricted unpickler. Of their checkpoint folder it reads `ckpt.pt`, which holds the tower and
all learned numbers, and `pca.pkl`, which alone has the mean; `best/config.json` and
`best/preprocessor_config.json` where they are there, and OpenAI's conventions otherwise.
`basis.npz` and the weights in `best` are starting points that `ckpt.pt` replaces. The checkpoint
could not be reached when this was written: names, shapes and formula are those of that program,
tested with random numbers against the same computation in torch.
"""

from __future__ import annotations

import io
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metric import MetricSpec, Needs, NoScore, StepView
from convergebench.metrics.clip import BATCH, Encoder, Preparation
from convergebench.metrics.vit import Activation, ImageTower, hugging_face_layout
from convergebench.resources import Resources
from convergebench.weights.pickles import NUMPY, DType, NumpyArray, Refused, Word, flatten, is_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SET: Final = "rali"


@dataclass(frozen=True)
class Prototypes:
    """Everything behind the tower.

    Attributes:
        mean: Of the embeddings that the PCA was fitted to.
        scale: What each of their numbers is divided by.
        components: One a row.
        vectors: One prototype a row, in the space of the components.
        scores: One for each prototype.
        sharpness: Factor of the cosines: the inverse of the authors' temperature.
    """

    mean: Floats
    scale: Floats
    components: Floats
    vectors: Floats
    scores: Floats
    sharpness: float

    def __post_init__(self) -> None:
        size, kept, count = self.mean.size, len(self.components), len(self.vectors)
        for name, shape in {
            "mean": (size,),
            "scale": (size,),
            "components": (kept, size),
            "vectors": (count, kept),
            "scores": (count,),
        }.items():
            array: Floats = getattr(self, name)
            if array.shape != shape or not array.size:
                raise MetricUnavailable(
                    f"RALI's {name} have the shape {array.shape}, expected {shape}"
                )
            if not np.isfinite(array).all():
                raise MetricUnavailable(f"RALI's {name} are not all finite")
        if not self.scale.all() or not math.isfinite(self.sharpness):
            raise MetricUnavailable("RALI's scale or sharpness is 0 or not finite")

    def score(self, embedding: Floats) -> float:
        """The score of a picture with that embedding."""
        projected = self.components @ ((embedding - self.mean) / np.abs(self.scale))
        cosines = _unit(self.vectors) @ _unit(projected)
        # The authors' lower bound, which keeps a temperature positive.
        logits = max(self.sharpness, 1e-6) * cosines
        shares = np.exp(logits - logits.max())
        return float(shares @ self.scores / shares.sum())


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = vectors / np.maximum(lengths, 1e-12)
    return unit


@dataclass
class Rali:
    """The metric; the network is loaded by the first score."""

    spec: MetricSpec
    load: Callable[[], tuple[Encoder, Prototypes]]
    together = BATCH

    @cached_property
    def _loaded(self) -> tuple[Encoder, Prototypes]:
        return self.load()

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """Measure all views, their pictures in batches."""
        if not views:
            return []
        encoder, prototypes = self._loaded
        found = encoder([view.frame for view in views])
        return [each if isinstance(each, NoScore) else prototypes.score(each) for each in found]


# -- the checkpoint folder ------------------------------------------------------------------------


def read(checkpoint: Path, pca: Path) -> tuple[Encoder, Prototypes]:
    """Tower and prototypes from the authors' files.

    Raises:
        MetricUnavailable: A file lacks something, or they do not fit together.
    """
    arrays = {
        name.removeprefix("state_dict/"): array
        for name, array in weights.arrays(checkpoint).items()
    }
    learned = {name: _learned(arrays, checkpoint, name) for name in LEARNED}
    prototypes = Prototypes(
        mean=pca_mean(pca),
        scale=learned["pca_scale"],
        components=learned["pca_components"],
        vectors=learned["prototypes"],
        scores=learned["proto_scores"],
        sharpness=float(learned["logit_scale"]),
    )
    settings = _json(checkpoint.parent / "best" / "config.json").get("vision_config", {})
    activation = settings.get("hidden_act", "quick_gelu")
    if activation not in ("quick_gelu", "gelu"):
        raise MetricUnavailable(f"RALI's CLIP has an activation that we do not know: {activation}")
    clip = {n.removeprefix("clip."): a for n, a in arrays.items() if n.startswith("clip.")}
    tower = ImageTower(
        hugging_face_layout(clip),
        settings.get("num_attention_heads"),
        cast("Activation", activation),
    )
    if tower.size != prototypes.mean.size:
        raise MetricUnavailable(
            f"RALI's CLIP gives {tower.size} numbers, and its PCA takes {prototypes.mean.size}"
        )
    steps = _preparation(_json(checkpoint.parent / "best" / "preprocessor_config.json"), tower.side)
    return Encoder(tower, str(checkpoint), steps), prototypes


LEARNED: Final = ("pca_scale", "pca_components", "prototypes", "proto_scores", "logit_scale")


def _learned(arrays: Mapping[str, NDArray[Any]], path: Path, name: str) -> Floats:
    if f"scorer.{name}" not in arrays:
        raise MetricUnavailable(f"{path} is no checkpoint of RALI: it lacks scorer.{name}")
    return np.asarray(arrays[f"scorer.{name}"], np.float64)


def _json(path: Path) -> dict[str, Any]:
    """A JSON object, or an empty one where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise MetricUnavailable(f"{path} cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise MetricUnavailable(f"{path}: expected a JSON object, got {type(found).__name__}")
    return found


def _preparation(settings: Mapping[str, Any], side: int) -> Preparation:
    """How the checkpoint wants pictures prepared; other ways than CLIP's are refused."""
    default = Preparation(side, side)
    short, crop = settings.get("size", side), settings.get("crop_size", side)
    short = short.get("shortest_edge") if isinstance(short, dict) else short
    crop = crop.get("height") if isinstance(crop, dict) else crop
    steps = ("do_resize", "do_center_crop", "do_rescale", "do_normalize")
    plain = all(settings.get(step, True) for step in steps) and settings.get("resample", 3) == 3
    if not plain or crop != side or not isinstance(short, int) or short < side:
        raise MetricUnavailable(
            "RALI's preprocessor_config.json asks for other steps than CLIP's: bicubic to a short "
            f"side of at least {side}, then the central {side}×{side}"
        )
    mean = tuple(map(float, settings.get("image_mean", default.mean)))
    deviation = tuple(map(float, settings.get("image_std", default.deviation)))
    return Preparation(short, side, mean, deviation)


# -- pca.pkl --------------------------------------------------------------------------------------


class Estimator(dict[str, Any]):
    """Stands in for scikit-learn's PCA: its attributes, as a dict."""

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.update(state)


def pca_mean(path: Path) -> Floats:
    """The mean of a PCA that scikit-learn fitted and joblib saved.

    joblib writes a pickle with the bytes of each array between its instructions. Nothing in it is
    run: every name it utters is answered by a stand-in, and any other name is refused.
    """
    try:
        found = flatten(_joblib(io.BytesIO(path.read_bytes())))
    except Refused as error:
        raise MetricUnavailable(f"{path} was refused: {error}") from error
    except OSError as error:
        raise MetricUnavailable(f"{path} cannot be read ({error.strerror or error})") from error
    if "mean_" not in found:
        raise MetricUnavailable(f"{path} is no fitted PCA: it has no mean_")
    return found["mean_"].astype(np.float64)


def _joblib(stream: io.BytesIO) -> Any:
    class Wrapper(NumpyArray):
        """Stands in for joblib's NumpyArrayWrapper, whose bytes follow its last instruction."""

        def __setstate__(self, state: Any) -> None:
            kind, shape = state["dtype"], state["shape"]
            if not isinstance(kind, DType) or not is_shape(shape):
                raise Refused("an array in it is damaged")
            if state.get("numpy_array_alignment_bytes") is not None:
                stream.read(int.from_bytes(stream.read(1), "little"))
            raw = stream.read(math.prod(shape) * kind.numpy.itemsize)
            super().__setstate__((shape, kind, state.get("order") == "F", raw))

    classes: dict[str, Any] = {
        "joblib.numpy_pickle.NumpyArrayWrapper": Wrapper,
        "sklearn.decomposition._pca.PCA": Estimator,
        "sklearn.decomposition._incremental_pca.IncrementalPCA": Estimator,
    }

    # The one in Python, not in C: it reads no further than it has to, and its memory of values is
    # a dict, which no number in the file can make grow.
    class Reader(pickle._Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            full = f"{module}.{name}"
            if full in classes:
                return classes[full]
            if full in NUMPY:
                return Word(NUMPY[full])
            raise Refused(f"it asks for {full[:80]}, and a PCA has no need of it")

    try:
        return Reader(stream, encoding="latin1").load()
    except Refused:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise Refused(f"it is damaged, compressed or no pickle ({type(error).__name__})") from error


# -- the metric -----------------------------------------------------------------------------------


def rali() -> Rali:
    """RALI's quality score, from about 1 (bad) to 5 (excellent).

    The weighted mean of the scores of prototypes, by their likeness to the picture's embedding (see
    the module for the formula); so always between the lowest and the highest of those. Only the
    central square of a picture counts, as with CLIP.

    It needs the authors' checkpoint (hub `ByteDance/Q-Insight`, folder `RALI`): copy it to `rali`
    in a folder named by CONVERGEBENCH_WEIGHTS. No known answer is given for the test card, because
    it could not be reached when this was written.

    Zhao et al.: Reasoning as representation: rethinking visual reinforcement learning in image
    quality assessment. ICLR 2026.
    """
    checkpoint, pca = weights.find(SET, "ckpt.pt"), weights.find(SET, "pca.pkl")
    return Rali(RALI, lambda: read(checkpoint, pca))


RALI: Final = MetricSpec(
    name="rali",
    version="1",
    kind="no-reference",
    higher_is_better=True,
    typical=(1, 5),
    title="RALI: reasoning-aligned lightweight quality",
    paper="https://arxiv.org/abs/2510.11369",
    cost="heavy",
    needs=Needs(weights=(SET,)),
    isolated=True,
    resources=Resources(gpus=1, memory=4 << 30),
)
rali.spec = RALI  # type: ignore[attr-defined]
