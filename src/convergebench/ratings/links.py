"""Secrets: made once, given to the organiser in files that only they can read, and kept as hashes.

A token has 192 random bits, so that guessing one is hopeless; the limits on wrong tries only keep
the log short. A lookup by SHA-256 takes equally long whatever was guessed.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import ipaddress
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from convergebench.disk import plain_errors, sync_directory
from convergebench.errors import InputError, StoreDamaged, StoreError

LINKS: Final = "links.csv"
ADMIN: Final = "admin.txt"
KEY: Final = "server.key"
CODES: Final = "codes.csv"
KEY_BYTES: Final = 32
LOCAL: Final = "http://127.0.0.1:8000"
PORTS: Final = {"http": 80, "https": 443}
_COLUMNS: Final = ("participant", "token", "link")


def new_token() -> str:
    """A secret of 192 bits, in letters that need no escaping in an address.

    It begins and ends with a letter or digit: a spreadsheet takes "-x" for a formula, and mail
    programs cut a "-" off the end of a link.
    """
    while True:
        token = secrets.token_urlsafe(24)
        if token[0].isalnum() and token[-1].isalnum():
            return token


def token_hash(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def checked_base(base: str) -> str:
    """The address a server is reached at, as browsers name it; no path. Raises InputError."""
    name, port = "", None
    try:
        parts = urlsplit(base)
        port = parts.port
        name = _as_sent(parts.hostname or "")
        good = bool(name) and parts.scheme in PORTS and port != 0 and "@" not in parts.netloc
    except ValueError:
        good = False
    if not good or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InputError(
            f"{base!r} is no address of a server. Expected one without a path, as "
            "https://ratings.example.org; give the app a host name of its own."
        )
    # A browser does not send the port that goes without saying.
    told = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{name}{told}"


def _as_sent(host: str) -> str:
    """A host name as a browser puts it into headers, or nothing if it is none."""
    if ":" in host:
        return f"[{ipaddress.IPv6Address(host).compressed}]"
    plain = host if host.isascii() else host.encode("idna").decode()
    return plain.lower() if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", plain) else ""


def write_links(folder: Path, tokens: Sequence[tuple[str, str]], base: str) -> None:
    """Write the participants' links: pairs of public id and token."""
    rows = [(name, token, f"{base}/p/{token}") for name, token in tokens]
    _write_table(folder / LINKS, [_COLUMNS, *rows])


def write_codes(folder: Path, codes: Sequence[tuple[str, str]]) -> None:
    """Write what each participant will be shown at the end: pairs of public id and code."""
    _write_table(folder / CODES, [("participant", "code"), *codes])


def _write_table(path: Path, rows: Sequence[Sequence[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    write_private(path, out.getvalue().encode())


def read_key(folder: Path) -> bytes:
    """What the server signs with. Raises StoreError; a short key could be guessed."""
    try:
        key = (folder / KEY).read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {folder / KEY} ({error.strerror})") from error
    if len(key) < KEY_BYTES:
        raise StoreDamaged(
            f"{folder / KEY} has {len(key)} bytes, expected {KEY_BYTES}. Restore it."
        )
    return key


def write_admin(folder: Path, secret: str, base: str) -> None:
    """Write the admin's secret, and under it the address of the page that asks for it."""
    write_private(folder / ADMIN, f"{secret}\n{base}/admin\n".encode())


def point_links_to(folder: Path, base: str) -> None:
    """Have the links and the admin's address begin with another base.

    Where the organiser has taken the files away, nothing is done: their secrets are nowhere else.
    Columns that the organiser has added (who got which link) stay.

    Raises:
        StoreError: A file cannot be read or written.
        StoreDamaged: A file is not as it was written.
    """
    links, admin = folder / LINKS, folder / ADMIN
    if links.is_file():
        with plain_errors(links), _as_written(links):
            _point_rows_to(links, base)
    if admin.is_file():
        with plain_errors(admin), _as_written(admin):
            secret, *address = admin.read_text("utf-8").split()
            if address != [f"{base}/admin"]:
                write_admin(folder, secret, base)


def _point_rows_to(links: Path, base: str) -> None:
    head, *rows = csv.reader(io.StringIO(links.read_text("utf-8-sig"), newline=""))
    token, link = head.index("token"), head.index("link")
    rows = [row for row in rows if row]
    if any(len(row) <= max(token, link) or not row[token] for row in rows):
        raise ValueError("a row is too short")
    told = [[*row[:link], f"{base}/p/{row[token]}", *row[link + 1 :]] for row in rows]
    if told != rows:
        _write_table(links, [head, *told])


@contextlib.contextmanager
def _as_written(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, csv.Error) as error:
        raise StoreDamaged(
            f"{path} is not as it was written; restore it or move it away."
        ) from error


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, by way of a rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)
