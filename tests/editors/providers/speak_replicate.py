"""Replicate as a server on this machine: predictions and their files.

A prediction is billed once, when it is created, unless it fails or makes nothing; polls and
downloads are free.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, POLLING, Speaker

REFUSED = {
    "refused-sensitive": "The input or output was flagged as sensitive. Please try again with "
    "different inputs. (E005) (4XVkVxrMQt)",
    "refused-nsfw": "NSFW content detected. Try running it again, or try a different prompt.",
}
FAILED = {
    "failed-plain": "ValueError: cannot identify image file",
    "failed-passing": "Service is currently unavailable due to high demand. (E003)",
}


@dataclass
class Prediction:
    """A prediction as the server keeps it."""

    fate: str
    body: dict[str, Any]
    model: str
    frame: bytes
    polls: int = 0
    downloads: int = 0


class ReplicateSpeaker(Speaker):
    """Answers as api.replicate.com does."""

    family: ClassVar = "replicate"
    editor: ClassVar = "replicate:black-forest-labs/flux-kontext-pro"
    variables: ClassVar = ("REPLICATE_BASE_URL",)
    key_variable: ClassVar = "REPLICATE_API_TOKEN"
    refusals: ClassVar = tuple(REFUSED)
    fates: ClassVar = (*FATES, *POLLING, *REFUSED, *FAILED, "canceled", "aborted")

    VERSION = "0a1381936934845a14efcc9f309ce7d031cb905867878b5c5830280e00e97606"
    predictions: dict[str, Prediction]
    as_list = False
    """Whether the output is a list of addresses, as some models have it."""

    def answer(self, request: Received) -> Reply:
        if not hasattr(self, "predictions"):
            self.predictions = {}
        path = urlsplit(request.path).path
        if path.startswith("/delivery/"):
            return self._file(path.split("/")[2])
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not headers.get("authorization", "").startswith("Bearer "):
            told = {"title": "Unauthenticated", "detail": "You did not pass a token", "status": 401}
            return Reply(told, status=401)
        if request.method == "POST":
            return self._create(request.json, path)
        return self._poll(path.rpartition("/")[2])

    def _create(self, body: dict[str, Any], path: str) -> Reply:
        fate = self.fate()
        if fate == "limited":
            return Reply({"detail": "Request was throttled.", "status": 429}, status=429)
        if fate == "limited-delay":
            told = {"detail": "Request was throttled.", "status": 429, "retry_after": 0.05}
            return Reply(told, status=429)
        if fate in ("broken", "overloaded"):
            status = 500 if fate == "broken" else 503
            return Reply({"title": fate, "detail": "", "status": status}, status=status)
        if fate not in (*REFUSED, *FAILED, "no-image", "aborted"):
            self.bill()
        name = f"p{len(self.predictions)}"
        model = "/".join(path.split("/")[3:5]) if "/models/" in path else "by/version"
        self.predictions[name] = Prediction(fate, body, model, self.frame(fate))
        told = self._told(name, "starting")
        cut = len(json.dumps(told)) // 2 if fate == "cut" else None
        return Reply(told, status=201, cut=cut)

    def _told(self, name: str, status: str, **more: Any) -> dict[str, Any]:
        made = self.predictions[name]
        return {
            "id": name,
            "model": made.model,
            "version": made.body.get("version", self.VERSION),
            "status": status,
            "input": made.body["input"],
            "output": None,
            "error": None,
            "logs": "",
            "urls": {"get": "https://elsewhere.example/v1/predictions/" + name},
            **more,
        }

    def _poll(self, name: str) -> Reply:
        made = self.predictions.get(name)
        if made is None or made.fate == "lost":
            return Reply(
                {"title": "Not found", "detail": "no prediction", "status": 404}, status=404
            )
        made.polls += 1
        if made.fate == "poll-broken" and made.polls == 1:
            return Reply({"detail": "oops"}, status=504)
        if made.fate == "slow" and made.polls <= 3:
            return Reply(self._told(name, ("starting", "processing", "thinking")[made.polls - 1]))
        if error := REFUSED.get(made.fate) or FAILED.get(made.fate):
            return Reply(self._told(name, "failed", error=error))
        if made.fate in ("canceled", "aborted"):
            return Reply(self._told(name, made.fate))
        metrics = {"predict_time": 3.5, "total_time": 4.0}
        output: Any = f"{self.server.url}/delivery/{name}/out.png"
        if made.fate == "no-image":
            output = None
        elif self.as_list:
            output = [output]
        return Reply(self._told(name, "succeeded", output=output, metrics=metrics))

    def _file(self, name: str) -> Reply:
        made = self.predictions[name]
        made.downloads += 1
        if made.fate == "redirect-private":
            return Reply(status=302, headers={"location": "https://127.1.2.3/x"})
        if made.fate == "oversize":
            return Reply(bytes(1 << 20))
        if made.fate == "download-cut" and made.downloads == 1:
            return Reply(made.frame, cut=len(made.frame) // 2)
        return Reply(made.frame)
