"""Writes docs/reference/ from the code. A test fails when what is there is out of date.

python docs/generate.py [FOLDER]
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import typer

from convergebench import errors, registry
from convergebench.cli import app
from convergebench.editors.catalogue import MODELS
from convergebench.metric import Metric

HEAD = "<!-- Written by docs/generate.py from the code; do not edit. -->\n\n"


def cli() -> str:
    """Every command with every option."""
    root = typer.main.get_command(app)
    lines = ["# Commands\n"]

    def describe(command: object, words: str) -> None:
        children = getattr(command, "commands", None)
        if children:
            for name in sorted(children):
                describe(children[name], f"{words} {name}")
            return
        lines.append(f"## {words}\n")
        lines.append(inspect.cleandoc(getattr(command, "help", "") or "") + "\n")
        lines.append("| argument or option | meaning |\n|---|---|")
        for parameter in getattr(command, "params", []):
            every = [*parameter.opts, *parameter.secondary_opts]
            names = ", ".join(f"`{o}`" for o in every)
            if parameter.param_type_name == "argument":
                names = f"`{parameter.metavar or parameter.name.upper()}`"
            lines.append(f"| {names} | {parameter.help or ''} |")
        examples = (getattr(command, "epilog", "") or "").removeprefix("Examples:")
        lines.append("\nExamples:\n")
        lines.extend(f"- `{e.strip()}`" for e in examples.split("·") if e.strip())
        lines.append("")

    describe(root, "convergebench")
    return "\n".join(lines)


def editors() -> str:
    """Every reference editor with its options."""
    lines = ["# Editors\n", "`ref:*` are built in; others come as plug-ins.\n"]
    lines.append("| editor | what it does | options |\n|---|---|---|")
    for name, model in MODELS.items():
        options = "; ".join(f"`{o.name}={o.default}` {o.meaning}" for o in model.options)
        control = " (control)" if model.control else ""
        lines.append(f"| `ref:{name}`{control} | {model.description} | {options} |")
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """A card for every metric of this package."""
    lines = ["# Metrics\n"]
    own = [
        p.name for p in registry.plugins() if p.group == "metrics" and p.package == "convergebench"
    ]
    for name in own:
        metric: Metric = registry.open_metric(name)
        spec = metric.spec
        better = "higher is better" if spec.higher_is_better else "lower is better"
        doc = inspect.cleandoc(getattr(metric, "__doc__", "") or "")
        measure = getattr(metric, "measure", None)
        if measure is not None:
            doc = inspect.cleandoc(measure.__doc__ or "")
        lines += [f"## {spec.name}\n", f"{spec.title}\n", doc + "\n"]
        lines.append(f"- kind: {spec.kind}; {better}; version `{spec.version}`; cost: {spec.cost}")
        lines.append(f"- typical range: {spec.typical}; identical images: {spec.identical}")
        lines.append(f"- smallest side: {spec.min_side}; measures regions: {spec.regional}")
        lines.append(f"- paper: {spec.paper}\n")
    return "\n".join(lines)


def exceptions() -> str:
    """The exception tree."""
    tree = (errors.__doc__ or "").partition("\n\n")[2]
    return f"# Errors\n\n```\n{tree.strip()}\n```\n"


PAGES = {"cli.md": cli, "editors.md": editors, "metrics.md": metrics, "errors.md": exceptions}


def main() -> None:
    """Write all pages into docs/reference, or another folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reference"
    for name, make in PAGES.items():
        (folder / name).write_text(HEAD + make())


if __name__ == "__main__":
    main()
