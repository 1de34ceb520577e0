"""Takes the README's pictures of the report, with a real browser.

python docs/screenshot.py RUN/report docs/images            (a run of roundtrip-v1)
python docs/screenshot.py --trial RUN/report docs/images    (a run of banana100/offline)
python docs/screenshot.py --restoration RUN/report docs/images    (a run of restoration-v1/offline)

`report.png` is the top of the first page, `viewer.png` the last step of a drawn source's red ball
with two editors beside home; `trial.png` is the top of the trial of the metrics;
`restoration.png` is the slider of the restoration study.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

BROWSER = "/usr/bin/chromium"
WIDTH = 1280
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SOURCE = "drawn-still-life"
EDITORS = ("banana", "latent")
REPAIRED = ("large-face-digital-zoom", "input", "ref:restorer · SF2.0")


def main() -> None:
    """Open the pages, wait for what they draw, and keep pictures with few colours."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    report, out = Path(words[0]).resolve(), Path(words[1])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 3000})
        takes = {"--trial": _trial, "--restoration": _restoration}
        take = next((takes[word] for word in sys.argv if word in takes), _report)
        names = take(page, report, out)
        browser.close()
    for name in names:
        image = Image.open(out / name).convert("RGB")
        image.quantize(256, method=Image.Quantize.MEDIANCUT).save(out / name, optimize=True)


def _trial(page: Page, report: Path, out: Path) -> list[str]:
    page.goto((report / "trial.html").as_uri())
    page.wait_for_timeout(4000)
    end = page.evaluate("document.querySelector('#gaps').getBoundingClientRect().bottom")
    page.screenshot(
        path=out / "trial.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": min(end, 1700)}
    )
    return ["trial.png"]


def _restoration(page: Page, report: Path, out: Path) -> list[str]:
    page.set_viewport_size({"width": WIDTH, "height": 900})  # the slider's size follows it
    shown = "/".join(quote(part, safe="") for part in REPAIRED)
    page.goto(f"{(report / 'restoration.html').as_uri()}#compare/{shown}")
    page.wait_for_selector("#slider[data-shown]")
    page.wait_for_timeout(3000)
    place = "(id) => { const box = document.querySelector(id).getBoundingClientRect(); "
    place += "return [box.top + scrollY, box.bottom + scrollY] }"
    start, _ = page.evaluate(place, "#compare h2")
    _, end = page.evaluate(place, "#shots")
    clip = {"x": 0, "y": start - 16, "width": WIDTH, "height": end - start + 20}
    page.screenshot(path=out / "restoration.png", clip=clip, full_page=True)
    return ["restoration.png"]


def _report(page: Page, report: Path, out: Path) -> list[str]:
    page.goto((report / "index.html").as_uri())
    page.wait_for_selector("#panel-1 figure.live .chart svg")
    page.wait_for_timeout(3000)
    end = page.evaluate("document.querySelector('#panel-1').getBoundingClientRect().bottom")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": end + 24}
    page.screenshot(path=out / "report.png", clip=clip)

    page.set_viewport_size({"width": WIDTH, "height": 860})
    address = (report / f"source-{SOURCE}.html").as_uri()
    page.goto(address)
    rows = page.evaluate("[...document.querySelectorAll('tr[id]')].map((row) => row.id)")
    mine = [r for e in EDITORS for r in rows if f"--red-ball--ref-{e}" in r]
    page.goto(f"{address}#{'+'.join(mine)}/10/side")
    page.reload()
    page.wait_for_timeout(2500)
    page.screenshot(path=out / "viewer.png")
    return ["report.png", "viewer.png"]


if __name__ == "__main__":
    main()
