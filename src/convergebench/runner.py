"""Running: walk every chain of a suite with every editor, and keep everything.

Chains go in parallel, the steps of a chain in order. A frame and its record are durable before the
next call of that chain is made, so a run can be killed at any moment and goes on with the exact
next call.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from convergebench.chain import Chain, ChainKey, FrameRef, count_outcomes
from convergebench.editor import Editor
from convergebench.engines import open_engine
from convergebench.engines.editing import AwayEditor, placed
from convergebench.errors import SettingsError, StoreMismatch, SuiteError
from convergebench.frame import Frame
from convergebench.heartbeat import beating
from convergebench.money.ledger import Ledger, mend
from convergebench.planner import concurrency, plan_job
from convergebench.planner.job import Job, as_config, prepare
from convergebench.planner.plans import Plan
from convergebench.planner.preflight import gathered
from convergebench.registry import open_editor
from convergebench.remote.address import Place, place_of
from convergebench.runspec import CONTROLS, RunSpec
from convergebench.store import RunStore
from convergebench.store.reading import uncollected
from convergebench.table import Table
from convergebench.walk import INTERRUPTED, OVER_BUDGET, Observer, Progress, Walk
from convergebench.wording import counted, in_order

RESERVE: Final = 4
"""Disk held back per call in flight, in sizes of the largest source."""
LARGE: Final = 2_000_000
"""Pixels above which it takes seconds to draw a source."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended; `where` are the words of its command that name the engine."""

    path: Place
    chains: int
    chains_done: int
    steps_made: int
    outcomes: Mapping[str, int]
    spent: float
    stopped: str = ""
    notes: tuple[str, ...] = ()
    where: str = ""

    @property
    def complete(self) -> bool:
        """Whether every chain went to its end, good or bad."""
        return self.chains_done == self.chains

    @property
    def over_budget(self) -> bool:
        """Whether chains wait for a larger budget."""
        return OVER_BUDGET in self.stopped

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it."""
        return self.stopped == INTERRUPTED

    @property
    def table(self) -> Table:
        """The outcomes as a table."""
        notes = list(self.notes)
        if failed := self.outcomes.get("failed", 0):
            notes.append(
                f"{counted(failed, 'chain')} ended in failure. Take up what failed again with: "
                f"convergebench run {self.path}{self.where} --retry-failed"
            )
        if self.stopped:
            notes.append(f"Stopped: {self.stopped}.")
        if not self.complete:
            more = " --budget MORE" if self.over_budget else ""
            notes.append(f"Go on with: convergebench run {self.path}{self.where}{more}")
        title = (
            f"{self.path}: {self.chains_done} of {self.chains} chains done, "
            f"{self.steps_made} steps made now, ${self.spent:.2f} spent in all"
        )
        return Table(title, ("outcome", "steps"), sorted(self.outcomes.items()), notes)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "chains": self.chains,
            "chains_done": self.chains_done,
            "complete": self.complete,
            "steps_made": self.steps_made,
            "outcomes": dict(self.outcomes),
            "spent": self.spent,
            "stopped": self.stopped,
            "notes": list(self.notes),
        }


def run(
    directory: str | os.PathLike[str],
    config: str | os.PathLike[str] | RunSpec | Mapping[str, Any] | None = None,
    *,
    retry_failed: bool = False,
    allow_missing: bool = False,
    engine: str = "local",
    address: str | None = None,
    observe: Observer | None = None,
    **overrides: Any,
) -> RunResult:
    """Walk all chains, from where they are to where they should be.

    Args:
        directory: The run directory; made if it is not there, resumed if it is.
        config: A run.toml, a table of the same keys, or a RunSpec. An existing run needs none.
        retry_failed: Take up again the chains whose last outcome was `failed`.
        allow_missing: Take a restoration whose methods lack pictures: those chains fail.
        engine: Where editors work that declare resources: `local`, in this process, or `ray`, on a
            cluster, one for each GPU. Services are called from here.
        address: Of the Ray cluster: `auto`, `HOST:PORT` or `ray://HOST:PORT`; without one, Ray is
            started on this machine.
        observe: Called with a Progress after every event, one at a time.
        **overrides: Single settings, named as in run.toml.
    """
    open_engine(engine, address).close()  # a wrong address shows before sources are drawn
    job = prepare(place_of(directory), as_config(config), **overrides)
    keys = job.spec.keys(job.suite)
    editors = {name: open_editor(name) for name in dict.fromkeys(k.editor for k in keys)}
    origins = gathered(
        job,
        keys,
        editors,
        lambda name: _origin(job, name, len(keys), observe),
        allow_missing=allow_missing,
    )
    sources = {name: source for name, (source, _) in origins.items()}
    planned = plan_job(job, keys, editors, sources, retry_failed=retry_failed)
    _require_ready(planned)
    _require_budget(planned)
    if observe is not None:
        for note in job.notes:  # before anything is spent
            steps = planned.calls + planned.done
            observe(Progress(len(keys), 0, steps, planned.done, 0, planned.spent, note))
    with contextlib.ExitStack() as held:
        chains = Counter(key.editor for key in keys)
        editors = held.enter_context(placed(editors, engine, address, chains))
        store = job.store or RunStore.create(directory, job.suite, job.size)
        reserve = _reserve(job, editors, keys, origins)
        notes = held.enter_context(store.writing("run", reserve=reserve))
        if engine != "local":
            notes += _at_home(editors) + _on_cores(editors)
        heart = held.enter_context(beating(store, "run"))
        observe = heart.around(observe)
        store.write_json("spec.json", _kept(job.spec))
        # Restorations are compared with each other, and with no floor.
        kinds = {job.suite.cycle_of(key.cycle).kind for key in keys}
        others = {} if kinds == {"restore"} else _other_sources(job, origins, observe)
        refs = _keep_sources(store, {**origins, **others})
        ledger = Ledger(store)
        with uncollected():
            mended = mend(store, ledger, store.chains())
            notes += mended.notes
            known = {chain.key: chain for chain in mended.chains}
            walk = Walk(
                store,
                job.spec,
                editors,
                {key: _chain(store, key, known, refs, editors) for key in keys},
                begun=set(known),
                spent=sum(chain.spent for chain in known.values()),
                ledger=ledger,
                begun_tasks=mended.open,
                retry_failed=retry_failed,
                observe=observe,
            )
        versions = {name: editor.spec.version for name, editor in editors.items()}
        store.log_session("start", command="run", pid=os.getpid(), editors=versions, notes=notes)
        for note in notes:  # what was mended, before anything is spent
            steps = planned.calls + planned.done
            observe(Progress(len(keys), 0, steps, planned.done, 0, walk.budget.spent, note))
        walk.go()
        heart.stopped = walk.stopped
        store.log_session("end", pid=os.getpid(), stopped=walk.stopped, steps=walk.made)
    walked = list(walk.chains.values())
    return RunResult(
        path=store.place,
        chains=len(keys),
        chains_done=sum(walk.is_done(chain) for chain in walked),
        steps_made=walk.made,
        outcomes=count_outcomes(walked),
        spent=walk.budget.spent,
        stopped=walk.stopped,
        notes=(*job.notes, *notes, *walk.notes),
        where=_where(engine, address),
    )


def _where(engine: str, address: str | None) -> str:
    """The words of a command that say where it works; no run remembers them."""
    named = "" if engine == "local" else f" --engine {engine}"
    return f"{named} --address {address}" if address else named


def _at_home(editors: Mapping[str, Editor]) -> list[str]:
    """A sentence on the editors that an engine does not take elsewhere, where there are some."""
    staying = [
        name
        for name, editor in editors.items()
        if name not in CONTROLS and not isinstance(editor, AwayEditor)
    ]
    if not staying:
        return []
    return [
        f"Called from this machine: {in_order(staying)}. On the cluster work editors that "
        "are free and say what they take: local models, python:…,price=0,gpus=1."
    ]


def _on_cores(editors: Mapping[str, Editor]) -> list[str]:
    """A sentence on the editors that wish for a GPU where the cluster has none."""
    names = [n for n, one in editors.items() if isinstance(one, AwayEditor) and one.on_cores]
    if not names:
        return []
    return [f"The cluster has no GPU: cores do the work of {in_order(names)}, which may take long."]


def _require_ready(planned: Plan) -> None:
    """Raise SettingsError for a run with an editor that cannot be called here."""
    for row in planned.rows:
        if row.spec.lacks and row.calls:
            raise SettingsError(f"{row.editor} cannot be run here: {row.spec.lacks}")


def _require_budget(planned: Plan) -> None:
    """Raise SettingsError for a run that would spend money nobody has agreed to."""
    for row in planned.rows:
        if planned.budget is not None and row.dollars is None:
            raise SettingsError(
                f"the price of {row.editor} is unknown, so a budget cannot be held. Leave the "
                "budget out, or run the editor in a directory of its own without one."
            )
    # What is known of the costs, where the price of another editor is not.
    known = [row.price for row in planned.rows if row.price]
    low, expected, high = (
        sum(getattr(price, name) for price in known) for name in ("low", "expected", "high")
    )
    if planned.budget is None and high > 0:
        unknown = next((row.editor for row in planned.rows if row.price is None), "")
        spread = f" (${low:.2f} to ${high:.2f})" if high > low else ""
        agreed = math.ceil(high * 100 - 1e-6) / 100
        paid = sum(row.calls for row in planned.rows if row.price and row.price.high > 0)
        raise SettingsError(
            f"this run would spend about ${expected:.2f}{spread} on {paid} calls, and no "
            f"budget is set. Agree with --budget {agreed:.2f} (or less: it is never exceeded)."
            + (f" {unknown}, whose price is unknown, needs a run of its own." if unknown else "")
        )


def _reserve(
    job: Job,
    editors: Mapping[str, Editor],
    keys: list[ChainKey],
    origins: Mapping[str, tuple[Frame, Frame | None]],
) -> int:
    """Bytes to hold back, so that every reply in flight can be saved when the disk fills up."""
    in_flight = sum(
        min(concurrency(job.spec, editor.spec), sum(key.editor == name for key in keys))
        for name, editor in editors.items()
    )
    largest = max(len(source.data) for source, _ in origins.values())
    return max(2**20, largest * RESERVE) * in_flight


def _keep_sources(
    store: RunStore, origins: Mapping[str, tuple[Frame, Frame | None]]
) -> dict[str, tuple[FrameRef, FrameRef | None]]:
    """Store the sources and remember which is which, so that a resume needs no suite folder."""
    refs = {}
    for name, (source, truth) in origins.items():
        store.put(source)
        if truth is not None:
            store.put(truth)
        refs[name] = (FrameRef.of(source), FrameRef.of(truth) if truth else None)
    told = {
        name: [ref.model_dump(mode="json") if ref else None for ref in pair]
        for name, pair in refs.items()
    }
    before = store.read_json("sources.json") or {}
    if {**before, **told} != before:
        store.write_json("sources.json", {**before, **told})
    return refs


def _origin(
    job: Job, name: str, chains: int, observe: Observer | None
) -> tuple[Frame, Frame | None]:
    """A source and its truth; of a large one that is drawn now, which takes a while, it is told."""
    source = job.suite.source_named(name)
    width, height = source.drawn_size(job.size)
    known = (job.store.read_json("sources.json") or {}) if job.store else {}
    if observe and source.draw and width * height > LARGE and name not in known:
        told = f"drawing {name}, {width}×{height}"
        observe(Progress(chains, 0, 0, 0, 0, 0.0, told))
    return job.origin(name)


def _other_sources(
    job: Job, origins: Mapping[str, tuple[Frame, Frame | None]], observe: Observer | None
) -> dict[str, tuple[Frame, Frame | None]]:
    """The suite's other sources, as far as they can be had: the floor is a mean over the suite."""
    found = {}
    for source in job.suite.source:
        if source.name not in origins:
            with contextlib.suppress(SuiteError):
                found[source.name] = _origin(job, source.name, len(origins), observe)
    return found


def _chain(
    store: RunStore,
    key: ChainKey,
    known: Mapping[ChainKey, Chain],
    refs: Mapping[str, tuple[FrameRef, FrameRef | None]],
    editors: Mapping[str, Editor],
) -> Chain:
    version = editors[key.editor].spec.version
    chain = known.get(key) or Chain(key, *refs[key.source], version)
    if chain.editor_version != version:
        raise StoreMismatch(
            f"{store.place} was begun with {key.editor} version {chain.editor_version}, installed "
            f"is version {version}. Use another directory; the two cannot be mixed."
        )
    return chain


def _kept(spec: RunSpec) -> dict[str, Any]:
    """The spec as stored: the suite itself is in suite.json, and its path is nobody's business."""
    return spec.model_dump(mode="json", exclude_unset=True, exclude={"suite", "size"})
