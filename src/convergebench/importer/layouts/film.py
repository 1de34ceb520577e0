"""A film whose frames are steps: a video, or an animated GIF, WebP or PNG.

Every frame is written as PNG the moment it is decoded. A video's frames were compressed with loss
after the editor returned them, and a GIF's were reduced to a palette: every step says so.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from convergebench.chain import Call
from convergebench.cycle import CYCLE_EDITS, CycleKind
from convergebench.errors import ImportProblem
from convergebench.frame import MAX_PIXELS
from convergebench.importer.found import (
    IMAGES,
    Finds,
    FoundCycle,
    FoundFrame,
    Layout,
    Look,
    Place,
    Track,
    Wishes,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VIDEOS: Final = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi")
ANIMATIONS: Final = (".gif", ".webp", ".apng", ".png")
FRAME_LIMIT: Final = 20_000
"""Most frames that are taken of one film."""
_TOLD_BY_OTHERS: Final = frozenset(
    (*IMAGES, ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".tar", ".tgz", ".gz", ".zst", ".zip")
)
"""Endings of pictures, tables and archives: a folder with those beside films is no folder of films.

Other files (a README, a thumbnail cache) tell nothing.
"""
SPARE_DISK: Final = 256 << 20
"""Bytes that unpacking leaves free on the disk."""

_SIGNS: Final = {
    ".avi": ((0, b"RIFF"),),
    ".webm": ((0, b"\x1a\x45\xdf\xa3"),),
    ".mkv": ((0, b"\x1a\x45\xdf\xa3"),),
}
_BOXES: Final = tuple((4, box) for box in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"))


@dataclass
class Film:
    """What was seen while a film was read."""

    name: str
    path: Path
    taken: int = 0
    equal: int = 0
    runs: list[int] = field(default_factory=list)
    short: str = ""


def _recognise(look: Look) -> str:
    if not look.files:
        return ""
    films = [path for path in look.files if path.lower().endswith(VIDEOS)]
    moving = [path for path in look.files if path.lower().endswith(ANIMATIONS)]
    other = [p for p in look.files if os.path.splitext(p)[1].lower() in _TOLD_BY_OTHERS]
    if not films + moving or any(path not in films + moving for path in other):
        return ""
    # Pictures are films only when they move; the first one tells, to open no more than one.
    if moving and not _moves(Path(look.place(moving[0]).path)):
        return ""
    found = sorted(films + moving)
    return f"a film ({found[0]})" if len(found) == 1 else f"{len(found)} films"


def is_still(path: Path) -> bool:
    """Whether a file is a picture that does not move."""
    return _animated(path) is False


def _moves(path: Path) -> bool:
    return _animated(path) is True


def _animated(path: Path) -> bool | None:
    """Whether a picture moves; None when it is none."""
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path) as picture:
            return bool(getattr(picture, "is_animated", False))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _read(look: Look, wishes: Wishes) -> Finds:
    if wishes.every < 1:
        raise ImportProblem(f"--every {wishes.every}: expected 1 or more")
    films = [path for path in look.files if path.lower().endswith(VIDEOS + ANIMATIONS)]
    if not films:
        raise ImportProblem(
            f"{look.root.name} is no film: expected a file or a folder of files ending in "
            f"{', '.join(VIDEOS + ANIMATIONS)}"
        )
    kind: CycleKind = wishes.kind or "replicate"
    root = look.root.resolve()
    editor = wishes.editor or (root.parent.name if look.is_file else root.name) or "film"
    cycle = wishes.cycle or kind
    finds = Finds(unread=[path for path in look.files if path not in films])
    if not wishes.editor:
        finds.notes.append(
            f"No film says who made it: the editor's name is the folder's ({editor}). "
            "--editor NAME says otherwise."
        )
    if not wishes.kind:
        finds.notes.append("A film does not say what was asked: taken as replicate (--kind).")
    if wishes.source and len(films) > 1:
        finds.notes.append(f"{len(films)} films are {len(films)} sources: --source is not used.")
    prompts: tuple[str | None, ...] = wishes.prompts or (None,) * CYCLE_EDITS.get(kind, 1)
    finds.cycles[cycle] = FoundCycle(kind, prompts)
    spool = Path(tempfile.mkdtemp(prefix="convergebench-film-"))
    finds.cleanup = lambda: shutil.rmtree(spool, ignore_errors=True)
    try:
        sources = _sources(films, wishes)
        owners = _owners(films, wishes)
        if owners:
            finds.notes = [
                "Folders are taken as editors and films as sources, because several folders have "
                "films of the same name; --editor NAME says that they are all of one editor.",
                *finds.notes[0 if wishes.editor else 1 :],
            ]
        for number, name in enumerate(films):
            source = os.path.basename(sources[name]) if owners else sources[name]
            owner = owners.get(name) or editor
            film = Film(name, Path(look.place(name).path))
            folder = spool / f"{number:05d}"
            folder.mkdir()
            finds.frames += _frames(film, Track(source, cycle, owner), wishes.every, folder)
            finds.notes += _notes(film, wishes.every)
    except BaseException:
        finds.cleanup()
        raise
    return finds


def _sources(films: list[str], wishes: Wishes) -> dict[str, str]:
    """A source's name for each film: the film's own, with its ending where two are alike."""
    if len(films) == 1:
        return {films[0]: wishes.source or Path(films[0]).stem}
    stems = [os.path.splitext(path)[0] for path in films]
    return {p: stem if stems.count(stem) == 1 else p for p, stem in zip(films, stems, strict=True)}


def _owners(films: list[str], wishes: Wishes) -> dict[str, str]:
    """An editor for each film, where several folders have films of the same name."""
    stems = [Path(path).stem for path in films]
    folders = {path: os.path.dirname(path).replace("/", "_") for path in films}
    alike = {(folders[path], stem) for path, stem in zip(films, stems, strict=True)}
    known = [stem for folder, stem in alike if folder]
    return folders if not wishes.editor and len(set(known)) < len(known) else {}


def _frames(film: Film, track: Track, every: int, folder: Path) -> list[FoundFrame]:
    """Every n-th frame of a film, written as it is decoded."""
    found = []
    moving = film.path.suffix.lower() in ANIMATIONS
    before: NDArray[np.uint8] | None = None
    for number, pixels, data in _animation(film, every) if moving else _video(film, every):
        path = folder / f"{number:07d}.png"
        if shutil.disk_usage(folder).free < len(data) + SPARE_DISK:
            raise ImportProblem(f"no room for the frames of {film.name} in {folder}: free some")
        path.write_bytes(data)
        told = f"from {film.name}, frame {number}: lossy, not the bytes the editor returned"
        place = Place(f"{film.name}#frame={number}", path)
        call = Call(caveats=(told,) if film.taken else ())
        found.append(FoundFrame(track, film.taken, place, call=call, notes=(told,)))
        same = (
            before is not None and before.shape == pixels.shape and bool((before == pixels).all())
        )
        film.equal += same
        if same:
            film.runs[-1] += 1
        else:
            film.runs.append(1)
        before = pixels
        film.taken += 1
        if film.taken > FRAME_LIMIT:
            raise ImportProblem(
                f"{film.name} has more than {FRAME_LIMIT:,} frames: take every n-th with --every N"
            )
    if len(found) < 2:
        why = f" ({film.short})" if film.short else ""
        raise ImportProblem(
            f"{film.name}: {len(found)} frames could be read with --every {every}{why}; a chain "
            "needs at least two, the source and a step"
        )
    return found


def _animation(film: Film, every: int) -> Iterator[tuple[int, Any, bytes]]:
    """Frames of a GIF, WebP or PNG as they are shown, not the differences that are stored."""
    import io

    import numpy as np
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(film.path) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise ImportProblem(f"{film.name}: frames of {picture.size} are beyond the limit")
            for number in itertools.count(0, every):
                try:
                    picture.seek(number)
                    mode = "RGBA" if picture.has_transparency_data else "RGB"
                    frame = picture.convert(mode)
                except EOFError:
                    film.short = _missing(number, getattr(picture, "n_frames", 0)) or _unended(film)
                    return
                except (OSError, ValueError, SyntaxError, IndexError) as error:
                    film.short = f"frame {number} cannot be read: {error}"
                    return
                out = io.BytesIO()
                profile = picture.info.get("icc_profile")
                frame.save(out, "PNG", compress_level=1, icc_profile=profile)
                yield number, np.asarray(frame), out.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ImportProblem(f"{film.name} is not a readable film ({error})") from error


def _video(film: Film, every: int) -> Iterator[tuple[int, Any, bytes]]:
    """Frames of a video. Only what begins like a film is given to the decoder."""
    # What the decoder has to say of a damaged film comes out as one sentence, not as its log.
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    import cv2

    _check_sign(film)
    level = cv2.utils.logging.setLogLevel(0)
    # FFmpeg by name: other backends would take a `%d` in the name for a row of files.
    capture = cv2.VideoCapture(str(film.path), cv2.CAP_FFMPEG)
    try:
        if not capture.isOpened():
            raise ImportProblem(f"{film.name} is not a readable film, or it is damaged")
        meant = int(max(0, capture.get(cv2.CAP_PROP_FRAME_COUNT)))
        if (
            capture.get(cv2.CAP_PROP_FRAME_WIDTH) * capture.get(cv2.CAP_PROP_FRAME_HEIGHT)
            > MAX_PIXELS
        ):
            raise ImportProblem(f"{film.name}: its frames are beyond the limit of {MAX_PIXELS:,}")
        number = 0
        while capture.grab():
            if number % every == 0:
                good, pixels = capture.retrieve()
                if not good:
                    film.short = f"frame {number} cannot be read"
                    return
                _, data = cv2.imencode(".png", pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])
                yield number, pixels, data.tobytes()
            number += 1
        film.short = _missing(number, meant)
    finally:
        capture.release()
        cv2.utils.logging.setLogLevel(level)


def _missing(read: int, meant: int) -> str:
    return f"{meant} frames are announced and {read} could be read" if read < meant else ""


def _unended(film: Film) -> str:
    """Whether a GIF lacks its end mark; Pillow does not tell."""
    if film.path.suffix.lower() != ".gif":
        return ""
    with open(film.path, "rb") as file:
        file.seek(-min(64, film.path.stat().st_size), os.SEEK_END)
        return "" if file.read().rstrip(b"\0").endswith(b";") else "its end mark is missing"


def _check_sign(film: Film) -> None:
    """Refuse a file that only its name makes a film: playlists can name any other file."""
    ending = film.path.suffix.lower()
    try:
        with open(film.path, "rb") as file:
            head = file.read(12)
    except OSError as error:
        raise ImportProblem(f"cannot read {film.name} ({error.strerror})") from error
    signs = _SIGNS.get(ending, _BOXES)
    if not any(head[at : at + len(sign)] == sign for at, sign in signs):
        raise ImportProblem(f"{film.name} is not a readable film: it does not begin like {ending}")


def _notes(film: Film, every: int) -> list[str]:
    notes = [f"{film.name}: {film.taken} frames of a film: lossy, not what the editor returned."]
    if film.short:
        notes.append(
            f"{film.name} is cut short or damaged: {film.short}. What there is, is imported."
        )
    if film.equal:
        told = f"{film.name}: {film.equal} of {film.taken} frames equal the one before exactly"
        length = film.runs[0]
        if length > 1 and all(run == length for run in film.runs):
            told += f"; each picture is shown {length} times, so --every {every * length} takes"
            told += " each once."
        else:
            told += ". If each step is shown several times, --every N takes every N-th frame."
        notes.append(told)
    return notes


LAYOUT: Final = Layout(
    name="film",
    summary="a video, GIF, animated WebP or PNG whose frames are steps; or a folder of only those",
    recognise=_recognise,
    read=_read,
)
