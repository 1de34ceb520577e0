"""A package index and file server on this machine, with the faults that real ones have."""

from __future__ import annotations

import io
import json
import re
import tarfile
import threading
import time
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Shelf:
    """What the server serves, how it misbehaves, and what it was asked.

    Attributes:
        files: Bytes by path.
        form: Whether index pages are `html` or `json`.
        ranges: Whether it honours Range.
        cut: Bytes after which a path's answer breaks off; each is used up by one answer.
        status: Status a path is answered with.
        slow: Seconds between two blocks of a path's answer.
        secret: `user:password` that it asks for; empty for none.
        asked: Method, path and Range of every request.
    """

    def __init__(self) -> None:
        self.address = ""
        self.files: dict[str, bytes] = {}
        self.form = "html"
        self.ranges = True
        self.cut: dict[str, list[int]] = {}
        self.status: dict[str, int] = {}
        self.slow: dict[str, float] = {}
        self.secret = ""
        self.asked: list[tuple[str, str]] = []

    def put_package(self, project: str, archive: str, data: bytes, link: str = "") -> None:
        """Offer an archive, and list it on its project's page."""
        self.files[f"/files/{archive}"] = data
        link = link or f"../../files/{archive}#sha256=0"
        if self.form == "json":
            page = json.dumps({"files": [{"filename": archive, "url": link}]})
        else:
            page = f'<!DOCTYPE html><html><body><a href="{link}">{archive}</a></body></html>'
        self.files[f"/simple/{project}/"] = page.encode()

    @property
    def index(self) -> str:
        return f"{self.address}/simple/"


def _handler(shelf: Shelf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            path, wanted = self.path, self.headers.get("Range", "")
            shelf.asked.append((path, wanted))
            self.close_connection = True
            key = "Basic " + b64encode(shelf.secret.encode()).decode()
            if shelf.secret and self.headers.get("Authorization") != key:
                self._answer(401, b"")
            elif path in shelf.status:
                code = shelf.status[path]
                self._answer(code, b"no", {"Location": "/elsewhere"} if code == 302 else {})
            elif path not in shelf.files:
                self._answer(404, b"not here")
            else:
                self._file(path, wanted)

        def _file(self, path: str, wanted: str) -> None:
            data = shelf.files[path]
            span = re.fullmatch(r"bytes=(\d+)-", wanted) if shelf.ranges else None
            start = int(span[1]) if span else 0
            if span and start >= len(data):
                self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            headers = {"Content-Length": str(len(data) - start)}
            if path.startswith("/simple/"):
                json_page = data.startswith(b"{")
                headers["Content-Type"] = (
                    "application/vnd.pypi.simple.v1+json" if json_page else "text/html"
                )
            if span:
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            cuts = shelf.cut.get(path) or [len(data)]
            end = cuts.pop(0) if path in shelf.cut and cuts else len(data)
            self._answer(206 if span else 200, None, headers)
            pause = shelf.slow.get(path, 0)
            for at in range(start, max(start, end), 4096):
                self.wfile.write(data[at : min(at + 4096, end)])
                self.wfile.flush()
                time.sleep(pause)

        def _answer(
            self, code: int, body: bytes | None, headers: dict[str, str] | None = None
        ) -> None:
            self.send_response(code)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if body is not None and "Content-Length" not in (headers or {}):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if body:
                self.wfile.write(body)

    return Handler


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the game."""


@contextmanager
def serving() -> Iterator[Shelf]:
    """A shelf that answers on this machine while in the block."""
    shelf = Shelf()
    server = _Server(("127.0.0.1", 0), _handler(shelf))
    shelf.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield shelf
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sdist(files: dict[str, bytes]) -> bytes:
    """A source archive that holds these files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def wheel(files: dict[str, bytes]) -> bytes:
    """A wheel that holds these files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()
