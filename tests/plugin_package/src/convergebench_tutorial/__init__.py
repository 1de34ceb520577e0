"""A tutorial plug-in: one editor and one metric."""

from __future__ import annotations

import numpy as np

from convergebench.editor import EditorSpec, EditReply, EditRequest
from convergebench.errors import SettingsError
from convergebench.frame import encode
from convergebench.metric import MetricSpec, StepView, lift

BROWN = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])


class SepiaEditor:
    """An editor is anything with a `spec` and an `edit` method. It keeps no state between calls."""

    def __init__(self, spec: EditorSpec, strength: float) -> None:
        self.spec, self.strength = spec, strength

    def edit(self, request: EditRequest) -> EditReply:
        """One edit: frames come in with their bytes and pixels, bytes go out.

        The prompt is in `request.prompt`. To decline, raise EditorRefused; to be called again
        later, raise EditorUnavailable.
        """
        pixels = request.inputs[-1].pixels  # H×W×3, 8-bit sRGB, read-only
        brown = pixels + self.strength * (pixels @ BROWN.T - pixels)
        return EditReply(encode(np.clip(np.rint(brown), 0, 255).astype(np.uint8)))


def sepia(strength: str = "0.2") -> SepiaEditor:
    """Turns pictures brown, a little more at every call."""
    # Options arrive as text: `tutorial-sepia,strength=0.5` calls sepia(strength="0.5").
    try:
        share = float(strength)
    except ValueError:
        raise SettingsError(f"strength must be a number, got {strength!r}") from None
    # The name tells editors with different options apart in tables; raise the version whenever
    # the output changes. `price` is what `plan` and the budget reckon with.
    name = f"tutorial-sepia,strength={strength}"
    return SepiaEditor(EditorSpec(name, version="1", price=0.0, deterministic=True), share)


# A metric is anything with a `spec` and a `score` method; `lift` makes one from a function of one
# view. `view.frame` is what to measure; a full-reference metric also looks at `view.reference`.
@lift(
    MetricSpec(
        name="tutorial-colourfulness",
        version="1",  # raise it whenever a value can change
        kind="no-reference",
        higher_is_better=True,
        typical=(0, 110),
        title="Colourfulness (Hasler and Süsstrunk)",
        paper="https://doi.org/10.1117/12.477378",
    )
)
def colourfulness(view: StepView) -> float:
    """Spread plus 0.3 times distance from grey, in the plane (R − G, (R + G)/2 − B)."""
    red, green, blue = np.moveaxis(view.frame.pixels.astype(np.float64), -1, 0)
    warm, sunny = red - green, (red + green) / 2 - blue
    spread = np.hypot(warm.std(), sunny.std())
    return float(spread + 0.3 * np.hypot(warm.mean(), sunny.mean()))
