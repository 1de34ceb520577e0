"""`folder:path`: frames that were generated elsewhere. Nothing is called."""

from __future__ import annotations

import os
import re
import string
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from convergebench.chain import ChainKey
from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.own.terms import Terms, read_terms, refuse_unknown
from convergebench.errors import EditorFailed, EditorNoImage, SettingsError
from convergebench.frame import sha256
from convergebench.registry import PluginName
from convergebench.wording import in_order

VERSION: Final = "1"
DEFAULT: Final = "{source}/{cycle}/{step:03d}.png"
NUMBERS: Final = ("step", "repeat", "phrasing")
SETTINGS: Final = ("seed", "temperature", "resolution", "session")
PLACES: Final = ("source", "cycle", *NUMBERS, *SETTINGS)
ENDINGS: Final = (
    *(".png", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".bmp", ".tif", ".tiff"),
    *(".PNG", ".JPG", ".JPEG", ".WEBP", ".TIF", ".TIFF"),
)
ANYWHERE: Final = "**/"
"""How a pattern begins whose files may be in any folder below."""

LONGEST: Final = 60
"""Letters that the name of a source may have."""

CAVEAT: Final = "made elsewhere: the frames were read from a folder"


class Pattern:
    """Where the frame of a step is, as `{source}/{cycle}/{step:03d}.png`."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.anywhere: Final = text.startswith(ANYWHERE)
        self.below: Final = text.removeprefix(ANYWHERE)
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise SettingsError(f"pattern {text!r}: {error}.") from None
        names = [name for _, name, _, _ in parts if name is not None]
        unknown = [name for name in names if name not in PLACES]
        if unknown:
            raise SettingsError(
                f"pattern {text!r}: there is no placeholder {{{unknown[0]}}}. There are "
                f"{', '.join(f'{{{name}}}' for name in PLACES)}."
            )
        for _, name, form, conversion in parts:
            number = re.fullmatch(r"(0?\d{1,2})?d?", form or "") and name in NUMBERS
            if name is not None and (conversion or (form and not number)):
                raise SettingsError(
                    f"pattern {text!r}: {{{name}{f'!{conversion}' if conversion else ''}:{form}}} "
                    "is not understood. Numbers may have a width, as in {step:03d}."
                )
        if not {"step", "source"} & set(names):
            raise SettingsError(
                f"pattern {text!r} has neither {{step}} nor {{source}}: every frame would be the "
                "same. Write {source}.png for pictures named like the sources, one step each."
            )
        if {"", ".", "..", "**"} & set(self.below.split("/")) or "\\" in text:
            raise SettingsError(
                f"pattern {text!r} must stay inside the folder: no leading /, no empty part, "
                "no . or .. and no backslash. **/ may be its beginning: in any folder below."
            )
        self.names: Final = frozenset(names)

    def path(self, key: ChainKey | None, step: int) -> str:
        """The frame's place in the folder. Raises EditorFailed."""
        if step > 1 and "step" not in self.names:
            raise EditorFailed(
                f"the pattern {self.text!r} has no {{step}}, so that there is a first step and no "
                f"step {step}"
            )
        values: dict[str, str | int] = {"step": step}
        if key is not None:
            settings = key.settings
            warmth = settings.temperature
            values |= {
                "source": key.source,
                "cycle": key.cycle.partition("@")[0],
                "repeat": key.repeat,
                "phrasing": settings.phrasing,
                "seed": settings.seed,
                "temperature": "default" if warmth is None else f"{warmth:g}",
                "resolution": settings.resolution,
                "session": settings.session,
            }
            for name in ("repeat", "phrasing"):
                if values[name] and name not in self.names:
                    raise EditorFailed(
                        f"this chain has {name} {values[name]}, but the pattern {self.text!r} has "
                        f"no {{{name}}}, so that it would read the frames of another chain"
                    )
        lacking = sorted(self.names - values.keys())
        if lacking:
            raise EditorNoImage(f"the pattern {self.text!r} needs a chain's {', '.join(lacking)}")
        for name in self.names:
            value = str(values[name])
            if value in ("", ".", "..") or re.search(r"[/\\\0]", value):
                raise EditorFailed(f"the {name} {value!r} cannot be part of a file's name")
        return self.below.format(**values)


