"""Learned metrics beside pyiqa itself, with random weights: those of no hub can be reached here."""

from __future__ import annotations

import importlib
import json
import math
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.metric import MetricSpec, NoScore, Picture, StepView
from convergebench.metrics import learned
from convergebench.metrics.learned.scoring import LearnedMetric
from convergebench.testing.metrics import check_metric
from convergebench.testing.pictures import colourful, noisy
from tests.iqa import checkpoints
from tests.metrics.test_learned import PAPER

torch: Any = pytest.importorskip("torch")
pytest.importorskip("pyiqa")
pytestmark = pytest.mark.filterwarnings("ignore")  # of foreign libraries, about their own future

Pixels = NDArray[np.uint8]
ROOT = Path(__file__).resolve().parents[2]
# These networks look at 15 to 50 crops of a frame: the same computation so many times over.
CROPS = {"hyperiqa": "num_crop", "maniqa": "test_sample", "tres": "test_sample"}

QUICK = ("cnniqa", "paq2piq", "qalign", "wadiqam")
"""Those whose contract, some fifty frames, is checked in seconds."""


@pytest.fixture(scope="module", autouse=True)
def _two_threads() -> Iterator[None]:
    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    yield
    cv2.setNumThreads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


def factory(name: str) -> learned.Factory:
    found: learned.Factory = getattr(learned, name.replace("-", "_"))
    return found


def views(*frames: Pixels) -> list[StepView]:
    return [StepView(Picture(frame)) for frame in frames]


def fewer(name: str, net: Any) -> Any:
    """The network with one crop of a frame, so that the test takes seconds."""
    if name in CROPS:
        setattr(net.net, CROPS[name], 1)
    return net


def opened(name: str, folder: Path) -> LearnedMetric:
    metric = factory(name)(folder=folder)
    fewer(name, metric._open()[0])
    return metric


def tensor(frame: Pixels) -> Any:
    from torchvision.transforms.functional import to_tensor

    return to_tensor(Image.fromarray(frame)).unsqueeze(0)


def generators() -> tuple[Any, ...]:
    """Where the global generators of random numbers stand."""
    legacy = np.random.get_state(legacy=False)["state"]
    return random.getstate(), list(legacy["key"]), legacy["pos"], torch.get_rng_state().tolist()


@pytest.mark.parametrize("name", PAPER)
def test_random_weights_give_what_pyiqa_gives(name: str, folder: Path) -> None:
    place = folder / name
    own = fewer(name, checkpoints.make(name, place))
    picture = colourful(max(70, factory(name).spec.min_side), max(66, factory(name).spec.min_side))
    frames = [picture, noisy(picture, 25)]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    expected = [float(own(tensor(frame))) for frame in frames]
    torch.set_num_threads(threads)
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    state = generators()

    metric = opened(name, place)
    found = list(metric.score(views(*frames)))

    assert generators() == state
    assert found == expected
    assert all(isinstance(value, float) and math.isfinite(value) for value in found)
    assert found[0] != found[1]
    # Loaded again, in another order: every value of the network came from the files.
    torch.manual_seed(6)
    again = opened(name, place)
    assert again.score(views(*frames[::-1])) == found[::-1]
    if name in QUICK:
        check_metric(again)
    else:
        _odd_sizes(again)


def _odd_sizes(metric: LearnedMetric) -> None:
    """A picture that is too small has no score and says so; any other has one."""
    for height, width in ((1, 1), (7, 7), (64, 9), (16, 96), (64, 64)):
        (score,) = metric.score(views(np.full((height, width, 3), 128, np.uint8)))
        if min(height, width) < metric.spec.min_side:
            assert isinstance(score, NoScore)
            assert f"{metric.spec.min_side} needed" in score.reason
        else:
            assert isinstance(score, float)


