"""Layout `convergebench`: a dataset that `export` made, which becomes the same run again.

Chains, records, frames, suite and scores are as they were, but for what a dataset leaves out (see
`datasetfiles.LEFT_OUT`). Nothing is trusted: every file that is read must have the checksum that
the dataset lists, every picture the hash its record names, every chain the name its key has.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from convergebench.chain import ChainHeader, FrameRef
from convergebench.disk import make_directory, plain_errors
from convergebench.errors import ImportProblem, explain
from convergebench.frame import sha256
from convergebench.importer import datasetfiles as names
from convergebench.importer.datasetfiles import Marker, ending, row_step, untold
from convergebench.importer.found import Look, Wishes
from convergebench.importer.intact import (
    checked_file,
    listed_sums,
    require_intact,
    require_whole,
)
from convergebench.importer.making import making
from convergebench.importer.result import ImportResult
from convergebench.importer.whole import Whole
from convergebench.scoretable import SCORE_COLUMNS
from convergebench.store import RunStore
from convergebench.suite import Suite
from convergebench.wording import counted, shown

if TYPE_CHECKING:
    import polars as pl

BATCH: Final = 2**26
"""Bytes of a shard that are held at once, or a single row."""


@dataclass
class _Dataset:
    """A dataset as it is read: its files, and what was found in them."""

    root: Path
    marker: Marker
    sums: dict[str, str]
    suite: Suite
    headers: dict[str, ChainHeader]
    sources: dict[str, Any] | None
    lines: dict[str, dict[int, tuple[int, str, str]]] = field(default_factory=dict)
    """By chain and line the step, its outcome and its record as JSON."""
    frames: dict[tuple[str, str], int] = field(default_factory=dict)
    """Every file of a frame that was met, as hash and ending, with its size."""
    needed: set[tuple[str, str]] = field(default_factory=set)

    def shards(self, table: str) -> list[str]:
        """The files of a table: of Parquet, or of tar where there is no Parquet."""
        parquet = [n for n in self.sums if re.fullmatch(rf"{table}/{table}-\d+\.parquet", n)]
        tars = [n for n in self.sums if re.fullmatch(rf"{names.TARS}/{table}/{table}-\d+\.tar", n)]
        return sorted(tars if self.marker.form == "webdataset" else parquet)

    def need(self, ref: FrameRef | None) -> None:
        """Remember that a record names this frame."""
        if ref is not None:
            self.needed.add((ref.sha256, ending(ref.format)))


def _recognise(look: Look) -> str:
    return "exported by convergebench" if names.MARKER in look.files else ""


def restore(
    look: Look,
    why: str,
    wishes: Wishes,
    to: Path | None,
    *,
    dry_run: bool,
    observe: Callable[[int, int], None] | None,
) -> ImportResult:
    """The run that a dataset was made from, at another place. Raises ImportProblem."""
    if not look.files or names.MARKER not in look.files:
        raise ImportProblem(f"{look.root} is no dataset of ours: it has no {names.MARKER}")
    found = _opened(look.root)
    if dry_run or (to is not None and RunStore.is_run(to)):
        _read(found, None, observe)
        scores = _scores(found)
        result = _result(found, look, why, wishes, scores)
        if to is not None and RunStore.is_run(to):
            _require_same(found, scores, RunStore.open(to))
            result.compared, result.known_chains = True, len(found.headers)
            result.path = None if dry_run else to
        return result
    if to is None:
        raise ImportProblem("say where the run is to be: --to DIRECTORY (or --dry-run)")
    with plain_errors(to):
        make_directory(to.absolute().parent)
    with making(to) as part:
        _skeleton(part)
        _read(found, part / "frames", observe)
        scores = _scores(found)
        _write(found, scores, part)
    result = _result(found, look, why, wishes, scores)
    result.compared, result.new_chains = True, len(found.headers)
    result.written(to, len(found.frames), sum(found.frames.values()))
    return result


def _opened(root: Path) -> _Dataset:
    """The dataset's own records, checked."""
    sums = listed_sums(root)
    try:
        marker = Marker.model_validate_json(checked_file(root, names.MARKER, sums))
        if marker.format != names.FORMAT:
            raise ImportProblem(
                f"{root} is a dataset of format {marker.format}, this version reads {names.FORMAT}"
            )
        suite = Suite.model_validate_json(checked_file(root, names.SUITE, sums))
        lines = checked_file(root, names.HEADERS, sums).split(b"\n")
        told = [ChainHeader.model_validate_json(line) for line in lines if line]
        sources = None
        if names.SOURCES in sums:
            sources = json.loads(checked_file(root, names.SOURCES, sums))
        headers = {header.chain.id: header for header in told}
        if len(headers) != len(told):
            raise ImportProblem(f"{root}: {names.HEADERS} has a chain twice")
        require_whole(marker, suite, told)
        found = _Dataset(root, marker, sums, suite, headers, sources)
        for header in told:
            found.need(header.source)
            found.need(header.truth)
        for pair in (sources or {}).values():
            for ref in dict(zip(("source", "truth"), pair, strict=True)).values():
                found.need(FrameRef.model_validate(ref) if ref else None)
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        why = explain(error) if isinstance(error, ValidationError) else str(error)
        raise ImportProblem(f"{root}: the records in {names.FOLDER}/: {why}") from error
    return found


