"""Parameters from files of any kind that weights come in, as arrays."""

from __future__ import annotations

import io
import json
import math
import mmap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from convergebench.errors import MetricUnavailable
from convergebench.weights.pickles import Array, Refused, flatten, is_shape, read_pickle
from convergebench.weights.torchfile import MAGIC, read_old, read_zip

INFLATION: Final = 100
"""How many times its own size a compressed file may grow to (64 MB are always allowed)."""


def arrays(path: Path) -> dict[str, Array]:
    """All parameters in a file, by name; nested names are joined with `/`.

    Reads .npz, .safetensors, .mat, .h5 and .hdf5, and what torch or numpy pickled (.pth, .pt,
    .bin, .ckpt, .pkl): told apart by content, not by name. Nothing in the file is run. Arrays may
    be read-only views of the file.

    Raises:
        MetricUnavailable: The file cannot be read, is damaged, or asks for more than arrays.
    """
    try:
        return _reader(path)(path)
    except Refused as error:
        raise MetricUnavailable(f"{path} was refused: {error}") from error
    except MemoryError as error:
        raise MetricUnavailable(f"{path} was refused: it does not fit into memory") from error
    except OSError as error:
        raise MetricUnavailable(f"{path} cannot be read ({error.strerror or error})") from error


def _reader(path: Path) -> Callable[[Path], dict[str, Array]]:
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"PK\x03\x04"):
        return _zip
    if head.startswith(b"\x89HDF\r\n"):
        return _hdf5
    if head.startswith(b"MATLAB 5.0 MAT-f"):
        return _mat
    if head[8:9] == b"{" and path.suffix == ".safetensors":
        return _safetensors
    if head[:1] == b"\x80":
        return read_old if MAGIC.to_bytes(10, "little") in head else _pickle
    raise Refused("it is no file of parameters that we know")


def _pickle(path: Path) -> dict[str, Array]:
    return flatten(read_pickle(io.BytesIO(path.read_bytes())))


def _zip(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if members and all(m.filename.endswith(".npy") for m in members):
                return _npz(archive, members, max(64 << 20, INFLATION * path.stat().st_size))
        return read_zip(path)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise Refused(f"it is cut short or damaged ({error})") from error


def _npz(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], most: int) -> dict[str, Array]:
    """Like numpy.load, but lengths are checked before memory is reserved."""
    if sum(m.file_size for m in members) > most:
        raise Refused("it would inflate to an absurd size")
    found: dict[str, Array] = {}
    for member in members:
        data = io.BytesIO(archive.read(member))
        try:
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[np.lib.format.read_magic(data)]
            shape, fortran, kind = read(data)
        except (ValueError, KeyError) as error:
            raise Refused(f"its array {member.filename[:80]!r} is damaged") from error
        if kind.hasobject or kind.fields or kind.kind not in "biufc":
            raise Refused(f"it holds values of type {kind.name!r}, not numbers")
        raw = data.read()
        if len(raw) != math.prod(shape) * kind.itemsize:
            raise Refused(f"its array {member.filename[:80]!r} is cut short")
        order: Any = "F" if fortran else "C"
        found[member.filename.removesuffix(".npy")] = np.frombuffer(raw, kind).reshape(
            shape, order=order
        )
    return found


TENSORS: Final = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def _safetensors(path: Path) -> dict[str, Array]:
    """Views of the mapped file: an 8-byte length, a JSON header, then the numbers."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(mapped[:8], "little")
    if len(mapped) < 8 + length or length > 100 << 20:
        raise Refused("it is cut short or damaged (its header is longer than the file)")
    try:
        header = json.loads(mapped[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise Refused("its header is damaged") from error
    found: dict[str, Array] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            found[name] = _tensor(mapped, 8 + length, name, entry)
    return found


def _tensor(mapped: mmap.mmap, start: int, name: str, entry: Any) -> Array:
    entry = entry if isinstance(entry, dict) else {}
    code, shape, span = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if code not in TENSORS:
        raise Refused(f"its tensor {name[:80]!r} has the type {str(code)[:40]!r}")
    kind = np.dtype(TENSORS[code])
    if not is_shape(shape) or not is_shape(span) or len(span) != 2:
        raise Refused(f"its tensor {name[:80]!r} is damaged")
    first, last = span
    if last - first != math.prod(shape) * kind.itemsize or start + last > len(mapped):
        raise Refused(f"its tensor {name[:80]!r} reaches beyond the file")
    flat = np.frombuffer(mapped, kind, math.prod(shape), start + first)
    if code == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(shape)


def _mat(path: Path) -> dict[str, Array]:
    """MATLAB 5: cells and structures become nested names, cells counted from 0."""
    from scipy.io import loadmat

    try:
        found = loadmat(path, struct_as_record=True)
    except Exception as error:  # a damaged file can raise nearly anything
        raise Refused(f"it is cut short or damaged ({type(error).__name__})") from error
    result: dict[str, Array] = {}
    for name, value in found.items():
        if not name.startswith("__"):
            _unfold(name, value, result)
    return result


def _unfold(name: str, value: Any, result: dict[str, Array]) -> None:
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.names:
        for field in value.dtype.names:
            inner = value[field]
            _unfold(f"{name}/{field}", inner.item() if inner.size == 1 else inner, result)
    elif value.dtype == object:
        for index, inner in enumerate(value.ravel(order="F")):
            _unfold(f"{name}/{index}", inner, result)
    elif value.dtype.kind in "biufc":
        result[name] = value


def _hdf5(path: Path) -> dict[str, Array]:
    try:
        import h5py  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise MetricUnavailable(
            f"{path.name} is an HDF5 file, and reading it needs h5py: pip install h5py"
        ) from None
    found: dict[str, Array] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "biufc":
            if item.is_virtual or item.external:
                raise Refused(f"its array {name[:80]!r} lies in another file")
            if item.nbytes > max(64 << 20, INFLATION * path.stat().st_size):
                raise Refused("it would inflate to an absurd size")
            found[name] = item[()]

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (RuntimeError, KeyError, ValueError) as error:
        raise error if isinstance(error, Refused) else Refused(f"it is damaged ({error})") from None
    return found
