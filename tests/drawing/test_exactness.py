"""The drawing code keeps to operations that IEEE 754 defines to the last bit."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from convergebench.drawing import fields

SOURCES = sorted((Path(__file__).resolve().parents[2] / "src/convergebench/drawing").glob("*.py"))

EXACT_NUMPY = {
    "abs", "arange", "array", "ascontiguousarray", "bool_", "broadcast_shapes", "empty", "float64",
    "floor", "full", "full_like", "int64", "maximum", "minimum", "moveaxis", "newaxis", "sqrt",
    "subtract", "uint64", "uint8", "where", "zeros",
}  # fmt: skip
EXACT_MATH = {"ceil", "floor", "inf", "sqrt"}
# Names that must not be called on anything: methods of arrays would slip past the list above.
FORBIDDEN = {
    "arctan2", "average", "convolve", "cos", "cosh", "cumprod", "cumsum", "dot", "einsum", "exp",
    "exp2", "expm1", "float32", "hypot", "inner", "interp", "linalg", "log", "log10", "log1p",
    "log2", "matmul", "mean", "mod", "normal", "outer", "pow", "power", "prod", "random", "sin",
    "sinh", "std", "sum", "tan", "tanh", "tensordot", "trace", "var", "vdot",
}  # fmt: skip
MODULES = {
    "__future__", "collections.abc", "dataclasses", "functools", "itertools", "math", "numpy",
    "numpy.typing", "types", "typing",
}  # fmt: skip


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_there_is_something_to_scan() -> None:
    assert {"fields.py", "canvas.py", "shapes.py", "scenes.py"} <= {path.name for path in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_only_exact_functions_are_used(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Attribute):
            assert node.attr not in FORBIDDEN, f"{path.name}:{node.lineno} {node.attr}"
            if isinstance(node.value, ast.Name) and node.value.id == "np":
                assert node.attr in EXACT_NUMPY, f"{path.name}:{node.lineno} np.{node.attr}"
            if isinstance(node.value, ast.Name) and node.value.id == "math":
                assert node.attr in EXACT_MATH, f"{path.name}:{node.lineno} math.{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"sum", "pow"}, f"{path.name}:{node.lineno} {node.func.id}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_power_or_matrix_operator_is_used(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.BinOp | ast.AugAssign):
            assert not isinstance(node.op, ast.Pow | ast.MatMult), f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_but_numpy_is_imported(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            assert name in MODULES or name.startswith("convergebench.drawing"), (
                f"{path.name} {name}"
            )


def test_own_sine_is_a_sine() -> None:
    turns = np.linspace(-3.0, 3.0, 2001)
    assert np.abs(fields.wave(turns) - np.sin(2.0 * np.pi * turns)).max() < 2e-4
    assert fields.wave(turns).tolist() == [fields.wave_at(t) for t in turns.tolist()]


def test_own_bearing_is_an_arctangent() -> None:
    turns = np.linspace(-0.499, 0.499, 997)
    found = fields.bearing(np.cos(2.0 * np.pi * turns), np.sin(2.0 * np.pi * turns))
    assert np.abs(found - turns).max() < 2e-5


def test_noise_is_smooth_within_bounds_and_the_same_on_both_paths() -> None:
    x, y = np.linspace(-9.0, 9.0, 181)[np.newaxis], np.linspace(-7.0, 7.0, 141)[:, np.newaxis]
    apart = fields.noise(x, y, 5)
    assert apart.min() >= 0.0
    assert apart.max() < 1.0
    assert np.abs(np.diff(apart, axis=0)).max() < 0.25
    joined = fields.noise(x + 0.0 * y, y + 0.0 * x, 5)
    assert np.array_equal(apart, joined)
    assert not np.array_equal(apart, fields.noise(x, y, 6))


def test_grit_has_no_mean_and_leaves_out_what_the_pixels_cannot_show() -> None:
    x, y = np.linspace(0.0, 90.0, 400)[np.newaxis], np.linspace(0.0, 70.0, 300)[:, np.newaxis]
    rough = fields.grit(x, y, 5, 3, 0.05)
    assert abs(rough.mean()) < 0.02
    assert np.abs(rough).max() < 1.5
    assert np.array_equal(fields.grit(x, y, 5, 3, 0.6), fields.grit(x, y, 5, 1, 0.6))
    assert not fields.grit(x, y, 5, 3, 2.0).any()


def test_stripes_too_fine_for_the_pixels_become_their_mean() -> None:
    t = np.linspace(0.0, 1.0, 50)
    assert fields.stripes(t, 0.3, 1000.0) == pytest.approx(0.3, abs=1e-3)
    sharp = fields.stripes(np.array([0.1, 0.2, 0.5, 0.9]), 0.3, 1e-6)
    assert sharp.tolist() == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-6)


def test_dice_repeat_and_stay_in_range() -> None:
    first, second = fields.Dice(1, 2, 3), fields.Dice(1, 2, 3)
    rolls = [first.roll(-2.0, 5.0) for _ in range(200)]
    assert rolls == [second.roll(-2.0, 5.0) for _ in range(200)]
    assert all(-2.0 <= roll < 5.0 for roll in rolls)
    assert {first.pick(3) for _ in range(100)} == {0, 1, 2}
