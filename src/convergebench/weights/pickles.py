"""Reading arrays out of pickles without running anything that a pickle asks for.

A pickle is a program. Ours is the only vocabulary it gets: every name it may utter is answered
with a stand-in defined here, which makes arrays from bytes after checking shape, type and length.
Any other name is refused. Written by hand because no library reads numpy's and torch's pickles
safely without torch; `numpy.load(allow_pickle=True)` runs what the file says.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DEEPEST: Final = 64
"""Levels of nesting that parameters may have."""
MOST: Final = 200_000
"""Values that one file may hold."""


class Refused(ValueError):
    """A file that is not what we can, or dare, read; the text completes `FILE was refused: …`."""


class Word:
    """A name that a pickle may utter, answered by a function of ours.

    An object rather than the bare function, so that a pickle cannot set attributes on it.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        """What the pickle gets for it."""
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise Refused("it tries to change a function")


class Ordered(dict[Any, Any]):
    """Stands in for OrderedDict; attributes that a pickle puts on it are dropped."""

    def __setstate__(self, state: Any) -> None:
        pass


class DType:
    """Stands in for numpy.dtype: plain numbers only, never objects."""

    def __init__(self, code: Any = None, *_flags: Any) -> None:
        if not re.fullmatch(r"[<>|=]?([iu][1248]|f[248]|c8|c16|b1)", str(code)):
            raise Refused(f"it holds values of type {str(code)[:40]!r}, not numbers")
        self.numpy = np.dtype(str(code))

    def __setstate__(self, state: Any) -> None:
        order: Any = state[1] if isinstance(state, tuple) and len(state) > 1 else "?"
        if order not in ("<", ">", "|", "="):
            raise Refused("a number type in it is damaged")
        self.numpy = self.numpy.newbyteorder(order)


class Pending:
    """Stands in for an array while its pickle is read."""

    def array(self) -> Array:
        """The finished array."""
        raise Refused("an array in it has no content")


class NumpyArray(Pending):
    """Stands in for numpy.ndarray, filled by the state that follows it."""

    def __init__(self, found: Array | None = None) -> None:
        self._found = found

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise Refused("an array in it is damaged")
        shape, kind, fortran, raw = state[-4:]
        self._found = shaped(raw, kind, shape, "F" if fortran else "C")

    def array(self) -> Array:
        """The finished array."""
        return super().array() if self._found is None else self._found


def shaped(raw: Any, kind: Any, shape: Any, order: Any) -> Array:
    """An array from raw bytes, after checking that they are as many as the shape needs."""
    raw = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(kind, DType) or not isinstance(raw, bytes | bytearray):
        raise Refused("an array in it is damaged")
    if not is_shape(shape) or math.prod(shape) * kind.numpy.itemsize != len(raw):
        raise Refused("an array in it is shorter or longer than its shape")
    return np.frombuffer(raw, kind.numpy).reshape(shape, order="F" if order == "F" else "C")


def is_shape(shape: Any) -> bool:
    """Whether this is a tuple of sizes."""
    return isinstance(shape, tuple | list) and all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48 for n in shape
    )


def _encode(text: Any, coding: Any) -> bytes:
    if not isinstance(text, str) or coding not in ("latin1", "latin-1"):
        raise Refused("text in it is damaged")
    return text.encode("latin-1")


def _never(*_arguments: Any) -> NoReturn:
    raise Refused("it makes an array in a way we do not know")


def _numpy_words() -> dict[str, Callable[..., Any]]:
    words: dict[str, Callable[..., Any]] = {
        "numpy.ndarray": _never,
        "numpy.dtype": DType,
        "_codecs.encode": _encode,
        "builtins.bytes": lambda: b"",
        "__builtin__.bytes": lambda: b"",
        "collections.OrderedDict": Ordered,
    }
    for core in ("numpy.core", "numpy._core"):
        words[f"{core}.multiarray._reconstruct"] = lambda *_: NumpyArray()
        words[f"{core}.multiarray.scalar"] = lambda kind, raw: NumpyArray(
            shaped(raw, kind, (), "C")
        )
        words[f"{core}.numeric._frombuffer"] = lambda raw, kind, shape, order: NumpyArray(
            shaped(raw, kind, shape, order)
        )
    return words


NUMPY: Final = _numpy_words()
"""What pickles of numpy arrays may utter."""


def read_pickle(
    stream: io.BytesIO,
    words: Mapping[str, Callable[..., Any]] = NUMPY,
    persistent: Callable[[Any], Any] | None = None,
    opaque: Callable[[str], Any] = lambda _: None,
) -> Any:
    """One pickle from the stream, built from stand-ins.

    Args:
        stream: Positioned at the pickle; left behind it.
        words: Names that the pickle may utter, and what answers.
        persistent: Answers the pickle's references to storages outside it.
        opaque: Answers names that `words` lacks; None refuses them.
    """
    _scan(stream)

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            full = f"{module}.{name}"
            if full in words:
                return Word(words[full])
            found = opaque(full)
            if found is None:
                raise Refused(f"it asks for {full[:80]}, and weights may hold arrays only")
            return found

        def persistent_load(self, key: Any) -> Any:
            if persistent is None:
                raise Refused("it refers to data outside itself")
            return persistent(key)

    try:
        return Reader(stream, encoding="latin1").load()
    except Refused:
        raise
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise Refused(f"it is damaged ({type(error).__name__})") from error


def _scan(stream: io.BytesIO) -> None:
    """Walk over the pickle without running it: it must be whole, and reserve no absurd memory."""
    start = stream.tell()
    try:
        for count, (code, argument, _position) in enumerate(pickletools.genops(stream)):
            if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= (argument or 0) <= count:
                raise Refused("it is damaged (a memo out of order)")
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"it is cut short or no pickle ({type(error).__name__})") from error
    stream.seek(start)


def flatten(found: Any) -> dict[str, Array]:
    """All arrays and numbers in nested containers, by their path joined with `/`."""
    result: dict[str, Array] = {}
    waiting: list[tuple[str, Any, int]] = [("", found, 0)]
    for _ in range(MOST):
        if not waiting:
            return result
        path, value, depth = waiting.pop()
        if isinstance(value, Pending | bool | int | float):
            if path in result:
                raise Refused(f"it holds {path[:80]!r} twice")
            result[path] = value.array() if isinstance(value, Pending) else _number(value)
        elif isinstance(value, dict | list | tuple):
            if depth == DEEPEST:
                raise Refused(f"it is nested more than {DEEPEST} levels deep")
            pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
            if len(pairs) > MOST:
                break
            head = f"{path}{getattr(value, 'joint', '/')}" if path else ""
            waiting += [(f"{head}{key}", inner, depth + 1) for key, inner in reversed(pairs)]
    raise Refused(f"it holds more than {MOST} values")


def _number(value: float) -> Array:
    found = np.asarray(value)
    if found.dtype == object:  # an integer that no machine number holds
        raise Refused("it is damaged (an absurd number)")
    return found
