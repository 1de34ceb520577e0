"""What a rating study can ask, and the words it asks with unless told otherwise."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from convergebench.cycle import Record

Design = Literal["absolute", "single", "pairs", "labels"]
"""`absolute`: all methods of one image on a page, each scored. `single`: one picture at a time,
scored. `pairs`: two pictures, one is chosen. `labels`: all methods of one image, yes or no each."""

DESIGNS: Final[tuple[Design, ...]] = get_args(Design)
MOST_SLOTS: Final = 26
"""Pictures on one page: there are so many letters."""


MOST_STEPS: Final = 100
"""Numbers that a scale may have, besides its lowest."""

MOST_TITLE: Final = 200
MOST_QUESTION: Final = 500
"""Letters."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Scale(Record):
    """The numbers that may be given, and what its ends are called."""

    low: Finite = 0
    high: Finite = 5
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    low_label: str = "very bad"
    high_label: str = "excellent"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        steps = (self.high - self.low) / self.step
        if self.high <= self.low or abs(steps - round(steps)) > 1e-9:
            raise ValueError(
                f"a scale goes up from low to high in whole steps, got {self.low:g} to "
                f"{self.high:g} by {self.step:g}"
            )
        if steps > MOST_STEPS:
            raise ValueError(f"a scale has at most {MOST_STEPS} steps, got {steps:g}")
        return self

    def has(self, value: float) -> bool:
        """Whether a number is on the scale."""
        steps = (value - self.low) / self.step
        return self.low <= value <= self.high and abs(steps - round(steps)) < 1e-9

    def nearest(self, value: float) -> float:
        """The number of the scale that is meant: 0.3 where a browser counted 0.1 + 0.2."""
        return round(self.low + round((value - self.low) / self.step) * self.step, 9)


class Question(Record):
    """One question: what its answers are called in tables, and its words on the page."""

    id: Literal["quality", "preference", "infidelity", "over-generation"]
    text: Annotated[str, Field(min_length=1, max_length=MOST_QUESTION)]


QUESTIONS: Final[dict[Design, tuple[Question, ...]]] = {
    "absolute": (
        Question(
            id="quality",
            text="How good is each picture, as a repaired version of the input?",
        ),
    ),
    "single": (Question(id="quality", text="How good is this picture?"),),
    "pairs": (Question(id="preference", text="Which of the two pictures is better?"),),
    "labels": (
        Question(
            id="infidelity",
            text="Is something in it that should not be, gone, or bent out of shape?",
        ),
        Question(
            id="over-generation",
            text="Does it show invented detail that the input does not support?",
        ),
    ),
}
"""The questions of each design."""

INSTRUCTIONS: Final[dict[Design, str]] = {
    "absolute": (
        "You see a picture, and several repaired versions of it. Give each version a number: "
        "faithful to the picture and pleasant to look at is good. Zoom in where you are not sure."
    ),
    "single": (
        "You see one picture at a time. Give it a number: faithful and pleasant to look at is "
        "good. Zoom in where you are not sure."
    ),
    "pairs": (
        "You see two versions of one picture. Choose the better one: faithful to the picture and "
        "pleasant to look at. Zoom in where you are not sure."
    ),
    "labels": (
        "You see a picture, and several repaired versions of it. Say of each whether it is still "
        "the same scene, and whether detail was invented. Zoom in where you are not sure."
    ),
}

TITLE: Final = "Rating pictures"
CONSENT: Final = (
    "Taking part is voluntary, and you may stop at any time. Your answers, the time you take and "
    "any comment you write are stored under a number, not under your name."
)
