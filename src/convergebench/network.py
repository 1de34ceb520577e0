"""Small networks without a deep-learning framework: an ONNX graph written in code, and its session.

What needs a network describes it layer by layer, with its weights as NumPy arrays, and
runs it with ONNX Runtime:

    graph = Graph()
    x = graph.input("x", ("n", 3, "h", "w"))      # a name stands for a size known only when run
    x = graph.relu(graph.conv(x, kernel, bias, stride=2, padding=1))
    x = graph.linear(graph.mean(x, (2, 3)), weight, bias)       # weight: outputs × inputs
    graph.output("y", x)
    session = Session(graph)
    (y,) = session(x=batch)

A value in a graph is a string, its name. Wherever a method takes a value it also takes an array or
a number, which becomes a constant, so weights need no declaration of their own. Layouts are
PyTorch's: pictures N×C×H×W, convolution kernels outputs × inputs / groups × height × width, linear
weights outputs × inputs. A missing layer is one call of `op`, with the name, inputs and attributes
of the ONNX operator (https://onnx.ai/onnx/operators, opset `OPSET`).

Large arrays are handed to ONNX Runtime as they lie in memory and are not part of the serialised
graph, so protobuf's limit of 2 GB does not apply. Half-precision floats become single.

Written with ONNX Runtime and not PyTorch because it installs in 20 MB instead of gigabytes and
starts in a fraction of a second; there is no intermediate file, because the graphs are this small.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    Value = str | ArrayLike
    """The name of a value in a graph, or a constant."""

OPSET: Final = 20
IR_VERSION: Final = 10
"""Of ONNX's file format: the one that introduced this opset, which older runtimes read too."""
INLINE_BYTES: Final = 1024
"""Constants up to this size are part of the graph, where shapes and exponents must be."""


