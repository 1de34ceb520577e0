"""Putting a report on object storage, where a browser can read it if the bucket is served."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from mimetypes import MimeTypes
from pathlib import Path
from typing import Final

from convergebench.errors import StoreError
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket

AT_ONCE: Final = 16
_KNOWN: Final = MimeTypes()  # Python's own, without what this machine's settings say
_KINDS: Final = {
    ".js": "text/javascript",
    ".md": "text/markdown",
    ".tex": "text/plain",  # so that a browser shows it
    ".webp": "image/webp",
}
"""What Python's list lacks, or says in another way in some versions."""


def publish(folder: Path, address: Address, marker: str) -> int:
    """Upload a report's folder, only what is not there as it is; index.html last.

    Args:
        folder: The report.
        address: Where it goes.
        marker: The file that says whose report it is.

    Returns:
        How many files were sent.

    Raises:
        StoreError: Something else lies there, or it cannot be written.
    """
    bucket = Bucket(address)
    there = bucket.list()
    if there and not (marker in there and bucket.get(marker) == (folder / marker).read_bytes()):
        raise StoreError(
            f"{address} holds something else than this run's report. Choose another address."
        )
    files = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    typed = _is_typed(bucket, there)
    first = [name for name in files if name not in (marker, "index.html")]

    def send(name: str) -> bool:
        data = files[name].read_bytes()
        # The tag of an object is the MD5 of its bytes nearly everywhere; elsewhere it is sent anew.
        same = typed and name in there and there[name].md5 == hashlib.md5(data).hexdigest()
        if not same:
            bucket.put(name, data, kind=kind_of(name))
        return not same

    sent = int(send(marker))  # first, so that an upload that was cut off can go on
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sent += sum(pool.map(send, first))
    return sent + (send("index.html") if "index.html" in files else 0)


def _is_typed(bucket: Bucket, there: Collection[str]) -> bool:
    """Whether what is there has the types of pages; without, browsers save it and show nothing.

    The first page tells for all, because it is sent last.
    """
    told = bucket.kind("index.html") if "index.html" in there else ""
    return told.partition(";")[0] in ("", "text/html")


def kind_of(name: str) -> str:
    """The media type of a file, by its ending."""
    kind = _KINDS.get(Path(name).suffix) or _KNOWN.guess_type(name, strict=False)[0]
    kind = kind or "application/octet-stream"
    written = kind.startswith("text/") or kind in ("application/json", "image/svg+xml")
    return f"{kind}; charset=utf-8" if written else kind
