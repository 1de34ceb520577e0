"""Known answers of the image-level detectors."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from convergebench import drawing
from convergebench.chain import Settings
from convergebench.cycle import Cycle, Edit, grey
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.image import DETECTORS
from convergebench.failures.orientation import orientation
from convergebench.failures.situation import Situation, constructed
from convergebench.failures.surface import noise_levels
from convergebench.frame import resize
from convergebench.metric import NoScore
from tests.failures.cycles import COPY, MIRROR, RECOLOUR, ROTATE

KNOWN = {detector.name: detector for detector in DETECTORS}
SOURCE = drawing.scene("still-life", 192, 128)


def seen(name: str, situation: Situation) -> Sighting:
    """What a detector measures, where it applies."""
    detector = KNOWN[name]
    assert detector.applies(situation) == ""
    found = detector.look(situation)
    assert isinstance(found, Sighting), found
    return found


def fails(name: str, situation: Situation) -> bool:
    return KNOWN[name].failed(seen(name, situation).value)


def noisy(pixels: Any, sigma: float) -> Any:
    random = np.random.default_rng(3)
    return np.clip(pixels + random.normal(0, sigma, pixels.shape), 0, 255).astype(np.uint8)


def copied(frame: Any, source: Any = SOURCE) -> Situation:
    return constructed(COPY, {0: source, 1: frame})


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
def test_every_detector_says_what_it_is(detector: Detector) -> None:
    assert detector.level == "image"
    assert detector.definition.endswith(".")
    assert "+" not in detector.version
    assert not detector.judged


@pytest.mark.parametrize(
    "name", [d.name for d in DETECTORS if d.name.endswith("failure") is False and d.defect]
)
def test_an_exact_copy_has_no_defect(name: str) -> None:
    assert not fails(name, copied(SOURCE))


# -- shape ----------------------------------------------------------------------------------------


def test_the_papers_aspect_change_is_found() -> None:
    source, frame = np.zeros((3072, 5632, 3), np.uint8), np.zeros((752, 1408, 3), np.uint8)
    found = seen("aspect-change", copied(frame, source))
    assert found.value == pytest.approx(100 * np.log((1408 / 752) / (5632 / 3072)), abs=0.11)
    assert found.detail == "1408×752, expected the shape of 5632×3072: 2.1 % wider"
    assert KNOWN["aspect-change"].failed(found.value)


def test_rounding_to_whole_pixels_is_no_aspect_change() -> None:
    assert seen("aspect-change", copied(resize(SOURCE, 101, 67))).value == 0


def test_a_turned_frame_should_have_the_turned_shape() -> None:
    turned = np.ascontiguousarray(np.rot90(SOURCE, -1))
    right = constructed(ROTATE, {0: SOURCE, 1: turned})
    wrong = constructed(ROTATE, {0: SOURCE, 1: SOURCE})
    assert not fails("aspect-change", right)
    assert fails("aspect-change", wrong)


@pytest.mark.parametrize(
    ("side", "cut"),
    [
        ("left", np.s_[:, 12:]),
        ("right", np.s_[:, :-12]),
        ("top", np.s_[8:]),
        ("bottom", np.s_[:-8]),
    ],
)
def test_a_crop_is_told_with_its_side_and_amount(side: str, cut: Any) -> None:
    found = seen("crop", copied(np.ascontiguousarray(SOURCE[cut])))
    assert found.value == pytest.approx(6.25, abs=0.2)
    assert found.detail == f"lost: {found.more[side]:.1f} % of the {side}"
    assert found.more[side] == pytest.approx(6.25, abs=0.2)


def test_another_size_is_no_crop() -> None:
    assert seen("crop", copied(resize(SOURCE, 384, 256))).value < 0.3


def test_a_frame_that_cannot_be_laid_on_home_has_no_crop() -> None:
    found = KNOWN["crop"].look(copied(drawing.scene("text", 192, 128)))
    assert isinstance(found, NoScore)
    assert found.reason.startswith("not laid on home")


@pytest.mark.parametrize(
    ("asked", "resolution", "size", "value"),
    [
        ("192x128", "native", (192, 128), 0),
        ("192x128", "native", (192, 126), 100 * 2 / 128),
        (None, "native", (192, 128), 0),
        (None, "native", (96, 128), 50),
        (None, "1K", (1344, 768), 0),
        (None, "2K", (1024, 1024), 35),
        ("1:1 1K", "1K", (1024, 1024), 0),
        (None, "interleaved", (512, 512), 35),
    ],
)
def test_the_returned_size_is_compared_with_what_was_asked(
    asked: str | None, resolution: Any, size: tuple[int, int], value: float
) -> None:
    frame = np.zeros((size[1], size[0], 3), np.uint8)
    settings = Settings(resolution=resolution)
    situation = constructed(COPY, {0: SOURCE, 1: frame}, asked=asked, settings=settings)
    assert seen("size-mismatch", situation).value == pytest.approx(value)


def test_nothing_is_decoded_for_sizes() -> None:
    class Closed:
        memo = None

        def frame(self, step: int) -> Any:
            raise AssertionError(f"frame {step} was decoded")

    situation = copied(SOURCE)
    situation._pictures = Closed()  # type: ignore[assignment]
    assert seen("aspect-change", situation).value == 0
    assert seen("size-mismatch", situation).value == 0


# -- orientation ----------------------------------------------------------------------------------


def test_a_mirror_that_turned_instead_is_named() -> None:
    situation = constructed(MIRROR, {0: SOURCE, 1: np.ascontiguousarray(SOURCE[::-1, ::-1])})
    found = seen("mirror-failure", situation)
    assert found.detail.startswith("shows the source turned 180°, expected mirrored")
    assert found.value > 0.8


def test_a_step_that_did_nothing_is_told_from_an_earlier_failure() -> None:
    mirrored = np.ascontiguousarray(SOURCE[:, ::-1])
    lazy = seen("mirror-failure", constructed(MIRROR, {0: SOURCE, 1: mirrored, 2: mirrored}))
    assert lazy.detail == "shows the source mirrored, expected as it is; this step changed nothing"
    later = seen(
        "mirror-failure", constructed(MIRROR, {0: SOURCE, 1: mirrored, 2: mirrored, 3: SOURCE})
    )
    assert "this step did as told, an earlier one did not" in later.detail


def test_a_mirror_and_a_turn_that_worked_pass() -> None:
    mirrored = noisy(SOURCE[:, ::-1], 60)
    turned = noisy(np.rot90(SOURCE, -1), 60)
    assert not fails("mirror-failure", constructed(MIRROR, {0: SOURCE, 1: mirrored}))
    assert not fails("rotation-failure", constructed(ROTATE, {0: SOURCE, 1: turned}))
    assert fails("rotation-failure", constructed(ROTATE, {0: SOURCE, 1: mirrored}))


def test_mirror_and_rotation_are_only_looked_for_where_asked() -> None:
    assert KNOWN["mirror-failure"].applies(copied(SOURCE)) == "the step asks for no mirroring"
    assert KNOWN["rotation-failure"].applies(copied(SOURCE)) == "the step asks for no turn"


def test_a_symmetric_source_cannot_fail_to_be_mirrored() -> None:
    half = SOURCE[:, :96]
    source = np.ascontiguousarray(np.concatenate([half, half[:, ::-1]], axis=1))
    found = orientation(constructed(MIRROR, {0: source, 1: source}))
    assert found == NoScore("cannot tell: the source looks the same mirrored and as it is")


def test_an_unrelated_frame_shows_no_symmetry() -> None:
    random = np.random.default_rng(1).integers(0, 256, SOURCE.shape, dtype=np.uint8)
    found = orientation(constructed(MIRROR, {0: SOURCE, 1: random}))
    assert isinstance(found, NoScore)
    assert found.reason.startswith("cannot tell: no view of the source fits")


# -- colour ---------------------------------------------------------------------------------------


def test_exact_grey_has_no_chroma_and_sepia_has() -> None:
    exact = grey(SOURCE)
    assert seen("monochrome-failure", constructed(RECOLOUR, {0: SOURCE, 1: exact})).value < 0.3
    sepia = np.clip(exact * np.array([1.1, 1.0, 0.75]), 0, 255).astype(np.uint8)
    assert fails("monochrome-failure", constructed(RECOLOUR, {0: SOURCE, 1: sepia}))
    assert fails("monochrome-failure", constructed(RECOLOUR, {0: SOURCE, 1: SOURCE}))


def test_grey_is_only_looked_for_where_asked() -> None:
    coloured = constructed(RECOLOUR, {0: SOURCE, 1: grey(SOURCE), 2: grey(SOURCE)})
    assert KNOWN["monochrome-failure"].applies(coloured) == "the step asks for no grey"


@pytest.mark.parametrize(
    ("shift", "towards"),
    [((-12, 8, -12), "green"), ((16, -6, -6), "red"), ((-4, -4, 22), "blue")],
)
def test_a_cast_is_told_with_its_direction(shift: tuple[int, int, int], towards: str) -> None:
    flat = np.full((64, 64, 3), 128, np.uint8)
    frame = (flat + np.array(shift)).astype(np.uint8)
    found = seen("colour-cast", copied(frame, flat))
    assert KNOWN["colour-cast"].failed(found.value)
    assert found.detail.endswith(f"towards {towards}")


def test_the_cast_of_a_known_colour_is_its_distance_in_lab() -> None:
    flat = np.full((32, 32, 3), 128, np.uint8)
    frame = np.full((32, 32, 3), (128, 128, 100), np.uint8)
    found = seen("colour-cast", copied(frame, flat))
    assert (found.more["a"], found.more["b"]) == pytest.approx(_lab(128, 128, 100)[1:], abs=0.3)


def _lab(*levels: int) -> tuple[float, float, float]:
    """CIELAB of an sRGB colour, written out from the standard's formulas."""
    linear = [
        (v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4)
        for v in levels
    ]
    matrix = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    x, y, z = matrix @ linear / matrix.sum(axis=1)
    fx, fy, fz = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


