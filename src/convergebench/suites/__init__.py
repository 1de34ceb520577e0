"""Suites in the box: data only, one folder each."""

from __future__ import annotations

from pathlib import Path


def starter() -> Path:
    """Twelve drawn sources of distinct textures; seven cycles; works everywhere, costs nothing."""
    return Path(__file__).parent / "starter" / "suite.toml"


def roundtrip_v1() -> Path:
    """The round-trip study: 100 sources, fetched by `suites prepare`, and 30 edit pairs."""
    return Path(__file__).parent / "roundtrip" / "suite.toml"
