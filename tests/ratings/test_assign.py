"""Orders: everything is given out, equally often, at every place, on every side."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from convergebench.ratings.assign import Wanted, session, stride, williams
from convergebench.ratings.design import DESIGNS
from convergebench.ratings.study import BROKEN, OTHER, REFERENCE, Item

METHODS = tuple("uvwxyz")


@st.composite
def wishes(draw: st.DrawFn) -> Wanted:
    design = draw(st.sampled_from(DESIGNS))
    images = draw(st.integers(2, 12))
    methods = METHODS[: draw(st.integers(2, 6))]
    whole = Wanted(design, methods, images)
    pages = draw(st.none() | st.integers(1, whole.units))
    most = min(3, max(1, (pages or whole.units) // 2))
    return Wanted(
        design,
        methods,
        images,
        practice=tuple(draw(st.lists(st.integers(0, images - 1), max_size=2))),
        per_participant=pages,
        attention=draw(st.integers(0, min(3, pages or 3))),
        repeats=draw(st.integers(0, most)),
        seed=draw(st.integers(0, 5)),
    )


def unit(item: Item) -> tuple[int, frozenset[str]]:
    return item.image, frozenset(item.slots)


def counting(items: tuple[Item, ...]) -> list[Item]:
    return [item for item in items if item.kind == "item"]


@given(wishes(), st.integers(0, 40))
def test_a_session_has_what_was_asked_for_and_nothing_twice(
    wanted: Wanted, participant: int
) -> None:
    items = session(wanted, participant)
    kinds = Counter(item.kind for item in items)
    asked = {
        "practice": len(wanted.practice),
        "item": wanted.pages,
        "attention": wanted.attention,
        "repeat": wanted.repeats,
    }
    assert kinds == Counter({kind: count for kind, count in asked.items() if count})
    assert [item.kind for item in items[: len(wanted.practice)]] == ["practice"] * kinds["practice"]
    units = [unit(item) for item in counting(items)]
    assert len(set(units)) == len(units)
    assert session(wanted, participant) == items


@given(wishes(), st.integers(1, 30))
def test_every_page_is_given_out_equally_often_give_or_take_one(
    wanted: Wanted, participants: int
) -> None:
    given_out = Counter(
        unit(item) for p in range(participants) for item in counting(session(wanted, p))
    )
    counts = [given_out[one] for one in every_unit(wanted)]
    assert sum(counts) == participants * wanted.pages
    assert max(counts) - min(counts) <= 1


def every_unit(wanted: Wanted) -> list[tuple[int, frozenset[str]]]:
    sets: list[frozenset[str]]
    if wanted.design == "single":
        sets = [frozenset((m,)) for m in wanted.methods]
    elif wanted.design == "pairs":
        sets = [frozenset(pair) for pair in combinations(wanted.methods, 2)]
    else:
        sets = [frozenset(wanted.methods)]
    return [(image, one) for image in range(wanted.images) for one in sets]


@given(wishes(), st.integers(0, 20))
def test_an_image_does_not_follow_itself(wanted: Wanted, participant: int) -> None:
    if wanted.images < 3:
        return
    images = [item.image for item in counting(session(wanted, participant))]
    assert all(one != other for one, other in pairwise(images))


@given(wishes(), st.integers(0, 30))
def test_a_repeat_comes_after_the_page_it_repeats_with_another_order(
    wanted: Wanted, participant: int
) -> None:
    items = session(wanted, participant)
    for place, item in enumerate(items):
        if item.kind == "repeat":
            first = [
                n for n, one in enumerate(items) if one.kind == "item" and unit(one) == unit(item)
            ]
            assert len(first) == 1
            assert first[0] < place
            if len(item.slots) > 1:
                assert items[first[0]].slots != item.slots


@given(st.integers(1, 60))
def test_a_williams_square_has_everything_at_every_place(size: int) -> None:
    row = williams(size)
    assert sorted(row) == list(range(size))
    rows = [[(value + shift) % size for value in row] for shift in range(size)]
    assert all(len(set(column)) == size for column in zip(*rows, strict=True))
    assert sorted(n * stride(size) % size for n in range(size)) == list(range(size))
    if size % 2 == 0:
        follows = Counter(pair for one in rows for pair in pairwise(one))
        assert set(follows.values()) <= {1}


def test_images_are_balanced_over_the_session_and_methods_over_the_slots() -> None:
    """The paper's study: 20 images, 5 methods, 20 people who see everything."""
    wanted = Wanted("absolute", METHODS[:5], 20, seed=3)
    places: Counter[tuple[int, int]] = Counter()
    slots: Counter[tuple[str, int]] = Counter()
    by_image: Counter[tuple[int, str, int]] = Counter()
    for participant in range(20):
        mine: Counter[tuple[str, int]] = Counter()
        for place, item in enumerate(session(wanted, participant)):
            places[item.image, place] += 1
            for slot, method in enumerate(item.slots):
                mine[method, slot] += 1
                by_image[item.image, method, slot] += 1
        assert set(mine.values()) == {4}
        slots += mine
    assert set(places.values()) == {1}
    assert len(places) == 400
    assert set(slots.values()) == {80}
    assert set(by_image.values()) == {4}


