"""Connections that do not wait for ever: uvicorn sets no limit to how long a request's head takes.

Without one, a single client that opens many connections and sends a letter now and then takes all
places there are (`limit_concurrency`), and keeps them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_TIME: Final = 15.0
"""Seconds in which the head of a request must have come."""


class Connection(H11Protocol):
    """A connection that is closed when no request has begun on it for a while."""

    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._look(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no longer."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _look(self, before: RequestResponseCycle | None) -> None:
        """Look again later, and close if there was no other request since this look."""
        self._watch = self.loop.call_later(HEAD_TIME, self._looked, before)

    def _looked(self, before: RequestResponseCycle | None) -> None:
        waiting = self.cycle is None or self.cycle.response_complete
        if waiting and self.cycle is before:
            self.transport.close()  # what is still to be sent is sent first
        else:
            self._look(self.cycle)
