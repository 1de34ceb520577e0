"""Ark as a loopback server: `POST /images/generations`, pictures in base64."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, Speaker

STRICT = ("seedream-5-0-pro", "seedream-5-0-flash")
"""Models that answer HTTP 400 to fields they do not know."""


def error(status: int, code: str, message: str, kind: str = "BadRequest", **headers: str) -> Reply:
    """An error as Ark words it."""
    body = {"error": {"code": code, "message": message, "param": "", "type": kind}}
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(body, status, {"x-request-id": "req-fault", **sent})


def sensitive(what: str) -> str:
    return f"The request failed because the {what} may contain sensitive information."


FAULTS: Mapping[str, Callable[[], Reply]] = {
    "limited": lambda: error(
        429, "RateLimitExceeded.EndpointRPMExceeded", "RPM limit exceeded.", "TooManyRequests"
    ),
    "limited-delay": lambda: error(
        429,
        "ModelAccountIpmRateLimitExceeded",
        "Images per minute exceeded.",
        "TooManyRequests",
        retry_after="0.05",
    ),
    "limited-overload": lambda: error(429, "ServerOverloaded", "Try later.", "TooManyRequests"),
    "broken": lambda: error(500, "InternalServiceError", "Unexpected.", "InternalServerError"),
    "overloaded": lambda: error(503, "ServiceUnavailable", "Try later.", "ServiceUnavailable"),
    "closed": lambda: error(400, "InvalidEndpoint.ClosedEndpoint", "Temporarily unavailable."),
    "refused-input-text": lambda: error(
        400, "InputTextSensitiveContentDetected", sensitive("input text")
    ),
    "refused-input-image": lambda: error(
        400, "InputImageSensitiveContentDetected", sensitive("input image")
    ),
    "refused-output-image": lambda: error(
        400, "OutputImageSensitiveContentDetected", sensitive("output image")
    ),
    "refused-violence": lambda: error(
        400, "SensitiveContentDetected.Violence", sensitive("input text")
    ),
    "refused-risk": lambda: error(400, "InputImageRiskDetected", sensitive("input image")),
    "overdue": lambda: error(
        403, "AccountOverdueError", "Your account has an overdue balance.", "Forbidden"
    ),
    "free-spent": lambda: error(
        429, "QuotaExceeded", "The free trial quota is exhausted.", "TooManyRequests"
    ),
    "model-spent": lambda: error(
        429, "ModelQuotaExhausted", "Your account has exhausted its quota.", "TooManyRequests"
    ),
    "capped": lambda: error(
        429, "SetLimitExceeded", "The set inference limit is reached.", "TooManyRequests"
    ),
    "key": lambda: error(401, "AuthenticationError", "The API key is invalid.", "Unauthorized"),
    "not-open": lambda: error(404, "ModelNotOpen", "Please activate the model.", "NotFound"),
    "gone": lambda: error(404, "InvalidEndpointOrModel.NotFound", "No such model.", "NotFound"),
    "bad": lambda: error(400, "InvalidParameter", "size is not valid."),
}


class SeedreamSpeaker(Speaker):
    """`POST /api/v3/images/generations`."""

    family: ClassVar = "seedream"
    editor: ClassVar = "seedream:seedream-5-0-flash-260915"
    variables: ClassVar = ("ARK_BASE_URL",)
    key_variable: ClassVar = "ARK_API_KEY"
    refusals: ClassVar = (
        "refused-input-text",
        "refused-input-image",
        "refused-output-image",
        "refused-violence",
        "refused-risk",
        "refused-picture",
        "refused-whole",
    )
    fates: ClassVar = (*FATES, *refusals)
    url_suffix: ClassVar = "/api/v3"

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        super().__init__(schedule)
        self.sent = b""
        """The picture of the last success."""

    def answer(self, request: Received) -> Reply:
        if request.path == "/result.png":
            return Reply(self.sent)
        if (request.method, request.path) != ("POST", "/api/v3/images/generations"):
            return error(404, "NotFound", "No such path.", "NotFound")
        asked = request.json
        if asked["model"].startswith(STRICT) and {"sequential_image_generation", "stream"} & set(
            asked
        ):
            return error(400, "InvalidParameter", "sequential_image_generation is not supported.")
        fate = self.fate()
        if fate in FAULTS:
            return FAULTS[fate]()
        refusal = FAULTS["refused-output-image"]().body
        if fate == "refused-picture":
            return Reply({"model": asked["model"], "data": [refusal]})
        if fate == "refused-whole":
            return Reply({"model": asked["model"], **refusal})
        self.bill()
        return self._made(asked, fate)

    def _made(self, asked: Mapping[str, Any], fate: str) -> Reply:
        self.sent = self.frame(fate)
        item: dict[str, Any] = {
            "b64_json": base64.b64encode(self.sent).decode(),
            "size": asked.get("size"),
        }
        if fate == "address":
            item = {"url": f"{self.server.url}/result.png", "size": asked.get("size")}
        if fate == "garbage":
            item["b64_json"] = "not base64!"
        if "output_format" in asked:
            item["output_format"] = asked["output_format"]
        body: dict[str, Any] = {
            "model": asked["model"],
            "created": 1_790_000_000,
            "data": [] if fate == "no-image" else [item],
            "usage": {"generated_images": 1, "output_tokens": 4096, "total_tokens": 4096},
        }
        if fate == "oversize":
            body["padding"] = "x" * (8 << 20)
        return Reply(
            body,
            headers={"x-request-id": f"req-{len(self.begun)}"},
            cut=100 if fate == "cut" else None,
            delay=1.0 if fate == "slow" else 0.0,
        )
