"""`local:` without torch: names, options, the catalogue, and what is missing told in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench.chain import Settings
from convergebench.cycle import Edit
from convergebench.editor import Asked, EditRequest, Price
from convergebench.editors.local import checkpoints, pipelines
from convergebench.editors.local.checkpoints import Checkpoint, find_checkpoint
from convergebench.editors.local.models import models
from convergebench.editors.providers.catalogue import shelf
from convergebench.errors import AccountBlocked, SettingsError, UnknownName
from convergebench.frame import Frame
from convergebench.registry import editor_names, open_editor

KLEIN = "local:flux.2-klein-4b"


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONVERGEBENCH_MODELS", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def request(width: int = 64, height: int = 64, **more: Any) -> EditRequest:
    frame = Frame.of_pixels(np.zeros((height, width, 3), np.uint8))
    return EditRequest((frame,), "Copy.", Edit(prompt="Copy."), 1, 7, **more)


def cached(tmp_path: Path, repository: str, commit: str, main: bool = True) -> Path:
    """A snapshot as the hub's cache has it."""
    home = tmp_path / "hf/hub" / f"models--{repository.replace('/', '--')}"
    folder = home / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "model_index.json").write_text("{}")
    if main:
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs/main").write_text(commit)
    return folder


def test_every_model_has_an_editor_a_licence_and_a_checkpoint() -> None:
    for name, model in models().items():
        assert model.licence
        assert "/" in model.repository
        spec = open_editor(f"local:{name}").spec
        assert spec.concurrency == 1
        assert spec.price_of(Asked(Settings(), 1, 64, 64)) == Price(0, 0, 0)
        assert spec.seconds is None
        assert editor_names()[f"local:{name}"] == model.title
        if model.true_cfg is not None:
            assert model.negative is not None, "guidance would not act"


@pytest.mark.parametrize(
    ("model", "source", "resolution", "asked"),
    [
        ("flux.1-kontext-dev", (512, 512), "native", "1024x1024"),
        ("flux.1-kontext-dev", (768, 512), "native", "1248x832"),
        ("flux.1-kontext-dev", (512, 768), "1K", "832x1248"),
        ("flux.2-dev", (768, 512), "native", "768x512"),
        ("flux.2-dev", (4000, 3000), "native", "1184x880"),
        ("flux.2-klein-4b", (500, 333), "native", "496x336"),
        ("flux.2-klein-4b", (500, 333), "1K", "1248x832"),
        ("qwen-image-edit", (512, 512), "native", "1024x1024"),
        ("qwen-image-edit", (768, 512), "native", "1248x832"),
        ("qwen-image-edit-2509", (4000, 3000), "native", "1184x896"),
    ],
)
def test_which_size_is_asked_for(
    model: str, source: tuple[int, int], resolution: Any, asked: str
) -> None:
    """Qwen's and Kontext's are those the pipelines bring their inputs to, so nothing is zoomed."""
    editor: Any = open_editor(f"local:{model}")
    wanted = request(home_size=source, settings=Settings(resolution=resolution))
    size = editor._size(wanted)
    assert size.text() == asked
    sent = editor._arguments(size)
    assert f"{sent['width']}x{sent['height']}" == asked
    assert sent.get("max_area", size.width * size.height) == size.width * size.height


def test_options_are_read_and_wrong_ones_named() -> None:
    editor: Any = open_editor(f"{KLEIN},steps=8,guidance=2")
    sent = editor._arguments(editor._size(request()))
    assert (sent["num_inference_steps"], sent["guidance_scale"]) == (8, 2.0)
    assert editor.spec.name == f"{KLEIN},guidance=2,steps=8"
    with pytest.raises(SettingsError, match=r"has no option 'setps'\. It has path, revision"):
        open_editor(f"{KLEIN},setps=8")
    with pytest.raises(SettingsError, match="option steps must be from 1 to 1000, got '0'"):
        open_editor(f"{KLEIN},steps=0")
    with pytest.raises(SettingsError, match="option offload must be none or model or layers"):
        open_editor(f"{KLEIN},offload=all")
    with pytest.raises(SettingsError, match="has no option 'true-cfg'"):
        open_editor(f"{KLEIN},true-cfg=2")
    with pytest.raises(UnknownName, match=r"Did you mean flux\.2-klein-"):
        open_editor("local:flux.2-klein")


