from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.walk.flow import Flow, Limiter, Permit

NEVER = threading.Event()


@given(st.integers(1, 16), st.lists(st.sampled_from(["ask", "answer", "down", "429"]), max_size=80))
def test_the_limit_halves_at_most_once_per_burst_and_creeps_up(
    most: int, events: list[str]
) -> None:
    limiter = Limiter(most)
    out: list[Permit] = []
    for event in events:
        before = limiter.limit
        if event == "ask" and limiter.in_flight < limiter.limit:
            permit = limiter.acquire(NEVER)
            assert permit is not None
            out.append(permit)
            assert limiter.in_flight <= limiter.limit
        elif event == "answer" and out:
            limiter.release(out.pop(0), answered=True)
            assert limiter.limit in (before, before + 1)
        elif event == "down" and out:
            limiter.release(out.pop(0), answered=False)
            assert limiter.limit == before
        elif event == "429" and out:
            permit = out.pop(0)
            limiter.too_many(permit, None)
            assert limiter.limit in (before, max(1, before // 2))
            for other in out:  # all that were in flight with it are told the same
                limiter.too_many(other, None)
            now = limiter.limit
            limiter.too_many(permit, None)
            assert limiter.limit == now, "one burst is one reason"
            limiter.release(permit, answered=False)
        assert 1 <= limiter.limit <= most
        assert limiter.in_flight == len(out)


def answered(limiter: Limiter, times: int) -> None:
    for _ in range(times):
        permit = limiter.acquire(NEVER)
        assert permit is not None
        limiter.release(permit, answered=True)


def test_it_halves_and_takes_as_many_answers_as_it_allows_to_grow() -> None:
    told: list[str] = []
    limiter = Limiter(8, "openai", told.append)
    for expected in (4, 2, 1, 1):
        permit = limiter.acquire(NEVER)
        assert permit is not None
        limiter.too_many(permit, None)
        limiter.release(permit, answered=False)
        assert limiter.limit == expected
    assert told == [f"openai: too many calls, at most {n} at once" for n in (4, 2, 1)]
    answered(limiter, 1)
    assert limiter.limit == 2
    answered(limiter, 1)
    assert limiter.limit == 2
    answered(limiter, 1)
    assert limiter.limit == 3
    answered(limiter, 3 + 4 + 5 + 6 + 7 + 50)
    assert limiter.limit == 8, "never above what the account bears"


def test_all_calls_are_held_until_the_asked_time_has_passed() -> None:
    limiter = Limiter(4, "x")
    permit = limiter.acquire(NEVER)
    assert permit is not None
    clock = time.monotonic()
    limiter.too_many(permit, 0.4)
    limiter.too_many(permit, 0.1)
    limiter.release(permit, answered=False)
    waited: list[float] = []

    def call() -> None:
        mine = limiter.acquire(NEVER)
        assert mine is not None
        waited.append(time.monotonic() - clock)
        limiter.release(mine, answered=True)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(waited) == 4
    assert min(waited) >= 0.4


@pytest.mark.parametrize("why", ["stop", "close"])
def test_who_waits_is_woken(why: str) -> None:
    limiter, stop = Limiter(1, "x"), threading.Event()
    first = limiter.acquire(stop)
    assert first is not None
    limiter.too_many(first, 600.0)
    got: list[Permit | None] = []
    thread = threading.Thread(target=lambda: got.append(limiter.acquire(stop)))
    thread.start()
    time.sleep(0.05)
    clock = time.monotonic()
    stop.set() if why == "stop" else limiter.close("no credit")
    thread.join(60)
    assert got == [None]
    assert time.monotonic() - clock < 60, "not the 600 s that it was to wait"
    assert limiter.closed == ("no credit" if why == "close" else "")


def test_threads_never_pass_the_limit() -> None:
    limiter, guard = Limiter(3), threading.Lock()
    seen = [0, 0]

    def work() -> None:
        for _ in range(30):
            permit = limiter.acquire(NEVER)
            assert permit is not None
            with guard:
                seen[0] += 1
                seen[1] = max(seen)
            time.sleep(0.0005)
            with guard:
                seen[0] -= 1
            limiter.release(permit, answered=True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0, 3]


def test_editors_of_one_account_share_a_limiter() -> None:
    limits = {
        "a:1": ("a/k1", 4),
        "a:2": ("a/k1", 2),
        "b:1": ("b/k1", 4),
        "c": ("", 3),
        "d": ("", 3),
    }
    flow = Flow(limits, lambda _text: None)
    assert flow.of("a:1") is flow.of("a:2")
    assert flow.of("a:1").limit == 4
    assert flow.of("a:1").name == "a", "no key's fingerprint in messages"
    assert len({id(flow.of(name)) for name in limits}) == 4
