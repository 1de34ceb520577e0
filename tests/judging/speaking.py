"""Servers that speak as judges' providers do, and what each is asked with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from convergebench.frame import Frame, encode
from convergebench.judging import Choice, Number, Question, Template, YesNo
from tests.support.loopback import Received, Reply

KEY = "marker-of-a-key-9f3b"


def frame(seed: int = 0, kind: str = "png") -> Frame:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return Frame(encode(pixels, kind))


NOISE = Template(
    id="mentions-artefacts",
    version=2,
    text="Does this text mention visible artefacts?\n<text>{text}</text>",
    answer=YesNo(),
)
LIKENESS = Template(
    id="likeness", version=1, text="How alike are they?", answer=Number(low=0, high=10),
    pairwise=True,
)  # fmt: skip
BETTER = Template(
    id="better", version=1, text="Which picture is better?", pairwise=True,
    answer=Choice(
        options=("first", "second", "tie"), turn={"first": "second", "second": "first"}
    ),
)  # fmt: skip


def yes_no(pictures: int = 1) -> Question:
    return Question(NOISE, {"text": "a {grainy} sky"}, tuple(frame(n) for n in range(pictures)))


@dataclass(frozen=True)
class Speaker:
    """How one provider is spoken to: its judge, its environment, its answers.

    Attributes:
        says: A successful answer with these words.
        refuses: An answer that declines.
        cuts: An answer that ran into the limit of tokens.
        error: An error of a status, with the provider's own body.
        blocked: An error of an account, as the provider words it.
        spent: Dollars of one answer by its usage.
    """

    judge: str
    key: str
    url: str
    suffix: str
    says: Callable[[str], Reply]
    refuses: Callable[[], Reply]
    cuts: Callable[[], Reply]
    error: Callable[[int, dict[str, str]], Reply]
    blocked: tuple[int, Any]
    spent: float

    def set(self, monkeypatch: pytest.MonkeyPatch, address: str, key: str = KEY) -> None:
        monkeypatch.setenv(self.key, key)
        monkeypatch.setenv(self.url, address + self.suffix)


def chat_says(text: str, **more: Any) -> Reply:
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish", "stop")}
    usage = {"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-6-luna-2026-08-01",
    }
    return Reply(
        {**body, "choices": [choice], "usage": usage, **more}, headers={"x-request-id": "r-1"}
    )


def chat_error(status: int, headers: dict[str, str]) -> Reply:
    error = {"message": f"it failed with {status}", "type": "some_error", "code": None}
    return Reply({"error": error}, status, headers)


def gemini_says(text: str, finish: str = "STOP", thought: str = "") -> Reply:
    parts: list[dict[str, Any]] = [{"text": thought, "thought": True}] if thought else []
    parts += [{"text": text}] if text else []
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    usage = {"promptTokenCount": 1200, "candidatesTokenCount": 10, "thoughtsTokenCount": 30,
             "totalTokenCount": 1240}  # fmt: skip
    return Reply(
        {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "gemini-3.8-flash-002",
            "responseId": "g-1",
        }
    )


def gemini_error(status: int, headers: dict[str, str]) -> Reply:
    names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 404: "NOT_FOUND", 400: "INVALID_ARGUMENT"}
    error: dict[str, Any] = {"code": status, "message": f"it failed with {status}",
                             "status": names.get(status, "UNKNOWN")}  # fmt: skip
    if "retry-after" in headers:  # Google says it in the body
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{headers['retry-after']}s"}]
    return Reply({"error": error}, status)


def claude_says(text: str, stop: str = "end_turn") -> Reply:
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5-20260901",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1200, "output_tokens": 40},
    }
    return Reply(body, headers={"request-id": "req-1"})


def claude_error(status: int, headers: dict[str, str]) -> Reply:
    error = {"type": "some_error", "message": f"it failed with {status}"}
    return Reply({"type": "error", "error": error}, status, headers)


SPEAKERS = {
    "chat": Speaker(
        "openai:gpt-6-luna",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "/v1",
        chat_says,
        lambda: chat_says("", message={"refusal": "I cannot look at that."}),
        lambda: chat_says('{"answer": "ye', finish="length"),
        chat_error,
        (429, {"error": {"message": "no money", "type": "x", "code": "insufficient_quota"}}),
        (1200 * 0.10 + 40 * 0.50) / 1e6,
    ),
    "gemini": Speaker(
        "gemini:gemini-3.8-flash",
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "",
        gemini_says,
        lambda: gemini_says("", finish="PROHIBITED_CONTENT"),
        lambda: gemini_says('{"answer": "ye', finish="MAX_TOKENS"),
        gemini_error,
        (
            429,
            {
                "error": {
                    "code": 429,
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "quota",
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                            "violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}],
                        }
                    ],
                }
            },
        ),
        (1200 * 0.75 + 40 * 3.75) / 1e6,
    ),
    "claude": Speaker(
        "anthropic:claude-sonnet-5-5",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "",
        claude_says,
        lambda: claude_says("", stop="refusal"),
        lambda: claude_says('{"answer": "ye', stop="max_tokens"),
        claude_error,
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Your credit balance is too low to access the API.",
                },
            },
        ),
        (1200 * 2 + 40 * 10) / 1e6,
    ),
}


def answers(*replies: Reply) -> Callable[[Received], Reply]:
    """Gives one reply after the other; the last one from then on."""
    left = list(replies)

    def answer(_: Received) -> Reply:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def said(answer: Any) -> str:
    return json.dumps({"answer": answer})


def headers(got: Received) -> dict[str, str]:
    return {name.lower(): value for name, value in got.headers.items()}
