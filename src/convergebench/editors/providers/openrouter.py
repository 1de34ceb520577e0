"""OpenRouter: models of several vendors behind one key, by plain HTTP.

Written by hand over `Wire` because it is safer than the SDK: that one repeats calls on its own. The
vendor is pinned and fallbacks are off, so that every frame of a chain is of one make. Single edits
go to `/images`, conversations to `/chat/completions`, where the history is sent again each time.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.editors.providers.family import Family, Opened, data_uri, mislabelled
from convergebench.editors.providers.openrouter_answers import fault, missing
from convergebench.editors.providers.polling import Clock
from convergebench.editors.providers.sizes import Size
from convergebench.errors import AccountBlocked, EditorError, EditorLost, EditorNoImage
from convergebench.wire import Told, download, is_near

BETWEEN: Final = "Edited. The picture is in the next message."
"""What stands for the model's own turns: they cannot carry pictures for every vendor."""


class OpenRouterEditor:
    """A model that OpenRouter passes calls on to."""

    VERSION: ClassVar = "1"

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._wire = opened.wire()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return self._opened.spec

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        if self._opened.lacks or self._opened.key is None:
            raise AccountBlocked(self._opened.lacks)
        clock = Clock(request.deadline)
        notes: list[str] = []
        chat = request.settings.session == "chat"
        size = self._opened.size(request)
        fields = self._fields(request, size, chat=chat)
        if chat:
            path, body = "/chat/completions", {**fields, "messages": self._messages(request, notes)}
        else:
            path, body = "/images", {**fields, **self._single(request, notes)}
        reply = EditReply(
            b"",
            parameters=fields,
            size=_asked(size, fields),
            format=fields.get("output_format"),
            caveats=(*self.spec.caveats, *notes),
        )
        try:
            told = self._wire.post(path, body, timeout=max(0.05, clock.left))
        except EditorError as error:
            error.told = reply
            raise
        return self._read(told, reply, clock, chat=chat)

    def _fields(self, request: EditRequest, size: Size | None, *, chat: bool) -> dict[str, Any]:
        """Everything but prompt and pictures."""
        model = self._opened.model
        route = {"only": list(model.adapter["only"]), "allow_fallbacks": False}
        if passed := model.adapter.get("options"):
            route["options"] = passed
        fields: dict[str, Any] = {"model": model.id, "provider": route, **model.pins}
        if model.seeds and request.seed is not None:
            fields["seed"] = request.seed
        if model.temperature and request.settings.temperature is not None:
            fields["temperature"] = request.settings.temperature
        if chat:
            fields["modalities"] = ["image", "text"]
            fields["stream"] = False
            if size is not None:
                fields["image_config"] = {"aspect_ratio": size.ratio, "image_size": size.resolution}
            return fields
        fields |= {"n": 1, **self._opened.options}
        if model.format:
            fields["output_format"] = model.format
        if size is not None and model.size.kind == "table":
            fields |= {"aspect_ratio": size.ratio, "resolution": size.resolution}
        elif size is not None:
            fields["size"] = size.text()
        return fields

    def _single(self, request: EditRequest, notes: list[str]) -> dict[str, Any]:
        return {"prompt": request.prompt, "input_references": self._images(request, notes)}

    def _images(self, request: EditRequest, notes: list[str]) -> list[dict[str, Any]]:
        found = []
        for data, mime, told in self._opened.pictures(request):
            found.append({"type": "image_url", "image_url": {"url": data_uri(data, mime)}})
            notes.extend(told)
        return found

    def _messages(self, request: EditRequest, notes: list[str]) -> list[dict[str, Any]]:
        """The conversation: each picture with the prompt that was sent about it."""
        most = int(self._opened.model.adapter.get("pictures", 8)) - len(request.inputs)
        edits = list(itertools.pairwise(request.history))
        if len(edits) > most:
            whole = len(edits)
            edits = [*edits[:1], *(edits[1 - most :] if most > 1 else [])]
            notes.append(f"only {len(edits)} of {whole} earlier turns were sent again")
        messages: list[dict[str, Any]] = []
        for before, after in edits:
            pictures = self._images(replace(request, inputs=(before.load(),)), [])
            messages.append(_user(after.prompt, pictures))
            messages.append({"role": "assistant", "content": BETWEEN})
        return [*messages, _user(request.prompt, self._images(request, notes))]

    def _read(self, told: Told, reply: EditReply, clock: Clock, *, chat: bool) -> EditReply:
        body = told.table
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        cost = usage.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, int | float) or cost < 0:
            cost = None
        vendor = {"provider": body["provider"]} if body.get("provider") else {}
        headers = {name.lower(): value for name, value in told.headers.items()}
        names = ("x-generation-id", "x-request-id")
        found = next((headers[name] for name in names if name in headers), None)
        reply = replace(
            reply,
            model=body["model"] if isinstance(body.get("model"), str) else None,
            request_id=str(body["id"]) if body.get("id") else found,
            usage={**usage, **vendor},
            cost=None if cost is None else float(cost),
            basis="" if cost is None else "reported",
        )
        if not told.ok or isinstance(body.get("error"), dict):
            raise fault(self._wire, told, reply)
        if not body:
            raise EditorLost(f"OpenRouter answered with no JSON: {told.text[:200]}", told=reply)
        return self._chatted(told, reply, clock) if chat else self._made(body, reply)

    def _made(self, body: Mapping[str, Any], reply: EditReply) -> EditReply:
        found = body.get("data")
        first = found[0] if isinstance(found, list) and found else None
        first = first if isinstance(first, dict) else {}
        data = _decoded(first.get("b64_json"), reply)
        notes = mislabelled(data, first.get("media_type"), reply.format)
        return replace(reply, data=data, caveats=(*reply.caveats, *notes))

    def _chatted(self, told: Told, reply: EditReply, clock: Clock) -> EditReply:
        choices = told.table.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        choice = choice if isinstance(choice, dict) else {}
        if isinstance(choice.get("error"), dict):
            raise fault(self._wire, replace(told, body={"error": choice["error"]}), reply)
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        reasoning = message.get("reasoning")
        reply = replace(reply, reasoning=reasoning if isinstance(reasoning, str) else None)
        images = message.get("images")
        last = images[-1] if isinstance(images, list) and images else None
        inner = last.get("image_url") if isinstance(last, dict) else None
        url = inner.get("url") if isinstance(inner, dict) else inner
        if not isinstance(url, str) or not url:
            raise missing(self._wire, choice, message, reply)
        label, _, text = url.partition(";base64,")
        if not label.startswith("data:"):
            return self._downloaded(url, reply, clock)
        data = _decoded(text, reply)
        notes = mislabelled(data, label.removeprefix("data:"), reply.format)
        return replace(reply, data=data, caveats=(*reply.caveats, *notes))

    def _downloaded(self, url: str, reply: EditReply, clock: Clock) -> EditReply:
        """A picture by its address: not what is documented, but it was paid for."""
        what, near = self._wire.what, is_near(self._opened.base)
        try:
            data = download(url, what=what, near=near, timeout=max(clock.left, 0.1))
        except EditorLost as error:
            error.told = reply
            raise
        return replace(reply, data=data)


def _user(prompt: str, pictures: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": [*pictures, {"type": "text", "text": prompt}]}


def _asked(size: Size | None, fields: Mapping[str, Any]) -> str | None:
    if size is None:
        return None
    return size.text() if "size" in fields else f"{size.ratio} {size.resolution}"


def _decoded(text: Any, reply: EditReply) -> bytes:
    if not isinstance(text, str) or not text:
        raise EditorNoImage("OpenRouter answered without a picture", told=reply)
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode(text, validate=True)
    raise EditorNoImage("OpenRouter sent a picture that is not base64", told=reply)


open_editor: Final = Family("openrouter", OpenRouterEditor)
