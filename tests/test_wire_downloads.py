"""Pictures that providers give the address of: which addresses are read, and how far."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convergebench import wire
from convergebench.errors import EditorLost
from convergebench.wire import addresses, download
from tests.support.loopback import Loopback, Received, Reply, certificate, serving

PRIVATE = [
    "https://10.0.0.1/x",
    "https://127.0.0.1/x",
    "https://localhost/x",
    "https://[::1]/x",
    "https://[::ffff:127.0.0.1]/x",
    "https://[::ffff:10.1.2.3]/x",
    "https://[::]/x",
    "https://[fe80::1]/x",
    "https://[fc00::1]/x",
    "https://[64:ff9b::7f00:1]/x",
    "https://[2002:7f00:1::]/x",
    "https://0.0.0.0/x",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/x",
    "https://192.168.1.1/x",
    "https://224.0.0.1/x",
    "https://2130706433/x",
    "https://0x7f.1/x",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_not_read(url: str) -> None:
    with pytest.raises(EditorLost, match="private network"):
        download(url, what="Them", near=False, timeout=5)


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8/x", "file:///etc/passwd", "ftp://8.8.8.8/x", "//8.8.8.8/x", "", "x\n"]
)
def test_what_is_not_https_is_not_read(url: str) -> None:
    with pytest.raises(EditorLost, match=r"is not https|address is none"):
        download(url, what="Them", near=False, timeout=5)


@pytest.mark.parametrize("found", [["10.0.0.9"], ["93.184.216.34", "10.0.0.9"], ["::1"]])
def test_a_name_that_leads_inside_is_not_read(
    found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "lookup", lambda _host, _port: found)
    with pytest.raises(EditorLost, match=r"pictures\.example is in a private network"):
        download("https://pictures.example/x", what="Them", near=False, timeout=5)


def test_a_name_is_looked_up_once_and_each_try_takes_the_next_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.0)
    found = ["93.184.216.34", "2606:2800:220:1::1"]
    monkeypatch.setattr(addresses, "lookup", lambda _host, _port: found)
    tried: list[str] = []

    def note(_self: socket.socket, address: Any) -> None:
        tried.append(address[0])
        raise OSError("tests may not reach it")

    monkeypatch.setattr(socket.socket, "connect", note)
    with pytest.raises(EditorLost, match="tests may not reach it"):
        download("https://pictures.example/x", what="Them", near=False, timeout=5)
    assert tried == [found[0], found[1], found[0]]


@pytest.mark.parametrize("target", [PRIVATE[0], *PRIVATE[4:], "http://10.0.0.1/x"])
def test_a_redirect_into_a_private_network_is_not_followed(target: str) -> None:
    with serving(lambda _: Reply(b"", 302, {"location": target})) as server:
        with pytest.raises(EditorLost, match=r"private network|is not https"):
            download(server.url + "/x", what="Them", near=True, timeout=5)
        assert len(server.log) == 1


def test_a_trickle_over_https_is_late_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    tls = certificate(tmp_path, "localhost")
    with serving(lambda _: Reply(b"x" * 1000, pace=0.05), tls) as server:
        begun = time.monotonic()
        with pytest.raises(EditorLost, match="not downloaded in time"):
            download(f"https://localhost:{server.port}/", what="T", near=True, timeout=0.5)
    assert time.monotonic() - begun < 40, "all of it takes 50 s"


def test_https_does_not_lead_to_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    tls = certificate(tmp_path, "localhost")
    with serving(lambda _: Reply(b"")) as plain:
        away = Reply(b"", 302, {"location": plain.url + "/x"})
        with serving(lambda _: away, tls) as server, pytest.raises(EditorLost, match="to http"):
            download(f"https://localhost:{server.port}/", what="Them", near=True, timeout=5)
        assert not plain.log


def hops(server_of: dict[str, Reply]) -> Callable[[Received], Reply]:
    return lambda request: server_of[request.path]


def test_redirects_on_this_machine_are_followed_and_counted() -> None:
    pages = {f"/{n}": Reply(b"", 302, {"location": f"/{n + 1}"}) for n in range(9)}
    pages["/9"] = Reply(b"picture")
    with serving(hops(pages)) as server:
        assert download(server.url + "/6", what="T", near=True, timeout=5) == b"picture"
        with pytest.raises(EditorLost, match="more than 5 redirects"):
            download(server.url + "/0", what="T", near=True, timeout=5)


@pytest.fixture
def flaky() -> Iterator[tuple[Loopback, list[Reply]]]:
    """A server that gives the replies one after the other, then the picture."""
    replies: list[Reply] = []
    good = Reply(b"picture" * 9)
    with serving(lambda _: replies.pop(0) if replies else good) as server:
        yield server, replies


@pytest.mark.parametrize(
    "bad",
    [Reply(b"picture" * 9, cut=5), Reply(b"pic", length=63), Reply(b"", 500), Reply(b"", cut=0)],
    ids=["cut", "short", "500", "reset"],
)
def test_a_download_that_breaks_off_is_read_again(
    bad: Reply, flaky: tuple[Loopback, list[Reply]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.0)
    server, replies = flaky
    replies.extend([bad, bad])
    assert download(server.url, what="T", near=True, timeout=5) == b"picture" * 9
    replies.extend([bad, bad, bad])
    with pytest.raises(EditorLost, match="the picture cannot be downloaded"):
        download(server.url, what="T", near=True, timeout=5)
    assert len(server.log) == 6


@pytest.mark.parametrize("status", [403, 404, 410])
def test_an_address_that_has_expired_is_asked_once(status: int) -> None:
    with serving(lambda _: Reply(b"", status)) as server:
        with pytest.raises(EditorLost, match=f"expired .HTTP {status}"):
            download(server.url, what="T", near=True, timeout=5)
        assert len(server.log) == 1


@pytest.mark.parametrize("reply", [Reply(b"x" * 2000), Reply(b"x", length=10**12)])
def test_an_oversize_picture_is_not_read(reply: Reply) -> None:
    with serving(lambda _: reply) as server:
        with pytest.raises(EditorLost, match="more than 1 MiB"):
            download(server.url, what="T", near=True, timeout=5, max_bytes=1000)
        assert len(server.log) == 1


def test_a_picture_that_trickles_is_late() -> None:
    with serving(lambda _: Reply(b"x" * 1000, pace=0.05)) as server:
        begun = time.monotonic()
        with pytest.raises(EditorLost, match="not downloaded in time") as raised:
            download(server.url, what="T", near=True, timeout=0.4)
    assert raised.value.timed_out
    assert time.monotonic() - begun < 40, "all of it takes 50 s"


def test_a_download_connects_to_the_checked_address_under_the_hosts_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certificate(tmp_path, "localhost")
    names: list[str | None] = []
    tls.sni_callback = lambda _sock, name, _context: names.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    asked: list[str] = []
    found = addresses.lookup

    def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return found("127.0.0.1", port)

    monkeypatch.setattr(addresses, "lookup", once)
    real = socket.getaddrinfo

    def no_second_lookup(host: Any, *rest: Any, **named: Any) -> Any:
        assert host == "127.0.0.1", "the name was looked up again"
        return real(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", no_second_lookup)
    with serving(lambda _: Reply(b"picture"), tls) as server:
        url = f"https://localhost:{server.port}/a?b=c"
        assert download(url, what="Them", near=True, timeout=5) == b"picture"
        assert server.log[0].headers["host"] == f"localhost:{server.port}"
        assert server.log[0].path == "/a?b=c"
    assert asked == ["localhost"]
    assert names == ["localhost"]


def test_a_download_trusts_no_certificate_of_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certificate(tmp_path, "other.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.example.pem"))
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.0)
    with serving(lambda _: Reply(b"picture"), tls) as server:
        url = f"https://localhost:{server.port}/a"
        with pytest.raises(EditorLost, match="certificate"):
            download(url, what="Them", near=True, timeout=5)
        assert not server.log


def test_behind_a_proxy_names_are_left_to_it_and_numbers_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import httpx2

    def unknown(_host: str, _port: int) -> list[str]:
        raise ConnectionError("looked up here")

    monkeypatch.setattr(addresses, "lookup", unknown)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert addresses.permitted(httpx2.URL("https://pictures.example/x"), near=False) == []
    with pytest.raises(EditorLost, match="private network"):
        download("https://[::ffff:10.0.0.1]/x", what="T", near=False, timeout=5)
