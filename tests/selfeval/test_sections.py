"""Splitting reasoning summaries, and the list of words that judges them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.selfeval import Section, mentions_damage, sections
from convergebench.selfeval.rules import words

MARKED = """**Examining the Details**

I look at the bird and the fruit.

**Verifying Accuracy**
All parts are there. **Really** all of them.
"""

BARE = """Examining the Details
I look at the bird and the fruit, one after the other.
Verifying Accuracy
All parts of the picture are there, as far as I can see.
"""


@pytest.mark.parametrize("text", [MARKED, MARKED.replace("\n", "\r\n"), BARE])
def test_a_summary_has_its_two_sections(text: str) -> None:
    first, second = sections(text)
    assert (first.title, second.title) == ("Examining the Details", "Verifying Accuracy")
    assert first.text.startswith("I look at the bird")
    assert second.text.startswith("All parts")


def test_headings_and_a_text_before_the_first_are_sections() -> None:
    told = sections("Well.\n\n## Plan\nCopy it.\n# Check #\nDone.")
    assert told == (Section("", "Well."), Section("Plan", "Copy it."), Section("Check", "Done."))


def test_a_title_may_share_its_line_with_the_text() -> None:
    assert sections("**Plan:** Copy it.") == (Section("Plan", "Copy it."),)


def test_a_bold_word_at_the_start_of_a_sentence_is_no_title() -> None:
    told = sections("**Plan**\nCopy it.\n**Noise** is everywhere, and more of it is to come.")
    assert [section.title for section in told] == ["Plan"]
    assert "**Noise** is everywhere" in told[0].text


def test_a_plain_sentence_is_one_section_and_nothing_is_none() -> None:
    assert sections("I copy the picture.") == (Section("", "I copy the picture."),)
    assert sections("  \n ") == ()


@given(st.text(max_size=400))
def test_no_letter_is_lost(text: str) -> None:
    kept = "".join(section.title + section.text for section in sections(text))
    marks = set("*_#:")
    plain = [letter for letter in text if not letter.isspace() and letter not in marks]
    assert [c for c in kept if not c.isspace() and c not in marks] == plain


@pytest.mark.parametrize(
    "text",
    [
        "The original image is noisy.",
        "I see visible artifacts around the edges, and I will clean them.",
        "There is grain over the sky.",
        "The source looks heavily pixelated!",
        "There is no bird here, but the background shows compression artefacts.",
        "**Noise**\nColourful static covers the wall.",
        "The colours are fine; blotchy patches are not.",
        "No text is visible, the image is noisy.",
        "It does not have noise, but pixelation.",
        "It is not sharp, grainy, and pale.",
        "No blur, no banding, there are artifacts.",
    ],
)
def test_damage_that_is_mentioned_is_found(text: str) -> None:
    assert mentions_damage(text)


@pytest.mark.parametrize(
    "text",
    [
        "I copy the bird and the fruit.",
        "The image is clean, without noise or artifacts.",
        "There are no visible artifacts.",
        "I must avoid introducing artifacts into the copy.",
        "The picture is noise-free.",
        "The wood grain of the table runs from left to right.",
        "Rice grains and grains of sand are kept.",
        "The output isn’t pixelated.",
        "A static pose.",
        "The denoised look is kept.",
        "I must reproduce it without any blur, noise, or artifacts.",
        "The image is free of noise, visible banding and pixelation.",
        "It does not show noise, grain, or compression artefacts.",
        "Ancient artifacts stand in a glass case.",
    ],
)
def test_what_is_denied_or_innocent_is_not(text: str) -> None:
    assert mentions_damage(text) == ()


def test_words_of_the_prompt_are_not_the_editors() -> None:
    prompt = "Produce an exact replica. Remove any noise and artifacts from it."
    told = "The task reads: Produce an exact replica. Remove any noise\nand artifacts from it."
    assert mentions_damage(told) == ("noise", "artifacts")
    assert mentions_damage(told, prompt) == ()
    assert mentions_damage(f"{told} The image is grainy.", prompt) == ("grainy",)


def test_the_words_are_told_once_each() -> None:
    assert mentions_damage("Noise here. Noise there. Artifacts too.") == ("noise", "artifacts")
    assert words().version == 2
