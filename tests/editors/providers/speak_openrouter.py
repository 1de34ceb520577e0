"""OpenRouter as a loopback server: single edits and conversations."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, Speaker

COST = 0.0431


def error(status: int, message: str, metadata: Any = None, **headers: str) -> Reply:
    """An error as OpenRouter words it: the code is the status."""
    facts: dict[str, Any] = {"code": status, "message": message}
    if metadata is not None:
        facts["metadata"] = metadata
    return Reply({"error": facts}, status, {k.replace("_", "-"): v for k, v in headers.items()})


def inside(code: int, message: str, metadata: Any = None, usage: Any = None) -> Reply:
    """The same inside a success, as it comes when the vendor fails after the call was taken."""
    body = error(code, message, metadata).body
    return Reply({**body, **({"usage": usage} if usage else {})})


FLAGGED = {
    "reasons": ["violence"],
    "flagged_input": "Make the sky…",
    "provider_name": "OpenAI",
    "model_slug": "openai/gpt-image-2",
}
VENDOR = {"provider_name": "Google", "raw": "PROHIBITED_CONTENT: the prompt was blocked"}
FAULTS: Mapping[str, Callable[[], Reply]] = {
    "limited": lambda: error(429, "Rate limit exceeded."),
    "limited-delay": lambda: error(429, "Rate limit exceeded.", retry_after="0.05"),
    "limited-inside": lambda: inside(429, "Provider is rate limited."),
    "day": lambda: error(429, "Rate limit exceeded: free-models-per-day."),
    "broken": lambda: error(500, "Internal Server Error"),
    "overloaded": lambda: error(503, "No provider meets your routing requirements."),
    "upstream": lambda: error(502, "Provider returned error", {"provider_name": "Google"}),
    "upstream-inside": lambda: inside(502, "Provider returned error"),
    "upstream-billed": lambda: inside(502, "Provider returned error", usage={"cost": 0.01}),
    "nameless-inside": lambda: Reply({"error": {"message": "something broke"}}),
    "timed-out": lambda: error(408, "Your request timed out."),
    "credit": lambda: error(402, "Insufficient credits."),
    "credit-inside": lambda: inside(402, "Insufficient credits."),
    "key": lambda: error(401, "No auth credentials found."),
    "forbidden": lambda: error(403, "Key limit exceeded."),
    "bad": lambda: error(400, "size is not supported."),
    "parameter": lambda: error(400, "Unsupported: safety_tolerance, moderation."),
    "gone": lambda: error(404, "No endpoints found for this model."),
    "refused-flagged": lambda: error(403, "Your chosen model requires moderation.", FLAGGED),
    "refused-reasons": lambda: error(403, "No.", {"reasons": ["hate"]}),
    "refused-inside": lambda: inside(403, "Flagged.", FLAGGED),
    "refused-vendor": lambda: error(400, "Provider returned error", VENDOR),
}


class OpenRouterSpeaker(Speaker):
    """`POST /api/v1/images` and `POST /api/v1/chat/completions`."""

    family: ClassVar = "openrouter"
    editor: ClassVar = "openrouter:black-forest-labs/flux.2-pro"
    variables: ClassVar = ("OPENROUTER_BASE_URL",)
    key_variable: ClassVar = "OPENROUTER_API_KEY"
    refusals: ClassVar = (
        "refused-flagged",
        "refused-reasons",
        "refused-inside",
        "refused-vendor",
    )
    fates: ClassVar = (*FATES, *refusals)
    url_suffix: ClassVar = "/api/v1"

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        super().__init__(schedule)
        self.change: dict[str, Any] = {}
        """Put over the answers, whole as it is."""

    def answer(self, request: Received) -> Reply:
        answers = {
            "/api/v1/images": self._image,
            "/api/v1/chat/completions": self._chat,
        }
        if request.path not in answers:
            return error(404, f"no such route: {request.path}")
        fate = self.fate()
        if fate in FAULTS:
            return FAULTS[fate]()
        self.bill()
        text = base64.b64encode(self.frame(fate)).decode()
        body = {**answers[request.path](request.json, text, fate), **self.change}
        if fate == "oversize":
            body["padding"] = "x" * (8 << 20)
        cut = 200 if fate == "cut" else None
        headers = {"x-generation-id": f"gen-{len(self.begun)}"}
        return Reply(body, 200, headers, cut=cut, delay=0.5 if fate == "slow" else 0.0)

    @staticmethod
    def _image(asked: Mapping[str, Any], text: str, fate: str) -> dict[str, Any]:
        return {
            "created": 1_790_000_000,
            "data": [] if fate == "no-image" else [{"b64_json": text, "media_type": "image/png"}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 20,
                "total_tokens": 30,
                "cost": COST,
                "cost_details": {"upstream_inference_cost": None},
            },
        }

    @staticmethod
    def _chat(asked: Mapping[str, Any], text: str, fate: str) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "Here it is.",
            "reasoning": "The ball goes to the left.",
        }
        if fate != "no-image":
            url = f"data:image/png;base64,{text}"
            message["images"] = [{"type": "image_url", "image_url": {"url": url}}]
        return {
            "id": "gen-chat",
            "provider": "Google AI Studio",
            "model": asked["model"],
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "native_finish_reason": "STOP",
                    "message": message,
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18, "cost": COST},
        }
