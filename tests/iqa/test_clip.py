"""CLIP beside `transformers` and `openai-clip`, with random weights: there are no others here."""

from __future__ import annotations

import html
import importlib.util
import unicodedata
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from convergebench import testcard, weights
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.clip import CLIP, Encoder, Preparation, Similarity
from convergebench.metrics.tokens import END, START, Tokenizer
from convergebench.metrics.vit import Activation, ImageTower, TextTower, hugging_face_layout
from tests.metrics.pairs import scene

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
ftfy: Any = pytest.importorskip("ftfy")

# float32 through up to 24 blocks, relative to embeddings whose largest number is about 3.
CLOSE = 1e-4


@cache
def openai(part: str) -> Any:
    """A module of openai-clip, whose own start needs a package that newer setuptools lack."""
    spec = importlib.util.find_spec("clip")
    if spec is None or spec.origin is None:
        pytest.skip("openai-clip is not installed")
    place = Path(spec.origin).with_name(f"{part}.py")
    found = importlib.util.spec_from_file_location(f"openai_clip_{part}", place)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


# -- tokens ---------------------------------------------------------------------------------------


@cache
def tokenizers() -> tuple[Tokenizer, Any, Any]:
    theirs = openai("simple_tokenizer").SimpleTokenizer()
    merges = list(theirs.bpe_ranks)
    return (
        Tokenizer(merges),
        theirs,
        transformers.CLIPTokenizer(vocab=theirs.encoder, merges=merges),
    )


NASTY = [
    "don't",
    "IT'S",
    "''s",
    "'ſ",
    "&amp;",
    "&amp;lt;",
    "&#39;s",
    " \t\n",
    "\x1c",
    "\u3000",
    "日本語",
    "ﬁ",
    "é",
    "e\u0301",
    "١٢٣",
    "½ⅷ²",
    "naïve",
    "!!!?",
    "🎉👍🏽",
    "x" * 200,
    "1234",
    "ΣΑΣ",
    "İ",
    END,
]
characters = st.characters(exclude_categories=("Cs", "Cn"))
pieces = st.one_of(st.text(characters, max_size=20), st.sampled_from(NASTY))
texts = st.lists(pieces, max_size=40).map("".join)


def test_the_vocabulary() -> None:
    ours, theirs, _ = tokenizers()
    assert ours.numbers == theirs.encoder


@settings(deadline=None, max_examples=400, derandomize=True)  # foreign quirks must not stop CI
@given(texts)
def test_tokens_beside_openai(text: str) -> None:
    """For texts that ftfy has repaired; and of characters that Python's Unicode tables know."""
    ours, theirs, _ = tokenizers()
    repaired = ftfy.fix_text(text)
    known = html.unescape(html.unescape(repaired))
    assume(all(unicodedata.category(character) != "Cn" for character in known))
    assume("\u0345" not in known)  # a mark whose other case is a letter: OpenAI's pattern drops it
    wanted = [theirs.encoder[START], *theirs.encode(text), theirs.encoder[END]]
    if len(wanted) > 77:
        wanted = [*wanted[:76], theirs.encoder[END]]
    assert ours.encode(repaired) == wanted


@settings(deadline=None, max_examples=400, derandomize=True)  # foreign quirks must not stop CI
@given(texts)
def test_tokens_beside_transformers(text: str) -> None:
    """It keeps entities and outer control characters, and lowers Σ otherwise than OpenAI does."""
    ours, _, theirs = tokenizers()
    assume(html.unescape(text) == text and not set("Σſ\x1c\x1d\x1e\x1f") & set(text))
    assume("<|" not in text)
    assert ours.encode(text) == theirs(text, truncation=True, max_length=77)["input_ids"]


# -- preparation ----------------------------------------------------------------------------------

SIZES = [(224, 224), (300, 500), (501, 300), (80, 96), (1, 1), (7, 7), (30, 480), (769, 1025)]


def picture(height: int, width: int) -> NDArray[np.uint8]:
    return scene(height, width)


@pytest.mark.parametrize("size", SIZES)
def test_preparation_beside_transformers(size: tuple[int, int]) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    pixels = picture(*size)
    inputs = CLIPImageProcessorPil()(images=[pixels], input_data_format="channels_last")
    found = Preparation()(pixels)
    assert not isinstance(found, NoScore)
    np.testing.assert_allclose(found, inputs["pixel_values"][0], atol=2e-6)


@pytest.mark.parametrize("size", [(224, 224), (300, 500), (448, 300), (1024, 768)])
def test_preparation_beside_openai(size: tuple[int, int]) -> None:
    """Sizes whose margin is even: torchvision rounds half a pixel to the even side."""
    from PIL import Image
    from torchvision import transforms

    steps = transforms.Compose(
        [
            transforms.Resize(224, transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(Preparation().mean, Preparation().deviation),
        ]
    )
    pixels = picture(*size)
    found = Preparation()(pixels)
    assert not isinstance(found, NoScore)
    np.testing.assert_allclose(found, steps(Image.fromarray(pixels)).numpy(), atol=2e-6)


# -- towers ---------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "projection_dim": 48,
    "vision_config": {
        "hidden_size": 128,
        "intermediate_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
    },
    "text_config": {
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 1,
        "vocab_size": 1000,
        "bos_token_id": 998,
        "eos_token_id": 999,
    },
}
END_TOKEN: dict[str, Any] = {"bos_token_id": 49406, "eos_token_id": 49407}
B_32: dict[str, Any] = {
    "projection_dim": 512,
    "vision_config": {"patch_size": 32},  # transformers' defaults are this model's sizes
    "text_config": END_TOKEN,
}
L_14: dict[str, Any] = {
    "projection_dim": 768,
    "vision_config": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "patch_size": 14,
    },
    "text_config": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        **END_TOKEN,
    },
}


