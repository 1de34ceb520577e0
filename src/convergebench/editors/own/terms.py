"""What every editor of your own may be told in its name: price, duration, calls in flight."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.editor import EditRequest
from convergebench.errors import SettingsError
from convergebench.resources import Resources

Value = bool | int | float | str
AMOUNTS: Final = ("cpus", "gpus", "memory")
LEAST: Final = 1e-4
"""Ray counts cores and GPUs in steps of that."""
MOST: Final = 2.0**20
"""No machine has so much of any of them."""
_WHOLE: Final = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class Terms:
    """The reserved options.

    Attributes:
        price: Dollars per call; None when nobody said.
        seconds: Typical duration of a call; None when nobody said.
        concurrency: Calls in flight it bears; None means one per core.
    """

    price: float | None = None
    seconds: float | None = None
    concurrency: int | None = 1


def read_terms(
    editor: str, options: Mapping[str, str], default: Terms
) -> tuple[Terms, dict[str, str]]:
    """The reserved options of an editor's name, and the others. Raises SettingsError."""
    rest = dict(options)
    return (
        Terms(
            _number(editor, "price", rest.pop("price", None), default.price),
            _number(editor, "seconds", rest.pop("seconds", None), default.seconds),
            _count(editor, rest.pop("concurrency", None), default.concurrency),
        ),
        rest,
    )


def _number(editor: str, name: str, text: str | None, default: float | None) -> float | None:
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        unit = "dollars per call" if name == "price" else "seconds per call"
        raise SettingsError(
            f"editor {editor}: option {name} must be {unit}, 0 or more, got {text!r}."
        )
    return value


def _count(editor: str, text: str | None, default: int | None) -> int | None:
    if text is None:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise SettingsError(
            f"editor {editor}: option concurrency must be a whole number from 1 to 256, got "
            f"{text!r}."
        )
    return int(text)


def literal(text: str) -> Value:
    """What an option's text stands for: a number, true or false, else the text itself."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def read_resources(
    editor: str, options: Mapping[str, str]
) -> tuple[Resources | None, dict[str, str]]:
    """What an editor's worker takes, where its name says so; and the other options.

    Raises:
        SettingsError: It is no amount.
    """
    rest = dict(options)
    told = {name: rest.pop(name) for name in AMOUNTS if name in rest}
    if not told:
        return None, rest
    cpus, gpus, memory = (_amount(editor, name, told.get(name)) for name in AMOUNTS)
    return Resources(1 if cpus is None else cpus, gpus or 0, int((memory or 0) * 2**30)), rest


def _amount(editor: str, name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    parts = name == "gpus" and value > 1 and value % 1
    if parts or not (LEAST <= value <= MOST or (value == 0 and name == "gpus")):
        what = {
            "cpus": "a number of cores",
            "gpus": "a share of a GPU, or a whole number of them,",
            "memory": "GiB",
        }[name]
        raise SettingsError(
            f"editor {editor}: option {name} must be {what} that a machine can have, got {text!r}."
        )
    return value


def refuse_unknown(editor: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raise SettingsError for an option that an editor does not have."""
    for name in options:
        if name not in known:
            raise SettingsError(
                f"editor {editor} has no option {name!r}. It has {', '.join(known)}."
            )


def patience(request: EditRequest) -> float:
    """Seconds to wait for an answer: a little less than the runner waits, so that we give up."""
    return max(request.deadline - 1.0, 0.9 * request.deadline)


def asked_size(request: EditRequest, multiple: int = 1) -> tuple[int, int]:
    """The size to ask for: the source's own or that of a resolution, the same at every step."""
    from convergebench.editors.providers.sizes import SizeRule

    facts = request.inputs[-1].facts
    width, height = request.home_size or (facts.width, facts.height)
    resolution = request.settings.resolution_at(request.step)
    if resolution == "native" and multiple == 1:
        return width, height
    rule = SizeRule(kind="free", multiple=max(multiple, 8), steepest=100.0)
    size = rule.choose(width, height, resolution)
    return (size.width, size.height) if size else (width, height)
