"""Layouts that hold a run and not only its pictures: they make the run again, as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from convergebench.errors import ImportProblem
from convergebench.importer.found import Finds, Layout, Look, Wishes
from convergebench.importer.result import ImportResult


class Restore(Protocol):
    """Makes a run again."""

    def __call__(
        self,
        look: Look,
        why: str,
        wishes: Wishes,
        to: Path | None,
        *,
        dry_run: bool,
        observe: Callable[[int, int], None] | None,
    ) -> ImportResult:
        """Make the run at `to`, or only look whether it could be. Raises ImportProblem."""


def _unread(look: Look, wishes: Wishes) -> Finds:
    raise ImportProblem(f"{look.root} holds a whole run, which is not read as pictures of others")


def _cannot(*_: object, **__: object) -> ImportResult:
    raise ImportProblem("this layout does not say how a run is made again")


@dataclass(frozen=True)
class Whole(Layout):
    """A layout that says itself what everything in it is, and so goes before all others.

    Attributes:
        restore: Makes the run again; what is found is not assembled from parts.
    """

    read: Callable[[Look, Wishes], Finds] = _unread
    restore: Restore = _cannot
