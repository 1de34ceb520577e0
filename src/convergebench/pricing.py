"""Price rules: what a call may cost before it is made, and what it did cost by its usage.

A rule adds up what it names: dollars per image (by tier), per megapixel in and out, per picture
sent along, and per million tokens of each kind. Where an amount is not known before the call, the
catalogue gives `[low, expected, high]`; the budget reserves the high end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from convergebench.cycle import Record
from convergebench.editor import Price

Kind = Literal["text_in", "image_in", "text_out", "image_out"]
ANY: Final = "*"
"""The tier of a rule that does not depend on one."""
LETTERS_PER_TOKEN: Final = 4.0


def _ordered(amounts: tuple[float, ...]) -> tuple[float, ...]:
    if list(amounts) != sorted(amounts):
        raise ValueError("give low, expected and high in rising order")
    return amounts


Amount = Annotated[float, Field(ge=0)]
Spread = Amount | Annotated[tuple[Amount, Amount, Amount], AfterValidator(_ordered)]
"""A number, or its low, expected and high value."""


class PriceRule(Record):
    """Dollars of a call.

    Attributes:
        image: Dollars per picture made, by tier (`1K`, or a quality; `*` for any).
        reference: Dollars per picture sent.
        megapixel_in: Dollars per megapixel sent; a started megapixel counts whole.
        megapixel_out: Dollars per megapixel made; a started megapixel counts whole.
        tokens: Dollars per million tokens of each kind; reasoning counts as `text_out`.
        expect: Tokens of a call by tier and kind; `image_in` is per picture sent. `text_in` is
            estimated from the prompt and need not be given.
        source: Where the figures come from.
    """

    image: dict[str, Spread] = Field(default_factory=dict)
    reference: Amount = 0.0
    megapixel_in: Amount = 0.0
    megapixel_out: Amount = 0.0
    tokens: dict[Kind, Amount] = Field(default_factory=dict)
    expect: dict[str, dict[Kind, Spread]] = Field(default_factory=dict)
    source: str = ""

    def estimate(
        self,
        tier: str,
        *,
        made: tuple[int, int],
        sent: tuple[int, int],
        pictures: int = 1,
        prompt: str = "",
    ) -> Price | None:
        """What a call may cost, or None where the rule does not know that tier.

        Args:
            tier: Resolution or quality.
            made: Size of the picture asked for.
            sent: Size of the pictures sent.
            pictures: How many are sent.
            prompt: The instruction.
        """
        fixed = pictures * (self.reference + self.megapixel_in * _megapixels(sent))
        fixed += self.megapixel_out * _megapixels(made)
        total = [fixed, fixed, fixed]
        if self.image:
            found = self.image.get(tier, self.image.get(ANY))
            if found is None:
                return None
            total = [a + b for a, b in zip(total, _spread(found), strict=True)]
        if self.tokens:
            expected = self.expect.get(tier, self.expect.get(ANY))
            if expected is None:
                return None
            words = len(prompt) / LETTERS_PER_TOKEN
            amounts: dict[Kind, Spread] = {"text_in": (words / 2, words, words * 2), **expected}
            for kind, amount in amounts.items():
                times = pictures if kind == "image_in" else 1
                each = self.tokens.get(kind, 0.0) * times / 1e6
                total = [a + b * each for a, b in zip(total, _spread(amount), strict=True)]
        return Price(*total)

    def most_made(self, tier: str) -> int | None:
        """Tokens that an answer may have at the high end, to be sent as its limit."""
        expected = self.expect.get(tier, self.expect.get(ANY))
        if expected is None:
            return None
        made: tuple[Kind, ...] = ("text_out", "image_out")
        return math.ceil(sum(_spread(expected.get(kind, 0.0))[2] for kind in made))

    def of_tokens(self, used: Mapping[Kind, float]) -> float | None:
        """Dollars of the tokens that a provider counted; None where the rule prices none."""
        if not self.tokens:
            return None
        return sum(self.tokens.get(kind, 0.0) * count for kind, count in used.items()) / 1e6


def _megapixels(size: tuple[int, int]) -> int:
    return math.ceil(size[0] * size[1] / 2**20)


def _spread(amount: Spread) -> tuple[float, float, float]:
    return amount if isinstance(amount, tuple) else (amount, amount, amount)
