"""The dataset card: README.md, with the front matter that lets `datasets` load the folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from convergebench.dataset.patches import Patches
from convergebench.dataset.result import Exported
from convergebench.importer.datasetfiles import (
    LEFT_OUT,
    SCORE_COLUMNS,
    SCORES,
    SUMS,
    TARS,
    Column,
    grouped,
)
from convergebench.store import RunStore
from convergebench.wording import counted

_KNOWN: Final = (
    "agpl-3.0 apache-2.0 artistic-2.0 bsd-2-clause bsd-3-clause bsl-1.0 cc0-1.0 cc-by-2.0 cc-by-3.0"
    " cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-4.0 cc-by-nc-sa-4.0 cc-by-nd-4.0"
    " cc-by-sa-3.0 cc-by-sa-4.0 cdla-permissive-1.0 cdla-permissive-2.0 cdla-sharing-1.0 gpl-2.0"
    " gpl-3.0 lgpl-2.1 lgpl-3.0 mit mpl-2.0 odbl odc-by openrail other pddl unknown unlicense"
    " wtfpl zlib"
)
HUB_LICENCES: Final = frozenset(_KNOWN.split())
"""Names of licences that the Hub knows; any other is `other`, with its own name beside."""

TAGS: Final = ("convergebench", "image-editing", "iterated-editing", "image-quality-assessment")
_FEATURES: Final = {
    "Image": "dtype: image",
    "Binary": "dtype: binary",
    "String": "dtype: string",
    "Int32": "dtype: int32",
    "Int64": "dtype: int64",
    "Float64": "dtype: float64",
    "Boolean": "dtype: bool",
    "Texts": "sequence: string",
    "Numbers": "sequence: float64",
}
_SIZES: Final = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
_TABLES: Final = {
    "frames": "every frame, and every step that came to none; step 0 is the source",
    "superseded": "earlier records of steps that were made again later (a pause, a lost answer)",
    "sources": "the pictures that chains begin with, and the truths they should come to",
    "patches": "squares cut from the frames",
    "scores": "every score with its note, and the floor: pairs of different sources",
}

WALKED: Final = (
    "A chain walks one source through a cycle of edits with one editor; each frame, in the bytes "
    "that came back, is the next input (`inputs` says what was sent). Nothing was resized, "
    "re-encoded or converted on the way."
)
IMPORTED: Final = (
    "A chain is one source that was taken through a cycle of edits with one editor. The pictures "
    "were imported: their bytes are as they were found, and whether they were resized, re-encoded "
    "or converted between the steps is not known, nor what is not in the columns."
)

Tables = Mapping[str, Sequence[Column]]


def write_card(
    path: Path, store: RunStore, result: Exported, tables: Tables, patches: Patches | None
) -> None:
    """Write the card of a dataset whose tables are written."""
    if result.scores:
        tables = {**tables, "scores": SCORE_COLUMNS}
    body = [
        f"# {_plain(result.name)}",
        _about(store, result),
        *_loading(result, tables),
        *_contents(result, tables, patches),
        *_editors(result),
        *_origins(store, result),
        *_columns(tables),
        *_caveats(result),
        *_ending(result),
    ]
    text = "\n".join([*_front(result, tables), "", "\n\n".join(body)]) + "\n"
    path.write_text(text, encoding="utf-8")


def _front(result: Exported, tables: Tables) -> list[str]:
    """The front matter. The tar shards of a dataset in both forms need no configuration."""
    licence = result.licence.lower().replace(" ", "-")
    lines = ["---", f"pretty_name: {_quoted(result.name)}"]
    if licence in HUB_LICENCES:
        lines.append(f"license: {licence}")
    else:
        lines += ["license: other", f"license_name: {_quoted(result.licence)}"]
    rows = result.rows["frames"]
    size = next((label for limit, label in _SIZES if rows < limit), "1M<n<10M")
    lines += ["task_categories:", "- image-to-image", "size_categories:", f"- {size}", "tags:"]
    lines += [f"- {tag}" for tag in TAGS]
    lines.append("dataset_info:")
    if result.form == "webdataset":
        tables = {name: columns for name, columns in tables.items() if name != "scores"}
        for name, columns in tables.items():
            lines += [f"- config_name: {name}", "  features:"]
            lines += _members(columns, result.endings[name])
        return [*lines, *_configs(tables, f"{TARS}/{{}}/*.tar"), "---"]
    for name, columns in tables.items():
        lines += [f"- config_name: {name}", "  features:", *_features(columns, 2)]
    return [*lines, *_configs(tables, "{0}/*.parquet"), "---"]


def _features(columns: Iterable[Column], deep: int) -> list[str]:
    indent = " " * deep
    return [f"{indent}- {{name: {_quoted(c.name)}, {_FEATURES[c.kind]}}}" for c in columns]


def _members(columns: Sequence[Column], endings: Iterable[str]) -> list[str]:
    """The features of a tar's samples: one for each ending, since not every sample has each."""
    lines = ["  - {name: __key__, dtype: string}", "  - {name: __url__, dtype: string}"]
    for ending in endings:
        if ending != "json":
            kind = "binary" if ending == "bin" else "image"
            lines.append(f"  - {{name: {ending}, dtype: {kind}}}")
    lines += ["  - name: json", "    struct:"]
    groups: dict[str, list[Column]] = {"": [], "settings": [], "scores": []}
    for column in columns:
        if column.kind not in ("Image", "Binary"):
            group, name = grouped(column.name)
            groups[group].append(Column(name, column.kind, ""))
    lines += _features(groups.pop(""), 4)
    for group, mine in groups.items():
        lines += [f"    - name: {group}", "      struct:", *_features(mine, 6)] if mine else []
    return lines


