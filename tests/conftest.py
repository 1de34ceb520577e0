"""Fixtures for all tests: no network, no keys, and the data folder where it is."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.plugins import install_test_plugin

# Machines are noisy: how long an example takes says nothing about whether it is right.
# Where a change is judged (.ci/run), the same examples every time, and fewer; elsewhere new ones.
JUDGED = "CI" in os.environ
settings.register_profile(
    "patient", deadline=None, derandomize=JUDGED, max_examples=50 if JUDGED else 100
)
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]
# Comparisons with pyiqa, torch and lpips, diffusers' pipelines, clusters, and the object storage of
# Google and Azure run in environments of their own: see .ci/iqa, .ci/local, .ci/scale, .ci/clouds.
_ELSEWHERE = {"clouds": "adlfs", "iqa": "pyiqa", "local": "diffusers", "ray": "ray"}
collect_ignore = [folder for folder, module in _ELSEWHERE.items() if not find_spec(module)]
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _is_here(host: str) -> bool:
    """Whether that is this machine: by its loopback, or by an address that it has, as Ray uses."""
    if host in LOOPBACK:
        return True
    with contextlib.suppress(OSError, ValueError), socket.socket() as own:
        ipaddress.IPv4Address(host)
        own.bind((host, 0))
        return True
    return False


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach nothing but this machine, and know no keys."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and not _is_here(address[0]):
            raise OSError(f"tests may not reach {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in os.environ:
        if re.search(r"(_KEY|_TOKEN|_SECRET)$", name):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the repository; the test is skipped where it is absent."""
    path = Path(os.environ.get("CONVERGEBENCH_SHARED", ROOT.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"needs the data folder {path}, which is not part of the repository")
    return path


@pytest.fixture
def test_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The editors and metrics of tests/support, installed as a real plug-in package."""
    place = install_test_plugin(tmp_path / "plugin")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), str(ROOT)]))
    return place


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where nothing may be skipped (.ci/run beside the data folder), name what was."""
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("CONVERGEBENCH_NO_SKIP") and skipped:
        terminalreporter.section("skipped although nothing may be", red=True)
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {report.longrepr[-1]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A forbidden skip fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CONVERGEBENCH_NO_SKIP") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
