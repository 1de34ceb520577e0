"""Every provider's server, for tests that run all of them."""

from __future__ import annotations

import importlib
import inspect

from tests.support.speaker import Speaker

NAMES = ("bfl", "fal", "gemini", "openai", "openrouter", "qwen", "replicate", "seedream")


def speaker_of(name: str) -> type[Speaker]:
    """The speaker of a provider."""
    module = importlib.import_module(f"tests.editors.providers.speak_{name}")
    (found,) = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Speaker) and kind is not Speaker and kind.family == name
    ]
    return found
