"""Takes the README's picture of the report, with a real browser.

python docs/screenshot.py demo-run/report/index.html docs/images/report.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

BROWSER = "/usr/bin/chromium"
WIDTH = 1280
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Open the page, wait for its charts, keep it from the leaderboard to the end of the curves."""
    page_file, picture = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 3000})
        page.goto(page_file.as_uri())
        # Charts are drawn as they come into view: all of these are.
        page.wait_for_selector("#panel-1 figure.live .chart svg")
        page.wait_for_timeout(3000)
        place = "document.querySelector('{}').getBoundingClientRect().{}"
        top = page.evaluate(place.format("#leaderboard h2", "top")) - 24
        end = page.evaluate(place.format("#panel-1", "bottom")) + 24
        page.screenshot(path=picture, clip={"x": 0, "y": top, "width": WIDTH, "height": end - top})
        browser.close()
    image = Image.open(picture).convert("RGB")
    image.quantize(128, method=Image.Quantize.MEDIANCUT).save(picture, optimize=True)


if __name__ == "__main__":
    main()
