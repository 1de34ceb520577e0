"""A judge: asks a question k times, keeps every vote, and says what they come to."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from convergebench.editor import Price
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    EditorLost,
    EditorUnavailable,
    SettingsError,
    scrub,
)
from convergebench.judging.cache import Answered
from convergebench.judging.catalogue import JudgeModel, Provider
from convergebench.judging.client import Answer, Asking, Client
from convergebench.judging.question import FORM, BadAnswer, Number, Question, Sent
from convergebench.judging.verdict import UNPAID, Failure, Identity, Verdict, Vote, tally
from convergebench.money.budget import Budget
from convergebench.pricing import ANY

FIRST_WAIT: Final = 1.0
LONGEST_BACKOFF: Final = 30.0
_KEPT: Final = 4000
"""Letters of an answer that are kept."""


@dataclass(frozen=True)
class Patience:
    """How long a judge waits.

    Attributes:
        timeout: Seconds for one call.
        deadline: Seconds for one sample, with all calls that were not billed and are tried again.
    """

    timeout: float = 120.0
    deadline: float = 300.0


class Judge:
    """A model that answers questions about pictures. Safe to use from several threads.

    Args:
        provider: Who serves it.
        model: Which model.
        address: Checked base address.
        client: Asks it.
        folder: Where answers are kept; without one every question is paid for anew.
        budget: Reserved from before each call; without one nothing limits what is spent.
        retry_failed: Ask again where all that is kept of a sample is a failure.
        patience: How long to wait.
    """

    def __init__(
        self,
        provider: Provider,
        model: JudgeModel,
        address: str,
        client: Client,
        *,
        folder: Path | None = None,
        budget: Budget | None = None,
        retry_failed: bool = False,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
    ) -> None:
        if budget is not None and model.price is None:
            raise SettingsError(
                f"{model.name} has no price, so a budget cannot hold. Give it one in a catalogue "
                "file (docs/guides/judges.md); an empty price is free."
            )
        self.name: Final = model.name
        self.vendor: Final = model.vendor
        self._provider = provider
        self._model = model
        self._address = address
        self._client = client
        self._answered = Answered(folder) if folder is not None else None
        self._budget = budget
        self._retry_failed = retry_failed
        self._patience = patience
        self._blocked: str = ""

    def identity(self, question: Question) -> Identity:
        """Who is asked what."""
        template = question.template
        sent = {self._provider.limit: self._model.max_tokens, **self._model.parameters}
        return Identity(
            provider=self._provider.name,
            model=self._model.id,
            address="" if self._address == self._provider.url else self._address,
            parameters=sent,
            template=f"{template.id}@{template.version}",
            form=FORM,
        )

    def price(self, question: Question) -> Price | None:
        """Dollars of one sample, or None when nobody knows."""
        if self._model.price is None:
            return None
        rule = self._model.price_up_to(question.text)
        return rule.estimate(ANY, made=(1, 1), sent=(1, 1), pictures=len(question.pictures))

    def ask(self, question: Question, *, k: int = 1) -> Verdict:
        """What k samples come to; pairwise questions get k in each order.

        A sample that has no answer is null and counted, whatever the reason.

        Raises:
            AccountBlocked: The account can make no calls now; what was answered so far is kept.
            SettingsError: The question or the judge's settings cannot be used.
            StoreError: Answers cannot be kept.
        """
        if k < 1:
            raise SettingsError(f"k must be at least 1, got {k}")
        identity = self.identity(question)
        orders = (False, True) if question.template.pairwise else (False,)
        samples = [(sample, swapped) for sample in range(k) for swapped in orders]
        votes: list[Vote] = []
        cost, paid, unpriced = 0.0, 0.0, 0
        for sample, swapped in samples:
            records, fresh = self._sample(question, identity, sample, swapped)
            votes.append(records[-1])
            billed = [record for record in records if record.failure not in UNPAID]
            cost += sum(record.cost or 0.0 for record in billed)
            unpriced += sum(record.cost is None for record in billed)
            paid += (records[-1].cost or 0.0) if fresh else 0.0
        numeric = isinstance(question.template.answer, Number)
        fields, _ = tally(votes, numeric=numeric, pairwise=question.template.pairwise)
        return Verdict(
            identity=identity,
            k=k,
            cost=cost,
            unpriced=unpriced,
            paid=paid,
            votes=tuple(votes),
            **fields,
        )

    def _sample(
        self, question: Question, identity: Identity, sample: int, swapped: bool
    ) -> tuple[list[Vote], bool]:
        """Every record of a sample, the one that counts last, and whether it was just made."""
        pictures = question.sent[::-1] if swapped else question.sent
        key = _key(question, identity, pictures, sample, swapped)
        if self._answered is None:
            return [self._asked(question, key, pictures, sample, swapped)], True
        found = self._answered.find(key)
        if self._enough(found):
            return found, False
        with self._answered.asking(key):
            found = self._answered.find(key)  # another may have asked meanwhile
            if self._enough(found):
                return found, False
            vote = self._asked(question, key, pictures, sample, swapped)
            if vote.failure not in UNPAID:
                self._answered.keep(vote)
            return [*found, vote], True

    def _enough(self, found: list[Vote]) -> bool:
        return bool(found) and not (self._retry_failed and found[-1].answer is None)

    def _asked(
        self, question: Question, key: str, pictures: tuple[Sent, ...], sample: int, swapped: bool
    ) -> Vote:
        """Ask once, and again only what was not billed."""
        if self._blocked:
            raise AccountBlocked(self._blocked)
        seed = int(key[:8], 16) >> 1 if self._provider.seeds else None
        vote = Vote(key=key, sample=sample, swapped=swapped, seed=seed)
        price = self.price(question)
        reserved = price.high if price else 0.0
        # With an event it waits for calls in flight, which may turn out cheaper than reserved.
        if self._budget is not None and not self._budget.reserve(reserved, threading.Event()):
            told = f"{reserved:.4g} dollars more would pass the budget"
            return vote.model_copy(update={"failure": "over-budget", "detail": told})
        spent = reserved  # if anything unforeseen ends the call, it may have been billed
        begun = time.monotonic()
        try:
            asking = Asking(_parts(question, pictures), question.template.schema_, seed)
            try:
                answer = self._persist(asking)
            except EditorUnavailable as error:
                spent = 0.0
                return _failed(vote, "unavailable", error, begun, 0.0)
            except EditorFailed as error:
                spent = 0.0
                return _failed(vote, "failed", error, begun, 0.0)
            except EditorLost as error:
                return _failed(vote, "lost", error, begun, price.high if price else None)
            except (AccountBlocked, SettingsError) as error:
                spent = 0.0
                if isinstance(error, AccountBlocked):
                    self._blocked = f"{self.name} is not asked any more: {error}"
                raise
            made = self._read(question, vote, answer, price)
            spent = made.cost or 0.0
            return made.model_copy(update={"seconds": round(time.monotonic() - begun, 3)})
        finally:
            if self._budget is not None:
                self._budget.settle(reserved, spent)

    def _persist(self, asking: Asking) -> Answer:
        """Ask until there is an answer or the deadline passes; what may be billed, once."""
        until = time.monotonic() + self._patience.deadline
        attempt = 0
        while True:
            attempt += 1
            left = max(0.001, until - time.monotonic())
            try:
                return self._client.ask(asking, min(self._patience.timeout, left))
            except EditorUnavailable as error:
                wait = _wait(attempt, error.retry_after)
                if time.monotonic() + wait >= until:
                    tries = f" ({attempt} attempts)" if attempt > 1 else ""
                    error.args = (f"{error}{tries}",)
                    raise
                time.sleep(wait)

    def _read(self, question: Question, vote: Vote, answer: Answer, price: Price | None) -> Vote:
        cost, basis = answer.cost, "reported"
        rule = self._model.price
        if cost is None and rule is not None and answer.tokens:
            cost, basis = (rule.of_tokens(answer.tokens) or 0.0), "usage"
        if cost is None and price is not None:
            cost, basis = (0.0 if answer.refusal and not answer.text else price.expected), "rule"
        known: dict[str, Any] = {
            "text": answer.text[:_KEPT],
            "model": answer.model,
            "request_id": answer.request_id,
            "structured": answer.structured,
            "usage": dict(answer.usage),
            "cost": cost,
            "basis": basis if cost is not None else "",
        }
        failure: Failure = ""
        detail, value, reason = "", None, ""
        if answer.refusal:
            failure, detail = "refused", answer.refusal
        elif answer.cut:
            failure, detail = "cut", f"more than {self._model.max_tokens} tokens"
        else:
            try:
                value, reason = question.template.read(answer.text)
            except BadAnswer as error:
                failure, detail = error.kind, str(error)
        if value is not None and vote.swapped:
            value = question.template.answer.turned(value)
        known |= {"failure": failure, "detail": detail, "answer": value, "reason": reason}
        return vote.model_copy(update=_clean(known))


def _parts(question: Question, pictures: tuple[Sent, ...]) -> tuple[str | Sent, ...]:
    parts: list[str | Sent] = []
    for number, picture in enumerate(pictures, 1):
        if len(pictures) > 1:
            parts.append(f"Picture {number}:")
        parts.append(picture)
    return (*parts, question.text)


def _key(
    question: Question,
    identity: Identity,
    pictures: tuple[Sent, ...],
    sample: int,
    swapped: bool,
) -> str:
    told = {
        "identity": identity.model_dump(mode="json"),
        "text": question.text,
        "schema": question.template.schema_,
        "pictures": [picture.digest for picture in pictures],
        "sample": sample,
        "swapped": swapped,
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _failed(
    vote: Vote, failure: Failure, error: Exception, begun: float, cost: float | None
) -> Vote:
    basis = "assumed" if failure == "lost" and cost is not None else ""
    told = {"failure": failure, "detail": str(error)[:_KEPT], "cost": cost, "basis": basis}
    return vote.model_copy(update={**told, "seconds": round(time.monotonic() - begun, 3)})


def _clean(value: Any) -> Any:
    """What a server said, without any key that it may have repeated."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


def _wait(attempt: int, asked: float | None) -> float:
    if asked is not None:
        return asked
    # Jitter keeps parallel calls from coming back all at once.
    doubled: float = FIRST_WAIT * 2.0 ** (attempt - 1)
    return min(LONGEST_BACKOFF, doubled) * random.uniform(0.5, 1.0)
