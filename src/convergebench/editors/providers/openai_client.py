"""Calls through OpenAI's SDK, each made once; what its answers and faults mean for a paid call.

The SDK writes the requests. Its retries are off, its connection is ours (`wire.client`), and its
exceptions, which hold the request and so the key, never leave this module.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from convergebench.editor import EditReply
from convergebench.editors.providers.family import Opened, mislabelled
from convergebench.editors.providers.polling import Clock
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.pricing import Kind
from convergebench.wire import Told, Wire, client, network_fault, retry_after

if TYPE_CHECKING:
    from openai import OpenAI

REFUSALS: Final = frozenset(
    {
        "bio_policy",
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "invalid_prompt",  # "your prompt was flagged as potentially violating our usage policy"
        "misalignment_policy_violation",
        "moderation_blocked",
    }
)
"""Codes that say: not this edit."""
BLOCKS: Final = frozenset(
    {
        "account_deactivated",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_quota",
        "invalid_api_key",
    }
)
"""Codes that say: no edit of this account."""
PASSING: Final = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout"})
"""Codes inside a whole answer that say: not now."""
_SAFETY: Final = ("safety system", "safety_violations", "content policy", "usage policy")
_USER_ERROR: Final = "image_generation_user_error"


class Account:
    """One key of OpenAI, and how its calls are made."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.wire: Final = Wire(opened.base, what="OpenAI", key=opened.key)

    def ask(self, call: Callable[[OpenAI], Any], timeout: float) -> Told:
        """Make one call with the SDK; `call` gets a client and returns its raw response.

        Returns:
            The answer, be it a success or not.

        Raises:
            AccountBlocked: There is no key, or no SDK.
            EditorUnavailable: It was not sent.
            EditorLost: It was, and no answer came.
        """
        if self._opened.lacks or self._opened.key is None:
            raise AccountBlocked(self._opened.lacks)
        import openai

        problem: EditorError | None = None
        told = Told(0, {}, None, "")
        with client(self._opened.base, timeout=timeout) as http:
            sdk = openai.OpenAI(
                api_key=self._opened.key.reveal(),
                base_url=self._opened.base,
                max_retries=0,
                timeout=http.timeout,
                http_client=http,
            )
            try:
                told = self._told(call(sdk).http_response)
            except openai.APIStatusError as error:
                told = self._told(error.response)
            except Exception as error:  # the SDK's kinds, httpx2's, and what a broken stream raises
                problem = network_fault(error, "OpenAI")
        if problem is not None:  # raised out here, so that no context holds the request's headers
            problem.args = (self.wire.scrub(str(problem)),)
            raise problem
        return told

    def answered(
        self, call: Callable[[OpenAI], Any], clock: Clock, sent: EditReply
    ) -> tuple[dict[str, Any], EditReply]:
        """Make one call; the object it is answered with, and what was sent with the call's name.

        Raises:
            EditorError: Anything else, with what was sent.
        """
        try:
            told = self.ask(call, max(0.05, clock.left))
        except EditorError as error:
            error.told = sent
            raise
        sent = replace(sent, request_id=request_id(told))
        if not told.ok:
            fault = self.fault(told)
            fault.told = sent
            raise fault
        if not isinstance(told.body, dict):
            raise EditorLost(f"OpenAI answered with no JSON: {told.text[:200]}", told=sent)
        return told.body, sent

    def _told(self, response: Any) -> Told:
        data: bytes = response.content
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            body = None
        words = data[:4000].decode("utf-8", "replace").split()
        if len(data) > 4000:
            words = words[:-1]  # half a key could not be scrubbed
        line = self.wire.scrub(" ".join(words))[:600]
        return Told(response.status_code, dict(response.headers), body, line)

    def fault(self, told: Told) -> EditorError:
        """What an answer that is no success means."""
        plain = self.wire.fault(told)
        error = told.table.get("error")
        facts: Mapping[str, Any] = error if isinstance(error, dict) else {}
        code, text = str(facts.get("code") or ""), str(plain)
        if code in BLOCKS or str(facts.get("type")) in BLOCKS:
            return AccountBlocked(text)
        if told.status == 429 and "per day" in text.lower():
            return AccountBlocked(text)
        if told.status in (400, 403) and _refuses(code, facts):
            return EditorRefused(text)
        if told.status == 409:
            return EditorUnavailable(text, retry_after=retry_after(told.headers))
        return plain

    def failure(self, facts: Mapping[str, Any], cost: float | None) -> EditorError:
        """What an error object inside a whole answer means.

        What passes is tried again only where nothing was counted for it.
        """
        code = str(facts.get("code") or "")
        said = ": ".join(str(facts[name]) for name in ("code", "message") if facts.get(name))
        details = facts.get("moderation_details")
        if isinstance(details, dict):
            stage = details.get("moderation_stage", "unknown")
            kinds = (
                ", ".join(str(kind) for kind in details.get("categories") or ()) or "no category"
            )
            said += f" ({kinds}; at the {stage})"
        text = self.wire.scrub(f"OpenAI: {said or 'failed without a reason'}")
        if isinstance(details, dict) or _refuses(code, facts):
            return EditorRefused(text)
        if code in PASSING:
            limited = code == "rate_limit_exceeded"
            return EditorLost(text) if cost else EditorUnavailable(text, limited=limited)
        return EditorNoImage(text)


def _refuses(code: str, facts: Mapping[str, Any]) -> bool:
    said = str(facts.get("message") or "").lower()
    nameless = not code and str(facts.get("type") or "") == _USER_ERROR
    return code in REFUSALS or nameless or any(words in said for words in _SAFETY)


def request_id(told: Told) -> str | None:
    """OpenAI's name of a call."""
    return {name.lower(): value for name, value in told.headers.items()}.get("x-request-id")


def picture(text: Any, told: EditReply) -> bytes:
    """The bytes of a picture in base64. Raises EditorNoImage."""
    if not isinstance(text, str) or not text:
        raise EditorNoImage("OpenAI answered without a picture", told=told)
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(text, validate=True)
    raise EditorNoImage("OpenAI sent a picture that is not base64", told=told)


def surprises(data: bytes, asked: Mapping[str, Any], said: Mapping[str, Any]) -> tuple[str, ...]:
    """Caveats: where the answer names other values than were asked for, or the bytes do."""
    found = [
        f"asked for {name} {asked[name]}, OpenAI says {said[name]}"
        for name in ("size", "quality", "output_format", "background")
        if said.get(name) is not None and name in asked and said[name] != asked[name]
    ]
    odd = mislabelled(data, said.get("output_format") or asked.get("output_format"))
    return (*found, *odd)


def tokens(usage: Any) -> dict[Kind, float] | None:
    """Tokens by kind, of the Images API or of the image tool; None where it does not tell."""
    if not isinstance(usage, dict) or not isinstance(usage.get("output_tokens"), int):
        return None
    sent, made = (_table(usage, f"{way}_tokens_details") for way in ("input", "output"))
    counts: dict[Kind, float] = {
        "text_in": _count(sent, "text_tokens"),
        "image_in": _count(sent, "image_tokens"),
        "text_out": _count(made, "text_tokens"),
        "image_out": _count(made, "image_tokens"),
    }
    if not sent:  # the dearer kind, where it does not tell
        counts["image_in"] = _count(usage, "input_tokens")
    if not made:
        counts["image_out"] = _count(usage, "output_tokens")
    return counts


def _table(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _count(table: Mapping[str, Any], name: str) -> float:
    found = table.get(name)
    return float(found) if isinstance(found, int) and found > 0 else 0.0
