"""Which size to ask a model for: always an explicit one, the same at every step of a chain.

It follows from the size of the chain's source, not from the last frame: a model that drifts must
not be asked for its own drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from convergebench.cycle import Record

PIXELS: Final = {"1K": 2**20, "2K": 2**22, "4K": 2**24}
"""Area that a resolution stands for, where a model takes free sizes."""


@dataclass(frozen=True)
class Size:
    """A size to ask for, and the words some providers want instead of numbers."""

    width: int
    height: int
    ratio: str
    resolution: str

    def text(self, by: str = "x") -> str:
        """As `1024x1024`."""
        return f"{self.width}{by}{self.height}"


class SizeRule(Record):
    """The sizes of a model.

    Attributes:
        kind: `table`: some ratios, each with its size at 1K; `free`: any size within limits;
            `none`: the model decides, nothing can be asked for.
        table: Size at 1K by ratio, as `"3:2" = "1264x848"`.
        scale: How many times larger than at 1K each resolution is, for tables.
        multiple: What both sides must be divisible by, for free sizes.
        low: Smallest area in pixels, for free sizes.
        high: Largest area in pixels, for free sizes.
        steepest: Largest ratio of the sides, for free sizes.
        longest: Longest side, for free sizes; 0 is no limit.
    """

    kind: Literal["table", "free", "none"]
    table: dict[str, Annotated[str, Field(pattern=r"^\d+x\d+$")]] = Field(default_factory=dict)
    scale: dict[str, int] = Field(default_factory=lambda: {"1K": 1})
    multiple: int = 16
    low: int = 1
    high: int = PIXELS["4K"]
    steepest: float = 3.0
    longest: int = 0

    @model_validator(mode="after")
    def _filled(self) -> Self:
        if self.kind == "table" and not self.table:
            raise ValueError("a size rule of kind 'table' needs a table")
        return self

    def choose(self, width: int, height: int, resolution: str) -> Size | None:
        """The size to ask for, given the source's; None where nothing can be asked for.

        `native` is the source's own size where the model can make it, else 1K.
        """
        if self.kind == "none":
            return None
        if self.kind == "table":
            tier = "1K" if resolution == "native" else resolution
            ratio = min(self.table, key=lambda r: abs(math.log(_ratio(r) * height / width)))
            times = self.scale[tier]
            w, h = (int(side) * times for side in self.table[ratio].split("x"))
            return Size(w, h, ratio, tier)
        return self._free(width, height, resolution)

    def _free(self, width: int, height: int, resolution: str) -> Size:
        ratio = min(max(width / height, 1 / self.steepest), self.steepest)
        area = float(PIXELS.get(resolution, width * height))
        area = min(max(area, self.low), self.high)
        step = self.multiple
        w = max(step, round(math.sqrt(area * ratio) / step) * step)
        h = max(step, round(math.sqrt(area / ratio) / step) * step)
        while w * h < self.low:  # rounding must not leave the limits
            w, h = w + step, h + step
        while w * h > self.high and min(w, h) > step:
            w, h = w - step, h - step
        w, h = self._fitted(w, h)
        common = math.gcd(w, h)
        tier = resolution if resolution in PIXELS else "native"
        return Size(w, h, f"{w // common}:{h // common}", tier)

    def _fitted(self, width: int, height: int) -> tuple[int, int]:
        """A size whose sides are neither too long nor, by rounding, too far apart."""
        step, sides = self.multiple, [width, height]
        if self.longest and max(sides) > self.longest:
            times = self.longest / max(sides)
            fit = (max(step, round(side * times / step) * step) for side in sides)
            sides = [min(self.longest, side) for side in fit]
        while max(sides) > self.steepest * min(sides):
            long, short = sides.index(max(sides)), sides.index(min(sides))
            if (sides[long] - step) * sides[short] >= self.low:
                sides[long] -= step
            else:
                sides[short] += step
        return sides[0], sides[1]


def _ratio(text: str) -> float:
    across, _, down = text.partition(":")
    return float(across) / float(down)
