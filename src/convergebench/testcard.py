"""The test card: a picture and a damaged copy, with the same pixels on every machine.

Every metric states its value for this pair, and `convergebench doctor` measures it again where the
tool is installed. The home is a drawn scene; the frame is that scene blurred a little, with noise,
less contrast and a warm cast, computed in integers only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench.drawing import scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE: Final = 384
SCENE: Final = "still-life"


@cache
def testcard() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Home and frame, 384×384, read-only."""
    home = scene(SCENE, SIDE, SIDE)
    wide = np.pad(home, ((1, 1), (1, 1), (0, 0)), mode="edge").astype(np.int32)
    rows = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    blurred = (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:] + 8) // 16
    levels = 128 + (blurred - 128) * 9 // 10 + _grain(home.size).reshape(home.shape)
    levels += np.array([6, 1, -7], np.int32)
    frame = np.clip(levels, 0, 255).astype(np.uint8)
    for picture in (home, frame):
        picture.setflags(write=False)
    return home, frame


def _grain(count: int) -> NDArray[np.int32]:
    """Noise of −12 to 12 levels from a hash of the position, so no generator can change it."""
    state = np.arange(count, dtype=np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    levels: NDArray[np.int32] = (((word >> np.uint32(22)) ^ word) % np.uint32(25)).astype(np.int32)
    return levels - 12
