"""Inverse prompts, sorted suites and tables, and `suites classify` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench import chatapi
from convergebench.chatapi import ChatFailed, Reply
from convergebench.cycle import Cycle, Edit, Operation
from convergebench.errors import InputError, SettingsError
from convergebench.registry import open_suite
from convergebench.reversibility import classify, judge, propose_inverse
from convergebench.reversibility.rules import NONE
from convergebench.reversibility.sorting import read_pairs, sort_pairs, sort_suite
from tests.support.chat_server import Sent, chat_server, error, said


def cb(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "convergebench", "suites", "classify", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


@pytest.mark.parametrize(
    ("forward", "backward", "by", "reversibility"),
    [
        ("Add a red ball", "Remove the red ball.", "template T1", "preserving"),
        ("Put a hat on the man", "Take off the hat.", "template T2", "preserving"),
        ("Flip it", "Flip the image horizontally.", "template T3", "exact"),
        ("Rotate 90 degrees clockwise", "Rotate the image by 90 degrees counter-clockwise.",
         "template T3", "exact"),
        ("Swap the red and blue channels", "Swap the red and blue channels.", "template T3",
         "exact"),
        ("Move the cup to the left", "Move the cup back to where it was.", "template T4",
         "preserving"),
        ("Remove the dog", "Put the dog back.", "template T5", "destroying"),
        ("Blur the image", "Make the image sharp again.", "template T6", "destroying"),
        ("Upscale the image", "Scale the image down to its original size.", "template T6",
         "inventing"),
        ("Add a lamp. Keep everything else.",
         "Remove the lamp. Keep everything else exactly as it is.", "template T1", "preserving"),
    ],
)  # fmt: skip
def test_templates(forward: str, backward: str, by: str, reversibility: str) -> None:
    made = propose_inverse(forward)
    assert (made.prompt, made.by) == (backward, by)
    assert made.verdict is not None
    assert made.verdict.reversibility == reversibility


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("Make the car red", "the state before"),
        ("Make her smile", "the state before"),
        ("Add a hat and blur the sky", "several things"),
        ("Frobnicate", "nothing that the rules know"),
        ("Füge einen Hut hinzu", "not English"),
    ],
)
def test_what_cannot_be_undone_from_the_words_has_no_template(forward: str, why: str) -> None:
    made = propose_inverse(forward)
    assert (made.prompt, made.by, made.verdict) == (None, "nobody", None)
    assert why in made.note


def answering(text: str, finish: str = "stop", refusal: str = "") -> Reply:
    return Reply(text, finish, refusal, model="fake")


def test_a_models_proposal_is_taken_and_classified() -> None:
    asked: list[str] = []

    def ask(question: str) -> Reply:
        asked.append(question)
        return answering(' "Take the top hat off." \n')

    made = propose_inverse("Put a top hat on the man", ask=ask)
    assert (made.prompt, made.by, made.note) == ("Take the top hat off.", "llm fake", "")
    assert made.verdict == classify("Put a top hat on the man", "Take the top hat off.")
    assert len(asked) == 1
    assert "Put a top hat on the man" in asked[0]


def test_a_model_may_help_where_no_template_can() -> None:
    made = propose_inverse("Make the car red", ask=lambda _: answering("Make the car blue again."))
    assert (made.by, made.verdict and made.verdict.rule) == ("llm fake", "R4")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (answering(""), "answered nothing"),
        (answering("<think>Remove the hat."), "answered nothing"),
        (answering("Sure!\nRemove the hat."), "several lines"),
        (answering("Remove the hat \x1b[31m"), "cannot be shown"),
        (answering("Remove the hat, " * 40), "more than 400 letters"),
        (answering("ADD A HAT!"), "repeated the forward prompt"),
        (answering("Remove the", finish="length"), "was cut off"),
        (answering("", refusal="I cannot"), "refused"),
        (answering("Remove the glasses."), "which is not taken (R7, ambiguous: "),
    ],
)
def test_a_bad_proposal_falls_back_to_the_template_and_says_why(reply: Reply, why: str) -> None:
    made = propose_inverse("Add a hat", ask=lambda _: reply)
    assert (made.prompt, made.by) == ("Remove the hat.", "template T1")
    assert why in made.note
    assert made.note.endswith(".")
    assert "\x1b" not in str(made)


def test_the_forward_prompt_itself_is_a_fine_inverse_of_a_flip() -> None:
    made = propose_inverse("Flip it", ask=lambda _: answering("Flip it"))
    assert (made.prompt, made.by) == ("Flip it", "llm fake")


def test_a_judge_that_fails_or_has_spent_its_calls_leaves_the_template() -> None:
    def down(_: str) -> Reply:
        raise ChatFailed("HTTP 500: no")

    made = propose_inverse("Add a hat", ask=down)
    assert made.by == "template T1"
    assert "could not be asked: HTTP 500" in made.note
    with chat_server(lambda asked: said("Remove the hat.")) as server:
        ask = judge("fake-judge", server.url, limit=1)
        assert propose_inverse("Add a hat", ask=ask).by == "llm fake-judge"
        second = propose_inverse("Add a hat", ask=ask)
    assert second.by == "template T1"
    assert "limit of 1 calls" in second.note
    assert len(server.calls) == 1


def test_a_judge_needs_a_model_a_server_and_the_key_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CONVERGEBENCH_JUDGE_URL", raising=False)
    with pytest.raises(SettingsError, match="name of a model"):
        judge(" ", "http://localhost:1/v1")
    with pytest.raises(SettingsError, match="needs a server"):
        judge("m")
    with pytest.raises(SettingsError, match="never a key") as caught:
        judge("m", "http://localhost:1/v1", "sk-secret-123")
    assert "sk-secret-123" not in str(caught.value)
    with pytest.raises(SettingsError, match="MY_VARIABLE is not set"):
        judge("m", "http://localhost:1/v1", "MY_VARIABLE")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY is not set"):
        judge("m", "https://api.openai.com/v1")


def test_the_key_is_sent_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-judge-0123456789"
    monkeypatch.setattr(chatapi, "FIRST_WAIT", 0.005)
    monkeypatch.setenv("CONVERGEBENCH_JUDGE_KEY", key)
    answers: list[Sent] = [said("Remove the hat."), error(400, f"bad key {key}")]
    with chat_server(lambda asked: answers.pop(0)) as server:
        ask = judge("fake-judge", server.url)
        propose_inverse("Add a hat", ask=ask)
        made = propose_inverse("Add a hat", ask=ask)
    assert server.calls[0].headers["Authorization"] == f"Bearer {key}"
    assert made.by == "template T1"
    assert key not in json.dumps(made.to_dict())


# --- suites and tables --------------------------------------------------------------------------


def test_the_starter_suite_is_sorted() -> None:
    found = sort_suite(open_suite("starter"))
    assert {row.name: row.verdict.reversibility for row in found.rows} == {
        "mirror": "exact", "rotate": "exact", "recolour": "destroying",
        "add-ball": "preserving", "add-plant": "preserving", "add-glasses": "preserving",
    }  # fmt: skip
    assert any("replicate" in note for note in found.notes)


def test_every_phrasing_of_a_suite_is_set_beside_what_it_declares() -> None:
    hat = Edit(phrasings=("Add a hat", "Put a hat on her", "Make it blue"))
    trip = Cycle(name="hat", kind="round-trip", reversibility="preserving",
                 edit=(hat, Edit(phrasings=("Remove the hat", "Take the hat off"))))  # fmt: skip
    two = [Edit(prompt=text) for text in
           ("Add a hat", "Flip the image", "Flip the image", "Remove the hat")]  # fmt: skip
    cross = Cycle(name="cross", kind="cross", edit=tuple(two), reversibility="preserving")
    turn = Edit(prompt="Rotate the image by 90 degrees clockwise",
                operation=Operation(kind="turn", quarters=1))  # fmt: skip
    round_ = Cycle(name="turn", kind="rotate", edit=(turn,))
    suite = open_suite("starter").model_copy(update={"cycle": (trip, cross, round_)})
    found = sort_suite(suite)
    assert [(row.name, row.verdict.reversibility, row.differs) for row in found.rows] == [
        ("hat 1", "preserving", False), ("hat 2", "preserving", False),
        ("hat 3", "ambiguous", True), ("cross", "preserving", False), ("turn", "exact", False),
    ]  # fmt: skip
    assert "Differences" in str(found)
    assert found.to_dict()["differences"] == ["hat 3"]
    assert found.agreement is not None
    assert len(found.agreement.rows) == 4


def test_a_table_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(
        "\ufeffforward,backward,label\n"
        'Add a hat,Remove the hat,preserving\n"Blur, please",Sharpen it,Exact\nFlip it,,\n'
        "Make it red,,\n"
    )
    found = sort_pairs(path.name, read_pairs(path))
    assert [row.verdict.rule for row in found.rows] == ["R11", "R1", "R12", NONE]
    assert [row.by for row in found.rows] == ["", "", "template T3", "nobody"]
    assert [row.name for row in found.differing] == ["2"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"forward,label\na,b\n", "no column 'backward'"),
        (b"", "no column 'forward'"),
        (b"forward,backward,label\na,b,nice\n", "row 1: 'nice' is no class"),
        (b"forward,backward\n ,b\n", "row 1: the forward prompt is empty"),
        (b"forward,backward\n\xff,b\n", "no CSV file in UTF-8"),
    ],
)
def test_a_bad_table_is_one_sentence(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=why):
        read_pairs(path)
    with pytest.raises(InputError, match="cannot read"):
        read_pairs(tmp_path / "none.csv")


# --- the command --------------------------------------------------------------------------------


def test_the_command_sorts_a_pair_and_proposes_an_inverse() -> None:
    told = json.loads(cb("add glasses", "remove glasses", "--json").stdout)
    assert (told["reversibility"], told["rule"]) == ("preserving", "R11")
    told = json.loads(cb("put a hat on the man", "--json").stdout)
    assert (told["backward"], told["by"]) == ("Take off the hat.", "template T2")
    shown = cb("turn the entire image black", "bring the picture back")
    assert "destroying" in shown.stdout
    assert "R1" in shown.stdout


def test_the_command_prints_the_agreement_and_a_suite() -> None:
    shown = cb("--labelled").stdout
    assert "kappa" in shown
    assert "held-out: labels against rules" in shown
    told = json.loads(cb("--labelled", "--json").stdout)
    assert told["groups"]["suite"]["pairs"] == told["groups"]["held-out"]["pairs"] == 30
    done = cb("--suite", "starter", "--json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["pairs"]) == 6


def test_the_command_says_how_many_calls_it_makes_and_keeps_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("forward,backward\nAdd a hat,\nAdd a cat,\nAdd a dog,Remove the dog\n")
    with chat_server(lambda asked: said("Remove the hat.")) as server:
        env = {"CONVERGEBENCH_JUDGE_URL": server.url}
        silent = cb("--pairs", path, "--json", env=env)
        assert not server.calls, "nobody is asked without --judge"
        one = cb("Add a hat", "--judge", "fake-judge", "--json", env=env)
        both = cb("--pairs", path, "--judge", "fake-judge", "--max-calls", "1", "--json", env=env)
    assert silent.returncode == one.returncode == both.returncode == 0
    assert "1 call; each tried twice at most" in one.stderr
    assert json.loads(one.stdout)["by"] == "llm fake-judge"
    assert "1 call; what they cost" in both.stderr
    assert len(server.calls) == 2
    by = [row["by"] for row in json.loads(both.stdout)["pairs"]]
    assert by == ["llm fake-judge", "template T1", ""]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "one or two prompts"),
        (["add a hat", "--labelled"], "got 2 of them"),
        (["add a hat", "remove the hat", "--judge", "m"], "leave --judge out"),
        (["--labelled", "--max-calls", "3"], "name one with --judge"),
        (["add a hat", "--judge", "m"], "needs a server"),
        (["  "], "prompt is empty"),
        (["--suite", "nosuch"], "no suite called"),
        (["--pairs", "nosuch.csv"], "cannot read"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], why: str) -> None:
    done = cb(*words, env={"CONVERGEBENCH_JUDGE_URL": ""})
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert why in done.stderr
