"""Which addresses a key may be sent to, and which a picture may be read from."""

from __future__ import annotations

import ipaddress
import socket
import urllib.request
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from convergebench.errors import SettingsError

if TYPE_CHECKING:
    import httpx2

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class Forbidden(Exception):
    """An address that is not read, and why."""


def is_near(url: str) -> bool:
    """Whether an address is on this machine."""
    try:
        return urlsplit(url).hostname in LOOPBACK
    except ValueError:
        return False


def check_base(url: str, where: str) -> str:
    """A base address that a key may be sent to: https, or http to this machine.

    Raises:
        SettingsError: It is none, and `where` it was set.
    """
    try:
        parts = urlsplit(url.strip())
        legal = bool(parts.hostname) and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:
        legal = False
    if legal and (parts.username or parts.password):
        raise SettingsError(f"{where}: an address may not hold a name or password")
    if not legal or parts.scheme not in ("http", "https"):
        raise SettingsError(f"{where}: {url!r} is no address. Write it as in https://api.host/v1.")
    if parts.scheme == "http" and not is_near(url.strip()):
        raise SettingsError(f"{where}: keys go over https only, got {url!r}")
    return url.strip().rstrip("/")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address; never one for this machine."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies_environment()
    if is_near(url) or urllib.request.proxy_bypass(parts.netloc):
        return None
    found = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


def lookup(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, those of IPv4 first, because more networks have it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConnectionError(f"{host} is not known") from None
    return sorted(dict.fromkeys(str(a[4][0]) for a in found), key=lambda text: ":" in text)


def permitted(url: httpx2.URL, near: bool) -> list[str]:
    """The numeric addresses at which a picture may be read; connect to one of them, not the name.

    Empty where a proxy of the environment is in between: then it looks the name up, and only an
    address written in numbers can be checked here.

    Raises:
        Forbidden: It is no https, or leads into a private network.
        ConnectionError: The host is not known.
    """
    host = url.host
    if near and host in LOOPBACK and url.scheme in ("http", "https"):
        return [a for a in lookup(host, url.port or 80) if ipaddress.ip_address(a).is_loopback]
    if url.scheme != "https" or not host:
        raise Forbidden(f"{url.scheme}://{host} is not https")
    if proxy_for(str(url)):
        found = [host] if _number(host) else []
        _refuse_private(host, found)
        return []
    found = lookup(host, url.port or 443)
    _refuse_private(host, found)
    return found


def _refuse_private(host: str, found: list[str]) -> None:
    # One private address among public ones is enough: it is how a name is made to lead inside.
    if not all(_is_public(ipaddress.ip_address(address)) for address in found):
        raise Forbidden(f"{host} is in a private network")


def _is_public(address: _Address) -> bool:
    inner: list[_Address] = []
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = (address.ipv4_mapped, address.sixtofour, *(address.teredo or ()))
        inner = [a for a in wrapped if a is not None]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    plain = address.is_global and not address.is_multicast and not address.is_unspecified
    return plain and all(_is_public(a) for a in inner)


def _number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
