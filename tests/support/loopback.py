"""A real HTTP server on this machine that answers as it is told, faults included."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What to answer.

    Attributes:
        body: Bytes, or anything that is sent as JSON.
        cut: Hang up (with a reset) after so many bytes of the body; 0 is before any.
        delay: Seconds before the answer begins.
        length: The content-length to announce, where it is not the true one.
        pace: Seconds before each byte of the body, for a server that trickles.
    """

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    delay: float = 0.0
    length: int | None = None
    pace: float = 0.0

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Loopback:
    """The server. `log` holds every request in the order they came.

    Args:
        answer: What to answer to a request.
        tls: The certificate to show, for https.
    """

    def __init__(
        self, answer: Callable[[Received], Reply], tls: ssl.SSLContext | None = None
    ) -> None:
        self.log: list[Received] = []
        self._answer = answer
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                got = Received(
                    self.command, self.path, dict(self.headers.items()), self.rfile.read(length)
                )
                with outer._lock:
                    outer.log.append(got)
                reply = outer._answer(got)
                with contextlib.suppress(OSError):
                    outer._send(self, reply)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # whoever hung up is not our concern

        self._server = Server(("127.0.0.1", 0), Handler)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.delay:
            time.sleep(reply.delay)
        data = reply.data
        kind = "application/octet-stream" if isinstance(reply.body, bytes) else "application/json"
        if reply.cut != 0 or reply.cut is None:
            handler.send_response(reply.status)
            sent = {"content-type": kind, **reply.headers}
            for name, value in sent.items():
                handler.send_header(name, value)
            length = len(data) if reply.length is None else reply.length
            handler.send_header("content-length", str(length))
            handler.end_headers()
            data = data if reply.cut is None else data[: reply.cut]
            step = 1 if reply.pace else max(1, len(data))
            for start in range(0, len(data), step):
                time.sleep(reply.pace)
                handler.wfile.write(data[start : start + step])
                handler.wfile.flush()
        if reply.cut is not None or reply.length is not None:
            linger = struct.pack("ii", 1, 0)  # a reset, not a goodbye
            if reply.cut is not None:
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.close_connection = True

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def serving(
    answer: Callable[[Received], Reply], tls: ssl.SSLContext | None = None
) -> Iterator[Loopback]:
    """A server for the length of a test."""
    with Loopback(answer, tls) as server:
        yield server


def certificate(folder: Path, name: str) -> ssl.SSLContext:
    """A server's certificate for a name, signed by itself; `name.pem` is what to trust."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(pem))
    (folder / f"{name}.key").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context
