"""The seam of a judge's client: one call, made once, and what its faults mean."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorUnavailable,
    SettingsError,
)
from convergebench.judging.question import Sent
from convergebench.pricing import Kind
from convergebench.wire import Secret, Told, Wire, complaint

_ACCOUNT: Final = re.compile(
    r"insufficient_quota|billing_hard_limit|account_deactivated|invalid_api_key|API_KEY_INVALID"
    r"|API key not valid|credit balance|PerDay",
    re.IGNORECASE,
)
_REFUSALS: Final = re.compile(r"content_policy|content_filter|moderation_blocked|invalid_prompt")
_DELAY: Final = re.compile(r'"retryDelay":\s*"([0-9.]+)s"')


@dataclass(frozen=True)
class Asking:
    """What is sent.

    Attributes:
        parts: Texts and pictures, in order.
        schema: JSON schema of the answer; None where words are asked for.
        seed: 31-bit seed, or None where the server takes none.
    """

    parts: tuple[str | Sent, ...]
    schema: Mapping[str, Any] | None
    seed: int | None = None


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        text: The model's words, thoughts left out.
        refusal: Why it declines, or empty.
        cut: Whether it ran into the limit of tokens.
        model: The model that the server says has answered.
        request_id: The server's name of the call.
        usage: Tokens as the server counts them.
        tokens: The same as our prices count them; empty when it did not say.
        cost: Dollars, where the server says.
        structured: Whether it was held to the schema.
    """

    text: str
    refusal: str = ""
    cut: bool = False
    model: str = ""
    request_id: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    tokens: Mapping[Kind, float] = field(default_factory=dict)
    cost: float | None = None
    structured: bool = True


class Client(Protocol):
    """Asks a model. Safe to use from several threads."""

    def ask(self, asking: Asking, timeout: float) -> Answer:
        """One call, made once.

        Raises:
            EditorUnavailable: Not billed; the same call may succeed later.
            EditorLost: Sent, perhaps billed, and no answer.
            EditorFailed: This call can never succeed.
            AccountBlocked: No call of this account will succeed now.
            SettingsError: The server does not know the model.
        """
        ...


class SdkClient:
    """What the clients that call a provider's SDK are made of.

    Args:
        base: Checked base address.
        model: The model's id.
        title: The provider's name in messages.
        key: The key.
        max_tokens: Limit of an answer, thoughts included.
        parameters: Further fields of the request.
    """

    def __init__(
        self,
        base: str,
        model: str,
        *,
        title: str,
        key: Secret,
        max_tokens: int,
        parameters: Mapping[str, Any],
    ) -> None:
        self._base = base
        self._model = model
        self._key = key
        self._max = max_tokens
        self._parameters = dict(parameters)
        self._wire = Wire(base, what=title, key=key)


def fault(wire: Wire, told: Told, model: str) -> EditorError | SettingsError | Answer:
    """What an answer that is no success means; a refusal is an answer."""
    error = wire.fault(told)
    said = complaint(told.body) or told.text
    whole = json.dumps(told.body) if told.body is not None else told.text
    if told.status in (400, 401, 402, 403, 429) and _ACCOUNT.search(whole):
        return AccountBlocked(str(error))
    if told.status == 404:
        return SettingsError(
            f"{error}. Look whether {wire.what} has a model {model!r} (docs/guides/judges.md)."
        )
    if told.status in (400, 403) and _REFUSALS.search(said):
        return Answer("", refusal=wire.scrub(said)[:300], request_id=_request_id(told))
    delay = _DELAY.search(whole)
    if isinstance(error, EditorUnavailable) and error.retry_after is None and delay:
        error.retry_after = float(delay[1])
    return error


def plain(value: Any) -> dict[str, Any]:
    """A pydantic object of an SDK as plain JSON."""
    if value is None:
        return {}
    found: dict[str, Any] = value.model_dump(mode="json", exclude_none=True)
    return found


def count(usage: Mapping[str, Any], *names: str) -> float:
    """The sum of some counts in a usage; what is no number is 0."""
    found = (usage.get(name) for name in names)
    return float(sum(n for n in found if isinstance(n, int | float) and not isinstance(n, bool)))


def dollars(told: Any) -> float | None:
    """A cost that a server reports; None for what cannot be one, so that no budget is misled."""
    number = isinstance(told, int | float) and not isinstance(told, bool)
    return float(told) if number and 0 <= told < math.inf else None


def _request_id(told: Told) -> str:
    lower = {name.lower(): value for name, value in told.headers.items()}
    return lower.get("x-request-id", lower.get("request-id", ""))
