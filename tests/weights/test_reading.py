from __future__ import annotations

import builtins
import contextlib
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from scipy.io import savemat

from convergebench.errors import MetricUnavailable
from convergebench.weights import arrays

FIELD = np.arange(12, dtype=np.float32).reshape(3, 4)
NUMBERS = st.sampled_from(["<f4", ">f8", "<f2", "<i8", "|u1", ">i2", "|b1", "<c8"])


def refused(path: Path, told: str) -> None:
    with pytest.raises(MetricUnavailable, match=told):
        arrays(path)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def safetensors(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    value=arrays_of.arrays(NUMBERS.map(np.dtype), arrays_of.array_shapes(min_dims=0, min_side=0)),
    protocol=st.integers(2, 5),
    fortran=st.booleans(),
)
def test_pickled_arrays_come_back_as_they_were(
    tmp_path: Path, value: np.ndarray[Any, Any], protocol: int, fortran: bool
) -> None:
    value = np.asfortranarray(value) if fortran else value
    data = {"a": {"b": value, "n": 3}, "c": [value, "text", None], "d": value.dtype.type(1)}
    found = arrays(write(tmp_path / "x.ckpt", pickle.dumps(data, protocol)))
    assert set(found) == {"a/b", "a/n", "c/0", "d"}
    for name in ("a/b", "c/0"):
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(at=st.integers(0, 10_000), to=st.integers(0, 255), cut=st.integers(0, 10_000))
def test_a_damaged_pickle_never_does_worse_than_being_refused(
    tmp_path: Path, at: int, to: int, cut: int
) -> None:
    data = bytearray(pickle.dumps({"a": FIELD, "b": {"c": FIELD[1]}}, 4))
    data[at % len(data)] = to
    data = data[: 1 + cut % len(data)] if cut % 3 == 0 else data
    path = write(tmp_path / "x.ckpt", bytes(data))
    with contextlib.suppress(MetricUnavailable):
        arrays(path)


class Order:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_wants_to_run_something_is_refused_by_name(
    tmp_path: Path, protocol: int
) -> None:
    import os

    mark = tmp_path / "mark"
    orders: list[tuple[Any, tuple[Any, ...], str]] = [
        (os.system, (f"touch {mark}",), r"posix\.system"),
        (builtins.eval, (f"open({str(mark)!r}, 'w')",), "eval"),
        (builtins.exec, ("1",), "exec"),
        (np.load, ("x",), "numpy"),
    ]
    for function, arguments, told in orders:
        data = pickle.dumps({"w": Order(function, *arguments)}, protocol)
        refused(write(tmp_path / "x.pth", b"\x80\x02" + data if protocol < 2 else data), told)
    assert not mark.exists()


def test_a_torch_archive_that_wants_to_run_something_is_refused(tmp_path: Path) -> None:
    import os

    mark = tmp_path / "mark"
    data = pickle.dumps({"w": Order(os.system, f"touch {mark}")}, 2)
    with zipfile.ZipFile(tmp_path / "x.pth", "w") as archive:
        archive.writestr("archive/data.pkl", data)
    refused(tmp_path / "x.pth", r"it asks for posix\.system, and weights may hold arrays only")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (pickle.dumps(np.array(["a", None], object)), "values of type 'O8'"),
        (pickle.dumps({"a": np.array(["x"])}), "values of type 'U1'"),
        (b"\x80\x04r\xff\xff\xff\xff.", "memo out of order|cut short"),
        (b"\x80\x04]r\xff\xff\xff\x7f.", "memo out of order"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "cut short or no pickle"),
        (b"\x80\x04cnumpy\ndtype\n}b.", "tries to change a function"),
        (b"\x80\x04cnumpy\nndarray\n)R.", "in a way we do not know"),
        (b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n)R.", "has no content"),
        (b"\x80\x04]\x94h\x00a.", "nested more than 64 levels"),
        (b"\x80\x02X\x01\x00\x00\x00aQ.", "data outside itself"),
        (pickle.dumps(10**400), "absurd number"),
        (pickle.dumps(FIELD)[:-30], "cut short"),
        (b"plain text, no parameters", "no file of parameters"),
        (b"", "no file of parameters"),
    ],
)
def test_pickles_that_are_no_parameters(tmp_path: Path, data: bytes, told: str) -> None:
    refused(write(tmp_path / "x.ckpt", data), told)


