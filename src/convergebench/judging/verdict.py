"""Votes and what they come to. A failure is null and counted; it never stands for an answer."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field

from convergebench.cycle import Record
from convergebench.table import Table
from convergebench.wording import counted

Failure = Literal[
    "", "refused", "malformed", "off-schema", "cut", "failed", "lost", "unavailable", "over-budget"
]
"""Why a sample has no answer. `cut` ran into the limit of tokens; `lost` may have been billed."""

UNPAID: Final[frozenset[Failure]] = frozenset(("failed", "unavailable", "over-budget"))
"""Failures that cost nothing: they are not kept, and asked again next time."""


class Identity(Record):
    """Who was asked what: everything that can move an answer.

    Attributes:
        provider: Who serves the model.
        model: The model that was asked for.
        address: Where, when it is not the provider's own address.
        parameters: What was sent besides text and pictures.
        template: The template's name and version.
        form: Version of how questions are put and answers read.
    """

    provider: str
    model: str
    address: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    template: str
    form: int


class Vote(Record):
    """One sample: a call and what it came to.

    Attributes:
        key: Its content hash.
        sample: Which sample it is, from 0.
        swapped: Whether the two pictures were shown in the other order.
        answer: As if they had not been; null when there is none.
        failure: Why there is none.
        detail: The same in the provider's or our words.
        reason: What the judge gave as its reason.
        text: Its words.
        model: The model that the server says has answered.
        request_id: The server's name of the call.
        seed: The seed sent, if any.
        structured: Whether the server was held to the schema.
        usage: Tokens as the server counts them.
        cost: Dollars, or null when nobody knows.
        basis: How they are known: `reported`, from `usage`, the price `rule`, or `assumed`.
        seconds: How long it took.
    """

    key: str
    sample: int
    swapped: bool = False
    answer: str | float | None = None
    failure: Failure = ""
    detail: str = ""
    reason: str = ""
    text: str = ""
    model: str = ""
    request_id: str = ""
    seed: int | None = None
    structured: bool = True
    usage: dict[str, Any] = Field(default_factory=dict)
    cost: float | None = None
    basis: Literal["", "reported", "usage", "rule", "assumed"] = ""
    seconds: float = 0.0


class Orders(Record):
    """What each order of a pair came to; null where one has no answer.

    Attributes:
        given: The answer to the pictures as given.
        swapped: The answer to them in the other order, as if it had been the first.
        agree: Whether the two are the same; null for numbers.
        gap: How far apart they are, for numbers.
    """

    given: str | float | None
    swapped: str | float | None
    agree: bool | None = None
    gap: float | None = None


class Verdict(Record):
    """What the votes on one question come to.

    Attributes:
        answer: The majority, or the mean of numbers; null without one.
        note: Why it is null.
        identity: Who was asked what.
        models: The models that answered, as the server names them.
        k: Samples asked for (per order).
        asked: Samples in all.
        answered: Samples with an answer.
        failures: Samples without, by reason.
        counts: Votes by answer; empty for numbers.
        agreement: Share of the answered samples that the commonest answer has; null for numbers.
        variance: Sample variance of numbers, null below two.
        orders: For pairwise questions, what each order came to.
        cost: Dollars of all samples, whenever they were paid.
        unpriced: Samples that were made and nobody knows the cost of.
        paid: Dollars of the calls made just now.
        votes: The samples.
    """

    answer: str | float | None
    note: str = ""
    identity: Identity
    models: tuple[str, ...]
    k: int
    asked: int
    answered: int
    failures: dict[str, int]
    counts: dict[str, int]
    agreement: float | None
    variance: float | None
    orders: Orders | None
    cost: float
    unpriced: int
    paid: float
    votes: tuple[Vote, ...]

    @property
    def table(self) -> Table:
        """The votes, one row each."""
        rows = [
            (
                vote.sample,
                "swapped" if vote.swapped else "given",
                vote.answer,
                vote.failure,
                vote.model,
                vote.cost,
            )
            for vote in self.votes
        ]
        who = f"{self.identity.provider}:{self.identity.model}, {self.identity.template}"
        said = "no answer" if self.answer is None else _said(self.answer)
        told = f"{said} ({self.answered} of {counted(self.asked, 'sample')})"
        notes = [self.note] if self.note else []
        if self.orders is not None and self.orders.agree is False:
            notes.append("The two orders of the pictures disagree.")
        heads = ("sample", "order", "answer", "failure", "model", "dollars")
        return Table(f"{who}: {told}", heads, rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return self.model_dump(mode="json")


def tally(
    votes: Sequence[Vote], *, numeric: bool, pairwise: bool
) -> tuple[dict[str, Any], str | float | None]:
    """What votes come to: the fields of a Verdict that follow from them alone, and the answer."""
    given = [vote.answer for vote in votes if vote.answer is not None]
    answer, note = _decided(given, numeric)
    if not given:
        note = "no sample has an answer" if votes else "nothing was asked"
    counts = {} if numeric else dict(Counter(map(str, given)).most_common())
    numbers = [float(value) for value in given] if numeric else []
    fields: dict[str, Any] = {
        "answer": answer,
        "note": note,
        "models": tuple(sorted({vote.model for vote in votes if vote.model})),
        "asked": len(votes),
        "answered": len(given),
        "failures": dict(Counter(vote.failure for vote in votes if vote.failure).most_common()),
        "counts": counts,
        "agreement": max(counts.values()) / len(given) if counts else None,
        "variance": statistics.variance(numbers) if len(numbers) > 1 else None,
        "orders": _orders(votes, numeric) if pairwise else None,
    }
    return fields, answer


def _decided(given: Sequence[str | float], numeric: bool) -> tuple[str | float | None, str]:
    """The mean of numbers or the most votes; nothing where two answers have the most."""
    if not given:
        return None, ""
    if numeric:
        return math.fsum(float(value) for value in given) / len(given), ""
    ranked = Counter(map(str, given)).most_common()
    top = [word for word, count in ranked if count == ranked[0][1]]
    if len(top) > 1:
        return None, f"a tie: {' and '.join(sorted(top))} have {ranked[0][1]} each"
    return top[0], ""


def _orders(votes: Sequence[Vote], numeric: bool) -> Orders:
    each = [
        [v.answer for v in votes if v.swapped is swapped and v.answer is not None]
        for swapped in (False, True)
    ]
    one, other = (_decided(given, numeric)[0] for given in each)
    if one is None or other is None:
        return Orders(given=one, swapped=other)
    if numeric:
        return Orders(given=one, swapped=other, gap=abs(float(one) - float(other)))
    return Orders(given=one, swapped=other, agree=one == other)


def _said(answer: str | float) -> str:
    return answer if isinstance(answer, str) else f"{answer:.4g}"
