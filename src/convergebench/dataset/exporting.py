"""`export`: a run becomes a folder that can be published, and read back as the same run.

Chains are read one after the other and their frames once each, so memory holds a shard, not a run.
The folder is made under another name and renamed when all of it is on the disk. A run that is
being written can be exported: a frame is stored before its record, so what is recorded is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from convergebench.chain import Chain, ChainHeader, FrameRef
from convergebench.comparisons import ANSWERS, HUMAN
from convergebench.cycle import Cycle
from convergebench.dataset.card import write_card
from convergebench.dataset.cleaning import Cleaner, holds_path
from convergebench.dataset.patches import COLUMNS as PATCH_COLUMNS
from convergebench.dataset.patches import Patches
from convergebench.dataset.result import Exported
from convergebench.dataset.shards import ParquetShards, Sample, Shards, TarShards, write_parquet
from convergebench.errors import InputError, MalformedImage, StoreDamaged, UnknownName
from convergebench.frame import Frame, sha256
from convergebench.importer import datasetfiles as names
from convergebench.importer.datasetfiles import (
    FRAMES,
    SOURCE,
    SOURCE_COLUMNS,
    Column,
    Marker,
    file_row,
    header_row,
    score_column,
    step_row,
)
from convergebench.importer.making import MARK, making
from convergebench.remote.address import require_directory
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite, region_box
from convergebench.wording import counted, shown

if TYPE_CHECKING:
    import polars as pl

FORMS: Final = ("parquet", "webdataset", "both")
UNKNOWN: Final = "unknown"
_FREE: Final = ("cc0-1.0", "public domain")
MOST_SCORES: Final = 1000
"""Scores of a frame that get a column of their own; beyond, they are only in the scores' table."""

TELL_EVERY: Final = 16


