"""Both servers for all tests of this folder; for each test a bucket, a proxy, an environment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clouds import azure, google
from tests.remote.conftest import Shelf
from tests.remote.objects import Proxy


@pytest.fixture(scope="session")
def azure_server() -> Iterator[str]:
    if not azure.program():
        pytest.skip(f"needs Azurite, which {azure.AZURITE} names; .ci/clouds installs it")
    with azure.serving_azure() as url:
        yield url


@pytest.fixture(scope="session")
def google_server() -> Iterator[str]:
    with google.serving_google() as url:
        yield url


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests is logged in nowhere."""
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path / "no-az"))
    for name in ("STORAGE_CONNECTION_STRING", "STORAGE_ACCOUNT_NAME", "CLIENT_ID", "TENANT_ID"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)


@contextlib.contextmanager
def _azure(server: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    def settings(url: str, cache: str, patience: float) -> dict[str, str]:
        return {
            "AZURE_STORAGE_CONNECTION_STRING": azure.connection(url),
            "CONVERGEBENCH_CACHE": cache,
            "CONVERGEBENCH_PATIENCE": str(patience),
        }

    own = azure.AzureClient(server)
    with Proxy(server, azure.asked_of) as proxy:
        yield Shelf(server, proxy, own.make_bucket(), own, folder / "copies", patch, "az", settings)


@contextlib.contextmanager
def _google(server: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    def settings(url: str, cache: str, patience: float) -> dict[str, str]:
        keys = folder / "keys"  # the user's own, beside which nothing is searched for secrets
        keys.mkdir(exist_ok=True)
        return {
            "STORAGE_EMULATOR_HOST": url,
            "GOOGLE_APPLICATION_CREDENTIALS": str(google.write_key(keys / "key.json", url)),
            "CONVERGEBENCH_CACHE": cache,
            "CONVERGEBENCH_PATIENCE": str(patience),
        }

    own = google.GoogleClient(server)
    with google.GoogleProxy(server) as proxy:
        yield Shelf(server, proxy, own.make_bucket(), own, folder / "copies", patch, "gs", settings)


@pytest.fixture(params=["az", "gs"])
def shelf(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shelf]:
    """This process is machine `a`; the bucket is empty."""
    name, make = {"az": ("azure", _azure), "gs": ("google", _google)}[request.param]
    server = request.getfixturevalue(f"{name}_server")
    with make(server, tmp_path, monkeypatch) as shelf:
        shelf.machine()
        yield shelf


def secrets(shelf: Shelf) -> list[str]:
    """What must be seen nowhere."""
    if shelf.scheme == "az":
        return [azure.SECRET, azure.WRONG]
    lines = google.private_key().splitlines()
    return [google.TOKEN, google.KEY_ID, lines[1], lines[-2]]
