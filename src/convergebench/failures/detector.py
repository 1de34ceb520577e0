"""The detector seam: a definition, a threshold, and one measurement of one situation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from convergebench.cycle import Box
from convergebench.errors import AccountBlocked, StoreDamaged, StoreError
from convergebench.failures.situation import Situation
from convergebench.metric import NoScore

Level = Literal["image", "object", "sub-object"]


@dataclass(frozen=True)
class Sighting:
    """What a detector measured on a frame.

    Attributes:
        value: The number that the threshold is for.
        detail: What was seen, in words, as `3.1 % of the bottom`.
        box: Where, as shares of the frame's width and height.
        more: Other numbers worth keeping.
    """

    value: float
    detail: str = ""
    box: Box | None = None
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Detector:
    """One entry of the failure taxonomy.

    Attributes:
        name: As asked for on the command line.
        version: Raised whenever a value, the threshold or a detail can change.
        level: What it is about: the whole picture, an object, or part of an object.
        title: One line for lists and legends.
        definition: What is measured, and when it counts as failed.
        unit: Unit of value and threshold.
        threshold: Where failing begins; the threshold itself still passes.
        higher_fails: Whether values above the threshold fail, or those below.
        applies: "" where it can be measured, otherwise why not. It looks at records, not pixels.
        measure: Measures a situation it applies to.
        judged: Whether it asks a judge. Then it runs in the calling process, whose budget holds,
            and the judge's name is part of the version of its rows.
        defect: Whether failing is a defect; otherwise it is only a fact worth counting.
    """

    name: str
    version: str
    level: Level
    title: str
    definition: str
    unit: str
    threshold: float
    higher_fails: bool
    applies: Callable[[Situation], str]
    measure: Callable[[Situation], Sighting | NoScore]
    judged: bool = False
    defect: bool = True

    @property
    def rule(self) -> str:
        """When it fails, as `> 4 levels`."""
        sign = ">" if self.higher_fails else "<"
        return f"{sign} {self.threshold:g} {self.unit}".strip()

    def failed(self, value: float) -> bool:
        """Whether a value is beyond the threshold."""
        return value > self.threshold if self.higher_fails else value < self.threshold

    def row_version(self, judge: str | None) -> str:
        """The version in a row: the judge's name is part of it where one is asked."""
        return f"{self.version}+{judge}" if self.judged and judge else self.version

    def look(self, situation: Situation) -> Sighting | NoScore:
        """Measure; whatever goes wrong with one frame is a reason, never the end of the run.

        Raises:
            AccountBlocked: The judge's account can make no calls now.
            StoreError: The run can be read no longer.
        """
        try:
            found = self.measure(situation)
        except AccountBlocked:
            raise
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreDamaged):
                raise
            # A picture nobody thought of must not end the run.
            return NoScore(f"{type(error).__name__}: {error}")
        if isinstance(found, Sighting) and not math.isfinite(found.value):
            return NoScore("not a number")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The card, for `--json`."""
        return {
            "name": self.name,
            "version": self.version,
            "level": self.level,
            "title": self.title,
            "definition": self.definition,
            "unit": self.unit,
            "threshold": self.threshold,
            "higher_fails": self.higher_fails,
            "judged": self.judged,
            "defect": self.defect,
        }
