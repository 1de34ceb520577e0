from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.cycle import Cycle, Edit, Operation
from convergebench.editor import Editor, EditRequest
from convergebench.editors.reference import open_editor
from convergebench.editors.reference.models import MODELS
from convergebench.errors import SettingsError, UnknownName
from convergebench.frame import Frame, encode, sniff
from convergebench.registry import PluginName
from convergebench.testing.pictures import colourful, saved

Walk = Callable[..., list[Frame]]
Ask = Callable[..., EditRequest]

TWO_STEPS = """
import json
import cv2
cv2.setNumThreads(1)
from convergebench.cycle import Edit
from convergebench.editor import EditRequest, Turn
from convergebench.editors.reference import open_editor
from convergebench.frame import Frame
from convergebench.testing.pictures import colourful

found = {}
for model in open_editor.models:
    editor = open_editor(model, **({"rate": "0"} if model in ("flaky", "refuser") else {}))
    for seed in (11, None):
        source = frame = Frame.of_pixels(colourful(75, 61))
        for step in (1, 2):
            request = EditRequest(
                (frame,), "Copy it.", Edit(prompt="Copy it."), step, seed,
                history=(Turn(0, "", lambda: source),), chain="here",
            )
            frame = Frame(editor.edit(request).data)
            found[f"{model} {seed} {step}"] = frame.digest
print(json.dumps(found))
"""


def in_another_process(hash_seed: str) -> dict[str, str]:
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", TWO_STEPS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    digests: dict[str, str] = json.loads(done.stdout)
    return digests


def test_the_same_request_gives_the_same_bytes_in_any_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = in_another_process("1")
    assert first == in_another_process("2")
    exec(TWO_STEPS.replace("cv2.setNumThreads(1)", ""), {})
    assert json.loads(capsys.readouterr().out) == first
    assert len(first) == 4 * len(MODELS)


@pytest.mark.parametrize(
    "model", ["noise", "scatter", "banana", "wrinkle", "pointillist", "random"]
)
def test_chance_follows_the_seed(model: str, ask: Ask) -> None:
    editor, picture = open_editor(model), colourful(64, 64)
    one, again, other = (editor.edit(ask(picture, seed=s)).data for s in (1, 1, 2))
    assert one == again
    assert one != other


