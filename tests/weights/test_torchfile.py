"""Torch's files, written here by hand, since torch is no dependency; real ones where shared is."""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.errors import MetricUnavailable
from convergebench.weights import arrays

MAGIC = 0x1950A86A20F9469CFC6C
FIELD = np.arange(24, dtype=np.float32)


class Stored:
    """A storage in a file to be written: its torch type, key, bytes and number of values."""

    def __init__(self, kind: str, key: str, raw: bytes, count: int) -> None:
        self.kind, self.key, self.raw, self.count = kind, key, raw, count


class View:
    """A tensor in a file to be written."""

    def __init__(self, storage: Stored, offset: int, size: Any, stride: Any) -> None:
        self.arguments: tuple[Any, ...] = (storage, offset, size, stride, False, OrderedDict())

    def __reduce__(self) -> Any:
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class Writer(pickle.Pickler):
    """Pickles as torch does, with storages outside."""

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Stored):
            kind = getattr(sys.modules["torch"], value.kind)
            return ("storage", kind, value.key, "cpu", value.count)
        return None


@pytest.fixture(autouse=True)
def _pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of torch's names, so that pickles can refer to them."""
    root, inner = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in ("Float", "Half", "BFloat16", "Long"):
        made = type(f"{kind}Storage", (), {"__module__": "torch"})
        setattr(root, f"{kind}Storage", made)

    def _rebuild_tensor_v2(*_: Any) -> None:
        pass

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    inner._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", root)
    monkeypatch.setitem(sys.modules, "torch._utils", inner)


def dumped(value: Any) -> bytes:
    stream = io.BytesIO()
    Writer(stream, 2).dump(value)
    return stream.getvalue()


def write_zip(path: Path, value: Any, storages: list[Stored], method: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", dumped(value))
        for storage in storages:
            archive.writestr(f"archive/data/{storage.key}", storage.raw)
    return path


def write_old(path: Path, value: Any, storages: list[Stored]) -> Path:
    pickles = [MAGIC, 1001, {"little_endian": True}]
    data = b"".join(pickle.dumps(p, 2) for p in pickles) + dumped(value)
    data += pickle.dumps([s.key for s in storages], 2)
    for storage in storages:
        data += struct.pack("<q", storage.count) + storage.raw
    path.write_bytes(data)
    return path


def sample() -> tuple[Any, list[Stored]]:
    main = Stored("FloatStorage", "0", FIELD.tobytes(), 24)
    wide = Stored("BFloat16Storage", "1", (FIELD.view("<u4") >> 16).astype("<u2").tobytes(), 24)
    half = Stored("HalfStorage", "2", FIELD.astype("<f2").tobytes(), 24)
    value = OrderedDict(
        whole=View(main, 0, (4, 6), (6, 1)),
        turned=View(main, 2, (6, 3), (1, 6)),
        one=View(main, 5, (), ()),
        none=View(main, 0, (0, 3), (3, 1)),
        wide=View(wide, 0, (24,), (1,)),
        nested={"half": View(half, 12, (12,), (1,))},
        epoch=7,
    )
    return value, [main, wide, half]


@pytest.mark.parametrize("write", [write_zip, write_old])
def test_tensors_come_back_as_they_were(tmp_path: Path, write: Any) -> None:
    found = arrays(write(tmp_path / "x.pth", *sample()))
    field = FIELD.reshape(4, 6)
    np.testing.assert_array_equal(found["whole"], field)
    np.testing.assert_array_equal(found["turned"], FIELD[2:20].reshape(3, 6).T)
    assert found["one"] == 5
    assert found["none"].shape == (0, 3)
    np.testing.assert_array_equal(found["wide"], FIELD)
    assert found["wide"].dtype == np.float32
    np.testing.assert_array_equal(found["nested/half"], FIELD[12:])
    assert found["epoch"] == 7


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [
        (0, (25,), (1,)),
        (1, (24,), (1,)),
        (0, (4, 6), (7, 1)),
        (0, (1 << 40,), (0,)),
        (0, (5, 5), (0, 1)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (0, (2,), (1, 1)),
        (0, "ab", (1, 1)),
        (True, (2,), (1,)),
    ],
)
@pytest.mark.parametrize("write", [write_zip, write_old])
def test_a_tensor_beyond_its_data_is_refused(
    tmp_path: Path, write: Any, offset: Any, size: Any, stride: Any
) -> None:
    main = Stored("FloatStorage", "0", FIELD.tobytes(), 24)
    path = write(tmp_path / "x.pth", {"w": View(main, offset, size, stride)}, [main])
    with pytest.raises(MetricUnavailable, match=r"beyond its data|damaged shape"):
        arrays(path)


def test_archives_that_lie(tmp_path: Path) -> None:
    value, storages = sample()
    path = write_zip(tmp_path / "deflated.pth", value, storages, zipfile.ZIP_DEFLATED)
    with pytest.raises(MetricUnavailable, match="compressed, which torch never does"):
        arrays(path)
    path = write_zip(tmp_path / "lacking.pth", value, storages[:1])
    with pytest.raises(MetricUnavailable, match="it lacks its own part archive/data/"):
        arrays(path)
    outside = Stored("FloatStorage", "../../../etc/passwd", b"", 1)
    path = write_zip(tmp_path / "outside.pth", {"w": View(outside, 0, (1,), (1,))}, [])
    with pytest.raises(MetricUnavailable, match="it lacks its own part"):
        arrays(path)


def test_old_files_that_lie(tmp_path: Path) -> None:
    value, storages = sample()
    with pytest.raises(MetricUnavailable, match="does not match its tensors"):
        arrays(write_old(tmp_path / "a.pth", value, storages[:2]))
    storages[0].count = 1 << 40
    with pytest.raises(MetricUnavailable, match="cut short"):
        arrays(write_old(tmp_path / "b.pth", value, storages))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
@given(at=st.integers(0, 10_000), to=st.integers(0, 255), cut=st.integers(0, 10_000))
def test_damaged_files_never_do_worse_than_being_refused(
    tmp_path: Path, at: int, to: int, cut: int
) -> None:
    for write in (write_zip, write_old):
        path = write(tmp_path / "x.pth", *sample())
        data = bytearray(path.read_bytes())
        data[at % len(data)] = to
        path.write_bytes(data[: 1 + cut % len(data)] if cut % 3 == 0 else data)
        with contextlib.suppress(MetricUnavailable):
            arrays(path)


def test_real_files_of_both_formats(shared: Path) -> None:
    """Sums that torch.load gave (torch 2.15) for the same files."""
    old = arrays(shared / "weights" / "cnniqa_LIVE_lidq92.pth")
    assert old["fc1.weight"].shape == (800, 100)
    assert old["conv1.weight"].astype(np.float64).sum() == pytest.approx(-0.17267840034128312)
    new = arrays(shared / "weights" / "taef2_decoder.pth")
    assert len(new) == 79
    assert new["1.weight"].dtype == np.float16
    assert new["1.weight"].astype(np.float64).sum() == pytest.approx(8.68201744556427)
