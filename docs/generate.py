"""Writes docs/reference/ from the code. A test fails when what is there is out of date.

python docs/generate.py [FOLDER]
"""

from __future__ import annotations

import argparse
import inspect
import os
from pathlib import Path

import typer

from convergebench import errors, judging, registry
from convergebench import failures as taxonomy
from convergebench.cards.editors import typical_price
from convergebench.cards.metrics import Card
from convergebench.cli import app
from convergebench.editors.classic import FILTERS
from convergebench.editors.local.models import models as local_models
from convergebench.editors.local.realesrgan import NETWORKS as RESTORERS
from convergebench.editors.providers import catalogue
from convergebench.editors.reference.models import MODELS
from convergebench.metric import MetricSpec
from convergebench.metrics.sets import SETS

OWN = ("python", "http", "https", "comfyui", "folder", "cmd")
NETWORKS = ("taef2", "inpaint")
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
    """Reference editors with their options, those of this machine, and every provider's models."""
    lines = ["# Editors\n"]
    lines.append("`ref:*` and `classic:*` are built in and free; providers' models need a key.\n")
    lines.append("`convergebench editors list` says which of them can be called on your machine.\n")
    lines.append("| editor | what it does | options |\n|---|---|---|")
    for name, model in MODELS.items():
        options = "; ".join(f"`{o.name}={o.default}` {o.meaning}" for o in model.options)
        control = " (control)" if model.control else ""
        lines.append(f"| `ref:{name}`{control} | {model.description} | {options} |")
    lines += _filters() + _own() + _local()
    for name in catalogue.providers():
        lines += _models(catalogue.shelf(name))
    return "\n".join(lines) + "\n"


def _filters() -> list[str]:
    """The classical filters and the restoration networks."""
    lines = ["\n## Restoration\n"]
    lines.append("[Classical filters](../editors/classic.md), which read no prompt.\n")
    lines.append("| editor | what it does | options |\n|---|---|---|")
    for name, one in FILTERS.items():
        options = "; ".join(f"`{o.name}={o.default}` {o.meaning}" for o in one.options)
        lines.append(f"| `classic:{name}` | {one.description} | {options} |")
    lines.append("\n[Real-ESRGAN](../editors/realesrgan.md), where its package is installed.\n")
    lines.append("| editor | what it is |\n|---|---|")
    for name, network in RESTORERS.items():
        lines.append(f"| `realesrgan:{name}` | {network.description} |")
    return lines


def _own() -> list[str]:
    """The families of users' own editors, and the small networks, as their factories say."""
    lines = ["\n## Your own\n"]
    lines.append("[Add your own editor in ten minutes](../guides/your-editor.md).\n")
    lines.append("| family | what it is |\n|---|---|")
    known = registry.editor_names()
    lines += [f"| `{name}` | {known[name]} |" for name in OWN]
    lines += ["\n## Small networks on the CPU\n", "Free; they need weights.\n"]
    lines.append("| editor | what it does |\n|---|---|")
    lines += [f"| [`{name}`](../editors/{name}.md) | {known[name]} |" for name in NETWORKS]
    return lines


