"""Rates and the time left: the arithmetic, on any clock and any work."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.progress import (
    ENOUGH,
    GRAIN,
    LISTED,
    SETTLED,
    WINDOW,
    Pace,
    Snapshot,
    Tally,
    duration,
    line,
    parts,
    remaining,
    size,
    speed,
)

NAMES = ("a", "b", "c")


@st.composite
def works(draw: st.DrawFn) -> list[tuple[float, Snapshot]]:
    """Some work as it is told: when, and how far."""
    totals = {name: draw(st.integers(0, 400)) for name in NAMES}
    done = dict.fromkeys(NAMES, 0)
    at, read, told = draw(st.floats(0, 1e6)), 0, []
    for _ in range(draw(st.integers(1, 25))):
        at += draw(st.one_of(st.just(0.0), st.floats(0, 20)))
        for name in NAMES:
            done[name] += draw(st.integers(0, totals[name] - done[name]))
        read += draw(st.integers(0, 10**7))
        counts = {name: (done[name], totals[name]) for name in NAMES}
        all_done, total = sum(done.values()), sum(totals.values())
        told.append((at, Snapshot(all_done, total, bytes=read, kind="metric", parts=counts)))
    return told


def tallied(told: list[tuple[float, Snapshot]]) -> Tally:
    tally = Tally(told[0][0])
    for at, now in told:
        tally.add(at, now)
    return tally


@given(works(), st.floats(0, 1e5))
def test_nothing_is_negative_and_the_end_is_the_end(
    told: list[tuple[float, Snapshot]], later: float
) -> None:
    at, now = told[-1]
    pace = tallied(told).pace(at + later)
    for rate in (pace.rate, pace.bytes_rate, *pace.rates.values()):
        assert rate is None or rate > 0
    assert pace.left is None or pace.left >= 0
    if now.total and now.done == now.total:
        assert (pace.left, pace.at_least, remaining(pace)) == (0, False, "")
    elif pace.left is not None:
        assert pace.left > 0
        assert pace.rate is not None
    assert pace.seconds >= 0


@given(st.lists(st.floats(0, 2), min_size=200, max_size=400))
def test_memory_is_bounded(pauses: list[float]) -> None:
    tally, at = Tally(0.0), 0.0
    for number, pause in enumerate(pauses):
        at += pause
        tally.add(at, Snapshot(number, 1000))
        assert len(tally) <= GRAIN + ENOUGH + 3


@given(works())
def test_the_pace_survives_json(told: list[tuple[float, Snapshot]]) -> None:
    tally = tallied(told)
    pace = tally.pace(told[-1][0] + 5)
    again = Pace.from_dict(json.loads(json.dumps(pace.to_dict())))
    assert again.now == pace.now
    assert again.to_dict() == pace.to_dict()
    assert line("scoring", again).startswith("scoring: ")


@given(works(), st.floats(0, 1e4), st.floats(0, 1e4))
def test_while_nothing_happens_the_rate_falls_and_the_rest_takes_longer(
    told: list[tuple[float, Snapshot]], first: float, more: float
) -> None:
    at, now = told[-1]
    tally = tallied(told)
    soon, late = tally.pace(at + first), tally.pace(at + first + more)
    if now.done < now.total and soon.rate and late.rate and soon.left and late.left:
        assert late.rate <= soon.rate
        assert late.left >= soon.left


@given(st.integers(1, 1000), st.integers(1, 1000), st.floats(0.01, 100))
def test_more_work_never_takes_less_time(total: int, more: int, pause: float) -> None:
    def left(all_of_it: int) -> float | None:
        tally = Tally(0.0)
        for number in range(21):
            tally.add(number * pause, Snapshot(number, all_of_it))
        return tally.pace(20 * pause).left

    small, large = left(20 + total), left(20 + total + more)
    assert (small is None) == (large is None)
    if small is not None and large is not None:
        assert large > small


@given(st.floats(0.05, 50), st.integers(3, 400))
def test_steady_work_is_told_as_steady(rate: float, number: int) -> None:
    tally, pause = Tally(0.0), 1 / rate
    for count in range(number + 1):
        tally.add(count * pause, Snapshot(count, 2 * number))
    pace = tally.pace(number * pause)
    if number * pause >= SETTLED:
        assert pace.rate == pytest.approx(rate, rel=1e-6)
        assert pace.left == pytest.approx(number / rate, rel=1e-6)
    else:
        assert pace.rate is pace.left is None


def test_only_the_last_half_minute_counts() -> None:
    tally = Tally(0.0)
    done = 0
    for second in range(200):
        done += 100 if second < 100 else 2
        tally.add(float(second), Snapshot(done, 20_000))
    pace = tally.pace(199.0)
    assert pace.rate == pytest.approx(2, rel=0.1)
    assert len(tally) < WINDOW + 5


def test_what_was_known_before_is_no_speed() -> None:
    tally = Tally(0.0)
    tally.add(0.0, Snapshot(0, 0))  # preparations
    tally.add(1.0, Snapshot(9_000, 10_000))  # notes, before it is known in detail
    tally.add(2.0, Snapshot(9_000, 10_000, parts={"a": (8_000, 8_500), "b": (1_000, 1_500)}))
    tally.add(12.0, Snapshot(9_010, 10_000, parts={"a": (8_010, 8_500), "b": (1_000, 1_500)}))
    pace = tally.pace(12.0)
    assert pace.rate == pytest.approx(1)
    assert pace.rates == {"a": pytest.approx(1)}
    assert pace.left == pytest.approx(990)
    assert pace.at_least, "nobody knows how long b will take"
    assert remaining(pace) == "at least 16 min left"


def test_the_slowest_part_decides() -> None:
    tally = Tally(0.0)
    tally.add(0.0, Snapshot(0, 200, parts={"fast": (0, 100), "slow": (0, 100)}))
    tally.add(10.0, Snapshot(60, 200, parts={"fast": (50, 100), "slow": (10, 100)}))
    pace = tally.pace(10.0)
    assert pace.left == pytest.approx(90)
    assert not pace.at_least


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_long_lists_are_summed_and_nothing_is_lost(counts: list[tuple[int, int]]) -> None:
    told = {f"m{i}": (done, done + rest) for i, (done, rest) in enumerate(counts)}
    rates = {name: 1.5 for name in list(told)[::3]}
    listed = parts(Pace(Snapshot(0, 1, parts=told), rates=rates))
    assert len(listed) <= LISTED
    assert sum(p.done for p in listed) == sum(done for done, _ in told.values())
    assert sum(p.total for p in listed) == sum(total for _, total in told.values())
    assert sum(p.rate or 0 for p in listed) == pytest.approx(sum(rates.values()))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (duration(0.2), "0 s"),
        (duration(99.4), "99 s"),
        (duration(99.6), "2 min"),
        (duration(5_999), "1 h 40 min"),
        (duration(7_200), "2 h"),
        (duration(200_000), "2 d 8 h"),
        (size(0), "0 bytes"),
        (size(1000), "1.0 KiB"),
        (size(123_456_789), "118 MiB"),
        (size(5e18), "4441 PiB"),
        (speed(1234.5), "1,234/s"),
        (speed(0.5), "30/min"),
        (speed(0.001), "3.6/h"),
    ],
)
def test_words(words: str, expected: str) -> None:
    assert words == expected


def test_a_line_has_all_of_it() -> None:
    now = Snapshot(
        done=50, total=200, unit="steps", failures=3, bytes=2**20, workers=4, dollars=1.5,
        chains=(1, 9), kind="editor", parts={"a": (30, 100), "b": (20, 100)},
    )  # fmt: skip
    told: dict[str, Any] = {"rates": {"a": 3.0, "b": 2.0}, "left": 40.0}
    assert line("running", Pace(now, 10.0, 5.0, 1e5, **told)) == (
        "running: 50 of 200, 1/9 chains, 3 failed, $1.50, 5.0/s, 1.0 MiB at 98 KiB/s, 4 calls, "
        "about 40 s left (a 3.0/s, b 2.0/s)"
    )
