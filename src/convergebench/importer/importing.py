"""`import_run`: a folder, a table or an archive of others becomes a run of ours, or extends one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from convergebench.cycle import CycleKind
from convergebench.disk import make_directory
from convergebench.errors import ImportProblem, InputError, PluginBroken, UnknownName
from convergebench.importer import pairing
from convergebench.importer.assembly import Assembly, assemble
from convergebench.importer.deposit import Deposit
from convergebench.importer.fitting import fitting
from convergebench.importer.found import Conflict, Finds, Layout, Look, Place, Wishes
from convergebench.importer.pattern import PATTERN
from convergebench.importer.premises import Premises, pictures_of, premises_of
from convergebench.importer.records import Records, records_of
from convergebench.importer.result import ImportResult, provenance
from convergebench.importer.whole import Whole
from convergebench.registry import names, open_plugin, open_suite
from convergebench.remote.address import require_directory
from convergebench.store import RunStore
from convergebench.suite import Suite
from convergebench.wording import counted, shown

NUMBERED: Final = ("pattern", "sequence", "table", "webdataset")
"""Layouts in which `--first` says what number the source has."""


def layouts() -> dict[str, Layout]:
    """Every layout that can be used, by name, the pattern last; `plugins` lists broken ones."""
    found = {}
    for name in names("layouts"):
        with contextlib.suppress(PluginBroken):
            found[name] = _layout(name)
    return {**found, PATTERN.name: PATTERN}


def recognise(look: Look) -> tuple[Layout, str]:
    """The layout of a folder or file, and why. Raises ImportProblem unless it is exactly one."""
    said = [(layout, layout.recognise(look)) for layout in layouts().values()]
    yes = [(layout, why) for layout, why in said if why]
    yes = [(layout, why) for layout, why in yes if not layout.general] or yes
    yes = [(layout, why) for layout, why in yes if isinstance(layout, Whole)] or yes
    if len(yes) == 1:
        return yes[0]
    if yes:
        reasons = "; ".join(f"{layout.name} ({why})" for layout, why in yes)
        raise ImportProblem(
            f"{look.root} can be read in several ways: {reasons}. Say --layout NAME."
        )
    if not look.files:
        raise ImportProblem(f"{look.root} is empty: there is nothing to import")
    if RunStore.is_run(look.root):
        raise ImportProblem(f"{look.root} is a run already: score it, or report it with others")
    if look.is_file:
        raise ImportProblem(
            f"{look.root} is no file an importer knows. A table of scores is told by its columns, "
            "as in --column editor=MODEL --column source=IMAGE --column step=N --metric psnr=PSNR; "
            "a bundle is unpacked with `convergebench unbundle`; "
            "`convergebench import --layouts` lists what is known."
        )
    raise ImportProblem(
        f"{look.root} is laid out in a way no importer knows ({counted(len(look.files), 'file')}, "
        f"the first: {shown(look.files)}). Say where things are, as in "
        "--pattern '{editor}/{source}/step_{step}.png'; `convergebench import --layouts` lists "
        "what is known."
    )


def import_run(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str] | None = None,
    *,
    layout: str | None = None,
    wishes: Wishes | None = None,
    suite: str | Path | Suite | None = None,
    dry_run: bool = False,
    observe: Callable[[int, int], None] | None = None,
    **more: Any,
) -> ImportResult:
    """Import images or scores that were made elsewhere.

    Args:
        path: A folder, a table of scores, an archive or a film.
        to: The run directory: made if it is not there, extended if it is.
        layout: How it is laid out; recognised where not given.
        wishes: What to read how; single wishes may be given as keywords instead.
        suite: A suite whose sources and cycles these are, so that the run compares with new ones.
        dry_run: Only tell what would be read, what is missing, what conflicts.
        observe: Called with (done, total) as pictures are brought in.
        **more: Single wishes, named as in `Wishes`.

    Raises:
        ImportProblem: What is there is not what it should be, or contradicts itself or the run.
    """
    root = Path(path)
    if not root.exists():
        raise ImportProblem(f"{root} does not exist. Give the folder or file to import.")
    told = _checked(replace(wishes or Wishes(), **more))
    look = Look(root)
    chosen, why = _chosen(look, layout, told)
    if isinstance(chosen, Whole):
        if suite is not None:
            raise ImportProblem(f"{root} has its own suite: import it without --suite")
        into = require_directory(to, "import") if to is not None else None
        return chosen.restore(look, why, told, into, dry_run=dry_run, observe=observe)
    whole = root.resolve()
    origin = told.origin or (whole.stem if look.is_file else whole.name)
    finds = chosen.read(look, told)
    try:
        made = assemble(finds, told)
        if not made.lines:
            raise ImportProblem(f"{root}: layout {chosen.name!r} found nothing to import")
        made.notes += [*look.notes, *_not_heard(told, made, finds, chosen.name)]
        result = ImportResult.of(root.name, chosen.name, why, origin, finds, made, told)
        into = require_directory(to, "import") if to is not None else None
        if dry_run:
            result.notes += pairing.unfit(made.lines, finds, pictures_of(made.lines, []))
            if into is not None and RunStore.is_run(into):
                _look_at(RunStore.open(into), _Work(finds, made, told, result, suite, observe))
            return result
        _refuse(finds.conflicts + made.conflicts, told)
        if into is None:
            raise ImportProblem("say where the run is to be: --to DIRECTORY (or --dry-run)")
        _bring(into, _Work(finds, made, told, result, suite, observe))
        return result
    finally:
        if finds.cleanup:
            finds.cleanup()


@dataclass(frozen=True)
class _Work:
    """What an import works on."""

    finds: Finds
    made: Assembly
    wishes: Wishes
    result: ImportResult
    suite: str | Path | Suite | None
    observe: Callable[[int, int], None] | None


def _chosen(look: Look, layout: str | None, wishes: Wishes) -> tuple[Layout, str]:
    pattern = wishes.pattern or wishes.source_pattern
    if pattern and layout not in (None, PATTERN.name):
        raise ImportProblem(f"--pattern and --layout {layout} contradict each other: give one")
    if pattern:
        return PATTERN, "as asked"
    if wishes.truth_pattern:
        raise ImportProblem("--truths says where truths are only beside --pattern")
    if layout is not None:
        return _layout(layout), "as asked"
    if look.is_file and (wishes.columns or wishes.metrics):
        return _layout("table"), "its columns are told"
    return recognise(look)


def _not_heard(wishes: Wishes, made: Assembly, finds: Finds, layout: str) -> list[str]:
    """Wishes that a layout did not grant, because what it read says otherwise."""
    kinds = {told.kind for told in finds.cycles.values()}
    tracks = [line.track for line in made.lines]
    prompts = {prompt for told in finds.cycles.values() for prompt in told.prompts if prompt}
    lost = [prompt for prompt in wishes.prompts if prompt not in prompts]
    asked = (
        ("--prompt", lost[0] if lost else None, prompts),
        ("--kind", wishes.kind, kinds),
        ("--editor", wishes.editor, {track.editor for track in tracks}),
        ("--source", wishes.source, {track.source for track in tracks}),
        ("--cycle", wishes.cycle, {track.cycle for track in tracks}),
    )
    notes = [
        f"{flag} {value} is not used: what was read has its own, {shown(sorted(map(str, found)))}."
        for flag, value, found in asked
        if value and found and value not in found
    ]
    if wishes.first and layout not in NUMBERED:
        notes.append(f"--first {wishes.first} is not used: layout {layout!r} knows its source.")
    if wishes.every > 1 and layout != "film":
        notes.append(f"--every {wishes.every} is not used: this is no film.")
    return notes


def _checked(wishes: Wishes) -> Wishes:
    """These wishes, as far as they can be granted at all. Raises UnknownName, ImportProblem."""
    if wishes.kind is not None and wishes.kind not in get_args(CycleKind):
        raise UnknownName("kind of cycle", wishes.kind, get_args(CycleKind))
    if wishes.conflicts not in ("refuse", "repeat"):
        raise ImportProblem(f"--conflicts is 'refuse' or 'repeat', got {wishes.conflicts!r}")
    return wishes


def _layout(name: str) -> Layout:
    if name == PATTERN.name:
        return PATTERN
    layout = open_plugin("layouts", name)
    if not isinstance(layout, Layout):
        raise PluginBroken(f"layout {name!r}: its entry point is no Layout")
    return layout


def _refuse(conflicts: Sequence[Conflict], wishes: Wishes, *, with_run: bool = False) -> None:
    if conflicts and wishes.conflicts == "refuse":
        what = "chain" if with_run else "key"
        told = f"{counted(len(conflicts), what)} with {'pictures' if with_run else 'values'}"
        raise ImportProblem(
            f"{told} that differ{' from the run' if with_run else ''}, the first being "
            f"{conflicts[0].key} ({' or '.join(conflicts[0].values[:2])}). --dry-run shows all; "
            "--conflicts repeat keeps all of them as repeats."
        )


def _look_at(store: RunStore, work: _Work) -> None:
    """Tell what an import would do to a run, without writing."""
    premises = _premises(work, store)
    with Deposit(store, writing=False) as deposit:
        brought = deposit.frames(_places(work), work.observe)
    records = records_of(work.made.lines, premises, brought, store, work.finds, work.result.origin)
    work.result.notes += premises.notes
    work.result.take(records)


def _bring(path: Path, work: _Work) -> None:
    if RunStore.is_run(path):
        store = RunStore.open(path)
        with store.writing("score"), store.writing("run"):
            # Again, now that nobody else can write: another import may have come first.
            store = RunStore.open(path)
            _deposit(store, _premises(work, store), work)
        return
    premises = _premises(work, None)
    own = _suite(work.suite, None) is None
    store = RunStore.create(path, premises.suite, premises.suite.size, imported=own)
    try:
        with store.writing("score"), store.writing("run"):
            _deposit(store, premises, work)
    except InputError:
        if not store.chain_files():
            shutil.rmtree(path)  # made by this call, and refused
        raise


def _premises(work: _Work, store: RunStore | None) -> Premises:
    wanted = _suite(work.suite, store)
    if wanted is None:
        return premises_of(work.made.lines, work.finds, work.wishes, work.result.origin, store)
    if store is not None:
        store.require(wanted, store.info.size)
    return fitting(work.made.lines, wanted, store)


def _places(work: _Work) -> list[Place]:
    return [place for line in work.made.lines for place in line.places]


def _deposit(store: RunStore, premises: Premises, work: _Work) -> None:
    result = work.result
    with Deposit(store) as deposit:
        try:
            deposit.add(premises.frames)
            brought = deposit.frames(_places(work), work.observe)
            for place, ref in premises.read.items():
                if brought[place].ref.sha256 != ref.sha256:
                    raise ImportProblem(f"{place.name} changed while it was read: import it again")
            records = records_of(
                work.made.lines, premises, brought, store, work.finds, result.origin
            )
            _refuse(records.conflicts, work.wishes, with_run=True)
        except InputError:
            deposit.take_back()
            raise
        if store.info.imported:
            store = store.extended(premises.suite)
        result.notes += premises.notes
        result.take(records)
        _keep(store, premises, records, deposit, result)
        result.written(store.path, deposit.placed, deposit.bytes)


def _suite(asked: str | Path | Suite | None, store: RunStore | None) -> Suite | None:
    """The suite that everything must fit; None where the import makes its own."""
    if asked is not None:
        return asked if isinstance(asked, Suite) else open_suite(asked)
    if store is not None and not store.info.imported:
        return store.suite
    return None


def _keep(
    store: RunStore, premises: Premises, records: Records, deposit: Deposit, result: ImportResult
) -> None:
    """Write all that is new; nothing at all when nothing is."""
    before = store.read_json("sources.json") or {}
    told = {
        name: [ref.model_dump(mode="json") if ref else None for ref in pair]
        for name, pair in premises.refs.items()
        if any(pair)
    }
    if not records.chains and records.scores.is_empty() and {**before, **told} == before:
        return
    name, lines = provenance(result, records)
    make_directory(store.path / "imports")
    if not (store.path / name).exists():
        deposit.file(name, lines)
    if {**before, **told} != before:
        store.write_json("sources.json", {**before, **told})
    if not records.scores.is_empty():
        store.add_scores(records.scores)
        store.merge_scores()
    store.log_session("start", command="import", pid=os.getpid(), origin=result.origin)
    deposit.chains(records.chains)
    store.log_session("end", command="import", pid=os.getpid(), origin=result.origin)
