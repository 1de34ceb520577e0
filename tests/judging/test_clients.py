"""Every client with its real SDK against a server on this machine that speaks its protocol."""

from __future__ import annotations

import base64
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import AccountBlocked, SettingsError
from convergebench.judging import Judge, Patience, Verdict, open_judge
from convergebench.money.budget import Budget
from tests.judging.speaking import (
    KEY,
    NOISE,
    SPEAKERS,
    Speaker,
    answers,
    chat_says,
    gemini_says,
    headers,
    said,
    yes_no,
)
from tests.support.loopback import Loopback, Reply, serving

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
TEXT = (
    "Does this text mention visible artefacts?\n<text>a {grainy} sky</text>\n\n"
    'Answer with one JSON object and nothing else: {"answer": "yes" or "no"}.'
)
QUICK = Patience(timeout=5, deadline=5)


@pytest.fixture(params=sorted(SPEAKERS))
def speaker(request: pytest.FixtureRequest) -> Speaker:
    return SPEAKERS[request.param]


def ask(
    speaker: Speaker, server: Loopback, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> Verdict:
    speaker.set(monkeypatch, server.url)
    k = more.pop("k", 1)
    return open_judge(speaker.judge, **{"patience": QUICK, **more}).ask(yes_no(), k=k)


def test_an_answer_is_read_with_model_usage_and_cost(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answers(speaker.says(said("yes")))) as server:
        verdict = ask(speaker, server, monkeypatch, k=2)
    assert verdict.answer == "yes"
    assert (verdict.asked, verdict.answered, verdict.failures) == (2, 2, {})
    assert verdict.cost == pytest.approx(2 * speaker.spent)
    assert verdict.paid == verdict.cost
    assert len(server.log) == 2
    (vote, _) = verdict.votes
    assert verdict.models == (vote.model,)
    assert vote.model not in ("", verdict.identity.model)
    assert vote.request_id in ("r-1", "g-1", "req-1")
    assert vote.basis == "usage"
    assert vote.structured
    assert verdict.identity.template == "mentions-artefacts@2"


def test_the_chat_request_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(chat_says(said("no")))) as server:
        ask(SPEAKERS["chat"], server, monkeypatch)
    (got,) = server.log
    assert (got.method, got.path) == ("POST", "/v1/chat/completions")
    assert headers(got)["authorization"] == f"Bearer {KEY}"
    picture = base64.b64encode(yes_no().pictures[0].data).decode()
    url = f"data:image/png;base64,{picture}"
    assert got.json == {
        "model": "gpt-6-luna",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
                    {"type": "text", "text": TEXT},
                ],
            }
        ],
        "max_completion_tokens": 4096,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
        },
    }


def test_the_gemini_request_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(gemini_says(said("no")))) as server:
        verdict = ask(SPEAKERS["gemini"], server, monkeypatch)
    (got,) = server.log
    assert (got.method, got.path) == ("POST", "/v1/models/gemini-3.8-flash:generateContent")
    assert headers(got)["x-goog-api-key"] == KEY
    body = got.json
    (content,) = body["contents"]
    picture, text = content["parts"]
    inline = picture.get("inlineData") or picture["inline_data"]
    assert base64.urlsafe_b64decode(inline["data"]) == yes_no().pictures[0].data
    assert inline.get("mimeType", inline.get("mime_type")) == "image/png"
    assert text == {"text": TEXT}
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "maxOutputTokens": 4096,
        "seed": verdict.votes[0].seed,
    }
    assert set(body) == {"contents", "generationConfig"}


