"""The tiny FLUX.2 autoencoder: known answers, any size, and the real command on a photograph."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.editors.local.taef2 import STRIDE, Taef2, autoencoder, replicated
from convergebench.errors import AccountBlocked
from convergebench.frame import Frame, decode
from convergebench.network import Session
from convergebench.registry import open_editor
from convergebench.store import RunStore
from convergebench.testing import check_editor

KODAK = "data/photos/kodak24/15.png"


@pytest.fixture
def taef2(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(shared / "weights"))
    return open_editor("taef2")


def photograph(shared: Path) -> NDArray[np.uint8]:
    return decode((shared / KODAK).read_bytes())[0]


def request(pixels: NDArray[np.uint8], prompt: str = "Copy.") -> EditRequest:
    return EditRequest((Frame.of_pixels(pixels),), prompt, Edit(prompt=prompt), 1, 7)


def psnr(made: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> float:
    error = np.mean((made.astype(float) - wanted) ** 2)
    return float(10 * np.log10(255**2 / error))


@pytest.mark.shared
def test_it_copies_a_photograph_not_quite(taef2: Any, shared: Path) -> None:
    source = photograph(shared)[160:352, 240:496]
    reply = taef2.edit(request(source))
    made = Frame(reply.data).pixels
    assert made.shape == source.shape
    assert 27 < psnr(made, source) < 40
    assert reply.size == "256x192"
    assert reply.cost == 0
    assert taef2.edit(request(source, "Turn it blue.")).data == reply.data


@pytest.mark.shared
@pytest.mark.parametrize(("height", "width"), [(64, 64), (61, 83), (8, 200), (1, 1)])
def test_every_size_is_kept(taef2: Any, shared: Path, height: int, width: int) -> None:
    source = photograph(shared)[100 : 100 + height, 200 : 200 + width]
    made = Frame(taef2.edit(request(source)).data).pixels
    assert made.shape == source.shape
    filling = ((0, -height % STRIDE), (0, -width % STRIDE), (0, 0))
    whole = np.pad(source, filling, mode="edge")
    filled = Frame(taef2.edit(request(whole)).data).pixels
    assert np.array_equal(filled[:height, :width], made)


@pytest.mark.shared
def test_it_keeps_the_contract_of_editors(taef2: Any) -> None:
    assert not taef2.spec.lacks
    assert taef2.spec.deterministic
    check_editor(taef2)


def test_without_weights_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    editor = Taef2()
    assert editor.spec.lacks.endswith("Run `convergebench weights pull taef2`.")
    with pytest.raises(AccountBlocked, match="convergebench weights pull taef2"):
        editor.edit(request(np.zeros((8, 8, 3), np.uint8)))


def test_a_network_of_ones_and_zeros_computes_what_a_hand_does() -> None:
    """Blocks that add nothing, kernels that pick one pixel: what is left can be told by heart."""
    centre = np.zeros((3, 3, 3, 3), np.float16)
    for channel in range(3):
        centre[channel, channel, 1, 1] = 1
    none: dict[str, NDArray[Any]]
    none = {f"conv.{i}.weight": np.zeros((3, 3, 3, 3), np.float16) for i in (0, 2, 4)}
    none |= {f"conv.{i}.bias": np.zeros(3, np.float16) for i in (0, 2, 4)}
    bias = np.zeros(3, np.float16)
    encoder: dict[str, NDArray[Any]] = {"0.weight": centre, "0.bias": bias, "2.weight": centre}
    encoder |= {f"1.{name}": value for name, value in none.items()}
    decoder: dict[str, NDArray[Any]] = {"1.weight": centre, "1.bias": bias, "7.weight": centre}
    decoder |= {"9.weight": centre, "9.bias": bias}
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (16, 24, 3), dtype=np.uint8)
    made = replicated(Session(autoencoder(encoder, decoder)), pixels)
    kept = np.tanh(pixels[::2, ::2] / 255 / 3) * 3  # halved, squeezed, and doubled again
    wanted = np.repeat(np.repeat(np.rint(kept * 255), 2, axis=0), 2, axis=1)
    assert np.abs(made - wanted).max() <= 1


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.timeout(600)
def test_twenty_copies_of_a_photograph_fall_step_by_step(shared: Path, tmp_path: Path) -> None:
    """About 31 dB after the first, and less after each: through the real command."""
    source = shared / KODAK
    suite = write_kodak(tmp_path / "suite", source)
    where = {**os.environ, "CONVERGEBENCH_WEIGHTS": str(shared / "weights")}
    words = ["run", str(tmp_path / "run"), "-s", str(suite), "-e", "taef2", "--steps", "20"]
    command = [sys.executable, "-m", "convergebench", *words, "--no-controls"]
    done = subprocess.run(command, env=where, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr
    store = RunStore.open(tmp_path / "run")
    (chain,) = store.chains()
    wanted = photograph(shared)
    found = []
    for step in chain.steps:
        assert step.frame is not None, step.detail
        found.append(psnr(store.frame(step.frame).pixels, wanted))
    assert len(found) == 20
    assert found[0] == pytest.approx(31.07, abs=0.05)
    assert all(later < earlier for earlier, later in pairwise(found))


def write_kodak(folder: Path, source: Path) -> Path:
    """A suite of one photograph and one cycle that copies it."""
    folder.mkdir()
    data = source.read_bytes()
    (folder / "photograph.png").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    path = folder / "suite.toml"
    path.write_text(
        f'name = "kodak"\nversion = 1\n[[source]]\nname = "p15"\nfile = "photograph.png"\n'
        f'sha256 = "{digest}"\nlicence = "LicenseRef-Kodak"\n[[cycle]]\nname = "copy"\n'
        'kind = "replicate"\n[[cycle.edit]]\nprompt = "Copy the picture."\n'
    )
    return path
