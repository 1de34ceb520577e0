"""DashScope as a loopback server: one synchronous call, then a signed address to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, Speaker

PATH = "/api/v1/services/aigc/multimodal-generation/generation"
SIGNED = "Expires=1790000000&OSSAccessKeyId=LTAI&Signature=abc%3D"


def error(status: int, code: str, message: str, **headers: str) -> Reply:
    """An error as DashScope words it."""
    body = {"code": code, "message": message, "request_id": "req-fault"}
    return Reply(body, status, {name.replace("_", "-"): text for name, text in headers.items()})


RATE = "Requests rate limit exceeded, please try again later."
INSPECTED = "Input or output data may contain inappropriate content."
FAULTS: Mapping[str, Callable[[], Reply]] = {
    "limited": lambda: error(429, "Throttling.RateQuota", RATE),
    "limited-delay": lambda: error(429, "Throttling.RateQuota", RATE, retry_after="0.05"),
    "limited-allocation": lambda: error(
        429,
        "Throttling.AllocationQuota",
        "Allocated quota exceeded, please increase your quota limit.",
    ),
    "limited-plain": lambda: error(429, "Throttling", "Requests throttling triggered."),
    "limited-200": lambda: error(200, "Throttling.RateQuota", RATE),
    "broken": lambda: error(500, "InternalError", "An internal error has occured."),
    "broken-200": lambda: error(200, "InternalError.Algo", "An internal error has occured."),
    "overloaded": lambda: error(503, "ModelServingError", "Too many requests for the service."),
    "late": lambda: error(408, "RequestTimeOut", "Request timed out, please try again later."),
    "refused-inspection": lambda: error(400, "DataInspectionFailed", INSPECTED),
    "refused-200": lambda: error(200, "DataInspectionFailed", INSPECTED),
    "refused-snake": lambda: error(400, "data_inspection_failed", INSPECTED),
    "refused-infringement": lambda: error(
        400,
        "IPInfringementSuspect",
        "Input data is suspected of being involved in IP infringement.",
    ),
    "spent": lambda: error(429, "Throttling.AllocationQuota", "Free allocated quota exceeded."),
    "free-only": lambda: error(
        403, "AllocationQuota.FreeTierOnly", "The free tier of the model has been exhausted."
    ),
    "arrears": lambda: error(
        400, "Arrearage", "Access denied, please make sure your account is in good standing."
    ),
    "key": lambda: error(401, "InvalidApiKey", "Invalid API-key provided."),
    "not-bought": lambda: error(403, "AccessDenied.Unpurchased", "Access to model denied."),
    "bad": lambda: error(400, "InvalidParameter", "size is not valid."),
    "unreadable": lambda: error(
        400, "InvalidParameter.DataInspection", "The media format is not supported."
    ),
    "gone": lambda: error(404, "ModelNotFound", "Model not exist."),
}


class QwenSpeaker(Speaker):
    """`POST …/multimodal-generation/generation`, and the pictures it gives the address of."""

    family: ClassVar = "qwen"
    editor: ClassVar = "qwen:qwen-image-edit-plus"
    variables: ClassVar = ("DASHSCOPE_BASE_URL",)
    key_variable: ClassVar = "DASHSCOPE_API_KEY"
    refusals: ClassVar = (
        "refused-inspection",
        "refused-200",
        "refused-snake",
        "refused-infringement",
    )
    fates: ClassVar = (*FATES, *refusals, "redirect-private", "download-cut")

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        super().__init__(schedule)
        self.pictures: dict[str, bytes] = {}
        self.downloads: dict[str, list[Reply]] = {}
        """What the first reads of an address get instead of the picture."""

    def answer(self, request: Received) -> Reply:
        if request.path.startswith("/result/"):
            return self._picture(request)
        if (request.method, request.path) != ("POST", PATH):
            return error(404, "InvalidURL", "Invalid URL provided in your request.")
        fate = self.fate()
        if fate in FAULTS:
            return FAULTS[fate]()
        self.bill()
        name = f"/result/{len(self.begun)}.png"
        self.pictures[name] = self.frame(fate)
        self.downloads[name] = self._troubles(fate, self.pictures[name])
        content: list[dict[str, Any]] = [{"image": f"{self.server.url}{name}?{SIGNED}"}]
        if fate == "no-image":
            content = [{"text": "I see a grey square."}]
        body: dict[str, Any] = {
            "output": {
                "choices": [
                    {
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": content},
                    }
                ]
            },
            "usage": {"width": 1024, "height": 1024, "image_count": 1},
            "request_id": f"req-{len(self.begun)}",
        }
        return Reply(body, cut=60 if fate == "cut" else None, delay=1.0 if fate == "slow" else 0.0)

    def _troubles(self, fate: str, picture: bytes) -> list[Reply]:
        if fate == "redirect-private":
            return [Reply(b"", 302, {"location": "https://10.0.0.1/result.png"})]
        if fate == "download-cut":
            return [Reply(picture, cut=len(picture) // 2)]
        if fate == "download-dead":
            return [Reply(picture, cut=len(picture) // 2)] * 3
        if fate == "expired":
            return [Reply(b"", 403)]
        if fate == "oversize":
            return [Reply(b"x", length=1 << 40)]
        return []

    def _picture(self, request: Received) -> Reply:
        name, _, query = request.path.partition("?")
        assert query == SIGNED  # signatures break when an address is rewritten
        assert "authorization" not in {header.lower() for header in request.headers}
        if self.downloads[name]:
            return self.downloads[name].pop(0)
        return Reply(self.pictures[name], headers={"content-type": "image/png"})
