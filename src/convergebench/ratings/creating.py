"""Making a rating study: pictures chosen, views encoded, sessions planned, secrets drawn.

Everything wrong is named in one list before anything is written; the folder appears whole or not at
all.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from convergebench.disk import sync_directory
from convergebench.errors import InputError, StoreError, explain
from convergebench.ratings import links
from convergebench.ratings.assign import Wanted, session
from convergebench.ratings.choosing import Chosen, choose, listed
from convergebench.ratings.design import (
    CONSENT,
    DESIGNS,
    INSTRUCTIONS,
    MOST_QUESTION,
    MOST_SLOTS,
    MOST_TITLE,
    QUESTIONS,
    TITLE,
    Design,
    Question,
    Scale,
)
from convergebench.ratings.session import own_code
from convergebench.ratings.storage import Answers
from convergebench.ratings.study import FILE, IMAGES, Item, Participant, Study
from convergebench.ratings.views import Pictures, encoded, unreadable
from convergebench.source import Source
from convergebench.table import Table
from convergebench.wording import counted, shown

MOST_PARTICIPANTS: Final = 2_000
SECONDS: Final[dict[Design, int]] = {"absolute": 6, "single": 6, "pairs": 8, "labels": 8}
"""What a picture, or a pair, takes somebody who looks: a rule of thumb to plan with."""
HEAVY: Final = 40 * 10**6
"""Bytes of an image's pictures from which on a page is slow to load at home."""
SITTING: Final = 30
"""Minutes that Recommendation ITU-R BT.500 allows for one session."""


@dataclass(frozen=True)
class Created:
    """A new study: where it is, and what is in it."""

    folder: Path
    study: Study
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The study in a few lines."""
        study = self.study
        items = study.participants[0].items
        kinds = [item.kind for item in items]
        extra = ", ".join(
            f"{kinds.count(kind)} {word}"
            for kind, word in (
                ("practice", "to practise"),
                ("attention", "to check attention"),
                ("repeat", "shown twice"),
            )
            if kind in kinds
        )
        rated = sum(not image.practice for image in study.images)
        rows = [
            ("design", study.design),
            ("methods", shown((method.label for method in study.methods), most=8)),
            ("images", str(rated)),
            ("participants", str(len(study.participants))),
            ("pages each", f"{len(items)}{f' ({extra})' if extra else ''}"),
            ("minutes each", f"about {minutes_of(items, study.design):,}"),
            ("links", str(self.folder / links.LINKS)),
            *([("codes", str(self.folder / links.CODES))] if study.completion == "each" else []),
            ("admin secret", str(self.folder / links.ADMIN)),
        ]
        told = (*self.notes, f"Serve it with: convergebench rate serve {self.folder}")
        return Table(f"rating study {study.name}", ("what", "is"), rows, told)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; no secret is in it."""
        return {
            "folder": str(self.folder),
            "name": self.study.name,
            "design": self.study.design,
            "methods": [method.label for method in self.study.methods],
            "images": [image.source for image in self.study.images if not image.practice],
            "participants": [one.id for one in self.study.participants],
            "pages": len(self.study.participants[0].items),
            "minutes": minutes_of(self.study.participants[0].items, self.study.design),
            "links": str(self.folder / links.LINKS),
            "admin": str(self.folder / links.ADMIN),
            "notes": list(self.notes),
        }


