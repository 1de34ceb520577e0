"""The report of a synthetic run of 20,000 frames × 10 metrics.

Makes a run as `run` and `score` would leave it (every frame a picture of its own, every row of the
score table there), and measures the analysis alone, the report with cold and with warm thumbnails,
its peak memory, the folder against the images, and how soon Chromium has the pages ready.

    python -m benchmarks.report                        # 100 sources × 10 editors × 20 steps
    python -m benchmarks.report --sources 4 --editors 50 --steps 100
    python -m benchmarks.report --keep DIRECTORY       # the run is kept, and used again
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl

from convergebench.chain import Call, ChainHeader, ChainKey, FrameRef, Settings, Step
from convergebench.comparisons import floor_pairs
from convergebench.cycle import Cycle, Edit
from convergebench.frame import Frame
from convergebench.registry import metric_spec
from convergebench.scoretable import SCORE_COLUMNS
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite

METRICS = (
    "psnr",
    "ssim",
    "ssim-rgb",
    "ssim-uniform",
    "ms-ssim",
    "ciede2000",
    "colour-cast",
    "noise",
    "sharpness",
    "ciede2000-p95",
)
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PROMPTS = ("Add a pair of round glasses to the person.", "Remove the glasses again.")


# -- the run --------------------------------------------------------------------------------------


def make_run(path: Path, sources: int, editors: int, steps: int, side: int) -> RunStore:
    """A run of JPEG frames (some 50 kB at 512 pixels), written without a flush per step."""
    names = [f"photo-{number:03d}" for number in range(sources)]
    scenes = [_scene(number, side) for number in range(sources)]
    frames = [Frame(_jpeg(scene)) for scene in scenes]
    suite = Suite(
        name="synthetic",
        version=1,
        size=max(16, side),
        source=tuple(
            Source(name=name, file=f"{name}.jpg", sha256=frame.digest, licence="CC0-1.0")
            for name, frame in zip(names, frames, strict=True)
        ),
        cycle=(
            Cycle(
                name="glasses",
                kind="round-trip",
                edit=tuple(Edit(prompt=prompt) for prompt in PROMPTS),
            ),
        ),
    )
    store = RunStore.create(path, suite, suite.size)
    store.write_json(
        "sources.json",
        {
            name: [FrameRef.of(frame).model_dump(mode="json"), None]
            for name, frame in zip(names, frames, strict=True)
        },
    )
    store.log_session("start", command="benchmarks.report")

    def walk(place: tuple[int, int]) -> str:
        source, editor = place
        key = ChainKey(
            suite=suite.label,
            source=names[source],
            cycle="glasses@1",
            editor=f"editor-{editor:02d}",
            settings=Settings(),
        )
        _write_chain(store, key, frames[source], scenes[source], editor, steps)
        return key.id

    with ThreadPoolExecutor() as pool:
        places = [(source, editor) for source in range(sources) for editor in range(editors)]
        chains = list(pool.map(walk, places))
    store.add_scores(_scores(chains, names, editors, steps))
    return store


def _scene(number: int, side: int) -> np.ndarray[Any, Any]:
    """Smooth areas, edges and some grain: what photographs weigh."""
    rng = np.random.default_rng(number)
    coarse = cv2.resize(
        rng.uniform(30, 225, (6, 6, 3)), (side, side), interpolation=cv2.INTER_CUBIC
    )
    for _ in range(12):
        centre = tuple(int(n) for n in rng.integers(0, side, 2))
        cv2.circle(
            coarse,
            centre,
            int(rng.integers(side // 16, side // 5)),
            rng.uniform(0, 255, 3).tolist(),
            -1,
            cv2.LINE_AA,
        )
    grained = np.clip(coarse + rng.normal(0, 5, coarse.shape), 0, 255)
    return np.asarray(grained, dtype=np.float32)


def _jpeg(pixels: np.ndarray[Any, Any]) -> bytes:
    done, data = cv2.imencode(".jpg", pixels.astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 85])
    if not done:
        raise RuntimeError("the JPEG encoder failed")
    return data.tobytes()


def _write_chain(
    store: RunStore,
    key: ChainKey,
    source: Frame,
    scene: np.ndarray[Any, Any],
    editor: int,
    steps: int,
) -> None:
    origin = FrameRef.of(source)
    _put(store, source)
    header = ChainHeader(chain=key, editor_version="synthetic", source=origin)
    lines = [header.model_dump_json()]
    rng = np.random.default_rng(key.seed(1))
    grain = rng.normal(0, 4, scene.shape).astype(np.float32)
    before = origin
    for step in range(1, steps + 1):
        drift = min(0.9, step * (editor + 1) / (12 * steps))
        pixels = scene * (1 - drift) + 128 * drift + np.roll(grain, 7 * step, axis=1)
        frame = Frame(_jpeg(np.clip(pixels, 0, 255)))
        _put(store, frame)
        ref = FrameRef(
            sha256=frame.digest,
            format="jpeg",
            bytes=len(frame.data),
            width=scene.shape[1],
            height=scene.shape[0],
        )
        call = Call(model=key.editor, cost=0.039, reasoning="The user wants the glasses gone. " * 4)
        record = Step(
            step=step,
            outcome="edited",
            prompt=PROMPTS[(step - 1) % 2],
            inputs=(before.sha256,),
            seed=key.seed(step),
            frame=ref,
            call=call,
            seconds=4.2,
        )
        lines.append(record.model_dump_json())
        before = ref
    path = store.chain_path(key.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def _put(store: RunStore, frame: Frame) -> None:
    path = store.frame_path(FrameRef(sha256=frame.digest, format="jpeg", bytes=len(frame.data)))
    if not path.exists():
        path.write_bytes(frame.data)


def _scores(chains: list[str], names: list[str], editors: int, steps: int) -> pl.DataFrame:
    """All ten metrics of all frames, against home, against the frame before, and of nothing."""
    rng = np.random.default_rng(5)
    parts = []
    for name in METRICS:
        spec = metric_spec(name)
        places = [("home", range(2, steps + 1, 2)), ("previous", range(1, steps + 1))]
        if spec.kind == "no-reference":
            places = [("none", range(steps + 1))]
        for against, at in places:
            for index, chain in enumerate(chains):
                loss = np.array([step * (1 + index % editors) / steps for step in at])
                parts.append(_rows(chain, at, spec, against, _values(name, loss, rng)))
        if spec.kind != "no-reference":
            pairs = floor_pairs(names)
            for one, other in pairs:
                floor = _values(name, np.array([60.0]), rng)
                parts.append(_rows(f"floor--{one}", [0], spec, other, floor))
    return pl.concat(parts)


def _values(
    name: str, loss: np.ndarray[Any, Any], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    noisy = loss + rng.uniform(0, 0.2, loss.shape)
    if name == "psnr":
        return np.asarray(10 + 30 * np.exp(-noisy / 5))
    if "ssim" in name:
        return np.asarray(np.exp(-noisy / 8))
    return np.asarray(noisy)


def _rows(chain: str, steps: Any, spec: Any, against: str, values: Any) -> pl.DataFrame:
    count = len(steps)
    told = {
        "chain": [chain] * count,
        "step": list(steps),
        "metric": [spec.name] * count,
        "version": [spec.version] * count,
        "against": [against] * count,
        "where": ["all"] * count,
        "value": values,
        "note": [""] * count,
    }
    schema = {name: getattr(pl, kind)() for name, kind in SCORE_COLUMNS.items()}
    return pl.DataFrame(told, schema=schema)


# -- what is measured -----------------------------------------------------------------------------


def in_child(code: str, *arguments: str) -> tuple[str, float]:
    """What a piece of Python takes in a process of its own, in words, and its peak GiB.

    The processors' seconds are told as well: on a busy machine only they can be compared.
    """
    timed = (
        "import sys, time, resource\nbegun = time.monotonic()\n"
        + code
        + "\nused = resource.getrusage(resource.RUSAGE_SELF)"
        "\nprint(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", timed, *arguments], check=True, capture_output=True, text=True
    )
    seconds, busy, kilobytes = (float(number) for number in done.stdout.split()[-3:])
    return f"{seconds:.1f} s (processors {busy:.1f} s)", kilobytes / 2**20


def size_of(folder: Path, *, without: str = "") -> int:
    """Bytes of all files below."""
    return sum(
        p.stat().st_size
        for p in folder.rglob("*")
        if p.is_file() and (not without or without not in p.parts)
    )


def opened(pages: list[Path]) -> dict[str, tuple[float, int]]:
    """Per page the seconds until it can be used, the best of three, and its elements.

    Usable: the thumbnails in view are drawn, and a script of the page's own has run.
    """
    from playwright.sync_api import sync_playwright

    ready = """() => new Promise((done) => {
      const seen = () => [...document.images].every((image) => {
        const box = image.getBoundingClientRect();
        const near = box.width && box.bottom > 0 && box.top < innerHeight
          && box.right > 0 && box.left < innerWidth;
        return !near || image.complete;
      });
      const look = () => (document.readyState === 'complete' && seen()
        ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 10));
      look();
    })"""
    found: dict[str, tuple[float, int]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for path in pages:
            times = []
            for _ in range(3):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(path.as_uri(), wait_until="commit")
                times.append(page.evaluate(ready) / 1000)
                count = page.evaluate("document.querySelectorAll('*').length")
                page.close()
            found[path.name] = min(times), count
        browser.close()
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result


def main() -> None:
    """Print what was measured beside what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--editors", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--keep", type=Path)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = told.keep or Path(temporary) / "run"
        if not RunStore.is_run(path):
            took, _ = timed(
                lambda: make_run(path, told.sources, told.editors, told.steps, told.side)
            )
            print(f"made the run in {took:.0f} s", file=sys.stderr)
        measure(path)


