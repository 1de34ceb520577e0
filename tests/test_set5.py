"""Set5 enlarged by bicubic interpolation has the luma PSNR that papers print, through whole runs.

33.66, 30.39 and 28.42 dB in the mean for ×2, ×3 and ×4, within 0.02 dB; SSIM of the luma is 0.9299,
0.8682 and 0.8104, within 0.001. As printed since Dong, Loy, He, Tang: Image super-resolution using
deep convolutional networks. TPAMI 38(2), 2016.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

from convergebench.importer.restorations import load_pairs
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.store import RunStore

LITERATURE = {2: (33.66, 0.9299), 3: (30.39, 0.8682), 4: (28.42, 0.8104)}
NET = """
import sys
from pathlib import Path

import numpy as np

from convergebench.frame import Frame, encode
from convergebench.imresize import imresize

pixels = Frame(Path(sys.argv[1]).read_bytes()).pixels
large = imresize(pixels, int(sys.argv[3]))
Path(sys.argv[2]).write_bytes(encode(np.clip(np.floor(large + 0.5), 0, 255).astype(np.uint8)))
"""


def pairs(shared: Path, folder: Path, scale: int) -> Path:
    """Set5's files as a tree of pairs."""
    for kind, top in (("LR", "input"), ("HR", "gt")):
        (folder / top).mkdir(parents=True)
        for number in range(1, 6):
            name = f"img_00{number}_SRF_{scale}_{kind}.png"
            whole = shared / f"data/restoration/set5/image_SRF_{scale}" / name
            shutil.copy(whole, folder / top / f"img_00{number}.png")
    return folder


@pytest.mark.shared
@pytest.mark.parametrize("scale", [2, 3, 4])
def test_bicubic_has_the_psnr_of_the_literature(shared: Path, tmp_path: Path, scale: int) -> None:
    suite = load_pairs(
        "restoration-v1", pairs(shared, tmp_path / "set5", scale), tmp_path / "suite"
    )
    script = tmp_path / "net.py"
    script.write_text(NET)
    words = [sys.executable, str(script), "{input}", "{output}", str(scale)]
    editors = [f"classic:bicubic,scale={scale}", f"cmd: {shlex.join(words)}"]
    done = run(tmp_path / "run", suite=str(suite.folder), editors=editors, controls=False)
    assert done.outcomes == {"edited": 10}
    metrics = [f"psnr-y,shave={scale}", f"ssim-y,shave={scale}"]
    score(tmp_path / "run", metrics)
    store = RunStore.open(tmp_path / "run")
    editor_of = {chain.key.id: chain.key.editor for chain in store.chains()}
    rows = store.scores().filter(
        (pl.col("step") == 1) & (pl.col("against") == "home") & (pl.col("where") == "all")
    )
    for name, want, within in zip(metrics, LITERATURE[scale], (0.02, 0.001), strict=True):
        by_editor: dict[str, list[float]] = {}
        for chain, value in rows.filter(pl.col("metric") == name).select("chain", "value").rows():
            by_editor.setdefault(editor_of[chain], []).append(value)
        assert len(by_editor) == 2
        for values in by_editor.values():
            assert len(values) == 5
            assert sum(values) / 5 == pytest.approx(want, abs=within)
