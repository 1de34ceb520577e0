"""OpenAI as a loopback server: image edits, responses with the image tool, the list of models."""

from __future__ import annotations

import base64
import email.parser
import email.policy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, Speaker

SAFETY = "Your request was rejected by the safety system. safety_violations=[violence]."
USAGE = {
    "input_tokens": 1520,
    "input_tokens_details": {"image_tokens": 1500, "text_tokens": 20},
    "output_tokens": 1760,
    "output_tokens_details": {"image_tokens": 1760, "text_tokens": 0},
    "total_tokens": 3280,
}
PRICE = (20 * 5 + 1500 * 8 + 1760 * 30) / 1e6
"""Dollars of that usage for gpt-image-2."""
CHAT_USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 100,
    "output_tokens_details": {"reasoning_tokens": 80},
    "total_tokens": 1000,
}
CHAT_PRICE = PRICE + (900 * 5 + 100 * 30) / 1e6


@dataclass(frozen=True)
class Part:
    """One field of a multipart body."""

    name: str
    filename: str | None
    kind: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode()


def multipart(request: Received) -> list[Part]:
    """The fields of a request, in order, as a mail parser reads them."""
    kind = {name.lower(): value for name, value in request.headers.items()}["content-type"]
    assert kind.startswith("multipart/form-data; boundary="), kind
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    message = parser.parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + request.body)
    found = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        assert isinstance(name, str)
        assert isinstance(data, bytes)
        found.append(Part(name, part.get_filename(), part.get_content_type(), data))
    return found


def error(status: int, code: str | None, message: str, kind: str = "", **headers: str) -> Reply:
    """An error as OpenAI words it."""
    kind = kind or "invalid_request_error"
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    sent = {"x-request-id": "req_fault", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return Reply(body, status, sent)


FAULTS: Mapping[str, Callable[[], Reply]] = {
    "limited": lambda: error(
        429, "rate_limit_exceeded", "Rate limit reached: 5 images per minute."
    ),
    "limited-delay": lambda: error(
        429, "rate_limit_exceeded", "Rate limit reached.", retry_after_ms="50"
    ),
    "limited-seconds": lambda: error(
        429, "rate_limit_exceeded", "Rate limit reached.", retry_after="2"
    ),
    "day": lambda: error(429, "rate_limit_exceeded", "Limit reached on requests per day (RPD)."),
    "broken": lambda: error(500, None, "The server had an error.", "server_error"),
    "overloaded": lambda: error(503, None, "The engine is currently overloaded.", "server_error"),
    "conflict": lambda: error(409, None, "Locked by another request."),
    "timed-out": lambda: error(408, None, "Request timeout."),
    "refused-moderation": lambda: error(
        400, "moderation_blocked", SAFETY, "image_generation_user_error"
    ),
    "refused-policy": lambda: error(400, "content_policy_violation", "Against our content policy."),
    "refused-user-error": lambda: error(
        400, None, "Sorry, this cannot be drawn.", "image_generation_user_error"
    ),
    "refused-words": lambda: error(400, None, SAFETY),
    "quota": lambda: error(
        429, "insufficient_quota", "You exceeded your quota.", "insufficient_quota"
    ),
    "billing": lambda: error(400, "billing_hard_limit_reached", "Billing hard limit reached."),
    "key": lambda: error(401, "invalid_api_key", "Incorrect API key provided."),
    "unverified": lambda: error(403, None, "Your organization must be verified to use the model."),
    "gone": lambda: error(404, "model_not_found", "The model does not exist."),
    "bad": lambda: error(400, "invalid_image_file", "Bad image.", "image_generation_user_error"),
}


@dataclass
class Remembered:
    """A response that the server keeps."""

    input: Any
    previous: str | None = field(default=None)


class OpenAISpeaker(Speaker):
    """`POST /v1/images/edits`, `POST /v1/responses`, `GET /v1/models`."""

    family: ClassVar = "openai"
    editor: ClassVar = "openai:gpt-image-2,quality=low"
    variables: ClassVar = ("OPENAI_BASE_URL",)
    key_variable: ClassVar = "OPENAI_API_KEY"
    refusals: ClassVar = (
        "refused-moderation",
        "refused-policy",
        "refused-user-error",
        "refused-words",
    )
    fates: ClassVar = (*FATES, *refusals)
    url_suffix: ClassVar = "/v1"

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        super().__init__(schedule)
        self.kept: dict[str, Remembered] = {}
        self.models: list[dict[str, Any]] = []
        self.change: dict[str, Any] = {}
        """Put over the answer to the next calls, whole as it is."""

    def answer(self, request: Received) -> Reply:
        if request.path == "/v1/models":
            return Reply({"object": "list", "data": self.models})
        if request.path == "/v1/images/edits":
            return self._edit(request)
        if request.path == "/v1/responses":
            return self._respond(request)
        return error(404, None, f"Invalid URL ({request.method} {request.path})")

    def _edit(self, request: Received) -> Reply:
        fate = self.fate()
        if fate in FAULTS:
            return FAULTS[fate]()
        self.bill()
        asked = {part.name: part.data for part in multipart(request)}
        size = asked["size"].decode()
        body: dict[str, Any] = {
            "created": 1_790_000_000,
            "data": [{"b64_json": base64.b64encode(self.frame(fate)).decode()}],
            "background": "opaque",
            "output_format": "png",
            "quality": asked["quality"].decode(),
            "size": size,
            "usage": USAGE,
        }
        if fate == "no-image":
            body["data"] = []
        return self._finish(fate, {**body, **self.change})

    def _respond(self, request: Received) -> Reply:
        fate = self.fate()
        if fate in FAULTS:
            return FAULTS[fate]()
        asked = request.json
        previous = asked.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            return error(
                400,
                "previous_response_not_found",
                f"Previous response with id '{previous}' not found.",
            )
        self.bill()
        name = f"resp_{len(self.begun)}"
        self.kept[name] = Remembered(asked["input"], previous)
        tool = asked["tools"][0]
        call: dict[str, Any] = {
            "id": f"ig_{len(self.begun)}",
            "type": "image_generation_call",
            "status": "completed",
            "result": base64.b64encode(self.frame(fate)).decode(),
            "revised_prompt": "A careful edit of the picture.",
            "size": tool["size"],
            "quality": tool["quality"],
            "output_format": tool["output_format"],
            "background": tool["background"],
        }
        thought = {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "I shall keep the rest."}],
        }
        output = [thought] if fate == "no-image" else [thought, call]
        body = {
            "id": name,
            "object": "response",
            "created_at": 1_790_000_000,
            "status": "completed",
            "model": f"{asked['model']}-2026-06-26",
            "output": output,
            "usage": CHAT_USAGE,
            "tool_usage": {"image_gen": USAGE, "web_search": {"num_requests": 0}},
        }
        return self._finish(fate, {**body, **self.change})

    def _finish(self, fate: str, body: dict[str, Any]) -> Reply:
        headers = {"x-request-id": f"req_{len(self.begun)}"}
        if fate == "oversize":
            body["padding"] = "x" * (8 << 20)
        cut = 200 if fate == "cut" else None
        return Reply(body, 200, headers, cut=cut, delay=0.5 if fate == "slow" else 0.0)
