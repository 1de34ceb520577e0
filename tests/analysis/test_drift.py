"""Drift taken apart: editors that do one thing only, run for real, and sums that must hold."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convergebench as cb
from convergebench.analysis import Finding, drift_parts, study
from convergebench.analysis.drift import PARTS, drift_findings
from convergebench.comparisons import row_version
from convergebench.drawing import scene
from convergebench.registry import metric_spec
from tests.analysis.handmade import HandMade, decibels
from tests.support.runs import CYCLES, write_suite

COPY = CYCLES[: CYCLES.index("[[cycle]]", 5)]
ONE_THING = {
    "ref:shift,dx=2,dy=1": "geometry",
    "ref:tint,amount=6": "colour",
    "ref:noise,sigma=8": "noise",
    "ref:blur,sigma=0.8": "sharpness",
}
METRICS = ("psnr", "colour-offset", "detail-loss", "noise")
MOVES = ("registration-dx", "registration-dy", "registration-scale", "registration-crop")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drift")
    pictures = [scene(name, 192, 192) for name in ("still-life", "portrait")]
    suite = write_suite(folder / "suite", pictures=pictures, cycles=COPY, size=192)
    editors = [*ONE_THING, "ref:identity"]
    table = {"suite": str(suite), "editors": editors, "rounds": 3}
    cb.run(folder / "run", table, controls=False)
    cb.score(folder / "run", [*METRICS, *MOVES], registered=True, workers=1)
    return folder / "run"


@pytest.fixture(scope="module")
def found(run: Path) -> dict[str, Finding]:
    return {f.id: f for f in drift_findings(study(run))}


@pytest.mark.parametrize(("editor", "part"), ONE_THING.items())
def test_an_editor_that_does_one_thing_has_one_part(
    found: dict[str, Finding], editor: str, part: str
) -> None:
    shares = {p: found[f"drift-share/{editor}/{p}"].estimate for p in PARTS}
    assert sum(s or 0 for s in shares.values()) == pytest.approx(1)
    assert (shares[part] or 0) > 0.8, shares


def test_the_parts_add_up_to_the_squared_error(run: Path) -> None:
    parts = drift_parts(study(run))
    assert len(parts) == 5 * 2 * 3
    for row in parts.iter_rows(named=True):
        assert sum(row[part] for part in PARTS) == pytest.approx(row["total"])
        assert min(row[part] for part in PARTS) >= 0


def test_noise_is_told_in_squared_levels(found: dict[str, Finding]) -> None:
    for n in (1, 2, 3):
        noise = found[f"drift/ref:noise,sigma=8/noise/{n}"]
        # a little is clipped at black and white
        assert noise.estimate == pytest.approx(64 * n, rel=0.1)
        assert (noise.n, noise.missing, noise.round) == (2, 0, n)
        assert noise.note == "mean squared error, 8-bit levels²"


def test_how_far_a_picture_moved_is_told_in_its_own_units(found: dict[str, Finding]) -> None:
    third = found["registration/ref:shift,dx=2,dy=1/shift/3"]
    assert third.estimate == pytest.approx(3 * math.sqrt(5), abs=0.05)
    assert found["registration/ref:shift,dx=2,dy=1/zoom/3"].estimate == pytest.approx(0, abs=1e-3)


def test_without_an_error_there_is_nothing_to_share(found: dict[str, Finding]) -> None:
    rest = found["drift-share/ref:identity/rest"]
    assert (rest.estimate, rest.n, rest.note) == (None, 2, "no error to take apart")


def scored(made: HandMade, chain: str, step: int, values: dict[str, float | None]) -> None:
    """Scores after registration, and the raw PSNR as `raw`."""
    made.score(chain, step, "psnr", values["raw"])
    for metric in ("psnr", "colour-offset", "detail-loss"):
        if metric in values:
            version = row_version(metric_spec(metric), "registered")
            made.score(chain, step, metric, values[metric], where="registered", version=version)
    if "noise" in values:
        made.score(chain, step, "noise", values["noise"], against="none")


def test_each_part_takes_from_what_the_ones_before_left(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.chain("s0", "copy", "e", 2).key.id
    made.score(chain, 0, "noise", 3.0, against="none")
    parts: dict[str, float | None] = {"raw": decibels(10), "psnr": decibels(8), "noise": 4}
    scored(made, chain, 1, parts | {"colour-offset": 4, "detail-loss": 5})
    # noise of 12 would explain more than is left
    parts = {"raw": decibels(10), "psnr": decibels(11), "noise": 12}
    scored(made, chain, 2, parts | {"colour-offset": 6, "detail-loss": 6})
    first, second = drift_parts(study(made.done())).sort("n").rows(named=True)
    assert {part: first[part] for part in PARTS} == pytest.approx(
        {"geometry": 36, "colour": 16, "sharpness": 25, "noise": 7, "rest": 16}
    )
    assert {part: second[part] for part in PARTS} == pytest.approx(
        {"geometry": 0, "colour": 36, "sharpness": 36, "noise": 28, "rest": 0}
    )


def test_what_was_not_scored_is_in_the_rest_and_said(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "plain", [0.9, 0.8], metrics=("psnr",))
    made.walk("s1", "copy", "plain", [0.9, 0.8], metrics=("psnr",))
    chain = made.walk("s0", "copy", "tinted", [0.9, 0.8], metrics=("psnr",)).key.id
    made.score(chain, 2, "colour-offset", 10.0)
    made.floors(("psnr",))
    found = {f.id: f for f in drift_findings(study(made.done()))}
    rest = found["drift/plain/rest/2"]
    assert rest.estimate == pytest.approx(400)
    assert "geometry, colour, sharpness, noise, which were not scored" in rest.note
    assert "drift/plain/colour/2" not in found
    assert found["drift-share/tinted/colour"].estimate == pytest.approx(0.25)
    assert found["drift-share/tinted/rest"].estimate == pytest.approx(0.75)


def test_where_no_registration_was_believed_nothing_is_told(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for source, fitted in (("s0", decibels(6)), ("s1", None)):
        chain = made.chain(source, "copy", "e", 1).key.id
        scored(made, chain, 1, {"raw": decibels(10), "psnr": fitted})
    found = {f.id: f for f in drift_findings(study(made.done()))}
    geometry = found["drift/e/geometry/1"]
    assert geometry.estimate == pytest.approx(64)
    assert (geometry.n, geometry.missing) == (1, 1)
    share = found["drift-share/e/geometry"]
    assert share.estimate == pytest.approx(0.64)
    assert (share.n, share.missing) == (1, 1)


def test_failed_and_refused_chains_are_counted(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    made.walk("s0", "copy", "e", [0.9, 0.8], metrics=("psnr",))
    made.walk("s1", "copy", "e", [0.9], metrics=("psnr",), ended="refused")
    made.floors(("psnr",))
    found = {f.id: f for f in drift_findings(study(made.done()))}
    for name in ("drift/e/rest/2", "drift-share/e/rest"):
        rest = found[name]
        assert (rest.n, rest.missing, rest.failed, rest.refused) == (1, 1, 1, 1), name


def test_without_a_value_nothing_is_said_of_the_error(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    for editor, fitted in (("same", math.inf), ("lost", None)):
        chain = made.chain("s0", "copy", editor, 1).key.id
        scored(made, chain, 1, {"raw": decibels(10) if fitted is None else fitted, "psnr": fitted})
    found = {f.id: f for f in drift_findings(study(made.done()))}
    same, lost = (found[f"drift-share/{editor}/rest"] for editor in ("same", "lost"))
    assert (same.estimate, same.n) == (None, 1)
    assert same.note.startswith("no error to take apart")
    assert (lost.estimate, lost.n, lost.missing) == (None, 0, 1)
    assert "no error" not in lost.note


def test_semantics_are_told_beside_the_parts(tmp_path: Path) -> None:
    made = HandMade(tmp_path)
    chain = made.walk("s0", "copy", "e", [0.9], metrics=("psnr",)).key.id
    made.score(chain, 1, "clip", 0.7, version=metric_spec("clip").version)
    made.floors(("psnr",))
    found = {f.id: f for f in drift_findings(study(made.done()))}
    semantics = found["drift/e/semantics/1"]
    assert semantics.estimate == pytest.approx(0.3)
    assert semantics.metric == "clip"
    assert "drift-share/e/semantics" not in found


sizes = st.floats(0, 60)


@settings(max_examples=15)
@given(
    rows=st.lists(
        st.tuples(st.floats(0.1, 60), st.floats(0.1, 60), sizes, sizes, sizes),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_parts_are_never_negative_and_always_add_up(
    rows: list[tuple[float, float, float, float, float]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    made = HandMade(tmp_path_factory.mktemp("sum"))
    chain = made.chain("s0", "copy", "e", len(rows)).key.id
    made.score(chain, 0, "noise", 5.0, against="none")
    for step, (raw, fitted, colour, detail, noise) in enumerate(rows, 1):
        values = {"raw": decibels(raw), "psnr": decibels(fitted), "colour-offset": colour}
        scored(made, chain, step, {**values, "detail-loss": detail, "noise": noise})
    parts = drift_parts(study(made.done()))
    least = parts.select(pl.min_horizontal(PARTS).min()).item()
    assert least >= -1e-9
    for row in parts.iter_rows(named=True):
        assert sum(row[part] for part in PARTS) == pytest.approx(row["total"])
