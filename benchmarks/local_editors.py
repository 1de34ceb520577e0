"""What `inpaint` and `taef2` do to pictures: the figures of their pages in docs/editors.

    python benchmarks/local_editors.py [--photographs FOLDER] [--copies 20] [--json]

`inpaint`: a red ball is drawn into the region `spot` of every picture of the starter suite that has
one, and removed; RMSE in levels inside the region, against the picture without the ball.
`taef2`: with a folder of photographs, PSNR in dB of every first copy, and of each copy in a chain
of the one whose name ends in `--chain`. An editor without its weights is left out with a remark.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convergebench import drawing
from convergebench.cycle import Edit, Operation, pixel_box
from convergebench.editor import Editor, EditRequest
from convergebench.editors.reference.operations import add
from convergebench.frame import Frame
from convergebench.registry import open_editor, open_suite

SIDE = 512
REMOVE = "Remove the ball."
COPY = "Copy the picture."
ENDINGS = (".png", ".webp", ".jpg")


def rmse(made: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> float:
    """In levels."""
    return float(np.sqrt(np.mean((made.astype(float) - wanted) ** 2)))


def removals(editor: Editor) -> dict[str, tuple[float, float]]:
    """For every picture: the region's error with the ball, and after its removal."""
    operation = Operation(kind="remove", object="red-ball")
    found = {}
    for source in open_suite("starter").source:
        if "spot" not in source.regions:
            continue
        spot = source.regions["spot"]
        clean = drawing.scene(source.name, SIDE, SIDE)
        filled = add(clean, "red-ball", spot)
        edit = Edit(prompt=REMOVE, region=spot, operation=operation)
        request = EditRequest((Frame.of_pixels(filled),), REMOVE, edit, 1, None, region=spot)
        made = Frame(editor.edit(request).data).pixels
        x0, y0, x1, y1 = pixel_box(spot, SIDE, SIDE)
        inside = np.s_[y0:y1, x0:x1]
        found[source.name] = (
            rmse(filled[inside], clean[inside]),
            rmse(made[inside], clean[inside]),
        )
    return found


def copies(editor: Editor, source: Frame, count: int) -> list[float]:
    """PSNR of each copy of a copy, against the source."""
    edit = Edit(prompt=COPY)
    frame, found = source, []
    for step in range(1, count + 1):
        frame = Frame(editor.edit(EditRequest((frame,), COPY, edit, step, None)).data)
        found.append(20 * math.log10(255 / rmse(frame.pixels, source.pixels)))
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--photographs", type=Path, help="a folder, for taef2")
    parser.add_argument("--chain", default="15", help="copy this one again and again")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {}
    remover, replicator = open_editor("inpaint"), open_editor("taef2")
    if remover.spec.lacks:
        print(remover.spec.lacks, file=sys.stderr)
    else:
        result["inpaint"] = removals(remover)
    if replicator.spec.lacks or given.photographs is None:
        print(replicator.spec.lacks or "taef2: name a folder: --photographs", file=sys.stderr)
    else:
        files = sorted(p for p in given.photographs.iterdir() if p.suffix.lower() in ENDINGS)
        pictures = {path.stem: Frame(path.read_bytes()) for path in files}
        first = {name: copies(replicator, picture, 1)[0] for name, picture in pictures.items()}
        chain = {
            name: copies(replicator, picture, given.copies)
            for name, picture in pictures.items()
            if name.endswith(given.chain)
        }
        result["taef2"] = {"first": first, "chain": chain}
    if given.json:
        print(json.dumps(result, indent=1))
        return
    for name, (before, after) in result.get("inpaint", {}).items():
        print(f"inpaint  {name:14} {before:6.1f} {after:6.1f}")
    if "taef2" in result:
        first = result["taef2"]["first"].values()
        spread = f"{min(first):.1f} to {max(first):.1f} dB, mean {statistics.fmean(first):.1f}"
        print(f"taef2    first copies of {len(first)}: {spread}")
        for name, each in result["taef2"]["chain"].items():
            print(f"taef2    {name}: {' '.join(f'{value:.2f}' for value in each)}")


if __name__ == "__main__":
    main()
