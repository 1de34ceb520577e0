"""Judging the reasoning summaries of a run."""

from __future__ import annotations

import os
import statistics
import threading
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import Final

from convergebench.chain import Chain
from convergebench.errors import ConvergeBenchError
from convergebench.judging import Judge, Question, Template, YesNo, same_vendor
from convergebench.selfeval.result import By, Concord, Delay, Followed, Read, SelfEvaluation
from convergebench.selfeval.rules import mentions_damage, words
from convergebench.store import ANSWERS, RunStore
from convergebench.wording import counted

FILE: Final = "self-evaluation.json"
"""Where a run keeps what was found."""
AT_ONCE: Final = 4
"""Chains whose summaries are judged at the same time."""


@cache
def template() -> Template:
    """The paper's question, word for word."""
    path = resources.files("convergebench.selfeval") / "prompts" / "mentions-noise.toml"
    told = tomllib.loads(path.read_text("utf-8"))
    return Template(
        id=told["id"], version=told["version"], text=told["text"].lstrip("\n"),
        answer=YesNo(), verbatim=True,
    )  # fmt: skip


def question(reasoning: str) -> Question:
    """The question about one summary."""
    return Question(template(), {"reasoning_summary": reasoning})


def summaries(chain: Chain) -> list[tuple[int, str]]:
    """The steps of a chain that have a summary, in order, with it."""
    found = [(s.step, s.call.reasoning or "") for s in chain.final if s.outcome == "edited"]
    return sorted((step, text) for step, text in found if text.strip())


def evaluate(
    directory: str | os.PathLike[str],
    judge: Judge | None = None,
    *,
    samples: int = 1,
    all_steps: bool = False,
    observe: Callable[[int, int], None] | None = None,
) -> SelfEvaluation:
    """When the editors of a run noticed the damage; kept in the run as `self-evaluation.json`.

    Args:
        directory: The run directory.
        judge: A model to be asked the paper's question; without one the word list alone judges.
        samples: Answers per summary; the majority counts.
        all_steps: Ask about every step; otherwise each chain only until the first yes.
        observe: Called with chains done and chains in all.

    Raises:
        ConvergeBenchError: No step of the run has a reasoning summary.
    """
    store = RunStore.open(directory)
    chains = [chain for chain in store.chains() if summaries(chain)]
    if not chains:
        raise ConvergeBenchError(
            f"{store.place} has no reasoning summaries: none of its editors sent any. Editors that "
            "do: gemini:… with reasoning, or for a trial ref:banana,reasoning=yes."
        )
    judged = _Asked(judge, samples, all_steps)
    followed: list[Followed] = []
    with ThreadPoolExecutor(AT_ONCE if judge else 1) as pool:
        for done, one in enumerate(pool.map(judged.follow, chains), 1):
            followed.append(one)
            if observe:
                observe(done, len(chains))
    found = SelfEvaluation(
        run=store.name,
        words=words().version,
        judge=judge.name if judge else "",
        template=f"{template().id}@{template().version}" if judge else "",
        chains=tuple(sorted(followed, key=lambda f: (f.editor, f.variant, f.source, f.repeat))),
        delays=_delays(followed, judged=judge is not None),
        concord=concord(followed) if judge else None,
        unanswered=judged.unanswered,
        cost=judged.cost,
        notes=tuple(_notes(followed, judge)),
    )
    store.write_json(FILE, found.model_dump(mode="json"), indent=None)
    if judge:
        store.stored(ANSWERS)
    return found


def stored(store: RunStore) -> SelfEvaluation | None:
    """What was found in a run before, if it was looked for."""
    told = store.read_json(FILE)
    return SelfEvaluation.model_validate(told) if told else None


