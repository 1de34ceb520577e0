"""Texts that may be published: without keys, signed addresses and paths of the machine.

Records are written without secrets in the first place; this is the second look, before strangers
see them. What was asked (prompts) and what was answered (reasoning) only loses secrets.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

from convergebench.chain import Call, Step
from convergebench.errors import scrub

_KEYS: Final = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|r8_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{30,}"
    r"|Bearer\s+[A-Za-z0-9._~+/-]{16,}=*|xai-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|gsk_[A-Za-z0-9]{16,}|AKIA[A-Z0-9]{16}\b|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-f]{32}"
    r"|(?i:api[_-]?key|access[_-]?token|client[_-]?secret)[\"']?\s*[=:]\s*[\"']?[A-Za-z0-9_.~+/-]{12,}=*)"
)
_ADDRESS: Final = re.compile(r"\b(https?)://(?:[^\s/@\"'<>]+@)?([^\s?#\"'<>]+)(\?[^\s\"'<>]*)?")
_SIGNED: Final = re.compile(r"(?i)[?&][^=&]*(sig|token|key|cred|secret|expire|policy|auth)[^=&]*=")
_PATH: Final = re.compile(
    r"(?<![\w:/.~-])(?:(?:file://)?/(?:home|Users|root|tmp|private|var|mnt|media|opt|srv|work|workspace|data"
    r"|scratch|Volumes|usr)/|~/|[A-Za-z]:\\)[^\s\"'<>,;:()\[\]{}]*"
)
_T = TypeVar("_T")


class Cleaner:
    """Cleans texts, and counts those that had something to be taken out."""

    def __init__(self) -> None:
        self.cleaned = 0

    def said(self, text: str | None) -> str | None:
        """What was said to or by a model: without secrets."""
        return self._count(text, _without_secrets(text) if text else text)

    def report(self, text: str) -> str:
        """What a program said: without secrets and paths."""
        return self._count(text, _PATH.sub(_last, _without_secrets(text)) if text else text)

    def data(self, value: dict[str, Any]) -> dict[str, Any]:
        """Every text in some JSON, as a report."""
        return {self.report(name): self._any(each) for name, each in value.items()}

    def step(self, step: Step) -> Step:
        """A record as it may be published, without what is left out of a dataset."""
        call, before = step.call, self.cleaned
        told = Call(
            model=None if call.model is None else self.report(call.model),
            request_id=self.said(call.request_id),
            effective_prompt=self.said(call.effective_prompt),
            parameters=self.data(call.parameters),
            usage=self.data(call.usage),
            cost=call.cost,
            basis=call.basis,
            reasoning=self.said(call.reasoning),
            caveats=tuple(map(self.report, call.caveats)),
            size=call.size,
            format=call.format,
            latency=call.latency,
        )
        changes: dict[str, Any] = {"call": told}
        changes["prompt"] = self.said(step.prompt)
        changes["detail"] = self.report(step.detail)
        if before == self.cleaned and told == call:
            return step
        return step.model_copy(update=changes)

    def _any(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.report(value)
        if isinstance(value, dict):
            return self.data(value)
        return [self._any(each) for each in value] if isinstance(value, list) else value

    def _count(self, before: _T, after: _T) -> _T:
        self.cleaned += before != after
        return after


def holds_path(text: str) -> bool:
    """Whether a text names a place on some machine."""
    return _PATH.search(text) is not None or ":/" in text.replace("://", "")


def _without_secrets(text: str) -> str:
    return _ADDRESS.sub(_unsigned, _KEYS.sub("<key>", scrub(text)))


def _unsigned(match: re.Match[str]) -> str:
    scheme, place, query = match.groups()
    if query and _SIGNED.search(query):
        query = "?…"
    return f"{scheme}://{place}{query or ''}"


def _last(match: re.Match[str]) -> str:
    return "…/" + re.split(r"[\\/]", match[0].rstrip("\\/"))[-1]
