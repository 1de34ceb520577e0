"""Providers as loopback servers: each speaks its documented protocol and counts what it bills.

A provider's test module subclasses `Speaker`; the battery in `tests/editors/providers/` runs every
speaker through every fate, and through chains of 100 steps.
"""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
from PIL import Image

from tests.support.loopback import Loopback, Received, Reply

FATES = (
    "ok",
    "limited",  # 429 without a delay
    "limited-delay",  # 429 that asks for a delay (say 0.05 s, where the protocol can)
    "broken",  # 500
    "overloaded",  # 503
    "cut",  # billed; the connection is cut in the middle of the body
    "no-image",
    "truncated",  # half an image file, whole otherwise
    "mislabelled",  # a JPEG said to be a PNG
    "oversize",  # a body larger than the limit (set the limit low in the test)
)
POLLING = (
    "slow",  # pending for a few polls
    "lost",  # the task vanishes after it was begun; billed
    "poll-broken",  # a poll answers 500 once
    "redirect-private",  # the picture's address redirects to a private network
    "download-cut",  # the first download is cut in the middle
)
"""Fates that only polling providers, or those that give an address, can meet."""


class Speaker:
    """A provider's server.

    Subclasses set `family`, `editor` and `keys`, `fates` beyond the plain ones and one
    `refused-…` fate for each documented form of refusal, and implement `answer`.

    `fate()` is to be taken once per edit that is begun (not per poll or download); `bill()` is
    called for every edit that the provider would charge for.
    """

    family: ClassVar[str]
    editor: ClassVar[str]
    """The editor's whole name, a cheap model."""
    variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables to set to the server's address."""
    key_variable: ClassVar[str]
    fates: ClassVar[tuple[str, ...]] = FATES
    refusals: ClassVar[tuple[str, ...]] = ()
    url_suffix: ClassVar[str] = ""

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        self._schedule = schedule or (lambda _number: "ok")
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self.billed = 0
        self.begun: list[str] = []
        self.server = Loopback(self._guarded)

    def _guarded(self, request: Received) -> Reply:
        with self._lock:  # one at a time, so that counts are exact; delays happen outside
            return self.answer(request)

    def answer(self, request: Received) -> Reply:
        raise NotImplementedError

    def fate(self) -> str:
        """What is to happen to the edit that has just been asked for."""
        number = next(self._numbers)
        fate = self._schedule(number)
        self.begun.append(fate)
        return fate

    def bill(self) -> None:
        self.billed += 1

    def environment(self, key: str = "test-key-not-a-secret") -> Mapping[str, str]:
        """What a process needs to talk to this server."""
        urls = {name: self.server.url + self.url_suffix for name in self.variables}
        return {self.key_variable: key, **urls}

    @staticmethod
    def picture(width: int = 64, height: int = 64, kind: str = "PNG", seed: int = 0) -> bytes:
        """A noisy picture of that size."""
        draw = np.random.default_rng(seed)
        pixels = draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, kind)
        return out.getvalue()

    def frame(self, fate: str, width: int = 64, height: int = 64) -> bytes:
        """The picture that a fate sends; another one each time."""
        kind = "JPEG" if fate == "mislabelled" else "PNG"
        data = self.picture(width, height, kind, seed=len(self.begun))
        if fate == "truncated":
            return data[: len(data) // 2]
        return data

    def __enter__(self) -> Speaker:
        self.server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.__exit__(*exc)
