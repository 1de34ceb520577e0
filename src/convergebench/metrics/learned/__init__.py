"""Learned no-reference metrics, through pyiqa (the extra `iqa`).

Each is pyiqa's network with pyiqa's preprocessing, so that anybody's pyiqa numbers are ours; the
names, ranges and directions are those of the replication paper's table. What pyiqa does to a
picture is part of the value and changes between its releases (MANIQA and TReS once cropped at
random), so one release of it is part of every version here, and another one is refused.

pyiqa may not be used commercially (PolyForm Noncommercial 1.0.0); the core's metrics may.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, Protocol

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metric import KnownAnswer, MetricSpec, Needs
from convergebench.metrics.learned import live, offline
from convergebench.metrics.learned.scoring import Build, LearnedMetric
from convergebench.resources import Resources

PYIQA: Final = "0.1.16"
"""The release of pyiqa whose values these are."""


class Factory(Protocol):
    """Opens a learned metric; its card can be read without opening it."""

    spec: MetricSpec
    files: tuple[str, ...]

    def __call__(self, *, folder: str | Path | None = None) -> LearnedMetric:
        """The metric, with weights from the catalogue or from a folder of them."""
        ...


def learned(
    name: str,
    *files: str,
    network: str = "",
    arch: str = "",
    title: str,
    paper: str,
    typical: tuple[float, float],
    higher_is_better: bool = True,
    min_side: int = 1,
    cost: Literal["medium", "heavy"] = "heavy",
    alone: bool = False,
    modules: tuple[str, ...] = (),
    known: KnownAnswer | None = None,
    build: Build | None = None,
    revision: int = 1,
    memory: int = 6 << 30,
) -> Factory:
    """A factory for one of pyiqa's metrics, ready for an entry point.

    Args:
        name: Our name; that of its set of weights as well.
        files: The weights that pyiqa really needs, as it calls them.
        network: pyiqa's name of the metric, where it is not ours.
        arch: The module of pyiqa that defines the network, where it is not called like it.
        title: What it is and who made it.
        paper: Where it is defined.
        typical: Typical range.
        higher_is_better: Direction.
        min_side: Smallest side it can measure.
        cost: Rough class.
        alone: Whether the network makes a batch of one frame already (crops), or takes one frame.
        modules: What it imports beyond pyiqa and torch.
        known: Its value for the test card.
        build: Makes the network, where not pyiqa alone does.
        revision: Raised when our part of the computation changes a value.
        memory: Bytes of main memory that a worker takes, torch and frames included.
    """
    network = network or name
    spec = MetricSpec(
        name=name,
        version=f"{revision}-pyiqa{PYIQA}-{network}",
        kind="no-reference",
        higher_is_better=higher_is_better,
        typical=typical,
        title=title,
        paper=paper,
        min_side=min_side,
        cost=cost,
        needs=Needs("iqa", ("pyiqa", "torch", *modules), (name,)),
        known=known,
        isolated=True,
        resources=Resources(gpus=1, memory=memory),
    )
    make = build or offline.build(name, network, arch or network, {})

    def factory(*, folder: str | Path | None = None) -> LearnedMetric:
        _installed(spec)
        if folder is None:
            found = {file: weights.find(name, file) for file in files}
        else:
            found = {file: Path(folder) / file for file in files}
            for path in found.values():
                if not path.is_file():
                    raise MetricUnavailable(f"{name}: there is no file {path}.")
        return LearnedMetric(spec, make, found, alone=alone)

    factory.__name__ = name.replace("-", "_")
    factory.__doc__ = f"{title}, as pyiqa's `{network}` computes it.\n\nDefined in {paper}."
    factory.spec = spec  # type: ignore[attr-defined]
    factory.files = files  # type: ignore[attr-defined]
    return factory  # type: ignore[return-value]


def _installed(spec: MetricSpec) -> None:
    """Raise MetricUnavailable unless the right pyiqa is installed; imports nothing heavy."""
    command = "pip install 'convergebench[iqa]'"
    absent = [module for module in spec.needs.modules if find_spec(module) is None]
    if absent:
        raise MetricUnavailable(f"{spec.name} needs {', '.join(absent)}. Run {command}.")
    try:
        present = version("pyiqa")
    except PackageNotFoundError:
        present = "an unknown release"
    if present != PYIQA:
        raise MetricUnavailable(
            f"{spec.name} is defined by pyiqa {PYIQA}, and {present} is installed. Run {command}."
        )


arniqa: Final = learned(
    "arniqa",
    "ARNIQA.pth",
    "regressor_koniq10k.pth",
    title="ARNIQA, a learned manifold of distortions (KonIQ-10k)",
    paper="https://arxiv.org/abs/2310.14918",
    typical=(0, 1),
    min_side=2,
)
clipiqa: Final = learned(
    "clipiqa",
    "RN50.pt",
    title="CLIP-IQA, CLIP's opinion between good and bad words",
    paper="https://arxiv.org/abs/2207.12396",
    typical=(0, 1),
    min_side=31,
)
cnniqa: Final = learned(
    "cnniqa",
    "CNNIQA_koniq10k-e6f14c91.pth",
    title="CNNIQA, one convolution and max-min pooling (KonIQ-10k)",
    paper="https://doi.org/10.1109/CVPR.2014.224",
    typical=(0, 1),
    min_side=7,
    cost="medium",
)
cnniqa_live: Final = learned(
    live.NAME,
    live.FILE,
    network="cnniqa",
    title="CNNIQA trained on LIVE: predicted loss of quality (DMOS)",
    paper="https://doi.org/10.1109/CVPR.2014.224",
    typical=(0, 100),
    higher_is_better=False,
    min_side=live.PATCH + 1,
    cost="medium",
    alone=True,
    known=KnownAnswer(28.908490, 1e-3, "the port's formula, patch by patch with SciPy and NumPy"),
    build=live.build,
)
dbcnn: Final = learned(
    "dbcnn",
    "DBCNN_KonIQ10k-2de81c0a.pth",
    title="DBCNN, two networks joined bilinearly (KonIQ-10k)",
    paper="https://arxiv.org/abs/1907.02665",
    typical=(0, 1),
    min_side=16,
)
hyperiqa: Final = learned(
    "hyperiqa",
    "HyperIQA-resnet50-koniq10k-c96c41b1.pth",
    arch="hypernet",
    title="HyperIQA, a network that adapts to the content (KonIQ-10k)",
    paper="https://doi.org/10.1109/CVPR42600.2020.00372",
    typical=(0, 1),
    min_side=16,
    alone=True,
)
liqe: Final = learned(
    "liqe",
    "liqe_koniq.pt",
    title="LIQE, CLIP fine-tuned on words for quality (KonIQ-10k)",
    paper="https://arxiv.org/abs/2303.14968",
    typical=(1, 5),
    min_side=224,
    alone=True,
)
maniqa: Final = learned(
    "maniqa",
    "ckpt_koniq10k.pt",
    title="MANIQA, attention over space and channels (KonIQ-10k)",
    paper="https://arxiv.org/abs/2204.08958",
    typical=(0, 1),
    min_side=16,
    alone=True,
)
musiq: Final = learned(
    "musiq",
    "musiq_koniq_ckpt-e95806b9.pth",
    title="MUSIQ, a transformer over several scales (KonIQ-10k)",
    paper="https://arxiv.org/abs/2108.05997",
    typical=(0, 100),
)
nima: Final = learned(
    "nima",
    "NIMA_InceptionV2_ava-b0c77c00.pth",
    title="NIMA, predicted mean of aesthetic ratings (AVA)",
    paper="https://arxiv.org/abs/1709.05424",
    typical=(0, 10),
    min_side=16,
)
paq2piq: Final = learned(
    "paq2piq",
    "P2P_RoIPoolModel-fit.10.bs.120-ca69882e.pth",
    title="PaQ-2-PiQ, from patches to pictures (FLIVE)",
    paper="https://arxiv.org/abs/1912.10088",
    typical=(0, 100),
)
qalign: Final = learned(
    "qalign",
    "pytorch_model-00001-of-00002.bin",
    "pytorch_model-00002-of-00002.bin",
    "pytorch_model.bin.index.json",
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "special_tokens_map.json",
    "tokenizer.model",
    "tokenizer_config.json",
    title="Q-Align, a language model's choice among five words for quality",
    paper="https://arxiv.org/abs/2312.17090",
    typical=(1, 5),
    alone=True,
    modules=("icecream",),
    memory=24 << 30,  # 8 billion parameters in half precision
)
qualiclip: Final = learned(
    "qualiclip",
    "QualiCLIP.pth",
    title="QualiCLIP, CLIP taught to rank degraded pictures, without ratings",
    paper="https://arxiv.org/abs/2403.11176",
    typical=(0, 1),
    min_side=31,
)
topiq_nr: Final = learned(
    "topiq-nr",
    "cfanet_nr_koniq_res50-9a73138b.pth",
    network="topiq_nr",
    arch="topiq",
    title="TOPIQ, from meaning down to distortions (KonIQ-10k)",
    paper="https://arxiv.org/abs/2308.03060",
    typical=(0, 1),
)
tres: Final = learned(
    "tres",
    "tres_koniq-f0502926.pth",
    title="TReS, convolutions and a transformer that agree when mirrored (KonIQ-10k)",
    paper="https://arxiv.org/abs/2108.06858",
    typical=(0, 100),
    min_side=16,
    alone=True,
)
wadiqam: Final = learned(
    "wadiqam",
    "WaDIQaM-NR-koniq-aaffea29.pth",
    network="wadiqam_nr",
    arch="wadiqam",
    title="WaDIQaM, patches weighted by their importance (KonIQ-10k)",
    paper="https://doi.org/10.1109/TIP.2017.2760518",
    typical=(-1, 0.1),
    min_side=33,
    cost="medium",
)
