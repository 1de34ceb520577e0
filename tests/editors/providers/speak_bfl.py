"""Black Forest Labs as a server on this machine: its documented tasks, statuses and errors.

A task is billed once, when it is begun; polls and downloads are free.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.support.loopback import Received, Reply
from tests.support.speaker import FATES, POLLING, Speaker

REFUSED = {
    "refused-request": ("Request Moderated", {"Moderation Reasons": ["Derivative Works Filter"]}),
    "refused-content": ("Content Moderated", {"Moderation Reasons": ["Safety Filter"]}),
}


@dataclass
class Task:
    """A task as the server keeps it."""

    fate: str
    body: dict[str, Any]
    frame: bytes
    polls: int = 0
    downloads: int = 0


class BflSpeaker(Speaker):
    """Answers as api.bfl.ai does."""

    family: ClassVar = "bfl"
    editor: ClassVar = "bfl:flux-2-klein-4b"
    variables: ClassVar = ("BFL_BASE_URL",)
    key_variable: ClassVar = "BFL_API_KEY"
    refusals: ClassVar = tuple(REFUSED)
    fates: ClassVar = (*FATES, *POLLING, *REFUSED)

    COST = 1.5
    """Credits of a task."""

    tasks: dict[str, Task]
    polling_host = ""
    """Where `polling_url` leads, if not to this server."""

    def answer(self, request: Received) -> Reply:
        if not hasattr(self, "tasks"):
            self.tasks = {}
        parts = urlsplit(request.path)
        if parts.path.startswith("/sample/"):
            return self._sample(parts.path.rpartition("/")[2].removesuffix(".png"))
        if "x-key" not in {name.lower() for name in request.headers}:
            return Reply({"detail": "Not authenticated - Invalid Authentication"}, status=403)
        if parts.path == "/v1/get_result":
            return self._poll(parse_qs(parts.query)["id"][0])
        return self._submit(request.json)

    def _submit(self, body: dict[str, Any]) -> Reply:
        fate = self.fate()
        if fate == "limited":
            return Reply({"detail": "Rate limit exceeded: 24 active tasks"}, status=429)
        if fate == "limited-delay":
            return Reply({"detail": "slow down"}, status=429, headers={"retry-after": "0.05"})
        if fate in ("broken", "overloaded"):
            return Reply({"detail": fate}, status=500 if fate == "broken" else 503)
        self.bill()
        name = f"task-{len(self.tasks)}"
        self.tasks[name] = Task(fate, body, self.frame(fate))
        host = self.polling_host or self.server.url
        told = {
            "id": name,
            "polling_url": f"{host}/v1/get_result?id={name}",
            "cost": self.COST,
            "input_mp": 1,
            "output_mp": 1,
        }
        return Reply(told, cut=len(json.dumps(told)) // 2 if fate == "cut" else None)

    def _poll(self, name: str) -> Reply:
        task = self.tasks.get(name)
        if task is None or task.fate == "lost":
            return Reply({"id": name, "status": "Task not found", "result": None}, status=404)
        task.polls += 1
        if task.fate == "poll-broken" and task.polls == 1:
            return Reply({"detail": "oops"}, status=500)
        if task.fate == "slow" and task.polls <= 3:
            status = ("Pending", "Reasoning", "A status of next year")[task.polls - 1]
            return Reply({"id": name, "status": status, "progress": 0.1, "result": None})
        if task.fate in REFUSED:
            status, details = REFUSED[task.fate]
            return Reply({"id": name, "status": status, "details": details, "result": None})
        if task.fate == "no-image":
            return Reply({"id": name, "status": "Ready", "result": {"prompt": "p"}})
        result = {
            "sample": f"{self.server.url}/sample/{name}.png?sig=abc",
            "prompt": task.body["prompt"] + " (as BFL read it)",
            "seed": task.body.get("seed"),
            "duration": 1.25,
        }
        return Reply({"id": name, "status": "Ready", "result": result})

    def _sample(self, name: str) -> Reply:
        task = self.tasks[name]
        task.downloads += 1
        if task.fate == "redirect-private":
            return Reply(status=302, headers={"location": "https://10.0.0.7/secret.png"})
        if task.fate == "oversize":
            return Reply(bytes(1 << 20))
        if task.fate == "download-cut" and task.downloads == 1:
            return Reply(task.frame, cut=len(task.frame) // 2)
        return Reply(task.frame)
