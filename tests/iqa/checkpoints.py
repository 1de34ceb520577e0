"""Checkpoints with random values for each of pyiqa's networks, laid out as the published ones are.

Each comes with the pyiqa metric it was saved from, so that a value can be compared with pyiqa's
own call on the very same parameters.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

RN50 = (1024, 224, (3, 4, 6, 3), 64, None, 77, 49408, 512, 8, 12)
VIT_B32 = (512, 224, 12, 768, 32, 77, 49408, 512, 8, 12)

FILES: dict[str, tuple[str, str, str, bool]] = {
    "cnniqa": ("cnniqa", "cnniqa", "CNNIQA_koniq10k-e6f14c91.pth", True),
    "dbcnn": ("dbcnn", "dbcnn", "DBCNN_KonIQ10k-2de81c0a.pth", True),
    "hyperiqa": ("hyperiqa", "hypernet", "HyperIQA-resnet50-koniq10k-c96c41b1.pth", True),
    "liqe": ("liqe", "liqe", "liqe_koniq.pt", True),
    "maniqa": ("maniqa", "maniqa", "ckpt_koniq10k.pt", False),
    "musiq": ("musiq", "musiq", "musiq_koniq_ckpt-e95806b9.pth", False),
    "nima": ("nima", "nima", "NIMA_InceptionV2_ava-b0c77c00.pth", True),
    "paq2piq": ("paq2piq", "paq2piq", "P2P_RoIPoolModel-fit.10.bs.120-ca69882e.pth", False),
    "topiq-nr": ("topiq_nr", "topiq", "cfanet_nr_koniq_res50-9a73138b.pth", True),
    "tres": ("tres", "tres", "tres_koniq-f0502926.pth", False),
    "wadiqam": ("wadiqam_nr", "wadiqam", "WaDIQaM-NR-koniq-aaffea29.pth", True),
}
"""Our name: pyiqa's name, its module, the file, and whether tensors lie below the key `params`."""


def make(name: str, folder: Path) -> Any:
    """Write the files of a metric into a folder; the pyiqa metric they were saved from."""
    import torch

    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    special: dict[str, Callable[[Path], Any]] = {
        "arniqa": _arniqa,
        "clipiqa": _clipiqa,
        "qalign": _qalign,
        "qualiclip": _qualiclip,
    }
    if name in special:
        return special[name](folder)
    network, arch, file, below = FILES[name]
    module = importlib.import_module(f"pyiqa.archs.{arch}_arch")
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(module, "load_pretrained_network"))
        if name == "liqe":
            texts = folder / "texts"
            texts.mkdir()
            stack.enter_context(mock.patch.object(module, "load", return_value=_clip(VIT_B32)))
            stack.enter_context(mock.patch.object(module, "DEFAULT_CACHE_DIR", str(texts)))
        metric = _create(network, stack)
    state = _stir(metric.net)
    torch.save({"params": state} if below else state, folder / file)
    if name == "liqe":  # its text features follow from the weights
        with torch.no_grad():
            metric.net.text_features = metric.net.get_text_features(metric.net.joint_texts)
    return metric


def _create(network: str, stack: ExitStack) -> Any:
    """A pyiqa metric whose backbones are left as they are initialised."""
    import pyiqa
    import timm
    import torch
    import torchvision

    create = timm.create_model
    blank = mock.patch.object(timm, "create_model", lambda n, **o: create(n, **{**o, **UNTRAINED}))
    stack.enter_context(blank)
    for name in ("resnet18", "resnet50", "vgg16"):
        maker = getattr(torchvision.models, name)
        plain = mock.patch.object(torchvision.models, name, lambda maker=maker, **_: maker())
        stack.enter_context(plain)
    return pyiqa.create_metric(network, device=torch.device("cpu"))


UNTRAINED = {"pretrained": False}


def _clip(dimensions: Any) -> Any:
    from pyiqa.archs import clip_model

    return clip_model.CLIP(*dimensions).eval()


def _arniqa(folder: Path) -> Any:
    import torch
    import torchvision
    from pyiqa.archs import arniqa_arch

    encoder = torch.nn.Sequential(*list(torchvision.models.resnet50().children())[:-1])
    state = {f"model.{k}": v for k, v in _stir(encoder).items()}
    torch.save(state, folder / "ARNIQA.pth")
    regressor = folder / "regressor_koniq10k.pth"
    torch.jit.script(torch.nn.Linear(4096, 1)).save(regressor)
    with ExitStack() as stack:
        for owner, name, value in (
            (torch.hub, "load_state_dict_from_url", lambda *_, **__: state),
            (arniqa_arch, "load_file_from_url", lambda *_, **__: str(regressor)),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        return _create("arniqa", stack)


def _clipiqa(folder: Path) -> Any:
    import torch
    from pyiqa.archs import clip_model, clipiqa_arch

    clip = _clip(RN50)
    _stir(clip)
    example = (torch.zeros(1, 3, 64, 64), torch.ones(1, 77, dtype=torch.long))
    torch.jit.trace(clip, example, check_trace=False).save(str(folder / "RN50.pt"))
    halved = clip_model.build_model(dict(clip.state_dict())).float()  # as CLIP's loader does
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(clipiqa_arch, "load", return_value=halved))
        return _create("clipiqa", stack)


