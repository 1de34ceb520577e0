"""The score in a model's answer: strict, so that no number is taken for a score that is none.

1. What the model thinks (`<think>…</think>`) is never looked at; nor is the beginning of an answer
   up to a closing tag whose opening one is missing, nor its end after one that is never closed.
2. If there is an `<answer>…</answer>`, the last one counts and nothing else: it must hold exactly
   one number. `4.2/5` and `4.2 out of 5` are 4.2 where 5 is the top of the scale asked for.
3. Without the tag the whole answer must be the number (`4.2`), or its last line must be nothing but
   a labelled number (`Score: 4.2`, `Overall rating = 4.2/5`) or one with its top (`4.2/5`).
4. An answer that was cut off needs the tag: `4.` may have become 4.75.

Everything else holds no score: two numbers, a percentage, `7/10` on a scale to 5, a decimal comma.
A score outside the scale is a score. Of an answer that has the tag with one number in it, this is
the number that VisualQuality-R1's own code takes; where that code finds none it draws one at
random, and where there are several it takes the first.
"""

from __future__ import annotations

import re
from typing import Final

PARSER: Final = 1
"""Raised whenever another number could be read from the same answer."""

_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UP_TO_CLOSE: Final = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FROM_OPEN: Final = re.compile(r"<think(?:ing)?>.*\Z", re.DOTALL | re.IGNORECASE)
_ANSWER: Final = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"[*_`]+")
_NUMBER: Final = r"(?<![\w.,])[-+−–]?[0-9]{1,6}(?:\.[0-9]{1,12})?(?!\w|[.,][0-9]|\s*%)"
_TOP: Final = r"\s*(?:/|\bout\s+of\b)\s*(?P<top>[0-9]{1,6}(?:\.[0-9]{1,12})?)(?!\w|[.,][0-9]|\s*%)"
_SCORE: Final = re.compile(rf"(?P<score>{_NUMBER})(?:{_TOP})?", re.IGNORECASE)
_LABEL: Final = r"(?:(?:the|my|final|overall|image|picture|visual|quality)\s+)*(?:score|rating)"
_LABELLED: Final = re.compile(rf"{_LABEL}\s*(?:[:=]|is)\s*{_SCORE.pattern}\.?", re.IGNORECASE)


def read_score(answer: str, scale: tuple[float, float], *, whole: bool = True) -> float | None:
    """The score in an answer, or None where there is none.

    Args:
        answer: The model's words.
        scale: Lowest and highest score asked for.
        whole: Whether the model came to its end; False when it was cut off.
    """
    said = spoken(answer)
    tagged = _ANSWER.findall(said)
    if tagged:
        return _only_number(_plain(tagged[-1]), scale)
    lines = _plain(said).strip().splitlines()
    if not whole or not lines:
        return None
    last = lines[-1].strip()
    if found := _LABELLED.fullmatch(last):
        return _value(found, scale)
    found = _SCORE.fullmatch(last.removesuffix("."))
    if found and (len(lines) == 1 or found["top"]):
        return _value(found, scale)
    return None


def spoken(answer: str) -> str:
    """An answer without the model's thoughts."""
    rest = _THOUGHT.sub(" ", answer)
    return _FROM_OPEN.sub("", _UP_TO_CLOSE.sub("", rest))


def _plain(text: str) -> str:
    """Without Markdown emphasis; a space takes its place, lest two numbers become one."""
    return _EMPHASIS.sub(" ", text)


def _only_number(text: str, scale: tuple[float, float]) -> float | None:
    found = list(_SCORE.finditer(text))
    # Digits that are part of no score (a percentage, 1.2.3, 4,2) make it doubtful as well.
    left = _SCORE.sub("", text)
    if len(found) != 1 or re.search("[0-9]", left):
        return None
    return _value(found[0], scale)


def _value(found: re.Match[str], scale: tuple[float, float]) -> float | None:
    if found["top"] is not None and float(found["top"]) != scale[1]:
        return None
    return float(found["score"].replace("−", "-").replace("–", "-"))
