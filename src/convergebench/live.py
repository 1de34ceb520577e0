"""The report served on loopback while a run is going, and made again as frames arrive.

Served with the standard library: only this machine asks, for files that are on its disk anyway.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mimetypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from convergebench.errors import ConvergeBenchError, SettingsError, scrub
from convergebench.reporter import report
from convergebench.reporter.build import usual_place
from convergebench.store import RunStore

LOOK: Final = 1.0
"""Seconds between two looks at the run."""

REST: Final = 2.0
"""After a build that took t seconds, the next waits this many times t: most time is the run's."""

BEAT: Final = 10.0
"""Seconds after which a silent stream says that it is alive."""

KEPT: Final = ("frames/", "thumbs/")
"""What never changes under its name, and may be kept by the browser."""

WATCHED: Final = ("run.json", "suite.json", "sources.json", "chains", "scores")

_WAITING: Final = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>ConvergeBench</title>"
    b"<link rel=icon href='data:,'><p>The report is being made. This page will show it."
    b"<script src=/live.js data-version=0></script></html>"
)


class Live:
    """A report that follows its runs.

    Attributes:
        folder: Where the report is.
        version: Counts the builds; 0 before the first.
        problem: Why the last build failed; empty when it did not.
    """

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]],
        *,
        out: str | os.PathLike[str] | None = None,
        rounds: int | None = None,
    ) -> None:
        if out is None and len(directories) > 1:
            raise SettingsError("several runs are viewed in a folder of their own: give --out DIR")
        self._stores = [RunStore.open(directory) for directory in directories]
        self.folder = Path(out) if out is not None else usual_place(self._stores[:1])
        self._rounds = rounds
        self.version = 0
        self.problem = ""
        self._news = threading.Condition()

    def fingerprint(self) -> str:
        """A hash that changes when a chain grows or a score is added."""
        told = hashlib.sha256()
        for store in self._stores:
            with contextlib.suppress(ConvergeBenchError):  # away for now: what is here is shown
                store.refresh()
            for name in WATCHED:
                for path in _files(store.path / name):
                    with contextlib.suppress(FileNotFoundError):
                        facts = path.stat()
                        told.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return told.hexdigest()

    def build(self) -> None:
        """Make the report again, and tell the pages."""
        paths = [store.place for store in self._stores]
        try:
            report(*paths, out=self.folder, rounds=self._rounds, partial=True)
            problem = ""
        except ConvergeBenchError as error:
            problem = scrub(str(error))
        with self._news:
            self.version += not problem
            self.problem = problem
            self._news.notify_all()

    def follow(self, stop: threading.Event) -> None:
        """Build now, and again whenever the runs have changed, until told to stop."""
        seen = ""
        while not stop.is_set():
            now = self.fingerprint()
            took = 0.0
            if now != seen:
                began = time.monotonic()
                self.build()
                took = time.monotonic() - began
                seen = now
            stop.wait(max(LOOK, REST * took))
        with self._news:
            self._news.notify_all()

    def news(self, stop: threading.Event) -> Iterator[tuple[int, str] | None]:
        """The version and problem now, and whenever one changes; None when nothing does."""
        told: tuple[int, str] | None = None
        while not stop.is_set():
            with self._news:
                if told == (self.version, self.problem):
                    self._news.wait(BEAT)
                now = (self.version, self.problem)
            yield None if now == told else now
            told = now


def _files(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the report's files, and `/events`, the stream of its versions."""

    protocol_version = "HTTP/1.1"
    server_version = "ConvergeBench"

    def __init__(self, live: Live, stop: threading.Event, *rest: object) -> None:
        self._live, self._stop = live, stop
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        # A page elsewhere whose name was made to mean this machine must not read the run.
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if host not in ("127.0.0.1", "localhost", "::1"):
            self._send(HTTPStatus.FORBIDDEN, b"this server answers to 127.0.0.1 only\n")
            return
        path = unquote(urlsplit(self.path).path)
        if path == "/events":
            self._stream()
        elif path == "/live.js":
            shipped = Path(__file__).parent / "reporter" / "static" / "live.js"
            self._send(HTTPStatus.OK, shipped.read_bytes(), "text/javascript")
        else:
            self._file("index.html" if path == "/" else path.lstrip("/"))

    def _file(self, name: str) -> None:
        root = self._live.folder.resolve()
        try:
            path = (root / name).resolve()
            if not path.is_relative_to(root) or "\0" in name:
                raise FileNotFoundError(name)
            data = path.read_bytes()
        except (OSError, ValueError):
            if name == "index.html":
                self._send(HTTPStatus.OK, _WAITING, "text/html; charset=utf-8")
            else:
                self._send(HTTPStatus.NOT_FOUND, b"not in this report\n")
            return
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if kind == "text/html":
            head, end, tail = data.rpartition(b"</body>")
            version = self._live.version
            script = f'<script src="/live.js" data-version="{version}"></script>'.encode()
            data = head + script + end + tail
        if kind.startswith("text/") or kind.endswith(("json", "javascript", "svg+xml")):
            kind += "; charset=utf-8"
        self._send(HTTPStatus.OK, data, kind, keep=name.startswith(KEPT))

    def _send(
        self, status: HTTPStatus, data: bytes, kind: str = "text/plain", *, keep: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=86400, immutable" if keep else "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(data)

    def _stream(self) -> None:
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "HEAD":
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for news in self._live.news(self._stop):
                line = ": still here\n\n"
                if news is not None:
                    line = f"data: {json.dumps({'version': news[0], 'problem': news[1]})}\n\n"
                self.wfile.write(line.encode())
                self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal belongs to whoever watches the run."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that hangs up is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextlib.contextmanager
def served(live: Live, port: int = 0) -> Iterator[str]:
    """Serve a live report and follow its runs while inside; gives the address.

    Raises:
        SettingsError: The port is taken or not to be had.
    """
    stop = threading.Event()
    try:
        server = _Server(("127.0.0.1", port), partial(_Handler, live, stop))
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"port {port} on 127.0.0.1 cannot be had ({error}). Choose another with --port, or 0 "
            "for any that is free."
        ) from error
    threads = [
        threading.Thread(target=server.serve_forever, daemon=True),
        threading.Thread(target=live.follow, args=(stop,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
        threads[1].join()


def wait_for_a_signal() -> None:
    """Return when the user or the system says stop: a second one is not swallowed."""
    told = threading.Event()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, lambda *_: told.set())
    try:
        while not told.wait(0.5):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
