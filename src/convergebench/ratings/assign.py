"""Who sees what, when, and where on the page: pure, seeded, balanced.

A *unit* is what is answered on one page: an image in one of its *variants*. Where all methods are
on the page there is one variant; one per method where they are shown singly; one per pair of
methods in a choice of two.

* **Shares.** Units lie on a ring on which any `images` neighbours are different images.
  Participants take consecutive stretches of it, so that every unit is given out equally often,
  give or take one, after any number of participants.
* **Order.** A session is cut into rounds in which no image comes twice. The order within a round is
  a row of a Williams square: over as many participants as there are images, every image has every
  place once and, where their number is even, follows every other one once. Rows are taken with a
  golden stride, so that a few participants are spread over the square, too.
* **Slots.** Places on the page follow a Latin square in the same way; of a pair, left and right
  change with every time that the pair is given out.

The order depends on a participant's number and the seed, not on how many participants there are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from convergebench.ratings.design import Design
from convergebench.ratings.study import BROKEN, OTHER, REFERENCE, Item, Kind

GOLDEN: Final = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Wanted:
    """How large a session is, and of what.

    Attributes:
        design: What is asked.
        methods: The methods' labels.
        images: How many images there are to rate.
        practice: Places of the images to practise on, in the study's list.
        per_participant: Pages of a session, practice, attention and repeats aside; None is all.
        attention: How many attention items.
        repeats: How many items come a second time.
        seed: Of everything here that is chance.
    """

    design: Design
    methods: tuple[str, ...]
    images: int
    practice: tuple[int, ...] = ()
    per_participant: int | None = None
    attention: int = 0
    repeats: int = 0
    seed: int = 0

    @property
    def units(self) -> int:
        """How many pages all there is to answer would take."""
        return self.images * len(_variants(self.design, self.methods))

    @property
    def pages(self) -> int:
        """Pages of a session that count."""
        return self.units if self.per_participant is None else self.per_participant


@dataclass(frozen=True)
class _Unit:
    """A page as given out: which image, which variant, for the how manieth time."""

    image: int
    variant: int
    lap: int
    methods: tuple[str, ...] = field(compare=False)


def session(wanted: Wanted, participant: int) -> tuple[Item, ...]:
    """All pages of one participant (counted from 0), in order."""
    rng = random.Random(f"{wanted.seed}:session:{participant}")
    ordered = _ordered(wanted, participant)
    pages = [_page(unit, "item") for unit in ordered]
    # Where each goes is fixed before anything is put in, so that they do not push each other.
    inserted: list[tuple[float, Item]] = []
    for number in range(wanted.repeats):
        place, after = _repeated(len(ordered), wanted.repeats, participant, number)
        inserted.append((after, _page(ordered[place], "repeat")))
    for number in range(wanted.attention):
        at = (number + 0.25 + rng.random() / 2) / wanted.attention * len(pages)
        image = rng.randrange(wanted.images)
        inserted.append((max(1.0, at), _check(wanted, image, "attention", rng)))
    for at, item in sorted(inserted, key=lambda told: -told[0]):
        pages.insert(math.ceil(at), item)
    practice = [_check(wanted, image, "practice", rng) for image in wanted.practice]
    return (*practice, *pages)


# -- squares --------------------------------------------------------------------------------------


def williams(size: int) -> tuple[int, ...]:
    """The first row of a Williams square: 0, 1, n−1, 2, n−2, … Row r adds r to it, modulo n."""
    row = [0]
    for step in range(1, size):
        row.append((step + 1) // 2 if step % 2 else size - step // 2)
    return tuple(row)


def stride(size: int) -> int:
    """A step that visits every row once and spreads the first few over the whole square."""
    near = max(1, round(size * GOLDEN))
    return next(
        step
        for away in range(size + 1)
        for step in (near - away, near + away)
        if step > 0 and math.gcd(step, size) == 1
    )


def _row(size: int, number: int) -> list[int]:
    """The `number`-th order of `size` things; every second square is mirrored.

    A square of odd size and its mirror image together balance who follows whom.
    """
    shift = number * stride(size) % size
    row = [(value + shift) % size for value in williams(size)]
    return row[::-1] if number // size % 2 else row


# -- shares and order -----------------------------------------------------------------------------


def _variants(design: Design, methods: Sequence[str]) -> list[tuple[str, ...]]:
    if design == "single":
        return [(method,) for method in methods]
    if design == "pairs":
        return list(combinations(methods, 2))
    return [tuple(methods)]


def _ordered(wanted: Wanted, participant: int) -> list[_Unit]:
    """A participant's units in the order shown."""
    rng = random.Random(f"{wanted.seed}:study")
    images = rng.sample(range(wanted.images), wanted.images)
    methods = rng.sample(wanted.methods, len(wanted.methods))
    variants = _variants(wanted.design, methods)
    rng.shuffle(variants)
    share = []
    for number in range(participant * wanted.pages, (participant + 1) * wanted.pages):
        lap, place = divmod(number, wanted.units)
        turn, image = divmod(place, wanted.images)
        variant = (image + turn) % len(variants)
        share.append(_Unit(images[image], variant, lap, variants[variant]))
    rounds = [share[at : at + wanted.images] for at in range(0, len(share), wanted.images)]
    places = {image: place for place, image in enumerate(_row(wanted.images, participant))}
    ordered: list[_Unit] = []
    for number in _row(len(rounds), participant):
        # Another row in every round, or an image would come after equally many others each time.
        shift = number * stride(wanted.images)
        found = sorted(rounds[number], key=lambda u: places[(u.image + shift) % wanted.images])
        if ordered and len(found) > 1 and ordered[-1].image == found[0].image:
            found[0], found[1] = found[1], found[0]
        ordered += found
    return ordered


def _page(unit: _Unit, kind: Kind) -> Item:
    """A unit as a page: which picture is where on it."""
    number = unit.lap + unit.image + unit.variant + (kind == "repeat")
    count = len(unit.methods)
    slots = [unit.methods[i] for i in _latin(count, number)]
    return Item(kind=kind, image=unit.image, slots=tuple(slots))


def _latin(size: int, number: int) -> list[int]:
    """A row of a Latin square of places on the page."""
    return [(value + number) % size for value in williams(size)]


def _repeated(pages: int, repeats: int, participant: int, number: int) -> tuple[int, float]:
    """Which page comes a second time, and after how many pages: from the first half, in the last.

    Every page of the first half is taken equally often over participants.
    """
    half = max(1, pages // 2)
    place = (participant * repeats + number) % half
    return place, pages - (repeats - number) * (pages - half) / (repeats + 1) * 0.9


def _check(wanted: Wanted, image: int, kind: Kind, rng: random.Random) -> Item:
    """A page whose right answer is known: something untouched, something destroyed, or both."""
    if wanted.design == "single":
        return Item(kind=kind, image=image, slots=(BROKEN,))
    if wanted.design == "labels":
        slots = [*rng.sample(wanted.methods, max(0, len(wanted.methods) - 1)), OTHER]
        rng.shuffle(slots)
        other = (image + rng.randrange(1, max(2, wanted.images))) % wanted.images
        return Item(kind=kind, image=image, slots=tuple(slots), other=other)
    if wanted.design == "absolute":
        rest = rng.sample(wanted.methods, max(0, len(wanted.methods) - 2))
        slots = [BROKEN, REFERENCE, *rest][: max(1, len(wanted.methods))]
    else:
        slots = [BROKEN, REFERENCE]
    rng.shuffle(slots)
    return Item(kind=kind, image=image, slots=tuple(slots))
