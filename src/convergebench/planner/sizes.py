"""How large sources are, and the frames that calls will ask for."""

from __future__ import annotations

from collections.abc import Mapping

from convergebench.chain import ChainKey
from convergebench.cycle import Cycle
from convergebench.editor import Asked
from convergebench.frame import Frame
from convergebench.planner.job import Extent


class Sizes:
    """Bytes and, only where they are needed, width and height of sources."""

    def __init__(self, origins: Mapping[str, Frame | Extent]) -> None:
        self._origins = origins
        self._known: dict[str, tuple[int, int]] = {}

    def bytes(self, name: str) -> int:
        """Bytes of a source."""
        origin = self._origins[name]
        return origin.bytes if isinstance(origin, Extent) else len(origin.data)

    def pixels(self, name: str) -> tuple[int, int]:
        """Its width and height. Decoded pixels are not kept: a suite's would fill the memory."""
        if name not in self._known:
            origin = self._origins[name]
            told = (
                origin
                if isinstance(origin, Extent)
                else Frame(origin.data, digest=origin.digest).facts
            )
            self._known[name] = (told.width, told.height)
        return self._known[name]


def asked_of(key: ChainKey, cycle: Cycle, step: int, size: tuple[int, int]) -> Asked:
    """The call that makes a frame, as far as its price depends on it."""
    return Asked(
        settings=key.settings,
        step=step,
        width=size[0],
        height=size[1],
        prompt=cycle.edit_at(step).wording(key.settings.phrasing, cycle.round_of(step)),
        inputs=len(cycle.inputs_at(step)),
    )
