"""Banana100-like datasets: source × variant × run × step, as folders or as a table of pictures.

The published dataset's own file names could not be seen when this was written. What is read follows
the paper's words (`variants`) and the Hub's usual forms (`hub`), and was tried on made-up trees.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from convergebench.chain import Call
from convergebench.cycle import CYCLE_EDITS, CycleKind
from convergebench.errors import ImportProblem
from convergebench.importer.found import (
    Finds,
    FoundCycle,
    FoundFrame,
    FoundSource,
    Layout,
    Look,
    Track,
    Wishes,
)
from convergebench.importer.layouts import hub
from convergebench.importer.layouts.arms import (
    Picture,
    name_editors,
    only_source,
    prompts_of,
    settings_of,
    told_apart,
)
from convergebench.importer.layouts.variants import (
    INITIALS,
    PathName,
    Variant,
    parse_path,
    parse_variant,
)
from convergebench.wording import counted, in_order

_NOTHING_TOLD: Final = Call()


def recognise(look: Look) -> str:
    """Why this is a Banana100-like dataset, or nothing."""
    if look.is_file and not look.root.name.lower().endswith(".parquet"):
        return ""
    tables = hub.find_tables(look, {})
    if tables.metadata or tables.shards:
        return f"{in_order(tables.metadata + tables.shards)} with a step for each picture"
    if look.is_file or not look.images:
        return ""
    named = [parse_path(name) for name in look.images]
    steps = [one for one in named if not one.apart]
    extra = sum(one.step is None for one in named)
    steps = [one for one in steps if one.step is not None]
    # A contact sheet beside the steps changes nothing.
    if not steps or (extra and (len(steps) < 3 or extra * 3 > len(steps))):
        return ""
    if not all(one.run is not None or one.variants for one in steps if one.step):
        return ""
    if not any(one.step and (one.run is not None or one.variants) for one in steps):
        return ""
    # One word is not enough: a source may well be called "apple".
    placed = [parse_path(f"{folder}/0") for folder in {os.path.dirname(n) for n in look.images}]
    if not (
        any(one.run is not None for one in steps)
        or len({variant for one in placed for variant in one.variants}) > 1
        or any(one.variants and one.others for one in placed)
    ):
        return ""
    return f"{counted(len(steps), 'picture')} in folders of variants and runs"


def read(look: Look, wishes: Wishes) -> Finds:
    """Every picture as a step of its run. Raises ImportProblem."""
    tables = hub.find_tables(look, wishes.columns)
    finds = Finds()
    rows: list[hub.Row] = []
    for table in tables.metadata:
        rows += hub.metadata_rows(look, table, wishes.columns)
    if tables.shards:
        spooled, finds.cleanup = hub.shard_rows(look, tables.shards, wishes.columns, finds.notes)
        rows += spooled
    try:
        _Reader(look, wishes, finds).read(rows, {*tables.metadata, *tables.shards})
    except BaseException:
        if finds.cleanup:
            finds.cleanup()
        raise
    return finds


class _Reader:
    """Collects pictures, then tells chains apart."""

    def __init__(self, look: Look, wishes: Wishes, finds: Finds) -> None:
        self._look = look
        self._wishes = wishes
        self._finds = finds
        root = look.root.resolve()
        self._own = root.stem if look.is_file else root.name
        self._always: set[str] = set()
        self._assumed: dict[str, list[str]] = {}
        self._texts = {os.path.splitext(n)[0]: n for n in look.files if n.lower().endswith(".txt")}

    def read(self, rows: list[hub.Row], tables: set[str]) -> None:
        listed = {row.name for row in rows if row.place}
        loose = [name for name in self._look.images if name not in listed]
        if rows:
            # A table says what the pictures are: of others only initial images are known.
            apart = [name for name in loose if parse_path(name).apart]
            left = sorted({*loose} - {*apart})
            if left:
                self._finds.notes.append(
                    f"{counted(len(left), 'picture')} that no table lists "
                    f"{'is' if len(left) == 1 else 'are'} not read: {in_order(left)}."
                )
            loose = apart
        rows = rows + [hub.Row({}, name, self._look.place(name), "") for name in loose]
        names = {row.name: parse_path(row.name) for row in rows}
        if not tables and not self._wishes.editor:
            editors, sources = name_editors(names, self._look)
            if editors:
                self._finds.notes.append(
                    f"Folders are taken as EDITOR/SOURCE: editors {in_order(editors)}; sources "
                    f"{in_order(sources)}. --editor NAME says that all are of one editor; "
                    "then the first folder is the source."
                )
        # A folder that all pictures are in tells none apart.
        steps = [
            names[row.name]
            for row in rows
            if "step" in row.fields or names[row.name].step is not None
        ]
        counts = Counter(part for told in steps for part in set(told.others))
        self._always = {part for part, count in counts.items() if count == len(steps)}
        if not tables:
            self._always.discard(only_source(names, self._look))
        used = set(tables)
        pictures = []
        for row in rows:
            picture = self._picture(row, names[row.name])
            if picture:
                pictures.append(picture)
                used |= {row.name, self._texts.get(os.path.splitext(row.name)[0], "")}
        used |= {s.place.name for s in self._finds.sources.values() if s.place}
        self._finds.unread = [name for name in self._look.files if name not in used]
        if not pictures:
            raise ImportProblem(
                f"{self._look.root} has no pictures of which source, run and step are known; "
                "expected SOURCE/VARIANT/run_1/step_0.png or a metadata.jsonl with file_name and "
                "step. Any other names can be described with --pattern"
            )
        self._chains(pictures)
        for words, examples in self._assumed.items():
            self._finds.notes.append(f"{words}: {in_order(examples)}.")

    def _picture(self, row: hub.Row, name: PathName) -> Picture | None:
        """What row and path say together; the row's word counts. None when it is no step."""
        told = dict(row.fields)
        variant, others, assumed = self._variant(told, name)
        source = _stem(str(told["source"])) if "source" in told else self._source(others)
        step = _number(told["step"], row, "step") if "step" in told else name.step
        if step is None:
            return None
        if name.apart and "step" not in told:
            if source not in self._finds.sources:
                self._finds.sources[source] = FoundSource(place=row.place)
            return None
        step -= self._wishes.first if "step" in told or not name.is_source else 0
        run = _number(told["run"], row, "run") if "run" in told else name.run
        editor = str(told.get("model") or name.model or self._wishes.editor or "")
        return Picture(source, variant, assumed, editor, run, step, row.place, row.name, told)

    def _source(self, others: list[str]) -> str:
        if others:
            return others[0]
        name = self._wishes.source or self._own
        if not self._wishes.source:
            self._assume("The source is called after the folder (--source)", name)
        return name

    def _variant(self, told: Mapping[str, Any], name: PathName) -> tuple[Variant, list[str], str]:
        """The variant, the part of the path that names the source, and what was assumed."""
        others = [part for part in name.others if part not in self._always] or name.others[-1:]
        known = [part for part in name.others if part.lower() in INITIALS]
        source = known[:1] or others[:1]
        passed = [part for part in name.others if part in self._always and part not in source]
        if passed and "source" not in told:
            said = "Folders that all pictures are in name neither source nor editor"
            self._assume(said, f"{'/'.join(passed)} (source: {''.join(source)})")
        extra = [] if "source" in told else [part for part in others if part not in source]
        if extra:
            said = "Folders that are neither source nor a known variant are part of the cycle"
            self._assume(said, f"{'/'.join(extra)} (source: {''.join(source)})")
        found = Variant(settings=_axes(told))
        for one in map(
            parse_variant, [str(told["variant"])] if "variant" in told else name.variants
        ):
            found = Variant(
                found.cycle or one.cycle,
                found.kind or one.kind,
                {**one.settings, **found.settings},
                found.known or one.known,
                "-".join(word for word in (found.rest, one.rest) if word),
            )
        rest = "-".join(word for word in (found.rest, *extra) if word)
        if found.cycle:
            if "variant" not in told:
                self._assume("Cycles are told by words in the names", "/".join(name.variants))
            return replace(found, rest=rest), source, ""
        kind: CycleKind = self._wishes.kind or "replicate"
        assumed = "" if self._wishes.kind else "No cycle is named: taken as replication (--kind)"
        if found.rest and not found.known:
            assumed = assumed and "No known variant: taken as free, without a home (--kind)"
            return replace(found, kind=self._wishes.kind or "free", rest=rest), source, assumed
        cycle = self._wishes.cycle or kind
        return replace(found, cycle=cycle, kind=kind, rest=rest), source, assumed

    def _chains(self, pictures: list[Picture]) -> None:
        runs = {one.run for one in pictures if one.run is not None}
        first = 0 if 0 in runs or not runs else 1
        if first:
            self._finds.notes.append("Runs are numbered from 1 there; run 1 is repeat 0 here.")
        chains = self._joined(told_apart(pictures))
        names: dict[str, dict[tuple[str | None, ...], str]] = {}
        for steps in sorted(chains, key=lambda s: not prompts_of(s)):
            head = max(steps, key=lambda one: one.step)
            prompts = prompts_of(steps)
            known = names.setdefault(head.cycle, {})
            told = prompts if any(prompts) else next(iter(known), prompts)
            name = known.setdefault(told, f"{head.cycle}-{len(known) + 1}" if known else head.cycle)
            kind: CycleKind = head.variant.kind or "free"
            given = self._wishes.prompts if not any(told) else ()
            if given and len(given) != CYCLE_EDITS.get(kind, len(given)):
                raise ImportProblem(
                    f"cycle {name!r} of kind {kind!r} has {CYCLE_EDITS[kind]} edits, got "
                    f"{counted(len(given), 'prompt')}"
                )
            self._finds.cycles[name] = FoundCycle(kind, given or told)
            repeat = (head.run or first) - first
            track = Track(head.source, name, head.editor or self._own, repeat, settings_of(steps))
            if not head.editor:
                self._assume("The editor is called after the folder (--editor)", self._own)
            if head.assumed:
                self._assume(head.assumed, os.path.dirname(head.name) or head.cycle)
            if self._wishes.steps:
                self._finds.expected[track] = self._wishes.steps
            for one in steps:
                self._frame(track, one)
        for cycle, known in names.items():
            if len(known) > 1:
                self._finds.notes.append(
                    f"Cycle {cycle!r} was run with different prompts; they are told apart as "
                    f"{in_order(known.values())}."
                )
        sourced = {f.track.source for f in self._finds.frames if f.step == 0 and f.place}
        sourced |= set(self._finds.sources)
        bare = {f.track.source for f in self._finds.frames} - sourced
        if bare:
            self._finds.notes.append(
                f"No picture with step {self._wishes.first} for {in_order(bare)}: the source is "
                "missing. Say --first 1 if the picture with number 1 is the source."
            )

    def _joined(self, chains: list[list[Picture]]) -> list[list[Picture]]:
        """Chains with their sources: a row of step 0 knows no call, so it fits many chains."""
        edited = [steps for steps in chains if any(one.step > 0 for one in steps)]
        for alone in (steps for steps in chains if all(one.step <= 0 for one in steps)):
            head = alone[0]
            near = [steps for steps in edited if steps[0].source == head.source]
            fitting = [steps for steps in near if head.fits(steps[0])]
            for steps in fitting:
                if all(one.step > 0 for one in steps):
                    steps += alone
            if near and not fitting:
                self._finds.sources.setdefault(head.source, FoundSource(place=head.place))
            elif not near:
                edited.append(alone)
        return edited

    def _frame(self, track: Track, one: Picture) -> None:
        if one.step < 0:
            self._assume(f"Numbers before {self._wishes.first} are not read", one.name)
            self._finds.unread.append(one.name)
            return
        told = one.told
        reasoning = told.get("reasoning")
        beside = self._texts.get(os.path.splitext(one.name)[0])
        if reasoning is None and beside:
            reasoning = self._look.place(beside).read().decode("utf-8", "replace").strip()
            self._assume("Texts beside pictures are taken as reasoning", "NAME.txt")
        seed = told.get("seed", one.variant.settings.get("number"))
        number = int(seed) if re.fullmatch(r"\d+", str(seed)) else None
        frame = FoundFrame(
            track,
            one.step,
            one.place,
            str(told["prompt"]) if "prompt" in told and one.step else None,
            call=_call(told.get("model"), reasoning),
            seed=number if one.step else None,
        )
        if one.place is None:
            self._assume(
                "Rows whose picture is not there are recorded as missing",
                one.name or "rows without a file name",
            )
            detail = f"listed as {one.name or 'a row without a picture'}, which is not there"
            frame = replace(frame, outcome="missing", detail=detail)
        self._finds.frames.append(frame)

    def _assume(self, words: str, name: str) -> None:
        names = self._assumed.setdefault(words, [])
        if name not in names:
            names.append(name)


