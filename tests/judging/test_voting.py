"""What votes come to, and what questions and answers may be."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from convergebench.errors import SettingsError
from convergebench.frame import Frame, encode
from convergebench.judging import Choice, Number, Question, Template, Vote, YesNo
from convergebench.judging.client import dollars
from convergebench.judging.question import BadAnswer, json_object
from convergebench.judging.verdict import tally
from tests.judging.speaking import BETTER, NOISE, frame

FAILURES = ("refused", "malformed", "off-schema", "cut", "failed", "lost", "unavailable")
words = st.sampled_from(("yes", "no"))
failed = st.sampled_from(FAILURES).map(lambda why: Vote(key="k", sample=0, failure=why))
said = st.one_of(words, st.floats(0, 10))


def voted(answer: str | float, swapped: bool = False) -> Vote:
    return Vote(key="k", sample=0, answer=answer, swapped=swapped)


@given(st.lists(st.one_of(words.map(voted), failed), max_size=9))
def test_the_majority_wins_and_failures_are_only_counted(votes: list[Vote]) -> None:
    fields, answer = tally(votes, numeric=False, pairwise=False)
    counts = Counter(vote.answer for vote in votes if vote.answer is not None)
    if counts["yes"] == counts["no"]:
        assert answer is None
        assert fields["note"]
    else:
        assert answer == ("yes" if counts["yes"] > counts["no"] else "no")
        assert fields["agreement"] == max(counts.values()) / counts.total()
    assert fields["answered"] + sum(fields["failures"].values()) == fields["asked"] == len(votes)
    assert fields["counts"] == dict(counts)
    without, _ = tally([v for v in votes if not v.failure], numeric=False, pairwise=False)
    assert without["answer"] == answer  # a failure moves nothing


@given(st.lists(st.one_of(st.floats(0, 10).map(voted), failed), max_size=9))
def test_numbers_are_averaged_and_failures_are_no_minimum(votes: list[Vote]) -> None:
    fields, answer = tally(votes, numeric=True, pairwise=False)
    numbers = [float(vote.answer) for vote in votes if vote.answer is not None]
    if not numbers:
        assert answer is None
        return
    assert isinstance(answer, float)
    assert min(numbers) - 1e-9 <= answer <= max(numbers) + 1e-9
    assert math.isclose(answer, statistics.fmean(numbers), abs_tol=1e-9)
    expected = statistics.variance(numbers) if len(numbers) > 1 else None
    assert fields["variance"] == expected


@given(st.lists(words, max_size=5), st.lists(words, max_size=5), st.randoms())
def test_the_order_of_votes_does_not_matter(
    one: list[str], other: list[str], chance: random.Random
) -> None:
    votes = [voted(word) for word in one] + [voted(word, True) for word in other]
    mixed = list(votes)
    chance.shuffle(mixed)
    first, second = (tally(vs, numeric=False, pairwise=True)[0] for vs in (votes, mixed))
    assert first["orders"] == second["orders"]
    assert first["answer"] == second["answer"]


def test_a_tie_says_so() -> None:
    fields, answer = tally([voted("yes"), voted("no")], numeric=False, pairwise=False)
    assert answer is None
    assert fields["note"] == "a tie: no and yes have 1 each"


def test_orders_that_disagree_are_recorded() -> None:
    biased = [voted("first"), voted("first"), voted("second", True), voted("second", True)]
    fields, answer = tally(biased, numeric=False, pairwise=True)
    assert answer is None  # whoever always says `first` has said nothing
    assert fields["orders"].agree is False
    fair = [voted("first"), voted("first", True)]
    assert tally(fair, numeric=False, pairwise=True)[0]["orders"].agree is True
    half = [voted("first"), Vote(key="k", sample=0, swapped=True, failure="refused")]
    assert tally(half, numeric=False, pairwise=True)[0]["orders"].agree is None


@given(st.text(max_size=40), said, st.text(max_size=40).filter(lambda t: "{" not in t))
def test_an_object_is_found_among_words(before: str, answer: str | float, after: str) -> None:
    before = before.replace("{", "(").replace("<", "(")
    text = f"{before}{json.dumps({'answer': answer})}{after}"
    assert json_object(text) == {"answer": answer}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "malformed"),
        ("yes", "malformed"),
        ("[1]", "malformed"),
        ('{"answer": NaN}', "malformed"),
        ("{" * 5000, "malformed"),
        ('<think>{"answer": "yes"}', "malformed"),
        ('{"answer": null}', "off-schema"),
        ('{"answer": ["yes"]}', "off-schema"),
        ('{"answer": 1}', "off-schema"),
    ],
)
def test_what_is_no_answer_is_told_apart(text: str, kind: str) -> None:
    with pytest.raises(BadAnswer) as caught:
        NOISE.read(text)
    assert caught.value.kind == kind


@pytest.mark.parametrize("value", [True, "10", -0.1, 10.5, 1e999, None, {}])
def test_numbers_out_of_range_are_not_moved_into_it(value: object) -> None:
    with pytest.raises(BadAnswer, match="a number from 0 to 10"):
        Number(low=0, high=10).read(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "yes", "why": {"answer": "no"}',
        'Well: {"answer": "yes", "answer": "no"}',
        '{"answer": "yes", "more": [{"answer": "no"},',
    ],
)
def test_what_is_inside_half_an_object_is_no_answer(text: str) -> None:
    with pytest.raises(BadAnswer, match="a broken JSON object"):
        json_object(text)


def test_thoughts_whose_beginning_the_server_has_cut_off_are_left_out() -> None:
    text = 'Perhaps {"answer": "no"}? Rather not.</think>\n{"answer": "yes"}'
    assert json_object(text) == {"answer": "yes"}


@pytest.mark.parametrize("told", [-1, float("nan"), float("inf"), True, "2", None])
def test_a_cost_that_can_be_none_is_not_believed(told: object) -> None:
    assert dollars(told) is None
    assert dollars(0.25) == 0.25


def test_answers_are_read_kindly_where_nothing_is_in_doubt() -> None:
    assert YesNo().read(True) == "yes"
    assert YesNo().read(" No ") == "no"
    assert Number(low=1, high=5).read(3) == 3.0
    assert Choice(options=("first", "second")).read("First") == "first"
    with pytest.raises(BadAnswer, match="whole number"):
        Number(low=1, high=5, whole=True).read(2.5)


def test_a_reason_is_asked_for_and_kept() -> None:
    template = Template(id="t", version=1, text="Why?", answer=YesNo(), reason=True)
    assert template.schema_ is not None
    assert list(template.schema_["properties"]) == ["reason", "answer"]
    assert '"reason": one sentence' in template.filled({})
    assert template.read('{"reason": "grain", "answer": "yes"}') == ("yes", "grain")


def test_places_must_be_filled_exactly() -> None:
    with pytest.raises(SettingsError, match="needs 'text'"):
        NOISE.filled({})
    with pytest.raises(SettingsError, match="no place for 'more'"):
        NOISE.filled({"text": "a", "more": "b"})
    assert "{text} {x}" in NOISE.filled({"text": "{text} {x}"})  # fillings are not filled again


def test_illegal_templates_are_refused() -> None:
    with pytest.raises(ValidationError, match="less than high"):
        Number(low=1, high=1)
    with pytest.raises(ValidationError, match="must differ"):
        Choice(options=("a", "a"))
    with pytest.raises(ValidationError, match="in pairs"):
        Choice(options=("a", "b", "c"), turn={"a": "b", "b": "c", "c": "a"})
    with pytest.raises(SettingsError, match="two pictures, got 1"):
        Question(BETTER, {}, (frame(),))


@given(st.sampled_from(("first", "second", "tie")))
def test_turning_twice_changes_nothing(word: str) -> None:
    assert BETTER.answer.turned(BETTER.answer.turned(word)) == word


def test_pictures_go_as_they_are_unless_nobody_reads_them() -> None:
    import numpy as np

    png, jpeg = frame(), frame(1, "jpeg")
    question = Question(NOISE, {"text": ""}, (png, jpeg))
    assert [sent.data for sent in question.sent] == [png.data, jpeg.data]
    assert [sent.mime for sent in question.sent] == ["image/png", "image/jpeg"]
    wide = Frame.of_pixels(np.zeros((40, 80, 3), np.uint8))
    small = NOISE.model_copy(update={"max_side": 20})
    (sent,) = Question(small, {"text": ""}, (wide,)).sent
    facts = Frame(sent.data).facts
    assert (facts.width, facts.height) == (20, 10)
    bitmap = Frame(_bmp(wide))
    (sent,) = Question(NOISE, {"text": ""}, (bitmap,)).sent
    assert sent.mime == "image/png"
    assert Frame(sent.data).pixel_digest == wide.pixel_digest
    assert encode(wide.pixels)


def _bmp(source: Frame) -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(source.pixels).save(out, "BMP")
    return out.getvalue()


def test_a_verbatim_template_goes_without_a_word_of_ours() -> None:
    template = Template(id="t", version=1, text="Yes or no? {x}", answer=YesNo(), verbatim=True)
    assert template.filled({"x": "{y}"}) == "Yes or no? {y}"
    assert template.schema_ is None
    for said in ("yes", "Yes.", " **no** ", "“No”", "<think>yes or no?</think>\nno"):
        assert template.read(said)[0] in ("yes", "no")
    for said in ("", "yes, it is", "yes no", '{"answer": "yes"}'):
        with pytest.raises(BadAnswer, match="expected yes or no"):
            template.read(said)
    with pytest.raises(ValueError, match="one word"):
        Template(id="t", version=1, text="?", answer=YesNo(), verbatim=True, reason=True)
