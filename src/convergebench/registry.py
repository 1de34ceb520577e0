"""Editors, metrics, suites and layouts by name, through entry points. Built-ins are plug-ins too.

Listing imports nothing. A plug-in that cannot be loaded is an error when it is asked for, and a
listed defect otherwise; so is a name that two packages claim.

An editor or a metric is named `family:model,option=value,…`: the family is the entry point; its
factory gets `model` (when there is one) and the options as keywords. Most metrics are a family of
one: `ssim`.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, Final

from convergebench import weights
from convergebench.editor import Editor
from convergebench.errors import ConvergeBenchError, PluginBroken, SettingsError, UnknownName
from convergebench.metric import Metric, MetricSpec, Needs
from convergebench.suite import Suite, load_suite

GROUPS: Final = ("editors", "layouts", "metrics", "suites")
METRIC_ALIASES: Final = {
    "ciede": "ciede2000",
    "clip-iqa": "clipiqa",
    "lpips-alex": "lpips",
    "paq-2-piq": "paq2piq",
    "q-align": "qalign",
    "topiq": "topiq-nr",
    "wadiqam-nr": "wadiqam",
}
"""What papers and pyiqa call some metrics; `_` for `-` and capitals are understood as well."""

_COMMA: Final = {
    "editor": " Every comma begins an option: a path cannot hold one, and in an address it is "
    "written %2C."
}


COMMAND: Final = "cmd:"
"""How the name of an editor begins that is a command."""


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
class PluginName:
    """A parsed name of an editor or metric. `str()` gives the canonical form, options sorted."""

    family: str
    model: str | None
    options: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str, what: str = "editor", example: str = "ref:jpeg") -> PluginName:
        """Read `family:model,option=value,…`. Raises SettingsError.

        `cmd:` is followed by a command, in which a comma is a comma.
        """
        if text.strip().startswith(COMMAND):
            return cls("cmd", text.strip()[len(COMMAND) :].strip() or None, ())
        head, *pairs = text.strip().split(",")
        family, _, model = head.partition(":")
        options = {}
        for pair in pairs:
            option, equals, value = pair.partition("=")
            if not equals or not option.strip():
                raise SettingsError(
                    f"{what} {text!r}: {pair!r} is no option. Write options as "
                    f"name=value after a comma, as in ref:jpeg,quality=75.{_COMMA.get(what, '')}"
                )
            if option.strip() in options:
                raise SettingsError(f"{what} {text!r} gives {option.strip()} twice. Give it once.")
            options[option.strip()] = value.strip()
        if not family:
            raise SettingsError(f"{what} {text!r} has no name. Write for example {example}.")
        return cls(family, model or None, tuple(sorted(options.items())))

    @property
    def keywords(self) -> dict[str, Any]:
        """What the factory gets."""
        named = {"model": self.model} if self.model is not None else {}
        return {**dict(self.options), **named}

    def __str__(self) -> str:
        head = f"{self.family}:{self.model}" if self.model else self.family
        return ",".join([head, *(f"{name}={value}" for name, value in self.options)])


def open_editor(name: str) -> Editor:
    """The editor of that name, ready to use. Raises UnknownName, PluginBroken, SettingsError."""
    parsed = PluginName.parse(name)
    if parsed.family not in _entries("editors"):
        asked, known = name.partition(",")[0], editor_names()
        near = difflib.get_close_matches(parsed.family, _entries("editors"), n=1, cutoff=0.5)
        if parsed.model and near and not difflib.get_close_matches(asked, known, cutoff=0.5):
            raise UnknownName("kind of editor", parsed.family, near)
        raise UnknownName("editor", asked, known)
    factory = _load("editors", parsed.family)
    editor = _call(factory, f"editor {name!r}", parsed.keywords)
    if not isinstance(editor, Editor):
        raise PluginBroken(f"editor {name!r}: its factory returned {type(editor).__name__}")
    return editor


def says_control(name: str) -> bool:
    """Whether an editor calls itself a control, as far as that can be told without foreign code.

    For names in records, which may be anybody's: an editor of the user's own code is never opened
    here, because opening it would run that code.
    """
    family = name.partition(",")[0].partition(":")[0]
    try:
        if getattr(_load("editors", family), "runs_code", False):
            return False
        return open_editor(name).spec.control
    except Exception:  # not installed, not openable: its frames were made elsewhere
        return False


def reads_prompts(name: str) -> bool:
    """Whether what an editor does depends on the prompt, told from its name alone.

    It is asked of names in records, too, so nothing is opened: the family's factory may have a
    `reads_prompts(PluginName) -> bool`; without one its editors do.
    """
    parsed = PluginName.parse(name)
    try:
        told = getattr(_load("editors", parsed.family), "reads_prompts", None)
    except ConvergeBenchError:  # not installed here: its chains were walked elsewhere
        return True
    return True if told is None else bool(told(parsed))


def metric_name(text: str) -> PluginName:
    """A metric's name as given by a user or a paper, in our spelling."""
    parsed = PluginName.parse(text, "metric", "ssim")
    if parsed.family in _entries("metrics"):
        return parsed
    family = parsed.family.strip().lower().replace("_", "-").replace(" ", "-")
    return PluginName(METRIC_ALIASES.get(family, family), parsed.model, parsed.options)


