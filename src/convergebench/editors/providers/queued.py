"""Editors behind a queue, as BFL, fal and Replicate have them: what they are sent and tell.

What a model calls its arguments is data: the `adapter` table of its catalogue entry is a `Form`.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, ValidationError

from convergebench.cycle import Record
from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.editors.providers.family import Opened, mislabelled
from convergebench.editors.providers.polling import FAR, NEAR, Clock, Task, brought, collect
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorNoImage,
    SettingsError,
    explain,
)
from convergebench.wire import Secret, is_near
from convergebench.wording import counted

Pictures = list[tuple[bytes, str]]
"""Bytes and MIME type of each."""


class Form(Record):
    """How a model wants to be asked: the `adapter` table of its catalogue entry.

    Attributes:
        path: What the provider calls it, where that is not its id.
        pictures: Field of the pictures.
        many: `one` picture; a `list` of them; or `numbered` fields (`x`, `x_2`, `x_3` …).
        most: How many pictures it takes.
        size: `pixels`: fields `width` and `height`; `object`: both in one field; `ratio`: only the
            ratio (and a resolution by name) can be asked for; `none`: it is pinned or decides.
        size_field: Field of the object.
        ratio_field: Field of the ratio.
        resolution_field: Field of the resolution.
        resolutions: The resolution's name at 1K, 2K and 4K; empty where none can be named.
        format_field: Field of the file format; empty where none can be asked for.
        seed_field: Field of the seed.
    """

    path: str = ""
    pictures: str
    many: Literal["one", "list", "numbered"] = "list"
    most: int = 1
    size: Literal["pixels", "object", "ratio", "none"]
    size_field: str = "image_size"
    ratio_field: str = "aspect_ratio"
    resolution_field: str = "resolution"
    resolutions: dict[str, str] = Field(default_factory=dict)
    format_field: str = "output_format"
    seed_field: str = "seed"

    @classmethod
    def of(cls, opened: Opened) -> Form:
        """The form of a model. Raises SettingsError."""
        try:
            return cls.model_validate(opened.model.adapter)
        except ValidationError as error:
            raise SettingsError(f"{opened.name}: the adapter table: {explain(error)}") from None

    def fields(self, opened: Opened, request: EditRequest) -> tuple[dict[str, Any], str | None]:
        """Everything that is sent besides prompt and pictures, and the size as words."""
        model = opened.model
        sent: dict[str, Any] = {**model.pins, **opened.options}
        size = opened.size(request)
        words = str(sent[self.ratio_field]) if self.ratio_field in sent else None
        if size is not None and self.size == "ratio":
            sent[self.ratio_field] = size.ratio
            words = f"{size.ratio} {size.resolution}"
            if self.resolutions:
                sent[self.resolution_field] = self.resolutions[size.resolution]
        elif size is not None and self.size != "none":
            sides = {"width": size.width, "height": size.height}
            sent |= sides if self.size == "pixels" else {self.size_field: sides}
            words = size.text()
        if model.format and self.format_field:
            sent[self.format_field] = model.format
        if model.seeds and request.seed is not None:
            sent[self.seed_field] = request.seed
        return sent, words

    def attached(self, pictures: list[str]) -> dict[str, Any]:
        """The pictures in the fields they go in. Raises EditorFailed when there are too many."""
        if len(pictures) > self.most:
            raise EditorFailed(
                f"takes {counted(self.most, 'picture')} at most, got {len(pictures)}"
            )
        if self.many == "list":
            return {self.pictures: pictures}
        names = [self.pictures, *(f"{self.pictures}_{n}" for n in range(2, self.most + 1))]
        return dict(zip(names, pictures, strict=False))


@dataclass(frozen=True)
class Finished:
    """A task that ended well: where its picture is, and what was told along with it.

    Attributes:
        address: Of the picture, or the picture itself as a data URI; empty where there is none.
        told: Request id, model, usage, cost and so on.
        declared: What the provider says the picture's format is; empty where it says nothing.
        words: What it said instead of a picture.
    """

    address: str
    told: EditReply
    declared: str = ""
    words: str = ""


class QueueEditor(ABC):
    """What BFL, fal and Replicate have in common. Safe to use from several threads."""

    VERSION: ClassVar[str]

    def __init__(self, opened: Opened) -> None:
        self._opened: Final = opened
        self._form: Final = Form.of(opened)
        self._wire: Final = opened.wire(self.headers(opened.key) if opened.key else {})
        self._pace: Final = NEAR if is_near(opened.base) else FAR

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        return self._opened.spec

    @staticmethod
    @abstractmethod
    def headers(key: Secret) -> dict[str, str]:
        """What every API call carries."""

    @abstractmethod
    def body(self, prompt: str, fields: Mapping[str, Any], pictures: Pictures) -> Any:
        """What is submitted."""

    @abstractmethod
    def begin(self, body: Any, timeout: float) -> Task:
        """Submit once; the task with all that is needed to ask after it, its `id` among it."""

    @abstractmethod
    def look(self, task: Task, request: EditRequest, timeout: float) -> Finished | None:
        """Ask after a task once; None while it is not done."""

    def recorded(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that really go over the wire."""
        return dict(fields)

    def known(self, task: Task) -> EditReply:
        """What is known of a task without asking after it."""
        return EditReply(b"", request_id=str(task.get("id")))

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit, or collect the one that was begun."""
        opened = self._opened
        if opened.lacks or opened.key is None:
            raise AccountBlocked(opened.lacks)
        clock = Clock(request.deadline)
        fields, words = self._form.fields(opened, request)
        pictures = opened.pictures(request)
        sent = EditReply(
            b"",
            parameters=self.recorded(fields),
            size=words,
            format=opened.model.format or None,
            caveats=(*opened.spec.caveats, *(text for _, _, more in pictures for text in more)),
        )

        def begin(timeout: float) -> Task:
            body = self.body(request.prompt, fields, [(data, mime) for data, mime, _ in pictures])
            return self.begin(body, timeout)

        try:
            task, done = collect(
                request,
                what=self._wire.what,
                pace=self._pace,
                clock=clock,
                begin=begin,
                look=lambda task, timeout: self.look(task, request, timeout),
                known=self.known,
            )
            data = self._picture(done, task, clock)
        except EditorError as error:
            error.args = (self._wire.scrub(str(error)),)
            error.told = _joined(sent, error.told or EditReply(b""))
            raise
        label = mislabelled(data, done.declared, opened.model.format)
        return replace(_joined(sent, done.told, label), data=data)

    def _picture(self, done: Finished, task: Task, clock: Clock) -> bytes:
        if not done.address:
            said = f": {done.words}" if done.words else ""
            raise EditorNoImage(
                f"{self._wire.what} answered without a picture{said}", told=done.told
            )
        if done.address.startswith("data:"):
            try:
                return base64.b64decode(done.address.partition(",")[2], validate=True)
            except binascii.Error:
                raise EditorNoImage(
                    f"{self._wire.what} answered with a data URI that is none", told=done.told
                ) from None
        what, near = self._wire.what, is_near(self._opened.base)
        return brought(done.address, what=what, near=near, clock=clock, told=done.told, task=task)


def _joined(sent: EditReply, told: EditReply, extra: tuple[str, ...] = ()) -> EditReply:
    """What was sent together with what was told."""
    return replace(
        told,
        parameters={**sent.parameters, **told.parameters},
        size=sent.size,
        format=sent.format,
        caveats=tuple(dict.fromkeys((*sent.caveats, *told.caveats, *extra))),
    )
