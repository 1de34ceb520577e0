"""The contract of editors."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np
from PIL import Image

from convergebench import drawing
from convergebench.cycle import Edit, Operation
from convergebench.editor import Editor, EditorSpec, EditReply, EditRequest, Turn
from convergebench.errors import EditorError, EditorUnavailable, MalformedImage
from convergebench.frame import Frame, encode, pixel_digest
from convergebench.testing.contract import ContractBroken
from convergebench.testing.pictures import colourful, saved, with_hole

THREADS: Final = 4
ATTEMPTS: Final = 20
REPLICATE: Final = "Produce an exact replica of the provided image, with no alterations."


def check_editor(editor: Editor, *, size: int = 64) -> None:
    """Check an editor against the promises of `convergebench.editor`.

    Its spec is filled in; every reply is an `EditReply` whose bytes decode and whose particulars
    can be written as JSON; inputs are left alone; odd sizes and grey, palette, transparent and JPEG
    inputs are taken; the seed may be any or none; what it raises is an EditorError; it bears
    several threads (four, or as many as its spec allows); and if it calls itself deterministic, the
    same request gives the same answer, also from several threads.

    An EditorUnavailable is retried; refusals and other EditorErrors are legitimate answers, as long
    as at least one image comes back. About a dozen edits are made, two or three times each.

    Args:
        editor: The editor to check.
        size: Side of the pictures it is given.
    """
    spec = _check_editor_spec(editor)
    trials = _trials(size)
    answers = {what: _answer(editor, spec.name, what, trial) for what, trial in trials.items()}
    if not any(isinstance(answer, bytes) for answer in answers.values()):
        last = str(next(reversed(answers.values())))
        raise ContractBroken(
            f"{spec.name}: none of {len(trials)} edits was answered with an image; the last answer "
            f"was {last!r}"
        )
    if spec.deterministic:
        for what, trial in trials.items():
            if _answer(editor, spec.name, what, trial) != answers[what]:
                raise ContractBroken(
                    f"{spec.name}: calls itself deterministic, but answered the same request "
                    f"({what}) differently"
                )
    threads = min(THREADS, spec.concurrency or THREADS)
    with ThreadPoolExecutor(threads) as pool:
        jobs = {
            what: pool.submit(_answer, editor, spec.name, f"{what}, from {threads} threads", trial)
            for what, trial in trials.items()
        }
        for what, job in jobs.items():
            if job.result() != answers[what] and spec.deterministic:
                raise ContractBroken(
                    f"{spec.name}: calls itself deterministic, but answered {what} differently "
                    f"when called from {threads} threads at once"
                )


def _check_editor_spec(editor: Editor) -> EditorSpec:
    spec = editor.spec
    if not isinstance(spec, EditorSpec):
        raise ContractBroken(f"spec must be an EditorSpec, got {type(spec).__name__}")
    for field in ("name", "version"):
        if not getattr(spec, field):
            raise ContractBroken(f"editor {spec.name!r}: spec.{field} is empty")
    if spec.concurrency is not None and spec.concurrency < 1:
        raise ContractBroken(f"{spec.name}: spec.concurrency is {spec.concurrency}, at least 1")
    for field in ("seconds", "price"):
        value = getattr(spec, field)
        if value is not None and not (value >= 0 and math.isfinite(value)):
            raise ContractBroken(f"{spec.name}: spec.{field} is {value}, expected 0 or more")
    if editor.spec != spec:
        raise ContractBroken(f"{spec.name}: spec changed between two looks at it")
    return spec


def _trials(size: int) -> dict[str, EditRequest]:
    """Requests by what is special about them."""
    pixels = colourful(size, size)
    source = Frame.of_pixels(pixels)
    later = Frame.of_pixels(np.ascontiguousarray(pixels[::-1]))
    plain = EditRequest(
        inputs=(source,),
        prompt=REPLICATE,
        edit=Edit(prompt=REPLICATE),
        step=1,
        seed=1,
        history=(Turn(0, "", lambda: source),),
        chain="contract",
    )
    flip = Edit(
        prompt="Mirror the image horizontally.",
        operation=Operation(kind="flip", axis="horizontal"),
    )
    thing = sorted(drawing.OBJECTS)[0]
    box = (0.25, 0.25, 0.75, 0.75)
    put = Edit(prompt=f"Add a {thing}.", region=box, operation=Operation(kind="add", object=thing))
    image = Image.fromarray(pixels)

    def given(frame: Frame) -> EditRequest:
        return replace(plain, inputs=(frame,), history=(Turn(0, "", lambda: frame),))

    return {
        "a plain picture": plain,
        "another seed": replace(plain, seed=2**31 - 1),
        "no seed": replace(plain, seed=None),
        "a second step": replace(
            plain,
            inputs=(later,),
            step=2,
            history=(*plain.history, Turn(1, REPLICATE, lambda: later)),
        ),
        "two inputs": replace(plain, inputs=(source, later)),
        "a flip": replace(plain, edit=flip, prompt=flip.prompts[0]),
        "an added object": replace(plain, edit=put, prompt=put.prompts[0], region=box),
        "an odd size": given(Frame.of_pixels(colourful(size - 1, size * 2 // 3 - 1))),
        "a grey PNG": given(saved(image.convert("L"))),
        "a palette PNG": given(saved(image.quantize(16))),
        "a transparent PNG": given(saved(with_hole(image))),
        "a JPEG": given(Frame(encode(pixels, "jpeg", quality=90))),
    }


def _answer(editor: Editor, name: str, what: str, request: EditRequest) -> bytes | str:
    """The image bytes, or the kind of refusal. Raises ContractBroken."""
    before = [(frame.data, pixel_digest(frame.pixels)) for frame in request.inputs]
    try:
        reply = _edit(editor, request)
    except EditorError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # whatever a foreign editor does
        raise ContractBroken(
            f"{name}: given {what}, it raised {type(error).__name__} ({error}); "
            "an editor raises nothing but EditorError and its kinds"
        ) from error
    finally:
        after = [(frame.data, pixel_digest(frame.pixels)) for frame in request.inputs]
    if after != before:
        raise ContractBroken(f"{name}: given {what}, it changed its input")
    if not isinstance(reply, EditReply):
        raise ContractBroken(f"{name}: given {what}, it returned {type(reply).__name__}")
    if not isinstance(reply.data, bytes):
        raise ContractBroken(f"{name}: given {what}, its data is {type(reply.data).__name__}")
    try:
        Frame(reply.data).pixels  # noqa: B018  (looking is what decodes)
    except MalformedImage as error:
        raise ContractBroken(f"{name}: given {what}, it returned {error}") from error
    try:
        json.dumps([dict(reply.parameters), dict(reply.usage)])
    except (TypeError, ValueError) as error:
        raise ContractBroken(
            f"{name}: given {what}, its parameters or usage cannot be written as JSON ({error})"
        ) from error
    return reply.data


def _edit(editor: Editor, request: EditRequest) -> EditReply:
    for attempt in range(1, ATTEMPTS):
        try:
            return editor.edit(replace(request, attempt=attempt))
        except EditorUnavailable as error:
            time.sleep(min(error.retry_after or 0.0, 1.0))
    return editor.edit(replace(request, attempt=ATTEMPTS))