def _read(found: _Dataset, frames: Path | None, observe: Callable[[int, int], None] | None) -> None:
    """Every row: its record is kept, its picture written if there is a place for it."""
    total, done = sum(found.marker.rows.get(table, 0) for table in names.TABLES), 0
    for table in names.TABLES:
        count = 0
        for shard in found.shards(table):
            require_intact(found.root, shard, found.sums)
            for row, data in _rows(found.root, shard):
                try:
                    _take(found, table, row, data, frames)
                except (ValidationError, ValueError, TypeError, KeyError) as error:
                    what = explain(error) if isinstance(error, ValidationError) else repr(error)
                    raise ImportProblem(f"{shard}: a row that is no record of ours: {what}") from (
                        error
                    )
                count, done = count + 1, done + 1
                if observe and (done % 64 == 0 or done == total):
                    observe(done, total)
        if count != found.marker.rows.get(table, 0):
            raise ImportProblem(
                f"{found.root}: table {table} has {counted(count, 'row')}, and "
                f"{found.marker.rows.get(table, 0):,} were exported. Get the dataset again."
            )
    if gone := sorted(found.needed - found.frames.keys()):
        raise ImportProblem(
            f"{found.root} lacks {counted(len(gone), 'picture')} that its records name, the first "
            f"being {gone[0][0]}. Get the dataset again."
        )
    for chain in found.headers:
        lines = found.lines.get(chain, {})
        if sorted(lines) != list(range(1, len(lines) + 1)):
            raise ImportProblem(f"{found.root}: records of chain {chain} are missing")


def _take(
    found: _Dataset,
    table: str,
    row: Mapping[str, Any],
    data: bytes | None,
    frames: Path | None,
) -> None:
    if table != "sources":
        chain, line = row["chain"], int(row["line"])
        if chain not in found.headers:
            raise ValueError(f"chain {chain!r} has no header")
        if line:
            step = row_step(row)
            found.need(step.frame)
            mine = found.lines.setdefault(chain, {})
            if line in mine:
                raise ValueError(f"line {line} of chain {chain} is there twice")
            mine[line] = (step.step, step.outcome, step.model_dump_json())
    if data is None:
        return
    digest = sha256(data)
    if row["sha256"] != digest:
        raise ValueError(f"a picture has the hash {digest[:12]}…, and {row['sha256']} is told")
    name = (digest, ending(row["format"]))
    if name not in found.frames and frames is not None:
        (frames / digest[:2] / "".join(name)).write_bytes(data)
    found.frames[name] = len(data)


def _rows(root: Path, shard: str) -> Iterator[tuple[Mapping[str, Any], bytes | None]]:
    """The rows of a shard with the bytes of their pictures."""
    if shard.endswith(".tar"):
        yield from _samples(root / shard)
        return
    import polars as pl

    try:
        scan = pl.scan_parquet(root / shard)
        count = scan.select(pl.len()).collect().item()
        batch = max(1, BATCH * count // max(1, (root / shard).stat().st_size))
        for start in range(0, count, batch):
            for row in scan.slice(start, batch).collect().iter_rows(named=True):
                picture = row["image"]
                yield row, row["raw"] if picture is None else picture["bytes"]
    except pl.exceptions.PolarsError as error:
        raise ImportProblem(f"{root / shard} cannot be read: {error}") from error
    except (KeyError, TypeError) as error:
        raise ImportProblem(
            f"{root / shard} has no column of pictures as they were exported ({error!r}). Get the "
            "dataset again."
        ) from error


def _samples(path: Path) -> Iterator[tuple[Mapping[str, Any], bytes | None]]:
    """The samples of a tar shard: a picture may come before its JSON."""
    pending: tuple[str, bytes] | None = None
    most = path.stat().st_size
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                # Neither a link, nor a few bytes that say they are terabytes.
                plain = member.isreg() and not member.issparse() and member.size <= most
                opened = tar.extractfile(member) if plain else None
                if opened is None:
                    raise ImportProblem(f"{path}: {member.name[:80]!r} is no plain file")
                key, _, kind = member.name.partition(".")
                data = opened.read()
                if kind != "json":
                    pending = key, data
                    continue
                content = json.loads(data)
                mine = pending[1] if pending and pending[0] == key else None
                yield {**untold(content), **content}, mine
                pending = None
                tar.members = []  # type: ignore[attr-defined]
    except (tarfile.TarError, ValueError, TypeError, AttributeError) as error:
        raise ImportProblem(f"{path} cannot be read: {error}") from error


def _scores(found: _Dataset) -> pl.DataFrame:
    import polars as pl

    from convergebench.scoretable import rows_frame

    if names.SCORES not in found.sums:
        return rows_frame([])
    require_intact(found.root, names.SCORES, found.sums)
    try:
        kinds = pl.Schema({name: getattr(pl, kind)() for name, kind in SCORE_COLUMNS.items()})
        return pl.read_parquet(found.root / names.SCORES).select(list(kinds)).cast(kinds)
    except pl.exceptions.PolarsError as error:
        raise ImportProblem(f"{found.root / names.SCORES} cannot be read: {error}") from error


def _skeleton(part: Path) -> None:
    for folder in ("frames/.new", "chains", "scores"):
        (part / folder).mkdir(parents=True)
    for shard in range(256):
        (part / "frames" / f"{shard:02x}").mkdir()


def _write(found: _Dataset, scores: pl.DataFrame, part: Path) -> None:
    """All but the frames, `run.json` last."""
    store = RunStore(part, found.marker.run, found.suite)
    for chain, lines in _chain_files(found).items():
        path = store.chain_path(chain)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lines)
    if not scores.is_empty():
        store.add_scores(scores)
    if found.sources is not None:
        store.write_json("sources.json", found.sources)
    store.log_session("start", command="import", pid=os.getpid(), origin=found.marker.name)
    store.log_session("end", command="import", pid=os.getpid(), origin=found.marker.name)
    (part / "suite.json").write_bytes(found.suite.model_dump_json(indent=1).encode())
    (part / "run.json").write_bytes(found.marker.run.model_dump_json(indent=1).encode())


