"""Addresses of runs: what is one, what is not, and what is never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import SettingsError
from convergebench.remote.address import Address, address_of, place_of, require_directory
from tests.support.commands import Command

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-._+=, ", min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)


@pytest.mark.parametrize(
    ("text", "scheme", "root", "name"),
    [
        ("s3://bucket/run", "s3", "bucket/run", "run"),
        ("s3:/bucket/run", "s3", "bucket/run", "run"),
        ("s3://bucket/a/b/run/", "s3", "bucket/a/b/run", "run"),
        ("S3://bucket/Run", "s3", "bucket/Run", "Run"),
        ("gs://bucket/run", "gs", "bucket/run", "run"),
        ("az://container/x/run", "az", "container/x/run", "run"),
        ("s3://bucket/me@home", "s3", "bucket/me@home", "me@home"),
    ],
)
def test_known_addresses(text: str, scheme: str, root: str, name: str) -> None:
    address = address_of(text)
    assert address == Address(scheme, root)
    assert address.name == name
    assert str(address) == f"{scheme}://{root}"
    assert address_of(address) == address


@pytest.mark.parametrize(
    "text",
    [
        "run",
        "./run",
        "/tmp/run",
        "s3",
        "s3/run",
        "C:/run",
        "c:/run",
        "c://run",
        "a:b",
        "",
    ],
)
def test_paths_are_paths(text: str) -> None:
    assert address_of(text) is None
    assert place_of(text) == Path(text)
    assert require_directory(text, "bundle") == Path(text)


def test_a_folder_whose_name_ends_with_a_colon_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my:").mkdir()
    assert place_of("my:/run") == place_of(Path("my:/run")) == Path("my:/run")
    with pytest.raises(SettingsError, match="cannot be kept under my://"):
        place_of("my://run")


@pytest.mark.parametrize("text", ["s3:my-bucket/x", "gs:my-bucket/x", "AZ:my-bucket", "s3:x/"])
def test_an_address_without_its_slashes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Not made into a folder of that name, unless there is one."""
    monkeypatch.chdir(tmp_path)
    scheme, _, rest = text.rstrip("/").partition(":")
    for place in (text, Path(text)):
        with pytest.raises(SettingsError, match=rf"write {scheme.lower()}://{rest}, or make"):
            place_of(place)
    folder = text.partition("/")[0]
    assert place_of(tmp_path / text) == tmp_path / text
    (tmp_path / folder).mkdir()
    assert place_of(text) == Path(text)
    assert place_of(f"{folder}/other") == Path(folder, "other")


def test_run_makes_no_folder_of_an_address_without_its_slashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = Command("run").wrong("s3:my-bucket/x", "--editor", "ref:noise", "--steps", "1")
    assert "two slashes are missing: write s3://my-bucket/x" in text
    assert list(tmp_path.iterdir()) == []


@given(st.sampled_from(["s3", "gs", "az"]), st.lists(NAMES, min_size=2, max_size=5))
def test_an_address_is_known_again_after_pathlib_had_it(scheme: str, parts: list[str]) -> None:
    address = Address(scheme, "/".join(parts))
    assert address_of(str(address)) == address
    assert address_of(Path(str(address))) == address
    assert address_of(str(Path(str(address)))) == address
    assert place_of(address) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://bucket", "names no run"),
        ("s3://bucket/", "names no run"),
        ("s3://", "names no run"),
        ("s3:", "names no run"),
        ("s4://bucket/run", "cannot be kept under s4://"),
        ("s4:/bucket/run", "cannot be kept under s4://"),
        ("s4:", "cannot be kept under s4://"),
        ("s3:///run", "names no run"),
        ("s3://bucket/../run", "names no run"),
        ("s3://bucket/a//run", "names no run"),
        ("s3://bucket/./run", "names no run"),
        ("http://host/run", "cannot be kept under http://"),
        ("file:///tmp/run", "cannot be kept under file://"),
        ("s3a://bucket/run", "cannot be kept under s3a://"),
        ("https:/host/run", "cannot be kept under https://"),
        ("file:/tmp/run", "cannot be kept under file://"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        address_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIDSEEN:hushhush@bucket/run",
        "s3://AKIDSEEN:hush/hushhush@bucket/run",
        "s3://hushhush@bucket/run",
        "s3:/AKIDSEEN:hushhush@bucket/run",
        "s3://bucket/run?key=AKIDSEEN&secret=hushhush",
        "az://AKIDSEEN:hushhush@container/run",
        "s3://AKIDSEEN:hushhush@",
        "s3:AKIDSEEN:hushhush@bucket/run",
        "s3:AKIDSEEN:hush/hushhush@bucket/run",
        "s3:hush/hushhush@bucket/run",
        "s3:bucket/run?key=AKIDSEEN&secret=hushhush",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SettingsError, match="holds no credentials") as told:
        address_of(text)
    assert "hushhush" not in str(told.value)
    assert "AKIDSEEN" not in str(told.value)


@given(st.text(max_size=40))
def test_any_text_is_a_path_an_address_or_refused(text: str) -> None:
    try:
        place = place_of(text)
    except SettingsError:
        return
    assert isinstance(place, Path) or all(place.root.split("/"))


def test_a_directory_that_is_needed_is_told_so() -> None:
    with pytest.raises(SettingsError, match=r"`bundle` needs a run directory .* got s3://b/run"):
        require_directory("s3://b/run", "bundle")
