"""Submissions: a run's records without its pictures, with checksums and provenance.

A submission is a run directory that holds no frames, and a `submission.json` beside its records:
anyone can recompute every number in it. What it claims is compared with what comes out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, FiniteFloat, ValidationError

from convergebench.cycle import Record
from convergebench.errors import InputError, explain

FORMAT: Final = 1
NAME: Final = "submission.json"

Text = Annotated[str, Field(max_length=2000)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileFact(Record):
    """One file of a submission."""

    path: Annotated[str, Field(max_length=400)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Digest


class EditorClaim(Record):
    """One editor: which it was, how its calls ended, and what its maker says it scores."""

    editor: str
    control: bool
    versions: tuple[str, ...]
    models: tuple[str, ...]
    outcomes: dict[str, int]
    dollars: FiniteFloat
    score: FiniteFloat | None
    low: FiniteFloat | None
    high: FiniteFloat | None


class Submission(Record):
    """`submission.json`: who ran what, on which suite, with which versions, and every checksum.

    Attributes:
        format: Of this file.
        name: Of the submission; its folder has the same.
        by: Who submits it.
        contact: Where questions go; may be empty.
        licence: Under which the records may be used.
        notes: What readers have to know.
        frames: Where the pictures can be had, if anywhere: the address of a bundle.
        frames_sha256: Hash over the sorted hashes of all frames, so that pictures that turn up
            later can be told to be these.
        frame_count: How many frames that are.
        suite: Name and version.
        fingerprint: Hash of the suite's content as it was run.
        whole: Hash of the complete suite's content, where only a part of its sources was run.
        created: When the run was begun.
        packed: When the submission was made.
        versions: Libraries, at packing.
        metrics: Name and version of every metric.
        ranked_by: What the scores are the mean AUC of.
        threshold: Where half-lives were read off.
        chains: How many.
        editors: What is claimed of each editor.
        files: Every other file here.
    """

    format: int = FORMAT
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    by: Annotated[str, Field(min_length=1, max_length=200)]
    contact: Text = ""
    licence: Annotated[str, Field(min_length=1, max_length=200)]
    notes: Text = ""
    frames: Annotated[str, Field(pattern=r"^(https?://\S+)?$", max_length=1000)] = ""
    frames_sha256: Digest
    frame_count: Annotated[int, Field(ge=0)]
    suite: str
    fingerprint: Digest
    whole: Digest | None = None
    created: str
    packed: str
    versions: dict[str, str]
    metrics: tuple[str, ...]
    ranked_by: tuple[str, ...]
    threshold: FiniteFloat
    chains: Annotated[int, Field(ge=0)]
    editors: tuple[EditorClaim, ...]
    files: tuple[FileFact, ...]

    @property
    def complete_suite(self) -> str:
        """Hash of the complete suite: two submissions can be compared where it is the same."""
        return self.whole or self.fingerprint


def schema() -> dict[str, Any]:
    """The JSON schema of `submission.json`."""
    told = Submission.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **told}


def read_submission(path: str | os.PathLike[str]) -> Submission:
    """The `submission.json` of a folder. Raises InputError when it is missing or not legal."""
    file = Path(path) / NAME
    try:
        return Submission.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path} is not a submission: cannot read {NAME} ({error.strerror}). Make one with: "
            "convergebench leaderboard pack RUN"
        ) from error
    except ValidationError as error:
        raise InputError(f"{file} does not follow the schema: {explain(error)}") from error