def _configs(tables: Tables, pattern: str) -> list[str]:
    lines = ["configs:"]
    for name in tables:
        lines += [f"- config_name: {name}", *(["  default: true"] if name == "frames" else [])]
        lines += ["  data_files:", "  - split: train", f'    path: "{pattern.format(name)}"']
    return lines


def _about(store: RunStore, result: Exported) -> str:
    census = result.census
    suite = store.suite
    described = f" {_plain(suite.description)}" if suite.description else ""
    if store.info.imported:
        described += " The pictures were made elsewhere and imported."
    when = f" It was made between {census.begun} and {census.ended}." if census.begun else ""
    return (
        f"Pictures that image editors were asked to edit again and again: "
        f"{counted(census.chains, 'chain')} of {counted(len(census.editors), 'editor')} over "
        f"{counted(len(census.sources), 'source picture')}, "
        f"{counted(census.outcomes['edited'], 'frame')} made. Every frame is kept as it came, "
        f"with what was asked for it; a step that came to no picture is a row all the same.\n\n"
        f"Suite: {_plain(suite.full_label)}.{described}{when}"
    )


def _loading(result: Exported, tables: Tables) -> list[str]:
    if result.form == "webdataset":
        code = (
            "import json, tarfile\n\n"
            f'with tarfile.open("{TARS}/frames/frames-00000.tar") as shard:\n'
            "    for member in shard:\n"
            "        data = shard.extractfile(member).read()  # KEY.png (as received), KEY.json"
        )
        return [
            "## How to read it",
            f"```python\n{code}\n```",
            "The tar shards follow the WebDataset convention: the members of one name are one "
            f"sample. Scores with their notes are in `{SCORES}`." * bool(tables),
        ]
    code = (
        "from datasets import load_dataset\n\n"
        'frames = load_dataset("PATH", split="train")             # the table `frames`\n'
        'sources = load_dataset("PATH", "sources", split="train") # or another one\n\n'
        "import polars as pl\n\n"
        'frames = pl.read_parquet("PATH/frames/*.parquet")  # image.bytes: the file as received'
    )
    more = f" The same samples are tar shards in `{TARS}/`." if result.form == "both" else ""
    return [
        "## How to read it",
        f"```python\n{code}\n```",
        "The only split is called `train`, as the library wants it; no split for training is "
        f"meant. `convergebench import PATH --to RUN` makes the run again.{more}",
    ]


def _contents(result: Exported, tables: Tables, patches: Patches | None) -> list[str]:
    counts = {**result.rows, "scores": result.scores or 0}
    rows = [(f"`{name}`", f"{counts[name]:,}", _TABLES[name]) for name in tables]
    found = ["## What is in it", _table(("table", "rows", "what"), rows)]
    if patches:
        where = (
            "on a grid; what remains at the right and the bottom is left out"
            if patches.count is None
            else f"{patches.count} at random places of every frame (seed {patches.seed}), the same "
            "for all frames of a source that are equally large"
        )
        found.append(
            f"Patches are {patches.size} × {patches.size} pixels, cut {where}. They are lossless "
            f"PNG of the sRGB view, not bytes as received. {result.uncut:,} frames were too small."
        )
    found.append(f"Check the files with `sha256sum -c {SUMS}`.")
    return found


