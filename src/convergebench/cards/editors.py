"""What `convergebench editors list` and `show` print: each editor, its price, what it lacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Final

from convergebench import registry
from convergebench.cards.facts import catalogued, ending, followed, priced, today
from convergebench.chain import Settings
from convergebench.editor import Asked, EditorSpec, Price
from convergebench.editors.providers.catalogue import Model, Provider, Value, providers, shelf
from convergebench.editors.providers.family import Opened, lacks
from convergebench.errors import ConvergeBenchError, UnknownName, explain
from convergebench.machine import keys_set, library_version
from convergebench.registry import PluginName
from convergebench.table import Table
from convergebench.wire import check_base
from convergebench.wording import counted, in_order

NEAR_DAYS: Final = 60
"""A model that goes within so many days is near its shutdown."""
WIDTH: Final = 100
"""How many letters wide a list is."""
NARROWEST: Final = 20
"""How few letters its titles get, whatever the rest takes."""
MARK: Final = 16
"""How many letters a state may have in it."""
PROMPT: Final = "Add a red ball. Keep everything else exactly as it is."
"""A prompt of usual length, for prices."""


@dataclass(frozen=True)
class EditorCard:
    """An editor as it can be used here.

    Attributes:
        name: As asked for.
        title: Its name or what it does, in words.
        package: The package that brings it.
        spec: What the runner knows about it; None where it cannot be opened.
        provider: Its provider's part of the catalogue, if it is in the catalogue.
        model: Its own catalogue entry, if there is one.
        values: Its options as the name sets them.
        lack: Why it cannot be called now and what to do; empty when it can.
        short: The same in a few words.
    """

    name: str
    title: str
    package: str = ""
    spec: EditorSpec | None = None
    provider: Provider | None = None
    model: Model | None = None
    values: Mapping[str, Value] | None = None
    lack: str = ""
    short: str = ""

    @property
    def ready(self) -> bool:
        """Whether it can be called."""
        return not self.lack

    @property
    def days(self) -> int | None:
        """Days until it no longer answers; none left where it is 0 or less."""
        end = self.model.shutdown if self.model else None
        return None if end is None else (end - today()).days

    @property
    def near(self) -> bool:
        """Whether it was shut down, or will be soon."""
        return self.days is not None and self.days <= NEAR_DAYS

    @property
    def state(self) -> str:
        """`ready`, or what it lacks, and whether it goes soon."""
        told = self.short or "ready"
        if self.days is not None and 0 < self.days <= NEAR_DAYS:
            told += f"; {ending(self.model)}"
        return told

    @property
    def mark(self) -> str:
        """The state in a word or two, for a list; the sentence is below it."""
        if not self.lack:
            return f"ends {self.model.shutdown}" if self.near and self.model else "ready"
        short = self.short.partition(" (")[0]
        return short if len(short) <= MARK else "not ready"

    @property
    def price(self) -> Price | None:
        """Dollars of one edit of a picture of 1024 × 1024; at 1K where it makes that."""
        if self.model is not None and _gone(self.model):
            return None
        if self.model is not None and self.provider is not None:
            return typical_price(self.provider, self.model, self.values)
        if self.spec is None:
            return None
        try:
            return self.spec.price_of(_asked(self.spec.abilities.resolutions))
        except Exception:  # of a plug-in: a price that cannot be told is unknown
            return None

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The card line by line."""
        rows = [
            ("state", self.lack or self.state),
            ("title", self.title),
            ("package", self.package),
            *(followed(self.spec) if self.spec else []),
            ("price at 1K", priced(self.price)),
        ]
        if self.model is not None and self.provider is not None:
            rows += catalogued(self.provider, self.model, self.values or {})
        caveats = self.spec.caveats if self.spec else _caveats(self.provider, self.model)
        rows += [("caveat", text) for text in caveats]
        return [(what, text) for what, text in rows if text]

    @property
    def table(self) -> Table:
        """The card as a table."""
        return Table(self.name, ("", ""), self.facts)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        price, spec, model = self.price, self.spec, self.model
        told: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "package": self.package,
            "ready": self.ready,
            "state": self.state,
            "lacks": self.lack,
            "price": None if price is None else vars(price),
            "version": spec.version or None if spec else None,
            "shutdown": str(model.shutdown) if model and model.shutdown else None,
            "successor": model.successor if model else "",
        }
        if spec is not None:
            told["abilities"] = vars(spec.abilities)
        told["caveats"] = list(spec.caveats if spec else _caveats(self.provider, model))
        if self.provider is not None and model is not None:
            told["provider"] = self.provider.model_dump(mode="json")
            told["keys"] = keys_set(self.provider.keys)
            told["model"] = model.model_dump(mode="json")
        return told


