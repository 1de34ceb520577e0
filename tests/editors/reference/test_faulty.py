from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest

from convergebench.editor import Editor, EditRequest
from convergebench.editors.reference import open_editor
from convergebench.editors.reference.seeding import chance
from convergebench.errors import (
    EditorError,
    EditorFailed,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
    MalformedImage,
)
from convergebench.frame import Frame
from convergebench.testing.pictures import colourful

Ask = Callable[..., EditRequest]
CALLS = 800


def outcome(editor: Editor, request: EditRequest) -> str:
    try:
        Frame(editor.edit(request).data).pixels  # noqa: B018  (looking is what decodes)
    except (EditorError, MalformedImage) as error:
        return type(error).__name__
    return "edited"


def count(editor: Editor, ask: Ask, name: str) -> int:
    picture = Frame.of_pixels(np.full((2, 2, 3), 99, np.uint8))
    requests = (ask(picture, chain=f"chain-{i // 20}", step=i % 20 + 1) for i in range(CALLS))
    return sum(outcome(editor, request) == name for request in requests)


@pytest.mark.parametrize(
    ("model", "option", "rate", "name"),
    [
        ("refuser", "rate", 0.1, "EditorRefused"),
        ("refuser", "rate", 0.5, "EditorRefused"),
        ("flaky", "rate", 0.2, "EditorUnavailable"),
        ("flaky", "fail", 0.05, "EditorFailed"),
        ("flaky", "empty", 0.3, "EditorNoImage"),
        ("flaky", "garbage", 0.25, "MalformedImage"),
    ],
)
def test_failures_come_at_the_rate_asked_for(
    model: str, option: str, rate: float, name: str, ask: Ask
) -> None:
    options = {option: str(rate)} if option == "rate" else {"rate": "0", option: str(rate)}
    found = count(open_editor(model, **options), ask, name)
    assert abs(found - CALLS * rate) < 4 * math.sqrt(CALLS * rate * (1 - rate))


@pytest.mark.parametrize("rate", ["0", "1"])
def test_never_and_always_are_exact(rate: str, ask: Ask) -> None:
    expected = CALLS if rate == "1" else 0
    assert count(open_editor("refuser", rate=rate), ask, "EditorRefused") == expected
    assert count(open_editor("flaky", rate=rate), ask, "EditorUnavailable") == expected


def test_trying_again_helps_against_unavailability(ask: Ask) -> None:
    editor = open_editor("flaky", rate="0.5")
    needed = []
    for step in range(1, 101):
        request = (ask(colourful(2, 2), step=step, attempt=n) for n in range(1, 40))
        needed.append(next(i for i, r in enumerate(request, 1) if outcome(editor, r) == "edited"))
    assert np.mean(needed) == pytest.approx(2, abs=0.5), "attempts until success, at even odds"
    assert max(needed) > 3


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("refuser", {"rate": "0.5"}),
        ("flaky", {"rate": "0", "fail": "0.5"}),
        ("flaky", {"rate": "0", "empty": "0.5"}),
    ],
)
def test_trying_again_does_not_help_otherwise(
    model: str, options: dict[str, str], ask: Ask
) -> None:
    editor = open_editor(model, **options)
    for step in range(1, 60):
        found = {outcome(editor, ask(colourful(2, 2), step=step, attempt=n)) for n in (1, 2, 3)}
        assert len(found) == 1


def test_the_schedule_follows_from_the_request_alone(ask: Ask) -> None:
    def schedule(**changes: object) -> list[str]:
        editor = open_editor("flaky", rate="0.3", fail="0.1", empty="0.1", garbage="0.1")
        return [outcome(editor, ask(colourful(4, 4), step=s, **changes)) for s in range(1, 60)]

    plain = schedule()
    assert plain == schedule()
    assert len(set(plain)) == 5
    assert plain != schedule(chain="another")
    assert plain != schedule(seed=8)
    assert plain != schedule(attempt=2)
    editor = open_editor("flaky", rate="0.3", fail="0.1", empty="0.1", garbage="0.1")
    backwards = [outcome(editor, ask(colourful(4, 4), step=s)) for s in range(59, 0, -1)]
    assert plain == backwards[::-1]


def test_some_ask_to_wait_and_some_do_not(ask: Ask) -> None:
    editor = open_editor("flaky", rate="1")
    waits = []
    for step in range(1, 60):
        with pytest.raises(EditorUnavailable, match=r"429|503") as caught:
            editor.edit(ask(colourful(2, 2), step=step))
        waits.append(caught.value.retry_after)
    given = [wait for wait in waits if wait is not None]
    assert 10 < len(given) < 50
    assert all(0 < wait < 0.1 for wait in given)


def test_failures_speak_like_a_provider(ask: Ask) -> None:
    request = ask(colourful(2, 2))
    with pytest.raises(EditorRefused, match="usage policy"):
        open_editor("refuser", rate="1").edit(request)
    with pytest.raises(EditorFailed, match="does not accept"):
        open_editor("flaky", rate="0", fail="1").edit(request)
    with pytest.raises(EditorNoImage, match="no image"):
        open_editor("flaky", rate="0", empty="1").edit(request)


def test_garbage_looks_like_an_image_at_first(ask: Ask) -> None:
    data = open_editor("flaky", rate="0", garbage="1").edit(ask(colourful(32, 32))).data
    assert data.startswith(b"\x89PNG")
    with pytest.raises(MalformedImage, match="png that"):
        Frame(data).pixels  # noqa: B018  (looking is what decodes)


@pytest.mark.parametrize("model", ["refuser", "flaky"])
def test_when_they_answer_the_medium_is_light(model: str, ask: Ask) -> None:
    picture = colourful(64, 64)
    made = Frame(open_editor(model, rate="0").edit(ask(picture)).data)
    assert 0.8 < (made.pixels.astype(float) - picture).std() < 1.3


def test_it_can_take_its_time(ask: Ask) -> None:
    editor = open_editor("flaky", rate="0", wait="0.15")
    began = time.monotonic()
    editor.edit(ask(colourful(2, 2)))
    assert time.monotonic() - began >= 0.15
    assert (editor.spec.seconds or 0) > 0.15


def test_chances_are_even_and_independent(ask: Ask) -> None:
    picture = colourful(2, 2)
    draws = np.array([chance(ask(picture, step=s), "a") for s in range(1, 4001)])
    others = np.array([chance(ask(picture, step=s), "b") for s in range(1, 4001)])
    assert 0 <= draws.min() < 0.01
    assert 0.99 < draws.max() < 1
    assert draws.mean() == pytest.approx(0.5, abs=0.02)
    assert abs(np.corrcoef(draws, others)[0, 1]) < 0.06
