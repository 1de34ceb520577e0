"""Object level: what the judge is asked and what its answers come to; background decay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convergebench import drawing, failures
from convergebench.cycle import Cycle, Edit
from convergebench.editors.reference.operations import add
from convergebench.failures.background import changed_box
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.objects import DETECTORS, NO_JUDGE, template
from convergebench.failures.situation import Situation, constructed
from convergebench.judging import Judge, open_judge
from convergebench.metric import NoScore
from convergebench.runner import run
from tests.failures.cycles import COPY
from tests.judging.speaking import answers, chat_says, said
from tests.support.loopback import Loopback, Reply, serving
from tests.support.runs import picture, write_suite

COUNTING, REPLACEMENT, BACKGROUND = DETECTORS
APPLES = Cycle(name="apples", kind="accumulate", edit=(Edit(prompt="Add one more apple."),))
FRUITS = Cycle(
    name="fruits",
    kind="accumulate",
    edit=(Edit(prompt="Add {item}.", items=("a papaya", "a melon", "a fig")),),
)
Asking = Callable[..., tuple[Judge, Loopback]]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Asking]:
    """A judge behind a server on this machine that gives these replies, one after the other."""
    opened = []

    def begin(*replies: Reply) -> tuple[Judge, Loopback]:
        serving_now = serving(answers(*replies))
        server = serving_now.__enter__()
        opened.append(serving_now)
        monkeypatch.setenv("CONVERGEBENCH_JUDGE_URL", server.url)
        return open_judge("endpoint:eyes", folder=tmp_path / "judgements"), server

    yield begin
    for each in opened:
        each.__exit__(None, None, None)


def frames(count: int) -> dict[int, Any]:
    return {number: picture(number, 32, 32) for number in range(count + 1)}


def text_of(got: Any) -> str:
    return str(got.json["messages"][0]["content"][-1]["text"])


def looked(detector: Detector, situation: Situation) -> Sighting:
    assert detector.applies(situation) == ""
    found = detector.look(situation)
    assert isinstance(found, Sighting), found
    return found


@pytest.mark.parametrize(
    ("source", "frame", "value", "words"),
    [
        (0, 3, 0, "3 counted, 3 expected: as many as expected"),
        (0, 2, 1, "2 counted, 3 expected: 1 fewer"),
        (0, 9, 6, "9 counted, 3 expected: 6 more"),
        (2, 5, 0, "5 counted, 5 expected, 2 of them in the source: as many as expected"),
    ],
)
def test_a_count_is_compared_with_the_source_and_the_steps(
    asking: Asking, source: int, frame: int, value: float, words: str
) -> None:
    judge, server = asking(chat_says(said(source)), chat_says(said(frame)))
    found = looked(COUNTING, constructed(APPLES, frames(3), judge=judge))
    assert (found.value, found.detail) == (value, words)
    assert COUNTING.failed(found.value) == bool(value)
    assert found.more == {"count": frame, "expected": source + 3, "off": frame - source - 3}
    asked = text_of(server.log[1])
    assert "<instruction>Add one more apple.</instruction>" in asked
    assert "3" not in asked.split("Answer with")[0]  # the judge must not be told what to find


def test_the_source_is_counted_once(asking: Asking) -> None:
    judge, server = asking(chat_says(said(0)), chat_says(said(2)), chat_says(said(3)))
    looked(COUNTING, constructed(APPLES, frames(3), 2, judge=judge))
    found = looked(COUNTING, constructed(APPLES, frames(3), 3, judge=judge))
    assert (found.value, len(server.log)) == (0, 3)


def test_without_an_answer_nothing_is_guessed(asking: Asking) -> None:
    judge, _ = asking(chat_says(said(0)), chat_says("I see some apples."))
    found = COUNTING.look(constructed(APPLES, frames(3), judge=judge))
    assert isinstance(found, NoScore)
    assert "the judge gave no answer (malformed: no JSON object" in found.reason


@pytest.mark.parametrize(
    ("detector", "cycle", "step", "why"),
    [
        (COUNTING, APPLES, 2, NO_JUDGE),
        (COUNTING, COPY, 2, "only cycles that add objects"),
        (COUNTING, FRUITS, 2, "no one kind to count"),
        (REPLACEMENT, FRUITS, 2, NO_JUDGE),
        (REPLACEMENT, FRUITS, 1, "nothing was added before"),
        (REPLACEMENT, APPLES, 2, "a different object each time"),
        (BACKGROUND, COPY, 2, "only edits of a part"),
    ],
)
def test_where_a_detector_has_nothing_to_say_it_says_why(
    detector: Detector, cycle: Cycle, step: int, why: str
) -> None:
    assert why in detector.applies(constructed(cycle, frames(2), step))


def test_cycles_of_different_objects_are_not_counted() -> None:
    mixed = Cycle(
        name="mixed", kind="accumulate", edit=(Edit(prompt="Add a cup."), Edit(prompt="Add a hat."))
    )
    assert COUNTING.applies(constructed(mixed, frames(2))) == "its edits add different things"


def test_nothing_is_replaced_where_all_is_there(asking: Asking) -> None:
    judge, server = asking(chat_says(said("yes")))
    found = looked(REPLACEMENT, constructed(FRUITS, frames(3), judge=judge))
    assert (found.value, found.detail) == (0.0, "all 2 earlier objects still there")
    assert "put in by earlier edits: a papaya, a melon." in text_of(server.log[0])
    shown = [p["type"] for p in server.log[0].json["messages"][0]["content"]]
    assert shown == ["text", "image_url", "text", "image_url", "text"]
    assert len(server.log) == 1


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (chat_says(said("a papaya")), "a papaya is gone since a fig was asked for"),
        (chat_says(said("another")), "an earlier object is gone since a fig was asked for"),
        (chat_says("hm"), "an earlier object is gone; the judge did not say which"),
    ],
)
def test_what_was_replaced_is_named(asking: Asking, second: Reply, words: str) -> None:
    judge, server = asking(chat_says(said("no")), second)
    found = looked(REPLACEMENT, constructed(FRUITS, frames(3), judge=judge))
    assert (found.value, found.detail) == (1.0, words)
    schema = server.log[1].json["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["a papaya", "a melon", "another"]


@pytest.mark.parametrize("name", ["count-added", "all-still-there"])
def test_questions_are_versioned_data(name: str) -> None:
    assert template(name).id == name
    assert template(name).version >= 1


def test_a_run_is_judged_once_and_its_nulls_are_counted(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = """
[[cycle]]
name = "apples"
kind = "accumulate"
[[cycle.edit]]
prompt = "Add one more apple."
"""
    suite = write_suite(tmp_path / "suite", 1, cycles=cycles)
    table = {"suite": str(suite), "editors": ["ref:noise"], "steps": 3, "controls": False}
    run(tmp_path / "run", table)
    replies = [chat_says(said(n)) for n in (0, 1, 2)]
    judge, server = asking(*replies, chat_says("no idea"))
    found = failures.find(tmp_path / "run", detectors=["counting-failure"], judge=judge)
    assert found.rows.sort("step")["failed"].to_list() == [False, False, None]
    assert found.rates["null"].to_list() == [0, 1]
    assert len(server.log) == 4
    again = failures.find(tmp_path / "run", detectors=["counting-failure"], judge=judge)
    assert (again.new, len(server.log)) == (0, 4)


# -- background -------------------------------------------------------------------------------

SPOT = (0.6, 0.6, 0.85, 0.85)
TABLE = drawing.scene("table", 256, 256)
LOCAL = Cycle(
    name="cup",
    kind="round-trip",
    edit=(Edit(prompt="Add a cup.", region=SPOT), Edit(prompt="Remove it.", region=SPOT)),
)


def noisy(pixels: Any, sigma: float) -> Any:
    noise = np.random.default_rng(1).normal(0, sigma, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("cycle", [APPLES, LOCAL])
def test_a_clean_background_passes_and_a_noisy_one_fails(cycle: Cycle) -> None:
    clean = constructed(cycle, {0: TABLE, 1: add(TABLE, "apple", SPOT)})
    assert looked(BACKGROUND, clean).value < 0.5
    decayed = constructed(cycle, {0: TABLE, 1: add(noisy(TABLE, 20), "apple", SPOT)})
    found = looked(BACKGROUND, decayed)
    assert BACKGROUND.failed(found.value)
    assert found.more["grain"] > found.more["colour"]
    assert found.detail.endswith("what was edited is cleaner")
    assert found.box is not None


def test_a_tint_is_colour_and_not_grain() -> None:
    tinted = np.clip(TABLE.astype(int) + np.array((12, -8, 4)), 0, 255).astype(np.uint8)
    found = looked(BACKGROUND, constructed(APPLES, {0: TABLE, 1: add(tinted, "apple", SPOT)}))
    assert BACKGROUND.failed(found.value)
    assert found.more["colour"] > 5 * found.more["grain"]


def test_objects_added_earlier_are_no_decay() -> None:
    earlier = add(add(TABLE, "apple", (0.1, 0.6, 0.3, 0.8)), "cup", (0.35, 0.6, 0.5, 0.8))
    made = {0: TABLE, 2: earlier, 3: add(earlier, "apple", SPOT)}
    assert looked(BACKGROUND, constructed(APPLES, made)).value < 0.5


def test_the_new_object_is_found_by_what_changed() -> None:
    before = noisy(TABLE, 6)
    box = changed_box(add(before, "apple", SPOT), noisy(TABLE, 8))
    assert box is not None
    assert np.abs(np.subtract(box, SPOT)).max() < 0.06
    assert changed_box(before, noisy(TABLE, 8)) is None
    assert changed_box(add(before, "apple", SPOT), before, (0, 0, 0.5, 0.5)) is None