@dataclass(frozen=True)
class EditorList:
    """Every editor, or those that a word finds."""

    cards: tuple[EditorCard, ...]

    @property
    def table(self) -> Table:
        """A row for each that still answers, `WIDTH` letters wide; below it what is lacking."""
        gone = [card.name for card in self.cards if card.model and _gone(card.model)]
        living = [card for card in self.cards if card.name not in gone]
        prices = [priced(card.price).partition(" (")[0] for card in living]
        taken = [(len(c.name), len(p), len(c.mark)) for c, p in zip(living, prices, strict=True)]
        heads = ("editor", "what it is", "$ at 1K", "state")
        taken.append((len(heads[0]), len(heads[2]), len(heads[3])))
        room = max(NARROWEST, WIDTH - 6 - sum(max(lengths) for lengths in zip(*taken, strict=True)))
        rows = [
            (card.name, _clipped(card.title, room), price, card.mark)
            for card, price in zip(living, prices, strict=True)
        ]
        notes = list(dict.fromkeys(card.lack for card in living if card.lack))
        notes += [f"{card.name} {ending(card.model)}." for card in living if card.near]
        notes += [f"Shut down: {', '.join(gone)}."] if gone else []
        notes += [
            "The price is what one edit of a 1024-pixel picture is expected to cost; – is unknown.",
            "convergebench editors show NAME tells more; editors check NAME tries one.",
        ]
        ready = sum(card.ready for card in self.cards)
        title = f"{counted(len(self.cards), 'editor')}, {ready} ready"
        return Table(title, heads, rows, [line for note in notes for line in _wrapped(note)])

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"editors": [card.to_dict() for card in self.cards]}


def editor_card(name: str) -> EditorCard:
    """The card of one editor, options in its name included.

    Raises:
        UnknownName: There is none of that name.
        SettingsError: It has no such option or value.
        PluginBroken: It cannot be loaded.
    """
    parsed = PluginName.parse(name)
    owners = {plugin.name: plugin.package for plugin in registry.plugins("editors")}
    if parsed.family in providers() and parsed.family in owners:
        found = shelf(parsed.family)
        model = found.by_id().get(parsed.model or "")
        if model is not None and _gone(model):
            return _card(str(parsed), owners[parsed.family], found.provider, model)
    elif parsed.family not in owners:
        raise UnknownName("editor", name.partition(",")[0], registry.editor_names())
    return _opened(str(parsed), registry.editor_names().get(name.partition(",")[0], ""), owners)


def editor_cards(word: str = "", *, ready: bool = False) -> EditorList:
    """The cards of all editors that their families list.

    Args:
        word: Only those whose name or title holds it.
        ready: Only those that can be called.
    """
    found: list[EditorCard] = []
    plugins = registry.plugins("editors")
    owners = {plugin.name: plugin.package for plugin in plugins}
    names = registry.editor_names()
    for plugin in plugins:
        if plugin.problem:
            card = EditorCard(plugin.name, "", plugin.package, lack=plugin.problem)
            found.append(_shortened(card, "a working plug-in"))
        elif plugin.name in providers():
            part = shelf(plugin.name)
            for model in part:
                name = f"{plugin.name}:{model.id}"
                found.append(_card(name, plugin.package, part.provider, model))
        else:
            own = [n for n in names if n.partition(":")[0] == plugin.name]
            found += [_tried(name, names[name], owners) for name in own]
    chosen = [card for card in found if word.lower() in f"{card.name} {card.title}".lower()]
    return EditorList(tuple(card for card in chosen if card.ready or not ready))


