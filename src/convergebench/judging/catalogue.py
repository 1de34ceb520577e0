"""The judges' catalogue: providers, models, prices per token. Data, which users extend.

It is `judges.toml` beside this file. Users add `[[judge]]` tables, or change single entries, in
files that the environment variable CONVERGEBENCH_JUDGES names (several are separated as in PATH),
or in `judges.toml` in the configuration folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from convergebench.cycle import Record
from convergebench.errors import SettingsError, UnknownName, explain
from convergebench.machine import library_version
from convergebench.pricing import ANY, PriceRule
from convergebench.wire import Secret

VARIABLE: Final = "CONVERGEBENCH_JUDGES"
PICTURE: Final = (85.0, 1500.0, 5000.0)
"""Tokens of a picture where an entry does not say."""
OVERHEAD: Final = 500.0
"""Tokens that servers may add to a text: the schema, the frame of a message."""


class Provider(Record):
    """A `[[provider]]`: where judges are asked.

    Attributes:
        name: As in `gemini:…`.
        title: Its name in words.
        speaks: Which client it needs.
        keys: Environment variables that may hold the key; the first that is set counts.
        key_needed: Whether it can be asked without one.
        url: Base address; empty where only the user knows it.
        url_variable: Environment variable that gives or replaces it.
        extra: The extra that brings its SDK.
        modules: What that SDK is imported as.
        limit: How its requests call the limit of an answer's tokens.
        seeds: Whether it takes a seed.
        open: Whether it serves models that the catalogue does not list.
        verified: What our client was tried against.
    """

    name: str
    title: str
    speaks: Literal["chat", "gemini", "anthropic"]
    keys: tuple[str, ...]
    key_needed: bool = True
    url: str = ""
    url_variable: str
    extra: str = ""
    modules: tuple[str, ...] = ()
    limit: str = "max_tokens"
    seeds: bool = False
    open: bool = False
    verified: str = ""


class JudgeModel(Record):
    """A `[[judge]]`: a model that can be asked.

    Attributes:
        provider: Who serves it.
        id: As the provider spells it.
        vendor: Whose model it is; empty where nobody said.
        price: Dollars per token; None when unknown. An empty table is free.
        max_tokens: Limit of an answer, thoughts included.
        parameters: Further fields of the request, as they are (`reasoning_effort`, say).
        source: Where these facts come from.
    """

    provider: str
    id: str
    vendor: str = ""
    price: PriceRule | None = None
    max_tokens: int = 4096
    parameters: dict[str, Any] = Field(default_factory=dict)
    source: str = ""

    @property
    def name(self) -> str:
        """As asked for: `gemini:gemini-3.8-flash`."""
        return f"{self.provider}:{self.id}"

    def price_up_to(self, text: str) -> PriceRule:
        """The price of asking this, whose high end no answer passes but by its pictures.

        An answer has at most `max_tokens`, and a text at most as many tokens as bytes; how many a
        picture takes is what the entry expects, or a guess.
        """
        rule = self.price or PriceRule()
        expected = dict(rule.expect.get(ANY, {}))
        usual = expected.get("text_out", (10.0, 200.0, 0.0))
        low, likely = usual[:2] if isinstance(usual, tuple) else (usual, usual)
        most = float(self.max_tokens)
        expected["text_out"] = (min(low, most), min(likely, most), most)
        letters = len(text)
        expected["text_in"] = (letters / 8, letters / 4, len(text.encode()) + OVERHEAD)
        expected.setdefault("image_in", PICTURE)
        return rule.model_copy(update={"expect": {ANY: expected}})


class Catalogue(Record):
    """Everything that the files say."""

    provider: tuple[Provider, ...]
    judge: tuple[JudgeModel, ...]
    vendors: dict[str, tuple[str, ...]]

    def by_name(self) -> dict[str, JudgeModel]:
        """The listed judges."""
        return {judge.name: judge for judge in self.judge}

    def providers(self) -> dict[str, Provider]:
        """The providers by name."""
        return {provider.name: provider for provider in self.provider}

    def find(self, name: str) -> tuple[Provider, JudgeModel]:
        """The judge of that name.

        Raises:
            UnknownName: Its provider does not list it, and serves only what it lists.
        """
        family, _, model = name.strip().partition(":")
        provider = self.providers().get(family)
        found = self.by_name().get(f"{family}:{model}")
        if provider is not None and found is None and provider.open and model:
            found = JudgeModel(provider=family, id=model, vendor=self.vendor_of(model))
        if provider is None or found is None:
            known = [*self.by_name(), *(f"{p.name}:MODEL" for p in self.provider if p.open)]
            hint = "Judges of your own go into a catalogue file: docs/guides/judges.md."
            raise UnknownName("judge", name, known, hint)
        return provider, found

    def vendor_of(self, name: str) -> str:
        """Whose model a name stands for, by its words; empty when none says."""
        text = name.lower()
        for vendor, words in self.vendors.items():
            if any(re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text) for word in words):
                return vendor
        return ""


def catalogue() -> Catalogue:
    """The catalogue, the user's additions included. Raises SettingsError."""
    own = files("convergebench.judging") / "judges.toml"
    table: dict[str, Any] = tomllib.loads(own.read_text("utf-8"))
    theirs = _user_files()
    for path in theirs:
        try:
            added = tomllib.loads(path.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} is not valid TOML: {error}") from error
        table = _with(table, added, path)
    try:
        return Catalogue.model_validate(table)
    except ValidationError as error:
        where = ", ".join(map(str, theirs)) or "judges.toml"
        raise SettingsError(f"{where}: {explain(error)}") from error


