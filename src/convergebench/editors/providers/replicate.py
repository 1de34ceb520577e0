"""Replicate: any editing model of theirs. What a model calls its inputs is catalogue data.

By our own client, which is safer here than the SDK: `replicate.run()` returns None when the wait
expires before the picture is there, and does not tell the prediction's id, by which it could be
taken up after a kill. We do not ask the server to wait (`Prefer: wait`): a connection cut while it
waits would hide the id of a prediction that is being billed. Predictions are asked after at
`/v1/predictions/{id}` on our base, so the token goes nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from urllib.parse import quote

from convergebench.editor import EditReply, EditRequest
from convergebench.editors.providers.family import Family, data_uri
from convergebench.editors.providers.polling import Task, polled, task_id
from convergebench.editors.providers.queued import Finished, Pictures, QueueEditor
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.wire import Secret, Told, retry_after

LATEST: Final = "latest"
REFUSAL: Final = re.compile(
    r"\bE005\b|sensitive|flagged|NSFW|safety|content policy|moderat|prohibited|blocked by",
    re.IGNORECASE,
)
"""Words in the error of a failed prediction that mean that the model declined."""
PASSING: Final = re.compile(
    r"\bE003\b|\bE004\b|\bE1000\b|\bE8765\b|high demand|code: PA|interrupted|please retry"
    r"|try again|timed? ?out|temporarily|unavailable",
    re.IGNORECASE,
)
"""Words that mean that the same edit may go well another time."""


class ReplicateEditor(QueueEditor):
    """An editing model on Replicate."""

    VERSION: ClassVar = "1"

    @staticmethod
    def headers(key: Secret) -> dict[str, str]:
        """The token."""
        return {"authorization": f"Bearer {key.reveal()}"}

    def body(self, prompt: str, fields: Mapping[str, Any], pictures: Pictures) -> Any:
        """Everything goes under `input`; a pinned version beside it."""
        uris = [data_uri(data, mime) for data, mime in pictures]
        rest = {name: value for name, value in fields.items() if name != "version"}
        body: dict[str, Any] = {"input": {"prompt": prompt, **self._form.attached(uris), **rest}}
        return body if self._version == LATEST else {"version": self._version, **body}

    def recorded(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """No version, where none is pinned: then none is sent."""
        return {n: value for n, value in fields.items() if (n, value) != ("version", LATEST)}

    def begin(self, body: Any, timeout: float) -> Task:
        """Create the prediction."""
        model = self._form.path or self._opened.model.id
        path = "/v1/predictions" if "version" in body else f"/v1/models/{model}/predictions"
        told = self._wire.post(path, body, timeout=timeout)
        if not told.ok:
            raise self._fault(told)
        return {"id": task_id(told, "id", self._wire.what)}

    def look(self, task: Task, request: EditRequest, timeout: float) -> Finished | None:
        """One poll. A status that nobody documented counts as pending."""
        address = f"/v1/predictions/{quote(str(task['id']), safe='')}"
        answer = polled(self._wire, address, timeout).table
        told = self._told(task, answer)
        status = str(answer.get("status", ""))
        if status == "succeeded":
            return Finished(_first(answer.get("output")), told)
        if status in ("failed", "canceled", "aborted"):
            raise self._ended(status, str(answer.get("error") or ""), told)
        return None

    @property
    def _version(self) -> str:
        return str(self._opened.options.get("version", LATEST))

    def _told(self, task: Task, answer: Mapping[str, Any]) -> EditReply:
        metrics = answer.get("metrics")
        names = [str(answer[name]) for name in ("model", "version") if answer.get(name)]
        caveats = ("version not pinned; the returned one is recorded",)
        return EditReply(
            b"",
            model=":".join(names) or None,
            request_id=str(task["id"]),
            usage=dict(metrics) if isinstance(metrics, dict) else {},
            caveats=caveats if self._version == LATEST else (),
        )

    def _ended(self, status: str, error: str, told: EditReply) -> EditorError:
        said = self._wire.scrub(f"{self._wire.what}: {status}{f': {error}' if error else ''}")[:600]
        if status == "aborted":  # never began to run; not billed, by Replicate's word
            return EditorLost(said, told=replace(told, cost=0.0, basis="reported"))
        if REFUSAL.search(error):
            return EditorRefused(said, told=told)
        if status == "canceled" or not error or PASSING.search(error):
            return EditorLost(said, told=told)
        return EditorFailed(said, told=told)

    def _fault(self, told: Told) -> EditorError:
        """Errors are RFC 7807 problems: title, detail, status."""
        fault = self._wire.fault(told)
        parts = [str(told.table[name]) for name in ("title", "detail") if told.table.get(name)]
        words = ": ".join(dict.fromkeys(parts)) or told.text
        said = self._wire.scrub(f"{self._wire.what}: HTTP {told.status}: {words}")[:600]
        if isinstance(fault, EditorUnavailable):
            wait = retry_after(told.headers)
            body = told.table.get("retry_after")
            if wait is None and isinstance(body, int | float) and body >= 0:
                wait = float(body)
            return EditorUnavailable(said, retry_after=wait, limited=fault.limited)
        if isinstance(fault, AccountBlocked):
            return AccountBlocked(said)
        if isinstance(fault, EditorLost):
            return EditorLost(said)
        return EditorFailed(said)


def _first(output: Any) -> str:
    """The first picture of an output: an address, or a list of them."""
    if isinstance(output, list):
        output = next((o for o in output if isinstance(o, str) and o), "")
    return output if isinstance(output, str) else ""


open_editor: Final = Family("replicate", ReplicateEditor)
