"""CLIP with a tiny random network, against a plain forward pass in NumPy.

Real weights cannot be had here; tests/iqa runs full-size networks against the CLIP libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench import weights
from convergebench.errors import InputError, MetricUnavailable
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import clip as module
from convergebench.metrics.clip import (
    BATCH,
    CLIP,
    CLIP_DIRECTION,
    Direction,
    Encoder,
    Preparation,
    Similarity,
    clip,
    clip_b32,
    clip_direction,
)
from convergebench.metrics.tokens import Tokenizer
from convergebench.metrics.vit import ImageTower, TextTower, hugging_face_layout
from convergebench.testing import check_metric
from tests.metrics import towers
from tests.metrics.pairs import PAIRS, scene

NUMBERS = towers.parameters()
TOWER = ImageTower(NUMBERS, towers.HEADS)
TEXTS = TextTower(NUMBERS, towers.HEADS)
TOKENS = Tokenizer(
    [("c", "at</w>"), ("d", "o"), ("a", "t</w>"), ("do", "g</w>"), ("r", "e"), ("re", "d")]
)

# float32 through two blocks: 3e-7 was the largest difference seen, relative to the largest number.
CLOSE = 1e-5


def similarity() -> Similarity:
    return Similarity(replace(CLIP, isolated=False), lambda: Encoder(TOWER, "tiny"))


def direction() -> Direction:
    return Direction(CLIP_DIRECTION, lambda: (Encoder(TOWER, "tiny"), TEXTS, TOKENS))


def prepared(pixels: Any) -> Any:
    found = Preparation(towers.SIDE, towers.SIDE)(pixels)
    assert not isinstance(found, NoScore)
    return found


def embedding(pixels: Any) -> Any:
    return towers.image_embedding(NUMBERS, prepared(pixels))


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


# -- towers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["quick_gelu", "gelu"])
def test_the_image_tower(kind: Any) -> None:
    pictures = np.random.default_rng(1).normal(size=(3, 3, 28, 28)).astype(np.float32)
    found = ImageTower(NUMBERS, towers.HEADS, kind)(pictures)
    wanted = [towers.image_embedding(NUMBERS, picture, kind) for picture in pictures]
    np.testing.assert_allclose(found, wanted, atol=CLOSE)


@pytest.mark.parametrize("kind", ["quick_gelu", "gelu"])
def test_the_text_tower(kind: Any) -> None:
    texts = [[5, 9, 2, 519], [1, 519, 7, 8], [*range(11), 519]]
    found = TextTower(NUMBERS, towers.HEADS, kind)(texts)
    wanted = [towers.text_embedding(NUMBERS, text, kind) for text in texts]
    np.testing.assert_allclose(found, wanted, atol=CLOSE)


def wrapped(name: str) -> str:
    return f"state_dict/module.{name}"


@pytest.mark.parametrize("spell", [str, wrapped, lambda name: name.replace(".", "/")])
def test_openai_checkpoints_are_the_same_network(spell: Callable[[str], str]) -> None:
    """As a state dict, as a training checkpoint, and as a TorchScript archive reads."""
    theirs = {spell(n): a for n, a in towers.as_openai(NUMBERS).items()}
    found = hugging_face_layout(theirs)
    assert set(found) - {"logit_scale"} == set(NUMBERS)
    for name, array in NUMBERS.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert np.shares_memory(found[name], array) or "_proj." in name


def test_half_precision_weights_run_in_single() -> None:
    halves = {name: array.astype(np.float16) for name, array in NUMBERS.items()}
    singles = {name: array.astype(np.float32) for name, array in halves.items()}
    picture = prepared(scene())[None]
    one, other = (ImageTower(p, towers.HEADS)(picture) for p in (halves, singles))
    np.testing.assert_array_equal(one, other)


def test_an_embedding_has_the_same_bits_in_any_batch() -> None:
    pictures = np.random.default_rng(2).normal(size=(7, 3, 28, 28)).astype(np.float32)
    together = TOWER(pictures)
    for count in (1, 2, 3, 5):
        np.testing.assert_array_equal(TOWER(pictures[:count]), together[:count])


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("vision_model.pre_layrnorm.bias", None, "lacks vision_model.pre_layrnorm.bias"),
        ("vision_model.encoder.layers.0.mlp.fc1.weight", None, "lacks .*layers.0.mlp.fc1.weight"),
        (
            "vision_model.encoder.layers.1.mlp.fc2.weight",
            np.ones((32, 7)),
            "is 32×7, expected 32×128",
        ),
        ("visual_projection.weight", np.ones((24, 9)), "is 24×9, expected 24×32"),
        ("vision_model.embeddings.patch_embedding.weight", np.ones((32, 3, 14, 7)), "square RGB"),
        (
            "vision_model.embeddings.position_embedding.weight",
            np.ones((7, 32)),
            "is 7×32, expected",
        ),
    ],
)
def test_checkpoints_that_do_not_fit(name: str, array: Any, message: str) -> None:
    changed = {n: a for n, a in NUMBERS.items() if n != name}
    if array is not None:
        changed[name] = array.astype(np.float32)
    with pytest.raises(MetricUnavailable, match=message):
        ImageTower(changed, towers.HEADS)


def test_heads_must_share_the_width() -> None:
    with pytest.raises(MetricUnavailable, match="width of 32 cannot be shared by 5 heads"):
        ImageTower(NUMBERS, 5)


# -- preparation ----------------------------------------------------------------------------------


def test_a_flat_picture_becomes_flat_channels() -> None:
    found = Preparation()(np.full((300, 500, 3), (255, 0, 51), np.uint8))
    assert not isinstance(found, NoScore)
    assert found.shape == (3, 224, 224)
    wanted = [
        (1 - 0.48145466) / 0.26862954,
        -0.4578275 / 0.26130258,
        (0.2 - 0.40821073) / 0.27577711,
    ]
    np.testing.assert_allclose(
        found, np.broadcast_to(np.reshape(wanted, (3, 1, 1)), found.shape), 1e-6
    )


def test_pictures_of_the_right_size_are_not_resampled() -> None:
    square = scene(28, 28)
    wide = np.concatenate([np.zeros_like(square), square, np.zeros_like(square)], 1)
    mean, deviation = np.array(Preparation().mean), np.array(Preparation().deviation)
    wanted = ((square / 255 - mean) / deviation).transpose(2, 0, 1)
    for pixels in (square, wide, np.ascontiguousarray(wide.transpose(1, 0, 2))):
        found = prepared(pixels)
        turned = wanted if pixels.shape[1] >= pixels.shape[0] else wanted.transpose(0, 2, 1)
        np.testing.assert_allclose(found, turned, atol=1e-6)


def test_only_the_central_square_counts() -> None:
    pixels = scene(60, 200)
    other = pixels.copy()
    other[:, :60] = 255 - other[:, :60]
    other[:, -60:] = 7
    np.testing.assert_array_equal(prepared(pixels), prepared(other))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 70), st.integers(1, 70))
def test_any_size_is_prepared(height: int, width: int) -> None:
    assert prepared(scene(height, width)).shape == (3, 28, 28)


def test_a_long_strip_has_no_score() -> None:
    assert prepared(scene(2, 200)).shape == (3, 28, 28)
    strip = Picture(np.zeros((2, 201, 3), np.uint8))
    wanted = NoScore("a strip of 201×2: CLIP would see its middle only")
    assert similarity().score([StepView(strip, strip)]) == [wanted]


# -- similarity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_similarity_is_the_cosine_of_the_embeddings(name: str) -> None:
    one, other = PAIRS[name]
    wanted = unit(embedding(one)) @ unit(embedding(other))
    (found,) = similarity().score([StepView(Picture(other), Picture(one))])
    assert found == pytest.approx(wanted, abs=CLOSE)


def test_the_contract() -> None:
    check_metric(similarity(), exempt={"noise": "a network with random weights ranks nothing"})


def test_the_frame_is_taken_as_the_editor_made_it() -> None:
    home, frame = scene(40, 40), scene(64, 52)
    resampled = Picture(np.ascontiguousarray(frame[:40, :40]))
    view = StepView(resampled, Picture(home), native=Picture(frame))
    (found,) = similarity().score([view])
    assert found == pytest.approx(unit(embedding(home)) @ unit(embedding(frame)), abs=CLOSE)


class CountingTower:
    side = towers.SIDE

    def __init__(self) -> None:
        self.batches: list[int] = []

    def __call__(self, pictures: Any) -> Any:
        self.batches.append(len(pictures))
        return TOWER(pictures)


def test_each_picture_is_embedded_once_and_in_batches() -> None:
    tower = CountingTower()
    metric = Similarity(CLIP, lambda: Encoder(tower, "counted"))  # type: ignore[arg-type]
    home = Picture(scene(30, 30))
    views = [StepView(Picture(np.roll(scene(30, 30), n, 0)), home) for n in range(20)]
    first = metric.score(views)
    assert tower.batches == [BATCH, 21 - BATCH]
    assert metric.score(views) == first
    assert metric.score([StepView(home, home)]) == [1.0]
    assert sum(tower.batches) == 21


def test_a_reference_is_needed() -> None:
    with pytest.raises(InputError, match="needs a reference"):
        similarity().score([StepView(Picture(scene()))])


# -- direction ------------------------------------------------------------------------------------

WORDS = ("a cat", "a red dog")


@pytest.mark.parametrize("name", PAIRS)
def test_direction_is_the_cosine_of_the_changes(name: str) -> None:
    one, other = PAIRS[name]
    texts = [towers.text_embedding(NUMBERS, TOKENS.encode(w, towers.CONTEXT)) for w in WORDS]
    change = unit(embedding(other)) - unit(embedding(one))
    wanted = unit(change) @ unit(unit(texts[1]) - unit(texts[0]))
    view = StepView(Picture(other), Picture(one), texts=WORDS)
    (found,) = direction().score([view])
    # Differences of nearly equal vectors lose digits: the pairs here are 0.05 apart or more.
    assert found == pytest.approx(wanted, abs=1e-4)
    (back,) = direction().score([replace(view, texts=WORDS[::-1])])
    assert back == pytest.approx(-wanted, abs=1e-4)


@pytest.mark.parametrize(
    ("texts", "frame", "reason"),
    [
        (None, "noise", "no words for this edit"),
        (("a cat", "a cat"), "noise", "both texts are the same"),
        (("a cat", " A  CAT "), "noise", "to CLIP both texts say the same"),
        (WORDS, None, "the picture did not change"),
    ],
)
def test_nothing_changed(texts: Any, frame: str | None, reason: str) -> None:
    home = scene()
    other = PAIRS[frame][1] if frame else home.copy()
    views = [
        StepView(Picture(p), Picture(home), texts=texts) for p in (other, PAIRS["negative"][1])
    ]
    found = direction().score(views)
    assert isinstance(found[0], NoScore)
    assert found[0].reason.startswith(reason)
    assert isinstance(found[1], NoScore) == (frame is not None)


def test_a_change_that_clip_cannot_see() -> None:
    home = scene(60, 200)
    other = home.copy()
    other[:, :50] = 0
    view = StepView(Picture(other), Picture(home), texts=WORDS)
    assert direction().score([view]) == [NoScore("CLIP sees no change in the picture")]


def test_texts_are_embedded_once() -> None:
    seen: list[int] = []

    class Counting:
        context = towers.CONTEXT

        def __call__(self, texts: Any) -> Any:
            seen.append(len(texts))
            return TEXTS(texts)

    metric = Direction(CLIP_DIRECTION, lambda: (Encoder(TOWER, "tiny"), Counting(), TOKENS))  # type: ignore[arg-type,return-value]
    views = [StepView(Picture(b), Picture(a), texts=WORDS) for a, b in PAIRS.values()]
    assert metric.score(views) == metric.score(views)
    assert seen == [2]


# -- the factories --------------------------------------------------------------------------------


@pytest.mark.parametrize("factory", [clip, clip_b32, clip_direction])
def test_without_weights(factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONVERGEBENCH_WEIGHTS", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(MetricUnavailable, match="convergebench weights pull clip-vit"):
        factory()


def saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny weights where the factories look, and their shape where that is checked."""
    numbers: dict[str, Any] = dict(towers.parameters(vocabulary=TOKENS.size))
    np.savez(folder / "model.npz", **numbers)
    lines = ["c at</w>", "d o", "a t</w>", "do g</w>", "r e", "re d"]
    (folder / "merges.txt").write_text("\n".join(lines))
    monkeypatch.setattr(weights, "find", lambda _set, file="model.npz": folder / file)


def test_files_that_are_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, monkeypatch)
    with pytest.raises(
        MetricUnavailable, match=r"is not clip-vit-l-14: .* got .*\[32, 3, 14, 14\]"
    ):
        clip().score([StepView(Picture(scene()), Picture(scene()))])


def test_the_factories_read_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, monkeypatch)
    monkeypatch.setattr(module, "SHAPES", {module.LARGE: (14, 32), module.BASE: (14, 32)})
    one, other = PAIRS["shifted"]
    view = StepView(Picture(other), Picture(one), texts=WORDS)
    for factory in (clip, clip_b32, clip_direction):
        assert factory.spec is factory().spec  # type: ignore[union-attr]
        (value,) = factory().score([view])
        assert isinstance(value, float)
    (tmp_path / "merges.txt").write_text("c at</w>")
    with pytest.raises(MetricUnavailable, match=r"makes 515 tokens, and .* has 520"):
        clip_direction().score([view])
