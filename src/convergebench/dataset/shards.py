"""Where rows with pictures go: Parquet shards with the bytes in them, or tar shards.

Both are written as they fill up, so that no more than one shard is ever held in memory.
"""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from convergebench.importer.datasetfiles import TARS, Column, ending, schema, told

if TYPE_CHECKING:
    import polars as pl

SHARD_BYTES: Final = 2**28
"""Bytes of pictures after which a new shard is begun; while it is written they are in memory
about three times."""

SHARD_ROWS: Final = 10_000
GROUP_BYTES: Final = 2**24
"""Bytes of pictures in a row group, which is what a reader who streams must hold."""

GROUP_ROWS: Final = 1000


@dataclass(frozen=True)
class Sample:
    """A row, the picture it is about, and its name within the dataset.

    Attributes:
        key: Name of the sample: no dot, so that what follows the first one is the ending.
        row: The columns but `image` and `raw`.
        data: The bytes that came, if any.
        readable: Whether they are a picture.
    """

    key: str
    row: dict[str, Any]
    data: bytes | None = None
    readable: bool = True

    @property
    def file(self) -> str:
        """The name of the picture's file."""
        return self.key + ending(self.row.get("format"))


class Shards(Protocol):
    """Takes the samples of one table."""

    def add(self, sample: Sample) -> None:
        """Take a sample."""

    def close(self) -> None:
        """Write what is left."""


class ParquetShards:
    """`TABLE/TABLE-00000.parquet`, …: one row per sample, its bytes in the column `image`."""

    def __init__(self, root: Path, table: str, columns: Sequence[Column]) -> None:
        self._folder, self._table = root / table, table
        self._schema = schema(columns)
        self._rows: list[dict[str, Any]] = []
        self._bytes = self._count = 0

    def add(self, sample: Sample) -> None:
        """Take a sample, and write a shard when there are enough."""
        row = {name: sample.row.get(name) for name in self._schema}
        if sample.data is not None and sample.readable:
            row["image"] = {"bytes": sample.data, "path": sample.file}
        elif sample.data is not None:
            row["raw"] = sample.data
        self._rows.append(row)
        self._bytes += len(sample.data or b"")
        if self._bytes >= SHARD_BYTES or len(self._rows) >= SHARD_ROWS:
            self.close()

    def close(self) -> None:
        """Write what is left."""
        import polars as pl

        if not self._rows:
            return
        share = GROUP_BYTES * len(self._rows) // max(self._bytes, 1)
        table = pl.DataFrame(self._rows, schema=self._schema, orient="row")
        self._rows.clear()
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{self._table}-{self._count:05d}.parquet"
        write_parquet(table, path, max(1, min(GROUP_ROWS, share)))
        self._count, self._bytes = self._count + 1, 0


class TarShards:
    """`webdataset/TABLE/TABLE-00000.tar`, …: a sample's picture as it came, then its JSON."""

    def __init__(self, root: Path, table: str) -> None:
        self._folder, self._table = root / TARS / table, table
        self._tar: tarfile.TarFile | None = None
        self.endings: set[str] = set()
        self._bytes = self._count = self._samples = 0

    def add(self, sample: Sample) -> None:
        """Write a sample."""
        if self._tar is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{self._table}-{self._count:05d}.tar"
            self._tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
        if sample.data is not None:
            name = sample.file if sample.readable else f"{sample.key}.bin"
            self._write(name, sample.data)
        about = json.dumps(told(sample.row), ensure_ascii=False, allow_nan=False)
        self._write(f"{sample.key}.json", about.encode())
        self._samples += 1
        if self._bytes >= SHARD_BYTES or self._samples >= SHARD_ROWS:
            self.close()

    def close(self) -> None:
        """End the shard."""
        if self._tar is not None:
            self._tar.close()
            self._tar, self._count = None, self._count + 1
            self._bytes = self._samples = 0

    def _write(self, name: str, data: bytes) -> None:
        assert self._tar is not None  # opened by `add`
        # The same date, owner and rights for all: equal runs make equal shards.
        self.endings.add(name.partition(".")[2])
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(data), 0o644, 0
        self._tar.addfile(info, io.BytesIO(data))
        self._bytes += len(data)


def write_parquet(table: pl.DataFrame, path: Path, group: int | None = None) -> None:
    """Write a table. Raises OSError, a full disk's among them."""
    import polars as pl

    try:
        table.write_parquet(path, row_group_size=group)
    except pl.exceptions.PolarsError as error:  # some of the system's errors come as these
        if "No space left" not in str(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
