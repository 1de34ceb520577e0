"""A study served by a real process, which can be killed and started again on the same port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2 as httpx


class Served:
    """`convergebench rate serve`, from its start until it is stopped."""

    def __init__(self, study: Path, *options: str) -> None:
        self.study = study
        self._options = options
        self._port = 0
        self._log = tempfile.NamedTemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "convergebench", "rate", "serve", str(self.study)]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port), *self._options],
            stdout=self._log,
            stderr=self._log,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = re.findall(r"serving \S+ at (http://\S+:(\d+))", self.said())
            if found:
                self.address, port = found[-1]
                self._port = int(port)
                if self._answers():
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the server did not start: {self.said()}")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", timeout=5).text == "ok"
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """As a power cut would: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """As a user would: Ctrl-C. Returns the exit code."""
        return self._end(signal.SIGINT)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        code = self._process.wait(30)
        self._process = None
        return code

    def said(self) -> str:
        """All that it printed, over all its lives."""
        with open(self._log.name, encoding="utf-8") as file:
            return file.read()

    def client(self, **more: Any) -> httpx.Client:
        """Somebody who speaks to it as our pages do."""
        headers = {"origin": self.address, **more.pop("headers", {})}
        return httpx.Client(base_url=self.address, headers=headers, timeout=30, **more)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()
        self._log.close()
