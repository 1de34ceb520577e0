"""Frames, scores, truths, sources, prompts and failures in any parts and order: the same run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench.frame import encode
from convergebench.importer import Finds, Layout, Look, Track, import_run, importing
from convergebench.importer.found import FoundCycle, FoundFrame, FoundScore, FoundSource
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.importer.test_import import contents
from tests.support.runs import picture

Item = tuple[Any, ...]
CHAINS = [(source, editor) for source in "ab" for editor in "xy"]


def everything() -> list[Item]:
    """All that may be imported, in the smallest pieces."""
    found: list[Item] = [("prompt",)]
    for source, editor in CHAINS:
        found += [("frame", source, editor, n) for n in range(5)]
        found += [("score", source, editor, n) for n in range(1, 5)]
        found.append(("fail", source, editor, 5))
    return found + [(what, source) for what in ("truth", "picture") for source in "ab"]


def finds(look: Look, part: list[Item]) -> Finds:
    """What a layout would find of some pieces."""
    told = Finds(cycles={"c": FoundCycle("replicate", ("again",) if ("prompt",) in part else ())})
    for what, *rest in part:
        if what in ("truth", "picture", "prompt"):
            continue
        source, editor, n = rest
        track = Track(source, "c", editor)
        if what == "frame":
            name = f"{source}.png" if n == 0 else f"{source}{editor}{n}.png"
            told.frames.append(FoundFrame(track, n, look.place(name)))
        elif what == "score":
            told.frames.append(FoundFrame(track, n, None, outcome="reported"))
            told.scores.append(FoundScore(track, n, "psnr", float(n)))
        else:
            told.frames.append(FoundFrame(track, n, None, outcome="refused", detail="no"))
    for source in "ab":
        place = look.place(f"{source}.png") if ("picture", source) in part else None
        truth = look.place(f"{source}-truth.png") if ("truth", source) in part else None
        if place or truth:
            told.sources[source] = FoundSource(place, truth)
    return told


def state(run: Path) -> dict[str, Any]:
    """All of a run that must not depend on the order of imports."""
    store = RunStore.open(run)
    found: dict[str, Any] = {
        "sources": sorted((s.name, s.sha256, s.truth_sha256) for s in store.suite.source),
        "prompts": [[e.prompt for e in c.edit] for c in store.suite.cycle],
        "stored": {
            name: [ref and ref["sha256"] for ref in pair]
            for name, pair in (store.read_json("sources.json") or {}).items()
        },
        "scores": sorted(store.scores().select("chain", "step", "value").iter_rows()),
    }
    for chain in store.chains():
        refs = [ref and ref.sha256 for ref in (chain.source, chain.truth)]
        steps = sorted((step.step, step.outcome) for step in chain.final)
        held = {number: ref.sha256 for number, ref in chain.held.items()}
        found[chain.key.id] = (refs, steps, held, chain.reached, chain.ended)
    return found


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_any_parts_in_any_order_make_the_same_run(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    place, rng = tmp_path_factory.mktemp("mixes"), random.Random(seed)
    names = [f"{s}{e}{n}.png" for s, e in CHAINS for n in range(1, 5)]
    (place / "in").mkdir()
    for number, name in enumerate(["a.png", "b.png", "a-truth.png", "b-truth.png", *names]):
        (place / "in" / name).write_bytes(encode(picture(number)))
    look = Look(place / "in")
    some = [item for item in everything() if rng.random() < 0.7]
    parts: list[list[Item]] = [[] for _ in range(rng.randint(2, 4))]
    for item in some:
        for part in rng.sample(parts, rng.choice((1, 1, 1, 2))):
            part.append(item)
    parts = [part for part in parts if any(i[0] in ("frame", "score", "fail") for i in part)]

    def bring_all(order: list[list[Item]], run: Path) -> None:
        for part in order:
            found = finds(look, part)
            with pytest.MonkeyPatch.context() as patch:
                layout = Layout("mix", "", lambda _: "", MagicMock(return_value=found))
                patch.setattr(importing, "_layout", MagicMock(return_value=layout))
                import_run(place / "in", run, layout="mix", origin="o")
            assert verify(run).sound

    bring_all(parts, place / "one")
    before = contents(place / "one")
    bring_all(parts, place / "one")
    assert contents(place / "one") == before, "importing again changed something"
    shuffled = rng.sample(parts, len(parts))
    bring_all(shuffled, place / "two")
    if parts:
        assert state(place / "one") == state(place / "two")
