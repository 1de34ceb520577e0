"""Addresses of runs on object storage: `s3://bucket/run`, `gs://…`, `az://…`.

An address holds no secret: whoever opens it finds the credentials where the provider's own tools
look for them (environment, profile, the machine's role).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from convergebench.errors import SettingsError

EXTRAS: Final = {"s3": "s3", "gs": "gs", "az": "az"}
"""The schemes that are understood, and the extra of this package that each needs."""

LIBRARIES: Final = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
"""What that extra brings for each."""

# pathlib makes `s3:/bucket` of `s3://bucket`, and `s3:` of `s3://`; all are understood.
_LOOKS: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+]+):(?:/(?P<slash>/?)(?P<rest>.*))?", re.DOTALL | re.IGNORECASE
)

_SLASHLESS: Final = re.compile(
    rf"(?P<scheme>{'|'.join(EXTRAS)}):(?P<rest>[^/].*)", re.DOTALL | re.IGNORECASE
)


@dataclass(frozen=True)
class Address:
    """Where a run is on object storage.

    Attributes:
        scheme: `s3`, `gs` or `az`.
        root: Bucket and folder, without a slash at the end.
    """

    scheme: str
    root: str

    @property
    def name(self) -> str:
        """The last part, which names the run."""
        return self.root.rpartition("/")[2]

    @property
    def extra(self) -> str:
        """What to install for it."""
        return EXTRAS[self.scheme]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.root}"

    def __fspath__(self) -> str:
        """So that it may be given wherever a path may; `address_of` knows it again."""
        return str(self)


Place = Path | Address
"""Where a run is."""


def place_of(place: str | os.PathLike[str]) -> Place:
    """What somebody gave as a run directory: a path or an address. Raises SettingsError."""
    return address_of(place) or Path(place)


def address_of(place: str | os.PathLike[str]) -> Address | None:
    """The address that somebody gave as a run directory; None where it is a path.

    Raises:
        SettingsError: It looks like an address and cannot be used as one.
    """
    text = os.fspath(place)
    looks = _LOOKS.fullmatch(text)
    if looks is None:
        _refuse_slashless(text)
        return None
    scheme, rest = looks["scheme"].lower(), (looks["rest"] or "").strip("/")
    if scheme not in EXTRAS and not looks["slash"] and Path(f"{looks['scheme']}:").is_dir():
        return None
    if scheme not in EXTRAS:
        known = ", ".join(f"{each}://" for each in EXTRAS)
        raise SettingsError(
            f"runs cannot be kept under {scheme}://. Give a directory, or an address that begins "
            f"with {known}."
        )
    bucket, _, folder = rest.partition("/")
    _refuse_secrets(scheme, rest)
    parts = rest.split("/")
    if not bucket or not folder or any(part in ("", ".", "..") for part in parts):
        raise SettingsError(f"{scheme}://{rest} names no run: write {scheme}://BUCKET/RUN.")
    return Address(scheme, rest)


def _refuse_secrets(scheme: str, rest: str) -> None:
    bucket = rest.partition("/")[0]
    if "@" in bucket or ":" in bucket.removeprefix("arn:aws:s3:") or "?" in rest:
        # What stands there is not repeated: it may be a secret, and secrets may have a slash.
        raise SettingsError(
            f"an address of a run holds no credentials and no options: write {scheme}://BUCKET/RUN."
            " Credentials are found in the environment, in a profile or by the machine's role."
        )


def _refuse_slashless(text: str) -> None:
    """Refuse `s3:bucket/run`, unless there is such a folder: nobody would find the run in it."""
    looks = _SLASHLESS.fullmatch(text)
    if looks is None or os.path.lexists(text.partition("/")[0]):
        return
    scheme, rest = looks["scheme"].lower(), looks["rest"].rstrip("/")
    _refuse_secrets(scheme, rest.replace("/", "-"))  # whose key is in it cares for no slashes
    raise SettingsError(
        f"{text} is not an address, two slashes are missing: write {scheme}://{rest}, or make a "
        f"folder {text.partition('/')[0]} first if you mean one on this machine."
    )


def require_directory(place: str | os.PathLike[str], command: str) -> Path:
    """The path of a run that has to be a directory.

    Raises:
        SettingsError: It is an address.
    """
    address = address_of(place)
    if address is not None:
        raise SettingsError(
            f"`{command}` needs a run directory on this machine, got {address}. "
            "`convergebench copy FROM TO` copies a run between addresses and directories."
        )
    return Path(place)
