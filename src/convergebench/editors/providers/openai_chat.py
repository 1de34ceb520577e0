"""A conversation with OpenAI: the Responses API, whose image tool edits at each turn.

A turn refers to the response before it, which OpenAI keeps. When it keeps it no longer, or none is
known, the conversation is written anew from the frames in the store.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from convergebench.editor import Asked, EditReply, EditRequest, Price
from convergebench.editors.providers.family import Opened, data_uri
from convergebench.editors.providers.openai_client import (
    Account,
    picture,
    surprises,
    tokens,
)
from convergebench.editors.providers.polling import Clock
from convergebench.errors import EditorError, EditorFailed, EditorNoImage, EditorRefused

if TYPE_CHECKING:
    from openai import OpenAI

FORGOTTEN: Final = "previous_response_not_found"
BETWEEN: Final = "Edited. The picture is in the next message."
"""What stands for the model's own turns in a conversation that is written anew."""
_TEXTS: Final = ("text", "refusal")


class Conversation:
    """The turns of one model."""

    def __init__(self, opened: Opened, account: Account) -> None:
        self._opened = opened
        self._account = account
        self._chat: Mapping[str, Any] = opened.model.adapter.get("chat", {})

    def dearer(self, price: Price, asked: Asked) -> Price:
        """A price with what the chat model reads and writes besides."""
        read = self._chat.get("expect_in", (0, 0, 0))
        write = self._chat.get("expect_out", (0, 0, 0))
        width, height = self._opened.largest_sent(asked)
        area = width * height / 2**20
        seen = area * (asked.inputs + asked.step - 1)
        extra = [self._dollars(seen * i, o) or 0.0 for i, o in zip(read, write, strict=True)]
        return Price(price.low + extra[0], price.expected + extra[1], price.high + extra[2])

    def turn(
        self, request: EditRequest, fields: Mapping[str, Any], mask: bytes | None, clock: Clock
    ) -> EditReply:
        """One turn: by reference where there is one, else with the whole conversation."""
        body = self._body(fields, mask)
        notes: list[str] = []
        if previous := self._previous(request):
            parts = self._parts(request, notes, seen=request.history[-1].load().digest)
            by = {**body, "previous_response_id": previous, "input": parts}
            try:
                return self._made(by, clock, fields, notes)
            except EditorFailed as error:
                if not _forgotten(str(error)):
                    raise
            notes = []
        history = self._history(request, notes)
        if len(request.history) > 1:
            notes.append("the conversation was written anew from the stored frames")
        parts = [*history, *self._parts(request, notes)]
        return self._made({**body, "input": parts}, clock, fields, notes)

    def _made(
        self, body: Mapping[str, Any], clock: Clock, fields: Mapping[str, Any], notes: list[str]
    ) -> EditReply:
        """Make one call and read its answer."""
        tool = dict(body["tools"][0])
        masked = tool.pop("input_image_mask", None) is not None
        parameters = {**body, "tools": [tool], **({"mask": "region"} if masked else {})}
        del parameters["input"]
        sent = EditReply(
            b"",
            parameters=parameters,
            size=fields.get("size"),
            format=fields["output_format"],
            caveats=(
                *self._opened.spec.caveats,
                f"{self._chat['model']} rewrites the prompt for the image tool",
                *notes,
            ),
        )

        def call(sdk: OpenAI) -> Any:
            return sdk.responses.with_raw_response.create(**body)

        answer, reply = self._account.answered(call, clock, sent)
        return self._read(answer, fields, reply)

    def _previous(self, request: EditRequest) -> str:
        last = request.history[-1] if request.history else None
        if last is None or last.step != request.step - 1:
            return ""
        return str(last.session.get("response") or "")

    def _body(self, fields: Mapping[str, Any], mask: bytes | None) -> dict[str, Any]:
        tool: dict[str, Any] = {"type": "image_generation", "action": "edit", **fields}
        if mask is not None:
            tool["input_image_mask"] = {"image_url": data_uri(mask, "image/png")}
        return {
            "model": self._chat["model"],
            "tools": [tool],
            "tool_choice": {"type": "image_generation"},
            "max_tool_calls": 1,
            "reasoning": {"summary": "auto"},
            "store": True,
        }

    def _parts(
        self, request: EditRequest, notes: list[str], seen: str = ""
    ) -> list[dict[str, Any]]:
        """The user's message: the pictures that the conversation does not end with, the prompt."""
        content: list[dict[str, Any]] = []
        for frame, sent in zip(request.inputs, self._opened.pictures(request), strict=True):
            if frame.digest != seen:
                content.append(_image(sent[0], sent[1]))
                notes.extend(sent[2])
        content.append({"type": "input_text", "text": request.prompt})
        return [{"role": "user", "content": content}]

    def _history(self, request: EditRequest, notes: list[str]) -> list[dict[str, Any]]:
        """Earlier turns: each picture with the prompt that was sent about it."""
        turns = request.history
        most = int(self._chat.get("pictures", 16)) - len(request.inputs)
        edits = list(itertools.pairwise(turns))
        if len(edits) > most:
            edits = [*edits[:1], *(edits[1 - most :] if most > 1 else [])]
            notes.append(f"only {len(edits)} of {len(turns) - 1} earlier turns were sent again")
        messages: list[dict[str, Any]] = []
        for before, after in edits:
            (sent,) = self._opened.pictures(replace(request, inputs=(before.load(),)))
            content = [_image(sent[0], sent[1]), {"type": "input_text", "text": after.prompt}]
            messages.append({"role": "user", "content": content})
            messages.append(
                {"role": "assistant", "content": [{"type": "output_text", "text": BETWEEN}]}
            )
        return messages

    def _read(
        self, body: Mapping[str, Any], fields: Mapping[str, Any], reply: EditReply
    ) -> EditReply:
        output = [item for item in body.get("output") or () if isinstance(item, dict)]
        calls = [item for item in output if item.get("type") == "image_generation_call"]
        made = [item for item in calls if item.get("result")]
        names = ("id", "status", "action", "size", "quality", "output_format", "background")
        returned = {name: made[-1][name] for name in names if made and made[-1].get(name)}
        usage = {name: body[name] for name in ("usage", "tool_usage") if body.get(name) is not None}
        cost = self._cost(body)
        reply = replace(
            reply,
            model=body["model"] if isinstance(body.get("model"), str) else None,
            usage={**usage, **({"returned": returned} if returned else {})},
            cost=cost,
            basis="" if cost is None else "usage",
            reasoning=_summary(output),
            session={"response": body["id"]} if isinstance(body.get("id"), str) else {},
        )
        if not made:
            raise self._missing(body, calls, output, reply)
        revised = made[-1].get("revised_prompt")
        data = picture(made[-1]["result"], reply)
        return replace(
            reply,
            data=data,
            effective_prompt=revised if isinstance(revised, str) and revised else None,
            caveats=(*reply.caveats, *surprises(data, fields, returned)),
        )

    def _missing(
        self,
        body: Mapping[str, Any],
        calls: Sequence[Mapping[str, Any]],
        output: Sequence[Mapping[str, Any]],
        reply: EditReply,
    ) -> EditorError:
        """Why there is no picture."""
        faults = [item["error"] for item in calls if isinstance(item.get("error"), dict)]
        if isinstance(body.get("error"), dict):
            faults.append(body["error"])
        if faults:
            error = self._account.failure(faults[0], reply.cost)
            error.told = reply
            return error
        words = _words(output)
        scrub = self._account.wire.scrub
        details = body.get("incomplete_details")
        reason = str(details.get("reason")) if isinstance(details, dict) else ""
        refused = [text for kind, text in words if kind == "refusal"]
        if refused or reason == "content_filter":
            return EditorRefused(scrub(f"OpenAI: {' '.join(refused) or reason}"[:600]), told=reply)
        said = " ".join(text for _, text in words) or reason or str(body.get("status") or "")
        return EditorNoImage(scrub(f"OpenAI answered without a picture: {said}"[:600]), told=reply)

    def _cost(self, body: Mapping[str, Any]) -> float | None:
        """Dollars of the image tool and of the chat model; None unless both are counted."""
        tool, usage = body.get("tool_usage"), body.get("usage")
        used = tokens(tool.get("image_gen")) if isinstance(tool, dict) else None
        if used is None or not isinstance(usage, dict):
            return None
        images = self._opened.model.price.of_tokens(used)
        words = self._dollars(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0)
        return None if images is None or words is None else images + words

    def _dollars(self, read: float, written: float) -> float | None:
        if "text_in" not in self._chat or "text_out" not in self._chat:
            return None
        return float(read * self._chat["text_in"] + written * self._chat["text_out"]) / 1e6


def _forgotten(said: str) -> bool:
    gone = "previous response" in said.lower() and "not found" in said.lower()
    return FORGOTTEN in said or gone


def _words(output: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What the model wrote: as `text`, or as `refusal`."""
    messages = [item for item in output if item.get("type") == "message"]
    parts = [part for item in messages for part in item.get("content") or () if part]
    return [(kind, str(part[kind])) for part in parts for kind in _TEXTS if part.get(kind)]


def _summary(output: Sequence[Mapping[str, Any]]) -> str | None:
    thoughts = [item for item in output if item.get("type") == "reasoning"]
    texts = [str(part.get("text", "")) for item in thoughts for part in item.get("summary") or ()]
    return "\n\n".join(text for text in texts if text) or None


def _image(data: bytes, mime: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_uri(data, mime), "detail": "high"}
