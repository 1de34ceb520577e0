"""`convergebench plugins`."""

from __future__ import annotations

import json as jsonlib

from convergebench.cli import options as o
from convergebench.cli.output import show

EXAMPLES = "Examples:  convergebench plugins   ·   convergebench plugins --json"


def plugins(json: o.Json = False) -> None:
    """List editors, metrics and suites: built in or installed, and why one cannot be used."""
    from dataclasses import asdict

    from convergebench import registry
    from convergebench.table import Table

    found = registry.plugins()
    editors = registry.editor_names()
    if json:
        told = {"plugins": [asdict(p) for p in found], "editors": editors}
        print(jsonlib.dumps(told, indent=1, ensure_ascii=False))
        return
    rows = [(p.group, p.name, f"{p.package} {p.version}", p.problem or "ready") for p in found]
    show(Table("Plug-ins", ("group", "name", "package", "state"), rows), False)
    print()
    show(Table("Editors", ("name", "what it does"), sorted(editors.items())), False)
