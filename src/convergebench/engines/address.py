"""The address of a Ray cluster: what is one, and who said it. Passwords are never repeated."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from convergebench.errors import SettingsError, scrub

VARIABLE: Final = "RAY_ADDRESS"
"""Where Ray looks for an address when it is given none."""
EXPECTED: Final = (
    "HOST:PORT, usually HOST:6379, or ray://HOST:PORT, usually ray://HOST:10001, or auto"
)
_WELL_MADE: Final = re.compile(r"(?:ray://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%\w+)?\]):([0-9]{1,5})")


@dataclass(frozen=True)
class Address:
    """Where Ray is to be found.

    Attributes:
        text: `auto`, `HOST:PORT` or `ray://HOST:PORT`; `local` starts Ray here.
        by_variable: Whether RAY_ADDRESS said so.
    """

    text: str
    by_variable: bool = False

    @property
    def host_and_port(self) -> tuple[str, int] | None:
        """Where to knock, if that is known."""
        host, colon, port = self.text.removeprefix("ray://").rpartition(":")
        return (host.strip("[]"), int(port)) if colon else None


def checked(text: str, name: str = "the address of the Ray cluster") -> str:
    """The address as Ray takes it.

    Raises:
        SettingsError: It is none.
    """
    told = text.strip()
    if not told:
        raise SettingsError(
            f"{name} is empty: is a shell variable unset? It is {EXPECTED}; without one, Ray is "
            "started on this machine."
        )
    if sign := next((sign for sign in "@?#=" if sign in told), ""):
        raise SettingsError(
            f"{name} contains '{sign}', so it is not repeated here: it may come with a password. "
            f"Ray takes neither user nor password; give {EXPECTED}."
        )
    told = told.rstrip("/") if "://" in told else told.removesuffix("/")
    found = _WELL_MADE.fullmatch(told)
    if told != "auto" and not (found and 0 < int(found.group(1)) < 1 << 16):
        raise SettingsError(f"{name} is {EXPECTED}; got {scrub(text)[:200]!r}.")
    return told


def sought(address: str | None) -> Address:
    """Where to look for Ray: at the address, where RAY_ADDRESS says, or nowhere: it starts here.

    Raises:
        SettingsError: What was said is no address.
    """
    found = None if address is None else checked(address)
    variable = os.environ.get(VARIABLE, "").strip()
    if found not in (None, "auto") or not variable:
        return Address(found or "local")
    if variable == "local":  # so Ray would understand it
        if found:
            raise SettingsError(
                f"the address is auto, and {VARIABLE} is local: unset it, or give HOST:PORT."
            )
        return Address("local")
    return Address(checked(variable, VARIABLE), by_variable=True)
