"""Conversations through the real runner: each turn goes on from the store, resumed or not."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.walk import calls
from tests.editors.providers.speak_openai import CHAT_PRICE, OpenAISpeaker
from tests.editors.providers.speak_openrouter import COST, OpenRouterSpeaker
from tests.support.runs import write_suite
from tests.support.speaker import Speaker

MARKER = "MARKER-9b20aa-not-to-be-seen"


def table(suite: Path, editor: str, steps: int) -> dict[str, Any]:
    return {
        "suite": str(suite),
        "editors": [editor],
        "sources": ["s0"],
        "cycles": ["copy"],
        "steps": steps,
        "controls": False,
        "budget": 100,
        "settings": {"session": ["chat"]},
    }


def prepare(speaker: Speaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    for name, value in speaker.environment(MARKER).items():
        monkeypatch.setenv(name, value)
    return write_suite(tmp_path / "suite", size=64)


def test_a_run_goes_on_with_the_response_of_the_step_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fates = {2: "broken", 4: "cut"}
    speaker = OpenAISpeaker(lambda number: fates.get(number, "ok"))
    with speaker:
        suite = prepare(speaker, tmp_path, monkeypatch)
        first = table(suite, "openai:gpt-image-2", 4)
        assert run(tmp_path / "run", first).complete
        asked = [received.json.get("previous_response_id") for received in speaker.server.log]
        # The third call failed unbilled; the fifth was lost, and made again from the same turn.
        assert asked == [None, "resp_1", "resp_2", "resp_2", "resp_4", "resp_4"]
        assert speaker.billed == 5

        speaker.kept.clear()
        assert run(tmp_path / "run", {**first, "steps": 5}).complete
    (chain,) = RunStore.open(tmp_path / "run").chains()
    forgotten, anew = speaker.server.log[-2:]
    assert forgotten.json["previous_response_id"] == "resp_6"
    assert "previous_response_id" not in anew.json
    told = [message for message in anew.json["input"] if message["role"] == "user"]
    sent = [base64.b64decode(m["content"][0]["image_url"].partition(",")[2]) for m in told]
    store = RunStore.open(tmp_path / "run")
    assert sent == [store.frame(one).data for one in chain.frames[:5]]
    made = [step.call.cost for step in chain.steps if step.outcome == "edited"]
    assert made == [pytest.approx(CHAT_PRICE)] * 5
    assert chain.steps[-1].call.reasoning == "I shall keep the rest."


def test_a_run_by_openrouter_sends_the_conversation_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenRouterSpeaker() as speaker:
        suite = prepare(speaker, tmp_path, monkeypatch)
        first = table(suite, "openrouter:google/gemini-nano-banana-2.1", 2)
        assert run(tmp_path / "run", first).complete
        assert run(tmp_path / "run", {**first, "steps": 4}).complete
    store = RunStore.open(tmp_path / "run")
    (chain,) = store.chains()
    for step, received in enumerate(speaker.server.log, 1):
        told = [m for m in received.json["messages"] if m["role"] == "user"]
        urls = [m["content"][0]["image_url"]["url"] for m in told]
        sent = [base64.b64decode(url.partition(",")[2]) for url in urls]
        assert sent == [store.frame(one).data for one in chain.frames[:step]]
    assert chain.spent == pytest.approx(4 * COST)
    assert {step.call.basis for step in chain.steps} == {"reported"}
