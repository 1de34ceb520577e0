"""Real pipelines of diffusers, tiny and with random weights, written to disk like checkpoints.

No checkpoint and no tokenizer of the hub is needed: the networks have a few thousand parameters,
and the tokenizers know single bytes only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from tokenizers import pre_tokenizers

CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }} "
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}"
    "<|im_end|>{% endfor %}"
)
QWEN_TOKENS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
WORDS = 320
"""More than any of these tokenizers has tokens."""


def _bytes() -> dict[str, int]:
    return {token: index for index, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}


def _qwen_tokenizer() -> Any:
    tokenizer = transformers.Qwen2Tokenizer(vocab=_bytes(), merges=[], chat_template=CHAT)
    tokenizer.add_tokens(QWEN_TOKENS, special_tokens=True)
    return tokenizer


def _clip_tokenizer() -> Any:
    vocab = _bytes()
    vocab |= {f"{token}</w>": 256 + index for token, index in _bytes().items()}
    vocab |= {"<|startoftext|>": 512, "<|endoftext|>": 513}
    return transformers.CLIPTokenizer(vocab=vocab, merges=[], model_max_length=77)


def _t5_tokenizer() -> Any:
    pieces = ["<pad>", "</s>", "<unk>", "▁", *(chr(code) for code in range(33, 127))]
    vocab = [(piece, -float(index)) for index, piece in enumerate(pieces)]
    return transformers.T5Tokenizer(vocab=vocab, extra_ids=0)


def _kontext() -> Any:
    clip = transformers.CLIPTextConfig(
        hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=1,
        vocab_size=514, bos_token_id=512, eos_token_id=513, pad_token_id=513, projection_dim=16,
    )  # fmt: skip
    t5 = transformers.T5Config(
        d_model=16, d_ff=16, d_kv=8, num_heads=2, num_layers=1, vocab_size=WORDS
    )
    return diffusers.FluxKontextPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_vae(diffusers.AutoencoderKL, shift_factor=0.06, scaling_factor=1.5),
        text_encoder=transformers.CLIPTextModel(clip),
        tokenizer=_clip_tokenizer(),
        text_encoder_2=transformers.T5EncoderModel(t5),
        tokenizer_2=_t5_tokenizer(),
        transformer=diffusers.FluxTransformer2DModel(
            patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16,
            num_attention_heads=2, joint_attention_dim=16, pooled_projection_dim=16,
            guidance_embeds=True, axes_dims_rope=(4, 4, 8),
        ),
    )  # fmt: skip


def _vae(kind: Any, **rest: Any) -> Any:
    """Three halvings, as the real ones have, so that sizes must be multiples of 16."""
    return kind(
        sample_size=32, block_out_channels=(4, 4, 4, 4), layers_per_block=1, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=1, use_quant_conv=False, use_post_quant_conv=False, **rest,
    )  # fmt: skip


def _flux2_transformer(text: int, guided: bool) -> Any:
    return diffusers.Flux2Transformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=text, timestep_guidance_channels=256,
        axes_dims_rope=(4, 4, 4, 4), guidance_embeds=guided,
    )  # fmt: skip


def _flux2() -> Any:
    text = {
        "model_type": "mistral", "vocab_size": WORDS, "hidden_size": 16, "intermediate_size": 16,
        "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 1, "head_dim": 8,
        "max_position_embeddings": 2048,
    }  # fmt: skip
    vision = {
        "model_type": "pixtral", "hidden_size": 16, "num_hidden_layers": 1, "patch_size": 16,
        "num_attention_heads": 2, "intermediate_size": 16, "image_size": 32,
    }  # fmt: skip
    tokenizer = _qwen_tokenizer()
    tokenizer.add_tokens(["[IMG]", "[IMG_BREAK]", "[IMG_END]"], special_tokens=True)
    config = transformers.Mistral3Config(text_config=text, vision_config=vision)
    return diffusers.Flux2Pipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_vae(diffusers.AutoencoderKLFlux2),
        text_encoder=transformers.Mistral3ForConditionalGeneration(config),
        tokenizer=transformers.PixtralProcessor(
            image_processor=transformers.PixtralImageProcessor(),
            tokenizer=tokenizer,
            chat_template=CHAT,
        ),
        transformer=_flux2_transformer(16, True),
    )


def _klein() -> Any:
    config = transformers.Qwen3Config(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8, vocab_size=WORDS, max_position_embeddings=1024,
    )  # fmt: skip
    return diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=_vae(diffusers.AutoencoderKLFlux2),
        text_encoder=transformers.Qwen3ForCausalLM(config),
        tokenizer=_qwen_tokenizer(),
        transformer=_flux2_transformer(16, False),
        is_distilled=True,
    )


def _qwen(kind: Any) -> Any:
    tokenizer = _qwen_tokenizer()
    number = tokenizer.convert_tokens_to_ids
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": WORDS,
            "rope_parameters": {
                "mrope_section": [1, 1, 2], "rope_type": "default", "rope_theta": 10000.0,
            },
        },
        vision_config={
            "depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2,
            "out_hidden_size": 16, "fullatt_block_indexes": [],
        },
        image_token_id=number("<|image_pad|>"), video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )  # fmt: skip
    channels = 4
    return kind(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
        vae=diffusers.AutoencoderKLQwenImage(
            base_dim=4, z_dim=channels, dim_mult=[1, 1, 1, 1], num_res_blocks=1,
            temperal_downsample=[False, True, True], latents_mean=[0.0] * channels,
            latents_std=[1.0] * channels,
        ),
        text_encoder=transformers.Qwen2_5_VLForConditionalGeneration(config),
        tokenizer=tokenizer,
        processor=transformers.Qwen2VLProcessor(
            image_processor=transformers.Qwen2VLImageProcessor(),
            tokenizer=tokenizer,
            video_processor=transformers.Qwen2VLVideoProcessor(),
            chat_template=CHAT,
        ),
        transformer=diffusers.QwenImageTransformer2DModel(
            patch_size=2, in_channels=16, out_channels=channels, num_layers=1,
            attention_head_dim=16, num_attention_heads=2, joint_attention_dim=16,
            axes_dims_rope=(8, 4, 4),
        ),
    )  # fmt: skip


MAKERS: dict[str, Callable[[], Any]] = {
    "flux.1-kontext-dev": _kontext,
    "flux.2-dev": _flux2,
    "flux.2-klein-4b": _klein,
    "qwen-image-edit": lambda: _qwen(diffusers.QwenImageEditPipeline),
    "qwen-image-edit-2509": lambda: _qwen(diffusers.QwenImageEditPlusPipeline),
}
"""How to make a tiny pipeline of the class of each model."""


def save_tiny(model: str, folder: Path) -> Path:
    """Write a tiny pipeline of a model's class to a folder."""
    torch.manual_seed(1)
    MAKERS[model]().save_pretrained(folder / model)
    return folder / model
