"""MI-GAN as a remover: what it takes out, what it leaves alone, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Box, Edit, Operation, pixel_box
from convergebench.editor import EditRequest
from convergebench.editors.local.inpaint import MARGIN, Inpaint
from convergebench.editors.reference.operations import add
from convergebench.errors import AccountBlocked, EditorFailed, EditorRefused, SettingsError
from convergebench.frame import Frame
from convergebench.registry import open_editor, open_suite
from convergebench.runner import run
from convergebench.store import RunStore
from tests.support.runs import picture, write_suite

BALL = Operation(kind="remove", object="red-ball")
SPOT: Box = (0.3, 0.4, 0.7, 0.8)


def request(
    pixels: NDArray[np.uint8], region: Box | None = SPOT, operation: Operation | None = BALL
) -> EditRequest:
    edit = Edit(prompt="Remove the ball.", region=SPOT, operation=operation)
    return EditRequest((Frame.of_pixels(pixels),), "Remove the ball.", edit, 1, 7, region=region)


def rmse(made: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> float:
    return float(np.sqrt(np.mean((made.astype(float) - wanted) ** 2)))


@pytest.mark.weights
@pytest.mark.parametrize("name", ["table", "dunes", "text", "portrait"])
def test_an_object_of_the_starter_suite_is_taken_out(name: str) -> None:
    """The region's error against the picture without the object falls to a third or less."""
    clean = drawing.scene(name, 512, 512)
    spot = next(s for s in open_suite("starter").source if s.name == name).regions["spot"]
    filled = add(clean, "red-ball", spot)
    made = Frame(open_editor("inpaint").edit(request(filled, spot)).data).pixels
    x0, y0, x1, y1 = pixel_box(spot, 512, 512)
    inside = np.s_[y0:y1, x0:x1]
    before, after = rmse(filled[inside], clean[inside]), rmse(made[inside], clean[inside])
    assert after < before / 3
    outside = np.ones((512, 512), bool)
    outside[y0 - MARGIN : y1 + MARGIN, x0 - MARGIN : x1 + MARGIN] = False
    assert np.array_equal(made[outside], filled[outside])


@pytest.mark.weights
@pytest.mark.parametrize(("width", "height"), [(32, 32), (301, 97), (640, 700)])
def test_every_size_and_a_region_at_the_edge(width: int, height: int) -> None:
    pixels = picture(1, width, height)
    made = Frame(open_editor("inpaint").edit(request(pixels, (0.5, 0.5, 1, 1))).data).pixels
    assert made.shape == pixels.shape
    x0, y0, *_ = pixel_box((0.5, 0.5, 1, 1), width, height)
    assert np.array_equal(made[: y0 - MARGIN], pixels[: y0 - MARGIN])
    assert np.array_equal(made[:, : x0 - MARGIN], pixels[:, : x0 - MARGIN])
    assert not np.array_equal(made[y0:, x0:], pixels[y0:, x0:])


@pytest.mark.weights
def test_the_same_request_gives_the_same_bytes_whatever_the_prompt() -> None:
    pixels = picture(2, 96, 64)
    editor = open_editor("inpaint")
    first = editor.edit(request(pixels)).data
    assert editor.edit(request(pixels)).data == first
    assert open_editor("inpaint").edit(request(pixels, operation=None)).data == first


@pytest.mark.weights
def test_a_run_records_what_it_cannot_do(tmp_path: Path) -> None:
    """A round trip begins with an addition, which it refuses; a removal by itself it makes."""
    cycles = """
[[cycle]]
name = "away"
kind = "free"
[[cycle.edit]]
prompt = "Remove it."
region = [0.25, 0.25, 0.75, 0.75]
operation = { kind = "remove", object = "red-ball" }

[[cycle]]
name = "ball"
kind = "round-trip"
[[cycle.edit]]
prompt = "Add a red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = { kind = "add", object = "red-ball" }
[[cycle.edit]]
prompt = "Remove the red ball."
region = [0.25, 0.25, 0.75, 0.75]
operation = { kind = "remove", object = "red-ball" }
"""
    suite = write_suite(tmp_path / "suite", 1, cycles=cycles)
    table: dict[str, Any] = {"suite": str(suite), "editors": ["inpaint"], "steps": 2}
    run(tmp_path / "run", {**table, "controls": False})
    chains = {chain.key.cycle: chain for chain in RunStore.open(tmp_path / "run").chains()}
    assert [step.outcome for step in chains["away@1"].steps] == ["edited", "edited"]
    (refused,) = chains["ball@1"].steps
    assert refused.outcome == "refused"
    assert refused.detail == "it can only remove, and this edit is to add"


@pytest.mark.parametrize("kind", ["add", "grey", "blur"])
def test_it_refuses_what_it_cannot_do(kind: Any) -> None:
    operation = Operation(kind=kind, object="red-ball" if kind == "add" else None)
    with pytest.raises(EditorRefused, match=f"it can only remove, and this edit is to {kind}"):
        Inpaint().edit(request(picture(3), operation=operation))


def test_it_has_no_models() -> None:
    with pytest.raises(SettingsError, match="it has no models, nothing may follow the colon"):
        open_editor("inpaint:large")


def test_it_needs_a_region() -> None:
    with pytest.raises(EditorFailed, match="it needs a region"):
        Inpaint().edit(request(picture(3), None))


def test_without_weights_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONVERGEBENCH_WEIGHTS", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    editor = Inpaint()
    assert editor.spec.lacks.endswith("Run `convergebench weights pull migan`.")
    with pytest.raises(AccountBlocked, match="convergebench weights pull migan"):
        editor.edit(request(picture(3)))
