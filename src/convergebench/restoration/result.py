"""What the restoration study comes to: tables, effects, stability, trade-off, cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from convergebench.table import Table

Kind = Literal["full-reference", "semantic", "no-reference", "human"]


@dataclass(frozen=True)
class Measure:
    """A metric as it is shown: `name` is the score table's, `title` a table's heading."""

    name: str
    title: str
    kind: Kind
    higher_is_better: bool

    @property
    def arrow(self) -> str:
        """Which way is better."""
        return "↑" if self.higher_is_better else "↓"


@dataclass(frozen=True)
class Method:
    """One way to restore: an editor with a prompt, or an editor that reads none.

    `id` is unique and short; `prompt` is the prompt's title (`SF2`) or empty; `control` is one of
    the free yardsticks that ride along and are not ranked.
    """

    id: str
    label: str
    editor: str
    prompt: str = ""
    group: str = ""
    control: bool = False


@dataclass(frozen=True)
class Picture:
    """One degraded input: its scene category, its damage, and whether a truth exists."""

    source: str
    scene: str
    damage: str
    truth: bool


@dataclass(frozen=True)
class Cell:
    """A mean over pictures. `mean` is None where there is no truth ("/") or nothing was scored.

    Attributes:
        mean: The mean over pictures, of each the mean over its repeats.
        low, high: 95 % interval, resampling pictures; None below three pictures.
        n: Pictures it is made of.
        absent: `truth` where no picture has one ("/"), `score` where no score is there, or "".
        place: 1 best, 2 second, 0 neither. Ties share a place, and are both marked.
        infinite: Pictures left out because their score is infinite (PSNR of identical pictures).
    """

    mean: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    absent: Literal["", "truth", "score"] = ""
    place: Literal[0, 1, 2] = 0
    infinite: int = 0


@dataclass(frozen=True)
class Row:
    """A line of a table.

    `kind` is `prompt`, `group` (the mean of its prompts), `groups` (the mean of all prompts of the
    groups that share a level of a factor) or `method`.

    Attributes:
        label: What it is called.
        kind: What it is.
        cells: By the measure's name.
        group: The prompt's group; of `groups` all of them, as `L + LF`.
        failed: Outputs that were asked for and failed.
        expected: Outputs that were asked for.
        control: A yardstick that is not ranked.
        level: Of `groups`, what they share, as `length=long`.
        method: The method's id, of a prompt or a method.
    """

    label: str
    kind: Literal["prompt", "group", "groups", "method"]
    cells: Mapping[str, Cell]
    group: str = ""
    failed: int = 0
    expected: int = 0
    control: bool = False
    level: str = ""
    method: str = ""


@dataclass(frozen=True)
class Sheet:
    """One of the paper's tables: rows of means, a column per measure.

    `by` says what its pictures share (`scene` or `damage`) and `of` which; of a table of prompts
    `of` is the editor.
    """

    title: str
    rows: tuple[Row, ...]
    measures: tuple[Measure, ...]
    notes: tuple[str, ...] = ()
    by: Literal["", "scene", "damage"] = ""
    of: str = ""


@dataclass(frozen=True)
class Effect:
    """What a factor of the prompts does to a metric, paired by picture.

    `difference` is `level` minus `baseline`, the mean over pictures of the difference between the
    means over prompts of either level that are alike otherwise; positive is more of the metric, not
    better. `within` limits
    it to prompts of another factor's level ("length=short"), empty for all of them. `better` is
    `tied` where the interval holds 0 or the adjusted p is not below 0.05.
    """

    factor: str
    level: str
    baseline: str
    measure: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    adjusted: float | None
    n: int
    better: Literal["level", "baseline", "tied"]
    editor: str = ""
    within: str = ""


@dataclass(frozen=True)
class Stability:
    """Friedman's test of one prompt and metric: pictures are blocks, repeats are treatments.

    `w` is Kendall's coefficient; `dropped` counts pictures of which a repeat has no score.
    """

    method: str
    measure: str
    statistic: float | None
    p: float | None
    w: float | None
    repeats: int
    pictures: int
    note: str = ""
    dropped: int = 0

    @property
    def significant(self) -> bool:
        """At the paper's level of 0.05, before any correction."""
        return self.p is not None and self.p < 0.05


@dataclass(frozen=True)
class Outlier:
    """A picture whose repeats differ far more than other pictures' do."""

    method: str
    measure: str
    source: str
    values: tuple[float, ...]
    spread: float
    usual: float


@dataclass(frozen=True)
class Point:
    """A method in the perception–distortion plane: two means over the same pictures."""

    method: str
    label: str
    group: str
    distortion: str
    perception: str
    x: float
    y: float
    n: int
    control: bool = False


@dataclass(frozen=True)
class Score:
    """One picture's score of a method, the mean over its repeats: what distributions show."""

    method: str
    measure: str
    source: str
    value: float


@dataclass(frozen=True)
class Case:
    """One output that people or a judge call infidel or over-generated, or that we flagged."""

    kind: Literal["infidelity", "over-generation"]
    method: str
    source: str
    repeat: int
    chain: str
    by: str
    share: float
    votes: int
    evidence: str = ""


@dataclass(frozen=True)
class CaseCount:
    """Cases per method: the paper's count, with what it was counted over.

    `looked` are outputs, in so many `repeats` of the pictures; `in_one_run` the cases in one run
    through the pictures: of each picture the share of its outputs that are cases.
    """

    kind: Literal["infidelity", "over-generation"]
    method: str
    group: str
    cases: int
    looked: int
    by: str
    repeats: int = 1
    in_one_run: float = 0.0


@dataclass(frozen=True)
class CaseMean:
    """Cases per prompt over the prompts of one level of a factor: the paper's 2 against 0.5.

    `editor` is whose prompts they are; `per_prompt` the mean over them of the cases in one run
    through the pictures, so that a prompt that was repeated counts as one that was not.
    """

    kind: Literal["infidelity", "over-generation"]
    by: str
    editor: str
    factor: str
    level: str
    prompts: int
    cases: int
    looked: int
    per_prompt: float


@dataclass(frozen=True)
class Restoration:
    """The restoration study of one or more runs, or of a table of published means."""

    title: str
    measures: tuple[Measure, ...]
    methods: tuple[Method, ...]
    pictures: tuple[Picture, ...] = ()
    prompts: tuple[Sheet, ...] = ()
    effects: tuple[Effect, ...] = ()
    stability: tuple[Stability, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    scenes: tuple[Sheet, ...] = ()
    overall: Sheet | None = None
    tradeoff: tuple[Point, ...] = ()
    counts: tuple[CaseCount, ...] = ()
    cases: tuple[Case, ...] = ()
    case_means: tuple[CaseMean, ...] = ()
    notes: tuple[str, ...] = field(default=())
    scores: tuple[Score, ...] = ()

    def measure(self, name: str) -> Measure:
        """The measure of that name. Raises KeyError."""
        return {one.name: one for one in self.measures}[name]

    def method(self, name: str) -> Method:
        """The method of that id. Raises KeyError."""
        return {one.id: one for one in self.methods}[name]

    @property
    def table(self) -> Table:
        """What all methods come to, or where there is no such table the first of prompts."""
        from convergebench.restoration.tables import headline

        return headline(self)

    def tables(self, which: Sequence[str] = ()) -> tuple[Table, ...]:
        """The tables that a terminal shows: all, or those of these names (`tables.TABLES`)."""
        from convergebench.restoration.tables import tables

        return tables(self, which)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())

    def to_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        told = asdict(self)
        for test, tried in zip(told["stability"], self.stability, strict=True):
            test["significant"] = tried.significant
        return told