def create(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    design: Design = "absolute",
    *,
    participants: int,
    methods: Sequence[str] | None = None,
    images: Sequence[str] | None = None,
    cycles: Sequence[str] | None = None,
    step: int | None = None,
    repeat: int = 0,
    per_participant: int | None = None,
    practice: int = 1,
    attention: int = 0,
    repeats: int = 0,
    seed: int = 0,
    name: str | None = None,
    title: str | None = None,
    instructions: str | None = None,
    consent: str | None = None,
    questions: dict[str, str] | None = None,
    scale: Scale | None = None,
    ties: bool = False,
    shows: Sequence[Literal["input", "reference"]] | None = None,
    code: str | None = None,
    base_url: str = links.LOCAL,
    observe: Callable[[int, int], None] | None = None,
) -> Created:
    """Make a rating study from the pictures of one or more runs.

    Args:
        runs: A run directory, or several.
        folder: Where the study is to be; it must not be there yet.
        design: `absolute`, `single`, `pairs` or `labels`.
        participants: How many links to make.
        methods: Labels, editors or prompts; None is all but controls.
        images: Sources; None is all that the methods were asked for.
        cycles: Only chains of these cycles.
        step: Which frame of the chains. None is 1 for restorations, else the last that all have.
        repeat: Which repeat of the chains.
        per_participant: Pages of each session that count; None is all.
        practice: Pages to practise on, with feedback.
        attention: Pages whose right answer is known, hidden among the others.
        repeats: Pages that come a second time.
        seed: Of the orders.
        name: What the study is called in tables; None takes the folder's name.
        title: The page's heading.
        instructions: What participants are told.
        consent: What they agree to.
        questions: Other words for the design's questions, by their id.
        scale: Other numbers than 0 to 5.
        ties: Whether "no difference" may be chosen.
        shows: What is shown beside the pictures; None is input and reference, and nothing where
            pictures are shown singly.
        code: A completion code for all, or `each` for one of everybody's own.
        base_url: Where the server will be reached; `serve` takes it for granted.
        observe: Told about progress, in pictures.

    Raises:
        InputError: Something asked for cannot be had; all such things are listed.
        StoreError: The folder is taken, or a run cannot be read.
    """
    folder, base = Path(folder), links.checked_base(base_url)
    _check_place(folder)
    if design not in DESIGNS:
        raise InputError(f"no design {design!r}. Known: {', '.join(DESIGNS)}.")
    given = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    chosen, problems = choose(
        given, methods=methods, images=images, cycles=cycles, step=step, repeat=repeat
    )
    held = _practice_images(chosen, practice)
    shown_at = {source.name: place for place, source in enumerate(chosen.images)}
    for source in held:
        shown_at.setdefault(source.name, len(shown_at))
    spare = [source for source in chosen.spare if source.name in shown_at]
    wanted = Wanted(
        design=design,
        methods=tuple(method.label for method in chosen.methods),
        images=len(chosen.images),
        practice=tuple(shown_at[source.name] for source in held),
        per_participant=per_participant,
        attention=attention,
        repeats=repeats,
        seed=seed,
    )
    problems += _impossible(wanted, participants) + unreadable(chosen, [*chosen.images, *spare])
    asked = _questions(design, questions or {}, problems)
    words = [title, instructions, consent, *(questions or {}).values()]
    problems += _telling(chosen, " ".join(word for word in words if word))
    called = name or re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("-._")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,59}", called):
        problems.append(f"name {called!r}: expected small letters, digits, dots and dashes")
    if title and len(title) > MOST_TITLE:
        problems.append(f"title: {len(title)} letters, expected at most {MOST_TITLE}")
    if problems:
        raise InputError(f"no study was made:\n{listed(problems)}")
    notes = list(chosen.notes)
    if held and not spare:
        notes.append("Practice uses images of the study: the runs have no other.")
    tokens = [(_public(n, participants), links.new_token()) for n in range(participants)]
    admin = links.new_token()
    notes += _advice(wanted, participants)
    made = _scratch(folder)
    try:
        (made / IMAGES).mkdir()
        pictures = Pictures(made / IMAGES)
        views = encoded(chosen, [*chosen.images, *spare], pictures, seed, observe)
        try:
            study = Study(
                name=called,
                title=title or TITLE,
                design=design,
                questions=asked,
                scale=scale or Scale(),
                ties=ties,
                shows=tuple(shows) if shows is not None else _beside(design),
                instructions=instructions or INSTRUCTIONS[design],
                consent=consent or CONSENT,
                completion="none" if not code else "each" if code == "each" else "same",
                code=code if code and code != "each" else "",
                seed=seed,
                created=datetime.now(UTC).isoformat(timespec="microseconds"),
                base_url=base,
                runs=tuple(chosen.runs),
                methods=tuple(chosen.methods),
                images=tuple(views),
                pictures={picture: digest for digest, picture in pictures.by_hash.items()},
                participants=tuple(
                    Participant(
                        id=public, token_sha256=links.token_hash(token), items=session(wanted, n)
                    )
                    for n, (public, token) in enumerate(tokens)
                ),
                admin_sha256=links.token_hash(admin),
            )
        except ValidationError as error:
            raise InputError(f"no study was made: {explain(error)}") from error
        Answers.create(made, study.name, study.created, study.plan)
        key = secrets.token_bytes(links.KEY_BYTES)
        links.write_private(made / links.KEY, key)
        if study.completion == "each":
            links.write_codes(made, [(one.id, own_code(key, one.id)) for one in study.participants])
        links.write_links(made, tokens, base)
        links.write_admin(made, admin, base)
        links.write_private(made / FILE, study.model_dump_json(indent=1).encode())
        pictures.sync()
        if (heaviest := max(pictures.bytes_of(image) for image in views)) > HEAVY:
            notes.append(
                f"A page takes up to {heaviest // 10**6:,} MB to load: say so to participants, or "
                "rate smaller pictures."
            )
        if folder.is_dir():
            folder.rmdir()  # it is empty: that was checked
        made.rename(folder)
        sync_directory(folder.parent)
    except OSError as error:
        raise StoreError(f"cannot write {folder} ({error.strerror or error})") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return Created(folder, study, tuple(notes))


