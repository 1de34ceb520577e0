"""Metrics served by a model, against a real server with a judge of known behaviour."""

from __future__ import annotations

import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from convergebench import chatapi, testcard
from convergebench.frame import resize
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics import served
from convergebench.metrics.served import Answer, in_parallel, summary
from convergebench.testing import check_metric
from tests.metrics.judged import FACTORIES, SCALE, one, picture
from tests.support.chat_server import (
    MODEL,
    ChatServer,
    Sent,
    chat_server,
    error,
    judge,
    noise,
    said,
)

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "served-metrics.md"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chatapi, "FIRST_WAIT", 0.002)
    monkeypatch.setattr(served, "_MEMORY", {})
    for name in os.environ:
        if name.startswith(("CONVERGEBENCH_VQR1", "CONVERGEBENCH_VLM")):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


def expected(pixels: NDArray[np.uint8], seed: int) -> float:
    return round(5 - noise(pixels) / 16 + 0.01 * (seed % 7), 4)


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FACTORIES)
def test_contract(name: str, server: ChatServer) -> None:
    server.served.append("TianheWu/VisualQuality-R1-7B")
    model = MODEL if name.startswith("vlm") else ""
    check_metric(FACTORIES[name](model=model, url=server.url))


def test_the_score_is_the_mean_and_the_spread_the_sample_deviation(server: ChatServer) -> None:
    frame = picture()
    options = {"model": MODEL, "url": server.url, "samples": "5"}
    scores = [expected(frame.pixels, seed) for seed in range(1, 6)]
    assert one(served.vlm(**options), frame) == pytest.approx(np.mean(scores), abs=1e-12)
    assert one(served.vlm_spread(**options), frame) == pytest.approx(
        np.std(scores, ddof=1), abs=1e-12
    )
    assert one(served.vlm_unparsed(**options), frame) == 0.0


def test_siblings_share_the_answers(server: ChatServer) -> None:
    frames = [picture(level) for level in (2, 8, 20)]
    views = [StepView(frame) for frame in (*frames, frames[0])]
    options = {"model": MODEL, "url": server.url, "samples": "4"}
    for factory in (served.vlm_spread, served.vlm, served.vlm_unparsed, served.vlm):
        factory(**options).score(views)
    assert len(server.calls) == 3 * 4
    assert sorted(call.seed for call in server.calls) == sorted([1, 2, 3, 4] * 3)


def test_equal_pixels_are_asked_about_once(server: ChatServer) -> None:
    metric = served.vlm(model=MODEL, url=server.url)
    same = metric.score([StepView(picture(3)), StepView(picture(4)), StepView(picture(3))])
    assert same[0] == same[2] != same[1]
    assert one(metric, picture(4)) == same[1]
    assert len(server.calls) == 2
    one(metric, Picture(picture(4).pixels.reshape(16, 64, 3)))
    assert len(server.calls) == 3


def test_memory_is_bounded(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "REMEMBERED", 2)
    metric = served.vlm(model=MODEL, url=server.url)
    frames = [picture(level) for level in range(5)]
    values = metric.score([StepView(frame) for frame in frames])
    assert values == [expected(frame.pixels, 1) for frame in frames]
    assert len(served._MEMORY) == 2


