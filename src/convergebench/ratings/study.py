"""A rating study on disk: what is asked, of whom, in which order. Written once, at `create`.

    study.json        this record
    images/ID.png     the pictures as shown; their names say nothing
    links.csv         the participants' links (secret, mode 0600)
    admin.txt         the secret of the admin page (mode 0600)
    server.key        what the server signs with (mode 0600)
    answers.sqlite    what people answered

`study.json` holds no secret: of tokens it has the SHA-256 alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from convergebench.cycle import Name, Record
from convergebench.errors import StoreDamaged, StoreError, explain
from convergebench.ratings.design import MOST_TITLE, Design, Question, Scale

FORMAT: Final = 1
FILE: Final = "study.json"
IMAGES: Final = "images"

REFERENCE: Final = "(reference)"
BROKEN: Final = "(broken)"
OTHER: Final = "(other picture)"
SPECIAL: Final = (REFERENCE, BROKEN, OTHER)
"""What a slot of a practice or attention item may show instead of a method's picture."""

Kind = Literal["practice", "item", "repeat", "attention"]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PictureId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Method(Record):
    """One way a picture was made: an editor, with the prompt where it reads one."""

    label: str
    editor: str
    cycle: str
    prompt: str = ""


class Shot(Record):
    """One method's picture of one image: the view shown, and the frame that it is a view of."""

    picture: PictureId
    run: str
    chain: str
    step: int
    frame: Digest


class Image(Record):
    """One image of the study, with all pictures of it; a `practice` one is not rated in earnest."""

    source: str
    scene: str = ""
    damage: str = ""
    width: int
    height: int
    input: PictureId | None = None
    reference: PictureId | None = None
    broken: PictureId | None = None
    shots: dict[str, Shot]
    practice: bool = False


class Item(Record):
    """One page of one participant: an image, and what is in its slots.

    A slot holds a method's label or one of `SPECIAL`; of OTHER, `other` names the image.
    """

    kind: Kind
    image: int
    slots: Annotated[tuple[str, ...], Field(min_length=1)]
    other: int | None = None


class Participant(Record):
    """One participant: the public id, the hash of the link's token, and the session."""

    id: Name
    token_sha256: Digest
    items: tuple[Item, ...]


class Study(Record):
    """`study.json`. Images and participants are named by their place in these lists."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    format: int = FORMAT
    name: Name
    title: Annotated[str, Field(min_length=1, max_length=MOST_TITLE)]
    design: Design
    questions: tuple[Question, ...]
    scale: Scale = Scale()
    ties: bool = False
    shows: tuple[Literal["input", "reference"], ...] = ("input", "reference")
    instructions: str
    consent: str
    completion: Literal["none", "same", "each"] = "none"
    code: str = ""
    seed: int
    created: str
    base_url: str = ""
    runs: tuple[str, ...]
    methods: Annotated[tuple[Method, ...], Field(min_length=1)]
    images: Annotated[tuple[Image, ...], Field(min_length=1)]
    pictures: dict[PictureId, Digest]
    participants: Annotated[tuple[Participant, ...], Field(min_length=1)]
    admin_sha256: Digest

    @model_validator(mode="after")
    def _sound(self) -> Self:
        known = {method.label for method in self.methods} | set(SPECIAL)
        for participant in self.participants:
            for item in participant.items:
                if not (0 <= item.image < len(self.images) and known >= set(item.slots)):
                    raise ValueError(f"{participant.id} has an item that the study does not know")
        return self

    @cached_property
    def by_token(self) -> dict[str, int]:
        """The participants' places by the hash of their token."""
        return {p.token_sha256: place for place, p in enumerate(self.participants)}

    @cached_property
    def plan(self) -> str:
        """The hash of all that gives answers their meaning; texts and links may be changed."""
        told = self.model_dump(
            mode="json",
            include={
                "name",
                "created",
                "design",
                "scale",
                "ties",
                "methods",
                "images",
                "participants",
            },
            exclude={
                "participants": {"__all__": {"token_sha256"}},
                "scale": {"low_label", "high_label"},
            },
        )
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def beside(self, image: Image) -> dict[str, str]:
        """The pictures shown beside the slots of an image's pages, by their role."""
        there = {"input": image.input, "reference": image.reference}
        return {role: found for role in self.shows if (found := there[role]) is not None}

    def picture_in(self, item: Item, slot: str) -> str:
        """The picture that a slot of an item shows."""
        image = self.images[item.image]
        if slot == OTHER and item.other is not None:
            image = self.images[item.other]
            return image.reference or image.input or next(iter(image.shots.values())).picture
        found = {REFERENCE: image.reference or image.input, BROKEN: image.broken}.get(slot)
        if found is None and slot in image.shots:
            found = image.shots[slot].picture
        if found is None:
            raise StoreDamaged(f"study {self.name}: {image.source} has no picture of {slot}")
        return found


def is_study(path: Path) -> bool:
    """Whether a path is the folder of a rating study."""
    return (path / FILE).is_file()


def open_study(folder: str | os.PathLike[str]) -> Study:
    """Read a study's record. Raises StoreError, StoreDamaged."""
    path = Path(folder) / FILE
    try:
        study = Study.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"{folder} is not a rating study (no {FILE}). Make one with: convergebench rate create "
            "RUN STUDY --participants 20"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot read {path} ({error.strerror})") from error
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":  # whose explanation quotes the whole file
            raise StoreDamaged(f"{path} is no JSON any more. Restore it from a copy.") from error
        raise StoreDamaged(f"{path}: {explain(error)}") from error
    if study.format != FORMAT:
        raise StoreError(f"{folder} has format {study.format}, this version reads {FORMAT}")
    return study
