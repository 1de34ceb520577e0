"""A real Ray cluster on this machine: a head and further nodes, each a raylet of its own.

All of it lives in one temporary folder by whose name its processes are known, so that nothing else
is ever touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Cluster:
    """Nodes of one CPU each unless told otherwise; to be used in a `with` block."""

    def __init__(self, *, cpus: int = 1, environment: dict[str, str] | None = None) -> None:
        # Short, because the paths of its sockets may have 107 letters.
        self.folder = Path(tempfile.mkdtemp(prefix="cbray", dir="/tmp"))
        self.port, self.client = free_port(), free_port()
        self._environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            # Or a server for a client dies at its start now and then: ray-project/ray#63202.
            "GRPC_ENABLE_FORK_SUPPORT": "false",
            "CB_RAY_FOLDER": str(self.folder),
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        }
        self._starters: list[subprocess.Popen[bytes]] = []
        self._log = (self.folder / "start.log").open("ab")
        try:
            self._begin(cpus)
        except BaseException:
            self.end()
            raise

    def _begin(self, cpus: int) -> None:
        self._start(
            "--head",
            f"--port={self.port}",
            f"--ray-client-server-port={self.client}",
            f"--temp-dir={self.folder}",
            "--include-dashboard=false",
            f"--num-cpus={cpus}",
        )
        self.wait_for(1)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def client_address(self) -> str:
        return f"ray://127.0.0.1:{self.client}"

    def add(self, *, cpus: int = 1, gpus: int = 0) -> int:
        """A further node, with GPUs as far as Ray knows; the pid of its raylet."""
        before = set(self.raylets())
        self._start(f"--address={self.address}", f"--num-cpus={cpus}", f"--num-gpus={gpus}")
        # A killed node may count as alive for a while: the new one is known by its process.
        end = time.monotonic() + 90
        while not (new := set(self.raylets()) - before):
            assert time.monotonic() < end, (self.folder / "start.log").read_text()[-3000:]
            time.sleep(0.2)
        self.wait_for(len(before) + 1)
        return new.pop()

    def raylets(self) -> list[int]:
        """The pids of the raylets that run."""
        return [pid for pid, command in self._processes() if command[0].endswith("/raylet")]

    def kill_head(self) -> None:
        """Kill what knows the cluster, as a power cut would; the raylets and their workers live."""
        for pid, command in self._processes():
            if command[0].endswith("/gcs_server"):
                os.kill(pid, signal.SIGKILL)

    def kill(self, raylet: int) -> None:
        """Kill a raylet as a power cut would, and wait until its workers have noticed."""
        os.kill(raylet, signal.SIGKILL)

    def wait_for(self, nodes: int) -> None:
        """Wait until so many nodes can be used."""
        code = (
            "import ray, sys, time, logging\n"
            "ray.init(sys.argv[1], logging_level=logging.ERROR, log_to_driver=False)\n"
            "end = time.monotonic() + 60\n"
            "while sum(n['Alive'] for n in ray.nodes()) < int(sys.argv[2]):\n"
            "    assert time.monotonic() < end\n"
            "    time.sleep(0.2)\n"
        )
        end = time.monotonic() + 90
        while True:
            command = [sys.executable, "-c", code, self.address, str(nodes)]
            done = subprocess.run(command, capture_output=True, check=False, timeout=120)
            if done.returncode == 0:
                return
            if time.monotonic() > end:
                told = done.stderr + (self.folder / "start.log").read_bytes()
                raise AssertionError(told.decode(errors="replace")[-3000:])
            time.sleep(0.5)

    def end(self) -> None:
        """End every process of this cluster, by its id."""
        for starter in self._starters:
            starter.kill()
            starter.wait()
        for _ in range(50):
            left = [pid for pid, _ in self._processes()]
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.1)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *words: str) -> None:
        self._starters.append(
            subprocess.Popen(
                [
                    str(Path(sys.executable).parent / "ray"),
                    "start",
                    "--block",
                    "--disable-usage-stats",
                    "--node-ip-address=127.0.0.1",
                    "--object-store-memory=100000000",
                    *words,
                ],
                env=self._environment,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        )

    def _processes(self) -> list[tuple[int, list[str]]]:
        """Processes whose environment names our folder."""
        found = []
        mark = f"CB_RAY_FOLDER={self.folder}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                named = mark in (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if named and command[0]:
                found.append((int(entry.name), command))
        return found
