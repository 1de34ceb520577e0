"""Google's Gemini image models (Nano Banana and its successors) through the `google-genai` SDK.

The SDK builds the request; our client carries it, once. What the SDK would do on its own is off:
retries, function calling, sending the request again when the model stops early ("automatic
continuation", billed each time), Vertex AI by environment variable.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from convergebench import wire
from convergebench.editor import EditorSpec, EditReply, EditRequest, Turn
from convergebench.editors.providers.family import Family, Opened
from convergebench.editors.providers.gemini_answers import WHAT, Answer, fault, read, signature_of
from convergebench.editors.providers.polling import Clock
from convergebench.errors import AccountBlocked, EditorError, EditorFailed, EditorLost, explain
from convergebench.frame import Frame
from convergebench.wire.transport import CONNECT_SECONDS

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client

API_VERSION: Final = "v1"
_NOT_RESENT: Final = "draft pictures of the model's thoughts are not sent again in the conversation"


class GeminiEditor:
    """An editor behind `models.generate_content`. Safe to call from several threads.

    The SDK's client is kept, because making one takes about 80 ms (TLS settings, three times); its
    HTTP client keeps no connections, so there is nothing to close.
    """

    VERSION: ClassVar = "1"

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._client: Client | None = None
        self._lock = threading.Lock()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return self._opened.spec

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        if self._opened.key is None or self._opened.lacks:
            raise AccountBlocked(self._opened.lacks)
        sent = self._sent(request)
        try:
            contents, caveats = self._contents(request)
            answer = read(self._exchange(contents, sent, request.deadline))
            reply = self._reply(answer, request, sent, caveats)
            if answer.data is None:
                error = answer.why_none()
                error.told = reply
                raise error
        except EditorError as error:
            error.args = (self._opened.key.scrub(str(error)),)
            error.told = error.told or EditReply(
                b"", parameters=self._parameters(sent), size=self._size(request)
            )
            raise
        return reply

    def _sent(self, request: EditRequest) -> dict[str, Any]:
        """The generation settings, as the SDK names them; all that is not picture or prompt."""
        opened, model = self._opened, self._opened.model
        sent: dict[str, Any] = dict(model.pins)
        if size := opened.size(request):
            shape = {"aspect_ratio": size.ratio}
            if model.adapter.get("image_size", True):
                shape["image_size"] = size.resolution
            sent["image_config"] = shape
        if model.adapter.get("thoughts", True):
            sent["thinking_config"] = {"include_thoughts": True}
            if level := opened.options.get("thinking"):
                sent["thinking_config"]["thinking_level"] = str(level).upper()
        if most := model.price.most_made(self._tier(request)):
            sent["max_output_tokens"] = most  # what was reserved for the call is then its limit
        if model.seeds and request.seed is not None:
            sent["seed"] = request.seed
        if model.temperature and request.settings.temperature is not None:
            sent["temperature"] = request.settings.temperature
        return sent

    @staticmethod
    def _tier(request: EditRequest) -> str:
        resolution = request.settings.resolution_at(request.step)
        return "1K" if resolution == "native" else resolution

    def _contents(self, request: EditRequest) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """The conversation to send, and its caveats. Without a session it is one turn.

        In a conversation every picture stands once: the source in the first turn, then what the
        model returned, in its own turns. A step that edits anything but the last frame shows its
        pictures again, in the order of the edit's inputs, because its prompt speaks of them.
        """
        contents: list[dict[str, Any]] = []
        caveats: tuple[str, ...] = ()
        chats = request.settings.session == "chat"
        frames = [turn.load() for turn in request.history] if chats else []
        known = {frame.digest: frame for frame in frames}
        for turn, frame in list(zip(request.history, frames, strict=False))[1:]:
            shown = turn.session.get("shown", [frames[0].digest] if turn.step == 1 else [])
            missing = [digest for digest in shown if digest not in known]
            if missing:
                raise EditorFailed(
                    f"the conversation cannot be sent again: step {turn.step} was shown a picture "
                    f"({missing[0][:12]}) that is not a frame of the chain"
                )
            parts, _ = self._pictures(request, [known[digest] for digest in shown])
            contents.append(_user(parts, turn.prompt))
            picture, odd = self._pictures(request, [frame])
            contents.append({"role": "model", "parts": _said(turn, picture[0])})
            caveats += odd
        parts, odd = self._pictures(request, self._shown(request))
        contents.append(_user(parts, request.prompt))
        return contents, tuple(dict.fromkeys(caveats + odd))

    @staticmethod
    def _shown(request: EditRequest) -> tuple[Frame, ...]:
        """The pictures that the user's turn of this step holds."""
        inputs = request.inputs
        begun = request.settings.session == "chat" and len(request.history) > 1
        if begun and len(inputs) == 1 and inputs[0].digest == request.history[-1].load().digest:
            return ()
        return inputs

    def _pictures(
        self, request: EditRequest, frames: tuple[Frame, ...] | list[Frame]
    ) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
        """Frames as parts. Raises EditorFailed for what the API does not take."""
        most = int(self._opened.model.adapter.get("max_bytes", 7 << 20))
        parts: list[dict[str, Any]] = []
        caveats: list[str] = []
        for data, mime, odd in self._opened.pictures(replace(request, inputs=tuple(frames))):
            if len(data) > most:
                raise EditorFailed(
                    f"{WHAT} takes pictures of up to {most / 2**20:g} MiB, got "
                    f"{len(data) / 2**20:.1f} MiB. Nothing is made smaller on the way: use a "
                    f"smaller source or a lower resolution."
                )
            parts.append({"inline_data": {"data": data, "mime_type": mime}})
            caveats += odd
        return parts, tuple(caveats)

    def _exchange(
        self, contents: list[dict[str, Any]], sent: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """One call, made once: the answer's JSON. Raises an EditorError for anything else."""
        from google.genai import errors, types

        seconds = Clock(deadline).left
        try:
            config = types.GenerateContentConfig.model_validate(
                {
                    **sent,
                    "should_return_http_response": True,
                    "automatic_continuation": False,
                    "automatic_function_calling": {"disable": True},
                    "http_options": {"timeout": max(1, int(seconds * 1000))},
                }
            )
            turns = [types.Content.model_validate(content) for content in contents]
        except ValueError as error:
            raise EditorFailed(f"the SDK does not take this request: {explain(error)}") from None
        problem: EditorError
        try:
            response = self._sdk().models.generate_content(
                model=self._opened.model.id, contents=turns, config=config
            )
            body = json.loads(
                (response.sdk_http_response and response.sdk_http_response.body) or ""
            )
            if isinstance(body, dict):
                return body
            problem = EditorLost(f"{WHAT} sent an answer that is no JSON object")
        except errors.APIError as error:
            headers = dict(getattr(error.response, "headers", None) or {})
            problem = fault(int(error.code or 0), error.details, headers)
        except json.JSONDecodeError:
            problem = EditorLost(f"{WHAT} sent an answer that is no JSON")
        except Exception as error:  # httpx2's kinds and ours
            problem = wire.network_fault(error, WHAT)
        raise problem  # out here, so that no SDK exception with the key in its headers goes along

    def _sdk(self) -> Client:
        """The SDK's client; made at the first call."""
        from google import genai
        from google.genai import types

        with self._lock:
            if self._client is None:
                assert self._opened.key is not None
                logging.getLogger("google_genai._api_client").addFilter(_not_about_keys)
                http = wire.client(self._opened.base, timeout=60.0)
                http.event_hooks = {"request": [_connect_soon]}
                self._client = genai.Client(
                    vertexai=False,
                    api_key=self._opened.key.reveal(),
                    debug_config=genai.client.DebugConfig(client_mode=None),
                    http_options=types.HttpOptions(
                        base_url=self._opened.base,
                        api_version=API_VERSION,
                        retry_options=types.HttpRetryOptions(attempts=1),
                        httpx_client=http,
                    ),
                )
            return self._client

    def _reply(
        self,
        answer: Answer,
        request: EditRequest,
        sent: Mapping[str, Any],
        caveats: tuple[str, ...],
    ) -> EditReply:
        model = self._opened.model
        told = [*self.spec.caveats, *caveats, *answer.notes]
        if answer.model and answer.model.removeprefix("models/") != model.id:
            told.append(f"{model.id} was asked for, {answer.model} answered")
        session: dict[str, Any] = {}
        if request.settings.session == "chat":
            shown = [frame.digest for frame in self._shown(request)]
            session = {"shown": shown, "parts": [dict(part) for part in answer.parts]}
            if model.adapter.get("thoughts", True):
                told.append(_NOT_RESENT)
        tokens = answer.tokens()
        cost = model.price.of_tokens(tokens) if tokens else None
        return EditReply(
            answer.data or b"",
            model=answer.model,
            request_id=answer.request_id,
            parameters=self._parameters(sent),
            usage=dict(answer.usage or {}),
            cost=cost,
            basis="" if cost is None else "usage",
            reasoning=answer.reasoning or None,
            caveats=tuple(dict.fromkeys(told)),
            size=self._size(request),
            format=model.format or None,
            session=session,
        )

    @staticmethod
    def _parameters(sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"api_version": API_VERSION, **sent}

    def _size(self, request: EditRequest) -> str | None:
        """The size that Google's table gives for the ratio and resolution asked for."""
        size = self._opened.size(request)
        return size.text() if size else None


def _user(pictures: list[dict[str, Any]], prompt: str) -> dict[str, Any]:
    return {"role": "user", "parts": [*pictures, {"text": prompt}]}


def _said(turn: Turn, picture: dict[str, Any]) -> list[dict[str, Any]]:
    """The model's turn: its texts and picture in their order, with their signatures."""
    found: list[dict[str, Any]] = []
    for kept in turn.session.get("parts") or [{"picture": True}]:
        part = dict(picture) if kept.get("picture") else {"text": kept["text"]}
        if kept.get("thought"):
            part["thought"] = True
        if signature := signature_of(kept):
            part["thought_signature"] = signature
        found.append(part)
    return found


def _not_about_keys(record: logging.LogRecord) -> bool:
    """Drop the SDK's warning that two key variables are set: ours says which one counts."""
    return "GEMINI_API_KEY are set" not in record.getMessage()


def _connect_soon(request: httpx2.Request) -> None:
    """The SDK gives one timeout for everything; a connection should not take that long."""
    limits = dict(request.extensions["timeout"])
    limits["connect"] = min(limits["connect"], CONNECT_SECONDS)
    request.extensions["timeout"] = limits


open_editor: Final = Family("gemini", GeminiEditor)
