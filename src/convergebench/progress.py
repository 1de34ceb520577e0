"""How far work is, how fast it goes, how long the rest will take: arithmetic on a given clock.

Rates are over the last half minute, or over as long as the last ten items took; nothing is told
before it is known. The rest takes as long as the slowest part of the work; parts that have not
moved yet make that a lower bound.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple, Protocol, Self

WINDOW: Final = 30.0
"""Seconds that a rate is taken over."""
ENOUGH: Final = 10
"""Items that a rate is taken over at least: slow work is looked back on for longer."""
SETTLED: Final = 2.0
"""Seconds before which no rate is told."""
GRAIN: Final = 60
"""Samples that are kept of a window."""
LISTED: Final = 8
"""Parts that are listed; the others are summed in the last line."""


@dataclass(frozen=True)
class Snapshot:
    """How far work is.

    Attributes:
        done: Items done, those of earlier sessions included where they count.
        total: Items in all, as far as it is known that they will be done.
        unit: What an item is.
        failures: Items that came to nothing: null scores, failed steps.
        bytes: Read or received in this session.
        workers: Alive now, or calls in flight.
        dollars: Spent in all; None where nothing costs anything.
        chains: Chains done, and in all.
        kind: What the parts are: `metric` or `editor`.
        parts: Done and total by part.
    """

    done: int
    total: int
    unit: str = ""
    failures: int = 0
    bytes: int = 0
    workers: int = 0
    dollars: float | None = None
    chains: tuple[int, int] | None = None
    kind: str = ""
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Told(Protocol):
    """What observers of long work are told."""

    @property
    def snapshot(self) -> Snapshot:
        """How far things are."""

    @property
    def event(self) -> str:
        """What happened, where it is worth a line."""


@dataclass(frozen=True)
class Stand:
    """The plainest thing that observers are told."""

    snapshot: Snapshot
    event: str = ""


@dataclass(frozen=True)
class Pace:
    """A snapshot and how fast things go; None is what nobody knows yet.

    Attributes:
        now: How far things are.
        seconds: Since the work began.
        rate: Items a second.
        bytes_rate: Bytes a second.
        rates: Items a second by part.
        left: Seconds until the end.
        at_least: Whether `left` leaves out parts that have not moved yet.
    """

    now: Snapshot
    seconds: float = 0.0
    rate: float | None = None
    bytes_rate: float | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    left: float | None = None
    at_least: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: for logs, for the file that `status` reads, for `--json`."""
        now = self.now
        return {
            "done": now.done,
            "total": now.total,
            "unit": now.unit,
            "failures": now.failures,
            "bytes": now.bytes,
            "workers": now.workers,
            "dollars": now.dollars,
            "chains": list(now.chains) if now.chains else None,
            "kind": now.kind,
            "seconds": round(self.seconds, 3),
            "rate": _short(self.rate),
            "bytes_rate": _short(self.bytes_rate),
            "left": None if self.left is None else round(self.left, 1),
            "at_least": self.at_least,
            "parts": {
                name: {"done": done, "total": total, "rate": _short(self.rates.get(name))}
                for name, (done, total) in now.parts.items()
            },
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """What `to_dict` gave. Raises KeyError, TypeError, ValueError."""
        parts = {name: (int(p["done"]), int(p["total"])) for name, p in told["parts"].items()}
        rates = {n: float(p["rate"]) for n, p in told["parts"].items() if p["rate"] is not None}
        names = {f.name for f in fields(Snapshot)} - {"parts", "chains"}
        chains = (int(told["chains"][0]), int(told["chains"][1])) if told["chains"] else None
        now = Snapshot(**{name: told[name] for name in names}, parts=parts, chains=chains)
        of_pace = ("seconds", "rate", "bytes_rate", "left", "at_least")
        return cls(now, rates=rates, **{name: told[name] for name in of_pace})


class _Sample(NamedTuple):
    at: float
    done: int
    bytes: int
    parts: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, at: float, now: Snapshot) -> _Sample:
        return cls(at, now.done, now.bytes, now.parts)


