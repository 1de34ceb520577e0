"""Reversibility: the rules, and how far they agree with the labels."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convergebench.reversibility import RULES, classify, propose_inverse
from convergebench.reversibility.geometry import MIRROR, NEGATIVE, QUARTER, UPSET, Bijection
from convergebench.reversibility.inverse import TEMPLATES
from convergebench.reversibility.labels import (
    CLASSES,
    Compared,
    LabelledPair,
    agreement,
    kappa,
    labelled_pairs,
)
from convergebench.reversibility.reading import KINDS, read
from convergebench.reversibility.rules import NONE
from convergebench.reversibility.words import LEXICON, singular, things

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "reversibility.md"
LABELLED = labelled_pairs()
KEEPING = (
    "",
    " Keep everything else exactly as it is.",
    " Do not blur, crop, flip or recolour anything, and don't remove any object.",
    ", without changing the lighting or the background",
    ". Make sure that the face, the colours and the style stay the same.",
    ", while keeping the pose, the identity and the sky unchanged.",
    " Leave the rest alone; preserve the weather.",
)


# --- the labels ---------------------------------------------------------------------------------


def test_there_are_thirty_and_thirty_labelled_pairs_each_with_a_reason() -> None:
    groups = {name: [p for p in LABELLED if p.group == name] for name in ("suite", "held-out")}
    assert [len(pairs) for pairs in groups.values()] == [30, 30]
    assert all(pair.why for pairs in groups.values() for pair in pairs)
    assert {pair.label for pair in groups["held-out"]} == set(CLASSES)
    assert len({(p.forward, p.backward) for p in LABELLED}) == len(LABELLED)
    assert len({p.name for p in LABELLED}) == len(LABELLED)


def test_the_rules_agree_with_the_labels_as_the_guide_says() -> None:
    found = agreement()
    told = GUIDE.read_text()
    for name, pairs, agree, percent, coefficient, unknown in found.table.rows:
        assert f"| `{name}` | {pairs} |" in told
        assert f"| {agree} ({percent}) | {coefficient} | {unknown} |" in told
    assert all(row.agrees for row in found.of("suite"))


def test_kappa_is_that_of_the_textbook() -> None:
    flip, blur = classify("flip it", "flip it"), classify("blur it", "sharpen it")
    # 20 both yes, 5 + 10 apart, 15 both no: agreement 0.7, chance 0.5, kappa 0.4
    yes = [Compared("", "", "", "", "exact", verdict) for verdict in [flip] * 20 + [blur] * 5]
    no = [Compared("", "", "", "", "destroying", v) for v in [flip] * 10 + [blur] * 15]
    rows = yes + no
    assert kappa(rows) == pytest.approx(0.4)
    assert kappa(rows[:20]) is None
    assert kappa([]) is None


def test_the_guide_has_every_rule_template_and_kind_of_edit() -> None:
    told = GUIDE.read_text()
    rules = re.findall(r"^\| (R\d+) \| (\w+) \| (.+) \|$", told, re.MULTILINE)
    assert rules == [(rule.id, rule.gives, rule.says) for rule in RULES]
    kinds = re.findall(r"^\| `(\w+)` \| ([a-z]+) \| (.+) \|$", told, re.MULTILINE)
    assert kinds == [(kind.name, kind.fate, kind.says) for kind in KINDS.values()]
    templates = re.findall(r"^\| (T\d+) \| (.+?): (.+) \|$", told, re.MULTILINE)
    assert [name for name, *_ in templates] == [name for name, *_ in TEMPLATES]
    assert [f"{a}: {b}." for _, a, b in templates] == [make.__doc__ for *_, make in TEMPLATES]


def test_the_guides_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(code, {})
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("preserving R11")
    assert told[1] == "Rotate the image by 90 degrees counter-clockwise."


def test_every_rule_and_every_kind_decides_something() -> None:
    verdicts = [classify(pair.forward, pair.backward) for pair in LABELLED]
    assert {verdict.rule for verdict in verdicts} == {rule.id for rule in RULES}
    met = {a.kind for p in LABELLED for text in (p.forward, p.backward) for a in read(text).actions}
    assert KINDS.keys() - met == {"extract"}, "not tried"
    for kind in KINDS.values():
        if kind.undo:
            assert read(kind.undo).actions, f"{kind.undo!r} is not understood"


# --- the rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", KEEPING)
def test_what_must_stay_does_not_confuse(keep: str) -> None:
    for pair in LABELLED[:60]:
        forward, backward = (
            re.sub(r" (Keep everything|Change nothing).*", "", text).rstrip(".?")
            for text in (pair.forward, pair.backward)
        )
        bare = classify(forward, backward)
        joint = "" if keep.startswith((",", ".")) or not keep else "."
        kept = classify(forward + joint + keep, backward + joint + keep)
        assert (kept.reversibility, kept.rule) == (bare.reversibility, bare.rule), pair.name


@given(
    st.sampled_from(LABELLED),
    st.sampled_from([str.upper, str.title, str.lower, str.swapcase]),
    st.sampled_from(["", ".", "!", " …", "  ", "\n", "!!!", "\u200b"]),
    st.sampled_from([" ", "  ", "\t", "\n", "\u00a0", "\u3000"]),
)
def test_case_space_and_final_punctuation_say_nothing(
    pair: LabelledPair, case: Callable[[str], str], end: str, space: str
) -> None:
    told = []
    for text in (pair.forward, pair.backward):
        text = text.rstrip(".!?") + end
        told.append(case(text).replace(" ", space))
    plain, odd = classify(pair.forward, pair.backward), classify(*told)
    assert (odd.reversibility, odd.rule) == (plain.reversibility, plain.rule)


ANY = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            sorted(
                LEXICON["words"]["verbs"]
                + LEXICON["words"]["verbs_or_nouns"]
                + LEXICON["words"]["determiners"]
                + LEXICON["words"]["prepositions"]
                + ["hat", "glasses", "image", ",", ".", "and", "90", "degrees", "back", "colour"]
            )
        ),
        max_size=20,
    ).map(" ".join),
)


@given(ANY, ANY)
@example("", "")
@example("Keep everything as it is.", "\x00\ud800")
@example("add", "remove")
@example("give", "give the")
@example("rotate the image by 999999999999999999999 degrees", "rotate 0 degrees")
def test_no_text_makes_it_fail(forward: str, backward: str) -> None:
    verdict = classify(forward, backward)
    assert verdict.reversibility in CLASSES
    assert verdict.rule in {NONE, *(rule.id for rule in RULES)}
    assert verdict.reason.endswith(".")
    assert verdict.known or verdict.reversibility == "ambiguous"
    made = propose_inverse(forward)
    assert (made.prompt is None) == (made.by == "nobody") == (made.verdict is None)


def test_a_very_long_prompt_takes_no_time() -> None:
    begun = time.monotonic()
    for text in ("make the ", "a ", "turn it into a ", "add a hat and ", "remove colour ", ", ,"):
        classify(text * 100_000, text * 100_000)
    assert time.monotonic() - begun < 30


FLIPS = [
    "{verb} the image horizontally", "{verb} it left to right", "{verb} the picture",
    "please {verb} this photo along the vertical axis", "{verb} horizontally",
    "can you {verb} the whole image from left to right?", "{verb} the photograph left-right",
]  # fmt: skip
UPSETS = [
    "Flip the image vertically", "Flip it upside down", "Mirror the photo top to bottom",
    "Reflect the picture about the horizontal axis", "flip vertically",
]  # fmt: skip


@pytest.mark.parametrize("verb", ["flip", "mirror", "reflect"])
def test_a_flip_and_the_same_flip_are_exact_in_all_phrasings(verb: str) -> None:
    flips = [flip.format(verb=verb) for flip in FLIPS]
    for one, other in product(flips, flips):
        assert classify(one, other).reversibility == "exact", (one, other)
    for one, other in product(UPSETS, UPSETS):
        assert classify(one, other).reversibility == "exact", (one, other)
    for one, other in product(flips, UPSETS):
        assert classify(one, other).rule == "R6", (one, other)


TURNS = {
    "Rotate the image by 90 degrees clockwise": 1, "Turn it a quarter turn to the right": 1,
    "Rotate 90° CW": 1, "rotate the photo 270 degrees anti-clockwise": 1,
    "Rotate the picture 180 degrees": 2, "Turn the image upside down": 2,
    "Rotate the image 90 degrees clockwise twice": 2, "Turn the photo by half a turn": 2,
    "Rotate the image by 90 degrees counter-clockwise": 3, "Rotate it -90 degrees clockwise": 3,
    "Turn the image three quarters clockwise": 3, "turn the picture 90 degrees to the left": 3,
}  # fmt: skip


def test_turns_are_exact_when_they_add_up_to_full_turns() -> None:
    for (one, there), (other, back) in product(TURNS.items(), TURNS.items()):
        found = classify(one, other)
        wanted = "exact" if (there + back) % 4 == 0 else "ambiguous"
        assert found.reversibility == wanted, (one, other, found)


@pytest.mark.parametrize(
    ("forward", "backward", "rule"),
    [
        ("Flip horizontally, then rotate 90 degrees clockwise", "Flip it horizontally", "R6"),
        ("Flip horizontally and flip vertically", "Rotate the image by 180 degrees", "R12"),
        ("Flip the image horizontally", "Turn the picture the right way up", "R6"),
        ("Rotate the image by 90 degrees clockwise", "Turn it upright again", "R12"),
        ("Mirror the image", "Flip it back", "R12"),
        ("Rotate the image", "Rotate the image back", "R6"),
        ("Rotate the image by 12 degrees", "Rotate the image by -12 degrees", "R1"),
        ("Invert the colours", "Turn it into a negative", "R12"),
        ("Invert the colours of the car", "Invert the colours of the car", NONE),
        ("Swap the red and green channels", "Swap the red and blue channels", "R6"),
        ("Add a mirror to the wall", "Remove the mirror", "R11"),
        ("Flip the image and add a hat", "Remove the hat and flip the image", "R11"),
        ("Flip the image and add a hat", "Remove the hat", "R6"),
        ("Repaint this photo as a fresco painting", "Make it a photo", "R1"),
        ("Make it a charcoal drawing", "Make it a photo", "R1"),
        ("Raise the sharpness", "Lower the sharpness", "R2"),
        ("Raise his left arm", "Lower his left arm", "R4"),
        ("Add a hat", "Remove the hat, and show the hair beneath it", "R11"),
        ("Extract the vase", "Put everything else back", "R1"),
        ("Undo the last edit", "Add a hat", NONE),
        ("Add a hat", "Frobnicate", NONE),
    ],
)
def test_traps(forward: str, backward: str, rule: str) -> None:
    assert classify(forward, backward).rule == rule


NOUNS = ["hat", "glasses", "red ball", "potted plant", "dog", "children", "pair of earrings",
         "wooden chair", "wristwatch", "moustache", "cup of coffee", "flowers"]  # fmt: skip
ADDING = ["Add a {}", "add the {} to the scene", "Insert a {} in the foreground, please",
          "Could you place a {} next to the window?", "I'd like you to put a {} there"]  # fmt: skip
REMOVING = ["Remove the {}", "Delete the {} from the picture", "Get rid of the {}.", "erase {}",
            "Take away the {}", "Take the {} out of the image",
            "Make the {} disappear"]  # fmt: skip


@given(st.sampled_from(NOUNS), st.sampled_from(ADDING), st.sampled_from(REMOVING))
def test_add_and_remove_is_preserving_and_remove_and_add_is_destroying(
    noun: str, adding: str, removing: str
) -> None:
    there, back = adding.format(noun), removing.format(noun)
    assert classify(there, back).reversibility == "preserving"
    assert classify(back, there).reversibility == "destroying"
    assert classify(there, there).rule == "R7"


@given(st.sampled_from(NOUNS), st.sampled_from(NOUNS), st.sampled_from(REMOVING))
def test_another_thing_removed_than_added_is_ambiguous(one: str, two: str, removing: str) -> None:
    if one != two:
        verdict = classify(f"Add a {one}", removing.format(two))
        assert (verdict.reversibility, verdict.rule) == ("ambiguous", "R7")
        assert two.split()[-1] in verdict.matched[-1] or "of" in two


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("Put round eyeglasses on this person's face", "Take off this person's eyeglasses"),
        (
            "Edit the photo so that he wears glasses",
            "Edit the photo so that he no longer wears them",
        ),
        ("Edit this image to add a hat", "Modify the picture to remove the hat"),
        ("The person should wear a hat", "The person should not wear a hat"),
        ("Show the woman wearing a necklace", "Show the woman without the necklace"),
        ("Let the person wear earrings", "The person is no longer wearing earrings"),
        ("Stand a tall vase with tulips in the scene", "Take away the vase and its tulips"),
        ("Add a cup of coffee", "Remove the coffee cup"),
        ("Add a car parked near the gate", "Remove the car parked near the gate"),
    ],
)
def test_other_ways_to_say_add_and_remove(forward: str, backward: str) -> None:
    assert classify(forward, backward).reversibility == "preserving"


@pytest.mark.parametrize("back", ["Remove it.", "take them away", "Delete the added object"])
def test_it_and_them_are_what_was_added(back: str) -> None:
    assert classify("Add two cats to the sofa", back).reversibility == "preserving"


def test_a_wider_word_may_stand_for_what_was_added_but_not_a_narrower_one() -> None:
    assert classify("Add sunglasses", "Remove the glasses").reversibility == "preserving"
    assert classify("Add glasses", "Remove the sunglasses").reversibility == "ambiguous"
    assert classify("Add a red hat", "Remove the hat").reversibility == "preserving"
    assert classify("Add a hat", "Remove the red hat").reversibility == "ambiguous"


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("Füge der Person eine Brille hinzu", "Entferne die Brille"),
        ("Ajoute un chapeau à la personne", "Enlève le chapeau"),
        ("给这个人戴上眼镜", "摘掉眼镜"),
        ("メガネをかける", "メガネを外す"),
        ("Добавь шляпу", "Убери шляпу"),
        ("Zoom in op het gezicht", "Zoom uit"),
        ("Add a hat", "Entferne den Hut"),
    ],
)
def test_other_languages_are_told_not_guessed(forward: str, backward: str) -> None:
    verdict = classify(forward, backward)
    assert (verdict.reversibility, verdict.rule) == ("ambiguous", NONE)
    assert "not English" in verdict.reason


def test_what_is_not_understood_is_told() -> None:
    verdict = classify("Add a hat. Frobnicate the gizmo.", "Remove the hat.")
    assert verdict.rule == "R11"
    assert verdict.unread == ("frobnicate the gizmo",)
    assert "Not understood: frobnicate the gizmo." in str(verdict)


def test_things_have_one_name_each() -> None:
    words = ("spectacles", "kids", "watches", "scarves", "berries", "bus")
    assert [singular(w) for w in words] == ["glasses", "child", "watch", "scarf", "berry", "bus"]
    listed = "a small , red ball , two vases and a black and white cat"
    found = things(listed.split(" "), definite=False)
    assert [thing.noun for thing in found] == ["ball", "vase", "cat"]
    assert found[0].like == {"small", "red"}


@given(st.lists(st.sampled_from([MIRROR, UPSET, QUARTER, NEGATIVE, Bijection((1, 0, 0, 1), (3, -2)),
                                 Bijection(channels=(2, 0, 1))]), max_size=6))  # fmt: skip
def test_bijections_are_a_group(steps: list[Bijection]) -> None:
    total = Bijection()
    for step in steps:
        total = total.then(step)
    assert total.then(total.inverse()).identity
    assert total.inverse().then(total).identity
    words = total.words()
    if words:
        assert classify(words, total.inverse().words() or words).reversibility == "exact", words
