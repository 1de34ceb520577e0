"""Black Forest Labs: FLUX.1 Kontext, FLUX.2 and FLUX 3 over their own API.

By our own client, because BFL has no SDK. `polling_url` is followed as it was given, with the key
only where it leads to BFL; any other is not followed, and the documented address on our base is
asked instead. The signed address of the picture never gets the key.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote

from convergebench.editor import EditReply, EditRequest
from convergebench.editors.providers.family import Family
from convergebench.editors.providers.polling import Gone, Task, polled, task_id, trusted
from convergebench.editors.providers.queued import Finished, Pictures, QueueEditor
from convergebench.errors import AccountBlocked, EditorFailed, EditorLost, EditorRefused
from convergebench.wire import Secret, Told

DOMAIN: Final = "bfl.ai"
CREDIT: Final = 0.01
"""Dollars of a credit."""
REFUSALS: Final = frozenset({"request moderated", "content moderated"})
FAILURES: Final = frozenset({"error", "failed"})
_AMOUNTS: Final = ("cost", "input_mp", "output_mp")


class BflEditor(QueueEditor):
    """A FLUX model of Black Forest Labs."""

    VERSION: ClassVar = "1"

    @staticmethod
    def headers(key: Secret) -> dict[str, str]:
        """The key goes in `x-key`."""
        return {"x-key": key.reveal(), "accept": "application/json"}

    def body(self, prompt: str, fields: Mapping[str, Any], pictures: Pictures) -> Any:
        """Flat, with the pictures in plain base64."""
        coded = [base64.b64encode(data).decode() for data, _ in pictures]
        return {"prompt": prompt, **self._form.attached(coded), **fields}

    def begin(self, body: Any, timeout: float) -> Task:
        """Submit; the cost is told here already."""
        path = self._form.path or self._opened.model.id
        told = self._wire.post(f"/v1/{path}", body, timeout=timeout)
        if not told.ok:
            raise self._fault(told)
        task: dict[str, Any] = {"id": task_id(told, "id", self._wire.what)}
        if isinstance(address := told.table.get("polling_url"), str):
            task["polling_url"] = address
        return task | _amounts(told.table)

    def look(self, task: Task, request: EditRequest, timeout: float) -> Finished | None:
        """One poll. A status that nobody documented counts as pending."""
        answer = polled(self._wire, self._address(task), timeout).table
        told = self._told(task, answer)
        status = str(answer.get("status", ""))
        state = status.lower()
        if state == "task not found":
            raise Gone(status)
        if state in REFUSALS:
            raise EditorRefused(f"{self._wire.what}: {status}{_details(answer)}", told=told)
        if state in FAILURES:  # may go better another time, and nobody says that it was free
            raise EditorLost(f"{self._wire.what}: {status}{_details(answer)}", told=told)
        if state != "ready":
            return None
        result = answer.get("result")
        sample = result.get("sample") if isinstance(result, dict) else None
        return Finished(sample if isinstance(sample, str) else "", told)

    def known(self, task: Task) -> EditReply:
        """The cost was told when the task was begun."""
        return self._told(task, {})

    def _address(self, task: Task) -> str:
        given = str(task.get("polling_url", ""))
        if trusted(given, self._opened.base, DOMAIN):
            return given
        return f"/v1/get_result?id={quote(str(task['id']), safe='')}"

    def _told(self, task: Task, answer: Mapping[str, Any]) -> EditReply:
        usage = {name: task[name] for name in _AMOUNTS if name in task} | _amounts(answer)
        result = answer.get("result")
        result = result if isinstance(result, dict) else {}
        for name in ("seed", "duration"):
            if isinstance(result.get(name), int | float):
                usage[name] = result[name]
        credits = usage.get("cost")
        prompt = result.get("prompt")
        return EditReply(
            b"",
            request_id=str(task["id"]),
            effective_prompt=prompt if isinstance(prompt, str) else None,
            usage=usage,
            cost=None if credits is None else round(credits * CREDIT, 9),
            basis="" if credits is None else "reported",
        )

    def _fault(self, told: Told) -> Exception:
        fault = self._wire.fault(told)
        detail = told.table.get("detail")
        if isinstance(fault, EditorFailed) and isinstance(detail, list):
            words = [
                f"{'.'.join(map(str, e.get('loc', ())))}: {e.get('msg', '')}"
                for e in detail
                if isinstance(e, dict)
            ]
            said = self._wire.scrub("; ".join(words))[:600]
            return EditorFailed(f"{self._wire.what}: HTTP {told.status}: {said}")
        if isinstance(fault, AccountBlocked) and told.status == 402:
            return AccountBlocked(f"{fault}. No credits are left: add some in your BFL account.")
        return fault


def _amounts(table: Mapping[str, Any]) -> dict[str, float]:
    found = {name: table.get(name) for name in _AMOUNTS}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    }


def _details(answer: Mapping[str, Any]) -> str:
    details = answer.get("details")
    if isinstance(details, dict):
        words = [
            f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in details.items()
        ]
        return f" ({'; '.join(words)})" if words else ""
    return f" ({details})" if details else ""


open_editor: Final = Family("bfl", BflEditor)
