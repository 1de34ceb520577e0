"""A server on this machine that speaks ComfyUI's protocol, as far as workflows go.

Learnt from ComfyUI's server.py and execution.py (January 2026): forms for uploads, `/prompt` with
an id of the client's choice, a queue, a history of finished workflows only, `/view`.
"""

from __future__ import annotations

import email
import email.policy
import itertools
import threading
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from convergebench.frame import Frame
from tests.editors.own.asking import frame
from tests.support.loopback import Loopback, Received, Reply

WORKFLOW: dict[str, Any] = {
    "1": {"class_type": "LoadImage", "inputs": {"image": "%image%"}},
    "2": {"class_type": "TextEncode", "inputs": {"text": "photo. %prompt%", "clip": ["9", 1]}},
    "3": {
        "class_type": "Sampler",
        "inputs": {"seed": "%seed%", "width": "%width%", "height": "%height%", "image": ["1", 0]},
    },
    "4": {"class_type": "PreviewImage", "inputs": {"images": ["3", 0]}},
    "5": {"class_type": "SaveImage", "inputs": {"images": ["3", 0], "filename_prefix": "%date%"}},
}


class Comfy:
    """The server.

    Args:
        schedule: The fate of each workflow that is queued, by its number: `ok`, `slow`, `stuck`,
            `lost`, `cut`, `cut-unknown`, `error`, `interrupted`, `no-image`, `preview`, `batch`,
            `poll-broken`, `view-cut`, `view-gone`, `broken`, `limited`, `invalid`.
    """

    def __init__(self, schedule: Callable[[int], str] | None = None) -> None:
        self._schedule = schedule or (lambda _number: "ok")
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self.uploads: dict[str, bytes] = {}
        self.prompts: list[dict[str, Any]] = []
        self.made: dict[str, bytes] = {}
        self._fates: dict[str, str] = {}
        self._asked: dict[str, dict[str, Any]] = {}
        self._polls: dict[str, int] = {}
        self._viewed: set[str] = set()
        self.broken_uploads = 0
        self.server = Loopback(self._guarded)

    def _guarded(self, request: Received) -> Reply:
        with self._lock:
            return self.answer(request)

    def answer(self, request: Received) -> Reply:
        path = urlsplit(request.path).path
        if path == "/upload/image":
            return self._upload(request)
        if path == "/prompt":
            return self._prompt(request.json)
        if path == "/queue":
            waiting = [[0, number, {}, {}, []] for number in self._fates if not self._done(number)]
            return Reply({"queue_running": waiting[:1], "queue_pending": waiting[1:]})
        if path.startswith("/history/"):
            return self._history(unquote(path.removeprefix("/history/")))
        if path == "/view":
            query = parse_qs(urlsplit(request.path).query, keep_blank_values=True)
            return self._view({name: values[0] for name, values in query.items()})
        return Reply(b"404: Not Found", status=404)

    def _upload(self, request: Received) -> Reply:
        if self.broken_uploads:
            self.broken_uploads -= 1
            return Reply(b"", status=500)
        head = f"content-type: {_header(request, 'content-type')}\r\n\r\n".encode()
        form = email.message_from_bytes(head + request.body, policy=email.policy.HTTP)
        fields: dict[str, Any] = {}
        for part in form.iter_parts():
            name = part.get_param("name", header="content-disposition")
            fields[str(name)] = part.get_payload(decode=True)
            if name == "image":
                filename = str(part.get_filename())
        folder = fields["subfolder"].decode()
        assert (fields["type"], fields["overwrite"]) == (b"input", b"true")
        self.uploads[f"{folder}/{filename}"] = fields["image"]
        return Reply({"name": filename, "subfolder": folder, "type": "input"})

    def _prompt(self, body: dict[str, Any]) -> Reply:
        fate = self._schedule(next(self._numbers))
        if fate == "broken":
            return Reply(b"500 Internal Server Error", status=500)
        if fate == "limited":
            return Reply(b"", status=429)
        nodes = body["prompt"]
        for number, node in nodes.items():
            loads = node["class_type"] == "LoadImage"
            if fate == "invalid" or (loads and node["inputs"]["image"] not in self.uploads):
                return Reply(_invalid(number, node["class_type"]), status=400)
        if fate == "cut-unknown":
            return Reply({"prompt_id": "?"}, cut=0)
        task = str(body.get("prompt_id", uuid.uuid4()))
        self.prompts.append(body)
        self._fates[task] = fate
        self._asked[task] = nodes
        self._polls[task] = 0
        seed = len(self.prompts) if fate != "batch" else 1000
        self.made[task] = frame(seed, 32, 24).data
        return Reply(
            {"prompt_id": task, "number": 1, "node_errors": {}}, cut=3 if fate == "cut" else None
        )

    def _done(self, task: str) -> bool:
        fate = self._fates[task]
        return fate != "stuck" and self._polls[task] >= (4 if fate == "slow" else 1)

    def _history(self, task: str) -> Reply:
        if task not in self._fates:
            return Reply({})
        self._polls[task] += 1
        fate = self._fates[task]
        if fate == "poll-broken" and self._polls[task] < 3:
            return Reply(b"oops", status=500)
        if fate == "lost" and self._polls[task] > 1:
            self.restart()
            return Reply({})
        if not self._done(task) or fate == "lost":
            return Reply({})
        return Reply({task: self._entry(task, fate)})

    def _entry(self, task: str, fate: str) -> dict[str, Any]:
        if fate in ("error", "interrupted"):
            data = {"prompt_id": task, "node_id": "3", "node_type": "Sampler", "executed": ["1"]}
            if fate == "error":
                data |= {"exception_type": "torch.OutOfMemoryError", "exception_message": "8 GiB\n"}
            messages = [["execution_start", {}], [f"execution_{fate}", data]]
            status = {"status_str": "error", "completed": False, "messages": messages}
            return {"prompt": [], "outputs": {}, "status": status}
        kinds = {node["class_type"]: name for name, node in self._asked[task].items()}
        save, preview = kinds.get("SaveImage", "5"), kinds.get("PreviewImage", "4")
        saved = [{"filename": f"{task}.png", "subfolder": "", "type": "output"}]
        if fate == "batch":
            saved.append({"filename": "other.png", "subfolder": "", "type": "output"})
        shown = {"images": [{"filename": f"p-{task}.png", "subfolder": "", "type": "temp"}]}
        outputs: dict[str, Any] = {save: {"images": saved}, preview: shown}
        if fate == "no-image":
            outputs = {save: {"text": ["nothing"]}}
        if fate == "preview":
            outputs = {preview: shown}
        status = {"status_str": "success", "completed": True, "messages": []}
        return {"prompt": [], "outputs": outputs, "status": status}

    def _view(self, query: dict[str, str]) -> Reply:
        task = query["filename"].removeprefix("p-").removesuffix(".png")
        fate = self._fates.get(task)
        if fate is None or fate == "view-gone":
            return Reply(b"", status=404)
        assert query["type"] == ("temp" if fate == "preview" else "output")
        if fate == "view-cut" and task not in self._viewed:
            self._viewed.add(task)
            return Reply(self.made[task], cut=20)
        return Reply(self.made[task])

    def restart(self) -> None:
        """Forget queue and history, as the real one does."""
        with self._lock:
            self._fates.clear()

    def frame(self, number: int = -1) -> Frame:
        """The picture made by a workflow."""
        return Frame(list(self.made.values())[number])

    def __enter__(self) -> Comfy:
        self.server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.__exit__(*exc)


def _header(request: Received, name: str) -> str:
    return next(value for key, value in request.headers.items() if key.lower() == name)


def _invalid(number: str, kind: str) -> dict[str, Any]:
    said = {"type": "custom_validation_failed", "message": "Custom validation failed for node",
            "details": "image - Invalid image file: x.png", "extra_info": {}}  # fmt: skip
    top = {"type": "prompt_outputs_failed_validation", "details": "", "extra_info": {},
           "message": "Prompt outputs failed validation"}  # fmt: skip
    return {
        "error": top,
        "node_errors": {number: {"errors": [said], "dependent_outputs": ["5"], "class_type": kind}},
    }
