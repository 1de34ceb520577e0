"""What the viewer on a source's page shows: every step of every chain, as a script of data.

A page that is opened from a file may not fetch, so the data is a script that hands itself over:
`convergebench("chains", {…});`. It is asked for when the viewer is first opened. Texts that repeat
(prompts, models, caveats) are kept once, in `texts`, and told by their number. The rows of a page
that has very many are brought in the same way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from convergebench.analysis.convergence import convergence, current
from convergebench.chain import Chain, FrameRef, Step
from convergebench.comparisons import FLOOR_PREFIX, PUBLISHED
from convergebench.cycle import Cycle, Home
from convergebench.errors import ConvergeBenchError
from convergebench.metric import MetricSpec
from convergebench.registry import metric_spec
from convergebench.reporter.pictures import Picture
from convergebench.reporter.strips import Row, Strip, home_words, shown_steps

if TYPE_CHECKING:
    import polars as pl
    from jinja2 import Environment

Mode = Literal["frame", "side", "blink", "difference"]
DIGITS: Final = 4
"""Significant ones, of a score."""

FIRST: Final = ("psnr", "ssim", "lpips", "clip", "dino")
"""The metrics that are told first; the others follow by name."""


def chain_address(
    source: str, chain: str, step: int | None = None, mode: Mode | None = None
) -> str:
    """Where a chain is in the report: its filmstrip, or the viewer at a step in a mode."""
    page = f"source-{source}.html#{chain}"
    if step is None:
        return page
    return f"{page}/{step}/{mode or 'frame'}"


def data_file(source: str) -> str:
    """Where a source's data is in the report's folder."""
    return f"data/source-{source}.js"


def rows_file(source: str) -> str:
    """Where the folded rows of a source's page are in the report's folder."""
    return f"data/rows-{source}.js"


def rows_script(strips: Sequence[Strip], pages: Environment) -> bytes | None:
    """The folded rows of a page, whole, as its template makes them; None where none is folded."""
    cells = pages.get_template("strip.html").module.cells  # type: ignore[attr-defined]
    rows = {row.id: str(cells(row, strip)) for strip in strips for row in strip.rows if row.folded}
    return _script("rows", rows) if rows else None


@dataclass(frozen=True)
class Scores:
    """The scores that the viewer tells: against home, of the whole frame, in current versions.

    Attributes:
        specs: The metrics, in the order shown.
        origins: Of metrics that only others measured, who.
        values: By chain, step and metric the value and, where the metric has it, C(n).
    """

    specs: Mapping[str, MetricSpec] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[int, Mapping[str, tuple[float, float | None]]]] = field(
        default_factory=dict
    )


def scores_of(rows: pl.DataFrame, floors: Mapping[str, float]) -> Scores:
    """The viewer's scores, from the score table and the suite's floors."""
    import polars as pl

    rows = rows.filter(
        (pl.col("against") == "home")
        & (pl.col("where") == "all")
        & pl.col("value").is_not_null()
        & ~pl.col("chain").str.starts_with(FLOOR_PREFIX)
    )
    specs: dict[str, MetricSpec] = {}
    place = {name: index for index, name in enumerate(FIRST)}
    for name in sorted(set(rows["metric"]), key=lambda name: (place.get(name, len(place)), name)):
        try:
            specs[name] = metric_spec(name)
        except ConvergeBenchError:  # told by the notes on the first page
            continue
    own = current(rows, specs)
    theirs = rows.filter(
        pl.col("version").str.starts_with(PUBLISHED)
        & ~pl.col("metric").is_in(own["metric"].unique().implode())
    )
    origins = {
        metric: version.removeprefix(PUBLISHED)
        for metric, version in theirs.select("metric", "version").unique().sort("version").rows()
    }
    told = pl.concat([own, theirs]).select("chain", "step", "metric", "value")
    known = convergence(told, floors, specs).select("chain", "step", "metric", "c")
    values: dict[str, dict[int, dict[str, tuple[float, float | None]]]] = {}
    for chain, step, metric, value, c in told.join(
        known, on=["chain", "step", "metric"], how="left"
    ).iter_rows():
        values.setdefault(chain, {}).setdefault(step, {})[metric] = (value, c)
    used = set(told["metric"])
    return Scores({name: specs[name] for name in specs if name in used}, origins, values)


@dataclass
class _Texts:
    """Texts by their number, each kept once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def viewer_script(
    source: str,
    strips: Sequence[Strip],
    chains: Mapping[str, Chain],
    pictures: Mapping[str, Picture],
    scores: Scores,
) -> bytes:
    """The data of one source's page.

    Args:
        source: The source's name.
        strips: Its filmstrips, as the page shows them.
        chains: Its chains, by id.
        pictures: Where frames are in the folder, by hash.
        scores: The scores of all chains.
    """
    texts = _Texts()
    cycles = [
        {
            "name": strip.cycle.name,
            "label": strip.label,
            "chains": [
                _chain(chains[row.id], row, strip.cycle, pictures, scores, texts)
                for row in strip.rows
                if not row.bare
            ],
        }
        for strip in strips
    ]
    metrics = [
        {
            "name": name,
            "higher": spec.higher_is_better,
            "title": spec.title,
            "origin": scores.origins.get(name, ""),
        }
        for name, spec in scores.specs.items()
    ]
    told = {"source": source, "metrics": metrics, "cycles": cycles, "texts": list(texts.numbers)}
    return _script("chains", told)


