"""Edits that only rearrange pixels or their values: flips, turns, shifts, negatives, channels.

Each is an element of a group, so that whether one undoes another is computed, not looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Matrix = tuple[int, int, int, int]
Channels = tuple[int, int, int]

_SAME: Final[Matrix] = (1, 0, 0, 1)
_MIRROR: Final[Matrix] = (-1, 0, 0, 1)
_UPSET: Final[Matrix] = (1, 0, 0, -1)
_QUARTER: Final[Matrix] = (0, -1, 1, 0)
"""Clockwise, with y pointing down."""


@dataclass(frozen=True)
class Bijection:
    """A map of pixels (x → Mx + t), a permutation of channels, and whether values are inverted."""

    matrix: Matrix = _SAME
    shift: tuple[int, int] = (0, 0)
    channels: Channels = (0, 1, 2)
    negative: bool = False

    def then(self, after: Bijection) -> Bijection:
        """This one, and another after it."""
        a, b, c, d = after.matrix
        p, q, r, s = self.matrix
        x, y = self.shift
        u, v = after.shift
        return Bijection(
            (a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s),
            (a * x + b * y + u, c * x + d * y + v),
            (
                self.channels[after.channels[0]],
                self.channels[after.channels[1]],
                self.channels[after.channels[2]],
            ),
            self.negative != after.negative,
        )

    def inverse(self) -> Bijection:
        """What undoes it."""
        a, b, c, d = self.matrix
        turned = (a, c, b, d)  # orthogonal: the transpose is the inverse
        x, y = self.shift
        back = [0, 0, 0]
        for index, channel in enumerate(self.channels):
            back[channel] = index
        return Bijection(
            turned,
            (-(turned[0] * x + turned[1] * y), -(turned[2] * x + turned[3] * y)),
            (back[0], back[1], back[2]),
            self.negative,
        )

    @property
    def identity(self) -> bool:
        """Whether it changes nothing."""
        return self == Bijection()

    def words(self) -> str | None:
        """An instruction for it; None where there is nothing to do, or where it is too involved."""
        parts = ["invert the colours of the image"] if self.negative else []
        changed = [name for name, c in _CHANNEL.items() if self.channels[c] != c]
        if len(changed) > 2 or (self.matrix != _SAME and self.shift != (0, 0)):
            return None
        parts += [f"swap the {' and '.join(changed)} channels"] if changed else []
        for by, ways in zip(self.shift, (("right", "left"), ("down", "up")), strict=True):
            way = ways[by < 0]
            parts += [f"shift the image {abs(by)} pixels {way}, wrapping around"] if by else []
        parts += _moves(self.matrix)
        text = ", then ".join(parts)
        return f"{text[:1].upper()}{text[1:]}." if text else None


MIRROR: Final = Bijection(_MIRROR)
UPSET: Final = Bijection(_UPSET)
QUARTER: Final = Bijection(_QUARTER)
NEGATIVE: Final = Bijection(negative=True)

_TURNS: Final = (
    "",
    "rotate the image by 90 degrees clockwise",
    "rotate the image by 180 degrees",
    "rotate the image by 90 degrees counter-clockwise",
)


def _moves(matrix: Matrix) -> list[str]:
    if matrix == _UPSET:
        return ["flip the image vertically"]
    for flip in (Bijection(), MIRROR):
        moved = flip
        for turn in _TURNS:
            if moved.matrix == matrix:
                told = ["flip the image horizontally" if flip.matrix == _MIRROR else "", turn]
                return [text for text in told if text]
            moved = moved.then(QUARTER)
    raise AssertionError(matrix)  # the eight elements are all covered


@dataclass(frozen=True)
class Geometry:
    """What a clause says about pixels.

    Attributes:
        does: The bijection; None where the clause does not fix it (`rotate it back`).
        back: It only says that a flip or a turn is to be undone (`turn it upright again`).
        tilted: A turn by no multiple of 90 degrees: corners are lost.
    """

    does: Bijection | None = None
    back: Literal["", "flip", "turn"] = ""
    tilted: bool = False

    def undoes(self, there: Bijection) -> bool:
        """Whether it says, without an amount, that this very bijection is to be undone."""
        if self.back == "flip":
            return there in (MIRROR, UPSET)
        a, b, c, d = there.matrix
        return self.back == "turn" and there == Bijection(there.matrix) and a * d - b * c == 1


PIXELS: Final = r"(?:image|picture|photo|scene|frame|shot|canvas|it|everything|pixels|view)\b"
_OF: Final = r"(?:(?:the|this|that|my|our|whole|entire|full|complete|given|provided|input) )*"
_NUMBER: Final = {"one": 1, "two": 2, "three": 3, "twice": 2, "thrice": 3}
_CHANNEL: Final = {"red": 0, "green": 1, "blue": 2}
_AXES: Final = r"\b(?:axis|midline|centre line)\b"


def read_geometry(clause: str) -> Geometry | None:
    """What a clause does to all pixels, or None where it does no such thing."""
    for reader in (_flipped, _turned, _inverted, _swapped, _shifted):
        found = reader(clause)
        if found is not None:
            return found
    return None


def _all_pixels(rest: str) -> bool:
    """Whether the words after a verb speak of the picture, or of nothing at all."""
    rest = re.sub(r"^(?:back|over|around) ", "", rest)
    if re.match(rf"{_OF}{PIXELS}", rest) or not rest:
        return True
    return bool(
        re.match(
            r"(?:by |a |an |another |the )*(?:horizontal|vertical|left|right|upside|quarter|half|"
            r"three|two|one|back|again|clockwise|counterclockwise|along|across|about|around|\d|minus|top|"
            r"upright|other|once|through|degrees)",
            rest,
        )
    )


def _flipped(clause: str) -> Geometry | None:
    made = re.match(
        rf"(?:create|make|produce|give me|generate|show|turn {_OF}{PIXELS} into) "
        r"(?:a |an |the |its )*(?:horizontal |vertical |left right )?"
        r"(?:mirror image|(?:horizontally |vertically )?(?:mirrored|flipped)|reflection$)",
        clause,
    )
    found = re.match(r"(?:flip|mirror|reflect|reverse)\b ?", clause)
    halves = re.match(r"(?:swap|exchange|switch|reverse) (?:the )?(left|top) (?:and|with) ", clause)
    if halves and re.search(r"(?:left|top) (?:and|with) (?:the )?(?:right|bottom)", clause):
        return Geometry(MIRROR if halves[1] == "left" else UPSET)
    if made is None and (found is None or not _all_pixels(clause[found.end() :])):
        return None
    if clause.startswith("reverse") and "colour" in clause:
        return None
    upset = re.search(r"\bvertical|\btop\b|\bbottom\b|upside down", clause) is not None
    mirror = re.search(r"\bhorizontal|\bleft\b|\bright\b|\bsideways", clause) is not None
    if re.search(_AXES, clause):  # about the vertical axis, left and right change places
        upset, mirror = mirror, upset
    if re.search(r"right (?:way|side) up", clause):
        return Geometry(back="flip")
    if not (upset or mirror):
        if re.search(r"\bback\b|\bunflip", clause):
            return Geometry(back="flip")
        mirror = True  # without an axis, a mirror image is meant
    does = MIRROR if mirror else Bijection()
    does = does.then(UPSET) if upset else does
    return Geometry(_repeated(does, clause))


def _turned(clause: str) -> Geometry | None:
    found = re.match(
        r"(?:rotate|turn|spin|pivot|tilt|undo the (?:rotation|turn)|straighten)\b ?", clause
    )
    if found is None or not _all_pixels(clause[found.end() :]):
        return None
    if re.match(rf"turn {_OF}{PIXELS}(?: back)? (?:in ?to|to a)\b", clause):
        return None
    angle = _angle(clause)
    if angle is None:
        upright = re.search(
            r"\bback\b|upright|right (?:way|side) up|undo|straight|original", clause
        )
        if upright:
            return Geometry(back="turn")
        return Geometry() if found[0].startswith(("rotate", "spin", "pivot", "tilt")) else None
    if angle % 90:
        return Geometry(tilted=True)
    quarters = int(angle) // 90
    against = "counterclockwise" in clause or re.search(r"to the left\b|\bleftwards?\b", clause)
    with_clock = re.search(r"\bclockwise\b|to the right\b|\brightwards?\b", clause)
    if quarters % 2 and not (against or with_clock):
        return Geometry()  # a quarter turn in which direction?
    quarters = -quarters if against else quarters
    quarters = -quarters if "minus" in clause.split() else quarters
    does = Bijection()
    for _ in range(quarters % 4):
        does = does.then(QUARTER)
    return Geometry(_repeated(does, clause))


def _angle(clause: str) -> float | None:
    """Degrees of a turn, without its direction."""
    told = re.search(r"(\d+(?:\.\d+)?)(?: ?degrees?| ?deg\b|\b)", clause)
    if told:
        return float(told[1])
    if re.search(r"upside down|\bhalf\b|on its head|halfway", clause):
        return 180.0
    count = re.search(r"\b(one|two|three|a|another)? ?quarters?\b", clause)
    if count:
        return 90.0 * _NUMBER.get(count[1] or "one", 1)
    return None


def _inverted(clause: str) -> Geometry | None:
    verb = re.match(r"(?:invert|negate|reverse)\b(.*)", clause)
    if verb and (re.search(r"\bcolours?\b|\btones\b", verb[1]) or _all_pixels(verb[1].strip())):
        part = re.search(rf"colours? of (?!{_OF}{PIXELS})", verb[1])
        return None if part else Geometry(_repeated(NEGATIVE, clause))
    whole = rf"(?:turn|make|convert|change) {_OF}{PIXELS} (?:in ?to |to )?"
    into = re.match(rf"{whole}(?:a |an |its )?(?:\w+ )?negative", clause)
    if into or re.match(r"turn (?:the )?negative (?:back )?(?:in ?to )", clause):
        return Geometry(NEGATIVE)
    return None


def _swapped(clause: str) -> Geometry | None:
    colour = r"(red|green|blue)"
    found = re.match(
        rf"(?:swap|exchange|switch) (?:the )?{colour}(?: channel)? (?:and|with|for) (?:the )?"
        rf"{colour} (?:colour )?channels?\b",
        clause,
    )
    if found is None:
        return None
    order = [0, 1, 2]
    one, two = _CHANNEL[found[1]], _CHANNEL[found[2]]
    order[one], order[two] = order[two], order[one]
    return Geometry(_repeated(Bijection(channels=(order[0], order[1], order[2])), clause))


def _shifted(clause: str) -> Geometry | None:
    """A shift counts only where what leaves the frame comes in again on the other side."""
    found = re.match(rf"(?:shift|roll|move|scroll) {_OF}{PIXELS}", clause)
    if found is None or not re.search(r"\bwrap|cyclic|circular|other side|\broll\b", clause):
        return None
    amount = re.search(r"\b(\d+)\b", clause)
    ways = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
    way = re.search(r"\b(left|right|up|down)", clause[found.end() :])
    if amount is None or way is None:
        return Geometry()
    x, y = ways[way[1]]
    return Geometry(Bijection(shift=(x * int(amount[1]), y * int(amount[1]))))


def _repeated(does: Bijection, clause: str) -> Bijection:
    told = re.search(r"\b(twice|thrice|two times|three times)\b", clause)
    total = does
    for _ in range(_NUMBER[told[1].split()[0]] - 1 if told else 0):
        total = total.then(does)
    return total
