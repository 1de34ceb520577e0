"""Reading files that torch has saved, without torch: zip archives, TorchScript, the old format.

Tensors become arrays; bfloat16 widens to float32. Only tensors, storages and plain containers are
admitted (see `pickles`); TorchScript's code is never looked at.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from convergebench.weights.pickles import (
    NUMPY,
    Array,
    Pending,
    Refused,
    flatten,
    is_shape,
    read_pickle,
)

MAGIC: Final = 0x1950A86A20F9469CFC6C
"""The number that the first pickle of an old-format file holds."""

NUMBERS: Final = {
    "Double": "f8",
    "Float": "f4",
    "Half": "f2",
    "BFloat16": "bf",
    "Long": "i8",
    "Int": "i4",
    "Short": "i2",
    "Char": "i1",
    "Byte": "u1",
    "Bool": "b1",
    "ComplexDouble": "c16",
    "ComplexFloat": "c8",
}
DTYPES: Final = {
    "float64": "f8",
    "float32": "f4",
    "float16": "f2",
    "bfloat16": "bf",
    "int64": "i8",
    "int32": "i4",
    "int16": "i2",
    "int8": "i1",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "bool": "b1",
}


class Token:
    """A type that a pickle names and never calls."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        raise Refused("it tries to change a type")


class Storage:
    """A run of numbers; its bytes arrive with, or after, the pickle that refers to it."""

    def __init__(self, code: str, count: int) -> None:
        self.code = code
        self.count = count
        self.raw: bytes | None = None
        self._read: dict[str, Array] = {}

    def __setstate__(self, state: Any) -> None:
        raise Refused("it tries to change a storage")

    def values(self, code: str, order: str) -> Array:
        """The numbers, with bfloat16 widened; done once, however many tensors share them."""
        if code not in self._read:
            self._read[code] = self._values(code, order)
        return self._read[code]

    def _values(self, code: str, order: str) -> Array:
        if self.raw is None:
            raise Refused("a tensor in it has no data")
        kind = np.dtype(order + ("u2" if code == "bf" else code))
        if len(self.raw) % kind.itemsize:
            raise Refused("a tensor's data in it is cut short")
        found = np.frombuffer(self.raw, kind)
        if code == "bf":
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found.astype(kind.newbyteorder("="), copy=False)


class Tensor(Pending):
    """A view of a storage, checked to lie inside it."""

    def __init__(self, order: list[str], storage: Any, offset: Any, size: Any, stride: Any) -> None:
        if not isinstance(storage, Storage):
            raise Refused("a tensor in it has no storage")
        if not (is_shape(size) and is_shape(stride) and is_shape((offset,))):
            raise Refused("a tensor in it has a damaged shape")
        if len(size) != len(stride) or len(size) > 32:
            raise Refused("a tensor in it has a damaged shape")
        self.code = storage.code
        self._order, self._storage = order, storage
        self._offset, self._size, self._stride = offset, tuple(size), tuple(stride)

    def __setstate__(self, state: Any) -> None:
        pass  # attributes that somebody hung on a tensor

    def array(self) -> Array:
        """The finished array."""
        flat = self._storage.values(self.code, self._order[0])
        if 0 in self._size:
            return np.empty(self._size, flat.dtype)
        pairs = zip(self._size, self._stride, strict=True)
        last = self._offset + sum((n - 1) * step for n, step in pairs)
        if last >= flat.size or np.prod(self._size, dtype=float) > flat.size:
            raise Refused("a tensor in it reaches beyond its data")
        strides = [step * flat.itemsize for step in self._stride]
        view: Array = np.lib.stride_tricks.as_strided(
            flat[self._offset :], self._size, strides, writeable=False
        )
        return view


class Module(dict[str, Any]):
    """Stands in for any TorchScript module: its tensors and inner modules, named as torch does."""

    joint = "."

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.update({k: v for k, v in state.items() if isinstance(v, Module | Pending)})


