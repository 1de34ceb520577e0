"""Tiny pipelines, made once, and a catalogue that fits them."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.editors.local.models import models
from tests.local.tiny import MAKERS, save_tiny

CATALOGUE = """
[[model]]
provider = "local"
id = "flux.2-dev"
[model.pins]
caption_upsample_temperature = 0.0
max_sequence_length = 2048
text_encoder_out_layers = [1]

[[model]]
provider = "local"
id = "flux.2-klein-4b"
pins = { max_sequence_length = 512, text_encoder_out_layers = [1] }

[[model]]
provider = "local"
id = "small-kontext"
like = "flux.1-kontext-dev"
title = "Kontext at any size"
pins = { _auto_resize = false, max_sequence_length = 512 }
size = { kind = "free" }

[[model]]
provider = "local"
id = "qwen-image-edit"
native = "native"

[[model]]
provider = "local"
id = "qwen-image-edit-2509"
native = "native"
"""
"""Text encoders of one layer, and sizes for which one need not wait."""


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny pipeline of every class."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for model in MAKERS:
        save_tiny(model, folder)
    return folder


@pytest.fixture(autouse=True)
def _own_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    path.write_text(CATALOGUE)
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "small-kontext" in models()