def _call(model: Any, reasoning: Any) -> Call:
    if model is None and reasoning is None:
        return _NOTHING_TOLD
    return Call(
        model=None if model is None else str(model),
        reasoning=None if reasoning is None else str(reasoning),
    )


def _axes(told: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Settings` that columns give."""
    found: dict[str, Any] = {}
    for column in ("resolution", "session", "temperature"):
        if column in told:
            found |= parse_variant(str(told[column])).settings
    if "temperature" in told:
        try:
            found["temperature"] = float(told["temperature"])
        except (TypeError, ValueError) as error:
            raise ImportProblem(f"temperature {told['temperature']!r} is no number") from error
    if "seed" in told and not re.fullmatch(r"\d+", str(told["seed"])):
        found |= parse_variant(f"seed-{told['seed']}").settings
    return found


def _number(value: Any, row: hub.Row, what: str) -> int:
    """A whole number from a cell such as 3, "3" or "run_3"."""
    text = str(value).removesuffix(".0")
    told = re.fullmatch(r"(?:[a-z]+[-_ ]?)?(\d+)", text, re.IGNORECASE)
    if told is None:
        raise ImportProblem(f"{row.table}: {what} {value!r} of {row.name} is no number")
    return int(told[1])


def _stem(name: str) -> str:
    base = name.replace("\\", "/").rpartition("/")[2]
    stem, ending = os.path.splitext(base)
    return stem if re.fullmatch(r"\.[A-Za-z]{3,4}", ending) else base


LAYOUT: Final = Layout(
    name="banana100",
    summary="SOURCE/VARIANT/run_1/step_0.png …, or a metadata file or Parquet with a step column",
    recognise=recognise,
    read=read,
)