@pytest.mark.parametrize("seed", [1, "text", None])
def test_containers_that_multiply_are_refused(tmp_path: Path, seed: Any) -> None:
    value: Any = [seed, seed]
    for _ in range(40):
        value = [value, value]
    refused(write(tmp_path / "x.ckpt", pickle.dumps(value)), "more than 200000 values")


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=FIELD, y=np.asfortranarray(FIELD), s=np.float64(2))
    np.savez_compressed(tmp_path / "b.npz", x=FIELD, y=FIELD, s=np.float64(2))
    for name in ("a.npz", "b.npz"):
        found = arrays(tmp_path / name)
        np.testing.assert_array_equal(found["x"], FIELD)
        np.testing.assert_array_equal(found["y"], FIELD)
        assert found["s"] == 2


def test_npz_with_objects_lies_and_bombs(tmp_path: Path) -> None:
    np.savez(tmp_path / "o.npz", x=np.array([{}], object))
    refused(tmp_path / "o.npz", "values of type 'object'")
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    lie = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + b"12345678"
    with zipfile.ZipFile(tmp_path / "l.npz", "w") as archive:
        archive.writestr("x.npy", lie)
    refused(tmp_path / "l.npz", "'x.npy' is cut short")
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(80 << 20))
    refused(tmp_path / "b.npz", "absurd size")
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("x.npy", b"nonsense")
    refused(tmp_path / "d.npz", "is damaged")
    whole = (tmp_path / "l.npz").read_bytes()
    refused(write(tmp_path / "c.npz", whole[:40]), "cut short or damaged")


def test_safetensors(tmp_path: Path) -> None:
    wide = FIELD.view(np.uint32) >> 16
    data = FIELD.tobytes() + wide.astype("<u2").tobytes()
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]},
        "b": {"dtype": "BF16", "shape": [12], "data_offsets": [48, 72]},
        "none": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
    }
    found = arrays(write(tmp_path / "x.safetensors", safetensors(header, data)))
    np.testing.assert_array_equal(found["a"], FIELD)
    np.testing.assert_array_equal(found["b"], FIELD.ravel())  # small whole numbers are exact
    assert found["none"].shape == (0,)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ((1 << 60).to_bytes(8, "little") + b"{}", "header is longer than the file"),
        (safetensors(b"{not json"), "header is damaged"),
        (safetensors(b"{" + b'"a":[' * 100_000), "header is damaged"),
        (safetensors({"a": 3}), "has the type 'None'"),
        (safetensors({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}), "F8_E4M3"),
        (safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}), "beyond"),
        (
            safetensors({"a": {"dtype": "U8", "shape": [1 << 60], "data_offsets": [0, 8]}}),
            "is damaged",
        ),
        (
            safetensors({"a": {"dtype": "U8", "shape": [4], "data_offsets": [-4, 0]}}, bytes(9)),
            "is damaged",
        ),
    ],
)
def test_safetensors_that_lie(tmp_path: Path, data: bytes, told: str) -> None:
    refused(write(tmp_path / "x.safetensors", data), told)


def test_matlab_cells_and_structures(tmp_path: Path) -> None:
    cell = np.empty((1, 2), object)
    cell[0, 0], cell[0, 1] = FIELD, {"k": FIELD[0]}
    savemat(tmp_path / "x.mat", {"cell": cell, "s": {"w": FIELD, "name": "text"}})
    found = arrays(tmp_path / "x.mat")
    assert set(found) == {"cell/0", "cell/1/k", "s/w"}
    np.testing.assert_array_equal(found["s/w"], FIELD)
    whole = (tmp_path / "x.mat").read_bytes()
    refused(write(tmp_path / "c.mat", whole[:200]), "cut short or damaged")


def test_hdf5_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "h5py":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    refused(write(tmp_path / "x.hdf5", b"\x89HDF\r\n\x1a\n"), "needs h5py: pip install h5py")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused(tmp_path / "none.npz", "cannot be read")
    with zipfile.ZipFile(tmp_path / "x.pth", "w") as archive:
        archive.writestr("readme", "hello")
    refused(tmp_path / "x.pth", "no archive of torch's")


def test_what_lpips_and_brisque_packages_bring_is_plain(tmp_path: Path) -> None:
    """The pickle of image-quality: scaling bounds as lists of numbers."""
    stream = io.BytesIO()
    pickle.dump({"min_": [1.0, 2.0], "max_": [3.0, 4.0]}, stream)
    found = arrays(write(tmp_path / "normalize.pickle", stream.getvalue()))
    assert [float(found[f"max_/{i}"]) for i in range(2)] == [3.0, 4.0]