def _words(order: list[str]) -> dict[str, Callable[..., Any]]:
    def tensor(storage: Any, offset: Any, size: Any, stride: Any, *_rest: Any) -> Tensor:
        return Tensor(order, storage, offset, size, stride)

    def typed(
        storage: Any, offset: Any, size: Any, stride: Any, _g: Any, _h: Any, kind: Any, *_r: Any
    ) -> Tensor:
        found = Tensor(order, storage, offset, size, stride)
        found.code = kind.code
        return found

    def same(value: Any, *_rest: Any) -> Any:
        return value

    return {
        **NUMPY,
        "torch._utils._rebuild_tensor": tensor,
        "torch._utils._rebuild_tensor_v2": tensor,
        "torch._utils._rebuild_tensor_v3": typed,
        "torch._utils._rebuild_parameter": same,
        "torch.Size": same,
        "torch.device": lambda *_: None,
        "torch.jit._pickle.restore_type_tag": same,
        **{f"torch.jit._pickle.build_{kind}list": same for kind in ("int", "double", "bool")},
        "torch.jit._pickle.build_tensorlist": same,
    }


def _opaque(name: str) -> Any:
    """Types: of storages, of numbers, and TorchScript's own, which are mere containers to us."""
    if name.startswith("__torch__."):
        return type("Module", (Module,), {})
    kind = name.removeprefix("torch.").removeprefix("cuda.").removesuffix("Storage")
    if name.startswith("torch.") and name.endswith("Storage") and kind in NUMBERS:
        return Token(NUMBERS[kind])
    if name == "torch.storage.UntypedStorage":
        return Token("u1")
    if name.startswith("torch.") and name.removeprefix("torch.") in DTYPES:
        return Token(DTYPES[name.removeprefix("torch.")])
    return None


def _storage(key: Any) -> tuple[str, Storage]:
    """The storage that a pickle refers to: ("storage", type, key, device, count, …)."""
    if not isinstance(key, tuple) or len(key) < 5 or key[0] != "storage":
        raise Refused("it refers to data in a way we do not know")
    kind, name, count = key[1], str(key[2]), key[4]
    if not isinstance(kind, Token) or not is_shape((count,)):
        raise Refused("it refers to data in a way we do not know")
    if len(key) > 5 and key[5] is not None:
        raise Refused("it refers to a part of a storage, which torch no longer writes")
    return name, Storage(kind.code, count)


def read_zip(path: Path) -> dict[str, Array]:
    """Tensors of an archive that torch.save or torch.jit.save wrote."""
    order = ["<"]
    storages: dict[str, Storage] = {}
    with zipfile.ZipFile(path) as archive:
        roots = [n for n in archive.namelist() if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(roots) != 1:
            raise Refused("it is no archive of torch's (it has no data.pkl)")
        root = roots[0].removesuffix("data.pkl")
        if f"{root}byteorder" in archive.namelist():
            order[0] = ">" if _member(archive, f"{root}byteorder") == b"big" else "<"

        def persistent(key: Any) -> Storage:
            name, storage = _storage(key)
            if name not in storages:
                storage.raw = _member(archive, f"{root}data/{name}")
                storages[name] = storage
            return storages[name]

        data = io.BytesIO(_member(archive, roots[0]))
        return flatten(read_pickle(data, _words(order), persistent, _opaque))


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise Refused(f"it lacks its own part {name[:80]}") from None
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise Refused("its parts are compressed, which torch never does")
    return archive.read(info)


def read_old(path: Path) -> dict[str, Array]:
    """Tensors of a file in the format that torch wrote before 1.6."""
    stream = io.BytesIO(path.read_bytes())
    order = ["<"]
    storages: dict[str, Storage] = {}

    def persistent(key: Any) -> Storage:
        name, storage = _storage(key)
        return storages.setdefault(name, storage)

    if read_pickle(stream) != MAGIC:
        raise Refused("it is neither a torch file nor a pickle of arrays")
    read_pickle(stream)
    machine = read_pickle(stream)
    if isinstance(machine, dict) and machine.get("little_endian") is False:
        order[0] = ">"
    found = read_pickle(stream, _words(order), persistent, _opaque)
    names = read_pickle(stream)
    if not isinstance(names, list) or {str(n) for n in names} != set(storages):
        raise Refused("its list of storages does not match its tensors")
    for name in names:
        storage = storages[str(name)]
        head = stream.read(8)
        count = struct.unpack(order[0] + "q", head)[0] if len(head) == 8 else -1
        size = 2 if storage.code == "bf" else np.dtype(storage.code).itemsize
        if count != storage.count:
            raise Refused("it is cut short or damaged (a storage of the wrong length)")
        storage.raw = stream.read(count * size)
        if len(storage.raw) != count * size:
            raise Refused("it is cut short")
    return flatten(found)
