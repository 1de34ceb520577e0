from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from convergebench.weights import index
from convergebench.weights.index import indexes, locate_archive
from convergebench.weights.transfer import Failure, shown
from tests.weights.shelf import Shelf


@pytest.mark.parametrize("form", ["html", "json"])
def test_an_archive_is_found_on_its_projects_page(shelf: Shelf, form: str) -> None:
    shelf.form = form
    shelf.put_package("some-project", "some_project-1.tar.gz", b"x")
    found = list(locate_archive("Some.Project", "some_project-1.tar.gz"))
    assert found == [f"{shelf.address}/files/some_project-1.tar.gz"]
    assert shelf.asked == [("/simple/some-project/", "")]


def test_links_with_a_base_and_with_escapes(shelf: Shelf) -> None:
    shelf.files["/simple/p/"] = (
        b'<base href="/deep/er/"><a href="../a%2Bb-1.whl#egg">x</a><a href="other-1.whl">y</a>'
    )
    assert list(locate_archive("p", "a+b-1.whl")) == [f"{shelf.address}/deep/a%2Bb-1.whl"]
    assert list(locate_archive("p", "other-1.whl")) == [f"{shelf.address}/deep/er/other-1.whl"]


def test_the_next_index_is_tried_and_each_says_why_not(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put_package("p", "p-1.tar.gz", b"x")
    monkeypatch.setenv("PIP_INDEX_URL", f"{shelf.address}/empty")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere/simple\n{shelf.index}")
    assert list(locate_archive("p", "p-1.tar.gz")) == [f"{shelf.address}/files/p-1.tar.gz"]
    with pytest.raises(
        Failure,
        match=r"/empty/p/ answered 404 Not Found; file:///nowhere/simple/p/ does not exist; "
        r"http://127\.0\.0\.1:\d+/simple/p/ does not list p-2\.tar\.gz",
    ):
        list(locate_archive("p", "p-2.tar.gz"))


def test_an_index_in_a_folder(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = machine / "files"
    files.mkdir()
    (files / "p-1.tar.gz").write_bytes(b"x")
    page = machine / "simple" / "p" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="../../files/p-1.tar.gz#sha256=0">p-1.tar.gz</a>')
    (machine / "simple" / "q").mkdir()
    (machine / "simple" / "q" / "q-1.whl").write_bytes(b"y")
    monkeypatch.setenv("PIP_INDEX_URL", (machine / "simple").as_uri())
    assert list(locate_archive("p", "p-1.tar.gz")) == [(files / "p-1.tar.gz").as_uri()]
    assert list(locate_archive("q", "q-1.whl")) == [(machine / "simple/q/q-1.whl").as_uri()]


def test_folders_of_archives(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "p-1.tar.gz").write_bytes(b"x")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for place in (str(machine), machine.as_uri()):
        monkeypatch.setenv("PIP_FIND_LINKS", place)
        assert list(locate_archive("p", "p-1.tar.gz")) == [(machine / "p-1.tar.gz").as_uri()]
    with pytest.raises(Failure, match="no package index carries q-1"):
        list(locate_archive("q", "q-1"))


def test_a_page_may_not_send_us_to_a_file_of_ours(shelf: Shelf) -> None:
    shelf.put_package("p", "passwd", b"", link="file:///etc/passwd")
    with pytest.raises(Failure, match="refers to a file on this machine"):
        list(locate_archive("p", "passwd"))


def test_a_damaged_page(shelf: Shelf) -> None:
    shelf.files["/simple/p/"] = b'{"files": 3}'
    with pytest.raises(Failure, match="an index page is damaged"):
        list(locate_archive("p", "p-1"))
    shelf.cut["/simple/p/"] = [5]
    with pytest.raises(Failure, match=r"/simple/p/ broke off"):
        list(locate_archive("p", "p-1"))


def test_user_and_password_go_along_and_are_never_shown(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.secret = "me:s3cr et/"
    shelf.put_package("p", "p-1.tar.gz", b"x")
    host = shelf.address.removeprefix("http://")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:s3cr%20et%2F@{host}/simple")
    (found,) = locate_archive("p", "p-1.tar.gz")
    assert found == f"http://me:s3cr%20et%2F@{host}/files/p-1.tar.gz"
    assert shown(found) == f"http://{host}/files/p-1.tar.gz"
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:wr0ng@{host}/simple")
    with pytest.raises(Failure, match=r"^http://127\.0\.0\.1:\d+/simple/p/ answered 401"):
        list(locate_archive("p", "p-1.tar.gz"))


def test_the_password_of_netrc(
    shelf: Shelf, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.secret = "you:hidden"
    shelf.put_package("p", "p-1.tar.gz", b"x")
    netrc = machine / "netrc"
    netrc.write_text("machine 127.0.0.1 login you password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert list(locate_archive("p", "p-1.tar.gz"))


@pytest.mark.parametrize("joint", ["-", "_"])
def test_pips_files_are_read_and_the_environment_wins(
    machine: Path, monkeypatch: pytest.MonkeyPatch, joint: str
) -> None:
    extra = joint.join(["extra", "index", "url"])
    monkeypatch.delenv("PIP_CONFIG_FILE")
    user = machine / "home" / ".config" / "pip" / "pip.conf"
    user.parent.mkdir(parents=True)
    user.write_text("[global]\nindex-url = http://a.example/simple\n")
    named = machine / "named.conf"
    named.write_text(f"[install]\n{extra} =\n  http://b.example/s\n  http://c.example/s\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(named))
    assert indexes() == ["http://a.example/simple", "http://b.example/s", "http://c.example/s"]
    monkeypatch.setenv("PIP_INDEX_URL", "http://d.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    assert indexes() == ["http://d.example/simple"]
    named.write_text("no configuration \x00 at all")
    assert indexes() == ["http://d.example/simple"]


def test_the_index_that_pip_has_built_in_is_asked_of_pip(machine: Path) -> None:
    pytest.importorskip("pip")
    (found,) = indexes()
    assert found.startswith("https://")
    assert found.endswith("/simple")


def test_without_pip_the_user_is_asked(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.devnull)
    index._built_in.cache_clear()
    with pytest.raises(Failure, match="no package index is known: set PIP_INDEX_URL"):
        indexes()
    index._built_in.cache_clear()
