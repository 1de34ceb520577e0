"""Two nodes of a real Ray cluster, one CPU each, for all tests of this folder."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.ray.cluster import Cluster
from tests.ray.plugins import install_plugin

# A token of these clusters' own, as on a cluster that others can reach. Ray reads where it is when
# it is loaded, so it is said before.
_folder = Path(tempfile.mkdtemp(prefix="cbtoken"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
(_folder / "token").write_text(secrets.token_hex(32))
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN_PATH"] = str(_folder / "token")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started:
        started.add()
        yield started


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The editors and metrics of this folder, installed as a plug-in package on the driver."""
    place = install_plugin(tmp_path / "plugin")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), str(ROOT)]))
    return place
