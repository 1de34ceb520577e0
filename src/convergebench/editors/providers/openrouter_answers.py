"""What OpenRouter's answers without a picture mean: its own faults, and those of the vendors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from convergebench.editor import EditReply
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.wire import Told, Wire

SAFETY: Final = re.compile(
    r"\bcontent[ _]policy|\bflagged\b|\bimage_safety\b|\bmoderated\b|\bmoderation_blocked\b"
    r"|\bprohibited_content\b|\brequires moderation\b|\bsafety\b|\bsensitive content\b",
    re.IGNORECASE,
)
"""Words of vendors' refusals, which OpenRouter passes on as they are."""
FINISHES: Final = frozenset(
    {
        "blocklist",
        "content_filter",
        "image_prohibited_content",
        "image_recitation",
        "image_safety",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
    }
)
"""Reasons to finish that are refusals: OpenRouter's, and the vendors' behind them."""
DAILY: Final = ("per-day", "per day", "daily")
_SHOWN: Final = 600


def fault(wire: Wire, told: Told, reply: EditReply) -> EditorError:
    """What an error object means, be it in an answer of its own or inside a success."""
    error = told.table.get("error")
    facts: Mapping[str, Any] = error if isinstance(error, dict) else {}
    code = facts.get("code")
    if told.ok:  # the vendor failed after the call was taken; the status is in the object
        told = replace(told, status=code if isinstance(code, int) and code >= 400 else 502)
    plain = wire.fault(told)
    text, reasons = str(plain), _reasons(facts)
    if reasons:
        text = wire.scrub(f"{text} ({reasons})")[:_SHOWN]
    found = _kind(told.status, text, facts, plain)
    if isinstance(found, EditorUnavailable) and reply.cost:
        return EditorLost(text, told=reply)  # it was counted, so it is not simply made again
    found.args = (text,)
    found.told = reply
    return found


def _kind(status: int, text: str, facts: Mapping[str, Any], plain: EditorError) -> EditorError:
    metadata = facts.get("metadata")
    listed = isinstance(metadata, dict) and bool(metadata.get("reasons"))
    if status == 403 and listed:
        return EditorRefused(text)
    if status in (400, 403, 422) and SAFETY.search(text):
        return EditorRefused(text)
    if status == 429 and any(words in text.lower() for words in DAILY):
        return AccountBlocked(text)
    return plain


def _reasons(facts: Mapping[str, Any]) -> str:
    """What the metadata of an error tells: the vendor, its words, why it was flagged."""
    metadata = facts.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    told = []
    if metadata.get("provider_name"):
        told.append(str(metadata["provider_name"]))
    if metadata.get("reasons"):
        reasons = metadata["reasons"]
        listed = reasons if isinstance(reasons, list) else [reasons]
        told.append("flagged: " + ", ".join(str(reason) for reason in listed))
    if metadata.get("raw"):
        told.append(str(metadata["raw"])[:400])
    return "; ".join(told)


def missing(
    wire: Wire, choice: Mapping[str, Any], message: Mapping[str, Any], reply: EditReply
) -> EditorError:
    """Why a turn of a conversation has no picture."""
    finishes = [str(choice[n]) for n in ("finish_reason", "native_finish_reason") if choice.get(n)]
    words = [str(message[name]) for name in ("refusal", "content") if message.get(name)]
    said = wire.scrub(": ".join([" / ".join(dict.fromkeys(finishes)), *words]))[:_SHOWN]
    if message.get("refusal") or any(finish.lower() in FINISHES for finish in finishes):
        return EditorRefused(f"OpenRouter: {said}", told=reply)
    return EditorNoImage(f"OpenRouter answered without a picture: {said}", told=reply)
