"""Asking a judge whether restorations are infidel or over-generated: answers become score rows.

A row is `judge/infidelity` or `judge/over-generation` of the version `TEMPLATE@N:JUDGE`, 1 for yes,
0 for no, null without an answer; the judge's reason is its note. The judge sees the damaged input,
the output, and the truth where there is one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from convergebench.chain import Chain
from convergebench.errors import InputError, SettingsError
from convergebench.judging import Judge, Question, Template, YesNo, open_judge
from convergebench.money.budget import Budget
from convergebench.restoration.cases import KINDS, Kind
from convergebench.scoretable import rows_frame
from convergebench.store import ANSWERS, RunStore
from convergebench.wording import counted

FOLDER: Final = "judgements"
"""Where a run keeps what judges answered."""

AT_ONCE: Final = 4
"""Questions that are asked at the same time."""

TRUTH: Final = " Picture 3 is the original, before it was damaged."


@cache
def template(kind: Kind) -> Template:
    """The question about one kind of case."""
    path = resources.files("convergebench.restoration") / "prompts" / f"{kind}.toml"
    told = tomllib.loads(path.read_text("utf-8"))
    return Template(answer=YesNo(), reason=True, **{**told, "text": told["text"].strip()})


@dataclass(frozen=True)
class Asking:
    """A judge, what it is asked, and what that may cost."""

    store: RunStore
    judge: Judge
    chains: tuple[Chain, ...]
    kinds: tuple[Kind, ...]
    samples: int
    dollars: float | None

    @property
    def announcement(self) -> str:
        """A sentence for the user."""
        count = self.samples * len(self.chains) * len(self.kinds)
        price = (
            "at a price nobody knows" if self.dollars is None else f"at most ${self.dollars:.2f}"
        )
        return f"{self.judge.name}: up to {counted(count, 'question')}, {price}."


def opened(
    directory: str | os.PathLike[str],
    judge: str,
    *,
    kinds: Sequence[Kind] = KINDS,
    samples: int = 1,
    budget: float | None = None,
    retry_failed: bool = False,
) -> Asking:
    """A judge that is ready to be asked of a run's restorations.

    Args:
        directory: The run directory.
        judge: A judge's name.
        kinds: What it is asked.
        samples: Answers per question; the majority counts.
        budget: Dollars, at most.
        retry_failed: Ask again where only a failure is kept.

    Raises:
        InputError: No chain restores.
        SettingsError: It would cost money, and no budget says how much; or it cannot be opened.
    """
    store = RunStore.open(Path(directory))
    chains = tuple(
        chain
        for chain in store.chains()
        if store.suite.cycle_of(chain.key.cycle).kind == "restore" and max(chain.held, default=0)
    )
    if not chains:
        raise InputError(f"{store.place} has no restored pictures that a judge could look at.")
    limit = None if budget is None else Budget(budget, 0.0)
    asked = open_judge(judge, folder=store.path / FOLDER, budget=limit, retry_failed=retry_failed)
    # The price is of tokens and of how many pictures are sent: one chain stands for its like.
    prices = [
        asked.price(question(store, like[0], kind)) if like else None
        for kind in kinds
        for like in ([c for c in chains if c.truth], [c for c in chains if not c.truth])
        for _ in like
    ]
    known = [price.high for price in prices if price is not None]
    dollars = samples * sum(known) if len(known) == len(prices) else None
    found = Asking(store, asked, chains, tuple(kinds), samples, dollars)
    if budget is None and dollars:
        raise SettingsError(f"{found.announcement} Say how much may be spent, with --budget.")
    return found


def question(store: RunStore, chain: Chain, kind: Kind) -> Question:
    """What is asked about one output."""
    shown = [chain.held[0], chain.held[max(chain.held)], *([chain.truth] if chain.truth else [])]
    told = {"original": TRUTH if chain.truth else ""}
    return Question(template(kind), told, tuple(store.frame(ref) for ref in shown))


@dataclass(frozen=True)
class Labelled:
    """What asking came to."""

    answered: int
    unanswered: int
    cost: float

    def __str__(self) -> str:
        lost = f", {self.unanswered} without an answer" if self.unanswered else ""
        return f"{counted(self.answered, 'label')}{lost}, ${self.cost:.2f}"


def label(asking: Asking, observe: Callable[[int, int], None] | None = None) -> Labelled:
    """Ask, and keep the answers as score rows. What was answered before is not asked again."""
    work = [(chain, kind) for chain in asking.chains for kind in asking.kinds]
    rows: list[dict[str, Any]] = []
    cost = 0.0

    def ask(one: tuple[Chain, Kind]) -> tuple[dict[str, Any], float]:
        chain, kind = one
        verdict = asking.judge.ask(question(asking.store, chain, kind), k=asking.samples)
        reasons = [vote.reason for vote in verdict.votes if vote.answer == verdict.answer]
        form = template(kind)
        row = {
            "chain": chain.key.id,
            "step": max(chain.held),
            "metric": f"judge/{kind}",
            "version": f"{form.id}@{form.version}:{asking.judge.name}",
            "against": "none",
            "where": "all",
            "value": {"yes": 1.0, "no": 0.0}.get(str(verdict.answer)),
            "note": next(filter(None, reasons), verdict.note or None),
        }
        return row, verdict.paid

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done, (row, paid) in enumerate(pool.map(ask, work), 1):
                rows.append(row)
                cost += paid
                if observe:
                    observe(done, len(work))
    finally:
        if rows:
            with asking.store.writing("score"):
                asking.store.add_scores(rows_frame(rows))
                asking.store.stored(ANSWERS)
    known = sum(row["value"] is not None for row in rows)
    return Labelled(known, len(rows) - known, cost)
