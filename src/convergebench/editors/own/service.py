"""`http://host/edit`: a server of your own that takes one JSON object and answers with another.

The protocol is in docs/guides/your-editor-details.md, a server of twenty lines in
examples/http_editor.py.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any, Final

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
from convergebench.errors import AccountBlocked, EditorFailed, EditorNoImage, EditorRefused
from convergebench.frame import sniff
from convergebench.registry import PluginName
from convergebench.wire import Told

VERSION: Final = "1"
_TEXTS: Final = ("model", "request_id", "effective_prompt", "reasoning")
_TABLES: Final = ("usage", "session")


class ServiceEditor:
    """An editor behind an HTTP address."""

    def __init__(self, spec: EditorSpec, server: Server, options: Mapping[str, Value]) -> None:
        self.spec: Final = spec
        self._server: Final = server
        self._options: Final = dict(options)

    def edit(self, request: EditRequest) -> EditReply:
        """Send one request; nothing is sent twice."""
        if self._server.lacks:
            raise AccountBlocked(self._server.lacks)
        width, height = asked_size(request)
        particulars = self._particulars(request, width, height)
        pictures = [base64.b64encode(frame.data).decode() for frame in request.inputs]
        body: dict[str, Any] = {
            "image": pictures[-1],
            "format": sniff(request.inputs[-1].data) or "",
            "prompt": request.prompt,
            **particulars,
            "step": request.step,
            "chain": request.chain,
            "attempt": request.attempt,
        }
        if len(pictures) > 1:
            body["inputs"] = pictures
        if request.settings.session == "chat" and request.history:
            body["session"] = dict(request.history[-1].session)
        told = self._server.post("", body, patience(request))
        return self._reply(told, particulars, f"{width}x{height}")

    def _particulars(self, request: EditRequest, width: int, height: int) -> dict[str, Any]:
        """Everything that is sent besides the prompt and the pictures."""
        settings = request.settings
        return {
            "seed": request.seed,
            "width": width,
            "height": height,
            "region": list(request.region) if request.region else None,
            "settings": {
                "temperature": settings.temperature,
                "resolution": settings.resolution_at(request.step),
                "session": settings.session,
                "phrasing": settings.phrasing,
            },
            "options": self._options,
        }

    def _reply(self, told: Told, particulars: Mapping[str, Any], size: str) -> EditReply:
        server, table = self._server, told.table
        known = self._known(table) if told.ok or "refused" in table else EditReply(b"")
        if table.get("refused"):
            raise EditorRefused(server.scrub(str(table["refused"])), told=known)
        if not told.ok:
            raise server.fault(told)
        if table.get("error"):
            raise EditorFailed(server.scrub(f"{server.what}: {table['error']}"), told=known)
        if not isinstance(told.body, dict):
            raise EditorNoImage(f"{server.what} answered without a JSON object: {told.text!r}")
        data = self._picture(table.get("image"), known)
        told_besides = (*_TEXTS, *_TABLES, "cost", "basis", "caveats")
        return EditReply(
            data,
            **{name: getattr(known, name) for name in told_besides},
            parameters=dict(particulars),
            size=size,
        )

    def _known(self, table: Mapping[str, Any]) -> EditReply:
        """What the server told besides the picture; what cannot be read is a caveat.

        The picture was made, and perhaps paid for: it is not lost over a field beside it.
        """
        found: dict[str, Any] = {}
        caveats: list[str] = []
        for names, kind, words in ((_TEXTS, str, "a text"), (_TABLES, dict, "an object")):
            for name in names:
                value = table.get(name)
                if isinstance(value, kind):
                    found[name] = value
                elif value is not None:
                    caveats.append(self._odd(name, value, words))
        cost = table.get("cost")
        if cost is not None:
            number = isinstance(cost, int | float) and not isinstance(cost, bool)
            if number and 0 <= cost < math.inf:
                found |= {"cost": float(cost), "basis": "reported"}
            else:
                caveats.append(self._odd("cost", cost, "dollars, 0 or more"))
        return EditReply(b"", caveats=tuple(caveats), **found)

    def _odd(self, name: str, value: Any, words: str) -> str:
        got = self._server.scrub(repr(value))[:80]
        return f"{self._server.what} answered {name} {got}, expected {words}"

    def _picture(self, text: Any, known: EditReply) -> bytes:
        what = self._server.what
        if not text:
            raise EditorNoImage(f"{what} answered without an image", told=known)
        if not isinstance(text, str):
            raise EditorFailed(self._odd("image", text, "base64"), told=known)
        plain = text.partition(",")[2] if text.startswith("data:") else text
        try:
            return base64.b64decode("".join(plain.split()), validate=True)
        except (binascii.Error, ValueError):
            raise EditorFailed(
                f"{what} answered an image that is not base64: {plain[:40]!r}", told=known
            ) from None


def _open(scheme: str, model: str, options: Mapping[str, str]) -> ServiceEditor:
    name = str(PluginName(scheme, model, tuple(sorted(options.items()))))
    url = model if "://" in model else f"{scheme}:{model}"
    terms, rest = read_terms(url, options, Terms())
    key_env = rest.pop("key_env", "")
    server = Server(url, what=url, where=f"editor {name}", key_env=key_env)
    spec = EditorSpec(
        name=name,
        version=VERSION,
        description=f"the server at {url}",
        concurrency=terms.concurrency,
        seconds=terms.seconds,
        price=terms.price,
        abilities=Abilities(),
        account=server.account,
        lacks=server.lacks,
    )
    return ServiceEditor(spec, server, {name: literal(text) for name, text in rest.items()})


def open_http(model: str = "", **options: str) -> ServiceEditor:
    """A server of your own that takes and answers JSON: http://127.0.0.1:8000/edit."""
    return _open("http", model, options)


def open_https(model: str = "", **options: str) -> ServiceEditor:
    """A server of your own, over https: https://host/edit,key_env=MY_KEY."""
    return _open("https", model, options)
