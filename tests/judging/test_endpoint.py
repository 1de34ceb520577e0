"""Judges behind an endpoint of one's own, and the guide, which uses one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from convergebench.judging import catalogue, open_judge
from convergebench.judging.catalogue import VARIABLE
from tests.judging.speaking import KEY, answers, chat_says, headers, said, yes_no
from tests.support.loopback import Reply, serving
from tests.test_docs import DOCS, blocks


def test_a_server_without_json_schema_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(got: Any) -> Reply:
        if "response_format" in got.json:
            told = "'response_format' of type 'json_schema' is not supported by this model"
            return Reply({"error": {"message": told, "type": "invalid_request_error"}}, 400)
        return chat_says('<think>{"answer": "no"}</think>```json\n{"answer": "yes"}\n```')

    monkeypatch.setenv("CONVERGEBENCH_JUDGE_KEY", KEY)
    with serving(answer) as server:
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url + "/v1")
        verdict = open_judge("endpoint:qwen3-vl:8b").ask(yes_no(), k=3)
    assert verdict.answer == "yes"
    assert [vote.structured for vote in verdict.votes] == [False] * 3
    assert len(server.log) == 4  # only the first is asked twice
    bodies = [got.json for got in server.log]
    assert [body["seed"] for body in bodies[1:]] == [vote.seed for vote in verdict.votes]
    assert {body["model"] for body in bodies} == {"qwen3-vl:8b"}
    assert bodies[1]["max_tokens"] == 4096
    assert verdict.unpriced == 3
    assert verdict.cost == 0
    assert verdict.identity.address == server.url + "/v1"


def test_an_endpoint_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(chat_says(said("no"), usage={"cost": 0.25}))) as server:
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url)
        verdict = open_judge("endpoint:local").ask(yes_no())
    assert "authorization" not in headers(server.log[0])
    assert (verdict.cost, verdict.votes[0].basis) == (0.25, "reported")


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = DOCS / "guides" / "judges.md"
    (code,) = blocks(page, "python")
    with serving(answers(chat_says(said("no")))) as server:
        told = {**os.environ, "CONVERGEBENCH_JUDGE_URL": server.url}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env=told,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("no 1.0 {} 0.0\n")
    assert len(server.log) == 3
    (text,) = blocks(page, "toml")
    assert tomllib.loads(text)
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine.toml"))
    assert catalogue().by_name()["openai:gpt-6-luna"].max_tokens == 2000
