"""What a local editor lacks on this machine: its weights, in one sentence."""

from __future__ import annotations

from convergebench.weights.entries import catalogue
from convergebench.weights.lookup import Located, locate


def lacking(name: str) -> str:
    """Why a set of weights cannot be used here and what to do, or nothing when it can."""
    for member in catalogue().members(name):
        found = locate(member)
        if not isinstance(found, Located):
            return f"{found} Run `convergebench weights pull {name}`."
    return ""