class _Asked:
    """Judges chains, and counts what it cost."""

    def __init__(self, judge: Judge | None, samples: int, all_steps: bool) -> None:
        self._judge = judge
        self._samples = samples
        self._all = all_steps
        self._lock = threading.Lock()
        self.unanswered = 0
        self.cost = 0.0

    def follow(self, chain: Chain) -> Followed:
        """One chain, step by step."""
        read: list[Read] = []
        prompts = {step.step: step.prompt for step in chain.final}
        noticed = False
        for step, text in summaries(chain):
            said = mentions_damage(text, prompts[step])
            answer = None
            if self._judge is not None and (self._all or not noticed):
                answer = self._ask(text)
                noticed = noticed or answer is True
            read.append(Read(step=step, rule=bool(said), words=said, judge=answer))
        key = chain.key
        return Followed(
            chain=key.id, editor=key.editor, variant=_variant(chain), source=key.source,
            repeat=key.repeat, steps=chain.length, read=tuple(read),
        )  # fmt: skip

    def _ask(self, text: str) -> bool | None:
        assert self._judge is not None
        verdict = self._judge.ask(question(text), k=self._samples)
        with self._lock:
            self.cost += verdict.cost
            self.unanswered += verdict.answer is None
        return None if verdict.answer is None else verdict.answer == "yes"


def _variant(chain: Chain) -> str:
    """What tells a chain's variant from the paper's plain replication; empty when nothing does."""
    cycle = chain.key.cycle.partition("@")[0]
    words = ("" if cycle == "replicate" else cycle, chain.key.settings.label)
    return ", ".join(word for word in words if word)


def _delays(chains: Sequence[Followed], *, judged: bool) -> tuple[Delay, ...]:
    """Per judge and editor: over all chains, then over the repeats of each source."""
    found: list[Delay] = []
    ways: tuple[By, ...] = ("judge", "rule") if judged else ("rule",)
    for editor, variant in sorted({(c.editor, c.variant) for c in chains}):
        own = [c for c in chains if (c.editor, c.variant) == (editor, variant)]
        for by in ways:
            found.append(delay(own, by, editor, variant))
            for source in sorted({c.source for c in own}):
                found.append(
                    delay([c for c in own if c.source == source], by, editor, variant, source)
                )
    return tuple(one for one in found if one.runs)


def delay(
    chains: Sequence[Followed], by: By, editor: str = "", variant: str = "", source: str = ""
) -> Delay:
    """The delay over chains: mean ± sd of those that notice, Kaplan-Meier median of all."""
    from convergebench.analysis.survival import survival

    told = [one for one in (chain.delay(by) for chain in chains) if one is not None]
    when = [step for step, noticed in told if noticed]
    horizon = max((step for step, _ in told), default=0)
    curve = survival([float(step) for step, _ in told], [noticed for _, noticed in told])
    return Delay(
        editor=editor, variant=variant, source=source, by=by,
        runs=len(told), noticed=len(when),
        mean=statistics.fmean(when) if when else None,
        sd=statistics.stdev(when) if len(when) > 1 else None,
        median=curve.median if curve else None,
        horizon=horizon,
    )  # fmt: skip


def concord(chains: Sequence[Followed]) -> Concord:
    """How often word list and model say the same, and Cohen's κ."""
    pairs = [(r.rule, r.judge) for c in chains for r in c.read if r.judge is not None]
    both = len(pairs)
    yes_yes = sum(rule and said for rule, said in pairs)
    rule_only = sum(rule and not said for rule, said in pairs)
    judge_only = sum(bool(said) and not rule for rule, said in pairs)
    same = both - rule_only - judge_only
    kappa = None
    if both:
        rule, said = (yes_yes + rule_only) / both, (yes_yes + judge_only) / both
        chance = rule * said + (1 - rule) * (1 - said)
        kappa = (same / both - chance) / (1 - chance) if chance < 1 else None
    return Concord(
        both=both, same=same, yes_yes=yes_yes, rule_only=rule_only, judge_only=judge_only,
        kappa=kappa,
    )  # fmt: skip


def _notes(chains: Sequence[Followed], judge: Judge | None) -> list[str]:
    notes = []
    silent = sum(chain.steps - len(chain.read) for chain in chains)
    if silent > 0:
        notes.append(f"{counted(silent, 'step')} of these chains came without a summary.")
    if judge is None:
        notes.append(
            f"Judged by the word list (version {words().version}), which only stands in for the "
            "paper's model as judge: --judge NAME asks one."
        )
        return notes
    caveats = {same_vendor(judge.name, chain.editor) for chain in chains}
    return [*notes, *sorted(caveat for caveat in caveats if caveat)]
