"""Opening a judge by name: catalogue entry, key, address, client."""

from __future__ import annotations

import os
from pathlib import Path

from convergebench.chatapi import base_url
from convergebench.errors import SettingsError
from convergebench.judging.catalogue import JudgeModel, Provider, catalogue, key_of, lacks
from convergebench.judging.client import Client
from convergebench.judging.judge import Judge, Patience
from convergebench.money.budget import Budget
from convergebench.wire import Secret, check_base


def open_judge(
    name: str,
    *,
    folder: Path | None = None,
    budget: Budget | None = None,
    retry_failed: bool = False,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Judge:
    """The judge of that name: `openai:gpt-6-luna`, `gemini:…`, `anthropic:…`, `endpoint:MODEL`.

    Args:
        name: A judge of the catalogue, or a model behind the endpoint of your own.
        folder: Where answers are kept, `run/judgements` say.
        budget: Reserved from before each call.
        retry_failed: Ask again where all that is kept of a sample is a failure.
        patience: How long to wait.

    Raises:
        UnknownName: There is none of that name.
        SettingsError: It lacks a key, a library, an address or a price.
    """
    provider, model = catalogue().find(name)
    if missing := lacks(provider):
        raise SettingsError(missing)
    key = key_of(provider)
    given = os.environ.get(provider.url_variable, "").strip() or provider.url
    # Without a key there is nothing to protect: a server in one's own network may speak http.
    address = check_base(given, provider.url_variable) if key else base_url(given)
    client = _client(provider, model, address, key)
    return Judge(
        provider,
        model,
        address,
        client,
        folder=folder,
        budget=budget,
        retry_failed=retry_failed,
        patience=patience,
    )


def _client(provider: Provider, model: JudgeModel, address: str, key: Secret | None) -> Client:
    if provider.speaks == "chat":
        from convergebench.judging.chat import ChatClient

        return ChatClient(
            address,
            model.id,
            title=provider.title,
            key=key,
            limit=(provider.limit, model.max_tokens),
            parameters=model.parameters,
        )
    if key is None:
        raise SettingsError(f"{provider.title} needs a key: set {' or '.join(provider.keys)}.")
    if provider.speaks == "gemini":
        from convergebench.judging.gemini import GeminiClient

        return GeminiClient(
            address,
            model.id,
            title=provider.title,
            key=key,
            max_tokens=model.max_tokens,
            parameters=model.parameters,
        )
    from convergebench.judging.claude import ClaudeClient

    return ClaudeClient(
        address,
        model.id,
        title=provider.title,
        key=key,
        max_tokens=model.max_tokens,
        parameters=model.parameters,
    )
