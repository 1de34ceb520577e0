"""`import_run`: a folder, a table or an archive of others becomes a run of ours, or extends one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from convergebench.cycle import CycleKind
from convergebench.disk import make_directory
from convergebench.errors import ImportProblem, PluginBroken, UnknownName
from convergebench.importer.assembly import Assembly, assemble, shown
from convergebench.importer.deposit import Deposit
from convergebench.importer.found import Conflict, Finds, Layout, Look, Wishes
from convergebench.importer.pattern import PATTERN
from convergebench.importer.premises import Premises, premises_of
from convergebench.importer.records import Records, records_of
from convergebench.importer.result import ImportResult, provenance
from convergebench.registry import names, open_plugin, open_suite
from convergebench.store import RunStore
from convergebench.suite import Suite


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
    if len(yes) == 1:
        return yes[0]
    if yes:
        reasons = "; ".join(f"{layout.name} ({why})" for layout, why in yes)
        raise ImportProblem(
            f"{look.root} can be read in several ways: {reasons}. Say --layout NAME."
        )
    if not look.files:
        raise ImportProblem(f"{look.root} is empty: there is nothing to import")
    raise ImportProblem(
        f"{look.root} is laid out in a way no importer knows ({len(look.files)} files, the first: "
        f"{shown(look.files)}). Say where things are, as in "
        "--pattern '{editor}/{source}/step_{step}.png'; `convergebench import --layouts` lists "
        "what is known."
    )


def import_run(
    source: str | os.PathLike[str],
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
        source: A folder, a table of scores, an archive or a film.
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
    root = Path(source)
    if not root.exists():
        raise ImportProblem(f"{root} does not exist. Give the folder or file to import.")
    told = _checked(replace(wishes or Wishes(), **more))
    look = Look(root)
    if layout is None and (told.pattern or told.source_pattern):
        layout = PATTERN.name
    chosen, why = (_layout(layout), "as asked") if layout else recognise(look)
    whole = root.resolve()
    origin = told.origin or (whole.stem if look.is_file else whole.name)
    finds = chosen.read(look, told)
    try:
        made = assemble(finds, told)
        if not made.lines:
            raise ImportProblem(f"{root}: layout {chosen.name!r} found nothing to import")
        result = ImportResult.of(root.name, chosen.name, why, origin, finds, made, told)
        if dry_run:
            return result
        _refuse(finds.conflicts + made.conflicts, told)
        if to is None:
            raise ImportProblem("say where the run is to be: --to DIRECTORY (or --dry-run)")
        return _bring(Path(to), finds, made, told, result, suite, observe)
    finally:
        if finds.cleanup:
            finds.cleanup()


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


def _refuse(conflicts: list[Conflict], wishes: Wishes) -> None:
    if conflicts and wishes.conflicts == "refuse":
        first = conflicts[0]
        raise ImportProblem(
            f"{len(conflicts)} keys have values that differ, the first being {first.key}. "
            "--dry-run shows them; --conflicts repeat keeps all of them as repeats."
        )


def _bring(
    path: Path,
    finds: Finds,
    made: Assembly,
    wishes: Wishes,
    result: ImportResult,
    suite: str | Path | Suite | None,
    observe: Callable[[int, int], None] | None,
) -> ImportResult:
    store = RunStore.open(path) if RunStore.is_run(path) else None
    wanted = _suite(suite, store)
    premises = premises_of(made.lines, finds, wishes, result.origin, wanted, store)
    result.notes += premises.notes
    if store is None:
        store = RunStore.create(path, premises.suite, premises.suite.size, imported=wanted is None)
    elif suite is not None:
        store.require(premises.suite, store.info.size)
    with store.writing("run"), store.writing("score"), Deposit(store) as deposit:
        deposit.add(premises.frames)
        places = [place for line in made.lines for place in line.places]
        brought = deposit.frames(places, observe)
        records = records_of(made.lines, premises, brought, store, finds, wishes, result.origin)
        try:
            _refuse(records.conflicts, wishes)
        except ImportProblem:
            deposit.take_back()
            raise
        store = store.extended(premises.suite) if wanted is None else store
        _keep(store, premises, records, deposit, result)
    result.brought(records, deposit.placed, deposit.bytes, store.path)
    return result


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
        if pair[0]
    }
    name, lines = provenance(result, records)
    if not records.chains and records.scores.is_empty() and {**before, **told} == before:
        return
    deposit.chains(records.chains)
    if {**before, **told} != before:
        store.write_json("sources.json", {**before, **told})
    if not records.scores.is_empty():
        store.add_scores(records.scores)
        store.merge_scores()
    make_directory(store.path / "imports")
    if not (store.path / name).exists():
        deposit.file(name, lines)
    store.log_session("start", command="import", pid=os.getpid(), origin=result.origin)