class FolderEditor:
    """Reads each step's frame from a folder."""

    def __init__(self, spec: EditorSpec, root: Path, pattern: Pattern) -> None:
        self.spec: Final = spec
        self._root: Final = root
        self._pattern: Final = pattern
        self._closed: tuple[str, ...] = ()

    def edit(self, request: EditRequest) -> EditReply:
        """The bytes of the frame, as they are."""
        self._check_before(request)
        place = self._pattern.path(request.key, request.step)
        path = self._find(place)
        if path is None:
            raise EditorNoImage(self._missing(place, request.key))
        return EditReply(
            _read(path),
            parameters={"file": path.relative_to(self._root).as_posix()},
            cost=0.0,
            caveats=self.spec.caveats,
        )

    def foreseen(self, key: ChainKey, step: int) -> str:
        """What will be wrong with a step, told before a run from the file's header; or nothing."""
        from PIL import Image, UnidentifiedImageError

        try:
            place = self._pattern.path(key, step)
            path = self._find(place)
            if path is None:
                return self._missing(place, key)
            with Image.open(path):
                return ""
        except (EditorFailed, EditorNoImage) as error:
            return str(error)
        except UnidentifiedImageError:
            return f"{path} is no image of a known type"
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            told = getattr(error, "strerror", None) or str(error)
            return f"{path} cannot be read: {told}"

    def _missing(self, place: str, key: ChainKey | None) -> str:
        """That a frame is not there, with the pattern that would have found one like it."""
        told = f"there is no {place} in {self._root} (nor with another ending)"
        if self._pattern.anywhere and self._closed:
            told += f"; these folders cannot be read: {in_order(self._closed)}"
        if key is not None and not re.search(r"[/\\\0]", key.source) and key.source.strip("."):
            flat = "{source}.png"
            with suppress(EditorFailed):
                if self._pattern.text != flat and self._find(f"{key.source}.png"):
                    told += f". There is one of the source's name: add ,pattern={flat}"
        return told

    def _check_before(self, request: EditRequest) -> None:
        """Raise EditorFailed if the frame before is no longer the one this chain has read."""
        if request.step == 1 or not request.history:
            return
        place = self._pattern.path(request.key, request.step - 1)
        path = self._find(place)
        before = request.history[-1].load()
        if path is not None and sha256(_read(path)) != before.digest:
            raise EditorFailed(
                f"{path.relative_to(self._root)} has changed since this chain read it: frames of "
                "two generations cannot be mixed. Use another run directory"
            )

    def _find(self, place: str) -> Path | None:
        """The file of that name, or the one like it with another ending. Raises EditorFailed."""
        try:
            return self._found_below(place) if self._pattern.anywhere else self._found_at(place)
        except OSError as error:
            told = error.filename or self._root
            raise EditorFailed(f"{told} cannot be read: {error.strerror}") from None

    def _found_at(self, place: str) -> Path | None:
        """The file at a place, or the one like it with another ending."""
        exact = self._root / place
        stem = exact.stem if exact.suffix.lower() in ENDINGS else exact.name
        others = [exact.with_name(stem + ending) for ending in ENDINGS]
        found = [exact] if exact.is_file() else [path for path in others if path.is_file()]
        if not found and exact.parent.is_dir():  # sources are renamed where theirs is no legal name
            found = [
                path
                for path in sorted(exact.parent.iterdir())
                if path.suffix.lower() in ENDINGS
                and stem in source_names(path.stem)
                and path.is_file()
            ]
        # By what they are, not by name: to some file systems .jpg and .JPG are one.
        if len({(path.stat().st_dev, path.stat().st_ino) for path in found}) > 1:
            names = " and ".join(path.name for path in found)
            raise EditorFailed(f"{exact.parent}: {names} are both there, expected one of them")
        return self._inside(found[0], place) if found else None

    def _found_below(self, place: str) -> Path | None:
        """The only file of that name in any folder, or of that name behind its folders'."""
        head, _, name = place.rpartition("/")
        stem = name[: -len(ending)] if (ending := _ending(name)) else name
        wanted = f"{head}/{_plain(stem)}" if head else _plain(stem)
        found = self._below.get(wanted, [])
        found = [path for path in found if len(found) > 1 and path.stem == stem] or found
        if len(found) > 1:
            names = " and ".join(str(path.relative_to(self._root)) for path in found[:2])
            raise EditorFailed(f"{self._root}: {names} are both there, expected one of them")
        return self._inside(found[0], place) if found else None

    @cached_property
    def _below(self) -> dict[str, list[Path]]:
        """The pictures in all folders: by name, by name behind the folders', and by both."""
        found: dict[str, list[Path]] = {}
        closed: list[OSError] = []
        walk = os.walk(self._root, onerror=closed.append)
        paths = [Path(folder, name) for folder, _, names in walk for name in names]
        self._closed = tuple(f"{error.filename} ({error.strerror})" for error in closed)
        for path in sorted(paths):
            if path.suffix.lower() in ENDINGS and path.is_file():
                *folders, _ = path.relative_to(self._root).parts
                own = source_names(path.stem)
                names = own | source_names("_".join([*folders, path.stem]))
                names |= {
                    "/".join([*folders[at:], name]) for at in range(len(folders)) for name in own
                }
                for name in names:
                    found.setdefault(name, []).append(path)
        return found

    def _inside(self, path: Path, place: str) -> Path:
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise EditorFailed(f"{place} is a link that leads out of {self._root}")
        return path