def open_metric(name: str) -> Metric:
    """The metric of that name, ready to use.

    Raises:
        UnknownName: There is none of that name.
        PluginBroken: It cannot be loaded.
        MetricUnavailable: It lacks weights, a library or a setting.
    """
    parsed = metric_name(name)
    metric = _call(_load("metrics", parsed.family), f"metric {name!r}", parsed.keywords)
    if not isinstance(metric, Metric):
        raise PluginBroken(f"metric {name!r}: its factory returned {type(metric).__name__}")
    return metric


def metric_spec(name: str) -> MetricSpec:
    """A metric's card, even where the metric itself cannot be used for want of weights."""
    parsed = metric_name(name)
    factory = _load("metrics", parsed.family)
    spec = getattr(factory, "spec", None)
    if isinstance(spec, MetricSpec) and parsed.model is None and not parsed.options:
        return spec
    card = getattr(factory, "card", None)
    if card is None:
        return open_metric(name).spec
    found: MetricSpec = _call(card, f"metric {name!r}", parsed.keywords)
    return found


def metric_specs(names: Iterable[str]) -> tuple[dict[str, MetricSpec], dict[str, str]]:
    """The cards of metrics, and why those are missing that cannot be opened."""
    found: dict[str, MetricSpec] = {}
    closed: dict[str, str] = {}
    for name in sorted(names):
        try:
            found[name] = metric_spec(name)
        except Exception as error:  # foreign code must not take the other metrics' numbers away
            closed[name] = str(error) or type(error).__name__
    return found, closed


def metric_text(name: str) -> str:
    """A metric's docstring."""
    return _load("metrics", metric_name(name).family).__doc__ or ""


@dataclass(frozen=True)
class Lack:
    """Something a metric needs and this machine has not, and the sentence that mends it."""

    what: str
    remedy: str


def lacking(needs: Needs) -> list[Lack]:
    """What a metric needs and this machine has not."""
    found = []
    absent = ", ".join(module for module in needs.modules if find_spec(module) is None)
    if absent:
        extra = f"pip install 'convergebench[{needs.extra}]'" if needs.extra else "pip install"
        found.append(Lack(absent, f"{absent}: not installed; `{extra}` brings it."))
    for name in needs.weights:
        try:
            weights.find(name)
        except ConvergeBenchError as error:
            found.append(Lack(f"weights {name}", str(error)))
    found += [
        Lack(name, f"The environment variable {name} is not set.")
        for name in needs.settings
        if not os.environ.get(name)
    ]
    return found


def open_suite(name: str | Path) -> Suite:
    """The suite of that name, or the one in that file or folder. Raises UnknownName, SuiteError."""
    known = isinstance(name, str) and name in _entries("suites")
    if isinstance(name, Path) or "/" in name or name.endswith(".toml"):
        return load_suite(Path(name))
    if not known and Path(name).is_dir():
        return load_suite(Path(name))
    found = _call(_load("suites", name), f"suite {name!r}", {})
    suite = found if isinstance(found, Suite) else load_suite(Path(found))
    return suite.model_copy(update={"opened_as": name})


def open_plugin(group: str, name: str) -> Any:
    """What a plug-in's factory makes without options. Raises UnknownName, PluginBroken."""
    return _call(_load(group, name), f"{group[:-1]} {name!r}", {})


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


def plugins(*groups: str) -> list[Plugin]:
    """Every installed plug-in (of these groups), each loaded, with the reason where that fails."""
    found = []
    for group in groups or GROUPS:
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
    return _entries_on(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _entries_on(group: str, _path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    # A list of editors asks a hundred times, and every time all installed packages are read.
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
        if "unexpected keyword argument 'model'" in str(error):
            raise SettingsError(f"{what}: it has no models, nothing may follow the colon") from None
        raise SettingsError(f"{what}: {error}") from error
    except ValueError:  # a builtin without a signature: let the call tell
        pass
    try:
        return factory(**keywords)
    except ValueError as error:
        raise SettingsError(f"{what}: {error}") from error
