"""Finding a package's archive on the npm registry that the user's npm uses.

The registry is whatever npm is told: by the environment (`npm_config_registry`), then by its
configuration files, then the one that npm itself has built in; npm is asked for the last two. Where
there is no npm, `registry=` in ~/.npmrc counts. Its address is never written here, and never shown
with its password. Nothing of a package is run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from convergebench.weights.index import absolute
from convergebench.weights.transfer import Failure, read_page, shown

PAGE: Final = 4 << 20
"""The longest description of a package that we read."""
SETTING: Final = "npm_config_registry"


def locate_tarball(package: str, version: str) -> str:
    """The address of a version's archive.

    Raises:
        Failure: No registry is known, or it does not carry that version.
    """
    page = f"{registry().rstrip('/')}/{quote(package, safe='@')}/{quote(version)}"
    body, base, _ = read_page(page, "application/json", PAGE)
    try:
        found: Any = json.loads(body)["dist"]["tarball"]
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{shown(page)} is damaged ({type(error).__name__})") from None
    return absolute(page, base, str(found))


def registry() -> str:
    """The address of the registry that npm would ask.

    Raises:
        Failure: None is known.
    """
    told = [value for name, value in os.environ.items() if name.lower() == SETTING and value]
    found = told[0] if told else _asked() or _configured()
    if not found.startswith(("http://", "https://")):
        raise Failure(f"no npm registry is known: set {SETTING} to the address of one")
    return found


def _asked() -> str:
    """What npm says; empty where there is no npm."""
    program = shutil.which("npm")
    if program is None:
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError), _elsewhere() as place:
        run = subprocess.run(
            [program, "config", "get", "registry"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=place,
        )
        if run.returncode == 0:
            return run.stdout.strip()
    return ""


def _elsewhere() -> tempfile.TemporaryDirectory[str]:
    """A folder without settings of its own: a project's .npmrc is not the user's."""
    return tempfile.TemporaryDirectory(prefix="convergebench-npm-")


def _configured() -> str:
    """What the user's .npmrc says."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in (Path.home() / ".npmrc").read_text("utf-8").splitlines():
            name, equals, value = line.partition("=")
            if equals and name.strip() == "registry":
                return value.strip().strip("\"'")
    return ""