# -- surface --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [3.0, 8.0, 20.0])
def test_the_level_of_white_noise_is_measured(sigma: float) -> None:
    frame = noisy(np.full((256, 256, 3), 128, np.uint8), sigma)
    assert noise_levels(frame) == pytest.approx((sigma, sigma), rel=0.06)


def test_noise_above_homes_is_found_and_its_growth_is_told() -> None:
    frames = {0: SOURCE, 1: noisy(SOURCE, 5), 2: noisy(SOURCE, 12)}
    found = seen("persistent-noise", constructed(COPY, frames))
    assert found.value == pytest.approx(12, rel=0.15)
    assert "grown by" in found.detail
    assert found.more["first"] == pytest.approx(5, rel=0.2)
    assert not fails("persistent-noise", copied(cv2.GaussianBlur(SOURCE, (0, 0), 1.0)))


def test_noise_of_a_small_or_black_picture_is_not_measured() -> None:
    assert isinstance(noise_levels(np.zeros((16, 64, 3), np.uint8)), NoScore)
    black = noise_levels(np.zeros((64, 64, 3), np.uint8))
    assert black == NoScore("nearly all of it is black or white")


def test_smoothed_texture_is_lost_even_with_noise_over_it() -> None:
    source = drawing.scene("foliage", 192, 192)
    smooth = cv2.GaussianBlur(source, (0, 0), 3)
    assert fails("texture-loss", copied(np.asarray(smooth), source))
    assert fails("texture-loss", copied(noisy(smooth, 15), source))
    kept = seen("texture-loss", copied(noisy(source, 15), source))
    assert kept.value < 10
    assert kept.box is not None


