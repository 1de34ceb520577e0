"""The catalogue: which models each provider has, what they cost, take and cannot do.

It is data: `models/PROVIDER.toml`, one file per provider. Users add models, or change single
entries (a price, say), in files of the same form that the environment variable CONVERGEBENCH_MODELS
names (several are separated as in PATH), or in `models.toml` in the configuration folder. Model ids
change monthly; no code knows one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError

from convergebench.cycle import Record
from convergebench.editors.providers.sizes import SizeRule
from convergebench.errors import SettingsError, explain
from convergebench.pricing import PriceRule

VARIABLE: Final = "CONVERGEBENCH_MODELS"
Value = bool | int | float | str

_KIND: Final = re.compile(r" (constrained-\w+|function-\w+\[.*?\]|tuple\[.*?\])(?=:)")
"""What pydantic calls the alternatives of a value; no reader needs it."""


class Provider(Record):
    """The `[provider]` table of a file.

    Attributes:
        name: The family, as in `gemini:…`.
        title: Its name in words.
        keys: Environment variables that may hold the key; the first that is set counts.
        url: Base address of the API.
        url_variable: Environment variable that replaces it.
        extra: The extra that brings its SDK, or empty when none is needed.
        modules: What that SDK is imported as.
        page: Its page in our docs.
        caveats: What cannot be switched off for any of its models.
        concurrency: Calls in flight per key at most.
        verified: What our adapter was tried against.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    url: str
    url_variable: str
    extra: str = ""
    modules: tuple[str, ...] = ()
    page: str = ""
    caveats: tuple[str, ...] = ()
    concurrency: int = 4
    verified: str = ""


class OptionRule(Record):
    """A pinned default that the user may change in the editor's name: `,quality=high`."""

    default: Value
    meaning: str = ""
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = 1

    def parse(self, text: str) -> Value:
        """The value that a text stands for. Raises ValueError."""
        if self.choices:
            if text not in self.choices:
                raise ValueError(f"must be {' or '.join(self.choices)}, got {text!r}")
            return text
        if isinstance(self.default, bool):
            if text not in ("true", "false"):
                raise ValueError(f"must be true or false, got {text!r}")
            return text == "true"
        if isinstance(self.default, str):
            return text
        kind = int if isinstance(self.default, int) else float
        try:
            number = kind(text)
        except ValueError:
            raise ValueError(f"must be a number, got {text!r}") from None
        if not self.low <= number <= self.high:
            raise ValueError(f"must be from {self.low:g} to {self.high:g}, got {text!r}")
        return number


class Model(Record):
    """A `[[model]]` of a file.

    Attributes:
        id: As the provider spells it; the editor's name is `provider:id`.
        title: Its name in words.
        price: What a call costs.
        tier: What the price's tiers are: `resolution`, or the name of an option.
        size: Which sizes can be asked for.
        resolutions: Which of 1K, 2K and 4K it makes.
        seeds: Whether it takes a seed.
        temperature: Whether it takes a temperature.
        sessions: `stateless`, `chat` or both.
        format: The file format that is asked for, or empty where none can be.
        accepts: File formats of the pictures it takes.
        least_side: Shortest side of the pictures it takes, where a limit is known.
        options: Pinned defaults that the user may change.
        pins: Further fields that are always sent, as they are.
        seconds: Typical duration of a call.
        concurrency: Calls in flight at most, where it is less than the provider's.
        caveats: What cannot be switched off.
        shutdown: The day from which it no longer answers, where the provider told.
        successor: The id to use instead.
        source: Where these facts come from.
        adapter: Further facts that the provider's own adapter reads.
    """

    id: str
    title: str
    price: PriceRule
    tier: str = "resolution"
    size: SizeRule
    resolutions: tuple[str, ...] = ()
    seeds: bool = False
    temperature: bool = False
    sessions: tuple[str, ...] = ("stateless",)
    format: str = ""
    accepts: tuple[str, ...] = ("png", "jpeg", "webp")
    least_side: int = 0
    options: dict[str, OptionRule] = Field(default_factory=dict)
    pins: dict[str, Any] = Field(default_factory=dict)
    seconds: float | None = None
    concurrency: int | None = None
    caveats: tuple[str, ...] = ()
    shutdown: date | None = None
    successor: str = ""
    source: str = ""
    adapter: dict[str, Any] = Field(default_factory=dict)


