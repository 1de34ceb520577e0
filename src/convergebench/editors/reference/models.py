"""The reference editors, one entry each: what it does, its options, and how it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from convergebench.editor import EditRequest
from convergebench.editors.reference import faulty, media, personalities, restorer
from convergebench.editors.reference.operations import perform
from convergebench.editors.reference.options import Option
from convergebench.editors.reference.seeding import generator, generator_of
from convergebench.editors.reference.yardsticks import (
    cliff_rmse,
    geometric_rmse,
    moved,
    plateau_rmse,
    ramp,
    unrelated,
)
from convergebench.frame import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

Options = Mapping[str, Any]
Answer = Callable[[EditRequest, Options], bytes]
Effect = Callable[["NDArray[np.uint8]", EditRequest, Options], "NDArray[np.uint8]"]


@dataclass(frozen=True)
class Model:
    """One reference editor: what it does, and the options it takes."""

    description: str
    answer: Answer
    options: tuple[Option, ...] = ()
    control: bool = False
    seconds: float = 0.05


def _identity(request: EditRequest, options: Options) -> bytes:
    frame = request.inputs[-1]
    pixels = perform(request)
    return frame.data if pixels is frame.pixels else encode(pixels)


def _inert(request: EditRequest, options: Options) -> bytes:
    return request.inputs[-1].data


def _png(request: EditRequest, options: Options) -> bytes:
    return encode(perform(request))


def _jpeg(request: EditRequest, options: Options) -> bytes:
    return encode(perform(request), "jpeg", quality=options["quality"])


def _transport(request: EditRequest, options: Options) -> bytes:
    return encode(request.inputs[-1].pixels, options["format"], quality=options["quality"])


def _random(request: EditRequest, options: Options) -> bytes:
    facts = request.inputs[-1].facts
    draw = generator_of(f"random/{request.chain}/{request.step}/{request.seed}")
    return encode(unrelated(facts.width, facts.height, draw))


def _ramp(request: EditRequest, options: Options) -> bytes:
    return encode(ramp(request, options["step"]))


def _yardstick(rmse: Callable[[int, Options], float]) -> Answer:
    """An editor whose RMSE against home after n calls is a formula."""

    def answer(request: EditRequest, options: Options) -> bytes:
        before, after = (rmse(n, options) for n in (request.step - 1, request.step))
        return encode(moved(request, before, after))

    return answer


def _medium(effect: Effect) -> Answer:
    """Perform the operation, let the effect act on all of the result, send a PNG."""

    def answer(request: EditRequest, options: Options) -> bytes:
        return encode(effect(perform(request), request, options))

    return answer


def _crop_first(
    pixels: NDArray[np.uint8], request: EditRequest, options: Options
) -> NDArray[np.uint8]:
    if request.step != 1:
        return pixels
    keep = options["keep-size"] == "yes"
    return media.crop(pixels, options["crop"], options["axis"], keep_size=keep)


def _banana(pixels: NDArray[np.uint8], request: EditRequest, options: Options) -> NDArray[np.uint8]:
    cut = _crop_first(pixels, request, {**options, "axis": "height"})
    return personalities.static(cut, generator(request), options["amount"])


def _keep_size(default: str) -> Option:
    return Option("keep-size", default, "whether the crop is resized back", choices=("yes", "no"))


_AMOUNT: Final = Option("amount", 1.0, "strength; at 1 the decay is plain by step 10", 0, 4)
_SHARE: Final = "share of the calls"

MODELS: Final[dict[str, Model]] = {
    "identity": Model(
        "does exactly what is asked; without an operation returns the very bytes it was given",
        _identity,
        control=True,
    ),
    "png": Model("does what is asked and sends a PNG: no loss", _png, control=True),
    "jpeg": Model(
        "does what is asked and sends a JPEG",
        _jpeg,
        (Option("quality", 75, "JPEG quality", 1, 100),),
        control=True,
    ),
    "transport": Model(
        "ignores the prompt and only re-saves: what the pipe alone does",
        _transport,
        (
            Option("format", "jpeg", "what it saves as", choices=("png", "jpeg")),
            Option("quality", 75, "JPEG quality", 1, 100),
        ),
        control=True,
    ),
    "random": Model("answers every call with another unrelated picture", _random, control=True),
    "inert": Model(
        "ignores the prompt and returns the very bytes it was given", _inert, control=True
    ),
    "resample": Model(
        "scales down and back up (Lanczos)",
        _medium(lambda p, r, o: media.resample(p, o["scale"])),
        (Option("scale", 0.9, "size in between, as a share", 0.05, 1),),
    ),
    "blur": Model(
        "blurs (Gaussian)",
        _medium(lambda p, r, o: media.blur(p, o["sigma"])),
        (Option("sigma", 0.6, "standard deviation in pixels", 0.1, 50),),
    ),
    "noise": Model(
        "adds white Gaussian noise",
        _medium(lambda p, r, o: media.noise(p, generator(r), o["sigma"])),
        (Option("sigma", 3.0, "standard deviation in 8-bit levels", 0, 128),),
    ),
    "tint": Model(
        "drifts towards green",
        _medium(lambda p, r, o: media.tint(p, o["amount"])),
        (Option("amount", 2, "levels green gains; red and blue lose half as many", 0, 127),),
    ),
    "shift": Model(
        "moves the picture by whole pixels, repeating its edge",
        _medium(lambda p, r, o: media.shift(p, o["dx"], o["dy"])),
        (
            Option("dx", 1, "pixels to the right", -4096, 4096),
            Option("dy", 0, "pixels down", -4096, 4096),
        ),
    ),
    "crop-first": Model(
        "crops at the first step, then only re-encodes",
        _medium(_crop_first),
        (
            Option("crop", 0.04, "share of a side that is cut, half at each end", 0, 0.9),
            Option("axis", "both", "what is cut", choices=("both", "width", "height")),
            _keep_size("yes"),
        ),
    ),
    "smooth": Model(
        "loses texture and keeps edges (bilateral filter)",
        _medium(lambda p, r, o: media.smooth(p, o["contrast"], o["radius"])),
        (
            Option("contrast", 18.0, "8-bit levels below which detail counts as texture", 0.1, 255),
            Option("radius", 3, "pixels it looks around", 1, 20),
        ),
    ),
    "scatter": Model(
        "sprinkles single bright and dark pixels",
        _medium(lambda p, r, o: media.scatter(p, generator(r), o["density"], o["contrast"])),
        (
            Option("density", 0.002, "share of the pixels", 0, 1),
            Option("contrast", 80.0, "8-bit levels up or down", 0, 255),
        ),
    ),
    "latent": Model(
        "codes 8×8 blocks coarsely and decodes them, as an autoencoder does",
        _medium(
            lambda p, r, o: media.latent(
                p, r.step, o["keep"], o["quantum"], moving=o["grid"] == "moving"
            )
        ),
        (
            Option("keep", 6, "orders of block frequencies kept; 15 keeps all", 1, 15),
            Option("quantum", 12.0, "levels to which luma coefficients are rounded", 0.01, 255),
            Option(
                "grid",
                "moving",
                "blocks elsewhere at every step (loss accumulates) or not (it settles)",
                choices=("moving", "fixed"),
            ),
        ),
        seconds=0.1,
    ),
    "banana": Model(
        "imitates static noise under a greenish tint, after a crop at the first step",
        _medium(_banana),
        (
            _AMOUNT,
            Option("crop", 0.02, "share of the height cut at the first step", 0, 0.9),
            _keep_size("no"),
            Option(
                "reasoning",
                "no",
                "whether it sends a summary of its thoughts",
                choices=("no", "yes"),
            ),
        ),
        seconds=0.1,
    ),
    "wrinkle": Model(
        "imitates wrinkles that grow along contours",
        _medium(lambda p, r, o: personalities.wrinkled(p, generator(r), o["amount"])),
        (_AMOUNT,),
        seconds=0.1,
    ),
    "pointillist": Model(
        "imitates scattered points on whatever has structure",
        _medium(lambda p, r, o: personalities.dotted(p, generator(r), o["amount"])),
        (_AMOUNT,),
        seconds=0.1,
    ),
    "painter": Model(
        "imitates simplified texture and simplified hues",
        _medium(lambda p, r, o: personalities.painted(p, o["amount"])),
        (_AMOUNT,),
        seconds=0.1,
    ),
    "restorer": Model(
        "repairs a damaged picture, and invents the more the less its prompt asks for fidelity",
        restorer.restore,
        (
            Option("amount", 1.0, "how boldly it sharpens and invents", 0, 4),
            Option("odd", 0.06, f"{_SHARE} in which it adds a thing that was not there", 0, 1),
        ),
        seconds=0.3,
    ),
    "ramp": Model(
        "moves every sample by a fixed step: PSNR after n calls is 20·log10(255 / (n·step))",
        _ramp,
        (Option("step", 1, "8-bit levels per call", 0, 127),),
    ),
    "geometric": Model(
        "moves the picture by step·factorⁿ⁻¹ (RMSE) at call n: its contraction factor is known",
        _yardstick(lambda n, o: geometric_rmse(n, o["step"], o["factor"])),
        (
            Option("step", 12.0, "RMSE between frames 0 and 1, in 8-bit levels", 0, 127),
            Option("factor", 0.8, "by what each step is larger than the one before", 0, 4),
        ),
    ),
    "plateau": Model(
        "loses ever less: RMSE after n calls is level·(1 − factorⁿ)",
        _yardstick(lambda n, o: plateau_rmse(n, o["level"], o["factor"])),
        (
            Option("level", 40.0, "RMSE that it approaches, in 8-bit levels", 0, 127),
            Option("factor", 0.7, "share of the way there that each call leaves", 0, 1),
        ),
    ),
    "cliff": Model(
        "is perfect until one call loses much: RMSE is 0 before it, then a fixed loss",
        _yardstick(lambda n, o: cliff_rmse(n, o["at"], o["loss"])),
        (
            Option("at", 5, "the call that loses", 1, 1000),
            Option("loss", 60.0, "RMSE from then on, in 8-bit levels", 0, 127),
        ),
    ),
    "refuser": Model(
        "refuses some edits, on a schedule that its seed decides",
        faulty.refuser,
        (Option("rate", 0.1, f"{_SHARE} that are refused", 0, 1),),
    ),
    "flaky": Model(
        "is unavailable now and then; on demand it also fails, sends nothing or sends garbage",
        faulty.flaky,
        (
            Option("rate", 0.2, f"{_SHARE} that find it unavailable, drawn per attempt", 0, 1),
            Option("fail", 0.0, f"{_SHARE} that can never succeed", 0, 1),
            Option("empty", 0.0, f"{_SHARE} answered without an image", 0, 1),
            Option("garbage", 0.0, f"{_SHARE} answered with half an image file", 0, 1),
            Option("wait", 0.0, "seconds before it answers", 0, 3600),
        ),
    ),
}
