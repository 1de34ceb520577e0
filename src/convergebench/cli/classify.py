"""`convergebench suites classify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli.output import display, say, show

EXAMPLES = (
    'Examples:  convergebench suites classify "add glasses" "remove glasses"   ·   '
    'convergebench suites classify "put a hat on the man"   ·   '
    "convergebench suites classify --suite starter   ·   "
    "convergebench suites classify --labelled   ·   "
    "convergebench suites classify --pairs my-pairs.csv --json   ·   "
    'convergebench suites classify "add a lamp" --judge qwen3:8b --judge-url http://localhost:11434/v1'
)


def classify(
    forward: Annotated[
        str | None, typer.Argument(help="The forward prompt.", show_default=False)
    ] = None,
    backward: Annotated[
        str | None,
        typer.Argument(help="The backward prompt; without it one is proposed.", show_default=False),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite", "-s", help="Every cycle of this suite, beside what the suite declares."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Every row of a CSV file with the columns forward, backward and perhaps label; "
            "an empty backward prompt is proposed.",
        ),
    ] = None,
    labelled: Annotated[
        bool,
        typer.Option("--labelled", help="How far the rules agree with the pairs labelled by hand."),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Ask this model for missing backward prompts; a call per prompt, which may cost "
            "money. (default: templates only)",
        ),
    ] = None,
    judge_url: Annotated[
        str,
        typer.Option(
            "--judge-url",
            metavar="URL",
            help="Its OpenAI-compatible server. (default: CONVERGEBENCH_JUDGE_URL)",
        ),
    ] = "",
    judge_key_env: Annotated[
        str,
        typer.Option(
            "--judge-key-env",
            metavar="NAME",
            help="Environment variable with its key. (default: CONVERGEBENCH_JUDGE_KEY)",
        ),
    ] = "",
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", help="Calls of the judge; a hard cap. (default: none)", min=0),
    ] = None,
    json: o.Json = False,
) -> None:
    """Sort pairs of prompts by how reversible they are, and name the rule that decided.

    The classes are exact, preserving, ambiguous, destroying and inventing. What no rule knows
    counts as ambiguous, with the rule "none". With one prompt alone, its inverse is proposed first.
    """
    from convergebench.errors import SettingsError
    from convergebench.reversibility import classify as decide
    from convergebench.reversibility import judge as open_judge
    from convergebench.reversibility import propose_inverse

    ways = [forward is not None, suite is not None, pairs is not None, labelled]
    if sum(ways) != 1:
        raise SettingsError(
            "classify takes one or two prompts, or --suite, or --pairs, or --labelled: "
            f"got {sum(ways) or 'none'} of them."
        )
    asked = forward is not None and backward is None
    if (judge_url or judge_key_env or max_calls is not None) and judge is None:
        raise SettingsError("these options are for a judge; name one with --judge MODEL.")
    if judge is not None and not (asked or pairs):
        raise SettingsError(
            "a judge is asked only for missing backward prompts; leave --judge out."
        )
    if labelled:
        from convergebench.reversibility.labels import agreement

        show(agreement(), json)
    elif suite is not None:
        from convergebench import registry
        from convergebench.reversibility.sorting import sort_suite

        show(sort_suite(registry.open_suite(suite)), json)
    elif pairs is not None:
        from convergebench.reversibility.sorting import read_pairs, sort_pairs

        rows = read_pairs(pairs)
        lacking = sum(not row["backward"].strip() for row in rows)
        ask = None
        if judge is not None:
            ask = open_judge(judge, judge_url, judge_key_env, limit=max_calls)
            _announce(judge, lacking, max_calls)
        if ask is None or not lacking:
            show(sort_pairs(pairs.name, rows), json)
        else:
            with display("pairs") as shown:
                result = sort_pairs(pairs.name, rows, ask, shown.update)
            show(result, json)
    elif forward is not None and backward is not None:
        show(decide(forward, backward), json)
    elif forward is not None:
        if not forward.strip():
            raise SettingsError("the forward prompt is empty.")
        ask = None
        if judge is not None:
            ask = open_judge(judge, judge_url, judge_key_env, limit=max_calls)
            _announce(judge, 1, max_calls)
        show(propose_inverse(forward, ask=ask), json)


def _announce(model: str, wanted: int, limit: int | None) -> None:
    from convergebench.reversibility.inverse import attempts
    from convergebench.wording import counted

    calls = wanted if limit is None else min(wanted, limit)
    tried = " each tried twice at most;" if attempts(limit) > 1 else ""
    say(f"Asking {model}: {counted(calls, 'call')};{tried} what they cost is up to its server.")
