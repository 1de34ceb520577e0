"""Writes docs/reference/ from the code. A test fails when what is there is out of date.

python docs/generate.py [FOLDER]
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import typer

from convergebench import errors, registry
from convergebench.cards import Card
from convergebench.cli import app
from convergebench.editors.reference.models import MODELS
from convergebench.metric import MetricSpec
from convergebench.metrics.sets import SETS

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


def _own_metrics() -> dict[str, MetricSpec]:
    own = [p.name for p in registry.plugins("metrics") if p.package == "convergebench"]
    return {name: registry.metric_spec(name) for name in own}


def metrics() -> str:
    """All metrics of this package in one table, and the sets."""
    lines = ["# Metrics\n"]
    lines.append("`convergebench metrics list` says which of them can be used on your machine.\n")
    lines.append("| metric | what it is | kind | typical range | better | cost | needs |")
    lines.append("|---|---|---|---|---|---|---|")
    for name, spec in _own_metrics().items():
        span = f"{spec.typical[0]:g} to {spec.typical[1]:g}" if spec.typical else ""
        better = "" if spec.alignment else "higher" if spec.higher_is_better else "lower"
        parts = [f"extra `{spec.needs.extra}`"] if spec.needs.extra else []
        parts += [f"weights `{w}`" for w in spec.needs.weights]
        parts += [f"`{setting}`" for setting in spec.needs.settings]
        lines.append(
            f"| [{name}](metrics/{name}.md) | {spec.title} | {spec.kind} | {span} | {better} "
            f"| {spec.cost} | {', '.join(parts)} |"
        )
    lines.append("\n## Sets\n\n| set | for | registered | metrics |\n|---|---|---|---|")
    for name, group in SETS.items():
        listed = ", ".join(group.metrics)
        registered = "yes" if group.registered else ""
        lines.append(f"| `{name}` | {group.title} | {registered} | {listed} |")
    lines.append("| `all` | every installed metric | yes | |")
    return "\n".join(lines) + "\n"


def metric_page(name: str, spec: MetricSpec) -> str:
    """The card of one metric."""
    card = Card(name, "convergebench", spec, "", ())
    text = inspect.cleandoc(registry.metric_text(name))
    facts = [(what, said) for what, said in card.facts if what not in ("state", "title", "package")]
    lines = [f"# {name}\n", f"{spec.title}\n", "| | |\n|---|---|"]
    lines += [f"| {what} | {said} |" for what, said in facts]
    return "\n".join(lines) + f"\n\n{text}\n"


def exceptions() -> str:
    """The exception tree."""
    tree = (errors.__doc__ or "").partition("\n\n")[2]
    return f"# Errors\n\n```\n{tree.strip()}\n```\n"


def pages() -> dict[str, str]:
    """Every page by its path in the folder."""
    found = {
        "cli.md": cli(),
        "editors.md": editors(),
        "metrics.md": metrics(),
        "errors.md": exceptions(),
    }
    found |= {
        f"metrics/{name}.md": metric_page(name, spec) for name, spec in _own_metrics().items()
    }
    return found


def main() -> None:
    """Write all pages into docs/reference, or another folder; pages of no use are removed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reference"
    made = pages()
    (folder / "metrics").mkdir(parents=True, exist_ok=True)
    for old in (folder / "metrics").glob("*.md"):
        if f"metrics/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(HEAD + text)


if __name__ == "__main__":
    main()
