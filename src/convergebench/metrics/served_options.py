"""How a served metric asks: its prompt, its sampling, and the options that set them.

What can move a number (`Question`) is part of the metric's name where it is not the default, and
of the digest in its version; how the server is reached (`Connection`) is part of neither.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from convergebench.errors import SettingsError
from convergebench.frame import sha256
from convergebench.metrics.served_answers import PARSER

PROMPTS: Final = Path(__file__).parent / "prompts"
SLOT: Final = "{Question}"

Range = tuple[float, float]


@dataclass(frozen=True)
class Prompt:
    """What a model is asked about a picture.

    Attributes:
        name: A prompt in the box, or the file it was read from, as given.
        text: The words sent with the picture.
        scale: Lowest and highest score it asks for; None where the file does not say.
        higher_is_better: Direction.
        title: One line for lists.
        paper: Where it was published.
    """

    name: str
    text: str
    scale: Range | None = None
    higher_is_better: bool = True
    title: str = ""
    paper: str = ""

    @classmethod
    def read(cls, given: str) -> Prompt:
        """The prompt of that name, or the one in that file (TOML, or plain text).

        Raises:
            SettingsError: There is none, or the file is not what it should be.
        """
        boxed = {path.stem: path for path in PROMPTS.glob("*.toml")}
        path = boxed.get(given, Path(given))
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            known = ", ".join(sorted(boxed))
            raise SettingsError(
                f"no prompt called {given!r}, nor a file. Prompts in the box: {known}."
            ) from None
        if path.suffix != ".toml":
            return cls._checked(given, {"question": text.strip()})
        try:
            return cls._checked(given, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"prompt {given}: {error}") from None

    @classmethod
    def _checked(cls, name: str, told: Mapping[str, Any]) -> Prompt:
        unknown = set(told) - {
            "title", "source", "paper", "scale", "higher_is_better", "question", "template"
        }  # fmt: skip
        question, template = told.get("question"), told.get("template", SLOT)
        scale = told.get("scale")
        if unknown:
            raise SettingsError(f"prompt {name}: there is no such key as {sorted(unknown)[0]!r}")
        if not isinstance(question, str) or not question.strip():
            raise SettingsError(f"prompt {name}: question is missing or empty")
        if not isinstance(template, str) or SLOT not in template:
            raise SettingsError(f"prompt {name}: template must hold {SLOT}")
        if scale is not None and not _is_range(scale):
            raise SettingsError(f"prompt {name}: scale must be [low, high], got {scale!r}")
        if not isinstance(told.get("higher_is_better", True), bool):
            raise SettingsError(f"prompt {name}: higher_is_better must be true or false")
        return cls(
            name=name,
            text=template.replace(SLOT, question),
            scale=None if scale is None else (float(scale[0]), float(scale[1])),
            higher_is_better=told.get("higher_is_better", True),
            title=str(told.get("title", "")),
            paper=str(told.get("paper", "")),
        )


@dataclass(frozen=True)
class Family:
    """What the metrics of a family have in common.

    Attributes:
        name: As on the command line.
        title: One line for lists.
        prompt: The default prompt.
        temperature: Default for a number of samples.
        fixed: Fields of the request that no option changes.
        model: The published model, if the family stands for one.
        variable: Beginning of the names of its environment variables.
    """

    name: str
    title: str
    prompt: str
    temperature: Callable[[int], float]
    fixed: Mapping[str, Any]
    model: str
    variable: str


@dataclass(frozen=True)
class Question:
    """Everything about a call that can move the number."""

    model: str
    prompt: Prompt
    scale: Range
    samples: int
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    max_side: int | None
    pin: str
    fixed: Mapping[str, Any]
    options: tuple[tuple[str, str], ...]
    """Those that are not the default, for the name."""

    def request(self, image: str, sample: int, *, limit: str = "max_tokens") -> dict[str, Any]:
        """The body of the call for one sample: the picture, then the words, as published."""
        parts = [
            {"type": "image_url", "image_url": {"url": image}},
            {"type": "text", "text": self.prompt.text},
        ]
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": parts}],
            **self.fixed,
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body[limit] = self.max_tokens
        if self.seed is not None:
            body["seed"] = self.seed + sample
        return body

    @property
    def call(self) -> str:
        """Digest of one call, whatever the number of samples."""
        told = [self.request("", 0), self.scale, self.max_side, self.pin, PARSER]
        return sha256(json.dumps(told, sort_keys=True).encode())

    @property
    def digest(self) -> str:
        """Short digest of everything, for the metric's version."""
        return sha256(f"{self.call} {self.samples}".encode())[:8]


