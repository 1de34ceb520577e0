"""Our values, pyiqa's, and the official ones, for the five pictures of pyiqa's test set.

    python -m benchmarks.official FOLDER

FOLDER holds ref_dir, dist_dir and results_official.csv.

Prints the table of docs/verification.md. Needs the extra `iqa` and the weights of these metrics.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from benchmarks.peers import PYIQA, Pixels, by_lpips, by_pyiqa

from convergebench.frame import decode
from convergebench.metric import NoScore, Picture, StepView
from convergebench.registry import open_metric

METRICS = ("psnr", "ssim", "ms-ssim", "lpips", "brisque", "niqe", "ilniqe", "piqe")


def our_value(name: str, home: Pixels, frame: Pixels) -> float:
    """Ours."""
    metric = open_metric(name)
    reference = None if metric.spec.kind == "no-reference" else Picture(home)
    (value,) = metric.score([StepView(Picture(frame), reference)])
    assert not isinstance(value, NoScore), value
    return float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with open(folder / "results_official.csv") as file:
        official = {row["Method"]: row for row in csv.DictReader(file)}
    print("| metric | picture | ours | pyiqa | official | ours off by | pyiqa off by |")
    print("|---|---|---|---|---|---|---|")
    verdicts = []
    for name in METRICS:
        peer = by_pyiqa(name) if name in PYIQA else by_lpips
        worst = [0.0, 0.0, 0.0]
        for picture, said in list(official[name.replace("-", "_")].items())[1:]:
            home, frame = (
                decode((folder / side / picture).read_bytes())[0]
                for side in ("ref_dir", "dist_dir")
            )
            true, mine, other = float(said), our_value(name, home, frame), peer(home, frame)()
            off = abs(mine - true), abs(other - true)
            worst = [*map(max, worst, off), max(worst[2], off[0] / abs(true))]
            cells = (mine, other, true, *off)
            print(f"| {name} | {picture[:3]} | " + " | ".join(f"{c:.4f}" for c in cells) + " |")
        good = worst[0] <= worst[1] or worst[2] <= 0.01
        verdicts.append(
            f"{name}: ours at most {worst[0]:.4g} off ({worst[2]:.2%}), pyiqa {worst[1]:.4g}: "
            + ("as close as pyiqa or within 1 %" if good else "FARTHER than pyiqa and 1 %")
        )
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
