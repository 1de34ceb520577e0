from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from convergebench.chain import Chain, ChainKey, FrameRef, Settings, Step

KEY = ChainKey(suite="tiny@1", source="s0", cycle="copy@1", editor="ref:jpeg,quality=75")


def ref(letter: str) -> FrameRef:
    return FrameRef(sha256=letter * 64, format="png", bytes=1)


def step(number: int, outcome: str = "edited", frame: str | None = "b") -> Step:
    return Step.model_validate(
        {
            "step": number,
            "outcome": outcome,
            "prompt": "p",
            "inputs": (),
            "frame": ref(frame) if frame else None,
        }
    )


def test_identity_does_not_change_between_releases() -> None:
    # A change here would orphan every run that users have paid for.
    assert KEY.id == "s0--copy--ref-jpeg-quality-75--a2f019e89e"
    assert KEY.seed(1) == 454243706


def test_everything_in_the_key_tells_chains_apart() -> None:
    others = [
        KEY.model_copy(update=change)
        for change in (
            {"suite": "tiny@2"},
            {"source": "s1"},
            {"cycle": "copy@2"},
            {"editor": "ref:jpeg,quality=76"},
            {"settings": Settings(seed="fixed")},
            {"repeat": 1},
        )
    ]
    assert len({k.id for k in [KEY, *others]}) == 7
    assert len({k.seed(1) for k in [KEY, *others]}) == 7


def test_seed_policies() -> None:
    fixed = KEY.model_copy(update={"settings": Settings(seed="fixed")})
    none = KEY.model_copy(update={"settings": Settings(seed="none")})
    assert KEY.seed(1) != KEY.seed(2)
    assert fixed.seed(1) == fixed.seed(2)
    assert none.seed(1) is None


@given(st.text(max_size=80), st.integers(1, 1000))
def test_ids_are_safe_file_names_and_seeds_fit(editor: str, number: int) -> None:
    key = KEY.model_copy(update={"editor": editor})
    assert set(key.id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert len(key.id.encode()) < 200
    assert 0 <= (key.seed(number) or 0) < 2**31


def test_interleaved_resolution() -> None:
    settings = Settings(resolution="interleaved")
    assert [settings.resolution_at(s) for s in (1, 2, 3, 4)] == ["1K", "2K", "4K", "1K"]
    assert Settings().resolution_at(3) == "native"
    assert settings.label == "resolution interleaved"
    assert Settings().label == ""


def test_tip_and_end() -> None:
    chain = Chain(KEY, ref("a"))
    assert chain.tip == ref("a")
    chain = chain.with_step(step(1))
    assert (chain.length, chain.tip, chain.ended) == (1, ref("b"), False)
    paused = chain.with_step(step(2, "over-budget", None))
    assert (paused.length, paused.tip, paused.ended) == (1, ref("b"), False)
    for outcome in ("refused", "no-image", "malformed", "failed"):
        over = chain.with_step(step(2, outcome, None))
        assert (over.length, over.tip, over.ended) == (1, None, True)
    retried = chain.with_step(step(2, "failed", None)).with_step(step(2, frame="c"))
    assert (retried.length, retried.tip) == (2, ref("c"))
