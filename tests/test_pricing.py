from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from convergebench.editor import Price
from convergebench.pricing import PriceRule

SIZE = (1024, 1024)


def cost(rule: PriceRule, tier: str = "1K", pictures: int = 1, prompt: str = "") -> Price:
    found = rule.estimate(tier, made=SIZE, sent=SIZE, pictures=pictures, prompt=prompt)
    assert found is not None
    return found


def test_a_price_per_image_goes_by_tier() -> None:
    rule = PriceRule(image={"1K": 0.134, "4K": 0.24})
    assert cost(rule, "4K") == Price.flat(0.24)
    assert rule.estimate("2K", made=SIZE, sent=SIZE) is None, "nobody knows"
    assert cost(PriceRule(image={"*": 0.04}), "2K") == Price.flat(0.04)


def test_megapixels_count_when_begun_and_references_each() -> None:
    rule = PriceRule(megapixel_in=0.01, megapixel_out=0.03, reference=0.008)
    found = rule.estimate("1K", made=(1024, 1025), sent=(512, 512), pictures=3)
    assert found is not None
    assert found.expected == pytest.approx(2 * 0.03 + 3 * (0.01 + 0.008))


def test_tokens_are_priced_by_kind_with_their_spread() -> None:
    # Nano Banana 2.1 at 1K: 1120 tokens out at $30 a million, 1120 in at $1.50.
    rule = PriceRule(
        tokens={"text_in": 1.5, "image_in": 1.5, "text_out": 7.5, "image_out": 30},
        expect={"1K": {"image_in": 1120, "image_out": 1120, "text_out": (0, 400, 2000)}},
    )
    found = cost(rule, prompt="x" * 400)
    assert found.low == pytest.approx(0.0336 + 0.00168 + 50 * 1.5e-6)
    assert found.expected == pytest.approx(0.0336 + 0.00168 + 100 * 1.5e-6 + 400 * 7.5e-6)
    assert found.high == pytest.approx(0.0336 + 0.00168 + 200 * 1.5e-6 + 2000 * 7.5e-6)
    assert cost(rule, pictures=3).low == pytest.approx(0.0336 + 3 * 0.00168)
    used = rule.of_tokens({"image_out": 1120, "image_in": 1120, "text_out": 100})
    assert used == pytest.approx(0.0336 + 0.00168 + 0.00075)
    assert PriceRule(image={"*": 1}).of_tokens({"image_out": 5}) is None


def test_a_spread_that_falls_is_refused() -> None:
    with pytest.raises(ValidationError, match="in rising order"):
        PriceRule(image={"*": (3.0, 2.0, 1.0)})


@given(
    st.floats(0, 1),
    st.tuples(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 9000)),
    st.integers(1, 14),
    st.text(max_size=300),
)
def test_low_expected_and_high_are_in_order(
    each: float, tokens: tuple[int, int, int], pictures: int, prompt: str
) -> None:
    low, middle, high = sorted(tokens)
    rule = PriceRule(
        image={"*": each},
        tokens={"text_in": 5, "image_in": 8, "image_out": 30},
        expect={"*": {"image_in": 300, "image_out": (low, middle, high)}},
    )
    found = cost(rule, pictures=pictures, prompt=prompt)
    assert 0 <= found.low <= found.expected <= found.high
