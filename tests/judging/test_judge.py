"""A judge: what it pays for, what it keeps, what it says of itself."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.errors import (
    AccountBlocked,
    EditorLost,
    SettingsError,
    StoreDamaged,
    StoreError,
    UnknownName,
)
from convergebench.judging import Judge, Question, Verdict, Vote, catalogue, open_judge, same_vendor
from convergebench.judging.cache import NAME, Answered
from convergebench.judging.catalogue import VARIABLE
from convergebench.judging.client import Answer, Asking
from convergebench.judging.question import Sent
from convergebench.money.budget import Budget
from tests.judging.speaking import BETTER, LIKENESS, NOISE, frame, said, yes_no


class Told:
    """A client that answers as told, and counts."""

    def __init__(self, answer: Callable[[Asking, int], Answer | Exception | str]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.asked: list[Asking] = []

    def ask(self, asking: Asking, timeout: float) -> Answer:
        with self._lock:
            self.asked.append(asking)
            number = len(self.asked)
        found = self._answer(asking, number)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, str):
            return Answer(said(found), model="m-1", tokens={"text_in": 1000, "text_out": 100})
        return found


def judge(client: Told, **more: Any) -> Judge:
    provider, model = catalogue().find(more.pop("name", "openai:gpt-6-luna"))
    return Judge(provider, model, provider.url or "http://localhost/v1", client, **more)


COST = (1000 * 0.10 + 100 * 0.50) / 1e6


def test_the_same_question_is_never_paid_for_twice(tmp_path: Path) -> None:
    client = Told(lambda _asking, n: "yes" if n != 2 else "no")
    first = judge(client, folder=tmp_path).ask(yes_no(), k=3)
    again = judge(client, folder=tmp_path).ask(yes_no(), k=3)
    assert len(client.asked) == 3
    assert again.votes == first.votes
    assert (again.answer, again.counts) == ("yes", {"yes": 2, "no": 1})
    assert again.agreement == pytest.approx(2 / 3)
    assert first.paid == pytest.approx(3 * COST)
    assert again.paid == 0
    assert again.cost == first.cost
    more = judge(client, folder=tmp_path).ask(yes_no(), k=5)
    assert len(client.asked) == 5  # only the two that are new
    assert more.paid == pytest.approx(2 * COST)


def test_whatever_can_move_an_answer_is_asked_anew(tmp_path: Path) -> None:
    client = Told(lambda _asking, _n: "yes")
    questions = [
        yes_no(),
        Question(NOISE, {"text": "other"}, (frame(),)),
        Question(NOISE, {"text": "a {grainy} sky"}, (frame(1),)),
        Question(NOISE.model_copy(update={"version": 3}), {"text": "a {grainy} sky"}, (frame(),)),
        Question(NOISE.model_copy(update={"reason": True}), {"text": "a {grainy} sky"}, (frame(),)),
    ]
    for question in questions:
        judge(client, folder=tmp_path).ask(question)
    judge(client, folder=tmp_path, name="openai:gpt-6-sol").ask(yes_no())
    judge(client, folder=tmp_path, name="endpoint:gpt-6-luna").ask(yes_no())
    assert len(client.asked) == len(questions) + 2


def test_every_sample_has_its_own_seed(tmp_path: Path) -> None:
    client = Told(lambda _asking, _n: "yes")
    judge(client, name="gemini:gemini-3.8-flash").ask(yes_no(), k=4)
    assert len({asking.seed for asking in client.asked}) == 4
    client = Told(lambda _asking, _n: "yes")
    judge(client, name="anthropic:claude-sonnet-5-5").ask(yes_no(), k=2)
    assert [asking.seed for asking in client.asked] == [None, None]


def test_pairs_are_asked_in_both_orders_and_answers_turned_back() -> None:
    left, right = frame(1), frame(2)

    def sees(asking: Asking, _number: int) -> str:
        pictures = [part for part in asking.parts if isinstance(part, Sent)]
        return "first" if pictures[0].data == left.data else "second"

    verdict = judge(Told(sees)).ask(Question(BETTER, {}, (left, right)), k=2)
    assert verdict.answer == "first"
    assert (verdict.asked, verdict.k) == (4, 2)
    assert verdict.orders is not None
    assert verdict.orders.agree
    biased = judge(Told(lambda _a, _n: "first")).ask(Question(BETTER, {}, (left, right)), k=2)
    assert biased.answer is None
    assert biased.orders is not None
    assert (biased.orders.given, biased.orders.swapped) == ("first", "second")
    assert biased.orders.agree is False
    assert "disagree" in str(biased)


def test_numbers_of_both_orders_are_averaged() -> None:
    def answer(_asking: Asking, number: int) -> Answer:
        return Answer(json.dumps({"answer": [4, 6, 5, 9][number - 1]}))

    verdict = judge(Told(answer)).ask(Question(LIKENESS, {}, (frame(1), frame(2))), k=2)
    assert verdict.answer == 6
    assert verdict.variance == pytest.approx(14 / 3)
    assert verdict.orders is not None
    assert (verdict.orders.given, verdict.orders.swapped) == (4.5, 7.5)
    assert (verdict.orders.gap, verdict.orders.agree) == (3.0, None)


def test_what_failed_is_kept_unless_asked_again(tmp_path: Path) -> None:
    client = Told(lambda _asking, n: Answer("", refusal="no") if n == 1 else "yes")
    first = judge(client, folder=tmp_path).ask(yes_no())
    assert judge(client, folder=tmp_path).ask(yes_no()).failures == {"refused": 1}
    again = judge(client, folder=tmp_path, retry_failed=True).ask(yes_no())
    assert (again.answer, again.failures) == ("yes", {})
    assert len(client.asked) == 2
    assert again.cost == pytest.approx(first.cost + COST)  # both were paid
    judge(client, folder=tmp_path, retry_failed=True).ask(yes_no())
    assert len(client.asked) == 2


def test_votes_before_a_blocked_account_are_kept(tmp_path: Path) -> None:
    client = Told(lambda _asking, n: "yes" if n < 3 else AccountBlocked("no credit"))
    with pytest.raises(AccountBlocked, match="no credit"):
        judge(client, folder=tmp_path).ask(yes_no(), k=4)
    healed = Told(lambda _asking, _n: "yes")
    assert judge(healed, folder=tmp_path).ask(yes_no(), k=4).answered == 4
    assert len(healed.asked) == 2


def test_an_unforeseen_bug_of_a_client_leaves_no_reservation() -> None:
    budget = Budget(1.0, 0.0)
    with pytest.raises(RuntimeError, match="bug"):
        judge(Told(lambda _a, _n: RuntimeError("bug")), budget=budget).ask(yes_no())
    assert budget.committed == budget.spent > 0  # it may have been billed


@given(
    st.integers(1, 6),
    st.floats(0, 0.02),
    st.lists(st.sampled_from(("yes", "no", "lost", "refused")), min_size=1, max_size=6),
)
@settings(max_examples=60)
def test_the_budget_is_never_passed(k: int, cap: float, fates: list[str]) -> None:
    def answer(_asking: Asking, number: int) -> Answer | Exception | str:
        fate = fates[number % len(fates)]
        if fate == "lost":
            return EditorLost("cut")
        if fate == "refused":
            return Answer("", refusal="no", tokens={"text_in": 1000})
        return fate

    budget = Budget(cap, 0.0)
    client = Told(answer)
    verdict = judge(client, budget=budget, name="gemini:gemini-4-argon").ask(yes_no(), k=k)
    assert budget.committed <= cap + 1e-9
    assert budget.spent == pytest.approx(verdict.cost)
    assert verdict.failures.get("over-budget", 0) == k - len(client.asked)


def test_a_budget_needs_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Told(lambda _a, _n: "yes")
    with pytest.raises(SettingsError, match="has no price"):
        judge(client, name="endpoint:mine", budget=Budget(1, 0))
    file = tmp_path / "judges.toml"
    file.write_text('[[judge]]\nprovider = "endpoint"\nid = "mine"\nprice = {}\n')
    monkeypatch.setenv(VARIABLE, str(file))
    verdict = judge(client, name="endpoint:mine", budget=Budget(0, 0)).ask(yes_no())
    assert (verdict.answer, verdict.cost) == ("yes", 0)


@given(st.integers(1, 20_000), st.text(max_size=200), st.integers(0, 2))
def test_what_is_reserved_covers_the_longest_answer(most: int, text: str, pictures: int) -> None:
    provider, model = catalogue().find("gemini:gemini-3.8-flash")
    assert model.price is not None
    bare = model.price.model_copy(update={"expect": {}})  # as users write prices
    for price in (model.price, bare):
        changed = model.model_copy(update={"max_tokens": most, "price": price})
        client = Told(lambda _a, _n: "yes")
        frames = tuple(frame(n) for n in range(pictures))
        question = Question(NOISE, {"text": text}, frames)
        found = Judge(provider, changed, provider.url, client).price(question)
        assert found is not None
        assert 0 <= found.low <= found.expected <= found.high
        words = len(question.text.encode())
        assert found.high >= (most * 3.75 + (words + pictures * 2500) * 0.75) / 1e6


def test_calls_in_flight_are_waited_for_before_the_budget_is_said_to_be_used_up() -> None:
    def slow(_asking: Asking, _number: int) -> str:
        threading.Event().wait(0.05)
        return "yes"

    client = Told(slow)
    price = judge(client).price(yes_no())
    assert price is not None
    budget = Budget(price.high * 1.5, 0.0)  # room for one reservation, and for many real costs
    shared = judge(client, budget=budget)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: shared.ask(yes_no()), range(4)))
    assert [verdict.answer for verdict in found] == ["yes"] * 4


def test_threads_do_not_ask_the_same_at_once(tmp_path: Path) -> None:
    def slow(_asking: Asking, _number: int) -> str:
        threading.Event().wait(0.02)
        return "yes"

    client = Told(slow)
    shared = judge(client, folder=tmp_path)
    others = [judge(client, folder=tmp_path) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(one.ask, yes_no(), k=3) for one in [shared] * 6 + others]
        verdicts = [job.result() for job in jobs]
    assert len(client.asked) == 3
    assert {verdict.answer for verdict in verdicts} == {"yes"}
    assert sum(verdict.paid for verdict in verdicts) == pytest.approx(3 * COST)


def _other_process(folder: str, calls: str) -> None:
    def slow(_asking: Asking, _number: int) -> str:
        with open(calls, "a") as file:
            file.write("x")
        threading.Event().wait(0.05)
        return "yes"

    judge(Told(slow), folder=Path(folder)).ask(yes_no(), k=4)


def test_processes_do_not_ask_the_same_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    calls = tmp_path / "calls"
    arguments = (str(tmp_path / "judgements"), str(calls))
    workers = [spawn.Process(target=_other_process, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert calls.read_text() == "xxxx"
    lines = (tmp_path / "judgements" / NAME).read_text().splitlines()
    assert len(lines) == 4


@given(st.data())
@settings(max_examples=40)
def test_a_file_torn_anywhere_loses_at_most_its_last_line(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        kept = Answered(folder)
        votes = [Vote(key=f"{n:064x}", sample=n, answer="yes", text="äöü\n☃") for n in range(4)]
        for vote in votes:
            kept.keep(vote)
        whole = (folder / NAME).read_bytes()
        at = data.draw(st.integers(0, len(whole)))
        (folder / NAME).write_bytes(whole[:at])
        again = Answered(folder)
        left = whole[:at].count(b"\n")
        assert [again.find(vote.key) == [vote] for vote in votes] == [n < left for n in range(4)]
        again.keep(votes[3].model_copy(update={"answer": "no"}))
        lines = (folder / NAME).read_bytes().splitlines()
        assert len(lines) == left + 1
        assert all(json.loads(line) for line in lines)
        assert Answered(folder).find(votes[3].key)[-1].answer == "no"


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    kept = Answered(tmp_path / "kept")
    (tmp_path / "kept" / "answers.jsonl").unlink()
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        kept.find("00")
    (tmp_path / "kept" / "locks").rmdir()
    with pytest.raises(StoreError, match="cannot be locked: No such file"), kept.asking("00000000"):
        pass


def test_a_damaged_line_in_the_middle_is_told(tmp_path: Path) -> None:
    Answered(tmp_path).keep(Vote(key="a" * 64, sample=0, answer="yes"))
    path = tmp_path / NAME
    path.write_bytes(b'{"key": 1}\n' + path.read_bytes())
    with pytest.raises(StoreDamaged, match="line 1 is no judgement"):
        Answered(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="cannot keep judgements"):
        Answered(blocked)


def test_a_verdict_can_be_written_and_read_back(tmp_path: Path) -> None:
    verdict = judge(Told(lambda _a, n: "yes" if n < 3 else Answer("?"))).ask(yes_no(), k=3)
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict
    assert "openai:gpt-6-luna, mentions-artefacts@2: yes (2 of 3 samples)" in str(verdict)
    assert verdict.to_dict()["failures"] == {"malformed": 1}


def test_names_that_are_no_judges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="gpt-6-luna"):
        open_judge("openai:gpt-6-lunar")
    with pytest.raises(UnknownName, match="endpoint:MODEL"):
        open_judge("nobody")
    with pytest.raises(UnknownName, match="judge"):
        open_judge("endpoint:")
    with pytest.raises(SettingsError, match="set OPENAI_API_KEY"):
        open_judge("openai:gpt-6-luna")
    with pytest.raises(SettingsError, match="set CONVERGEBENCH_JUDGE_URL"):
        open_judge("endpoint:mine")
    monkeypatch.setenv("OPENAI_API_KEY", "not a key")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY holds a space"):
        open_judge("openai:gpt-6-luna")
    monkeypatch.setenv("OPENAI_API_KEY", "key-key-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://far.example/v1")
    with pytest.raises(SettingsError, match="https"):
        open_judge("openai:gpt-6-luna")
    with pytest.raises(SettingsError, match="at least 1"):
        judge(Told(lambda _a, _n: "yes")).ask(yes_no(), k=0)


def test_users_add_judges_and_change_prices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(SettingsError, match="is no file"):
        catalogue()
    file.write_text(
        '[[provider]]\nname = "router"\ntitle = "Router"\nspeaks = "chat"\nkeys = ["R_KEY"]\n'
        'url = "https://router.example/v1"\nurl_variable = "R_URL"\n'
        '[[judge]]\nprovider = "router"\nid = "qwen/qwen3-vl"\n'
        '[[judge]]\nprovider = "openai"\nid = "gpt-6-luna"\nmax_tokens = 100\n'
    )
    found = catalogue().by_name()
    assert found["openai:gpt-6-luna"].max_tokens == 100
    assert found["openai:gpt-6-luna"].price is not None
    assert found["router:qwen/qwen3-vl"].price is None
    for text, problem in (
        ('[[judge]]\nprovider = "nobody"\nid = "x"\n', "expected one of openai"),
        ('[[judge]]\nprovider = "openai"\nid = "x"\ncolour = 1\n', "no such key"),
        ("[vendors]\n", "got \\[vendors\\]"),
        ("[[judge", "not valid TOML"),
        ("judge = [1]\n", "tables, got something else"),
    ):
        file.write_text(text)
        with pytest.raises(SettingsError, match=problem):
            catalogue()


@pytest.mark.parametrize(
    ("name", "editor", "same"),
    [
        ("gemini:gemini-3.8-flash", "gemini:gemini-nano-banana-2.1", True),
        ("gemini:gemini-3.8-flash", "openrouter:google/gemini-3-pro-image", True),
        ("gemini:gemini-3.8-flash", "fal:fal-ai/nano-banana-2/edit", True),
        ("openai:gpt-6-luna", "openai:gpt-image-2", True),
        ("openai:gpt-6-luna", "gemini:gemini-nano-banana-2.1", False),
        ("anthropic:claude-sonnet-5-5", "openai:gpt-image-2", False),
        ("endpoint:qwen3-vl:8b", "qwen:qwen-image-3.0", True),
        ("endpoint:mystery", "ref:jpeg", False),
        ("endpoint:swan-vl", "qwen:qwen-image-3.0", False),
    ],
)
def test_a_judge_of_the_editors_own_vendor_is_a_caveat(name: str, editor: str, same: bool) -> None:
    told = same_vendor(name, editor)
    assert bool(told) is same
    assert not same or "another vendor" in told