def _script(kind: str, told: Any) -> bytes:
    text = json.dumps(told, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # As in a page: nothing in it can look like the end of a script, or like one.
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f'convergebench("{kind}",{safe});\n'.encode()


def _chain(
    chain: Chain,
    row: Row,
    cycle: Cycle,
    pictures: Mapping[str, Picture],
    scores: Scores,
    texts: _Texts,
) -> dict[str, Any]:
    steps = shown_steps(chain)
    known = scores.values.get(chain.key.id, {})
    told: list[dict[str, Any]] = []
    for number in range(1, max(steps, default=0) + 1):
        step = steps.get(number)
        if step is None:
            told.append({"outcome": "missing", "detail": texts.number("no record of this step")})
            continue
        resolution = chain.key.settings.resolution_at(number)
        told.append(_step(step, "" if resolution == "native" else resolution, pictures, texts))
        if lost := lost_cost(chain, step):
            told[-1]["lost"] = lost
        if values := known.get(number):
            told[-1]["scores"] = [_rounded(values.get(name)) for name in scores.specs]
    homes = [_home(cycle.home(number), chain) for number in range(len(told) + 1)]
    return {
        "id": chain.key.id,
        "editor": chain.key.editor,
        "variant": row.variant,
        "rest": row.rest_text,
        "version": chain.editor_version,
        "source": _frame(chain.source, pictures, texts),
        "truth": _frame(chain.truth, pictures, texts),
        "homes": homes,
        "steps": told,
    }


def lost_cost(chain: Chain, step: Step) -> float:
    """Dollars of the calls for this step that came to nothing before the one that is shown."""
    same = [one for one in chain.steps if one.step == step.step and one is not step]
    return sum(one.call.cost or 0.0 for one in same)


def _step(
    step: Step, resolution: str, pictures: Mapping[str, Picture], texts: _Texts
) -> dict[str, Any]:
    """A step's record, without what is empty."""
    call = step.call
    effective = call.effective_prompt if call.effective_prompt != step.prompt else None
    written = {
        "prompt": step.prompt,
        "detail": step.detail,
        "effective": effective,
        "model": call.model,
        "reasoning": call.reasoning,
        "parameters": _listed(call.parameters),
        "usage": _listed(call.usage),
        "asked": " ".join(word for word in (call.size, call.format) if word),
        "request": call.request_id,
        "basis": call.basis,
    }
    told: dict[str, Any] = {
        "outcome": "" if step.outcome == "edited" else step.outcome,
        "frame": _frame(step.frame, pictures, texts),
        "resolution": resolution,
        "seed": step.seed,
        "attempts": step.attempts if step.attempts > 1 else None,
        "cost": call.cost,
        "seconds": round(step.seconds, 2) or None,
        "caveats": [texts.number(caveat) for caveat in call.caveats] or None,
        **{name: texts.number(text) for name, text in written.items() if text},
    }
    return {name: value for name, value in told.items() if value not in (None, "")}


def _frame(
    ref: FrameRef | None, pictures: Mapping[str, Picture], texts: _Texts
) -> dict[str, Any] | None:
    if ref is None:
        return None
    picture = pictures.get(ref.sha256, Picture(None, None))
    told: dict[str, Any] = {"bytes": ref.bytes, "format": texts.number(ref.format)}
    # The folders and the thumbnail's name follow from the name of the file.
    if picture.full:
        told["file"] = picture.full.rpartition("/")[2]
    if picture.full and not picture.thumb:
        told["unreadable"] = True
    if ref.width and ref.height:
        told["size"] = [ref.width, ref.height]
    if ref.notes:
        told["notes"] = [texts.number(note) for note in ref.notes]
    return told


def _home(home: Home | None, chain: Chain) -> dict[str, Any] | None:
    """What a frame should equal, without what is not done to it."""
    if home is None or (home.of == "truth" and chain.truth is None):
        return None
    told = {
        "words": home_words(home),
        "truth": home.of == "truth",
        "flip": home.flip,
        "quarters": home.quarters,
        "grey": home.grey,
    }
    return {name: value for name, value in told.items() if value}


def _listed(told: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in told.items())


def _plain(value: Any) -> str:
    """A value of a record as a reader would write it."""
    if isinstance(value, Mapping):
        return f"({_listed(value)})"
    if isinstance(value, list | tuple):
        return "; ".join(_plain(one) for one in value)
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


def _rounded(score: tuple[float, float | None] | None) -> list[Any] | None:
    """A value, and C(n) where it is known; what JSON cannot tell as a sign."""
    if score is None:
        return None
    value, c = score
    if math.isinf(value):
        shown: Any = "∞" if value > 0 else "−∞"
    elif math.isnan(value):
        return None
    else:
        shown = float(f"{value:.{DIGITS}g}")
    return [shown] if c is None or not math.isfinite(c) else [shown, round(c, 3)]
