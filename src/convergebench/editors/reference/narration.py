"""A reasoning summary for reference editors, so that self-evaluation can be tried without a key.

It has the form of real ones (titled sections, the last of them satisfied with the result) and their
weakness: the noise of the given picture is mentioned only when there is a lot of it. What it says
follows from the request alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from convergebench.editor import EditRequest
from convergebench.editors.reference.media import luma
from convergebench.editors.reference.seeding import chance

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTICED: Final = 20.0
"""Standard deviation of the noise, in 8-bit levels, that it notices, give or take a quarter."""
_KERNEL: Final = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)


def summary(request: EditRequest) -> str:
    """What the editor says about the call."""
    told = [
        "**Looking at the Picture**\nI go over the given image and list what it shows and where.",
        f"**Planning the Edit**\nThe task reads: {request.prompt} I keep every part in its place.",
    ]
    threshold = NOTICED * (0.75 + 0.5 * chance(request, "narration"))
    if noise_level(luma(request.inputs[-1].pixels)) > threshold:
        told.append(
            "**Noticing the Grain**\nThe given image is noisy: there is grain over all of it, "
            "which I copy as it is."
        )
    told.append("**Checking the Result**\nThe output matches the given image. All is as asked.")
    return "\n\n".join(told)


def noise_level(tone: NDArray[np.float32]) -> float:
    """Immerkær's estimate of the noise's standard deviation, from a mask that ignores slopes."""
    if min(tone.shape) < 3:
        return 0.0
    inner = cv2.filter2D(tone, cv2.CV_32F, _KERNEL)[1:-1, 1:-1]
    return float(np.abs(inner).mean()) * math.sqrt(math.pi / 2) / 6
