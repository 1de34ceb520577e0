"""Delays and agreement against values computed by hand, and the paper's question as really sent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import ConvergeBenchError, SettingsError
from convergebench.judging import open_judge
from convergebench.runner import run
from convergebench.selfeval import evaluate
from convergebench.selfeval.asking import opened
from convergebench.selfeval.evaluation import concord, delay, question, stored, template
from convergebench.selfeval.result import Followed, Read
from convergebench.store import RunStore
from tests.judging.speaking import chat_says
from tests.support.loopback import Received, Reply, serving


def followed(
    rule: Sequence[bool], judge: Sequence[bool | None] | None = None, repeat: int = 0
) -> Followed:
    told = judge or [None] * len(rule)
    read = [
        Read(step=step, rule=yes, judge=said)
        for step, (yes, said) in enumerate(zip(rule, told, strict=True), 1)
    ]
    return Followed(
        chain=f"c{repeat}", editor="e", variant="", source="s", repeat=repeat,
        steps=len(rule), read=tuple(read),
    )  # fmt: skip


def first_yes(step: int, length: int = 40) -> list[bool]:
    return [n == step for n in range(1, length + 1)]


def test_mean_and_sd_are_over_repeats() -> None:
    found = delay([followed(first_yes(n)) for n in (16, 18, 20, 22, 24)], "rule")
    assert (found.runs, found.noticed, found.mean) == (5, 5, 20)
    assert found.sd == pytest.approx(10**0.5)  # squares 16 + 4 + 0 + 4 + 16, over n − 1 = 4
    assert found.median == 20
    assert found.label == "20 ± 3"


def test_runs_that_never_notice_are_censored_and_counted() -> None:
    found = delay([followed(first_yes(10)), followed([False] * 40), followed([False] * 40)], "rule")
    assert (found.runs, found.noticed, found.mean, found.sd) == (3, 1, 10, None)
    assert found.median is None  # two thirds never fall, so half is not reached
    assert found.label == "10, 2 never"
    never = delay([followed([False] * 40)], "rule")
    assert (never.mean, never.label) == (None, "> 40")


def test_no_chain_counts_as_followed_further_than_it_was_judged() -> None:
    silent = followed([False] * 40, [False] * 5 + [None] * 35)
    assert delay([silent], "judge").label == "> 5"
    # Noticed at 3 and read to 40; those that were followed to 10 only say nothing of step 40.
    short = [followed([False] * 10, [False] * 10, repeat) for repeat in (1, 2)]
    found = delay([followed([False] * 40, first_yes(3)), *short], "judge")
    assert (found.median, found.horizon) == (None, 10)


def test_a_step_without_an_answer_is_neither_yes_nor_no() -> None:
    chain = followed([False] * 4, [False, None, True, None])
    assert chain.delay("judge") == (3, True)
    assert followed([False] * 3, [False, None, None]).delay("judge") == (1, False)
    assert followed([False] * 3, [None] * 3).delay("judge") is None


def test_agreement_is_cohens_kappa() -> None:
    # 20 yes/yes, 5 rule only, 10 judge only, 15 no/no: the textbook's po = 0.7, pe = 0.5, κ = 0.4
    rule = [True] * 25 + [False] * 25
    judge = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    found = concord([followed(rule, judge)])
    assert (found.both, found.same, found.yes_yes) == (50, 35, 20)
    assert (found.rule_only, found.judge_only) == (5, 10)
    assert found.kappa == pytest.approx(0.4)
    assert concord([followed([False] * 3, [False] * 3)]).kappa is None  # no chance to differ


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_is_that_of_the_definition(pairs: list[tuple[bool, bool]]) -> None:
    found = concord([followed([a for a, _ in pairs], [b for _, b in pairs])])
    n = len(pairs)
    agreed = sum(a == b for a, b in pairs) / n
    chance = sum(
        sum(a == word for a, _ in pairs) * sum(b == word for _, b in pairs) / n**2
        for word in (True, False)
    )
    if chance == 1:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx((agreed - chance) / (1 - chance))


def test_the_papers_template_is_sent_word_for_word() -> None:
    text = question("I see {noise}.").text
    assert text == (
        "Below is a reasoning summary from an image editing model. Please identify if the "
        "reasoning summary mentions that the original image is noisy, pixelated, or contains "
        "visible artifacts. Output “yes” or “no” only.\nI see {noise}."
    )
    assert template().schema_ is None


@pytest.mark.shared
def test_the_template_stands_in_the_paper(shared: Path) -> None:
    paper = (shared / "seeds" / "banana100-paper.txt").read_text()
    # The print breaks words at line ends, and the scan spaces the braces.
    plain = " ".join(paper.split()).replace("iden- tify", "identify")
    first = template().text.split("\n")[0]
    assert first in plain


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of an editor that tells its thoughts: two sources, two repeats."""
    path = tmp_path_factory.mktemp("selfeval") / "run"
    run(
        path,
        {
            "suite": "starter",
            "editors": ["ref:banana,amount=2,reasoning=yes", "ref:blur"],
            "sources": ["dunes", "table"],
            "cycles": ["replicate"],
            "steps": 8,
            "repeats": 2,
            "size": 64,
            "controls": False,
        },
    )
    return path


