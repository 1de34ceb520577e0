"""A frame as an object, and bytes that are cut, damaged, hostile or no image at all."""

from __future__ import annotations

import hashlib
import time
import warnings
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from PIL import Image, features

from convergebench.errors import MalformedImage
from convergebench.frame import (
    EXTENSIONS,
    MAX_PIXELS,
    Frame,
    decode,
    encode,
    extension,
    pixel_digest,
    resize,
    sha256,
    sniff,
)
from tests.frame_files import P3, chunk, icc, iccp, orientation, png, png_header, saved, tiff

Pixels = NDArray[np.uint8]
PIXELS: Pixels = np.random.default_rng(3).integers(0, 256, (19, 23, 3), dtype=np.uint8)
DEEP = np.random.default_rng(4).integers(0, 65536, (9, 11, 3)).astype(np.uint16)

pictures = hnp.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3)))


def _files() -> Iterator[tuple[str, bytes]]:
    image, other = Image.fromarray(PIXELS), Image.fromarray(255 - PIXELS)
    clear = Image.fromarray(np.dstack([PIXELS, PIXELS[..., 0]]))
    yield "png", png(PIXELS)
    yield "png, interlaced", png(PIXELS, interlaced=True)
    yield "png, 16 bits", png(DEEP)
    yield "png, alpha", saved(clear, "PNG")
    yield "png, palette", saved(image.quantize(16), "PNG", transparency=3)
    yield "png, animated", saved(image, "PNG", save_all=True, append_images=[other])
    extra = iccp(icc(P3, 2.2)) + chunk(b"eXIf", orientation(6))
    yield "png, profile and orientation", png(PIXELS, extra=extra)
    yield "jpeg", saved(image, "JPEG")
    yield "jpeg, progressive", saved(image, "JPEG", progressive=True)
    exif = b"Exif\0\0" + orientation(6)
    yield "jpeg, exif", saved(image, "JPEG", exif=exif, icc_profile=icc(P3, 2.2))
    yield "jpeg, inks", saved(image.convert("CMYK"), "JPEG")
    yield "jpeg, two pictures", saved(image, "MPO", save_all=True, append_images=[other])
    yield "webp", saved(image, "WEBP")
    yield "webp, lossless", saved(image, "WEBP", lossless=True)
    yield "webp, animated", saved(clear, "WEBP", save_all=True, append_images=[other])
    yield "gif", saved(image, "GIF")
    yield "gif, animated", saved(image, "GIF", save_all=True, append_images=[other])
    yield "bmp", saved(image, "BMP")
    yield "tiff", saved(image, "TIFF")
    yield "tiff, deflated", saved(image, "TIFF", compression="tiff_adobe_deflate")
    yield "tiff, 16 bits", tiff(DEEP)
    if features.check("avif"):
        yield "avif", saved(image, "AVIF")


FILES: Final = dict(_files())


def decoded(data: bytes) -> Pixels | None:
    """The pixels, or None for MalformedImage; anything else, and any warning, fails the test."""
    pixels: Pixels | None = None
    complaint = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pixels = decode(data)[0]
        except MalformedImage as error:
            complaint = str(error)
    assert [str(warning.message) for warning in caught] == []
    assert "0x" not in complaint, "an address, which differs from run to run"
    return pixels


# -- damaged bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_whole(name: str) -> None:
    data = FILES[name]
    pixels, facts = decode(data)
    assert facts.format == name.split(",")[0] == sniff(data)
    assert extension(data) == EXTENSIONS[facts.format]
    assert pixels.shape == (facts.height, facts.width, 3)
    assert Frame(data).facts == facts


@pytest.mark.parametrize("name", FILES)
def test_a_cut_file_is_refused_or_shows_the_whole_picture(name: str) -> None:
    data = FILES[name]
    whole = decode(data)[0]
    refused = 0
    for cut in range(0, len(data), max(1, len(data) // 400)):
        pixels = decoded(data[:cut])
        refused += pixels is None
        if pixels is not None:
            np.testing.assert_array_equal(pixels, whole, f"cut at {cut} of {len(data)}")
    assert refused >= 100


@pytest.mark.parametrize("lost", [1, 12, 20, 300])
def test_facts_and_pixels_agree_that_a_png_is_cut(lost: int) -> None:
    frame = Frame(FILES["png"][:-lost])
    with pytest.raises(MalformedImage, match="cut short"):
        _ = frame.facts
    with pytest.raises(MalformedImage, match="cut short"):
        _ = frame.pixels


@pytest.mark.parametrize("name", ["png", "jpeg", "jpeg, progressive", "webp", "webp, lossless"])
def test_a_file_that_lacks_its_last_tenth_is_refused(name: str) -> None:
    with pytest.raises(MalformedImage, match=f"^{sniff(FILES[name])} "):
        decode(FILES[name][: len(FILES[name]) * 9 // 10])


def test_16_bit_samples_that_only_pillow_reads_are_not_cut_to_8_in_silence() -> None:
    without_end = FILES["png, 16 bits"][:-12]
    with pytest.raises(MalformedImage, match="png whose 16-bit samples cannot be read"):
        decode(without_end)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_bytes_decode_or_are_malformed(data: st.DataObject) -> None:
    original = FILES[data.draw(st.sampled_from(sorted(FILES)))]
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, min(len(damaged) - 1, 4000)))
        damaged[at] = data.draw(st.integers(0, 255))
    pixels = decoded(bytes(damaged))
    if pixels is not None:
        facts = Frame(bytes(damaged)).facts
        assert pixels.shape == (facts.height, facts.width, 3), "facts and pixels disagree"


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.integers(4, 64), st.binary(max_size=200))
def test_noise_after_a_true_beginning(name: str, kept: int, noise: bytes) -> None:
    decoded(FILES[name][:kept] + noise)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "0 bytes; expected PNG"),
        (b"<!DOCTYPE html><html>502 Bad Gateway</html>", r"start with '<!DOCTYPE html><'"),
        (b"\x89PNG", "no known image type"),
        (b"\x89PNG\r\n\x1a\n", "png whose header cannot be read"),
        (b"BM, a text", "bmp"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "no known image type"),
    ],
)
def test_what_is_no_image(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedImage, match=complaint):
        decode(data)
    assert decoded(data) is None


