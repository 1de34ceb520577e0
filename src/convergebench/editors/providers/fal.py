"""fal: any editing app of theirs over its queue. What an app calls its arguments is catalogue data.

By our own client, which is safer here than `fal_client`: that one tries again on its own (a
submission that was taken, and whose answer was lost, would be billed twice), falls back to another
host, and builds `https://` addresses that no test server can have. fal's own retries and its
rerouting to another endpoint are switched off by header. The addresses it gives for status and
result are followed with the key only where they lead to fal; otherwise the documented ones on our
base are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from urllib.parse import quote

from convergebench.editor import Asked, EditReply, EditRequest
from convergebench.editors.providers.family import MIME, Family, data_uri
from convergebench.editors.providers.polling import Gone, Task, polled, task_id, trusted
from convergebench.editors.providers.queued import Finished, Pictures, QueueEditor
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.wire import Secret, Told, complaint, retry_after

DOMAIN: Final = "fal.run"
REFUSALS: Final = frozenset({"content_policy_violation"})
NO_MEDIA: Final = frozenset({"no_media_generated"})
_KINDS: Final = {mime: kind for kind, mime in MIME.items()}


class FalEditor(QueueEditor):
    """An editing app on fal."""

    VERSION: ClassVar = "1"

    @staticmethod
    def headers(key: Secret) -> dict[str, str]:
        """The key, and fal's own retries and fallbacks off (its docs spell the latter two ways)."""
        return {
            "authorization": f"Key {key.reveal()}",
            "x-fal-no-retry": "1",
            "x-app-fal-disable-fallback": "1",
            "x-fal-disable-fallbacks": "1",
        }

    def body(self, prompt: str, fields: Mapping[str, Any], pictures: Pictures) -> Any:
        """Flat, with the pictures as data URIs."""
        uris = [data_uri(data, mime) for data, mime in pictures]
        return {"prompt": prompt, **self._form.attached(uris), **fields}

    def begin(self, body: Any, timeout: float) -> Task:
        """Put it into the queue."""
        told = self._wire.post(f"/{self._app}", body, timeout=timeout)
        if not told.ok:
            raise self._fault(told, EditReply(b"", request_id=told.headers.get("x-fal-request-id")))
        task: dict[str, Any] = {"id": task_id(told, "request_id", self._wire.what)}
        for name in ("status_url", "response_url"):
            if isinstance(address := told.table.get(name), str):
                task[name] = address
        return task

    def look(self, task: Task, request: EditRequest, timeout: float) -> Finished | None:
        """One poll, and the result when it is complete."""
        status = polled(self._wire, self._address(task, "status_url"), timeout).table
        if status.get("status") != "COMPLETED":
            return None
        told = EditReply(b"", request_id=str(task["id"]))
        result = self._wire.get(self._address(task, "response_url"), timeout=timeout)
        if result.status == 400 and "still in progress" in result.text:
            return None
        units = result.headers.get("x-fal-billable-units", "")
        if units:
            told = _with_usage(told, {"billable_units": _number(units)})
        if isinstance(used := result.table.get("usage"), dict):
            told = _with_usage(told, used)
        if isinstance(metrics := status.get("metrics"), dict):
            told = _with_usage(told, metrics)
        if not result.ok:
            raise self._outcome(result, status, told)
        return self._finished(result, status, told, request)

    def _finished(
        self, result: Told, status: Mapping[str, Any], told: EditReply, request: EditRequest
    ) -> Finished:
        table = result.table
        if status.get("error") and not table.get("images"):
            raise self._outcome(result, status, told)
        if _true(
            table.get("has_nsfw_concepts")
        ):  # it was made, then blacked out: it costs the same
            told = replace(told, cost=self._rule_cost(request), basis="usage")
            raise EditorRefused(
                f"{self._wire.what}: the picture was withheld (has_nsfw_concepts)", told=told
            )
        images = table.get("images")
        first = images[0] if isinstance(images, list) and images else table.get("image")
        first = first if isinstance(first, dict) else {}
        prompt = table.get("prompt")
        if isinstance(prompt, str) and prompt:
            told = replace(told, effective_prompt=prompt)
        words = table.get("description") or complaint(table)
        return Finished(
            address=str(first.get("url") or ""),
            told=told,
            declared=_KINDS.get(str(first.get("content_type")), ""),
            words=self._wire.scrub(str(words))[:300] if words else "",
        )

    def _outcome(self, result: Told, status: Mapping[str, Any], told: EditReply) -> Exception:
        """What a completed request without a result came to.

        A 4xx is the app's verdict. A 5xx or a 429 is one only where fal names the error's type;
        without, the poll itself broke and is tried again.
        """
        named = result.headers.get("x-fal-error-type") or status.get("error_type")
        named = named or result.table.get("error_type")
        if result.status == 404 and not named:
            return Gone(result.text)
        fault = self._fault(result, told, str(named or ""), str(status.get("error") or ""))
        if not named and result.status >= 500:
            return EditorUnavailable(str(fault))
        if named and isinstance(fault, EditorUnavailable | EditorLost):
            # Not billed, by fal's word, but this request is over: another one has to be begun.
            return EditorLost(str(fault), told=replace(told, cost=0.0, basis="reported"))
        if result.ok:
            return EditorLost(f"{self._wire.what}: {status.get('error')}", told=told)
        return fault

    def _fault(self, told: Told, known: EditReply, named: str = "", said: str = "") -> EditorError:
        detail = told.table.get("detail")
        kinds = {named, *(str(e.get("type")) for e in _entries(detail))}
        words = "; ".join(_words(e) for e in _entries(detail)) or complaint(told.body) or said
        kind = named or next((str(e.get("type")) for e in _entries(detail) if e.get("type")), "")
        text = f"HTTP {told.status}: {f'{kind}: ' if kind else ''}{words or told.text}"
        text = f"{self._wire.what}: {self._wire.scrub(text)[:600]}"
        if kinds & REFUSALS:
            return EditorRefused(text, told=known)
        if kinds & NO_MEDIA:
            return EditorNoImage(text, told=known)
        fault = self._wire.fault(told)
        if isinstance(fault, EditorUnavailable):
            wait = retry_after(told.headers)
            return EditorUnavailable(text, retry_after=wait, limited=fault.limited, told=known)
        if isinstance(fault, AccountBlocked):
            return AccountBlocked(text, told=known)
        if isinstance(fault, EditorLost):
            return EditorLost(text, told=known)
        return EditorFailed(text, told=known)

    @property
    def _app(self) -> str:
        return self._form.path or self._opened.model.id

    def _address(self, task: Task, name: str) -> str:
        given = str(task.get(name, ""))
        if trusted(given, self._opened.base, DOMAIN):
            return given
        owner_and_app = "/".join(self._app.split("/")[:2])
        tail = "/status" if name == "status_url" else ""
        return f"/{owner_and_app}/requests/{quote(str(task['id']), safe='')}{tail}"

    def _rule_cost(self, request: EditRequest) -> float | None:
        """What the price rule says; for pictures that were made, and billed, and not handed out."""
        if self.spec.pricing is None:
            return None
        facts = request.inputs[-1].facts
        width, height = request.home_size or (facts.width, facts.height)
        asked = Asked(
            request.settings, request.step, width, height, request.prompt, len(request.inputs)
        )
        price = self.spec.price_of(asked)
        return None if price is None else price.expected


def _entries(detail: Any) -> list[dict[str, Any]]:
    return [e for e in detail if isinstance(e, dict)] if isinstance(detail, list) else []


def _words(entry: Mapping[str, Any]) -> str:
    where = ".".join(map(str, entry.get("loc", ())))
    return f"{where}: {entry.get('msg', '')}" if where else str(entry.get("msg", ""))


def _true(flag: Any) -> bool:
    return any(flag) if isinstance(flag, list) else bool(flag)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text[:40]


def _with_usage(told: EditReply, more: Mapping[str, Any]) -> EditReply:
    return replace(told, usage={**told.usage, **more})


open_editor: Final = Family("fal", FalEditor)