def test_an_editor_that_tells_its_thoughts_is_followed(told: Path) -> None:
    found = evaluate(told)
    assert {c.editor for c in found.chains} == {"ref:banana,amount=2,reasoning=yes"}
    assert len(found.chains) == 4
    assert all(len(chain.read) == 8 for chain in found.chains)
    whole = found.delays[0]
    assert (whole.source, whole.runs, whole.noticed) == ("", 4, 4)
    assert whole.mean is not None
    assert 1 < whole.mean < 8
    assert stored(RunStore.open(told)) == found
    assert "word list" in str(found)


def _noisy(got: Received) -> Reply:
    (message,) = got.json["messages"]
    text = message["content"][0]["text"]
    return chat_says("Yes." if "noisy:" in text else "no")


def test_a_model_is_asked_until_its_first_yes_and_never_twice(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(_noisy) as server:
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url + "/v1")
        found = evaluate(told, open_judge("endpoint:m", folder=told / "judgements"))
        asked = len(server.log)
        again = evaluate(told, open_judge("endpoint:m", folder=told / "judgements"))
        assert len(server.log) == asked
        whole = evaluate(told, open_judge("endpoint:m", folder=told / "judgements"), all_steps=True)
    assert again.chains == found.chains
    assert all("response_format" not in got.json for got in server.log)
    by = {(d.by, d.source): d for d in found.delays}
    assert by["judge", ""].mean == by["rule", ""].mean
    told_at = [chain.delay("judge") for chain in found.chains]
    steps = sum(first[0] for first in told_at if first)
    assert found.concord is not None
    assert found.concord.both == steps  # each chain up to its first yes
    assert whole.concord is not None
    assert (whole.concord.both, whole.concord.same, whole.concord.kappa) == (32, 32, 1.0)


def test_an_answer_of_another_kind_is_null_and_counted(
    told: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving(lambda _got: chat_says("Yes, it does mention noise.")) as server:
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url + "/v1")
        found = evaluate(told, open_judge("endpoint:m", folder=tmp_path))
    assert found.unanswered == 32
    assert {delay.by for delay in found.delays} == {"rule"}
    assert "32 questions got no answer" in str(found)


def test_nothing_is_spent_without_a_budget(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(SettingsError, match=r"up to 32 questions, at most \$.*--budget"):
        opened(told, "openai:gpt-6-luna")
    assert opened(told, "openai:gpt-6-luna", budget=1.0) is not None
    with pytest.raises(SettingsError, match="--judge"):
        opened(told, None, budget=1.0)


def test_a_run_without_summaries_says_so(tmp_path: Path) -> None:
    spec = {"editors": ["ref:blur"], "sources": ["dunes"], "cycles": ["replicate"], "size": 32}
    run(tmp_path / "r", {**spec, "steps": 1, "controls": False})
    with pytest.raises(ConvergeBenchError, match="no reasoning summaries"):
        evaluate(tmp_path / "r")


def test_the_command_prints_the_delays_and_writes_the_page(told: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "convergebench", "self-evaluation", str(told)]
    done = subprocess.run(
        [*command, "--json", "--out", str(tmp_path / "page")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {d["by"] for d in json.loads(done.stdout)["delays"]} == {"rule"}
    assert (tmp_path / "page" / "self-evaluation.html").is_file()
    missing = subprocess.run([*command, "--judge", "nobody:x"], capture_output=True, text=True)
    assert missing.returncode == 2
    assert "nobody:x" in missing.stderr
    assert "Traceback" not in missing.stderr
