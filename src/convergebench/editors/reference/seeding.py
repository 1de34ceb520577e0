"""Chance that depends on the request alone: the same request rolls the same dice, anywhere.

Nothing here keeps state, and nothing uses Python's salted `hash`, so a chain that is resumed, or
run in another process, gets the same numbers.
"""

from __future__ import annotations

import hashlib

import numpy as np

from convergebench.editor import EditRequest


def generator(request: EditRequest, salt: str = "") -> np.random.Generator:
    """Random numbers for one call.

    They are seeded by `request.seed`; when that is None, by the SHA-256 of the input's bytes, so an
    unseeded call is still repeatable. With one fixed seed for a whole chain every step draws the
    same numbers, and what they add piles up on the same pixels.
    """
    seed = request.inputs[-1].digest if request.seed is None else str(request.seed)
    return generator_of(f"{seed}/{salt}")


def generator_of(text: str) -> np.random.Generator:
    """Random numbers seeded by a text."""
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))


def chance(request: EditRequest, salt: str, *, each_attempt: bool = False) -> float:
    """A number in [0, 1) for one step of one chain; another one per attempt if asked for."""
    attempt = request.attempt if each_attempt else 0
    text = f"{request.chain}/{request.step}/{request.seed}/{attempt}/{salt}"
    digest = hashlib.sha256(text.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53