def _chain_files(found: _Dataset) -> dict[str, bytes]:
    files = {}
    for chain, header in found.headers.items():
        mine = found.lines.get(chain, {})
        lines = [header.model_dump_json(), *(mine[number][2] for number in sorted(mine))]
        files[chain] = "".join(f"{line}\n" for line in lines).encode()
    return files


def _require_same(found: _Dataset, scores: pl.DataFrame, store: RunStore) -> None:
    """A run that is there is only agreed with: a dataset is a whole run, no part of another."""
    mine = {name: store.chain_path(name) for name in found.headers}
    here = {path.stem for path in store.chain_files()}
    same = (store.info, store.suite, here) == (found.marker.run, found.suite, set(mine))
    if same:
        same = all(mine[name].read_bytes() == data for name, data in _chain_files(found).items())
    if same:
        rows, key = store.scores(), list(SCORE_COLUMNS)
        same = rows.sort(key).equals(scores.sort(key))
    if not same:
        raise ImportProblem(
            f"{store.place} is another run than the one that {found.root} holds, or has gone on "
            "since. A dataset is imported whole: choose another --to."
        )


def _result(
    found: _Dataset, look: Look, why: str, wishes: Wishes, scores: pl.DataFrame
) -> ImportResult:
    by_chain = Counter(scores["chain"].to_list())
    editors: dict[str, list[str]] = {}
    for chain, header in found.headers.items():
        editors.setdefault(header.chain.editor, []).append(chain)
    rows = []
    for editor, chains in sorted(editors.items()):
        final = [{step: outcome for step, outcome, _ in _in_order(found, c)} for c in chains]
        lengths = [max(each, default=0) for each in final]
        least, most = min(lengths), max(lengths)
        told = [outcome for each in final for outcome in each.values()]
        rows.append(
            (
                editor,
                len({found.headers[c].chain.source for c in chains}),
                len({found.headers[c].chain.cycle for c in chains}),
                len(chains),
                f"{most}" if least == most else f"{least}–{most}",
                told.count("edited"),
                sum(by_chain[c] for c in chains),
                told.count("missing"),
            )
        )
    told_scores = counted(len(scores), "score")
    notes = [f"Suite {found.suite.full_label} and {told_scores} are as they were."]
    notes += [f"Not in a dataset: {'; '.join(found.marker.left_out)}."]
    unheard = [name for name, value in vars(wishes).items() if value != getattr(Wishes(), name)]
    if unheard:
        notes.append(f"Not used, since a dataset says all itself: {shown(unheard, 6)}.")
    return ImportResult(
        look.root.name, LAYOUT.name, why, found.marker.name, rows, 0, 0, [], [], [], [], notes, {}
    )  # fmt: skip


def _in_order(found: _Dataset, chain: str) -> list[tuple[int, str, str]]:
    return [record for _, record in sorted(found.lines.get(chain, {}).items())]


LAYOUT: Final = Whole(
    name="convergebench",
    summary="a dataset made by `convergebench export`: becomes the same run again",
    recognise=_recognise,
    restore=restore,
)
