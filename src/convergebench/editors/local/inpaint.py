"""`inpaint`: MI-GAN as a neural remover, for edits that carry a region.

What is inside the region is taken out and painted anew from what is around it; the prompt is not
looked at. So it can obey an edit that removes something, and no other: an edit whose operation is
of another kind is refused, one without an operation is taken for a removal, and one without a
region fails. Of several inputs the last one is edited.

The file is the authors' whole pipeline as one ONNX graph: it takes a picture of any size (uint8)
and a mask (0 where to paint), cuts a square around the hole, resizes it to 512, paints, resizes
back, and blends over the hole's border, which reaches `MARGIN` pixel beyond the region. Nothing
further out changes: the pixels there are copied from the input, so they are equal exactly.

Sargsyan et al., MI-GAN, ICCV 2023: https://github.com/Picsart-AI-Research/MI-GAN.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from convergebench import weights
from convergebench.cycle import Box, pixel_box
from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.local.missing import lacking
from convergebench.errors import AccountBlocked, EditorFailed, EditorRefused, MetricUnavailable
from convergebench.frame import encode
from convergebench.network import Session, Stored
from convergebench.resources import Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION: Final = "1"
THREADS: Final = 2
"""On every machine: with another number some pixels may differ by a level."""
MARGIN: Final = 1
"""Pixels beyond the region that the blending of the seam may touch."""


class Inpaint:
    """The remover, opened when it is first used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return EditorSpec(
            name="inpaint",
            version=VERSION,
            description="MI-GAN: removes what is inside the edit's region, ignores the prompt",
            concurrency=1,
            seconds=1.5,
            price=0.0,
            deterministic=True,
            caveats=("is told where to edit", "can only remove"),
            abilities=Abilities(False, False, (), ("stateless",)),
            account="local/inpaint",
            lacks=lacking("migan"),
            resources=Resources(cpus=THREADS, memory=2 << 30),
        )

    def edit(self, request: EditRequest) -> EditReply:
        """Paint the region of the last input anew."""
        operation = request.edit.operation
        if operation is not None and operation.kind != "remove":
            raise EditorRefused(f"it can only remove, and this edit is to {operation.kind}")
        if request.region is None:
            raise EditorFailed(
                "it needs a region to remove something from, and this edit has none: "
                "use it with cycles whose edits carry a region"
            )
        pixels = request.inputs[-1].pixels
        with self._lock:
            try:
                network = self._network
            except MetricUnavailable as error:
                raise AccountBlocked(str(error)) from error
            made = removed(network, pixels, request.region)
        height, width = pixels.shape[:2]
        return EditReply(
            encode(made),
            model="migan",
            parameters={"region": list(request.region), "margin": MARGIN},
            cost=0.0,
            caveats=self.spec.caveats,
            size=f"{width}x{height}",
            format="png",
        )

    @cached_property
    def _network(self) -> Session:
        return Session(Stored(weights.find("migan")), threads=THREADS)


def open_editor() -> Inpaint:
    """MI-GAN: removes what is inside the edit's region, ignores the prompt."""
    return Inpaint()


def removed(network: Session, pixels: NDArray[np.uint8], region: Box) -> NDArray[np.uint8]:
    """Pixels with a region painted anew; further out than the margin they are the same."""
    height, width = pixels.shape[:2]
    x0, y0, x1, y1 = pixel_box(region, width, height)
    mask = np.full((1, 1, height, width), 255, np.uint8)
    mask[..., y0:y1, x0:x1] = 0
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
    (made,) = network(image=image, mask=mask)
    left, top = max(0, x0 - MARGIN), max(0, y0 - MARGIN)
    right, bottom = x1 + MARGIN, y1 + MARGIN
    result = pixels.copy()
    result[top:bottom, left:right] = made[0].transpose(1, 2, 0)[top:bottom, left:right]
    return result