def test_the_anthropic_request_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    speaker = SPEAKERS["claude"]
    with serving(answers(speaker.says(said("no")))) as server:
        ask(speaker, server, monkeypatch)
    (got,) = server.log
    assert (got.method, got.path) == ("POST", "/v1/messages")
    assert headers(got)["authorization"] == f"Bearer {KEY}"
    data = base64.b64encode(yes_no().pictures[0].data).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    assert got.json == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 4096,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": source},
                    {"type": "text", "text": TEXT},
                ],
            }
        ],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        ("perhaps", "malformed"),
        ('{"answer": "yes"', "malformed"),
        ('{"answer": "maybe"}', "off-schema"),
        ('{"verdict": "yes"}', "off-schema"),
        ('{"answer": "yes"} or {"answer": "no"}', "malformed"),
    ],
)
def test_words_that_are_no_answer_are_null_and_paid_for(
    words: str, failure: str, speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answers(speaker.says(words))) as server:
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.answer is None
    assert verdict.failures == {failure: 1}
    assert verdict.note == "no sample has an answer"
    assert verdict.cost == pytest.approx(speaker.spent)
    assert verdict.votes[0].text == words


def test_a_refusal_is_null_and_counted(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(speaker.refuses())) as server:
        verdict = ask(speaker, server, monkeypatch, k=3)
    assert (verdict.answer, verdict.failures) == (None, {"refused": 3})
    assert verdict.votes[0].detail
    assert len(server.log) == 3


def test_what_ran_into_the_limit_of_tokens_is_cut(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answers(speaker.cuts())) as server:
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.failures == {"cut": 1}


