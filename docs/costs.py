"""Writes what the starter suite costs into docs/editors/*.md, under each `<!-- cost: EDITOR -->`.

python docs/costs.py
"""

from __future__ import annotations

import re
from pathlib import Path

from convergebench.planner import plan

PAGES = Path(__file__).parent / "editors"
MARK = re.compile(r"<!-- cost: (\S+) -->\n(?:.+\n)*")


def told(editor: str) -> str:
    """What `plan` says, in one sentence."""
    planned = plan({"editors": [editor], "controls": False})
    (row,) = planned.rows
    price = planned.price
    if price is None or planned.hours is None:
        raise SystemExit(f"{editor} has no price or no pace")
    spread = f" (${price.low:.2f} to ${price.high:.2f})" if price.low < price.high else ""
    hours = planned.hours
    time = f"{hours * 60:.0f} minutes" if hours < 2 else f"{hours:.1f} hours"
    return (
        f"The starter suite, {planned.calls} calls of `{editor}`: **${price.expected:.2f}**{spread}"
        f", about {time} with {row.at_once} calls in flight, says\n"
        f"`convergebench plan -e {editor} --no-controls`.\n"
    )


def filled(text: str) -> str:
    """A page with its figures brought up to date."""
    return MARK.sub(lambda found: f"<!-- cost: {found[1]} -->\n{told(found[1])}", text)


def main() -> None:
    """Bring all pages up to date."""
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
