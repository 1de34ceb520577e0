"""A judge is shown input, output and truth; its answers become cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import InputError, SettingsError
from convergebench.restoration import judge_restorations
from convergebench.restoration.labelling import label, opened, template
from convergebench.runner import run
from convergebench.store import RunStore
from tests.judging.speaking import chat_says
from tests.restoration.trees import scored_tree
from tests.support.loopback import Received, Reply, serving
from tests.support.runs import write_suite


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return scored_tree(tmp_path)


def _answer(got: Received) -> Reply:
    """Infidel where a truth is shown, never over-generated; one question is refused."""
    content = got.json["messages"][-1]["content"]
    text = "".join(part.get("text", "") for part in content)
    pictures = sum(part["type"] == "image_url" for part in content)
    if "over-generated" in text:
        return chat_says('{"reason": "plain", "answer": "no"}')
    assert ("Picture 3 is the original" in text) == (pictures == 3)
    if pictures == 2:
        return chat_says("I would rather not say.")
    return chat_says('{"reason": "a second moon", "answer": "yes"}')


def test_answers_are_kept_as_rows_and_counted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(_answer) as server:
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url + "/v1")
        asking = opened(tree, "endpoint:m")
        outputs = 7 * 12 - 3 + 7
        assert (
            asking.announcement
            == f"endpoint:m: up to {2 * outputs} questions, at a price nobody knows."
        )
        told: list[tuple[int, int]] = []
        found = label(asking, lambda done, total: told.append((done, total)))
        asked = len(server.log)
        again = label(opened(tree, "endpoint:m"))
        assert len(server.log) == asked  # nothing is asked twice
    # Two of seven pictures have no truth: that question is not answered, and is no "no".
    assert (found.answered, found.unanswered) == (2 * outputs - 26, 26)
    assert (again.answered, again.unanswered) == (found.answered, found.unanswered)
    assert told[-1] == (2 * outputs, 2 * outputs)
    rows = RunStore.open(tree).scores()
    mine = rows.filter(rows["metric"] == "judge/infidelity")
    assert set(mine["version"]) == {f"infidelity@{template('infidelity').version}:endpoint:m"}
    assert mine["value"].null_count() == 26

    study = judge_restorations(tree)
    counts = {(c.kind, c.method): (c.cases, c.looked) for c in study.counts}
    assert counts["infidelity", "specialist"] == (5, 5)
    assert counts["infidelity", "banana · S2"] == (12, 12)
    assert counts["over-generation", "banana · S1"] == (0, 21)
    means = {(m.kind, m.factor, m.level): m for m in study.case_means}
    assert means["infidelity", "fidelity", "no"].per_prompt == (5 + 4) / 2  # of one run through
    assert means["infidelity", "fidelity", "no"].cases == 15 + 12
    assert study.cases[0].evidence == "a second moon"
    assert study.cases[0].by == "infidelity@1:endpoint:m"


def test_nothing_is_spent_without_a_budget(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(SettingsError, match=r"up to 176 questions, at most \$.*--budget"):
        opened(tree, "openai:gpt-6-luna")
    assert opened(tree, "openai:gpt-6-luna", budget=5.0).dollars


def test_a_run_that_restores_nothing_has_nothing_to_ask(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    run(
        tmp_path / "run",
        {"suite": str(suite), "editors": ["ref:blur"], "cycles": ["copy"], "steps": 1},
    )
    with pytest.raises(InputError, match="no restored pictures"):
        opened(tmp_path / "run", "endpoint:m")