@dataclass(frozen=True)
class Connection:
    """How the server is reached: nothing that moves a number."""

    url: str
    key_env: str
    model: str
    """The model's name on this server."""
    timeout: float
    concurrency: int

    @property
    def limit(self) -> str:
        """The field that limits an answer: OpenAI's newer models refuse the old one."""
        host = urlsplit(self.url).hostname or ""
        return "max_completion_tokens" if host == "api.openai.com" else "max_tokens"


@dataclass(frozen=True)
class Option:
    """One option of served metrics."""

    read: Callable[[str], Any]
    expected: str
    moves: bool = True


def _number(low: float, high: float, kind: type = int) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:  # which NaN is not
            raise ValueError(text)
        return value

    return read


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text == "none" else read(text)


def _scale(text: str) -> Range:
    found = re.fullmatch(r"(-?[0-9.]+)-(-?[0-9.]+)", text)
    value = (float(found[1]), float(found[2])) if found else (0.0, 0.0)
    if not _is_range(value):
        raise ValueError(text)
    return value


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError
    return text


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in value)
        and value[0] < value[1]
    )


OPTIONS: Final = {
    "prompt": Option(str, "a prompt's name or a file"),
    "samples": Option(_number(1, 100), "a whole number from 1 to 100"),
    "scale": Option(_scale, "low-high, as in 1-5"),
    "temperature": Option(_or_none(_number(0, 2, float)), "a number from 0 to 2, or none"),
    "max_tokens": Option(_or_none(_number(1, 1_000_000)), "a whole number from 1, or none"),
    "seed": Option(_or_none(_number(0, 2**31 - 200)), "a whole number from 0, or none"),
    "max_side": Option(_or_none(_number(28, 65_536)), "a whole number from 28, or none"),
    "pin": Option(str, "the model name that the server returns"),
    "url": Option(str, "a base URL", moves=False),
    "key_env": Option(_variable, "the name of an environment variable, never a key", moves=False),
    "timeout": Option(_number(0.1, 3600, float), "seconds from 0.1 to 3600", moves=False),
    "concurrency": Option(_number(1, 64), "a whole number from 1 to 64", moves=False),
}
MAX_TOKENS: Final = 2048
SEED: Final = 1


def read_options(metric: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The given options, read.

    Raises:
        SettingsError: There is no such option, or its value is not legal. Values are not repeated
            for key_env, where somebody may have put a key.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name in ("key", "api_key", "token"):
            raise SettingsError(
                f"metric {metric}: a key is never an option. Put it into an environment variable "
                "and name that: key_env=NAME."
            )
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            offer = f"Did you mean {near[0]}?" if near else f"It has {', '.join(OPTIONS)}."
            raise SettingsError(f"metric {metric} has no option {name!r}. {offer}")
        option = OPTIONS[name]
        try:
            values[name] = option.read(str(text).strip())
        except ValueError:
            got = "" if name == "key_env" else f", got {text!r}"
            raise SettingsError(
                f"metric {metric}: option {name} must be {option.expected}{got}."
            ) from None
    return values


def question(family: Family, model: str, values: Mapping[str, Any], samples: int) -> Question:
    """What is asked, from the options read; `samples` is the default number of them.

    Raises:
        SettingsError: The prompt cannot be read, or its scale is not known.
    """
    prompt = Prompt.read(values.get("prompt", family.prompt))
    count = values.get("samples", samples)
    defaults: dict[str, Any] = {
        "prompt": family.prompt,
        "samples": samples,
        "scale": prompt.scale,
        "temperature": family.temperature(count),
        "max_tokens": MAX_TOKENS,
        "seed": SEED,
        "max_side": None,
        "pin": "",
    }
    chosen = {name: values.get(name, default) for name, default in defaults.items()}
    if chosen["scale"] is None:
        raise SettingsError(f"prompt {prompt.name}: on which scale? Add for example scale=1-5.")
    named = [(name, _written(chosen[name])) for name in defaults if chosen[name] != defaults[name]]
    return Question(
        model=model,
        prompt=prompt,
        scale=chosen["scale"],
        samples=count,
        temperature=chosen["temperature"],
        max_tokens=chosen["max_tokens"],
        seed=chosen["seed"],
        max_side=chosen["max_side"],
        pin=chosen["pin"],
        fixed=family.fixed,
        options=tuple(sorted(named)),
    )


def _written(value: Any) -> str:
    """An option's value as it is written in a name."""
    if isinstance(value, tuple):
        return "-".join(_written(end) for end in value)
    if value is None:
        return "none"
    return str(value).removesuffix(".0")