def measure(path: Path) -> None:
    """Print the table of one run."""
    frames = [p for p in (path / "frames").glob("[0-9a-f][0-9a-f]/*") if p.is_file()]
    images = sum(p.stat().st_size for p in frames)
    code = "from convergebench.analysis import analyze\nanalyze(sys.argv[1])"
    analysis, _ = in_child(code, str(path))
    report = "from convergebench.reporter import report\nreport(sys.argv[1])"
    folder = path / "report"
    cold = "was there" if (folder / "index.html").exists() else in_child(report, str(path))[0]
    warm, memory = in_child(report, str(path))
    rows = [
        ("frames", f"{len(frames):,} of {images / len(frames) / 1000:.0f} kB", "20,000"),
        ("analysis alone", analysis, "< 10 s"),
        ("report, cold thumbnails", cold, ""),
        ("report, warm thumbnails", warm, "< 60 s"),
        ("peak memory", f"{memory:.2f} GiB", "< 2 GiB"),
        ("folder / images", f"{size_of(folder) / images:.3f}", "< 1.3"),
        ("thumbnails / images", f"{size_of(folder / 'thumbs') / images:.3f}", ""),
    ]
    if CHROMIUM.exists():
        largest = max(folder.glob("source-*.html"), key=lambda p: p.stat().st_size)
        for name, (seconds, elements) in opened([folder / "index.html", largest]).items():
            weight = (folder / name).stat().st_size / 1e6
            what = f"{seconds:.2f} s ({elements:,} elements, {weight:.1f} MB)"
            rows.append((f"{name} usable", what, "< 2 s"))
    for row in rows:
        print("{:<28} {:<40} {}".format(*row))


if __name__ == "__main__":
    main()
