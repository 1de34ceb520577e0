from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.analysis import analyze
from tests.analysis.handmade import HandMade


def test_the_worst_chains_are_named_with_edit_image_and_speed(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=5)
    for i in range(5):
        made.walk(f"s{i}", "copy", "good", (0.9 - i / 100, 0.8 - i / 100))
        made.walk(f"s{i}", "copy", "bad", (0.6 - i / 10, 0.4 - i / 10))
        made.walk(f"s{i}", "copy", "ref:random", (0.0, 0.0))
    made.walk("s0", "copy", "bad", (0.1,), ended="refused", repeat=1)
    made.floors()
    found = analyze(made.done())
    worst = [f for f in found.findings if f.kind == "worst"]
    assert [f.id for f in worst] == [f"worst/{i}" for i in range(1, 11)]
    assert [f.estimate for f in worst] == sorted(f.estimate or 0 for f in worst)
    assert {f.editor for f in worst} == {"good", "bad"}, "a control's are no news"
    first = worst[0]
    assert first.editor == "bad"
    assert first.chain.startswith("s4--copy--bad--")
    assert first.chain in {chain.key.id for chain in made.store.chains()}
    assert first.estimate == pytest.approx(0.1)
    assert (first.metric, first.group) == ("score", "copy@1 / s4")
    assert first.at == pytest.approx(0.5 / 0.8)
    assert first.note == "copy@1 of s4: below 0.5 after 0.62 rounds"
    last = worst[-1]
    assert last.at is None
    assert last.note == "copy@1 of s0: still above 0.5 after 2 rounds"


def test_a_good_editors_worst_are_there_beside_a_bad_ones(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=20)
    for i in range(20):
        made.walk(f"s{i}", "copy", "good", (0.9,))
        made.walk(f"s{i}", "copy", "bad", (0.1,))
    made.floors()
    worst = [f for f in analyze(made.done()).findings if f.kind == "worst"]
    assert [f.editor for f in worst] == ["bad"] * 12 + ["good"] * 3


def test_nothing_is_worst_where_nothing_ranks(tmp_path: Path) -> None:
    made = HandMade(tmp_path, sources=1)
    made.walk("s0", "copy", "a", (0.8,))
    assert not [f for f in analyze(made.done()).findings if f.kind == "worst"]
