"""A frame: the bytes an editor returned, and the pixels they decode to.

The bytes are never touched: they are named by their SHA-256, stored as received, and are the next
input. Decoding is for measurement only and settles, once, everything that would otherwise leak into
metrics: orientation, colour profile, bit depth, palette, alpha, animation.

The view is H×W×3 uint8 sRGB:

* the type is sniffed from the bytes, never taken from a name or a header that came along;
* EXIF orientation is applied;
* 16-bit samples are rounded to 8 (OpenCV reads them where Pillow would truncate); 32-bit samples,
  whose range no file states, are refused;
* an embedded ICC profile is converted to sRGB (relative colorimetric, black point compensation); a
  profile that says it is sRGB is taken at its word, one that cannot be read or does not fit the
  samples is ignored and flagged; gAMA, cHRM and CICP are not looked at;
* CMYK without a profile uses Pillow's plain inversion; the inks of a JPEG count as stored inverted,
  marked by Adobe or not, as browsers have it;
* alpha and transparent colours are composited over white; of several pictures the first is taken,
  and flagged.

Pillow decodes. OpenCV was tried for plain 8-bit PNG: 1.0 to 1.4 times as fast, which does not pay
for a second decoder and its complaints on stderr.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image, ImageCms, UnidentifiedImageError

from convergebench.errors import MalformedImage
from convergebench.png import plain_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PIXELS: Final = 89_478_485
"""Largest image that is decoded: Pillow's own bomb threshold, twice an 8K frame."""

# Pillow warns about what it forgives (a damaged EXIF block, an animation without frames). Whether
# such a file decodes must not depend on the process's warning filters, and catch_warnings is not
# safe with threads, so one lasting filter covers what Pillow itself warns about while it decodes.
_PILLOW_WARNS: Final = ("ignore", None, Warning, re.compile(r"PIL\."), 0)

EXTENSIONS: Final = {
    "png": ".png",
    "jpeg": ".jpg",
    "webp": ".webp",
    "avif": ".avif",
    "gif": ".gif",
    "bmp": ".bmp",
    "tiff": ".tif",
}


ANIMATED: Final = ("png", "webp", "avif", "gif")
"""Types in which several pictures are an animation, and not pages or a preview."""

TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings a picture of a given EXIF orientation upright."""

_BITS_PER_SAMPLE, _PHOTOMETRIC, _EXTRA_SAMPLES = 258, 262, 338  # TIFF tags


def sha256(data: bytes) -> str:
    """Hex SHA-256 of some bytes: the name of everything in a run directory."""
    return hashlib.sha256(data).hexdigest()


def sniff(data: bytes) -> str | None:
    """The image type that the leading bytes announce, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:8] == b"ftyp" and {b"avif", b"avis"} & _brands(data):
        return "avif"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data.startswith(b"BM"):
        return "bmp"
    if data.startswith((b"II*\x00", b"MM\x00*")):
        return "tiff"
    return None


def _brands(data: bytes) -> set[bytes]:
    """Major and compatible brands of an ISO media file."""
    box = data[8 : min(int.from_bytes(data[:4], "big"), 256)]
    return {box[at : at + 4] for at in range(0, len(box), 4) if at != 4}


def extension(data: bytes) -> str:
    """File name ending for some bytes; `.bin` for what is no known image type."""
    kind = sniff(data)
    return EXTENSIONS[kind] if kind else ".bin"


@dataclass(frozen=True)
class Facts:
    """What decoding found out about a frame."""

    format: str
    width: int
    height: int
    notes: tuple[str, ...] = ()


