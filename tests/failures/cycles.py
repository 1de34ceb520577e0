"""Cycles that the tests of detectors use."""

from __future__ import annotations

from convergebench.cycle import Cycle, Edit, Operation

COPY = Cycle(name="copy", kind="replicate", edit=(Edit(prompt="Copy the picture."),))
MIRROR = Cycle(
    name="mirror",
    kind="mirror",
    edit=(Edit(prompt="Mirror it.", operation=Operation(kind="flip", axis="horizontal")),),
)
ROTATE = Cycle(
    name="rotate",
    kind="rotate",
    edit=(Edit(prompt="Turn it.", operation=Operation(kind="turn", quarters=1)),),
)
RECOLOUR = Cycle(
    name="recolour",
    kind="recolour",
    edit=(
        Edit(prompt="Make it grey.", operation=Operation(kind="grey")),
        Edit(prompt="Colour it.", operation=Operation(kind="colour")),
    ),
)
