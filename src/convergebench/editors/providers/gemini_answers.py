"""Reading what the Gemini API answers: the picture, why there is none, what it cost, what failed.

Read from the JSON as it came and not from the SDK's objects, which drop `finishMessage` and would
turn a reason that they do not know into a warning.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from convergebench.editors.providers.family import mislabelled
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.pricing import Kind
from convergebench.wire import LATE, retry_after

WHAT: Final = "Google Gemini"
REFUSALS: Final = frozenset(
    {
        "BLOCKLIST",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""Reasons to finish that mean no; the others (NO_IMAGE, MAX_TOKENS, …) mean that none came."""
_SHOWN: Final = 600
_PER_DAY: Final = re.compile(r"per[ _]?day|daily", re.IGNORECASE)
_NO_MONEY: Final = re.compile(r"credits are depleted|spending cap|spend cap", re.IGNORECASE)
_BAD_KEY: Final = re.compile(r"api[ _]key (not valid|expired|not found)", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """A successful HTTP answer, which may hold a picture or not.

    Attributes:
        data: The last picture that is no draft, or None.
        words: What the model wrote besides its thoughts.
        reasoning: The summary of its thoughts.
        finish: Why it stopped: STOP where all went well.
        message: What is said about that.
        blocked: Why the prompt was blocked, or empty.
        model: The model that answered.
        request_id: The call's name.
        usage: Tokens as counted by the provider.
        parts: What is to be sent again when the conversation goes on; the picture's
            bytes are left out, as the store has them.
        notes: What is odd about it.
    """

    data: bytes | None = None
    words: str = ""
    reasoning: str = ""
    finish: str = ""
    message: str = ""
    blocked: str = ""
    model: str | None = None
    request_id: str | None = None
    usage: Mapping[str, Any] | None = None
    parts: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    def tokens(self) -> dict[Kind, float]:
        """Tokens by kind, as prices are; empty where the provider counted none.

        Thoughts cost as text. What the details leave out is text, but a picture without any
        details is taken to be all of the output.
        """
        usage = self.usage or {}
        used: dict[Kind, float] = {}
        images_in = _of_kind(usage.get("promptTokensDetails"), "IMAGE")
        images_out = _of_kind(usage.get("candidatesTokensDetails"), "IMAGE")
        asked = _number(usage.get("promptTokenCount"))
        made = _number(usage.get("candidatesTokenCount"))
        if self.data is not None and not usage.get("candidatesTokensDetails"):
            images_out = made
        used["image_in"] = images_in
        used["text_in"] = max(0.0, asked - images_in) + _number(
            usage.get("toolUsePromptTokenCount")
        )
        used["image_out"] = images_out
        used["text_out"] = max(0.0, made - images_out) + _number(usage.get("thoughtsTokenCount"))
        return {kind: count for kind, count in used.items() if count}

    def why_none(self) -> EditorError:
        """Why there is no picture."""
        said = f" It said: {' '.join(self.words.split())[:_SHOWN]}" if self.words else ""
        if self.blocked:
            return EditorRefused(f"{WHAT} blocked the prompt: {self.blocked}")
        reason = self.finish or "no reason given"
        told = f": {self.message}" if self.message else ""
        if self.finish in REFUSALS:
            return EditorRefused(f"{WHAT} refused: {reason}{told}.{said}".removesuffix("."))
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return EditorNoImage(f"{WHAT} sent no picture: {reason}{told}{notes}.{said}")


def read(body: Mapping[str, Any]) -> Answer:
    """What an answer holds."""
    feedback = _table(body.get("promptFeedback"))
    blocked = ": ".join(
        str(feedback[name]) for name in ("blockReason", "blockReasonMessage") if feedback.get(name)
    )
    candidate = next(_tables(body.get("candidates")), {})
    notes: list[str] = []
    thoughts: list[str] = []
    words: list[str] = []
    parts: list[dict[str, Any]] = []
    data: bytes | None = None
    for part in _tables(_table(candidate.get("content")).get("parts")):
        blob = _table(part.get("inlineData"))
        if blob and part.get("thought"):
            continue  # a draft: neither the result nor, as it is not stored, sent again
        if blob:
            found = _decoded(blob.get("data"))
            if found is None:
                notes.append("a picture in the answer is no base64")
                continue
            if data is not None:
                notes.append("several pictures were sent; the last one counts")
                parts = [kept for kept in parts if "picture" not in kept]
            data = found
            notes += mislabelled(found, blob.get("mimeType"))
        else:
            (thoughts if part.get("thought") else words).append(str(part.get("text") or ""))
        parts += _kept(part, pictured=bool(blob))
        if "thoughtSignature" in part and _decoded(part["thoughtSignature"]) is None:
            notes.append("a signature in the answer is no base64 and is not sent again")
    finish = str(candidate.get("finishReason") or "")
    if data is not None and finish not in ("STOP", ""):
        notes.append(f"the model stopped with {finish}")
    return Answer(
        data=data,
        words="".join(words).strip(),
        reasoning="\n\n".join(text.strip() for text in thoughts if text.strip()),
        finish=finish,
        message=str(candidate.get("finishMessage") or ""),
        blocked=blocked,
        model=str(body["modelVersion"]) if body.get("modelVersion") else None,
        request_id=str(body["responseId"]) if body.get("responseId") else None,
        usage=_table(body.get("usageMetadata")),
        parts=tuple(parts),
        notes=tuple(dict.fromkeys(notes)),
    )


def _kept(part: Mapping[str, Any], *, pictured: bool) -> list[dict[str, Any]]:
    """A part as the conversation needs it later: thoughts only where they are signed."""
    signature = part.get("thoughtSignature")
    signed = {} if _decoded(signature) is None else {"signature": signature}
    if pictured:
        return [{"picture": True, **signed}]
    if part.get("thought"):
        thought = {"text": str(part.get("text") or ""), "thought": True}
        return [{**thought, **signed}] if signed else []
    if "text" in part or signed:
        return [{"text": str(part.get("text") or ""), **signed}]
    return []


def signature_of(part: Mapping[str, Any]) -> bytes | None:
    """The signature of a kept part, in the bytes that it stands for."""
    return _decoded(part.get("signature"))


def fault(status: int, body: Any, headers: Mapping[str, str]) -> EditorError:
    """What an HTTP error of the API means. The text may hold a key: scrub it."""
    error = _table(_table(body).get("error") or body)
    details = list(_tables(error.get("details")))
    message = " ".join(str(error.get("message") or "").split())
    word = str(error.get("status") or "")
    text = f"{WHAT}: HTTP {status} {word}: {message}"[:_SHOWN].rstrip(": ")
    if status == 429:
        quotas = list(_quotas(details))
        if any(_PER_DAY.search(name) for name in [*quotas, message]) or _NO_MONEY.search(message):
            return AccountBlocked(f"{text}{_named(quotas)}")
        wait = _delay(details)
        wait = retry_after(headers) if wait is None else wait
        return EditorUnavailable(f"{text}{_named(quotas)}", retry_after=wait, limited=True)
    if status in (401, 402, 403) or word == "FAILED_PRECONDITION":  # no billing, wrong country
        return AccountBlocked(text)
    if any(d.get("reason") == "API_KEY_INVALID" for d in details) or _BAD_KEY.search(message):
        return AccountBlocked(text)
    if status in (499, *LATE) or word == "DEADLINE_EXCEEDED":  # it was at work, perhaps for money
        return EditorLost(text)
    if status in (408, 425) or status >= 500:
        wait = _delay(details)
        wait = retry_after(headers) if wait is None else wait
        return EditorUnavailable(text, retry_after=wait)
    return EditorFailed(text)


def _quotas(details: list[dict[str, Any]]) -> Iterator[str]:
    """The names of the quotas that were passed."""
    for detail in details:
        for violation in _tables(detail.get("violations")):
            yield from (str(violation[n]) for n in ("quotaId", "quotaMetric") if violation.get(n))
        if limit := _table(detail.get("metadata")).get("quota_limit"):
            yield str(limit)


def _named(quotas: list[str]) -> str:
    return f" ({', '.join(dict.fromkeys(quotas))})" if quotas else ""


def _delay(details: list[dict[str, Any]]) -> float | None:
    """Seconds of a RetryInfo: `20s` or `0.5s`."""
    for detail in details:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
        if found:
            return float(found[1])
    return None


def _decoded(text: Any) -> bytes | None:
    """Bytes of base64 in either alphabet, padded or not; None where it is none."""
    if not isinstance(text, str) or not text:
        return None
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _of_kind(details: Any, modality: str) -> float:
    return sum(
        _number(d.get("tokenCount")) for d in _tables(details) if d.get("modality") == modality
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    return (
        (entry for entry in value if isinstance(entry, dict))
        if isinstance(value, list)
        else iter(())
    )
