from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convergebench.cli.weights import app
from convergebench.errors import ConvergeBenchError, InputError, MetricUnavailable, UnknownName
from convergebench.weights.entries import Catalogue
from convergebench.weights.lookup import own_cache
from tests.weights.entries_text import file_entry, package, set_entry, sha
from tests.weights.shelf import Shelf, sdist

DATA = b"parameters" * 1000
HUB = {"hub": "owner/repo", "file": "h.bin"}
Use = Callable[[str], Catalogue]


def call(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, ConvergeBenchError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def shop(shelf: Shelf, use: Use) -> Shelf:
    archive = sdist({"p/a.bin": DATA})
    shelf.put_package("p", "p-1.tar.gz", archive)
    shelf.files["/hub/owner/repo/resolve/main/h.bin"] = b"hub"
    use(
        set_entry("a", file_entry("a.bin", DATA, package("p", "p-1.tar.gz", archive, "p/a.bin")))
        + set_entry("h", file_entry("h.bin", None, HUB), uses=("a",))
        + set_entry("mine", file_entry("m.bin", DATA))
    )
    return shelf


def test_list_says_what_is_here_and_what_is_not(shop: Shelf) -> None:
    rows = call("list").stdout
    assert re.search(r"a +t +s +10 kB +MIT +not here +package p 1", rows)
    assert re.search(r"mine .* not here +a folder of yours", rows)
    call("pull", "a")
    rows = call("list", "a", "h").stdout
    assert re.search(r"a .* here: \S+/convergebench/weights/a ", rows)
    assert re.search(r"h .* 1 of 2 files here ", rows)
    call("pull", "h")
    assert "(not verified: digest unknown)" in call("list", "h").stdout
    (own_cache() / "a/a.bin").write_bytes(b"wrong")
    (record,) = json.loads(call("list", "a", "--json").stdout)
    assert record["state"] == "refused: see verify"
    assert record["files"][0]["problem"] == "it has 5 bytes instead of 10000"
    assert record["files"][0]["sha256"] == sha(DATA)


def test_the_real_catalogue_lists(machine: Path) -> None:
    records = json.loads(call("list", "--json").stdout)
    assert {"lpips-alex", "musiq", "clip-vit-l-14"} <= {record["name"] for record in records}
    assert all(record["licence"] and record["sources"] is not None for record in records)
    assert "lpips-alex" in call("list").stdout


def test_pull_by_name_by_package_and_all(shop: Shelf, machine: Path) -> None:
    result = call("pull", "--packages", "--to", str(machine / "p"))
    assert "a: " in result.stderr
    assert result.stdout == ""
    assert [p.name for p in (machine / "p").iterdir()] == ["a"]
    call("pull", "--all", "--to", str(machine / "all"))
    assert sorted(p.name for p in (machine / "all").iterdir()) == ["a", "h"]
    with pytest.raises(InputError, match="nothing to pull"):
        call("pull")
    with pytest.raises(UnknownName, match="no set of weights called 'aa'"):
        call("pull", "a", "aa")
    with pytest.raises(MetricUnavailable, match=r"could not get mine \(m\.bin\): no source is"):
        call("pull", "mine")


def test_path_prints_paths_only(shop: Shelf) -> None:
    with pytest.raises(MetricUnavailable, match="Run `convergebench weights pull a`"):
        call("path", "a")
    call("pull", "h")
    assert call("path", "a").stdout == f"{own_cache() / 'a/a.bin'}\n"
    assert call("path", "h").stdout == f"{own_cache() / 'h/h.bin'}\n"
    assert call("path", "h", "a.bin").stdout == f"{own_cache() / 'a/a.bin'}\n"


def test_verify_hashes_again(shop: Shelf) -> None:
    assert "none of these weights is here" in call("verify").stderr
    call("pull", "h")
    told = call("verify").stdout
    assert re.search(r"a: \S+a\.bin: sound", told)
    assert re.search(r"h: \S+h\.bin: not verified: digest unknown", told)
    (own_cache() / "a/a.bin").write_bytes(DATA[::-1])
    with pytest.raises(MetricUnavailable, match="1 of 2 files are not what they should be"):
        call("verify")
    result = CliRunner().invoke(app, ["verify", "a", "--json"])
    assert re.search(r'"problem": "its SHA-256 is \w{64} instead of', result.stdout)


@pytest.mark.parametrize("command", ["list", "pull", "path", "verify"])
def test_help_has_examples(command: str) -> None:
    assert "Examples:" in call(command, "--help").output