def typical_price(
    provider: Provider, model: Model, values: Mapping[str, Value] | None = None
) -> Price | None:
    """Dollars of one edit of a picture of 1024 × 1024; None where nobody knows."""
    spec = _unopened(provider, model, values or {}).spec
    return spec.price_of(_asked(model.resolutions))


def _unopened(provider: Provider, model: Model, values: Mapping[str, Value]) -> Opened:
    """A model as its adapter would get it, without a key; quicker than opening each by name."""
    defaults = {name: rule.default for name, rule in model.options.items()}
    return Opened(
        name=f"{provider.name}:{model.id}",
        provider=provider,
        model=model,
        options={**defaults, **values},
        version="",
        base=provider.url,
        key=None,
    )


def _gone(model: Model) -> bool:
    return model.shutdown is not None and model.shutdown <= today()


def _card(
    name: str, package: str, provider: Provider, model: Model, spec: EditorSpec | None = None
) -> EditorCard:
    """The card of a model of the catalogue; `spec` where it was opened by its whole name."""
    card = EditorCard(name, model.title, package, provider=provider, model=model)
    if _gone(model):
        instead = f" Use {provider.name}:{model.successor}." if model.successor else ""
        gone = f"It was {ending(model)}.{instead}"
        return _shortened(card, "", gone, ending(model))
    values = _values(model, PluginName.parse(name))
    spec = spec or _unopened(provider, model, values).spec
    card = EditorCard(name, model.title, package, spec, provider, model, values)
    absent = [module for module in provider.modules if library_version(module) is None]
    wanted = in_order(absent) if absent else f"a key ({' or '.join(provider.keys)})"
    try:
        check_base(os.environ.get(provider.url_variable) or provider.url, provider.url_variable)
        lack = lacks(provider)
    except ConvergeBenchError as error:  # an address or a key that cannot be used
        return _shortened(card, "", explain(error), "cannot be opened")
    return _shortened(card, wanted, lack) if lack else card


def _opened(name: str, title: str, owners: Mapping[str, str]) -> EditorCard:
    """The card of an editor that is opened by its whole name."""
    spec = registry.open_editor(name).spec
    parsed = PluginName.parse(name)
    package = owners.get(parsed.family, "")
    if parsed.family in providers():
        found = shelf(parsed.family)
        model = found.by_id().get(parsed.model or "")
        if model is not None:
            return _card(name, package, found.provider, model, spec)
    card = EditorCard(name, spec.description or title, package, spec)
    short = spec.lacks.partition(". ")[0].partition(": ")[0].rstrip(".")
    return _shortened(card, "", spec.lacks, short) if spec.lacks else card


def _tried(name: str, title: str, owners: Mapping[str, str]) -> EditorCard:
    """The same for a list, where what cannot be opened must not hide the others."""
    package = owners.get(name.partition(":")[0], "")
    try:
        return _opened(name, title, owners)
    except ConvergeBenchError as error:
        card = EditorCard(name, title, package)
        return _shortened(card, "", explain(error), "name it in full")
    except Exception as error:  # foreign code
        told = f"{type(error).__name__}: {error}"
        return _shortened(EditorCard(name, title, package), "a working plug-in", told)


def _shortened(card: EditorCard, wanted: str, lack: str = "", short: str = "") -> EditorCard:
    return replace(card, lack=lack or card.lack, short=short or f"lacks {wanted}")


def _values(model: Model, name: PluginName) -> dict[str, Value]:
    given = dict(name.options)
    return {
        option: rule.parse(given[option]) if option in given else rule.default
        for option, rule in model.options.items()
    }


def _asked(resolutions: tuple[str, ...]) -> Asked:
    first = "1K" if "1K" in resolutions else resolutions[0] if resolutions else "native"
    settings = Settings.model_validate({"resolution": first})
    return Asked(settings, step=1, width=1024, height=1024, prompt=PROMPT)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip(' ,:;(')}…"


def _wrapped(note: str) -> list[str]:
    """A note in lines as wide as the list; names and commands are not cut."""
    return wrap(note, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _caveats(provider: Provider | None, model: Model | None) -> tuple[str, ...]:
    return (*(provider.caveats if provider else ()), *(model.caveats if model else ()))