class Frame:
    """Received bytes, named by their hash, and a view of their pixels.

    Two frames are equal when their bytes are. The pixels are decoded at most once per object.
    """

    def __init__(self, data: bytes, *, digest: str | None = None) -> None:
        self.data: Final = data
        self.digest: Final = digest or sha256(data)

    @classmethod
    def of_pixels(cls, pixels: NDArray[np.uint8]) -> Frame:
        """A frame whose bytes are a PNG of these pixels: for sources we draw and for editors."""
        return cls(encode(pixels))

    @cached_property
    def _decoded(self) -> tuple[NDArray[np.uint8], Facts]:
        return decode(self.data)

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """The H×W×3 uint8 sRGB view, read-only. Raises MalformedImage."""
        return self._decoded[0]

    @cached_property
    def facts(self) -> Facts:
        """Format, size and notes; a plain PNG is checked without unpacking it.

        Raises:
            MalformedImage: The bytes are no image or are damaged.
        """
        size = plain_size(self.data)
        if size and size[0] * size[1] <= MAX_PIXELS:
            return Facts("png", *size)
        return self._decoded[1]

    def unit(self) -> NDArray[np.float32]:
        """The pixels as float32 in [0, 1]."""
        return self.pixels.astype(np.float32) / np.float32(255)

    @cached_property
    def pixel_digest(self) -> str:
        """Hash of size and pixels: equal for two files that show the same picture."""
        return pixel_digest(self.pixels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Frame({self.digest[:12]}…, {len(self.data):,} bytes)"

    def _repr_png_(self) -> bytes:
        return encode(self.pixels)


def pixel_digest(pixels: NDArray[np.uint8]) -> str:
    """SHA-256 of height, width and the pixels in row order."""
    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"{height}x{width}x3;".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def encode(pixels: NDArray[np.uint8], format: str = "png", *, quality: int = 95) -> bytes:
    """Encode pixels as PNG, or as JPEG or WebP of a given quality."""
    out = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(pixels))
    if format == "png":
        image.save(out, "PNG", compress_level=4)
    else:
        image.save(out, format.upper(), quality=quality)
    return out.getvalue()


def resize(pixels: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Resample to a size with Pillow's Lanczos filter, the method of all *raw* metrics."""
    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))