def test_a_type_is_told_by_the_bytes_and_not_by_their_name() -> None:
    assert extension(FILES["jpeg"]) == ".jpg"
    assert extension(b"<html>") == ".bin"
    assert decode(FILES["webp"])[1].format == "webp"


# -- bombs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [9460, 12_000, 100_000, 2**31 - 1])
def test_a_bomb_is_refused_before_it_is_unpacked(side: int) -> None:
    assert side * side > MAX_PIXELS
    header = png_header(side, side, 8, 2)
    bomb = header + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")
    start = time.perf_counter()
    with pytest.raises(MalformedImage, match=r"at most 89,478,485|exceeds limit"):
        decode(bomb)
    assert time.perf_counter() - start < 20


def test_the_limit_can_be_set() -> None:
    data = png(PIXELS)
    assert decode(data, max_pixels=19 * 23)[1].width == 23
    with pytest.raises(MalformedImage, match="23×19 pixels; at most 436 are decoded"):
        decode(data, max_pixels=19 * 23 - 1)


# -- frames ---------------------------------------------------------------------------------------


def test_a_frame_keeps_its_bytes_and_is_named_by_them() -> None:
    data = saved(Image.fromarray(PIXELS), "JPEG")
    frame = Frame(data)
    assert frame.data is data
    assert frame.digest == hashlib.sha256(data).hexdigest() == sha256(data)
    assert (frame.facts.format, frame.facts.width, frame.facts.height) == ("jpeg", 23, 19)
    assert repr(frame) == f"Frame({frame.digest[:12]}…, {len(data):,} bytes)"
    assert Frame(data, digest="given").digest == "given"


def test_frames_are_equal_when_their_bytes_are() -> None:
    one, same, other = Frame(png(PIXELS)), Frame(png(PIXELS)), Frame(saved_differently())
    assert one == same
    assert len({one, same, other}) == 2
    assert one != other
    assert one != one.digest
    assert one.pixel_digest == other.pixel_digest, "other bytes, the same picture"


def saved_differently() -> bytes:
    return png(PIXELS, interlaced=True)


def test_pixels_are_read_only_and_decoded_once() -> None:
    frame = Frame(png(PIXELS))
    assert frame.pixels is frame.pixels
    assert frame.pixels.dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        frame.pixels[0, 0, 0] = 1


def test_unit_is_float32_between_0_and_1() -> None:
    unit = Frame(png(np.array([[[0, 51, 255]]], np.uint8))).unit()
    assert unit.dtype == np.float32
    np.testing.assert_allclose(unit, [[[0, 0.2, 1]]], rtol=1e-7)


def test_a_frame_of_no_image_complains_only_when_looked_at() -> None:
    frame = Frame(b"<html>")
    assert frame == Frame(b"<html>")
    with pytest.raises(MalformedImage, match="no known image type"):
        _ = frame.pixels
    with pytest.raises(MalformedImage, match="no known image type"):
        _ = frame.pixel_digest


@given(pictures)
def test_a_frame_of_pixels_shows_them(pixels: Pixels) -> None:
    frame = Frame.of_pixels(pixels)
    np.testing.assert_array_equal(frame.pixels, pixels)
    assert sniff(frame.data) == "png"
    assert frame.pixel_digest == pixel_digest(pixels)
    assert sniff(frame._repr_png_()) == "png"


@given(pictures, st.data())
def test_the_pixel_digest_changes_with_any_sample_and_with_the_shape(
    pixels: Pixels, data: st.DataObject
) -> None:
    changed = pixels.copy()
    at = data.draw(st.integers(0, pixels.size - 1))
    changed.reshape(-1)[at] ^= data.draw(st.integers(1, 255))
    assert pixel_digest(changed) != pixel_digest(pixels)
    turned = pixels.reshape(pixels.shape[1], pixels.shape[0], 3)
    assert (pixel_digest(turned) == pixel_digest(pixels)) == (turned.shape == pixels.shape)
    mirrored = pixels[:, ::-1]
    assert pixel_digest(mirrored) == pixel_digest(np.ascontiguousarray(mirrored))


def test_encode() -> None:
    view = PIXELS[::-1, ::2]
    np.testing.assert_array_equal(decode(encode(view))[0], view)
    for format in ("jpeg", "webp"):
        fine, coarse = encode(view, format), encode(view, format, quality=10)
        assert sniff(fine) == sniff(coarse) == format
        assert len(coarse) < len(fine)


def test_resize_is_pillows_lanczos() -> None:
    assert resize(PIXELS, 23, 19) is PIXELS
    got = resize(PIXELS, 40, 11)
    want = Image.fromarray(PIXELS).resize((40, 11), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(got, np.asarray(want))
    flat = np.full((8, 5, 3), (9, 99, 199), np.uint8)
    np.testing.assert_array_equal(resize(flat, 31, 17), np.full((17, 31, 3), (9, 99, 199)))