def random_model(config: dict[str, Any], activation: str = "quick_gelu") -> Any:
    torch.manual_seed(1)
    towers = {
        name: {**part, "hidden_act": activation} if isinstance(part, dict) else part
        for name, part in config.items()
    }
    model = transformers.CLIPModel(transformers.CLIPConfig(**towers)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Biases start at 0 and scales at 1, where a swap would not be seen.
            parameter += 0.02 * torch.randn_like(parameter)
    return model


def embedded(found: Any) -> NDArray[np.float32]:
    """Version 5 wraps embeddings in an object."""
    return np.asarray(getattr(found, "pooler_output", found).detach().numpy())


def tokens(vocabulary: int) -> list[list[int]]:
    rng = np.random.default_rng(2)
    ends = [1, 9, 76]
    return [
        [vocabulary - 2, *rng.integers(0, vocabulary - 2, end - 1).tolist(), vocabulary - 1]
        for end in ends
    ]


def padded(lists: list[list[int]]) -> Any:
    return torch.tensor([[*each, *[each[-1]] * (77 - len(each))] for each in lists])


def compare(model: Any, folder: Path, activation: Activation = "quick_gelu") -> None:
    """Both towers, ours read from what transformers saved."""
    model.save_pretrained(folder)
    parameters = hugging_face_layout(weights.arrays(folder / "model.safetensors"))
    tower = ImageTower(parameters, activation=activation)
    noise = np.random.default_rng(3).normal(size=(2, 3, tower.side, tower.side))
    pictures = noise.astype(np.float32)
    with torch.no_grad():
        wanted = embedded(model.get_image_features(pixel_values=torch.from_numpy(pictures)))
    np.testing.assert_allclose(tower(pictures), wanted, atol=CLOSE)
    reader = TextTower(parameters, activation=activation)
    sentences = tokens(reader.vocabulary)
    with torch.no_grad():
        wanted = embedded(model.get_text_features(input_ids=padded(sentences)))
    np.testing.assert_allclose(reader(sentences), wanted, atol=CLOSE)


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_a_small_network_beside_transformers(activation: Activation, tmp_path: Path) -> None:
    compare(random_model(SMALL, activation), tmp_path, activation)


def test_vit_b_32_beside_transformers(tmp_path: Path) -> None:
    compare(random_model(B_32), tmp_path)


@pytest.mark.slow
def test_vit_l_14_beside_transformers(tmp_path: Path) -> None:
    compare(random_model(L_14), tmp_path)


@pytest.mark.parametrize("archive", ["state dict", "TorchScript"])
def test_openai_files(archive: str, tmp_path: Path) -> None:
    """A state dict, and a TorchScript archive in half precision, as OpenAI's own downloads are."""
    torch.manual_seed(4)
    model = openai("model").CLIP(48, 56, 3, 128, 14, 77, 1000, 64, 1, 2).eval()
    path = tmp_path / "ViT.pt"
    pictures, sentences = torch.randn(2, 3, 56, 56), tokens(1000)
    if archive == "state dict":
        torch.save(model.state_dict(), path)
    else:
        for parameter in model.parameters():
            parameter.data = parameter.data.half().float()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing is deprecated, and OpenAI's files are traced
            torch.jit.save(torch.jit.trace(model, (pictures, padded(sentences[:2]))), path)
    parameters = hugging_face_layout(weights.arrays(path))
    with torch.no_grad():
        images, sayings = model.encode_image(pictures), model.encode_text(padded(sentences))
    np.testing.assert_allclose(ImageTower(parameters)(pictures.numpy()), images, atol=CLOSE)
    np.testing.assert_allclose(TextTower(parameters)(sentences), sayings, atol=CLOSE)


def test_similarity_from_pixels_to_number(tmp_path: Path) -> None:
    """The whole way: processor, network and cosine by transformers, for the test card."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    model = random_model(SMALL)
    model.save_pretrained(tmp_path)
    tower = ImageTower(hugging_face_layout(weights.arrays(tmp_path / "model.safetensors")))
    home, frame = testcard.testcard()
    view = StepView(Picture(frame), Picture(home))
    (found,) = Similarity(CLIP, lambda: Encoder(tower, "random")).score([view])
    processor = CLIPImageProcessorPil(size={"shortest_edge": 56}, crop_size=56)
    inputs = processor(images=[home, frame], return_tensors="pt")
    with torch.no_grad():
        one, other = embedded(model.get_image_features(**inputs)).astype(np.float64)
    wanted = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert found == pytest.approx(wanted, abs=1e-6)
