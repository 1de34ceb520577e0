"""Sets of restoration prompts: groups of wordings, and what sets the groups apart.

A set is a TOML file. The paper's is `suites/restoration/prompts.toml`; a suite names one with
`prompts = "prompts.toml"`, and `--prompts` puts another in its place. Each prompt becomes a cycle
of kind `restore`, named after it.

    name = "mine"
    [[group]]
    name = "terse"
    factors = { length = "short" }
    prompts = { T1 = "Repair this photograph.", T2 = "Make this picture as new." }
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from convergebench.cycle import Cycle, Edit, Name, Record
from convergebench.errors import SuiteError, explain

_Words = Annotated[int, Field(ge=1)]


class PromptGroup(Record):
    """Prompts that are alike in every factor; `words` is how many each has, least and most."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    title: str = ""
    words: tuple[_Words, _Words] | None = None
    factors: dict[str, str] = Field(default_factory=dict)
    prompts: Annotated[dict[str, str], Field(min_length=1)]

    @model_validator(mode="after")
    def _counted(self) -> Self:
        for name, text in self.prompts.items():
            if not text.strip():
                raise ValueError(f"prompt {name!r} is empty")
            count = word_count(text)
            if self.words and not self.words[0] <= count <= self.words[1]:
                low, high = self.words
                raise ValueError(f"prompt {name!r} has {count} words, its group {low} to {high}")
        return self


class PromptSet(Record):
    """A set of prompts in groups."""

    name: Name
    version: Annotated[int, Field(ge=1)] = 1
    citation: str = ""
    group: Annotated[tuple[PromptGroup, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for what, names in (
            ("group", [group.name for group in self.group]),
            ("prompt", [_cycle_name(name) for group in self.group for name in group.prompts]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(f"{what} {twice[0]!r} is there twice")
        return self

    def cycles(self) -> tuple[Cycle, ...]:
        """A cycle per prompt, for editors that read prompts."""
        return tuple(
            Cycle(
                name=_cycle_name(name),
                version=self.version,
                kind="restore",
                called=name,
                group=group.name,
                factors=group.factors or None,
                readers="prompted",
                edit=(Edit(prompt=text, citation=self.citation or None),),
            )
            for group in self.group
            for name, text in group.prompts.items()
        )


def word_count(text: str) -> int:
    """Words, parted by white space, as the paper counts them."""
    return len(text.split())


def load_prompts(path: Path) -> PromptSet:
    """Read a set of prompts. Raises SuiteError."""
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SuiteError(f"cannot read prompts {path} ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path} is not valid TOML: {error}") from error
    try:
        return PromptSet.model_validate({"name": _cycle_name(path.stem), **table})
    except ValidationError as error:
        raise SuiteError(f"{path}: {explain(error)}") from error


def _cycle_name(name: str) -> str:
    """A prompt's name as a legal one of a cycle."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60] or "prompt"