class Shelf(Record):
    """A provider with its models: what one file holds."""

    provider: Provider
    model: tuple[Model, ...]

    def __iter__(self) -> Iterator[Model]:  # type: ignore[override]
        return iter(self.model)

    def by_id(self) -> dict[str, Model]:
        """The models by id."""
        return {model.id: model for model in self.model}


def shelf(provider: str) -> Shelf:
    """A provider's part of the catalogue, the user's additions included. Raises SettingsError."""
    return _shelf(provider, user_files())


def providers() -> list[str]:
    """Every provider that the catalogue has a file for."""
    folder = files("convergebench.editors.providers") / "models"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith("toml"))


def user_files() -> tuple[tuple[Path, float], ...]:
    """The user's own catalogue files that are there, with when they were changed."""
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    missing = [path for path in named if not path.is_file()]
    if missing:
        raise SettingsError(f"{VARIABLE} names {missing[0]}, which is no file")
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    usual = Path(base) / "convergebench" / "models.toml"
    found = [*([usual] if usual.is_file() else []), *named]
    return tuple((path, path.stat().st_mtime) for path in found)


@lru_cache(maxsize=64)
def _shelf(provider: str, extra: tuple[tuple[Path, float], ...]) -> Shelf:
    own = files("convergebench.editors.providers") / "models" / f"{provider}.toml"
    table: dict[str, Any] = tomllib.loads(own.read_text("utf-8"))
    for path, _ in extra:
        try:
            theirs = tomllib.loads(path.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} is not valid TOML: {error}") from error
        table = _with(table, provider, theirs, path)
    try:
        return Shelf.model_validate(table)
    except ValidationError as error:
        where = ", ".join(str(path) for path, _ in extra) or f"models/{provider}.toml"
        raise SettingsError(f"{where}: {explain(error)}") from error


def _with(
    table: dict[str, Any], provider: str, theirs: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    """A catalogue with a user's `[[model]]` entries: new ones, or changes of known ones."""
    unknown = sorted(set(theirs) - {"model"})
    if unknown or not isinstance(theirs.get("model", []), list):
        raise SettingsError(f"{path}: expected [[model]] tables, got {unknown or 'something else'}")
    models = {entry["id"]: entry for entry in table["model"]}
    for entry in theirs.get("model", []):
        name = str(entry.get("provider", ""))
        if name == "local":  # those of `convergebench.editors.local`
            continue
        if name not in providers():
            raise SettingsError(
                f"{path}: a [[model]] has provider {name!r}, expected one of "
                f"{', '.join([*providers(), 'local'])}"
            )
        if name == provider:
            known = models.get(entry.get("id"), {})
            like = entry.get("like")
            if like is not None and like not in models:
                raise SettingsError(
                    f"{path}: model {entry.get('id')!r} is to be like {like!r}, but {provider} has "
                    f"no such model; it has {', '.join(models)}"
                )
            base = models.get(like, {})
            own = {k: v for k, v in entry.items() if k not in ("provider", "like")}
            if like is not None:  # what is known of the other is not known of this one
                base = {**base, "source": f"{path.name}, after {like}"}
            models[entry.get("id")] = _sound(_merged(_merged(base, known), own), path)
    return {**table, "model": list(models.values())}


def _sound(entry: dict[str, Any], path: Path) -> dict[str, Any]:
    """A user's entry, complete and legal. Raises SettingsError that names it."""
    try:
        Model.model_validate(entry)
    except ValidationError as error:
        told = re.sub(
            r" (constrained-\w+|function-\w+\[.*?\]|tuple\[.*?\])(?=:)", "", explain(error)
        )
        raise SettingsError(f"{path}: model {entry.get('id')!r}: {told}") from error
    return entry


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables joined; a price is replaced whole, because half an old one would be none."""
    out = dict(base)
    for name, value in over.items():
        deep = isinstance(value, dict) and isinstance(out.get(name), dict) and name != "price"
        out[name] = _merged(out[name], value) if deep else value
    return out
