"""What `convergebench metrics` prints: each installed metric's card, and why it cannot be used."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from convergebench import registry
from convergebench.errors import ConvergeBenchError, explain
from convergebench.metric import MetricSpec
from convergebench.registry import Lack
from convergebench.table import Table


@dataclass(frozen=True)
class Card:
    """A metric as installed here.

    Attributes:
        name: As asked for.
        package: The package that brings it.
        spec: Its card, or None where the plug-in is broken.
        text: Its docstring: formula, range, paper.
        missing: What it needs and this machine has not.
    """

    name: str
    package: str
    spec: MetricSpec | None
    text: str
    missing: tuple[Lack, ...]

    @property
    def state(self) -> str:
        """`ready`, or what is missing, in a few words."""
        lacks = ", ".join(lack.what for lack in self.missing)
        return f"lacks {lacks}" if lacks else "ready"

    @property
    def remedy(self) -> str:
        """How to get what is missing."""
        return " ".join(lack.remedy for lack in self.missing)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The card line by line."""
        spec = self.spec
        if spec is None:
            return [("state", self.remedy)]
        better = "higher" if spec.higher_is_better else "lower"
        if spec.alignment and spec.identical is not None:
            better = f"nearer to {spec.identical:g}"
        rows = [
            ("state", self.remedy or "ready"),
            ("title", spec.title),
            ("kind", spec.kind + (", of one edit along its text" if spec.directional else "")),
            ("better", better),
            (
                "typical range",
                f"{spec.typical[0]:g} to {spec.typical[1]:g}" if spec.typical else "–",
            ),
            ("identical pictures", "–" if spec.identical is None else f"{spec.identical:g}"),
            ("version", spec.version),
            ("cost", spec.cost + (", in worker processes of its own" if spec.isolated else "")),
            ("smallest side", f"{spec.min_side} pixels"),
            ("regions", "measured inside and outside" if spec.regional else "whole picture only"),
            ("needs", _needs(spec)),
            ("test card", _known(spec)),
            ("paper", spec.paper),
            ("package", self.package),
        ]
        return [(what, text) for what, text in rows if text]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"name": self.name, **dict(self.facts), "ready": not self.missing, "text": self.text}

    @property
    def table(self) -> Table:
        """The card as a table."""
        return Table(self.name, ("", ""), self.facts)

    def __str__(self) -> str:
        return f"{self.table}\n\n{self.text}".rstrip()


def card(name: str) -> Card:
    """The card of one metric. Raises UnknownName, PluginBroken."""
    family = registry.metric_name(name).family
    plugin = next((p for p in registry.plugins("metrics") if p.name == family), None)
    spec = registry.metric_spec(name)
    return _card(name if plugin is None else family, plugin.package if plugin else "?", spec)


def cards() -> list[Card]:
    """The cards of all installed metrics, by name."""
    found = []
    for plugin in registry.plugins("metrics"):
        problem = plugin.problem
        spec = None
        if not problem:
            try:
                spec = registry.metric_spec(plugin.name)
            except ConvergeBenchError as error:
                problem = explain(error)
            except Exception as error:  # foreign code must not hide the other metrics
                problem = f"{type(error).__name__}: {error}"
        if spec is None:
            lack = Lack("a working plug-in", problem)
            found.append(Card(plugin.name, plugin.package, None, "", (lack,)))
        else:
            found.append(_card(plugin.name, plugin.package, spec))
    return found


def _card(name: str, package: str, spec: MetricSpec) -> Card:
    text = inspect.cleandoc(registry.metric_text(name))
    return Card(name, package, spec, text, tuple(registry.lacking(spec.needs)))


def _needs(spec: MetricSpec) -> str:
    needs = spec.needs
    parts = [f"the extra {needs.extra}"] if needs.extra else []
    parts += [f"weights {name}" for name in needs.weights]
    parts += [f"the environment variable {name}" for name in needs.settings]
    return ", ".join(parts)


def _known(spec: MetricSpec) -> str:
    known = spec.known
    if known is None:
        return "no known answer"
    return f"{known.value:g} ± {known.tolerance:g}, from {known.source}"
