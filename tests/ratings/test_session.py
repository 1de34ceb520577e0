"""What counts as an answer, what passes a check, and what a session gives away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import InputError
from convergebench.ratings import Study, open_study
from convergebench.ratings.design import DESIGNS
from convergebench.ratings.session import Session, checked_values, feedback, passes
from convergebench.ratings.storage import Answers
from convergebench.ratings.study import BROKEN, OTHER, REFERENCE, Item
from tests.ratings.made import small_study, tokens

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abcdez") | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    base = tmp_path_factory.mktemp("studies")
    return {
        design: open_study(small_study(base / design, design, attention=1, participants=1))
        for design in DESIGNS
    }


@pytest.mark.parametrize("design", DESIGNS)
@given(given_values=ANYTHING)
def test_anything_is_a_complete_answer_or_refused_in_words(
    studies: dict[str, Study], design: str, given_values: Any
) -> None:
    study = studies[design]
    item = study.participants[0].items[-1]
    try:
        values = checked_values(study, item, given_values)
    except InputError:
        return
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    if design != "pairs":
        assert len(values) == len(item.slots)


@given(body=st.dictionaries(st.sampled_from(["item", "values", "comment", "milliseconds", "x"]),
                            ANYTHING, max_size=5))  # fmt: skip
def test_no_body_makes_the_server_stumble(studies: dict[str, Study], body: dict[str, Any]) -> None:
    session = Session(studies["absolute"], 0, "t", b"k")

    class Nobody:
        def consented(self, _: str) -> bool:
            return True

        def answered(self, _: str) -> frozenset[int]:
            return frozenset()

        def add(self, *_: Any, **more: Any) -> bool:
            assert 0 <= more["milliseconds"] <= 86_400_000
            assert more["comment"] is None or len(more["comment"].encode()) <= 4000
            return True

    first = session._told(0)
    good = {slot["id"]: 3 for slot in first["slots"]}
    body = {**body, "item": first["id"], "values": good}
    comment = body.get("comment")
    text = comment is None or (isinstance(comment, str) and comment.isprintable())
    if text:
        assert session.answer(Nobody(), body)["saved"] is True  # type: ignore[arg-type]
    elif not isinstance(comment, str):
        with pytest.raises(InputError, match="a comment is a text"):
            session.answer(Nobody(), body)  # type: ignore[arg-type]


CHECK = Item(kind="attention", image=0, slots=(BROKEN, "x", REFERENCE))


@pytest.mark.parametrize(
    ("scores", "right"),
    [
        ((0, 3, 5), True),
        ((2, 2, 3), True),
        ((0, 0, 1), True),
        ((3, 3, 3), False),
        ((2, 1, 5), False),
        ((5, 5, 0), False),
        ((4, 5, 4), False),
    ],
)
def test_the_destroyed_picture_must_be_lowest_and_the_untouched_one_above(
    studies: dict[str, Study], scores: tuple[int, int, int], right: bool
) -> None:
    values = dict(zip("abc", map(float, scores), strict=True))
    assert passes(studies["absolute"], CHECK, values) is right
    assert passes(studies["absolute"], CHECK.model_copy(update={"kind": "item"}), values) is None


def test_checks_of_the_other_designs(studies: dict[str, Study]) -> None:
    alone = Item(kind="attention", image=0, slots=(BROKEN,))
    assert passes(studies["single"], alone, {"a": 1.0}) is True
    assert passes(studies["single"], alone, {"a": 2.0}) is False
    two = Item(kind="practice", image=0, slots=(BROKEN, REFERENCE))
    assert [passes(studies["pairs"], two, {"choice": c}) for c in ("a", "b", "tie")] == [
        False,
        True,
        False,
    ]
    other = Item(kind="practice", image=0, slots=("x", OTHER), other=1)
    for yes in (True, False):
        labels = {
            "a": {"infidelity": not yes, "over-generation": False},
            "b": {"infidelity": yes, "over-generation": False},
        }
        assert passes(studies["labels"], other, labels) is yes
    assert feedback(two, True) == (
        "Right: picture A was destroyed on purpose, and picture B was not touched."
    )
    assert (feedback(other, False) or "").startswith("Look again: picture B shows another scene")
    assert (feedback(alone.model_copy(update={"kind": "practice"}), True) or "").startswith("Right")
    assert feedback(CHECK, True) is None


def test_names_of_pages_and_pictures_differ_everywhere_and_need_both_secrets(
    tmp_path: Path,
) -> None:
    folder = small_study(tmp_path / "s", participants=2, repeats=1)
    study = open_study(folder)
    one, other = tokens(folder).values()
    names: list[str] = []
    for place, token in enumerate((one, other)):
        session = Session(study, place, token, b"k")
        names += [*session._places, *session._pictures]
        assert session.picture("x") is None
    assert len(set(names)) == len(names)
    for token, key in (("guess", b"k"), (one, b"other")):
        assert not set(Session(study, 0, token, key)._pictures) & set(names)


def test_completion_codes(tmp_path: Path) -> None:
    each = open_study(small_study(tmp_path / "each", code="each", participants=2))
    codes = {Session(each, place, "t", b"k").code for place in range(2)}
    assert len(codes) == 2
    assert Session(each, 0, "t", b"other key").code not in codes
    same = open_study(small_study(tmp_path / "same", code="DONE7", participants=2))
    assert {Session(same, place, "t", b"k").code for place in range(2)} == {"DONE7"}
    none = open_study(folder := small_study(tmp_path / "none", participants=1))
    with Answers.open(folder, none.name, none.created) as answers:
        assert Session(none, 0, "t", b"k").state(answers)["code"] is None
