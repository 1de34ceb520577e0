"""How pages print numbers and intervals."""

from __future__ import annotations

import re
from typing import Final

from convergebench.analysis import Finding

BEYOND: Final = re.compile(r"> (\d+(?:\.\d+)?)")
"""How a note tells the last round that chains were followed to."""


def number(value: float | int | None, digits: int = 3) -> str:
    """A number as printed: three decimals, a true minus sign; a dash for none."""
    if value is None:
        return "–"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return text.replace("-", "−")


def interval(finding: Finding | None, digits: int = 3) -> str:
    """A 95 % interval in brackets, open above where its end was not reached; empty for none.

    Where not even the lower end is short of the last round there is nothing to add.
    """
    if finding is None or finding.low is None:
        return ""
    high = number(finding.high, digits)
    if finding.high is None:
        last = BEYOND.search(finding.note)
        if last and finding.low >= float(last[1]):
            return ""
        high = f"> {last[1]}" if last else "…"
    return f"[{number(finding.low, digits)}, {high}]"


def listed(names: list[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