def _ending(name: str) -> str:
    """The ending of a picture's name; empty if it has none."""
    ending = Path(name).suffix
    return ending if ending.lower() in ENDINGS else ""


def source_names(called: str) -> set[str]:
    """What a source may be named of which the file is called so, as imports and suites do it.

    A name of which nothing is legal, or that another source has, ends with a hash of what it was.
    """
    plain = _plain(called)
    digest = sha256(called.encode("utf-8", "surrogateescape"))
    hashed = f"{(plain or 'source')[: LONGEST - 7].rstrip('-._')}-{digest[:6]}"
    return {plain, hashed} if plain else {hashed}


def _plain(name: str) -> str:
    """A name as sources have it: lower case, few signs."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EditorFailed(f"{path} cannot be read: {error.strerror}") from None


def open_editor(model: str = "", **options: str) -> FolderEditor:
    """Frames that were generated elsewhere; nothing is called: folder:path.

    Raises:
        SettingsError: There is no such folder, or the pattern is none.
    """
    name = str(PluginName("folder", model, tuple(sorted(options.items()))))
    terms, rest = read_terms(name, options, Terms(price=0.0, seconds=0.01, concurrency=None))
    refuse_unknown(f"folder:{model}", rest, ("pattern", "price", "seconds", "concurrency"))
    if not model:
        raise SettingsError(f"editor {name!r} has no folder. Write for example folder:frames.")
    root = Path(model).expanduser()
    if not root.is_dir():
        raise SettingsError(
            f"editor {name!r}: there is no folder {root.absolute()}. The path is taken from the "
            "folder that the command is given in."
        )
    pattern = Pattern(rest.get("pattern", DEFAULT))
    spec = EditorSpec(
        name=name,
        version=VERSION,
        description=f"frames from the folder {model}",
        concurrency=terms.concurrency,
        seconds=terms.seconds,
        price=terms.price,
        deterministic=True,
        caveats=(CAVEAT,),
        abilities=_abilities(pattern.names),
    )
    return FolderEditor(spec, root.absolute(), pattern)


def reads_prompts(name: PluginName) -> bool:
    """Whether it has frames for each prompt, as far as its pattern tells."""
    return "{cycle}" in dict(name.options).get("pattern", DEFAULT)


open_editor.reads_prompts = reads_prompts  # type: ignore[attr-defined]


def _abilities(names: frozenset[str]) -> Abilities:
    """A setting can vary if the pattern tells its frames apart; otherwise chains would mix."""
    return Abilities(
        seeds="seed" in names,
        temperature="temperature" in names,
        resolutions=("1K", "2K", "4K") if "resolution" in names else (),
        sessions=("stateless", "chat") if "session" in names else ("stateless",),
    )
