"""Seedream and SeedEdit of ByteDance, over Ark (BytePlus ModelArk or Volcengine).

Over plain HTTP: one synchronous call that answers with the picture itself. Which fields a model
takes is in the catalogue, because the newer ones answer HTTP 400 to fields that the older ones
need.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.editors.providers.family import Family, Opened, data_uri, mislabelled
from convergebench.editors.providers.polling import Clock
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.wire import LATE, Told, download, is_near, retry_after

PATH: Final = "/images/generations"
REFUSALS: Final = ("sensitivecontent", "riskdetected", "policyviolation")
"""Parts of codes that say: not this edit."""
BLOCKS: Final = frozenset(
    {
        "accessdenied",
        "accountoverdueerror",
        "authenticationerror",
        "insufficientbalance",
        "invalidaccountstatus",
        "modelnotopen",
        "modelquotaexhausted",
        "operationdenied",
        "quotaexceeded",
        "setlimitexceeded",
    }
)
"""Codes, up to the first dot, that say: no edit of this account."""
PASSING: Final = ("internalservice", "serveroverloaded", "serviceunavailable", "closedendpoint")
"""Parts of codes that say: not now."""


class SeedreamEditor:
    """A model of Seedream, or SeedEdit."""

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
        opened = self._opened
        if opened.lacks:
            raise AccountBlocked(opened.lacks)
        least = float(opened.model.adapter.get("least_deadline", 0.0))
        if request.deadline < least:  # it would be paid for and lost
            raise AccountBlocked(
                f"{opened.name} takes minutes, and its calls are given up after "
                f"{request.deadline:g} s. Nothing was sent: give --deadline {least:g} or more."
            )
        clock = Clock(request.deadline)
        sent = self._parameters(request)
        pictures = opened.pictures(request)
        urls = [data_uri(data, mime) for data, mime, _ in pictures]
        body = {
            "model": opened.model.id,
            "prompt": request.prompt,
            "image": urls[0] if len(urls) == 1 else urls,
            **sent,
        }
        asked = EditReply(
            b"",
            parameters=sent,
            size=sent.get("size"),
            format=opened.model.format or None,
            caveats=(*self.spec.caveats, *(text for _, _, more in pictures for text in more)),
        )
        try:
            answer = self._wire.post(PATH, body, timeout=max(clock.left, 0.1))
        except EditorError as error:
            error.told = asked
            raise
        return self._reply(answer, asked, clock)

    def _parameters(self, request: EditRequest) -> dict[str, Any]:
        model = self._opened.model
        sent: dict[str, Any] = {**model.pins, **self._opened.options}
        size = self._opened.size(request)
        if size is not None:
            sent["size"] = size.text()
        if model.adapter.get("output_format"):
            sent["output_format"] = model.format
        if model.seeds and request.seed is not None:
            sent["seed"] = request.seed
        return sent

    def _reply(self, answer: Told, asked: EditReply, clock: Clock) -> EditReply:
        table = answer.table
        usage, name = table.get("usage"), table.get("model")
        told = replace(
            asked,
            model=name if isinstance(name, str) else None,
            usage=usage if isinstance(usage, dict) else {},
            request_id=_request_id(answer),
        )
        items = table.get("data")
        first = items[0] if isinstance(items, list) and items else {}
        first = first if isinstance(first, dict) else {}
        problem = table.get("error") or first.get("error")
        if not answer.ok or problem:
            raise self._fault(answer, problem if isinstance(problem, dict) else {}, told)
        if not table:
            raise EditorLost(
                f"{self._wire.what}: an answer that is no JSON: {answer.text[:200]}", told=told
            )
        data = self._picture(first, told, clock)
        odd = mislabelled(data, first.get("output_format"), told.format)
        return replace(told, data=data, caveats=(*told.caveats, *odd))

    def _picture(self, item: Mapping[str, Any], told: EditReply, clock: Clock) -> bytes:
        coded, url = item.get("b64_json"), item.get("url")
        if isinstance(coded, str) and coded:
            try:
                return base64.b64decode(coded.partition(",")[2] or coded, validate=True)
            except (binascii.Error, ValueError):
                raise EditorLost(
                    f"{self._wire.what}: a picture that is no base64", told=told
                ) from None
        if isinstance(url, str) and url:  # not what was asked for, but it was paid for
            what, near = self._wire.what, is_near(self._opened.base)
            try:
                return download(url, what=what, near=near, timeout=max(clock.left, 0.1))
            except EditorLost as error:
                error.told = told
                raise
        raise EditorNoImage(f"{self._wire.what} answered without a picture", told=told)

    def _fault(self, answer: Told, problem: Mapping[str, Any], told: EditReply) -> EditorError:
        """What an error means, of the whole answer or of its one picture."""
        code = str(problem.get("code") or "")
        message = str(problem.get("message") or answer.text)
        said = self._wire.scrub(": ".join(filter(None, [code, message])))[:600]
        text = f"{self._wire.what}: HTTP {answer.status}: {said}"
        name, wait = code.lower(), retry_after(answer.headers)
        if any(part in name for part in REFUSALS):
            return EditorRefused(text, told=told)
        if name.partition(".")[0] in BLOCKS or answer.status in (401, 402, 403):
            return AccountBlocked(text, told=told)
        if "ratelimitexceeded" in name or answer.status == 429:
            return EditorUnavailable(text, retry_after=wait, limited=True, told=told)
        if answer.status in LATE:
            return EditorLost(text, told=told)
        passing = any(part in name for part in PASSING)
        if passing or answer.status in (408, 425) or answer.status >= 500:
            return EditorUnavailable(text, retry_after=wait, told=told)
        return EditorFailed(text, told=told)


def _request_id(answer: Told) -> str | None:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return headers.get("x-request-id") or headers.get("x-tt-logid")


open_editor: Final = Family("seedream", SeedreamEditor)
