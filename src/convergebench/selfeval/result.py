"""What self-evaluation came to: every summary's verdict, every run's delay, and who agrees."""

from __future__ import annotations

from typing import Any, Literal

from convergebench.cycle import Record
from convergebench.table import Cell, Table
from convergebench.wording import counted

By = Literal["rule", "judge"]


class Read(Record):
    """One step's summary as judged; null where a judge gave no answer or was not asked."""

    step: int
    rule: bool
    words: tuple[str, ...] = ()
    judge: bool | None = None


class Followed(Record):
    """One chain.

    Attributes:
        chain: Its id.
        editor, variant, source, repeat: What it is.
        steps: Frames that were made.
        read: The steps that have a summary.
    """

    chain: str
    editor: str
    variant: str
    source: str
    repeat: int
    steps: int
    read: tuple[Read, ...]

    def delay(self, by: By) -> tuple[int, bool] | None:
        """The first step that is judged to mention damage, and True; or how far it was followed.

        None where nothing was judged.
        """
        told = [(one.step, one.rule if by == "rule" else one.judge) for one in self.read]
        known = [(step, said) for step, said in told if said is not None]
        first = next((step for step, said in known if said), None)
        if first is not None:
            return first, True
        return (known[-1][0], False) if known else None


class Delay(Record):
    """The delay over the repeats of one source, or over all chains of an editor.

    Attributes:
        editor, variant, source: Of what; `source` is empty over all of them.
        by: Who judged.
        runs: Chains with a verdict.
        noticed: Those that mention damage at some step; the others are censored.
        mean, sd: Over those that do; the standard deviation has n − 1 and needs two.
        median: Kaplan-Meier median over all of them; null where fewer than half notice.
        horizon: How far the longest was followed: to where it notices, or to its last verdict.
    """

    editor: str
    variant: str
    source: str
    by: By
    runs: int
    noticed: int
    mean: float | None
    sd: float | None
    median: float | None
    horizon: int

    @property
    def label(self) -> str:
        """As the paper prints it: `20 ± 4`; with the censored ones counted."""
        if self.mean is None:
            return f"> {self.horizon}"
        spread = f" ± {self.sd:.0f}" if self.sd is not None else ""
        missed = self.runs - self.noticed
        return f"{self.mean:.0f}{spread}" + (f", {missed} never" if missed else "")


class Concord(Record):
    """How the word list agrees with the model, over the steps that both judged."""

    both: int
    same: int
    yes_yes: int
    rule_only: int
    judge_only: int
    kappa: float | None

    @property
    def share(self) -> float | None:
        """Share of the steps on which they agree."""
        return self.same / self.both if self.both else None


class SelfEvaluation(Record):
    """Self-evaluation of one run."""

    run: str
    words: int
    judge: str = ""
    template: str = ""
    chains: tuple[Followed, ...]
    delays: tuple[Delay, ...]
    concord: Concord | None = None
    unanswered: int = 0
    cost: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """Delays by editor and source, the editor's own line first."""
        who = {"rule": "word list", "judge": self.judge}
        rows: list[tuple[Cell, ...]] = [
            (
                f"{d.editor} · {d.variant}" if d.variant else d.editor,
                d.source or "all",
                who[d.by],
                d.label,
                "> " + str(d.horizon) if d.median is None else f"{d.median:g}",
                f"{d.noticed}/{d.runs}",
            )
            for d in self.delays
        ]
        head = ("editor", "source", "judged by", "delay", "median", "noticed")
        notes = list(self.notes)
        if self.concord and self.concord.share is not None:
            kappa = "" if self.concord.kappa is None else f", κ = {self.concord.kappa:.2f}"
            notes.append(
                f"The word list agrees with {self.judge} on {self.concord.same} of "
                f"{counted(self.concord.both, 'step')} ({self.concord.share:.0%}{kappa})."
            )
        if self.unanswered:
            notes.append(f"{counted(self.unanswered, 'question')} got no answer: null, not no.")
        if self.judge:
            notes.append(f"The judge's answers cost ${self.cost:.4f}; they are kept.")
        return Table(f"{self.run}: self-evaluation delay, in steps", head, rows, notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return self.model_dump(mode="json")
