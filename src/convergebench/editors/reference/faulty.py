"""Editors that fail on purpose, to exercise what a runner does about failures.

Whether a call fails follows from the request alone (chain, step, seed and, where trying again may
help, the attempt), never from what was called before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from convergebench.editor import EditRequest
from convergebench.editors.reference.media import noise
from convergebench.editors.reference.operations import perform
from convergebench.editors.reference.seeding import chance, generator
from convergebench.errors import (
    EditorFailed,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
)
from convergebench.frame import encode


def refuser(request: EditRequest, options: Mapping[str, Any]) -> bytes:
    """Refuse a share `rate` of all steps, whatever the attempt; edit the others faintly noisily."""
    if chance(request, "refuse") < options["rate"]:
        raise EditorRefused("I can't edit this image: it may go against our usage policy.")
    return _light(request)


def flaky(request: EditRequest, options: Mapping[str, Any]) -> bytes:
    """Fail in every way a provider can.

    `fail` and `empty` hit a step at every attempt; `rate` is drawn anew for each attempt, so trying
    again helps; `garbage` cuts the reply's bytes in half, which still look like an image at first.
    """
    if options["wait"]:
        time.sleep(options["wait"])
    if chance(request, "fail") < options["fail"]:
        raise EditorFailed("400: this model does not accept the request.")
    if chance(request, "unavailable", each_attempt=True) < options["rate"]:
        hint = chance(request, "retry", each_attempt=True)
        if hint < 0.5:
            raise EditorUnavailable("429: too many requests.", retry_after=0.01 + 0.08 * hint)
        raise EditorUnavailable("503: the model is overloaded.")
    if chance(request, "empty") < options["empty"]:
        raise EditorNoImage("The reply holds a text and no image.")
    data = _light(request)
    return data[: len(data) // 2] if chance(request, "garbage") < options["garbage"] else data


def _light(request: EditRequest) -> bytes:
    """The edit as asked for, under noise of one level."""
    return encode(noise(perform(request), generator(request), 1.0))
