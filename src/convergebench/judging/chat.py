"""Judges behind an OpenAI-compatible endpoint: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp.

Over `wire`, not `chatapi`: that one repeats calls that timed out, which may have been billed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from convergebench.errors import EditorError, EditorLost
from convergebench.judging.client import Answer, Asking, count, dollars, fault
from convergebench.judging.question import Sent
from convergebench.wire import Secret, Told, Wire, client, complaint, network_fault

_NO_SCHEMA: Final = re.compile(
    r"response_format|json_schema|json schema|structured|guided|grammar", re.I
)


class ChatClient:
    """Chat completions with `response_format` json_schema, strict.

    A server that does not know it (a 400 or 422 that says so) is asked without, from then on; the
    question asks for the JSON object in words anyway.

    Args:
        base: Checked base address.
        model: Its name on the server.
        title: The server's name in messages.
        key: The bearer token, if any.
        limit: The field and number of the limit of tokens.
        parameters: Further fields of the request.
    """

    def __init__(
        self,
        base: str,
        model: str,
        *,
        title: str,
        key: Secret | None,
        limit: tuple[str, int],
        parameters: Mapping[str, Any],
    ) -> None:
        self._headers = {"Authorization": f"Bearer {key.reveal()}"} if key else {}
        self._wire = Wire(base, what=title, key=key)
        self._model = model
        self._sent = {limit[0]: limit[1], **parameters}
        self._structured = True

    def ask(self, asking: Asking, timeout: float) -> Answer:
        """One call, made once."""
        structured = self._structured and asking.schema is not None
        told = self._post(self._body(asking, structured), timeout)
        if structured and told.status in (400, 422) and _NO_SCHEMA.search(_said(told)):
            self._structured = structured = False  # the refused request cost nothing
            told = self._post(self._body(asking, False), timeout)
        if not told.ok:
            found = fault(self._wire, told, self._model)
            if isinstance(found, Answer):
                return found
            raise found
        return self._answer(told, structured)

    def _post(self, body: dict[str, Any], timeout: float) -> Told:
        """As `Wire.post`, which keeps to https; without a key a server nearby may speak http."""
        url = f"{self._wire.base}/chat/completions"
        problem: EditorError | None = None
        try:
            with client(url, timeout=timeout) as http:
                response = http.post(url, json=body, headers=self._headers)
        except Exception as error:  # httpx2's kinds, and what a broken stream raises
            problem = network_fault(error, self._wire.what)
        if problem is not None:  # raised out here, so that no context holds the headers
            problem.args = (self._wire.scrub(str(problem)),)
            raise problem
        try:
            parsed = json.loads(response.content)
        except (ValueError, RecursionError):
            parsed = None
        line = self._wire.scrub(" ".join(response.text.split()))[:600]
        return Told(response.status_code, dict(response.headers), parsed, line)

    def _body(self, asking: Asking, structured: bool) -> dict[str, Any]:
        content = [
            {"type": "image_url", "image_url": {"url": _data_url(part), "detail": "high"}}
            if isinstance(part, Sent)
            else {"type": "text", "text": part}
            for part in asking.parts
        ]
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            **self._sent,
        }
        if asking.seed is not None:
            body["seed"] = asking.seed
        if structured:
            schema = {"name": "answer", "schema": dict(asking.schema or {}), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _answer(self, told: Told, structured: bool) -> Answer:
        table = told.table
        choices = table.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(first, dict) or not isinstance(message, dict):
            said = self._wire.scrub(_said(told) or "nothing")[:300]
            raise EditorLost(f"{self._wire.what} answered without a choice: {said}")
        usage = table.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        finish = str(first.get("finish_reason") or "")
        refusal = str(message.get("refusal") or "")
        known = "prompt_tokens" in usage
        return Answer(
            text=_text(message.get("content")),
            refusal=refusal or ("content_filter" if finish == "content_filter" else ""),
            cut=finish == "length",
            model=str(table.get("model") or ""),
            request_id=str(told.headers.get("x-request-id") or table.get("id") or ""),
            usage=usage,
            tokens={
                "text_in": count(usage, "prompt_tokens"),
                "text_out": count(usage, "completion_tokens"),
            }
            if known
            else {},
            cost=dollars(usage.get("cost")),
            structured=structured,
        )


def _said(told: Told) -> str:
    return complaint(told.body) or told.text


def _text(content: Any) -> str:
    if isinstance(content, list):  # parts, as some servers answer them
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _data_url(picture: Sent) -> str:
    return f"data:{picture.mime};base64,{base64.b64encode(picture.data).decode()}"