def test_a_failure_is_asked_about_again_after_a_while(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script.append(error(400, "no"))
    metric = served.vlm(model=MODEL, url=server.url)
    frame = picture()
    assert isinstance(one(metric, frame), NoScore)
    assert isinstance(one(metric, frame), NoScore)
    assert len(server.calls) == 1
    monkeypatch.setattr(served, "PAUSE", 0.0)
    assert one(metric, frame) == expected(frame.pixels, 1)


def test_fewer_samples_are_the_first_of_more(server: ChatServer) -> None:
    frame = picture()
    options = {"model": MODEL, "url": server.url, "temperature": "0.5"}
    one(served.vlm(**options), frame)
    one(served.vlm(**options, samples="3"), frame)
    assert server.calls[0].seed == 1
    assert sorted(call.seed for call in server.calls) == [1, 2, 3]


def test_other_questions_share_nothing(server: ChatServer) -> None:
    frame = picture()
    for options in ({}, {"prompt": "visualquality-r1-plain"}, {"max_side": "28"}, {"seed": "7"}):
        one(served.vlm(model=MODEL, url=server.url, **options), frame)
    assert len(server.calls) == 4


# -- what is sent ---------------------------------------------------------------------------------


def test_visualquality_r1_asks_as_published(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_VQR1_URL", server.url)
    server.served = ["TianheWu/VisualQuality-R1-7B"]
    home = testcard.testcard()[0]
    one(served.visualquality_r1(), Picture(home))
    (call,) = server.calls
    body = dict(call.body)
    (message,) = body.pop("messages")
    # README.md of the repository at a16dcdb: PROMPT and QUESTION_TEMPLATE of its vLLM script.
    assert call.text == (
        "You are doing the image quality assessment task. Here is the question: "
        "What is your overall rating on the quality of this picture? The rating should be a float "
        "between 1 and 5, rounded to two decimal places, with 1 representing very poor quality and "
        "5 representing excellent quality. First output the thinking process in <think> </think> "
        "tags and then output the final answer with only one score in <answer> </answer> tags."
    )
    assert [part["type"] for part in message["content"]] == ["image_url", "text"]
    assert body == {
        "model": "TianheWu/VisualQuality-R1-7B",
        "temperature": 0.1,
        "top_k": 50,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "chat_template_kwargs": {"add_vision_id": True},
        "max_tokens": 2048,
        "seed": 1,
    }
    assert call.pixels is not None
    assert np.array_equal(call.pixels, home)


def test_a_plain_model_gets_only_what_every_server_knows(server: ChatServer) -> None:
    options = {"model": MODEL, "url": server.url}
    one(served.vlm(**options), picture())
    one(served.vlm(**options, temperature="none", seed="none", max_tokens="none"), picture())
    assert set(server.calls[0].body) == {"model", "messages", "temperature", "max_tokens", "seed"}
    assert server.calls[0].body["temperature"] == 0
    assert set(server.calls[1].body) == {"model", "messages"}


def test_several_samples_are_not_taken_at_temperature_0(server: ChatServer) -> None:
    one(served.vlm(model=MODEL, url=server.url, samples="2"), picture())
    assert {call.body["temperature"] for call in server.calls} == {1.0}


def test_max_side_shrinks_what_is_larger_and_nothing_else(server: ChatServer) -> None:
    wide = Picture(np.random.default_rng(1).integers(0, 256, (20, 90, 3), np.uint8))
    metric = served.vlm(model=MODEL, url=server.url, max_side="45")
    one(metric, wide)
    one(metric, picture(side=45))
    first, second = (call.pixels for call in server.calls)
    assert first is not None
    assert np.array_equal(first, resize(wide.pixels, 45, 10))
    assert second is not None
    assert second.shape == (45, 45, 3)


def test_pictures_are_asked_about_at_once_and_answered_in_order() -> None:
    def slow(asked: Any) -> Sent:
        sent = judge(asked)
        return Sent(sent.data, wait=0.05 * (asked.seed % 3))

    with chat_server(slow) as server:
        frames = [picture(level) for level in range(1, 9)]
        metric = served.vlm(model=MODEL, url=server.url, concurrency="3", samples="2")
        values = metric.score([StepView(frame) for frame in frames])
        assert server.busiest == 3
    for frame, value in zip(frames, values, strict=True):
        want = (expected(frame.pixels, 1) + expected(frame.pixels, 2)) / 2
        assert value == pytest.approx(want, abs=1e-12)


# -- what comes back ------------------------------------------------------------------------------


def test_answers_without_a_score_are_left_out_and_counted(server: ChatServer) -> None:
    server.script.extend([said("It is fine."), said("<answer>4</answer>"), said("Score: 2")])
    frame = picture()
    options = {"model": MODEL, "url": server.url, "samples": "3", "concurrency": "1"}
    assert one(served.vlm(**options), frame) == 3.0
    assert one(served.vlm_unparsed(**options), frame) == 1.0
    assert one(served.vlm_spread(**options), frame) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (said("It is a fine picture."), "0 of 2 answers held a score.*'It is a fine picture.'"),
        (said(None), "held a score; first without: ''"),
        (said(None, refusal="I will not."), "refused: 'I will not.'"),
        (said("", finish="content_filter"), "refused: ''"),
        (said("<think>4 of 5", finish="length"), r"cut off \(max_tokens\): '<think>4 of 5'"),
        (said("4", finish="length"), r"cut off \(max_tokens\): '4'"),
        (said("long " * 99), "long…'$"),
    ],
)
def test_no_score_at_all_is_null_with_the_words(answer: Sent, words: str) -> None:
    with chat_server(lambda asked: answer) as server:
        options = {"model": MODEL, "url": server.url, "samples": "2"}
        value = one(served.vlm(**options), picture())
        assert isinstance(value, NoScore)
        assert re.search(words, value.reason), value.reason
        assert one(served.vlm_unparsed(**options), picture()) == 2.0


