"""`convergebench rate create` and `serve` as a user meets them: real processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench.cli.rate_texts import read_beside, read_questions, read_scale, read_text
from convergebench.errors import InputError
from convergebench.ratings import open_study
from tests.ratings.made import restored_run, small_study
from tests.test_cli import HEAVY, cb, complaint


def test_a_study_is_made_and_told(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run")
    (tmp_path / "consent.txt").write_text("I agree to look.\n")
    done = cb(
        *("rate", "create", run, tmp_path / "s", "-n", "3", "--design", "pairs", "--ties"),
        *("--method", "zebra-net", "--method", "yak-gan", "--consent", tmp_path / "consent.txt"),
        *("--question", "preference=Which is nicer?", "--code", "THANKS", "--attention", "1"),
        *("--title", "Nicer?", "--show", "input", "--json"),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["methods"] == ["zebra-net", "yak-gan"]
    assert told["participants"] == ["p01", "p02", "p03"]
    study = open_study(tmp_path / "s")
    assert (study.title, study.consent, study.code) == ("Nicer?", "I agree to look.", "THANKS")
    assert (study.ties, study.shows) == (True, ("input",))
    assert study.questions[0].text == "Which is nicer?"
    tokens = (tmp_path / "s" / "links.csv").read_text()
    assert not any(line.split(",")[1] in done.stdout for line in tokens.splitlines()[1:])


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["{run}"], "name a run directory and the folder to make"),
        (["{run}", "{new}", "--design", "x"], "no design 'x'"),
        (["{new}", "{new}2"], "is not a run directory"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, words: list[str], match: str) -> None:
    run = restored_run(tmp_path / "run", images=1)
    told = [word.format(run=run, new=tmp_path / "new") for word in words]
    assert match in complaint(cb("rate", "create", *told, "-n", "2"))
    assert not (tmp_path / "new").exists()


def test_what_is_told_in_words_is_checked(tmp_path: Path) -> None:
    for told in ("5:0:1", "0:5:2", "0:nan:1", "0:inf:1", "0:5:0", "0:5:1e-9"):
        with pytest.raises(InputError, match=f"--scale {told}: "):
            read_scale(told)
    with pytest.raises(InputError, match="--scale is LOW:HIGH:STEP"):
        read_scale("five")
    assert read_scale("1:10:0.5").has(7.5)
    with pytest.raises(InputError, match="--show is one of"):
        read_beside("x")
    with pytest.raises(InputError, match="--question is ID=TEXT"):
        read_questions(["quality"])
    with pytest.raises(InputError, match="cannot read"):
        read_text(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text(" ")
    with pytest.raises(InputError, match="has 0 letters"):
        read_text(tmp_path / "empty.txt")
    (tmp_path / "latin.txt").write_bytes(b"\xe9")
    with pytest.raises(InputError, match="no text in UTF-8"):
        read_text(tmp_path / "latin.txt")


def test_serving_what_is_no_study_or_where_others_reach_it_is_refused(tmp_path: Path) -> None:
    assert "is not a rating study" in complaint(cb("rate", "serve", tmp_path))
    study = small_study(tmp_path / "s")
    told = complaint(cb("rate", "serve", study, "--host", "0.0.0.0"))
    assert "links are secrets" in told
    assert "--public" in told
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1, port {port}" in complaint(
            cb("rate", "serve", study, "--port", port)
        )
    (study / "server.key").unlink()
    assert "cannot read" in complaint(cb("rate", "serve", study, "--port", "0"))


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s")
    block = tmp_path / "block"
    block.mkdir()
    (block / "uvicorn.py").write_text("raise ImportError('no uvicorn here')\n")
    paths = os.pathsep.join([str(block), os.environ.get("PYTHONPATH", "")])
    done = cb("rate", "serve", study, env={"PYTHONPATH": paths})
    assert "pip install 'convergebench[rate]'" in complaint(done)


def test_help_of_every_command_is_light_and_has_examples() -> None:
    for name in ("create", "serve", "export", "analyze"):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "convergebench", "rate", name, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert not modules & HEAVY, name
        assert "Examples:" in done.stdout
