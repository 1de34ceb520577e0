"""Suites in the box: data only, one folder each."""

from __future__ import annotations

from pathlib import Path


def starter() -> Path:
    """Twelve drawn sources of distinct textures; seven cycles; works everywhere, costs nothing."""
    return Path(__file__).parent / "starter" / "suite.toml"


def banana100() -> Path:
    """The Banana100 study: 13 drawn sources of the paper's sizes, 8 cycles, presets."""
    return Path(__file__).parent / "banana100" / "suite.toml"


def roundtrip_v1() -> Path:
    """The round-trip study: 100 sources, fetched by `suites prepare`, and 30 edit pairs."""
    return Path(__file__).parent / "roundtrip" / "suite.toml"


def restoration_v1() -> Path:
    """The restoration study: 13 scenes and 7 degradations, 35 inputs, 12 prompts, presets."""
    return Path(__file__).parent / "restoration" / "suite.toml"