def _editors(result: Exported) -> list[str]:
    rows = []
    for name, each in sorted(result.census.editors.items()):
        models = ", ".join(f"{model} ({n:,})" for model, n in sorted(each.models.items()))
        failed = ", ".join(f"{outcome} {n:,}" for outcome, n in each.failures.items())
        dollars = f"${each.dollars:,.2f}" if each.dollars else "–"
        versions = ", ".join(sorted(v for v in each.versions if v))
        counts = (f"{each.chains:,}", f"{each.outcomes['edited']:,}")
        rows.append((name, versions, models or "–", *counts, failed or "none", dollars))
    head = ("editor", "version", "model, as the provider told", "chains", "frames", "failed", "")
    total = result.census.outcomes
    told = ", ".join(f"{name} {count:,}" for name, count in sorted(total.items()))
    return [
        "## Editors and failures",
        _table((*head[:-1], "spent"), rows),
        f"What all steps came to: {told or 'no steps'}. A failure is data: it is a row with its "
        "reason, never dropped and never scored as zero.",
    ]


def _origins(store: RunStore, result: Exported) -> list[str]:
    used = [s for s in store.suite.source if s.name in result.census.sources]
    rows = [
        (s.name, "drawn by our code" if s.draw else "picture", s.licence, s.origin or "–")
        for s in used
    ]
    cycles = []
    for label, count in sorted(result.census.cycles.items()):
        cycle = store.suite.cycle_of(label)
        prompts = " · ".join(edit.prompts[0] for edit in cycle.edit)
        cycles.append((label, cycle.kind, f"{count:,}", prompts))
    settings = ", ".join(f"{name} ({n:,})" for name, n in sorted(result.census.settings.items()))
    return [
        "## Sources and their licences",
        _table(("source", "what", "licence", "made by"), rows),
        "## How it was made",
        IMPORTED if store.info.imported else WALKED,
        _table(("cycle", "kind", "chains", "prompts (first phrasing)"), cycles),
        f"Settings (chains): {_plain(settings)}. Repeats: {result.census.repeats}. Prepared with "
        f"ConvergeBench {version('convergebench')}.",
    ]


def _columns(tables: Tables) -> list[str]:
    found = ["## Columns"]
    for name, columns in tables.items():
        if name == "superseded":
            found.append("### `superseded`\n\nThe columns of `frames`.")
            continue
        rows = [(f"`{_plain(c.name)}`", c.kind.lower(), c.about) for c in columns]
        found.append(f"### `{name}`\n\n{_table(('column', 'type', 'meaning'), rows)}")
    return found


def _caveats(result: Exported) -> list[str]:
    found = [
        "Frames are as their editors returned them; nobody has looked at all of them.",
        "Sizes may differ within a chain: what came back is recorded beside what was asked for.",
        "What providers return under one name changes over time: compare the models they told.",
        "Scores outside a metric's typical range are kept. A null score has a note in `scores`.",
        f"Left out: {'; '.join(LEFT_OUT)}.",
    ]
    if result.cleaned:
        found.append(
            f"From {counted(result.cleaned, 'text')} a secret, a signed address or a path of a "
            "machine was taken out."
        )
    return ["## Caveats", "\n".join(f"- {_plain(text)}" for text in found)]


def _ending(result: Exported) -> list[str]:
    slug = re.sub(r"[^a-z0-9]+", "-", result.name.lower()).strip("-") or "dataset"
    licence = (
        "No licence was given for this dataset: ask whoever published it. "
        if result.licence == "unknown"
        else f"{_plain(result.licence)}. "
    )
    year = result.census.ended[:4]
    fields = [f"  title = {{{_plain(result.name)}}}", "  note = {Made with ConvergeBench}"]
    fields += [f"  year = {{{year}}}"] if year.isdigit() else []
    citation = "@misc{" + slug + ",\n" + ",\n".join(fields) + "\n}"
    return [
        "## Licence",
        f"{licence}The sources keep the licences named above, and what an editor made may be under "
        "its provider's terms.",
        "## Citation",
        f"```bibtex\n{citation}\n```",
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_plain, line)) + " |" for line in lines)


def _plain(text: str) -> str:
    """A text that is one line of Markdown and opens no tag or cell."""
    line = " ".join(text.split())
    return line.replace("|", "\\|").replace("<", "&lt;")


def _quoted(text: str) -> str:
    """A text as YAML's double-quoted scalar; what cannot be printed is escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)