def test_a_few_participants_are_spread_over_the_thirds_of_the_session() -> None:
    wanted = Wanted("absolute", METHODS[:5], 21, seed=1)
    thirds: Counter[tuple[int, int]] = Counter()
    for participant in range(9):
        for place, item in enumerate(session(wanted, participant)):
            thirds[item.image, place // 7] += 1
    counts = [thirds[image, third] for image in range(21) for third in range(3)]
    assert min(counts) >= 2
    assert max(counts) <= 4


def test_left_and_right_are_balanced_for_every_pair_and_every_participant() -> None:
    for pages in (None, 30, 17):
        wanted = Wanted("pairs", METHODS[:4], 10, per_participant=pages, seed=2)
        sides: Counter[tuple[int, tuple[str, ...]]] = Counter()
        left: Counter[str] = Counter()
        for participant in range(40):
            for item in session(wanted, participant):
                sides[item.image, item.slots] += 1
                left[item.slots[0]] += 1
        for image in range(10):
            for one, other in combinations(METHODS[:4], 2):
                assert abs(sides[image, (one, other)] - sides[image, (other, one)]) <= 1
        assert max(left.values()) - min(left.values()) <= 0.03 * sum(left.values()) + 1


def test_single_pictures_come_in_rounds_with_every_method_in_each() -> None:
    wanted = Wanted("single", METHODS[:5], 20, seed=5)
    rounds: Counter[tuple[str, int]] = Counter()
    for participant in range(5):
        items = session(wanted, participant)
        for number in range(5):
            part = items[number * 20 : number * 20 + 20]
            assert len({item.image for item in part}) == 20
            rounds.update((item.slots[0], number) for item in part)
    assert set(rounds.values()) == {20}


def test_attention_is_spread_and_has_a_known_answer() -> None:
    for design in DESIGNS:
        wanted = Wanted(design, METHODS[:5], 12, attention=3, practice=(0,), seed=4)
        for participant in range(10):
            items = session(wanted, participant)
            at = [n for n, item in enumerate(items) if item.kind == "attention"]
            size = len(items) / 3
            assert [int(place / size) for place in at] == [0, 1, 2]
            for item in items:
                if item.kind in ("practice", "attention"):
                    assert {BROKEN, OTHER} & set(item.slots)
                    assert item.other != item.image
                    if design in ("absolute", "pairs"):
                        assert REFERENCE in item.slots
                    if design in ("absolute", "labels"):
                        assert len(item.slots) == 5


def test_another_seed_or_participant_is_another_order() -> None:
    one = Wanted("absolute", METHODS[:5], 20, seed=1)
    other = Wanted("absolute", METHODS[:5], 20, seed=2)
    assert session(one, 0) != session(other, 0)
    assert session(one, 0) != session(one, 1)
