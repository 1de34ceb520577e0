"""OpenAI's image models: one edit per call by the Images API, or a conversation by Responses.

Pinned on the wire: model, size, quality, PNG, an opaque background, one picture. There is no seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from convergebench.cycle import pixel_box
from convergebench.editor import Asked, EditorSpec, EditReply, EditRequest, Price
from convergebench.editors.providers.family import Family, Opened
from convergebench.editors.providers.openai_chat import Conversation
from convergebench.editors.providers.openai_client import (
    Account,
    picture,
    surprises,
    tokens,
)
from convergebench.editors.providers.polling import Clock
from convergebench.frame import encode

if TYPE_CHECKING:
    from openai import OpenAI

EXTENSIONS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


class OpenAIEditor:
    """A GPT Image model."""

    VERSION: ClassVar = "1"

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._account = Account(opened)
        self._talk = Conversation(opened, self._account)
        priced = opened.spec.pricing is not None
        self._spec = replace(opened.spec, pricing=self._price) if priced else opened.spec

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return self._spec

    @property
    def opened(self) -> Opened:
        """The model, its account and its address."""
        return self._opened

    def _price(self, asked: Asked) -> Price:
        price = self._opened.price(asked)
        return self._talk.dearer(price, asked) if asked.settings.session == "chat" else price

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        fields = self._fields(request)
        mask = region_mask(request) if self._opened.options.get("mask") == "region" else None
        clock = Clock(request.deadline)
        if request.settings.session == "chat":
            return self._talk.turn(request, fields, mask, clock)
        return self._single(request, fields, mask, clock)

    def _fields(self, request: EditRequest) -> dict[str, Any]:
        """What is pinned for every call of this model, whichever API makes it."""
        model = self._opened.model
        size = self._opened.size(request)
        fields: dict[str, Any] = {"model": model.id, **model.pins}
        if size is not None:
            fields["size"] = size.text()
        chosen = {name: v for name, v in self._opened.options.items() if name != "mask" and v != ""}
        return {**fields, **chosen, "output_format": model.format}

    def _single(
        self, request: EditRequest, fields: dict[str, Any], mask: bytes | None, clock: Clock
    ) -> EditReply:
        pictures = self._opened.pictures(request)
        files = [
            (f"input-{number}.{EXTENSIONS[mime]}", data, mime)
            for number, (data, mime, _) in enumerate(pictures, 1)
        ]
        sent = {**fields, "n": 1}
        extra: dict[str, Any] = (
            {"mask": ("mask.png", mask, "image/png")} if mask is not None else {}
        )
        caveats = [*self.spec.caveats, *(told for *_, notes in pictures for told in notes)]

        def call(sdk: OpenAI) -> Any:
            image: Any = files[0] if len(files) == 1 else files
            return sdk.images.with_raw_response.edit(
                image=image, prompt=request.prompt, **sent, **extra
            )

        reply = EditReply(
            b"",
            parameters={**sent, **({"mask": "region"} if extra else {})},
            size=fields.get("size"),
            format=fields["output_format"],
            caveats=tuple(caveats),
        )
        body, reply = self._account.answered(call, clock, reply)
        return self._read(body, fields, reply)

    def _read(
        self, body: Mapping[str, Any], fields: Mapping[str, Any], reply: EditReply
    ) -> EditReply:
        returned = ("size", "quality", "output_format", "background")
        said = {name: body[name] for name in returned if body.get(name) is not None}
        usage = body.get("usage")
        used = tokens(usage)
        cost = self._opened.model.price.of_tokens(used) if used is not None else None
        reply = replace(
            reply,
            model=body.get("model") if isinstance(body.get("model"), str) else None,
            usage={**(usage if isinstance(usage, dict) else {}), "returned": said},
            cost=cost,
            basis="" if cost is None else "usage",
        )
        found = body.get("data")
        first = found[0] if isinstance(found, list) and found else {}
        first = first if isinstance(first, dict) else {}
        data = picture(first.get("b64_json"), reply)
        revised = first.get("revised_prompt")
        return replace(
            reply,
            data=data,
            effective_prompt=revised if isinstance(revised, str) and revised else None,
            caveats=(*reply.caveats, *surprises(data, fields, said)),
        )


def region_mask(request: EditRequest) -> bytes | None:
    """A PNG of the first input's size that is transparent where the edit may touch."""
    if request.region is None:
        return None
    import numpy as np

    facts = request.inputs[0].facts
    left, top, right, bottom = pixel_box(request.region, facts.width, facts.height)
    pixels = np.full((facts.height, facts.width, 4), 255, np.uint8)
    pixels[top:bottom, left:right, 3] = 0
    return encode(pixels)


def listed_shutdowns(opened: Opened, timeout: float = 15.0) -> dict[str, date]:
    """The days from which models no longer answer, as `GET /models` tells them. Free of charge.

    Raises:
        EditorError: There is no key, it is rejected, or OpenAI does not answer.
    """
    account = Account(opened)
    told = account.ask(lambda sdk: sdk.models.with_raw_response.list(), timeout)
    if not told.ok:
        raise account.fault(told)
    listed = told.table.get("data")
    found: dict[str, date] = {}
    for entry in listed if isinstance(listed, list) else []:
        day = entry.get("shutdown_date") if isinstance(entry, dict) else None
        try:
            found[str(entry["id"])] = date.fromisoformat(str(day)[:10])
        except (KeyError, TypeError, ValueError):
            continue  # not announced, or in a form that nobody described
    return found


open_editor: Final = Family("openai", OpenAIEditor)