def test_the_version_changes_with_what_changes_pictures_only() -> None:
    plain = open_editor(KLEIN).spec.version
    assert open_editor(f"{KLEIN},device=cuda:1,offload=model").spec.version == plain
    assert open_editor(f"{KLEIN},steps=5").spec.version != plain
    assert open_editor(f"{KLEIN},revision=abc").spec.version != plain


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "find_spec", lambda module: None)
    editor = open_editor(KLEIN)
    told = "need torch, diffusers, transformers, accelerate: pip install 'convergebench"
    assert told in editor.spec.lacks
    with pytest.raises(AccountBlocked, match="Local pipelines need torch"):
        editor.edit(request())


def test_a_checkpoint_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "absent_modules", lambda: "")
    editor = open_editor(KLEIN)
    assert "run `hf download black-forest-labs/FLUX.2-klein-4B`" in editor.spec.lacks
    with pytest.raises(AccountBlocked, match=r"is not here: run `hf download .* path=\."):
        editor.edit(request())
    wrong = open_editor(f"{KLEIN},path={tmp_path}")
    assert (
        wrong.spec.lacks
        == f"{tmp_path} holds no pipeline of diffusers (it has no model_index.json)."
    )
    pinned = open_editor(f"{KLEIN},revision=abc")
    assert "FLUX.2-klein-4B --revision abc`" in pinned.spec.lacks
    cached(tmp_path, "black-forest-labs/FLUX.2-klein-4B", "abc")
    assert not open_editor(KLEIN).spec.lacks
    assert not pinned.spec.lacks


def test_which_snapshot_is_taken(tmp_path: Path) -> None:
    assert isinstance(find_checkpoint("a/b", "", ""), str)
    other = cached(tmp_path, "a/b", "111", main=False)
    assert find_checkpoint("a/b", "", "") == Checkpoint(other, "111")
    main = cached(tmp_path, "a/b", "222")
    assert find_checkpoint("a/b", "", "") == Checkpoint(main, "222")
    assert find_checkpoint("a/b", "main", "") == Checkpoint(main, "222")
    assert find_checkpoint("a/b", "111", "") == Checkpoint(other, "111")
    assert isinstance(find_checkpoint("a/b", "333", ""), str)
    assert find_checkpoint("a/b", "", str(main)) == Checkpoint(main)


def test_users_add_models_and_change_known_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[model]]\nprovider = "local"\nid = "mine"\nlike = "flux.2-klein-4b"\n'
        'title = "My fine-tune"\nrepository = "me/mine"\nsteps = 6\n'
        '[[model]]\nprovider = "local"\nid = "flux.2-dev"\nsteps = 28\n'
    )
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(path))
    known = models()
    assert (known["mine"].steps, known["mine"].guidance) == (6, 1.0)
    assert known["mine"].pipeline == "Flux2KleinPipeline"
    assert (known["flux.2-dev"].steps, known["flux.2-dev"].guidance) == (28, 4.0)
    assert "local:mine" in editor_names()
    assert shelf("bfl").model, "the same file serves the providers"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[model", "is not valid TOML"),
        ('[[model]]\nprovider = "local"\nid = "x"\n', "is missing"),
        ('[[model]]\nprovider = "local"\nid = "x"\nlike = "flux.2-dev"\nstep = 3\n', "no such key"),
        ('[[model]]\nprovider = "local"\nid = "flux.2-dev"\nsteps = 0\n', "steps"),
        ("model = 3\n", "expected"),
        ("model = [1]", r"expected \[\[model\]\] tables, got something else"),
        (
            '[[model]]\nprovider = "local"\nid = "x"\nlike = "nobody"\n',
            "'x' is like 'nobody', expected one of flux.1-kontext-dev",
        ),
    ],
)
def test_a_wrong_catalogue_is_one_sentence(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(path))
    with pytest.raises(SettingsError, match=complaint):
        models()