def _qualiclip(folder: Path) -> Any:
    import torch
    from pyiqa.archs import qualiclip_arch

    state = {f"clip_model.{k}": v for k, v in _stir(_clip(RN50)).items()}
    state["prompts_features"] = torch.nn.functional.normalize(torch.randn(14, 1024), dim=1)
    file = folder / "QualiCLIP.pth"
    torch.save(state, file)
    with ExitStack() as stack:
        for name, value in (
            ("load", lambda *_: _clip(RN50)),
            ("load_file_from_url", lambda *_: str(file)),
        ):
            stack.enter_context(mock.patch.object(qualiclip_arch, name, value))
        return _create("qualiclip", stack)


def _qalign(folder: Path) -> Any:
    """The same architecture as the 7-billion-parameter model, with few and small layers."""
    import torch
    from pyiqa.archs import qalign_arch
    from pyiqa.archs.q_align import configuration_mplug_owl2 as owl
    from pyiqa.archs.q_align import modeling_mplug_owl2 as model

    _tokenizer(folder)
    mean, deviation = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    settings = {"crop_size": 448, "size": 448, "image_mean": mean, "image_std": deviation}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text('{"bos_token_id": 1, "eos_token_id": 2}')
    small = {"hidden_size": 32, "intermediate_size": 64}
    small |= {"num_hidden_layers": 1, "num_attention_heads": 2}
    vision = owl.MplugOwlVisionConfig(**small).to_dict()
    abstractor = owl.MplugOwlVisualAbstractorConfig(
        **small, num_learnable_queries=8, encoder_hidden_size=32
    ).to_dict()
    visual = {"visual_model": vision, "visual_abstractor": abstractor}
    config = owl.MPLUGOwl2Config(visual_config=visual, vocab_size=200, pad_token_id=0, **small)
    config.save_pretrained(folder)
    with ExitStack() as stack:
        for kind in (qalign_arch.CLIPImageProcessor, model.LlamaTokenizer):
            stack.enter_context(_from_folder(kind, folder))
        state = model.MPLUGOwl2LlamaForCausalLM(config).state_dict()
        torch.manual_seed(3)
        state = {k: (v + 0.3 * torch.randn_like(v)).half() for k, v in state.items()}
        shards = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
        where = {key: shards[n % 2] for n, key in enumerate(state)}
        for shard in shards:
            torch.save({k: state[k] for k in state if where[k] == shard}, folder / shard)
        index = {"metadata": {"total_size": 1}, "weight_map": where}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
        stack.enter_context(_from_folder(model.MPLUGOwl2LlamaForCausalLM, folder))
        metric = _create("qalign", stack)
    abstractor = metric.net.model.model.visual_abstractor
    if not hasattr(abstractor, "invert_attention_mask"):
        # transformers 5.19 removed what pyiqa calls; no part of a picture is masked.
        abstractor.invert_attention_mask = lambda mask: (0 * mask[:, None, None, :]).half()
    return metric


def _tokenizer(folder: Path) -> None:
    sentencepiece: Any = importlib.import_module("sentencepiece")
    words = "USER: How would you rate the quality of this image? ASSISTANT: The quality of the"
    every = [*words.split(), "image", "is", "excellent", "good", "fair", "poor", "bad"]
    draw = random.Random(1)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" ".join(draw.choices(every, k=12)) for _ in range(400)),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=120,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "tokenizer.vocab").unlink()
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(tokens))
    kind = {"tokenizer_class": "LlamaTokenizer", "legacy": False}
    (folder / "tokenizer_config.json").write_text(json.dumps({**tokens, **kind}))


def _from_folder(kind: Any, folder: Path) -> Any:
    original = kind.from_pretrained
    return mock.patch.object(kind, "from_pretrained", lambda _, **o: original(str(folder), **o))


def _stir(net: Any) -> dict[str, Any]:
    """Move every value a little, so that none is as an untouched network would have it."""
    import torch

    with torch.no_grad():
        for value in net.state_dict().values():
            if value.is_floating_point():
                value += 0.01 * (torch.rand_like(value) - 0.5)
    return {k: v.clone() for k, v in net.state_dict().items()}
