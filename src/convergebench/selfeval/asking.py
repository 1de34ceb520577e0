"""Opening the judge of the summaries: what it may cost is said before it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from convergebench.errors import SettingsError
from convergebench.judging import Judge, open_judge
from convergebench.money.budget import Budget
from convergebench.selfeval.evaluation import question, summaries
from convergebench.store import RunStore
from convergebench.wording import counted

FOLDER = "judgements"
"""Where a run keeps what judges answered."""


@dataclass(frozen=True)
class Asked:
    """A judge, and what asking it may cost."""

    judge: Judge
    questions: int
    dollars: float | None

    @property
    def announcement(self) -> str:
        """A sentence for the user."""
        price = (
            "at a price nobody knows" if self.dollars is None else f"at most ${self.dollars:.2f}"
        )
        return f"{self.judge.name}: up to {counted(self.questions, 'question')}, {price}."


def opened(
    directory: Path,
    name: str | None,
    *,
    samples: int = 1,
    budget: float | None = None,
    retry_failed: bool = False,
) -> Asked | None:
    """The judge of that name, ready to be asked; None without a name.

    Raises:
        SettingsError: It would cost money, and no budget says how much may be spent; or it cannot
            be opened.
    """
    if name is None:
        if budget is not None:
            raise SettingsError("--budget is for a judge, and none is named. Give --judge too.")
        return None
    store = RunStore.open(directory)
    texts = [text for chain in store.chains() for _, text in summaries(chain)]
    limit = None if budget is None else Budget(budget, 0.0)
    judge = open_judge(name, folder=store.path / FOLDER, budget=limit, retry_failed=retry_failed)
    prices = [judge.price(question(text)) for text in texts]
    known = [price.high for price in prices if price is not None]
    dollars = samples * sum(known) if len(known) == len(prices) else None
    asked = Asked(judge, samples * len(texts), dollars)
    if budget is None and dollars:
        raise SettingsError(f"{asked.announcement} Say how much may be spent, with --budget.")
    return asked
