"""Editors, metrics and suites by name, through entry points. Built-ins are plug-ins too.

Listing imports nothing. A plug-in that cannot be loaded is an error when it is asked for, and a
listed defect otherwise; so is a name that two packages claim.

An editor is named `family:model,option=value,…`: the family is the entry point; its factory gets
`model` (when there is one) and the options as keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from pathlib import Path
from typing import Any, Final

from convergebench.editor import Editor
from convergebench.errors import PluginBroken, SettingsError, UnknownName
from convergebench.metric import Metric
from convergebench.suite import Suite, load_suite

GROUPS: Final = ("editors", "metrics", "suites")


@dataclass(frozen=True)
class Plugin:
    """An installed plug-in, and why it cannot be used if it cannot."""

    group: str
    name: str
    package: str
    version: str
    target: str
    problem: str = ""


@dataclass(frozen=True)
class EditorName:
    """A parsed editor name. `str()` gives the canonical form, options sorted."""

    family: str
    model: str | None
    options: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> EditorName:
        """Read `family:model,option=value,…`. Raises SettingsError."""
        head, *pairs = text.strip().split(",")
        family, _, model = head.partition(":")
        options = {}
        for pair in pairs:
            option, equals, value = pair.partition("=")
            if not equals or not option.strip():
                raise SettingsError(
                    f"editor {text!r}: {pair!r} is no option. Write options as "
                    "name=value after a comma, as in ref:jpeg,quality=75."
                )
            options[option.strip()] = value.strip()
        if not family:
            raise SettingsError(f"editor {text!r} has no name. Write for example ref:jpeg.")
        return cls(family, model or None, tuple(sorted(options.items())))

    def __str__(self) -> str:
        head = f"{self.family}:{self.model}" if self.model else self.family
        return ",".join([head, *(f"{name}={value}" for name, value in self.options)])


def open_editor(name: str) -> Editor:
    """The editor of that name, ready to use. Raises UnknownName, PluginBroken, SettingsError."""
    parsed = EditorName.parse(name)
    if parsed.family not in _entries("editors"):
        raise UnknownName("editor", name.partition(",")[0], editor_names())
    factory = _load("editors", parsed.family)
    keywords: dict[str, Any] = dict(parsed.options)
    if parsed.model is not None:
        keywords["model"] = parsed.model
    editor = _call(factory, f"editor {name!r}", keywords)
    if not isinstance(editor, Editor):
        raise PluginBroken(f"editor {name!r}: its factory returned {type(editor).__name__}")
    return editor


def open_metric(name: str) -> Metric:
    """The metric of that name, ready to use. Raises UnknownName, PluginBroken."""
    metric = _call(_load("metrics", name), f"metric {name!r}", {})
    if not isinstance(metric, Metric):
        raise PluginBroken(f"metric {name!r}: its factory returned {type(metric).__name__}")
    return metric


def open_suite(name: str | Path) -> Suite:
    """The suite of that name, or the one in that file or folder. Raises UnknownName, SuiteError."""
    known = isinstance(name, str) and name in _entries("suites")
    if isinstance(name, Path) or "/" in name or name.endswith(".toml"):
        return load_suite(Path(name))
    if not known and Path(name).is_dir():
        return load_suite(Path(name))
    found = _call(_load("suites", name), f"suite {name!r}", {})
    return found if isinstance(found, Suite) else load_suite(Path(found))


def names(group: str) -> list[str]:
    """Names installed in a group, without importing anything."""
    return sorted(_entries(group))


def editor_names() -> dict[str, str]:
    """Every editor that its family lists, with a description."""
    found: dict[str, str] = {}
    for family in names("editors"):
        try:
            factory = _load("editors", family)
        except PluginBroken:
            continue
        models: Mapping[str, str] | None = getattr(factory, "models", None)
        if models is None:
            doc = (factory.__doc__ or "").strip().splitlines()
            found[family] = doc[0] if doc else ""
        else:
            found.update({f"{family}:{model}": text for model, text in models.items()})
    return found


def plugins() -> list[Plugin]:
    """Every installed plug-in, each really loaded, with the reason where that fails."""
    found = []
    for group in GROUPS:
        for name, (entry, *_) in sorted(_entries(group).items()):
            version = entry.dist.version if entry.dist else "?"
            try:
                _load(group, name)
                problem = ""
            except PluginBroken as error:
                problem = str(error)
            found.append(Plugin(group, name, _owner(entry), version, entry.value, problem))
    return found


def _entries(group: str) -> dict[str, list[EntryPoint]]:
    """Entry points by name; more than one of a name when packages clash."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=f"convergebench.{group}"):
        same = found.setdefault(entry.name, [])
        if all(other.value != entry.value for other in same):
            same.append(entry)
    return found


def _load(group: str, name: str) -> Callable[..., Any]:
    entries = _entries(group)
    what = f"{group[:-1]} {name!r}"
    if name not in entries:
        raise UnknownName(group[:-1], name, entries)
    if len(entries[name]) > 1:
        owners = " and ".join(sorted(_owner(entry) for entry in entries[name]))
        raise PluginBroken(f"{what} is claimed by {owners}. Uninstall one of them.")
    (entry,) = entries[name]
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module does on import
        raise PluginBroken(
            f"{what} of package {_owner(entry)} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(loaded):
        raise PluginBroken(f"{what}: {entry.value} is not a factory function")
    factory: Callable[..., Any] = loaded
    return factory


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "?"


def _call(factory: Callable[..., Any], what: str, keywords: dict[str, Any]) -> Any:
    try:
        signature(factory).bind(**keywords)
    except TypeError as error:
        raise SettingsError(f"{what}: {error}") from error
    except ValueError:  # a builtin without a signature: let the call tell
        pass
    try:
        return factory(**keywords)
    except ValueError as error:
        raise SettingsError(f"{what}: {error}") from error
