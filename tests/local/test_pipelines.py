"""Pipelines of diffusers through our editor: real classes, loaded from disk, tiny networks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from convergebench.chain import Settings
from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.errors import AccountBlocked, EditorFailed, EditorLost, EditorRefused
from convergebench.frame import Frame
from convergebench.registry import open_editor
from convergebench.store import RunStore
from tests.support.runs import picture, write_suite

pytestmark = pytest.mark.filterwarnings("ignore")  # of foreign libraries, about their own future

QUICK = "steps=1,dtype=float32,device=cpu"
SMALL = ["small-kontext", "flux.2-dev", "flux.2-klein-4b"]
"""Those that can be asked for small pictures and then take less than a second."""
QWEN = ["qwen-image-edit", "qwen-image-edit-2509"]
"""These always look at their input at one megapixel."""


def opened(model: str, checkpoints: Path, options: str = QUICK) -> Any:
    folder = "flux.1-kontext-dev" if model == "small-kontext" else model
    return open_editor(f"local:{model},path={checkpoints / folder},{options}")


def request(*pictures: NDArray[np.uint8], prompt: str = "Make it red.", **more: Any) -> EditRequest:
    frames = tuple(Frame.of_pixels(pixels) for pixels in pictures or (picture(1, 96, 64),))
    given: dict[str, Any] = {"seed": 7, "deadline": 280.0, **more}
    return EditRequest(frames, prompt, Edit(prompt=prompt), 1, **given)


def size(data: bytes) -> tuple[int, int]:
    facts = Frame(data).facts
    return facts.width, facts.height


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the pipelines were called with; the calls go on as they are."""
    heard: list[dict[str, Any]] = []
    for name in (
        "FluxKontextPipeline",
        "Flux2Pipeline",
        "Flux2KleinPipeline",
        "QwenImageEditPipeline",
        "QwenImageEditPlusPipeline",
    ):
        kind = getattr(diffusers, name)

        def call(self: Any, *, real: Any = kind.__call__, **given: Any) -> Any:
            heard.append(given)
            return real(self, **given)

        monkeypatch.setattr(kind, "__call__", call)
    return heard


@pytest.mark.parametrize("model", SMALL)
def test_a_seed_decides_the_picture_and_the_prompt_matters(model: str, checkpoints: Path) -> None:
    editor = opened(model, checkpoints)
    assert not editor.spec.lacks
    first = editor.edit(request())
    assert size(first.data) == (96, 64)
    assert first.size == first.parameters["made"] == "96x64"
    assert editor.edit(request()).data == first.data
    assert opened(model, checkpoints).edit(request()).data == first.data
    assert editor.edit(request(seed=8)).data != first.data
    assert editor.edit(request(prompt="A green cat, please.")).data != first.data


@pytest.mark.parametrize("model", SMALL)
def test_without_a_seed_one_is_drawn_and_recorded(model: str, checkpoints: Path) -> None:
    editor = opened(model, checkpoints)
    drawn = editor.edit(request(seed=None))
    again = editor.edit(request(seed=drawn.parameters["seed"]))
    assert again.data == drawn.data


@pytest.mark.parametrize(
    ("model", "source", "asked"),
    [
        ("small-kontext", (96, 64), (96, 64)),
        ("small-kontext", (64, 160), (64, 160)),
        ("flux.2-dev", (100, 70), (96, 64)),
        ("flux.2-klein-4b", (64, 160), (64, 160)),
    ],
)
def test_the_size_asked_for_is_the_size_made(
    model: str, source: tuple[int, int], asked: tuple[int, int], checkpoints: Path, calls: Any
) -> None:
    """Also where the frame has drifted to another size than the chain's source."""
    editor = opened(model, checkpoints)
    reply = editor.edit(request(picture(2, 80, 80), home_size=source))
    assert size(reply.data) == asked
    assert reply.size == f"{asked[0]}x{asked[1]}"
    assert (calls[0]["width"], calls[0]["height"]) == asked
    assert reply.caveats == editor.spec.caveats


def test_kontext_makes_a_preferred_size_and_no_square(checkpoints: Path, calls: Any) -> None:
    editor = opened("flux.1-kontext-dev", checkpoints)
    reply = editor.edit(request(picture(2, 96, 64)))
    assert size(reply.data) == (1248, 832)
    (given,) = calls
    assert given["max_area"] == 1248 * 832
    assert given["_auto_resize"] is True
    assert given["guidance_scale"] == 2.5
    assert given["true_cfg_scale"] == 1.0
    assert "negative_prompt" not in given


