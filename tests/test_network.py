"""Every layer of the graph builder against NumPy and SciPy, and the promises of a session."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal, special

from convergebench.network import INLINE_BYTES, Graph, Session, fold_norm

Array = NDArray[Any]


def numbers(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def slow_conv(
    x: Array,
    kernel: Array,
    bias: Array,
    stride: int = 1,
    padding: int | tuple[int, int, int, int] = 0,
    groups: int = 1,
) -> Array:
    """Convolution of C×H×W in float64 by SciPy's correlation, one pair of channels at a time."""
    top, left, bottom, right = (padding,) * 4 if isinstance(padding, int) else padding
    x = np.pad(x.astype(np.float64), ((0, 0), (top, bottom), (left, right)))
    inputs, outputs = kernel.shape[1], len(kernel)
    planes = []
    for out in range(outputs):
        first = out // (outputs // groups) * inputs
        whole = sum(
            signal.correlate(x[first + i], kernel[out, i].astype(np.float64), "valid", "direct")
            for i in range(inputs)
        )
        planes.append(whole[::stride, ::stride] + bias[out])
    return np.stack(planes)


def slow_pool(x: Array, size: int, stride: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    found: Array = windows[:, ::stride, ::stride].max(axis=(3, 4))
    return found


def run(build: Callable[[Graph, str], str], x: Array) -> Array:
    graph = Graph()
    graph.output("y", build(graph, graph.input("x", [f"d{i}" for i in range(x.ndim)])))
    return Session(graph, threads=1)(x=x)[0]


@pytest.mark.parametrize(
    ("inputs", "outputs", "size", "stride", "padding", "groups"),
    [
        (3, 4, 3, 1, 1, 1),
        (3, 5, 11, 4, 2, 1),
        (4, 4, 3, 2, (0, 0, 1, 1), 4),
        (6, 4, 5, 2, (1, 1, 2, 2), 2),
        (2, 40, 1, 1, 0, 1),
    ],
)
def test_conv(
    inputs: int,
    outputs: int,
    size: int,
    stride: int,
    padding: int | tuple[int, int, int, int],
    groups: int,
) -> None:
    x = numbers(2, inputs, 17, 14)
    kernel, bias = numbers(outputs, inputs // groups, size, size), numbers(outputs)
    found = run(
        lambda g, v: g.conv(v, kernel, bias, stride=stride, padding=padding, groups=groups), x
    )
    want = [slow_conv(picture, kernel, bias, stride, padding, groups) for picture in x]
    np.testing.assert_allclose(found, np.stack(want), atol=3e-5)


@pytest.mark.parametrize(("size", "stride"), [(3, 2), (2, 2), (3, 1)])
def test_max_pool(size: int, stride: int) -> None:
    x = numbers(1, 3, 9, 12)
    found = run(lambda g, v: g.max_pool(v, size, stride), x)
    np.testing.assert_array_equal(found[0], slow_pool(x[0], size, stride))


X = numbers(2, 5, 8)
W, B = numbers(6, 8), numbers(6)
S, T = numbers(8), numbers(8, seed=1)
LAYERS: dict[str, tuple[Callable[[Graph, str], str], Array]] = {
    "linear": (lambda g, x: g.linear(x, W, B), X @ W.T + B),
    "linear without bias": (lambda g, x: g.linear(x, W), X @ W.T),
    "matmul": (lambda g, x: g.matmul(x, g.transpose(x, (0, 2, 1))), X @ X.swapaxes(1, 2)),
    "layer_norm": (
        lambda g, x: g.layer_norm(x, S, T),
        (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * S + T,
    ),
    "relu": (lambda g, x: g.relu(x), np.maximum(X, 0)),
    "clip": (lambda g, x: g.clip(x, -0.5, 1), np.clip(X, -0.5, 1)),
    "gelu": (lambda g, x: g.gelu(x), X * special.ndtr(X.astype(np.float64))),
    "sigmoid": (lambda g, x: g.sigmoid(x), special.expit(X)),
    "softmax": (lambda g, x: g.softmax(x), special.softmax(X, -1)),
    "softmax of an axis": (lambda g, x: g.softmax(x, 1), special.softmax(X, 1)),
    "arithmetic": (lambda g, x: g.div(g.sub(g.mul(x, 2.0), g.add(x, S)), 4.0), (X - S) / 4),
    "mean": (lambda g, x: g.mean(x, (1, 2)), X.mean((1, 2))),
    "mean, kept": (lambda g, x: g.mean(x, (1,), keep=True), X.mean(1, keepdims=True)),
    "l2": (lambda g, x: g.l2(x, 1), np.sqrt((X**2).sum(1, keepdims=True))),
    "reshape": (lambda g, x: g.reshape(x, (0, -1, 4)), X.reshape(2, 10, 4)),
    "concat": (
        lambda g, x: g.concat([x, np.zeros((2, 1, 8), np.float32)], 1),
        np.pad(X, ((0, 0), (0, 1), (0, 0))),
    ),
    "gather": (lambda g, x: g.gather(x, [3, 0], 1), X[:, [3, 0]]),
    "half precision": (lambda g, x: g.mul(x, np.array([0.5], np.float16)), X / 2),
    "cast": (lambda g, x: g.cast(g.cast(x, np.int64)), np.trunc(X)),
    "op": (lambda g, x: g.op("Slice", x, np.array([1]), np.array([3]), np.array([2])), X[..., 1:3]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    build, want = LAYERS[name]
    np.testing.assert_allclose(run(build, X), want, atol=1e-5)


def test_outputs_come_in_the_order_they_were_named() -> None:
    graph = Graph()
    x = graph.input("x", ("n",), np.int64)
    graph.output("second", graph.add(x, 2), np.int64)
    graph.output("first", x, np.int64)
    two, one = Session(graph)(x=np.array([5]))
    assert (two.tolist(), one.tolist()) == ([7], [5])


def test_large_weights_are_not_part_of_the_graph_and_outlive_it() -> None:
    weight = numbers(512, 300)
    graph = Graph()
    graph.output("y", graph.linear(graph.input("x", ("n", 300)), weight))
    assert weight.nbytes > 100 * INLINE_BYTES > len(graph.serialised())
    assert [held.shape for held in graph.weights.values()] == [(300, 512)]
    session = Session(graph)
    x = numbers(3, 300)
    before = session(x=x)[0]
    del graph
    gc.collect()
    scratch = [np.ones_like(weight) for _ in range(20)]  # over memory that was given back
    np.testing.assert_array_equal(session(x=x)[0], before)
    np.testing.assert_allclose(before, x @ weight.T, atol=1e-3)
    assert len(scratch) == 20


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_number_of_threads_gives_the_same_bits(threads: int) -> None:
    kernel, bias, x = numbers(24, 16, 3, 3), numbers(24), numbers(1, 16, 61, 67)
    found = []
    for _ in range(2):
        graph = Graph()
        y = graph.relu(graph.conv(graph.input("x", (1, 16, "h", "w")), kernel, bias, padding=1))
        graph.output("y", graph.softmax(graph.linear(graph.mean(y, (2, 3)), numbers(10, 24))))
        session = Session(graph, threads=threads)
        found += [session(x=x)[0], session(x=x)[0]]
    assert all(np.array_equal(other, found[0]) for other in found)


def test_it_takes_as_many_threads_as_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv2, "getNumThreads", lambda: 3)
    graph = Graph()
    graph.output("y", graph.relu(graph.input("x", (1,))))
    assert Session(graph)._session.get_session_options().intra_op_num_threads == 3


def test_it_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    graph.output("y", graph.relu(graph.input("x", (1, 3))))
    session = Session(graph)
    with pytest.raises(Exception, match="Got: 4 Expected: 3"):
        session(x=np.zeros((1, 4), np.float32))
    assert capfd.readouterr() == ("", "")


def test_batch_normalisation_folds_into_the_convolution() -> None:
    x, kernel = numbers(3, 9, 9), numbers(4, 3, 3, 3)
    scale, bias, mean = numbers(4), numbers(4, seed=1), numbers(4, seed=2)
    variance = np.abs(numbers(4, seed=3))
    plain = slow_conv(x, kernel, np.zeros(4))
    shape = (4, 1, 1)
    want = (plain - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-3)
    want = want * scale.reshape(shape) + bias.reshape(shape)
    folded = fold_norm(kernel, (scale, bias, mean, variance), 1e-3)
    np.testing.assert_allclose(slow_conv(x, *folded), want, atol=1e-4)
