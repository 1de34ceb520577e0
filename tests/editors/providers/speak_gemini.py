"""The Gemini API on this machine: `models/ID:generateContent`, as Google documents it."""

from __future__ import annotations

import base64
import re
from typing import Any, ClassVar

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, Speaker

BLOCKS = ("SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY")
FINISHES = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
PATH = re.compile(r"^/v1/models/([\w.-]+):generateContent$")
SIGNATURE = base64.b64encode(bytes(range(200, 256))).decode()  # both alphabets differ in it
ANOTHER = base64.b64encode(bytes(range(255, 190, -1))).decode()
FIELDS = {
    "": {"contents", "generationConfig"},
    "generationConfig": {
        "imageConfig",
        "responseModalities",
        "seed",
        "temperature",
        "maxOutputTokens",
        "thinkingConfig",
    },
    "imageConfig": {"aspectRatio", "imageSize"},
    "thinkingConfig": {"includeThoughts", "thinkingLevel"},
    "part": {"inlineData", "text", "thought", "thoughtSignature"},
    "inlineData": {"data", "mimeType"},
}
"""All that this server knows; anything else is answered with 400, as Google does."""


def camel(name: str) -> str:
    """Google takes both spellings of a field; the SDK sends a mixture."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def spelt(value: Any) -> Any:
    """A JSON value with every field in camel case."""
    if isinstance(value, dict):
        return {camel(name): spelt(inner) for name, inner in value.items()}
    return [spelt(inner) for inner in value] if isinstance(value, list) else value


def picture_part(data: bytes, mime: str = "image/png", **more: Any) -> dict[str, Any]:
    """A picture as the API sends one."""
    return {"inlineData": {"mimeType": mime, "data": base64.b64encode(data).decode()}, **more}


def problem(status: int, word: str, message: str, *details: dict[str, Any], **more: Any) -> Reply:
    """An error as the API sends one."""
    error = {"code": status, "status": word, "message": message, "details": list(details)}
    return Reply({"error": error}, status=status, **more)


def limited(*quotas: str, delay: str | None = None, **more: Any) -> Reply:
    """Too many requests."""
    kind = "type.googleapis.com/google.rpc."
    details: list[dict[str, Any]] = []
    if quotas:
        broken = [{"quotaId": name, "quotaMetric": "generate_requests"} for name in quotas]
        details.append({"@type": kind + "QuotaFailure", "violations": broken})
    if delay:
        details.append({"@type": kind + "RetryInfo", "retryDelay": delay})
    return problem(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", *details, **more)


class GeminiSpeaker(Speaker):
    """Thinks, draws a draft, then answers with a text and a signed picture."""

    family: ClassVar = "gemini"
    editor: ClassVar = "gemini:gemini-3.1-flash-lite-image"
    variables: ClassVar = ("GOOGLE_GEMINI_BASE_URL",)
    key_variable: ClassVar = "GEMINI_API_KEY"
    fates: ClassVar = FATES
    refusals: ClassVar = (
        *(f"refused-prompt-{reason}" for reason in BLOCKS),
        *(f"refused-finish-{reason}" for reason in FINISHES),
    )

    def answer(self, request: Received) -> Reply:
        found = PATH.match(request.path)
        if request.method != "POST" or not found:
            return problem(404, "NOT_FOUND", f"{request.path} is not found for API version v1")
        if not request.headers.get("x-goog-api-key"):
            return problem(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers")
        unknown = self._unknown(spelt(request.json))
        if unknown:
            return problem(400, "INVALID_ARGUMENT", f"Unknown name {unknown!r}: Cannot find field.")
        return self._fated(self.fate(), found[1])

    @staticmethod
    def _unknown(body: dict[str, Any]) -> str:
        config = body.get("generationConfig", {})
        parts = [part for content in body["contents"] for part in content["parts"]]
        seen = [("", body), ("generationConfig", config)]
        seen += [(name, config.get(name, {})) for name in ("imageConfig", "thinkingConfig")]
        seen += [("part", part) for part in parts]
        seen += [("inlineData", part.get("inlineData", {})) for part in parts]
        return next(
            (name for kind, table in seen for name in table if name not in FIELDS[kind]), ""
        )

    def _fated(self, fate: str, model: str) -> Reply:
        match fate:
            case "limited":
                return limited()
            case "limited-delay":
                return limited("GenerateRequestsPerMinutePerProjectPerModel", delay="0.05s")
            case "broken":
                return problem(500, "INTERNAL", "An internal error has occurred.")
            case "overloaded":
                return problem(503, "UNAVAILABLE", "The model is overloaded.")
        if fate.startswith("refused-prompt-"):
            reason = fate.removeprefix("refused-prompt-")
            return Reply(self.told(model, promptFeedback={"blockReason": reason}))
        self.bill()
        if fate.startswith("refused-finish-"):
            return Reply(self.finished(model, fate.removeprefix("refused-finish-")))
        if fate == "no-image":
            return Reply(self.finished(model, "STOP", {"text": "I would rather talk about it."}))
        body = self.drawn(model, self.frame(fate))
        if fate == "oversize":
            body["padding"] = "x" * 2_000_000
        return Reply(body, cut=3000 if fate == "cut" else None)

    def told(self, model: str, **more: Any) -> dict[str, Any]:
        """What every answer says."""
        return {"modelVersion": model, "responseId": f"response-{len(self.begun)}", **more}

    def finished(self, model: str, reason: str, *parts: dict[str, Any]) -> dict[str, Any]:
        """An answer without a picture, which costs what was read and thought."""
        candidate = {
            "content": {"role": "model", "parts": list(parts)} if parts else {},
            "finishReason": reason,
            "finishMessage": f"Unable to show the picture ({reason}).",
        }
        return self.told(model, candidates=[candidate], usageMetadata=self.usage(0))

    def drawn(self, model: str, data: bytes, *parts: dict[str, Any]) -> dict[str, Any]:
        """An answer with a picture, or with the parts given."""
        draft = self.picture(16, 16, seed=1)
        usual = (
            {"text": "I look at the sky.", "thought": True},
            picture_part(draft, thought=True),
            {"text": "The draft is good.", "thought": True},
            {"text": "Here it is.", "thoughtSignature": SIGNATURE},
            picture_part(data, thoughtSignature=ANOTHER),
        )
        candidate = {
            "content": {"role": "model", "parts": list(parts or usual)},
            "finishReason": "STOP",
        }
        return self.told(model, candidates=[candidate], usageMetadata=self.usage(1120))

    @staticmethod
    def usage(pictured: int) -> dict[str, Any]:
        """Tokens: one picture and ten words read, `pictured` drawn, six written, 90 thought."""
        made = [{"modality": "IMAGE", "tokenCount": pictured}] if pictured else []
        return {
            "promptTokenCount": 1130,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 10},
                {"modality": "IMAGE", "tokenCount": 1120},
            ],
            "candidatesTokenCount": pictured + 6,
            "candidatesTokensDetails": made or [{"modality": "TEXT", "tokenCount": 6}],
            "thoughtsTokenCount": 90,
            "totalTokenCount": 1130 + pictured + 96,
        }
