"""`comfyui:workflow.json`: a workflow that a ComfyUI server runs, once per edit.

A run of the workflow is a task with an id: it is polled for, and a restarted run goes on with the
same one. The id is ours, so that even an answer that was cut off leaves the task to be found.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.own.server import Server
from convergebench.editors.own.terms import (
    Terms,
    Value,
    asked_size,
    literal,
    patience,
    read_terms,
)
from convergebench.editors.own.workflow import MULTIPLE, Workflow
from convergebench.errors import (
    AccountBlocked,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorUnavailable,
    SettingsError,
)
from convergebench.frame import Frame, extension
from convergebench.registry import PluginName
from convergebench.wire import Told

VERSION: Final = "1"
VARIABLE: Final = "COMFYUI_URL"
URL: Final = "http://127.0.0.1:8188"
FOLDER: Final = "convergebench"
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
_OWN: Final = ("prompt", "image", "seed", "width", "height")


class ComfyEditor:
    """A workflow on a server."""

    def __init__(
        self,
        spec: EditorSpec,
        server: Server,
        workflow: Workflow,
        options: Mapping[str, Value],
        node: str,
    ) -> None:
        self.spec: Final = spec
        self._server: Final = server
        self._workflow: Final = workflow
        self._options: Final = dict(options)
        self._node: Final = node
        self._client: Final = uuid.uuid4().hex

    def edit(self, request: EditRequest) -> EditReply:
        """Run the workflow, or go on with a run of it that was begun before."""
        if self._server.lacks:
            raise AccountBlocked(self._server.lacks)
        end = time.monotonic() + patience(request)
        task = dict(request.task) if request.task else self._begin(request, end)
        told = EditReply(
            b"",
            request_id=str(task["prompt_id"]),
            parameters={"workflow": self._workflow.digest, **self._particulars(request, task)},
            caveats=(*self.spec.caveats, *task.get("caveats", ())),
            size="{}x{}".format(*asked_size(request, MULTIPLE)) if self._sized else None,
            task=task,
        )
        entry = self._await(told, end)
        try:
            self._check(entry, told)
            picture, caveats = self._choose(entry, told)
            query = urlencode({n: picture.get(n, "") for n in ("filename", "subfolder", "type")})
        except (AttributeError, LookupError, TypeError, ValueError):
            problem = f"{self._server.what} tells of the workflow in a form that nobody described"
            raise EditorFailed(problem, told=told) from None
        try:
            data = self._server.read(f"/view?{query}", end)
        except EditorLost as error:
            raise EditorLost(str(error), told=told) from None
        particulars = {**vars(told), "data": data, "caveats": (*told.caveats, *caveats)}
        return EditReply(**particulars)

    @property
    def _sized(self) -> bool:
        return bool({"width", "height"} & self._workflow.marks)

    def _particulars(self, request: EditRequest, task: Mapping[str, Any]) -> dict[str, Any]:
        """What was filled in besides the prompt and the pictures."""
        found: dict[str, Any] = dict(self._options)
        if "seed" in self._workflow.marks:
            found["seed"] = task.get("seed", request.seed)
        if self._sized:
            found["width"], found["height"] = asked_size(request, MULTIPLE)
        return found

    def _begin(self, request: EditRequest, end: float) -> dict[str, Any]:
        """Upload the pictures and queue the workflow; the task to poll for."""
        names = [self._uploaded(frame, end) for frame in request.inputs]
        task: dict[str, Any] = {"prompt_id": str(uuid.uuid4())}
        if request.seed is None and "seed" in self._workflow.marks:
            task["seed"] = random.getrandbits(31)  # a sampler wants one even where none is asked
        nodes = self._workflow.filled(
            {
                **{f"image{number}": name for number, name in enumerate(names, 1)},
                "prompt": request.prompt,
                "image": names[-1],
                **self._particulars(request, task),
            }
        )
        body = {"prompt": nodes, "client_id": self._client, "prompt_id": task["prompt_id"]}
        left = max(end - time.monotonic(), 0.1)
        try:
            answer = self._server.post("/prompt", body, left)
        except EditorLost:  # it may have arrived: its id is known, so it can be asked for
            request.on_task(task)
            return task
        task |= self._accepted(answer)
        request.on_task(task)
        return task

    def _uploaded(self, frame: Frame, end: float) -> str:
        """Put a picture on the server, named by its content; its name there."""
        name = f"{frame.digest[:32]}{extension(frame.data)}"
        form = {"type": "input", "subfolder": FOLDER, "overwrite": "true"}
        file = (name, frame.data, "application/octet-stream")
        left = max(end - time.monotonic(), 0.1)
        told = self._server.upload("/upload/image", form, file, left).table
        if not told.get("name"):
            raise EditorFailed(
                f"{self._server.what} took a picture without naming it. Is it ComfyUI?"
            )
        folder = str(told.get("subfolder") or "")
        return f"{folder}/{told['name']}" if folder else str(told["name"])

    def _accepted(self, answer: Told) -> dict[str, Any]:
        """What the server says of a workflow it has queued. Raises what it says otherwise."""
        table = answer.table
        broken = table.get("node_errors") or {}
        if not answer.ok:
            if answer.status == 400 and (broken or table.get("error")):
                raise EditorFailed(self._server.scrub(self._complaint(table, broken)))
            raise self._server.fault(answer)
        if not table.get("prompt_id"):
            raise EditorFailed(
                f"{self._server.what} took the workflow without an id. Is it ComfyUI?"
            )
        found: dict[str, Any] = {"prompt_id": str(table["prompt_id"])}
        if broken:  # some outputs are left out, the others are made
            found["caveats"] = [f"left out: {self._complaint({}, broken)}"]
        return found

    def _complaint(self, table: Mapping[str, Any], broken: Any) -> str:
        error = table.get("error")
        said = error.get("message", "") if isinstance(error, dict) else str(error or "")
        details = str(error.get("details", "")) if isinstance(error, dict) else ""
        parts = []
        for node, told in broken.items() if isinstance(broken, dict) else ():
            errors = told.get("errors", []) if isinstance(told, dict) else []
            words = [
                f"{e.get('message')}: {e.get('details')}" if isinstance(e, dict) else str(e)
                for e in errors
            ]
            parts.append(f"{self._workflow.named(node)}: {'; '.join(words)}")
        return " · ".join([p for p in (said, *(parts or [details])) if p])[:600]

    def _await(self, told: EditReply, end: float) -> dict[str, Any]:
        """The entry of a finished task. Raises EditorLost."""
        number = str(told.task["prompt_id"])
        pause = FIRST_PAUSE
        while True:
            try:
                entry = self._look(number, end)
            except EditorUnavailable:  # a look costs nothing: the next may go well
                entry = None
            if entry is not None:
                return entry
            if time.monotonic() + pause > end:
                raise EditorLost(
                    f"the workflow {number} was not done in time", timed_out=True, told=told
                )
            if entry is None and self._vanished(number, end):
                raise EditorLost(
                    f"{self._server.what} no longer knows the workflow {number}: it was "
                    "restarted, or its queue was cleared",
                    told=told,
                )
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _look(self, number: str, end: float) -> dict[str, Any] | None:
        """The task's entry in the history, or None while it is not there."""
        entry = self._get(f"/history/{quote(number, safe='')}", end).get(number)
        return entry if isinstance(entry, dict) else None

    def _vanished(self, number: str, end: float) -> bool:
        """Whether a task is neither queued nor done; doubtful answers are no."""
        try:
            queue = self._get("/queue", end)
            queued = [*queue["queue_running"], *queue["queue_pending"]]
            if any(str(item[1]) == number for item in queued):
                return False
            return self._look(number, end) is None  # it may have ended between the two looks
        except (EditorUnavailable, KeyError, TypeError, IndexError):
            return False

    def _get(self, path: str, end: float) -> dict[str, Any]:
        left = min(max(end - time.monotonic(), 0.1), 30.0)
        told = self._server.get(path, left)
        if not told.ok or not isinstance(told.body, dict):
            raise EditorUnavailable(f"HTTP {told.status}")
        return told.body

    def _check(self, entry: Mapping[str, Any], told: EditReply) -> None:
        """Raise EditorFailed for a workflow that broke off."""
        status = entry.get("status")
        if not isinstance(status, dict) or status.get("status_str") != "error":
            return
        said = "the workflow broke off"
        for event, data in status.get("messages") or ():
            where = self._workflow.named(data.get("node_id"))
            if event == "execution_error":
                kind, words = data.get("exception_type"), data.get("exception_message")
                said = f"{where}: {kind}: {str(words).strip()}"
            elif event == "execution_interrupted":
                said = f"{where}: interrupted by somebody at the server"
        raise EditorFailed(self._server.scrub(said)[:600], told=told)

    def _choose(
        self, entry: Mapping[str, Any], told: EditReply
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The picture that counts, and caveats: the last node's that saves one."""
        outputs = entry.get("outputs") or {}
        ranked = []
        for place, node in enumerate(self._workflow.nodes):
            pictures = (outputs.get(node) or {}).get("images") or []
            if pictures and self._node in ("", node):
                saved = pictures[0].get("type") == "output"
                ranked.append((saved, place, node, pictures))
        if not ranked:
            of = f" from node {self._node}" if self._node else ""
            raise EditorNoImage(f"the workflow ended without a picture{of}", told=told)
        _, _, node, pictures = max(ranked, key=lambda each: each[:2])
        if len(pictures) == 1:
            return pictures[0], ()
        caveat = f"{self._workflow.named(node)} made {len(pictures)} pictures; the first counts"
        return pictures[0], (caveat,)


def open_editor(model: str = "", **options: str) -> ComfyEditor:
    """A workflow on a ComfyUI server: comfyui:workflow.json.

    Raises:
        SettingsError: There is no such workflow, it is not in API format, or has no placeholder
            of an option's name.
    """
    name = str(PluginName("comfyui", model, tuple(sorted(options.items()))))
    if not model:
        raise SettingsError(f"editor {name!r} has no workflow. Write comfyui:workflow.json.")
    terms, rest = read_terms(name, options, Terms(price=0.0))
    url, key_env = rest.pop("url", ""), rest.pop("key_env", "")
    node = rest.pop("node", "")
    workflow = Workflow.load(Path(model).expanduser())
    if node and node not in workflow.nodes:
        raise SettingsError(
            f"editor {name!r}: {model} has no node {node!r}. It has {', '.join(workflow.nodes)}."
        )
    for option in rest:
        if option not in workflow.marks or option in _OWN:
            raise SettingsError(
                f'editor {name!r}: {model} has no "%{option}%" that the option {option} could fill.'
            )
    where = f"editor {name}" if url else VARIABLE
    address = url or os.environ.get(VARIABLE) or URL
    server = Server(address.rstrip("/"), what="ComfyUI", where=where, key_env=key_env)
    sized = {"width", "height"} <= workflow.marks
    caveats = () if "prompt" in workflow.marks else ("the workflow is not told the prompt",)
    spec = EditorSpec(
        name=name,
        version=f"{VERSION}-{workflow.digest}",
        description=f"the ComfyUI workflow {model}",
        concurrency=terms.concurrency,
        seconds=terms.seconds,
        price=terms.price,
        caveats=caveats,
        abilities=Abilities(
            seeds="seed" in workflow.marks,
            temperature=False,
            resolutions=("1K", "2K", "4K") if sized else (),
            sessions=("stateless",),
        ),
        account=server.account,
        lacks=server.lacks,
    )
    values = {option: literal(text) for option, text in rest.items()}
    return ComfyEditor(spec, server, workflow, values, node)