class Graph:
    """An ONNX graph under construction. Each method adds one layer and answers its value."""

    def __init__(self) -> None:
        from onnx import helper

        self._helper = helper
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._inline: list[Any] = []
        self._marks: list[Any] = []
        self._count = 0
        self.weights: Final[dict[str, NDArray[Any]]] = {}

    # -- values -------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[int | str], dtype: DTypeLike = np.float32) -> str:
        """What the session is given; sizes known only when it runs are names."""
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(self._helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, name: str, value: Value, dtype: DTypeLike = np.float32) -> None:
        """What the session answers; several come in the order of these calls."""
        kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._nodes.append(self._helper.make_node("Identity", [self._value(value)], [name]))
        self._outputs.append(self._helper.make_tensor_value_info(name, kind, None))

    def constant(self, array: ArrayLike) -> str:
        """A constant. Python's floats and half-precision arrays become float32, integers int64."""
        from onnx import TensorProto, numpy_helper

        values = np.asarray(array)
        if not isinstance(array, np.ndarray | np.generic):
            values = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        values = np.ascontiguousarray(values).reshape(values.shape)
        name = self._fresh("constant")
        if values.nbytes <= INLINE_BYTES:
            self._inline.append(numpy_helper.from_array(values, name))
            return name
        mark = TensorProto(
            name=name,
            dims=values.shape,
            data_type=self._helper.np_dtype_to_tensor_dtype(values.dtype),
            data_location=TensorProto.EXTERNAL,
        )
        mark.external_data.add(key="location", value="memory")
        self._marks.append(mark)
        self.weights[name] = values
        return name

    def op(self, kind: str, *inputs: Value | None, **attributes: Any) -> str:
        """Any ONNX operator with one output; None leaves an optional input out."""
        name = self._fresh(kind)
        names = ["" if value is None else self._value(value) for value in inputs]
        self._nodes.append(self._helper.make_node(kind, names, [name], **attributes))
        return name

    def _value(self, value: Value) -> str:
        return value if isinstance(value, str) else self.constant(value)

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind}:{self._count}"

    # -- layers -------------------------------------------------------------------------------

    def conv(
        self,
        x: Value,
        kernel: Value,
        bias: Value | None = None,
        *,
        stride: int = 1,
        padding: int | tuple[int, int, int, int] = 0,
        groups: int = 1,
    ) -> str:
        """Convolution with zeros around; the padding is one number, or top, left, bottom, right."""
        return self.op(
            "Conv",
            x,
            kernel,
            bias,
            strides=[stride, stride],
            pads=_pads(padding),
            group=groups,
        )

    def max_pool(
        self,
        x: Value,
        size: int,
        stride: int,
        padding: int | tuple[int, int, int, int] = 0,
    ) -> str:
        """Largest value of each window; windows that do not fit are left out."""
        return self.op(
            "MaxPool",
            x,
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=_pads(padding),
        )

    def linear(self, x: Value, weight: ArrayLike, bias: Value | None = None) -> str:
        """Each row of `x` times the transposed weight (outputs × inputs), plus the bias."""
        product = self.matmul(x, np.asarray(weight).T)
        return product if bias is None else self.add(product, bias)

    def matmul(self, a: Value, b: Value) -> str:
        """Product over the last axis of `a` and the last but one of `b`."""
        return self.op("MatMul", a, b)

    def layer_norm(self, x: Value, scale: Value, bias: Value, epsilon: float = 1e-5) -> str:
        """Zero mean and unit variance over the last axis, then scale and bias."""
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def relu(self, x: Value) -> str:
        """The positive part."""
        return self.op("Relu", x)

    def clip(self, x: Value, low: float, high: float) -> str:
        """Limited to a range; 0 to 6 is ReLU6."""
        return self.op("Clip", x, np.float32(low), np.float32(high))

    def gelu(self, x: Value) -> str:
        """Gaussian error linear unit, exact: x·Φ(x)."""
        return self.op("Gelu", x, approximate="none")

    def sigmoid(self, x: Value) -> str:
        """1 / (1 + e⁻ˣ)."""
        return self.op("Sigmoid", x)

    def softmax(self, x: Value, axis: int = -1) -> str:
        """Exponentials that sum to 1 along an axis."""
        return self.op("Softmax", x, axis=axis)

    def add(self, a: Value, b: Value) -> str:
        """Sum; shapes are broadcast as in NumPy, here and in `sub`, `mul` and `div`."""
        return self.op("Add", a, b)

    def sub(self, a: Value, b: Value) -> str:
        """Difference."""
        return self.op("Sub", a, b)

    def mul(self, a: Value, b: Value) -> str:
        """Product, element by element."""
        return self.op("Mul", a, b)

    def div(self, a: Value, b: Value) -> str:
        """Quotient."""
        return self.op("Div", a, b)

    def mean(self, x: Value, axes: Sequence[int], *, keep: bool = False) -> str:
        """Mean over axes, which disappear unless kept with size 1."""
        return self.op("ReduceMean", x, np.array(axes, np.int64), keepdims=int(keep))

    def l2(self, x: Value, axis: int) -> str:
        """Euclidean length along an axis, which is kept with size 1."""
        return self.op("ReduceL2", x, np.array([axis], np.int64), keepdims=1)

    def reshape(self, x: Value, shape: Sequence[int]) -> str:
        """Another shape: 0 keeps a size as it is, −1 takes what is left."""
        return self.op("Reshape", x, np.array(shape, np.int64))

    def transpose(self, x: Value, order: Sequence[int]) -> str:
        """Axes in another order."""
        return self.op("Transpose", x, perm=list(order))

    def concat(self, parts: Sequence[Value], axis: int) -> str:
        """Values one after another along an axis."""
        return self.op("Concat", *parts, axis=axis)

    def gather(self, x: Value, indices: Value, axis: int = 0) -> str:
        """The entries with those indices along an axis: rows of a table, one token of many."""
        return self.op("Gather", x, indices, axis=axis)

    def cast(self, x: Value, dtype: DTypeLike = np.float32) -> str:
        """Another type of number."""
        return self.op("Cast", x, to=self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    # -- the finished graph -------------------------------------------------------------------

    def serialised(self) -> bytes:
        """The ONNX model without its large arrays, which are in `weights`."""
        graph = self._helper.make_graph(
            self._nodes,
            "network",
            self._inputs,
            self._outputs,
            initializer=[*self._inline, *self._marks],
        )
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
        return bytes(model.SerializeToString())


class Stored:
    """An ONNX file as it is, in the place of a graph written in code."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.weights: Final[dict[str, NDArray[Any]]] = {}

    def serialised(self) -> bytes:
        """The file's bytes, which hold the large arrays too."""
        return self._path.read_bytes()


def _pads(padding: int | tuple[int, int, int, int]) -> list[int]:
    return [padding] * 4 if isinstance(padding, int) else list(padding)


def fold_norm(
    kernel: NDArray[Any], norm: Sequence[NDArray[Any]], epsilon: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and bias of a convolution that includes the batch normalisation behind it.

    Args:
        kernel: Outputs × inputs / groups × height × width.
        norm: Scale, bias, mean and variance of each output.
        epsilon: What is added to the variance.
    """
    scale, bias, mean, variance = (part.astype(np.float64) for part in norm)
    factor = scale / np.sqrt(variance + epsilon)
    folded = kernel * factor.reshape(-1, 1, 1, 1)
    return folded.astype(np.float32), (bias - mean * factor).astype(np.float32)


class Session:
    """A graph ready to run: `session(name=array, …)` answers its outputs in order.

    On the CPU with as many threads as OpenCV may use when the session is made, or on a GPU where
    the installed ONNX Runtime has CUDA; always in float32. On a CPU the same input and the same
    number of threads give the same bits; another number may move the last of them. What a run
    allocated is given back at its end, but for its outputs. Sessions may be used by several threads
    at once.
    """

    def __init__(self, graph: Graph | Stored, *, threads: int | None = None) -> None:
        import onnxruntime

        # Its messages go to stderr, past Python; whatever goes wrong is raised anyway.
        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads or cv2.getNumThreads()
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        # Threads that wait for the next layer by spinning would take cores from other workers.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Matrices packed in another order would double the memory, and were no faster.
        options.add_session_config_entry("session.disable_prepacking", "1")
        # These refer to the arrays and do not copy them, so both must live as long as the session.
        self._weights = [
            onnxruntime.OrtValue.ortvalue_from_numpy(w) for w in graph.weights.values()
        ]
        options.add_external_initializers(list(graph.weights), self._weights)
        available = onnxruntime.get_available_providers()
        providers: list[Any] = ["CPUExecutionProvider"]
        if "CUDAExecutionProvider" in available:
            # TF32 would round to 10 bits; the search for the fastest algorithm is a race.
            exact = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
            providers.insert(0, ("CUDAExecutionProvider", exact))
        self._session = onnxruntime.InferenceSession(
            graph.serialised(), options, providers=providers
        )
        self._run_options = onnxruntime.RunOptions()
        self._run_options.log_severity_level = 4
        self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def __call__(self, **inputs: NDArray[Any]) -> list[NDArray[Any]]:
        """Run the network once."""
        found: list[NDArray[Any]] = self._session.run(None, inputs, self._run_options)
        return found
