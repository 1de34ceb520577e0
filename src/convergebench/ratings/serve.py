"""Serving a study: one process, told where it listens, told how to stop."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from convergebench.errors import InputError, StoreDamaged, StoreError
from convergebench.ratings import links
from convergebench.ratings.study import IMAGES, Study, open_study
from convergebench.wording import counted

MISSING = "the rating app needs two packages more: pip install 'convergebench[rate]'"


def serve(
    folder: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    base_url: str | None = None,
    public: bool = False,
    trust_proxy: bool = False,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> None:
    """Serve a study until it is stopped.

    Several servers on one study are safe, on one machine: each answer is a transaction of its own.

    Args:
        folder: The study.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        base_url: Where participants reach it; None is what `create` was told, or else the address
            it listens on. The links are written anew if they say otherwise.
        public: Whether an address that others can reach is wanted, without TLS.
        trust_proxy: Whether a proxy of ours tells the clients' addresses.
        say: Told where it listens.

    Raises:
        InputError: The address is not one to listen on, or a package is missing.
        StoreError: The folder is no sound study.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise InputError(MISSING) from error
    from convergebench.ratings.app import make_app
    from convergebench.ratings.connection import Connection

    folder = Path(folder)
    study = open_study(folder)
    _check_pictures(folder, study)
    base = links.checked_base(base_url) if base_url else _planned(study.base_url)
    if not (public or _is_loopback(host)):
        raise InputError(
            f"{host} can be reached from elsewhere, and links are secrets: without TLS everybody "
            "on the way reads them. Put a proxy with TLS before 127.0.0.1 and give --base-url, or "
            "say --public."
        )
    app = make_app(folder, base_url=base, trust_proxy=trust_proxy)
    with contextlib.closing(_listening(host, port)) as listener:
        here = _address(listener, host)
        reached = base or _address(listener, _seen_from_outside(host))
        links.point_links_to(folder, reached)
        if public and not (base or "").startswith("https:"):
            say("warning: served without TLS; whoever is on the way can read links and answers.")
        say(f"serving {study.name} at {here} ({len(study.participants)} links)")
        if reached != here:
            guessed = "" if base else " (a guess; --base-url says otherwise)"
            say(f"participants reach it at {reached}{guessed}")
        say(f"links: {folder / links.LINKS}   admin secret: {folder / links.ADMIN}")
        say("Ctrl-C stops; answers are saved one by one, and everybody goes on where they were.")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # addresses are secrets
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
            limit_concurrency=2000,
            lifespan="on",
            http=Connection,  # the same parser wherever it runs
            ws="none",
        )
        uvicorn.Server(config).run(sockets=[listener])


def _planned(base: str) -> str | None:
    """What `create` was told, unless that is this machine: then the port may be another now."""
    host = urlsplit(base).hostname
    return base if host and not _is_loopback(host) else None


def _check_pictures(folder: Path, study: Study) -> None:
    """Before anybody is shown a page with a hole in it. Raises StoreDamaged."""
    there = {path.name for path in (folder / IMAGES).glob("*.png")}
    missing = sum(f"{picture}.png" not in there for picture in study.pictures)
    if missing:
        raise StoreDamaged(
            f"{folder / IMAGES} lacks {missing} of {counted(len(study.pictures), 'picture')}. Was "
            "the study copied whole? Copy it again."
        )


def _seen_from_outside(host: str) -> str:
    """The address that others reach: of "any address" the one this machine would send from."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not found.is_unspecified:
        return host
    family = socket.AF_INET if found.version == 4 else socket.AF_INET6
    # An address of the documentation's: nothing is sent, the routes are merely looked at.
    elsewhere = "192.0.2.1" if found.version == 4 else "2001:db8::1"
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname().lower()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        told: Any = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(told[0], socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(told[4])
            listener.listen(512)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(
            f"cannot listen on {host}, port {port} ({reason}). Another server may be there: choose "
            "another --port."
        ) from error
    return listener


def _address(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
