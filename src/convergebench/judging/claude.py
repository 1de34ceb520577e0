"""Judges of Anthropic: `anthropic`, structured answers by JSON schema. They take no seed."""

from __future__ import annotations

import base64
from typing import Any

from convergebench.errors import EditorLost
from convergebench.judging.client import Answer, Asking, SdkClient, count, fault, plain
from convergebench.judging.question import Sent
from convergebench.wire import Told, Wire, client, network_fault

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class ClaudeClient(SdkClient):
    """`messages.create` with `output_config`; the SDK's own retries are off."""

    def ask(self, asking: Asking, timeout: float) -> Answer:
        """One call, made once."""
        import anthropic

        with client(self._base, timeout=timeout) as http:
            sdk = anthropic.Anthropic(
                api_key=self._key.reveal(),
                base_url=self._base,
                max_retries=0,
                timeout=http.timeout,
                http_client=http,
            )
            content: list[Any] = [_part(part) for part in asking.parts]
            held: dict[str, Any] = {}
            if asking.schema is not None:
                format_: Any = {"type": "json_schema", "schema": dict(asking.schema)}
                held = {"output_config": {"format": format_}}
            try:
                told = sdk.messages.create(
                    model=self._model,
                    max_tokens=self._max,
                    messages=[{"role": "user", "content": content}],
                    extra_body=self._parameters or None,
                    **held,
                )
            except anthropic.APIStatusError as error:
                found = fault(self._wire, _told(error), self._model)
            except Exception as error:  # the network's, or an answer that the SDK cannot read
                found = network_fault(error, self._wire.what)
                found.args = (self._wire.scrub(str(found)),)
            else:
                return _answer(told, self._wire)
        if isinstance(found, Answer):
            return found
        raise found


def _part(part: str | Sent) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = base64.b64encode(part.data).decode()
    source = {"type": "base64", "media_type": part.mime, "data": data}
    return {"type": "image", "source": source}


def _told(error: Any) -> Told:
    response = error.response
    return Told(response.status_code, dict(response.headers), error.body, str(error.message)[:600])


def _answer(told: Any, wire: Wire) -> Answer:
    # The SDK hands on whatever JSON, or even text, has come.
    if not isinstance(getattr(told, "content", None), list):
        raise EditorLost(f"{wire.what} answered in a form that nobody described")
    usage = plain(told.usage)
    texts = [b.text for b in told.content if getattr(b, "type", "") == "text"]
    stop = str(told.stop_reason or "")
    details = plain(getattr(told, "stop_details", None))
    why = ", ".join(str(value) for name, value in details.items() if name != "type")
    return Answer(
        text="".join(texts),
        refusal=(why or "stop reason refusal") if stop == "refusal" else "",
        cut=stop in ("max_tokens", "model_context_window_exceeded"),
        model=str(told.model or ""),
        request_id=str(getattr(told, "_request_id", None) or told.id or ""),
        usage=usage,
        tokens={"text_in": count(usage, *_INPUT), "text_out": count(usage, "output_tokens")}
        if usage
        else {},
    )
