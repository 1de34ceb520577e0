"""Editors in words: what they follow, cost, pin and lack, line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime

from convergebench.editor import EditorSpec, Price
from convergebench.editors.providers.catalogue import Model, OptionRule, Provider, Value
from convergebench.editors.providers.sizes import SizeRule
from convergebench.machine import keys_told, library_version
from convergebench.pricing import ANY, PriceRule
from convergebench.wording import counted


def today() -> date:
    """The day by which shutdowns count."""
    return datetime.now(UTC).date()


def priced(price: Price | None) -> str:
    """A price in words: `$0.034`, or `$0.034 ($0.03 to $0.05)`."""
    if price is None:
        return "–"
    if price.high == 0:
        return "free"
    if price.low == price.high:
        return f"${price.expected:.3g}"
    return f"${price.expected:.3g} (${price.low:.3g} to ${price.high:.3g})"


def ending(model: Model | None) -> str:
    """When a model goes or went, and what to use instead; empty when nobody told."""
    if model is None or model.shutdown is None:
        return ""
    left = (model.shutdown - today()).days
    told = f"shut down on {model.shutdown}"
    if left > 0:
        told = f"shuts down on {model.shutdown}, in {counted(left, 'day')}"
    return told + (f", then use {model.successor}" if model.successor and left > 0 else "")


def followed(spec: EditorSpec) -> list[tuple[str, str]]:
    """Version, and what an editor follows of the settings of a run."""
    able = spec.abilities
    return [
        ("version", spec.version),
        ("seed", "taken" if able.seeds else "not taken"),
        ("temperature", "taken" if able.temperature else "not taken"),
        ("resolutions", ", ".join(("native", *able.resolutions))),
        ("sessions", ", ".join(able.sessions)),
        ("deterministic", "yes" if spec.deterministic else ""),
        ("control", "yes" if spec.control else ""),
        ("calls in flight", "one per core" if spec.concurrency is None else str(spec.concurrency)),
        ("usual duration", "" if spec.seconds is None else f"{spec.seconds:g} s"),
    ]


def catalogued(
    provider: Provider, model: Model, values: Mapping[str, Value]
) -> list[tuple[str, str]]:
    """What the catalogue knows: pins, options, sizes, price rule, end, key variables."""
    replaced = " is set" if os.environ.get(provider.url_variable) else " would replace it"
    rows = [
        ("price rule", _rule(model.price)),
        ("price from", model.price.source),
        ("sizes", _sizes(model.size)),
        ("format asked for", model.format or "none can be"),
        ("formats taken", ", ".join(model.accepts)),
        *(("always sent", f"{n} = {json.dumps(v)}") for n, v in model.pins.items()),
    ]
    for name, rule in model.options.items():
        value = values.get(name, rule.default)
        told = f"{name} = {json.dumps(value)}{_values_of(rule)}"
        rows.append(("option", f"{told} {rule.meaning}".rstrip()))
    library = [f"{m} {library_version(m) or 'not installed'}" for m in provider.modules]
    return [
        *rows,
        ("ends", ending(model)),
        ("successor", f"{provider.name}:{model.successor}" if model.successor else ""),
        ("key", keys_told(provider.keys)),
        ("address", f"{provider.url} ({provider.url_variable}{replaced})"),
        ("library", ", ".join(library)),
        ("facts from", model.source),
        ("verified against", provider.verified),
        ("page", provider.page),
    ]


def _values_of(rule: OptionRule) -> str:
    if rule.choices:
        return f" ({' | '.join(rule.choices)})"
    number = isinstance(rule.default, int | float) and not isinstance(rule.default, bool)
    return f" ({rule.low:g} to {rule.high:g})" if number else ""


def _sizes(rule: SizeRule) -> str:
    if rule.kind == "none":
        return "the model decides"
    if rule.kind == "free":
        longest = f", no side over {rule.longest:,}" if rule.longest else ""
        return (
            f"free: sides divisible by {rule.multiple}, {rule.low:,} to {rule.high:,} pixels, "
            f"at most {rule.steepest:g}:1{longest}"
        )
    scales = ", ".join(f"{name} × {times}" for name, times in rule.scale.items())
    return f"{', '.join(f'{r} {s}' for r, s in rule.table.items())}; {scales}"


def _rule(rule: PriceRule) -> str:
    """A price rule in words."""
    told = []
    for tier, dollars in rule.image.items():
        each = f"${dollars:g}" if isinstance(dollars, int | float) else _span(dollars)
        told.append(f"{each} per image" + (f" at {tier}" if tier != ANY else ""))
    fixed = (
        (rule.reference, "per picture sent"),
        (rule.megapixel_in, "per megapixel sent"),
        (rule.megapixel_out, "per megapixel made"),
    )
    told += [f"${dollars:g} {what}" for dollars, what in fixed if dollars]
    told += [
        f"${dollars:g} per million {kind.replace('_', ' ')} tokens"
        for kind, dollars in rule.tokens.items()
    ]
    return ", ".join(told) or "free"


def _span(amounts: tuple[float, ...]) -> str:
    return f"${amounts[0]:g} to ${amounts[-1]:g}"