@pytest.mark.parametrize("model", QWEN)
def test_qwen_is_guided_by_an_empty_negative_prompt(
    model: str, checkpoints: Path, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    kind = getattr(diffusers, "QwenImageEditPlusPipeline" if "2509" in model else
                   "QwenImageEditPipeline")  # fmt: skip
    real = kind.encode_prompt

    def encode(self: Any, **given: Any) -> Any:
        read.append(given["prompt"])
        return real(self, **given)

    monkeypatch.setattr(kind, "encode_prompt", encode)
    editor = opened(model, checkpoints)
    reply = editor.edit(request(home_size=(64, 96)))
    assert size(reply.data) == (64, 96)
    (given,) = calls
    assert given["negative_prompt"] == " "
    assert given["true_cfg_scale"] == 4.0
    assert read == ["Make it red.", " "], "the negative prompt must act, not only be sent"
    assert reply.parameters["negative_prompt"] == " "
    assert editor.edit(request(home_size=(64, 96))).data == reply.data


def test_what_is_pinned_reaches_the_pipeline(checkpoints: Path, calls: Any) -> None:
    opened("flux.2-dev", checkpoints, f"{QUICK},guidance=2.5").edit(request())
    (given,) = calls
    assert given["caption_upsample_temperature"] == 0.0
    assert given["guidance_scale"] == 2.5
    assert given["num_inference_steps"] == 1
    assert given["num_images_per_prompt"] == 1
    assert given["generator"].device == torch.device("cpu")
    assert given["generator"].initial_seed() == 7


def test_everything_about_a_call_is_recorded(checkpoints: Path) -> None:
    reply = opened("flux.2-klein-4b", checkpoints).edit(request())
    told = dict(reply.parameters)
    assert json.loads(json.dumps(told)) == told
    assert told["diffusers"] == diffusers.__version__
    assert (told["device"], told["dtype"], told["seed"]) == ("cpu", "float32", 7)
    assert (reply.model, reply.cost) == ("black-forest-labs/FLUX.2-klein-4B", 0)
    assert reply.data.startswith(b"\x89PNG")


def test_several_pictures_only_where_the_pipeline_takes_them(checkpoints: Path) -> None:
    two = request(picture(1, 64, 64), picture(2, 64, 64))
    assert size(opened("flux.2-klein-4b", checkpoints).edit(two).data) == (64, 64)
    with pytest.raises(EditorRefused, match="takes one picture, and this edit has 2"):
        opened("small-kontext", checkpoints).edit(two)


def test_a_resolution_of_1k_is_a_megapixel_at_the_sources_ratio(
    checkpoints: Path,
) -> None:
    """What would be asked for: a real call of that size would take minutes here."""
    editor = opened("flux.2-klein-4b", checkpoints)
    asked = editor._size(request(picture(1, 96, 64), settings=Settings(resolution="1K")))
    assert (asked.width, asked.height) == (1248, 832)


def test_a_call_that_takes_too_long_ends_itself(checkpoints: Path) -> None:
    editor = opened("flux.2-klein-4b", checkpoints, "steps=1000,dtype=float32,device=cpu")
    with pytest.raises(EditorLost, match=r"not ready after 0\.5 s: allow more time") as caught:
        editor.edit(request(deadline=0.5))
    assert caught.value.timed_out


def test_a_damaged_checkpoint_blocks_and_says_why(checkpoints: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(checkpoints / "flux.2-klein-4b", tmp_path / "broken")
    (weights,) = (broken / "transformer").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    editor = open_editor(f"local:flux.2-klein-4b,path={broken},{QUICK}")
    with pytest.raises(AccountBlocked, match="broken cannot be loaded: "):
        editor.edit(request())


def test_pickles_are_never_loaded(checkpoints: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoints / "flux.2-klein-4b", tmp_path / "pickled")
    (weights,) = (folder / "transformer").glob("*.safetensors")
    weights.unlink()
    torch.save({}, folder / "transformer/diffusion_pytorch_model.bin")
    editor = open_editor(f"local:flux.2-klein-4b,path={folder},{QUICK}")
    with pytest.raises(AccountBlocked, match="pickled cannot be loaded: "):
        editor.edit(request())


def test_out_of_memory_is_told_with_what_to_try(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised as torch does, because a machine cannot be filled for a test."""

    def full(self: Any, *_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    editor = opened("flux.2-klein-4b", checkpoints)
    monkeypatch.setattr(diffusers.Flux2KleinPipeline, "encode_prompt", full)
    with pytest.raises(EditorFailed, match=r"2\.00 GiB\.\): try offload=model, then offload=l"):
        editor.edit(request())


def test_a_token_never_shows(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_marker_word")

    def fail(self: Any, *_: Any, **__: Any) -> None:
        raise RuntimeError("403 for hf_marker_word")

    editor = opened("flux.2-klein-4b", checkpoints)
    monkeypatch.setattr(diffusers.Flux2KleinPipeline, "encode_prompt", fail)
    with pytest.raises(EditorFailed, match="403 for <HF_TOKEN>") as caught:
        editor.edit(request())
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_chain_of_five_steps_through_the_command(checkpoints: Path, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1, size=64)
    editor = f"local:flux.2-klein-4b,path={checkpoints / 'flux.2-klein-4b'},{QUICK}"
    words = ["run", str(tmp_path / "run"), "-s", str(suite), "-e", editor, "--cycle", "copy"]
    words += ["--steps", "5", "--no-controls"]
    command = [sys.executable, "-m", "convergebench", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "Loading" not in done.stderr, "the libraries' own progress would tear the display"
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert [step.outcome for step in chain.steps] == ["edited"] * 5
    assert all((s.frame.width, s.frame.height) == (64, 64) for s in chain.steps if s.frame)
    assert len({s.call.parameters["seed"] for s in chain.steps}) == 5
