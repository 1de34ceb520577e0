"""Providers of editors and judges as this machine has them: keys, libraries, models that go soon.

Keys are named, never shown. Nothing is called unless asked for (`online`), and then only what is
free: a provider's own list of models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from importlib import import_module
from typing import Any, Final

from convergebench import judging
from convergebench.cards.editors import NEAR_DAYS
from convergebench.cards.facts import ending, today
from convergebench.editors.providers.catalogue import Shelf, providers, shelf
from convergebench.editors.providers.family import Opened, lacks
from convergebench.errors import ConvergeBenchError, explain, scrub
from convergebench.machine import keys_set, library_version
from convergebench.table import Table
from convergebench.wire import Secret, check_base
from convergebench.wording import counted

SECONDS: Final = 15.0
"""How long a provider may take to tell."""


@dataclass(frozen=True)
class Service:
    """A provider as this machine has it.

    Attributes:
        name: As in `gemini:…`.
        kind: `editors` or `judges`.
        title: Its name in words.
        keys: Environment variables that may hold the key, and whether each is set.
        libraries: Versions of what its client is imported as; None where it is not installed.
        models: How many models the catalogue lists.
        lack: Why it cannot be called, and what to do; empty when it can.
        ending: Models that were shut down or will be soon, with when.
        told: What the provider itself said, when it was asked.
    """

    name: str
    kind: str
    title: str
    keys: Mapping[str, bool]
    libraries: Mapping[str, str | None]
    models: int
    lack: str = ""
    ending: tuple[str, ...] = ()
    told: str = ""

    @property
    def row(self) -> tuple[Any, ...]:
        """For the table."""
        there = [name for name, is_set in self.keys.items() if is_set]
        state = self.lack.removeprefix(f"{self.title} ").removesuffix(".") or "ready"
        state += f"; {there[0]} is set" if there else ""
        found = ", ".join(f"{m} {v or 'is not installed'}" for m, v in self.libraries.items())
        return (self.name, self.kind, state, found or None, self.models)


@dataclass(frozen=True)
class Services:
    """All providers, and what is wrong with their catalogues."""

    services: tuple[Service, ...]
    problems: tuple[str, ...] = ()
    online: bool = False

    @property
    def table(self) -> Table:
        """A row for each, models that go soon below."""
        ready = sum(not service.lack for service in self.services)
        title = f"Editors and judges: {counted(len(self.services), 'provider')}, {ready} ready"
        heads = ("provider", "for", "state", "library", "models")
        notes = [line for service in self.services for line in service.ending]
        notes += [f"{s.name}: {s.told}" for s in self.services if s.told]
        notes += self.problems
        return Table(title, heads, [service.row for service in self.services], notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        listed = [
            {
                **vars(service),
                "keys": dict(service.keys),
                "libraries": dict(service.libraries),
                "ready": not service.lack,
                "ending": list(service.ending),
            }
            for service in self.services
        ]
        return {"providers": listed, "problems": list(self.problems), "online": self.online}


@dataclass
class _Found:
    services: list[Service] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def services(*, online: bool = False) -> Services:
    """What this machine has of what editors and judges need.

    Args:
        online: Ask the providers that tell when their models go; free of charge.
    """
    found = _Found()
    for name in providers():
        try:
            part = shelf(name)
        except ConvergeBenchError as error:
            found.problems.append(explain(error))
            continue
        found.services.append(_asked(part) if online else _editors(part))
    try:
        found.services += _judges()
    except ConvergeBenchError as error:
        found.problems.append(explain(error))
    # One bad file of the user's makes every provider complain.
    return Services(tuple(found.services), tuple(dict.fromkeys(found.problems)), online)


def _editors(part: Shelf) -> Service:
    provider = part.provider
    gone = [m for m in part if m.shutdown and (m.shutdown - today()).days <= 0]
    near = [m for m in part if m.shutdown and 0 < (m.shutdown - today()).days <= NEAR_DAYS]
    told = [f"{provider.name}:{model.id} {ending(model)}" for model in near]
    told += [f"{provider.name}:{model.id} was {ending(model)}" for model in gone]
    return Service(
        provider.name,
        "editors",
        provider.title,
        keys_set(provider.keys),
        {module: library_version(module) for module in provider.modules},
        len(part.model),
        _safely(lambda: lacks(provider)),
        tuple(told),
    )


def _judges() -> Iterable[Service]:
    known = judging.catalogue()
    for provider in known.provider:
        listed = sum(judge.provider == provider.name for judge in known.judge)
        yield Service(
            provider.name,
            "judges",
            provider.title,
            keys_set(provider.keys),
            {module: library_version(module) for module in provider.modules},
            listed,
            _safely(lambda provider=provider: judging.lacks(provider)),  # type: ignore[misc]
        )


def _safely(look: Callable[[], str]) -> str:
    """What is lacking; a key that cannot be sent is a lack as well."""
    try:
        return look()
    except ConvergeBenchError as error:
        return str(error)


def _asked(part: Shelf) -> Service:
    """A provider with what it says about its own models, where it does."""
    service, provider = _editors(part), part.provider
    ask = _teller(provider.name)
    if ask is None:
        return replace(service, told="does not tell when its models go")
    if service.lack:
        return replace(service, told=f"was not asked. {service.lack}")
    try:
        listed = ask(_opened(part), SECONDS)
    except ConvergeBenchError as error:
        return replace(service, told=f"could not be asked: {scrub(str(error))}")
    known = part.by_id()
    lines = list(service.ending)
    for model, day in sorted(listed.items()):
        entry = known.get(model)
        judged = f"{provider.name}:{model}" in judging.catalogue().by_name()
        if entry is None and not judged:
            continue
        left = (day - today()).days
        if left <= NEAR_DAYS and (entry is None or entry.shutdown != day):
            when = f"in {counted(left, 'day')}" if left > 0 else "which is past"
            lines.append(f"{provider.name}:{model} goes on {day}, {when}, as {provider.title} says")
    told = f"was asked: {counted(len(listed), 'model')} with a day of shutdown"
    return replace(service, ending=tuple(lines), told=told)


def _teller(name: str) -> Callable[[Opened, float], Mapping[str, date]] | None:
    """The function of an adapter that asks for shutdowns, where it has one."""
    try:
        module = import_module(f"convergebench.editors.providers.{name}")
    except ImportError:
        return None
    found: Callable[[Opened, float], Mapping[str, date]] | None = getattr(
        module, "listed_shutdowns", None
    )
    return found


def _opened(part: Shelf) -> Opened:
    provider = part.provider
    base = os.environ.get(provider.url_variable) or provider.url
    keys = ((name, os.environ.get(name, "").strip()) for name in provider.keys)
    key = next((Secret(text, name) for name, text in keys if text), None)
    return Opened(
        name=provider.name,
        provider=provider,
        model=part.model[0],
        options={},
        version="",
        base=check_base(base, provider.url_variable),
        key=key,
    )
