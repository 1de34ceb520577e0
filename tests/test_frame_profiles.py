"""Embedded colour profiles: known answers computed from the primaries, not by a colour engine."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from convergebench.frame import decode
from tests.frame_files import P3, SRGB, chunk, icc, iccp, orientation, png, saved

RNG = np.random.default_rng(11)
PICTURE = RNG.integers(0, 256, (12, 16, 3), dtype=np.uint8)


def by_hand(pixels: NDArray[np.uint8], primaries: Any, gamma: float) -> NDArray[np.float64]:
    """Gamma, primaries to XYZ, XYZ to linear sRGB, clip, sRGB's curve."""
    linear = (pixels / 255) ** gamma
    xyz = linear @ np.array(primaries)
    back = np.clip(xyz @ np.linalg.inv(np.array(SRGB)), 0, 1)
    curve = np.where(back <= 0.0031308, 12.92 * back, 1.055 * back ** (1 / 2.4) - 0.055)
    shown: NDArray[np.float64] = curve * 255
    return shown


def apart(got: NDArray[np.uint8], wanted: NDArray[Any]) -> float:
    return float(np.abs(got - wanted.astype(np.float64)).max())


def test_display_p3_is_converted() -> None:
    pixels, facts = decode(png(PICTURE, extra=iccp(icc(P3, 2.2))))
    assert facts.notes == ("profile converted to sRGB",)
    assert apart(pixels, by_hand(PICTURE, P3, 2.2)) <= 2
    assert apart(pixels, PICTURE) > 10, "the profile makes a difference"


def test_red_of_display_p3_leaves_srgb_and_is_clipped() -> None:
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 200
    pixels, _ = decode(png(red, extra=iccp(icc(P3, 2.2))))
    wanted = by_hand(red, P3, 2.2)
    assert apart(pixels, wanted) <= 2
    assert wanted[0, 0, 0] > 210
    assert tuple(pixels[0, 0, 1:]) == (0, 0)


def test_exchanged_primaries_exchange_channels() -> None:
    swapped = icc((SRGB[1], SRGB[0], SRGB[2]), 2.2)
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 255
    pixels, _ = decode(png(red, extra=iccp(swapped)))
    assert apart(pixels, np.full((4, 4, 3), (0, 255, 0))) <= 2


