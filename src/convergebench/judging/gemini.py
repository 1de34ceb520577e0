"""Judges of Google: `google-genai`, structured answers by JSON schema."""

from __future__ import annotations

from typing import Any, Final

from convergebench.errors import EditorLost
from convergebench.judging.client import Answer, Asking, SdkClient, count, fault, plain
from convergebench.judging.question import Sent
from convergebench.wire import Told, Wire, client, network_fault

_DONE: Final = ("STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")


class GeminiClient(SdkClient):
    """`generate_content` with `response_json_schema`; the SDK does not retry.

    `parameters` are further fields of the SDK's `GenerateContentConfig`.
    """

    def ask(self, asking: Asking, timeout: float) -> Answer:
        """One call, made once."""
        from google import genai
        from google.genai import errors, types

        config = types.GenerateContentConfig(
            response_mime_type=None if asking.schema is None else "application/json",
            response_json_schema=None if asking.schema is None else dict(asking.schema),
            max_output_tokens=self._max,
            seed=asking.seed,
            **self._parameters,
        )
        parts = [
            types.Part.from_bytes(data=part.data, mime_type=part.mime)
            if isinstance(part, Sent)
            else types.Part.from_text(text=part)
            for part in asking.parts
        ]
        with client(self._base, timeout=timeout) as http:
            options = types.HttpOptions(
                base_url=self._base,
                api_version="v1",  # or an environment variable would decide
                timeout=round(timeout * 1000),
                httpx_client=http,
            )
            sdk = genai.Client(api_key=self._key.reveal(), http_options=options, vertexai=False)
            try:
                told = sdk.models.generate_content(
                    model=self._model,
                    contents=[types.Content(role="user", parts=parts)],
                    config=config,
                )
            except errors.APIError as error:
                found = fault(self._wire, _told(error), self._model)
            except Exception as error:  # the network's, or an answer that the SDK cannot read
                found = network_fault(error, self._wire.what)
                found.args = (self._wire.scrub(str(found)),)
            else:
                return _answer(told, self._wire)
        if isinstance(found, Answer):
            return found
        raise found


def _told(error: Any) -> Told:
    """An error of the SDK as an answer; its headers are those of the response."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    text = str(error.message or error.status or "")
    return Told(int(error.code or 0), dict(headers), error.details, " ".join(text.split()))


def _answer(told: Any, wire: Wire) -> Answer:
    usage = plain(told.usage_metadata)
    tokens: dict[Any, float] = {}
    if usage:
        tokens = {
            "text_in": count(usage, "prompt_token_count"),
            "text_out": count(usage, "candidates_token_count", "thoughts_token_count"),
        }
    common: dict[str, Any] = {
        "model": told.model_version or "",
        "request_id": told.response_id or "",
        "usage": usage,
        "tokens": tokens,
    }
    feedback = told.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        return Answer(
            "", refusal=f"the prompt was blocked: {_name(feedback.block_reason)}", **common
        )
    if not told.candidates:
        raise EditorLost(f"{wire.what} answered without a candidate")
    first = told.candidates[0]
    parts = (first.content.parts if first.content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    finish = _name(first.finish_reason)
    refusal = "" if not finish or finish in _DONE else f"finish reason {finish}"
    return Answer(text, refusal=refusal, cut=finish == "MAX_TOKENS", **common)


def _name(reason: Any) -> str:
    return "" if reason is None else str(getattr(reason, "value", reason))
