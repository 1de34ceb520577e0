"""What real files of every kind decode to, checked against pixels known beforehand."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, features

from convergebench.errors import MalformedImage
from convergebench.frame import Frame, decode, extension, sniff
from tests.frame_files import chunk, orientation, png, saved, tiff

Pixels = NDArray[np.uint8]
RNG = np.random.default_rng(7)
PICTURE: Pixels = RNG.integers(0, 256, (13, 18, 3), dtype=np.uint8)
GREY: Pixels = PICTURE[..., :1]
DEEP = RNG.integers(0, 65536, (13, 18, 4)).astype(np.uint16)
BLOCKS: Pixels = np.kron(
    RNG.integers(40, 216, (2, 3, 3), dtype=np.uint8), np.ones((16, 16, 1), np.uint8)
)
"""Flat blocks, which lossy coders keep to a level or two."""


def of(array: NDArray[Any], **info: Any) -> Image.Image:
    image = Image.fromarray(array)
    image.info.update(info)
    return image


def jpeg(pixels: Pixels, **options: Any) -> bytes:
    """A JPEG that keeps flat blocks: no chroma subsampling."""
    return saved(of(pixels), "JPEG", quality=95, subsampling=0, **options)


def shown(data: bytes) -> Pixels:
    return decode(data)[0]


def notes(data: bytes) -> tuple[str, ...]:
    return decode(data)[1].notes


def rounded(deep: NDArray[np.uint16]) -> Pixels:
    return np.floor(deep.astype(np.float64) / 257 + 0.5).astype(np.uint8)


def over_white(colour: Pixels, alpha: Pixels) -> NDArray[np.float64]:
    weight = alpha[..., None] / 255
    blended: NDArray[np.float64] = colour * weight + 255 * (1 - weight)
    return blended


def near(got: Pixels, wanted: NDArray[Any], levels: float) -> None:
    assert got.shape == wanted.shape
    assert np.abs(got.astype(np.float64) - wanted).max() <= levels


# -- PNG ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interlaced", [False, True])
def test_png_of_8_bits_is_exact(interlaced: bool) -> None:
    pixels, facts = decode(png(PICTURE, interlaced=interlaced))
    np.testing.assert_array_equal(pixels, PICTURE)
    assert (facts.format, facts.width, facts.height, facts.notes) == ("png", 18, 13, ())


@pytest.mark.parametrize("interlaced", [False, True])
def test_grey_png_has_three_equal_channels(interlaced: bool) -> None:
    got = shown(png(GREY, interlaced=interlaced))
    np.testing.assert_array_equal(got, np.repeat(GREY, 3, axis=2))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_16_bit_png_is_rounded_not_cut(channels: int, interlaced: bool) -> None:
    data = png(DEEP[..., :channels], interlaced=interlaced)
    want = np.broadcast_to(rounded(DEEP[..., :channels]), (13, 18, 3))
    np.testing.assert_array_equal(shown(data), want)
    assert notes(data) == ("16-bit",)


def test_every_16_bit_level_is_rounded_to_the_nearest() -> None:
    levels = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    np.testing.assert_array_equal(shown(png(levels))[..., :1], rounded(levels))


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_alpha_is_composited_over_white(channels: int, bits: int) -> None:
    samples = DEEP[..., -channels:]
    given: NDArray[Any] = samples if bits == 16 else rounded(samples)
    eight = rounded(samples) if bits == 16 else given
    colour = np.broadcast_to(eight[..., :-1], (13, 18, 3))
    near(shown(png(given)), over_white(colour, eight[..., -1]), 0.51)
    assert notes(png(given))[-1] == "alpha over white"


def test_opaque_alpha_changes_nothing() -> None:
    opaque = np.dstack([PICTURE, np.full((13, 18), 255, np.uint8)])
    np.testing.assert_array_equal(shown(png(opaque)), PICTURE)
    assert notes(png(opaque)) == ("opaque alpha",)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("bits", [8, 16])
def test_the_transparent_colour_of_a_png_shows_white(channels: int, bits: int) -> None:
    samples: NDArray[Any] = DEEP[..., :channels].copy()
    if bits == 8:
        samples = rounded(samples)
    samples[3, 4] = samples[5, 6]
    key = samples[3, 4].astype(">u2").tobytes()
    got = shown(png(samples, extra=chunk(b"tRNS", key)))
    clear = (samples == samples[3, 4]).all(axis=2)
    assert clear.sum() >= 2
    eight = rounded(samples) if bits == 16 else samples
    want = np.where(clear[..., None], 255, np.broadcast_to(eight, (13, 18, 3)))
    np.testing.assert_array_equal(got, want)


def palette_image(indices: Pixels) -> Image.Image:
    image = Image.frombytes("P", indices.shape[::-1], indices.tobytes())
    image.putpalette([255, 0, 0, 0, 200, 0, 0, 0, 150, 9, 8, 7])
    return image


def test_palette_png_with_and_without_transparency() -> None:
    indices = RNG.integers(0, 4, (6, 9), dtype=np.uint8)
    colours = np.array([[255, 0, 0], [0, 200, 0], [0, 0, 150], [9, 8, 7]], np.uint8)
    image = palette_image(indices)
    np.testing.assert_array_equal(shown(saved(image, "PNG")), colours[indices])
    alphas = np.array([255, 0, 100, 255], np.uint8)
    clear = saved(image, "PNG", transparency=alphas.tobytes())
    near(shown(clear), over_white(colours[indices], alphas[indices]), 0.51)
    single = saved(image, "PNG", transparency=2)
    want = np.where((indices == 2)[..., None], 255, colours[indices])
    np.testing.assert_array_equal(shown(single), want)


def test_one_bit_png() -> None:
    bits = RNG.integers(0, 2, (9, 11)).astype(bool)
    got = shown(saved(Image.fromarray(bits), "PNG"))
    np.testing.assert_array_equal(got, np.where(bits, 255, 0)[..., None].repeat(3, axis=2))


def test_animated_png_shows_its_first_picture() -> None:
    data = saved(of(PICTURE), "PNG", save_all=True, append_images=[of(255 - PICTURE)])
    np.testing.assert_array_equal(shown(data), PICTURE)
    assert notes(data) == ("animated",)


def test_bytes_after_the_end_of_a_png_do_not_matter() -> None:
    np.testing.assert_array_equal(shown(png(PICTURE) + b"trailing garbage" * 50), PICTURE)


# -- other types ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize": True}])
def test_jpeg(options: dict[str, bool]) -> None:
    data = jpeg(BLOCKS, **options)
    near(shown(data), BLOCKS, 4)
    assert decode(data)[1].format == "jpeg"
    np.testing.assert_array_equal(shown(data), np.asarray(Image.open(io.BytesIO(data))))


def test_grey_jpeg() -> None:
    grey = BLOCKS[..., 0]
    near(shown(jpeg(grey)), np.repeat(grey[..., None], 3, axis=2), 2)


def test_cmyk_jpeg_with_and_without_the_adobe_marker() -> None:
    inks = np.dstack([255 - BLOCKS, np.zeros(BLOCKS.shape[:2], np.uint8)])
    data = saved(
        Image.frombytes("CMYK", (48, 32), inks.tobytes()), "JPEG", quality=95, subsampling=0
    )
    near(shown(data), BLOCKS, 6)
    assert notes(data) == ("CMYK without a profile",)
    marker = data.index(b"\xff\xee\x00\x0eAdobe")
    bare = data[:marker] + data[marker + 16 :]
    # Pillow, like the browsers, takes the inks of a JPEG as inverted whether or not it says so.
    near(shown(bare), BLOCKS, 6)


@pytest.mark.parametrize("options", [{"quality": 95}, {"lossless": True}])
def test_webp(options: dict[str, Any]) -> None:
    got = shown(saved(of(BLOCKS), "WEBP", **options))
    middle = slice(8, None, 16)  # away from the blocks' edges, where lossy WebP blurs colour
    near(got[middle, middle], BLOCKS[middle, middle], 0 if "lossless" in options else 6)


def test_webp_with_alpha_and_animated() -> None:
    alpha = np.dstack([PICTURE, GREY])
    clear = saved(of(alpha), "WEBP", lossless=True, exact=True)
    near(shown(clear), over_white(PICTURE, GREY[..., 0]), 0.51)
    both = saved(
        of(PICTURE), "WEBP", lossless=True, save_all=True, append_images=[of(255 - PICTURE)]
    )
    np.testing.assert_array_equal(shown(both), PICTURE)
    assert "animated" in notes(both)


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow cannot read AVIF")
def test_avif() -> None:
    data = saved(of(BLOCKS), "AVIF", quality=95, subsampling="4:4:4")
    near(shown(data), BLOCKS, 6)
    assert (sniff(data), extension(data)) == ("avif", ".avif")


def test_avif_is_known_by_any_of_its_brands() -> None:
    assert sniff(b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif") == "avif"
    assert sniff(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic") is None
    assert sniff(b"\0\0\0\x18ftypheicavifmif1heic") is None, "a version, not a brand"
    assert sniff(b"\0\0\0\x14ftypheic\0\0\0\0mif1avif") is None, "beyond the end of the box"


def test_animated_gif_shows_its_first_picture() -> None:
    first, second = Image.new("RGB", (9, 7), (250, 0, 0)), Image.new("RGB", (9, 7), (0, 0, 250))
    data = saved(first, "GIF", save_all=True, append_images=[second])
    np.testing.assert_array_equal(shown(data), np.asarray(first))
    assert decode(data)[1].format == "gif"
    assert notes(data) == ("animated",)


def test_gif_transparency_shows_white() -> None:
    indices = RNG.integers(0, 4, (6, 9), dtype=np.uint8)
    got = shown(saved(palette_image(indices), "GIF", transparency=1))
    assert (got[indices == 1] == 255).all()
    assert (got[indices == 0] == (255, 0, 0)).all()


@pytest.mark.parametrize("format", ["BMP", "TIFF"])
def test_bmp_and_8_bit_tiff(format: str) -> None:
    np.testing.assert_array_equal(shown(saved(of(PICTURE), format)), PICTURE)


@pytest.mark.parametrize("turn", [1, 6])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_16_bit_tiff_is_rounded_and_upright(channels: int, turn: int) -> None:
    if channels == 1:
        data = saved(of(DEEP[..., 0]), "TIFF", tiffinfo={274: turn})
    else:
        data = tiff(DEEP[..., :channels], turn=turn)
    eight = rounded(DEEP[..., :channels])
    want: NDArray[Any] = np.broadcast_to(eight[..., :3], (13, 18, 3))
    if channels == 4:
        want = over_white(eight[..., :3], eight[..., 3])
    near(shown(data), np.rot90(want, -1) if turn == 6 else want, 0.51)
    assert "16-bit" in notes(data)


def test_pages_of_a_tiff_are_no_animation() -> None:
    data = saved(of(PICTURE), "TIFF", save_all=True, append_images=[of(BLOCKS)])
    np.testing.assert_array_equal(shown(data), PICTURE)
    assert notes(data) == ("first of several pictures",)


def test_the_preview_in_a_jpeg_is_no_animation() -> None:
    data = saved(
        of(BLOCKS), "MPO", save_all=True, append_images=[of(BLOCKS)], quality=95, subsampling=0
    )
    near(shown(data), BLOCKS, 4)
    assert notes(data) == ("first of several pictures",)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_32_bit_samples_are_refused(mode: str) -> None:
    with pytest.raises(MalformedImage, match="32-bit samples"):
        decode(saved(Image.new(mode, (9, 9)), "TIFF"))


# -- orientation ----------------------------------------------------------------------------------

UPRIGHT: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("turn", range(1, 9))
def test_exif_orientation_is_applied(turn: int) -> None:
    exif = orientation(turn)
    want = UPRIGHT[turn](PICTURE)
    for data in (
        png(PICTURE, extra=chunk(b"eXIf", exif)),
        saved(of(PICTURE), "WEBP", lossless=True, exif=exif),
    ):
        np.testing.assert_array_equal(shown(data), want)
        assert notes(data) == (() if turn == 1 else ("rotated by EXIF",))
    near(shown(jpeg(BLOCKS, exif=b"Exif\0\0" + exif)), UPRIGHT[turn](BLOCKS), 4)
    deep = png(DEEP[..., :3], extra=chunk(b"eXIf", exif))
    np.testing.assert_array_equal(shown(deep), UPRIGHT[turn](rounded(DEEP[..., :3])))


def test_only_exif_turns_a_picture() -> None:
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    text = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)
    raw = b"Raw profile type exif\0\nexif\n      26\n" + orientation(6).hex().encode() + b"\n"
    for extra in (text, chunk(b"tEXt", raw)):
        frame = Frame(png(PICTURE, extra=extra))
        np.testing.assert_array_equal(frame.pixels, PICTURE)
        assert frame.facts == decode(frame.data)[1]


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_is_ignored(value: int) -> None:
    np.testing.assert_array_equal(
        shown(png(PICTURE, extra=chunk(b"eXIf", orientation(value)))), PICTURE
    )


@pytest.mark.parametrize(
    "exif", [b"", b"no TIFF here", orientation(6)[:-9], b"MM\0*\xff\xff\xff\xff"]
)
def test_a_damaged_exif_block_does_not_cost_the_picture(exif: bytes) -> None:
    np.testing.assert_array_equal(shown(png(PICTURE, extra=chunk(b"eXIf", exif))), PICTURE)
    near(shown(jpeg(BLOCKS, exif=b"Exif\0\0" + exif)), BLOCKS, 4)
