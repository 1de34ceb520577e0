"""The two pictures a full-reference metric compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convergebench.errors import InputError

if TYPE_CHECKING:
    from convergebench.metric import Picture, StepView


def pair(view: StepView) -> tuple[Picture, Picture]:
    """Reference and frame of a view.

    Raises:
        InputError: There is no reference, or the sizes of pictures and mask differ.
    """
    reference, frame = view.reference, view.frame
    if reference is None:
        raise InputError("a full-reference metric needs a reference, and this view has none")
    if reference.pixels.shape != frame.pixels.shape:
        raise InputError(
            f"expected a frame of the reference's size {_size(reference)}, got {_size(frame)};"
            " resample it first"
        )
    if view.mask is not None and view.mask.shape != frame.pixels.shape[:2]:
        height, width = view.mask.shape
        raise InputError(
            f"expected a mask of the frame's size {_size(frame)}, got {width}×{height}"
        )
    return reference, frame


def _size(picture: Picture) -> str:
    width, height = picture.size
    return f"{width}×{height}"
