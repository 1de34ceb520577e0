"""Secrets: made once, given to the organiser in files that only they can read, and kept as hashes.

A token has 192 random bits, so that guessing one is hopeless; the limits on wrong tries only keep
the log short. A lookup by SHA-256 takes equally long whatever was guessed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from convergebench.errors import InputError, StoreDamaged

LINKS: Final = "links.csv"
ADMIN: Final = "admin.txt"
KEY: Final = "server.key"
LOCAL: Final = "http://127.0.0.1:8000"
_COLUMNS: Final = ("participant", "token", "link")


def new_token() -> str:
    """A secret of 192 bits, in letters that need no escaping in an address."""
    return secrets.token_urlsafe(24)


def token_hash(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def checked_base(base: str) -> str:
    """The address a server is reached at, without a path. Raises InputError."""
    try:
        parts = urlsplit(base)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise InputError(
            f"{base!r} is no address of a server. Expected one without a path, as "
            "https://ratings.example.org; give the app a host name of its own."
        )
    return f"{parts.scheme}://{parts.netloc}".lower()


def write_links(folder: Path, tokens: Sequence[tuple[str, str]], base: str) -> None:
    """Write the participants' links: pairs of public id and token."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((name, token, f"{base}/p/{token}") for name, token in tokens)
    write_private(folder / LINKS, out.getvalue().encode())


def write_admin(folder: Path, secret: str, base: str) -> None:
    """Write the admin's secret, and under it the address of the page that asks for it."""
    write_private(folder / ADMIN, f"{secret}\n{base}/admin\n".encode())


def point_links_to(folder: Path, base: str) -> None:
    """Have the links and the admin's address begin with another base.

    Where the organiser has taken the files away, nothing is done: their secrets are nowhere else.
    """
    links, admin = folder / LINKS, folder / ADMIN
    if links.is_file():
        with links.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if any(not (row.get("participant") and row.get("token")) for row in rows):
            raise StoreDamaged(f"{links} is not as it was written; restore it or move it away.")
        if any(row.get("link") != f"{base}/p/{row['token']}" for row in rows):
            write_links(folder, [(row["participant"], row["token"]) for row in rows], base)
    if admin.is_file():
        secret, *address = admin.read_text("utf-8").split()
        if address != [f"{base}/admin"]:
            write_admin(folder, secret, base)


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
