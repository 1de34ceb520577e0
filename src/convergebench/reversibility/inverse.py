"""A backward prompt for a forward one: proposed by a model that is asked, or made by a template.

Templates cover what can be undone from the words alone. A model's proposal is checked (one line,
not the forward prompt, no worse by the rules than the template's); what fails the check falls back
to the template, with the reason told. Nobody is asked unless `ask` is given: calls cost money.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from convergebench.chatapi import ChatApi, ChatFailed, Reply
from convergebench.errors import SettingsError
from convergebench.reversibility.geometry import Bijection
from convergebench.reversibility.reading import KINDS, Action, Prompt, read
from convergebench.reversibility.rules import Verdict, classify
from convergebench.table import Table

Ask = Callable[[str], Reply]
"""Asks a model one question. Raises ChatFailed."""

VARIABLE: Final = "CONVERGEBENCH_JUDGE"
LONGEST: Final = 400
"""Letters of a proposal; a longer one is an essay, not a prompt."""
ATTEMPTS: Final = 2
KEEP: Final = "Keep everything else exactly as it is."
QUESTION: Final = """\
An image editor was given this instruction, and carried it out:

{forward}

Write the one instruction that undoes it, so that the picture is again as it was before. Name what
is to be changed in the same words. Ask for nothing else. Answer with the instruction alone, on one
line, without quotes and without explanation."""
_GOOD: Final = ("exact", "preserving")


@dataclass(frozen=True)
class Inverse:
    """A backward prompt, by whom it was made, and how reversible the pair is.

    Attributes:
        forward: The prompt to be undone.
        prompt: The backward prompt; None where neither a model nor a template gave one.
        by: `template T…`, `llm MODEL`, or `nobody`.
        verdict: What the rules say of the pair; None without a backward prompt.
        note: Why a proposal was not taken, or why there is none.
    """

    forward: str
    prompt: str | None
    by: str
    verdict: Verdict | None
    note: str = ""

    @property
    def table(self) -> Table:
        """Prompt by prompt, then the verdict."""
        found = self.verdict
        rows = [
            ("forward", self.forward),
            ("backward", self.prompt),
            ("proposed by", self.by),
            ("class", found.reversibility if found else None),
            ("rule", found.rule if found else None),
            ("reason", found.reason if found else None),
        ]
        return Table("Inverse", ("", "is"), rows, [self.note] if self.note else [])

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "forward": self.forward,
            "backward": self.prompt,
            "by": self.by,
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "note": self.note,
        }


def propose_inverse(forward: str, *, ask: Ask | None = None) -> Inverse:
    """A backward prompt for this one, with what the rules say of the pair.

    Args:
        forward: The prompt to be undone.
        ask: Asks a model, which costs a call; without it only templates are used.
    """
    made = from_template(forward)
    if ask is None:
        return made
    proposal, by, problem = _asked(forward, ask)
    verdict = classify(forward, proposal) if proposal else None
    sure = made.verdict is not None and made.verdict.reversibility in _GOOD
    if verdict is not None and sure and verdict.reversibility not in _GOOD:
        # The template is known to lead home; the model's words must do so, too.
        problem = f"{verdict.rule}, {verdict.reversibility}: {verdict.reason.rstrip('.')}"
        problem = f"{by} proposed {proposal!r}, which is not taken ({problem})"
        proposal = ""
    if proposal and verdict is not None:
        return Inverse(forward, proposal, by, verdict)
    note = f"{problem}. {made.note}" if made.note else f"{problem}."
    return Inverse(forward, made.prompt, made.by, made.verdict, note)


def _asked(forward: str, ask: Ask) -> tuple[str, str, str]:
    """A model's proposal, its name, and what is wrong with the proposal; one of them is empty."""
    try:
        reply = ask(QUESTION.format(forward=forward))
    except ChatFailed as failure:
        return "", "", f"The model could not be asked: {failure}"
    by = f"llm {reply.model or 'without a name'}"
    text = re.sub(r"<think>.*?(?:</think>|$)", "", reply.text, flags=re.DOTALL).strip()
    text = text.strip("\"'“”‘’`*").strip()
    bad = ""
    if reply.refusal or reply.finish == "content_filter":
        bad = "refused"
    elif reply.finish == "length":
        bad = "was cut off"
    elif not text:
        bad = "answered nothing"
    elif "\n" in text:
        bad = "answered with several lines"
    elif not text.isprintable():
        bad = "answered with letters that cannot be shown"
    elif len(text) > LONGEST:
        bad = f"answered with more than {LONGEST} letters"
    elif _alike(text, forward) and classify(forward, forward).reversibility != "exact":
        bad = "repeated the forward prompt"
    return ("", by, f"{by} {bad}") if bad else (text, by, "")


def _alike(one: str, other: str) -> bool:
    words = (re.findall(r"\w+", text.casefold()) for text in (one, other))
    return next(words) == next(words)


