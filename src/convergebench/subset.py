"""Which part of a suite a run walks, where not all of its files are here.

A new run takes what is here; a run once begun keeps to the sources it has, whatever is brought
later: the floor of its numbers is a mean over them.
"""

from __future__ import annotations

from convergebench.errors import SuiteError
from convergebench.runspec import RunSpec
from convergebench.suite import Suite
from convergebench.wording import counted, in_order


def chosen(suite: Suite, spec: RunSpec) -> Suite:
    """What a new run can walk of a suite. Raises SuiteError where what it asks for is missing."""
    found = suite.available()
    for what, asked, all_, left in (
        ("source", spec.sources, suite.source, found.source),
        ("cycle", spec.cycles, suite.cycle, found.cycle),
    ):
        gone = {item.name for item in all_} - {item.name for item in left}
        lost = [name for name in asked if name in gone]
        if lost:
            needs = "its file is" if what == "source" else "the files of its sources are"
            raise SuiteError(
                f"{what} {lost[0]!r} of suite {suite.label}: {needs} not here. "
                f"`{suite.preparing}` brings what is missing."
            )
    return found


def recorded(suite: Suite, before: Suite) -> Suite:
    """The suite of a run that was begun: the subset that is recorded, if it is one of this suite.

    A suite that is another one is returned as it is, to be refused.
    """
    same = (suite.label, suite.whole_hash()) == (before.label, before.whole_hash())
    if not (before.subset and same):
        return suite
    return before.model_copy(update={"root": suite.root, "opened_as": suite.opened_as})


def idle_notes(suite: Suite, spec: RunSpec) -> tuple[str, ...]:
    """Which of the sources asked for no cycle asked for fits, so that they are left out."""
    cycles = [suite.cycle_named(name) for name in spec.cycles] or list(suite.cycle)
    sources = [suite.source_named(name) for name in spec.sources] or list(suite.source)
    idle = [s.name for s in sources if not any(suite.applies(c, s) for c in cycles)]
    if not idle:
        return ()
    return (
        f"{counted(len(idle), 'source', 'is', 'are')} left out ({in_order(idle)}): none of the "
        "cycles fits, because the source has no region for its edits.",
    )


def subset_notes(suite: Suite, whole: Suite, *, resumed: bool) -> tuple[str, ...]:
    """What a user must know about a subset, a sentence each."""
    if not suite.subset:
        return ()
    names = {source.name for source in suite.source}
    out = [source.name for source in whole.source if source.name not in names]
    told = f"Not the whole suite: {suite.full_label}."
    if resumed:
        rest = f" Not in it: {in_order(out)}." if out else ""
        return (f"{told}{rest} A run keeps to the sources it was begun with.",)
    return (
        f"{told} {counted(len(out), 'source', 'is', 'are')} not here ({in_order(out)}): "
        f"`{suite.preparing}` brings what is missing. A run once begun keeps to its sources.",
    )
