"""What no order of pictures, methods or repeats, and no shift of a scale, may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from convergebench.restoration.cases import cases
from convergebench.restoration.material import Attempt, Material
from convergebench.restoration.result import Measure, Method, Picture, Restoration
from convergebench.restoration.stability import friedman, permuted, stability
from convergebench.restoration.study import judged

PSNR = Measure("psnr", "PSNR", "full-reference", True)
LPIPS = Measure("lpips", "LPIPS", "full-reference", False)
MUSIQ = Measure("musiq", "MUSIQ", "no-reference", True)
FACTORS = {"S1": {"fidelity": "no"}, "SF1": {"fidelity": "yes"}}


@st.composite
def materials(draw: st.DrawFn) -> Material:
    """Two prompts and a network on some pictures; scores are whole numbers, some are missing."""
    count = draw(st.integers(1, 8))
    pictures = tuple(
        Picture(f"p{i}", draw(st.sampled_from(["A", "B"])), "", draw(st.booleans()))
        for i in range(count)
    )
    methods = (
        Method("S1", "S1", "e", "S1", "S"),
        Method("SF1", "SF1", "e", "SF1", "SF"),
        Method("net", "net", "net"),
    )
    repeats = {"S1": 3, "SF1": 3, "net": 1}
    scores = st.one_of(st.none(), *[st.integers(0, 6)] * 9)
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    for measure in (PSNR, LPIPS, MUSIQ):
        for method in methods:
            for picture in pictures:
                if measure.kind == "full-reference" and not picture.truth:
                    continue
                told = {n: draw(scores) for n in range(repeats[method.id])}
                known = {n: float(v) for n, v in told.items() if v is not None}
                if known:
                    values[measure.name, method.id, picture.source] = known
    attempts = tuple(
        Attempt(method.id, picture.source, n)
        for method in methods
        for picture in pictures
        for n in range(repeats[method.id])
    )
    return Material("t", (PSNR, LPIPS, MUSIQ), methods, pictures, attempts, values, FACTORS)


def near(value: float) -> float:
    """A value without the digits that depend on the order of a sum."""
    return round(value, 9) + 0.0


def told(study: Restoration) -> dict[str, object]:
    """Everything by name, so that order does not matter; intervals aside, which are drawn."""
    sheets = [*study.prompts, *study.scenes, *([study.overall] if study.overall else [])]
    return {
        "cells": {
            (sheet.by, sheet.of, row.label, name): (
                None if cell.mean is None else near(cell.mean),
                cell.n, cell.absent, cell.place,
            )
            for sheet in sheets
            for row in sheet.rows
            for name, cell in row.cells.items()
        },
        "effects": {(e.factor, e.measure): near(e.difference) for e in study.effects},
        "stability": {
            (t.method, t.measure): (
                None if t.statistic is None else near(t.statistic),
                None if t.w is None else near(t.w), t.pictures, t.dropped,
            )
            for t in study.stability
        },
        "outliers": {(o.method, o.measure, o.source) for o in study.outliers},
        "points": {
            (p.method, p.distortion, p.perception): (near(p.x), near(p.y))
            for p in study.tradeoff
        },
    }  # fmt: skip


@settings(max_examples=60)
@given(materials(), st.randoms(use_true_random=False))
def test_the_order_of_pictures_and_methods_changes_nothing(material: Material, rng: object) -> None:
    pictures, methods = list(material.pictures), list(material.methods)
    rng.shuffle(pictures)  # type: ignore[attr-defined]
    rng.shuffle(methods)  # type: ignore[attr-defined]
    values = dict(reversed(list(material.values.items())))
    other = replace(material, pictures=tuple(pictures), methods=tuple(methods), values=values)
    assert told(judged(other)) == told(judged(material))


@settings(max_examples=60)
@given(materials(), st.integers(-50, 50))
def test_a_constant_moves_means_and_nothing_else(material: Material, constant: int) -> None:
    moved = {
        key: {n: v + constant for n, v in mine.items()} if key[0] == "psnr" else mine
        for key, mine in material.values.items()
    }
    before, after = told(judged(material)), told(judged(replace(material, values=moved)))
    assert after["effects"] == before["effects"]
    assert after["stability"] == before["stability"]
    assert after["outliers"] == before["outliers"]
    old, new = before["cells"], after["cells"]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert {key: cell[1:] for key, cell in new.items()} == {k: c[1:] for k, c in old.items()}


@settings(max_examples=60)
@given(materials())
def test_turning_a_scale_round_keeps_the_places(material: Material) -> None:
    turned = replace(
        material,
        measures=tuple(
            replace(m, higher_is_better=not m.higher_is_better) for m in material.measures
        ),
        values={key: {n: -v for n, v in mine.items()} for key, mine in material.values.items()},
    )
    one, other = judged(material), judged(turned)
    places = [
        [cell.place for s in (*study.prompts, *study.scenes) for r in s.rows
         for cell in r.cells.values()]
        for study in (one, other)
    ]  # fmt: skip
    assert places[0] == places[1]
    assert [e.better for e in one.effects] == [e.better for e in other.effects]


blocks = st.integers(2, 12).flatmap(
    lambda rows: st.integers(3, 5).flatmap(
        lambda columns: st.lists(
            st.lists(st.integers(0, 4), min_size=columns, max_size=columns),
            min_size=rows,
            max_size=rows,
        )
    )
)


@given(blocks)
def test_friedman_is_scipys_and_w_lies_between_0_and_1(table: list[list[int]]) -> None:
    values = np.array(table, dtype=np.float64)
    found = friedman(values)
    if found is None:
        assert all(len(set(line)) == 1 for line in table)
        return
    statistic, p, w = found
    assert (statistic, p) == pytest.approx(tuple(friedmanchisquare(*values.T)))
    assert -1e-12 <= w <= 1 + 1e-12 or np.isclose(w, 1)


@settings(max_examples=20)
@given(blocks)
def test_monotone_changes_of_a_scale_leave_friedman_alone(table: list[list[int]]) -> None:
    values = np.array(table, dtype=np.float64)
    assert friedman(np.exp(values)) == friedman(values)
    assert permuted(np.exp(values)) == permuted(values)


def test_permutations_err_no_more_often_than_they_say() -> None:
    rng = np.random.default_rng(0)
    ps = [permuted(rng.standard_normal((6, 3))) for _ in range(400)]
    assert np.mean(np.array(ps) <= 0.05) <= 0.075


def test_stable_editors_are_rarely_called_outlying() -> None:
    """35 pictures, 3 repeats of one spread: in 1 table of 100 a picture stands out."""
    rng = np.random.default_rng(1)
    method, pictures = (
        Method("m", "m", "m"),
        tuple(Picture(f"p{i}", "", "", True) for i in range(35)),
    )
    attempts = tuple(Attempt("m", p.source, n) for p in pictures for n in range(3))
    tables = 0
    for _ in range(200):
        drawn = rng.standard_normal((35, 3))
        values = {
            ("musiq", "m", p.source): dict(enumerate(map(float, line)))
            for p, line in zip(pictures, drawn, strict=True)
        }
        material = Material("t", (MUSIQ,), (method,), pictures, attempts, values)
        tables += bool(stability(material)[1])
    assert tables <= 4


def test_a_picture_whose_repeats_differ_is_named() -> None:
    rng = np.random.default_rng(2)
    method, pictures = (
        Method("m", "m", "m"),
        tuple(Picture(f"p{i}", "", "", True) for i in range(12)),
    )
    attempts = tuple(Attempt("m", p.source, n) for p in pictures for n in range(3))
    values = {
        ("musiq", "m", p.source): dict(enumerate(rng.normal(50, 1, 3).tolist())) for p in pictures
    }
    values["musiq", "m", "p7"] = {0: 40.0, 1: 62.0, 2: 50.0}
    _, outliers = stability(Material("t", (MUSIQ,), (method,), pictures, attempts, values))
    (found,) = outliers
    assert (found.source, found.values, found.spread) == ("p7", (40.0, 62.0, 50.0), 22.0)
    assert found.usual < 4


def test_much_more_detail_than_truth_and_input_is_flagged() -> None:
    method, pictures = (
        Method("m", "m", "m"),
        (Picture("p", "", "", True), Picture("q", "", "", True)),
    )
    attempts = tuple(Attempt("m", p.source, n, f"{p.source}{n}") for p in pictures for n in (0, 1))
    material = Material(
        "t", (MUSIQ,), (method,), pictures, attempts, {},
        detail={"p0": 1.6, "p1": 1.4, "q0": 2.9, "q1": 3.1},
        own_detail={"p": 1.0, "q": 2.0},
    )  # fmt: skip
    found, counts, _ = cases(material)
    assert [(c.chain, c.by) for c in found] == [("p0", "measured"), ("q1", "measured")]
    assert found[1].evidence == "detail-ratio 3.10, its input 2.00"
    assert [(c.cases, c.looked, c.repeats) for c in counts] == [(2, 4, 2)]
    blind = replace(material, own_detail={})  # nobody knows what the input had
    assert cases(blind) == ((), (), ())
