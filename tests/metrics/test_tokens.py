"""CLIP's tokenizer with a few merges of our own; tests/iqa compares it with the libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import InputError
from convergebench.metrics.tokens import CONTEXT, END, START, Tokenizer

MERGES = [("t", "h"), ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("a", "t</w>"), ("'", "s</w>")]
tokenizer = Tokenizer(MERGES)
names = {number: symbol for symbol, number in tokenizer.numbers.items()}


def symbols(text: str) -> list[str]:
    return [names[number] for number in tokenizer.encode(text)][1:-1]


def test_the_vocabulary_is_bytes_then_endings_then_merges_then_marks() -> None:
    assert tokenizer.size == 256 + 256 + len(MERGES) + 2
    assert [names[n] for n in (0, 93, 94, 187, 188, 256, 512)] == [
        "!",
        "~",
        "¡",
        "ÿ",
        "Ā",
        "!</w>",
        "th",
    ]
    assert len(set(tokenizer.numbers)) == tokenizer.size
    assert [names[tokenizer.size - 2], names[tokenizer.size - 1]] == [START, END]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat", ["the</w>", "cat</w>"]),
        ("that", ["th", "at</w>"]),
        ("cat's", ["cat</w>", "'s</w>"]),
        ("12", ["1</w>", "2</w>"]),
        ("!?cat!?", ["!", "?</w>", "cat</w>", "!", "?</w>"]),
        ("  the\t\n the ", ["the</w>", "the</w>"]),
        ("the&amp;amp;cat", ["the</w>", "&</w>", "cat</w>"]),
        ("é", ["Ã", "©</w>"]),
        ("e\u0301", ["Ã", "©</w>"]),
        ("", []),
        (" \n", []),
        (f"cat{END}cat", ["cat</w>", END, "cat</w>"]),
    ],
)
def test_texts(text: str, expected: list[str]) -> None:
    assert symbols(text) == expected


def test_long_texts_are_cut_and_still_end() -> None:
    assert len(tokenizer.encode("the " * 75)) == CONTEXT
    long = tokenizer.encode("the " * 500)
    assert long == tokenizer.encode("the " * 75)
    assert long[-1] == tokenizer.numbers[END]
    assert tokenizer.encode("the the", context=3)[-1] == tokenizer.numbers[END]


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    found = tokenizer.encode(text)
    assert 2 <= len(found) <= CONTEXT
    assert found[0] == tokenizer.numbers[START]
    assert found[-1] == tokenizer.numbers[END]
    assert tokenizer.encode(f"  {text}\n") == found


@given(st.text("abcehst019.,!?' \n", max_size=40))
def test_no_letter_is_lost(text: str) -> None:
    assert "".join(symbols(text)).replace("</w>", "") == re.sub(r"\s", "", text)


def test_a_lone_surrogate_is_no_error() -> None:
    assert symbols("\ud800") == ["?</w>"]


def test_merges_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "merges.txt"
    lines = "\n".join(f"{left} {right}" for left, right in MERGES)
    path.write_text(f"#version: 0.2\n{lines}\n", encoding="utf-8")
    assert Tokenizer.read(path).numbers == tokenizer.numbers
    path.write_text(lines, encoding="utf-8")
    assert Tokenizer.read(path).numbers == tokenizer.numbers


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#version: 0.2\na b c\n", "merge 1 has 3 parts, expected 2"),
        (b"#version: 0.2\n", "found none"),
        (b"\xff\xfe\x00", "expected lines of text"),
    ],
)
def test_files_that_are_no_merges(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "merges.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Tokenizer.read(path)
