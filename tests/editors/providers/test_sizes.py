from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from convergebench.editors.providers.sizes import PIXELS, SizeRule

TABLE = SizeRule(
    kind="table",
    table={"1:1": "1024x1024", "3:2": "1264x848", "2:3": "848x1264"},
    scale={"1K": 1, "2K": 2},
)


def test_a_table_gives_the_nearest_ratio_at_the_resolution() -> None:
    near = TABLE.choose(768, 512, "native")
    assert near is not None
    assert (near.text(), near.ratio, near.resolution) == ("1264x848", "3:2", "1K")
    twice = TABLE.choose(500, 512, "2K")
    assert twice is not None
    assert (twice.text("*"), twice.ratio) == ("2048*2048", "1:1")


def test_a_free_size_is_the_sources_own_where_it_can_be() -> None:
    rule = SizeRule(kind="free", multiple=16, low=640 * 640, high=3840 * 2160)
    own = rule.choose(1024, 768, "native")
    assert own is not None
    assert (own.text(), own.ratio, own.resolution) == ("1024x768", "4:3", "native")
    small = rule.choose(64, 64, "native")
    assert small is not None
    assert small.text() == "640x640"
    asked = rule.choose(64, 64, "2K")
    assert asked is not None
    assert (asked.text(), asked.resolution) == ("2048x2048", "2K")


def test_nothing_is_asked_for_where_nothing_can_be() -> None:
    assert SizeRule(kind="none").choose(64, 64, "native") is None
    with pytest.raises(ValidationError, match="needs a table"):
        SizeRule(kind="table")


@given(
    st.integers(16, 6000),
    st.integers(16, 6000),
    st.sampled_from(["native", *PIXELS]),
    st.sampled_from([8, 16, 32]),
)
def test_a_free_size_keeps_the_limits(
    width: int, height: int, resolution: str, multiple: int
) -> None:
    rule = SizeRule(kind="free", multiple=multiple, low=2**19, high=2**23, steepest=3, longest=3840)
    size = rule.choose(width, height, resolution)
    assert size is not None
    assert size.width % multiple == 0 == size.height % multiple
    assert 2**19 <= size.width * size.height <= 2**23
    assert max(size.width, size.height) <= min(3840, 3 * min(size.width, size.height))
    wanted = min(max(width / height, 1 / 3), 3)
    assert abs(math.log(size.width / size.height / wanted)) < 0.12, "no more than rounding does"