def test_a_flat_picture_has_no_texture_to_lose() -> None:
    ramp = np.repeat(np.linspace(40, 200, 128)[None, :, None], 128, 0).repeat(3, 2)
    ramp = np.ascontiguousarray(ramp.astype(np.uint8))
    found = KNOWN["texture-loss"].look(copied(ramp, ramp))
    assert found == NoScore("home has hardly any texture")


def test_a_fixed_point_is_a_fact_and_turns_with_the_cycle() -> None:
    first = np.ascontiguousarray(np.rot90(SOURCE, -1))
    second = np.ascontiguousarray(np.rot90(first, -1))
    found = seen("fixed-point", constructed(ROTATE, {0: SOURCE, 1: first, 2: second}))
    assert (found.value, KNOWN["fixed-point"].failed(found.value)) == (0, True)
    assert found.detail == "equals frame 1, turned 90° clockwise"
    assert not KNOWN["fixed-point"].defect
    assert not fails("fixed-point", constructed(COPY, {0: SOURCE, 1: SOURCE, 2: noisy(SOURCE, 3)}))


def test_a_fixed_point_of_a_round_trip_is_one_round_apart() -> None:
    edits = (Edit(prompt="Add it."), Edit(prompt="Remove it."))
    cycle = Cycle(name="trip", kind="round-trip", edit=edits)
    other = noisy(SOURCE, 30)
    frames = {0: SOURCE, 1: other, 2: noisy(SOURCE, 2), 3: other}
    early = constructed(cycle, frames, 1)
    assert KNOWN["fixed-point"].applies(early) == "the first round is not over"
    assert seen("fixed-point", constructed(cycle, frames, 3)).detail == "equals frame 1"
    frames.pop(1)
    assert KNOWN["fixed-point"].applies(constructed(cycle, frames, 3)) == "frame 1 is not here"


def test_where_no_home_is_known_nothing_is_compared_with_it() -> None:
    edits = (Edit(prompt="Add it."), Edit(prompt="Remove it."))
    cycle = Cycle(name="trip", kind="round-trip", edit=edits)
    away = constructed(cycle, {0: SOURCE, 1: SOURCE}, 1)
    for name in ("crop", "persistent-noise", "texture-loss", "colour-cast"):
        assert KNOWN[name].applies(away) == "no home is known for this frame"
    pile = Cycle(name="pile", kind="accumulate", edit=(Edit(prompt="Add an apple."),))
    growing = constructed(pile, {0: SOURCE, 1: noisy(SOURCE, 9)}, 1)
    assert fails("persistent-noise", growing)