def export(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    form: str = "parquet",
    patches: Patches | None = None,
    scores: bool = True,
    name: str | None = None,
    licence: str | None = None,
    observe: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a run as a dataset. The run is not altered.

    Args:
        run: The run.
        out: The dataset's folder, which must not be there.
        form: `parquet`: shards that `datasets` and polars read; `webdataset`: tar shards; `both`.
        patches: Which patches to cut from every frame; none when None.
        scores: Whether the scores go along.
        name: What the dataset is called; by default as its folder.
        licence: The licence it is published under.
        observe: Called with rows done and rows in all.

    Raises:
        InputError: There is nothing to export, or the folder's place is taken or not there.
        StoreDamaged: A frame of the run is missing or altered.
    """
    if form not in FORMS:
        raise UnknownName("form of dataset", form, FORMS)
    store, path = RunStore.open(require_directory(run, "export")), Path(out)
    if path.resolve().is_relative_to(store.path.resolve()):
        raise InputError(f"{path} lies within the run. Choose a folder outside of it.")
    # A header that a kill cut off is no chain yet.
    files = [file for file in store.chain_files() if b"\n" in file.read_bytes()]
    if not files:
        raise InputError(f"{store.place} has no chains: there is nothing to export.")
    result = Exported(
        path, store.path, name or path.absolute().name, (licence or UNKNOWN).strip(), form
    )
    with making(path) as part:
        work = _Export(store, part, result, patches, observe)
        work.work(sorted(files, key=lambda file: file.name), scores)
    return result


class _Export:
    """An export under way."""

    def __init__(
        self,
        store: RunStore,
        part: Path,
        result: Exported,
        patches: Patches | None,
        observe: Callable[[int, int], None] | None,
    ) -> None:
        self._store, self._part, self._result = store, part, result
        self._patches, self._observe = patches, observe
        self._cleaner = Cleaner()
        self._pictures: dict[tuple[str, str, str], FrameRef] = {}
        self._done = 0

    def work(self, files: list[Path], with_scores: bool) -> None:
        """Write everything."""
        self._total = sum(file.read_bytes().count(b"\n") for file in files)
        rows = self._store.scores() if with_scores else None
        scores = _Scores(rows)
        frames = (*FRAMES, *scores.columns)
        tables = {"frames": frames, "superseded": frames, "sources": SOURCE_COLUMNS}
        if self._patches:
            tables["patches"] = PATCH_COLUMNS
        self._open(tables)
        (self._part / names.FOLDER).mkdir()
        with open(self._part / names.HEADERS, "w", encoding="utf-8") as headers:
            for file in files:
                chain = self._store.read_chain(file)[0]
                headers.write(self._chain(chain, scores) + "\n")
        self._sources()
        for sink in self._sinks:
            sink.close()
        self._records(rows)
        result = self._result
        if scores.too_many:
            result.notes.append(
                f"{counted(scores.too_many, 'kind')} of scores are too many for columns: "
                f"they are in {names.SCORES} only"
            )
        editors = [name for name in result.census.editors if holds_path(name)]
        if editors:
            result.notes.append(
                f"Editors are called by a path of a machine, which is part of their chains' names "
                f"and was kept: {shown(editors)}"
            )
        result.notes += _to_look_at(self._store.suite, result)
        present = {name: columns for name, columns in tables.items() if result.rows[name]}
        for table, sinks in self._into.items():
            for sink in sinks:
                result.endings[table] = sorted(getattr(sink, "endings", ()))
        write_card(self._part / "README.md", self._store, result, present, self._patches)
        self._sums()

    def _open(self, tables: dict[str, tuple[Column, ...]]) -> None:
        self._sinks: list[Shards] = []
        self._into: dict[str, list[Shards]] = {}
        for table, columns in tables.items():
            mine: list[Shards] = []
            if self._result.form in ("parquet", "both"):
                mine.append(ParquetShards(self._part, table, columns))
            if self._result.form in ("webdataset", "both"):
                mine.append(TarShards(self._part, table))
            self._into[table] = mine
            self._sinks += mine

    def _chain(self, chain: Chain, scores: _Scores) -> str:
        """Write a chain's rows. Returns its header, as it may be published."""
        suite, key = self._store.suite, chain.key
        cycle, source = suite.cycle_of(key.cycle), suite.source_named(key.source)
        header = ChainHeader(
            chain=key,
            editor_version=self._cleaner.report(chain.editor_version),
            source=chain.source,
            truth=chain.truth,
        )
        shared = {**header_row(header), "kind": cycle.kind}
        measured = scores.of(key.id)
        for role, ref in (("source", chain.source), ("truth", chain.truth)):
            if ref:
                self._pictures.setdefault((key.source, role, ref.sha256), ref)
        first = {"line": 0, "step": 0, "round": 0, "outcome": SOURCE, **file_row(chain.source)}
        row = {**shared, **first, **_home(cycle, 0), **measured.get(0, {})}
        self._add("frames", f"{_plain(key.id)}/{0:05d}", row, chain.source)
        last = {step.step: line for line, step in enumerate(chain.steps)}
        steps = tuple(map(self._cleaner.step, chain.steps))
        for line, step in enumerate(steps):
            row = {**shared, "line": line + 1, **step_row(step)}
            row |= _asked(cycle, source, step.step) | measured.get(step.step, {})
            counts = last[step.step] == line
            sample = f"{_plain(key.id)}/{step.step:05d}" + ("" if counts else f"-{line + 1}")
            self._add("frames" if counts else "superseded", sample, row, step.frame)
        version = header.editor_version
        self._result.census.take(replace(chain, editor_version=version, steps=steps))
        return header.model_dump_json()

    def _add(self, table: str, key: str, row: dict[str, Any], ref: FrameRef | None) -> None:
        """Write a row and its picture, and the patches of it."""
        readable = row["outcome"] in ("edited", SOURCE)
        data = self._bytes(ref) if ref else None
        self._put(table, Sample(key, row, data, readable))
        self._done += 1
        if self._observe and (self._done % TELL_EVERY == 0 or self._done == self._total):
            self._observe(min(self._done, self._total), self._total)
        if self._patches and data is not None and readable and table == "frames":
            try:
                cut = list(self._patches.cut(Frame(data, digest=row["sha256"]), row))
            except MalformedImage as error:
                raise self._damaged(row["sha256"], str(error)) from error
            self._result.uncut += not cut
            for about, patch in cut:
                self._put("patches", Sample(f"{key}-{about['patch']:05d}", about, patch))

    def _put(self, table: str, sample: Sample) -> None:
        self._result.rows[table] += 1
        for sink in self._into[table]:
            sink.add(sample)

    def _bytes(self, ref: FrameRef) -> bytes:
        data = self._store.frame(ref).data
        if sha256(data) != ref.sha256:
            raise self._damaged(ref.sha256, "its bytes are not what its name says")
        return data

    def _damaged(self, digest: str, why: str) -> StoreDamaged:
        return StoreDamaged(
            f"frame {digest[:12]}… of {self._store.place} cannot be published: {why}. "
            f"`convergebench verify {self._store.place}` names all that is wrong."
        )

    def _sources(self) -> None:
        """The pictures that chains begin with, and those they should come to, each once."""
        stored = self._store.read_json("sources.json") or {}
        for name, pair in stored.items():
            for role, ref in zip(("source", "truth"), pair, strict=True):
                if ref:
                    found = FrameRef.model_validate(ref)
                    self._pictures.setdefault((name, role, found.sha256), found)
        known = {source.name: source for source in self._store.suite.source}
        for (name, role, digest), ref in sorted(self._pictures.items()):
            row = {"source": name, "role": role, **file_row(ref), **_licensed(known.get(name))}
            readable = ref.width is not None
            key = f"{_plain(name)}/{role}-{digest[:10]}"
            self._put("sources", Sample(key, row, self._bytes(ref), readable))

    def _records(self, rows: pl.DataFrame | None) -> None:
        """What only we need: the suite, which frame is which source, what this folder is."""
        part, result = self._part, self._result
        if rows is not None:
            result.scores = len(rows)
            if result.scores:
                import polars as pl

                # What raters wrote was not written to be published; their scores go along.
                people = pl.col("metric").str.starts_with(HUMAN)
                rows = rows.with_columns(note=pl.when(~people).then("note"))
                notes = {text: self._cleaner.report(text) for text in rows["note"].unique() if text}
                changed = {text: clean for text, clean in notes.items() if text != clean}
                if changed:
                    rows = rows.with_columns(pl.col("note").replace(changed))
                (part / names.SCORES).parent.mkdir()
                write_parquet(rows, part / names.SCORES)
        suite = self._store.suite.model_dump_json(indent=1)
        (part / names.SUITE).write_text(suite, encoding="utf-8")
        if (stored := self._store.read_json("sources.json")) is not None:
            text = json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False)
            (part / names.SOURCES).write_text(text, encoding="utf-8")
        result.cleaned = self._cleaner.cleaned
        marker = Marker(
            name=result.name,
            licence=result.licence,
            convergebench=version("convergebench"),
            run=self._store.info,
            form=result.form,
            rows=dict(sorted(result.rows.items())),
            chains=result.census.chains,
            scores=result.scores,
            cleaned=result.cleaned,
        )
        (part / names.MARKER).write_text(marker.model_dump_json(indent=1), encoding="utf-8")

    def _sums(self) -> None:
        """The checksum of every file but this one."""
        lines = []
        for name, file in sorted(_files(self._part)):
            with open(file, "rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            lines.append(f"{digest}  {name}\n")
            self._result.bytes += file.stat().st_size
        text = "".join(lines)
        (self._part / names.SUMS).write_text(text, encoding="utf-8")
        self._result.files, self._result.bytes = len(lines) + 1, self._result.bytes + len(text)


class _Scores:
    """Scores by chain and step, each kind under the name of its column."""

    def __init__(self, rows: pl.DataFrame | None) -> None:
        self._parts: dict[Any, pl.DataFrame] = {}
        self.columns: tuple[Column, ...] = ()
        self.too_many = 0
        if rows is None or rows.is_empty():
            return
        import polars as pl

        # Every rater has a version of their own: answers are in the scores' table only.
        answer = pl.any_horizontal(pl.col("metric").str.starts_with(name) for name in ANSWERS)
        mine = rows.filter(~pl.col("chain").str.starts_with("floor--") & ~answer)
        kinds = mine.select("metric", "version", "against", "where").unique().sort(pl.all())
        columns = {column.name: column for column in (score_column(*k) for k in kinds.rows())}
        if len(columns) > MOST_SCORES:
            self.too_many = len(columns)
            return
        self.columns = tuple(columns.values())
        self._parts = mine.partition_by("chain", as_dict=True)

    def of(self, chain: str) -> dict[int, dict[str, float | None]]:
        """The scores of a chain, by step."""
        found: dict[int, dict[str, float | None]] = {}
        part = self._parts.get((chain,))
        if part is not None:
            fields = ("step", "metric", "version", "against", "where", "value")
            for step, metric, which, against, where, value in part.select(fields).iter_rows():
                column = score_column(metric, which, against, where).name
                found.setdefault(step, {})[column] = value
        return found


def _to_look_at(suite: Suite, result: Exported) -> list[str]:
    """What only whoever publishes can decide, a sentence each."""
    notes = []
    named = [s for s in suite.source if holds_path(" ".join(filter(None, (s.file, s.truth))))]
    if named:
        notes.append(
            "The suite has files at a path of a machine, which is part of its content and was "
            f"kept: {shown([source.name for source in named])}"
        )
    used = {s.licence for s in suite.source if s.name in result.census.sources}
    own = result.licence.lower()
    others = sorted(text for text in used if text.lower() not in (own, *_FREE))
    if result.licence != UNKNOWN and others:
        notes.append(
            f"Sources are under licences of their own ({shown(others)}): look whether they may be "
            f"published under {result.licence}"
        )
    return notes


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name != MARK:
            yield path.relative_to(folder).as_posix(), path


def _plain(name: str) -> str:
    """A name without dots: in a WebDataset the first dot ends a sample's name."""
    return name.replace(".", "_")


def _home(cycle: Cycle, step: int) -> dict[str, Any]:
    home = cycle.home(step)
    if home is None:
        return {}
    return {
        "home": home.of,
        "home_flip": home.flip,
        "home_quarters": home.quarters,
        "home_grey": home.grey,
        "home_content_only": home.content_only,
    }


def _asked(cycle: Cycle, source: Source, step: int) -> dict[str, Any]:
    """What the cycle says of a step."""
    box = region_box(cycle.edit_at(step), source)
    return {
        "round": cycle.round_of(step),
        "edit": (step - 1) % cycle.period + 1,
        "region": list(box) if box else None,
        "expected_count": cycle.expected_count(step),
        **_home(cycle, step),
    }


def _licensed(source: Source | None) -> dict[str, Any]:
    if source is None:
        return {}
    fields = ("licence", "category", "description", "origin", "address")
    return {**{name: getattr(source, name) for name in fields}, "drawn": source.draw}