def _scratch(folder: Path) -> Path:
    """A private folder beside the one to make, so that what is half made shows nobody anything."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
    except OSError as error:
        raise StoreError(f"cannot write {folder} ({error.strerror or error})") from error


def _check_place(folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        what = "is a rating study already" if (folder / FILE).exists() else "exists"
        raise StoreError(f"{folder} {what}. Choose another path, or empty it.")


def _public(number: int, participants: int) -> str:
    return f"p{number + 1:0{max(2, len(str(participants)))}d}"


def _beside(design: Design) -> tuple[Literal["input", "reference"], ...]:
    return () if design == "single" else ("input", "reference")


def _practice_images(chosen: Chosen, practice: int) -> list[Source]:
    """Images to practise on: those that are not rated first, then those that are, from the end."""
    among = [*chosen.spare, *reversed(chosen.images)]
    return [among[n % len(among)] for n in range(max(0, practice))]


def _impossible(wanted: Wanted, participants: int) -> list[str]:
    """What contradicts itself in what was asked for."""
    found = []
    if not 1 <= participants <= MOST_PARTICIPANTS:
        found.append(f"participants: {participants}, expected 1 to {MOST_PARTICIPANTS:,}")
    if len(wanted.methods) > MOST_SLOTS and wanted.design in ("absolute", "labels"):
        found.append(
            f"{counted(len(wanted.methods), 'method')} do not fit on one page (at most "
            f"{MOST_SLOTS}); choose some, or the design single or pairs"
        )
    if wanted.design == "pairs" and len(wanted.methods) < 2:
        found.append("the design pairs needs two methods at least")
    if wanted.per_participant is not None and not 1 <= wanted.per_participant <= wanted.units:
        found.append(
            f"per participant: {wanted.per_participant} pages, there are {wanted.units:,} in all"
        )
    for what in ("attention", "repeats"):
        if not 0 <= (count := getattr(wanted, what)) <= wanted.pages:
            found.append(f"{what}: {count}, expected 0 to {wanted.pages}")
    if wanted.repeats > max(1, wanted.pages // 2):
        found.append(f"repeats: {wanted.repeats}, at most half of the {wanted.pages} pages can be")
    if wanted.design == "labels" and wanted.images < 2 and (wanted.attention or wanted.practice):
        found.append("practice and attention items of the design labels need two images at least")
    return found


def _advice(wanted: Wanted, participants: int) -> list[str]:
    """What an organiser should know before the links go out."""
    found = []
    if (given := participants * wanted.pages) < wanted.units:
        found.append(
            f"{counted(participants, 'participant')} with {counted(wanted.pages, 'page')} each see "
            f"{given:,} of the {wanted.units:,} pages there are; the others are shown to nobody."
        )
    if (minutes := minutes_of(session(wanted, 0), wanted.design)) > SITTING:
        found.append(
            f"About {minutes:,} minutes for each participant; BT.500 advises at most {SITTING} in "
            "one sitting. They can stop and go on later; --per-participant gives each fewer pages, "
            "--method and --image make the study smaller."
        )
    return found


def minutes_of(items: Sequence[Item], design: Design) -> int:
    """About how long a session takes."""
    judged = sum(1 if design == "pairs" else len(item.slots) for item in items)
    return max(1, round(judged * SECONDS[design] / 60))


def _telling(chosen: Chosen, texts: str) -> list[str]:
    """Methods that the texts for participants name: they would no longer be blind."""
    names = {name for m in chosen.methods for name in (m.label, m.editor)}
    return [
        f"a text for participants names the method {name}"
        for name in sorted(names)
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", texts, re.IGNORECASE)
    ]


def _questions(design: Design, words: dict[str, str], problems: list[str]) -> tuple[Question, ...]:
    known = {question.id: question for question in QUESTIONS[design]}
    for name in words:
        if name not in known:
            problems.append(f"no question {name!r} in the design {design}: {', '.join(known)}")
        elif len(words[name]) > MOST_QUESTION:
            problems.append(f"question {name}: {len(words[name])} letters, at most {MOST_QUESTION}")
    return tuple(
        question.model_copy(update={"text": words.get(question.id) or question.text})
        for question in known.values()
    )