@pytest.mark.parametrize("text", ["<answer>0.35</answer>", "<answer>-1</answer>", "Score: 7.25"])
def test_scores_outside_the_scale_are_kept(text: str) -> None:
    with chat_server(lambda asked: said(text)) as server:
        metric = served.vlm(model=MODEL, url=server.url)
        value = one(metric, picture())
    assert isinstance(value, float)
    assert metric.spec.typical == SCALE
    assert not SCALE[0] <= value <= SCALE[1]


def test_a_failed_call_makes_the_picture_null_not_the_mean_of_fewer(server: ChatServer) -> None:
    server.script.extend([said("<answer>4</answer>"), error(400, "too large")])
    frame = picture()
    options = {"model": MODEL, "url": server.url, "samples": "3", "concurrency": "1"}
    value = one(served.vlm(**options), frame)
    assert value == NoScore("1 of 3 calls failed: HTTP 400: too large")
    assert one(served.vlm_unparsed(**options), frame) == value
    assert len(server.calls) == 3


def test_a_dead_server_costs_seconds_not_hours() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    metric = served.vlm(model=MODEL, url=url)
    begun = time.monotonic()
    values = metric.score([StepView(picture(n / 10)) for n in range(200)])
    assert time.monotonic() - begun < 20
    reasons = [value.reason for value in values if isinstance(value, NoScore)]
    assert len(reasons) == 200
    assert "cannot reach" in reasons[0]
    assert "not asked, because" in reasons[-1]


def test_the_pinned_model_must_have_answered(server: ChatServer) -> None:
    options = {"model": MODEL, "url": server.url}
    assert isinstance(one(served.vlm(**options, pin=MODEL), picture()), float)
    value = one(served.vlm(**options, pin="fake-judge-0613"), picture())
    assert value == NoScore("1 of 1 calls failed: answered by fake-judge, not by fake-judge-0613")


def test_keys_are_in_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_JUDGE", "hunter2-hunter2")
    with chat_server(lambda asked: said(f"You sent {asked.headers['Authorization']}.")) as server:
        server.key = "hunter2-hunter2"
        metric = served.vlm(model=MODEL, url=server.url, key_env="MY_JUDGE")
        value = one(metric, picture())
    assert value == NoScore("0 of 1 answers held a score; first without: 'You sent Bearer <key>.'")
    assert "hunter2" not in f"{metric.spec} {vars(metric)}"


@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=8))
def test_statistics_of_any_answers(values: list[float | None]) -> None:
    answers = [Answer(value, "" if value is not None else "no") for value in values]
    scores = [value for value in values if value is not None]
    assert summary(answers, "unparsed") == len(values) - len(scores)
    mean, spread = summary(answers, "score"), summary(answers, "spread")
    if scores:
        assert mean == pytest.approx(np.mean(scores), abs=1e-9)
    else:
        assert isinstance(mean, NoScore)
    if len(scores) > 1:
        assert spread == pytest.approx(np.std(scores, ddof=1), abs=1e-9)
    else:
        assert isinstance(spread, NoScore)
        assert f"{len(scores)} of {len(values)}" in spread.reason


# -- threads --------------------------------------------------------------------------------------


def test_an_error_in_a_task_reaches_the_caller() -> None:
    def broken() -> int:
        raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        in_parallel([broken, *[lambda: 1] * 50], 2)
    assert in_parallel([lambda: 1, lambda: 2], 8) == [1, 2]
    assert in_parallel([], 8) == []


def test_ctrl_c_does_not_wait_for_the_server() -> None:
    with chat_server(lambda asked: said("late", wait=30)) as server:
        code = (
            "import signal, numpy as np\n"
            "from convergebench.metric import Picture, StepView\n"
            "from convergebench.metrics.served import vlm\n"
            # A shell that starts tests in the background has them ignore the signal.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"metric = vlm(model={MODEL!r}, url={server.url!r})\n"
            "metric.score([StepView(Picture(np.zeros((8, 8, 3), np.uint8)))])\n"
        )
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        while not server.calls:
            assert process.poll() is None
            time.sleep(0.02)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) != 0
        assert time.monotonic() - begun < 10
