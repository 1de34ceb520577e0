"""A server for all tests of this folder, and for each test a bucket, a proxy and an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.remote.objects import Objects, Proxy, client, serving_objects, settings

collect_ignore_glob = [] if find_spec("s3fs") and find_spec("moto") else ["test_*.py"]


@dataclass
class Shelf:
    """A bucket on the server, seen through a proxy.

    Attributes:
        url: The server itself.
        proxy: What the tested code talks to.
        bucket: An empty bucket of this test's own.
        client: For the test's own looks, past the proxy.
        caches: Under which every "machine" has its folder of working copies.
        scheme: How addresses there begin.
        settings: The environment of a process that works there, given where it finds the store, its
            folder of working copies and its patience.
    """

    url: str
    proxy: Proxy
    bucket: str
    client: Objects
    caches: Path
    patch: pytest.MonkeyPatch
    scheme: str = "s3"
    settings: Callable[[str, str, float], dict[str, str]] = settings

    @property
    def run(self) -> str:
        return f"{self.scheme}://{self.bucket}/run"

    def machine(self, name: str = "a", patience: float = 20.0) -> dict[str, str]:
        """The environment of a machine of that name; this process is that machine from now on."""
        told = self.settings(self.proxy.url, str(self.caches / name), patience)
        for key, value in told.items():
            self.patch.setenv(key, value)
        return told

    def copy(self, name: str = "a") -> Path:
        """The only working copy of a machine."""
        (found,) = [p for p in (self.caches / name).iterdir() if len(p.name) == 24]
        return found

    def names(self, prefix: str = "run/") -> list[str]:
        return [name.removeprefix("run/") for name in self.client.names(self.bucket, prefix)]

    def get(self, name: str) -> bytes:
        return self.client.get(self.bucket, f"run/{name}")

    def put(self, name: str, data: bytes) -> None:
        self.client.put(self.bucket, f"run/{name}", data)

    def delete(self, name: str) -> None:
        self.client.delete(self.bucket, f"run/{name}")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with serving_objects() as url:
        yield url


@pytest.fixture
def shelf(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """This process is machine `a`; the bucket is empty."""
    own = client(server)
    with Proxy(server) as proxy:
        shelf = Shelf(server, proxy, own.make_bucket(), own, tmp_path / "copies", monkeypatch)
        shelf.machine()
        yield shelf
