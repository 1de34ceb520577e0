"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.errors import SettingsError, UnknownName

RunDirectory = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The run directory, or its address: s3://BUCKET/RUN.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout instead of a table.")]
LogJson = Annotated[
    bool,
    typer.Option(
        "--log-json", help="Log to stderr, one JSON object a line, in place of the display."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="A run.toml with all settings."),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="SUITE/NAME",
        help="A design that comes with a suite, as banana100/small; other options change it.",
    ),
]
Arms = Annotated[
    list[str] | None,
    typer.Option(
        "--arm", metavar="NAME", help="Only this arm of the preset; may be repeated. (default: all)"
    ),
]
Suite = Annotated[
    str | None,
    typer.Option(
        "--suite", "-s", help="Name of a suite, or path of a suite.toml. (default: starter)"
    ),
]
Editors = Annotated[
    list[str] | None,
    typer.Option(
        "--editor",
        "-e",
        metavar="NAME",
        help="An editor, as family:model,option=value; may be given several times.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source", metavar="NAME", help="Only this source; may be repeated. (default: all)"
    ),
]
Cycles = Annotated[
    list[str] | None,
    typer.Option(
        "--cycle", metavar="NAME", help="Only this cycle; may be repeated. (default: all)"
    ),
]
Rounds = Annotated[
    int | None, typer.Option("--rounds", "-n", help="Rounds of each cycle. (default: 5)", min=1)
]
Steps = Annotated[
    int | None, typer.Option("--steps", help="Steps of each chain, instead of rounds.", min=1)
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", help="Chains of each kind. (default: 1)", min=1)
]
Size = Annotated[
    int | None,
    typer.Option(
        "--size",
        help="Side of drawn sources, in pixels; of those with a size of their own the short side, "
        "at most. (default: the suite's)",
    ),
]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Dollars; a hard cap, never exceeded.", min=0)
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency", help="Calls in flight per editor. (default: the editor's)", min=1
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        help="Seconds after which a call is given up. (default: 120, or four times what the editor "
        "usually takes)",
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries", help="Tries after a call found the editor unavailable. (default: 5)", min=0
    ),
]
RepeatLost = Annotated[
    int | None,
    typer.Option(
        "--repeat-lost",
        help="How often a call is made again that was sent, and perhaps billed, but whose answer "
        "was lost. (default: 1)",
        min=0,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--setting",
        metavar="NAME=VALUE,…",
        help="Vary a setting, as in resolution=1K,2K: phrasing (0, 1, …), seed (none, fixed, "
        "per-step), temperature, resolution (native, 1K, 2K, 4K, interleaved), session "
        "(stateless, chat); may be given several times.",
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="FILE",
        help="A TOML file of prompts in groups, in place of a restoration suite's own.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Where the work is done: local, on this machine, or ray, on a cluster.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Of the Ray cluster: auto, HOST:PORT or ray://HOST:PORT. (default: Ray is started on "
        "this machine)",
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Take up again the chains that ended in failed.")
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing",
        help="Restore although a folder: method lacks pictures; those chains fail.",
    ),
]
Controls = Annotated[
    bool | None,
    typer.Option(
        "--controls/--no-controls",
        help="Whether the free controls ride along. (default: they do)",
        show_default=False,
    ),
]


def design(
    config: Path | None, preset: str | None, arms: list[str] | None = None
) -> Path | dict[str, object] | None:
    """What a run is made from: a run.toml or a preset, or some arms of one.

    Raises SettingsError, UnknownName.
    """
    if preset is None:
        if arms:
            raise SettingsError("--arm chooses among the arms of a preset: give --preset, too.")
        return config
    if config is not None:
        raise SettingsError("--config and --preset contradict each other: give one of them.")
    from convergebench.presets import open_preset

    return open_preset(preset).only(arms or ())


def axes(given: list[str] | None) -> dict[str, list[object]] | None:
    """The table `settings` from options such as `resolution=1K,2K`. Raises SettingsError."""
    from convergebench.chain import Settings as Known

    names = list(Known.model_fields)
    found: dict[str, list[object]] = {}
    for text in given or ():
        name, sign, values = text.partition("=")
        each = [value.strip() for value in values.split(",")]
        if not sign or not all(each):
            raise SettingsError(
                f"--setting {text!r} is not of the form NAME=VALUE or NAME=VALUE,VALUE, as in "
                "resolution=1K,2K."
            )
        if name.strip() not in names:
            raise UnknownName("setting", name.strip(), names)
        found.setdefault(name.strip(), []).extend(_typed(name.strip(), value) for value in each)
    return found or None


def _typed(name: str, text: str) -> object:
    if name == "seed" and text.isdecimal():
        raise SettingsError(
            f"--setting seed={text}: expected none, fixed or per-step. The number itself follows "
            "from the chain, so that repeats differ and a resumed run does not."
        )
    if name not in ("phrasing", "temperature"):
        return text
    if name == "temperature" and text in ("none", "default"):
        return None
    try:
        return int(text) if name == "phrasing" else float(text)
    except ValueError:
        wanted = "a whole number" if name == "phrasing" else "a number, or none for the default"
        raise SettingsError(f"--setting {name}={text}: expected {wanted}.") from None
