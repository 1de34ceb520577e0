"""Axis-parallel maps between two pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""
Size = tuple[int, int]
"""Width, height."""


@dataclass(frozen=True)
class Warp:
    """Continuous coordinates (0 is the left edge) of one picture to those of another."""

    sx: float
    sy: float
    tx: float
    ty: float

    def box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """Where a rectangle goes."""
        return (
            self.sx * left + self.tx,
            self.sy * top + self.ty,
            self.sx * right + self.tx,
            self.sy * bottom + self.ty,
        )

    def then(self, fx: float, fy: float) -> Warp:
        """This, and then multiplied."""
        return Warp(self.sx * fx, self.sy * fy, self.tx * fx, self.ty * fy)

    def after(self, fx: float, fy: float) -> Warp:
        """First multiplied, and then this."""
        return replace(self, sx=self.sx * fx, sy=self.sy * fy)

    def shown(self, home: Size, frame: Size) -> Box:
        """The part of the first picture that the second one shows, in pixels of the first."""
        left, top = -self.tx / self.sx, -self.ty / self.sy
        right, bottom = (frame[0] - self.tx) / self.sx, (frame[1] - self.ty) / self.sy
        # what rounding leaves of a whole pixel must not cost that pixel
        left, top, right, bottom = (round(edge, 6) for edge in (left, top, right, bottom))
        return (
            max(0.0, left),
            max(0.0, top),
            min(float(home[0]), right),
            min(float(home[1]), bottom),
        )
