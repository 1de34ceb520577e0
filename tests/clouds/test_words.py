"""What commands say of these clouds: one sentence, exit code 2, soon, and never a secret."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.clouds import azure, google
from tests.clouds.conftest import secrets
from tests.remote.conftest import Shelf
from tests.remote.processes import said
from tests.support.commands import Command
from tests.support.loopback import Reply
from tests.support.runs import write_suite

SOON = 30.0
"""Seconds, most of them for imports on a busy machine: far from the minutes of our patience."""


def refused(shelf: Shelf, name: str, *words: object, apart: bool = False) -> str:
    """The one sentence that a command ends with, perhaps in a process of its own."""
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "300")
    began = time.monotonic()
    if apart:
        code, text = said(name, *words)
        assert code == 2, text
        assert text.startswith("convergebench: "), text
        assert text.count("convergebench: ") == 1
        assert "Traceback" not in text
    else:
        text = Command(name).wrong(*map(str, words))
    assert time.monotonic() - began < SOON
    assert not [secret for secret in secrets(shelf) if secret in text]
    return text


def new_run(tmp_path: Path) -> list[object]:
    suite = write_suite(tmp_path / "suite", 1, size=16)
    return ["--suite", suite, "--editor", "ref:noise", "--steps", "1", "--no-controls"]


@pytest.mark.parametrize("command", ["status", "run", "report"])
def test_no_such_bucket(shelf: Shelf, tmp_path: Path, command: str) -> None:
    nowhere = f"{shelf.scheme}://there-is-no-such-bucket/run"
    more = new_run(tmp_path) if command == "run" else []
    text = refused(shelf, command, nowhere, *more, apart=command == "run")
    assert f"{nowhere} cannot be used: there is no such bucket." in text


def test_no_such_run(shelf: Shelf) -> None:
    assert f"{shelf.run} is not a run directory" in refused(shelf, "status", shelf.run)


@pytest.mark.parametrize("command", ["status", "run"])
def test_wrong_credentials(shelf: Shelf, tmp_path: Path, command: str) -> None:
    """Azurite itself refuses the signature; for Google the server of tokens does."""
    if isinstance(shelf.proxy, google.GoogleProxy):
        told = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
        shelf.proxy.deaf = Reply(told, 400)
    else:
        string = azure.connection(shelf.proxy.url, azure.WRONG)
        shelf.patch.setenv("AZURE_STORAGE_CONNECTION_STRING", string)
    more = new_run(tmp_path) if command == "run" else []
    text = refused(shelf, command, shelf.run, *more, apart=command == "status")
    code = "AuthorizationFailure" if shelf.scheme == "az" else "401"
    assert (
        f"{shelf.run} cannot be used: these credentials have no right there, or are wrong ({code})."
        in text
    )


def test_no_right(shelf: Shelf) -> None:
    text = " ".join(secrets(shelf))  # no server says so; if one did
    answer = google.refusal(403, "forbidden", text)
    if shelf.scheme == "az":
        xml = (
            f"<Error><Code>AuthorizationPermissionMismatch</Code><Message>{text}</Message></Error>"
        )
        headers = {"content-type": "application/xml"}
        headers["x-ms-error-code"] = "AuthorizationPermissionMismatch"
        answer = Reply(xml.encode(), 403, headers)
    shelf.proxy.trouble = lambda asked: None if asked.kind == "TOKEN" else answer
    code = "AuthorizationPermissionMismatch" if shelf.scheme == "az" else "403"
    told = refused(shelf, "status", shelf.run)
    assert f"these credentials have no right there, or are wrong ({code})." in told


def test_no_credentials(shelf: Shelf) -> None:
    for name in ("AZURE_STORAGE_CONNECTION_STRING", "GOOGLE_APPLICATION_CREDENTIALS"):
        shelf.patch.delenv(name, raising=False)
    shelf.patch.setenv("NO_GCE_CHECK", "true")  # this machine is none of Google's
    text = refused(shelf, "status", shelf.run, apart=True)
    assert "no credentials were found. Set them as the provider's own tools expect them (" in text
    name = "GOOGLE_APPLICATION_CREDENTIALS" if shelf.scheme == "gs" else "AZURE_STORAGE_CONNECTION"
    assert name in text


@pytest.mark.parametrize("kind", ["nonsense", "half"])
def test_credentials_of_a_wrong_form(shelf: Shelf, tmp_path: Path, kind: str) -> None:
    if shelf.scheme == "gs":
        path = tmp_path / "keys" / "bad.json"
        if kind == "half":
            path.write_text((tmp_path / "keys" / "key.json").read_text()[:-900])
        shelf.patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        expected = "GOOGLE_APPLICATION_CREDENTIALS names a file that is not there or has no"
    else:
        string = azure.connection(shelf.proxy.url, azure.SECRET[:-3])
        shelf.patch.setenv(
            "AZURE_STORAGE_CONNECTION_STRING", string if kind == "half" else azure.SECRET
        )
        expected = "AZURE_STORAGE_CONNECTION_STRING is set to something that adlfs cannot use"
        if kind == "half":
            expected = "these credentials have no right there, or are wrong"
    assert expected in refused(shelf, "status", shelf.run)


def test_nobody_at_the_endpoint(shelf: Shelf) -> None:
    for name, value in shelf.settings("http://127.0.0.1:9", str(shelf.caches), 1).items():
        shelf.patch.setenv(name, value)
    assert f"{shelf.run} does not answer (" in Command("status").wrong(shelf.run)


@pytest.mark.parametrize("shelf", ["gs"], indirect=True)  # the other has none
def test_a_server_of_tokens_that_is_down_is_waited_for(shelf: Shelf) -> None:
    assert isinstance(shelf.proxy, google.GoogleProxy)
    shelf.proxy.deaf = Reply({"error": "server_error"}, 503)
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "1")
    assert f"{shelf.run} does not answer (" in Command("status").wrong(shelf.run)


def test_credentials_are_nowhere(shelf: Shelf, tmp_path: Path) -> None:
    """In no file here, in no object, in no output; whether all goes well or not."""
    texts = []

    def tell(command: str, *words: object) -> None:
        result = Command(command).invoke(shelf.run, *map(str, words))
        texts.append(f"{result.output} {result.exception}")

    tell("run", *new_run(tmp_path))
    tell("score", "--metric", "psnr", "--workers", "1")
    tell("report", "--out", tmp_path / "report")
    shelf.proxy.trouble = lambda _asked: "silent"
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "1")
    tell("verify")
    shelf.proxy.trouble = lambda _asked: None
    assert "chains done" in texts[0]
    assert "does not answer" in texts[-1]
    files = {
        str(path): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.parent != tmp_path / "keys"
    }
    objects = shelf.client.all(shelf.bucket)
    assert any("/copies/" in name for name in files)
    assert "run/run.json" in objects
    for secret in secrets(shelf):
        for where, data in {**files, **objects}.items():
            assert secret.encode() not in data, where
        assert not [text for text in texts if secret in text]
