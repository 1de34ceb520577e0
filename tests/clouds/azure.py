"""Azurite, Microsoft's own emulator of Azure Blob Storage: it checks every signature."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.remote.objects import Asked, free_port, serving
from tests.support.loopback import Received

ACCOUNT = "picturesaccount"
SECRET = base64.b64encode(b"not to be seen in any file, object or text").decode()
WRONG = base64.b64encode(b"a key that opens nothing, not to be seen too").decode()
AZURITE = "CONVERGEBENCH_AZURITE"
"""Names the folder in which npm has installed it; see .ci/clouds."""


def program() -> str:
    """Where it is; empty where it is not."""
    told = os.environ.get(AZURITE)
    path = Path(told, "node_modules", ".bin", "azurite-blob") if told else None
    return str(path) if path and path.exists() else shutil.which("azurite-blob") or ""


@contextlib.contextmanager
def serving_azure() -> Iterator[str]:
    """It, as a process; its address."""
    port = free_port()
    words = ["--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"]
    command = [program(), *words, "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with serving(port, command, AZURITE_ACCOUNTS=f"{ACCOUNT}:{SECRET}") as url:
        yield url


def connection(url: str, key: str = SECRET) -> str:
    """A connection string."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};"
        f"BlobEndpoint={url}/{ACCOUNT};"
    )


def asked_of(number: int, got: Received) -> Asked:
    """A request, in Azure's words."""
    url = urlsplit(got.path)
    _, _account, container, *rest = unquote(url.path).split("/", 3)
    query = parse_qs(url.query)
    headers = {name.lower(): value for name, value in got.headers.items()}
    listing = got.method == "GET" and query.get("comp") == ["list"]
    key = query.get("prefix", [""])[0] if listing else "".join(rest)
    kind = "LIST" if listing else got.method
    once, shallow = headers.get("if-none-match") == "*", "delimiter" in query
    return Asked(number, kind, container, key, once, shallow, len(got.body))


class AzureClient:
    """Microsoft's library itself, for the test's own looks."""

    def __init__(self, url: str) -> None:
        from importlib import import_module

        blobs: Any = import_module("azure.storage.blob")
        self._service = blobs.BlobServiceClient.from_connection_string(connection(url))

    def make_bucket(self) -> str:
        name = f"container-{uuid.uuid4().hex[:12]}"
        self._service.create_container(name)
        return name

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        container = self._service.get_container_client(bucket)
        return [str(each.name) for each in container.list_blobs(name_starts_with=prefix)]

    def get(self, bucket: str, key: str) -> bytes:
        return bytes(self._service.get_blob_client(bucket, key).download_blob().readall())

    def type_of(self, bucket: str, key: str) -> str:
        told = self._service.get_blob_client(bucket, key).get_blob_properties()
        return str(told.content_settings.content_type)

    def put(self, bucket: str, key: str, body: bytes) -> None:
        self._service.get_blob_client(bucket, key).upload_blob(body, overwrite=True)

    def delete(self, bucket: str, key: str) -> None:
        self._service.get_blob_client(bucket, key).delete_blob()

    def all(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        return {name: self.get(bucket, name) for name in self.names(bucket, prefix)}
