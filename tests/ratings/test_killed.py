"""The server is killed while people answer: what was acknowledged is there, and once."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from convergebench.ratings import export, open_study
from convergebench.ratings.session import Session
from tests.ratings.made import any_answer, small_study, tokens
from tests.ratings.serving import Served


def rate_all(served: Served, token: str, seed: int) -> dict[str, tuple[dict[str, Any], bool]]:
    """Answer until done, through every interruption; what was acknowledged, by the page's id.

    The second of each pair says whether the answer was acknowledged as new. Sometimes the same
    page is sent twice at once, as an impatient user does.
    """
    rng, told = random.Random(seed), {}
    client = served.client()

    def ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                answer = client.request(method, f"/p/{token}/{path}", json=body)
                if answer.status_code < 500:
                    assert answer.status_code == 200, answer.text
                    found: dict[str, Any] = answer.json()
                    return found
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError("the server never came back")

    state = ask("POST", "consent", {"agree": True})
    while state["stage"] == "rate":
        body = any_answer(state, rng.randrange(6))
        item = body["item"]
        if rng.random() < 0.1:
            ask("POST", "answers", body)  # its answer was lost on the way, say
        answer = ask("POST", "answers", body)
        told[item] = (body["values"], answer["saved"])
        state = ask("GET", "state") if rng.random() < 0.2 else answer
    client.close()
    return told


@pytest.mark.slow
def test_what_was_acknowledged_is_exported_once_though_the_server_was_killed_five_times(
    tmp_path: Path,
) -> None:
    study = small_study(tmp_path / "s", participants=20, images=20, practice=1, attention=1)
    links = tokens(study)
    kills = 0
    with Served(study) as served, ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(rate_all, served, token, n) for n, token in enumerate(links.values())]
        for number in range(5):
            # When so many are there, it is cut off in the middle of whatever it does.
            wait_for(study, (number + 1) * 60)
            assert not all(future.done() for future in asked)
            served.kill()
            kills += 1
            served.start()
        acknowledged = [future.result(timeout=200) for future in asked]
    assert kills == 5
    rows = export.answers(study)
    record = open_study(study)
    assert rows.group_by("rater", "order", "method").len()["len"].max() == 1
    stored = {
        (w, o, m): v for w, o, m, v in rows.select("rater", "order", "method", "value").rows()
    }
    expected = {}
    for place, (participant, token) in enumerate(links.items()):
        session = Session(record, place, token, (study / "server.key").read_bytes())
        items = record.participants[place].items
        told = acknowledged[place]
        assert len(told) == len(items)
        for name, (values, _) in told.items():
            at = session._places[name]
            for letter, method in zip("abcde", items[at].slots, strict=True):
                expected[participant, at + 1, method] = float(values[letter])
    assert stored == expected
    assert len(stored) == 20 * 22 * 5


def wait_for(study: Path, answers: int) -> None:
    """Until so many answers are stored; looked at from outside, as a reader may at any time."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        looking = sqlite3.connect(f"file:{study / 'answers.sqlite'}?mode=ro", uri=True)
        try:
            if looking.execute("SELECT count(*) FROM answers").fetchone()[0] >= answers:
                return
        finally:
            looking.close()
        time.sleep(0.01)
    raise AssertionError("too few answers came")


def test_one_session_goes_on_after_every_kill_and_after_ctrl_c(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", participants=1, images=4, practice=0)
    (token,) = tokens(study).values()
    with Served(study) as served:
        with served.client() as client:
            state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
            after = client.post(f"/p/{token}/answers", json=any_answer(state)).json()
        served.kill()
        served.start()
        with served.client() as client:
            again = client.get(f"/p/{token}/state").json()
            assert again["item"] == after["item"]
            assert again["done"] == 1
            late = client.post(f"/p/{token}/answers", json=any_answer(state, 5)).json()
            assert (late["saved"], late["done"]) == (False, 1)
            client.post(f"/p/{token}/answers", json=any_answer(again))
        assert served.stop() == 130
        assert "stopped" in served.said()
        assert not list(study.glob("answers.sqlite-*")), "closed in good order"
        served.start()
        with served.client() as client:
            assert client.get(f"/p/{token}/state").json()["done"] == 2
    assert export.answers(study).height == 10


def test_two_servers_on_one_study_are_safe(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", participants=4, images=6, practice=0)
    saved = []
    lock = threading.Lock()
    with Served(study) as one, Served(study) as other, ThreadPoolExecutor(8) as pool:

        def both(token: str, served: Served) -> None:
            with served.client() as client:
                state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
                while state["stage"] == "rate":
                    body = any_answer(state)
                    answer = client.post(f"/p/{token}/answers", json=body)
                    state = answer.json()
                    assert answer.status_code == 200, state
                    with lock:
                        saved.extend([(token, body["item"])] * state["saved"])

        jobs = [
            pool.submit(both, token, served)
            for token in tokens(study).values()
            for served in (one, other)
        ]
        for job in jobs:
            job.result(timeout=100)
    assert len(saved) == len(set(saved)) == 4 * 6
    assert export.answers(study).height == 4 * 6 * 5
