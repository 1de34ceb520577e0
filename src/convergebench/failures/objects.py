"""Object level: counting failures, replacement instead of addition, and background decay.

The first two need somebody who knows what objects are: a judge. Its questions are in `prompts/`;
every answer is kept in the run's `judgements`, and one that did not come is null and counted.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from convergebench.cycle import Home
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.situation import Situation
from convergebench.frame import Frame
from convergebench.judging import Choice, Question, Template
from convergebench.judging.question import Answers
from convergebench.metric import NoScore
from convergebench.wording import counted

if TYPE_CHECKING:
    from convergebench.failures.situation import Pixels

NO_JUDGE: Final = "a judge must look: name one with --judge"
ANOTHER: Final = "another"
MOST_NAMED: Final = 120
"""Objects that may be named in one question."""


def template(name: str, answer: Answers | None = None) -> Template:
    """A question of `prompts/`, with the answers that are only known when it is asked."""
    told = _told(name)
    return Template.model_validate(told | {"answer": answer} if answer else told)


@cache
def _told(name: str) -> dict[str, Any]:
    file = resources.files("convergebench.failures") / "prompts" / f"{name}.toml"
    return tomllib.loads(file.read_text("utf-8"))


def _asked(situation: Situation, question: Question) -> str | float | NoScore:
    """What the judge answers, or why there is no answer."""
    if situation.judge is None:
        return NoScore(NO_JUDGE)
    verdict = situation.judge.ask(question)
    if verdict.answer is not None:
        return verdict.answer
    vote = verdict.votes[-1]
    why = f"{vote.failure}: {vote.detail}" if vote.detail else vote.failure or verdict.note
    return NoScore(f"the judge gave no answer ({why})"[:300])


def _instruction(situation: Situation) -> str:
    phrasing = situation.chain.key.settings.phrasing
    return situation.edit.wording(phrasing, situation.cycle.round_of(situation.step))


# -- counting ---------------------------------------------------------------------------------


def _counts(situation: Situation) -> str:
    cycle = situation.cycle
    if cycle.expected_count(situation.step) is None:
        return "only cycles that add objects have a number to expect"
    if any(edit.items for edit in cycle.edit):
        return "each edit adds another thing, so there is no one kind to count"
    kinds = {edit.operation.object if edit.operation else edit.prompts for edit in cycle.edit}
    if len(kinds) > 1:
        return "its edits add different things"
    if situation.chain.source is None:
        return "the source is not here"
    return "" if situation.judge else NO_JUDGE


def _counting(situation: Situation) -> Sighting | NoScore:
    origin, added = situation.origin, situation.cycle.expected_count(situation.step)
    if origin is None or added is None:
        return NoScore("the source is not here")
    before = _count(situation, origin)
    if isinstance(before, NoScore):
        return before
    now = _count(situation, situation.frame)
    if isinstance(now, NoScore):
        return now
    expected = before + added
    off = now - expected
    words = "as many as expected" if not off else f"{abs(off):g} {'more' if off > 0 else 'fewer'}"
    had = f", {before:g} of them in the source" if before else ""
    return Sighting(
        abs(off),
        f"{now:g} counted, {expected:g} expected{had}: {words}",
        more={"count": now, "expected": expected, "off": off},
    )


def _count(situation: Situation, pixels: Pixels) -> float | NoScore:
    question = Question(
        template("count-added"),
        {"instruction": _instruction(situation)},
        (Frame.of_pixels(pixels),),
    )
    found = _asked(situation, question)
    return found if isinstance(found, NoScore) else float(found)


# -- replacement ------------------------------------------------------------------------------


def _earlier(situation: Situation) -> list[str]:
    """What earlier edits added, each once, in order."""
    cycle = situation.cycle
    named = []
    for step in range(1, situation.step):
        items = cycle.edit_at(step).items
        if items:
            named.append(items[(cycle.round_of(step) - 1) % len(items)])
    return [name for name in dict.fromkeys(named) if name != situation.item]


def _replaces(situation: Situation) -> str:
    if situation.cycle.kind != "accumulate" or not situation.edit.items:
        return "only cycles that add a different object each time"
    if not _earlier(situation):
        return "nothing was added before"
    if situation.step - 1 not in situation.chain.held:
        return "the frame before is not here"
    return "" if situation.judge else NO_JUDGE


def _replacement(situation: Situation) -> Sighting | NoScore:
    previous = situation.previous
    if previous is None:
        return NoScore("the frame before is not here")
    earlier = _earlier(situation)[-MOST_NAMED:]
    pictures = (Frame.of_pixels(previous), Frame.of_pixels(situation.frame))
    values = {"instruction": _instruction(situation)}
    objects = values | {"objects": ", ".join(earlier)}
    found = _asked(situation, Question(template("all-still-there"), objects, pictures))
    if isinstance(found, NoScore):
        return found
    told = counted(len(earlier), "earlier object")
    if found == "yes":
        return Sighting(0.0, f"all {told} still there" if len(earlier) > 1 else f"{told} is there")
    options = Choice(options=(*(name for name in earlier if name != ANOTHER), ANOTHER))
    which = _asked(situation, Question(template("which-is-gone", options), values, pictures))
    if isinstance(which, NoScore):
        return Sighting(1.0, "an earlier object is gone; the judge did not say which")
    gone = "an earlier object" if which == ANOTHER else str(which)
    return Sighting(1.0, f"{gone} is gone since {situation.item} was asked for")


# -- background -------------------------------------------------------------------------------


def _has_background(situation: Situation) -> str:
    if situation.cycle.kind != "accumulate" and situation.region is None:
        return "only edits of a part of the picture leave a background"
    if situation.cycle.kind in ("mirror", "rotate"):
        return "the whole picture is edited"
    return "" if situation.chain.source is not None else "the source is not here"


def _background(situation: Situation) -> Sighting | NoScore:
    from convergebench.failures.aligned import aligned
    from convergebench.failures.background import changed_box, decay_of

    laid = aligned(situation, Home())
    if laid is None:
        return NoScore("the source is not here")
    edited = situation.region
    box = None if edited is None else laid.in_frame(edited)
    previous = situation.previous
    if situation.cycle.kind == "accumulate" and previous is not None:
        # its region is where objects may be put; the new one is what has changed in it
        new = changed_box(situation.frame, previous, box)
        edited, box = (laid.in_home(new), new) if new else (None, None)
    found = decay_of(laid, edited)
    if found is None:
        return NoScore("no background is left outside what was edited")
    told = f"background {found.total:.1f} from the source"
    told += f" (grain {found.grain:.1f}, colour {found.colour:.1f})"
    more = {"grain": found.grain, "colour": found.colour, "share": found.share}
    if found.object_grain is not None:
        more |= {"frame_grain": found.frame_grain, "object_grain": found.object_grain}
        told += "; what was edited is cleaner" if found.fresh else ""
    elif box is None:
        told += "; nothing new is to be seen"
    return Sighting(found.total, told, box, more)


DETECTORS: Final = (
    Detector(
        name="counting-failure",
        version="1",
        level="object",
        title="Counting failure",
        definition=(
            "In cycles that add one more object of a kind at each step, a judge counts them in the "
            "frame and in the source, without being told how many there should be. The value is "
            "how far the count is from the source's plus one for each step; any difference fails."
        ),
        unit="objects",
        threshold=0.5,
        higher_fails=True,
        applies=_counts,
        measure=_counting,
        judged=True,
    ),
    Detector(
        name="replacement",
        version="1",
        level="object",
        title="Replacement instead of addition",
        definition=(
            "In cycles that add a different object at each step, a judge who sees the frame before "
            "and the frame is asked whether all objects added earlier are still there, and where "
            "not, which is gone. The value is 1 where one is gone, else 0."
        ),
        unit="",
        threshold=0.5,
        higher_fails=True,
        applies=_replaces,
        measure=_replacement,
        judged=True,
    ),
    Detector(
        name="background-decay",
        version="1",
        level="object",
        title="Background decay outside the edit",
        definition=(
            "Where an edit touches a part of the picture: the median CIELAB distance between frame "
            "and source over blocks outside the edited region and outside earlier objects, the "
            "frame registered on the source. Made of fine differences (grain, lost texture; "
            "those that the source's own texture hides are taken off) and coarse ones (colour, "
            "light). The region is the edit's; where objects accumulate, the largest area in it "
            "that changed since the frame before. Whether the region is cleaner than the "
            "background is told beside it."
        ),
        unit="ΔE",
        threshold=2.4,
        higher_fails=True,
        applies=_has_background,
        measure=_background,
    ),
)
"""The detectors of the object level."""