def test_without_a_seed_chance_follows_the_input(ask: Ask) -> None:
    editor = open_editor("noise")
    here, there = colourful(32, 32), np.ascontiguousarray(colourful(32, 32)[::-1])

    def grain(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
        made = Frame(editor.edit(ask(picture, seed=None)).data)
        return made.pixels.astype(np.float64) - picture

    assert np.array_equal(grain(here), grain(here))
    assert not np.array_equal(grain(here), grain(there))


def test_a_fixed_seed_piles_the_same_noise_up(walk: Walk, ask: Ask) -> None:
    """Four times the same noise has twice the spread of four independent ones."""
    editor = open_editor("noise", sigma="3")
    source = Frame.of_pixels(np.full((64, 64, 3), 128, np.uint8))
    spreads = []
    for seeds in ((5, 5, 5, 5), (5, 6, 7, 8)):
        frame = source
        for step, seed in enumerate(seeds, 1):
            frame = Frame(editor.edit(ask(frame, step=step, seed=seed)).data)
        spreads.append(frame.pixels.std())
    assert spreads[0] == pytest.approx(2 * spreads[1], rel=0.1)


def test_identity_and_inert_return_the_very_bytes(ask: Ask) -> None:
    from PIL import Image

    for frame in (
        Frame(encode(colourful(20, 10), "jpeg", quality=60)),
        saved(Image.fromarray(colourful(20, 10)).quantize(8)),
    ):
        for model in ("identity", "inert"):
            assert open_editor(model).edit(ask(frame)).data == frame.data
    flip = Edit(prompt="Mirror.", operation=Operation(kind="flip", axis="horizontal"))
    request = ask(colourful(20, 10), edit=flip)
    assert open_editor("inert").edit(request).data == request.inputs[0].data
    assert open_editor("identity").edit(request).data != request.inputs[0].data


def test_png_re_encodes_and_changes_no_pixel(ask: Ask) -> None:
    from PIL import Image

    frame = saved(Image.fromarray(colourful(20, 10)).quantize(8))
    made = Frame(open_editor("png").edit(ask(frame)).data)
    assert made.digest != frame.digest
    assert made.pixel_digest == frame.pixel_digest
    assert made.facts.format == "png"


def test_jpeg_sends_real_jpeg_of_the_quality_asked_for(ask: Ask) -> None:
    picture = colourful(64, 64)
    replies = [open_editor("jpeg", quality=q).edit(ask(picture)).data for q in ("20", "75", "95")]
    assert {sniff(data) for data in replies} == {"jpeg"}
    assert len(replies[0]) < len(replies[1]) < len(replies[2])
    errors = [np.mean((Frame(d).pixels.astype(float) - picture) ** 2) for d in replies]
    assert errors[0] > errors[1] > errors[2] > 0
    assert open_editor("jpeg").edit(ask(picture)).data == replies[1]


def test_transport_re_saves_and_ignores_what_is_asked(ask: Ask) -> None:
    flip = Edit(prompt="Mirror.", operation=Operation(kind="flip", axis="horizontal"))
    picture = colourful(20, 10)
    made = Frame(open_editor("transport", format="png").edit(ask(picture, edit=flip)).data)
    assert np.array_equal(made.pixels, picture)
    asked, plain = (
        open_editor(model, quality="60").edit(request).data
        for model, request in (("transport", ask(picture, edit=flip)), ("jpeg", ask(picture)))
    )
    assert asked == plain


def test_a_medium_acts_after_the_operation(ask: Ask) -> None:
    flip = Edit(prompt="Mirror.", operation=Operation(kind="flip", axis="horizontal"))
    picture = colourful(30, 20)
    made = Frame(open_editor("tint", amount="4").edit(ask(picture, edit=flip)).data)
    assert np.array_equal(made.pixels[..., 1], picture[:, ::-1, 1] + 4)


def test_crop_first_crops_at_the_first_step_only(walk: Walk, replicate: Cycle) -> None:
    source = Frame.of_pixels(colourful(100, 100))
    frames = walk(open_editor("crop-first", **{"keep-size": "no"}), replicate, source, 3)
    assert [frame.pixels.shape[:2] for frame in frames] == [(100, 100)] + [(96, 96)] * 3
    assert frames[1].pixel_digest == frames[3].pixel_digest
    frames = walk(open_editor("crop-first"), replicate, source, 2)
    assert frames[1].pixels.shape == source.pixels.shape
    assert frames[1].pixel_digest not in (source.pixel_digest, frames[2].digest)


@pytest.mark.parametrize("model", MODELS)
def test_specs_are_filled_in(model: str) -> None:
    spec = open_editor(model).spec
    assert spec.name == f"ref:{model}"
    assert spec.version
    assert spec.description == open_editor.models[model]
    assert spec.price == 0.0
    assert spec.concurrency is None
    assert spec.deterministic
    assert 0 < (spec.seconds or 0) < 1
    controls = {"identity", "png", "jpeg", "transport", "random", "inert"}
    assert spec.control == (model in controls)


def test_every_description_is_one_short_line() -> None:
    for model in MODELS.values():
        assert 10 < len(model.description) < 100
        assert "\n" not in model.description
        for option in model.options:
            assert 5 < len(option.meaning) < 90


def test_the_name_is_canonical() -> None:
    text = "ref:shift,dy=3,dx=2"
    parsed = PluginName.parse(text)
    editor = open_editor(parsed.model or "", **dict(parsed.options))
    assert editor.spec.name == str(parsed) == "ref:shift,dx=2,dy=3"
    assert open_editor().spec.name == "ref:identity"


def test_the_reply_tells_what_was_done(ask: Ask) -> None:
    reply = open_editor("shift", dy="3").edit(ask(colourful(8, 8)))
    assert reply.parameters == {"dx": 1, "dy": 3}
    assert reply.model == "ref:shift,dy=3"
    assert reply.cost == 0.0


def test_an_unknown_model_gets_near_matches() -> None:
    with pytest.raises(UnknownName, match=r"no reference editor called 'jpg'. Did you mean jpeg"):
        open_editor("jpg")


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("jpeg", {"qualty": "5"}, r"ref:jpeg has no option 'qualty'. Did you mean quality\?"),
        ("noise", {"colour": "5"}, r"ref:noise has no option 'colour'. It has sigma\."),
        ("png", {"quality": "5"}, r"ref:png has no option 'quality'. It has none\."),
        ("jpeg", {"quality": "0"}, r"quality must be a whole number from 1 to 100, got '0'\."),
        ("jpeg", {"quality": "7.5"}, r"quality must be a whole number from 1 to 100, got '7.5'"),
        ("noise", {"sigma": "nan"}, r"sigma must be a number from 0 to 128, got 'nan'"),
        ("noise", {"sigma": "much"}, r"sigma must be a number from 0 to 128, got 'much'"),
        ("noise", {"sigma": ""}, r"sigma must be a number from 0 to 128, got ''"),
        ("crop-first", {"keep-size": "maybe"}, r"keep-size must be yes or no, got 'maybe'"),
        ("refuser", {"rate": "1.1"}, r"rate must be a number from 0 to 1, got '1.1'"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(
    model: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        open_editor(model, **options)


def test_every_option_changes_something(walk: Walk) -> None:
    """No option is decoration: moving it moves the bytes, by the sixth step at the latest."""
    moved = {"keep-size": {"yes": "no", "no": "yes"}, "grid": {"moving": "fixed"}}
    moved |= {"axis": {"both": "width"}, "format": {"jpeg": "png"}}
    cycle = Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy it."),))
    source = Frame.of_pixels(colourful(60, 50))
    for name, model in MODELS.items():
        if name in ("refuser", "flaky"):
            continue
        plain = walk(open_editor(name), cycle, source, 6)[-1]
        for option in model.options:
            if option.name == "reasoning":  # words beside the picture: tests/selfeval has them
                continue
            if option.name == "odd":  # a share of the calls: twice as rare is still rare
                value = "1"
            elif isinstance(option.default, str):
                value = moved[option.name][option.default]
            else:
                double = option.default * 2 if option.default else 1
                value = str(double if double <= option.high else option.low)
            other = walk(open_editor(name, **{option.name: value}), cycle, source, 6)[-1]
            assert other.digest != plain.digest, f"{name}: {option.name}"


def test_editors_are_shared_between_threads_without_state() -> None:
    editor: Editor = open_editor("noise")
    with pytest.raises(AttributeError):
        editor.options = {}  # type: ignore[attr-defined]