@pytest.mark.parametrize("name", ["cnniqa", "musiq", "paq2piq", "wadiqam"])
def test_pyiqa_called_as_its_users_do(name: str, folder: Path, tmp_path: Path) -> None:
    """Another process, its own loaders and downloads folder, a PNG file: the same bits."""
    place = folder / "plain" / name
    checkpoints.make(name, place)
    cache = tmp_path / "hub" / "pyiqa"
    cache.mkdir(parents=True)
    for file in factory(name).files:
        (cache / file).symlink_to(place / file)
    if name == "paq2piq":
        backbones = tmp_path / "hub" / "checkpoints"
        backbones.mkdir()
        import torchvision

        torch.save(torchvision.models.resnet18().state_dict(), backbones / "resnet18-f37072fd.pth")
    frame = noisy(colourful(96, 80), 9)
    Image.fromarray(frame).save(tmp_path / "frame.png")
    program = (
        "import sys, torch; torch.set_num_threads(2); import pyiqa;"
        "metric = pyiqa.create_metric(sys.argv[1], device=torch.device('cpu'));"
        "print('=', float(metric(sys.argv[2])).hex())"
    )
    network = checkpoints.FILES[name][0]
    done = subprocess.run(
        [sys.executable, "-c", program, network, str(tmp_path / "frame.png")],
        env={**os.environ, "TORCH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = float.fromhex(done.stdout.rpartition("= ")[2])
    assert factory(name)(folder=place).score(views(frame)) == [theirs]


PROCESS = """
import json, sys
import cv2
cv2.setNumThreads(2)
from convergebench.metric import Picture, StepView
from convergebench.metrics import learned
from convergebench.testing.pictures import colourful, noisy
frames = [noisy(colourful(100, 90), level) for level in json.loads(sys.argv[3])]
metric = getattr(learned, sys.argv[1])(folder=sys.argv[2])
print(json.dumps([score.hex() for score in metric.score([StepView(Picture(f)) for f in frames])]))
"""


@pytest.mark.parametrize("name", ["musiq", "paq2piq"])
def test_another_process_and_another_batch_give_the_same_bits(name: str, folder: Path) -> None:
    place = folder / "process" / name
    checkpoints.make(name, place)

    def run(levels: Sequence[int]) -> list[str]:
        arguments = [name.replace("-", "_"), str(place), json.dumps(levels)]
        done = subprocess.run(
            [sys.executable, "-c", PROCESS, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            capture_output=True,
            text=True,
            check=True,
        )
        found: list[str] = json.loads(done.stdout)  # nothing else may be printed
        return found

    first = run([0, 4, 30])
    assert run([30, 0]) == [first[2], first[0]]


# -- around the network ---------------------------------------------------------------------------

SPEC = MetricSpec("probe", "1", "no-reference", higher_is_better=True, title="A probe")


def probe(network: Callable[[Any], Any], **options: Any) -> LearnedMetric:
    def build(files: Mapping[str, Path], device: Any) -> Any:
        return network

    return LearnedMetric(SPEC, build, {}, **options)


def test_what_a_network_draws_at_random_comes_from_the_frame_alone() -> None:
    def draws(frames: Any) -> Any:
        return torch.tensor([random.random() + np.random.rand() + torch.rand(1).item()])

    one, two = colourful(20, 10), noisy(colourful(20, 10), 3)
    first = probe(draws).score(views(one, two))
    random.seed(1)
    np.random.seed(1)
    assert probe(draws).score(views(two, one)) == [first[1], first[0]]
    assert first[0] != first[1]
    turned = np.ascontiguousarray(one.reshape(20, 10, 3))
    assert probe(draws).score(views(turned)) != [first[0]]


@pytest.mark.parametrize(
    "reach",
    [
        lambda: torch.hub.load_state_dict_from_url("https://download.pytorch.org/models/a.pth"),
        lambda: importlib.import_module("pyiqa.utils.download_util").load_file_from_url(
            "https://huggingface.co/a/b.pth"
        ),
        lambda: importlib.import_module("huggingface_hub").hf_hub_download("a/b", "c.pth"),
        lambda: importlib.import_module("timm").create_model("resnet18", pretrained=True),
    ],
    ids=["torch", "pyiqa", "hub", "timm"],
)
def test_nothing_is_downloaded_while_scoring(
    reach: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))

    def network(frames: Any) -> Any:
        reach()

    with pytest.raises(MetricUnavailable, match=r"probe tried to download from .*weights pull"):
        probe(network).score(views(colourful(8, 8)))


def test_frames_of_one_size_go_together_within_the_bound() -> None:
    seen: list[tuple[int, ...]] = []

    def network(frames: Any) -> Any:
        seen.append(tuple(frames.shape))
        return frames.mean(dim=(1, 2, 3))

    small = [noisy(colourful(10, 10), level) for level in range(5)]
    frames = [*small[:2], colourful(20, 10), *small[2:], colourful(90, 90)]
    together = probe(network, batch_pixels=300).score(views(*frames))
    assert seen == [(3, 3, 10, 10), (2, 3, 10, 10), (1, 3, 10, 20), (1, 3, 90, 90)]
    assert together == pytest.approx([frame.mean() / 255 for frame in frames], abs=1e-6)
    seen.clear()
    assert probe(network).score(views(*frames)) == pytest.approx(together, abs=1e-6)
    probe(network, batch_pixels=300, alone=True).score(views(*frames))
    assert {shape[0] for shape in seen} == {1}  # on the CPU, and for networks that crop


def test_half_the_batch_where_memory_does_not_suffice() -> None:
    seen: list[int] = []

    def network(frames: Any) -> Any:
        seen.append(len(frames))
        if len(frames) > 2 or frames.max() > 0.9:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return frames.mean(dim=(1, 2, 3))

    frames = [np.full((4, 6, 3), level, np.uint8) for level in (0, 51, 102, 153, 255)]
    scores = probe(network, batch_pixels=10**6).score(views(*frames))
    assert seen == [5, 2, 3, 1, 2, 1, 1]
    assert scores[:4] == pytest.approx([0, 0.2, 0.4, 0.6])
    assert scores[4] == NoScore("not enough memory for a frame of 6×4")


def test_a_network_without_an_answer_gives_the_reason() -> None:
    def broken(frames: Any) -> Any:
        raise RuntimeError("Kernel size can't be greater\nthan actual input size")

    (score,) = probe(broken).score(views(colourful(9, 5)))
    assert score == NoScore(
        "the network cannot take 9×5 pixels (RuntimeError: Kernel size can't be greater)"
    )
    (score,) = probe(lambda frames: frames.sum() / 0).score(views(colourful(9, 5)))
    assert score == NoScore("the network answered inf")


@pytest.mark.parametrize("named", ["tpu", "meta", "cuda:x"])
def test_an_unknown_device_is_refused(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVERGEBENCH_DEVICE", named)
    with pytest.raises(SettingsError, match="expected cpu, cuda or cuda:1"):
        probe(lambda frames: frames).score(views(colourful(9, 9)))


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVERGEBENCH_DEVICE", "cuda:77")
    with pytest.raises(MetricUnavailable, match="'cuda:77', and this machine has"):
        probe(lambda frames: frames).score(views(colourful(9, 9)))


class Trap:
    """What a pickle can do to whoever opens it."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def test_a_file_that_runs_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("musiq", "cnniqa-live"):
        (file,) = factory(name).files
        torch.save({"params": Trap()}, tmp_path / file)
        with pytest.raises(MetricUnavailable, match="could run code"):
            factory(name)(folder=tmp_path).score(views(colourful(64, 64)))
        (tmp_path / file).write_bytes(pickle.dumps(Trap()))
        with pytest.raises(MetricUnavailable, match="could run code"):
            factory(name)(folder=tmp_path).score(views(colourful(64, 64)))
    assert not (tmp_path / "sprung").exists()


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    (file,) = factory("musiq").files
    torch.save({"conv.weight": torch.zeros(1)}, tmp_path / file)
    with pytest.raises(MetricUnavailable, match=rf"musiq: .*{file} does not fit pyiqa's network"):
        factory("musiq")(folder=tmp_path).score(views(colourful(64, 64)))


def test_another_release_of_pyiqa_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "version", lambda _: "0.1.10")
    with pytest.raises(MetricUnavailable, match=rf"pyiqa {learned.PYIQA}, and 0.1.10 is installed"):
        factory("musiq")()