Template = Callable[[Prompt, Action], str | None]


def _t_removed(prompt: Prompt, action: Action) -> str | None:
    """Add a thing: remove the thing."""
    return None if action.worn else f"Remove the {_named(action)}."


def _t_taken_off(prompt: Prompt, action: Action) -> str | None:
    """Put a thing on: take the thing off."""
    return f"Take off the {_named(action)}."


def _t_put_back(prompt: Prompt, action: Action) -> str | None:
    """Remove a thing: put the thing back."""
    return f"Put the {_named(action)} back."


def _t_moved_back(prompt: Prompt, action: Action) -> str | None:
    """Move a thing: move it back to where it was."""
    return f"Move the {_named(action)} back to where it was."


def _t_inverse(prompt: Prompt, action: Action) -> str | None:
    """Flip, turn, invert: the inverse, computed."""
    total = Bijection()
    for each in prompt.of("geometry"):
        if each.geometry is None or each.geometry.does is None:
            return None
        total = total.then(each.geometry.does)
    return total.inverse().words()


def _t_kind(prompt: Prompt, action: Action) -> str | None:
    """Blur, monochrome, upscale …: the words that `kinds.toml` has for it."""
    kind = KINDS.get(action.kind)
    return (kind.undo or None) if kind else None


TEMPLATES: Final[tuple[tuple[str, str, Template], ...]] = (
    ("T1", "add", _t_removed),
    ("T2", "add", _t_taken_off),
    ("T3", "geometry", _t_inverse),
    ("T4", "move", _t_moved_back),
    ("T5", "remove", _t_put_back),
    ("T6", "", _t_kind),
)
"""Number, kind of the forward edit (empty: any), and how the backward prompt is made."""


def from_template(forward: str) -> Inverse:
    """The backward prompt that a template makes, if there is one."""
    prompt = read(forward)
    kinds = {action.kind for action in prompt.actions}
    alone = len(prompt.actions) == 1 or kinds == {"geometry"}
    for name, kind, make in TEMPLATES if alone else ():
        action = prompt.actions[0]
        text = make(prompt, action) if kind in ("", action.kind) else None
        if text:
            text = f"{text} {KEEP}" if prompt.keeps else text
            return Inverse(forward, text, f"template {name}", classify(forward, text))
    if prompt.foreign:
        why = "the prompt is not English, and the templates know no other"
    elif not prompt.actions:
        why = "the prompt asks for nothing that the rules know"
    elif not alone:
        why = "the prompt asks for several things"
    else:
        why = "the state before the edit is not in its words"
    return Inverse(forward, None, "nobody", None, f"No template makes an inverse: {why}.")


def _named(action: Action) -> str:
    return " and the ".join(thing.text or thing.noun for thing in action.things)


def attempts(limit: int | None) -> int:
    """How often a call is tried."""
    return ATTEMPTS if limit is None else 1


def judge(model: str, url: str = "", key_env: str = "", *, limit: int | None = None) -> Ask:
    """Something to ask: a model behind an OpenAI-compatible endpoint.

    Args:
        model: Its name on the server.
        url: Base URL; by default what CONVERGEBENCH_JUDGE_URL says.
        key_env: The environment variable with the key; by default CONVERGEBENCH_JUDGE_KEY, or
            OPENAI_API_KEY for OpenAI's own server.
        limit: How many calls may be made; further ones fail without being made. With a limit no
            call is tried again, so that it holds for requests as well.

    Raises:
        SettingsError: The model, the URL or the key is missing or cannot be used.
    """
    url = url or os.environ.get(f"{VARIABLE}_URL", "")
    if not model.strip():
        raise SettingsError(
            "--judge needs the name of a model on the server, as in --judge qwen3:8b."
        )
    if not url:
        raise SettingsError(
            f"a judge needs a server: give --judge-url, or set {VARIABLE}_URL to its "
            "OpenAI-compatible address, for example http://localhost:11434/v1."
        )
    if key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key_env):
        raise SettingsError(
            "--judge-key-env takes the name of an environment variable, never a key."
        )
    openai = urlsplit(url).hostname == "api.openai.com"
    name = key_env or ("OPENAI_API_KEY" if openai else f"{VARIABLE}_KEY")
    key = os.environ.get(name, "")
    if not key and (key_env or openai):
        raise SettingsError(
            f"the environment variable {name} is not set; put the judge's key there."
        )
    api = ChatApi(url, key, attempts=attempts(limit))
    made = 0

    def ask(question: str) -> Reply:
        nonlocal made
        if limit is not None and made >= limit:
            raise ChatFailed(f"the limit of {limit} calls is reached")
        made += 1
        request: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": question}],
        }
        reply = api.ask(request)
        return reply if reply.model else Reply(**{**vars(reply), "model": model})

    return ask