def lacks(provider: Provider) -> str:
    """Why a provider cannot be asked here, and what to do; empty when it can."""
    absent = [module for module in provider.modules if library_version(module) is None]
    if absent:
        extra = f"pip install 'convergebench[{provider.extra}]'"
        return f"{provider.title} needs {', '.join(absent)}: {extra}."
    if not (provider.url or os.environ.get(provider.url_variable, "").strip()):
        return f"{provider.title} needs an address: set {provider.url_variable}."
    if provider.key_needed and key_of(provider) is None:
        return f"{provider.title} needs a key: set {' or '.join(provider.keys)}."
    return ""


def key_of(provider: Provider) -> Secret | None:
    """The key, if one is set. Raises SettingsError where it cannot be sent."""
    for name in provider.keys:
        if text := os.environ.get(name, "").strip():
            return Secret(text, name)
    return None


def same_vendor(judge: str, editor: str) -> str:
    """A caveat for reports where a judge looks at its own vendor's pictures; else empty.

    Args:
        judge: A judge's name, as `gemini:gemini-3.8-flash`.
        editor: An editor's name, through an aggregator or not.
    """
    known = catalogue()
    _, model = known.find(judge)
    vendor = model.vendor or known.vendor_of(judge)
    if not vendor or known.vendor_of(editor) != vendor:
        return ""
    return (
        f"{judge} and {editor} are both of {vendor}: a judge may prefer its own family; "
        "ask one of another vendor as well"
    )


def _user_files() -> list[Path]:
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    missing = [path for path in named if not path.is_file()]
    if missing:
        raise SettingsError(f"{VARIABLE} names {missing[0]}, which is no file")
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    usual = Path(base) / "convergebench" / "judges.toml"
    return [*([usual] if usual.is_file() else []), *named]


def _with(table: dict[str, Any], theirs: dict[str, Any], path: Path) -> dict[str, Any]:
    """A catalogue with a user's tables: new ones, or changes of known ones."""
    unknown = sorted(set(theirs) - {"judge", "provider"})
    tables = [theirs.get(name, []) for name in ("judge", "provider")]
    lists = all(isinstance(table, list) for table in tables)
    if unknown or not lists or not all(isinstance(each, dict) for t in tables for each in t):
        got = f"[{unknown[0]}]" if unknown else "something else"
        raise SettingsError(f"{path}: expected [[judge]] and [[provider]] tables, got {got}")
    places = {entry["name"]: entry for entry in table["provider"]}
    for entry in theirs.get("provider", []):
        places[entry.get("name")] = {**places.get(entry.get("name"), {}), **entry}
    models = {(entry["provider"], entry["id"]): entry for entry in table["judge"]}
    for entry in theirs.get("judge", []):
        if entry.get("provider") not in places:
            raise SettingsError(
                f"{path}: a [[judge]] has provider {entry.get('provider')!r}, expected one of "
                f"{', '.join(map(str, places))}"
            )
        key = (entry.get("provider"), entry.get("id"))
        models[key] = {**models.get(key, {}), **entry}
    return {**table, "provider": list(places.values()), "judge": list(models.values())}