def test_too_many_calls_are_made_again_after_the_time_asked_for(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convergebench.judging.judge.FIRST_WAIT", 100.0)  # ours would be too long
    limited = speaker.error(429, {"retry-after": "0.2"})
    with serving(answers(limited, limited, speaker.says(said("no")))) as server:
        begun = time.monotonic()
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.answer == "no"
    assert len(server.log) == 3
    assert time.monotonic() - begun >= 0.4
    assert verdict.cost == pytest.approx(speaker.spent)


def test_a_server_that_stays_broken_is_given_up_and_not_billed(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    budget = Budget(1.0, 0.0)
    with serving(answers(speaker.error(500, {}))) as server:
        patience = Patience(timeout=1, deadline=0.3)
        verdict = ask(
            speaker, server, monkeypatch, patience=patience, budget=budget, folder=tmp_path
        )
        assert verdict.failures == {"unavailable": 1}
        assert "it failed with 500" in verdict.votes[0].detail
        assert budget.spent == 0
        made = len(server.log)
        ask(speaker, server, monkeypatch, patience=patience, folder=tmp_path)
        assert len(server.log) > made  # nothing was paid, so it is asked again


def test_a_timeout_may_have_been_billed_and_is_not_repeated(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    budget = Budget(1.0, 0.0)
    with serving(answers(replace(speaker.says(said("yes")), delay=0.8))) as server:
        patience = Patience(timeout=0.2, deadline=5)
        more = {"patience": patience, "budget": budget, "folder": tmp_path}
        verdict = ask(speaker, server, monkeypatch, **more)
        again = ask(speaker, server, monkeypatch, **more)
    assert verdict.failures == again.failures == {"lost": 1}
    assert "in time" in verdict.votes[0].detail
    assert verdict.votes[0].basis == "assumed"
    assert verdict.cost == budget.spent > 0
    assert again.paid == 0
    assert len(server.log) == 1


def test_a_connection_cut_in_the_middle_may_have_been_billed(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answers(replace(speaker.says(said("yes")), cut=30))) as server:
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.failures == {"lost": 1}
    assert len(server.log) == 1
    assert verdict.cost > speaker.spent


def test_an_account_that_is_blocked_is_not_asked_again(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, body = speaker.blocked
    speaker_error = Reply(body, status)
    with serving(answers(speaker_error)) as server:
        speaker.set(monkeypatch, server.url)
        budget = Budget(1.0, 0.0)
        judge = open_judge(speaker.judge, patience=QUICK, budget=budget)
        for _ in range(2):
            with pytest.raises(AccountBlocked, match=r"money|quota|credit"):
                judge.ask(yes_no(), k=3)
    assert len(server.log) == 1
    assert budget.committed == 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_key_stops_asking(
    status: int, speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serving(answers(speaker.error(status, {}))) as server,
        pytest.raises(AccountBlocked, match=f"it failed with {status}"),
    ):
        ask(speaker, server, monkeypatch)
    assert len(server.log) == 1


def test_a_model_that_is_not_there_is_a_mistake_of_the_settings(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serving(answers(speaker.error(404, {}))) as server,
        pytest.raises(SettingsError, match="has a model"),
    ):
        ask(speaker, server, monkeypatch)


def test_a_bad_request_is_null_and_free(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(speaker.error(400, {}))) as server:
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.failures == {"failed": 1}
    assert verdict.cost == 0
    assert len(server.log) == 1


def test_a_server_that_is_not_there_is_unavailable(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answers(Reply())) as gone:
        pass
    verdict = ask(speaker, gone, monkeypatch, patience=Patience(1, 0.3))
    assert verdict.failures == {"unavailable": 1}


def test_the_key_is_in_no_file_message_or_traceback(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    echo = f"your key is {KEY}"
    replies = [
        speaker.says(said(echo)),
        speaker.says(echo),
        Reply(echo.encode(), 500),
        Reply({"error": {"message": echo, "code": 400, "status": "X"}}, 400),
        Reply(echo.encode()),
        Reply({"error": {"message": echo, "code": 401, "status": "X"}}, 401),
    ]
    texts = []
    for number, reply in enumerate(replies):
        with serving(answers(reply)) as server:
            try:
                verdict = ask(
                    speaker,
                    server,
                    monkeypatch,
                    folder=tmp_path / str(number),
                    patience=Patience(2, 0.2),
                )
                assert verdict.answer is None
                texts.append(verdict.model_dump_json() + str(verdict))
            except AccountBlocked as error:
                texts.append("".join(traceback.format_exception(error)))
    assert len(texts) == len(replies)
    texts += [file.read_text() for file in tmp_path.rglob("*.jsonl")]
    for text in texts:
        assert KEY not in text
    assert "<" in "".join(texts)


def test_a_blocked_prompt_and_thoughts_of_gemini(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Reply({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "g"})
    thoughtful = gemini_says(said("yes"), thought='{"answer": "no"}')
    with serving(answers(blocked, thoughtful)) as server:
        verdict = ask(SPEAKERS["gemini"], server, monkeypatch, k=2)
    assert verdict.failures == {"refused": 1}
    assert "SAFETY" in verdict.votes[0].detail
    assert verdict.answer == "yes"


def test_other_settings_of_the_sdks_in_the_environment_change_nothing(
    speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {
        "ANTHROPIC_AUTH_TOKEN": "another",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "another",
        "GOOGLE_GENAI_API_VERSION": "beta",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    with serving(answers(speaker.says(said("yes")))) as server:
        verdict = ask(speaker, server, monkeypatch)
    assert verdict.answer == "yes"
    (got,) = server.log
    sent = headers(got)
    keys = [sent[name] for name in ("authorization", "x-goog-api-key", "x-api-key") if name in sent]
    assert keys
    assert all(KEY in key for key in keys)
    assert got.path in (
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/models/gemini-3.8-flash:generateContent",
    )


def test_a_400_that_names_a_policy_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"error": {"code": "content_policy_violation", "message": "not this", "type": "x"}}
    with serving(answers(Reply(body, 400))) as server:
        verdict = ask(SPEAKERS["chat"], server, monkeypatch)
    assert verdict.failures == {"refused": 1}
    assert "not this" in verdict.votes[0].detail


def test_two_pictures_are_numbered(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answers(speaker.says(said("yes")))) as server:
        speaker.set(monkeypatch, server.url)
        judge: Judge = open_judge(speaker.judge)
        judge.ask(yes_no(pictures=2))
    text = server.log[0].body.decode()
    assert 0 < text.index("Picture 1:") < text.index("Picture 2:") < text.index(NOISE.text[:20])