class Tally:
    """Takes snapshots and gives the pace.

    Args:
        at: When the work began, by any clock that goes forward.
    """

    def __init__(self, at: float) -> None:
        self._begun = self._last = at
        self._now = Snapshot(0, 0)
        self._first: _Sample | None = None
        self._samples: deque[_Sample] = deque()

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, at: float, now: Snapshot) -> None:
        """Things are that far now."""
        self._last, self._now = max(at, self._last), now
        if not now.total:  # preparations: nothing is counted yet
            return
        sample = _Sample.of(self._last, now)
        if self._first is None or self._first.parts.keys() != now.parts.keys():
            self._first = sample  # other work, or told in more detail: what was done before is past
            self._samples.clear()
        before = self._samples[-1] if self._samples else None
        if before is None or (now.done != before.done and sample.at - before.at >= WINDOW / GRAIN):
            self._samples.append(sample)
        while len(self._samples) > 1 and self._passed(self._samples[1]):
            self._samples.popleft()

    def _passed(self, sample: _Sample) -> bool:
        """Whether rates need not look back beyond that sample."""
        return self._last - sample.at >= WINDOW and self._now.done - sample.done >= ENOUGH

    def pace(self, at: float) -> Pace:
        """The pace at that time. What has come to its end is told over the whole of it."""
        now, at = self._now, max(at, self._last)
        ended = now.total > 0 and now.done >= now.total
        base = self._first if ended else self._samples[0] if self._samples else None
        at = self._last if ended else at
        found = Pace(now, at - self._begun, left=0.0 if ended else None)
        span = at - base.at if base else 0.0
        if base is None or span < (1e-3 if ended else SETTLED):
            return found
        moved = {
            name: (done - base.parts.get(name, (0, 0))[0]) / span
            for name, (done, _) in now.parts.items()
        }
        # What is done has no rate, until all is.
        open_ones = {name for name, (done, total) in now.parts.items() if ended or done < total}
        rates = {name: rate for name, rate in moved.items() if rate > 0 and name in open_ones}
        rate = max(0, now.done - base.done) / span
        found = replace(
            found, bytes_rate=max(0, now.bytes - base.bytes) / span or None, rates=rates
        )
        if rate <= 0:
            return found
        missing = {name: total - done for name, (done, total) in now.parts.items() if total > done}
        times = [missing[name] / rates[name] for name in missing if name in rates]
        return replace(
            found,
            rate=rate,
            left=0.0 if ended else max([(now.total - now.done) / rate, *times]),
            at_least=not ended and any(name not in rates for name in missing),
        )


def _short(value: float | None) -> float | None:
    """A rate with four figures: more is noise."""
    return None if value is None else float(f"{value:.4g}")


def duration(seconds: float) -> str:
    """A time in words: `45 s`, `12 min`, `3 h 20 min`, `2 d 5 h`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(minutes / 60), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def size(amount: float) -> str:
    """Bytes in words: `740 KiB`, `1.2 GiB`."""
    power = 0
    while amount >= 999.5 and power < 5:
        amount, power = amount / 1024, power + 1
    unit = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")[power]
    return f"{amount:.0f} {unit}" if amount >= 9.95 or not power else f"{amount:.1f} {unit}"


def speed(rate: float) -> str:
    """Items a second; of slow work, a minute or an hour: `82/s`, `4.2/s`, `3.5/min`."""
    for times, unit in ((1, "s"), (60, "min"), (3600, "h")):
        value = rate * times
        if value >= 0.995 or unit == "h":
            return f"{value:,.0f}/{unit}" if value >= 9.95 else f"{value:.1f}/{unit}"
    raise AssertionError("unreachable: the last unit always fits")


def facts(pace: Pace) -> list[str]:
    """What is known besides how many are done, in a few words each."""
    now = pace.now
    found = [f"{now.chains[0]:,}/{now.chains[1]:,} chains"] if now.chains else []
    found.append(f"{now.failures:,} {'null' if now.kind == 'metric' else 'failed'}")
    if now.dollars is not None:
        found.append(f"${now.dollars:.2f}")
    if pace.rate:
        found.append(speed(pace.rate))
    if now.bytes:
        also = f" at {size(pace.bytes_rate)}/s" if pace.bytes_rate else ""
        found.append(f"{size(now.bytes)}{also}")
    if now.workers and now.done < now.total:
        one, more = ("worker", "workers") if now.kind == "metric" else ("call", "calls")
        found.append(f"{now.workers:,} {one if now.workers == 1 else more}")
    return found


def remaining(pace: Pace) -> str:
    """How long the rest takes, or nothing."""
    if pace.left is None or pace.now.done >= pace.now.total:
        return ""
    return f"{'at least' if pace.at_least else 'about'} {duration(pace.left)} left"


@dataclass(frozen=True)
class Part:
    """One line of the list of parts."""

    name: str
    done: int
    total: int
    rate: float | None


def parts(pace: Pace, most: int = LISTED) -> list[Part]:
    """The parts, in their order; of too many those that move come first, the rest in one sum."""
    every = [
        Part(name, done, total, pace.rates.get(name))
        for name, (done, total) in pace.now.parts.items()
    ]
    if len(every) <= most:
        return every
    at_work = sorted(every, key=lambda p: (p.done >= p.total, p.rate is None))
    chosen = {part.name for part in at_work[: most - 1]}
    rest = [part for part in every if part.name not in chosen]
    rate = math.fsum(part.rate or 0.0 for part in rest)
    summed = Part(
        f"{len(rest)} more", sum(p.done for p in rest), sum(p.total for p in rest), rate or None
    )
    return [*(part for part in every if part.name in chosen), summed]


def line(title: str, pace: Pace) -> str:
    """All of it in one line: for logs that people read."""
    now = pace.now
    told = [f"{title}: {now.done:,} of {now.total:,}", *facts(pace)]
    if rest := remaining(pace):
        told.append(rest)
    moving = [f"{p.name} {speed(p.rate)}" for p in parts(pace) if p.rate]
    split = f" ({', '.join(moving)})" if len(now.parts) > 1 and moving and pace.left != 0 else ""
    return ", ".join(told) + split
