"""What `rate create` is told in words: texts in files, scales, questions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from convergebench.errors import InputError

if TYPE_CHECKING:
    from convergebench.ratings.design import Scale

LONGEST: Final = 20_000
BESIDE: Final[dict[str, tuple[Literal["input", "reference"], ...]]] = {
    "input": ("input",),
    "reference": ("reference",),
    "both": ("input", "reference"),
    "none": (),
}


def read_text(path: Path | None) -> str | None:
    """The text in a file. Raises InputError."""
    if path is None:
        return None
    try:
        text = path.read_text("utf-8").strip()
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8") from error
    if not 0 < len(text) <= LONGEST:
        raise InputError(f"{path} has {len(text):,} letters; expected 1 to {LONGEST:,}")
    return text


def read_scale(told: str) -> Scale:
    """A scale from `LOW:HIGH:STEP`. Raises InputError."""
    from pydantic import ValidationError

    from convergebench.errors import explain
    from convergebench.ratings.design import Scale

    try:
        low, high, step = (float(part) for part in told.split(":"))
        return Scale(low=low, high=high, step=step)
    except ValidationError as error:
        raise InputError(f"--scale {told}: {explain(error)}") from error
    except ValueError as error:
        raise InputError(f"--scale is LOW:HIGH:STEP, as 0:5:1; got {told!r}") from error


def read_beside(told: str | None) -> tuple[Literal["input", "reference"], ...] | None:
    """What is shown beside the pictures. Raises InputError."""
    if told is not None and told not in BESIDE:
        raise InputError(f"--show is one of {', '.join(BESIDE)}; got {told!r}")
    return None if told is None else BESIDE[told]


def read_questions(told: Iterable[str]) -> dict[str, str]:
    """Words of questions from `ID=TEXT`. Raises InputError."""
    found = {}
    for one in told:
        name, sign, text = one.partition("=")
        if not (sign and text.strip()):
            raise InputError(f"--question is ID=TEXT, as quality=How good is it?; got {one!r}")
        found[name.strip()] = text.strip()
    return found