def _local() -> list[str]:
    """The pipelines that run on this machine."""
    lines = ["\n## Pipelines of diffusers on your machine\n"]
    lines.append("Free; they need the extra `local`, a checkpoint and, in practice, a GPU.")
    lines.append("[What is pinned](../editors/diffusers.md).\n")
    heads = ("editor", "title", "checkpoint", "licence", "options", "caveats")
    lines.append(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, model in local_models().items():
        options = "; ".join(
            f"`{option}={rule.default}` {rule.meaning}" for option, rule in model.options().items()
        )
        gated = f"{model.licence}, gated" if model.gated else model.licence
        told = "; ".join(model.caveats)
        cells = (f"`local:{name}`", model.title, model.repository, gated, options, told)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def _models(part: catalogue.Shelf) -> list[str]:
    """The models of one provider; their prices are what the catalogue expects."""
    provider = part.provider
    keys = " or ".join(f"`{key}`" for key in provider.keys)
    lines = [f"\n## {provider.title}\n", f"Key: {keys}. {_sentence(provider.verified)}\n"]
    if provider.caveats:
        lines.append(f"For all of them: {'; '.join(provider.caveats)}.\n")
    heads = ("editor", "title", "$ at 1K", "seed", "sessions", "resolutions", "caveats")
    lines.append(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for model in part:
        price = typical_price(provider, model)
        known = price is not None and (price.high > 0 or model.shutdown is None)
        told = list(model.caveats)
        if model.shutdown:
            instead = f", use `{provider.name}:{model.successor}`" if model.successor else ""
            told.insert(0, f"shutdown {model.shutdown}{instead}")
        cells = (
            f"`{provider.name}:{model.id}`",
            model.title,
            f"{price.expected:.3g}" if known and price else "",
            "yes" if model.seeds else "no",
            ", ".join(model.sessions),
            ", ".join(model.resolutions),
            "; ".join(told),
        )
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def _sentence(text: str) -> str:
    return f"Verified: {text}." if text else ""


def judges() -> str:
    """Every judge of the catalogue."""
    known = judging.catalogue()
    lines = ["# Judges\n"]
    lines.append("[What they are for](../guides/judges.md). Dollars are per million tokens.\n")
    heads = ("judge", "vendor", "$ in", "$ out", "seed", "key", "tried against")
    lines.append(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    rows = [(judge.name, judge.vendor, judge.price, judge.provider) for judge in known.judge]
    rows += [(f"{p.name}:MODEL", "", None, p.name) for p in known.provider if p.open]
    for name, vendor, price, place in rows:
        provider = known.providers()[place]
        tokens = price.tokens if price else {}
        cells = [f"`{name}`", vendor]
        cells += [f"{tokens[k]:g}" if k in tokens else "" for k in ("text_in", "text_out")]
        keys = " or ".join(f"`{key}`" for key in provider.keys)
        cells += ["yes" if provider.seeds else "no", keys, provider.verified]
        lines.append(f"| {' | '.join(cells)} |")
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


def failures() -> str:
    """Every failure detector: definition, threshold, measured error rate."""
    rates = taxonomy.error_rates()
    lines = ["# Failure detectors\n", "[What they are for](../guides/failures.md).\n"]
    lines.append("Precision and recall on constructed cases: `python -m benchmarks.failures`.\n")
    heads = ("detector", "level", "fails when", "positives", "negatives", "precision", "recall")
    lines.append(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for each in taxonomy.DETECTORS:
        rate = rates.get(each.name)
        told = [""] * 4
        if rate:
            shares = (rate.precision, rate.recall)
            told = [str(rate.positives), str(rate.negatives)]
            told += ["" if share is None else f"{100 * share:.1f} %" for share in shares]
        cells = (f"`{each.name}`", each.level, each.rule, *told)
        lines.append(f"| {' | '.join(cells)} |")
    for each in taxonomy.DETECTORS:
        judged = " Asks a judge." if each.judged else ""
        lines.append(f"\n## {each.name}\n\n{each.title}. {each.definition}{judged}")
    return "\n".join(lines) + "\n"


def exceptions() -> str:
    """The exception tree."""
    tree = (errors.__doc__ or "").partition("\n\n")[2]
    return f"# Errors\n\n```\n{tree.strip()}\n```\n"


def pages() -> dict[str, str]:
    """Every page by its path in the folder."""
    # What users add to the catalogues is theirs, not part of the docs.
    for name in ("CONVERGEBENCH_MODELS", "CONVERGEBENCH_JUDGES"):
        os.environ.pop(name, None)
    os.environ["XDG_CONFIG_HOME"] = os.devnull
    found = {
        "cli.md": cli(),
        "editors.md": editors(),
        "judges.md": judges(),
        "metrics.md": metrics(),
        "errors.md": exceptions(),
        "failures.md": failures(),
    }
    found |= {
        f"metrics/{name}.md": metric_page(name, spec) for name, spec in _own_metrics().items()
    }
    return found


def main() -> None:
    """Write all pages into docs/reference, or another folder; pages of no use are removed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usual = Path(__file__).parent / "reference"
    parser.add_argument("folder", nargs="?", type=Path, default=usual, metavar="FOLDER")
    folder = parser.parse_args().folder
    made = pages()
    (folder / "metrics").mkdir(parents=True, exist_ok=True)
    for old in (folder / "metrics").glob("*.md"):
        if f"metrics/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(HEAD + text)


if __name__ == "__main__":
    main()
