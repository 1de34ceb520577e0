"""Qwen image editing over DashScope (Alibaba Cloud Model Studio).

Over plain HTTP, which is safer than the vendor's SDK: that one uploads any text equal to the path
of a local file, and tells errors only to those who look. An answer holds a signed address, valid
for a day; it is told to the runner before it is read, so a picture that was paid for is not asked
for twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.editors.providers.family import Family, Opened, data_uri, mislabelled
from convergebench.editors.providers.polling import Clock, brought
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.wire import LATE, Told, is_near, retry_after

PATH: Final = "/api/v1/services/aigc/multimodal-generation/generation"
FORMAT: Final = "png"
REFUSALS: Final = ("datainspectionfailed", "data_inspection_failed", "ipinfringementsuspect")
"""Beginnings of codes that say: not this edit. `InvalidParameter.DataInspection` is none of them:
there the picture could not be read."""
BLOCKS: Final = (
    "accessdenied",
    "allocationquota.freetieronly",
    "arrearage",
    "commoditynotpurchased",
    "insufficient_quota",
    "invalid_api_key",
    "invalidapikey",
    "model.accessdenied",
    "postpaidbilloverdue",
    "prepaidbilloverdue",
    "workspace.accessdenied",
)
"""Beginnings of codes that say: no edit of this account."""
LIMITS: Final = ("throttling", "limit_requests", "limitrequests", "requestrate")
PASSING: Final = (
    "internalerror",
    "internal_error",
    "modelserving",
    "modelservicefailed",
    "modelunavailable",
    "requesttimeout",
    "serviceunavailable",
    "systemerror",
)
"""Beginnings of codes that say: not now."""
SPENT: Final = "free allocated quota"
"""Words of a `Throttling.AllocationQuota` that no waiting helps against."""


class QwenEditor:
    """A model of Qwen-Image that edits."""

    VERSION: ClassVar = "1"

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._wire = opened.wire()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return self._opened.spec

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit, or read the picture of one that was made."""
        opened = self._opened
        if opened.lacks:
            raise AccountBlocked(opened.lacks)
        clock = Clock(request.deadline)
        size = opened.size(request)
        sent = self._parameters(request)
        pictures = opened.pictures(request)
        told = EditReply(
            b"",
            parameters=sent,
            size=size.text() if size else None,
            format=FORMAT,
            caveats=(*self.spec.caveats, *(text for _, _, more in pictures for text in more)),
        )
        task = request.task
        if not task:
            content = [{"image": data_uri(data, mime)} for data, mime, _ in pictures]
            body = {
                "model": opened.model.id,
                "input": {
                    "messages": [{"role": "user", "content": [*content, {"text": request.prompt}]}]
                },
                "parameters": sent,
            }
            try:
                task = self._asked(body, told, max(clock.left, 0.1))
            except EditorError as error:
                error.told = error.told or told
                raise
            request.on_task(task)
        told = _known(told, task)
        return self._read(str(task["url"]), told, task, clock)

    def _parameters(self, request: EditRequest) -> dict[str, Any]:
        model = self._opened.model
        sent: dict[str, Any] = {**model.pins, **self._opened.options}
        size = self._opened.size(request)
        if size is not None:
            sent["size"] = size.text("*")
        if model.seeds and request.seed is not None:
            sent["seed"] = request.seed
        return sent

    def _asked(self, body: Any, told: EditReply, timeout: float) -> dict[str, Any]:
        """Make the paid call: what is needed to read its picture."""
        answer = self._wire.post(PATH, body, timeout=timeout)
        table = answer.table
        task: dict[str, Any] = {"request_id": str(table.get("request_id") or "")}
        if isinstance(table.get("usage"), dict):
            task["usage"] = table["usage"]
        if isinstance(table.get("model"), str):
            task["model"] = table["model"]
        told = _known(told, task)
        if not answer.ok or table.get("code"):
            raise self._fault(answer, told)
        if not table:
            raise EditorLost(f"{self._wire.what}: an answer that is no JSON: {answer.text[:200]}")
        url, words = _content(table)
        if not url:
            said = self._wire.scrub(words)[:400]
            raise EditorNoImage(
                f"{self._wire.what} answered without a picture" + (f": {said}" if said else ""),
                told=told,
            )
        return {"url": url, **task}

    def _read(self, url: str, told: EditReply, task: Mapping[str, Any], clock: Clock) -> EditReply:
        what, near = self._wire.what, is_near(self._opened.base)
        data = brought(url, what=what, near=near, clock=clock, told=told, task=task)
        return replace(told, data=data, caveats=(*told.caveats, *mislabelled(data, FORMAT)))

    def _fault(self, answer: Told, told: EditReply) -> EditorError:
        """What an error means; it may come with HTTP 200."""
        code = str(answer.table.get("code") or "")
        message = str(answer.table.get("message") or answer.text)
        said = self._wire.scrub(": ".join(filter(None, [code, message])))[:600]
        text = f"{self._wire.what}: HTTP {answer.status}: {said}"
        name, wait = code.lower(), retry_after(answer.headers)
        if name.startswith(REFUSALS):
            return EditorRefused(text, told=told)
        spent = SPENT in message.lower()
        if name.startswith(BLOCKS) or spent or answer.status in (401, 402, 403):
            return AccountBlocked(text, told=told)
        if name.startswith(LIMITS) or answer.status == 429:
            return EditorUnavailable(text, retry_after=wait, limited=True, told=told)
        if answer.status in LATE:
            return EditorLost(text, told=told)
        if name.startswith(PASSING) or answer.status in (408, 425) or answer.status >= 500:
            return EditorUnavailable(text, retry_after=wait, told=told)
        return EditorFailed(text, told=told)


def _known(told: EditReply, task: Mapping[str, Any]) -> EditReply:
    """What an answer told besides its picture."""
    return replace(
        told,
        request_id=task.get("request_id") or None,
        usage=task.get("usage", {}),
        model=task.get("model"),
    )


def _content(table: Mapping[str, Any]) -> tuple[str, str]:
    """The address of the first picture of an answer, and its words."""
    parts: list[Any] = []
    try:
        for choice in table["output"]["choices"]:
            found = choice["message"]["content"]
            parts += found if isinstance(found, list) else [{"text": found}]
    except (KeyError, TypeError):
        pass
    tables = [part for part in parts if isinstance(part, dict)]
    urls = [part["image"] for part in tables if isinstance(part.get("image"), str)]
    words = [part["text"] for part in tables if isinstance(part.get("text"), str)]
    return next(iter(urls), ""), " ".join(words)


open_editor: Final = Family("qwen", QwenEditor)
