"""Classical restoration filters as editors: the baselines of a restoration study.

`classic:<filter>` applies one filter to the last input and sends a PNG. Prompt, operation, seed,
temperature, resolution and session are not looked at; the same picture gives the same bytes.
Guide: docs/editors/classic.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from convergebench.editor import Asked, Editor, EditorSpec, EditReply, EditRequest
from convergebench.editors.reference.options import Option, read_options
from convergebench.errors import EditorFailed, UnknownName
from convergebench.frame import MAX_PIXELS, encode
from convergebench.registry import PluginName

if TYPE_CHECKING:
    from convergebench.editors.classic.filters import Pixels

VERSION: Final = "1"

Options = Mapping[str, Any]

SLIGHT: Final = 3 / 1024
"""Radius of the blur that is assumed where none is told, as a share of the short side."""

LIGHTS: Final = ("linear", "encoded")


@dataclass(frozen=True)
class Filter:
    """One filter: what it does, how, its options, and about how long a megapixel takes."""

    description: str
    apply: Callable[[Pixels, Options], Pixels]
    options: tuple[Option, ...]
    seconds: float


def _unsharp(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    return filters.unsharp(pixels, options["amount"], options["radius"])


def _nlm(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    return filters.non_local_means(pixels, options["strength"])


def _median(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    return filters.median(pixels, options["radius"])


def _bilateral(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    return filters.bilateral(pixels, options["contrast"], options["radius"])


def _bicubic(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    height, width = pixels.shape[:2]
    if height * width * options["scale"] ** 2 > MAX_PIXELS:
        raise EditorFailed(
            f"{width}×{height} enlarged {options['scale']} times has more than {MAX_PIXELS:,} "
            "pixels, the most that a frame may have"
        )
    return filters.bicubic(pixels, options["scale"])


def _wiener(pixels: Pixels, options: Options) -> Pixels:
    from convergebench.editors.classic import filters

    radius = options["radius"] or SLIGHT * min(pixels.shape[:2])
    return filters.wiener(pixels, radius, options["noise"], options["kernel"], options["light"])


FILTERS: Final[dict[str, Filter]] = {
    "unsharp": Filter(
        "unsharp masking: adds back what a Gaussian takes away",
        _unsharp,
        (
            Option("amount", 1.0, "how much of it is added", 0, 10),
            Option("radius", 2.0, "standard deviation of the Gaussian in pixels", 0.1, 50),
        ),
        0.3,
    ),
    "nlm": Filter(
        "non-local means: averages patches that look alike (OpenCV)",
        _nlm,
        (Option("strength", 10.0, "how different they may look, about the noise's", 0.1, 100),),
        3.0,
    ),
    "median": Filter(
        "the median of the pixels around each: takes away dust and single pixels",
        _median,
        (Option("radius", 1, "pixels it looks around", 1, 50),),
        0.05,
    ),
    "bilateral": Filter(
        "smooths and keeps edges: averages neighbours of a like colour",
        _bilateral,
        (
            Option("contrast", 25.0, "8-bit levels up to which colours are alike", 0.1, 255),
            Option("radius", 4, "pixels it looks around", 1, 15),
        ),
        0.2,
    ),
    "bicubic": Filter(
        "enlarges as MATLAB's imresize does",
        _bicubic,
        (Option("scale", 2, "by how much", 1, 16),),
        1.0,
    ),
    "wiener": Filter(
        "Wiener deconvolution of a blur whose kernel is told",
        _wiener,
        (
            Option(
                "radius",
                0.0,
                "radius of the blur in pixels; 0: 3 in 1024 of the short side",
                0,
                100,
            ),
            Option("noise", 0.01, "noise-to-signal ratio; more is softer", 1e-9, 10),
            Option("kernel", "disc", "what blurred", choices=("disc", "gaussian")),
            Option("light", "linear", "what was blurred: light, or stored values", choices=LIGHTS),
        ),
        1.5,
    ),
}


@dataclass(frozen=True)
class ClassicEditor:
    """A filter with its options set."""

    spec: EditorSpec
    filter: Filter
    options: Options

    def edit(self, request: EditRequest) -> EditReply:
        """Filter the last input."""
        data = encode(self.filter.apply(request.inputs[-1].pixels, self.options))
        return EditReply(data, model=self.spec.name, parameters=dict(self.options), cost=0.0)


class Catalogue:
    """Opens classical filters by name; `models` lists them with a line each."""

    def __init__(self, filters: Mapping[str, Filter]) -> None:
        self._filters: Final = filters
        self.models: Final = {name: one.description for name, one in filters.items()}

    def reads_prompts(self, name: PluginName) -> bool:
        """No filter does."""
        return False

    def __call__(self, model: str = "", **options: str) -> Editor:
        """The filter of that name.

        Raises:
            UnknownName: There is no such filter.
            SettingsError: It has no such option, or the value is not legal.
        """
        chosen = self._filters.get(model)
        if chosen is None:
            raise UnknownName("classical filter", model, self._filters)
        values = read_options(f"classic:{model}", chosen.options, options)
        spec = EditorSpec(
            name=str(PluginName("classic", model, tuple(sorted(options.items())))),
            version=VERSION,
            description=chosen.description,
            seconds=chosen.seconds,
            price=0.0,
            deterministic=True,
            sizing=_enlarged(values["scale"]) if "scale" in values else None,
        )
        return ClassicEditor(spec, chosen, values)


def _enlarged(scale: Any) -> Callable[[Asked], tuple[int, int]]:
    def sizing(asked: Asked) -> tuple[int, int]:
        times = int(scale) ** asked.step
        return asked.width * times, asked.height * times

    return sizing


open_editor: Final = Catalogue(FILTERS)
"""The entry point `classic`."""