def decode(data: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[NDArray[np.uint8], Facts]:
    """Decode bytes to the sRGB view.

    Raises:
        MalformedImage: The bytes are no image, are cut short or damaged, or are larger than
            `max_pixels`.
    """
    kind = sniff(data)
    if kind is None:
        raise MalformedImage(f"{_opening(data)}; expected PNG, JPEG, WebP, AVIF, GIF, BMP or TIFF")
    if warnings.filters[:1] != [_PILLOW_WARNS]:  # a later filter would come before ours
        warnings.filterwarnings("ignore", module=_PILLOW_WARNS[3].pattern)
    notes: list[str] = []
    plain_size(data)  # refuses what `Frame.facts` refuses, so that the two never disagree
    try:
        with Image.open(io.BytesIO(data), formats=(kind.upper(),)) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise MalformedImage(
                    f"{kind} of {width}×{height} pixels; at most {max_pixels:,} are decoded"
                )
            if getattr(image, "is_animated", False):
                notes.append("animated" if kind in ANIMATED else "first of several pictures")
                image.seek(0)
            image.load()
            pixels = np.array(_settled(image, data, kind, notes), dtype=np.uint8)
    except MalformedImage:
        raise
    except UnidentifiedImageError as error:
        raise MalformedImage(f"{kind} whose header cannot be read") from error
    except Exception as error:  # Pillow raises almost anything on hostile bytes
        reason = str(error).strip() or type(error).__name__
        raise MalformedImage(f"{kind} that cannot be decoded ({reason})") from error
    pixels.setflags(write=False)
    height, width = pixels.shape[:2]
    return pixels, Facts(kind, width, height, tuple(notes))


def _opening(data: bytes) -> str:
    if not data:
        return "0 bytes"
    head = data[:16].decode("ascii", "replace")
    shown = "".join(c if c.isprintable() and c != "\ufffd" else "·" for c in head)
    return f"{len(data):,} bytes that start with {shown!r}, which is no known image type"


def _settled(image: Image.Image, data: bytes, kind: str, notes: list[str]) -> Image.Image:
    """A loaded image as RGB: bit depth, colour profile, alpha and orientation, in this order."""
    deep = _deep_samples(image, data, kind)
    if deep is not None:
        notes.append("16-bit")
        colour, alpha = _split(_eight_bit(deep))
    else:
        colour, alpha = _split(image)
    rgb = _to_srgb(colour, image.info.get("icc_profile"), notes)
    if alpha is not None:
        if alpha.getextrema() == (255, 255):
            notes.append("opaque alpha")
        else:
            notes.append("alpha over white")
            white = Image.new("RGB", rgb.size, (255, 255, 255))
            white.paste(rgb, mask=alpha)
            rgb = white
    turn = _orientation(image, notes)
    return rgb if turn is None else rgb.transpose(turn)


def _orientation(image: Image.Image, notes: list[str]) -> Image.Transpose | None:
    """The turn that EXIF asks for; XMP and other texts may say more, but no browser listens.

    Pillow has already turned a TIFF while loading it.
    """
    exif = Image.Exif()
    try:
        exif.load(image.info.get("exif", b""))
        turn = TURNS.get(exif.get(0x0112, 1))
    except Exception:  # EXIF is parsed by hand in Pillow, and may fail in any way
        notes.append("EXIF ignored (unreadable)")
        return None
    if turn is not None:
        notes.append("rotated by EXIF")
    return turn


def _deep_samples(image: Image.Image, data: bytes, kind: str) -> NDArray[np.uint16] | None:
    """The samples of a 16-bit PNG or TIFF: H×W, or H×W×C with C of 2 to 4. None for other files."""
    if image.mode.startswith("I;16"):
        grey = np.asarray(image).astype(np.uint16)
        key = image.info.get("transparency")
        if key is None:
            return grey
        return np.dstack([grey, np.where(grey == key, 0, 65535).astype(np.uint16)])
    if kind == "png":
        deep = data[24:25] == b"\x10"
    else:
        tags = getattr(image, "tag_v2", {})
        plain = tags.get(_PHOTOMETRIC) == 2 and tags.get(_EXTRA_SAMPLES, (2,)) == (2,)
        deep = plain and set(tags.get(_BITS_PER_SAMPLE, ())) == {16}
    if not deep:
        return None
    import cv2  # only needed for these rare files

    samples = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if samples is None or samples.dtype != np.uint16 or samples.shape[1::-1] != image.size:
        raise MalformedImage(f"{kind} whose 16-bit samples cannot be read")
    return samples[:, :, [2, 1, 0, 3][: samples.shape[2]]].astype(np.uint16, copy=False)


def _eight_bit(deep: NDArray[np.uint16]) -> Image.Image:
    """Samples divided by 257 and rounded to the nearest, without leaving 16 bits."""
    rounded = np.minimum(deep, 65535 - 128)
    rounded += 128
    rounded //= 257
    return Image.fromarray(rounded.astype(np.uint8))


def _split(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """Colour as L, RGB or CMYK, and alpha where there is any."""
    if image.mode in ("I", "F"):
        raise MalformedImage("32-bit samples, whose range is unknown; expected 8 or 16 bits")
    grey = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data:
        image = image.convert("LA" if grey else "RGBA")
        return image.convert("L" if grey else "RGB"), image.getchannel("A")
    return (image if image.mode == "CMYK" else image.convert("L" if grey else "RGB")), None


def _to_srgb(image: Image.Image, profile: bytes | None, notes: list[str]) -> Image.Image:
    if profile:
        try:
            embedded = ImageCms.getOpenProfile(io.BytesIO(profile))
            if not ImageCms.getProfileDescription(embedded).startswith("sRGB"):
                if image.mode == "L":
                    converted = _grey_to_srgb(image, embedded)
                else:
                    converted = _converted(image, embedded)
                notes.append("profile converted to sRGB")
                return converted
        except (ImageCms.PyCMSError, OSError, ValueError) as error:
            notes.append(f"profile ignored ({str(error).strip() or 'unreadable'})")
    elif image.mode == "CMYK":
        notes.append("CMYK without a profile")
    return image if image.mode == "RGB" else image.convert("RGB")


def _grey_to_srgb(image: Image.Image, embedded: ImageCms.ImageCmsProfile) -> Image.Image:
    """Level by level: 256 of them need no shortcut, and Little CMS's is 10 levels off in the dark.

    A profile of a colour picture fits a grey one: grey is R = G = B in it.
    """
    ramp = Image.frombytes("L", (256, 1), bytes(range(256)))
    if embedded.profile.xcolor_space.strip() == "RGB":
        ramp = ramp.convert("RGB")
    table = np.asarray(_converted(ramp, embedded, ImageCms.Flags.NOOPTIMIZE))[0]
    return Image.fromarray(table[np.asarray(image)])


def _converted(
    image: Image.Image,
    embedded: ImageCms.ImageCmsProfile,
    flags: ImageCms.Flags = ImageCms.Flags.NONE,
) -> Image.Image:
    converted = ImageCms.profileToProfile(
        image,
        embedded,
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION | flags,
    )
    if converted is None:  # only with inPlace, which is not asked for
        raise ValueError("no result")
    return converted
