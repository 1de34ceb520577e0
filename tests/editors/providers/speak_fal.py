"""fal's queue as a server on this machine: submit, status, result, media.

A request is billed when its app made a picture; one that fal refuses or that broke is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, POLLING, Speaker

REFUSED = ("refused-policy", "refused-header", "refused-nsfw")
UNBILLED = ("refused-policy", "refused-header", "no-image", "app-broken", "completed-error")


@dataclass
class Item:
    """A request in the queue."""

    fate: str
    body: dict[str, Any]
    frame: bytes
    polls: int = 0
    downloads: int = 0


class FalSpeaker(Speaker):
    """Answers as queue.fal.run does."""

    family: ClassVar = "fal"
    editor: ClassVar = "fal:fal-ai/flux-pro/kontext"
    variables: ClassVar = ("FAL_QUEUE_URL",)
    key_variable: ClassVar = "FAL_KEY"
    refusals: ClassVar = REFUSED
    fates: ClassVar = (*FATES, *POLLING, *REFUSED, "app-broken", "completed-error")

    items: dict[str, Item]
    queue_host = ""
    """Where the status and result addresses lead, if not to this server."""

    def answer(self, request: Received) -> Reply:
        if not hasattr(self, "items"):
            self.items = {}
        path = urlsplit(request.path).path
        if path.startswith("/files/"):
            return self._file(path.rpartition("/")[2].removesuffix(".png"))
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not headers.get("authorization", "").startswith("Key "):
            return Reply({"detail": "No user found for Key ID and Secret"}, status=401)
        if request.method == "POST":
            return self._submit(request.json, path)
        _, _, tail = path.partition("/requests/")
        name, _, what = tail.partition("/")
        return self._status(name) if what == "status" else self._result(name)

    def _submit(self, body: dict[str, Any], path: str) -> Reply:
        fate = self.fate()
        if fate == "limited":
            return Reply({"detail": "Too many requests"}, status=429)
        if fate == "limited-delay":
            return Reply({"detail": "slow down"}, status=429, headers={"retry-after": "0.05"})
        if fate in ("broken", "overloaded"):
            return Reply({"detail": fate}, status=500 if fate == "broken" else 503)
        if fate not in UNBILLED:
            self.bill()
        name = f"req-{len(self.items)}"
        self.items[name] = Item(fate, body, self.frame(fate))
        app = "/".join(path.strip("/").split("/")[:2])
        base = f"{self.queue_host or self.server.url}/{app}/requests/{name}"
        told = {
            "request_id": name,
            "status": "IN_QUEUE",
            "queue_position": 0,
            "status_url": f"{base}/status",
            "response_url": base,
            "cancel_url": f"{base}/cancel",
        }
        return Reply(told, cut=len(json.dumps(told)) // 2 if fate == "cut" else None)

    def _status(self, name: str) -> Reply:
        item = self.items.get(name)
        if item is None or item.fate == "lost":
            return Reply({"detail": "Request not found"}, status=404)
        item.polls += 1
        if item.fate == "poll-broken" and item.polls == 1:
            return Reply({"detail": "oops"}, status=502)
        if item.fate == "slow" and item.polls <= 3:
            status = ("IN_QUEUE", "IN_PROGRESS", "WARMING_UP")[item.polls - 1]
            return Reply({"status": status, "request_id": name}, status=202)
        told = {"status": "COMPLETED", "request_id": name, "metrics": {"inference_time": 1.5}}
        if item.fate in ("app-broken", "completed-error"):
            told |= {"error": "Runner disconnected", "error_type": "runner_disconnected"}
        return Reply(told)

    def _result(self, name: str) -> Reply:
        item = self.items[name]
        headers = {"x-fal-request-id": name, "x-fal-billable-units": "1"}
        if item.fate == "refused-policy":
            problem = {
                "loc": ["body", "prompt"],
                "msg": "The content could not be processed because it was flagged.",
                "type": "content_policy_violation",
            }
            return Reply({"detail": [problem]}, status=422)
        if item.fate == "refused-header":
            headers = {"x-fal-error-type": "content_policy_violation"}
            return Reply({"detail": "The content was flagged."}, status=422, headers=headers)
        if item.fate == "app-broken":
            headers = {"x-fal-error-type": "runner_disconnected"}
            return Reply({"detail": "Runner disconnected"}, status=503, headers=headers)
        if item.fate == "completed-error":
            return Reply({"images": []})
        picture = {
            "url": f"{self.server.url}/files/{name}.png",
            "content_type": "image/png",
            "width": 64,
            "height": 64,
        }
        told: dict[str, Any] = {"images": [picture], "seed": item.body.get("seed"), "prompt": ""}
        if item.fate == "refused-nsfw":
            told["has_nsfw_concepts"] = [True]
        if item.fate == "no-image":
            told = {"images": [], "description": "I would rather talk about it."}
        return Reply(told, headers=headers)

    def _file(self, name: str) -> Reply:
        item = self.items[name]
        item.downloads += 1
        if item.fate == "redirect-private":
            return Reply(status=307, headers={"location": "https://192.168.0.1/admin"})
        if item.fate == "oversize":
            return Reply(bytes(1 << 20))
        if item.fate == "download-cut" and item.downloads == 1:
            return Reply(item.frame, cut=len(item.frame) // 2)
        return Reply(item.frame)