@pytest.mark.parametrize("gamma", [1.0, 1.8])
def test_gamma_of_jpeg_webp_and_tiff(gamma: float) -> None:
    profile = icc(SRGB, gamma)
    flat = np.full((16, 16, 3), (90, 140, 200), np.uint8)
    wanted = by_hand(flat, SRGB, gamma)
    for format, options in (("JPEG", {"quality": 100}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        data = saved(Image.fromarray(flat), format, icc_profile=profile, **options)
        assert apart(decode(data)[0], wanted) <= 3, format


def test_a_grey_picture_with_a_grey_profile() -> None:
    grey = PICTURE[..., :1]
    pixels, facts = decode(png(grey, extra=iccp(icc((), 1.0, space=b"GRAY"))))
    assert facts.notes == ("profile converted to sRGB",)
    assert apart(pixels, by_hand(np.repeat(grey, 3, axis=2), SRGB, 1.0)) <= 2


def test_a_grey_picture_with_alpha_and_a_grey_profile() -> None:
    half = np.full((3, 3, 2), (90, 128), np.uint8)
    pixels, facts = decode(png(half, extra=iccp(icc((), 1.0, space=b"GRAY"))))
    assert facts.notes == ("profile converted to sRGB", "alpha over white")
    grey = by_hand(np.full((3, 3, 3), 90, np.uint8), SRGB, 1.0)
    assert apart(pixels, grey * 128 / 255 + 255 * 127 / 255) <= 2


@pytest.mark.parametrize("transparent", [False, True])
def test_a_grey_picture_with_a_colour_profile_is_converted_too(transparent: bool) -> None:
    grey = np.repeat(PICTURE[..., :1], 3, axis=2)
    extra = iccp(icc(SRGB, 1.0))
    wanted = by_hand(grey, SRGB, 1.0)
    if transparent:
        key = int(grey[0, 0, 0])
        extra += chunk(b"tRNS", struct.pack(">H", key))
        wanted[grey == key] = 255
    pixels, facts = decode(png(grey[..., :1], extra=extra))
    assert "profile converted to sRGB" in facts.notes
    assert apart(pixels, wanted) <= 2


def test_a_palette_is_converted_and_its_transparency_stays_white() -> None:
    image = Image.frombytes("P", (2, 1), b"\0\1")
    image.putpalette([90, 140, 200, 10, 20, 30])
    data = saved(image, "PNG", icc_profile=icc(SRGB, 1.0), transparency=1)
    wanted = by_hand(np.array([[[90, 140, 200]]], np.uint8), SRGB, 1.0)
    pixels, _ = decode(data)
    assert apart(pixels[:, :1], wanted) <= 2
    assert tuple(pixels[0, 1]) == (255, 255, 255)


def test_alpha_is_blended_after_conversion() -> None:
    half = np.full((3, 3, 4), (90, 140, 200, 128), np.uint8)
    pixels, facts = decode(png(half, extra=iccp(icc(SRGB, 1.0))))
    colour = by_hand(half[..., :3], SRGB, 1.0)
    assert apart(pixels, colour * 128 / 255 + 255 * 127 / 255) <= 2
    assert facts.notes == ("profile converted to sRGB", "alpha over white")


def test_depth_profile_and_orientation_together() -> None:
    deep = RNG.integers(0, 65536, (5, 9, 3)).astype(np.uint16)
    extra = iccp(icc(SRGB, 1.8)) + chunk(b"eXIf", orientation(6))
    pixels, facts = decode(png(deep, extra=extra))
    eight = np.round(deep / 257).astype(np.uint8)
    assert apart(pixels, np.rot90(by_hand(eight, SRGB, 1.8), -1)) <= 2
    assert facts.notes == ("16-bit", "profile converted to sRGB", "rotated by EXIF")


def test_a_profile_that_says_it_is_srgb_is_taken_at_its_word() -> None:
    real = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (real, icc(SRGB, 2.2, name="sRGB IEC61966-2.1")):
        pixels, facts = decode(png(PICTURE, extra=iccp(profile)))
        np.testing.assert_array_equal(pixels, PICTURE)
        assert facts.notes == ()


@pytest.mark.parametrize(
    "profile",
    [
        b"not a profile",
        icc(P3, 2.2)[:200],
        icc((), 2.2, space=b"GRAY"),
        icc(P3, 2.2, space=b"CMYK"),
    ],
    ids=["text", "cut", "of grey", "of inks"],
)
def test_a_profile_that_cannot_be_used_is_ignored_with_a_note(profile: bytes) -> None:
    pixels, facts = decode(png(PICTURE, extra=iccp(profile)))
    np.testing.assert_array_equal(pixels, PICTURE)
    assert len(facts.notes) == 1
    assert facts.notes[0].startswith("profile ignored (")


def test_a_profile_chunk_that_cannot_be_unpacked_costs_no_pixels() -> None:
    broken = chunk(b"iCCP", b"x\0\0" + zlib.compress(icc(P3, 2.2))[:40])
    np.testing.assert_array_equal(decode(png(PICTURE, extra=broken))[0], PICTURE)


def test_inks_with_an_unusable_profile_are_inverted() -> None:
    inks = Image.new("CMYK", (8, 8), (255, 0, 0, 0))
    data = saved(inks, "JPEG", quality=100, icc_profile=icc(SRGB, 2.2))
    pixels, facts = decode(data)
    assert apart(pixels, np.full((8, 8, 3), (0, 255, 255))) <= 2
    assert facts.notes[0].startswith("profile ignored (")
